"""Layout is not content: in any layout, each label with a text is a part, and one that lacks its text is a gap.

Source: workflow contracts, "Summary Content by Outcome" and "ReviewerResult".
"""

from collections.abc import Callable
from functools import partial
from itertools import product
from textwrap import indent
from typing import Any

import pytest
from support.growth import grows_too_fast
from support.plans import refinement_body
from support.reviews import comment, needs_changes

from accord.core.shapes import read_shape
from accord.results.bodies import read_body
from accord.results.body_rules import body_findings
from accord.results.implementor.rules import BLOCKERS, implementor_findings
from accord.results.labels import ItemKind
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


def refinement_findings(options: str, recommendation: str = "Two, because it lasts.") -> list[tuple[str, str]]:
    body = read_body(refinement_body(options=options, recommendation=recommendation))
    return [(finding.code, finding.severity.value) for finding in body_findings(body, ItemKind.REFINEMENT, "/body")]


BLOCKER = {
    "Type": "technical-constraint",
    "Description": "The library cannot read a stream twice.",
    "Options": "(1) Retry: more code. (2) Buffer: more memory.",
    "Recommendation": "Option 1, since callers stay as they are.",
    "Impact": "Uploads above 1 GB stay impossible.",
}
FAILURE = {"Step": "pytest", "Tried": "a longer limit", "Outside": "the fixture is broken on main"}
FINDING = {"What": "the loop runs once more", "Why": "the spec says n", "Fix": "range(n)"}
CODES = {
    "Type": "blocker-type-missing",
    **{part: f"blocker-{part.lower()}" for part in BLOCKER if part != "Type"},
    **dict.fromkeys(FAILURE, "validation-step-missing"),
    **dict.fromkeys(FINDING, "finding-incomplete"),
}
LINES = {
    "colons": "{}: {}",
    "bold labels with colons": "**{}:** {}",
    "bold lines": "**{}: {}**",
    "bold entries": "- __{}: {}__",
    "tagged lines": "<strong>{}: {}</strong>",
    "bold labels before colons": "__{}__: {}",
    "bold labels without a sign": "**{}** {}",
    "tags": "<b>{}</b>: {}",
    "dashes": "{} \u2014 {}",
    "bold labels with dashes": "- **{}** \u2013 {}",
    "square brackets": "[{}] {}",
    "numbers": "1. {}: {}",
    "quotes": "> {}: {}",
    "signs": "✅ {}: {}",
    "headings": "### {}\n\n{}\n",
    "numbered headings": "## 2. {}\n\n{}\n",
    "underlined headings": "{}\n------\n\n{}\n",
    "labels alone on their lines": "{}\n\n{}\n",
    "rows of a table": "| {} | {} |",
    "entries in HTML": "<li>{}: {}</li>",
    "paragraphs in entries in HTML": "<li>\n  <p><b>{}</b>: {}</p>\n</li>",
    "a place in the label": "**{} (src/a.py:15):** {}",
    "wide colons": "{}\uff1a{}",
    "lines that end in another way": "{}: {}\r",
}


def findings_of(parts: dict[str, str]) -> Callable[[str], list[tuple[str, str]]]:
    """Return the check for a text with these parts."""
    if parts is FINDING:
        return review_findings
    return partial(report_findings, outcome="blocked" if parts is BLOCKER else "validation-failure")


@pytest.mark.parametrize("line", LINES.values(), ids=LINES)
@pytest.mark.parametrize("parts", [BLOCKER, FAILURE, FINDING], ids=["blocker", "failure", "finding"])
def test_a_part_is_there_if_its_label_has_a_text(parts: dict[str, str], line: str) -> None:
    def text(**changed: str) -> str:
        return "\n".join(line.format(name, value) for name, value in {**parts, **changed}.items() if name != missing)

    check, missing = findings_of(parts), ""
    assert check(text()) == []
    for missing in parts:
        assert check(text()) == [(CODES[missing], "error")], missing
    unseen = ("<!-- x -->", "&nbsp;", "<span></span>", "&#8203;", "<br>", "?", "`...`", "\u3164")
    in_code = ("`<...>`", "`{}`", "`[]`", "TBD `=>`")
    for name, placeholder in product(parts, ("", "none", "TBD", "<which one>", *unseen, *in_code)):
        missing = ""
        if name != "Type":
            assert check(text(**{name: placeholder})) == [(CODES[name], "error")], (name, placeholder)


@pytest.mark.parametrize("parts", [BLOCKER, FAILURE, FINDING], ids=["blocker", "failure", "finding"])
def test_labels_in_one_line_and_in_the_head_of_a_table_count(parts: dict[str, str]) -> None:
    one_line = " ".join(f"{name}: {text.rstrip('.')}." for name, text in parts.items())
    bold = " ".join(f"**{name}:** {text}" for name, text in parts.items())
    table = f"| {' | '.join(parts)} |\n|{'---|' * len(parts)}\n| {' | '.join(parts.values())} |"
    for text in (one_line, bold, table, one_line.upper() if parts is FINDING else one_line):
        assert findings_of(parts)(text) == []
    for count in ("1) {0}; 2) more.", "(a) {0}, (b) more.", "1. {0}. 2. More."):
        texts = (text if parts is BLOCKER else count.format(text) for text in parts.values())
        counted = " ".join(f"{name}: {text.rstrip('.')}." for name, text in zip(parts, texts, strict=True))
        assert findings_of(parts)(counted) == []


@pytest.mark.parametrize("parts", [BLOCKER, FAILURE, FINDING], ids=["blocker", "failure", "finding"])
def test_a_label_in_a_quotation_is_a_text_of_the_part_around_it(parts: dict[str, str]) -> None:
    check, names = findings_of(parts), [*parts]
    lines = {name: f"{name}: {text}" for name, text in parts.items()}
    for name, following in zip(names, [*names[1:], names[0]], strict=True):
        quoted = f"> {following}: as another text has it"
        for quotation in (quoted, f"- {quoted}", f"> It says:\n>\n> | {following} | as another text has it |"):
            others = [text for other, text in lines.items() if other != following]
            assert check("\n".join([*others, quotation])) == [(CODES[following], "error")], quotation
            if name not in ("Type", "Options"):
                assert check("\n".join({**lines, name: f"{name}:\n{quotation}\n"}.values())) == []
    above = ["\n".join(f"> {line}" for line in [*lines.values()][:2]), *[*lines.values()][2:]]
    note = [*[*lines.values()][:-1], f"> [!TIP]\n> {lines[names[-1]]}"]
    assert check("\n\n".join(above)) == check("\n\n".join(note)) == []


def test_a_text_that_is_a_quote_as_a_whole_is_read_as_without_its_marks() -> None:
    for options in ("1. Retry: more code\n2. Buffer: more memory", "- Retry\n  - Pros: a\n- Buffer\n  - Pros: b"):
        text = f"{HEAD}Options:\n{options}\n{TAIL}"
        assert report_findings("".join(f"> {line}" for line in text.splitlines(keepends=True))) == []
    finding = "What: the sum is wrong\nWhy: the spec says\n> Fix: round up"
    quoted = "\n".join(f"> {line}" for line in finding.splitlines())
    assert review_findings(quoted) == review_findings(finding) == [("finding-incomplete", "error")]


