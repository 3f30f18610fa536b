"""The pages show what agents wrote, so nothing that agents wrote may do anything there."""

import re

import pytest
from support.code_repository import Client
from support.stage import insert_issues

from accord_sandbox.pages import markdown_html

HOSTILE = """<!-- accord: secret marker -->
<script>alert(1)</script> <img src=x onerror=alert(2)> [x](javascript:alert(3)) ok<!-- inline -->.

- [x] done
- [ ] open

| a | b |
|---|---|
| 1 | ~~2~~ |
"""


@pytest.mark.parametrize(
    ("path", "status", "words"),
    [
        ("/", 200, ["octo/home", "octo/secret", "private", "archived"]),
        ("/octo/home", 200, ["5 Open", "0 Closed", "First", "A revision", "blocked by 1"]),
        ("/octo/home/issues?state=closed", 200, ["No closed issues."]),
        ("/octo/home/issues/2", 200, ["Second", "Blocked by", "First", "No description."]),
        ("/octo/home/issues/1", 200, ["Blocking", "Second", "by <strong>stranger</strong>"]),
        ("/octo/home/pull/3", 200, ["Pull request", "A revision"]),
        ("/octo/home/issues/99", 404, ["Nothing here"]),
        ("/octo/nothing", 404, ["Nothing here"]),
        ("/octo/home/labels/deep/er", 404, ["Nothing here"]),
        ("/_static/style.css", 200, ["prefers-color-scheme"]),
        ("/_static/../server.py", 404, []),
    ],
)
def test_pages_show_what_is_there(client: Client, path: str, status: int, words: list[str]) -> None:
    client("POST", "issues/2/dependencies/blocked_by", {"issue_id": client("GET", "issues/1").json()["id"]})
    client.issue("<i>Slanted</i>", body=HOSTILE, labels=["bug"])
    answer = client("GET", path, token=None)
    assert answer.status_code == status
    assert [word for word in words if word not in answer.text] == []
    assert "<i>Slanted" not in answer.text


def test_the_link_in_a_payload_leads_to_the_page(client: Client) -> None:
    issue = client.issue("Look at me", body=HOSTILE)
    client("POST", f"issues/{issue['number']}/comments", {"body": HOSTILE})
    page = client("GET", issue["html_url"].removeprefix(client.sandbox.url)).text
    assert "Look at me" in page
    assert page.count("&lt;script&gt;alert(1)&lt;/script&gt;") == 2
    assert not re.search(r"<script|<img|javascript:alert\(3\)\"|secret marker|inline", page)


def test_no_page_may_run_scripts_or_load_from_elsewhere(client: Client) -> None:
    for path in ("/", "/octo/home", "/octo/home/issues/1", "/nowhere/x"):
        policy = client("GET", path).headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "script-src" not in policy
        assert "unsafe" not in policy


def test_long_lists_have_pages(client: Client) -> None:
    insert_issues(client.sandbox, 60)
    first, second = (client("GET", f"/octo/home?page={page}").text for page in (1, 2))
    assert "Page 1 of 2" in first
    assert "Old issue 60" in first
    assert "Old issue 1<" in second


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        (HOSTILE.split("\n\n")[1], '<li class="task"><input type="checkbox" disabled checked> done</li>'),
        ("<!-- a\nb\n\nc -->\nafter", "<p>after</p>"), ("before <!-- a --> after", "<p>before  after</p>"),
        ("<!-- never closed\ntext", ""), ("x <!-- never closed", "<p>x &lt;!-- never closed</p>"),
        ("<!-- a --> rest", "<p> rest</p>"),
        ("`<!-- code -->`", "<p><code>&lt;!-- code --&gt;</code></p>"),
        ("    <!-- code -->", "<pre><code>&lt;!-- code --&gt;\n</code></pre>"),
        ("- <!-- a -->\n- b", "<ul>\n<li>\n</li>\n<li>b</li>\n</ul>"),
        ("- [ ]nothing", "<ul>\n<li>[ ]nothing</li>\n</ul>"), ("one\ntwo", "<p>one<br />\ntwo</p>"), (None, ""),
    ],
)  # fmt: skip
def test_comments_are_hidden_and_boxes_are_disabled(text: str | None, shown: str) -> None:
    assert shown in markdown_html(text)
    if "task" not in shown:
        assert markdown_html(text).strip() == shown


def test_items_and_pull_requests_name_each_other(client: Client) -> None:
    client("PATCH", "issues/3", {"body": "Closes #2"})
    pulls = client("GET", "/octo/home/issues/2", token=None).text
    assert re.search(r"Pull requests</h2>.*A revision", pulls, re.DOTALL)
    closes = client("GET", "/octo/home/pull/3", token=None).text
    assert re.search(r"Closes</h2>.*Second", closes, re.DOTALL)
