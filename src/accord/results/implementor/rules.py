"""The rules of implementor results, and of the scope of a work item.

Source: workflow contracts, "ImplementorResult", "Summary Content by Outcome" and "Scope Enforcement Rules".
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from textwrap import dedent
from typing import TYPE_CHECKING, Any

from accord.agents.registry import shipped_registry
from accord.core.findings import Finding, Severity, has_errors, warning
from accord.core.frozen import Frozen
from accord.core.suggest import did_you_mean
from accord.core.texts import is_template, line_end_findings
from accord.git.patch_text import header_names, marked_files, marker_findings, patch_findings
from accord.git.patches import filtered_in
from accord.git.steering import audit_paths
from accord.results.contents import has_sentence, reference_gaps, says_something
from accord.results.fixes import recount
from accord.results.layouts import Reading, read_parts, unwrapped_text, vocabulary_of
from accord.results.options import Options, labelled_options, option_starts, options_among, trade_off_gaps
from accord.results.scope_entries import Scopes, is_in_scope
from accord.text.markdown import unfenced_text
from accord.text.outline import blank_code

if TYPE_CHECKING:
    from accord.results.models import ImplementorResult


SPEC_BLOCKERS = ("spec-ambiguity", "spec-contradiction", "spec-gap")
BLOCKERS = (*SPEC_BLOCKERS, "external-dependency", "technical-constraint", "debugging-limit")

_PARTS = vocabulary_of(
    {
        "type": "type kind category classification",
        "recommendation": "recommendation recommendations recommended preferred advice",
        "impact": "impact impacts consequence consequences effect effects resolved unresolved decided undecided",
        "quote": "quote quotes quotation excerpt",
        "section": "section sections",
        "options": "options alternatives choices",
        "spec": "spec specs specification reference references file path document source",
        "description": "description blocker problem issue details blocking blocks blocked cause background situation",
    }
)
_VALIDATION = vocabulary_of(
    {
        "tried": "tried did attempts attempted attempt tries debugging",
        "outside": "outside scope control",
        "step": "step failed failing validation check command",
    }
)
_LABEL_WORDS = frozenset[str]().union(*_PARTS.values(), *_VALIDATION.values())
_ANY_TYPE = re.compile(
    r"(?<![\w-])(?:" + "|".join(name.replace("-", "[ -]") for name in BLOCKERS) + r")(?![\w-])", re.IGNORECASE
)
_TYPE_LINE = re.compile(rf"^[^\w\n]{{0,9}}({_ANY_TYPE.pattern})(?![ \t]*\w)", re.IGNORECASE | re.MULTILINE)
_REMARK = re.compile(r"(?<=[\w`*\"'])[ \t]*\((?!(?:or|and)\b)[^()\n]*\)")
_SEVERAL_TYPES = re.compile(r"[a-z]+[-_][a-z]+[`*_\"']{0,2}(?: *[|/,&] *| (?:or|and) )[`*_\"']{0,2}[a-z]+[-_][a-z]+")
_TYPE_WORD = re.compile(r"[a-z]+(?:[-_][a-z]+)+")
_NEGATION = re.compile(r"\b(?:no|not|never)\b|n['\u2019]t\b")
_NUMBER = re.compile(r"\s*([0-9]{1,2})[.)]\s*")
_RECOMMENDED = re.compile(r"[(\[*_](?:recommended|preferred)[)\]*_]", re.IGNORECASE)
"""The mark of the option that the author recommends."""

_TITLE = re.compile(
    r"\A(?=\W*block)(?:(#{1,6})[ \t][^\n:]*:[^\n]*[^\s.!?\u3002][ \t]*\n(?![^\0]*^\1[ \t])"
    r"|[^\n]*[^\s.!?\u3002][ \t]*\n=+[ \t]*\n)",
    re.MULTILINE | re.IGNORECASE,
)
"""A heading above all others such as ``# Blocked: #31``: its label has no text but the title's."""

_SIDE = re.compile(r'\A(?:.* )?"?[a-z]/')
"""The part of a header before the path: of a pair, before the second one."""


def implementor_findings(result: ImplementorResult) -> list[Finding]:
    """Check the patch against the outcome, and the summary for what it must say."""
    return [*_check_patch(result), *summary_findings(result)]


def findings_without_repository(result: ImplementorResult) -> list[Finding]:
    """Check a result that is not applied: the repository would tell which files steer agents, now the text does."""
    patch = result.patch or ""
    filtered = filtered_in(patch.encode("utf-8", "surrogateescape"), Path.cwd())
    return [*implementor_findings(result), *_steering_findings(patch), *filtered]


