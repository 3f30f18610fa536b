"""Layout is not content: what a contract asks for in plain text passes in any readable layout, and a gap is found.

Source: workflow contracts, "Summary Content by Outcome" and "ReviewerResult".
"""

from typing import Any

import pytest
from support.growth import grows_too_fast
from support.reviews import comment, needs_changes

from accord.core.shapes import read_shape
from accord.results.implementor.rules import implementor_findings
from accord.results.models import ImplementorResult, ReviewerResult
from accord.results.reviewer.rules import reviewer_findings


def report_findings(summary: str, outcome: str = "blocked") -> list[tuple[str, str]]:
    model = read_shape(
        ImplementorResult, {"role": "implementor", "outcome": outcome, "patch": None, "summary": summary}
    )
    return [(finding.code, finding.severity.value) for finding in implementor_findings(model)]


def review_findings(body: str) -> list[tuple[str, str]]:
    model: Any = read_shape(ReviewerResult, needs_changes(comment("src/a.py", 15, body)))
    return [(finding.code, finding.severity.value) for finding in reviewer_findings(model)]


HEAD = """Type: technical-constraint
Description: The library cannot read a stream twice.
"""
TAIL = """
Recommendation: Option 1, since callers stay as they are.
Impact: Uploads above 1 GB stay impossible.
"""

OPTIONS = {
    "the contract's words": (
        "Options with trade-offs:\n1. Retry the read: more code\n2. Buffer it: more memory",
        "Options with trade-offs:\n1. Retry the read: more code",
    ),
    "a heading with its bold label": (
        "**Options (with trade-offs):**\n- Retry: more code\n- Buffer: more memory",
        "**Options (with trade-offs):**\n- Retry: more code",
    ),
    "options by name, without a heading": (
        "Option A: Retry, which is more code.\nOption B: Buffer, which needs memory.",
        "Option A: Retry, which is more code.",
    ),
    "options by name in one line": (
        "Option A: Retry, which is more code. Option B: Buffer, which needs memory.",
        "Option A: Retry, which is more code.",
    ),
    "options by number in bold": (
        "**Option 1** — Retry (more code)\n**Option 2** — Buffer (more memory)",
        "**Option 1** — Retry (more code)",
    ),
    "letters in brackets": (
        "Options: (a) retry, with more code (b) buffer, with more memory",
        "Options: (a) retry, with more code",
    ),
    "letters in brackets without a label": (
        "We can (a) retry, with more code, or (b) buffer, with more memory.",
        "We can (a) retry, with more code.",
    ),
    "letters in brackets on lines": (
        "Options:\n(a) Retry: more code\n(b) Buffer: more memory",
        "Options:\n(a) Retry: more code",
    ),
    "numbers in one line": (
        "Options: 1. Retry: more code 2. Buffer: more memory",
        "Options: 1. Retry: more code",
    ),
    "numbers in brackets in one line": (
        "Options: 1) retry (more code), 2) buffer (more memory)",
        "Options: 1) retry (more code)",
    ),
    "trade-off in brackets": (
        "Options:\n1. Retry (more code)\n2. Buffer (more memory)",
        "Options:\n1. Retry\n2. Buffer",
    ),
    "trade-off after a colon": (
        "Options:\n1. Retry: more code\n2. Buffer: more memory",
        "Options:\n1. Retry:\n2. Buffer:",
    ),
    "trade-off after an arrow": (
        "Options:\n- Retry → more code\n- Buffer -> more memory",
        "Options:\n- Retry →\n- Buffer ->",
    ),
    "a table": (
        "Options:\n\n| Option | Trade-offs |\n|---|---|\n| Retry | more code |\n| Buffer | more memory |\n",
        "Options:\n\n| Option | Trade-offs |\n|---|---|\n| Retry | more code |\n",
    ),
    "a table with pros and cons": (
        "### Options\n\n| | Pros | Cons |\n|:-|-|-|\n| Retry | simple | slow |\n| Buffer | fast | memory |\n",
        "### Options\n\n| | Pros | Cons |\n|:-|-|-|\n| Retry | | |\n| Buffer | | |\n",
    ),
    "a table without a label": (
        "| Option | Trade-offs |\n|---|---|\n| Retry | more code |\n| Buffer | more memory |\n",
        "| Option | Trade-offs |\n|---|---|\n| Retry | more code |\n",
    ),
    "lines without marks": (
        "Options:\nRetry: more code\nBuffer: more memory",
        "Options:\nRetry: more code",
    ),
    "paragraphs that begin in bold": (
        "## Options\n\n**Retry.** More code, but no memory.\n\n**Buffer.** Needs memory, but is simple.",
        "## Options\n\n**Retry.** More code, but no memory.",
    ),
    "headings": (
        "## Options\n\n### Retry\n\nMore code.\n\n### Buffer\n\nMore memory.\n",
        "## Options\n\n### Retry\n\nMore code.\n",
    ),
    "pros and cons below": (
        "Options:\n1. Retry\n   - Pros: simple\n   - Cons: slow\n2. Buffer\n   - Pros: quick\n   - Cons: memory",
        "Options:\n1. Retry\n   - Pros: simple\n   - Cons: slow",
    ),
    "either, or": (
        "Options: either retry, which is more code, or buffer, which needs memory.",
        "Options: retry.",
    ),
    "semicolons": (
        "Options: retry (more code); buffer (more memory)",
        "Options: retry (more code)",
    ),
    "alternatives": (
        "Alternatives considered:\n* Retry: more code\n* Buffer: more memory",
        "Alternatives considered:\n* Retry: more code",
    ),
    "a label alone on its line": (
        "Options\n\n1. Retry: more code\n2. Buffer: more memory",
        "Options\n\n1. Retry: more code",
    ),
    "the first and the second": (
        "Options: The first option is to retry, which is more code. The second option is to buffer, in memory.",
        "Options: The first option is to retry.",
    ),
}


