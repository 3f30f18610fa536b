"""Exactly once, whatever happens to a request or to the process: nothing is lost, and nothing exists twice."""

import base64
import json
from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from support.exactly_once import (
    FaultCase,
    Work,
    assert_survives_another_writer,
    assert_survives_faults,
    assert_survives_kills,
)
from support.implementations import (
    BLOCKED,
    apply,
    clone,
    completed,
    end_pull,
    ended,
    implement_stage,
    set_status,
    state,
    work_of_agent,
)
from support.plans import TASK_LABELS, plan, refinement, task, task_body, update
from support.reviews import (
    FINDING,
    NEW,
    PULL,
    answer,
    approve,
    comment,
    finding,
    needs_changes,
    post,
    resolve,
    review_stage,
    snapshot,
    threads,
    warn,
)
from support.stage import FIRST_LEASE, LEASE, staged
from support.trees import difference_of

from accord.engine.receipts import Outcome, Receipt
from accord.github.limits import BODY_CHARS
from accord.results.planner.structure import read_settings
from accord_sandbox.faults import KINDS, Fault
from accord_sandbox.planting import INSTALLATION_TOKEN

pytestmark = pytest.mark.slow

PLAN = plan(
    task("t1"),
    task("t2", "t1", "#1"),
    task("t3", "t1", "t2", out_of_scope="- src/t2.py (owned by #t2)"),
    refinement("r1"),
    task("t4", "t5", "2", out_of_scope="- src/t6.py (owned by #t6)"),
    task("t5", "r1"),
    task("t6"),
    close=["3", "#4"],
    update=[
        update(5, body=task_body(objective="Changed."), labels=["priority:high", "complexity:high"]),
        update(6, labels=["priority:low", "complexity:trivial"]),
    ],
)
VERSION = plan(
    task("kept"),
    task("a", "kept"),
    task("b", "a", "kept"),
    task("c", objective="Try."),
    task("d"),
    task("back", "#1"),
    task("gone", "kept"),
)
NEXT_VERSION = plan(
    task("new", "a"),
    task("kept"),
    task("a", "kept", title="Do it differently"),
    task("b", "kept", "new", objective="Change.", out_of_scope="- src/new.py (owned by #new)"),
    {
        **task("c2", "d", title="Do c", in_scope="- src/c.py"),
        "labels": [*TASK_LABELS[:2], "priority:high", "complexity:low"],
    },
    task("d", out_of_scope="- src/c.py (owned by #c2)"),
    task("back", "b", objective="Come back."),
    update=[update(1, labels=["priority:low", "complexity:low"])],
)
"""Another version of the same plan, which changes its items in every way."""

REVIEW = needs_changes(
    comment("src/long.txt", 3),
    comment("src/long.txt", 15),
    comment("new name.txt"),
    comment("no/such.txt", 1, FINDING + "x" * BODY_CHARS),
    warn("untouched.txt", 1),
)


@contextmanager
def planner_work(folder: Path) -> Iterator[Work]:
    """Six old issues, and a plan that uses every operation."""
    labels = ["task:implement", "status:ready", "priority:medium", "complexity:low"]
    with staged(folder / "data") as stage:
        stage.commit()
        path = f"/repos/{stage.repository}/issues"
        for number in range(1, 7):
            stage.send("POST", path, title=f"Old {number}", body=task_body(), labels=labels)
        stage.clock.sleep(3600)
        yield Work(stage, stage.keep(), lambda: stage.apply(PLAN), stage.snapshot, PLAN)


@contextmanager
def changed_plan_work(folder: Path) -> Iterator[Work]:
    """The items of an earlier version, one of them closed since it vanished, and the next version of the plan."""
    with staged(folder / "data") as stage:
        stage.commit()
        stage.send("POST", f"/repos/{stage.repository}/issues", title="Old", body=task_body(), labels=TASK_LABELS)
        without_back = {**VERSION, "create": [item for item in VERSION["create"] if item["tempID"] != "back"]}
        for version in (VERSION, without_back):
            assert stage.apply(version, closes_vanished=True).outcome is Outcome.APPLIED
            stage.clock.sleep(3600)
        yield Work(
            stage,
            stage.keep(),
            lambda: stage.apply(NEXT_VERSION, closes_vanished=True),
            stage.snapshot,
            NEXT_VERSION,
            ("--close-vanished",),
        )