def summary_findings(result: ImplementorResult) -> list[Finding]:
    """Check what the summary says."""
    if not says_something(result.summary):
        message = "The summary is empty, or the template's."
        return [Finding("summary-empty", message, "/summary", hint="Write what was done, or what blocks the work.")]
    if escaped := line_end_findings(result.summary, "/summary"):
        return escaped
    rules = {"blocked": _check_blocked, "validation-failure": _check_validation}
    rule = rules.get(result.outcome)
    return list(rule(result.summary)) if rule else []


_ADD_PATCH = "In the work tree, run `accord patch --base BASE --into RESULT`: the branch it began from, and this file."


def _check_patch(result: ImplementorResult) -> Iterator[Finding]:
    has_patch = bool(result.patch and result.patch.strip())
    if result.outcome == "completed" and not has_patch:
        message = "A completed result needs its patch."
        yield Finding("patch-missing", message, "/patch", hint=_ADD_PATCH)
    if result.outcome != "completed" and result.patch is not None:
        message = f"A result with the outcome `{result.outcome}` has no patch."
        yield Finding("patch-unexpected", message, "/patch", hint="Set `patch` to null.")
    if result.patch and has_patch and result.outcome == "completed":
        yield from _check_patch_text(result.patch)


def _check_patch_text(patch: str) -> Iterator[Finding]:
    """Check a patch without a repository. Git ignores lines behind a hunk that counts too few: they would be lost."""
    raw = patch.encode("utf-8", "surrogateescape")
    found = list(patch_findings(raw))
    yield from found
    yield from marker_findings(marked_files(raw))
    wrong = 0 if found else recount(patch)[1]
    if wrong:
        message = f"The patch has {wrong} hunk{'s' if wrong > 1 else ''} with more or fewer lines than counted."
        hint = "Run `accord check --fix RESULT`, or take it again: `accord patch --base REF --into RESULT`."
        yield Finding("patch-invalid", message, "/patch", hint=hint)


def _steering_findings(patch: str) -> Iterator[Finding]:
    """Warn of files that steer agents or tools, as far as the text of a patch tells: a repository adds its own."""
    headers = header_names(patch.encode("utf-8", "surrogateescape"))
    paths = [name if key.startswith((b"rename", b"copy")) else _SIDE.sub("", name) for key, name in headers]
    if steering := audit_paths(paths, agent_files=shipped_registry().steering_patterns).steering:
        shown = ", ".join(f"`{path}`" for path in steering[:10])
        message = f"The patch changes steering files: {shown}. `accord apply` asks a person instead of pushing it."
        yield warning("steering-file", message, "/patch", hint="Leave them out, or let a person review them.")


def _check_blocked(summary: str) -> Iterator[Finding]:
    """Check the parts of a blocker's summary; one without labels gets the template, and is not lost."""
    summary = unfenced_text(dedent(unwrapped_text(summary)).strip())
    below_title = _TITLE.sub("", summary)
    reading, options = _read_blocker(below_title)
    if not reading.is_labelled:
        message, hint = _label_gaps(reading, "Type", "Description", "Options", "Recommendation", "Impact")
        yield warning("blocker-description", message, "/summary", hint=hint)
        return
    blocker = _blocker_type(reading, summary.removesuffix(below_title) + reading.outside)
    yield from _check_type(blocker)
    behind_type = _ANY_TYPE.sub("\n", reading.parts.get("type", "").strip(), count=1).partition("\n")[2]
    if not reading.has("description") and not any(map(has_sentence, (reading.free, behind_type))):
        message = "The summary does not describe the blocker."
        hint = "Add a line `Description: …` with what blocks the work."
        yield Finding("blocker-description", message, "/summary", hint=hint)
    yield from _check_options(options)
    number = _NUMBER.fullmatch(reading.parts.get("recommendation", ""))  # in Markdown, an entry without text
    has_choice = 0 < int(number[1]) <= len(options.found) if number else reading.has("recommendation")
    if not has_choice and not _RECOMMENDED.search(reading.parts.get("options", "")):
        hint = "Add `Recommendation: …` with the best option and the reason."
        yield _gap("blocker-recommendation", "The summary has no recommendation.", hint, reading, "recommendation")
    if not reading.has("impact"):
        hint = "Add `Impact: …` with what happens if the blocker stays."
        yield _gap("blocker-impact", "The summary names no impact.", hint, reading, "impact")
    if blocker in SPEC_BLOCKERS:
        yield from _check_spec(reading)


def _label_gaps(reading: Reading, *lines: str) -> tuple[str, str]:
    """Return the message and the hint for a text with one label at most, by the lines that it needs."""
    found = [line for line in lines if line.lower() in reading.parts]
    labels = f"only the label `{found[0]}`" if len(found) == 1 else "no labels"
    *most, last = (f"`{line}:`" for line in lines if [line] != found)
    message = f"The summary has {labels}, so accord cannot tell whether it is complete."
    return message, f"Add the lines {', '.join(most)} and {last}."


