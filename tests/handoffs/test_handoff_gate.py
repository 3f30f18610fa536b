"""The verdict on a pull request's handoff, and the actions of a handoff that are still to be sent."""

import copy
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest
from support.clocks import ManualClock
from support.handoffs import AT, EVERYTHING, NOW, OUTPUTS, REVIEW, VERIFICATION, WORKFLOW, by, checked, handoff
from support.reviews import CLOSING_PULL

from accord.core.errors import Refused, Stopped
from accord.core.findings import Finding
from accord.handoffs import gate
from accord.handoffs.gate import GateVerdict, judge, open_actions, send_action, verdict_of, with_sent
from accord.handoffs.plan import Author, decide_move, decide_patch
from accord.handoffs.rules import merge_patch
from accord.handoffs.store import LoadedHandoff
from accord.text.posting import PostingPolicy
from accord.text.redaction import Redactor

URL = "https://github.com/octo/code/pull/2"
BRANCH = WORKFLOW["branchName"]
BOTH = {"reviewArtifact": REVIEW, "verificationArtifact": VERIFICATION}
PULL = replace(CLOSING_PULL, number=2, url=URL, head_branch=BRANCH, head_repository="octo/code")


@pytest.mark.parametrize(
    ("status", "metadata", "target", "expected"),
    [
        ("implementing", BOTH, "review", []),
        ("implementing", {**BOTH, "workflow": {**WORKFLOW, "pullRequestUrl": f"{URL}/"}}, "review", []),
        ("done", EVERYTHING, "done", []),
        ("implementing", {"reviewArtifact": REVIEW}, "review", ["missing-review-artifacts"]),
        ("implementing", BOTH, "done", ["missing-done-artifact"]),
        ("review", {}, "review", ["missing-review-artifacts"] * 2),
        ("cancelled", BOTH, "review", ["handoff-cancelled"]),
        ("done", {**EVERYTHING, "workflow": {"branchName": "other"}}, "done", ["handoff-of-another"]),
        ("implementing", {**BOTH, "workflow": {"pullRequestUrl": f"{URL}2"}}, "review", ["handoff-of-another"]),
        ("implementing", {**BOTH, "canonicalTaskId": "123"}, "review", []),
    ],
)
def test_the_gate_is_open_for_a_whole_handoff_of_this_pull_request_alone(
    status: str, metadata: dict[str, Any], target: str, expected: list[str]
) -> None:
    judged = judge(LoadedHandoff(handoff(status, **metadata)), PULL, 1, target, NOW)
    assert [reason.code for reason in judged.reasons] == expected
    assert (judged.is_open, judged.status) == (not expected, status)
    for reason in judged.reasons:
        assert not reason.path.endswith("branchName") or reason.hint.endswith("or open one from other.")


def signed(work: str, review: str, verification: str) -> dict[str, Any]:
    """Artifacts with these authors; the owner of the work is the developer."""
    found: dict[str, Any] = copy.deepcopy(EVERYTHING)
    parts = found["testingArtifacts"]["implemented"], found["reviewArtifact"], found["verificationArtifact"]
    for part, author in zip(parts, (work, review, verification), strict=True):
        part.update({"updatedBy": author} if author else {})
    return found


AUTHORS = {"bot bot bot": True, "ada codex codex": True, "bot bot eve": False, "bot eve eve": False, "  ": False}
AUTHORS |= {"bot Bot BOT": True, "ada Codex codex": True, "bot b\u200bot \uff42\uff4f\uff54": True}
"""Authors of work, review and verification, and whether they are one, who may be the owner of the work."""


@pytest.mark.parametrize(("authors", "is_sole"), AUTHORS.items())
def test_one_actor_that_does_everything_is_a_warning_that_the_gate_can_require(authors: str, is_sole: bool) -> None:
    task = handoff("review", **signed(*authors.split(" ")))
    assert [(item.code, item.severity) for item in checked(task)[1]] == [("not-independent", "warning")] * is_sole
    stored = LoadedHandoff(task)
    assert judge(stored, PULL, 1, "review", NOW).is_open
    assert judge(stored, PULL, 1, "review", NOW, is_independent=True).is_open is not is_sole


RISKS = {"reviewArtifact": {"knownRisks": ["Slow"]}}
NOTES = {"verificationArtifact": {"notes": [*VERIFICATION["notes"], "Ran again"]}}
APPROVES = {"reviewArtifact": {"decision": "approved"}}
PASSES = {"verificationArtifact": {"result": "passed"}}
NEW_SUMMARY = {"reviewArtifact": {"changeSummary": [*REVIEW["changeSummary"], "And an import"]}}
WITHDRAWN = [{"reviewArtifact": part} for part in ({"status": "superseded"}, {"status": "draft"})]
RENEWED = {"reviewArtifact": {"status": "complete", "decision": "approved"}}
BY_BOT = [("reviewer", "bot", APPROVES), ("tester", "bot", PASSES)]
NEW_GOALS = {"metadata": {"planningArtifact": {"goals": ["Import"]}, "transitionNote": "Imports come first."}}
Later = list[tuple[str, str, dict[str, Any]]]
CHANGES: list[tuple[str, Later, bool]] = [
    ("bot bot bot", [("developer", "other", RISKS)], True),
    ("bot bot bot", [("developer", "other", RISKS | NOTES), ("reviewer", "eve", RISKS)], True),
    ("bot bot bot", [("reviewer", "eve", APPROVES)], False),
    ("bot bot bot", [("developer", "eve", APPROVES)], True),
    (
        "bot bot bot",
        [("developer", "dev", NEW_SUMMARY), ("reviewer", "bot", APPROVES), ("tester", "bot", PASSES)],
        True,
    ),
    ("bot eve tess", [("developer", "bot", RISKS), ("developer", "bot", NOTES)], False),
    ("bot eve bot", [("developer", "dev", RISKS), ("reviewer", "bot", APPROVES)], True),
    ("bot eve bot", [*(("developer", "dev", one) for one in WITHDRAWN), ("reviewer", "bot", RENEWED)], True),
    ("bot  bot", [("developer", "bot", RISKS)], False),
    (" bot bot", [("developer", "bot", NEW_SUMMARY), *BY_BOT], True),
    (" bot bot", [("developer", "dev", NEW_SUMMARY), *BY_BOT], False),
    (" bot bot", [("planner", "bot", NEW_GOALS), *BY_BOT], True),
    ("bot bot bot", [("human", "eve", PASSES), ("tester", "bot", PASSES)], True),
    ("bot bot bot", [("developer", "other", RISKS), ("", "", {"reviewArtifact": {"updatedBy": "eve"}})], True),
]
"""Authors of work, review and verification, later changes (by hand without a role), and whether one actor did all."""


