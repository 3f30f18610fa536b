"""The parts of a step's scripts that leave something for later steps, in variables, files, and logins."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterator, Sequence

from accord.workflows.agents import assigned_texts
from accord.workflows.models import Step
from accord.workflows.origins import VARIABLE, lines_of

_INTO = r">{1,2}(?![>&]|[ \t]*[\"']?(?:/dev/|\$\{?GITHUB_(?:OUTPUT|STEP_SUMMARY)))"
"""A redirection into a file, but not into the outputs or the summary of the step."""

_INTO_OR_TEE = rf"(?:{_INTO}|\|[ \t]*tee\b)"
_LEAVES = re.compile(
    r"(?=(\b(?:login|config(?:ure)?|set-url|clone|ssh-add|GITHUB_ENV)\b"
    rf"|\b(?:echo|printf)\b.{{0,300}}?{_INTO_OR_TEE}))"
)
_DOCUMENT = re.compile(
    rf"\bcat\b[^\n<>]{{0,200}}(?:{_INTO}[^\n<]{{0,200}}<<|<<[^\n>]{{0,200}}{_INTO})|\bexec\b[^\n]{{0,100}}\bGITHUB_ENV\b"
)
"""The rest of a script goes into a file: a here-document, or all output from now on."""

_COMMAND = re.compile(r"""(?:"[^"]*"|'[^']*'|;(?![ \t])|[^;"'])+""")
_MARK = re.compile(r"[^\n]*?<<-?[ \t]*[\"']?(\w+)")
_LINE = re.compile(r"\n(\w+)(?=\n)")
_BLOCK = re.compile(
    r"(?:^|[\n;|&])[ \t]*(?:(?:then|do|else)[ \t]+)?(?:(?P<open>(?:(?P<name>\w+)[ \t]?\(\)[ \t]?)?[{(](?!\()"
    r"|(?:for|while|until|select|if|case)\b)|(?:(?P<group>[})])|(?:done|fi|esac)\b)(?=(?P<rest>[^\n;]{0,300})))"
)
"""The beginning or the end of a group of commands, or of a loop or condition."""

_GROUP_LEAVES = re.compile(rf"[ \t]*(?:2>\S{{1,40}}[ \t]*)?{_INTO_OR_TEE}")
_WRITES = re.compile(_INTO_OR_TEE)
_WORD = re.compile(r"(?<![\w$-])\w+(?![\w(=-])")
_EVERYTHING = re.compile(rf"\b(?:env|printenv|export -p|declare -x)[ \t]*(?:\|[^\n]{{0,200}})?{_INTO_OR_TEE}")
_EXPORTS = re.compile(r"\bexportVariable\b|\bGITHUB_ENV\b")
_NO_SHELL = re.compile(r"python|node|perl|ruby")
_ENV = re.compile("(GITHUB_ENV)")
_Span = tuple[int, int]


def left_texts(step: Step, shell: str) -> Iterator[str]:
    """Yield the texts of a step's scripts, in this shell, and of its variables that it leaves."""
    env = step.env if isinstance(step.env, dict) else {}
    is_shell = step.run and not _NO_SHELL.search(shell)
    for script in step.script_texts:
        texts = [*_leaving_commands(script)] if is_shell else [script] if _EXPORTS.search(script) else []
        names, known = set[str](), set(texts)
        for text in texts:  # which grow
            more = {at[at.lastindex or 0] for at in VARIABLE.finditer(text)} - names
            given = {one.partition(";")[0] for name in more for one in assigned_texts(name, script)} - known
            names |= more
            known |= given
            texts += sorted(given)
        names |= env.keys() if is_shell and _EVERYTHING.search(script) else set()
        yield from (*texts, *(str(text) for name, text in env.items() if name in names))


def _leaving_commands(script: str) -> Iterator[str]:
    """Yield the commands of a shell script that leave something, and the groups of commands whose output is left."""
    commands = [command for line in lines_of(script) for command in _COMMAND.findall(line)]
    yield from filter(_LEAVES.search, commands)
    spans, lines = list[_Span](), sorted((at[1], at.start()) for at in _LINE.finditer(script))
    for at in _DOCUMENT.finditer(script):
        word = mark[1] if (mark := _MARK.match(script, at.start())) else ""
        after = bisect_left(lines, (word, at.start()))
        end = next((place for line, place in lines[after : after + 1] if line == word), len(script))
        spans.append((at.start(), end))
        if end == len(script):
            break
    envs, leaves = ([at.span(1) for at in marks.finditer(script)] for marks in (_ENV, _LEAVES))
    begins, functions = list[tuple[int, str]](), dict[str, _Span]()
    for at in _BLOCK.finditer(script):
        if at["open"]:
            begins.append((at.start(), at["name"] or ""))
            continue
        (begin, name), rest = begins.pop() if begins else (0, ""), at["rest"]
        functions |= {name: (begin, at.end())} if name else {}
        if _GROUP_LEAVES.match(rest) if at["group"] else "GITHUB_ENV" in rest:
            spans.append((begin, at.end("rest")))
        elif _has_any(envs, begin, at.end()):  # with what the group reads
            spans += [(script.rfind("\n", 0, begin) + 1, begin)] if script[begin] == "|" else []
            spans += [at.span("rest")] if "<" in rest else []
    for command in commands if functions else ():
        called = functions.keys() & {*_WORD.findall(command)}
        spans += [functions[name] for name in called] if _WRITES.search(command) else []
        yield from [command] if any(_has_any(leaves, *functions[name]) for name in called) else []
    end = 0
    for begin, stop in sorted(spans, key=lambda span: (span[0], -span[1])):
        yield from [script[begin:stop]] if stop > end else []  # not in another one
        end = max(end, stop)


def _has_any(marks: Sequence[_Span], begin: int, end: int) -> bool:
    """Return whether a part of a text contains one of the marks, which are in their order."""
    first = bisect_left(marks, (begin, 0))
    return any(stop <= end for _, stop in marks[first : first + 100])  # fewer begin within the length of one