def _gap(code: str, message: str, hint: str, reading: Reading, *parts: str) -> Finding:
    """Return an error for missing parts; a warning where other labels may name each of them."""
    is_hinted = reading.hinted.issuperset(parts) and not reading.parts.keys() & set(parts)
    return Finding(code, message, "/summary", Severity.WARNING if is_hinted else Severity.ERROR, hint=hint)


def _check_type(blocker: str | None) -> Iterator[Finding]:
    if blocker is None:
        message = "The summary names no blocker type."
        hint = f"Add a line `Type: …` with one of {', '.join(BLOCKERS)}."
        yield Finding("blocker-type-missing", message, "/summary", hint=hint)
    elif blocker not in BLOCKERS:
        hint = did_you_mean(blocker, BLOCKERS) or f"Use one of {', '.join(BLOCKERS)}."
        yield Finding("blocker-type-unknown", f"Unknown blocker type `{blocker[:60]}`.", "/summary", hint=hint)


def _blocker_type(reading: Reading, visible: str) -> str | None:
    """Return the type after the label, else one that the text mentions; None without either, and all if they differ."""
    text = _REMARK.sub("", reading.parts.get("type", "").lower())
    labelled = text.strip(" \t\n`*_\"'.|[]").split("\n", 1)[0]
    if _SEVERAL_TYPES.match(labelled) or len(_types(_ANY_TYPE, labelled)) > 1:
        return labelled
    if len(types := _types(_TYPE_LINE, text)) > 1:
        return ", ".join(types)
    named = _ANY_TYPE.search(labelled or visible)
    if named and not (labelled and _NEGATION.search(labelled, 0, named.start())):
        return named[0].lower().replace(" ", "-")
    word = _TYPE_WORD.match(labelled)
    return word.group() if word else labelled.strip("`*_\"'. |") or None


def _types(pattern: re.Pattern[str], text: str) -> dict[str, None]:
    return dict.fromkeys(name.replace(" ", "-") for name in pattern.findall(text))


def _read_blocker(text: str) -> tuple[Reading, Options]:
    """Return the parts of a blocker's summary, and its options: if no label holds them, titles that count do."""
    reading = read_parts(text, _PARTS, whole="options")
    options = _options(reading)
    if len(options.found) > 1 or not options.is_clear:
        return reading, options
    if starts := option_starts(reading.outside, _LABEL_WORDS, is_any=not reading.has("options")):
        counted = read_parts(text, _PARTS, whole="options", entries=starts)
        if len((found := _options(counted)).found) > 1:
            return counted, found
    return reading, options


def _options(reading: Reading) -> Options:
    """Return the options below their label, else those in the text of the parts before them."""
    if reading.has("options"):
        text = reading.parts["options"]
        first, rest = ("", text) if text.startswith("    ") else text.partition("\n")[::2]
        others = (text for name, text in reading.parts.items() if name != "options")
        return labelled_options(f"{first}\n{dedent(rest)}", *others)
    others = (reading.parts.get(name, "") for name in ("type", "description", "spec", "section", "quote"))
    text, free = (blank_code("\n\n".join(each)) for each in ((*others, reading.free), (reading.free,)))
    return options_among(text, free, _LABEL_WORDS)


def _check_options(options: Options) -> Iterator[Finding]:
    hint = "Put one on each line under `Options:`."
    if len(options.found) < 2 and options.is_clear:
        message = f"The summary lists {len(options.found)} of at least two options."
        yield Finding("blocker-options", message, "/summary", hint=hint)
    elif len(options.found) < 2:
        message = "The summary may list two options, but accord cannot tell them apart."
        yield warning("blocker-options", message, "/summary", hint=hint)
    for message, is_sure in trade_off_gaps(options) if len(options.found) > 1 else ():
        severity = Severity.ERROR if is_sure else Severity.WARNING
        yield Finding("blocker-options", message, "/summary", severity, hint="Add its advantages and its costs.")


_REFERENCE = {
    "path": ("the file's path", "`Spec: …` with the path below the root"),
    "section": ("the section", "`Section: …` with its name"),
    "quote": ("a quote", "`Quote: …` with the words of the spec"),
}


def _check_spec(reading: Reading) -> Iterator[Finding]:
    parts = {name: reading.parts[name] for name in ("spec", "section", "quote") if name in reading.parts}
    others = [reading.free, *(reading.parts.get(name, "") for name in ("description", "type"))]
    if "spec" in parts:  # its text is the reference, without the words of a template
        pieces = re.split(r"(\n|: )", parts["spec"])
        parts["spec"], others = "".join(piece for piece in pieces if not is_template(piece)), []
    if missing := reference_gaps("\n".join([*others, *(f"{name}: {text}" for name, text in parts.items())])):
        names, lines = zip(*(_REFERENCE[part] for part in missing), strict=True)
        message = f"A spec blocker needs a reference; {', '.join(names)} {'is' if len(names) == 1 else 'are'} missing."
        yield Finding("blocker-spec-reference", message, "/summary", hint=f"Add a line {', and one '.join(lines)}.")