STRUCTURED = plan(task("a"), task("b", "a"))
SETTINGS = "plan:\n  parent: 1\n  milestone: v1\n  type: Task\n  assign: [copilot, maintainer]\n"


@contextmanager
def structured_work(folder: Path) -> Iterator[Work]:
    """A parent, and a plan whose items get it, a milestone, a type and assignees."""
    with staged(folder / "data") as stage:
        stage.commit()
        path = f"/repos/{stage.repository}"
        for name in TASK_LABELS:
            stage.send("POST", f"{path}/labels", name=name)
        stage.send("POST", f"{path}/issues", title="Parent")
        stage.send("POST", f"{path}/milestones", title="v1")
        stage.clock.sleep(3600)
        file = folder / "plan.yml"
        file.write_text(SETTINGS)
        wanted = read_settings(SETTINGS.encode(), "plan.yml")

        def state() -> Any:
            children = [issue["number"] for issue in stage.listed("/issues/1/sub_issues")]
            parts = [
                (
                    issue["type"],
                    issue["milestone"] and issue["milestone"]["title"],
                    [each["login"] for each in issue["assignees"]],
                )
                for issue in stage.issues()
            ]
            return stage.snapshot(), children, parts

        options = ("--plan-settings", str(file))
        yield Work(stage, stage.keep(), lambda: stage.apply(STRUCTURED, structure=wanted), state, STRUCTURED, options)


@contextmanager
def reviewer_work(folder: Path) -> Iterator[Work]:
    """An older review of ours, an item that is in review again, and a review that uses every operation."""
    with review_stage(folder, rate_limits=None) as stage:
        post(stage, approve(summary="Looked fine at first."))
        labels = ["task:implement", "status:review", "priority:low"]
        stage.send("PUT", f"/repos/{stage.repository}/issues/1/labels", labels=labels)
        options = ("--pull", str(PULL))
        yield Work(stage, stage.keep(), lambda: post(stage, REVIEW), lambda: snapshot(stage), REVIEW, options)


SECOND_REVIEW = needs_changes(
    comment("src/long.txt", 4, f"{finding('Kept')} In other words."),
    comment("src/long.txt", 6, finding("Settled")),
    comment("src/long.txt", 3, finding("New")),
    comment("new name.txt", None, finding("New")),
)


@contextmanager
def second_work(folder: Path) -> Iterator[Work]:
    """A review of an older head with threads of every fate: kept, settled, resolved, left to a person."""
    with review_stage(folder, rate_limits=None) as stage:
        fates = {3: "Kept", 5: "Settled", 1: "Resolved", 2: "Answered"}
        post(stage, needs_changes(*(comment("src/long.txt", n, finding(fate)) for n, fate in fates.items())))
        _, settled, _, answered = threads(stage)
        resolve(stage, settled)
        answer(stage, answered, "Why?")
        labels = ["task:implement", "status:review", "priority:low"]
        stage.send("PUT", f"/repos/{stage.repository}/issues/1/labels", labels=labels)
        path = f"/repos/{stage.repository}/contents/src/long.txt"
        file = stage.get(path, ref="accord/1")
        content = base64.b64encode(f"First\n{NEW}".encode()).decode()
        stage.send("PUT", path, message="More", content=content, branch="accord/1", sha=file["sha"])
        options = ("--pull", str(PULL))
        yield Work(
            stage, stage.keep(), lambda: post(stage, SECOND_REVIEW), lambda: snapshot(stage), SECOND_REVIEW, options
        )


@contextmanager
def implementor_work(folder: Path, outcome: str = "completed") -> Iterator[Work]:
    """A work item in progress, and a patch for it or the reason for its absence."""
    with implement_stage(folder) as stage:
        begin = stage.keep()
        result = ended("blocked", BLOCKED)
        if outcome == "completed":
            result = completed(work_of_agent(stage, folder / "agent"))
        options = ("--work-item", "1", "--keepalive")
        yield Work(stage, begin, lambda: apply(stage, result, keepalive=True), lambda: state(stage), result, options)


