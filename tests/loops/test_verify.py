"""The verifier: the criteria that are judged, and the decision after a verdict, which is not trusted blindly."""

from typing import Any

import pytest
from support.loops import HEAD, NOW, assert_reasons, common_rows, pull, state_of, well
from support.plans import task_body

from accord.loops.follow_up import (
    FollowUpIssue,
    Verdict,
    WorkItem,
    follow_up_body,
    follow_up_findings,
    follow_up_text,
    unmet_criteria,
)
from accord.loops.run import LOOPS
from accord.loops.texts import Poster
from accord.loops.verify import VerifyFacts, criteria_of
from accord.text.posting import PostingPolicy
from accord.text.redaction import Redactor

decide = LOOPS["verify"].decide

ITEM = WorkItem(number=12, body="## Goal\n\n- not one\n\n## Acceptance Criteria\n\n- [ ] It works\n- [x] It is fast\n")
MERGED = {"is_open": False, "is_merged": True, "labels": ()}


def verdict(word: str = "pass", *met: str, left: bool = False) -> Verdict:
    judged = [{"number": n, "met": m, "evidence": "a.py:1"} for n, m in enumerate(met or ("yes", "yes"), 1)]
    more = {"title": "Finish @it", "body": "Fixes #1. <script>x</script>"} if left else None
    return Verdict.model_validate(
        {"role": "verifier", "verdict": word, "summary": "Read.", "criteria": judged, "follow_up": more}
    )


def verify(**parts: Any) -> VerifyFacts:
    known = {"pull": pull(**{**MERGED, **parts.pop("pull", {})}), "work_items": (ITEM,), "commit": HEAD}
    return VerifyFacts(**{"now": NOW, "agents": ("codex", "claude"), "diff": "+x\n", **known, **parts})


CHAINED = (ITEM.model_copy(update={"is_follow_up": True}),)
ROWS = [
    *common_rows(verify, "verify", (), runs=5, failures=3),
    ("agent-missing", verify(agents=())),
    ("not-merged", verify(pull={"is_open": True, "is_merged": False})),
    ("fork-unmerged", verify(is_asked=True, pull={"is_open": True, "is_merged": False, "is_fork": True})),
    ("already-verified", verify(verified=HEAD)),
    ("no-work-item", verify(work_items=())),
    ("no-criteria", verify(work_items=(WorkItem(number=1, body="## Acceptance Criteria\n\nNone\n"),))),
    ("text-changed", verify(text_changed="#1 was edited by `mallory`.")),
    ("verify-merged", verify()),
    ("verify-merged", verify(pull={"is_fork": True})),
    ("verify-asked", verify(is_asked=True, pull={"is_open": True, "is_merged": False}, verified=HEAD)),
    ("verdict-pass", verify(verdict=verdict())),
    ("verdict-fail", verify(verdict=verdict("fail", "no", "yes", left=True))),
    ("verdict-unsure", verify(verdict=verdict("unsure", "unclear", "yes"))),
    ("verdict-inconsistent", verify(verdict=verdict("pass", "no", "yes"))),
    ("follow-up-empty", verify(verdict=verdict("fail", "no", "yes"))),
    ("follow-up-chain", verify(verdict=verdict("fail", "no", "yes", left=True), work_items=CHAINED)),
]


def test_each_reason_has_facts_that_lead_to_it_and_none_is_left_out() -> None:
    assert_reasons("verify", ROWS, decide)


def test_a_verdict_is_progress_though_it_changes_no_file() -> None:
    judged = state_of(*(well(str(n), tree="", tree_before="", tasks_done=2) for n in range(3)), loop="verify")
    assert decide(verify(state=judged)).reason == "verify-merged"


@pytest.mark.parametrize(
    "found", [verdict("pass", "yes"), verdict("pass", "yes", "yes", "yes"), verdict("fail", "yes", "unclear")]
)
def test_a_verdict_that_misses_criteria_or_contradicts_itself_goes_to_a_person(found: Verdict) -> None:
    assert decide(verify(verdict=found)).reason == "verdict-inconsistent"


@pytest.mark.parametrize(
    ("met", "said"), [(("no", "yes"), "1 of 2."), (("no", "unclear"), "1 of 2, unclear: 1."), (("no", "no"), "2 of 2.")]
)
def test_criteria_that_are_unclear_are_not_called_unmet(met: tuple[str, str], said: str) -> None:
    message = decide(verify(verdict=verdict("fail", *met, left=True))).message
    assert message == f"Criteria not met: {said} A follow-up work item holds the rest."


