"""The part of GraphQL's language that clients of GitHub ask questions in: one query, its fields, arguments, fragments.

Source: GraphQL specification, October 2021, "Language". Mutations, named fragments and directives are refused.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping

_WORD = re.compile(
    r'(?P<skip>[\s,\ufeff]+|#[^\n]*)|(?P<name>[_A-Za-z]\w*)|(?P<number>-?\d+)|(?P<text>"(?:[^"\\\n]|\\.)*")'
    r"|(?P<sign>\.\.\.|[{}()\[\]:$!=])"
)
_VALUES: Mapping[str, Any] = {"true": True, "false": False, "null": None}
_DEPTH = 30


class Malformed(Exception):
    """The text is no query that can be read; the message is in GitHub's manner."""


class Variable(NamedTuple):
    """The place of a value that comes with the request."""

    name: str


@dataclass(frozen=True)
class Selection:
    """A field that is asked for; ``on`` is the type of the fragment it stands in, empty outside of one."""

    name: str
    alias: str
    on: str
    arguments: Mapping[str, Any]
    fields: tuple[Selection, ...]


@dataclass(frozen=True)
class Query:
    """A query: its name, its variables with whether they are required, and its fields."""

    name: str
    variables: Mapping[str, bool]
    fields: tuple[Selection, ...]


def read_query(text: str) -> Query:
    """Read the one operation of a document. Raises Malformed."""
    reader = _Reader(text)
    name, variables = "", {}
    if reader.peek() != "{":
        if (kind := reader.take()) != "query":
            raise Malformed(f'Parse error on "{kind}": only queries are answered here')
        if reader.peek() not in ("{", "("):
            name = reader.take_name()
        if reader.peek() == "(":
            variables = _variables(reader)
    fields = _selections(reader, "", 0)
    if reader.peek():
        raise Malformed(f'Parse error on "{reader.peek()}": one operation is answered here')
    return Query(name, variables, fields)


@dataclass
class _Reader:
    text: str
    found: list[str] = field(default_factory=list)
    at: int = 0

    def __post_init__(self) -> None:
        place = 0
        while place < len(self.text):
            match = _WORD.match(self.text, place)
            if match is None:
                raise Malformed(f'Parse error on "{self.text[place]}" (UNKNOWN_CHAR)')
            place = match.end()
            if match.lastgroup != "skip":
                self.found.append(match.group())

    def peek(self) -> str:
        return self.found[self.at] if self.at < len(self.found) else ""

    def take(self, wanted: str = "") -> str:
        word = self.peek()
        if not word or (wanted and word != wanted):
            raise Malformed(f'Parse error on "{word}"' if word else "Unexpected end of document")
        self.at += 1
        return word

    def take_name(self) -> str:
        word = self.take()
        if not re.fullmatch(r"[_A-Za-z]\w*", word):
            raise Malformed(f'Parse error on "{word}"')
        return word


def _variables(reader: _Reader) -> dict[str, bool]:
    found = {}
    reader.take("(")
    while reader.peek() != ")":
        reader.take("$")
        name = reader.take_name()
        reader.take(":")
        reader.take_name()
        found[name] = reader.peek() == "!"
        if found[name]:
            reader.take()
    reader.take(")")
    return found


def _selections(reader: _Reader, on: str, depth: int) -> tuple[Selection, ...]:
    if depth > _DEPTH:
        raise Malformed("Query has depth of more than the limit")
    reader.take("{")
    found: list[Selection] = []
    while reader.peek() != "}":
        if reader.peek() == "...":
            reader.take()
            reader.take("on")
            found += _selections(reader, reader.take_name(), depth + 1)
            continue
        found.append(_selection(reader, on, depth))
    reader.take("}")
    return tuple(found)


def _selection(reader: _Reader, on: str, depth: int) -> Selection:
    name = alias = reader.take_name()
    if reader.peek() == ":":
        reader.take()
        name = reader.take_name()
    arguments: dict[str, Any] = {}
    if reader.peek() == "(":
        reader.take()
        while reader.peek() != ")":
            key = reader.take_name()
            reader.take(":")
            arguments[key] = _value(reader)
        reader.take(")")
    fields = _selections(reader, "", depth + 1) if reader.peek() == "{" else ()
    return Selection(name, alias, on, arguments, fields)


def _value(reader: _Reader, depth: int = 0) -> Any:
    if depth > _DEPTH:
        raise Malformed("Query has depth of more than the limit")
    word = reader.take()
    if word == "$":
        return Variable(reader.take_name())
    if word == "[":
        values = []
        while reader.peek() != "]":
            values.append(_value(reader, depth + 1))
        reader.take("]")
        return values
    if word.startswith('"'):
        try:
            return json.loads(word)
        except ValueError:  # an escape that neither language has
            raise Malformed(f'Parse error on "{word}" (STRING)') from None
    return int(word) if re.fullmatch(r"-?\d+", word) else _VALUES.get(word, word)