@pytest.mark.parametrize(
    "options",
    [
        "1) Retry, simple but slow. 2) Buffer, fast but large.",
        "(1) Retry; simple but slow. (2) Buffer; fast but large.",
        "a) Retry (simple, but slow); b) Buffer (fast, but large).",
        "Option A: retry; simple but slow. Option B: buffer; fast but large.",
        "1) Retry. Impact: slow. 2) Buffer. Impact: large.",
    ],
)
@pytest.mark.parametrize(
    "choice", ["Option 1, as it is simple.", "1) because it is simple.", "go with (a), as it is simple"]
)
def test_options_in_a_line_end_at_the_next_label(options: str, choice: str) -> None:
    parts = {**BLOCKER, "Options": options, "Recommendation": choice}
    for between in (" ", " | ", "\n"):
        text = between.join(f"{name}: {text.rstrip('.')}." for name, text in parts.items())
        assert report_findings(text) == [], text


@pytest.mark.parametrize("parts", [BLOCKER, FAILURE, FINDING], ids=["blocker", "failure", "finding"])
def test_the_head_of_a_table_is_a_row_if_it_holds_a_part(parts: dict[str, str]) -> None:
    def check(head: str, missing: str = "") -> list[tuple[str, str]]:
        rows = [head, *(f"| {name} | {text} |" for name, text in parts.items() if name != missing)]
        rows = list(filter(None, rows))
        return findings_of(parts)("\n".join([rows[0], "|---|---|", *rows[1:]]))

    assert [check(""), check("| Part | Text |"), check("| Problem | Long text |")] == [[], [], []]
    for missing in parts:
        assert check("", missing) == [(CODES[missing], "error")]
        assert check(f"| {missing} | Notes |", missing) == [(CODES[missing], "error")]


@pytest.mark.parametrize("parts", [BLOCKER, FAILURE, FINDING], ids=["blocker", "failure", "finding"])
def test_a_text_with_fewer_than_two_labels_gets_one_warning(parts: dict[str, str]) -> None:
    name, text = next(iter(parts.items()))
    code = "blocker-description" if parts is BLOCKER else CODES[name]
    prose = " ".join(f"{text.rstrip('.')}." for text in parts.values())
    for unlabelled in (prose, f"{name}: {text}", prose.replace(". ", ".\n\n"), f"{prose} (Fix)", "Kaputt."):
        assert findings_of(parts)(unlabelled) == [(code, "warning")]


@pytest.mark.parametrize(
    ("text", "missing"),
    [
        ("Step: pytest\nOutside scope because: the fixture is broken on main", "Tried: a longer limit"),
        ("- Failed step: pytest\n- Outside the scope of this task: the fixture is broken", "- Tried: a longer limit"),
        ("Tried: a longer limit\nOutside my control, I fear: the mirror is down", "Step: pytest"),
    ],
)
def test_a_label_may_be_a_phrase_that_begins_with_its_word(text: str, missing: str) -> None:
    check = partial(report_findings, outcome="validation-failure")
    assert check(text) == [("validation-step-missing", "error")]
    assert check(f"{text}\n{missing}") == []


SYNONYMS = {
    "Type": ("Blocker type", "Kind"),
    "Description": ("What is blocking progress", "Blocker", "What's blocking", "Problem"),
    "Options": ("Options with trade-offs", "Alternatives considered", "Options (with trade-offs)"),
    "Recommendation": ("Recommended option", "My recommendation", "Preferred option"),
    "Impact": ("Impact if not resolved", "What happens if the blocker is not resolved", "Consequences"),
    "Step": ("Which validation step failed", "Failing step", "Failed validation step", "Step that failed"),
    "Tried": ("What the agent tried", "What I did", "Attempts"),
    "Outside": ("Why the failure is outside its scope", "Why it is out-of-scope", "Out of scope", "Out-of-scope"),
    "What": ("What's wrong", "Issue", "What is wrong", "What?"),
    "Why": ("Why it matters", "Reason", "Why this is wrong"),
    "Fix": ("How to fix it", "Suggestion", "Suggested change", "Suggested way to fix"),
}


@pytest.mark.parametrize(
    "text",
    [
        *("Add `<!-- x -->`.", "`<br>a`", "```\n<!-- x -->\n```", "a&nbsp;b", "<img src=a.png>", "<b>range(n)</b>"),
        *("`>=`", "```\n}\n```", "503."),
    ],
)
def test_a_part_of_code_or_with_tags_and_entities_has_a_text(text: str) -> None:
    assert review_findings(f"**What:** a\n\n**Why:** Criterion 1\n\n### Fix\n\n{text}") == []
    lines = [f"{name}: {value}" for name, value in {**BLOCKER, "Description": text}.items()]
    assert "```" in text or report_findings("\n".join(lines)) == []


@pytest.mark.parametrize("parts", [BLOCKER, FINDING])
@pytest.mark.parametrize("form", ["{}. {}: {}", "{}) {}: {}", "{}. **{}:** {}"])
def test_the_number_of_the_next_label_is_not_the_text_of_a_part(parts: dict[str, str], form: str) -> None:
    name = [*parts][1]
    text = " ".join(form.format(place, *each) for place, each in enumerate({**parts, name: ""}.items(), 1))
    assert (CODES[name], "error") in findings_of(parts)(text)


@pytest.mark.parametrize("part", SYNONYMS)
def test_synonyms_and_the_contracts_words_are_labels(part: str) -> None:
    parts = next(parts for parts in (BLOCKER, FAILURE, FINDING) if part in parts)
    for label in SYNONYMS[part]:
        lines = [f"{label if name == part else name}: {text}" for name, text in parts.items()]
        assert findings_of(parts)("\n".join(lines)) == [], label
        if parts is FAILURE:
            assert findings_of(parts)(". ".join(lines)) == [], label


HEAD = "Type: technical-constraint\nDescription: The library cannot read a stream twice.\n"
TAIL = """
Recommendation: Option 1, since callers stay as they are.
Impact: Uploads above 1 GB stay impossible.
"""