@pytest.mark.parametrize("name", OPTIONS)
def test_options_with_trade_offs_pass_in_any_layout(name: str) -> None:
    assert report_findings(HEAD + OPTIONS[name][0] + TAIL) == []


@pytest.mark.parametrize("name", OPTIONS)
def test_options_that_are_missing_are_found_in_the_same_layout(name: str) -> None:
    assert {*report_findings(HEAD + OPTIONS[name][1] + TAIL)} == {("blocker-options", "error")}


RIGHT = """Options:
1. Retry: more code
2. Buffer: more memory
"""
BEFORE, WITHOUT = HEAD + RIGHT, "Impact: Uploads above 1 GB stay impossible.\n"
RECOMMENDATIONS = [
    "Recommendation: Option 1, since callers stay as they are.",
    "Recommended: option 1, since callers stay as they are.",
    "Recommended option: 1, since callers stay as they are.",
    "My recommendation: option 1, since callers stay as they are.",
    "I recommend option 1, since callers stay as they are.",
    "\nI would go with option 1, since callers stay as they are.\n",
    "**Recommendation** — Option 1, since callers stay as they are.",
    "Recommendation \u2013 option 1, since callers stay as they are.",
    "### Recommendation\n\nOption 1, since callers stay as they are.\n",
    "Recommendation\n\nOption 1, since callers stay as they are.\n",
    "> **Recommendation:** option 1, since callers stay as they are.\n",
    "✅ **Recommendation:** option 1, since callers stay as they are.\n",
    "5. Recommendation: option 1, since callers stay as they are.\n",
    "| Recommendation | Option 1, since callers stay as they are. |\n",
    "Preferred option: 1, since callers stay as they are.",
]


@pytest.mark.parametrize("text", RECOMMENDATIONS)
def test_a_recommendation_passes_in_any_layout(text: str) -> None:
    assert report_findings(f"{BEFORE}{text}\n{WITHOUT}") == []


def test_an_option_that_is_marked_as_the_recommended_one_is_a_recommendation() -> None:
    options = RIGHT.replace("Retry: more", "Retry (recommended): more")
    assert report_findings(HEAD + options + WITHOUT) == []


