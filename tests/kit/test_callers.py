"""The kit's workflows for the loops: started by the labels that the loops obey, and given what an app's token needs."""

import re
from typing import Any

import pytest
import yaml

from accord.kit.manifest import shipped_kit
from accord.loops.models import NEEDS_HUMAN
from accord.loops.questions import AUTOFIX, KEEPALIVE, PAUSED
from accord.results.label_sync import shipped_labels

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


def test_the_identity_of_an_apps_token_is_passed_on() -> None:
    assert {caller["with"]["identity"] for caller in CALLERS.values()} == {"${{ vars.ACCORD_LOGIN }}"}


def test_the_labels_follow_their_file_whatever_the_default_branch_is_called() -> None:
    caller: Any = yaml.load(shipped_kit().files[".github/workflows/accord-labels.yml"], Loader=yaml.BaseLoader)
    assert caller["on"]["push"] == {"branches": ["**"], "paths": [".github/labels.yml"]}, "a push of a tag has no paths"
    is_default = "github.ref == format('refs/heads/{0}', github.event.repository.default_branch)"
    assert caller["jobs"]["labels"]["if"] == f"github.event_name != 'push' || {is_default}"