def test_only_the_list_under_acceptance_criteria_counts_and_code_does_not() -> None:
    assert criteria_of([ITEM]) == ["It works", "It is fast"]
    assert criteria_of([WorkItem(number=1, body="```\n## Acceptance Criteria\n- [ ] no\n```\n")]) == []


def test_the_run_is_shown_numbered_criteria_and_a_bounded_diff_without_secrets() -> None:
    text = decide(verify(diff="+correct-horse\n" + "x" * 90_000), Redactor(("correct-horse",))).appendix
    assert "1. It works\n2. It is fast" in text
    assert "correct-horse" not in text
    assert len(text) < 40_000


def test_a_follow_up_is_made_fit_to_be_posted() -> None:
    follow_up = FollowUpIssue(title="Finish @it", body="Fixes #1. <script>x</script>")
    title, body = follow_up_text(follow_up, ITEM, ["It works"], 7, Poster(Redactor(), PostingPolicy()))
    assert "@it" not in title
    assert "Fixes #1" not in body
    assert "<script>" not in body
    assert body.endswith("Remaining work of #12 after #7.")


WHOLE = task_body(
    in_scope="- `src/a.py`\n- src/b/ (new)",
    out_of_scope="- src/z.py (owned by #3)",
    criteria="- [x] One\n- [ ] Two\n- [ ] Three",
    constraints="No new dependency.\n\n<!-- accord:item run=1 -->",
)
LONG = WHOLE.replace("- `src/a.py`", "\n".join(f"- src/package/module_{number:04}.py" for number in range(560)))
ITEMS = {
    "a whole task": WorkItem(number=5, body=WHOLE, labels=("task:implement", "priority:high", "complexity:medium")),
    "numbered headings": WorkItem(number=5, body=WHOLE.replace("# ", "# 1. ")),
    "with CRLF": WorkItem(number=5, body=WHOLE.replace("\n", "\r\n")),
    "criteria alone": ITEM,
    "a scope with headings": WorkItem(number=5, body=task_body(in_scope="<!-- hint -->\n\n#### Backend\n\n- src/a.py")),
    "a fence that nothing closes": WorkItem(number=5, body="## Scope\n\n### In Scope\n\n```\nsrc/a.py"),
    "many paths": WorkItem(number=5, body=LONG),
    "labels of another kind": WorkItem(number=5, body=WHOLE, labels=("task:implement", "priority:urgent")),
}


@pytest.mark.parametrize("name", ITEMS)
@pytest.mark.parametrize(
    "proposal",
    [
        "Finish it.",
        "## Acceptance Criteria\n\n- [ ] Mine\n\n### In Scope\n\n- `**`",
        "> q\n```",
        "long\n" * 20_000,
        "x" * 40_000,
    ],
)
def test_a_follow_up_is_a_full_task_whatever_the_agent_proposes(name: str, proposal: str) -> None:
    follow_up, unmet = FollowUpIssue(title="Finish it", body=proposal), ["Two", "Three"]
    assert follow_up_findings(follow_up, ITEMS[name], unmet) == []
    assert follow_up_text(follow_up, ITEMS[name], unmet, 7, Poster(Redactor(), PostingPolicy()))[1].count("\n## ") == 5
    body = follow_up_body(follow_up, ITEMS[name], unmet)
    assert criteria_of([WorkItem(number=6, body=body)]) == unmet
    if name in ("a whole task", "numbered headings"):
        for kept in ("Spec: `docs/specs/a.md`", "- src/b/ (new)", "(owned by #3)", "No new dependency."):
            assert kept in body
        assert "accord:item" not in body


@pytest.mark.parametrize("scope", ["- ../a.py", ""])
def test_a_follow_up_that_breaks_a_rule_asks_a_person(scope: str) -> None:
    broken = WorkItem(number=5, body=task_body(in_scope=scope, criteria="- [ ] It works\n- [ ] It is fast"))
    decision = decide(verify(verdict=verdict("fail", "no", "yes", left=True), work_items=(broken,)))
    assert (decision.action, decision.reason) == ("ask", "follow-up-empty")
    assert scope[2:] in decision.message


@pytest.mark.parametrize(
    ("met", "unmet"), [(("no", "yes"), ["a"]), (("unclear", "no"), ["a", "b"]), (("yes", "yes"), [])]
)
def test_unmet_criteria_are_those_that_the_verdict_does_not_call_met(met: tuple[str, str], unmet: list[str]) -> None:
    assert unmet_criteria(verdict("fail", *met), ["a", "b"]) == unmet
