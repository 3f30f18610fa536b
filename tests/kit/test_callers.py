"""The kit's workflows for the loops: started by the labels that the loops obey, and given what an app's token needs."""

import re
from collections.abc import Iterator
from typing import Any

import pytest
import yaml

from accord.engine.trust import NEEDS_HUMAN, PAUSED
from accord.git.configuration import KIT_CONFIG, ConfigFile
from accord.kit.templates import shipped_kit
from accord.loops.questions import AUTOFIX, KEEPALIVE
from accord.results.label_sync import shipped_labels
from accord.starts.config import AccordConfig, StartSwitches, read_config
from accord.starts.models import ITEM_INPUT, PLAN_LABEL, REVIEW_LABEL
from accord.starts.models import WORKFLOWS as FILES

WORKFLOWS = {
    loop: yaml.safe_load(shipped_kit().files[f".github/workflows/accord-{loop}.yml"])
    for loop in ("autofix", "bot-comments", "keepalive", "verifier")
}
CALLERS = {loop: workflow["jobs"][loop] for loop, workflow in WORKFLOWS.items()}


def hears(job: dict[str, Any], label: str) -> bool:
    """Tell whether the event of this label starts the job."""
    begins = re.findall(r"startsWith\(github\.event\.label\.name, '([^']+)'\)", job["if"])
    return f"github.event.label.name == '{label}'" in job["if"] or label.startswith(tuple(begins))


@pytest.mark.parametrize(("loop", "labels"), [("keepalive", [KEEPALIVE]), ("autofix", [AUTOFIX, KEEPALIVE])])
def test_a_label_that_asks_for_a_loop_starts_it(loop: str, labels: list[str]) -> None:
    shipped = {entry.name for entry in shipped_labels()}
    assert set(labels) <= shipped
    for label in [*labels, *(name for name in shipped if name.startswith("agent:"))]:
        assert hears(CALLERS[loop], label), label
    assert not hears(CALLERS[loop], "priority:high")


@pytest.mark.parametrize("loop", ["keepalive", "autofix", "bot-comments"])
def test_a_label_that_is_taken_off_is_heard_at_once_and_not_at_the_next_sweep(loop: str) -> None:
    events = WORKFLOWS[loop][True]  # YAML 1.1 reads "on" so
    assert "unlabeled" in events["pull_request"]["types"]
    asks = [KEEPALIVE, AUTOFIX] if loop == "autofix" else [KEEPALIVE]
    for label in [*asks, PAUSED, NEEDS_HUMAN, "agent:codex"]:
        assert hears(CALLERS[loop], label), label


WRITER = ("${{ vars.ACCORD_LOGIN }}", "${{ secrets.ACCORD_TOKEN }}")
REVIEWER = ("${{ vars.ACCORD_REVIEW_LOGIN }},${{ vars.ACCORD_LOGIN }}", "${{ secrets.ACCORD_REVIEW_TOKEN }}")
WHETHER_ANY = "${{ secrets.ACCORD_TOKEN != '' }}"
"""It tells a job whether there is a token, and not the token."""
BOTH = ("${{ vars.ACCORD_LOGIN }},${{ vars.ACCORD_REVIEW_LOGIN }}", "${{ secrets.ACCORD_TOKEN }}")
"""The writer, which also works in the changes that the reviewer requests."""
ACCOUNTS = {"review": REVIEWER, "keepalive": BOTH}
REPORTS = {(work, job) for work in ("plan", "review") for job in ("begin", "end")} | {("implement", "end")}
OWN_TOKEN = {("implement", "start"), ("labels", "labels"), ("start", "start"), *REPORTS}
"""Jobs for which their own token does: labels have no author, and the status comment is always of the same account."""


def jobs() -> Iterator[tuple[str, str, dict[str, Any]]]:
    for path, text in shipped_kit().files.items():
        if path.startswith(".github/workflows/"):
            name = path.removeprefix(".github/workflows/accord-").removesuffix(".yml")
            yield from ((name, job, body) for job, body in yaml.safe_load(text)["jobs"].items())


def test_the_board_counts_the_comments_of_all_accounts_and_writes_with_its_own_token() -> None:
    ((job,),) = [[body for workflow, _, body in jobs() if workflow == "board"]]
    (step,) = job["steps"]
    assert step["with"] == {"identity": "github-actions[bot],${{ vars.ACCORD_LOGIN }},${{ vars.ACCORD_REVIEW_LOGIN }}"}
    assert "secrets" not in yaml.safe_dump(job)


def test_every_job_that_writes_passes_token_and_identity_and_no_job_of_an_agent_sees_them() -> None:
    writing = set()
    for workflow, name, job in jobs():
        if name == "board":
            continue  # it names the accounts, and has no token of theirs
        if "write" in job["permissions"].values() and (workflow, name) not in OWN_TOKEN:
            writing.add(workflow)
            passed = (job["with"]["identity"], job["secrets"]["token"])
            assert passed == ACCOUNTS.get(workflow, WRITER), (workflow, name)
        else:
            text = yaml.safe_dump(job).replace(WHETHER_ANY, "")
            assert not re.search(r"ACCORD_(REVIEW_)?(TOKEN|LOGIN)", text), (workflow, name)
    assert writing == {"plan", "implement", "review", *WORKFLOWS}


def test_the_labels_follow_their_file_whatever_the_default_branch_is_called() -> None:
    caller: Any = yaml.load(shipped_kit().files[".github/workflows/accord-labels.yml"], Loader=yaml.BaseLoader)
    assert caller["on"]["push"] == {"branches": ["**"], "paths": [".github/labels.yml"]}, "a push of a tag has no paths"
    is_default = "github.ref == format('refs/heads/{0}', github.event.repository.default_branch)"
    assert caller["jobs"]["labels"]["if"] == f"github.event_name != 'push' || {is_default}"


@pytest.mark.parametrize("work", ["plan", "implement", "review"])
def test_the_workflows_take_what_a_start_gives_them(work: Any) -> None:
    workflow: Any = yaml.load(shipped_kit().files[f".github/workflows/{FILES[work]}"], Loader=yaml.BaseLoader)
    inputs = set(workflow["on"]["workflow_dispatch"]["inputs"])
    assert {ITEM_INPUT[work], "agent", "start"} <= inputs
    assert work != "plan" or {"request", "run-key"} <= inputs
    assert workflow["run-name"].endswith(" ${{ inputs.start }}"), "a second delivery finds the run by its title"


def test_the_configuration_of_the_kit_lists_every_line_with_its_default() -> None:
    text = shipped_kit().files[KIT_CONFIG]
    assert read_config(ConfigFile(raw=text.encode())) == AccordConfig()
    for name, field in StartSwitches.model_fields.items():
        assert re.search(rf"^  {field.alias or name}: .*Default: {str(field.default).lower()}$", text, re.MULTILINE)


def test_starts_hear_their_events_and_no_others() -> None:
    workflow: Any = yaml.load(shipped_kit().files[".github/workflows/accord-start.yml"], Loader=yaml.BaseLoader)
    assert workflow["on"]["issue_comment"] == {"types": ["created"]}, "no edits"
    assert "pull_request_target" not in workflow["on"]
    job = workflow["jobs"]["start"]
    assert not [step for step in job["steps"] if "checkout" in step.get("uses", "")]
    assert "github.event" not in yaml.safe_dump(job["steps"]), "the command reads the event's file"
    assert {PLAN_LABEL, REVIEW_LABEL} <= {entry.name for entry in shipped_labels()}
