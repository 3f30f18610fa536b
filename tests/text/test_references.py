"""With `references: own`, no posted text refers to another repository; those to the own one stay, as code does."""

from __future__ import annotations

import random
import re
from html.parser import HTMLParser
from urllib.parse import unquote

import pytest
from support.hostile import pairs
from support.renderer import complaints, rendered
from support.rotation import NIGHTLY

from accord.text.hidden import GUARD
from accord.text.posting import PostingPolicy
from accord.text.redaction import Redactor
from accord.text.sanitise import sanitise, sanitise_line, sanitise_plain

OWN = PostingPolicy(repository="Me/own.repo")
SHA = "a5c3785ed8d6a35868bc169f07e40e889087fd2e"
NONE = Redactor()


class Page(HTMLParser):
    """The references of a page that lead to another repository, as GitHub's filters find them in text and links."""

    TEXT = re.compile(r"(?<![\w./-])([\w-]+/[\w.-]+)(?:#\d|@[0-9a-f]{7,40}\b)|(?<![\w./-])([\w-]+)@[0-9a-f]{7,40}\b")
    BARE = re.compile(
        r"(?<![\w/.])https?://(?:www\.)?github\.com/+([^/\s?#]+/+[^/\s?#]+)/+(?:issues|pull|discussions|commit)/+\w"
    )
    LINK = re.compile(r"\A" + BARE.pattern.replace("https?:", "(?:https?:)?"))

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.found: list[str] = []
        self.inside: list[str] = []
        self.run = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.end()
        self.inside.append(tag)
        self.look(self.LINK, unquote(dict(attrs).get("href") or "").replace("\\", "/"))

    def handle_endtag(self, tag: str) -> None:
        if tag in self.inside:
            self.end()
            while self.inside.pop() != tag:
                pass

    def handle_data(self, data: str) -> None:
        self.run += data

    def end(self) -> None:
        if not {"code", "pre", "a"} & {*self.inside}:
            self.look(self.TEXT, self.run)
            self.look(self.BARE, self.run)
        self.run = ""

    def look(self, pattern: re.Pattern[str], text: str) -> None:
        for hit in pattern.finditer(text.lower()):
            name = next(filter(None, hit.groups()))
            if name not in ("me/own.repo", "me"):
                self.found.append(hit[0])


def foreign(markdown: str) -> list[str]:
    page = Page()
    page.feed(rendered(markdown))
    page.close()
    page.end()
    return page.found


def posted(text: str) -> str:
    result = sanitise(text, secrets=NONE, policy=OWN)
    assert sanitise(result.text, secrets=NONE, policy=OWN).text == result.text
    return result.text


