"""GitHub's expressions: what they read, and what their value can be.

``${{ inputs.skip && 'a' || 'b' }}`` reads an input, but its value is only ever ``a`` or ``b``. Source: GitHub
documentation, "Evaluate expressions in workflows and actions".
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator
from functools import cached_property, lru_cache
from typing import Any

from accord.core.frozen import Frozen

Reference = tuple[str, ...]
"""A context and its properties, such as ``("steps", "run", "outputs", "exit-code")``. Case is ignored."""

_EMBEDDED = re.compile(r"\$\{\{([^'}]*(?:(?:'[^']*'|\}(?!\}))[^'}]*)*)(?:\}\}|(?P<open>))")
"""A doubled quotation mark is two texts side by side. An expression without an end is skipped in one step."""

_TOKEN = re.compile(
    r"(?:(?<!\s)\s+)?(?P<text>'(?:[^']|'')*'|[-+]?(?:0x[0-9A-Fa-f]+|\d+(?:\.\d+)?(?:[eE][-+]?\d+)?)(?![\w.])"
    r"|[A-Za-z_][\w-]*|&&|\|\||[!<>=]=|[()\[\],.!<>*])"
)
_CONSTANTS = {"true": True, "false": False, "null": None, "nan": math.nan, "infinity": math.inf}
_MOST_LEVELS = 100
"""GitHub refuses calls within calls deeper than 50 levels (actions/runner, ``ExpressionConstants``)."""

_VERDICTS = frozenset({"contains", "startswith", "endswith", "hashfiles", "success", "failure", "always", "cancelled"})
"""Functions whose result is true, false or a digest."""


class Node(Frozen):
    """A part of an expression. The kind ``of`` reads properties of its first part."""

    kind: str  # literal, read, call, of, not, and, or, or an operator that compares
    parts: tuple[Node, ...] = ()  # operands, arguments and indexes
    value: str | float | bool | None = None  # of a literal
    name: str = ""  # of a function
    reference: Reference = ()

    @cached_property
    def reads(self) -> frozenset[Reference]:
        """The references that are read."""
        own = frozenset({self.reference}) if self.reference else frozenset()
        return own.union(*(part.reads for part in self.parts))

    @cached_property
    def calls(self) -> frozenset[str]:
        """The names of the functions that are called."""
        own = frozenset({self.name}) if self.kind == "call" else frozenset()
        return own.union(*(part.calls for part in self.parts))

    @cached_property
    def yields(self) -> frozenset[Reference]:
        """The references that can be in the value; those of ``toJSON`` end with ``*``, for all that is below."""
        match self.kind:
            case "read":
                return frozenset({self.reference})
            case "and":  # the value is that of the last, or of one that is false, empty or zero
                return self.parts[-1].yields
            case "of":
                return self.parts[0].yields
            case "call" if self.name == "tojson":
                return frozenset((*ref, "*") for part in self.parts for ref in part.yields)
            case "or" | "call" if self.name not in _VERDICTS:
                return frozenset[Reference]().union(*(part.yields for part in self.parts))
        return frozenset()


def embedded_expressions(text: str) -> Iterator[str]:
    """Yield each expression of a text, without its ``${{`` and ``}}``."""
    return (match.group(1).strip() for match in _EMBEDDED.finditer(text) if match["open"] is None)


@lru_cache(maxsize=4096)
def parse(expression: str) -> Node | None:
    """Parse an expression; None when it is invalid."""
    expression = expression.rstrip()
    reader = _ExpressionParser(_TOKEN.findall(expression))
    try:
        found = reader.any_of()
    except (SyntaxError, RecursionError):
        return None
    is_whole = not (reader.left or _TOKEN.sub("", expression))
    level = [found]
    for _ in range(_MOST_LEVELS):
        level = [part for node in level for part in node.parts]
    return found if is_whole and not level else None


def parse_condition(condition: object) -> Node | None:
    """Parse the value of ``if``, with or without ``${{``; None when it cannot be read."""
    text = "true" if condition is None else str(condition).strip()
    whole = _EMBEDDED.fullmatch(text)
    if whole and whole["open"] is None:
        return parse(whole.group(1).strip())
    return None if "${{" in text else parse(text)


class _ExpressionParser:
    def __init__(self, tokens: list[str]) -> None:
        self.left = tokens[::-1]  # the next one last

    def any_of(self) -> Node:
        """``a || b``: the value is that of one of them."""
        return self._joined_by("||", "or", lambda: self._joined_by("&&", "and", self._comparison))

    def _joined_by(self, sign: str, kind: str, part: Callable[[], Node]) -> Node:
        parts = [part()]
        while self._accept(sign):
            parts.append(part())
        return Node(kind, tuple(parts)) if parts[1:] else parts[0]

    def _comparison(self) -> Node:
        found = self._negation()
        while operator := self._accept("==", "!=", "<", "<=", ">", ">="):
            found = Node(operator, (found, self._negation()))
        return found

    def _negation(self) -> Node:
        return Node("not", (self._negation(),)) if self._accept("!") else self._value()

    def _value(self) -> Node:
        if self._accept("("):
            found = self.any_of()
            self._expect(")")
        else:
            word = self._take()
            if word[0] in "'+-" or word[0].isdigit() or word.lower() in _CONSTANTS:
                return Node("literal", value=_literal(word))
            if not (word[0].isalpha() or word[0] == "_"):
                raise SyntaxError(word)
            if not self._accept("("):
                names, indexes = self._properties()
                return Node("read", indexes, reference=(word.lower(), *names))
            found = self._call(word.lower())
        names, indexes = self._properties()
        return Node("of", (found, *indexes)) if names else found

    def _call(self, name: str) -> Node:
        arguments = []
        while not self._accept(")"):
            arguments.append(self.any_of())
            if not self._accept(","):
                self._expect(")")
                break
        return Node("call", tuple(arguments), name=name)

    def _properties(self) -> tuple[list[str], tuple[Node, ...]]:
        """Read ``.name``, ``['name']``, ``.*`` and ``[expression]``, the last two as ``*``, and those expressions."""
        indexes, names = [], []
        while True:
            if self._accept("."):
                name = self._take()
                if name != "*" and not (name[0].isalpha() or name[0] == "_"):
                    raise SyntaxError(name)
                names.append(name.lower())
            elif self._accept("["):
                index = None if self._accept("*") else self.any_of()
                self._expect("]")
                is_name = index is not None and isinstance(index.value, str)
                names.append(str(index.value).lower() if index and is_name else "*")
                indexes += [index] if index and not is_name else []
            else:
                return names, tuple(indexes)

    def _accept(self, *wanted: str) -> str:
        return self.left.pop() if self.left and self.left[-1] in wanted else ""

    def _expect(self, wanted: str) -> None:
        if not self._accept(wanted):
            raise SyntaxError(wanted)

    def _take(self) -> str:
        if not self.left:
            raise SyntaxError("end")
        return self.left.pop()


def _literal(word: str) -> str | float | bool | None:
    if word[0] == "'":
        return word[1:-1].replace("''", "'")
    if word.lower() in _CONSTANTS:
        return _CONSTANTS[word.lower()]
    return float(int(word, 16)) if "0x" in word.lower() else float(word)


def reads(value: Any) -> list[Reference] | None:
    """Return the references that the expressions in a value read; None when one of them is invalid."""
    found: set[Reference] = set()
    for expression in embedded_expressions(str(value)):
        parsed = parse(expression)
        if parsed is None:
            return None
        found |= parsed.reads
    return sorted(found)


def all_reads(node: Any) -> Iterator[Reference]:
    """Yield all references in a part of a workflow, also in conditions without ``${{``."""
    if isinstance(node, dict):
        for key, child in node.items():
            bare = parse(child) if key == "if" and isinstance(child, str) and "${{" not in child else None
            yield from bare.reads if bare else all_reads(child)
    elif isinstance(node, list):
        for child in node:
            yield from all_reads(child)
    elif isinstance(node, str):
        yield from reads(node) or ()


def secrets_in(node: Any) -> set[str]:
    """Return the names of the secrets that a part of a workflow reads, in lower case."""
    return {read[1] for read in all_reads(node) if read[0] == "secrets" and read[1:]}
