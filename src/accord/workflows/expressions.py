"""GitHub's expressions: which contexts a text takes in, and which of them can end up in it.

``${{ inputs.skip && 'a' || 'b' }}`` reads an input and can only ever become ``a`` or ``b``. A check that cannot tell
this from ``${{ inputs.appendix }}`` is one that people turn off. Source: GitHub documentation, "Evaluate expressions in
workflows and actions".
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator


Reference = tuple[str, ...]
"""A context and its properties, such as ``("steps", "run", "outputs", "exit-code")``; GitHub ignores case, so do we."""

_EMBEDDED = re.compile(r"\$\{\{((?:[^'}]++|'[^']*+'|\}(?!\}))*+)(?:\}\}|(?P<open>))")
"""Two texts side by side cover one with a quotation mark in it. What has no end is passed over, not read again."""

_TOKEN = re.compile(
    r"\s*(?P<text>'(?:[^']|'')*'|[-+]?(?:0x[0-9A-Fa-f]+|\d+(?:\.\d+)?(?:[eE][-+]?\d+)?)(?![\w.])"
    r"|[A-Za-z_][\w-]*|&&|\|\||[!<>=]=|[()\[\],.!<>*])"
)
_LITERALS = frozenset({"true", "false", "null", "nan", "infinity"})
_VERDICTS = frozenset({"contains", "startswith", "endswith", "hashfiles", "success", "failure", "always", "cancelled"})
"""Functions whose result is true, false or a digest, whatever they are asked about."""


@dataclass(frozen=True)
class Expression:
    """What an expression reads (``reads``), and what of it can be its value, whole or in part (``yields``)."""

    reads: frozenset[Reference] = frozenset()
    yields: frozenset[Reference] = frozenset()

    def and_reads(self, *others: Expression) -> Expression:
        """Return the same value, with what others read besides."""
        return Expression(self.reads.union(*(other.reads for other in others)), self.yields)


_CONSTANT = Expression()


def embedded(text: str) -> Iterator[str]:
    """Yield each expression of a text, without its ``${{`` and ``}}``."""
    return (match.group(1).strip() for match in _EMBEDDED.finditer(text) if match["open"] is None)


@lru_cache(maxsize=4096)
def parse(expression: str) -> Expression | None:
    """Read one expression; None when it is none."""
    tokens = []
    end = 0
    expression = expression.rstrip()
    while end < len(expression):
        match = _TOKEN.match(expression, end)
        if match is None:
            return None
        tokens.append(match["text"])
        end = match.end()
    reader = _Reader(tokens)
    try:
        found = reader.any_of()
    except (SyntaxError, RecursionError):
        return None
    return found if reader.is_at_end else None


class _Reader:
    """Recursive descent over the tokens of one expression."""

    def __init__(self, tokens: list[str]) -> None:
        self._tokens = tokens
        self._next = 0

    @property
    def is_at_end(self) -> bool:
        return self._next == len(self._tokens)

    def any_of(self) -> Expression:
        """``a || b``: the value is that of one of them."""
        found = self._all_of()
        while self._accept("||"):
            other = self._all_of()
            found = Expression(found.reads | other.reads, found.yields | other.yields)
        return found

    def _all_of(self) -> Expression:
        """``a && b``: the value is that of b, or of an a that is false, empty or zero."""
        found = self._comparison()
        while self._accept("&&"):
            found = self._comparison().and_reads(found)
        return found

    def _comparison(self) -> Expression:
        found = self._negation()
        while self._accept("==", "!=", "<", "<=", ">", ">="):
            found = _CONSTANT.and_reads(found, self._negation())
        return found

    def _negation(self) -> Expression:
        if self._accept("!"):
            return _CONSTANT.and_reads(self._negation())
        return self._value()

    def _value(self) -> Expression:
        if self._accept("("):
            found = self.any_of()
            self._expect(")")
        else:
            word = self._take().lower()
            if word[0] in "'+-" or word[0].isdigit() or word in _LITERALS:
                return _CONSTANT
            if not (word[0].isalpha() or word[0] == "_"):
                raise SyntaxError(word)
            if not self._accept("("):
                return self._reference(word)
            found = self._call(word)
        beside, _ = self._properties()
        return found.and_reads(beside)

    def _call(self, name: str) -> Expression:
        arguments = []
        while not self._accept(")"):
            arguments.append(self.any_of())
            if not self._accept(","):
                self._expect(")")
                break
        if name in _VERDICTS:
            return _CONSTANT.and_reads(*arguments)
        yields = frozenset[Reference]().union(*(argument.yields for argument in arguments))
        return Expression(yields=yields).and_reads(*arguments)

    def _reference(self, context: str) -> Expression:
        beside, properties = self._properties()
        reference = frozenset({(context, *properties)})
        return Expression(reference | beside.reads, reference)

    def _properties(self) -> tuple[Expression, list[str]]:
        """Read ``.name``, ``['name']``, ``.*`` and ``[expression]``, the last two as ``*``."""
        beside, names = _CONSTANT, []
        while True:
            if self._accept("."):
                name = self._take()
                if name != "*" and not (name[0].isalpha() or name[0] == "_"):
                    raise SyntaxError(name)
                names.append(name.lower())
            elif self._accept("["):
                names.append(self._literal_index())
                if names[-1] == "*" and not self._accept("*"):
                    beside = beside.and_reads(self.any_of())
                self._expect("]")
            else:
                return beside, names

    def _literal_index(self) -> str:
        """Take an index that is a text, up to the bracket; ``*``, and nothing taken, when it is anything else."""
        ahead = self._tokens[self._next : self._next + 2]
        if len(ahead) == 2 and ahead[0][0] == "'" and ahead[1] == "]":
            self._next += 1
            return ahead[0][1:-1].replace("''", "'").lower()
        return "*"

    def _accept(self, *wanted: str) -> bool:
        if not self.is_at_end and self._tokens[self._next] in wanted:
            self._next += 1
            return True
        return False

    def _expect(self, wanted: str) -> None:
        if not self._accept(wanted):
            raise SyntaxError(wanted)

    def _take(self) -> str:
        if self.is_at_end:
            raise SyntaxError("end")
        self._next += 1
        return self._tokens[self._next - 1]
