"""GraphQL: errors with status 200, and review threads: who may resolve one, who hid a comment, its line."""

import base64
from typing import Any

import pytest
from support.code_repository import CHANGED, CODE, INSTALLATION, STRANGER, Client

TALKS = """  - {token: talks, login: "talks[bot]", kind: installation, permissions: {pull_requests: write}}
"""
SEED = CODE.replace("repositories:\n", f"{TALKS}repositories:\n", 1)
REPOSITORY = 'repository(owner: "octo", name: "code")'
FIELDS = "id isResolved isOutdated line originalLine subjectType viewerCanResolve resolvedBy { login }"
COMMENT = "id isMinimized minimizedReason originalCommit { oid } pullRequestReview { fullDatabaseId }"


def ask(client: Client, query: str, token: str = "", **variables: Any) -> Any:
    options = {"token": token} if token else {}
    return client.send(200, "POST", "/graphql", {"query": query, "variables": variables}, **options)


def threads(client: Client, token: str = "") -> list[dict[str, Any]]:
    inner = f"reviewThreads(first: 9) {{ nodes {{ {FIELDS} comments(first: 9) {{ nodes {{ {COMMENT} }} }} }} }}"
    query = f"{{ {REPOSITORY} {{ pullRequest(number: 2) {{ {inner} }} }} }}"
    found: list[dict[str, Any]] = ask(client, query, token)["data"]["repository"]["pullRequest"]["reviewThreads"][
        "nodes"
    ]
    return found


def change(client: Client, name: str, thread: dict[str, Any], token: str = "") -> Any:
    query = f"mutation($id: ID!) {{ {name}(input: {{threadId: $id}}) {{ thread {{ isResolved }} }} }}"
    return ask(client, query, token, id=thread["id"])


def comment(client: Client, line: int = 3) -> Any:
    body = {"event": "COMMENT", "body": "Words", "comments": [{"path": "long.txt", "line": line, "body": "Why?"}]}
    return client.send(200, "POST", "pulls/2/reviews", body)


@pytest.mark.parametrize(
    ("token", "message"),
    [
        ("writer", ""),
        (INSTALLATION, ""),
        ("flows", ""),
        (STRANGER, "does not have the correct permissions to execute `ResolveReviewThread`"),
        ("talks", "Resource not accessible by integration"),
        ("fine", "does not have the correct permissions to execute `ResolveReviewThread`"),
    ],
)
def test_resolving_takes_write_access_and_for_an_app_contents_too(client: Client, token: str, message: str) -> None:
    comment(client)
    (thread,) = threads(client, token)
    assert thread["viewerCanResolve"] == (not message)
    answer = change(client, "resolveReviewThread", thread, token)
    if message:
        assert message in answer["errors"][0]["message"]
        assert (answer["errors"][0]["type"], answer["data"]) == ("FORBIDDEN", {"resolveReviewThread": None})
    else:
        assert answer == {"data": {"resolveReviewThread": {"thread": {"isResolved": True}}}}
    assert threads(client)[0]["isResolved"] == (not message)


def test_the_first_to_resolve_a_thread_is_named_unless_it_is_a_bot(client: Client) -> None:
    comment(client)
    comment(client, 30)
    first, second = threads(client)
    for token in ("writer", INSTALLATION):
        change(client, "resolveReviewThread", first, token)
    change(client, "resolveReviewThread", second, INSTALLATION)
    assert [(one["resolvedBy"], one["viewerCanResolve"]) for one in threads(client)] == [
        ({"login": "wanda"}, False),
        (None, False),
    ]
    change(client, "unresolveReviewThread", first, "writer")
    assert [one["isResolved"] for one in threads(client)] == [False, True]


def test_a_hidden_comment_tells_why(client: Client) -> None:
    made = comment(client)
    (thread,) = threads(client)
    (said,) = thread["comments"]["nodes"]
    assert (said["isMinimized"], said["minimizedReason"]) == (False, None)
    assert (said["pullRequestReview"], said["originalCommit"]) == (
        {"fullDatabaseId": str(made["id"])},
        {"oid": made["commit_id"]},
    )
    fields = "minimizedComment { isMinimized minimizedReason }"
    query = f"mutation($id: ID!) {{ minimizeComment(input: {{subjectId: $id, classifier: OFF_TOPIC}}) {{ {fields} }} }}"
    assert ask(client, query, STRANGER, id=said["id"])["errors"][0]["type"] == "FORBIDDEN"
    hidden = {"isMinimized": True, "minimizedReason": "off-topic"}
    assert ask(client, query, "writer", id=said["id"])["data"] == {"minimizeComment": {"minimizedComment": hidden}}
    assert threads(client)[0]["comments"]["nodes"][0]["isMinimized"]
    assert ask(client, query, "writer", id=thread["id"])["errors"][0]["type"] == "NOT_FOUND"


@pytest.mark.slow
def test_a_thread_on_a_changed_line_is_outdated_and_keeps_its_old_line(client: Client) -> None:
    comment(client)
    sha = client("GET", "contents/long.txt?ref=feature").json()["sha"]
    text = base64.b64encode(("first\n" + CHANGED.replace("line three\n", "line 3!\n")).encode()).decode()
    client.send(200, "PUT", "contents/long.txt", {"message": "x", "content": text, "branch": "feature", "sha": sha})
    (thread,) = threads(client)
    assert (thread["isOutdated"], thread["line"], thread["originalLine"], thread["subjectType"]) == (
        True,
        None,
        3,
        "LINE",
    )


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("{", "Syntax Error"),
        (f"{{ {REPOSITORY} {{ stars }} }}", "Cannot query field 'stars' on type 'Repository'"),
    ],
)
def test_a_wrong_query_gets_an_error_and_no_data(client: Client, query: str, message: str) -> None:
    document = ask(client, query)
    assert message in document["errors"][0]["message"]
    assert "data" not in document


@pytest.mark.parametrize("asked", ["reviewThreads { totalCount }", "reviewThreads(first: 101) { totalCount }"])
def test_a_list_is_asked_for_by_pages_of_at_most_100(client: Client, asked: str) -> None:
    document = ask(client, f"{{ {REPOSITORY} {{ pullRequest(number: 2) {{ {asked} }} }} }}")
    error = document["errors"][0]
    assert (error["type"], error["path"]) == ("EXCESSIVE_PAGINATION", ["repository", "pullRequest", "reviewThreads"])


def test_a_query_needs_a_token(client: Client) -> None:
    answer = client("POST", "/graphql", {"query": "{ __typename }"}, token=None)
    assert answer.status_code == 401
