"""The mirror in a project: which operations the facts ask for, and what is there after a run on the local GitHub."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support.exactly_once import FaultCase, Work, assert_survives_faults
from support.stage import Stage, staged

from accord.board.project import OPTIONS, MirrorFacts, mirror_status, plan_mirror
from accord.github.models import Issue
from accord.github.projects import Project, ProjectItem
from accord.results.operations import Outcome, Receipt, RunOptions
from accord.results.status import WORK_ITEM
from accord.text.posting import PostingPolicy
from accord.text.redaction import Redactor
from accord_sandbox.planting import INSTALLATION_TOKEN, STRANGER_TOKEN

KIND = "task:implement"
SEED: dict[str, Any] = {
    "tokens": [
        {
            "token": "app",
            "login": "boards[bot]",
            "kind": "installation",
            "permissions": {"issues": "read", "organization_projects": "write"},
        },
        {
            "token": "reader",
            "login": "reader[bot]",
            "kind": "installation",
            "permissions": {"issues": "read", "organization_projects": "read"},
        },
    ],
    "repositories": [
        {
            "name": "octo/web",
            "issues": [
                {"title": "Ready", "labels": [KIND, "status:ready"]},
                {"title": "In review", "labels": [KIND, "status:review"]},
                {"title": "Blocked", "labels": [KIND, "status:blocked"]},
                {"title": "Not a work item"},
                {"title": "Closed", "labels": [KIND], "state": "closed"},
            ],
        },
        {"name": "octo/other", "issues": [{"title": "Elsewhere", "labels": [KIND, "status:ready"]}]},
    ],
    "projects": [
        {"owner": "octo", "fields": {"Status": ["Backlog", "✅ Ready", "In review", "Done"], "Notes": []}},
        {"owner": "maintainer", "number": 4},
    ],
}


@pytest.fixture
def stage(tmp_path: Path) -> Iterator[Stage]:
    with staged(tmp_path, seed=SEED, rate_limits=None) as stage:
        stage.begin_at_present()
        yield stage


def mirror(
    stage: Stage, token: str = "app", number: int = 1, owner: str = "octo", field: str = "Status", **more: Any
) -> Receipt:
    options = RunOptions("octo/web", stage.clock, Redactor(), PostingPolicy(), **more)
    return mirror_status(stage.adapter(token=token, repo="octo/web"), owner, number, field, options)


def shown(stage: Stage) -> dict[int, str]:
    """The value of each item of the project."""
    query = (
        '{repositoryOwner(login: "octo") {... on ProjectV2Owner {projectV2(number: 1) {items(first: 100) {nodes {'
        'content {... on Issue {number}} fieldValueByName(name: "Status") {'
        "... on ProjectV2ItemFieldSingleSelectValue {name}}}}}}}}"
    )
    data = stage.send("POST", "/graphql", query=query)["data"]["repositoryOwner"]["projectV2"]["items"]["nodes"]
    return {node["content"]["number"]: (node["fieldValueByName"] or {}).get("name", "") for node in data}


def entries(receipt: Receipt) -> list[tuple[str, str]]:
    return [(entry.op, entry.key) for entry in receipt.operations]


@pytest.mark.slow
def test_the_status_of_open_work_items_is_written_once(stage: Stage) -> None:
    planned = mirror(stage, is_dry_run=True)
    assert (planned.outcome, shown(stage)) == (Outcome.PLANNED, {})
    receipt = mirror(stage)
    assert receipt.outcome is Outcome.APPLIED
    assert entries(receipt) == entries(planned)
    assert shown(stage) == {1: "✅ Ready", 2: "In review", 3: ""}
    (found,) = receipt.findings
    assert (found.code, "#3 is not shown" in found.message) == ("project-option-missing", True)
    assert "Add the option `Blocked`" in found.hint
    again = mirror(stage)
    assert (again.outcome, again.writes) == (Outcome.UNCHANGED, 0)


@pytest.mark.slow
def test_a_changed_label_and_a_closed_item_are_followed(stage: Stage) -> None:
    mirror(stage)
    stage.send("PUT", "/repos/octo/web/issues/2/labels", labels=[KIND, "status:pending"])
    stage.send("PATCH", "/repos/octo/web/issues/1", state="closed")
    assert mirror(stage).outcome is Outcome.APPLIED
    assert shown(stage) == {1: "Done", 2: "Backlog", 3: ""}


@pytest.mark.parametrize(
    ("token", "owner", "number", "field", "words"),
    [
        (INSTALLATION_TOKEN, "octo", 1, "Status", "Resource not accessible by integration"),
        (INSTALLATION_TOKEN, "maintainer", 4, "Status", "Could not resolve to a ProjectV2 with the number 4."),
        ("app", "maintainer", 4, "Status", "Could not resolve to a ProjectV2 with the number 4."),
        (STRANGER_TOKEN, "octo", 1, "Status", "Could not resolve to a ProjectV2 with the number 1."),
        ("app", "octo", 9, "Status", "Could not resolve to a ProjectV2 with the number 9."),
        ("app", "ghost", 1, "Status", "`ghost` has no project 1."),
        ("app", "octo", 1, "Notes", "has no single-select field `Notes`"),
        ("app", "octo", 1, "Stage", "has no single-select field `Stage`"),
    ],
)
def test_a_project_that_cannot_be_used_is_refused(
    stage: Stage, token: str, owner: str, number: int, field: str, words: str
) -> None:
    receipt = mirror(stage, token, number, owner, field)
    assert (receipt.outcome, shown(stage)) == (Outcome.REFUSED, {})
    assert receipt.error
    assert words in receipt.error.message
    if token == INSTALLATION_TOKEN and owner == "octo":
        assert "The token of a workflow's job cannot access projects." in receipt.error.hint


def test_a_token_that_only_reads_projects_writes_nothing(stage: Stage) -> None:
    assert (mirror(stage, "reader").outcome, shown(stage)) == (Outcome.REFUSED, {})


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["lost-before", "lost-after", "error-500-after", "truncated"])
def test_a_fault_at_any_request_loses_and_doubles_nothing(stage: Stage, kind: str) -> None:
    work = Work(stage, stage.keep(), lambda: mirror(stage), lambda: shown(stage), {})
    assert_survives_faults(work, [FaultCase(kind), FaultCase(kind, is_permanent=True)])


def issue(number: int, *labels: str) -> Issue:
    texts = {"url": "", "title": "T", "body": "", "state": "open", "state_reason": None, "author": "a"}
    facts = {"author_is_bot": False, "closed_by": None, "is_pull": False, "created_at": None, "blocker_count": None}
    return Issue(number, number, labels=labels, node_id=f"I_{number}", **texts, **facts)  # type: ignore[arg-type]


PROJECT = Project("P", "Work", "https://github.com/orgs/octo/projects/1", "F", {"Ready": "r", "Done": "d"})


@pytest.mark.parametrize(
    ("labels", "item", "operations"),
    [
        (("status:ready",), None, [("add-to-project", "#7"), ("set-item-status", "#7 to Ready")]),
        (("status:ready",), ProjectItem("i", 7, True, (), "r", False), []),
        (("status:ready",), ProjectItem("i", 7, True, (), "", False), [("set-item-status", "#7 to Ready")]),
        (("status:ready",), ProjectItem("i", 7, True, (), "d", True), []),
        (("status:ready", "status:blocked"), None, []),
        ((), None, []),
        (("status:approved",), None, [("add-to-project", "#7")]),
    ],
)
def test_the_plan_has_only_what_differs(
    labels: tuple[str, ...], item: ProjectItem | None, operations: list[tuple[str, str]]
) -> None:
    facts = MirrorFacts(PROJECT, {7: item} if item else {}, (issue(7, KIND, *labels),))
    assert [(one.op, one.key) for one in plan_mirror(facts)[0]] == operations


def test_every_status_has_an_option() -> None:
    assert set(OPTIONS) == set(WORK_ITEM.states)
