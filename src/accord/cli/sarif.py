"""Findings as SARIF 2.1.0, for code scanning on GitHub and for editors.

Source: OASIS, "Static Analysis Results Interchange Format (SARIF) Version 2.1.0", and GitHub documentation, "SARIF
support for code scanning".
"""

from __future__ import annotations

import hashlib
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from accord import __version__
from accord.core.findings import Severity, page_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from accord.core.findings import Finding

SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
_LEVELS = {Severity.ERROR: "error", Severity.WARNING: "warning"}


def sarif_log(command: str, documents: Sequence[tuple[str, Sequence[Finding]]]) -> dict[str, Any]:
    """Return the findings of a command as a SARIF log with one run. Paths are those of files below this directory."""
    codes = sorted({finding.code for _, findings in documents for finding in findings})
    places = {code: i for i, code in enumerate(codes)}
    results = [
        _result(path, finding, places[finding.code], i)
        for path, findings in documents
        for i, finding in _numbered(findings)
    ]
    driver = {
        "name": "accord",
        "semanticVersion": __version__,
        "informationUri": "https://github.com/accord-ci/accord",
        "rules": [_rule(code) for code in codes],
    }
    run = {
        "tool": {"driver": driver},
        "automationDetails": {"id": f"accord/{command}/"},
        "columnKind": "unicodeCodePoints",
        "results": results,
    }
    return {"$schema": SCHEMA, "version": "2.1.0", "runs": [run]}


def _rule(code: str) -> Mapping[str, Any]:
    words = code.replace("-", " ").capitalize()
    return {"id": code, "shortDescription": {"text": f"{words}."}, "helpUri": page_of("findings", code)}


def _numbered(findings: Sequence[Finding]) -> Sequence[tuple[int, Finding]]:
    """Number the findings that have code and pointer in common, so that each has a fingerprint of its own."""
    seen: dict[tuple[str, str, str], int] = {}
    numbered = []
    for finding in findings:
        key = (finding.code, finding.path, finding.message)
        seen[key] = seen.get(key, -1) + 1
        numbered.append((seen[key], finding))
    return numbered


def _result(path: str, finding: Finding, rule: int, number: int) -> Mapping[str, Any]:
    identity = "\0".join([path, finding.code, finding.path, finding.message, str(number)])
    location = {
        "physicalLocation": {
            "artifactLocation": {"uri": _uri(path)},
            "region": {"startLine": max(finding.line or 1, 1)},
        },
        **({"logicalLocations": [{"fullyQualifiedName": finding.path}]} if finding.path else {}),
    }
    return {
        "ruleId": finding.code,
        "ruleIndex": rule,
        "level": _LEVELS[finding.severity],
        "message": {"text": f"{finding.message}\n{finding.hint}".strip()},
        "locations": [location],
        "partialFingerprints": {"accord/v1": hashlib.sha256(identity.encode(errors="replace")).hexdigest()},
    }


def _uri(path: str) -> str:
    """Return a path as a URI, relative to this directory if it is below it; stdin has a name of its own."""
    if path == "-":
        return "stdin"
    place = Path(path)
    if place.is_absolute():
        here = Path.cwd()
        if not place.is_relative_to(here):
            return place.as_uri()
        place = place.relative_to(here)
    return quote(PurePosixPath(place).as_posix())
