"""The outputs that a step's scripts set, as far as their text tells."""

from __future__ import annotations

import posixpath
import re
from collections import Counter, defaultdict, deque
from collections.abc import Collection, Iterable, Sequence
from functools import lru_cache
from itertools import accumulate, islice, pairwise, takewhile

from accord.workflows.commands import (
    DOLLAR,
    KEYWORDS,
    SHELLS,
    SimpleCommand,
    commands_of,
    program_of,
    shell_operands,
    simple_commands,
    started_commands,
)

_SILENT = frozenset({
    "", ":", "[", "[[", "break", "case", "cd", "continue", "declare", "done", "esac", "exec", "exit", "export", "false",
    "fi", "for", "let", "local", "mapfile", "mkdir", "read", "readarray", "readonly", "return", "rm", "set",
    "shift", "sleep", "test", "touch", "true", "}",
})  # fmt: skip
_READERS = frozenset({"cat", "echo", "grep", "head", "printf", "sort", "tail", "tee", "wc"})
_PLAIN = _SILENT | _READERS | {
    "awk", "base64", "basename", "chmod", "command", "cp", "curl", "cut", "date", "diff", "dirname", "env", "envsubst",
    "expr", "find", "gh", "git", "iconv", "jq", "kill", "ln", "ls", "mktemp", "mv", "nice", "nohup", "od", "openssl",
    "paste", "popd", "printenv", "pushd", "sed", "seq", "sha256sum", "shopt", "stat", "sudo", "tar", "time", "timeout",
    "tr", "umask", "uniq", "unset", "uuidgen", "wait", "xargs",
}  # fmt: skip
"""Commands that, like agents, write no outputs of their own. Any other program may, as the file is in its environment,
and only its name tells the two apart. Without a name here, a fault is not found."""

_LEVELS = {
    **dict.fromkeys(["if", "do", "case", "{", "("], 1),
    **dict.fromkeys(["fi", "done", "esac", "}", ")"], -1),
}
"""Words that begin and end a part of a script that may not run, or not in the shell itself."""

_READING = SHELLS | {"source", "."}
"""Programs that run the script that their first word names."""

_MOVE = re.compile(r"\b(?:cd|pushd)\b")
_TOP = re.compile(r"\A(?:\$(?:GITHUB_WORKSPACE|GITHUB_ACTION_PATH|PWD)|\$\{\{[^}]*\}\})/")
"""The beginning of a path in the repository, whose place is known as long as a script stays in its folder."""

_FILE = "GITHUB_OUTPUT"
_COMMENT = re.compile(r"(?:^|(?<=\s))#[^\"'\n]*$|^[ \t]*#.*$", re.MULTILINE)
_ARITHMETIC = re.compile(r"\$?\(\((?:[^()\n`]|(?<!\$)\([^()\n]*\))*\)\)|\[\[[ \t](?:[^\n`$]|\$(?!\()){0,300}?[ \t]\]\]")
_PATTERN = re.compile(r"(\bin|;;&?)\s+\(?[^()\n;&]{0,200}\)")
_KEYWORD = re.compile(r"\bfunction[ \t]+([\w-]+)(?:[ \t]*\(\))?")
_FUNCTION = re.compile(r"\b([\w-]+)[ \t]*\(\)")
_ARRAY = re.compile(r"\b(\w+)\+?=\(([^()]*)\)")
_BRACED = re.compile(r"\$\{(\w+)(?:\[[@*]\])?\}")
_ALIAS = re.compile(rf"\b(\w+)=[\"']?\$\{{?{_FILE}\b")
_OPEN = chr(0xE000)
"""The end of a text without the end of its line."""

_NAMED_FILE = re.compile(rf"\${_FILE}\Z|\$\{{{_FILE}:?[-?=][^{{}}]*\}}\Z")
_NO_FILE = re.compile(rf"{DOLLAR}?\{{?{_FILE}\}}?")
_CLEARED = re.compile(rf"\bunset\b(?:(?!\bunset\b)[^\n;])*\b{_FILE}\b|\b{_FILE}=")
_CLEARING = {("unset", _FILE), (f"{_FILE}=/dev/null",), ("export", f"{_FILE}=/dev/null")}
"""Commands behind which nothing writes to the file."""

_VARIABLE = re.compile(r"\$(\w+)")
_SETTING = re.compile(r"::set-output[ ]+name=([^:]*)")
_LINE = re.compile(r"([^=<]*)(?:<<([^=]*)\Z|.*)")
_COMPUTED = re.compile(r"[$*?{]")
_ASSIGNED = re.compile(r"(\w+)(\+?)=(.*)", re.DOTALL)
_PLACE = re.compile(r"%[-+ #0-9.]*[a-zA-Z]")
_NAME = re.compile(r"[\w-]+")
_DURATION = re.compile(r"\d[\d.]*[smhd]?")
_WORD = re.compile(r"(?<![\w./-])[\w-]+(?![\w./-])")


