"""Losing any of these, a tool tried out on the sandbox would meet a different tracker on GitHub."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from accord.core.clock import timestamp

if TYPE_CHECKING:
    from conftest import Client

    from accord.core.clock import ManualClock

INSTALLATION = "accord-sandbox-installation-token"
STRANGER = "accord-sandbox-stranger-token"


def numbers(documents: list[dict[str, Any]]) -> list[int]:
    return [document["number"] for document in documents]


def names(documents: list[dict[str, Any]]) -> list[str]:
    return [document["name"] for document in documents]


def test_an_issue_comes_back_as_it_was_written(client: Client) -> None:
    body = "Zeilen\n<!-- accord: {} -->\n\U0001f600 é"
    created = client.issue("Title é", body=body, labels=["bug", {"name": "Fresh"}], assignees=["maintainer"])
    assert client("GET", f"issues/{created['number']}").json() == created
    assert (created["body"], names(created["labels"])) == (body, ["bug", "Fresh"])
    assert created["assignee"]["login"] == "maintainer"
    assert created["id"] > 2**31
    assert client("GET", "labels/fresh").json()["color"] == "ededed"
    assert client("GET", created["url"].removeprefix(client.sandbox.url)).json() == created


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({"state": "closed"}, ("closed", "completed")),
        ({"state": "closed", "state_reason": "not_planned"}, ("closed", "not_planned")),
        ({"state": "closed", "state_reason": "duplicate"}, ("closed", "duplicate")),
        ({"state": "open"}, ("open", None)),
        ({"state_reason": "not_planned"}, ("open", None)),
    ],
)
def test_closing_keeps_the_reason(client: Client, change: dict[str, str], expected: tuple[str, str | None]) -> None:
    document = client("PATCH", "issues/2", change).json()
    assert (document["state"], document["state_reason"]) == expected
    closer = document["closed_by"]
    assert (closer and closer["login"]) == ("maintainer" if expected[0] == "closed" else None)
    assert "closed_by" not in client("GET", "issues?state=all").json()[-2]


def test_reopening_clears_who_closed(client: Client) -> None:
    client("PATCH", "issues/2", {"state": "closed"})
    document = client("PATCH", "issues/2", {"state": "open"}).json()
    assert (document["state_reason"], document["closed_at"], document["closed_by"]) == ("reopened", None, None)


def test_a_pull_request_shares_the_numbers_and_the_list(client: Client) -> None:
    documents = client("GET", "issues?state=all").json()
    assert numbers(documents) == [4, 3, 2, 1]
    assert [document["number"] for document in documents if "pull_request" in document] == [3]
    closed = client("PATCH", "issues/3", {"state": "closed"}).json()
    assert closed["state_reason"] is None


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("", [5, 4, 3, 2, 1]),
        ("state=closed", [6]),
        ("state=all&direction=asc&per_page=2", [1, 2]),
        ("labels=bug,QUESTION", [5]),
        ("creator=stranger", [1]),
        ("assignee=maintainer", [5]),
        ("assignee=none&state=all", [6, 4, 3, 2, 1]),
        ("since={since}&state=all", [6, 5]),
        ("since=2026-01-02T03:04:05&per_page=1", [5]),
        ("sort=comments&per_page=1", [2]),
        ("sort=updated&direction=asc&state=all&per_page=2", [1, 3]),
    ],
)
def test_lists_are_filtered(client: Client, clock: ManualClock, query: str, expected: list[int]) -> None:
    clock.sleep(10)
    client("POST", "issues/2/comments", {"body": "words"})
    clock.sleep(10)
    since = timestamp(clock.now())
    client.issue("Fifth", labels=["question", "bug"], assignees=["maintainer"])
    client("PATCH", f"issues/{client.issue('Sixth')['number']}", {"state": "closed"})
    assert numbers(client("GET", f"issues?{query.format(since=since)}").json()) == expected


def test_pages_are_linked_for_the_host_that_was_asked(client: Client) -> None:
    client.sandbox.bulk_issues(5)
    answer = client("GET", "/api/v3/repos/octo/home/issues?per_page=4&page=2&state=all")
    base = f"{client.sandbox.url}/api/v3/repos/octo/home/issues?per_page=4"
    assert answer.links["next"]["url"] == f"{base}&page=3&state=all"
    assert {name: link["url"].split("page=")[-1].split("&")[0] for name, link in answer.links.items()} == {
        "prev": "1",
        "next": "3",
        "last": "3",
        "first": "1",
    }
    assert len(client("GET", answer.links["next"]["url"].removeprefix(client.sandbox.url)).json()) == 1
    assert answer.json()[0]["url"].startswith(f"{client.sandbox.url}/api/v3/repos/")


def test_labels_on_an_issue_follow_every_verb(client: Client) -> None:
    steps: list[tuple[str, str, Any, list[str]]] = [
        ("POST", "", {"labels": ["bug"]}, ["bug"]),
        ("POST", "", ["BUG", "question"], ["bug", "question"]),
        ("PUT", "", {"labels": ["a/b", "question"]}, ["question", "a/b"]),
        ("DELETE", "/a%2Fb", None, ["question"]),
        ("PUT", "", {"labels": []}, []),
    ]
    for method, path, body, expected in steps:
        answer = client(method, f"issues/2/labels{path}", body)
        assert answer.status_code == 200, answer.text
        assert names(answer.json()) == expected
        assert names(client("GET", "issues/2/labels").json()) == expected
    assert client("DELETE", "issues/2/labels").status_code == 204


def test_a_renamed_label_stays_on_its_issues(client: Client) -> None:
    client("PUT", "issues/2/labels", {"labels": ["bug"]})
    answer = client("PATCH", "labels/BUG", {"new_name": "Defect", "color": "ABCDEF", "description": "x"})
    assert answer.json()["name"] == "Defect"
    assert [(label["name"], label["color"]) for label in client("GET", "issues/2").json()["labels"]] == [
        ("Defect", "abcdef")
    ]
    assert client("DELETE", "labels/defect").status_code == 204
    assert client("GET", "issues/2").json()["labels"] == []


def test_labels_are_listed_with_pages(client: Client) -> None:
    assert client("POST", "labels", {"name": "new", "color": "00ff00", "description": "d"}).status_code == 201
    first = client("GET", "labels?per_page=7")
    second = client("GET", first.links["next"]["url"].removeprefix(client.sandbox.url))
    assert len(first.json() + second.json()) == 10


def test_comments_are_kept_in_order(client: Client, clock: ManualClock) -> None:
    made = [client("POST", "issues/2/comments", {"body": text}).json() for text in ("one", "two")]
    clock.sleep(5)
    changed = client("PATCH", f"issues/comments/{made[0]['id']}", {"body": "uno"}).json()
    assert changed["updated_at"] > changed["created_at"]
    assert client("GET", f"issues/comments/{made[0]['id']}").json() == changed
    assert [entry["body"] for entry in client("GET", "issues/2/comments").json()] == ["uno", "two"]
    newest = client("GET", "issues/comments?sort=updated&direction=desc&per_page=1")
    assert [entry["body"] for entry in newest.json()] == ["uno"]
    assert client("DELETE", f"issues/comments/{made[0]['id']}").status_code == 204
    assert client("GET", "issues/2").json()["comments"] == 1


def test_an_edge_is_seen_from_both_ends(client: Client) -> None:
    first, second = (client("GET", f"issues/{number}").json() for number in (1, 2))
    answer = client("POST", "issues/2/dependencies/blocked_by", {"issue_id": first["id"]})
    assert (answer.status_code, answer.json()["number"]) == (201, 1)
    assert numbers(client("GET", "issues/2/dependencies/blocked_by").json()) == [1]
    assert numbers(client("GET", "issues/1/dependencies/blocking").json()) == [2]
    client("PATCH", "issues/1", {"state": "closed"})
    assert client("GET", "issues/2").json()["issue_dependencies_summary"] == {
        "blocked_by": 0,
        "total_blocked_by": 1,
        "blocking": 0,
        "total_blocking": 0,
    }
    for _ in range(2):  # taking away what is not there is a success on GitHub
        assert client("DELETE", f"issues/2/dependencies/blocked_by/{first['id']}").status_code == 200
    assert client("GET", "issues/2/dependencies/blocked_by").json() == []
    assert second["id"] != second["number"]


def test_the_timeline_tells_what_happened(client: Client) -> None:
    blocker = client("GET", "issues/1").json()["id"]
    client("POST", "issues/2/labels", {"labels": ["bug"]})
    client("POST", "issues/2/dependencies/blocked_by", {"issue_id": blocker})
    client("POST", "issues/2/comments", {"body": "hello"})
    client("PATCH", "issues/2", {"title": "New", "state": "closed", "labels": []})
    client("PUT", "issues/2/lock", {"lock_reason": "resolved"})
    client("DELETE", "issues/2/lock")
    assert [entry["event"] for entry in client("GET", "issues/2/timeline").json()] == [
        "labeled",
        "blocked_by_added",
        "commented",
        "renamed",
        "closed",
        "unlabeled",
        "locked",
        "unlocked",
    ]


def test_assignees_who_cannot_be_assigned_are_left_out(client: Client) -> None:
    added = client("POST", "issues/2/assignees", {"assignees": ["maintainer", "stranger", "nobody"]})
    assert [user["login"] for user in added.json()["assignees"]] == ["maintainer"]
    removed = client("DELETE", "issues/2/assignees", {"assignees": ["maintainer"]})
    assert removed.json()["assignees"] == []


def test_a_stranger_s_labels_are_dropped_without_a_word(client: Client) -> None:
    body = {"title": "Please", "labels": ["bug", "made-up"], "assignees": ["maintainer"]}
    document = client("POST", "issues", body, token=STRANGER).json()
    assert (document["labels"], document["assignees"], document["author_association"]) == ([], [], "NONE")
    changed = client("PATCH", f"issues/{document['number']}", {"body": "more", "labels": ["bug"]}, token=STRANGER)
    assert (changed.json()["body"], changed.json()["labels"]) == ("more", [])


def test_an_installation_writes_under_its_bot(client: Client) -> None:
    document = client("POST", "issues", {"title": "By the bot", "labels": ["robots"]}, token=INSTALLATION).json()
    assert (document["user"]["login"], document["user"]["type"]) == ("github-actions[bot]", "Bot")
    assert names(document["labels"]) == ["robots"]


def test_who_may_do_what_is_told(client: Client) -> None:
    roles = {"maintainer": ("admin", "admin"), "sorter": ("read", "triage"), "stranger": ("read", "read")}
    for login, expected in roles.items():
        document = client("GET", f"collaborators/{login}/permission").json()
        assert (document["permission"], document["role_name"]) == expected
    assert client("GET", "/repos/octo/home", token=STRANGER).json()["permissions"]["push"] is False


def test_a_new_repository_has_nine_labels_and_its_own_numbers(client: Client) -> None:
    created = client("POST", "/user/repos", {"name": "mine", "description": "d", "private": True})
    assert created.json()["full_name"] == "maintainer/mine"
    assert len(client("GET", "/repos/maintainer/mine/labels").json()) == 9
    assert client("POST", "/repos/maintainer/mine/issues", {"title": "x"}).json()["number"] == 1
    assert client("GET", "/user").json()["public_repos"] == 1


def test_what_the_client_has_is_not_sent_again(client: Client) -> None:
    first = client("GET", "issues/2")
    again = client("GET", "issues/2", headers={"if-none-match": first.headers["etag"]})
    assert (again.status_code, again.content) == (304, b"")
    assert again.headers["x-ratelimit-used"] == first.headers["x-ratelimit-used"]
    client("PATCH", "issues/2", {"title": "Other"})
    assert client("GET", "issues/2", headers={"if-none-match": first.headers["etag"]}).status_code == 200
