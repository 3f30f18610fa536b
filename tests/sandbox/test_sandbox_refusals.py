"""Every refusal has GitHub's status and words."""

from typing import Any

import pytest
from support.code_repository import ADMIN, INSTALLATION, STRANGER, Client

NO_NEW_LABELS = "You do not have permission to create labels on this repository."
ARCHIVED = "Repository was archived so is read-only."
LOCKED = "Unable to create comment because issue is locked."
NO_ROLES = "Must have push access to view collaborator permission."
NOT_BY_INTEGRATION = "Resource not accessible by integration"
NOT_BY_TOKEN = "Resource not accessible by personal access token"
ELEVEN = {str(number): number for number in range(11)}
TOO_MANY = "No more than 10 properties are allowed; 11 were supplied."
MANY = [f"label {number}" for number in range(101)]
WORKFLOWS = "actions/permissions/workflow"
MAY_CREATE = "can_approve_pull_request_reviews"
BLOCKED_BY = "issues/2/dependencies/blocked_by"
DEPENDENCY = "An error occurred while adding the blocking issue to the issue. Validation failed: "


def custom(resource: str, field: str, message: str, code: str = "custom") -> list[dict[str, str]]:
    return [{"resource": resource, "code": code, "field": field, "message": message}]


def too_long(resource: str, field: str, limit: int) -> list[dict[str, str]]:
    return custom(resource, field, f"{field} is too long (maximum is {limit} characters)")


def plain(resource: str, field: str, code: str, **more: str) -> list[dict[str, str]]:
    return [{"resource": resource, "code": code, "field": field, **more}]


COMMENT_TOO_LONG = custom("IssueComment", "data", "Body is too long (maximum is 65536 characters)", "unprocessable")
BLANK_COMMENT = custom("IssueComment", "data", "Body cannot be blank", "unprocessable")
MANY_LABELS = custom("Issue", "labels", "labels is too long (maximum is 100)")

INVALID: list[tuple[str, str, Any, Any]] = [
    ("POST", "issues", {"title": "x", "body": "b" * 65_537}, too_long("Issue", "body", 65536)),
    ("PATCH", "issues/2", {"body": "b" * 65_537}, too_long("Issue", "body", 65536)),
    ("POST", "issues", {"title": "t" * 257}, too_long("Issue", "title", 256)),
    ("POST", "issues", {"title": " "}, plain("Issue", "title", "missing_field")),
    ("POST", "issues", {"title": "x", "labels": MANY}, MANY_LABELS),
    ("POST", "issues", {"title": "x", "labels": ["n" * 51]}, too_long("Label", "name", 50)),
    ("POST", "labels", {"name": "BUG"}, plain("Label", "name", "already_exists")),
    ("PATCH", "labels/bug", {"new_name": "Wontfix"}, plain("Label", "name", "already_exists")),
    ("POST", "labels", {"name": "n" * 51}, too_long("Label", "name", 50)),
    ("POST", "labels", {"name": "n", "description": "d" * 101}, too_long("Label", "description", 100)),
    *(
        ("POST", "labels", {"name": "n", "color": color}, plain("Label", "color", "invalid", value=color))
        for color in ("#ff0000", "fff", "gggggg", "ff0000\n")
    ),
    ("POST", "issues/2/comments", {"body": "b" * 65_537}, COMMENT_TOO_LONG),
    ("POST", "issues/2/comments", {"body": ""}, BLANK_COMMENT),
    ("PATCH", "issues/2", {"milestone": 10**30}, plain("Issue", "milestone", "invalid")),
    ("GET", "issues?state=shut", None, [{"value": "shut", "resource": "Issue", "code": "invalid", "field": "state"}]),
]


@pytest.mark.parametrize(("method", "path", "body", "errors"), INVALID)
def test_invalid_values_are_reported_by_field(client: Client, method: str, path: str, body: Any, errors: Any) -> None:
    answer = client(method, path, body)
    document = answer.json()
    assert (answer.status_code, document["message"], document["errors"]) == (422, "Validation Failed", errors)
    assert document["status"] == "422"
    assert document["documentation_url"].startswith("https://docs.github.com/rest/issues/")
    assert len(client("GET", "labels").json()) == 9, "nothing of a refused request stays"


