"""Workflow runs of pull requests: which events cause them, who has to approve them, and how they start."""

import json
from typing import Any

import pytest
from support.code_repository import INSTALLATION, Client, Git

WORKFLOWS = {
    "ci.yml": "name: CI\non: [push, pull_request]\njobs:\n  test: {name: Tests}\n  lint: {}\n",
    "main.yml": "on:\n  pull_request: {branches: [main, '!next']}\njobs: {a: {}}\n",
    "next.yml": "on:\n  pull_request: {branches: ['next*']}\njobs: {b: {}}\n",
    "labels.yml": "on:\n  pull_request: {types: [labeled, edited, closed]}\njobs: {c: {}}\n",
    "reopened.yml": "on:\n  pull_request: {types: reopened}\njobs: {d: {name: 'On ${{ matrix.os }}'}}\n",
    "push.yml": "on: push\njobs: {e: {}}\n",
    "broken.yml": "on: [pull_request\n",
    "plan.yml": "name: Plan\nrun-name: Plan ${{ inputs.start }}\non:\n  workflow_dispatch: {inputs: {start: {}}}\n",
}
DOCUMENT: dict[str, Any] = {
    "tokens": [
        {"token": "writer", "login": "wanda"},
        {"token": "reader", "login": "rita"},
        {
            "token": "app",
            "login": "app[bot]",
            "kind": "installation",
            "permissions": {"contents": "write", "pull_requests": "write", "actions": "write"},
        },
        {"token": "blind", "login": "app[bot]", "kind": "installation", "permissions": {"contents": "write"}},
    ],
    "repositories": [
        {
            "name": "octo/code",
            "collaborators": {"wanda": "write", "rita": "read"},
            "files": {"a.txt": "One\n", **{f".github/workflows/{name}": text for name, text in WORKFLOWS.items()}},
            "branches": {"feature": {"b.txt": "Two\n"}, "forked": {"c.txt": "Three\n"}},
            "issues": [{"title": "From a fork", "head": "forked", "fork": "mallory/code"}],
        }
    ],
}
SEED = json.dumps(DOCUMENT)
PULL = {"title": "Change", "head": "feature", "base": "main"}
HELD = ("completed", "action_required")


def runs(client: Client, **query: Any) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = client("GET", "actions/runs", params=query).json()["workflow_runs"]
    return found


def opened(client: Client, token: str = INSTALLATION) -> dict[str, Any]:
    """Open a pull request and return the run of CI."""
    client.send(201, "POST", "pulls", PULL, token=token)
    return next(run for run in runs(client) if run["name"] == "CI")


def checks(client: Client, ref: str = "feature") -> dict[str, tuple[str, str]]:
    found = client("GET", f"commits/{ref}/check-runs").json()["check_runs"]
    return {check["name"]: (check["status"], check["conclusion"]) for check in found}


def control(client: Client, path: str, body: Any = None) -> int:
    return client.session.put(f"{client.sandbox.url}/_sandbox/{path}", json=body, timeout=600).status_code


def test_runs_that_the_jobs_token_causes_are_held_and_have_no_jobs(client: Client) -> None:
    opened(client)
    found = runs(client, head_sha=client.tip("feature"), event="pull_request", status="action_required")
    assert [run["name"] for run in found] == [".github/workflows/main.yml", "CI"]
    for run in found:
        assert (run["status"], run["conclusion"], run["run_attempt"]) == (*HELD, 1)
        assert run["actor"]["login"] == run["triggering_actor"]["login"] == "github-actions[bot]"
        assert (run["head_branch"], [pull["number"] for pull in run["pull_requests"]]) == ("feature", [2])
    assert checks(client) == {}


@pytest.mark.parametrize(("token", "login"), [("app", "app[bot]"), ("writer", "wanda")])
def test_runs_that_an_app_or_a_person_causes_wait_for_a_runner(client: Client, token: str, login: str) -> None:
    run = opened(client, token)
    assert (run["status"], run["conclusion"], run["actor"]["login"]) == ("queued", None, login)
    assert checks(client) == dict.fromkeys(("Tests", "lint", "a"), ("queued", None))


