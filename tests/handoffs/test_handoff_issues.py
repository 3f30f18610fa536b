"""A handoff on a work item: two writers lose nothing, no accident counts twice, a stranger's block counts nothing."""

from __future__ import annotations

import random
import threading
from typing import TYPE_CHECKING, Any

import pytest
from support.handoffs import REVIEW, VERIFICATION, by, codes, handoff, patch
from support.killing import kill_at
from support.plans import TASK_LABELS, plan, task_body, update
from support.stage import Stage, staged

from accord.core.errors import BrokenContract, Refused, Stopped
from accord.github.limits import BODY_CHARS
from accord.github.models import IssueChange
from accord.handoffs.plan import decide_move, decide_patch
from accord.handoffs.store import HandoffStore, read_block, with_block, without_block
from accord.results.operations import Outcome
from accord.text.redaction import Redactor
from accord_sandbox.server import Fault

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from accord.handoffs.plan import HandoffDecision

BODY = "Export tables.\r\n\r\n```\nopen fence\n<!-- note -->"
SEED = """
tokens:
  - {token: reading, login: rita, kind: fine-grained, permissions: {contents: read, issues: write}}
repositories:
  - name: octo/code
    collaborators: {rita: write}
    files: {a.txt: "One\\n"}
"""
MERGED = patch(reviewArtifact=REVIEW, verificationArtifact=VERIFICATION)
ISSUES = 40


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Stage, Callable[[], None]]]:
    folder = tmp_path_factory.mktemp("sandbox")
    (folder / "seed.yml").write_text(SEED)
    with staged(folder / "home", seed=folder / "seed.yml", rate_limits=None) as stage:
        github = stage.adapter()
        for _ in range(ISSUES):
            github.create_issue("Export", BODY, [])
        yield stage, stage.keep()


@pytest.fixture
def stage(shared: tuple[Stage, Callable[[], None]]) -> Stage:
    shared[1]()
    return shared[0]


def store(stage: Stage, number: int = 1, **more: Any) -> HandoffStore:
    return HandoffStore(stage.adapter(), number, stage.clock, **more)


def to_review(task: dict[str, Any]) -> HandoffDecision:
    return decide_move(task, "review", by("tester"), MERGED)


def to_implementing(task: dict[str, Any]) -> HandoffDecision:
    return decide_move(task, "implementing", by("developer"))


def go(stage: Stage, number: int = 1) -> None:
    """From the beginning into review, in two writes."""
    store(stage, number).decide(
        lambda task: to_implementing(task) if task["status"] == "backlog" else decide_patch(task, {}, by("human")),
    )
    store(stage, number).decide(to_review)


def body(stage: Stage, number: int = 1) -> str:
    found: str = stage.get(f"/repos/{stage.repository}/issues/{number}")["body"]
    return found


def shown(stage: Stage, number: int = 1) -> dict[str, Any]:
    """The task in the body, which is that at the ref; around it the body is what it was."""
    whole = body(stage, number)
    assert without_block(whole) == BODY
    block = read_block(whole)
    assert block is not None
    assert block.task is not None
    ref = stage.get(f"/repos/{stage.repository}/git/ref/accord/handoffs/{number}")
    assert ref["object"]["sha"] == block.commit
    assert store(stage, number).load().value == block.task
    return block.task


def test_a_handoff_is_begun_written_read_and_written_again(stage: Stage) -> None:
    held = store(stage).load()
    assert (held.is_new, held.value["metadata"]) == (True, {"canonicalTaskId": "T-00001"})
    assert [warning.code for warning in held.warnings] == ["handoff-missing"]
    go(stage)
    task = shown(stage)
    assert (task["title"], task["status"]) == ("Export", "review")
    assert len(task["metadata"]["workflowRuntime"]["actionHistory"]) == 4


def test_reading_costs_three_requests_and_what_is_done_is_not_written_again(stage: Stage) -> None:
    go(stage)
    github = stage.adapter()
    HandoffStore(github, 1, stage.clock).decide(to_review)
    assert github.requests.write == 0
    github = stage.adapter()
    HandoffStore(github, 1, stage.clock).load()
    assert (github.requests.read, github.requests.write) == (3, 0)


def test_a_refusal_is_written_down_on_the_issue(stage: Stage) -> None:
    decided = store(stage).decide(lambda task: decide_move(task, "review", by("tester")))
    assert not decided.is_ok
    assert [reason["code"] for reason in shown(stage)["metadata"]["workflowRuntime"]["blockingReasons"]] == [
        "INVALID_STATUS_TRANSITION"
    ]


