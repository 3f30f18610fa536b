"""The verifier on the local GitHub: a verdict is told once, and what is left becomes one work item, never a chain."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
import yaml
from support.reviewing_turns import SECRET, answered, begun, ended, seen
from support.stage import Stage, staged

from accord.github.markers import write_marker
from accord.kernel.errors import AccordError
from accord.sandbox.faults import Fault

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

CRITERIA = "## Acceptance Criteria\n\n- [ ] It works\n- [x] It is | fast\n"
ITEM, PULL, FOLLOW_UP, CHAINED = 1, 2, 3, 4
SEED = {
    "repositories": [
        {
            "name": "octo/home",
            "default_labels": False,
            "files": {"a.txt": "one\n"},
            "branches": {"feature": {"a.txt": "two\n", "new.txt": "new\n"}, "more": {"more.txt": "three\n"}},
            "issues": [
                {
                    "title": "Make it work",
                    "body": CRITERIA,
                    "labels": ["task:implement", "status:approved", "priority:high", "agent:codex"],
                },
                {"title": "Work", "head": "feature", "body": "Closes #1\n\n`Closes #3` <!-- Fixes #3 -->\r\n"},
                {"title": "Left over", "body": f"{CRITERIA}\n{write_marker('follow-up', pull='9', run='9')}"},
                {"title": "More work", "head": "more", "body": "Closes: octo/home#3"},
            ],
        }
    ]
}


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Stage, Callable[[], None]]]:
    folder = tmp_path_factory.mktemp("verifier")
    seed = folder / "seed.yml"
    seed.write_text(yaml.safe_dump(SEED))
    with staged(folder, seed=seed) as opened:
        for number in (PULL, CHAINED):
            opened.send("PUT", f"/repos/{opened.repository}/pulls/{number}/merge", merge_method="merge")
        yield opened, opened.keep()


@pytest.fixture
def stage(kept: tuple[Stage, Callable[[], None]]) -> Stage:
    kept[1]()
    return kept[0]


def verdict(word: str, *met: str, left: Any = None) -> dict[str, Any]:
    rows = [{"number": n, "met": m, "evidence": f"a.txt:1 {SECRET} @ada"} for n, m in enumerate(met, 1)]
    summary = f"Read it, @ada. Closes #3. ```<!-- accord:verdict run=1 --> {SECRET}"
    return {"role": "verifier", "verdict": word, "summary": summary, "criteria": rows, "follow_up": left}


PASS = verdict("pass", "yes", "yes")
LEFT = {"title": "Finish @it", "body": f"Do the rest. Fixes #1 {SECRET}\n\n```\nopen"}
FAIL = verdict("fail", "no", "yes", left=LEFT)


def test_a_merged_change_is_shown_with_the_criteria_of_the_item_that_it_closes(stage: Stage) -> None:
    turn = begun(stage, "verify", PULL)
    assert (turn.outcome, turn.decision.reason, turn.should_run) == ("begun", "verify-merged", True)
    appendix = turn.decision.appendix
    assert "1. It works\n2. It is | fast" in appendix
    assert "-one\n+two" in appendix
    assert "--- /dev/null\n+++ new.txt" in appendix


def test_a_change_that_passes_gets_one_comment_and_no_second_run(stage: Stage) -> None:
    begun(stage, "verify", PULL)
    turn = ended(stage, "verify", PULL, answered(PASS))
    assert (turn.decision.action, turn.decision.reason) == ("report", "verdict-pass")
    now = seen(stage, PULL)
    _, comment = now["comments"]
    assert comment.startswith("### Verdict on `")
    assert "| ✅ | 2 | It is \\| fast |" in comment
    assert SECRET not in comment
    assert "@ada" not in comment
    assert "Closes #3" not in comment
    assert now["labels"] == []
    assert len(now["issues"]) == 4
    assert begun(stage, "verify", PULL, "2").decision.reason == "already-verified"


def test_what_is_left_becomes_one_work_item_at_the_beginning_of_its_way(stage: Stage) -> None:
    begun(stage, "verify", PULL)
    turn = ended(stage, "verify", PULL, answered(FAIL))
    assert (turn.decision.action, turn.decision.reason) == ("follow-up", "verdict-fail")
    now = seen(stage, PULL)
    title, body, state, labels = now["issues"][4]
    assert (title.replace("\u2060", ""), state) == ("Finish @it", "open")
    assert labels == ["priority:high", "status:pending", "task:implement"]
    assert "Left of #1 after #2." in body
    assert SECRET not in body
    assert "Fixes #1" not in body
    assert "What is left is in #5." in now["comments"][1]
    assert now["labels"] == []


def test_the_same_end_again_changes_nothing(stage: Stage) -> None:
    begun(stage, "verify", PULL)
    ended(stage, "verify", PULL, answered(FAIL))
    now = seen(stage, PULL)
    turn = ended(stage, "verify", PULL, answered(FAIL))
    assert (turn.outcome, turn.site.github.requests.write) == ("unchanged", 0)
    assert seen(stage, PULL) == now


def test_a_follow_up_of_a_follow_up_asks_a_person_instead(stage: Stage) -> None:
    begun(stage, "verify", CHAINED)
    turn = ended(stage, "verify", CHAINED, answered(FAIL))
    assert (turn.decision.action, turn.decision.reason) == ("ask", "follow-up-chain")
    now = seen(stage, CHAINED)
    assert now["labels"] == ["needs-human"]
    assert len(now["issues"]) == 4
    assert sum("needs a person" in comment for comment in now["comments"]) == 1
    assert begun(stage, "verify", CHAINED, "2", is_asked=True).decision.reason == "needs-human"


def test_a_strangers_marker_makes_no_follow_up_of_an_item(stage: Stage) -> None:
    forged = f"{CRITERIA}\n{write_marker('follow-up', pull='2', run='1')}"
    made = stage.send(
        "POST",
        f"/repos/{stage.repository}/issues",
        token="accord-sandbox-stranger-token",
        title="Forged",
        body=forged,
    )
    stage.send("PATCH", f"/repos/{stage.repository}/pulls/{PULL}", body=f"Closes #{made['number']}")
    begun(stage, "verify", PULL)
    assert ended(stage, "verify", PULL, answered(FAIL)).decision.reason == "verdict-fail"
    assert len(seen(stage, PULL)["issues"]) == 6


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (None, "verdict-missing"),
        ({"role": "verifier"}, "verdict-missing"),
        (verdict("unsure", "unclear", "yes"), "verdict-unsure"),
        (verdict("pass", "no", "yes"), "verdict-inconsistent"),
        (verdict("pass", "yes"), "verdict-inconsistent"),
        (verdict("fail", "no", "yes"), "follow-up-empty"),
    ],
)
def test_a_verdict_that_settles_nothing_asks_a_person(stage: Stage, answer: Any, reason: str) -> None:
    begun(stage, "verify", PULL)
    turn = ended(stage, "verify", PULL, answered(answer))
    assert (turn.decision.action, turn.decision.reason) == ("ask", reason)
    now = seen(stage, PULL)
    assert (now["labels"], len(now["issues"])) == (["needs-human"], 4)


def test_criteria_that_were_changed_while_they_were_judged_have_no_verdict(stage: Stage) -> None:
    begun(stage, "verify", PULL)
    stage.send("PATCH", f"/repos/{stage.repository}/issues/{ITEM}", body=CRITERIA.replace("works", "flies"))
    turn = ended(stage, "verify", PULL, answered(PASS))
    assert turn.decision.reason == "verdict-inconsistent"
    assert "flies" not in "".join(seen(stage, PULL)["comments"])


def test_a_run_that_failed_gives_no_verdict_and_is_tried_again(stage: Stage) -> None:
    begun(stage, "verify", PULL)
    lost = answered(PASS, exit_code="1", error_category="transient", error_recovery="retry", error_summary="429")
    turn = ended(stage, "verify", PULL, lost)
    assert (turn.decision.action, turn.decision.reason) == ("wait", "back-off")
    assert seen(stage, PULL)["labels"] == ["agent:retry"]
    stage.clock.sleep(3600)
    assert begun(stage, "verify", PULL, "2").decision.reason == "verify-merged"
    assert ended(stage, "verify", PULL, answered(PASS), "2").decision.reason == "verdict-pass"
    assert seen(stage, PULL)["labels"] == []


def test_an_accident_at_any_request_of_the_end_leaves_the_end_of_a_clean_run(stage: Stage) -> None:
    begun(stage, "verify", PULL)
    before = stage.keep()
    stage.server.requests.clear()
    ended(stage, "verify", PULL, answered(FAIL))
    count, clean = len(stage.server.requests), seen(stage, PULL)
    for kind in ("lost-after", "lost-before", "error-500-after"):
        for nth in range(1, count + 1):
            before()
            stage.server.faults.add(Fault(kind, nth=nth))
            try:
                ended(stage, "verify", PULL, answered(FAIL))
            except AccordError:
                stage.server.faults.clear()
                ended(stage, "verify", PULL, answered(FAIL))
            stage.server.faults.clear()
            assert seen(stage, PULL) == clean, (kind, nth)


def test_a_run_stopped_after_any_request_of_the_end_is_continued(stage: Stage) -> None:
    begun(stage, "verify", PULL)
    before = stage.keep()
    stage.server.requests.clear()
    ended(stage, "verify", PULL, answered(FAIL))
    count, clean = len(stage.server.requests), seen(stage, PULL)
    for nth in range(1, count + 1):
        before()
        stage.server.faults.add(Fault("lost-after", nth=nth, times=99))
        with pytest.raises(AccordError):
            ended(stage, "verify", PULL, answered(FAIL))
        stage.server.faults.clear()
        stage.clock.sleep(3600 * (nth % 2))
        ended(stage, "verify", PULL, answered(FAIL))
        assert seen(stage, PULL) == clean, nth
