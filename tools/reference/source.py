"""The codes of the findings that the source can report."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from reference.text import WRITTEN_BY, Problem, with_anchor, yaml_value

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

FINDINGS = "src/accord/cli/findings.yml"

SEVERITIES = {
    frozenset({"error"}): "",
    frozenset({"warning"}): ", warning",
    frozenset({"error", "warning"}): ", error or warning",
}
"""How the page names the severities of a code, after the code."""

_MAKES_FINDINGS = re.compile(r"\b(?:Finding|finding_of|warning)\(")


def findings_page(root: Path) -> str:
    """Describe every finding code of the source by the table that people write."""
    codes = codes_of(root / "src" / "accord")
    groups = yaml_value((root / FINDINGS).read_bytes())
    described = {code for group in groups for code in group["codes"]}
    if missing := sorted(codes.keys() - described):
        raise Problem(f"Finding codes without a line in {FINDINGS}: {', '.join(missing)}.")
    if stale := sorted(described - codes.keys()):
        raise Problem(f"{FINDINGS} describes codes that the source does not have: {', '.join(stale)}.")
    pieces = ["# Finding codes", WRITTEN_BY]
    pieces.append(
        "A finding names what breaks a contract, and where; `accord explain CODE` says how to fix it. A code without a "
        "severity is an error: nothing is written then. A warning stops nothing. Programs can rely on the codes."
    )
    seen: set[str] = set()
    for group in groups:
        lines = [
            f"- {f'`{code}`' if code in seen else with_anchor(code)}{SEVERITIES[frozenset(codes[code])]}: "
            f"{' '.join(text['means'].split())}"
            for code, text in group["codes"].items()
        ]
        seen |= group["codes"].keys()
        pieces += [f"## {group['title']}", group["intro"], "\n".join(lines)]
    return "\n\n".join(pieces) + "\n"


def codes_of(source: Path) -> dict[str, set[str]]:
    """Map each finding code of the source to its severities."""
    codes: dict[str, set[str]] = {}
    for path in sorted(source.rglob("*.py")):
        text = path.read_text(encoding="utf-8")
        for code, severity in codes_in(text, path.name) if _MAKES_FINDINGS.search(text) else ():
            codes.setdefault(code, set()).add(severity)
    return codes


@cache
def codes_in(text: str, name: str) -> Sequence[tuple[str, str]]:
    """List code and severity of each finding that a module makes, by the functions for it or a helper of its own.

    A helper is a function that hands its parameter ``code`` on. Raises Problem for a code that is not a constant.
    """
    tree = ast.parse(text)
    helpers = {
        function.name
        for function in ast.walk(tree)
        if isinstance(function, ast.FunctionDef)
        if any(hands_code_on(call.args[0]) for call in calls_in(function, {"Finding", "finding_of", "warning"}))
    }
    found = []
    for call in calls_in(tree, helpers | {"Finding", "finding_of", "warning"}):
        code = call.args[0]
        if isinstance(code, ast.Constant) and isinstance(code.value, str):
            is_warning = isinstance(call.func, ast.Name) and call.func.id == "warning"
            found.append((code.value, "warning" if is_warning else "error"))
        elif not hands_code_on(code):
            raise Problem(f"{name}:{call.lineno}: the finding's code is not a constant, so it cannot be listed.")
    return found


def calls_in(tree: ast.AST, names: set[str]) -> Iterator[ast.Call]:
    """Yield the calls of these functions that have an argument by position."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in names and node.args:
            yield node


def hands_code_on(argument: ast.expr) -> bool:
    """Tell whether an argument is the parameter ``code`` of a helper."""
    return isinstance(argument, ast.Name) and argument.id == "code"
