"""Answers that the local GitHub does not give: redirects, proxies, clocks, permissions."""

import re
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest
import responses
from support.clocks import ManualClock

from accord.core.errors import Refused, Stopped
from accord.github.client import GitHub
from accord.github.models import Access, AnswerLost, IssueChange, NewReview

API = "http://api.example:80"
"""Without certificates, which take 20 ms to read for each connection."""

ROOT = f"{API}/repos/octo/tools"
START = datetime(2026, 1, 1, tzinfo=UTC)
TOKEN = "ghp_" + "s3cretS3CRET" * 3
ISSUE = {
    "id": 1, "number": 7, "html_url": "https://github.com/octo/tools/issues/7", "title": "T", "body": None,
    "user": None, "labels": ["plain", {"name": "object"}], "state": "open", "created_at": "2026-01-01T00:00:00Z",
}  # fmt: skip


def adapter(max_wait: float = 900) -> GitHub:
    return GitHub(Access("octo/tools", TOKEN, API, max_wait_seconds=max_wait), ManualClock(START), lambda *_: None)


@pytest.mark.slow
@responses.activate
def test_an_issue_that_was_transferred_is_not_there() -> None:
    elsewhere = f"{API}/repositories/9/issues/3"
    responses.get(
        f"{ROOT}/issues/7", status=301, headers={"location": elsewhere}, json={"message": "Moved Permanently"}
    )
    responses.get(elsewhere, json={**ISSUE, "number": 3})
    assert adapter().issue(7) is None
    assert len(responses.calls) == 1


@pytest.mark.slow
@pytest.mark.parametrize("status", [301, 302, 307, 308])
@responses.activate
def test_a_renamed_repository_is_refused_by_name_instead_of_read_from_another_list(status: int) -> None:
    for method in (responses.GET, responses.POST):
        responses.add(
            method, f"{ROOT}/issues", status=status, json={"message": "Moved"}, headers={"location": f"{ROOT}2/issues"}
        )
    for call in (lambda: list(adapter().issues()), lambda: adapter().create_issue("T", "", [])):
        with pytest.raises(Refused, match="refused") as caught:
            call()
        assert "called now" in caught.value.hint
    assert len(responses.calls) == 2


@pytest.mark.slow
@responses.activate
def test_every_request_states_the_version_of_the_api() -> None:
    responses.get(f"{ROOT}/issues/7", json=ISSUE)
    responses.post(f"{ROOT}/issues", json=ISSUE, status=201)
    github = adapter()
    github.issue(7)
    github.create_issue("T", "", [])
    stated = [call.request.headers.get("X-GitHub-Api-Version") for call in responses.calls]
    assert stated == ["2022-11-28", "2022-11-28"]


@pytest.mark.slow
@responses.activate
def test_a_page_of_a_proxy_is_not_an_answer() -> None:
    responses.get(f"{ROOT}/labels", body="<html>Sign in to the hotel</html>")
    with pytest.raises(Stopped, match="cannot be reached"):
        adapter().labels()
    assert len(responses.calls) == 5


READS: dict[str, Callable[[GitHub], object]] = {
    "the repository": lambda github: github.repository(),
    "an issue": lambda github: github.issue(7),
    "a search": lambda github: github.search("word"),
    "comments": lambda github: list(github.comments(7)),
    "a pull request": lambda github: github.pull(7),
    "the pull requests of a branch": lambda github: github.pulls_from("main"),
    "the files of a pull request": lambda github: github.files(7),
    "the files between two commits": lambda github: github.files_between("a" * 40, "b" * 40),
    "reviews": lambda github: github.reviews(7),
    "comments on lines": lambda github: list(github.review_comments(7)),
    "review threads": lambda github: github.review_threads(7),
    "check runs": lambda github: github.check_runs("a" * 40),
    "commit statuses": lambda github: github.statuses("a" * 40),
    "held workflow runs": lambda github: github.runs_of("a" * 40),
    "closings": lambda github: github.closings(7),
}
ODD: list[tuple[str, object]] = [
    *((name, {"welcome": "to the hotel"}) for name in READS),
    ("review threads", {"data": {"repository": {"pullRequest": {}}}}),
    ("closings", [{"event": "closed"}]),
]


@pytest.mark.slow
@pytest.mark.parametrize(("name", "answer"), ODD)
@responses.activate
def test_unexpected_json_is_neither_an_answer_nor_an_internal_error(name: str, answer: object) -> None:
    read = READS[name]
    for method in (responses.GET, responses.POST):
        responses.add(method, re.compile(".*"), json=answer)
    with pytest.raises(Stopped, match="not as GitHub documents it"):
        read(adapter())


