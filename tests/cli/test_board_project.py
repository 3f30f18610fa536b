"""``accord board project``: its outputs, its summary, and the exit code for a token that cannot access projects."""

from pathlib import Path

import pytest
from support.commands import Accord
from support.stage import staged

from accord_sandbox.planting import INSTALLATION_TOKEN

SEED = {
    "repositories": [
        {"name": "octo/web", "issues": [{"title": "One", "labels": ["task:implement", "status:ready"]}]},
    ],
    "projects": [{"owner": "octo", "fields": {"Status": ["Ready"]}}],
}
WORDS = ("board", "project", "--project", 1, "--owner", "octo")


@pytest.mark.slow
def test_the_command_leaves_an_output_and_a_summary(tmp_path: Path, accord: Accord) -> None:
    step = accord.in_step()
    with staged(tmp_path / "data", seed=SEED) as stage:
        accord.on(stage)
        assert accord.document(*WORDS)["outcome"] == "applied"
        accord.on(stage, GITHUB_TOKEN=INSTALLATION_TOKEN)
        refused = accord(*WORDS)
    assert "### accord board project: applied" in step.summary
    assert "done: set-item-status \\#1 to Ready" in step.summary
    assert (refused.code, step.outputs) == (4, {"outcome": "refused"})
    assert "The token of a workflow's job cannot access projects." in refused.err
