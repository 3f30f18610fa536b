"""Posted texts hold against GitHub's own renderer: nothing in them notifies, closes, hides, runs or misleads."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from importlib.metadata import distributions

import pytest
from support.renderer import complaints, rendered

from accord.text.redaction import Redactor
from accord.text.sanitise import sanitise


@pytest.mark.parametrize(
    ("text", "problem"),
    {
        "@octocat": "mention",
        "**(@**name** b)**": "mention",
        "[^a `@octocat`]": "mention",
        "<div>\n&#64octocat\n</div>": "mention",
        "Fixes #1": "closing",
        "**a **Fix**es #1**": "closing",
        "Fixes [a][1]\n\n[1]: https://github.com/o/r/issues/7": "closing",
        "a <!-- b -->": "comment",
        "<p onclick=x>": "attribute",
        "<form>": "tag",
        "[https://github.com](https://evil.test)": "link",
        "https://github.com\xa0login@evil.test": "address",
    }.items(),
)
def test_the_judge_finds_what_it_looks_for(text: str, problem: str) -> None:
    assert any(complaint.startswith(problem) for complaint in complaints(text))


class Page(HTMLParser):
    """Collect the words that a reader sees and the addresses that links lead to."""

    def __init__(self) -> None:
        super().__init__()
        self.words = ""
        self.addresses: list[str | None] = []

    def handle_data(self, data: str) -> None:
        self.words += data

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.addresses += [value for name, value in attrs if tag in ("a", "img") and name in ("href", "src")]


def page_of(markdown: str) -> tuple[str, list[str | None]]:
    page = Page()
    page.feed(rendered(markdown))
    return re.sub(r"\s+", " ", page.words.replace("\u2060", "")).strip(), page.addresses


def descriptions() -> dict[str, str]:
    """Return the Markdown descriptions of the installed packages, by name."""
    return {
        package.metadata["Name"]: str(package.metadata.get_payload())
        for package in distributions()
        if "markdown" in (package.metadata.get("Description-Content-Type") or "")
    }


def test_the_descriptions_of_packages_read_the_same() -> None:
    texts = descriptions()
    assert len(texts) > 20
    for name, text in texts.items():
        result = sanitise(text, secrets=Redactor())
        if result.counts.keys() <= {"mentions", "comments", "commands", "closing-keywords"}:
            assert page_of(result.text) == page_of(text), name
        assert complaints(result.text) == [], name