CHOICES = "Options:\n1. Retry: more code\n2. Buffer: more memory\n"
OPTIONS = [
    ("Options with trade-offs:\n", "{n}. {name}: {text}", "\n"),
    ("**Options (with trade-offs):**\n", "- {name}: {text}", "\n"),
    ("Options:\n", "- {name} \u2192 {text}", "\n"),
    ("Options:\n", "\u2013 {name}: {text}", "\n"),
    ("Options: ", "{letter}: {name}, with {text}.", " "),
    ("Options:\n\n", "### {name}\n\n| + | \u2212 |\n|-|-|\n| simple | {text} |", "\n\n"),
    ("Options:\n", "{name}: {text}", "\n"),
    ("Options:\n\n<ol>\n", "<li>{name}: {text}</li>", "\n"),
    ("Options: <ul>", "<li><b>{name}</b>, with {text}</li>", ""),
    ("Options:\n", "{n}. {name}\n   - Pros: simple\n   - Cons: {text}", "\n"),
    ("Options: ", "{n}. {name}: {text}", " "),
    ("Options: ", "{n}) {name} ({text})", ", "),
    ("Options: ", "({letter}) {name}, with {text}", " "),
    ("Options: ", "{name} ({text})", "; "),
    ("**Options:** ", "**{letter})** {name}, which is {text}", "; "),
    ("**Options:** ", "**{letter}:** {name}, which is {text}", " "),
    ("Options:\n\nOption | Trade-offs\n--- | ---\n", "{name} | {text}", "\n"),
    ("## Options\n\nOption | Pros | Cons\n:--|:--|:--\n", "{name} | simple | {text}", "\n"),
    ("Options\n\n", "{n}. {name}: {text}", "\n"),
    ("### Options\n\n", "#### {name}\n\nIt is {text}.\n", "\n"),
    ("### Options\n\n", "**{name}.** It is {text}.\n", "\n"),
    ("Options:\n\n| Option | Trade-offs |\n|---|---|\n", "| {name} | {text} |", "\n"),
    ("### Options\n\n| | Pros | Cons |\n|:-|-|-|\n", "| {name} | {text} | |", "\n"),
    ("| Option | Trade-offs |\n|---|---|\n", "| {name} | {text} |", "\n"),
    ("", "Option {letter}: {name}, which is {text}.", "\n"),
    ("", "Option {letter}: {name}, which is {text}.", " "),
    ("", "**Option {n}** \u2014 {name} ({text})", "\n"),
    ("Options:\n", "Plan {letter}: {name}\n- It is {text}", "\n"),
    ("Options:\n", "**`{name}`** is {text}, which costs a day.", "\n\n"),
    ("Options:\n", "**#{n}** {name}, which is {text}", "\n\n"),
    ("Options:\n", "*{name}* \u2014 it is {text}", "\n"),
    ("Options:\n", "`{name}`: {text}", "\n\n"),
    ("Options:\n", "Alternative {n}\n{name}: {text}.", "\n\n"),
    ("Options: ", "Option {letter} ({name}, with {text})", ", "),
    ("We can ", "({letter}) {name}, with {text}", ", or "),
    ("We can ", "({roman}) {name}, with {text}", ", or "),
    ("Options:\n", "({roman}) {name}: {text}", "\n"),
    ("Options:\n\n**Two ways were weighed:**\n\n", "- {name}: {text}", "\n"),
    ("- **Options**: ", "Plan {letter}: {name}\n  - It is {text}", "\n"),
]


@pytest.mark.parametrize(("label", "option", "between"), OPTIONS)
def test_options_count_in_any_layout(label: str, option: str, between: str) -> None:
    first = option.format(n=1, letter="a", roman="i", name="Retry", text="more code")
    second = option.format(n=2, letter="b", roman="ii", name="Buffer", text="more memory")
    assert report_findings(f"{HEAD}{label}{first}{between}{second}\n{TAIL}") == []
    assert report_findings(f"{HEAD}{label}{first}\n{TAIL}") == [("blocker-options", "error")]


@pytest.mark.parametrize(
    ("option", "between"),
    [
        ("Option {letter}: {name}, which is {text}.", "\n"),
        ("Option {letter}: {name}, which is {text}.", " "),
        ("## Option {n}\n\n{name}, which is {text}.", "\n\n"),
        ("**Option {n}** \u2014 {name}\n- Impact: {text}", "\n\n"),
        ("### Option {letter} - {name}\n\n**Description:** Try it.\n**Impact:** {text}", "\n\n"),
        ("{n}. **Option {letter}** (short): {name}, which is {text}", "\n"),
        ("- Alternative {n}\n  {name}: {text}", "\n"),
        ("| Option | Trade-offs |\n|-|-|\n| {name} | {text} |", "\n"),
        ("| Alternative | Effect |\n|-|-|\n| {name} | {text} |", "\n"),
        ("## Plan {letter}\n\n{name}, which is {text}.", "\n\n"),
        ("## Plan {n} \u2014 {name}\n\nIt is {text}.", "\n\n"),
        ("## Way {roman} \u2014 {name}\n\nIt is {text}.", "\n\n"),
        ("## 4.{n} Approach {letter}\n\n{name}, which is {text}.", "\n\n"),
        ("### Variant {n}\n\n#### Pros\n\n{name} is simple.\n\n#### Cons\n\nIt is {text}.", "\n\n"),
        ("**Plan {letter}:** {name}, which is {text}.", "\n"),
        ("**Solution {n}**\n{name}, which is {text}.", "\n\n"),
        ("__Plan {letter}__: {name}, which is {text}.", "\n"),
        ("Way {letter} (known): {name}, which is {text}.", "\n"),
        ("- **Plan {letter}** - {name}, which is {text}", "\n"),
        ("- **Proposal {n}:** {name}, which is {text}", "\n"),
    ],
)
@pytest.mark.parametrize("line", ["{}: {}", "## {}\n\n{}\n", "**{}:** {}\n"])
def test_options_with_titles_count_at_any_place(line: str, option: str, between: str) -> None:
    first = option.format(n=1, letter="A", roman="I", name="Retry", text="slow to do")
    second = option.format(n=2, letter="B", roman="II", name="Buffer", text="large to hold").removeprefix(
        first.partition("| Re")[0]
    )
    parts = {name: text for name, text in BLOCKER.items() if name != "Options"}

    def findings(place: int, options: str, **changed: str) -> list[tuple[str, str]]:
        lines = [line.format(name, text) for name, text in {**parts, **changed}.items()]
        return report_findings("\n".join([*lines[:place], f"\n{options}\n", *lines[place:]]))

    for place in (2, 3, 4):
        assert findings(place, first + between + second) == []
        assert findings(place, first) == [("blocker-options", "error")]
        assert findings(place, first, Recommendation="\nOption A: it is small.") == [("blocker-options", "error")]
        assert findings(place, first + between + second, Recommendation="\nOption B: it works.") == []
    assert findings(3, first + between + second, Recommendation="") == [("blocker-recommendation", "error")]
    assert findings(4, first + between + second, Impact="") == [("blocker-impact", "error")]


STEPS = "1. Start it, slowly\n2. Call it, quickly\n3. Stop it, late\n"


