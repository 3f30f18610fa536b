"""A handoff on a work item: two writers lose nothing, no accident counts twice, a stranger's block counts nothing."""

import json
import random
import re
import threading
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest
from support.handoffs import REVIEW, VERIFICATION, by, codes, handoff, patch
from support.killing import kill_at
from support.plans import TASK_LABELS, plan, task_body, update
from support.rotation import FAULTS, NIGHTLY, killed, rotate
from support.stage import Stage, staged

from accord.core.errors import BrokenContract, Refused, Stopped
from accord.engine.receipts import Outcome
from accord.github.limits import BODY_CHARS
from accord.github.models import IssueChange
from accord.handoffs.plan import HandoffDecision, decide_move, decide_patch
from accord.handoffs.store import HandoffStore, read_block, with_block
from accord.text.markers import take_copy
from accord.text.redaction import Redactor
from accord_sandbox.server import Fault

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
ISSUES = 160 if NIGHTLY else 30


@pytest.fixture(scope="module")
def shared_stage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    with staged(tmp_path_factory.mktemp("sandbox"), seed=SEED, rate_limits=None) as stage:
        github = stage.adapter()
        for _ in range(ISSUES):
            github.create_issue("Export", BODY, [])
        stage.begin_at_present()
        yield stage


def store(stage: Stage, number: int = 1, **more: Any) -> HandoffStore:
    return HandoffStore(stage.adapter(), number, **more)


def to_review(task: dict[str, Any]) -> HandoffDecision:
    return decide_move(task, "review", by("human"), MERGED)


def to_implementing(task: dict[str, Any]) -> HandoffDecision:
    return decide_move(task, "implementing", by("developer"))


def go(stage: Stage, number: int = 1) -> None:
    """From the beginning into review, in two writes."""
    store(stage, number).decide(
        lambda task: to_implementing(task) if task["status"] == "backlog" else decide_patch(task, {}, by("human"))
    )
    store(stage, number).decide(to_review)


def body(stage: Stage, number: int = 1) -> str:
    found: str = stage.get(f"/repos/{stage.repository}/issues/{number}")["body"]
    return found


def shown(stage: Stage, number: int = 1) -> dict[str, Any]:
    """The task in the body, which is that at the ref; around it the body is what it was."""
    whole = body(stage, number)
    assert take_copy(whole)[1] == BODY
    block = read_block(whole)
    commit, task = block
    assert task is not None
    ref = stage.get(f"/repos/{stage.repository}/git/ref/accord/handoffs/{number}")
    assert ref["object"]["sha"] == commit
    assert store(stage, number).load().value == task
    return task


@pytest.mark.slow
def test_a_handoff_is_begun_written_and_read_in_three_requests(stage: Stage) -> None:
    held = store(stage).load()
    assert (held.is_new, held.value["metadata"]) == (True, {})
    assert [warning.code for warning in held.warnings] == ["handoff-missing"]
    go(stage)
    task = shown(stage)
    assert (task["title"], task["status"]) == ("Export", "review")
    assert task["metadata"]["canonicalTaskId"] == "T-00001"
    assert len(task["metadata"]["workflowRuntime"]["actionHistory"]) == 4
    github = stage.adapter()
    HandoffStore(github, 1).load()
    assert (github.requests.read, github.requests.write) == (3, 0)
    HandoffStore(github, 1).decide(to_review)
    assert github.requests.write == 0, "what is done is not written again"


