"""The parts of a step's scripts that leave something for later steps, in variables, files, and logins."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import islice

from accord.workflows.agents import assigned_texts
from accord.workflows.models import Step
from accord.workflows.origins import VARIABLE, lines_of

_INTO = r">{1,2}(?![>&]|[ \t]*[\"']?(?:/dev/|\$\{?GITHUB_(?:OUTPUT|STEP_SUMMARY)))"
"""A redirection into a file, but not into the outputs or the summary of the step."""

_INTO_OR_TEE = rf"(?:{_INTO}|\|[ \t]*tee\b)"
_LEAVES = re.compile(
    rf"\b(?:login|config(?:ure)?|set-url|clone|ssh-add|GITHUB_ENV)\b|\b(?:echo|printf)\b.{{0,300}}{_INTO_OR_TEE}"
)
_DOCUMENT = re.compile(
    rf"\bcat\b[^\n<>]{{0,200}}(?:{_INTO}[^\n<]{{0,200}}<<|<<[^\n>]{{0,200}}{_INTO})|\bexec\b[^\n]{{0,100}}\bGITHUB_ENV\b"
)
"""The rest of a script goes into a file: a here-document, or all output from now on."""

_COMMAND = re.compile(r"""(?:"[^"]*"|'[^']*'|;(?![ \t])|[^;"'])+""")
_MARK = re.compile(r"<<-?[ \t]*[\"']?(\w+)")
_BLOCK = re.compile(
    r"(?:^|[\n;|&])[ \t]*(?:(?:then|do|else)[ \t]+)?(?:(?P<open>(?:(?P<name>\w+)[ \t]?\(\)[ \t]?)?[{(](?!\()"
    r"|(?:for|while|until|select|if|case)\b)|(?:(?P<group>[})])|(?:done|fi|esac)\b)(?=(?P<rest>[^\n;]*)))"
)
"""The beginning or the end of a group of commands, or of a loop or condition."""

_GROUP_LEAVES = re.compile(rf"[ \t]*(?:2>\S{{1,40}}[ \t]*)?{_INTO_OR_TEE}")
_WRITES = re.compile(_INTO_OR_TEE)
_WORD = re.compile(r"(?<![\w$-])\w+(?![\w(=-])")
_EVERYTHING = re.compile(rf"\b(?:env|printenv|export -p|declare -x)[ \t]*(?:\|[^\n]{{0,200}})?{_INTO_OR_TEE}")
_EXPORTS = re.compile(r"\bexportVariable\b|\bGITHUB_ENV\b")
_NO_SHELL = re.compile(r"python|node|perl|ruby")
_MOST_NAMES, _MOST_TEXTS = 50, 1000


def left_texts(step: Step, shell: str) -> Iterator[str]:
    """Yield the texts of a step's scripts, in this shell, and of its variables that it leaves."""
    env = step.env if isinstance(step.env, dict) else {}
    is_shell = step.run and not _NO_SHELL.search(shell)
    for script in step.script_texts:
        texts = [*islice(_leaving(script), _MOST_TEXTS)] if is_shell else [script] if _EXPORTS.search(script) else []
        names = set[str]()
        while len(names) < _MOST_NAMES and (more := {at[at.lastindex or 0] for at in _variables(texts)} - names):
            names |= more
            texts += [text.partition(";")[0] for name in more for text in assigned_texts(name, script)]
        names |= env.keys() if is_shell and _EVERYTHING.search(script) else set()
        yield from (*texts, *(str(env[name]) for name in names & env.keys()))


def _variables(texts: list[str]) -> Iterator[re.Match[str]]:
    return (at for text in texts for at in VARIABLE.finditer(text))


def _leaving(script: str) -> Iterator[str]:
    """Yield the commands of a shell script that leave something, and the groups of commands whose output is left."""
    commands = [command for line in lines_of(script) for command in _COMMAND.findall(line)]
    yield from filter(_LEAVES.search, commands)
    for at in _DOCUMENT.finditer(script):
        rest = script[at.start() :]
        mark = _MARK.search(rest.partition("\n")[0])
        document, end, _ = rest.partition(f"\n{mark[1]}\n" if mark else "\0")
        yield document
        if not end:
            break
    begins, functions = list[tuple[int, str]](), dict[str, str]()
    for at in _BLOCK.finditer(script):
        if at["open"]:
            begins.append((at.start(), at["name"] or ""))
            continue
        (begin, name), rest = begins.pop() if begins else (0, ""), at["rest"]
        body = script[begin : at.end()]
        functions |= {name: body} if name else {}
        if _GROUP_LEAVES.match(rest) if at["group"] else "GITHUB_ENV" in rest:
            yield body + rest
        elif "GITHUB_ENV" in body:  # with what the group reads
            yield script[script.rfind("\n", 0, begin) + 1 : begin] if body.startswith("|") else ""
            yield rest if "<" in rest else ""
    leaving = {name for name, body in functions.items() if _LEAVES.search(body)}
    for command in commands if functions else ():
        called = functions.keys() & {*_WORD.findall(command)}
        yield from (functions[name] for name in sorted(called) if _WRITES.search(command))
        yield from [command] if called & leaving else []
