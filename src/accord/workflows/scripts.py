"""Statements of scripts that set a variable or an output, as far as their text tells.

Nothing is run. A statement that cannot be followed yields nothing. Loops and branches count as if each were taken.
"""

from __future__ import annotations

import itertools
import re
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence


class Statement(NamedTuple):
    """A statement that gives a name a value: a variable of the script, or with ``is_kept`` one of later steps."""

    name: str
    value: str
    is_output: bool = False
    is_kept: bool = False


_SHELL_SET = re.compile(
    r"(?:^|[;&|({]|\bthen\b|\bdo\b|\belse\b)\s*(?:export\s+|local\s+|readonly\s+|declare\s+(?:-\w+\s+)?)?"
    r"(?P<name>[A-Za-z_]\w*)\+?=(?P<value>.*)",
    re.DOTALL,
)
_READ_INTO = re.compile(r"\bread\s+(?:-\w+\s+)*(?P<names>[A-Za-z_][\w \t]*)")
_WRITTEN = re.compile(r"""(?:^|["'\s]|\\n)(?P<name>[A-Za-z_][\w.-]*)(?P<sign>=|<<-?)""")
_POWERSHELL_SET = re.compile(r"^\s*\$(?P<name>\w+)\s*\+?=(?P<value>.*)", re.DOTALL)
_OPEN = re.compile(r"\$\(|\(")
_MOST_LINES = 40


@lru_cache(maxsize=1024)
def shell_statements(script: str) -> Sequence[Statement]:
    """Return the assignments of a shell script, and the outputs and variables that it leaves for later steps."""
    lines = _logical_lines(script)
    found: list[Statement] = []
    writes_output, writes_env = "GITHUB_OUTPUT" in script or "set-output" in script, "GITHUB_ENV" in script
    for i, line in enumerate(lines):
        for pattern in (_SHELL_SET, _POWERSHELL_SET):
            found += [Statement(at["name"], at["value"]) for at in pattern.finditer(line)]
        if at := _READ_INTO.search(line):
            found += [Statement(name, line) for name in at["names"].split()]
        if old := re.search(r"::set-output name=(?P<name>[\w-]+)::(?P<value>.*)", line):
            found.append(Statement(old["name"], old["value"], is_output=True))
        elif writes_output or writes_env:
            shown = _without_target(line)
            for at in _WRITTEN.finditer(shown):
                value = shown[at.end() :] if at["sign"] == "=" else _until_end(lines[i:], shown[at.end() :])
                value = line if "%s" in value else value
                found.append(Statement(at["name"], value, is_output=writes_output, is_kept=writes_env))
    return found


def _until_end(lines: Sequence[str], mark: str) -> str:
    """Return the lines of a value that ends with a line of its own."""
    end = mark.strip("-\"' ")
    kept = itertools.takewhile(lambda line: not end or end not in line, lines[1:_MOST_LINES])
    return "\n".join(kept)


def _without_target(line: str) -> str:
    """Return a line without the file that it writes to."""
    return re.sub(r""">>?\s*["']?\$\{?(?:env:)?GITHUB_\w+\}?["']?""", "", line)


def _logical_lines(script: str) -> list[str]:
    """Join continued lines, and those of a substitution that spans lines."""
    lines: list[str] = []
    depth = 0
    for line in re.sub(r"\\\r?\n", " ", script).splitlines():
        if depth > 0 and lines and len(lines[-1]) < 4000:
            lines[-1] += "\n" + line
        elif line.strip() and not line.lstrip().startswith("#"):
            lines.append(line)
            depth = 0
        depth += line.count("$(") and len(_OPEN.findall(line)) - line.count(")")
        if depth > 0 and not line.count("$("):
            depth = max(depth + len(_OPEN.findall(line)) - line.count(")"), 0)
    return lines


