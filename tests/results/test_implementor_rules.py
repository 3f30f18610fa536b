"""An implementor's result: what its outcome needs is found missing, however the rest is dressed."""

from __future__ import annotations

import json

import pytest

from accord.core.kinds import check_document

BLOCKED = """Type: spec-gap
Description: The spec does not say what an empty list means.
Spec reference: docs/specs/a.md, section "Input": "The list is read."
Options:
1. Ignore it: simple, but errors stay hidden
2. Refuse it: safe, but callers break
Recommendation: option 2, because a hidden error costs more.
Impact: the task cannot be finished."""

DRESSED = """### Blocker type

`external-dependency`

### Description

The payment provider's test system is down since Monday.

### Options

- **Wait** until it is back, which costs days
- **Mock it**, which proves less

### Recommendation

Wait, since the mock would have to be written.

### Impact

The release slips."""

FAILED = (
    "The integration test suite fails in test_upload. I tried to raise its time limit and to run it alone; "
    "the cause is a broken fixture outside of this task's scope."
)
PATCH = "diff --git a/a b/a\n"


def codes(outcome: str, summary: str, patch: str | None = None) -> set[str]:
    result = {"role": "implementor", "outcome": outcome, "patch": patch, "summary": summary}
    return {finding.code for finding in check_document(json.dumps(result).encode(), None)[1]}


def test_complete_results_pass() -> None:
    assert codes("completed", "Added the parser and its tests.", PATCH) == set()
    assert codes("blocked", BLOCKED) == set()
    assert codes("blocked", DRESSED) == set()
    assert codes("blocked", BLOCKED.replace("Type:", "**Type:**").replace("Impact:", "**Impact** -")) == set()
    assert codes("validation-failure", FAILED) == set()


@pytest.mark.parametrize("outcome", ["blocked", "validation-failure"])
def test_a_debugging_limit_may_end_a_run_under_either_outcome(outcome: str) -> None:
    text = (
        BLOCKED.replace("spec-gap", "debugging-limit") + "\nThe test step failed, I tried three fixes; it is upstream."
    )
    assert codes(outcome, text) == set()


BROKEN = {
    "no patch": ("completed", "Done.", None, "patch-missing"),
    "blank patch": ("completed", "Done.", " \n", "patch-missing"),
    "patch of a blocked one": ("blocked", BLOCKED, PATCH, "patch-unexpected"),
    "empty patch of a failed one": ("validation-failure", FAILED, "", "patch-unexpected"),
    "no summary": ("completed", " ", PATCH, "summary-empty"),
}
CHANGED = {
    "no type": ("Type: spec-gap\n", "", "blocker-type-missing"),
    "type in a code block": ("Type: spec-gap\n", "```\nType: spec-gap\n```\n", "blocker-type-missing"),
    "another type": ("spec-gap", "bad-mood", "blocker-type-unknown"),
    "no description": (
        "Description: The spec does not say what an empty list means.\n", "", "blocker-description",
    ),
    "one option": ("2. Refuse it: safe, but callers break\n", "", "blocker-options"),
    "option without trade-off": ("Refuse it: safe, but callers break", "Refuse it", "blocker-options"),
    "no recommendation": (
        "Recommendation: option 2, because a hidden error costs more.\n", "", "blocker-recommendation",
    ),
    "no impact": ("Impact: the task cannot be finished.", "", "blocker-impact"),
    "no path": ("docs/specs/a.md", "the spec", "blocker-spec-reference"),
    "no section": ('section "Input"', "in it", "blocker-spec-reference"),
    "no quote": ('section "Input": "The list is read."', "section Input", "blocker-spec-reference"),
}  # fmt: skip
BROKEN |= {name: ("blocked", BLOCKED.replace(old, new), None, code) for name, (old, new, code) in CHANGED.items()}
INCOMPLETE = {
    "no step": "It went wrong. I tried much. It is outside my scope.",
    "nothing tried": "The lint step failed. It is outside my scope.",
    "no reason": "The lint step failed. I tried to fix it.",
}
BROKEN |= {name: ("validation-failure", text, None, "validation-step-missing") for name, text in INCOMPLETE.items()}


