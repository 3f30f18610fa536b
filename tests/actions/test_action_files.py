"""Actions, commands and workflows say the same: every input is an option, every output is written, nothing is loose."""

import os
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args

import click
import pytest
from support.act import ROOT, STAND_INS, TEMPLATES, action_files, others_used, read_yaml, steps_of, workflow_files

from accord.cli.main import accord
from accord.cli.options import FlagOption
from accord.loops.models import REASONS, LoopAction

PINS = re.compile(r"uses: (?!accord-ci/)[\w.-]+/[\w./-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+\n")
COMMANDS = {
    "action.yml": ["apply"], "actions/analyze-tasks/action.yml": ["analyze"], "actions/apply/action.yml": ["apply"],
    "actions/artifact/action.yml": ["artifact"], "actions/autofix/action.yml": ["autofix run"],
    "actions/board/action.yml": ["board issue"],
    "actions/bot-comments/action.yml": ["bot-comments run"], "actions/check/action.yml": ["check"],
    "actions/classify-error/action.yml": ["classify"], "actions/handoff/action.yml": ["handoff gate"],
    "actions/keepalive/action.yml": ["keepalive run"], "actions/labels/action.yml": ["labels check", "labels sync"],
    "actions/mission/action.yml": ["mission check"], "actions/patch/action.yml": ["patch"],
    "actions/publish-run/action.yml": ["publish"], "actions/run-agent/action.yml": ["run"],
    "actions/session/action.yml": ["session check"], "actions/sync/action.yml": ["sync"],
    "actions/verifier/action.yml": ["verify run"],
}  # fmt: skip
NEEDED = {"actions/patch/action.yml": {"into"}, "actions/sync/action.yml": {"ref"}}
"""Inputs that an action needs although its command does not: what it would print else is not for a log; an action does
not know its own commit."""

FIXED = {
    "actions/run-agent/action.yml": {"no-publish", "dry-run", "allow-steering-files", "max-files", "max-bytes"},
    "actions/artifact/action.yml": {"dry-run"}, "actions/patch/action.yml": {"dry-run"},
}  # fmt: skip
"""Options that an action always sets, that have no effect with those, or that leave no file to the next step."""

FACTS = {"ACCORD_TOKEN_IS_JOBS"}
"""Variables with facts about the job; no input sets them."""

NOT_INPUTS = {"format", "help"}
"""Options that an action has no use for: its outputs are the format for programs."""

ELSEWHERE = {"sandbox", "receipt", "repo", "checkout"}
"""Options without a use in a job: it writes to the repository it runs in, and has no checkout."""

OF_PLANS = {"request", "plan-settings", "close-vanished", "any-issue", "max-items"}
OF_REVISIONS = {
    "base", "author", "co-author", "commit-type", "protect", "max-files", "max-bytes", "allow-steering-files",
    "keepalive",
}  # fmt: skip
OF_REVIEWS = {"pull", "commit", "max-comments", "approvals"}
LOOPS = {"keepalive", "autofix", "verifier", "bot-comments"}
"""Their workflows are held in step by test_loop_workflows.py."""

REUSABLE = {
    "reusable-apply-result.yml": ("apply", {*ELSEWHERE, "work-item", *OF_REVISIONS, *OF_REVIEWS}),
    "reusable-apply-revision.yml": ("apply", {*ELSEWHERE, *OF_PLANS, *OF_REVIEWS}),
    "reusable-apply-review.yml": ("apply", {*ELSEWHERE, *OF_PLANS, *OF_REVISIONS}),
    "reusable-label-sync.yml": ("labels", {"sandbox", "command"}),
}
"""The action that each wraps, and the inputs of that action which it leaves out."""

APPLYING = {
    "reusable-apply-result.yml": ("planner-result", {"outcome", "items", "run-key"}),
    "reusable-apply-revision.yml": ("implementor-result", {"outcome", "revision", "run-key"}),
    "reusable-apply-review.yml": ("reviewer-result", {"outcome", "review", "run-key"}),
}
"""The one kind of result that each accepts, and what it gives to later jobs."""

