"""The rules of implementor results (workflow contracts, "ImplementorResult" and "Summary Content by Outcome")."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from accord.core.findings import Finding
from accord.core.suggest import did_you_mean
from accord.text.markdown import blank_code, labelled_parts

if TYPE_CHECKING:
    from collections.abc import Iterator

    from accord.results.models import ImplementorResult

SPEC_BLOCKERS = ("spec-ambiguity", "spec-contradiction", "spec-gap")
BLOCKERS = (*SPEC_BLOCKERS, "external-dependency", "technical-constraint", "debugging-limit")

_LABELS = {
    **dict.fromkeys(("type", "blocker type"), "type"),
    **dict.fromkeys(("blocker", "description", "problem"), "description"),
    **dict.fromkeys(("spec reference", "spec", "reference"), "spec"),
    **dict.fromkeys(("section", "section(s)", "sections"), "section"),
    **{name: name for name in ("quote", "options", "recommendation", "impact")},
}
_TYPE_WORD = re.compile(r"\A[a-z]+(?:-[a-z]+)+")
_ANY_TYPE = re.compile(r"(?<![\w-])(?:" + "|".join(BLOCKERS) + r")(?![\w-])", re.IGNORECASE)
_OPTION = re.compile(
    r"^(?P<indent>[ \t]*)(?P<mark>[-*+](?=[ \t])|\d{1,2}[.)]|[A-Ha-h][.)]|#{2,6}|(?=[*_]*option\b))[ \t]*(?=\S)",
    re.IGNORECASE | re.MULTILINE,
)
_UNSPACED = re.compile(r"[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff]{2}")
"""Two letters of a script without spaces between words: about one word."""
_PATH = re.compile(r"[\w.-]/[\w./-]|\w-*+\.(?:md|mdx|rst|txt|adoc|ya?ml|json)\b")
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
    """Check the patch against the outcome, and the summary for what it must say."""
    if not result.summary.strip():
        message = "The summary is empty."
        hint = "Write what was done, or what blocks the work."
        return [*_check_patch(result), Finding("summary-empty", message, "/summary", hint=hint)]
    rules = {"blocked": _check_blocked, "validation-failure": _check_validation}
    rule = rules.get(result.outcome)
    return [*_check_patch(result), *(rule(result.summary) if rule else ())]


def _check_patch(result: ImplementorResult) -> Iterator[Finding]:
    has_patch = bool(result.patch and result.patch.strip())
    if result.outcome == "completed" and not has_patch:
        message = "A completed result needs its patch."
        hint = "Run `accord patch` in the work tree to add it."
        yield Finding("patch-missing", message, "/patch", hint=hint)
    if result.outcome != "completed" and result.patch is not None:
        message = f"A result with the outcome `{result.outcome}` has no patch."
        hint = "Set `patch` to null."
        yield Finding("patch-unexpected", message, "/patch", hint=hint)


def _check_blocked(summary: str) -> Iterator[Finding]:
    parts = labelled_parts(summary, _LABELS)
    blocker = _blocker_type(summary, parts.get("type"))
    if blocker is None:
        message = "The summary names no blocker type."
        hint = f"Add a line `Type: …` with one of {', '.join(BLOCKERS)}."
        yield Finding("blocker-type-missing", message, "/summary", hint=hint)
    elif blocker not in BLOCKERS:
        hint = did_you_mean(blocker, BLOCKERS) or f"Use one of {', '.join(BLOCKERS)}."
        message = f"Unknown blocker type `{blocker[:60]}`."
        yield Finding("blocker-type-unknown", message, "/summary", hint=hint)
    if not _describes(summary, parts):
        message = "The summary does not describe the blocker."
        hint = "Add a line `Description: …` with what blocks the work."
        yield Finding("blocker-description", message, "/summary", hint=hint)
    yield from _check_options(parts.get("options", ""))
    if not parts.get("recommendation", "").strip():
        message = "The summary has no recommendation."
        hint = "Add `Recommendation: …` with the best option and the reason."
        yield Finding("blocker-recommendation", message, "/summary", hint=hint)
    if not parts.get("impact", "").strip():
        message = "The summary names no impact."
        hint = "Add `Impact: …` with what happens if the blocker stays."
        yield Finding("blocker-impact", message, "/summary", hint=hint)
    if blocker in SPEC_BLOCKERS:
        yield from _check_spec(summary, parts)


def _blocker_type(summary: str, labelled: str | None) -> str | None:
    """Return the type after the label, else one that the text mentions; None without either."""
    if labelled:
        first = labelled.strip().split("\n", 1)[0].strip("`*_\"'. ").lower()
        word = _TYPE_WORD.match(first)
        return word.group() if word else first
    mentioned = _ANY_TYPE.search(blank_code(summary))
    return mentioned.group().lower() if mentioned else None


def _describes(summary: str, parts: dict[str, str]) -> bool:
    """Return whether there is a description: after its label, before the first label, or after the type."""
    if parts.get("description", "").strip():
        return True
    labelled = sum(len(part) for part in parts.values())
    after_type = parts.get("type", "").strip().partition("\n")[2]
    first_label = min((summary.find(part) for part in parts.values() if part), default=len(summary))
    before = summary[:first_label].partition(":")[0] if labelled else summary
    return len(after_type.split()) >= 3 or len(before.split()) >= 5


def _options(text: str) -> list[str]:
    """Return each option with the text that belongs to it, as a list below it or as paragraphs."""
    text = blank_code(text)
    marks = list(_OPTION.finditer(text))
    begun = [mark for mark in marks if _is_beside(mark, marks[0])]
    ends = [*(mark.start() for mark in begun[1:]), len(text)]
    return [text[mark.end() : end].strip() for mark, end in zip(begun, ends, strict=False)]


def _is_beside(mark: re.Match[str], first: re.Match[str]) -> bool:
    """Return whether a mark begins an entry of the same list as the first one, or a heading of its level."""
    depth, first_depth = (len(each["indent"].expandtabs(4)) for each in (mark, first))
    return _kind(mark["mark"]) == _kind(first["mark"]) and depth < first_depth + 2


def _kind(mark: str) -> str:
    if mark.startswith("#"):
        return mark
    return "number" if mark[:1].isdigit() else "letter" if mark[:1].isalpha() else "bullet" if mark else "word"


def _words(text: str) -> int:
    return sum(max(1, len(_UNSPACED.findall(word))) for word in text.split())


def _check_options(options: str) -> Iterator[Finding]:
    found = _options(options)
    if len(found) < 2:
        message = f"The summary lists {len(found)} of at least two options."
        hint = "Put one on each line under `Options:`."
        yield Finding("blocker-options", message, "/summary", hint=hint)
    for option in found:
        if _words(option) < _FEWEST_OPTION_WORDS:
            message = f"The option `{option.splitlines()[0][:60]}` has no trade-off."
            hint = "Add its advantages and its costs."
            yield Finding("blocker-options", message, "/summary", hint=hint)


def _check_spec(summary: str, parts: dict[str, str]) -> Iterator[Finding]:
    text = "\n".join(parts.get(name, "") for name in ("spec", "section", "quote", "description")) or summary
    missing = []
    if not _PATH.search(text):
        missing.append("the file's path")
    if not parts.get("section") and not _SECTION.search(text):
        missing.append("the section")
    if not parts.get("quote") and not _QUOTED.search(text):
        missing.append("a quote")
    if missing:
        verb = "is" if len(missing) == 1 else "are"
        message = f"A spec blocker needs a reference; {', '.join(missing)} {verb} missing."
        hint = "Add `Spec reference: …`."
        yield Finding("blocker-spec-reference", message, "/summary", hint=hint)


def _check_validation(summary: str) -> Iterator[Finding]:
    text, parts = blank_code(summary), labelled_parts(summary, _VALIDATION)
    missing = []
    if not parts.get("step") and not (_STEP.search(text) and _FAILED.search(text)):
        missing.append(("the validation step that failed", "Step:"))
    if not parts.get("tried") and not _TRIED.search(text):
        missing.append(("the attempts to fix it", "Tried:"))
    if not parts.get("outside") and not _OUTSIDE.search(text):
        missing.append(("the reason why it is outside the task's scope", "Outside:"))
    if missing:
        names, labels = [name for name, _ in missing], [f"`{label}`" for _, label in missing]
        lines = f"the line{'s' if len(labels) > 1 else ''} {' and '.join(labels)}"
        message = f"The summary does not name {' nor '.join(names)}."
        hint = f"Add {lines}."
        yield Finding("validation-step-missing", message, "/summary", hint=hint)
