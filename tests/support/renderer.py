"""A judge of posted Markdown that shares no code with accord: cmark-gfm renders it, and the page is searched.

cmark-gfm is GitHub's own renderer. The judge models GitHub's filters: mentions count in text outside of code, links and
preformatted blocks. Which text its filter of closing keywords sees as one is not documented, so the judge is strict:
text goes on over links and all other tags, and `Close <https://github.com/o/r/is>sues/7` closes an issue.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from html.parser import HTMLParser
from urllib.parse import unquote

import cmarkgfm
from cmarkgfm.cmark import Options

OPTIONS = Options.CMARK_OPT_UNSAFE | Options.CMARK_OPT_FOOTNOTES

VOID = {"br", "hr", "img", "input", "source", "wbr"}
INERT = {"code", "pre", "a"}
TAGS = re.compile(
    "a|abbr|b|blockquote|br|caption|cite|code|dd|del|details|dfn|div|dl|dt|em|figcaption|figure|h[1-6]|hr|i|img|input"
    "|ins|kbd|li|mark|ol|p|picture|pre|q|rp|rt|ruby|s|samp|section|small|source|span|strike|strong|sub|summary|sup"
    "|table|tbody|td|tfoot|th|thead|time|tr|tt|ul|var|wbr"
)
ATTRIBUTES = re.compile(
    "align|alt|aria-label|checked|class|colspan|disabled|height|href|id|lang|media|open|rowspan|src|srcset|start|style"
    "|title|type|width|data-footnote[a-z-]*|data-footnotes"
)
BLOCKS = {"p", "li", "td", "th", "div", "blockquote", "br", "hr", "table", "tr", "pre", "ul", "ol", "section"}
MENTION = re.compile(r"(?:^|[\W_])@[A-Za-z0-9]|[^\x00-\x7f]@[A-Za-z0-9][A-Za-z0-9-]*(?![A-Za-z0-9-]|\.[A-Za-z0-9])")
CLOSING = re.compile(
    r"(?<![A-Za-z0-9_])(?:close[sd]?|fix(?:e[sd])?|resolve[sd]?|duplicate\s+of):?\s+"
    r"(?:#\d|GH-\d|(?:[\w.-]+/)?[\w.-]+#\d|https?://(?:[^\s/\x00]+/){3}issues/\d|\x02)",
    re.IGNORECASE | re.ASCII,
)
ISSUE = re.compile(r"(?:\S*/)?(?:issues|pulls?|discussions)/\d", re.IGNORECASE)
COMMAND = re.compile(r"(?:^|(?<=\r))[^\S\r\n]*[/.!][A-Za-z][\w-]*(?![\w/-]|\.\w)", re.MULTILINE)
MAYBE_CODE = re.compile("`|~~~|\t|    ")
SHOWN_HOST = re.compile(r"(?<![\w.])https?://([A-Za-z0-9][A-Za-z0-9.-]*)", re.IGNORECASE)
LOADED = re.compile(
    r"(?![a-z][a-z0-9+.-]*:|[/\\]{2})(?!.*/releases/(?:latest/)?download/)"
    r"|(?:https?:)?//(?:www\.)?(?:(?:raw|(?:private-)?user-images|avatars)\.githubusercontent\.com\.?(?::\d*)?(?:[/?#]|\Z)"
    r"|github\.com\.?(?::\d*)?/(?:user-attachments|[^/?#]+/[^/?#]+/(?:blob|raw|assets))/(?!.*/\.\.))"
)
"""Addresses of images that an attacker can neither aim nor count."""

BIDI = re.compile("[\u202a-\u202e\u2066-\u2069]")


class Judge(HTMLParser):
    """Collect complaints. A closing tag that closes nothing leaves no trace, so text around it is one run."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.complaints: list[str] = []
        self.stack: list[str] = []
        self.run = ""
        self.text = ""
        self.link: str | None = None
        self.label = ""

    def end_run(self) -> None:
        if not INERT & set(self.stack) and MENTION.search(self.run):
            self.complaints.append(f"mention in {self.run!r}")
        if not {"code", "pre"} & set(self.stack):
            self.text += self.run
            if BIDI.search(self.run):
                self.complaints.append(f"bidirectional control in {self.run!r}")
        else:
            self.text += "\x00"
        if self.link is not None:
            self.label += self.run
        self.run = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.end_run()
        if tag in BLOCKS:
            self.text += "\n"
        if tag not in VOID:
            self.stack.append(tag)
        if not TAGS.fullmatch(tag):
            self.complaints.append(f"tag {tag}")
        for name, value in attrs:
            if not ATTRIBUTES.fullmatch(name):
                self.complaints.append(f"attribute {name}")
            if name == "style" and not (value or "").startswith("text-align:"):
                self.complaints.append(f"style {value}")
            self.judge_addresses(name, value or "")
            if tag == "a" and name == "href":
                self.link, self.label = value or "", ""
                if ISSUE.match(value or ""):
                    self.text += "\x02"

    def judge_addresses(self, name: str, value: str) -> None:
        if name == "srcset":
            for address in re.split(r"\s*,\s+|\s+", value):
                self.judge_address(address, is_loaded=True)
        elif name in ("href", "src"):
            self.judge_address(value, is_loaded=name == "src")

    def judge_address(self, value: str, *, is_loaded: bool) -> None:
        plain = re.sub(r"[\x00-\x20]", "", value).lower()
        authority = re.match(r"(?:(?:https?|ftp):)?[/\\]{2,}([^/\\?#]*)", plain)
        if plain.startswith(("javascript:", "data:", "vbscript:", "file:")) or (authority and "@" in authority[1]):
            self.complaints.append(f"address {value}")
        if is_loaded and not LOADED.match(plain):
            self.complaints.append(f"image from {value}")

    def handle_endtag(self, tag: str) -> None:
        if tag not in self.stack:
            return
        self.end_run()
        while (closed := self.stack.pop()) != tag:
            pass
        if closed in BLOCKS:
            self.text += "\n"
        if closed == "a" and self.link is not None:
            self.judge_label(self.link, self.label)
            self.link = None

    def judge_label(self, address: str, label: str) -> None:
        shown = SHOWN_HOST.search(label)
        if shown and not label.startswith("www.") and unquote(address) != label:
            authority = re.match("(?:https?|ftp)://([^/?#]*)", address, re.IGNORECASE)
            host = unquote(authority[1]).lower().partition(":")[0].removeprefix("www.") if authority else ""
            if host and not host.startswith(shown[1].lower().removeprefix("www.").rstrip(".,:;!'\")")):
                self.complaints.append(f"link to {address} shown as {label!r}")

    def handle_data(self, data: str) -> None:
        self.run += data

    def handle_comment(self, data: str) -> None:
        self.complaints.append(f"comment {data}")

    def handle_decl(self, decl: str) -> None:
        self.complaints.append(f"declaration {decl}")

    def handle_pi(self, data: str) -> None:
        self.complaints.append(f"instruction {data}")