@pytest.mark.parametrize(
    ("other", "options"),
    [
        (STEPS, f"{STEPS}\n**Plan A:** wait, long\n**Plan B:** mock, big"),
        (f"Steps:\n\n{STEPS}", f"Steps:\n\n{STEPS}\nWe can (a) wait, long, or (b) mock, big"),
        ("1. Added a lock: no change\n2. Added a delay: slow", "1. Wait. Trade-off: long.\n2. Mock. Trade-off: big."),
        (
            "- Attempts:\n  1. A lock: slow\n  2. A delay: slow",
            "1. Wait\n   - **Pros**: easy\n2. Mock\n   - **Pros**: fast",
        ),
        ("1) a lock, slow\n2) a delay, slow", "We can:\n1) wait, which is long; 2) mock, which is big"),
        ("Step 1: Start it, slowly\nStep 2: Call it, quickly", "1. Plan A: wait, long\n2. Plan B: mock, big"),
        (
            "| Attempt | Result |\n|-|-|\n| a lock | no change |\n| a delay | hides it |",
            "| Way | Pros | Cons |\n|-|-|-|\n| wait | simple | long |\n| mock | fast | big |",
        ),
        (
            "| Attempt | Result |\n|-|-|\n| Attempt 1 | no change |\n| Attempt 2 | hides it |",
            "| Way | Effect |\n|-|-|\n| Plan A | a long wait |\n| Plan B | a big mock |",
        ),
        (
            "| | Linux | Windows |\n|-|-|-|\n| First run | slow | fast |\n| Next run | fast | fast |",
            "| | Plan A | Plan B |\n|-|-|-|\n| Time | long | short |\n| Size | small | big |",
        ),
        (
            "| Test | Result |\n|-|-|\n| a | failed, slowly |\n| b | failed, quickly |",
            "| | Option 1 | Option 2 |\n|-|-|-|\n| Description | wait | mock |\n| Pros | simple | fast |",
        ),
    ],
)
def test_a_list_or_a_table_in_another_part_has_options_if_it_says_so(other: str, options: str) -> None:
    titled = "".join(f"## {line.replace(': ', chr(10), 1)}\n" for line in HEAD.splitlines())
    for head in (f"{HEAD}\n", f"{titled}## What I saw\n"):
        assert report_findings(f"{head}{options}\n{TAIL}") == []
        assert report_findings(f"{head}{other}\n{TAIL}") == [("blocker-options", "error")]
        one = f"{head}Run 1: slow, failed\nRun 2: fast, failed\n\n{other}\n\nOptions:\n1. Wait: long\n{TAIL}"
        assert report_findings(one) == [("blocker-options", "error")]


@pytest.mark.parametrize(
    "options",
    [
        "1. Retry\n2. Buffer",
        "- Retry:\n- Buffer \u2192",
        "| | |\n|-|-|\n| A | |\n| B | |",
        "- A: <!-- x -->\n- B: &nbsp;",
        "- Option A: 0.01\n- Option B: 1,000",
        "1. utils.py\n2. Deno 2.1",
        "Option A: vendor. Option B: upgrade.",
        "1. **Vendor** \u2014 Trade-offs:\n2. **Upgrade** \u2014 TBD",
        "1. **Vendor** \u2014 Trade-offs: TBD\n2. Upgrade\n   - **Trade-offs:** n/a",
        "1. Vendor\n   - Pros:\n   - Cons:\n2. Upgrade\n   - **Pros:**\n   - **Cons:**",
        "1. Copy the whole library\n   - Pros:\n   - Cons:\n2. Upgrade the whole library\n   - Pros:\n   - Cons:",
        "#### Copy it\n\n##### Pros\n\n##### Cons\n\n#### Upgrade it\n\n##### Pros\n\n##### Cons",
        "1. **Copy it**\n   - Pros: none\n   - Cons: TBD\n2. **Upgrade it**\n   - Pros: n/a\n   - Cons:",
        "| Option | Pros | Cons |\n|-|-|-|\n| Copy the whole library | | |\n| Upgrade the whole library | | |",
        "### Vendor\n\n**Pros**\n\n**Cons**\n\n### Upgrade\n\n**Pros**\n\n**Cons**",
        "1. Vendor\n   - Description: copy it\n   - Trade-offs:\n2. Upgrade\n   - Trade-offs:",
        "| Option | Description | Trade-offs |\n|-|-|-|\n| A | vendor | |\n| B | upgrade | n/a |",
        "| # | Option | Pros | Cons |\n|-|-|-|-|\n| 1 | vendor | | |\n| 2 | upgrade | - | \u2026 |",
    ],
)
def test_an_option_that_is_only_a_name_lacks_its_trade_off(options: str) -> None:
    assert report_findings(f"{HEAD}Options:\n{options}\n{TAIL}") == [("blocker-options", "error")] * 2


@pytest.mark.parametrize("title", ["Trade-offs:\n", "### Trade-offs\n\n", "**Pros and cons**\n\n", "## Trade-offs\n\n"])
@pytest.mark.parametrize("names", ["1. {}\n2. {}", "- **{}**\n- **{}**", "Option A: {}\nOption B: {}"])
@pytest.mark.parametrize(
    "texts", ["- Retry: {}\n- Buffer: {}", "- **Retry** is {}.\n- **Buffer** is {}.", "1. {}\n2. {}"]
)
@pytest.mark.parametrize("part", ["Options", "Recommendation"])
def test_a_section_of_trade_offs_that_names_each_option_is_theirs(
    part: str, title: str, names: str, texts: str
) -> None:
    parts = {"Options": f"\n{names.format('Retry uploads', 'Buffer')}", "Recommendation": "Buffer, as it lasts."}

    def filled(section: str) -> dict[str, str]:
        return {**parts, part: f"{parts[part]}\n\n{title}{section}\n"}

    def findings(section: str) -> list[tuple[str, str]]:
        lines = {**BLOCKER, **filled(section)}
        return report_findings("\n".join(f"{name}: {text}" for name, text in lines.items()))

    whole, half = texts.format("slow", "big"), texts.format("slow", "big").partition("\n")[0]
    assert findings(whole) == refinement_findings(*filled(whole).values()) == []
    for section in (half, "- Retry\n- Buffer", "1. Retry\n2. Buffer", "It is slow.", "1. none\n2. TBD"):
        assert {code for code, _ in findings(section)} == {"blocker-options"}, section


@pytest.mark.parametrize("title", ["Trade-offs: ", "### Trade-offs\n\n", "**Pros and cons:** ", "## Trade-offs\n"])
def test_one_paragraph_may_have_the_trade_offs_of_all_options_or_of_the_option_around_it(title: str) -> None:
    options, paragraph = "1. Retry\n2. Buffer\n", f"{title}Retries are slow; buffers are big."
    apart, inside = f"{options}\n{paragraph}", options + indent(paragraph, "   ")
    assert report_findings(f"{HEAD}Options:\n{apart}\n{TAIL}") == [("blocker-options", "warning")] * 2
    assert refinement_findings(apart) == [("trade-off-missing", "warning")] * 2
    assert report_findings(f"{HEAD}Options:\n{inside}\n{TAIL}") == [("blocker-options", "error")]
    assert refinement_findings(inside) == [("trade-off-missing", "error")]


def test_a_trade_off_is_of_the_option_with_its_whole_name() -> None:
    options = "- Retry\n- Retry twice\n\nTrade-offs:\n- Retry twice: slow\n- Retry:"
    assert report_findings(f"{HEAD}Options:\n{options} cheap\n{TAIL}") == []
    assert report_findings(f"{HEAD}Options:\n{options}\n{TAIL}") == [("blocker-options", "error")]


