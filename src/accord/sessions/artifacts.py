"""What the texts of a session must contain: specification, architecture, report, and the files that only grow.

Source: global agent contract, "Artifact content validation (gates)"; the sections of a report are accord's decision.
"""

from __future__ import annotations

import json
import re
from dataclasses import replace
from typing import TYPE_CHECKING, TypeVar

from accord.kernel.errors import BrokenContract
from accord.kernel.findings import Finding, has_errors, warning
from accord.kernel.markdown import sections
from accord.kernel.shapes import read_shape
from accord.sessions.models import APPROVE_DESIGN, HistoryEntry, OutputEntry
from accord.sessions.moments import moment_findings
from accord.sessions.rules import asks_changes

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from accord.kernel.markdown import Section

SPEC = {
    "Goals": re.compile(r"(?!non\b)(\w+ )?goals?\b"),
    "Acceptance Criteria": re.compile(r"acceptance criteria\b"),
    "Definition of Done": re.compile(r"definition of done\b|dod\b"),
}
ARCHITECTURE = {
    "Overview": re.compile(r"(\w+ )?overview\b"),
    "Modules": re.compile(r".*\b(modules?|components?)\b"),
}
REPORT = {
    "What was done": re.compile(r".*\b(done|summary|changes|implemented|delivered)\b"),
    "How to run": re.compile(r".*\b(run|usage|use)\b"),
    "How to test": re.compile(r".*\b(test|tests|testing|verify|verification)\b"),
    "Known issues": re.compile(r".*\b(issues|limitations)\b"),
}
"""Wanted section, and how its heading may read in lower case without numbering."""

Line = TypeVar("Line", HistoryEntry, OutputEntry)

_NUMBERING = re.compile(r"^[\W\d_]+")


def text_findings(raw: bytes, wanted: Mapping[str, re.Pattern[str]]) -> list[Finding]:
    """Check that a Markdown text has these sections, and something in each."""
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError:
        return [Finding("not-text", "The file is not UTF-8. Save it as UTF-8.")]
    return list(_section_findings(sections(text), wanted))


def _section_findings(found: list[Section], wanted: Mapping[str, re.Pattern[str]]) -> Iterator[Finding]:
    for name, heading in wanted.items():
        places = [i for i, section in enumerate(found) if heading.match(_plain(section.title))]
        if not places:
            yield Finding("section-missing", f'The section "{name}" is missing. Add a heading of that name.')
        elif not any(_says_something(found, i) for i in places):
            message = f'The section "{name}" is empty. Write what belongs there.'
            yield Finding("section-empty", message, line=found[places[0]].line)


def _plain(title: str) -> str:
    return _NUMBERING.sub("", title.lower()).replace("*", "").replace("`", "")


def _says_something(found: list[Section], position: int) -> bool:
    """Tell whether a section, or one of those below it, holds text."""
    own = found[position]
    if own.text:
        return True
    for section in found[position + 1 :]:
        if section.level <= own.level:
            return False
        if section.text:
            return True
    return False


def read_history(raw: bytes) -> tuple[list[HistoryEntry], list[Finding]]:
    """Read the lines of ``approve-design-history.jsonl``; a line that cannot be read is a finding with its number.

    A line with an error is no entry: it must not be taken for an answer of the user.
    """
    entries, found = _read_lines(raw, HistoryEntry, _history_findings)
    return [entry for entry in entries if not has_errors(_history_findings(entry))], found


def read_outputs(raw: bytes) -> tuple[list[OutputEntry], list[Finding]]:
    """Read the lines of ``outputs.jsonl``; a line that cannot be read is a finding with its number."""
    return _read_lines(raw, OutputEntry, lambda entry: moment_findings(entry.at, ""))


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
            said = "; ".join(f"{finding.path} {finding.message}".strip() for finding in broken.findings)
            found.append(Finding("history-line", f"The line is no entry of this file: {said}", line=number))
        except (ValueError, RecursionError):
            message = "The line is no JSON object; it may have been cut short by a crash, and is not read."
            found.append(replace(warning("history-torn", message), line=number))
        else:
            found += [replace(finding, line=number) for finding in check(entry)]
    return entries, found


def _history_findings(entry: HistoryEntry) -> Iterator[Finding]:
    yield from moment_findings(entry.at, "")
    if entry.decision_id != APPROVE_DESIGN or not asks_changes(entry.answer):
        message = "The history holds answers to UD-APPROVE-DESIGN that ask for changes, and nothing else."
        yield Finding("history-line", message)
