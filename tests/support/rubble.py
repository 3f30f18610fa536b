"""Texts made of pieces that mean something in Markdown, for attacks by chance."""

import random
from collections.abc import Callable

from support.hostile import KNOWN, TOKEN

PIECES = (
    *("@a", "@", "user", "octocat", "fixes ", "Fix", "es", "Close", "s", ":", " ", "  ", "#1", "o/r#2", "GH-3"),
    *(
        "https://github.com/o/r/issues/4",
        "\n",
        "\n\n",
        "\r\n",
        "> ",
        "- ",
        "1. ",
        "    ",
        "\t",
        "# ",
        "```",
        "~~~",
        "`",
    ),
    *("``", "|", "|-|\n", "---", "/merge", "/merge!", "\n|a|b|\n|-|-|\n", "<", ">", "<!--", "-->", "<!-", "<script>"),
    *("- accord:item", "<b>", "</b>", "<div>", "</div>", "<pre>", "</pre>", "<a href=", '"', "'", "<?", "?>", "<!A"),
    *("<img src=x onerror=y>", "<![CDATA[", "]]>", "<details>", "=", "/", "[", "]", "(", ")", "](", "]: ", "![", "[x]"),
    *("\n[x]: ", "[^1]", "[^a ", "\n[^1]: ", "[accord:x]: #", "javascript:", "data:", "https://", "www.", "h.test"),
    *("github.com", "u@h.test", "//", "\\", "&#64;", "&#64", "&copy", "&#x0000040;", "&#70ix", "&commat;", "&#8203;"),
    *("&lt;", "&#x6a;", "*", "**", "_", "__", "~", "~~", "!", "\u200b", "\u200d", "\u2060", "\u202e", "\xa0", "\ufe0f"),
    *("\xe9", "\u0645", "\u0456", "\x00", TOKEN, KNOWN, "[a][1]", "\n[1]: https://github.com/o/r/issues/7\n", "[a]"),
    *(
        "](https://evil.test)",
        "![i](https://evil.test)",
        '<img src="https://evil.test">',
        '<a href="https://evil.test">',
        "</a>",
        "https://github.com/x",
        "&#x202E;",
        "&#x000202E;",
    ),
    *("{", "}", "$", "word"),
)


def rubble(source: random.Random) -> str:
    """Return a text of 3 to 20 pieces."""
    return "".join(source.choices(PIECES, k=source.choice((3, 5, 8, 12, 20))))


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