@pytest.mark.parametrize(
    ("method", "path", "body", "problem"),
    [
        ("POST", "issues", {}, '"title" wasn\'t supplied.'),
        ("PATCH", "issues/2", {"state": "shut"}, "For 'properties/state', \"shut\" is not a member of [open, closed]."),
        ("POST", "issues", {"title": 5}, "For 'properties/title', 5 is not of the right type."),
        (
            "POST",
            "issues",
            {"title": "x", "labels": "bug"},
            "For 'properties/labels', \"bug\" is not of the right type.",
        ),
        ("POST", "issues/2/labels", [7], "For 'properties/labels', 7 is not of the right type."),
        ("PATCH", "issues/2", {"body": 5}, "For 'properties/body', 5 is not of the right type."),
        ("PATCH", "issues/2", {"type": ["Bug"]}, "For 'properties/type', [\"Bug\"] is not of the right type."),
        ("POST", "issues/2/assignees", {"assignees": [7]}, "For 'properties/assignees', 7 is not of the right type."),
        ("PUT", WORKFLOWS, {MAY_CREATE: 1}, f"For 'properties/{MAY_CREATE}', 1 is not of the right type."),
        ("GET", "issues?since=x", None, '"x" is not a valid timestamp.'),
        ("GET", "issues/comments?since=2026-07-01", None, '"2026-07-01" is not a valid timestamp.'),
        ("POST", BLOCKED_BY, {}, '"issue_id" wasn\'t supplied.'),
        ("POST", BLOCKED_BY, {"issue_id": "1"}, "For 'properties/issue_id', \"1\" is not of the right type."),
        ("POST", "statuses/main", {}, '"state" wasn\'t supplied.'),
        ("POST", "/graphql", None, '"query" wasn\'t supplied.'),
        ("POST", "dispatches", {"client_payload": {}}, '"event_type" wasn\'t supplied.'),
        ("POST", "dispatches", {"event_type": "x" * 101}, "event_type must have 1 to 100 characters."),
        ("POST", "dispatches", {"event_type": "go", "client_payload": ELEVEN}, TOO_MANY),
    ],
)
def test_bodies_outside_the_schema_are_refused(client: Client, method: str, path: str, body: Any, problem: str) -> None:
    answer = client(method, path, body)
    assert (answer.status_code, answer.json()["message"]) == (422, f"Invalid request.\n\n{problem}")


@pytest.mark.parametrize(
    ("token", "method", "path", "body", "status", "message"),
    [
        ("wrong", "GET", "issues", None, 401, "Bad credentials"),
        (None, "POST", "issues", {"title": "x"}, 401, "Requires authentication"),
        (None, "GET", "/user", None, 401, "Requires authentication"),
        (INSTALLATION, "GET", "/user", None, 403, NOT_BY_INTEGRATION),
        (INSTALLATION, "POST", "/repos/octo/old/issues", {"title": "x"}, 403, ARCHIVED),
        (INSTALLATION, "GET", "/repos/octo/secret", None, 404, "Not Found"),
        ("fine-grained", "POST", "issues", {"title": "x"}, 403, NOT_BY_TOKEN),
        ("fine-grained", "PATCH", "issues/2", {"title": "x"}, 403, NOT_BY_TOKEN),
        ("fine-grained", "POST", "dispatches", {"event_type": "x"}, 403, NOT_BY_TOKEN),
        (STRANGER, "PATCH", "issues/2", {"title": "x"}, 403, "Must have admin rights to Repository."),
        (STRANGER, "POST", "issues/2/labels", {"labels": ["bug"]}, 403, "Must have admin rights to Repository."),
        (STRANGER, "POST", "labels", {"name": "x"}, 404, "Not Found"),
        (STRANGER, "DELETE", "labels/bug", None, 404, "Not Found"),
        (STRANGER, "GET", "/repos/octo/secret/issues", None, 404, "Not Found"),
        (STRANGER, "GET", "/repos/octo/nothing", None, 404, "Not Found"),
        (STRANGER, "POST", "issues/4/comments", {"body": "x"}, 403, LOCKED),
        (INSTALLATION, "POST", "issues/4/comments", {"body": "x"}, 403, LOCKED),
        (STRANGER, "GET", "collaborators/stranger/permission", None, 403, NO_ROLES),
        ("triage", "PATCH", "issues/2", {"body": "x"}, 403, "Must have admin rights to Repository."),
        ("triage", "POST", "issues/2/labels", ["unheard-of"], 403, NO_NEW_LABELS),
        ("pulls-only", "POST", "issues/3/labels", {"labels": ["unheard-of"]}, 403, NO_NEW_LABELS),
        ("pulls-only", "POST", "issues/2/labels", {"labels": ["bug"]}, 403, NOT_BY_INTEGRATION),
        ("pulls-only", "POST", "issues/2/comments", {"body": "x"}, 403, NOT_BY_INTEGRATION),
        (ADMIN, "POST", "/repos/octo/old/issues", {"title": "x"}, 403, ARCHIVED),
        (ADMIN, "PATCH", "/repos/octo/old/issues/1", {"title": "x"}, 403, ARCHIVED),
        (ADMIN, "GET", "/repos/octo/code/issues", None, 410, "Issues are disabled for this repo"),
        (ADMIN, "POST", "/repos/octo/code/issues", {"title": "x"}, 410, "Issues are disabled for this repo"),
        (ADMIN, "GET", "/repos/octo/code/issues/2", None, 410, "Issues are disabled for this repo"),
        (ADMIN, "GET", "issues/99", None, 404, "Not Found"),
        (ADMIN, "GET", f"issues/{10**30}", None, 404, "Not Found"),
        (ADMIN, "PATCH", "issues/comments/2", {"body": "x"}, 404, "Not Found"),
        (ADMIN, "GET", "labels/none", None, 404, "Not Found"),
        (ADMIN, "DELETE", "issues/2/labels/none", None, 404, "Label does not exist"),
        (ADMIN, "POST", BLOCKED_BY, {"issue_id": 5}, 404, "Not Found"),
        (ADMIN, "POST", BLOCKED_BY, {"issue_id": 10**40}, 404, "Not Found"),
        (ADMIN, "GET", "/repos/octo/home/teams", None, 404, "Not Found"),
    ],
)
def test_requests_without_permission_are_refused_in_github_s_words(
    client: Client, token: str | None, method: str, path: str, body: Any, status: int, message: str
) -> None:
    answer = client(method, path, body, token=token)
    assert answer.status_code == status, answer.text
    document = answer.json()
    assert (document["message"], document["status"]) == (message, str(status))
    assert document["documentation_url"].startswith("https://docs.github.com/")


