"""Check the English of every text that people read: messages, help, docstrings, comments, pages, templates, test names.

    python tools/language.py                      every file of the project
    python tools/language.py src/accord/runner    one package, or any files

Prints one line for each hit (file, line, words, better form) and exits 1 if there are any.
"""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

ROOT = Path(__file__).parents[1]
PATTERNS = ("src", "tests", "benchmarks", "docs", "templates", "actions", "examples", "schemas", ".github", "tools")
SUFFIXES = {".py", ".md", ".yml", ".yaml", ".json", ".html", ".sh", ".txt", ".js", ".toml", ""}
SKIPPED = (
    "tests/data/",
    "src/accord_sandbox/static/",
    "tools/language.py",
    "tests/tools/test_language.py",
)
"""Recorded data, third-party text, and the two files that quote the words they rule out."""
UNREAD = {"LICENSE", "uv.lock", ".gitignore", ".gitattributes"}


class Rule(NamedTuple):
    """A pattern of words that the project's English rules out, with the better form."""

    pattern: re.Pattern[str]
    better: str


def _rule(pattern: str, better: str) -> Rule:
    return Rule(re.compile(pattern), better)


RULES = (
    _rule(
        r"\b(?:is|are|was|were) (?:no|none)\b(?! (?:longer|more|way|one|need))",
        "negate the verb (`x` is not a URL), or name what is missing (No token found)",
    ),
    _rule(
        r"(?i)\b(?:it is|is|are|was|were) (?:not )?(?:said|told)\b|\bit is not known\b",
        "name what is missing and the fix (No repository given. Pass `--repo OWNER/NAME`)",
    ),
    _rule(r"(?i)\b(?:nobody|somebody|whoever)\b", "name the person or role (a maintainer, the user, no one)"),
    _rule(r"(?i)\banew\b", "again"),
    _rule(r"(?i)\bthereby\b", "so, or a new sentence"),
    _rule(r"(?i)\bmend(?:s|ed|ing)?\b", "fix, or hint for the field"),
    _rule(r"(?i)\bof others\b", "name the owner: untrusted text, other people's workflows, other processes"),
    _rule(r"(?i)\bas (?:it is|they are|it was) (?:written|posted|told|said)\b", "unchanged, verbatim, as given"),
    _rule(r"(?i)\bwhat (?:lay|lies|stands|stood|came|comes|is left|is asked|others)\b", "name the thing: files that"),
    _rule(
        r"(?:^|(?<=[.!?:] ))(?:What|Who|Whom|Whose) (?!else\b|to\b)(?:[^.?!|\n]|[.](?=\w))+[.,;](?:\s|$)",
        "no headless clause: start with the noun or the verb (Files that…, Return…, List…)",
    ),
    _rule(
        r"(?i)\b(?:lies|lay|lying|stands|stood|standing) (?:there|in|beside|below|at|on|as|behind)\b", "is, or is in"
    ),
    _rule(r"(?i)\bbut for\b", "except"),
    _rule(r"(?i)\b(?:rooms?|houses?|stations?|furniture)\b", "package, architecture, stage, layout"),
    _rule(r"(?i)\bdroppings\b", "agent artifacts"),
    _rule(r"(?i)\bkernel\b(?!\.\w+_userns)", "`core`, `text`, `git` or `files`"),
    _rule(r"(?i)\bblack[- ]box(?:es)?\b", "from outside, through the command line"),
    _rule(r"(?i)\bdefects?\b", "bug, or internal error"),
    _rule(r"(?i)\bdesks?\b", "TextSanitizer"),
    _rule(r"(?i)\bmoments?\b", "timestamp, time or point"),
)


class Text(NamedTuple):
    """A text that people read and the line where it starts."""

    line: int
    words: str


@dataclass(frozen=True)
class Hit:
    """Words in a file that a rule refuses."""

    path: str
    line: int
    words: str
    better: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: `{self.words}` → {self.better}"


def hits_in(path: str, texts: Iterable[Text]) -> Iterator[Hit]:
    """Yield what the rules refuse in the texts of a file."""
    for text in texts:
        for words, better in refused_words(text.words):
            yield Hit(path, text.line, words, better)


@cache
def refused_words(text: str) -> tuple[tuple[str, str], ...]:
    """Return what the rules refuse in a text, with the better forms; half of all texts are there twice."""
    words = " ".join(text.split())
    return tuple((match[0].strip()[:80], rule.better) for rule in RULES for match in rule.pattern.finditer(words))


def texts_of(name: str, content: str) -> Iterator[Text]:
    """Yield the texts of a file: of Python the strings, comments and test names, of other files every paragraph."""
    if name.endswith(".py"):
        yield from python_texts(content)
    elif name.endswith(".json"):
        for number, line in enumerate(content.splitlines(), 1):
            if (string := re.search(r'": "(.*)",?$', line)) is not None:
                yield Text(number, string[1])
    else:
        if name.endswith(".html"):  # Jinja
            content = re.sub(r"{[{%].*?[%}]}", "", content)
        if name == "CHANGELOG.md":  # names what was renamed
            content = re.sub(r"`[^`\n]*`", "`x`", content)
        yield from paragraphs(content, is_markdown=name.endswith((".md", ".html")))


