"""A judge of posted Markdown that shares nothing with accord: it renders a text and looks at what the page does."""

from __future__ import annotations

import re
from html.parser import HTMLParser

from markdown_it import MarkdownIt

VOID = {"br", "hr", "img", "input"}
INERT = {"code", "pre", "a"}
TAGS = re.compile(
    "b|br|hr|img|code|pre|a|blockquote|caption|dd|del|details|div|dl|dt|em|i|ins|kbd|li|ol|p|q|rp|rt|ruby|s|samp|small"
    "|strong|sub|summary|sup|table|tbody|td|tfoot|th|thead|tr|tt|ul|var|h[1-6]"
)
ATTRIBUTES = re.compile("href|title|src|alt|width|height|align|colspan|rowspan|open|start|class|style")
BLOCKS = {"p", "li", "td", "th", "div", "blockquote", "br", "hr", "table", "tr", "pre", "ul", "ol"}
LINKED = re.compile(r"(?<![A-Za-z])(?:https?|ftp)://[A-Za-z0-9.-]+(?::\d+)?(?:[/?#][^\s<]*|(?=\s|\Z))", re.ASCII)
MENTION = re.compile(r"(?:^|[\W_])@[A-Za-z0-9]|[^\x00-\x7f]@[A-Za-z0-9][A-Za-z0-9-]*(?![A-Za-z0-9.-])")
CLOSING = re.compile(
    r"(?<![A-Za-z0-9_])(?:close[sd]?|fix(?:e[sd])?|resolve[sd]?):?\s+"
    r"(?:#\d|GH-\d|[\w.-]+/[\w.-]+#\d|https?://[^\s/]+/[^\s/]+/[^\s/]+/issues/\d)",
    re.IGNORECASE | re.ASCII,
)
LYING = re.compile(r"(?:https?|ftp):[/\\]+[^/\\?#\s]*@|^[/\\]{2}[^/\\?#\s]*@", re.IGNORECASE)


class Judge(HTMLParser):
    """Collect complaints. A closing tag that closes nothing leaves no trace, so text around it is one run."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.complaints: list[str] = []
        self.stack: list[str] = []
        self.run = ""
        self.said = ""

    def end_run(self) -> None:
        if not INERT & set(self.stack) and MENTION.search(LINKED.sub(" ", self.run)):
            self.complaints.append(f"mention in {self.run!r}")
        if not {"code", "pre"} & set(self.stack):
            self.said += self.run
        else:
            self.said += "\x00"
        self.run = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.end_run()
        if tag in BLOCKS:
            self.said += "\x00"
        if tag not in VOID:
            self.stack.append(tag)
        if not TAGS.fullmatch(tag):
            self.complaints.append(f"tag {tag}")
        for name, value in attrs:
            if not ATTRIBUTES.fullmatch(name):
                self.complaints.append(f"attribute {name}")
            if name == "style" and not (value or "").startswith("text-align:"):
                self.complaints.append(f"style {value}")
            if name in ("href", "src"):
                self.judge_address(value or "")

    def judge_address(self, value: str) -> None:
        plain = re.sub(r"[\x00-\x20]", "", value).lower()
        if plain.startswith(("javascript:", "data:", "vbscript:", "file:")) or LYING.match(plain):
            self.complaints.append(f"address {value}")

    def handle_endtag(self, tag: str) -> None:
        if tag in self.stack:
            self.end_run()
            while self.stack.pop() != tag:
                pass
            if tag in BLOCKS:
                self.said += "\x00"

    def handle_data(self, data: str) -> None:
        self.run += data
        is_text = not INERT & set(self.stack)
        if is_text and re.search(r"(?<![A-Za-z])(?:https?|ftp)://[^/\\?#\s<]*@", data, re.IGNORECASE):
            self.complaints.append(f"lying address in {data!r}")

    def handle_comment(self, data: str) -> None:
        self.complaints.append(f"comment {data}")

    def handle_decl(self, decl: str) -> None:
        self.complaints.append(f"declaration {decl}")

    def handle_pi(self, data: str) -> None:
        self.complaints.append(f"instruction {data}")


def complaints(markdown: str) -> list[str]:
    """List what a page made of this Markdown would do that it must not."""
    parser = MarkdownIt("commonmark", {"html": True, "maxNesting": 100}).enable(["table", "strikethrough"])
    parser.validateLink = lambda url: True  # type: ignore[method-assign,assignment]
    parser.normalizeLink = lambda url: url  # type: ignore[method-assign,assignment]
    judge = Judge()
    judge.feed(str(parser.render(markdown)))
    judge.close()
    judge.end_run()
    if CLOSING.search(judge.said):
        judge.complaints.append(f"closing keyword in {judge.said!r}")
    return judge.complaints
