"""Texts made by chance, for attacks: of pieces that mean something in Markdown, by a grammar, or of known texts."""

import random
import re
from collections.abc import Callable

from support.hostile import HOSTILE, KNOWN, TOKEN
from support.innocent import INNOCENT

PIECES = (
    "@a", "@", "user", "octocat", "fixes ", "Fix", "es", "Close", "s", ":", " ", "  ", "#1", "o/r#2", "GH-3",
    "https://github.com/o/r/issues/4", "\n", "\n\n", "\r\n", "> ", "- ", "1. ", "    ", "\t", "# ", "```", "~~~", "`",
    "``", "|", "|-|\n", "---", "/merge", "/merge!", "\n|a|b|\n|-|-|\n", "<", ">", "<!--", "-->", "<!-", "<script>",
    "- accord:item", "<b>", "</b>", "<div>", "</div>", "<pre>", "</pre>", "<a href=", '"', "'", "<?", "?>", "<!A",
    "<img src=x onerror=y>", "<![CDATA[", "]]>", "<details>", "=", "/", "[", "]", "(", ")", "](", "]: ", "![", "[x]",
    "\n[x]: ", "[^1]", "[^a ", "\n[^1]: ", "[accord:x]: #", "javascript:", "data:", "https://", "www.", "h.test",
    "github.com", "u@h.test", "//", "\\", "&#64;", "&#64", "&copy", "&#x0000040;", "&#70ix", "&commat;", "&#8203;",
    "&lt;", "&#x6a;", "*", "**", "_", "__", "~", "~~", "!", "\u200b", "\u200d", "\u2060", "\u202e", "\xa0", "\ufe0f",
    "\xe9", "\u0645", "\u0456", "\x00", TOKEN, KNOWN, "[a][1]", "\n[1]: https://github.com/o/r/issues/7\n", "[a]",
    "](https://evil.test)", "![i](https://evil.test)", '<img src="https://evil.test">', '<a href="https://evil.test">',
    "</a>", "https://github.com/x", "&#x202E;", "&#x000202E;", "{", "}", "$", "word", "Duplicate of ", "octocat#1",
    "](/issues/1)", "www.x.test/issues/7", "[^1 ", "\n/merge", '<a href="/issues/1">', "\n[1]: /x '\n", "[^",
)  # fmt: skip


def rubble(source: random.Random) -> str:
    """Return a text of 3 to 20 pieces."""
    return "".join(source.choices(PIECES, k=source.choice((3, 5, 8, 12, 20))))


GRAMMAR = {
    "text": (
        "{block}", "{block}\n\n{definition}", "{block}\n\n{block}\n\n{definition}", "{block}\n{block}", "{html}",
    ),
    "block": (
        "{line}", "{line}\n{line}", "# {line}", "> {line}\n> {line}", "> {line}\n{line}", "- {line}\n  {line}",
        "1. {line}", "- [ ] {line}", "| {line} | {line} |\n|---|---|\n| {line} | {line} |", "```\n{line}\n```",
        "    {line}", "~~~\n{line}", "<div>\n{line}\n</div>",
        "<details><summary>{line}</summary>\n\n{block}\n</details>", "[^{word}]: {line}", "{html}",
        "> - {line}\n>   {html}", "{line}\n===", "{definition}\n{line}", "{sign}{word} {line}", " {sign}{word}",
    ),
    "html": (
        "<br>", "<b>{line}</b>", '<p {attribute} align="center">\n{part}\n</p>', "<!-- {line} -->", "<{word}>",
        "<td>{line}",
        "<picture {attribute}>\n  <source {attribute} srcset={quote}{address}, {address} 2x{quote}>\n{part}</picture>",
        "<img {attribute} src={quote}{address}{quote} {attribute}>",
        "<a {attribute} href={quote}{address}{quote}>{line}</a>",
    ),
    "line": (
        "{word}", "{part}", "{part} {part}", "{part}{part}", "{part}\n{part}", "{part} {part} {part}",
        "{part}\\\n{part}",
    ),
    "part": (
        "{word}", "@{word}", "`{part}`", "``{part}``", "*{part}*", "**{part}**", "_{part}_", "~~{part}~~", "\\{part}",
        "&{word};", "[{part}]({address})", '[{part}](<{address}> "{part}")', "[{part}][{name}]", "[{name}]",
        "[{name}][]", "{html}", "![{part}]({address})", "![{part}][{name}]", "![{name}]",
        "[![{part}]({address})]({address})", "<{address}>", "{address}", "[^{word}]", "{keyword} {issue}",
        "{keyword}: [{issue}]({address})", "{keyword}\n{issue}", "&#64;{word}", "[{address}]({address})",
        "[`{address}`][{name}]", "[{host}]({address})", "{word}@{host}", "<@{word}>", "[{part}",
    ),
    "definition": (
        "[{name}]: {address}", '[{name}]: <{address}> "{part}"', "[{name}]:\n{address}\n'{line}'",
        "{definition}\n{definition}",
    ),
    "name": (
        "a", "`a`", "`a` b", "@a", "``a` b``", "a`", "`a", "b `a` `c`", "A", "`@a`", "x@a", "<b>", "fixes #1",
        "a\n/merge",
    ),
    "address": (
        "/x", "{scheme}{host}{path}", "{scheme}{host}", "{path}", "{scheme}u@{host}", "../x{path}",
        "{scheme}{host}:80{path}",
    ),
    "scheme": (
        "https://", "//", "http://", "HTTPS://", "https:/", "https:\\\\", "javascript:", "&#47;/", "/\\",
        "https&colon;//", "data:",
    ),
    "host": (
        "github.com", "evil.test", "raw.githubusercontent.com", "camo.githubusercontent.com", "a.readthedocs.io",
        "readthedocs.io", "github.com.evil.test", "github。com", "%65vil.test", "evil&#46;test", "evil.test.",
        "g\u0456thub.com", "RAW.githubusercontent.com",
    ),
    "path": (
        "/a.png", "/o/r/raw/a.png", "/o/r/releases/download/v1/a", "/o/r/raw/../a", "/o/r/raw/%2e%2e/a",
        "/o/r/issues/7", "#a", "?a=`",
    ),
    "attribute": (
        "", "", "name=x", 'style="a: b"', "width=1", 'width="30"', 'title="\n/merge"', "onload='x'", 'media="@a"',
        "id=a\n", "a:b",
    ),
    "quote": ('"', '"', "'", ""),
    "keyword": ("fixes", "Close", "resolved", "duplicate of", "Fi**x**es", "&#70;ix"),
    "issue": ("#1", "o/r#2", "GH-3", "https://github.com/o/r/issues/4", "[#5]", "`#6` #7"),
    "sign": ("/", ".", "!", "/", "\\/", "\t."),
    "word": (
        "a", "b", "octocat", "1", "merge", "deploy", "x\u200by", "é", "\u2060", "a_b", "-", "]", "`", "(", "<", "|",
        "@", "\n", "  ",
    ),
}  # fmt: skip
"""Rules of a grammar: a name in braces stands for one of its forms. The first form of a rule ends soon."""
_RULE = re.compile(r"\{([a-z]+)\}")
DEPTH = 9