@pytest.mark.parametrize(
    "none", ["(none other)", "n/a", "**None**", "none: nothing else is possible", "TBD", "None (yet)"]
)
@pytest.mark.parametrize(
    "lines", ["1. Retry: slow\n2. {}", "- Retry: slow\n- {}", "Option A: retry, slow\nOption B: {}"]
)
def test_a_word_such_as_none_names_no_option(lines: str, none: str) -> None:
    options = lines.format(none)
    assert report_findings(f"{HEAD}Options:\n{options}\n{TAIL}") == [("blocker-options", "error")]
    assert ("options-too-few", "error") in refinement_findings(options)


@pytest.mark.parametrize("text", ["None that I can see; a person has to decide.", "none so far; we wait for #7."])
def test_a_sentence_that_begins_with_none_lists_no_options(text: str) -> None:
    assert report_findings(f"{HEAD}Options: {text}\n{TAIL}") == [("blocker-options", "error")]


@pytest.mark.parametrize(
    "options",
    [
        "- A: round to 0.01\n- B: round to 0.05",
        "- A: small but lossy\n- B: big and whole",
        "Plan A: small but lossy\nPlan B: big and whole",
        "1. **Option A** - small but lossy\n2. **Option B** - whole one",
    ],
)
def test_words_behind_a_letter_may_be_a_trade_off(options: str) -> None:
    assert {severity for _, severity in report_findings(f"{HEAD}Options:\n{options}\n{TAIL}")} == {"warning"}


def test_the_columns_of_a_table_tell_what_its_cells_are() -> None:
    rows = "| Option | Trade-off |\n|-|-|\n| A | small |\n| B | large |"
    assert report_findings(f"{HEAD}Options:\n\n{rows}\n\n{TAIL}") == []


def test_labels_of_options_do_not_end_the_last_option() -> None:
    bold = "".join(f"**{line.replace(': ', ':** ', 1)}\n\n" for line in HEAD.splitlines())
    options = (
        "**Retry**\n\n- Description: again\n- Trade-offs: slow\n\n**Buffer**\n\n- Description: whole\n- Trade-offs: big"
    )
    end = "\n\n".join(f"**{line.replace(': ', ':** ', 1)}" for line in TAIL.strip().splitlines())
    assert report_findings(f"{bold}**Options:**\n\n{options}\n\n{end}\n") == []


PARTS_OF_OPTIONS = [
    "{name}\n- Pros: simple\n- Cons: slow\n",
    "{name}:\n\n1. Benefits: simple; quick\n2. Costs: slow\n\n",
    "{name}\n  - \u2705 Pros:\n    - simple\n    - known\n  - \u274c Cons:\n    - slow\n",
    "{name}\nPros: simple\nCons: slow\n",
    "Option {n}: {name}\n- Pros: simple\n- Cons: slow\n\n",
    "Option {n}: {name}\n\n- Summary: again\n- Impact: none\n\n",
    "- Option {n}: {name}\n- Advantages: simple\n- Disadvantages: slow\n",
    "{n}. {name}\n- Pros: simple\n- Cons: slow\n",
    "{n}. {name}\n\n**Pros**\n- simple\n- known\n\n**Cons**\n- slow\n\n",
    "**{name}**\n\n- **Pros**: simple\n- **Cons**: slow\n\n",
    "**{name}**\n\n**Pros:** simple\n\n**Cons:** slow\n\n",
    "**Option {n}: {name}**\n\n**Pros**\n\n- simple\n- known\n\n**Cons**\n\n- slow\n\n",
    "### {name}\n\n### Pros and cons\n\nIt is simple, but slow.\n\n",
    "{name} (pros: simple; cons: slow)\n",
    "<ul>\n<li>{name}\n<ul>\n<li>Pros: simple</li>\n<li>Cons: slow</li>\n</ul>\n</li>\n</ul>\n",
    "<details><summary>{name}</summary>\n\n- Trade-offs: simple, but slow\n- Effort: a day\n\n</details>\n\n",
]


@pytest.mark.parametrize("option", PARTS_OF_OPTIONS)
def test_the_parts_of_an_option_are_not_options(option: str) -> None:
    one = option.format(n=1, name="Retry")
    assert report_findings(f"{HEAD}Options:\n{one}{TAIL}") == [("blocker-options", "error")]
    assert refinement_findings(one) == [("options-too-few", "error")]
    two = one + option.format(n=2, name="Buffer")
    assert report_findings(f"{HEAD}Options:\n{two}{TAIL}") == refinement_findings(two) == []


@pytest.mark.parametrize("rows", ["| Pros | {} |\n| Cons | {} |", "| Description | {} |\n| **Trade-offs** | {} |"])
@pytest.mark.parametrize("corner", ["", "Aspect", "Option"])
def test_the_columns_of_a_table_are_options_if_its_rows_are_their_parts(corner: str, rows: str) -> None:
    def table(*names: str) -> str:
        cells = [" | ".join(f"{text} {name}" for name in names) for text in ("simple", "slow")]
        return f"| {corner} | {' | '.join(names)} |\n|-{'|-' * len(names)}|\n{rows.format(*cells)}\n"

    one, two = table("Retry"), table("Retry", "Buffer")
    assert report_findings(f"{HEAD}Options:\n\n{one}{TAIL}") == [("blocker-options", "error")]
    assert refinement_findings(one) == [("options-too-few", "error")]
    assert report_findings(f"{HEAD}Options:\n\n{two}{TAIL}") == refinement_findings(two) == []


def test_a_table_without_the_names_of_options_lists_none() -> None:
    for table in ("| Pros | Cons |\n|-|-|\n| simple | slow |\n| known | big |\n", "| Option 1 |\n|-|\n| slow |\n"):
        assert report_findings(f"{HEAD}Options:\n\n{table}{TAIL}") == [("blocker-options", "error")]
        assert ("options-too-few", "error") in refinement_findings(table)
    columns = "| Criterion | Option A | Option B |\n|-|-|-|\n| Speed | slow | fast |\n| Size | small | |\n"
    assert report_findings(f"{HEAD}Options:\n\n{columns}{TAIL}") == refinement_findings(columns) == []
    one = "| Criterion | Option A |\n|-|-|\n| Speed | slow |\n| Size | small |\n"
    assert refinement_findings(one) == [("options-too-few", "error")]
    for corner in ("Criterion", ""):
        row = f"| {corner} | UTF-8 | UTF-16 |\n|-|-|-|\n| Size | small | double |\n"
        assert report_findings(f"{HEAD}Options:\n\n{row}{TAIL}") == refinement_findings(row) == []
    for lone in ("| # | Option | Speed |\n|-|-|-|\n| 1 | A | slow |\n", "| | Pros | Cons |\n|-|-|-|\n| A | a | b |\n"):
        assert refinement_findings(lone) == [("options-too-few", "error")]


