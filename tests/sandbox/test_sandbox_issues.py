"""Issues, labels, comments and dependencies behave like on GitHub."""

from typing import Any

import pytest
from support.code_repository import ADMIN, STRANGER, Client
from support.stage import insert_issues


def numbers(documents: list[dict[str, Any]]) -> list[int]:
    return [document["number"] for document in documents]


def names(documents: list[dict[str, Any]]) -> list[str]:
    return [document["name"] for document in documents]


def test_an_issue_is_returned_unchanged(client: Client) -> None:
    body = "Zeilen\n<!-- accord: {} -->\n\U0001f600 é"
    created = client.issue("Title é", body=body, labels=["bug", "Fresh"])
    assert client("GET", f"issues/{created['number']}").json() == created
    assert (created["body"], names(created["labels"])) == (body, ["bug", "Fresh"])
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


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("", [5, 4, 3, 2, 1]),
        ("state=closed", [6]),
        ("state=all&direction=asc&per_page=2", [1, 2]),
        ("labels=bug,QUESTION", [5]),
        ("page=0&per_page=0", [5, 4, 3, 2, 1]),
    ],
)
def test_lists_are_filtered(client: Client, query: str, expected: list[int]) -> None:
    client.issue("Fifth", labels=["question", "bug"])
    client("PATCH", f"issues/{client.issue('Sixth')['number']}", {"state": "closed"})
    assert numbers(client("GET", f"issues?{query}").json()) == expected


def test_links_to_pages_use_the_host_of_the_request(client: Client) -> None:
    insert_issues(client.sandbox, 5)
    answer = client("GET", "/api/v3/repos/octo/home/issues?per_page=4&page=2&state=all")
    base = f"{client.sandbox.url}/api/v3/repos/octo/home/issues?per_page=4"
    assert answer.links["next"]["url"] == f"{base}&page=3&state=all"
    pages = {name: link["url"].split("page=")[-1].split("&")[0] for name, link in answer.links.items()}
    assert pages == {"prev": "1", "next": "3", "last": "3", "first": "1"}
    assert len(client("GET", answer.links["next"]["url"].removeprefix(client.sandbox.url)).json()) == 1
    assert answer.json()[0]["url"].startswith(f"{client.sandbox.url}/api/v3/repos/")


def test_an_edge_is_seen_from_both_ends(client: Client) -> None:
    first, second = (client("GET", f"issues/{number}").json() for number in (1, 2))
    answer = client("POST", "issues/2/dependencies/blocked_by", {"issue_id": first["id"]})
    assert (answer.status_code, answer.json()["number"]) == (201, 1)
    assert numbers(client("GET", "issues/2/dependencies/blocked_by").json()) == [1]
    assert client("GET", "issues/1").json()["issue_dependencies_summary"]["blocking"] == 1
    client("PATCH", "issues/1", {"state": "closed"})
    summary = client("GET", "issues/2").json()["issue_dependencies_summary"]
    assert summary == {"blocked_by": 0, "total_blocked_by": 1, "blocking": 0, "total_blocking": 0}
    for _ in range(2):  # taking away what is not there is a success on GitHub
        assert client("DELETE", f"issues/2/dependencies/blocked_by/{first['id']}").status_code == 200
    assert client("GET", "issues/2/dependencies/blocked_by").json() == []
    assert second["id"] != second["number"]


def test_the_timeline_tells_what_happened(client: Client) -> None:
    client("POST", "issues/2/labels", {"labels": ["bug"]})
    client("POST", "issues/2/comments", {"body": "hello"})
    client("PATCH", "issues/2", {"title": "New", "state": "closed", "labels": []})
    events = [entry["event"] for entry in client("GET", "issues/2/timeline").json()]
    assert events == ["labeled", "commented", "renamed", "closed", "unlabeled"]


