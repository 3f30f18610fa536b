"""Label files: lists of ``{name, description, color, aliases?}`` in YAML or JSON, checked without asking GitHub."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from accord.github.limits import LABEL_DESCRIPTION_CHARS, LABEL_NAME_CHARS
from accord.kernel.errors import BrokenContract
from accord.kernel.findings import Finding, pointer, with_lines
from accord.kernel.yaml_files import read_yaml

_COLOR = re.compile(r"[0-9a-fA-F]{6}")
_KEYS = frozenset({"name", "description", "color", "aliases"})


@dataclass(frozen=True)
class LabelEntry:
    """One label as a file wants it; ``color`` in lower case, ``aliases`` its former names."""

    name: str
    description: str
    color: str
    aliases: tuple[str, ...] = ()


def parse_labels(raw: bytes) -> tuple[LabelEntry, ...]:
    """Read a label file. Raises BrokenContract with every finding, each on its line."""
    document = read_yaml(raw)
    entries = document.value
    if not isinstance(entries, list):
        message = "A label file is a list of labels, each with name, description and color."
        raise BrokenContract.of(Finding("schema", message, line=1))
    findings = [finding for i, entry in enumerate(entries) for finding in _entry_findings(entry, pointer(i))]
    if not findings:
        findings = _repetitions(entries)
    if findings:
        placed = with_lines(findings, document.lines)
        raise BrokenContract("The label file does not hold.", findings=placed)
    return tuple(
        LabelEntry(
            entry["name"],
            entry.get("description") or "",
            entry["color"].lower(),
            tuple(entry.get("aliases") or ()),
        )
        for entry in entries
    )


def _entry_findings(entry: Any, path: str) -> list[Finding]:
    if not isinstance(entry, dict):
        return [Finding("schema", "A label is a mapping with name, description and color.", path)]
    found = [
        Finding("schema", f'"{key}" is no key of a label. The keys are {", ".join(sorted(_KEYS))}.', path)
        for key in entry
        if key not in _KEYS
    ]
    found += _name_findings(entry.get("name"), path + "/name")
    description = entry.get("description") or ""
    if not isinstance(description, str) or len(description) > LABEL_DESCRIPTION_CHARS:
        message = f"A description is text of at most {LABEL_DESCRIPTION_CHARS} characters. Shorten it."
        found.append(Finding("schema", message, path + "/description"))
    color = entry.get("color")
    if not isinstance(color, str) or not _COLOR.fullmatch(color):
        message = f"A color is six hex digits without #, in quotes; this is {color!r}."
        found.append(Finding("schema", message, path + "/color"))
    aliases = entry.get("aliases") or []
    if not isinstance(aliases, list):
        return [*found, Finding("schema", "Aliases are a list of former names.", path + "/aliases")]
    for i, alias in enumerate(aliases):
        found += _name_findings(alias, f"{path}/aliases/{i}")
    return found


def _name_findings(name: Any, path: str) -> list[Finding]:
    if isinstance(name, str) and name.strip() == name and 0 < len(name) <= LABEL_NAME_CHARS:
        return []
    message = (
        f"A label's name is text of 1 to {LABEL_NAME_CHARS} characters without blanks around it; this is {name!r}."
    )
    return [Finding("schema", message, path)]


def _repetitions(entries: list[dict[str, Any]]) -> list[Finding]:
    """Find names that two entries claim; GitHub compares label names without case."""
    seen: dict[str, str] = {}
    found = []
    for i, entry in enumerate(entries):
        for j, name in enumerate([entry["name"], *(entry.get("aliases") or ())]):
            path = pointer(i, "name") if j == 0 else pointer(i, "aliases", j - 1)
            if name.lower() in seen:
                message = f'"{name}" is claimed at {seen[name.lower()]} already; names differ by more than case.'
                found.append(Finding("label-repeated", message, path))
            seen.setdefault(name.lower(), path)
    return found