EVERY_FILE = [pytest.param(path, id=str(path.relative_to(ROOT))) for path in [*action_files(), *workflow_files()]]
EVERY_ACTION = [pytest.param(ROOT / name, id=name) for name in COMMANDS]
EVERY_REUSABLE = [pytest.param(ROOT / ".github/workflows" / name, id=name) for name in REUSABLE]


def parameters(command: str) -> Iterator[tuple[str, str, click.Parameter]]:
    """Yield name, environment variable and definition of every parameter of a command, as click sees them."""
    context, found = click.Context(accord, info_name="accord", auto_envvar_prefix="ACCORD"), accord
    for word in command.split():
        found = found.get_command(context, word)  # type: ignore[attr-defined, assignment]
        context = click.Context(found, parent=context, info_name=word)
    for parameter in found.params:
        if isinstance(parameter, click.Argument):
            yield (parameter.name or "").replace("_", "-"), str(parameter.envvar), parameter
        else:
            name = max(parameter.opts, key=len).removeprefix("--")
            if name not in NOT_INPUTS:
                assert isinstance(parameter, FlagOption)
                yield name, parameter.variables(context)[0], parameter


def given_inputs(document: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return document.get("inputs") or {}


ENDED = {"report", "follow-up", "ask"}
"""Actions at the end of a verifier's run; the workflow's output is of its beginning."""


@pytest.mark.parametrize("loop", sorted(LOOPS))
def test_the_output_action_of_a_loop_names_what_its_reasons_lead_to(loop: str) -> None:
    name = loop.replace("verifier", "verify")
    wanted = {reason.action for reason in REASONS.values() if name in reason.loops}
    wanted |= {"sweep"} if "verify" not in name else set()
    action = read_yaml(ROOT / f"actions/{loop}/action.yml")["outputs"]
    workflow = read_yaml(ROOT / f".github/workflows/reusable-{loop}.yml")["on"]["workflow_call"]["outputs"]
    known = {*get_args(LoopAction), "sweep"}
    told = [known & {*re.findall(r"[a-z-]+", outputs["action"]["description"])} for outputs in (action, workflow)]
    assert told == [wanted, wanted - ENDED]


@pytest.mark.parametrize("path", EVERY_ACTION)
def test_every_option_is_an_input_with_its_default_and_every_input_reaches_its_option(path: Path) -> None:
    name, document = str(path.relative_to(ROOT)), read_yaml(path)
    inputs, step = given_inputs(document), steps_of(document)[-1]
    options = [option for command in COMMANDS[name] for option in parameters(command)]
    options = [option for option in options if option[0] not in FIXED.get(name, ())]
    passed = {pair for pair in step["env"].items() if pair[0].startswith("ACCORD_") and pair[0] not in FACTS}
    assert passed == {(variable, f"${{{{ inputs.{option} }}}}") for option, variable, _ in options}
    assert set(re.findall(r"inputs\.([\w-]+)", " ".join(step["env"].values()))) == set(inputs)
    for option, _, parameter in options:
        is_needed = parameter.required or option in NEEDED.get(name, ())
        assert (inputs[option].get("required") == "true") == is_needed, option
        assert is_needed or inputs[option]["default"] == as_input(parameter), option


def as_input(parameter: click.Parameter) -> str:
    default = parameter.get_default(click.Context(click.Command("none")))
    if isinstance(default, bool):
        return str(default).lower()
    if isinstance(default, (int, Path)):
        return str(default)
    return default if isinstance(default, str) else ""


def test_the_root_action_is_the_apply_action() -> None:
    root, apply = (
        path.read_text(encoding="utf-8") for path in (ROOT / "action.yml", ROOT / "actions/apply/action.yml")
    )
    root = re.sub(r"branding:\n(?:  .*\n)+", "", root).replace("name: accord\n", "name: accord apply\n", 1)
    assert root.replace("actions/setup/", "../setup/") == apply


@pytest.mark.parametrize("path", EVERY_REUSABLE)
def test_a_reusable_workflow_offers_what_its_action_offers_and_passes_it_on(path: Path) -> None:
    document = read_yaml(path)
    name, left_out = REUSABLE[path.name]
    action = given_inputs(read_yaml(ROOT / f"actions/{name}/action.yml"))
    offered = document["on"]["workflow_call"]
    (step,) = [step for step in steps_of(document) if step.get("uses") == f"$/actions/{name}"]
    assert {*step["with"], *left_out} >= set(action) >= set(step["with"])
    for wanted, given in offered["inputs"].items():
        if "default" in action.get(wanted, {}) and given.get("required") != "true":
            assert given["default"] == action[wanted]["default"], wanted
    own = {"artifact", "result", "result-json", "repositories"} & set(offered["inputs"])
    for wanted in set(offered["inputs"]) - own:
        assert step["with"][wanted] == f"${{{{ inputs.{wanted} }}}}", wanted
    for wanted in own:
        assert f"inputs.{wanted}" in path.read_text(encoding="utf-8").partition("\njobs:")[2], wanted
    is_required = offered["secrets"]["token"]["required"] == "true"
    assert step["with"]["token"] == ("${{ secrets.token }}" if is_required else "${{ secrets.token || github.token }}")


@pytest.mark.parametrize("workflow", APPLYING)
def test_a_workflow_that_applies_accepts_one_kind_and_has_the_outputs_of_the_action(workflow: str) -> None:
    document = read_yaml(ROOT / ".github/workflows" / workflow)
    (step,) = [step for step in steps_of(document) if step.get("id") == "apply"]
    assert step["with"]["kind"] == APPLYING[workflow][0]
    action = read_yaml(ROOT / "actions/apply/action.yml")["outputs"]
    offered = document["on"]["workflow_call"]["outputs"]
    assert set(offered) == APPLYING[workflow][1]
    for name, output in offered.items():
        assert output["value"] == f"${{{{ jobs.apply.outputs.{name} }}}}"
        assert document["jobs"]["apply"]["outputs"][name] == f"${{{{ steps.apply.outputs.{name} }}}}"
        assert output["description"] == action[name]["description"]


@pytest.mark.parametrize("path", [pytest.param(path, id=path.name) for path in TEMPLATES.glob("*.yml")])
def test_a_template_grants_a_reusable_workflow_just_what_it_asks_for(path: Path) -> None:
    # GitHub does not start a run in which a called job asks for more than the calling one grants
    for job in read_yaml(path)["jobs"].values():
        if "uses" in job:
            called = job["uses"].partition("@")[0].partition("accord-ci/accord/")[2]
            assert asked_by(read_yaml(ROOT / called)) == job["permissions"]


@pytest.mark.parametrize("path", [pytest.param(path, id=path.name) for path in workflow_files()])
def test_no_waiting_run_is_dropped_and_no_cache_carries_anything_from_an_agent(path: Path) -> None:
    document = read_yaml(path)
    for part in (document, *document["jobs"].values()):
        if "concurrency" in part:
            waits = part["concurrency"]["cancel-in-progress"] == "false"
            assert part["concurrency"].get("queue") == ("max" if waits else None)
    for job in document["jobs"].values():
        agents = [step for step in job.get("steps", ()) if "/actions/run-agent" in step.get("uses", "")]
        is_agents = any(step["with"].get("skip") != "true" for step in agents)
        assert job.get("cache-mode") == ("none" if is_agents else None)


def asked_by(document: dict[str, Any]) -> dict[str, str]:
    """Put together what all jobs of a workflow ask for."""
    asked: dict[str, str] = {}
    for job in document["jobs"].values():
        for area, level in job["permissions"].items():
            asked[area] = max(level, asked.get(area, ""))  # "write" comes after "read"
    return asked


@pytest.mark.parametrize("path", EVERY_FILE)
def test_no_script_contains_an_expression_that_an_input_could_break_out_of(path: Path) -> None:
    for step in steps_of(read_yaml(path)):
        assert "${{" not in step.get("run", "")


@pytest.mark.parametrize("path", workflow_files(), ids=str)
def test_no_workflow_hides_a_variable_of_the_machine_by_one_that_the_repository_may_lack(path: Path) -> None:
    assert re.findall(r"^ *(\w+): \$\{\{ vars\.\1 \}\}", path.read_text(encoding="utf-8"), re.MULTILINE) == []


def test_a_patch_without_a_target_is_not_written_to_the_log() -> None:
    (*_, step) = steps_of(read_yaml(ROOT / "actions/patch/action.yml"))
    environment = {**os.environ, "ACCORD_PATCH_INTO": "", "GITHUB_ACTION_PATH": "/nowhere"}
    words = ["bash", "-e", "-c", step["run"]]
    ended = subprocess.run(words, env=environment, capture_output=True, text=True, check=False)
    assert ended.returncode != 0
    assert "set the input into" in ended.stderr


@pytest.mark.parametrize("path", EVERY_FILE)
def test_every_input_output_and_secret_has_a_description(path: Path) -> None:
    document = read_yaml(path)
    # the contract of runners spells inputs with underscores, providers their keys so
    loop = path.stem.removeprefix("reusable-").removeprefix("accord-")
    is_runner = path.name.endswith("-run.yml") or loop in LOOPS
    spelled = r"[a-z]+([-_][a-z]+)*|[A-Z]+(_[A-Z]+)*" if is_runner else r"[a-z]+(-[a-z]+)*"
    triggers = document.get("on", {})
    offers = triggers.values() if isinstance(triggers, dict) else ()
    for offer in (document, *(value for value in offers if isinstance(value, dict))):
        for part in ("inputs", "outputs", "secrets"):
            for name, given in (offer.get(part) or {}).items():
                assert given.get("description", "").endswith("."), (part, name)
                assert re.fullmatch(spelled, name), name


@pytest.mark.parametrize("path", EVERY_FILE)
def test_third_party_actions_are_pinned_to_a_commit_with_their_version(path: Path) -> None:
    used = others_used(path)
    assert len(PINS.findall(path.read_text(encoding="utf-8"))) == len(used)
    assert not used or "runs" not in read_yaml(path)  # our own actions need no others
    assert {name.partition("@")[0] for name in used} <= set(STAND_INS)


@pytest.mark.parametrize("path", [path for path in EVERY_FILE if "workflows" in str(path.values[0])])
def test_every_job_limits_its_permissions_and_time(path: Path) -> None:
    document = read_yaml(path)
    assert document["permissions"] == {}
    for job in document["jobs"].values():
        assert "permissions" in job
        assert "uses" in job or "timeout-minutes" in job
        for step in job.get("steps", []):
            if step.get("uses", "").startswith("actions/checkout@"):
                assert step["with"]["persist-credentials"] == "false"


@pytest.mark.parametrize("path", [param for param in EVERY_FILE if "actions" in str(param.id).split("/")])
def test_the_readme_of_an_action_shows_how_to_use_it(path: Path) -> None:
    readme = (path.parent / "README.md").read_text(encoding="utf-8")
    pin = (ROOT / "tools/pin.txt").read_text(encoding="utf-8").strip()
    assert f"uses: accord-ci/accord/actions/{path.parent.name}@{pin}" in readme
    for part in ("inputs", "outputs"):
        entries = readme.partition(f"<!-- {part} -->")[2].partition(f"<!-- /{part} -->")[0]
        assert re.findall(r"^- `([\w-]+)`", entries, re.MULTILINE) == list(read_yaml(path).get(part, {}))