def _check_validation(summary: str) -> Iterator[Finding]:
    """Check that a summary names the step, the attempts and the reason, or has the parts of a debugging limit."""
    reading = read_parts(unwrapped_text(summary), _VALIDATION)
    needed = {
        "step": "the validation step that failed",
        "tried": "the attempts to fix it",
        "outside": "the reason why it is outside the task's scope",
    }
    missing = [part for part in needed if not reading.has(part)]
    blocker = read_parts(unwrapped_text(summary), _PARTS)
    is_limit = blocker.is_labelled and _blocker_type(blocker, "") == "debugging-limit"
    if missing and not reading.is_labelled and is_limit and not has_errors(_check_blocked(summary)):
        return
    if missing and not reading.is_labelled:
        message, hint = _label_gaps(reading, "Step", "Tried", "Outside")
        yield warning("validation-step-missing", message, "/summary", hint=hint)
    elif missing:
        lines = " and ".join(f"`{part.title()}:`" for part in missing)
        message = f"The summary does not name {' nor '.join(needed[part] for part in missing)}."
        hint = f"Add the line{'s' if len(missing) > 1 else ''} {lines}."
        yield _gap("validation-step-missing", message, hint, reading, *missing)


_TEST_FOLDERS = ("", "__tests__", "tests", "test", "spec", "specs")
_TEST_NAME_START = re.compile(r"\A(?i:test)(?:[._-]|(?=[A-Z]))")
_TEST_NAME_END = re.compile(
    r"(?:(?:(?:[._-]|(?=[A-Z]))(?i:unit|integration|internal|e2e))?(?:[._-]|(?=[A-Z]))(?i:(?:test|spec|cy|e2e)s?)|IT)\.\w+"
    r"|\.bats"
)
"""The rest of a test's name behind that of its subject. Its extension may be another, as of ``Foo.vue`` the ``.ts``."""


class ScopeReport(Frozen):
    """Each changed path in one of three groups; the groups after these repeat some."""

    in_scope: tuple[str, ...]
    tests: tuple[str, ...]
    outside: tuple[str, ...]
    protected: tuple[str, ...]  # those that only people may approve
    dependencies: tuple[str, ...] = ()  # manifests and lock files
    records: tuple[str, ...] = ()  # files of sessions and missions

    def as_json(self) -> dict[str, Any]:
        """Return the object of a receipt."""
        return {name: list(paths) for name, paths in asdict(self).items() if name not in ("dependencies", "records")}


def audit_scope(changed: Iterable[str], scopes: Scopes, extra_protected: Sequence[str] = ()) -> ScopeReport:
    """Group changed paths by the scope of a work item: listed, a test beside a listed file, or outside."""
    paths = tuple(dict.fromkeys(changed))
    inside = {path for path in paths if is_in_scope(path, scopes)}
    subjects = [entry for entry in scopes[0] if is_in_scope(entry, scopes)]
    tests = {path for path in paths if path not in inside and is_in_scope(path, (subjects, scopes[1]), is_test_of)}
    groups = (inside, tests, {*paths} - inside - tests)
    in_scope, beside, outside = (tuple(path for path in paths if path in group) for group in groups)
    audit = audit_paths(paths, extra_protected, agent_files=shipped_registry().steering_patterns)
    protected = (*audit.steering, *audit.protected)
    return ScopeReport(in_scope, beside, outside, protected, audit.dependencies, audit.records)


def is_test_of(path: str, subject: str) -> bool:
    """Return whether a file is the co-located test of another by the conventions of the common languages."""
    folder, name = posixpath.split(subject)
    stem, extension = posixpath.splitext(name)
    if not stem or not extension:
        return False
    test_folder, test_name = posixpath.split(path)
    folders = {posixpath.normpath(posixpath.join(folder, name)) for name in _TEST_FOLDERS}
    folders.add(posixpath.normpath(re.sub(r"(^|/)src/main/", r"\1src/test/", folder + "/")))
    if posixpath.normpath(test_folder) not in folders:
        return False
    test_stem = posixpath.splitext(test_name)[0]
    if test_stem == stem and posixpath.basename(test_folder) == "__tests__":
        return True
    is_behind = test_name.startswith(stem) and _TEST_NAME_END.fullmatch(test_name[len(stem) :]) is not None
    return is_behind or (test_stem != stem and _TEST_NAME_START.sub("", test_stem) == stem)
