"""Checks and statuses decide whether a pull request may be merged."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from support.code_repository import ADMIN, INSTALLATION, STRANGER, code_server

if TYPE_CHECKING:
    from collections.abc import Iterator

    from conftest import Client

    from accord_sandbox.server import RunningSandbox

NOTE = {"path": "long.txt", "start_line": 1, "end_line": 2, "annotation_level": "warning", "message": "Hm"}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningSandbox]:
    with code_server(tmp_path_factory.mktemp("sandbox")) as running:
        yield running


def head(client: Client) -> str:
    sha: str = client("GET", "git/ref/heads/feature").json()["object"]["sha"]
    return sha


def run(client: Client, name: str = "tests", **more: Any) -> dict[str, Any]:
    answer = client("POST", "check-runs", {"name": name, "head_sha": head(client), **more}, token=INSTALLATION)
    assert answer.status_code == 201, answer.text
    document: dict[str, Any] = answer.json()
    return document


def state(client: Client) -> str:
    word: str = client("GET", "pulls/2").json()["mergeable_state"]
    return word


def test_a_check_run_is_completed_by_its_conclusion(client: Client) -> None:
    made = run(client, details_url="https://example.org/1", external_id="e1")
    assert (made["status"], made["conclusion"], state(client)) == ("queued", None, "unstable")
    output = {"title": "Two", "summary": "Two notes", "annotations": [NOTE, {**NOTE, "title": "T"}]}
    done = run(client, conclusion="success", output=output)
    assert (done["status"], done["conclusion"], state(client)) == ("completed", "success", "clean")
    assert done["output"]["annotations_count"] == 2


def test_the_newest_of_each_name_counts(client: Client) -> None:
    run(client, status="completed", conclusion="failure")
    assert state(client) == "unstable"
    newest = run(client, status="completed", conclusion="success")
    other = run(client, "lint", status="completed", conclusion="skipped")
    listed = client("GET", "commits/feature/check-runs").json()
    assert (listed["total_count"], [entry["id"] for entry in listed["check_runs"]]) == (2, [other["id"], newest["id"]])
    assert client("GET", "commits/feature/check-runs?filter=all&check_name=tests").json()["total_count"] == 2
    assert state(client) == "clean"


@pytest.mark.parametrize(
    ("token", "body", "status"),
    [
        (ADMIN, {}, 403),
        (None, {}, 401),
        ("flows", {}, 403),
        (INSTALLATION, {"head_sha": "0" * 40}, 422),
        (INSTALLATION, {"status": "completed"}, 422),
        (INSTALLATION, {"conclusion": "splendid"}, 422),
        (INSTALLATION, {"output": {"title": "x"}}, 422),
        (INSTALLATION, {"output": {"title": "x", "summary": "x" * 65_536}}, 422),
        (INSTALLATION, {"output": {"title": "x", "summary": "x", "annotations": [NOTE] * 51}}, 422),
        (INSTALLATION, {"output": {"title": "x", "summary": "x", "annotations": [{**NOTE, "end_line": 0}]}}, 422),
        (INSTALLATION, {"completed_at": "yesterday", "conclusion": "success"}, 422),
    ],
)
def test_invalid_check_runs_are_refused(client: Client, token: str | None, body: Any, status: int) -> None:
    answer = client("POST", "check-runs", {"name": "x", "head_sha": head(client), **body}, token=token)
    assert answer.status_code == status
    assert client("GET", "commits/feature/check-runs").json()["total_count"] == 0


def test_statuses_combine_into_one_state(client: Client) -> None:
    sha = head(client)
    assert client("GET", "commits/feature/status").json()["state"] == "pending"
    states = [("ci", "pending", "pending"), ("ci", "success", "success"), ("lint", "error", "failure")]
    for context, given, expected in states:
        made = client("POST", f"statuses/{sha}", {"state": given, "context": context, "description": "d"})
        assert (made.status_code, made.json()["creator"]["login"]) == (201, "maintainer")
        assert client("GET", f"commits/{sha}/status").json()["state"] == expected
    assert client("GET", f"commits/{sha}/status").json()["total_count"] == 2
    assert state(client) == "unstable"
    assert client("POST", f"statuses/{sha}", {"state": "fine"}).status_code == 422
    assert client("POST", f"statuses/{sha}", {"state": "success"}, token=STRANGER).status_code == 403