UNUSUAL: dict[str, tuple[str, str, str]] = {
    "more words": ("Step: a\nTried: b\nWhy the cause is outside the task: c", "validation-step-missing", "warning"),
    "an indented list": (
        f"{HEAD}Options:\n    - wait, which costs a day\n    - mock it, which hides faults\n{TAIL}",
        "",
        "",
    ),
    "a sentence above plain lines": (
        f"{HEAD}Options: Two ways were weighed.\n\nRetry: more code\n\nBuffer: more memory\n{TAIL}",
        "",
        "",
    ),
    "remarks in one line": (
        f"{HEAD}Options: wait (costs a day) or mock it (hides faults).{TAIL}",
        "blocker-options",
        "warning",
    ),
    "semicolons in sentences": (
        f"{HEAD}Options:\n\nWe wait. It is safe, but slow; it slips.\n\nWe mock it. It is easy; faults hide.{TAIL}",
        "blocker-options",
        "warning",
    ),
    "semicolons in brackets": (
        f"{HEAD}Options: wait (simple; slow), mock it (fast; risky).{TAIL}",
        "blocker-options",
        "warning",
    ),
    "a semicolon in front of code": (
        f"{HEAD}Options: `wait` costs us a day; `mock` hides faults.{TAIL}",
        "blocker-options",
        "warning",
    ),
    "options that only a reader tells apart": (
        f"{HEAD}Options: either retry, which is more code, or buffer, which needs memory.{TAIL}",
        "blocker-options",
        "warning",
    ),
    "a description behind the type": (
        f"Type: technical-constraint. A stream cannot be read twice.\n{CHOICES}{TAIL}",
        "",
        "",
    ),
    "a recommended option": (
        f"{HEAD}Options:\n1. Retry (recommended): more code\n2. Buffer: more memory\nImpact: Uploads stay small.",
        "",
        "",
    ),
}


@pytest.mark.parametrize(("text", "code", "severity"), UNUSUAL.values(), ids=UNUSUAL)
def test_an_unusual_layout_is_a_warning_at_most(text: str, code: str, severity: str) -> None:
    found = report_findings(text, outcome="validation-failure" if text.startswith("Step") else "blocked")
    assert found == ([(code, severity)] if code else [])


@pytest.mark.parametrize(
    ("lead", "is_description"),
    [
        ("The mirror is down.", True),
        ("Progress: stopped, as the mirror is down.", True),
        ("## Summary\n\nThe mirror\nis down", True),
        ("- I cannot go on: the mirror is down", True),
        ("\u30df\u30e9\u30fc\u304c\u505c\u6b62\u3057\u3066\u3044\u308b", True),
        ("| Field | Value |\n|---|---|\n| Summary | The mirror is down |", True),
        ("**The mirror is down.**", True),
        ("# Blocker\n\nThe mirror is down", True),
        ("## Problem: the mirror\n\n## Next steps\n", True),
        ("Blocked.", False),
        ("# Description: the mirror is down\n", True),
        ("# Blocked: #31 Add a circuit breaker\n", False),
        ("Blocked: #31 Add a circuit breaker\n=====\n", False),
        ("## Summary\n", False),
        ("A summary of the run\n-----\n", False),
        ("Outcome: blocked\nWork item: #31 Add a circuit breaker", False),
        ("**Work item number:** #31\n**Add a circuit breaker**", False),
        ("| Name of the field | Value of the field |\n|---|---|\n| Outcome | blocked |\n| Work item | #31 |", False),
    ],
)
def test_a_paragraph_beside_the_labels_describes_and_a_title_does_not(lead: str, is_description: bool) -> None:
    lines = [f"{name}: {value}" for name, value in BLOCKER.items() if name != "Description"]
    for text in ((lead, "", *lines), (lines[0], lead, "", *lines[1:]))[: 1 if lead[0] in "B#" else 2]:
        assert report_findings("\n".join(text)) == ([] if is_description else [("blocker-description", "error")])


@pytest.mark.parametrize(
    "entry",
    ["1. Use the reference: slow", "- Split the file: slow", "- Open-source: slow", "1. Retry\n   - Impact: slow"],
)
def test_a_label_in_an_option_belongs_to_the_option(entry: str) -> None:
    options = f"Options:\n{entry}\n{entry[:2]} Buffer: more memory"
    assert report_findings(HEAD + options + TAIL) == []
    without_impact = HEAD + options + TAIL.splitlines()[1].join("\n\n")
    assert report_findings(without_impact) == [("blocker-impact", "error")]


@pytest.mark.parametrize(
    ("choice", "is_one"), [("1.", True), ("\n2)\n", True), ("2", True), ("3.", False), ("0.", False)]
)
def test_the_number_of_an_option_recommends_it(choice: str, is_one: bool) -> None:
    lines = [f"{name}: {value}" for name, value in {**BLOCKER, "Recommendation": choice}.items()]
    assert report_findings("\n".join(lines)) == ([] if is_one else [("blocker-recommendation", "error")])


@pytest.mark.parametrize(
    "options",
    [
        "#### Change the description\n\nClear, but slow.\n\n#### Guess a type\n\nFast, but wrong.",
        "#### Guess\n\nFast, but wrong.\n\n#### Option B: Change its type\n\nClear, but slow.",
        "- two were weighed\n\n#### Guess\n\nFast, but wrong.\n\n#### Ask\n\nClear, but slow.",
    ],
)
def test_headings_below_that_of_the_options_are_options(options: str) -> None:
    def findings(options: str, level: str = "###") -> list[tuple[str, str]]:
        parts = {**BLOCKER, "Options": options}
        levels = {"Options": "###", "Recommendation": level, "Impact": level}
        return report_findings("\n\n".join(f"{levels.get(name, '###')} {name}\n\n{parts[name]}" for name in parts))

    assert findings(options) == findings(options, "####") == []
    assert findings(options[options.rindex("####") :]) == [("blocker-options", "error")]


def test_labels_below_the_heading_of_an_option_belong_to_the_option() -> None:
    option = "### Option {}\n\n**Description:** Retry it.\n**Impact:** slow\n\n"
    options = f"## Options\n\n{option.format('A')}{option.format('B')}"
    rest = "## Recommendation\n\nA.\n\n"
    assert report_findings(f"{HEAD}{options}{rest}## Impact\n\nUploads stay small.") == []
    assert report_findings(f"{HEAD}{options}{rest}") == [("blocker-impact", "error")]
    assert report_findings(f"{HEAD}{options}**Impact:** Uploads stay small.\n\n{rest}") == []


@pytest.mark.parametrize("label", ["{}: {}", "**{}:** {}", "**{}**\n{}"])
@pytest.mark.parametrize(
    "option", ["### Option {}: {}\n{}", "### {}. {}\n**Trade-offs:** {}", "### {}) {}\n- Pros: {}"]
)
def test_a_label_behind_the_headings_of_the_options_ends_them(option: str, label: str) -> None:
    first, second = option.format("1", "Retry", "more code"), option.format("2", "Buffer", "more memory")
    choice, impact = label.format("Recommendation", "Retry, as it is in scope."), "## Impact\n\nUploads stay small."
    assert report_findings("\n\n".join((HEAD, "## Options", first, second, choice, impact))) == []
    in_option = report_findings("\n\n".join((HEAD, "## Options", first, choice, second, impact)))
    assert in_option == [("blocker-recommendation", "error")]


