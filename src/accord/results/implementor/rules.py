"""The rules of implementor results: a patch when there is something to apply, and a summary that can be acted on.

Source: workflow contracts, "ImplementorResult" and "Summary Content by Outcome".
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from accord.core.findings import Finding
from accord.text.labelled import labelled_parts
from accord.text.markdown import blank_code

if TYPE_CHECKING:
    from collections.abc import Iterator

    from accord.results.models import ImplementorResult

SPEC_BLOCKERS = ("spec-ambiguity", "spec-contradiction", "spec-gap")
BLOCKERS = (*SPEC_BLOCKERS, "external-dependency", "technical-constraint", "debugging-limit")

_LABELS = {
    "type": "type",
    "blocker type": "type",
    "blocker": "description",
    "description": "description",
    "problem": "description",
    "spec reference": "spec",
    "spec": "spec",
    "reference": "spec",
    "section": "section",
    "section(s)": "section",
    "sections": "section",
    "quote": "quote",
    "options": "options",
    "recommendation": "recommendation",
    "impact": "impact",
}
_TYPE_WORD = re.compile(r"[a-z]+(?:-[a-z]+)+")
_ANY_TYPE = re.compile(r"(?<![\w-])(?:" + "|".join(BLOCKERS) + r")(?![\w-])", re.IGNORECASE)
_OPTION = re.compile(
    r"^(?P<indent>[ \t]*)(?P<mark>[-*+](?=[ \t])|\d{1,2}[.)]|[A-Ha-h][.)]|#{2,6}|(?=[*_]*option\b))[ \t]*(?=\S)",
    re.IGNORECASE | re.MULTILINE,
)
_UNSPACED = re.compile(r"[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff]{2}")
"""Two letters of a script that puts no space between words: about a word."""
_PATH = re.compile(r"[\w.-]+/[\w./-]+|\b[\w-]+\.(?:md|mdx|rst|txt|adoc|ya?ml|json)\b")
_QUOTED = re.compile(
    r"[\"\u201c-\u201f\u00ab\u00bb\u300c\u300e][^\"\u201c-\u201f\u00ab\u00bb\u300d\u300f]{3,}"
    r"[\"\u201c-\u201f\u00ab\u00bb\u300d\u300f]|(?<!\w)['\u2018\u201a\u2039][^\n]{3,}['\u2018\u2019\u203a](?!\w)"
    r"|^[ \t]*>[ \t]*\S",
    re.MULTILINE,
)
_SECTION = re.compile(r"\u00a7|(?<!\w)sections?\b|#[\w-]+", re.IGNORECASE)
_VALIDATION = {
    **dict.fromkeys(("step", "failing step", "failed step", "validation step", "failed"), "step"),
    **dict.fromkeys(("tried", "attempts", "attempted", "what was tried", "what i tried"), "tried"),
    **dict.fromkeys(("outside", "why outside", "why outside scope", "outside scope", "out of scope"), "outside"),
}
_STEP = re.compile(
    r"\b(?:step|validation|(?:type[ -]?)?check(?:s|er|ing)?|tests?|suite|lint(?:er|ing)?|builds?|typecheck|compil\w+"
    r"|pipeline|job|commands?|install\w*|format\w*)\b",
    re.IGNORECASE,
)
_FAILED = re.compile(
    r"\b(?:fail\w*|broke\w*|error\w*|red|times? out|timed out|exceed\w*|crash\w*|abort\w*|(?:could|can|did|does) ?not"
    r"|cannot|never (?:ends?|passe[sd]))\b",
    re.IGNORECASE,
)
_TRIED = re.compile(
    r"\b(?:tried|try|tries|attempt\w*|retried|reverted|re-?ran|after \w+ (?:runs|fixes))\b", re.IGNORECASE
)
_OUTSIDE = re.compile(
    r"\b(?:outside|out of (?:\w+ ){0,2}(?:scope|control|reach)|unrelated|pre-?existing|not part of|beyond|not caused by"
    r"|independent of|debugging.limit|upstream|environment)\b",
    re.IGNORECASE,
)
_FEWEST_OPTION_WORDS = 4


def implementor_findings(result: ImplementorResult) -> list[Finding]:
    """Check the patch against the outcome, and the summary for what its two readers need."""
    found = [*_patch_findings(result)]
    if not result.summary.strip():
        found.append(Finding("summary-empty", "The summary is empty. Say what was done, or what stops it.", "/summary"))
    elif result.outcome == "blocked":
        found += _blocked_findings(result.summary)
    elif result.outcome == "validation-failure":
        found += _validation_findings(result.summary)
    return found


def _patch_findings(result: ImplementorResult) -> Iterator[Finding]:
    has_patch = bool(result.patch and result.patch.strip())
    if result.outcome == "completed" and not has_patch:
        message = 'A completed result carries its patch. Let accord take it from the work tree, with "accord patch".'
        yield Finding("patch-missing", message, "/patch")
    if result.outcome != "completed" and result.patch is not None:
        message = f'A result that is "{result.outcome}" carries no patch. Set it to null.'
        yield Finding("patch-unexpected", message, "/patch")


def _blocked_findings(summary: str) -> Iterator[Finding]:
    parts = labelled_parts(summary, _LABELS)
    blocker = _blocker_type(summary, parts.get("type"))
    if blocker is None:
        message = f'The summary names no blocker type. Add a line "Type: …" with one of {", ".join(BLOCKERS)}.'
        yield Finding("blocker-type-missing", message, "/summary")
    elif blocker not in BLOCKERS:
        message = f'"{blocker[:60]}" is no blocker type. The types are {", ".join(BLOCKERS)}.'
        yield Finding("blocker-type-unknown", message, "/summary")
    if not _describes(summary, parts):
        message = 'The summary does not describe the blocker. Add a line "Description: …" saying what stops the work.'
        yield Finding("blocker-description", message, "/summary")
    yield from _option_findings(parts.get("options", ""))
    if not parts.get("recommendation", "").strip():
        message = 'The summary recommends nothing. Add "Recommendation: …" saying which option, and why.'
        yield Finding("blocker-recommendation", message, "/summary")
    if not parts.get("impact", "").strip():
        message = 'The summary names no impact. Add "Impact: …" saying what happens if it stays unresolved.'
        yield Finding("blocker-impact", message, "/summary")
    if blocker in SPEC_BLOCKERS:
        yield from _spec_findings(summary, parts)


def _blocker_type(summary: str, labelled: str | None) -> str | None:
    """Return the type that the label names, else one that the text mentions; None when it says nothing."""
    if labelled:
        first = labelled.strip().split("\n", 1)[0].strip("`*_\"'. ").lower()
        word = _TYPE_WORD.match(first)
        return word.group() if word else first
    mentioned = _ANY_TYPE.search(blank_code(summary))
    return mentioned.group().lower() if mentioned else None


def _describes(summary: str, parts: dict[str, str]) -> bool:
    """A description may be labelled, or be the prose before the first label or after the type."""
    if parts.get("description", "").strip():
        return True
    labelled = sum(len(part) for part in parts.values())
    after_type = parts.get("type", "").strip().partition("\n")[2]
    first_label = min((summary.find(part) for part in parts.values() if part), default=len(summary))
    before = summary[:first_label].partition(":")[0] if labelled else summary
    return len(after_type.split()) >= 3 or len(before.split()) >= 5


def _options(text: str) -> list[str]:
    """Return each option with all that is said of it, be that in a list below it or in paragraphs."""
    text = blank_code(text)
    marks = list(_OPTION.finditer(text))
    begun = [mark for mark in marks if _is_beside(mark, marks[0])]
    ends = [*(mark.start() for mark in begun[1:]), len(text)]
    return [text[mark.end() : end].strip() for mark, end in zip(begun, ends, strict=False)]


def _is_beside(mark: re.Match[str], first: re.Match[str]) -> bool:
    """Tell whether a mark begins an entry of the same list as the first one, or is a heading of its level."""
    depth, first_depth = (len(each["indent"].expandtabs(4)) for each in (mark, first))
    return _kind(mark["mark"]) == _kind(first["mark"]) and depth < first_depth + 2


def _kind(mark: str) -> str:
    if mark.startswith("#"):
        return mark
    return "number" if mark[:1].isdigit() else "letter" if mark[:1].isalpha() else "bullet" if mark else "word"


def _words(text: str) -> int:
    return sum(max(1, len(_UNSPACED.findall(word))) for word in text.split())


def _option_findings(options: str) -> Iterator[Finding]:
    found = _options(options)
    if len(found) < 2:
        message = f'The summary offers {len(found)} of at least two options. List them under "Options:", one a line.'
        yield Finding("blocker-options", message, "/summary")
    for option in found:
        if _words(option) < _FEWEST_OPTION_WORDS:
            message = (
                f'The option "{option.splitlines()[0][:60]}" names no trade-off. Say what it costs and what it gives.'
            )
            yield Finding("blocker-options", message, "/summary")


def _spec_findings(summary: str, parts: dict[str, str]) -> Iterator[Finding]:
    text = "\n".join(parts.get(name, "") for name in ("spec", "section", "quote", "description")) or summary
    missing = []
    if not _PATH.search(text):
        missing.append("the file's path")
    if not parts.get("section") and not _SECTION.search(text):
        missing.append("the section")
    if not parts.get("quote") and not _QUOTED.search(text):
        missing.append("a quote")
    if missing:
        message = f'A spec blocker refers to the spec; {", ".join(missing)} is missing. Add "Spec reference: …".'
        yield Finding("blocker-spec-reference", message, "/summary")


def _validation_findings(summary: str) -> Iterator[Finding]:
    text, parts = blank_code(summary), labelled_parts(summary, _VALIDATION)
    missing = []
    if not parts.get("step") and not (_STEP.search(text) and _FAILED.search(text)):
        missing.append("which validation step failed")
    if not parts.get("tried") and not _TRIED.search(text):
        missing.append("what was tried")
    if not parts.get("outside") and not _OUTSIDE.search(text):
        missing.append("why it is outside of the task's scope")
    if missing:
        message = f"The summary does not say {', nor '.join(missing)}. Say it; labels are sure: Step, Tried, Outside."
        yield Finding("validation-step-missing", message, "/summary")