def written_names(texts: Sequence[str], scripts: Collection[str], programs: Collection[str]) -> Collection[str] | None:
    """Return the names of the outputs that scripts of bash or sh set, in lower case; None if they may set others.

    ``scripts`` are the paths of the texts, and ``programs`` those that write no outputs, beside the usual ones. Where a
    variable with values of the scripts names an output, each word of theirs may be that name.
    """
    names = _names(tuple(texts), frozenset(scripts), frozenset(programs))
    return None if names is None else {name.lower() for name in names}


@lru_cache(maxsize=64)
def _names(scripts: Sequence[str], files: frozenset[str], programs: frozenset[str]) -> Collection[str] | None:
    texts = [_plain_text(script) for script in scripts]
    aliases = {name for text in texts for name in _ALIAS.findall(text)}
    texts = [_VARIABLE.sub(lambda at: f"${_FILE}" if at[1] in aliases else at[0], text) for text in texts]
    text = "\n".join(texts)
    files = frozenset() if _MOVE.search(text) else files
    functions = {*_FUNCTION.findall(text), *map(posixpath.basename, files)}
    split = [simple_commands(each) for each in texts]
    uncalled = {name for name, count in Counter(_NAME.findall(text)).items() if count == 1}
    is_cleared = not aliases and len(_CLEARED.findall(text)) == 1
    commands = [each for found in split for each in _run_commands(found or (), uncalled, is_cleared=is_cleared)]
    uses = [(_program(each), word) for each in commands for word in each.words if _FILE in word]
    is_plain = all(
        program == "echo"
        or (program in _SILENT | _READERS and _NAMED_FILE.search(word))
        or (program in _READERS and _NO_FILE.fullmatch(word))
        for program, word in uses
    )
    if None in split or not is_plain or not _is_known(text, programs, functions, files):
        return None
    settings = [f"{name}=" for name in _SETTING.findall(text)]
    named, computed = _line_names([*settings, *_output_text(commands, functions).splitlines()])
    if not _are_literal(computed, commands, functions):
        return None
    return {*named, *(_WORD.findall(text) if computed else ())}


def _plain_text(script: str) -> str:
    """Return a script without comments, arithmetic and patterns, and with one form of functions, arrays and names."""
    text = _PATTERN.sub(r"\1\n", _ARITHMETIC.sub(":", _COMMENT.sub("", script)))
    text = _KEYWORD.sub(r"\1()", _BRACED.sub(r"$\1", text))
    return _ARRAY.sub(lambda at: f"for {at[1]} in {' '.join(at[2].split())}", text)


def _line_names(lines: Iterable[str]) -> tuple[list[str], list[str]]:
    """Return the names that lines of the file set, and those that a variable or the next text is a part of."""
    named, computed, end = list[str](), list[str](), ""
    for line in map(str.strip, lines):
        text = line.removesuffix(_OPEN)
        if end:
            end = "" if text == end else end
        elif at := _LINE.match(text):
            name, end = at[1], at[2] or ""
            if _COMPUTED.search(name) or line == name + _OPEN:
                computed.append(name)
            elif name != text:
                named.append(name)
    return named, [*computed, *([end] if end else [])]


def _run_commands(
    commands: Sequence[SimpleCommand], uncalled: Collection[str], *, is_cleared: bool
) -> Sequence[SimpleCommand]:
    """Return the commands that may run: none behind an end of the script, and none of a function that nothing calls."""
    changes = [(_depth_of(re.sub("[^()]", "", each.before)), each, _depth_of(each.words)) for each in commands]
    levels = [*accumulate(change for before, _, after in changes for change in (before, after))]
    if not levels or min(levels) < 0 or levels[-1]:
        return commands
    found, last, depth, body = list[SimpleCommand](), SimpleCommand(), 0, -1
    for before, command, after in changes:
        depth += before
        is_sure = not depth and not command.before.strip("\r\n;") and not command.is_piped
        is_end = command.words[:1] == ["exit"] or (is_cleared and tuple(command.words) in _CLEARING)
        if body < 0 and is_sure and is_end:
            break
        follows_name = bool(last.words) and last.words[-1] in uncalled
        is_body = follows_name and command.before.strip("\r\n") == "()" and command.words[:1] == ["{"]
        body = depth if is_body and body < 0 else body
        depth += after
        if body < 0:
            found.append(command)
        elif depth == body:
            body = -1
        last = command
    return found


def _depth_of(parts: Iterable[str]) -> int:
    """Return how many blocks the keywords at the beginning of a command, or brackets, open, less those they close."""
    leading = [*takewhile({*KEYWORDS, *_LEVELS}.__contains__, parts)]
    return sum(_LEVELS.get(each, 0) for each in leading)