_JS_SET = re.compile(
    r"""^[ \t]*(?:export[ \t]+)?(?:(?:const|let|var)[ \t]+)?"""
    r"""(?P<names>\{[^}=]*\}|\[[^\]=]*\]|[\w$.]+)[ \t]*\+?=(?![=>])(?P<value>.*)""",
    re.MULTILINE,
)
_JS_PUSH = re.compile(r"(?<![\w$])(?P<name>[\w$]+)\.(?:push|unshift|append)\((?P<value>.*)")
_JS_OUTPUT = re.compile(r"""setOutput\(\s*(?:['"`](?P<name>[\w.-]+)['"`]|(?P<dynamic>[\w$.]+))\s*,(?P<value>.*)""")
_JS_ENV = re.compile(r"""exportVariable\(\s*['"`](?P<name>\w+)['"`]\s*,(?P<value>.*)""")
_JS_KEY = re.compile(r"""^[ \t]*['"]?(?P<name>[\w-]+)['"]?[ \t]*:(?P<value>.*)""", re.MULTILINE)
_JS_RETURN = re.compile(r"^[ \t]*return\b(?P<value>.*)", re.MULTILINE)


@lru_cache(maxsize=256)
def javascript_statements(script: str) -> Sequence[Statement]:
    """Return the assignments and outputs of a script of ``actions/github-script``."""
    script = re.sub(r"(?m)^[ \t]*//.*$", "", script)
    is_dynamic = any(at["dynamic"] for at in _JS_OUTPUT.finditer(script))
    found: list[Statement] = []
    for at in _JS_SET.finditer(script):
        names = [name.split(":")[-1].strip() for name in at["names"].strip("{}[]").split(",")]
        value = _continued(script, at)
        found += [Statement(name.split(".")[0], value) for name in names if name]
        if is_dynamic and "." in at["names"]:
            found.append(Statement(at["names"].rpartition(".")[2], value, is_output=True))
    found += [Statement(at["name"], _continued(script, at)) for at in _JS_PUSH.finditer(script)]
    for at in _JS_OUTPUT.finditer(script):
        if at["name"]:
            found.append(Statement(at["name"], _continued(script, at), is_output=True))
    found += [Statement(at["name"], _continued(script, at), is_kept=True) for at in _JS_ENV.finditer(script)]
    if is_dynamic:
        found += [Statement(at["name"], at["value"], is_output=True) for at in _JS_KEY.finditer(script)]
    found += [Statement("result", at["value"], is_output=True) for at in _JS_RETURN.finditer(script)]
    return found


_VARIABLE = re.compile(r"\$\{?!?(?:env:)?([A-Za-z_]\w*)|environ(?:\.get\(|\[)['\"](\w+)|getenv\(['\"](\w+)")
_NAME = re.compile(r"(?<![\w$])(?<![^.]\.)([A-Za-z_$][\w$]*)((?:\??\.[A-Za-z_$][\w$]*(?!\w*\())*)")
_AWAITED = re.compile(r"\bawait\s+[\w.$]+\(.*", re.DOTALL)


def _continued(script: str, at: re.Match[str]) -> str:
    """Return a value with the lines that its brackets go on for."""
    value = at["value"]
    rest = script[at.end() :]
    for _ in range(_MOST_LINES):
        if sum(map(value.count, "([{")) <= sum(map(value.count, ")]}")) and not value.rstrip().endswith(
            ("=", "?", ":")
        ):
            break
        line, _, rest = rest.removeprefix("\n").partition("\n")
        value += "\n" + line
    return value


Names = set[tuple[str, str]]
"""Names of variables, each with the last property that is read of it."""


def variables_in(text: str) -> Names:
    """Return the variables that a text of a shell script reads: ``$NAME``, ``${NAME}``, ``os.environ["NAME"]``."""
    return {(at[1] or at[2] or at[3], "") for at in _VARIABLE.finditer(text)}


def words_in(text: str) -> Names:
    """Return the names in a text of JavaScript, without arguments of calls that are awaited: their answers count."""
    kept = _AWAITED.sub(" ", text)
    return {(at[1], re.split(r"\W+", at[2])[-1]) for at in _NAME.finditer(kept)} | {
        (at[1], "") for at in re.finditer(r"process\.env\.(\w+)", kept)
    }
