"""The parts of the local GitHub that starts use: reactions, runs of a workflow by their title, and blocked issues."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import requests
from support.stage import Stage
from support.starts import REQUEST, Starts, starts_stage


@pytest.fixture
def stage(tmp_path: Path) -> Iterator[Stage]:
    with starts_stage(tmp_path) as stage:
        yield stage


def status_of(stage: Stage, method: str, path: str, token: str = "writer", **body: Any) -> int:
    headers = {"Authorization": f"Bearer {token}"}
    url = f"{stage.server.url}/repos/{stage.repository}/{path}"
    return requests.request(method, url, json=body or None, headers=headers, timeout=10).status_code


def test_an_account_reacts_once(stage: Stage) -> None:
    root = f"/repos/{stage.repository}/issues"
    made = stage.send("POST", f"{root}/{REQUEST}/comments", body="Hello")
    path = f"issues/comments/{made['id']}/reactions"
    assert status_of(stage, "POST", path, content="eyes") == 201
    assert status_of(stage, "POST", path, content="eyes") == 200
    assert status_of(stage, "POST", path, "triager", content="eyes") == 201
    assert status_of(stage, "POST", path, content="wow") == 422
    assert status_of(stage, "POST", "issues/comments/1/reactions", content="eyes") == 404
    (comment,) = stage.get(f"{root}/{REQUEST}/comments")
    assert (comment["reactions"]["eyes"], comment["reactions"]["total_count"]) == (2, 2)
    assert status_of(stage, "DELETE", f"issues/comments/{made['id']}") == 204


def test_a_dispatch_is_a_run_with_a_title_until_it_is_cancelled(stage: Stage) -> None:
    starts, inputs = Starts(stage), {"item": "1", "start": "accord-0123456789ab"}
    path = "actions/workflows/accord-plan.yml"
    assert status_of(stage, "POST", f"{path}/dispatches", ref="main", inputs=inputs) == 204
    (run,) = starts.runs
    assert (run["display_title"], run["status"], run["event"]) == (
        "Accord plan accord-0123456789ab", "queued", "workflow_dispatch"
    )  # fmt: skip
    root = f"/repos/{stage.repository}/{path}/runs"
    assert stage.get(root, created=">=2026-11-02T09:00:00Z", event="workflow_dispatch")["total_count"] == 1
    assert stage.get(root, created=">=2026-11-03T09:00:00Z")["total_count"] == 0
    assert stage.get(root, event="push")["total_count"] == 0
    assert status_of(stage, "POST", f"actions/runs/{run['id']}/cancel", "triager") == 403
    assert status_of(stage, "POST", f"actions/runs/{run['id']}/cancel") == 202
    assert status_of(stage, "POST", f"actions/runs/{run['id']}/cancel") == 409
    assert status_of(stage, "GET", "actions/workflows/none.yml/runs") == 404