@contextmanager
def signed_work(folder: Path) -> Iterator[Work]:
    """The same as a bot, whose commit GitHub makes: a blob, a tree, the commit, and the branch."""
    with implement_stage(folder) as stage:
        tree = clone(stage, folder / "agent")
        (tree / "src" / "a.py").write_text("a = 2\n")
        (tree / "src" / "b.dat").write_bytes(bytes(range(256)))
        result = completed(difference_of(tree, "origin/main").decode())
        begin = stage.keep()

        def run() -> Receipt:
            return apply(stage, result, token=INSTALLATION_TOKEN, keepalive=True)

        variables = {"GITHUB_TOKEN": INSTALLATION_TOKEN}
        yield Work(stage, begin, run, lambda: state(stage), result, ("--work-item", "1", "--keepalive"), variables)


@contextmanager
def blocked_work(folder: Path) -> Iterator[Work]:
    with implementor_work(folder, "blocked") as work:
        yield work


@contextmanager
def conflict_work(folder: Path) -> Iterator[Work]:
    """A result that conflicts with a person's commit on the branch of the work item's open pull request."""
    with implement_stage(folder) as stage:
        apply(stage, completed(work_of_agent(stage, folder / "first")))
        path = f"/repos/{stage.repository}/contents/src/a.py"
        sha, content = stage.get(path, ref="accord/1")["sha"], base64.b64encode(b"a = 4\n").decode()
        stage.send("PUT", path, message="By hand", content=content, branch="accord/1", sha=sha)
        set_status(stage)
        second = clone(stage, folder / "second")
        (second / "src" / "a.py").write_text("a = 3\n")
        result = completed(difference_of(second, "origin/main").decode(), "Second.")
        yield Work(
            stage, stage.keep(), lambda: apply(stage, result), lambda: state(stage), result, ("--work-item", "1")
        )


@contextmanager
def second_branch_work(folder: Path) -> Iterator[Work]:
    """A result after the merge of an earlier one, whose branch is there: it gets a branch and a pull request."""
    with implement_stage(folder) as stage:
        apply(stage, completed(work_of_agent(stage, folder / "first")))
        end_pull(stage, 2, "merge")
        tree = clone(stage, folder / "second")
        (tree / "src" / "b.py").write_text("b = 2\n")
        result = completed(difference_of(tree, "origin/main").decode(), "Second.")
        yield Work(
            stage, stage.keep(), lambda: apply(stage, result), lambda: state(stage), result, ("--work-item", "1")
        )
        assert state(stage)["trees"].keys() == {"main", "accord/1", "accord/1-2"}


WORKS: dict[str, tuple[Any, int, int]] = {
    "planner": (planner_work, 6, FIRST_LEASE + 7 + 7 + 1 + 2 + 2),
    "changed plan": (changed_plan_work, 16, LEASE + 1 + 5 + 2 + 4 + 1 + 1),
    "structured": (structured_work, 9, FIRST_LEASE + 2 + 1 + 2 + 2 + 2 + 2),
    "reviewer": (reviewer_work, 9, LEASE + 1 + 2 + 1 + 1 + 1),
    "second-review": (second_work, 9, LEASE + 1 + 1 + 1 + 1 + 2 + 1 + 1),
    "implementor": (implementor_work, 5, FIRST_LEASE + 1 + 1 + 1),
    "signed": (signed_work, 5, FIRST_LEASE + 4 + 1 + 1 + 1),
    "second-branch": (second_branch_work, 8, LEASE + 1 + 1),
    "blocked": (blocked_work, 5, FIRST_LEASE + 1 + 1),
    "conflict": (conflict_work, 9, LEASE + 1 + 1 + 1 + 1),
}
"""How to begin, and the reads and writes of a run that nothing disturbs."""


@pytest.fixture(scope="module")
def work(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Work]:
    begin, reads, writes = WORKS[request.param]
    with begin(tmp_path_factory.mktemp("work")) as work:
        receipt = work.clean.receipt
        assert (receipt.reads, receipt.writes) == (reads, writes)
        yield work


ALIKE = {"error-500", "error-503", "slow"}
"""Two statuses that are read like error-502, and a kind that takes real time and has a test of its own."""
ONE_PER_REACTION = ("lost-before", "lost-after", "error-500", "error-500-after", "secondary-403", "truncated")
REST = r"^/(?:repos|user|search)\b"
"""The requests of the API: git over HTTP has no answer for a rate limit."""
LOST = ("lost-before", "lost-after")
FOR_GOOD = [FaultCase(kind, is_permanent=True) for kind in reversed(LOST)]
"""Reversed, so that each request meets both kinds: one once, the other for good."""
OF_GIT = [FaultCase(kind, may_stop=True) for kind in LOST]
DAMAGED = [FaultCase("truncated", may_stop=True), FaultCase("secondary-403", path=REST)]


