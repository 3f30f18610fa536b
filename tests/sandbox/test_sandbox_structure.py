"""Sub-issues, types and assignees of the local GitHub."""

from support.code_repository import STRANGER, Client


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