FOREIGN = [
    "See octo/repo#·12.",
    f"See octo/repo@·{SHA}.",
    "See octo@·a5c3785.",
    "(octo/repo#·1)",
    "**octo/repo#·1**",
    ("octo/repo&#35;1", "octo/repo#·1"),
    "octo/</b>repo#·1",
    "https:·//github.com/octo/repo/issues/1",
    "HTTPS:·//GitHub.com/octo/repo/pull/1#discussion_r1",
    "www·.github.com/octo/repo/discussions/1",
    f"https:·//github.com/octo/repo/commit/{SHA}",
    ("<https://github.com/octo/repo/issues/1>", "&lt;https:·//github.com/octo/repo/issues/1>"),
    ("[a](https://github.com/octo/repo/issues/1)", "\\[a](https:·//github.com/octo/repo/issues/1)"),
    ("[a](//github.com/octo/repo/pull/1)", "\\[a](//github.com/octo/repo/pull/1)"),
    ("[a](https://github.com/octo/repo/%69ssues/1)", "\\[a](https:·//github.com/octo/repo/%69ssues/1)"),
    ("[a](https://github.com//octo//repo//issues/1)", "\\[a](https:·//github.com//octo//repo//issues/1)"),
    ("[a](/octo/repo/issues/1)", "\\[a](/octo/repo/issues/1)"),
    ("[a](../../octo/repo/issues/1)", "\\[a](../../octo/repo/issues/1)"),
    ("[a](x/../../../../octo/repo/pull/1)", "\\[a](x/../../../../octo/repo/pull/1)"),
    ("[a](../../other/issues/1)", "\\[a](../../other/issues/1)"),
    ("[a](/me/own.repo/../../octo/repo/issues/1)", "\\[a](/me/own.repo/../../octo/repo/issues/1)"),
    ("[a][b]\n\n[b]: https://github.com/octo/repo/issues/1", "[a][b]\n\n\\[b]: https:·//github.com/octo/repo/issues/1"),
    (
        '<a href="https://github.com/octo/repo/issues/1">a</a>',
        '&lt;a href="https:·//github.com/octo/repo/issues/1">a</a>',
    ),
    "<div>\nocto/repo#·1\n</div>",
    "<div>\nhttps:·//github.com/octo/repo/issues/1\n</div>",
]
STAYS = [
    "#12, GH-12, Me/own.repo#1, me/OWN.repo#1 and **me/own.repo#2**",
    f"me@{SHA}, me/own.repo@a5c3785 and {SHA}",
    "https://github.com/Me/own.repo/issues/1 and [a](https://github.com/me/own.repo/pull/2)",
    "<https://github.com/me/own.repo/commit/a5c3785>",
    "`octo/repo#1` and\n\n```\nocto/repo#1\nhttps://github.com/octo/repo/issues/1\n```",
    "https://github.com/octo/repo/blob/main/a.py#L1, https://gitlab.com/octo/repo/issues/1",
    "https://docs.test/a/b#1, https://github.com/octo/repo, C#, a/b, docs/a.md#top, jane@example.org",
    "[a](docs/adr/issues/12.md), [b](./a/b/pull/1), [c](../../issues/12), [d](a/../docs/x/commits/1.md)",
    "https://github.com/o/r/blob/main/docs/issues/12.md and [a](https://github.com/o/r/tree/main/a/b/pull/1)",
    "https://github.com/me/own.repo/blob/main/docs/adr/issues/12.md, [a](/me/own.repo/blob/main/a/b/issues/1)",
    "[a](docs/issues/1.md), [b](https://redirect.github.com/octo/repo/issues/1)",
]  # fmt: skip


@pytest.mark.parametrize(("text", "shown"), pairs(FOREIGN))
def test_a_reference_to_another_repository_is_posted_as_this(text: str, shown: str) -> None:
    assert foreign(text) or "</b>" in text or text.startswith(("[a](/", "[a](.", "[a](x", "<div>"))
    assert posted(text) == shown.replace("·", GUARD)
    assert foreign(posted(text)) == []
    assert sanitise(text, secrets=NONE, policy=PostingPolicy()).counts.get("links", 0) == 0


@pytest.mark.parametrize("text", STAYS)
def test_references_to_the_own_repository_and_other_addresses_stay(text: str) -> None:
    assert posted(text) == text


@pytest.mark.parametrize("text", ["See octo/repo#12", "octo@a5c3785", "https://github.com/octo/repo/issues/1"])
def test_titles_and_messages_of_commits_refer_to_the_own_repository_only(text: str) -> None:
    for make in (sanitise_line, sanitise_plain):
        assert GUARD in make(text, secrets=NONE, policy=OWN).text
        assert make("me/own.repo#1", secrets=NONE, policy=OWN).text == "me/own.repo#1"


def test_without_a_known_repository_all_that_name_one_are_foreign() -> None:
    unknown = PostingPolicy(repository="")
    assert GUARD in sanitise("me/own.repo#1", secrets=NONE, policy=unknown).text
    assert sanitise("#1", secrets=NONE, policy=unknown).text == "#1"


PIECES = [
    "octo", "/", "repo", "#1", "#", "1", "@a5c3785", "&#35;", "&#x40;", "https://github.com/", "octo/repo/issues/1",
    "www.github.com/", "[a](", ")", "[a][b]", "\n\n[b]: ", "<", ">", "`", "**", "_", "</b>", "<b>", "\\", " ", "\n",
    "\n\n", "<div>\n", "\n</div>", '<a href="', '">', "</a>", "| a |\n|-|\n| ", "%2f", "&sol;", "![x](", "~~", "- ",
    "> ",
]  # fmt: skip


@pytest.mark.slow
def test_random_texts_refer_to_no_other_repository_on_a_rendered_page() -> None:
    source = random.Random("references")
    for _ in range(100_000 if NIGHTLY else 250):
        text = "".join(source.choices(PIECES, k=source.randint(2, 12)))
        result = posted(text)
        assert foreign(result) == [], text
        assert complaints(result) == [], text
