"""Every regular expression of the source: where it is used, how, texts that keep it busy, and what Pythons misread."""

from __future__ import annotations

import ast
import importlib
import re
from collections import defaultdict
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path
from typing import TYPE_CHECKING, Any

import accord
import accord_sandbox

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

FLAGS_AT = {"compile": 1, "sub": 4, "subn": 4, "split": 3}
METHODS = frozenset(("search", "match", "fullmatch", "sub", "subn", "split", "findall", "finditer"))


@dataclass(frozen=True)
class Use:
    """A compiled expression, and one method that the source calls on it; ``search`` if the source passes it on."""

    place: str
    pattern: re.Pattern[Any]
    method: str

    @property
    def file(self) -> str:
        """Return the file and line, below the folder of the packages."""
        module, _, line = self.place.partition(":")
        path = Path(importlib.import_module(module).__file__ or "")
        return f"{path.relative_to(Path(accord.__path__[0]).parent).as_posix()}:{line}"

    def run(self, text: str) -> None:
        subject: Any = text if isinstance(self.pattern.pattern, str) else text.encode()
        if self.method in ("sub", "subn"):
            getattr(self.pattern, self.method)(subject[:0], subject)
        else:
            found = getattr(self.pattern, self.method)(subject)
            if self.method == "finditer":
                list(found)


def modules() -> Iterator[tuple[str, ast.Module]]:
    for package in (accord, accord_sandbox):
        root = Path(package.__path__[0])
        for path in sorted(root.rglob("*.py")):
            parts = path.relative_to(root.parent).with_suffix("").parts
            yield ".".join(parts).removesuffix(".__init__"), ast.parse(path.read_text(encoding="utf-8"))


def uses(local_names: Mapping[str, Sequence[Mapping[str, Any]]]) -> list[Use]:
    """List every use. ``local_names`` has values for the local names in an expression, by module and function."""
    trees = dict(modules())
    called: defaultdict[str, set[str]] = defaultdict(set)
    for module, tree in trees.items():
        for node in ast.walk(tree):
            if isinstance(node, ast.Attribute) and node.attr in METHODS:
                names = (getattr(name, "id", getattr(name, "attr", "")) for name in ast.walk(node.value))
                for name in filter(None, names):
                    called[_place(module, name)].add(node.attr)
    return [
        Use(f"{module}:{call.lineno}", pattern, method)
        for module, tree in trees.items()
        for call, function, target in _calls(tree)
        for pattern in _compiled(call, module, local_names.get(f"{module}.{function}", ({},)))
        for method in sorted({_method(call)} & METHODS or called[_place(module, target)] or {"search"})
    ]


def _place(module: str, name: str) -> str:
    """Return a key of a name: a private one means something else in another module."""
    return f"{module}.{name}" if name.startswith("_") else name or f"{module}."


def _method(call: ast.Call) -> str:
    attribute = call.func.attr if isinstance(call.func, ast.Attribute) else ""
    return attribute if attribute in METHODS | {"compile"} else ""


def _calls(node: ast.AST, function: str = "", target: str = "") -> Iterator[tuple[ast.Call, str, str]]:
    """Yield each call of a function of ``re`` with an expression, the function around it, and the name it is given."""
    if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
        function, target = node.name, ""
    elif isinstance(node, (ast.Assign, ast.AnnAssign)):
        names = node.targets if isinstance(node, ast.Assign) else [node.target]
        target = next((getattr(name, "id", getattr(name, "attr", "")) for name in names), "")
    assert not (isinstance(node, ast.ImportFrom) and node.module == "re"), "Write `re.`, so that this finds it."
    if isinstance(node, ast.Call) and _method(node) and getattr(node.func.value, "id", "") == "re":  # type: ignore[attr-defined]
        yield node, function, target
    for child in ast.iter_child_nodes(node):
        yield from _calls(child, function, target)


def _compiled(call: ast.Call, module: str, values: Sequence[Mapping[str, Any]]) -> Iterator[re.Pattern[Any]]:
    at = FLAGS_AT.get(_method(call), 2)
    flags = [keyword.value for keyword in call.keywords if keyword.arg == "flags"] or call.args[at : at + 1]
    names = vars(importlib.import_module(module))
    for local in values:
        expression, *given = (eval(ast.unparse(node), {**names, **local}) for node in (call.args[0], *flags))
        yield re.compile(expression, *given)