def test_labels_from_a_stranger_are_dropped_silently(client: Client) -> None:
    body = {"title": "Please", "labels": ["bug", "made-up"]}
    document = client("POST", "issues", body, token=STRANGER).json()
    assert (document["labels"], document["author_association"]) == ([], "NONE")
    changed = client("PATCH", f"issues/{document['number']}", {"body": "more", "labels": ["bug"]}, token=STRANGER)
    assert (changed.json()["body"], changed.json()["labels"]) == ("more", [])


def test_permissions_are_returned_by_role(client: Client) -> None:
    roles = {"maintainer": ("admin", "admin"), "sorter": ("read", "triage"), "stranger": ("read", "read")}
    for login, expected in roles.items():
        document = client("GET", f"collaborators/{login}/permission").json()
        assert (document["permission"], document["role_name"]) == expected
    assert client("GET", "/repos/octo/home", token=STRANGER).json()["permissions"]["push"] is False


def test_an_issue_has_one_parent(client: Client) -> None:
    parent, child, other = (client.issue(title) for title in ("Parent", "Child", "Other"))
    path, body = f"issues/{parent['number']}/sub_issues", {"sub_issue_id": child["id"]}
    assert client("POST", path, body, token=STRANGER).status_code in (403, 404)
    assert client("POST", path, body).status_code == 201
    assert client("POST", path, body).status_code == 422
    assert client("POST", f"issues/{other['number']}/sub_issues", body).status_code == 422
    assert client("POST", path, {"sub_issue_id": parent["id"]}).status_code == 422
    assert [each["number"] for each in client("GET", path).json()] == [child["number"]]
    client("PATCH", f"issues/{child['number']}", {"state": "closed"})
    summary = client("GET", f"issues/{parent['number']}").json()["sub_issues_summary"]
    assert summary == {"total": 1, "completed": 1, "percent_completed": 100}
    moved = client("POST", f"issues/{other['number']}/sub_issues", {**body, "replace_parent": True})
    assert moved.status_code == 201


def test_accounts_that_cannot_be_assigned_are_left_out(client: Client) -> None:
    number = client.issue("Assigned")["number"]
    logins = {"assignees": ["maintainer", "stranger", "copilot-swe-agent[bot]"]}
    found = client("POST", f"issues/{number}/assignees", logins).json()["assignees"]
    assert {person["login"] for person in found} == {"maintainer", "copilot-swe-agent[bot]"}


def test_an_issue_is_in_one_milestone(client: Client) -> None:
    number = client.issue("Planned")["number"]
    assert client("POST", "milestones", {"title": "v1"}, token=STRANGER).status_code in (403, 404)
    first = client("POST", "milestones", {"title": "v1"}).json()
    assert client("POST", "milestones", {"title": "v1"}).status_code == 422
    closed = client("POST", "milestones", {"title": "v0", "state": "closed"}).json()
    assert [each["title"] for each in client("GET", "milestones").json()] == ["v1"]
    assert len(client("GET", "milestones?state=all").json()) == 2
    assert client("PATCH", f"issues/{number}", {"milestone": 9}).status_code == 422
    for milestone in (first, closed):
        changed = client("PATCH", f"issues/{number}", {"milestone": milestone["number"]}).json()
        assert (changed["milestone"]["title"], changed["milestone"]["open_issues"]) == (milestone["title"], 1)
    assert client("PATCH", f"issues/{number}", {"milestone": None}).json()["milestone"] is None


def test_an_account_reacts_once(client: Client) -> None:
    made = client("POST", "issues/2/comments", {"body": "Hello"}).json()
    path = f"issues/comments/{made['id']}/reactions"
    for token, status in ((ADMIN, 201), (ADMIN, 200), ("triage", 201)):
        assert client("POST", path, {"content": "eyes"}, token=token).status_code == status
    assert [client("POST", path, body).status_code for body in ({"content": "wow"}, {})] == [422, 422]
    assert client("POST", "issues/comments/1/reactions", {"content": "eyes"}).status_code == 404
    (comment,) = client("GET", "issues/2/comments").json()
    assert (comment["reactions"]["eyes"], comment["reactions"]["total_count"]) == (2, 2)
    assert client("DELETE", f"issues/comments/{made['id']}").status_code == 204