@pytest.mark.parametrize(("authors", "later", "is_sole"), CHANGES)
def test_independence_asks_who_gave_the_verdicts_last(authors: str, later: Later, is_sole: bool) -> None:
    task = handoff("implementing", **signed(*authors.split(" ")))
    for role, actor, content in later:
        decided = [decide_patch(task, copy.deepcopy(content), Author(role, AT, actor))] if role else []
        assert not any(each.reasons for each in decided)
        task = decided[0].task if decided else merge_patch(task, {"metadata": content})
    found = judge(LoadedHandoff(task), PULL, 1, "review", NOW, is_independent=True)
    assert [reason.code for reason in found.reasons] == ["not-independent"] * is_sole


def test_a_branch_of_the_same_name_in_a_fork_does_not_pass() -> None:
    stored = LoadedHandoff(handoff(**BOTH, workflow=WORKFLOW))
    for head, is_open in (("Octo/Code", True), ("eve/code", False)):
        assert judge(stored, replace(PULL, head_repository=head), 1, "review", NOW).is_open == is_open


def test_a_pull_request_that_names_no_single_work_item_does_not_pass() -> None:
    for numbers, says in (([], "no work item"), ([1, 3], "several work items (#1, #3)")):
        (found,) = gate.judge_pull(None, PULL, numbers, "review").reasons  # type: ignore[arg-type]
        assert (found.code, says in found.message) == ("work-item-unclear", True)


def test_the_check_shows_reasons_in_a_table_that_no_text_of_the_handoff_breaks() -> None:
    reasons = tuple(Finding("handoff-of-another", f"hunter2-hunter2\n\n# Big {n} |", "/x") for n in range(101))
    verdict = verdict_of(
        GateVerdict("review", "implementing", reasons), Redactor(("hunter2-hunter2",)), PostingPolicy()
    )
    assert (verdict.name, verdict.is_passed) == ("accord/handoff", False)
    assert "hunter2" not in verdict.title + verdict.summary
    assert not any(line.startswith("# Big") for line in verdict.summary.splitlines())
    assert verdict.summary.endswith("1 more reasons are not shown.")
    assert "\n" not in verdict.title


def test_only_the_same_verdict_has_the_same_mark() -> None:
    missing = (Finding("handoff-missing", "It is missing."),)
    verdicts = [GateVerdict("review"), GateVerdict("done"), GateVerdict("review", "", missing)]
    assert len({verdict_of(judged, Redactor(), PostingPolicy()).mark for judged in verdicts}) == 3


def begun() -> dict[str, Any]:
    """A task with one open action."""
    return decide_move(handoff("planning", **OUTPUTS), "implementing", by("planner")).task


def refused() -> None:
    raise Refused("GitHub refused it.", hint="Grant contents: write.")


def lost() -> None:
    raise Stopped("The answer was lost.", hint="Run the same command again.")


@pytest.mark.parametrize(
    ("send", "seconds", "open_after", "open_again"),
    [(lambda: None, 0, 0, 0), (refused, 0, 0, 1), (lost, 5 + 15 + 30, 1, 1)],
)
def test_a_transient_error_is_tried_again_and_a_permanent_one_only_on_request(
    send: Any, seconds: float, open_after: int, open_again: int
) -> None:
    clock, task = ManualClock(datetime(2026, 1, 1, tzinfo=UTC)), begun()
    (action,) = open_actions(task)
    assert action["type"] == "dispatch_developer"
    start = clock.monotonic()
    sent = send_action(action, send, clock)
    assert clock.monotonic() - start == seconds
    task = with_sent(task, sent, AT).task
    assert (len(open_actions(task)), len(open_actions(task, again=True))) == (open_after, open_again)
    last = task["metadata"]["workflowRuntime"]["actionHistory"][-1]
    assert (last["actionId"], last["result"]) == (action["id"], "error" if sent.error else "ok")


def test_a_sent_action_is_recorded_once_and_its_payload_has_no_text_of_the_handoff() -> None:
    task = begun()
    (action,) = open_actions(task)
    sent = send_action(action, lambda: None, ManualClock(datetime(2026, 1, 1, tzinfo=UTC)))
    once = with_sent(task, sent, AT).task
    assert with_sent(once, sent, AT).task == once
    known = {"type": "dispatch_developer", "task": "T-00123", "status": "implementing", "issue": 1}
    assert gate.payload_of(task, action, 1) == {"id": action["id"], **known}