def test_of_many_writers_at_once_no_word_is_lost(stage: Stage) -> None:
    writers, times = 3, 3
    ready = threading.Barrier(writers)

    def write(name: str) -> None:
        ready.wait()
        for number in range(times):
            word = f"{name}{number}"

            def add(task: dict[str, Any], word: str = word) -> HandoffDecision:
                known = task["metadata"].get("retrospectives", [])
                return decide_patch(
                    task, patch(retrospectives=[*known, word]) if word not in known else {}, by("human")
                )

            store(stage).decide(add)

    threads = [threading.Thread(target=write, args=(name,)) for name in "abc"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    wanted = sorted(f"{name}{number}" for name in "abc" for number in range(times))
    assert sorted(shown(stage)["metadata"]["retrospectives"]) == wanted


def test_the_second_writer_decides_again_on_the_version_of_the_first(stage: Stage) -> None:
    store(stage).decide(to_implementing)
    seen: list[str] = []

    def second(task: dict[str, Any]) -> HandoffDecision:
        seen.append(task["status"])
        if len(seen) == 1:
            store(stage).decide(lambda now: decide_move(now, "cancelled", by("human")))
        return to_review(task)

    decided = store(stage).decide(second)
    assert seen == ["implementing", "cancelled"]
    assert codes(decided.reasons) == [("invalid-status-transition", "/status")]
    assert shown(stage)["status"] == "cancelled"


def test_a_writer_whom_others_outrun_each_time_stops_and_says_so(stage: Stage) -> None:
    count = 0

    def outrun(task: dict[str, Any]) -> HandoffDecision:
        nonlocal count
        count += 1
        number = count
        store(stage).decide(lambda now: decide_patch(now, patch(x=str(number)), by("human")))
        return decide_patch(task, patch(y="1"), by("human"))

    with pytest.raises(Stopped, match="Other writers changed the handoff of #1 12 times"):
        store(stage).decide(outrun)
    assert shown(stage)["metadata"]["x"] == "12"


REQUESTS = 16
"""So many requests begin a handoff, and write it a second time."""


def test_the_matrices_below_reach_every_request(stage: Stage) -> None:
    stage.server.requests.clear()
    go(stage)
    assert len(stage.server.requests) == REQUESTS


@pytest.mark.matrix
@pytest.mark.parametrize(
    "kind", ["lost-before", "lost-after", "error-500", "error-500-after", "secondary-403", "truncated"]
)
def test_an_accident_at_any_request_changes_nothing_about_the_end(stage: Stage, kind: str) -> None:
    go(stage, REQUESTS + 1)
    wanted = shown(stage, REQUESTS + 1)
    for nth in range(1, REQUESTS + 1):
        stage.server.faults.add(Fault(kind, nth=nth))
        go(stage, nth)
        stage.server.faults.clear()
        assert without_id(shown(stage, nth)) == without_id(wanted), f"request {nth}"


@pytest.mark.matrix
@pytest.mark.parametrize("kind", ["lost-before", "lost-after"])
def test_a_run_that_dies_at_any_request_is_continued_by_the_same_command(stage: Stage, kind: str) -> None:
    go(stage, REQUESTS + 1)
    wanted = shown(stage, REQUESTS + 1)
    for nth in range(1, REQUESTS + 1):
        stage.server.faults.add(Fault(kind, nth=nth, times=1000))
        with pytest.raises((Stopped, Refused)):
            go(stage, nth)
        stage.server.faults.clear()
        go(stage, nth)
        assert without_id(shown(stage, nth)) == without_id(wanted), f"request {nth}"


@pytest.mark.matrix
def test_a_run_that_is_killed_at_any_request_is_continued_by_the_same_command(stage: Stage, tmp_path: Path) -> None:
    import json

    given = tmp_path / "patch.json"
    given.write_text(json.dumps(patch(reviewArtifact={"changeSummary": ["One"], "updatedAt": "2026-11-02T09:00:00Z"})))
    stage.server.requests.clear()
    store(stage, 1).decide(lambda task: decide_patch(task, json.loads(given.read_text()), by("reviewer")))
    count, wanted = len(stage.server.requests), shown(stage, 1)
    for nth in range(1, count + 1):
        number = nth + 1
        command = ["handoff", "patch", str(given), "--work-item", str(number), "--role", "reviewer"]
        kill_at(nth, command, stage)
        store(stage, number).decide(lambda task: decide_patch(task, json.loads(given.read_text()), by("reviewer")))
        assert without_id(shown(stage, number)) == without_id(wanted), f"request {nth}"


def without_id(task: dict[str, Any]) -> str:
    """The task without its id, and without the keys that start with the id."""
    import json
    import re

    text = re.sub(r"/[0-9a-f]{16}\"", '/digest"', json.dumps(task, sort_keys=True))
    return re.sub(r"T-\d{5}", "T", text)


def test_a_forged_block_in_the_body_counts_for_nothing(stage: Stage) -> None:
    forged = handoff("done")
    stage.adapter().change_issue(1, IssueChange(with_block(BODY, forged, "f" * 40)))
    with pytest.raises(BrokenContract, match="no ref of this repository confirms") as refused:
        store(stage).load()
    assert codes(refused.value.findings) == [("handoff-untrusted", "")]


def test_a_forged_block_beside_a_true_handoff_is_reported_and_fixed(stage: Stage) -> None:
    go(stage)
    stage.adapter().change_issue(1, IssueChange(with_block(BODY, handoff("done"), "f" * 40)))
    held = store(stage).load()
    assert held.value["status"] == "review"
    assert [warning.code for warning in held.warnings] == ["handoff-block-differs"]
    store(stage).decide(to_review)
    assert shown(stage)["status"] == "review"


def test_a_damaged_or_deleted_block_is_reported_and_fixed_too(stage: Stage) -> None:
    go(stage)
    for spoiled in (body(stage).replace("data=e", "data=f"), BODY):
        stage.adapter().change_issue(1, IssueChange(spoiled))
        assert [warning.code for warning in store(stage).load().warnings] == ["handoff-block-differs"]
        store(stage).decide(to_review)
        assert shown(stage)["status"] == "review"


def test_a_full_body_stays_as_it_is_and_the_handoff_is_kept(stage: Stage) -> None:
    full = "x" * BODY_CHARS
    stage.adapter().change_issue(1, IssueChange(full))
    store(stage).decide(to_implementing)
    held = store(stage).load()
    assert (body(stage), held.value["status"], held.warnings) == (full, "implementing", ())


LONG = "\n".join(["A line of context that fills the body."] * 500)


@pytest.mark.parametrize("context", ["Short.", LONG], ids=["short", "full"])
def test_an_update_of_the_item_and_its_handoff_leave_each_other_whole(stage: Stage, context: str) -> None:
    note = {"metadata": {"note": random.Random(1).randbytes(38_000).hex()}}
    stage.adapter().change_issue(1, IssueChange(task_body(), list(TASK_LABELS)))
    store(stage).decide(lambda task: decide_patch(task, note, by("human")))
    result = plan(update=[update(1, body=task_body(context=context))])
    assert stage.apply(result).outcome is Outcome.APPLIED
    updated = body(stage)
    assert updated.startswith("<!-- accord:handoff commit=")
    assert task_body(context=context).rstrip() in updated
    assert (store(stage).load().value["metadata"]["note"], store(stage).load().warnings) == (
        note["metadata"]["note"],
        (),
    )
    assert stage.apply(result).outcome is Outcome.UNCHANGED
    store(stage).decide(to_implementing)
    assert without_block(body(stage)) == without_block(updated)


def test_an_empty_repository_has_no_handoffs_and_says_what_the_first_one_needs(tmp_path: Path) -> None:
    with staged(tmp_path / "empty") as stage:
        stage.adapter().create_issue("Export", BODY, [])
        assert store(stage).load().is_new
        with pytest.raises(Refused, match="Git Repository is empty") as refused:
            store(stage).decide(to_implementing)
        assert "holds no commit yet: push one" in refused.value.hint


def test_a_block_from_elsewhere_is_taken_on_when_the_caller_vouches_for_it(stage: Stage) -> None:
    stage.adapter().change_issue(1, IssueChange(with_block(BODY, handoff("planning"), "f" * 40)))
    store(stage, adopts=True).decide(lambda task: decide_patch(task, {}, by("human")))
    task = shown(stage)
    assert (task["status"], task["metadata"]["canonicalTaskId"]) == ("planning", "T-00123")


def test_text_that_people_change_meanwhile_stays_changed(stage: Stage) -> None:
    go(stage)
    new = body(stage).replace("Export tables", "Export *all* tables")
    stage.adapter().change_issue(1, IssueChange(new))
    store(stage).decide(lambda task: decide_move(task, "cancelled", by("human")))
    assert without_block(body(stage)) == BODY.replace("Export tables", "Export *all* tables")


def test_secrets_reach_neither_the_body_nor_the_commits(stage: Stage) -> None:
    where = store(stage, secrets=Redactor(("hunter2-hunter2",)))
    where.decide(lambda task: decide_patch(task, patch(note="key hunter2-hunter2"), by("developer")))
    assert shown(stage)["metadata"]["note"] == "key [redacted: secret of the environment]"
    sha = stage.get(f"/repos/{stage.repository}/git/ref/accord/handoffs/1")["object"]["sha"]
    message = stage.get(f"/repos/{stage.repository}/git/commits/{sha}")["message"]
    assert "hunter2" not in message


def test_a_commit_of_a_handoff_contains_no_mention_and_no_reference(stage: Stage) -> None:
    text = "@octocat fixes #1 https://github.com/octo/code/pull/1 <b>"
    store(stage).decide(lambda task: decide_patch(task, patch(note=text), by("developer")))
    assert shown(stage)["metadata"]["note"] == text
    sha = stage.get(f"/repos/{stage.repository}/git/ref/accord/handoffs/1")["object"]["sha"]
    message = stage.get(f"/repos/{stage.repository}/git/commits/{sha}")["message"]
    assert not set(message.partition("\n")[2]) & set("@#/<>")


def test_a_token_that_may_not_write_contents_writes_nothing_at_all(stage: Stage) -> None:
    weak = HandoffStore(stage.adapter(token="reading"), 1, stage.clock)
    with pytest.raises(Refused):
        weak.decide(to_implementing)
    assert body(stage) == BODY


def test_an_unknown_number_is_not_a_work_item(stage: Stage) -> None:
    with pytest.raises(BrokenContract, match="no work item #999"):
        store(stage, 999).load()
