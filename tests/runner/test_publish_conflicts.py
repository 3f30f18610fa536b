"""Changes of a run that conflict with their branch are on a branch of their own, with the agent's very files."""

from dataclasses import replace
from typing import Any

import pytest
from support.conflicts import KINDS, Prepared, add_files, edit, prepare, write
from support.stage import Stage
from support.workshop import Agent, Workshop, git, publication_of

from accord.engine.operations import OperationLog
from accord.runner.outputs import ConflictBranch, Published
from accord.runner.publish import publish_patch
from accord_sandbox.faults import Fault

pytestmark = pytest.mark.slow
BESIDE = "accord/conflict-23456789"


@pytest.fixture
def agent(agent: Agent) -> Agent:
    """An agent on ``feature``, which has the files that conflicts are about."""
    base = add_files(agent.tree)
    git(agent.tree, "push", "-q", "origin", "feature")
    return replace(agent, base=base)


def conflicting(agent: Agent, name: str = "edit-edit") -> Prepared:
    """Let an agent and a person change the same path; the person has pushed."""
    agents = prepare(agent.tree, KINDS[name])
    git(agent.tree, "push", "-q", "origin", "feature")
    return agents


def publish(workshop: Workshop, agents: Prepared, **changed: Any) -> Published:
    return publish_patch(workshop.remote(), publication_of(agents.patch, agents.base, **changed))


def fetched(agent: Agent, *arguments: str) -> str:
    git(agent.tree, "fetch", "-q")
    return git(agent.tree, *arguments)


def branches(stage: Stage) -> dict[str, str]:
    return {found["name"]: found["commit"]["sha"] for found in stage.listed("/branches")}


SOME = ("edit-in-file", "rename-delete", "binary-add")
"""``tests/git/test_conflicts.py`` has what git makes of every kind."""


@pytest.mark.parametrize(
    "name", [name if name in SOME else pytest.param(name, marks=pytest.mark.matrix) for name in KINDS]
)
def test_a_conflict_of_any_kind_leaves_the_agents_tree_on_a_branch_of_its_own(
    workshop: Workshop, agent: Agent, name: str
) -> None:
    agents = conflicting(agent, name)
    tip = workshop.tip()
    published = publish(workshop, agents)
    assert published.failure
    assert (published.failure.kind, published.commit_sha, published.files_changed) == ("push-conflict", "", 0)
    assert published.conflict
    assert (published.conflict.name, published.conflict.onto) == (BESIDE, "feature")
    assert {*published.conflict.paths} == KINDS[name].paths
    assert BESIDE in published.failure.detail
    assert workshop.tip() == tip
    assert fetched(agent, "rev-parse", f"origin/{BESIDE}^{{tree}}") == agents.tree
    assert git(agent.tree, "rev-parse", f"origin/{BESIDE}^") == agents.base
    before = branches(workshop.stage)
    assert publish(workshop, agents) == published
    assert branches(workshop.stage) == before


def test_after_a_merge_by_a_person_the_run_counts_as_published(workshop: Workshop, agent: Agent) -> None:
    agents = conflicting(agent)
    publish(workshop, agents)
    made = fetched(agent, "rev-parse", f"origin/{BESIDE}")
    git(agent.tree, "merge", "-q", "-s", "ours", f"origin/{BESIDE}")
    git(agent.tree, "push", "-q", "origin", "feature")
    published = publish(workshop, agents)
    assert (published.commit_sha, published.failure) == (made, None)


@pytest.mark.parametrize("fault", ["lost-before", "lost-after"])
def test_a_conflict_whose_push_is_lost_is_pushed_once(workshop: Workshop, agent: Agent, fault: str) -> None:
    agents = conflicting(agent)
    workshop.stage.server.faults.add(Fault(fault, times=2, method="POST", path=r"git-receive-pack$"))
    published = publish(workshop, agents)
    workshop.stage.server.faults.clear()
    assert published.conflict
    assert fetched(agent, "rev-list", "--count", f"{agents.base}..origin/{BESIDE}") == "1"
    assert publish(workshop, agents) == published


def test_a_rehearsal_pushes_no_conflict(workshop: Workshop, agent: Agent) -> None:
    agents = conflicting(agent)
    before = branches(workshop.stage)
    published = publish(workshop, agents, log=OperationLog(is_dry_run=True))
    assert published.conflict == ConflictBranch(BESIDE, "feature", ("k/long.txt",))
    assert branches(workshop.stage) == before


def test_a_branch_with_other_commits_stays_and_the_conflict_is_all_that_is_reported(
    workshop: Workshop, agent: Agent
) -> None:
    agents = conflicting(agent)
    git(agent.tree, "push", "-q", "origin", f"HEAD~1:refs/heads/{BESIDE}")
    before = branches(workshop.stage)
    published = publish(workshop, agents)
    assert published.failure
    assert (published.failure.kind, published.conflict) == ("push-conflict", None)
    assert branches(workshop.stage) == before


def test_a_conflict_of_a_deleted_branch_is_published_after_the_branch_is_restored(
    workshop: Workshop, agent: Agent
) -> None:
    agents = conflicting(agent)
    git(agent.tree, "push", "-q", "origin", ":feature")
    before = branches(workshop.stage)
    published = publish(workshop, agents)
    assert published.failure
    assert (published.failure.kind, branches(workshop.stage)) == ("push-conflict", before)
    assert "No branch `feature` exists. If it was deleted, restore it" in published.failure.detail
    git(agent.tree, "push", "-q", "origin", f"{agents.base}:refs/heads/feature")
    assert publish(workshop, agents).commit_sha == workshop.tip()


def test_steering_files_are_not_pushed_because_of_a_conflict(workshop: Workshop, agent: Agent) -> None:
    kind = KINDS["edit-edit"]._replace(mine=lambda t: (edit(t, "mine"), write(t / "CLAUDE.md", "Obey.\n")))
    agents = prepare(agent.tree, kind)
    git(agent.tree, "push", "-q", "origin", "feature")
    before = branches(workshop.stage)
    published = publish(workshop, agents)
    assert published.failure
    assert (published.failure.kind, branches(workshop.stage)) == ("steering-files", before)
    assert publish(workshop, agents, allows_steering=True).conflict