def once(kinds: Iterable[str]) -> list[FaultCase]:
    return [FaultCase(kind) for kind in kinds]


FAULTS: dict[str, list[FaultCase]] = {
    "planner": [*once(kind for kind in KINDS if kind not in ALIKE), *FOR_GOOD],
    "changed plan": [*once(kind for kind in ONE_PER_REACTION if kind != "secondary-403"), *FOR_GOOD],
    "structured": [*once(ONE_PER_REACTION), *FOR_GOOD],
    "reviewer": [*once(ONE_PER_REACTION), *FOR_GOOD],
    "second-review": [*once(ONE_PER_REACTION), *FOR_GOOD],
    "implementor": [*OF_GIT, *DAMAGED],
    "signed": OF_GIT,
    "second-branch": OF_GIT,
    "blocked": [*OF_GIT, *DAMAGED],
    "conflict": OF_GIT[1:],
}


NIGHTLY_ONLY = {"changed plan", "structured", "second-review", "signed", "blocked"}
"""Their writes differ from those of another result in what they say, not in how they are sent."""


def marks(name: str, alike: Collection[str] = NIGHTLY_ONLY) -> tuple[pytest.MarkDecorator, ...]:
    return (pytest.mark.matrix,) if name in alike else ()


@pytest.mark.parametrize(
    ("work", "cases"),
    [pytest.param(*each, id=each[0], marks=marks(each[0], {*NIGHTLY_ONLY, "conflict"})) for each in FAULTS.items()],
    indirect=["work"],
)
def test_a_fault_at_any_request_loses_and_doubles_nothing(work: Work, cases: list[FaultCase]) -> None:
    assert_survives_faults(work, cases)


@pytest.mark.parametrize(
    "work", [pytest.param(name, marks=marks(name, {*NIGHTLY_ONLY, "conflict"})) for name in WORKS], indirect=True
)
def test_a_run_that_is_killed_at_any_request_is_finished_by_the_next_one(work: Work, tmp_path: Path) -> None:
    """For an implementor also between push and pull request; git is killed with it."""
    file = tmp_path / "result.json"
    file.write_text(json.dumps(work.result))
    assert_survives_kills(work, ["apply", str(file), *work.options])


@pytest.mark.parametrize(
    "work", [pytest.param(name, marks=marks(name, {*NIGHTLY_ONLY, "conflict"})) for name in WORKS], indirect=True
)
def test_another_writer_between_any_two_requests_doubles_nothing(work: Work) -> None:
    assert_survives_another_writer(work)


@pytest.mark.parametrize("work", ["planner"], indirect=True)
def test_an_answer_after_the_time_limit_is_found_not_sent_again(work: Work, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("accord.github.pygithub.TIMEOUT_SECONDS", 1)
    for path in ("/issues$", "/blocked_by$"):
        work.begin()
        work.stage.server.faults.add(Fault("slow", nth=1, method="POST", path=path, seconds=1.3))
        assert work.apply().outcome is Outcome.APPLIED, path
        assert work.state() == work.clean.state, path


@pytest.mark.parametrize("work", ["reviewer"], indirect=True)
@pytest.mark.parametrize("posted", [1, *(pytest.param(n, marks=pytest.mark.matrix) for n in (2, 3, 4))])
def test_a_head_that_moves_between_two_runs_changes_nothing_of_a_review_that_was_begun(work: Work, posted: int) -> None:
    """The second run finishes the review of the first commit, though the files of the pull request look different."""
    stage, expected = work.stage, work.clean.state
    work.begin()
    stage.server.faults.add(Fault("lost-before", method="POST", path="/(pulls|issues)/", nth=1 + posted, times=1000))
    work.apply()
    stage.server.faults.clear()
    path = f"/repos/{stage.repository}/contents/src/long.txt"
    file = stage.get(path, ref="accord/1")
    stage.send("PUT", path, message="Fix", content="TW9yZQo=", branch="accord/1", sha=file["sha"])
    receipt = work.apply()
    assert receipt.exit_code == 0, receipt.error
    assert "already-reviewed" in {finding.code for finding in receipt.findings}
    after = snapshot(stage)
    assert [row[-1] for row in after["comments"]] == [row[-1] for row in expected["comments"]]
    assert (after["reviews"], after["conversation"]) == (expected["reviews"], expected["conversation"])