@pytest.mark.parametrize(
    "text", ["", "Recommendation:", "Recommendation: none", "Recommendation: <which option>", "Recommendation: TBD"]
)
def test_a_recommendation_that_is_missing_is_an_error(text: str) -> None:
    assert report_findings(f"{BEFORE}{text}\n{WITHOUT}") == [("blocker-recommendation", "error")]


IMPACTS = [
    "Impact: Uploads above 1 GB stay impossible.",
    "Impact if not resolved: Uploads above 1 GB stay impossible.",
    "Impact if unresolved — uploads above 1 GB stay impossible.",
    "**Impact:** Uploads above 1 GB stay impossible.",
    "### Impact\n\nUploads above 1 GB stay impossible.\n",
    "- **Impact** - uploads above 1 GB stay impossible.",
    "\nIf this is not resolved, uploads above 1 GB stay impossible.\n",
    "\nUntil then the task cannot be finished.\n",
    "What happens if the blocker is not resolved: uploads above 1 GB stay impossible",
    "Consequence: uploads above 1 GB stay impossible.",
    "IMPACT\n------\n\nUploads above 1 GB stay impossible.\n",
]
ADVICE = "Recommendation: option 1, since callers stay as they are.\n"


@pytest.mark.parametrize("text", IMPACTS)
def test_an_impact_passes_in_any_layout(text: str) -> None:
    assert report_findings(f"{BEFORE}{ADVICE}{text}") == []


@pytest.mark.parametrize("text", ["", "Impact:", "Impact: n/a", "Impact: …"])
def test_an_impact_that_is_missing_is_an_error(text: str) -> None:
    assert report_findings(f"{BEFORE}{ADVICE}{text}") == [("blocker-impact", "error")]


TYPES = [
    "Type: technical-constraint",
    "Blocker type: technical-constraint",
    "**Type:** `technical-constraint`",
    "Type — technical-constraint",
    "Type: Technical constraint",
    "## Blocker type\n\ntechnical-constraint\n",
    "Blocked by a technical-constraint.",
    "| Type | technical-constraint |",
    "[technical-constraint]",
    "Blocker (technical-constraint): it reads once.",
]


@pytest.mark.parametrize("text", TYPES)
def test_a_blocker_type_passes_in_any_layout(text: str) -> None:
    assert report_findings((HEAD + RIGHT + TAIL).replace("Type: technical-constraint", text)) == []


DESCRIPTIONS = [
    "Description: The library cannot read a stream twice.",
    "Blocker: The library cannot read a stream twice.",
    "Problem — the library cannot read a stream twice.",
    "What is blocking progress: the library cannot read a stream twice",
    "What's blocking: the library cannot read a stream twice.",
    "The library cannot read a stream twice.",
    "\nThe library cannot read a stream twice.\n",
    "## What blocks progress\n\nThe library cannot read a stream twice.\n",
]


@pytest.mark.parametrize("text", DESCRIPTIONS)
def test_a_description_passes_in_any_layout(text: str) -> None:
    assert report_findings((HEAD + RIGHT + TAIL).replace(HEAD.splitlines()[1], text)) == []


@pytest.mark.parametrize("text", ["", "Description:", "Description: <what blocks>"])
def test_a_description_that_is_missing_is_an_error(text: str) -> None:
    summary = (HEAD + RIGHT + TAIL).replace(HEAD.splitlines()[1], text)
    assert report_findings(summary) == [("blocker-description", "error")]


