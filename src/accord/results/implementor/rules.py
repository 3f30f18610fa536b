"""The rules of implementor results (workflow contracts, "ImplementorResult" and "Summary Content by Outcome")."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING

from accord.core.findings import Finding, warning
from accord.core.suggest import did_you_mean
from accord.git.filters import pointers_replaced
from accord.git.patch_text import patch_findings
from accord.git.unfinished import marked_files, marker_findings
from accord.results.fixes import recount
from accord.results.layouts import Reading, Vocabulary, read_parts, sentences
from accord.results.options import Options, labelled_options, options_among, word_count
from accord.text.markdown import unfenced

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from accord.results.models import ImplementorResult

SPEC_BLOCKERS = ("spec-ambiguity", "spec-contradiction", "spec-gap")
BLOCKERS = (*SPEC_BLOCKERS, "external-dependency", "technical-constraint", "debugging-limit")

_PARTS = Vocabulary.of(
    {
        "type": "type kind category classification",
        "recommendation": "recommendation recommendations recommended recommend preferred advice",
        "impact": "impact impacts consequence consequences effect effects resolved unresolved decided undecided",
        "quote": "quote quotes quotation excerpt",
        "section": "section sections",
        "options": "options alternatives choices",
        "spec": "spec specs specification reference references file path document source",
        "description": "description blocker problem issue details blocking blocks blocked cause background situation",
    },
)
_TYPE_WORD = re.compile(r"[a-z]+(?:-[a-z]+)+")
_ANY_TYPE = re.compile(
    r"(?<![\w-])(?:" + "|".join(name.replace("-", "[ _-]") for name in BLOCKERS) + r")(?![\w-])", re.IGNORECASE
)
_RECOMMENDED = re.compile(
    r"\b(?:(?:i|we)(?:'d| would|\u2019d)?(?: strongly| rather| therefore)? "
    r"(?:recommend|suggest|propose|prefer|choose|go (?:with|for)|pick|take)"
    r"|recommended|recommendation (?:is|would)|my (?:advice|choice|preference)|best option|preferred option)\b",
    re.IGNORECASE,
)
_IMPACT = re.compile(
    r"\b(?:unless|until|otherwise|consequences?|impact|as long as|without (?:this|that|it|an?|the)\b"
    r"|(?:stays?|remains?|keeps?) (?:blocked|open|unfinished|impossible|undecided|broken)"
    r"|cannot be (?:finished|completed|merged|released|shipped|implemented|done))\b",
    re.IGNORECASE,
)
_UNRESOLVED = re.compile(
    r"\b(?:unresolved|if (?:this|it|the (?:blocker|question|problem|issue)|nothing|no one) "
    r"(?:is|stays|remains|happens|changes|decides|answers))\b",
    re.IGNORECASE,
)
_PATH = re.compile(r"[\w.-]/[\w./-]|\w-*\.(?:md|mdx|rst|txt|adoc|ya?ml|json)\b")
_PLACEHOLDER = re.compile(r"[^\s<>]{0,200}<[A-Za-z][A-Za-z0-9 _-]{0,60}>[^\s<>]{0,200}")
_QUOTED = re.compile(
    r"[\"\u201c-\u201f\u00ab\u00bb\u300c\u300e][^\"\u201c-\u201f\u00ab\u00bb\u300d\u300f]{3,}"
    r"[\"\u201c-\u201f\u00ab\u00bb\u300d\u300f]|(?<!\w)['\u2018\u201a\u2039][^\n]{3,}['\u2018\u2019\u203a](?!\w)"
    r"|^[ \t]*>[ \t]*\S",
    re.MULTILINE,
)
_SECTION = re.compile(
    r"\u00a7|(?<!\w)sections?\b|#[\w-]+|\.\w{2,8}[`*_]{0,3}[ \t]*[,;:(>\u2192\u2013\u2014-]+[ \t]*[`*_\"]{0,3}[A-Z0-9]"
)
_REFERENCE_WORDS = re.compile(
    r"\b(?:spec(?:ification)?|reference|file|sections?(?:[ \t]+\S+)?|see|quote)\b", re.IGNORECASE
)
_TOLD_WORDS = 4
_VALIDATION = Vocabulary.of(
    {
        "tried": "tried attempts attempted attempt tries debugging",
        "outside": "outside scope control",
        "step": "step failed failing validation check command",
    },
    "out why was has have failure",
)
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
    if result.patch and has_patch and result.outcome == "completed":
        yield from _check_patch_text(result.patch)


def _check_patch_text(patch: str) -> Iterator[Finding]:
    """Check a patch without a repository. Git ignores lines behind a hunk that counts too few: they would be lost."""
    raw = patch.encode("utf-8", "surrogateescape")
    found = list(patch_findings(raw))
    yield from found
    yield from pointers_replaced(raw)
    yield from marker_findings(marked_files(raw))
    wrong = 0 if found else recount(patch)[1]
    if wrong:
        message = f"The patch has {wrong} hunk{'s' if wrong > 1 else ''} with more or fewer lines than counted."
        yield Finding(
            "patch-invalid", message, "/patch", hint="Run `accord check --fix`, or take it again with `accord patch`."
        )


def _check_blocked(summary: str) -> Iterator[Finding]:
    """Check what a summary of a blocker must have. A part that may be in a text without labels is a warning."""
    summary = unfenced(summary.replace("\r\n", "\n").strip())
    reading = read_parts(summary, _PARTS, whole=("options",))
    blocker = _blocker_type(reading)
    yield from _check_type(blocker)
    options = _options(reading)
    others = [text for text in sentences(options.rest) if not (_RECOMMENDED.search(text) or _has_impact(text))]
    missing = []
    if not reading.has("description") and not others:
        missing.append("description")
    others = others if reading.has("description") else others[1:]
    if len(options.found) < 2:
        missing.append("options")
    if not reading.has("recommendation") and not _is_recommended(reading):
        missing.append("recommendation")
    if not reading.has("impact") and not _is_impact_told(reading, options.rest):
        missing.append("impact")
    needed = sum(2 if name == "options" and options.is_clear else 1 for name in missing)
    may_be_there = needed <= len(others) + (not options.is_clear)
    yield from _unrecognized_parts(missing) if may_be_there else _missing_parts(missing, options)
    yield from _check_trade_offs(options)
    if blocker in SPEC_BLOCKERS:
        yield from _check_spec(reading)


def _check_type(blocker: str | None) -> Iterator[Finding]:
    if blocker is None:
        message = "The summary names no blocker type."
        hint = f"Add a line `Type: …` with one of {', '.join(BLOCKERS)}."
        yield Finding("blocker-type-missing", message, "/summary", hint=hint)
    elif blocker not in BLOCKERS:
        hint = did_you_mean(blocker, BLOCKERS) or f"Use one of {', '.join(BLOCKERS)}."
        message = f"Unknown blocker type `{blocker[:60]}`."
        yield Finding("blocker-type-unknown", message, "/summary", hint=hint)


def _blocker_type(reading: Reading) -> str | None:
    """Return the type after the label, else one that the text mentions; None without either."""
    labelled = reading.visible_parts.get("type", "").strip(" \t\n`*_\"'.|[]").split("\n", 1)[0].lower()
    named = _ANY_TYPE.search(labelled) or (None if labelled else _ANY_TYPE.search(reading.visible))
    if named:
        return re.sub("[ _]", "-", named.group().lower())
    word = _TYPE_WORD.match(labelled)
    return word.group() if word else labelled.strip("`*_\"'. |") or None


def _options(reading: Reading) -> Options:
    """Return the options below their label, else those in the rest of the summary; with what is below no label."""
    others = [
        reading.visible_parts.get(name, "").lstrip() for name in ("type", "description", "spec", "section", "quote")
    ]
    if reading.has("options"):
        rest = "\n\n".join((others[0].partition("\n")[2], reading.free))
        return replace(labelled_options(reading.visible_parts["options"]), rest=rest)
    found = options_among("\n\n".join((*others, reading.free)))
    rest = found.rest
    for text in others:
        rest = rest.replace(text.partition("\n")[0], "", 1)
    return replace(found, rest=rest)


def _is_recommended(reading: Reading) -> bool:
    return "recommendation" not in reading.parts and _RECOMMENDED.search(reading.visible) is not None


def _has_impact(text: str) -> bool:
    return bool(_IMPACT.search(text) or _UNRESOLVED.search(text))


def _is_impact_told(reading: Reading, rest: str) -> bool:
    """Return whether a sentence says what happens if the blocker stays; in options, "until" means other things."""
    if "impact" in reading.parts:
        return False
    outside = "\n\n".join((rest, reading.parts.get("recommendation", ""), reading.parts.get("description", "")))
    return bool(_UNRESOLVED.search(reading.visible) or _IMPACT.search(outside))


_DESCRIPTION_HINT = "Add a line `Description: …` with what blocks the work."
_OPTIONS_HINT = "Put one on each line under `Options:`."
_RECOMMENDATION_HINT = "Add `Recommendation: …` with the best option and the reason."
_IMPACT_HINT = "Add `Impact: …` with what happens if the blocker stays."


def _missing_parts(missing: Sequence[str], options: Options) -> Iterator[Finding]:
    if "description" in missing:
        message = "The summary does not describe the blocker."
        yield Finding("blocker-description", message, "/summary", hint=_DESCRIPTION_HINT)
    if "options" in missing:
        message = f"The summary lists {len(options.found)} of at least two options."
        yield Finding("blocker-options", message, "/summary", hint=_OPTIONS_HINT)
    if "recommendation" in missing:
        message = "The summary has no recommendation."
        yield Finding("blocker-recommendation", message, "/summary", hint=_RECOMMENDATION_HINT)
    if "impact" in missing:
        yield Finding("blocker-impact", "The summary names no impact.", "/summary", hint=_IMPACT_HINT)


def _unrecognized_parts(missing: Sequence[str]) -> Iterator[Finding]:
    """Warn about parts that a text without labels may have: an agent's report of a blocker is never lost."""
    if "options" in missing:
        message = "The summary may list two options, but accord cannot tell them apart."
        yield warning("blocker-options", message, "/summary", hint=_OPTIONS_HINT)
    if "recommendation" in missing:
        message = "The summary may have a recommendation, but accord does not recognize it."
        yield warning("blocker-recommendation", message, "/summary", hint=_RECOMMENDATION_HINT)
    if "impact" in missing:
        message = "The summary may name the impact, but accord does not recognize it."
        yield warning("blocker-impact", message, "/summary", hint=_IMPACT_HINT)


