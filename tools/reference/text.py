"""Shared by all parts: the error for problems that people must fix, and text that fits into a table cell."""

from __future__ import annotations

import json
from functools import cache
from typing import Any

from accord.files.yaml import read_yaml

COMMAND = "./dev generate"
WRITTEN_BY = f"<!-- Written by tools/generate.py; change its source, then run {COMMAND}. -->"


class Problem(Exception):
    """A problem that the generator cannot fix itself."""


def plain(text: str) -> str:
    """Write text as one line of a table's cell."""
    return " ".join(text.split()).replace("|", "\\|")


def entry(name: str, meaning: str, *notes: str) -> str:
    """Write an entry of a list: a name in code, notes in brackets as far as there are any, and the meaning."""
    found = ", ".join(filter(None, notes))
    return f"- `{name}`{f' ({found})' if found else ''}: {' '.join(meaning.split())}".removesuffix(": ")


def with_anchor(code: str) -> str:
    """Write a code that links can lead to, in the documentation and on GitHub."""
    return f'<a id="{code}"></a>`{code}`'


def default(value: Any) -> str:
    """Write a default: text as code, booleans as YAML has them, nothing for the empty text."""
    if value is None or value == "":
        return ""
    return f"`{str(value).lower() if isinstance(value, bool) else value}`"


def as_json(document: Any) -> str:
    """Write a schema as a file."""
    return json.dumps(document, indent=2, ensure_ascii=False) + "\n"


@cache
def yaml_value(raw: bytes) -> Any:
    """Read a YAML document, once for all parts that are about it."""
    return read_yaml(raw).value
