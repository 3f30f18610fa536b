"""The workflows of this repository and of the kit: runners are named after their agents, so that callers can switch."""

from pathlib import Path

from accord.agents.registry import shipped_registry
from accord.workflows.doctor import check_names
from accord.workflows.facts import WORKFLOWS, read_repository
from accord.workflows.requirements import check_grants
from accord.workflows.rules import is_runner

ROOT = Path(__file__).parents[2]
FACTS, READ = read_repository(ROOT, "octo")
KIT, _ = read_repository(ROOT / "templates/consumer-repo", "octo")
RUNNERS = {Path(path).name: workflow for path, workflow in FACTS.workflows.items() if is_runner(workflow)}
THIN = {"reusable-codex-run.yml": "codex", "reusable-claude-run.yml": "claude", "reusable-gemini-run.yml": "gemini"}


def test_every_workflow_has_a_name_of_its_own_that_others_refer_to() -> None:
    assert [*check_names(FACTS), *check_names(KIT)] == []


def test_the_kit_and_this_repository_grant_what_they_call_for() -> None:
    for facts in (FACTS, KIT):
        assert any(job.uses for workflow in facts.workflows.values() for job in workflow.jobs.values())
        assert list(check_grants(facts)) == []


def test_every_agent_with_a_runner_of_its_own_is_in_the_registry() -> None:
    assert set(THIN.values()) <= {name for name, agent in shipped_registry().agents.items() if agent.enabled}
    assert {*RUNNERS} == {*THIN, "reusable-agent-run.yml"}, "loops choose their prompt themselves"


def test_all_workflows_are_where_github_looks() -> None:
    assert READ.unreadable == []
    assert all(path.startswith(f"{WORKFLOWS}/") for path in FACTS.workflows)