def sentence(source: random.Random, rule: str = "text", depth: int = DEPTH) -> str:
    """Return a text of this grammar, in which all that Markdown and HTML can nest is nested."""
    form = source.choice(GRAMMAR[rule] if depth > 0 else GRAMMAR[rule][:1])
    return _RULE.sub(lambda name: sentence(source, name[1], depth - 1), form)


LEADS = (
    *("> ", ">", "- ", "* ", "+ ", "1. ", "2) ", " ", "  ", "   ", "    ", "\t", "     ", "# ", "| ", "|", "[^1]: "),
    *("> > ", ":", "- [ ] ", "1x [ ] ", ">\t", "-\t"),
)
LINES = ("", ">", "---", "```", "|-|", "-|-", "===", "<div>", "</div>", "~~~", "- ", "[^1]:")
ACTIVE = (
    *("@c", "`@c`", "`` @c ``", "<img src=//evil.test>", "<!-- c -->", "fixes #1", "`fixes #1`", "![](//evil.test)"),
    *("[a](javascript:x)", "`![](//evil.test)`", "[http://g.test](//evil.test)", "```\n@c\n```", "<script>"),
    *("`<script>`", "    @c", "\n\n    @c\n", "[x]: //evil.test\n", "a|b\n-|-\n", "|-|\n"),
)
ORIGINALS = [text for text in (*[text for text, _ in HOSTILE.values()], *INNOCENT.values()) if 0 < len(text) < 300]


def mutant(source: random.Random) -> str:
    """Return a known text, hostile or innocent, with one to six changes."""
    text = source.choice(ORIGINALS)
    for _ in range(source.choice((1, 2, 3, 4, 6))):
        text = source.choice((_changed_inside, _changed_inside, _changed_lines))(source, text)
    return text[:600]


def _changed_inside(source: random.Random, text: str) -> str:
    start = source.randint(0, len(text))
    other = source.choice(ORIGINALS)
    return source.choice(
        (
            text[:start] + other[source.randint(0, len(other)) :],
            text[:start] + other + text[start:],
            text[:start] + source.choice(PIECES) + text[start:],
            text[:start] + source.choice(ACTIVE) + text[start:],
            text[:start] + text[start + source.choice((1, 2, 3, 8)) :],
        )
    )


def _changed_lines(source: random.Random, text: str) -> str:
    lines = text.split("\n")
    number = source.randrange(len(lines))
    lead = source.choice(LEADS)
    changes: tuple[Callable[[], list[str]], ...] = (
        lambda: [*lines[:number], lead + lines[number], *lines[number + 1 :]],
        lambda: [lead + line for line in lines],
        lambda: [*lines[:number], lines[number].lstrip(" >\t-"), *lines[number + 1 :]],
        lambda: [*lines[:number], source.choice((*lines, *LINES)), *lines[number:]],
    )
    return "\n".join(source.choice(changes)())


def shortest(text: str, is_bad: Callable[[str], bool]) -> str:
    """Return a shorter text that is still bad: parts are taken out as long as it stays so."""
    size = len(text) // 2
    while size:
        start = 0
        while start < len(text):
            shorter = text[:start] + text[start + size :]
            if shorter and is_bad(shorter):
                text = shorter
            else:
                start += size
        size //= 2
    return text