def python_texts(source: str) -> Iterator[Text]:
    """Yield strings that read as prose (a docstring by paragraph), comments, and the names of tests as sentences."""
    nodes: list[ast.AST] = [ast.parse(source)]
    for node in nodes:
        if isinstance(node, ast.JoinedStr):
            parts = (str(p.value) if isinstance(p, ast.Constant) else "`x`" for p in node.values)
            yield from prose(node.lineno, "".join(parts))
            continue
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield from prose(node.lineno, node.value)
        elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) and node.name.startswith("test_"):
            yield Text(node.lineno, node.name.removeprefix("test_").replace("_", " ").capitalize() + ".")
        for name in node._fields:  # ast.walk takes three times as long
            value = getattr(node, name, None)
            if isinstance(value, list):
                nodes += (part for part in value if isinstance(part, ast.AST))
            elif isinstance(value, ast.AST) and name != "ctx":
                nodes.append(value)
    yield from comments(source)


def prose(line: int, string: str) -> Iterator[Text]:
    """Yield the paragraphs of a string, unless it is one word or a query."""
    if " " in string.strip() and not re.match(r"\s*(?:SELECT|INSERT|UPDATE|DELETE|CREATE)\b", string):
        yield from (Text(line + text.line - 1, text.words) for text in paragraphs(string, is_markdown=True))


_TOKENS = re.compile(
    r"""
    "{3} (?: \\. | [^\\] )*? "{3} | '{3} (?: \\. | [^\\] )*? '{3}
    | " (?: \\. | [^"\\\n] )* " | ' (?: \\. | [^'\\\n] )* '
    | \# ([^\n]*)
    """,
    re.DOTALL | re.VERBOSE,
)
"""The strings and comments of a module; ``tokenize`` takes ten times as long."""


def comments(source: str) -> Iterator[Text]:
    """Yield the comments of a module; lines that follow one another are one text."""
    start, words, last, line, place = 0, "", -1, 1, 0
    for token in _TOKENS.finditer(source):
        if token[1] is None:
            continue
        line += source.count("\n", place, token.start())
        place = token.start()
        if line != last + 1:
            yield Text(start, words)
            start, words = line, ""
        last = line
        words += " " + token[1].lstrip("# ")
    yield Text(start, words)


_BREAKS = {
    True: re.compile(r"\s*(?:[-*>|] |\||#|\d+\. |```|<)"),
    False: re.compile(r"\s*(?:- |[\w-]+:(?:\s|$)|\w+=)"),
}
"""Where a paragraph begins: in Markdown, and in other files."""


def paragraphs(content: str, *, is_markdown: bool) -> Iterator[Text]:
    """Yield paragraphs: lines up to a blank line, a list item, a heading, a table row or a change of indentation."""
    start, words = 0, ""
    breaks = _BREAKS[is_markdown]
    for number, line in enumerate(content.splitlines(), 1):
        if not line.strip() or breaks.match(line):
            yield Text(start, words)
            words = ""
        if not words:
            start = number
        row = re.split(r"(?<!\\)\|", line.strip().strip("|")) if is_markdown and line.lstrip().startswith("|") else None
        if row:
            yield from (Text(number, cell.strip()) for cell in row)
        elif not is_markdown:
            words += " " + re.sub(r"^\s*(?:- )?(?:[\w-]+: ?)?(?:[>|]-?$|# ?)?[\"']?|[\"']$", "", line)
        elif not line.lstrip().startswith("#"):  # a heading may be a clause
            words += " " + re.sub(r"^\s*(?:[-*>] |\d+\. )", "", line)
        else:
            yield from (Text(number, word) for word in re.findall(r"(?<=# )(?!What|Who)\S.*", line))
    yield Text(start, words)


def files(names: Sequence[str] = ()) -> list[str]:
    """List the files whose texts are read, committed or about to be, below the given paths."""
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "--", *names]
    listed = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout.splitlines()
    return [
        name
        for name in sorted(set(listed))
        if Path(name).suffix in SUFFIXES and Path(name).name not in UNREAD and not name.startswith(SKIPPED)
        if (ROOT / name).is_file()
    ]


def check_file(name: str) -> list[Hit]:
    """Return the hits of one file, by line."""
    content = (ROOT / name).read_text(encoding="utf-8")
    return sorted(set(hits_in(name, texts_of(name, content))), key=lambda hit: hit.line)


def main(arguments: Sequence[str]) -> int:
    """Print the hits below the given paths; without paths, of the whole project."""
    names = [str(Path(name).resolve().relative_to(ROOT)) for name in arguments]
    hits = [hit for name in files(names) for hit in check_file(name)]
    print("\n".join(map(str, hits)), end="\n" if hits else "")
    print(f"{len(hits)} hits in {len({hit.path for hit in hits})} files", file=sys.stderr)
    return 1 if hits else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