def _check_trade_offs(options: Options) -> Iterator[Finding]:
    hint = "Add its advantages and its costs."
    for option in options.without_trade_off:
        message = f"The option `{option.splitlines()[0][:60]}` has no trade-off."
        yield Finding("blocker-options", message, "/summary", hint=hint)
    for option in options.unclear if len(options.found) > 1 else ():
        message = f"The option `{option.splitlines()[0][:60]}` may have no trade-off."
        yield warning("blocker-options", message, "/summary", hint=hint)


def _check_spec(reading: Reading) -> Iterator[Finding]:
    parts = [reading.parts.get(name, "") for name in ("spec", "section", "quote", "description", "type")]
    text = _PLACEHOLDER.sub(" ", "\n".join([*parts, reading.free]))
    missing = []
    if not _PATH.search(text):
        missing.append("the file's path")
    if not reading.has("section") and not _SECTION.search(text):
        missing.append("the section")
    if not reading.has("quote") and not _QUOTED.search(text):
        missing.append("a quote")
    if missing:
        verb = "is" if len(missing) == 1 else "are"
        message = f"A spec blocker needs a reference; {', '.join(missing)} {verb} missing."
        hint = "Add `Spec reference: …`."
        lines = (line for line in text.splitlines() if _PATH.search(line))
        told = [_QUOTED.sub(" ", _without_paths(_REFERENCE_WORDS.sub(" ", line))) for line in lines]
        if any(word_count(line) >= _TOLD_WORDS for line in told):
            yield warning("blocker-spec-reference", message, "/summary", hint=hint)
        else:
            yield Finding("blocker-spec-reference", message, "/summary", hint=hint)


