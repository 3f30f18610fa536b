"""GraphQL returns the requested fields, and reports errors in a response with status 200."""

from typing import Any

import pytest
from support.code_repository import Client

REPOSITORY = 'repository(owner: "octo", name: "home")'


def ask(client: Client, query: str, variables: Any = None, **options: Any) -> Any:
    return client.send(200, "POST", "/graphql", {"query": query, "variables": variables}, **options)


def test_an_alias_names_the_field(client: Client) -> None:
    query = 'query Q($n: String!) { r: repository(owner: "octo", name: $n) { kind: __typename } } # end'
    assert ask(client, query, {"n": "home"}) == {"data": {"r": {"kind": "Repository"}}}


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("", "Syntax Error"),
        ("{", "Syntax Error"),
        ("mutation { x }", "Mutation"),
        ("{ __typename } { __typename }", "anonymous operation"),
        ("{ viewer }", "Cannot query field 'viewer' on type 'Query'"),
        (f"{{ {REPOSITORY} {{ stars }} }}", "Cannot query field 'stars' on type 'Repository'"),
        (f"{{ {REPOSITORY} }}", "must have a selection of subfields"),
        ("{ repository(id: 1) { __typename } }", "Unknown argument 'id'"),
        ("query($n: Int!) { " + REPOSITORY + " { pullRequest(number: $n) { __typename } } }", "'$n'"),
        ("{ node(id: " + "[" * 2000, "nested too deeply"),
        ("{ " + "node { " * 3000, "Syntax Error"),
    ],
)
def test_a_wrong_query_gets_an_error_and_no_data(client: Client, query: str, message: str) -> None:
    document = ask(client, query)
    assert message in document["errors"][0]["message"]
    assert "data" not in document


@pytest.mark.parametrize(
    ("asked", "kind"),
    [
        ("reviewThreads { totalCount }", "MISSING_PAGINATION_BOUNDARIES"),
        ("reviewThreads(first: 101) { totalCount }", "EXCESSIVE_PAGINATION"),
        ('reviewThreads(first: 1, after: "x") { totalCount }', "INVALID_CURSOR_ARGUMENTS"),
    ],
)
def test_a_list_needs_valid_pagination(client: Client, asked: str, kind: str) -> None:
    sha = client("PUT", "contents/a.txt", {"message": "a", "content": "YQ=="}).json()["commit"]["sha"]
    client("POST", "git/refs", {"ref": "refs/heads/topic", "sha": sha})
    client("PUT", "contents/b.txt", {"message": "b", "content": "Yg==", "branch": "topic"})
    number = client("POST", "pulls", {"title": "T", "head": "topic", "base": "main"}).json()["number"]
    document = ask(client, f"{{ {REPOSITORY} {{ pullRequest(number: {number}) {{ {asked} }} }} }}")
    error = document["errors"][0]
    assert (error["type"], error["path"]) == (kind, ["repository", "pullRequest", "reviewThreads"])
    assert document["data"]["repository"]["pullRequest"] is None


def test_a_query_needs_a_token(client: Client) -> None:
    answer = client("POST", "/graphql", {"query": "{ __typename }"}, token=None)
    assert answer.status_code == 401