@pytest.mark.parametrize("name", BROKEN)
def test_a_missing_part_is_named(name: str) -> None:
    outcome, summary, patch, code = BROKEN[name]
    assert codes(outcome, summary, patch) == {code}


def test_a_misspelt_blocker_type_is_corrected() -> None:
    result = {"role": "implementor", "outcome": "blocked", "patch": None, "summary": BLOCKED.replace("-gap", "-gpa")}
    _, (finding,) = check_document(json.dumps(result).encode(), None)
    assert "Did you mean `spec-gap`?" in finding.message


SUBLIST = """- Ignore it
  - Pro: simple
  - Con: errors stay hidden
- Refuse it
  - Pro: safe
  - Con: callers break"""
HEADINGS = """### Option A

Ignore it: simple, but errors stay hidden.

### Option B

Refuse it: safe, but callers break."""
ELABORATE = {
    "what an option costs in a list below it": SUBLIST,
    "options as headings with paragraphs": HEADINGS,
    "options by the word, with lists that are not indented": SUBLIST.replace("- I", "Option A: I")
    .replace("- R", "Option B: R")
    .replace("  -", "-"),
    "a list that is not quite straight": "- Ignore it: simple, errors hidden\n - Refuse it: safe, callers break",
    "Japanese": "- 無視する。簡単だが、誤りが隠れる\n- 拒否する。安全だが、呼び出し側が壊れる",
    "Thai": "- ละเว้นง่ายแต่ข้อผิดพลาดซ่อนอยู่\n- ปฏิเสธปลอดภัยแต่ผู้เรียกเสียหาย",
    "German": "- Ignorieren: einfach, verbirgt aber Fehler\n- Ablehnen: sicher, bricht aber Aufrufer",
}


@pytest.mark.parametrize("name", ELABORATE)
def test_options_with_their_trade_offs_are_taken_however_they_are_laid_out(name: str) -> None:
    options = "1. Ignore it: simple, but errors stay hidden\n2. Refuse it: safe, but callers break"
    assert codes("blocked", BLOCKED.replace(options, ELABORATE[name])) == set()


@pytest.mark.parametrize(
    "options", ["### Option A\n\n### Option B", "- A\n- B", "- A\n  - it is simple, but slow", "- 無視\n- 拒否"]
)
def test_options_without_trade_offs_or_rivals_are_found_however_they_are_laid_out(options: str) -> None:
    before, _, after = BLOCKED.partition("1. Ignore")
    text = before + options + "\nRecommendation:" + after.partition("Recommendation:")[2]
    assert codes("blocked", text) == {"blocker-options"}


@pytest.mark.parametrize(
    "quote",
    [
        "„Die Liste wird gelesen.“",
        "« La liste est lue. »",
        "»Listen læses.«",
        "「一覧を読む。」",
        "『一覧を読む。』",
        "“The list is read.”",
        "'The list is read.'",
        "\u2018It\u2019s read.\u2019",
        "\n> The list is read.\n",
    ],
)
def test_a_quote_may_use_the_quotation_marks_of_any_language(quote: str) -> None:
    assert codes("blocked", BLOCKED.replace('"The list is read."', quote).replace('"Input"', "Input")) == set()


SAID = {
    "type checking": "Type checking (mypy) fails in an untouched file. I attempted stubs; it is pre-existing.",
    "a step that could not be run": "The build step could not be run. I retried; it is outside my control.",
    "labels in another language": "Step: Prüfung schlägt fehl.\nTried: Neu begonnen.\nOutside: Der Rechner ist alt.",
    "labels in bold": "**Failing step:** pytest\n**Attempts:** ran it alone\n**Why outside:** CI has no network",
}


@pytest.mark.parametrize("name", SAID)
def test_a_validation_failure_may_use_the_words_that_agents_use(name: str) -> None:
    assert codes("validation-failure", SAID[name]) == set()


def test_other_blockers_need_no_spec() -> None:
    text = BLOCKED.replace("spec-gap", "technical-constraint")
    text = "\n".join(line for line in text.splitlines() if not line.startswith("Spec reference"))
    assert codes("blocked", text) == set()
