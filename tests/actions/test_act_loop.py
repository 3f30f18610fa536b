"""Runs of the consumer kit that fail: they say why, cost no agent where that is known before, and can be finished.

The workflows are those of the consumer kit. Each job has a token with just the permissions that it asks for, and the
local GitHub holds it to them, so a permission that is missing fails here as it would there.
"""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import requests
from support.act import (
    CONSUMER,
    Bench,
    Run,
    job_tokens,
    make_consumer,
    template,
    with_own_tokens,
    workflow_files,
)
from support.loop_calls import POWERLESS, ask
from support.plans import task_body
from support.stage import seed_file

from accord_sandbox.server import RunningSandbox, serving
from accord_sandbox.show import document

pytestmark = pytest.mark.slow

SOURCE = Path(__file__).parent / "consumer"
FILES = {str(path.relative_to(SOURCE)): path.read_text() for path in SOURCE.rglob("*") if path.is_file()}
EXAMPLES = {name: template(name) for name in ("plan", "implement")}


@pytest.fixture
def github(tmp_path: Path) -> Iterator[RunningSandbox]:
    """Serve the consumer's repository on a local GitHub that knows the token of every job."""
    origin = make_consumer(tmp_path / "origin", FILES)
    tokens = job_tokens([*(path.read_text() for path in workflow_files()), "jobs: {none: {}}"])
    repository = {"name": CONSUMER, "git": str(origin), "default_labels": False}
    seed = seed_file(tmp_path, {"tokens": tokens, "repositories": [repository]})
    with serving(tmp_path / "sandbox", seed=seed) as running:
        yield running


class Loop:
    """Runs the examples one after the other, each as a workflow run of its own."""

    def __init__(self, bench: Bench, github: RunningSandbox, home: Path) -> None:
        self.bench, self.github, self.home = bench.with_own_tokens, github, home

    def run(self, workflow: str, name: str, inputs: Mapping[str, str]) -> Run:
        """Run a workflow as it is, in a run that the local GitHub knows."""
        url = f"{self.github.url}/_sandbox/runs/{CONSUMER}/1"
        requests.put(url, json={"status": "in_progress"}, timeout=600).raise_for_status()
        access = {"api_url": self.github.url, "token": POWERLESS}
        return self.bench.run(with_own_tokens(workflow), self.home / name, files=FILES, inputs=inputs, **access)

    def api(self, method: str, path: str, **options: Any) -> Any:
        return ask(self.github, method, path, **options)

    def status(self, number: int) -> str:
        """Return the one status comment of an item."""
        listed = self.api("GET", f"issues/{number}/comments")
        (body,) = [comment["body"] for comment in listed if "<!-- accord:status" in comment["body"]]
        return str(body)


def apply_alone(workflow: str) -> str:
    """Leave of a workflow the job that applies."""
    head, _, body = workflow.partition("\njobs:\n")
    own = body[body.index("  apply:\n") : body.index("\n  end:\n")]
    job = re.sub(r"^ +needs: .*\n", "", own, flags=re.MULTILINE)
    return f"{head}\njobs:\n{job}"


def test_a_plan_that_fails_shows_its_class_and_the_next_step_in_the_status_comment(
    bench: Bench, github: RunningSandbox, tmp_path: Path
) -> None:
    loop = Loop(bench, github, tmp_path)
    loop.api("POST", "issues", json={"title": "No specification", "body": "The agent finds no file of this name."})
    run = loop.run(EXAMPLES["plan"], "plan", {"item": "1", "start": "accord-0123456789ab"})
    assert run.exit_code != 0
    seen = run.artifacts.joinpath("in-reach-of-plan.txt").read_text()
    assert ("No specification" in seen, ".write" in seen, github.token in seen) == (True, False, False), "only texts"
    status = loop.status(1)
    assert "❌ **accord: the plan failed** ([run](" in status
    assert "Next: Fix the cause, then comment `/accord retry`." in status
    assert "- logic (agent):" in status, status


ASKS = re.compile(r" +- name: Ask whether the pull request would be refused\n(?: {8}.*\n)+")


@pytest.mark.matrix
def test_a_refused_pull_request_costs_no_agent_and_a_refused_result_is_finished_without_it(
    bench: Bench, github: RunningSandbox, tmp_path: Path
) -> None:
    loop, implement = Loop(bench, github, tmp_path), EXAMPLES["implement"]
    work = {"title": "Greet people by name", "body": task_body(in_scope="- `src/greeting.py`")}
    loop.api("POST", "issues", json={**work, "labels": ["task:implement", "status:ready", "priority:low"]})
    loop.api("PUT", "actions/permissions/workflow", json={"can_approve_pull_request_reviews": False})

    refused = loop.run(implement, "asked", {"work-item": "1"})
    assert refused.exit_code != 0
    assert "Allow GitHub Actions to create and approve pull requests" in refused.trouble
    assert not (refused.artifacts / "in-reach-of-implement.txt").exists()
    held = document(tmp_path / "sandbox")
    assert ("status:ready" in held["issues"][0]["labels"], held["pulls"]) == (True, [])

    late = loop.run(ASKS.sub("", implement), "not-asked", {"work-item": "1"})
    assert (late.exit_code != 0, late.outputs("apply")["outcome"]) == (True, "refused")
    assert (late.artifacts / "in-reach-of-implement.txt").exists()
    assert loop.api("GET", "git/ref/heads/accord/1")["ref"] == "refs/heads/accord/1"

    loop.api("PUT", "actions/permissions/workflow", json={"can_approve_pull_request_reviews": True})
    finished = loop.run(apply_alone(implement), "again", {"work-item": "1"})
    assert (finished.exit_code, finished.outputs("apply")["outcome"]) == (0, "applied"), finished.trouble
    (pull,) = document(tmp_path / "sandbox")["pulls"]
    assert pull["head"]["ref"] == "accord/1"
