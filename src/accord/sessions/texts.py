"""The texts and line files of a session, each with the rules that concern it alone.

Source: global agent contract, "Required repository artifacts" and "Artifact content validation".
"""

from __future__ import annotations

import itertools
import json
import re
from dataclasses import replace
from typing import TYPE_CHECKING, TypeVar

from accord.core.errors import BrokenContract
from accord.core.findings import Finding, has_errors, warning
from accord.core.shapes import read_shape
from accord.sessions.decision_rules import is_change_request, timestamp_findings
from accord.sessions.models import APPROVE_DESIGN, DecisionHistoryEntry, OutputEntry
from accord.text.outline import sections

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from accord.text.outline import Section

TEXTS = {
    "spec.md": {
        "Goals": re.compile(r"\A(?!non\b)(\w+ )?goals?\b"),
        "Acceptance Criteria": re.compile(r"\Aacceptance criteria\b"),
        "Definition of Done": re.compile(r"\A(?:definition of done|dod)\b"),
    },
    "architecture.md": {
        "Overview": re.compile(r"\A(\w+ )?overview\b"),
        "Modules": re.compile(r"\b(modules?|components?)\b"),
    },
    "report.md": {
        "What was done": re.compile(r"\b(done|summary|changes|implemented|delivered)\b"),
        "How to run": re.compile(r"\b(run|usage|use)\b"),
        "How to test": re.compile(r"\b(test|tests|testing|verify|verification)\b"),
        "Known issues": re.compile(r"\b(issues|limitations)\b"),
    },
}
"""Required sections of each text, with the headings that count, in lower case and without numbering."""

Line = TypeVar("Line", DecisionHistoryEntry, OutputEntry)

_NUMBERING = re.compile(r"^[\W\d_]+")


def text_findings(raw: bytes, wanted: Mapping[str, re.Pattern[str]]) -> Iterator[Finding]:
    """Check that a Markdown text has these sections, and text in each or in one below it."""
    try:
        found = sections(raw.decode("utf-8-sig"))
    except UnicodeDecodeError:
        yield Finding("not-text", "The file is not valid UTF-8.", hint="Save it as UTF-8.")
        return
    titles = [_NUMBERING.sub("", one.title.lower()).replace("*", "").replace("`", "") for one in found]
    for name, heading in wanted.items():
        positions = [i for i, title in enumerate(titles) if heading.search(title)]
        if not positions:
            yield Finding("section-missing", f"The section `{name}` is missing.", hint=f"Add the heading `## {name}`.")
        elif not any(_has_text(found, i) for i in positions):
            message = f"The section `{name}` is empty."
            yield Finding("section-empty", message, line=found[positions[0]].line, hint="Write its text.")


def _has_text(found: list[Section], position: int) -> bool:
    level, below = found[position].level, found[position + 1 :]
    parts = itertools.takewhile(lambda section: section.level > level, below)
    return any(section.text for section in (found[position], *parts))


def read_history(raw: bytes) -> tuple[list[DecisionHistoryEntry], list[Finding]]:
    """Read ``approve-design-history.jsonl``; a line with an error is a finding, and does not count as an answer."""
    entries, found = _read_lines(raw, DecisionHistoryEntry, _history_findings)
    return [entry for entry in entries if not has_errors(_history_findings(entry))], found


def read_outputs(raw: bytes) -> tuple[list[OutputEntry], list[Finding]]:
    """Read ``outputs.jsonl``; a line that cannot be read is a finding with its number."""
    return _read_lines(raw, OutputEntry, lambda entry: timestamp_findings(entry.at, ""))


def _read_lines(
    raw: bytes, shape: type[Line], check: Callable[[Line], Iterable[Finding]]
) -> tuple[list[Line], list[Finding]]:
    entries: list[Line] = []
    found: list[Finding] = []
    for number, line in enumerate(raw.split(b"\n"), start=1):
        if not line.strip():
            continue
        try:
            entry = read_shape(shape, json.loads(line))
            entries.append(entry)
        except BrokenContract as broken:
            problems = "; ".join(f"{finding.path} {finding.text}".strip() for finding in broken.findings)
            found.append(Finding("history-line", f"The line is not an entry of this file: {problems}", line=number))
        except (ValueError, RecursionError):
            message = "The line is not a JSON object and is not read. A crash may have cut it short."
            found.append(replace(warning("history-torn", message), line=number))
        else:
            found += [replace(finding, line=number) for finding in check(entry)]
    return entries, found


def _history_findings(entry: DecisionHistoryEntry) -> Iterator[Finding]:
    yield from timestamp_findings(entry.at, "")
    if entry.decision_id != APPROVE_DESIGN or not is_change_request(entry.answer):
        message = "The entry is not an answer to UD-APPROVE-DESIGN that requests changes."
        yield Finding("history-line", message, hint="Remove it.")