MISREAD = {"POSSESSIVE_REPEAT": "a possessive quantifier", "ATOMIC_GROUP": "an atomic group"}


def misread(pattern: re.Pattern[Any]) -> list[str]:
    """Name what Python before 3.11.5 misreads in an expression (https://github.com/python/cpython/issues/106052)."""
    operations = set(_operations(_parsed(pattern)))
    return [name for operation, name in MISREAD.items() if operation in operations]


def _operations(value: Any) -> Iterator[str]:
    if isinstance(value, re._parser.SubPattern):
        for operation, inner in value:
            yield str(operation)
            yield from _operations(inner)
    elif isinstance(value, (list, tuple)):
        for inner in value:
            yield from _operations(inner)


def _parsed(pattern: re.Pattern[Any]) -> Any:
    source = pattern.pattern if isinstance(pattern.pattern, str) else pattern.pattern.decode("latin-1")
    return re._parser.parse(source, pattern.flags & ~re.UNICODE)


def pumped(pattern: re.Pattern[Any], units: Sequence[str], size: int) -> Iterator[str]:
    """Yield texts of ``size`` characters: each unit, what each repeat repeats, and what follows it, over and over."""
    found: set[tuple[str, str]] = {("", unit) for unit in units}
    found.add(("", _example(_parsed(pattern), "", found, {})))
    for before, unit in sorted(found):
        if unit:
            yield before + unit * (size // len(unit)) + "\0"


def _example(tokens: Any, before: str, found: set[tuple[str, str]], groups: dict[int, str]) -> str:
    """Return a text that these tokens match, and note what each of their repeats repeats, and after which text."""
    text = ""
    for (operation, value), following in zip_longest(tokens, tokens[1:]):
        name, here = str(operation), before + text
        if name in ("MAX_REPEAT", "MIN_REPEAT"):
            least, most, inner = value
            unit = _example(inner, here, found, groups)
            if most > 40:
                found |= {(here, unit), ("", here + unit)}
                if following and str(following[0]) in ("LITERAL", "IN"):
                    found.add((here, _character(str(following[0]), following[1])))
            text += unit * min(least, 40)
        elif name == "SUBPATTERN":
            groups[value[0]] = _example(value[-1], here, found, groups)
            text += groups[value[0]]
        elif name == "BRANCH":
            examples = [_example(branch, here, found, groups) for branch in value[1]]
            text += examples[0]
        elif name in ("ASSERT", "ASSERT_NOT"):
            _example(value[1], here, found, groups)
        elif name == "GROUPREF":
            text += groups.get(value, "")
        elif name != "AT":
            text += _character(name, value)
    return text


def _character(name: str, value: Any) -> str:
    if name == "LITERAL":
        return chr(value)
    if name == "RANGE":
        return chr(value[0])
    if name == "CATEGORY":
        return {"CATEGORY_DIGIT": "0", "CATEGORY_SPACE": " ", "CATEGORY_WORD": "a"}.get(str(value), "-")
    if name == "IN":
        rest = [(str(kind), inner) for kind, inner in value]
        if rest[0][0] != "NEGATE":
            return _character(*rest[0])
        value = re.compile("".join(map(_as_class, rest[1:])) and f"[^{''.join(map(_as_class, rest[1:]))}]")
        return next(char for char in _PLAIN if value.match(char))
    return next(char for char in _PLAIN if name == "ANY" or ord(char) != value)


_PLAIN = "a -.:/x1\n" + "".join(map(chr, range(0x250)))


def _as_class(part: tuple[str, Any]) -> str:
    name, value = part
    if name == "CATEGORY":
        letter = {"DIGIT": "d", "SPACE": "s", "WORD": "w"}[str(value).rpartition("_")[2]]
        return "\\" + (letter.upper() if "NOT" in str(value) else letter)
    return "-".join(re.escape(chr(code)) for code in (value if name == "RANGE" else (value,)))
