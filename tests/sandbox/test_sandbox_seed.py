"""A seed can hold work in progress: checks, statuses, review threads and workflow runs."""

from __future__ import annotations

from pathlib import Path

import pytest
import requests

from accord.core.errors import WrongUsage
from accord_sandbox.server import serving

SEED = """
repositories:
  - name: o/r
    files: {a.txt: One}
    branches: {feature: {a.txt: Two}}
    issues:
      - title: A change
        head: feature
        checks:
          - {name: tests, conclusion: failure, run: 7, log: "FAILED test_one"}
          - {name: lint, status: in_progress}
        statuses: [{context: ci, state: success}]
        threads:
          - path: a.txt
            line: LINE
            resolved: true
            comments: [{author: "rita[bot]", body: Typo}, {body: Fixed}]
    workflow_runs: [{id: 8, name: Nightly, head: feature}]
"""
QUERY = """{ repository(owner: "o", name: "r") { pullRequest(number: 1) { reviewThreads(first: 9) { nodes {
isResolved isOutdated line path
comments(first: 9) { totalCount nodes { body url author { __typename login } } } } } } } }
"""


def test_work_in_progress_is_planted(tmp_path: Path) -> None:
    (tmp_path / "seed.yml").write_text(SEED.replace("LINE", "1"))
    with serving(tmp_path / "home", seed=tmp_path / "seed.yml") as sandbox, requests.Session() as session:
        session.headers["authorization"] = f"Bearer {sandbox.token}"
        root = f"{sandbox.url}/repos/o/r"
        runs = session.get(f"{root}/commits/feature/check-runs").json()["check_runs"]
        assert [(run["name"], run["status"], run["conclusion"]) for run in runs] == [
            ("lint", "in_progress", None),
            ("tests", "completed", "failure"),
        ]
        link = session.get(f"{root}/actions/jobs/{runs[1]['id']}/logs", allow_redirects=False).headers["location"]
        assert requests.get(link, timeout=10).text == "FAILED test_one"
        assert session.get(f"{root}/commits/feature/status").json()["state"] == "success"
        pulls = [session.get(f"{root}/actions/runs/{number}").json()["pull_requests"] for number in (7, 8)]
        assert [[pull["number"] for pull in found] for found in pulls] == [[1], [1]]
        data = session.post(f"{sandbox.url}/graphql", json={"query": QUERY}).json()["data"]
        (thread,) = data["repository"]["pullRequest"]["reviewThreads"]["nodes"]
        assert (thread["isResolved"], thread["isOutdated"], thread["line"], thread["path"]) == (True, False, 1, "a.txt")
        assert [(entry["body"], entry["author"]) for entry in thread["comments"]["nodes"]] == [
            ("Typo", {"__typename": "Bot", "login": "rita"}),
            ("Fixed", {"__typename": "User", "login": "maintainer"}),
        ]


def test_a_thread_on_an_unchanged_line_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "seed.yml").write_text(SEED.replace("LINE", "9"))
    with pytest.raises(WrongUsage, match="must be part of the diff"), serving(tmp_path, seed=tmp_path / "seed.yml"):
        pass