SPEC = HEAD.replace("technical-constraint", "spec-gap")
REFERENCES = [
    'Spec reference: docs/specs/a.md, section "Reading": "A stream is read."',
    'Spec: docs/specs/a.md\nSection: Reading\nQuote: "A stream is read."',
    "Spec reference:\n- File: `docs/specs/a.md`\n- Section: Reading\n- Quote: A stream is read.",
    "**Spec reference** — `docs/specs/a.md` § Reading\n\n> A stream is read.\n",
    "### Spec reference\n\ndocs/specs/a.md#reading says “A stream is read.”\n",
    'Reference: docs/specs/a.md, Reading: "A stream is read."',
    'See docs/specs/a.md (section Reading), which says: "A stream is read."',
    "Spec reference (file, section, quote): docs/specs/a.md → Reading → 'A stream is read.'",
    "| Spec | docs/specs/a.md |\n| Section | Reading |\n| Quote | A stream is read. |",
]


@pytest.mark.parametrize("text", REFERENCES)
def test_a_spec_reference_passes_in_any_layout(text: str) -> None:
    assert report_findings(f"{SPEC}{text}\n{RIGHT}{TAIL}") == []


@pytest.mark.parametrize(
    "text",
    [
        "",
        "Spec reference: the spec",
        "Spec reference: docs/specs/a.md",
        'Spec reference: section Reading: "A stream is read."',
        "Spec reference: docs/specs/a.md, section Reading",
        "Spec: docs/specs/<name>.md\nSection: <relevant sections>\nQuote: <relevant text from spec>",
    ],
)
def test_a_spec_reference_with_a_missing_part_is_an_error(text: str) -> None:
    assert report_findings(f"{SPEC}{text}\n{RIGHT}{TAIL}") == [("blocker-spec-reference", "error")]


WHOLE = {
    "prose in paragraphs": """This is a technical-constraint. The library cannot read a stream twice.

There are two options. Option 1 is to retry, which means more code. Option 2 is to buffer, which costs memory.

I recommend option 1, since callers stay as they are. Without a decision, uploads above 1 GB stay impossible.
""",
    "a table of everything": """| Part | Text |
|---|---|
| Type | technical-constraint |
| Description | The library cannot read a stream twice. |
| Options | (1) Retry: more code. (2) Buffer: more memory. |
| Recommendation | Option 1, since callers stay as they are. |
| Impact | Uploads above 1 GB stay impossible. |
""",
    "numbered labels": """1. Type: technical-constraint
2. Description: The library cannot read a stream twice.
3. Options: (a) Retry: more code; (b) Buffer: more memory
4. Recommendation: (a), since callers stay as they are.
5. Impact: Uploads above 1 GB stay impossible.
""",
    "numbered headings": """## 1. Blocker type

technical-constraint

## 2. Description

The library cannot read a stream twice.

## 3. Options and trade-offs

- **Retry**: more code
- **Buffer**: more memory

## 4. Recommendation

Retry, since callers stay as they are.

## 5. Impact if unresolved

Uploads above 1 GB stay impossible.
""",
    "bold labels in a list, with dashes": """- **Type** — technical-constraint
- **Description** — The library cannot read a stream twice.
- **Options** —
  - Retry — more code
  - Buffer — more memory
- **Recommendation** — Retry, since callers stay as they are.
- **Impact** — Uploads above 1 GB stay impossible.
""",
    "one line": "Type: technical-constraint. Description: The library cannot read a stream twice. Options: 1. Retry: "
    "more code 2. Buffer: more memory. Recommendation: option 1, it is small. Impact: Uploads stay small.",
    "upper case": """TYPE: technical-constraint
DESCRIPTION: The library cannot read a stream twice.
OPTIONS:
A. RETRY: MORE CODE
B. BUFFER: MORE MEMORY
RECOMMENDATION: A, SINCE CALLERS STAY AS THEY ARE.
IMPACT: UPLOADS ABOVE 1 GB STAY IMPOSSIBLE.
""",
    "CRLF": (HEAD + RIGHT + TAIL).replace("\n", "\r\n"),
}


@pytest.mark.parametrize("name", WHOLE)
def test_a_blocked_summary_with_everything_passes_in_any_layout(name: str) -> None:
    assert report_findings(WHOLE[name]) == []