@pytest.mark.parametrize(
    "text",
    [
        "not a spec-gap",
        "No spec-gap",
        "It isn't a spec-gap",
        "spec-gap — spec-ambiguity",
        "spec-gap (or technical constraint)",
        "technical_constraint",
        "spec_gap | technical-constraint",
        "technical-constraint\nType: spec-gap",
        "\n- technical-constraint\n- `external-dependency`",
        "technical-constraint\n\n## Blocker 2\n\n**Type:** spec-gap",
    ],
)
def test_a_blocker_has_one_type_that_its_author_affirms(text: str) -> None:
    lines = [f"{name}: {value}" for name, value in {**BLOCKER, "Type": text}.items()]
    assert report_findings("\n".join(lines)) == [("blocker-type-unknown", "error")]


@pytest.mark.parametrize(
    "text",
    [
        "Technical constraint",
        "`technical-constraint`",
        "A technical constraint, I think.",
        "technical-constraint (caused by an external-dependency)",
        "`technical-constraint` (not a spec-gap)",
        "external-dependency\n\nTechnical constraint of the host, as said.",
    ],
)
def test_a_blocker_type_is_one_of_six_names(text: str) -> None:
    lines = [f"{name}: {value}" for name, value in {**BLOCKER, "Type": text}.items()]
    assert report_findings("\n".join(lines)) == []
    assert report_findings("\n".join([text, *lines[1:]])) == []


SPEC = HEAD.replace("technical-constraint", "spec-gap")
TYPES = [
    "spec-ambiguity",
    "spec-contradiction",
    "spec-gap",
    "external-dependency",
    "technical-constraint",
    "debugging-limit",
]


@pytest.mark.parametrize("name", TYPES)
def test_each_blocker_type_is_known_and_those_of_specifications_need_a_reference(name: str) -> None:
    is_of_spec = name.startswith("spec-")
    assert report_findings(f"{SPEC.replace('spec-gap', name)}{CHOICES}{TAIL}") == (
        [("blocker-spec-reference", "error")] if is_of_spec else []
    )
    assert [*BLOCKERS] == TYPES


REFERENCES = [
    'Spec reference: docs/specs/a.md, section "Reading": "A stream is read."',
    'Spec: docs/specs/a.md\nSection: Reading\nQuote: "A stream is read."',
    "Spec reference:\n- File: `docs/specs/a.md`\n- Section: Reading\n- Quote: A stream is read.",
    "**Spec reference** — `docs/specs/a.md` § Reading\n\n> A stream is read.\n",
    "### Spec reference\n\ndocs/specs/a.md#reading says “A stream is read.”\n",
    'Reference: docs/specs/a.md, Reading: "A stream is read."',
    'See docs/specs/a.md (section Reading), which says: "A stream is read."',
    'Spec: docs/specs/a.md, line 12 (Reading)\nQuote: "A stream is read."',
    'Spec: `docs/specs/a.md`, lines 12-14, Reading\nQuote: "A stream is read."',
    'Spec: docs/specs/a.md (p. 3, Reading)\nQuote: "A stream is read."',
    'Spec reference: docs/specs/a.md: "A stream is read."\nSection: Reading',
    'Spec reference: docs/specs/a.md: "A stream is read." **Section(s)**: Reading',
    "Spec reference: docs/specs/a.md, section Reading\n\n```text\nA stream is read.\n```\n",
    "### Spec reference\n\ndocs/specs/a.md#reading says:\n\n~~~~\n  A stream\n\n  is read.\n~~~~\n",
    "Spec reference (file, section, quote): docs/specs/a.md → Reading → 'A stream is read.'",
    'Spec reference: `docs/specs/a.md` \u203a Reading \u203a "A stream is read."',
    "| Spec | docs/specs/a.md |\n| Section | Reading |\n| Quote | A stream is read. |",
    'Spec reference: docs/specs/a.md, ## Reading: "A stream is read."',
    'Spec reference: docs/specs/a.md, heading reading: "A stream is read."',
    'Spec reference: docs/specs/a.md, subsection Reading: "A stream is read."',
    'Spec reference: docs/specs/a.md, "Reading": "A stream is read."',
    'Spec reference: "docs/specs/a.md", the "Reading" section: "A stream is read."',
    'Spec reference:\n\n- docs/specs/a.md\n- Reading\n- "A stream is read."',
    "Spec reference:\n\n- `docs/specs/a.md`\n- ## Reading\n- > A stream is read.\n",
    "Spec reference: docs/specs/a.md, section Reading. Quote: A stream is read.",
    "Spec reference: docs/specs/a.md (Reading). Excerpt: A stream is read.",
    'Spec reference: file path, section name, and relevant quote: docs/specs/a.md, section Reading, "A stream."',
    'Details: docs/specs/a.md is silent.\nSection: Reading\nQuote: "A stream is read."',
    "Spec: docs/specs/a.md\nSections:\n- Reading\n- Size\nQuote: A stream is read.",
    'Spec: docs/specs/a.md\nSection 2.1: "A stream is read."',
    'Spec: docs/specs/a.md\nSection: Reading \u2014 "A stream is read"',
    'Spec: docs/specs/a.md\nSection: 2.1 "Reading"\nQuote: "A stream is read"',
    'Spec reference: `docs/specs/a.md`, sections "Reading" and "Size": "A stream is read"',
    "Spec reference: `docs/specs/a.md`, \u00a73.2, \u201cA stream is read.\u201d",
    'Spec reference: docs/specs/a.md, section "Reading", "A stream is read."',
    'Spec reference: docs/specs/a.md, section 2.1, "A stream is read"',
    'Spec reference: docs/specs/a.md, section 2.1 "Reading"\n\n> A stream is read.\n',
    "Spec: docs/specs/a.md, the Reading section\nQuote: A stream is read.",
    "Spec reference: docs/specs/a.md, section Reading:\n> Type: a stream is read",
    'Spec: docs/specs/a.md\nSection: No limits (new)\nQuote: "No limit."',
    "### Spec reference\n\ndocs/specs/a.md, section Reading\n\n> Options: a stream is read\n> Impact: none",
    'Spec reference: `specs/api.yaml`, `paths./users.get`: "A stream is read."',
    'Spec reference: `docs/specs/a.md` / Reading / "A stream is read."',
    'Spec reference: `docs/specs/a.md`, in Reading: "A stream is read."',
    'Spec reference: `docs/specs/a.md` `Reading` "A stream is read."',
    'Spec reference: `docs/specs/a.md` **Reading**: "A stream is read."',
    'Spec reference: `docs/specs/a.md`, section "Reading": `A stream is read.`',
    "Spec reference: `docs/specs/a.md`, `Reading`: `A stream is read.`",
    "Spec reference: `docs/specs/a.md` \u00a7 Reading: *A stream is read.*",
    "Spec reference: docs/specs/a.md, section Reading \u2014 _A stream is read._",
    "Spec reference: docs/specs/a.md, section Reading\n\n`A stream is read.`\n",
    "### Spec reference\n\ndocs/specs/a.md, section Reading:\n\n    A stream is read.\n",
]


