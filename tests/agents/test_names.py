"""The names of agents are data: no code names one, apart from the readers of their transcripts."""

from __future__ import annotations

import ast
import re
from pathlib import Path
from typing import TYPE_CHECKING

import accord
from accord.agents.providers import STRUCTURED
from accord.agents.registry import shipped_registry

if TYPE_CHECKING:
    from collections.abc import Iterator

SOURCES = Path(accord.__file__).parent
KNOWING = ("agents/", "runner/transcripts/")
"""The data, and the readers of transcripts, whose formats have the names of the programs that print them."""

CONTRACTS = re.compile(
    "copilot_instructions_exists|copilot_checked_at|instructions for Copilot|copilot-requests|CLAUDE_API"
)
"""Words of contracts: fields of a session's status, a permission of GitHub, a variable of task analysis with a key."""


def names() -> list[str]:
    agents = {name: agent for name, agent in shipped_registry().agents.items() if name != "command"}
    programs = [word for agent in agents.values() for word in (agent.command[0], *agent.programs)]
    return sorted({*STRUCTURED, *agents, *programs}, key=len, reverse=True)


def folders() -> list[str]:
    files = [*shipped_registry().steering_patterns, *shipped_registry().state_patterns]
    return sorted({name.strip("*/") for name in files if name.startswith(".")})


NAME = re.compile(
    rf"(?<![^\W_])(?:{'|'.join(map(re.escape, names()))})(?![^\W_])"
    rf"|(?<![\w)\]}}])(?:{'|'.join(map(re.escape, folders()))})(?![\w-])",
    re.IGNORECASE,
)
IDENTIFIER = re.compile(NAME.pattern)
"""Without regard to case, a class `Cursor` would be an agent's."""


def words_of(tree: ast.Module) -> Iterator[str]:
    """Yield the identifiers and the texts of a module that name an agent; docstrings and imports may."""
    prose = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in prose:
            if NAME.search(CONTRACTS.sub("", node.value)):
                yield node.value
        elif not isinstance(node, ast.alias):
            for word in (getattr(node, key, None) for key in ("id", "attr", "arg", "name")):
                if isinstance(word, str) and IDENTIFIER.search(
                    CONTRACTS.sub("", word.lower() if word.isupper() else word)
                ):
                    yield word


def test_no_code_names_an_agent() -> None:
    texts = {path.relative_to(SOURCES).as_posix(): path.read_text(encoding="utf-8") for path in SOURCES.rglob("*.py")}
    named = {name: text for name, text in texts.items() if not name.startswith(KNOWING) and NAME.search(text)}
    found = [f"{name}: {word!r:.80}" for name, text in sorted(named.items()) for word in words_of(ast.parse(text))]
    assert not found, "Move these to an entry of src/accord/agents/registry.yml:\n" + "\n".join(found)


def test_no_data_of_the_package_names_an_agent() -> None:
    data = [path for kind in ("yml", "md", "json") for path in SOURCES.rglob(f"*.{kind}")]
    examples = {
        "workflows/needed-permissions.json",  # generated; it names the runner workflows, which users call by name
        "workflows/two-jobs.yml",  # a template to copy, which starts some agent
    }
    found = [
        f"{name}: {hit[0]}"
        for path in data
        if not (name := path.relative_to(SOURCES).as_posix()).startswith(KNOWING) and name not in examples
        for hit in NAME.finditer(CONTRACTS.sub("", path.read_text(encoding="utf-8")))
    ]
    assert not found, "Move these to an entry of src/accord/agents/registry.yml:\n" + "\n".join(found)


def test_a_name_is_found_wherever_code_can_have_one() -> None:
    code = '"""Prose about codex."""\nCODEX = 1\nx = ".claude/settings.json"\ndef is_gemini(): ...\nclass Cursor: ...\n'
    assert sorted(words_of(ast.parse(code))) == [".claude/settings.json", "CODEX", "is_gemini"]