@pytest.mark.slow
def test_a_push_and_a_reopening_cause_runs_and_other_activity_causes_none(client: Client, git: Git) -> None:
    opened(client)
    git.clone("feature", INSTALLATION)
    git.commit({"b.txt": "Three\n"})
    git("push", "-q", "origin", "feature")
    assert [run["head_sha"] for run in runs(client)[:2]] == [client.tip("feature")] * 2
    before = len(runs(client))
    client.send(200, "PATCH", "pulls/2", {"title": "Another"}, token=INSTALLATION)
    client.send(200, "POST", "issues/2/labels", {"labels": ["bug"]}, token=INSTALLATION)
    client.send(200, "PATCH", "pulls/2", {"state": "closed"}, token=INSTALLATION)
    assert len(runs(client)) == before
    client.send(200, "PATCH", "pulls/2", {"state": "open"}, token=INSTALLATION)
    assert {run["path"].rpartition("/")[2] for run in runs(client)[: len(runs(client)) - before]} == {
        "ci.yml",
        "main.yml",
        "reopened.yml",
    }


def test_runs_are_listed_newest_first_by_commit_branch_event_status_and_actor(client: Client) -> None:
    opened(client)
    control(client, "runs/octo/code/7", {"event": "push", "conclusion": "success", "head_branch": "main"})
    assert len(runs(client)) == 3
    for name, value, count in (
        ("branch", "main", 1), ("event", "push", 1), ("status", "completed", 3), ("status", "success", 1),
        ("status", "action_required", 2), ("actor", "github-actions[bot]", 2), ("head_sha", "0" * 40, 0),
        ("per_page", 1, 1),
    ):  # fmt: skip
        assert len(runs(client, **{name: value})) == count, name


def test_a_person_approves_with_the_button_of_the_page(client: Client) -> None:
    opened(client)
    page = f"{client.sandbox.url}/octo/code/pull/2"
    text = client.session.get(page, timeout=600).text
    assert "2 workflows awaiting approval" in text
    action = text.partition('<form method="post" action="')[2].partition('"')[0]
    crossed = client.session.post(client.sandbox.url + action, headers={"sec-fetch-site": "cross-site"}, timeout=600)
    assert crossed.status_code == 403
    pressed = client.session.post(client.sandbox.url + action, timeout=600)
    assert (pressed.url, pressed.status_code) == (page, 200)
    assert "awaiting approval" not in pressed.text
    assert checks(client) == dict.fromkeys(("Tests", "lint", "a"), ("queued", None))
    assert client.session.post(client.sandbox.url + action.replace("2", "9"), timeout=600).status_code == 404


def test_a_control_approves_and_another_completes_the_jobs(client: Client) -> None:
    run = opened(client)
    assert control(client, "approvals/octo/code/2") == 204
    assert control(client, "approvals/octo/code/99") == 404
    assert client("GET", f"actions/runs/{run['id']}").json()["status"] == "queued"
    control(client, f"runs/octo/code/{run['id']}", {"status": "completed", "conclusion": "success"})
    assert checks(client) == {
        "Tests": ("completed", "success"),
        "lint": ("completed", "success"),
        "a": ("queued", None),
    }
    assert control(client, "approvals/octo/code/2") == 204
    assert len(checks(client)) == 3


def test_a_dispatch_is_a_run_with_a_title_until_it_is_cancelled(client: Client) -> None:
    path = "actions/workflows/plan.yml"
    started = client("POST", f"{path}/dispatches", {"ref": "main", "inputs": {"start": "accord-1"}})
    assert started.status_code == 204
    (run,) = runs(client)
    assert (run["display_title"], run["status"], run["event"]) == ("Plan accord-1", "queued", "workflow_dispatch")
    for query, count in (
        ({"created": ">=2026-01-02T03:04:05Z", "event": "workflow_dispatch"}, 1), ({"event": "push"}, 0),
        ({"created": ">=2026-01-03T00:00:00Z"}, 0),
    ):  # fmt: skip
        assert client("GET", f"{path}/runs", params=query).json()["total_count"] == count
    for token, status in (("reader", 403), ("writer", 202), ("writer", 409)):
        client.send(status, "POST", f"actions/runs/{run['id']}/cancel", token=token)
    for token, status in (("reader", 403), ("writer", 201), ("writer", 403)):
        client.send(status, "POST", f"actions/runs/{run['id']}/rerun", token=token)
    assert runs(client)[0]["run_attempt"] == 2
    client.send(404, "GET", "actions/workflows/none.yml/runs")