def _is_known(text: str, programs: Collection[str], functions: Collection[str], files: Collection[str]) -> bool:
    """Return whether all programs that a script starts write no outputs, or are its functions or files of its texts.

    A command that starts one of these ``programs``, such as ``npx``, is as plain as they are.
    """
    commands = iter(commands_of(text))
    for words in commands:
        started = [program_of(each[0]) for each in started_commands(words)]
        if started[0] not in _READING and not {*programs}.isdisjoint(started):
            deque(islice(commands, len(started) - 1), maxlen=0)  # the commands within this one
            continue
        path, *arguments = _program_words(words)
        program, place = program_of(path), posixpath.normpath(_TOP.sub("", path))
        if program == "trap" and not _is_known("".join(arguments[:1]), programs, functions, files):
            return False
        if program == "find" and any(each.startswith(("-exec", "-ok")) for each in arguments):
            return False
        if "/" in path and program in functions and not any(f"/{file}".endswith(f"/{place}") for file in files):
            return False
        is_read = program_of(words[0]) in _READING
        known = functions if is_read else {*_PLAIN, *functions, "trap"}
        if program not in known and (is_read or not _DURATION.fullmatch(program)):
            return False
    return True


def _output_text(commands: Sequence[SimpleCommand], functions: Collection[str]) -> str:
    """Return what commands write to the file of outputs; where a block or a function does, all that they print."""
    written, printed, is_block = list[str](), list[str](), False
    for before, command in pairwise([SimpleCommand(), *commands]):
        is_tee = _program(command) == "tee"
        source = before if is_tee and before.is_piped else command
        text = "" if _program(source) in functions else _printed_text(source)
        text += f"{_OPEN}\n" if text and not text.endswith("\n") else ""
        files = (*command.targets, *command.others, *(command.words if is_tee else ()))
        if is_written := any(_FILE in word and not _NO_FILE.fullmatch(word) for word in files):
            is_block = is_block or _program(source) in {*functions, *_SILENT}
            written.append(text)
        is_elsewhere = any(not target.startswith(("/dev/fd/", "/dev/std")) for target in command.targets)
        if is_written or not (command.is_piped or is_elsewhere):
            printed.append(text)
    return "".join(printed if is_block else written)


def _program(command: SimpleCommand) -> str:
    return program_of(_program_words(command.words)[0])


def _program_words(words: Sequence[str]) -> Sequence[str]:
    """Return the program that a command starts, or the script that a shell reads, and its arguments."""
    first, *arguments = next(iter(started_commands(words)), [""])
    operands = shell_operands(arguments) if program_of(first) in _READING else ()
    return operands or [first, *arguments]


def _printed_text(command: SimpleCommand) -> str:
    """Return what a command prints, with ``$`` for what the script does not tell."""
    program, arguments = _program(command), _program_words(command.words)[1:]
    if program in _SILENT or (program == "printf" and arguments[:1] == ["-v"]):
        return ""
    if program == "echo":
        options = [*takewhile(re.compile("-[neE]+").fullmatch, arguments)]
        end = "" if any("n" in each for each in options) else "\n"
        return " ".join(arguments[len(options) :]).replace("\\n", "\n") + end
    if program == "printf" and arguments:
        form, *values = arguments[arguments[0] == "--" :]
        rest, places = iter(values), len(_PLACE.findall(form))
        rounds = max(1, -(-len(values) // places)) if places else 1
        return "".join(_PLACE.sub(lambda _: next(rest, ""), form) for _ in range(rounds)).replace("\\n", "\n")
    files = [each for each in arguments if not each.startswith("-")] if program == "cat" else []
    return command.text if command.text and program in {"cat", "tee"} and not files else "$\n"


def _are_literal(names: Iterable[str], commands: Iterable[SimpleCommand], functions: Collection[str]) -> bool:
    """Tell whether the names at the beginning of texts are variables that only get values of the script."""
    values = defaultdict[str, list[str]](list)
    for command in commands:
        path, *words = _program_words(command.words)
        for i, word in enumerate(words if program_of(path) in functions else (), 1):
            for name in (f"${i}", "$@", "$*"):
                values[name].append(word)
        if [path, *words[1:2]] == ["for", "in"]:
            values[f"${words[0]}"] += words[2:]
        if path in {"mapfile", "read", "readarray"}:
            values |= {f"${word}": ["$?"] for word in words}
        for at in filter(None, map(_ASSIGNED.match, command.words)):
            values[f"${at[1]}"].append("$?" if at[2] else at[3])
    todo, seen = list(names), set[str]()
    while todo:
        name = re.split("[=<]", todo.pop(), maxsplit=1)[0]
        if name not in seen and _COMPUTED.search(name):
            if not values.get(name):
                return False
            seen.add(name)
            todo += values[name]
    return True
