"""The commands of a shell script: also those behind wrappers, in substitutions, and in documents that a shell reads."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import accumulate, pairwise

KEYWORDS = frozenset({"if", "then", "elif", "else", "do", "while", "until", "!"})
_WRAPPERS = frozenset({
    "awf", "bash", "builtin", "bun", "bunx", "chroot", "command", "coproc", "dash", "doas", "docker", "env", "eval",
    "exec", "flock", "ionice", "ksh", "nice", "node", "nohup", "npm", "npx", "parallel", "pipx", "pnpm", "pnpx",
    "podman", "python", "python3", "runuser", "script", "setsid", "sh", "ssh", "stdbuf", "su", "sudo", "time",
    "timeout", "unbuffer", "uv", "uvx", "xargs", "yarn", "zsh",
})  # fmt: skip
"""Programs that start another one."""

_MOST_WRAPPERS = 20
"""Wrappers of wrappers that are looked into."""

_RUNNING = {
    "bun": {"x", "run"}, "docker": {"run", "exec"}, "npm": {"exec", "x"}, "pipx": {"run"}, "pnpm": {"dlx", "exec"},
    "podman": {"run", "exec"}, "uv": {"run"}, "yarn": {"dlx", "exec", "run"},
}  # fmt: skip
"""Wrappers that start a program only after one of these words."""

_WITH_ARGUMENT = frozenset({"chroot", "docker", "flock", "podman", "ssh", "timeout"})
"""Wrappers with a word before that program: an image, a host, a time."""

SHELLS = frozenset({"bash", "dash", "ksh", "sh", "zsh"})
_WITH_NAME = re.compile(r"[-+][A-NP-Za-np-z]*[oO][A-Za-z]*|--(?:init-|rc)file")
"""Options of a shell with a word behind them: ``o`` takes one wherever it stands among others."""

_NAMES_PERSON = frozenset({"-u", "-g", "--user", "--group"})

_TOKEN = re.compile(
    r"""(?P<blank>(?:[ \t]|\\\r?\n|(?<![^\s;|&(])\#[^\n]*)+)
    |(?P<redirection>\d*(?:&>>?|<<<|<<-?|>>|[<>]&|>\||[<>])[ \t]*)
    |(?P<end>[\r\n;|&()`])
    |(?P<word>(?:\\.|'[^']*'|"(?:\\.|[^"\\])*"|[^\s;|&()<>`'"\\]|['"\\])+)
    |(?P<other>.)""",
    re.VERBOSE | re.DOTALL,
)
_CASE = re.compile(r"""^[ \t]*[^\s()|]+(?:[ \t]*\|[ \t]*[^\s()|]+)*\)""", re.MULTILINE)
_ASSIGNMENT = re.compile(r"\A\w+\+?=.*", re.DOTALL)
_QUOTES = re.compile(r"""\\(.)|'([^']*)'|"((?:\\.|[^"\\])*)\"""", re.DOTALL)
_EXPRESSION = re.compile(r"\$\{\{(?:[^}$]|\}(?!\}))*\}\}")
_SUBSTITUTION = re.compile(r"\$\(|`")
_DEPTHS = {"$(": {"(": 1, ")": -1}, "`": {"`": -1}}
"""The brackets that count towards the end of a substitution."""

_DEEPEST = 8
_WITHOUT_OPTION = frozenset({"eval", "parallel", "ssh"})
_RUN_TEXT = _WITHOUT_OPTION | SHELLS | {"flock", "runuser", "script", "su"}
"""Programs that run a text: what they read, or what follows ``-c``."""

_TEXT_OPTION = re.compile(r"-[a-z]*[cS]|--command|--split-string")

_DOCUMENT = re.compile(r"(?<!<)<<(?P<tabs>-?)[ \t]*(?P<quote>['\"\\]?)(?P<end>[A-Za-z_]\w*)")
_SPECIAL = {ord(char): 0xE000 + ord(char) for char in " \t\r\n;|&()<>`'\"\\"}
_BACK = {hidden: char for char, hidden in _SPECIAL.items()}


def without_documents(script: str) -> str:
    """Return a script without its here-documents, except those that a shell runs, and what is substituted in them."""
    lines, waiting, is_run = list[str](), list[re.Match[str]](), False
    for line in script.splitlines(keepends=True):
        if waiting:
            text = line.rstrip("\r\n")
            if (text.lstrip("\t") if waiting[0]["tabs"] else text) == waiting[0]["end"]:
                waiting.pop(0)
            elif is_run:
                lines.append(line)
            elif not waiting[0]["quote"] and _SUBSTITUTION.search(line):
                lines.append(f": {line}")
            continue
        lines.append(line)
        waiting = [*_DOCUMENT.finditer(line)]
        is_run = bool(waiting) and any(program_of(word) in _RUN_TEXT for word in re.split(r"[\s;&|]+", line))
    return script if waiting else "".join(lines)


def _split(script: str) -> Iterator[list[str]]:
    """Split a script into simple commands without redirections and comments; words keep their quotes."""
    words: list[str] = []
    is_target = False
    for token in _TOKEN.finditer(script):
        if token.lastgroup == "word" and not is_target:
            words.append(token[0])
        elif token.lastgroup == "word" and _SUBSTITUTION.search(token[0]):
            yield [":", token[0]]
        elif token.lastgroup == "end":
            if words:
                yield words
            words = []
        if token.lastgroup != "blank":
            is_target = token.lastgroup == "redirection"
    if words:
        yield words


@lru_cache(maxsize=512)
def commands_of(script: str) -> Sequence[Sequence[str]]:
    """Return the words of each command of a script, unquoted, also behind wrappers and in substitutions.

    An expression of GitHub is part of a word, whatever it holds.
    """
    hidden = _EXPRESSION.sub(lambda at: at[0].translate(_SPECIAL), without_documents(script))
    return [[word.translate(_BACK) for word in command] for command in _commands_of(hidden)]


def _commands_of(script: str, depth: int = 0) -> Iterator[Sequence[str]]:
    for words in _split(_CASE.sub("", script) if "esac" in script else script) if depth <= _DEEPEST else ():
        nested = [text for word in words for text in _substitutions(word)]
        plain = [_QUOTES.sub(lambda at: at[1] or at[2] or re.sub(r"\\(.)", r"\1", at[3] or ""), word) for word in words]
        for command in started_commands(plain):
            yield command
            if (program := program_of(command[0])) in _RUN_TEXT or program == "env":
                nested += [
                    word
                    for before, word in pairwise(command)
                    if re.search(r"\s", word) and (program in _WITHOUT_OPTION or _TEXT_OPTION.fullmatch(before))
                ]
        for text in dict.fromkeys(nested):
            yield from _commands_of(text, depth + 1)


def _substitutions(word: str) -> Iterator[str]:
    """Yield the scripts that a word substitutes; where the end of one is unsure, it goes to the end of the word."""
    while at := _SUBSTITUTION.search(word):
        word = word[at.end() :]
        depths = accumulate((_DEPTHS[at[0]].get(char, 0) for char in word), initial=1)
        end = next((i for i, depth in enumerate(depths) if not depth), 0)
        after = word[end:]
        is_sure = end > 0 and after.count("(") == after.count(")") and after.count("`") % 2 == 0
        yield word[: end - 1] if is_sure else word.rstrip('"')
        word = after if is_sure else ""


def started_commands(words: Sequence[str]) -> Iterator[Sequence[str]]:
    """Yield the commands that a simple command may start: itself, and those behind wrappers."""
    start = 0
    while start < len(words) and (
        words[start] in KEYWORDS or words[start] in "{}" or _ASSIGNMENT.fullmatch(words[start])
    ):
        start += 1
    command = words[start:]
    for _ in range(_MOST_WRAPPERS):
        if not command:
            return
        yield command
        wrapper, command = program_of(command[0]), command[1:]
        if wrapper not in _WRAPPERS or (wrapper == "command" and command[:1] in (["-v"], ["-V"])):
            return
        if wrapper in SHELLS:
            command = shell_operands(command)
            continue
        if wrapper in _RUNNING:
            run = next((i for i, word in enumerate(command) if word in _RUNNING[wrapper]), len(command))
            command = command[run + 1 :]
        skipped = wrapper in _WITH_ARGUMENT
        for i, word in enumerate(command):
            before = command[i - 1] if i else ""
            if word.startswith("-") or _ASSIGNMENT.fullmatch(word) or before in _NAMES_PERSON:
                continue
            is_module = before == "-m" and wrapper.startswith("python")
            may_be_value = before.startswith("-") and not is_module and program_of(word) not in _WRAPPERS
            if not skipped and not may_be_value:
                command = command[i:]
                break
            yield command[i:]
            skipped = skipped and may_be_value
        else:
            return


def shell_operands(words: Sequence[str]) -> Sequence[str]:
    """Return the words behind the options of a shell: a script or a text, and its arguments."""
    at = 0
    while at < len(words) and words[at].startswith(("-", "+")):
        at += 2 if _WITH_NAME.fullmatch(words[at]) else 1
    return words[at:]


def program_of(word: str) -> str:
    """Return a program's name without its folder, npm scope and version; of an image, its name."""
    at = word.rfind("@")
    name = (word[:at] if at > 0 else word).replace("\\", "/").rpartition("/")[2]
    return name.removesuffix(".exe") if name.startswith("$") else name.partition(":")[0].removesuffix(".exe")