WRITES: dict[str, Callable[[GitHub], object]] = {
    "an issue": lambda github: github.create_issue("T", "", []),
    "a comment": lambda github: github.create_comment(7, "B"),
    "a pull request": lambda github: github.create_pull("T", "B", "head", "main", draft=False),
    "a review": lambda github: github.create_review(7, NewReview("COMMENT", "B", "a" * 40, ())),
    "a comment on a file": lambda github: github.comment_on_file(7, "a" * 40, "a.py", "B"),
}


@pytest.mark.slow
@pytest.mark.parametrize("write", WRITES.values(), ids=WRITES.keys())
@responses.activate
def test_after_an_odd_answer_the_result_is_looked_for_before_the_request_is_repeated(
    write: Callable[[GitHub], object],
) -> None:
    responses.post(re.compile(".*"), json={"welcome": "to the hotel"})
    with pytest.raises(AnswerLost):
        write(adapter())


@pytest.mark.slow
@pytest.mark.parametrize(
    ("date", "expected"),
    [
        ("Thu, 01 Jan 2026 10:00:00 GMT", datetime(2026, 1, 1, 10, tzinfo=UTC)),
        ("Thu, 01 Jan 2026 10:00:00 -0000", datetime(2026, 1, 1, 10, tzinfo=UTC)),
        ("yesterday", START),
    ],
)
@responses.activate
def test_the_servers_clock_is_read_where_it_makes_sense(date: str, expected: datetime) -> None:
    responses.get(f"{ROOT}/issues/7", json=ISSUE, headers={"date": date})
    github = adapter()
    assert github.server_time() == START
    github.issue(7)
    assert github.server_time() == expected


@pytest.mark.slow
@pytest.mark.parametrize("after", ["9" * 6, "9" * 12, "9" * 400, "0"])
@responses.activate
def test_a_wait_beyond_all_reason_or_a_limit_that_says_zero_for_ever_stops_in_words(after: str) -> None:
    responses.get(f"{ROOT}/labels", status=429, json={"message": "slow down"}, headers={"retry-after": after})
    with pytest.raises(Stopped, match=None if after == "0" else "would take"):
        adapter().labels()
    assert len(responses.calls) < 100


@pytest.mark.slow
@responses.activate
def test_omitted_fields_are_read_as_nothing() -> None:
    responses.get(f"{ROOT}/issues/7", json=ISSUE)
    issue = adapter().issue(7)
    assert issue is not None
    assert (issue.body, issue.author, issue.labels, issue.blocker_count) == ("", "", ("plain", "object"), None)


@pytest.mark.slow
@responses.activate
def test_only_the_fields_that_change_are_sent() -> None:
    responses.patch(f"{ROOT}/issues/7", json=ISSUE)
    adapter().change_issue(7, IssueChange(labels=()))
    assert responses.calls[0].request.body == '{"labels": []}'


@pytest.mark.slow
@responses.activate
def test_the_next_page_is_asked_of_our_own_server_whatever_the_link_says() -> None:
    link = '<https://evil.example/issues?page=2&per_page=100>; rel="next", <https://evil.example/>; rel="last"'
    first = responses.get(f"{ROOT}/labels", json=[], headers={"link": link})
    second = responses.get(
        f"{ROOT}/labels", json=[], match=[responses.matchers.query_param_matcher({"page": "2", "per_page": "100"})]
    )
    assert adapter().labels() == []
    assert (first.call_count, second.call_count) == (1, 1)


@pytest.mark.parametrize("problem", [ConnectionError(TOKEN), TimeoutError(TOKEN)])
@responses.activate
def test_no_error_tells_the_token(problem: Any) -> None:
    import requests

    responses.get(f"{ROOT}/labels", body=requests.exceptions.ConnectionError(f"{problem} {TOKEN}"))
    with pytest.raises(Stopped) as caught:
        adapter().labels()
    shown = "".join(map(repr, [caught.value, caught.value.args, caught.value.__cause__]))
    assert TOKEN not in shown
    assert TOKEN not in str(caught.value)


@responses.activate
def test_a_search_that_github_will_not_answer_is_an_incomplete_one() -> None:
    responses.get(f"{API}/search/issues", status=422, json={"message": "Validation Failed"})
    found = adapter().search("word")
    assert (found.issues, found.is_complete) == ((), False)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("incomplete", "total", "is_complete"), [(False, 1, True), (True, 1, False), (False, 1001, False)]
)
@responses.activate
def test_a_search_that_tells_less_than_it_found_is_an_incomplete_one(
    incomplete: bool, total: int, is_complete: bool
) -> None:
    document = {"incomplete_results": incomplete, "total_count": total, "items": [ISSUE]}
    responses.get(f"{API}/search/issues", json=document)
    found = adapter().search("word")
    assert ([issue.number for issue in found.issues], found.is_complete) == ([7], is_complete)
