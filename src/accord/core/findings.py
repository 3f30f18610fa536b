"""Findings: how every contract reports its violations."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from enum import StrEnum
from typing import Any

from accord.core.frozen import Frozen


def sentence(text: str) -> str:
    """End untrusted text as a sentence, so that another sentence can follow."""
    return text if not text or text.endswith((".", "!", "?", "…")) else f"{text}."


def names_of(names: Sequence[str], most: int = 10, between: str = ", ") -> str:
    """Return the first of some names as a list in a sentence, and how many more there are."""
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return f"{between.join(names[:most])}{more}"


def count_of(number: int, noun: str) -> str:
    """Return a number with its noun."""
    return f"{number} {noun}{'' if number == 1 else 's'}"


class Severity(StrEnum):
    """How much a finding weighs: one error means that nothing at all is written."""

    ERROR = "error"
    WARNING = "warning"


class Finding(Frozen):
    """One violation of a contract."""

    code: str  # stable and kebab-case
    message: str  # what is wrong
    path: str = ""  # RFC 6901 JSON pointer into the artifact
    severity: Severity = Severity.ERROR
    line: int | None = None  # from 1 in the file the artifact was read from
    hint: str = ""  # how to fix it, in sentences or as YAML to paste
    quote: str = ""
    """The part of the value that it is about, by which ``with_lines`` finds the line in a text of several lines."""

    @property
    def has_sentence(self) -> bool:
        """Whether the hint is prose, not YAML."""
        return self.hint.endswith((".", "?"))

    @property
    def text(self) -> str:
        """The message, with the hint if that is prose."""
        return f"{self.message} {self.hint}" if self.has_sentence else self.message

    def as_json(self) -> dict[str, Any]:
        """Return the finding as the JSON object of ``accord check``; ``line`` and ``hint`` only where there are any."""
        found = asdict(self)
        del found["quote"]
        return {key: value for key, value in found.items() if key not in ("line", "hint") or value}


def finding_of(code: str, text: str, path: str = "") -> Finding:
    """Make an error from a text whose first sentence says what is wrong and whose others say what to do."""
    message, _, hint = text.partition(". ")
    return Finding(code, sentence(message), path, hint=hint)


def warning(code: str, message: str, path: str = "", *, hint: str = "") -> Finding:
    """Make a finding that is reported and stops nothing."""
    return Finding(code, message, path, Severity.WARNING, hint=hint)


def first_of(findings: Sequence[Finding], what: str = "findings") -> Iterator[Finding]:
    """Yield the first finding of a file, if it has any, with how many more there are."""
    rest = f" More {what} in this file: {len(findings) - 1}." if findings[1:] else ""
    yield from (replace(each, message=each.message + rest) for each in findings[:1])


def has_errors(findings: Iterable[Finding]) -> bool:
    """Return whether these findings forbid writing."""
    return any(finding.severity is Severity.ERROR for finding in findings)


def pointer(*steps: str | int) -> str:
    """Write a JSON pointer, escaping ``~`` and ``/`` as RFC 6901 asks."""
    return "".join(["/" + str(step).replace("~", "~0").replace("/", "~1") for step in steps])


def with_lines(findings: Iterable[Finding], lines: Mapping[str, int], source: str = "") -> list[Finding]:
    """Give each finding the line of its pointer, or of the nearest parent that is there, and sort by line.

    With the ``source``, one that quotes a part of its value gets the first line from there on that has the quote.
    """

    def line_of(path: str, quote: str) -> int | None:
        while path not in lines and path:
            path = path.rpartition("/")[0]
        start = lines.get(path)
        first = quote.partition("\n")[0].rstrip()
        below = source.splitlines()[start - 1 :] if start and first else ()
        return next((start + i for i, line in enumerate(below) if start and first in line), start)

    placed = [
        each if each.line is not None else replace(each, line=line_of(each.path, each.quote)) for each in findings
    ]
    return sorted(placed, key=lambda finding: finding.line or 0)


PlacedFinding = tuple[str, Finding]
"""A path below the repository's root, and a finding in that file."""


class DoctorCheck(Frozen):
    """One check: its subject or the reason to skip it, and its findings, each with a path in the repository."""

    name: str
    note: str = ""
    findings: Sequence[PlacedFinding] = ()
    is_skipped: bool = False

    @property
    def status(self) -> str:
        """One of ok, warning, error and skipped."""
        if self.findings:
            return "error" if has_errors(finding for _, finding in self.findings) else "warning"
        return "skipped" if self.is_skipped else "ok"


def page_of(page: str, code: str) -> str:
    """Return the address of a code's line in a page of the documentation."""
    return f"https://github.com/accord-ci/accord/blob/main/docs/{page}.md#{code}"
