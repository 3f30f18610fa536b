"""Lists of consumers: which repositories to keep in step."""

from __future__ import annotations

import re

from accord.kernel.errors import BrokenContract
from accord.kernel.findings import Finding, pointer, with_lines
from accord.kernel.yaml_files import read_yaml

_NAME = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9-]*[A-Za-z0-9])?/[A-Za-z0-9._-]+")


def read_repositories(raw: bytes) -> list[str]:
    """Read a YAML or JSON list of ``OWNER/NAME``, each once. Raises BrokenContract with every finding on its line."""
    document = read_yaml(raw)
    names = document.value
    if not isinstance(names, list) or not names:
        message = "The file holds no list of repositories. Write one OWNER/NAME an entry."
        raise BrokenContract(message, findings=[Finding("schema", message, line=1)])
    findings = [
        Finding("schema", f"This is no repository: {name!r:.80}. Write it as OWNER/NAME.", pointer(i))
        for i, name in enumerate(names)
        if not isinstance(name, str) or not _NAME.fullmatch(name)
    ]
    if findings:
        findings = with_lines(findings, document.lines)
        told = " ".join(f"Line {finding.line}: {finding.message}" for finding in findings[:5])
        raise BrokenContract(f"The list of repositories does not hold. {told}", findings=findings)
    return list({name.lower(): name for name in reversed(names)}.values())[::-1]
