"""Untrusted text in our Markdown stays text: no link, no HTML, no mention, no new row."""

from __future__ import annotations

import re
from html import unescape

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from support.renderer import complaints

from accord.text.hidden import as_seen
from accord.text.markdown import cell, code_block, mermaid_text, table

HOSTILE = [
    "a | b", "a\n| c | d |\n", "<script>alert(1)</script>", "<!-- hidden -->", "[click](https://evil.example)",
    "![pixel](https://evil.example/p.png)", "<https://evil.example>", "https://evil.example/x", "HTTP://evil.example/x",
    "www.evil.example", "&lt;b&gt; &#64;octo &amp;", "`code` **bold** _it_ ~~gone~~ $x$", "``` \n# heading",
    "@octo/team and @octo", "octo/tools#1 and #12", "\\| \\\\| \\", "a\x1b[31m\x07\u202eb\u200b\ufeff",
    "[ref]: https://evil.example", "end `",
]  # fmt: skip


def rendered(source: str) -> str:
    return MarkdownIt("commonmark").enable(["table", "strikethrough"]).render(source)


def plain(html: str) -> str:
    return re.sub("[\u200c\u2060]", "", unescape(re.sub(r"</?(?:table|thead|tbody|tr|th|td)>|\n", "", html)))


def assert_is_plain(text: str) -> None:
    html = rendered(table(["H"], [[cell(text)]]))
    assert html.count("<tr>") == 2
    assert html.count("<td>") == 1
    seen = re.sub("[\x00-\x1f\x7f-\x9f\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufeff]+", " ", as_seen(text))
    assert plain(html.partition("</thead>")[2]).strip() == seen.strip()
    assert not re.search(r"@\w", html)


@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_text_is_shown_and_does_nothing(text: str) -> None:
    assert_is_plain(text)


@pytest.mark.parametrize(
    "text", ["https://evil.example", "HTTP://x.y", "www.evil.example", "Www.evil.example", "ftp://x"]
)
def test_a_bare_address_is_not_a_link_on_github(text: str) -> None:
    """GitHub links what literally reads ``www.`` or ``scheme://`` (GFM, "Autolinks (extension)")."""
    assert not re.search(r"(?i)www\.|[a-z]://", cell(text))


@pytest.mark.slow
@given(
    st.text(
        alphabet=st.characters(exclude_categories=("Cs", "Zs", "Zl", "Zp"), exclude_characters="\u200c"), max_size=80
    )
)
def test_any_text_is_shown_and_does_nothing(text: str) -> None:
    assert_is_plain(text)


def test_a_long_text_is_cut_where_it_says_so() -> None:
    assert cell("x" * 600) == "x" * 499 + "…"


@pytest.mark.parametrize(
    "text", [*HOSTILE, 'a"]; click n0 "https://evil.example"', "%%{init: {}}%%", "end", "a --> b", "x;y"]
)
def test_a_label_in_a_graph_ends_neither_itself_nor_the_graph(text: str) -> None:
    written = mermaid_text(text)
    assert not set(written) & set('"`[](){}<>|@%\\\n:/&')
    assert re.sub(r"#\d+;", "", written).find("#") < 0


@pytest.mark.slow
@given(st.text())
def test_any_label_is_short_and_can_be_read_back(text: str) -> None:
    written = mermaid_text(text)
    back = re.sub(r"#(\d+);", lambda code: chr(int(code.group(1))), written)
    assert len(back) <= 60
    assert '"' not in written


@pytest.mark.parametrize("text", ["plain", "```\nout of it", "a ````` b", "`", "x\x1b[2J\u202ey"])
def test_no_text_ends_its_code_block(text: str) -> None:
    block = code_block(text, "yaml")
    (token,) = MarkdownIt("commonmark").parse(block)
    assert token.type == "fence"
    assert token.content.count("\n") == text.count("\n") + 1
    assert "\x1b" not in block
    assert "\u202e" not in block


@pytest.mark.parametrize("text", ["Fixes #12", "duplicate of octocat#1", "This closes", "It was fixed:"])
def test_a_cell_closes_no_issue_that_it_or_the_next_cell_names(text: str) -> None:
    assert complaints(table(["Title", "Number"], [[cell(text), "#1"]])) == []
