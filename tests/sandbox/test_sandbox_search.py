"""The search is behind and word-based: a program that takes it for proof of absence must fail here first."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from conftest import Client

    from accord.core.clock import ManualClock

STRANGER = "accord-sandbox-stranger-token"


def found(client: Client, query: str, **options: Any) -> list[int]:
    answer = client("GET", "/search/issues", params={"q": query}, **options)
    assert answer.status_code == 200, answer.text
    return [item["number"] for item in answer.json()["items"]]


def test_a_new_issue_is_found_only_after_the_lag(client: Client, clock: ManualClock) -> None:
    number = client.issue("Needle", body="<!-- accord:run k1 temp-1 -->")["number"]
    query = 'repo:octo/home is:issue "accord:run k1 temp-1"'
    assert found(client, query) == []
    clock.sleep(10)
    assert found(client, query) == [number]


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("quick", [6, 5]),
        ('"quick brown"', [5]),
        ('"brown quick"', []),
        ("QUICK-Brown", [5]),
        ("quic", []),
        ("quick fox", [5]),
        ("hidden marker", [5]),
        ("quick in:title", [6]),
        ("quick in:title,body", [6, 5]),
        ("banana", [6]),
        ("banana in:comments", [6]),
        ("banana in:body", []),
        ("quick -fox", [6]),
        ("quick is:closed", [6]),
        ("quick state:open", [5]),
        ("quick label:bug", [5]),
        ("quick label:wontfix,bug", [5]),
        ('quick label:"good first issue"', [6]),
        ("quick -label:bug", [6]),
        ("quick no:label", []),
        ("quick author:stranger", [5]),
        ("quick author:@me", [6]),
        ("quick assignee:maintainer", [6]),
        ("quick reason:not_planned", [6]),
        ("quick created:2026-01-02", []),
        ("quick created:>=2020-01-01", [6, 5]),
        ("quick created:2020-01-01..*", [6, 5]),
        ("quick created:<2020-01-01", []),
        ("quick repo:octo/secret", []),
        ("quick -repo:octo/home", []),
        ("100%_", [5]),
    ],
)
def test_queries_find_what_github_finds(client: Client, clock: ManualClock, query: str, expected: list[int]) -> None:
    clock.sleep(7 * 86400)
    body = "The quick brown fox <!-- hidden marker --> 100%_"
    fifth = client("POST", "issues", {"title": "Animals", "body": body}, token=STRANGER).json()["number"]
    client("POST", f"issues/{fifth}/labels", {"labels": ["bug"]})
    sixth = client.issue("Quick", labels=["good first issue"], assignees=["maintainer"])["number"]
    client("POST", f"issues/{sixth}/comments", {"body": "Banana!"})
    client("PATCH", f"issues/{sixth}", {"state": "closed", "state_reason": "not_planned"})
    clock.sleep(11)
    assert found(client, f"is:issue {query}") == expected


def test_pull_requests_are_found_as_what_they_are(client: Client, clock: ManualClock) -> None:
    clock.sleep(11)
    assert found(client, "repo:octo/home is:pull-request") == [3]
    assert 3 not in found(client, "repo:octo/home type:issue")


def test_what_the_token_may_not_see_is_not_found(client: Client, clock: ManualClock) -> None:
    clock.sleep(11)
    assert found(client, "is:issue hidden") == [1]
    assert found(client, "is:issue hidden", token=STRANGER) == []
    refused = client("GET", "/search/issues?q=is:issue+repo:octo/secret", token=STRANGER)
    assert refused.status_code == 422
    assert refused.json()["errors"][0]["message"].startswith("The listed users and repositories cannot be searched")


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("", "Validation Failed"),
        ("q=", "Validation Failed"),
        ("q=words", "Query must include 'is:issue' or 'is:pull-request'"),
        (f"q=is:issue+{'w' * 257}", "Validation Failed"),
        ("q=is:issue+created:yesterday", "Validation Failed"),
        ("q=is:issue&per_page=100&page=11", "Only the first 1000 search results are available"),
    ],
)
def test_searches_that_github_refuses(client: Client, query: str, message: str) -> None:
    answer = client("GET", f"/search/issues?{query}")
    assert (answer.status_code, answer.json()["message"]) == (422, message)


def test_only_a_thousand_results_can_be_paged(client: Client) -> None:
    client.sandbox.bulk_issues(1100)
    answer = client("GET", "/search/issues?q=is:issue+repo:octo/home+old&per_page=100&page=10&sort=created&order=asc")
    assert answer.json()["total_count"] == 1100
    assert "next" not in answer.links
    assert len(answer.json()["items"]) == 100
