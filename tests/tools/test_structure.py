"""The size and the order of the source: short modules and functions, one meaning a type name, no import circle."""

from __future__ import annotations

import ast
import re
from collections import Counter
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[2] / "src"
MODULES = {".".join(path.relative_to(ROOT).with_suffix("").parts): path for path in ROOT.rglob("*.py")}

NOUNS_AND_VERBS = {"feed", "finding", "heading", "mapping", "seed", "setting", "string", "succeed", "warning"}
STATUSES_OF_HTTP = {"created", "locked", "unauthorized"}


@cache
def statements() -> dict[str, list[ast.stmt]]:
    """Return the statements of each module, nested ones too."""
    found = {}
    for name, path in MODULES.items():
        nested: list[ast.AST] = [ast.parse(path.read_text("utf-8"))]
        for node in nested:
            for part in ("body", "orelse", "finalbody", "handlers", "cases"):
                value = getattr(node, part, ())
                nested += value if isinstance(value, list) else ()
        found[name.removesuffix(".__init__")] = [node for node in nested if isinstance(node, ast.stmt)]
    return found


def imports_of(module: str) -> set[str]:
    """Return the modules that one imports, also for types and in functions, without the packages that it is in."""
    found = set()
    for node in statements()[module]:
        if isinstance(node, ast.ImportFrom) and node.module:
            found |= {node.module, *(f"{node.module}.{name.name}" for name in node.names)}
        elif isinstance(node, ast.Import):
            found |= {name.name for name in node.names}
    return {name for name in found & statements().keys() if not f"{module}.".startswith(f"{name}.")}


def test_modules_and_functions_are_short() -> None:
    long = [name for name, path in MODULES.items() if len(path.read_text("utf-8").splitlines()) > 400]
    for node in (node for nodes in statements().values() for node in nodes):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.end_lineno:
            long += [node.name] if node.end_lineno - node.lineno >= 60 else []
    assert not long


def type_name(node: ast.stmt) -> str:
    """Return the name of a class or an alias; empty for any other statement."""
    if isinstance(node, ast.ClassDef):
        return node.name
    target = node.targets[0] if isinstance(node, ast.Assign) else getattr(node, "target", None)
    name = target.id if isinstance(target, ast.Name) else ""
    return name if re.fullmatch(r"_*[A-Z][A-Za-z0-9]*[a-z][A-Za-z0-9]*", name) else ""


def test_a_type_name_has_one_meaning() -> None:
    names = Counter(type_name(node) for nodes in statements().values() for node in nodes)
    assert not {name for name, count in names.items() if name and count > 1}


def test_a_function_name_is_more_than_a_participle() -> None:
    functions = [
        node
        for nodes in statements().values()
        for node in nodes
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and not re.search("property|contextmanager", str([ast.unparse(each) for each in node.decorator_list]))
    ]
    bare = {each.name for each in functions if re.fullmatch("_*[a-z]+(ed|ing|own|[kv]en|tten)", each.name)}
    assert {name.strip("_") for name in bare} <= NOUNS_AND_VERBS | STATUSES_OF_HTTP


def test_no_module_is_in_an_import_circle() -> None:
    circle: list[str] = []
    try:
        TopologicalSorter({name: imports_of(name) for name in statements()}).prepare()
    except CycleError as error:
        circle = error.args[1]
    assert not circle
