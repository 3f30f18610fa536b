"""Variables and outputs that the script of a step sets, as far as its text tells.

Nothing is run. A statement that cannot be followed yields nothing. Loops and branches count as if each were taken.
"""

from __future__ import annotations

import itertools
import re
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from accord.workflows.models import Step


class Statement(NamedTuple):
    """A statement that gives a name a value."""

    name: str
    value: str


_SETS = re.compile(
    r"""(?:set-output\sname=|(?:setOutput|exportVariable)\(\s*['"`])(?P<output>[\w.-]+)(?:::|['"`]\s*,)
    |^[ \t]*(?P<result>return)\b
    |\bread[ ](?:-\w+[ ])*(?P<read>[A-Za-z_]\w*(?:[ \t]+[A-Za-z_]\w*)*)
    |(?<![\w.$?&-])(?:
        (?P<names>\{[^}={]*\}|\[[^\]=[]*\]|[A-Za-z_$][\w$.-]*)[ \t]*
            (?:\+?=(?![=>~])|\.(?:push|unshift|append)\(|(?P<until><<-?))
        |(?P<key>[A-Za-z_][\w-]*)['"]?[ \t]*:(?=[ \t]))""",
    re.VERBOSE | re.MULTILINE,
)
_MOST_LINES = 40
_VARIABLE = re.compile(r"\$\{?!?(?:env:)?([A-Za-z_]\w*)|environ(?:\.get\(|\[)['\"](\w+)|getenv\(['\"](\w+)")
_NAME = re.compile(r"(?<![\w$])(?<![^.]\.)([A-Za-z_$][\w$]*)((?:\??\.[A-Za-z_$][\w$]*(?!\w*\())*)")
_AWAITED = re.compile(r"\bawait\s+[\w.$]+\(.*", re.DOTALL)


def statements_of(step: Step) -> Sequence[Statement]:
    """Return the statements of a step's scripts."""
    return [each for text in step.script_texts for each in _statements(text)]


@lru_cache(maxsize=1024)
def _statements(script: str) -> Sequence[Statement]:
    plain = re.sub(r"(?m)^[ \t]*(?://|#).*$", "", re.sub(r"\\\r?\n", " ", script))
    found = []
    for at in _SETS.finditer(plain):
        if at["read"]:
            line = plain[plain.rfind("\n", 0, at.start()) + 1 :].partition("\n")[0]
            found += [Statement(name, line) for name in at["read"].split()]
            continue
        value = _until_end(plain[at.end() :]) if at["until"] else _value_at(plain, at.end())
        names = at["output"] or at["key"] or (at["result"] and "result") or at["names"]
        for name in names.strip("{}[]").split(","):
            whole = name.split(":")[-1].strip()
            names_of = (whole, whole.removeprefix("$"), *whole.split(".")[:: max(1, whole.count("."))])
            found += [Statement(each, value) for each in dict.fromkeys(names_of) if each]
    return found


def _value_at(script: str, start: int) -> str:
    """Return the rest of a line, with the lines that its brackets go on for."""
    lines = iter(script[start : start + 8000].split("\n"))
    value = next(lines)
    for line in itertools.islice(lines, _MOST_LINES):
        is_closed = sum(map(value.count, "([{")) <= sum(map(value.count, ")]}"))
        if is_closed and not value.rstrip().endswith(("=", "?", ":", "||", "&&")):
            break
        value += "\n" + line
    return value


def _until_end(rest: str) -> str:
    """Return the lines of a value that ends with a line of its own."""
    mark, _, text = rest.partition("\n")
    end = mark.strip("-\"' ")
    lines = itertools.islice(text.split("\n"), _MOST_LINES)
    return "\n".join(itertools.takewhile(lambda line: not end or end not in line, lines))


def names_in(text: str, *, is_shell: bool) -> set[tuple[str, str]]:
    """Return the variables that a text reads, each with the last property that is read of it.

    In JavaScript, arguments of calls that are awaited do not count: their answers do.
    """
    if is_shell:
        return {(at[1] or at[2] or at[3], "") for at in _VARIABLE.finditer(text)}
    kept = _AWAITED.sub(" ", text)
    found = {(at[1], re.split(r"\W+", at[2])[-1]) for at in _NAME.finditer(kept)}
    return found | {(at[1], "") for at in re.finditer(r"process\.env\.(\w+)", kept)}


def lines_of(script: str) -> Iterator[str]:
    """Yield the lines of a script that are not comments, with continued lines as one."""
    for line in re.sub(r"\\\r?\n", " ", script).splitlines():
        if not line.lstrip().startswith(("#", "//")):
            yield line