@pytest.mark.parametrize("text", REFERENCES)
def test_a_spec_reference_passes_in_any_layout(text: str) -> None:
    assert report_findings(f"{SPEC}{text}\n{CHOICES}{TAIL}") == []


@pytest.mark.parametrize(
    "text",
    [
        "",
        "Spec reference: the spec",
        "Spec reference: docs/specs/a.md",
        'Spec reference: section Reading: "A stream is read."',
        "Spec reference: docs/specs/a.md, section Reading",
        'Spec reference: docs/specs/a.md, section "Reading"',
        'Spec reference: docs/specs/a.md, "Reading" section',
        'Spec reference: docs/specs/a.md, the "Reading" and "Size" sections',
        'Spec reference: docs/specs/a.md, section 2.1 "Roles and rights of members"',
        'Spec reference: docs/specs/a.md \u00a7 2.1 "Roles and rights of members"',
        'Spec reference: docs/specs/a.md, sections "Reading" and "Size"',
        "Spec reference: docs/specs/a.md, sections \u201cReading\u201d,\n\u201cSize\u201d / \u201cEnd\u201d",
        'Spec: docs/specs/a.md\nSection: 2.1 "Roles and rights of members"',
        'Spec: docs/specs/a.md\nSection: 2.1 "Roles and rights of members"\nQuote: none',
        'Spec: docs/specs/a.md\nSection: 2.1 "Roles." and "Rights"\nQuote:',
        'Spec: docs/specs/a.md\nSections:\n- "Reading"\n- 2 "Size"',
        'Spec: docs/specs/a.md\n- Sections:\n  1. "Reading"\n  2. "Size"',
        '| Spec | docs/specs/a.md |\n| Section | 2.1 "Roles and rights" |',
        "Spec reference:\n\n| File | Section | Quote |\n|-|-|-|\n| docs/specs/a.md | Reading | |",
        'Spec reference:\n\n| File | Section | Quote |\n|-|-|-|\n| docs/specs/a.md | \u2014 | "A stream is read." |',
        'Spec reference: File: docs/specs/a.md; Quote: "A stream is read."',
        'Spec reference: File: docs/specs/a.md; Section: ; Quote: "A stream is read."',
        'Spec reference: docs/specs/a.md, section: "A stream is read."',
        'Spec reference: "docs/specs/a.md", section Reading',
        'Spec reference: docs/specs/a.md, section Reading: "None"',
        "Spec reference: docs/specs/a.md, section Reading. Quote: TBD",
        "Spec reference: docs/specs/a.md, section Reading\n\n```text\n\n```\n",
        "Spec reference: docs/specs/a.md, section Reading\n\n```\nTBD\n```\n",
        'Spec reference: docs/specs/a.md, section Reading <!-- "A stream is read." -->',
        "Spec: docs/specs/a.md\nSection: Reading\nQuote: None",
        "Spec: docs/specs/a.md\nSection: Reading\nQuote: N/A (the spec is silent)",
        "Spec: docs/specs/a.md\nSection: Reading\nQuote: (none; the spec is silent)",
        "Spec: docs/specs/a.md\nSection: Reading\nQuote: no relevant text",
        "Spec reference: docs/specs/a.md, section Reading. Quote: not specified",
        'Spec: docs/specs/a.md\nSection: None (a new one is needed)\nQuote: "A stream is read."',
        'Spec: docs/specs/a.md\nSection: None\nQuote: "A stream is read."',
        "Spec: docs/specs/<name>.md\nSection: <relevant sections>\nQuote: <relevant text from spec>",
        'Spec reference: file path, section name, and relevant quote.\nSpec: docs/specs/a.md\nQuote: "A stream."',
        'Spec reference: File path, section name, and relevant quote: docs/specs/a.md, "A stream is read."',
        'Spec reference: docs/specs/a.md, section Reading\nBlocker: "Stream" may mean a file.',
        'Spec reference: section Reading: "A stream is read."\nDetails: src/a.py cannot be written.',
        'Spec reference: docs/specs/a.md: "A stream is read."\nProblem: Section Reading is unclear.',
        'Spec: docs/specs/a.md, README.md\nQuote: "A stream is read."',
        'Spec:\n- docs/specs/a.md\n- `docs/specs/b.md`\n- "A stream is read."',
        'Spec: docs/specs/a.md (#31)\nQuote: "A stream is read."',
        'Spec: docs/specs/a.md, line 12\nQuote: "A stream is read."',
        'Spec: docs/specs/a.md, line 12 (#31)\nQuote: "A stream is read."',
        'Spec: docs/specs/a.md\nSection: unknown\nQuote: "A stream is read."',
        'Spec reference: `docs/specs/a.md:42`: "A stream is read."',
        'Spec reference: docs/specs/a.md:10-20: "A stream is read."',
        'Spec reference: `docs/specs/a.md#L12`: "A stream is read."',
        'Spec reference: docs/specs/a.md, Line 42: "A stream is read."',
        'Spec reference: docs/specs/a.md (L10-L20): "A stream is read."',
        'Spec: docs/specs/a.md\nSection: lines 10-20\nQuote: "A stream is read."',
        'Spec reference: `docs/specs/a.md`, section TBD: "A stream is read."',
        'Spec reference: docs/specs/a.md, section unknown: "A stream is read."',
        'Spec reference: docs/specs/a.md, no section: "A stream is read."',
        "Spec reference: docs/specs/a.md, section Reading\nQuote: (no quote, the spec is silent)",
    ],
)
def test_a_spec_reference_with_a_missing_part_is_an_error(text: str) -> None:
    assert report_findings(f"{SPEC}{text}\n{CHOICES}{TAIL}") == [("blocker-spec-reference", "error")]


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
        "a\n- Pros: ",
        "Plan A: Pros:\n",
        "1. Pros (",
        "## 4.1 Plan A\n",
        "Pros/",
        "Spec: a.md-.md-",
        "the A ",
        "(What) ",
        "[Why] a\n",
        "Spec: `a`\n```\n",
        "> Fix: a\n\n",
        "- 1. ",
        "<b>Fix</b>",
        "**a: ",
        "a |-\n",
        "#\n",
        "\u00a7 2, ",
        'Section: "a" ',
        '"a", ',
        "Section:\n- ",
    ],
)
def test_a_hostile_summary_does_not_hold_up_the_check(unit: str) -> None:
    def check(size: int) -> None:
        text = unit * (size // len(unit))
        report_findings(text)
        review_findings(text)

    assert not grows_too_fast(check, 20_000, noticed=0.05)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["Retry {} times", "Retry" + " it" * 30 + " {}"])
def test_many_trade_offs_in_a_section_of_their_own_do_not_hold_up_the_check(name: str) -> None:
    def check(size: int) -> None:
        names = [name.format(number) for number in range(size)]
        texts = "".join(f"- {each}: slow\n" for each in names)
        listed = "".join(f"- {each}\n" for each in names)
        report_findings(f"Options:\n{listed}\nTrade-offs:\n{texts}")

    assert not grows_too_fast(check, 400, noticed=0.05)
