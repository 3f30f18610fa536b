"""Search is late and finds whole words only."""

from typing import Any

import pytest
from support.clocks import ManualClock
from support.code_repository import STRANGER, Client
from support.stage import insert_issues


def found(client: Client, query: str, **options: Any) -> list[int]:
    answer = client.send(200, "GET", "/search/issues", params={"q": query}, **options)
    return [item["number"] for item in answer["items"]]


def test_a_new_issue_is_found_only_after_the_lag(client: Client, clock: ManualClock) -> None:
    number = client.issue("Needle", body="<!-- accord:run k1 temp-1 -->")["number"]
    query = 'repo:octo/home is:issue "accord:run k1 temp-1"'
    assert found(client, query) == []
    clock.sleep(10)
    assert found(client, query) == [number]


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("quick", [6, 5]), ('"quick brown"', [5]), ('"brown quick"', []), ("QUICK-Brown", [5]), ("quic", []),
        ("quick fox", [5]), ("hidden marker", [5]), ("quick in:title", [6]), ("quick in:title,body", [6, 5]),
        ("banana", []), ("quick repo:octo/secret", []), ("100%_", [5]), ('quick label:"Good first issue"', [6]),
        ("quick state:open", [6, 5]), ("quick state:closed", []),
    ],
)  # fmt: skip
def test_queries_match_like_on_github(client: Client, clock: ManualClock, query: str, expected: list[int]) -> None:
    clock.sleep(7 * 86400)
    body = "The quick brown fox <!-- hidden marker --> 100%_"
    client("POST", "issues", {"title": "Animals", "body": body}, token=STRANGER)
    sixth = client.issue("Quick", labels=["good first issue"])["number"]
    client("POST", f"issues/{sixth}/comments", {"body": "Banana!"})
    clock.sleep(11)
    assert found(client, f"is:issue {query}") == expected


def test_search_separates_issues_and_pull_requests(client: Client, clock: ManualClock) -> None:
    clock.sleep(11)
    assert found(client, "repo:octo/home is:pull-request") == [3]
    assert 3 not in found(client, "repo:octo/home is:issue")


def test_search_skips_hidden_repositories(client: Client, clock: ManualClock) -> None:
    clock.sleep(11)
    assert found(client, "is:issue hidden") == [1]
    assert found(client, "is:issue hidden", token=STRANGER) == []
    refused = client("GET", "/search/issues?q=is:issue+repo:octo/secret", token=STRANGER)
    assert refused.status_code == 422
    assert refused.json()["errors"][0]["message"].startswith("The listed users and repositories cannot be searched")


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("issues", "Validation Failed"),
        ("repositories?q=+", "Validation Failed"),
        ("issues?q=words", "Query must include 'is:issue' or 'is:pull-request'"),
        ("issues?q=is:issue&per_page=100&page=11", "Only the first 1000 search results are available"),
    ],
)
def test_searches_that_github_refuses(client: Client, query: str, message: str) -> None:
    answer = client("GET", f"/search/{query}")
    assert (answer.status_code, answer.json()["message"]) == (422, message)


def test_only_a_thousand_results_can_be_paged(client: Client) -> None:
    insert_issues(client.sandbox, 1100)
    answer = client("GET", "/search/issues?q=is:issue+repo:octo/home+old&per_page=100&page=10")
    assert answer.json()["total_count"] == 1100
    assert "next" not in answer.links
    assert len(answer.json()["items"]) == 100


@pytest.mark.parametrize(
    "term", ["author:stranger", "label:bug,wip", "-label:bug", "-fox", "is:open", "in:comments", "created:>=2020-01-01"]
)
def test_an_unsupported_qualifier_is_an_error(client: Client, term: str) -> None:
    answer = client("GET", "/search/issues", params={"q": f"is:issue quick {term}"})
    assert answer.status_code == 422
    assert f"does not support `{term}`" in answer.json()["errors"][0]["message"]
