"""GraphQL answers what is asked for, and says what is wrong with a question in an answer that is 200."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from conftest import Client

REPOSITORY = 'repository(owner: "octo", name: "home")'


def ask(client: Client, query: str, variables: Any = None, **options: Any) -> dict[str, Any]:
    answer = client("POST", "/graphql", {"query": query, "variables": variables}, **options)
    assert answer.status_code == 200, answer.text
    document: dict[str, Any] = answer.json()
    return document


def test_a_field_comes_under_the_name_it_was_asked_by(client: Client) -> None:
    query = 'query Q($n: String!) { r: repository(owner: "octo", name: $n) { kind: __typename } } # end'
    assert ask(client, query, {"n": "home"}) == {"data": {"r": {"kind": "Repository"}}}


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("", "Unexpected end of document"),
        ("{", "Unexpected end of document"),
        ("mutation { x }", 'Parse error on "mutation": only queries are answered here'),
        ("{ a } { b }", 'Parse error on "{": one operation is answered here'),
        ("{ a ' }", 'Parse error on "\'" (UNKNOWN_CHAR)'),
        ("{ viewer }", "Field 'viewer' doesn't exist on type 'Query'"),
        (f"{{ {REPOSITORY} {{ stars }} }}", "Field 'stars' doesn't exist on type 'Repository'"),
        (f"{{ {REPOSITORY} }}", "Field 'repository' must have selections (field 'repository' returns ...)"),
        ("{ repository(id: 1) { __typename } }", "Field 'repository' doesn't accept argument 'id'"),
        ("query($n: Int!) { __typename }", "Variable $n was provided invalid value"),
        ("{ " + "node { " * 40, "Query has depth of more than the limit"),
    ],
)
def test_a_question_that_cannot_be_is_answered_with_what_is_wrong(client: Client, query: str, message: str) -> None:
    document = ask(client, query)
    assert (document["errors"][0]["message"], "data" in document) == (message, False)


@pytest.mark.parametrize(
    ("asked", "kind"),
    [
        ("reviewThreads { totalCount }", "MISSING_PAGINATION_BOUNDARIES"),
        ("reviewThreads(first: 101) { totalCount }", "EXCESSIVE_PAGINATION"),
        ('reviewThreads(first: 1, after: "x") { totalCount }', "INVALID_CURSOR_ARGUMENTS"),
    ],
)
def test_a_list_must_be_asked_for_in_parts(client: Client, asked: str, kind: str) -> None:
    branch = client("GET", "branches").json()
    assert branch == []
    sha = client("PUT", "contents/a.txt", {"message": "a", "content": "YQ=="}).json()["commit"]["sha"]
    client("POST", "git/refs", {"ref": "refs/heads/topic", "sha": sha})
    client("PUT", "contents/b.txt", {"message": "b", "content": "Yg==", "branch": "topic"})
    number = client("POST", "pulls", {"title": "T", "head": "topic", "base": "main"}).json()["number"]
    document = ask(client, f"{{ {REPOSITORY} {{ pullRequest(number: {number}) {{ {asked} }} }} }}")
    assert document["errors"][0]["type"] == kind
    assert document["data"]["repository"]["pullRequest"] == {"reviewThreads": None}


def test_what_is_not_there_and_what_may_not_be_seen_are_told_alike(client: Client) -> None:
    for name, token in (("none", "accord-sandbox-token"), ("secret", "accord-sandbox-stranger-token")):
        query = f'{{ repository(owner: "octo", name: {json.dumps(name)}) {{ __typename }} }}'
        document = ask(client, query, token=token)
        assert (document["data"], document["errors"][0]["type"]) == ({"repository": None}, "NOT_FOUND")


def test_nobody_is_answered_without_a_token(client: Client) -> None:
    answer = client("POST", "/graphql", {"query": "{ __typename }"}, token=None)
    assert answer.status_code == 401
