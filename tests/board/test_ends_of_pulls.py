"""An item through every way in which its pull request can end, and what people and agents do then."""

from collections.abc import Iterator, Mapping
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from support.implementations import apply, clone, completed, implement_stage
from support.reviews import approve, post
from support.stage import Stage, staged
from support.trees import difference_of, git

from accord.board.facts import KnownPulls, read_repository, read_snapshot
from accord.board.models import address_of
from accord.board.work import overview_of_work
from accord.engine.receipts import Receipt
from accord_sandbox.planting import INSTALLATION_TOKEN

ROOT = "/repos/accord/sandbox"
PULL = f"{ROOT}/pulls/2"
ADDRESS = address_of("accord/sandbox", "https://github.com")
WEEK = timedelta(days=7)

DONE = "closed | no one"
AGAIN = "review | person | accord items move 1 --to pending"
CLOSE = "review | person | accord items move 1 --to approved && accord items move 1 --to closed"
REVIEW = "review | agent | gh pr comment 2 --body '/accord review'"
REVIEW_NEXT = "review | agent | gh pr comment 3 --body '/accord review'"
MERGE = "approved | person | gh pr merge 2"
READY = "review | person | gh pr ready 2"
UNLOCK = "review | person | gh pr unlock 2"

MERGED = {
    "nothing": DONE,
    "the item is reopened": AGAIN,
    "the same result": f"unchanged: {DONE}",
    "a new result": f"rejected: {DONE}",
    "a review": f"refused: {DONE}",
}
OPEN = {
    "nothing": REVIEW,
    "the item is reopened": REVIEW,
    "the same result": f"unchanged: {REVIEW}",
    "a new result": f"applied: {REVIEW}",
    "a review": f"applied: {MERGE}",
}
CLOSED = {
    "nothing": AGAIN,
    "the item is reopened": AGAIN,
    "the same result": f"unchanged: {AGAIN}",
    "a new result": f"applied: {REVIEW_NEXT}",
    "a review": f"refused: {AGAIN}",
}
WALKS: Mapping[str, Mapping[str, str]] = {
    "merged": MERGED,
    "squashed": MERGED,
    "rebased": MERGED,
    "merged elsewhere": {
        "nothing": CLOSE,
        "the item is reopened": CLOSE,
        "the same result": f"unchanged: {CLOSE}",
        "a new result": f"applied: {REVIEW_NEXT}",
        "a review": f"refused: {CLOSE}",
    },
    "closed": CLOSED,
    "reopened": OPEN,
    "base changed": OPEN,
    "branch deleted": CLOSED,
    "force-pushed": OPEN,
    "made a draft": {
        "nothing": READY,
        "the item is reopened": READY,
        "the same result": f"unchanged: {READY}",
        "a new result": f"applied: {READY}",
        "a review": f"applied: {READY.replace('review', 'approved')}",
    },
    "locked": {
        "nothing": UNLOCK,
        "the item is reopened": UNLOCK,
        "the same result": f"unchanged: {UNLOCK}",
        "a new result": f"applied: {UNLOCK}",
        "a review": f"refused: {UNLOCK}",
    },
}
"""By the end of the pull request and the next step: the outcome, the item's status, who acts next, and the command.

Every item has an owner. A result is not applied to what is closed, nor a review posted there; a branch whose pull
requests are over is not used again; GitHub closes items at merges into the default branch alone.
"""

_OWNERS = {"needs_you": "person", "ready": "agent", "waiting": "github", "running": "agent", "done": "no one"}


@pytest.fixture(scope="module")
def opened(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Stage, Path]]:
    folder = tmp_path_factory.mktemp("ends")
    with implement_stage(folder / "stage") as stage:
        tree = clone(stage, folder / "tree")
        git(tree, "push", "-q", "origin", "HEAD:refs/heads/develop")
        receipt = apply(stage, work(tree, "a"), token=INSTALLATION_TOKEN)
        assert receipt.exit_code == 0, receipt.error
        stage.begin_at_present()
        yield stage, tree


def work(tree: Path, name: str) -> dict[str, Any]:
    """Return the result of an agent that changed a file of the newest default branch."""
    change(tree, name)
    patch = difference_of(tree, "origin/main").decode()
    git(tree, "reset", "-q", "--hard")
    return completed(patch, f"{name} is 2 now.")


def change(tree: Path, name: str) -> None:
    git(tree, "fetch", "-q")
    git(tree, "checkout", "-q", "-f", "--detach", "origin/main")
    (tree / "src" / f"{name}.py").write_text(f"{name} = 2\n")


def end(stage: Stage, tree: Path, how: str) -> None:
    methods = {"merged": "merge", "squashed": "squash", "rebased": "rebase", "merged elsewhere": "merge"}
    if how in ("merged elsewhere", "base changed"):
        stage.send("PATCH", PULL, base="develop")
    if how in methods:
        stage.send("PUT", f"{PULL}/merge", merge_method=methods[how])
    for state in {"closed": ("closed",), "reopened": ("closed", "open")}.get(how, ()):
        stage.send("PATCH", PULL, state=state)
    if how == "branch deleted":
        stage.send("DELETE", f"{ROOT}/git/refs/heads/accord/1")
    if how == "force-pushed":
        change(tree, "c")
        git(tree, "add", "-A")
        git(tree, "commit", "-qm", "By hand")
        git(tree, "push", "-q", "--force", "origin", "HEAD:refs/heads/accord/1")
    by_hand = {"made a draft": "UPDATE pulls SET draft = 1", "locked": "UPDATE issues SET locked = 1 WHERE is_pull"}
    if how in by_hand:
        with stage.server.database.writing() as connection:
            connection.execute(by_hand[how])