GERMAN = """Typ: spec-gap
Beschreibung: Die Spezifikation sagt nicht, was eine leere Liste bedeutet.
Stelle: docs/specs/a.md, Abschnitt „Eingabe“: „Die Liste wird gelesen.“
Möglichkeiten:
1. Ignorieren: einfach, verbirgt aber Fehler
2. Ablehnen: sicher, bricht aber Aufrufer
Empfehlung: Ablehnen, denn ein verborgener Fehler kostet mehr.
Folgen: Die Aufgabe bleibt ohne Entscheidung liegen.
"""
LONG = """technical-constraint. The library closes the stream when it has read it, and the caller has no second one.
We talked about reading it again from the server. That would double the traffic of each upload.
Keeping it in memory is what the old code did. It ended with a full disk twice last year.
The first way looks better to us. Customers cannot upload large files these days.
"""


@pytest.mark.parametrize("summary", [GERMAN, LONG])
def test_a_text_whose_structure_is_not_recognised_is_a_warning(summary: str) -> None:
    found = report_findings(summary)
    assert found
    assert {severity for _, severity in found} == {"warning"}


@pytest.mark.parametrize(
    "summary",
    [
        "technical-constraint",
        "Type: spec-gap\nI am stuck.",
        "It does not work.",
        "Type: debugging-limit\nDescription: The test fails and I do not know why.",
    ],
)
def test_a_summary_that_is_too_short_for_its_parts_is_an_error(summary: str) -> None:
    found = report_findings(summary)
    assert {("blocker-options", "error"), ("blocker-recommendation", "error"), ("blocker-impact", "error")} <= {*found}


FAILURES = {
    "labels with dashes": "Step — pytest\nTried — a longer time limit\nOutside — the fixture is broken on main",
    "the contract's words": "Which validation step failed: pytest\nWhat the agent tried: a longer limit\n"
    "Why the failure is outside its scope: the fixture is broken on main",
    "headings": "## Failed step\n\npytest\n\n## What I tried\n\nA limit.\n\n## Why outside my scope\n\nmain is broken",
    "a table": "| Step | pytest |\n| Tried | a longer limit |\n| Outside | the fixture is broken |",
}


@pytest.mark.parametrize("name", FAILURES)
def test_a_failed_validation_passes_in_any_layout(name: str) -> None:
    assert report_findings(FAILURES[name], "validation-failure") == []


def test_a_failed_validation_in_another_language_is_a_warning() -> None:
    text = (
        "Die Prüfung der Typen bricht ab. Drei Versuche blieben ohne Erfolg. Der Fehler liegt in einem fremden Modul."
    )
    assert report_findings(text, "validation-failure") == [("validation-step-missing", "warning")]


