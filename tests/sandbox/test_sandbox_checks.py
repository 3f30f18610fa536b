"""Check runs and commit statuses are kept apart, and the newest of each name counts."""

from typing import Any

import pytest
from support.code_repository import ADMIN, CODE, INSTALLATION, STRANGER, Client

SEED = CODE


def run(client: Client, name: str = "tests", **more: Any) -> Any:
    body = {"name": name, "head_sha": client.tip("feature"), **more}
    return client.send(201, "POST", "check-runs", body, token=INSTALLATION)


@pytest.mark.parametrize(
    ("token", "body", "status"),
    [
        (ADMIN, {}, 403), (None, {}, 401), ("flows", {}, 403), (INSTALLATION, {"head_sha": "0" * 40}, 422),
        (INSTALLATION, {"status": "completed"}, 422), (INSTALLATION, {"conclusion": "splendid"}, 422),
        (INSTALLATION, {"output": {"title": "x"}}, 422),
        (INSTALLATION, {"output": {"title": "x", "summary": "x" * 65_536}}, 422),
    ],
)  # fmt: skip
def test_invalid_check_runs_are_refused(client: Client, token: str | None, body: Any, status: int) -> None:
    answer = client("POST", "check-runs", {"name": "x", "head_sha": client.tip("feature"), **body}, token=token)
    assert answer.status_code == status
    assert client("GET", "commits/feature/check-runs").json()["total_count"] == 0


def test_statuses_combine_into_one_state(client: Client) -> None:
    sha = client.tip("feature")
    assert client("GET", "commits/feature/status").json()["state"] == "pending"
    states = [("ci", "pending", "pending"), ("ci", "success", "success"), ("lint", "error", "failure")]
    for context, given, expected in states:
        made = client("POST", f"statuses/{sha}", {"state": given, "context": context, "description": "d"})
        assert (made.status_code, made.json()["creator"]["login"]) == (201, "maintainer")
        assert client("GET", f"commits/{sha}/status").json()["state"] == expected
    assert client("GET", f"commits/{sha}/status").json()["total_count"] == 2
    assert client("POST", f"statuses/{sha}", {"state": "fine"}).status_code == 422
    assert client("POST", f"statuses/{sha}", {"state": "success"}, token=STRANGER).status_code == 403