def rendered(markdown: str) -> str:
    """Return the HTML that GitHub's renderer makes of a text."""
    try:
        return str(cmarkgfm.github_flavored_markdown_to_html(markdown, OPTIONS))
    except UnicodeDecodeError as error:  # it cut a character in two
        return error.object.decode(errors="replace")


def rendered_by_comrak(markdown: str) -> str:
    """Return the HTML that another renderer, comrak, makes of a text with GitHub's extensions."""
    import comrak

    extensions, rendering = comrak.ExtensionOptions(), comrak.RenderOptions()
    for name in ("autolink", "footnotes", "strikethrough", "table", "tasklist"):
        setattr(extensions, name, True)
    rendering.unsafe_ = True
    return str(comrak.render_markdown(markdown, extensions, None, rendering))


def complaints(markdown: str, render: Callable[[str], str] = rendered) -> list[str]:
    """List what a page made of this Markdown would do that it must not."""
    judge = Judge()
    judge.feed(render(markdown))
    judge.close()
    judge.end_run()
    if not MAYBE_CODE.search(markdown) and COMMAND.search(markdown):  # bots read the source
        judge.complaints.append(f"command in {markdown!r}")
    if CLOSING.search(judge.text):
        judge.complaints.append(f"closing keyword in {judge.text!r}")
    return judge.complaints