COMMENTS = {
    "tags before colons": (
        "<b>What</b>: the loop\n<b>Why</b>: the spec says n\n<b>Fix</b>: range(n)",
        "<b>What</b>: the loop\n<b>Why</b>: the spec says n\n<b>Fix</b>:",
    ),
    "tags around colons": (
        "- <strong>What:</strong> the loop\n- <STRONG>Why:</STRONG> the spec says n\n- <em>Fix</em> range(n)",
        "- <strong>What:</strong> the loop\n- <strong>Why:</strong> the spec says n",
    ),
    "labels in brackets": (
        "(What) the loop\n(Why) the spec says n\n(Fix) range(n)",
        "(What) the loop\n(Why) the spec says n",
    ),
    "labels in brackets in one line": (
        "(What) The loop runs once more (Why) the spec says n (Fix) use range(n)",
        "(What) The loop runs once more (Why) the spec says n",
    ),
    "labels in square brackets": (
        "[What] the loop\n[Why]: the spec says n\n[Fix] range(n)",
        "[What] the loop\n[Why]: the spec says n\n[Fix](https://example.com)",
    ),
    "dashes": ("What — the loop\nWhy — the spec says n\nFix — range(n)", "What — the loop\nWhy — the spec says n"),
    "dashes in one line": (
        "WHAT — the loop. WHY — the spec says n. FIX — range(n).",
        "WHAT — the loop. WHY — the spec says n.",
    ),
    "bold dashes": (
        "**What** \u2013 the loop\n**Why** \u2013 the spec says n\n**Fix** \u2013 range(n)",
        "**What** \u2013 the loop\n**Why** \u2013 the spec says n\n**Fix** \u2013",
    ),
    "a place in the label": (
        "**What (src/a.py:15):** the loop\n**Why (spec, section 2):** n\n**Fix:** range(n)",
        "**What (src/a.py:15):** the loop\n**Fix:** range(n)",
    ),
    "questions": (
        "**What's wrong:** the loop **Why it matters:** the spec **How to fix:** range(n)",
        "**What's wrong:** the loop **How to fix:** range(n)",
    ),
    "what is wrong": (
        "What is wrong: the loop\nWhy this is wrong: the spec says n\nHow to fix it: range(n)",
        "What is wrong: the loop\nHow to fix it: range(n)",
    ),
    "other words": (
        "**Issue:** the loop\n**Reason:** the spec says n\n**Suggestion:** range(n)",
        "**Issue:** the loop\n**Suggestion:** range(n)",
    ),
    "headings with a question mark": (
        "### What?\nthe loop\n### Why?\nthe spec\n### Fix\nrange(n)",
        "### What?\nthe loop\n### Why?\nthe spec\n### Fix\n",
    ),
    "a numbered list": ("1. What: the loop\n2. Why: the spec\n3. Fix: range(n)", "1. What: the loop\n2. Why: the spec"),
    "a table": (
        "| What | Why | Fix |\n|---|---|---|\n| the loop | the spec | range(n) |",
        "| What | Why | Fix |\n|---|---|---|\n| the loop | | range(n) |",
    ),
    "rows of a table": (
        "| | |\n|---|---|\n| What | the loop |\n| Why | the spec |\n| Fix | range(n) |",
        "| | |\n|---|---|\n| What | the loop |\n| Why | the spec |",
    ),
    "a suggestion without a label": (
        "What: the loop\nWhy: the spec says n\n```suggestion\nrange(n)\n```",
        "What: the loop\nWhy: the spec says n\n```python\nrange(n + 1)\n```",
    ),
    "lower case": ("what: the loop; why: the spec; fix: range(n)", "what: the loop; why: the spec"),
}


@pytest.mark.parametrize("name", COMMENTS)
def test_a_finding_passes_in_any_layout(name: str) -> None:
    assert review_findings(COMMENTS[name][0]) == []


@pytest.mark.parametrize("name", COMMENTS)
def test_a_finding_that_lacks_a_part_is_found_in_the_same_layout(name: str) -> None:
    assert review_findings(COMMENTS[name][1]) == [("finding-incomplete", "error")]


@pytest.mark.parametrize(
    "body",
    [
        "The loop (Fix) runs once too often. The spec, section 2, says n times (Why). Please use range(n) instead.",
        "The loop runs once too often here. The spec, section 2, says n times. Please use range(n) instead of this.",
        "Die Schleife läuft einmal zu oft.\n\nDie Spezifikation verlangt genau n.\n\nHier gehört range(n) hin.",
        "What: the loop runs once too often\nWhy: the spec says n\n\nPlease use range(n) here instead.",
    ],
)
def test_a_finding_in_prose_is_a_warning(body: str) -> None:
    assert review_findings(body) == [("finding-incomplete", "warning")]


@pytest.mark.slow
@pytest.mark.parametrize(
    "unit",
    [
        "Option A: x ",
        "(a) ",
        "What: ",
        "| Type ",
        "1. a 2. ",
        "x or ",
        "**a** ",
        "Type\n\n",
        "- a\n",
        "(What) ",
        "[Why] a\n",
        "<b>Fix</b>",
    ],
)
def test_a_hostile_summary_does_not_hold_up_the_check(unit: str) -> None:
    def check(size: int) -> None:
        text = unit * (size // len(unit))
        report_findings(text)
        review_findings(text)

    assert not grows_too_fast(check, 20_000, noticed=0.05)
