"""Workflow commands, written so that no text can forge one (GitHub documentation, "Workflow commands")."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from accord.core.findings import Finding, Severity
from accord.text.hidden import as_seen

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

ANNOTATIONS_PER_TYPE = 10

_CONTROL = re.compile(r"[\x00-\x09\x0b\x0c\x0e-\x1f\x7f-\x9f]")
_UNSEEN = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]+")
COMMAND = re.compile(r"##(?=\[)|^[^\S\n]*+:(?=:)", re.MULTILINE)
"""Output that a runner obeys: ``::name::`` at the start of a line, the old ``##[name]`` anywhere."""


def escape_data(text: str) -> str:
    """Escape the message of a workflow command: what ends a line becomes percent codes, other control a blank."""
    return _CONTROL.sub(" ", as_seen(text)).replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def escape_property(text: str) -> str:
    """Escape the value of a property of a workflow command."""
    return escape_data(text).replace(":", "%3A").replace(",", "%2C")


def command(name: str, message: str, **properties: str | int | None) -> str:
    """Write one workflow command; properties that are None are left out."""
    given = ",".join(f"{key}={escape_property(str(value))}" for key, value in properties.items() if value is not None)
    return f"::{name}{' ' + given if given else ''}::{escape_data(message)}"


def annotate(findings: Iterable[Finding], file: str | None) -> Iterator[str]:
    """Turn findings into annotations on ``file``, at most ten of each severity, the tenth naming the rest."""
    by_severity: dict[Severity, list[Finding]] = {}
    for finding in findings:
        by_severity.setdefault(finding.severity, []).append(finding)
    for severity, group in by_severity.items():
        shown = group if len(group) <= ANNOTATIONS_PER_TYPE else group[: ANNOTATIONS_PER_TYPE - 1]
        for finding in shown:
            line = finding.line if file else None
            yield command(severity, finding.text, file=file, line=line, title=finding.code)
        if len(shown) < len(group):
            rest = f"{len(group) - len(shown)} more findings of this severity are in the step summary."
            yield command(severity, rest, file=file, title="more findings")


def inert(text: str) -> str:
    """Write untrusted text as one line that a runner and a terminal show and do not obey; later commands still work."""
    line = _UNSEEN.sub(" ", as_seen(text)).strip()
    return COMMAND.sub(lambda match: match.group() + "\N{ZERO WIDTH NON-JOINER}", line)