@pytest.mark.slow
def test_of_many_writers_at_once_no_word_is_lost(stage: Stage) -> None:
    writers, times = 3, 2
    ready = threading.Barrier(writers)

    def write(name: str) -> None:
        ready.wait()
        for number in range(times):
            word = f"{name}{number}"

            def add(task: dict[str, Any], word: str = word) -> HandoffDecision:
                old = task["metadata"].get("retrospectives", [])
                return decide_patch(task, patch(retrospectives=[*old, word]) if word not in old else {}, by("human"))

            store(stage).decide(add)

    threads = [threading.Thread(target=write, args=(name,)) for name in "abc"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    wanted = sorted(f"{name}{number}" for name in "abc" for number in range(times))
    assert sorted(shown(stage)["metadata"]["retrospectives"]) == wanted


@pytest.mark.slow
def test_a_failure_at_any_request_ends_the_same_at_once_or_when_repeated(stage: Stage) -> None:
    """The answer to each kind of request is lost, and the other accidents take turns."""
    stage.server.requests.clear()
    go(stage, ISSUES)
    kinds = [re.sub(r"/[0-9a-f]{40}|/\d+", "/N", f"{method} {path}") for method, path, _ in stage.server.requests]
    wanted, every = shown(stage, ISSUES), [accident for some in FAULTS.values() for accident in some]
    accidents = [*rotate(kinds, [("lost-after", 1)], lambda *_: True), *rotate(kinds, every, lambda *_: True)]
    for number, (nth, (kind, times)) in enumerate(accidents, 1):
        stage.server.faults.add(Fault(kind, nth=nth, times=times))
        with nullcontext() if times == 1 else pytest.raises((Stopped, Refused)):
            go(stage, number)
        stage.server.faults.clear()
        if times > 1:
            go(stage, number)
        assert without_id(shown(stage, number)) == without_id(wanted), f"request {nth}"


@pytest.mark.slow
def test_a_run_that_is_killed_at_any_request_is_continued_by_the_same_command(stage: Stage, tmp_path: Path) -> None:
    content = patch(reviewArtifact={"changeSummary": ["One"], "updatedAt": "2026-11-02T09:00:00Z"})
    given = tmp_path / "patch.json"
    given.write_text(json.dumps(content))

    def change(number: int) -> None:
        store(stage, number).decide(lambda task: decide_patch(task, content, by("reviewer")))

    stage.server.requests.clear()
    change(1)
    count, wanted = len(stage.server.requests), shown(stage, 1)
    for nth in killed(range(1, count + 1)):
        number = nth + 1
        kill_at(nth, ["handoff", "patch", str(given), "--work-item", str(number), "--role", "reviewer"], stage)
        change(number)
        assert without_id(shown(stage, number)) == without_id(wanted), f"request {nth}"


def without_id(task: dict[str, Any]) -> str:
    """The task without its id, and without the keys that start with the id."""
    text = re.sub(r"/[0-9a-f]{16}\"", '/digest"', json.dumps(task, sort_keys=True))
    return re.sub(r"T-\d{5}", "T", text)


@pytest.mark.slow
def test_a_forged_block_in_the_body_counts_for_nothing(stage: Stage) -> None:
    forged = handoff("done")
    stage.adapter().change_issue(1, IssueChange(with_block(BODY, forged, "f" * 40)))
    with pytest.raises(BrokenContract, match="no ref of this repository confirms") as refused:
        store(stage).load()
    assert codes(refused.value.findings) == [("handoff-untrusted", "")]


@pytest.mark.slow
def test_a_forged_damaged_or_deleted_block_beside_a_true_handoff_is_reported_and_fixed(stage: Stage) -> None:
    go(stage)
    for spoiled in (with_block(BODY, handoff("done"), "f" * 40), body(stage).replace("data=e", "data=f"), BODY):
        stage.adapter().change_issue(1, IssueChange(spoiled))
        held = store(stage).load()
        assert (held.value["status"], [one.code for one in held.warnings]) == ("review", ["handoff-block-differs"])
        store(stage).decide(to_review)
        assert shown(stage)["status"] == "review"


def test_a_full_body_stays_as_it_is_and_the_handoff_is_kept(stage: Stage) -> None:
    full = "x" * BODY_CHARS
    stage.adapter().change_issue(1, IssueChange(full))
    store(stage).decide(to_implementing)
    held = store(stage).load()
    assert (body(stage), held.value["status"], held.warnings) == (full, "implementing", ())


LONG = "\n".join(["A line of context that fills the body."] * 500)


@pytest.mark.slow
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
    held = store(stage).load()
    assert (held.value["metadata"]["note"], held.warnings) == (note["metadata"]["note"], ())
    assert stage.apply(result).outcome is Outcome.UNCHANGED
    store(stage).decide(to_implementing)
    assert take_copy(body(stage))[1] == take_copy(updated)[1]


def test_an_empty_repository_has_no_handoffs_and_says_what_the_first_one_needs(tmp_path: Path) -> None:
    with staged(tmp_path / "empty") as stage:
        stage.adapter().create_issue("Export", BODY, [])
        assert store(stage).load().is_new
        with pytest.raises(Refused, match="Git Repository is empty") as refused:
            store(stage).decide(to_implementing)
        assert "holds no commit yet: push one" in refused.value.hint


@pytest.mark.slow
def test_a_block_from_elsewhere_is_taken_on_when_the_caller_vouches_for_it(stage: Stage) -> None:
    stage.adapter().change_issue(1, IssueChange(with_block(BODY, handoff("planning"), "f" * 40)))
    store(stage, adopts=True).decide(lambda task: decide_patch(task, {}, by("human")))
    task = shown(stage)
    assert (task["status"], task["metadata"]["canonicalTaskId"]) == ("planning", "T-00123")


@pytest.mark.slow
def test_text_that_people_change_meanwhile_stays_changed(stage: Stage) -> None:
    go(stage)
    new = body(stage).replace("Export tables", "Export *all* tables")
    stage.adapter().change_issue(1, IssueChange(new))
    store(stage).decide(lambda task: decide_move(task, "cancelled", by("human")))
    assert take_copy(body(stage))[1] == BODY.replace("Export tables", "Export *all* tables")


def test_no_secret_reaches_body_or_commits_and_no_commit_contains_a_mention_or_reference(stage: Stage) -> None:
    text = "@octocat fixes #1 https://github.com/octo/code/pull/1 <b> hunter2-hunter2"
    where = store(stage, secrets=Redactor(("hunter2-hunter2",)))
    where.decide(lambda task: decide_patch(task, patch(note=text), by("developer")))
    redacted = text.replace("hunter2-hunter2", "[redacted: secret of the environment]")
    assert shown(stage)["metadata"]["note"] == redacted
    sha = stage.get(f"/repos/{stage.repository}/git/ref/accord/handoffs/1")["object"]["sha"]
    message = stage.get(f"/repos/{stage.repository}/git/commits/{sha}")["message"]
    assert "hunter2" not in message
    assert not set(message.partition("\n")[2]) & set("@#/<>")


@pytest.mark.slow
def test_a_token_that_may_not_write_contents_writes_nothing_at_all(stage: Stage) -> None:
    weak = HandoffStore(stage.adapter(token="reading"), 1)
    with pytest.raises(Refused):
        weak.decide(to_implementing)
    assert body(stage) == BODY


def test_an_unknown_number_is_not_a_work_item(stage: Stage) -> None:
    with pytest.raises(BrokenContract, match="no work item #999"):
        store(stage, 999).load()