@pytest.mark.parametrize(
    ("token", "method", "path", "body"),
    [
        ("pulls-only", "POST", "issues/3/labels", {"labels": ["bug"]}),
        ("pulls-only", "POST", "issues/3/comments", {"body": "x"}),
        ("triage", "POST", "issues/2/labels", {"labels": ["bug"]}),
        ("triage", "PATCH", "issues/2", {"state": "closed"}),
        ("fine-grained", "GET", "issues/2", None),
        (ADMIN, "POST", "issues/4/comments", {"body": "x"}),
        (STRANGER, "POST", "issues/2/comments", {"body": "x"}),
        (STRANGER, "PATCH", "issues/1", {"title": "Mine", "state": "closed"}),
        (ADMIN, "POST", "/repos/octo/code/issues/1/comments", {"body": "x"}),
        (None, "GET", "issues", None),
        (ADMIN, "POST", "dispatches", {"event_type": "go", "client_payload": {"id": 1}}),
        (ADMIN, "POST", "dispatches", {"event_type": "go"}),
    ],
)
def test_requests_with_permission_succeed(client: Client, token: str | None, method: str, path: str, body: Any) -> None:
    assert client(method, path, body, token=token).ok


@pytest.mark.parametrize(
    ("blocked", "blocker", "message"),
    [
        (2, 3, "Target issue may only be an issue"),
        (3, 2, "Source issue may only be an issue"),
        (2, 2, "Target issue cannot be the same as the source issue"),
        (2, 1, "Target issue has already been taken"),
    ],
)
def test_invalid_dependencies_are_refused(client: Client, blocked: int, blocker: int, message: str) -> None:
    ids = {number: client("GET", f"issues/{number}").json()["id"] for number in (1, 2, 3)}
    client("POST", BLOCKED_BY, {"issue_id": ids[1]})
    answer = client("POST", f"issues/{blocked}/dependencies/blocked_by", {"issue_id": ids[blocker]})
    assert (answer.status_code, answer.json()["message"]) == (422, DEPENDENCY + message)


@pytest.mark.parametrize(
    ("raw", "message"),
    [
        (b"{", "Problems parsing JSON"),
        (b'{"title": NaN}', "Problems parsing JSON"),
        (b'{"title": "\\ud800"}', "Problems parsing JSON"),
        (b"\xff", "Problems parsing JSON"),
        (b"[" * 100_000, "Problems parsing JSON"),
        (b'["title"]', "Body should be a JSON object"),
    ],
)
def test_a_body_other_than_json_is_a_400(client: Client, raw: bytes, message: str) -> None:
    answer = client("POST", "issues", data=raw)
    assert (answer.status_code, answer.json()["message"]) == (400, message)


def test_a_route_that_the_sandbox_lacks_is_a_404_with_a_hint(client: Client) -> None:
    answer = client("GET", "teams")
    assert answer.status_code == 404
    assert "docs/sandbox.md" in answer.json()["errors"][0]