def go_on(stage: Stage, then: str, result: dict[str, Any]) -> Receipt | None:
    if then == "the item is reopened":
        for state in ("closed", "open"):
            stage.send("PATCH", f"{ROOT}/issues/1", state=state)
    if then == "a review":
        return post(stage, approve(), adapter=stage.adapter(token=INSTALLATION_TOKEN))
    return apply(stage, result, token=INSTALLATION_TOKEN) if then.endswith("result") else None


def seen(stage: Stage, folder: Path, known: KnownPulls | None = None) -> str:
    """Return the status of the item, who acts next, and the command, by ``accord status`` or a board that goes on."""
    item = stage.get(f"{ROOT}/issues/1")
    (status,) = (label["name"][7:] for label in item["labels"] if label["name"].startswith("status:"))
    overview = read_snapshot([(stage.adapter(), ADDRESS)], folder, WEEK, known).overview
    placed = [(name, entry) for name, entries in overview.sections().items() for entry in entries]
    (decides,) = ((name, one) for name, one in placed if ": see #" not in one.why)
    command = decides[1].command.replace(" --repo accord/sandbox", "")
    return " | ".join(filter(None, [status if item["state"] == "open" else "closed", _OWNERS[decides[0]], command]))


def cases() -> Iterator[Any]:
    """Yield one case for each end by day, with another continuation each time; the rest by night."""
    for turn, (how, row) in enumerate(WALKS.items()):
        for at, then in enumerate(row):
            yield pytest.param(how, then, marks=pytest.mark.slow if at == turn % len(row) else pytest.mark.matrix)


@pytest.mark.parametrize(("how", "then"), [*cases()])
def test_every_end_of_a_pull_request_leaves_the_item_with_its_owner(
    opened: tuple[Stage, Path], tmp_path: Path, how: str, then: str
) -> None:
    (stage, tree), known = opened, KnownPulls()
    stage.reset()
    result = work(tree, "a" if then == "the same result" else "b")
    end(stage, tree, how)
    seen(stage, tmp_path, known)
    receipt = go_on(stage, then, result)
    outcome = f"{receipt.outcome.value}: " if receipt else ""
    assert [outcome + seen(stage, tmp_path, one) for one in (None, known)] == [WALKS[how][then]] * 2
    if receipt:
        again = go_on(stage, then, result)
        assert again is not None
        assert again.writes == 0, "exactly once"


RUNS = "jobs: {keepalive: {uses: accord-ci/accord/.github/workflows/reusable-keepalive.yml@v0}}\n"


KEEPALIVE = [
    ("ci.yml", RUNS.replace("keepalive.yml", "ci.yml"), "bug", False),
    ("agents.yaml", RUNS, "bug", True),
    ("ours.yml", "jobs: {one: {steps: [{uses: accord-ci/accord/actions/keepalive@v0}]}}\n", "bug", True),
    ("notes.txt", RUNS, "bug", False),
    ("accord-keepalive.yml", RUNS, "bug", True),
    ("accord-keepalive.yml", "jobs: {}\n", "bug", False),
    ("ci.yml", "jobs: {}\n", "agents:keepalive", True),
]
"""By a file of workflows and a label of the pull request, whether keepalive goes on there."""


def with_workflow(number: int, name: str, text: str, label: str) -> dict[str, Any]:
    pull = {"title": "Work", "head": "accord/1", "body": "Closes #1", "author": "octo", "labels": [label]}
    item = {"title": "Do it", "labels": ["task:implement", "status:review"]}
    files = {"a.txt": "One\n", f".github/workflows/{name}": text}
    branches = {"accord/1": {"a.txt": "Two\n"}}
    return {"name": f"octo/{number}", "files": files, "branches": branches, "issues": [item, pull]}


def test_a_status_knows_whether_keepalive_is_installed(tmp_path: Path) -> None:
    repositories = [with_workflow(number, *case[:3]) for number, case in enumerate(KEEPALIVE)]
    with staged(tmp_path, seed={"repositories": repositories}, rate_limits=None) as stage:
        read = [read_repository(stage.adapter(repo=each["name"]), ADDRESS, WEEK) for each in repositories]
    assert [[one.pull.number for one in facts.pulls] for facts in read] == [[2]] * len(KEEPALIVE)
    assert [(*case[:3], facts.has_keepalive) for case, facts in zip(KEEPALIVE, read, strict=True)] == KEEPALIVE


def test_an_item_names_the_open_pull_request_whose_description_a_person_replaced(opened: tuple[Stage, Path]) -> None:
    stage, _ = opened
    stage.reset()
    stage.send("PATCH", PULL, body="It is better now.")
    overview = overview_of_work(read_repository(stage.adapter(), ADDRESS, WEEK))
    (item,) = (entry for entry in overview.needs_you if entry.kind == "question")
    assert "as #2 does not have the words `Closes #1`" in item.why
    assert "gh pr edit 2" in item.command
