"""Findings as SARIF 2.1.0, for code scanning on GitHub and for editors.

Source: OASIS, "Static Analysis Results Interchange Format (SARIF) Version 2.1.0", and GitHub documentation, "SARIF
support for code scanning".
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Sequence
from pathlib import Path, PurePosixPath
from urllib.parse import quote

from accord import __version__
from accord.core.findings import Finding, Severity, page_of

SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
_LEVELS = {Severity.ERROR: "error", Severity.WARNING: "warning"}


def sarif_log(command: str, documents: Sequence[tuple[str, Sequence[Finding]]]) -> dict[str, object]:
    """Return the findings of a command as a SARIF log with one run. Paths are those of files below this directory."""
    codes = sorted({finding.code for _, findings in documents for finding in findings})
    results = []
    for path, findings in documents:
        alike: Counter[tuple[str, str, str]] = Counter()  # numbered, so that each has a fingerprint of its own
        for finding in findings:
            key = (finding.code, finding.path, finding.message)
            results.append(_result(path, finding, codes.index(finding.code), alike[key]))
            alike[key] += 1
    driver = {
        "name": "accord",
        "semanticVersion": __version__,
        "informationUri": "https://github.com/accord-ci/accord",
        "rules": [
            {
                "id": code,
                "shortDescription": {"text": f"{code.replace('-', ' ').capitalize()}."},
                "helpUri": page_of("findings", code),
            }
            for code in codes
        ],
    }
    run = {
        "tool": {"driver": driver},
        "automationDetails": {"id": f"accord/{command}/"},
        "columnKind": "unicodeCodePoints",
        "results": results,
    }
    return {"$schema": SCHEMA, "version": "2.1.0", "runs": [run]}


def _result(path: str, finding: Finding, rule: int, number: int) -> dict[str, object]:
    identity = "\0".join([path, finding.code, finding.path, finding.message, str(number)])
    place = {"artifactLocation": {"uri": _uri(path)}, "region": {"startLine": max(finding.line or 1, 1)}}
    location: dict[str, object] = {"physicalLocation": place}
    if finding.path:
        location["logicalLocations"] = [{"fullyQualifiedName": finding.path}]
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