def _without_paths(text: str) -> str:
    return " ".join(word for word in text.split() if not _PATH.search(word))


def _check_validation(summary: str) -> Iterator[Finding]:
    """Check that a summary names the step, the attempts and the reason; sentences in other words may be any of them."""
    summary = summary.replace("\r\n", "\n")
    reading = read_parts(summary, _VALIDATION)
    text = reading.visible
    missing = []
    if not reading.has("step") and not (_STEP.search(text) and _FAILED.search(text)):
        missing.append(("the validation step that failed", "Step:"))
    if not reading.has("tried") and not _TRIED.search(text):
        missing.append(("the attempts to fix it", "Tried:"))
    if not reading.has("outside") and not _OUTSIDE.search(text):
        missing.append(("the reason why it is outside the task's scope", "Outside:"))
    if missing:
        known = (_STEP, _FAILED, _TRIED, _OUTSIDE)
        others = [each for each in sentences(reading.free) if not any(pattern.search(each) for pattern in known)]
        names, labels = [name for name, _ in missing], [f"`{label}`" for _, label in missing]
        lines = f"the line{'s' if len(labels) > 1 else ''} {' and '.join(labels)}"
        message = f"The summary does not name {' nor '.join(names)}."
        if len(others) < len(missing):
            yield Finding("validation-step-missing", message, "/summary", hint=f"Add {lines}.")
        else:
            message = f"The summary may not name {' nor '.join(names)}."
            yield warning("validation-step-missing", message, "/summary", hint=f"Add {lines}.")
