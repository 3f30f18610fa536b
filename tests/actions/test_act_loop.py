"""A run of the consumer kit that fails says why.

The workflow is that of the consumer kit. Each job has a token with just the permissions that it asks for, and the
local GitHub holds it to them, so a permission that is missing fails here as it would there.
"""

from collections.abc import Iterator
from pathlib import Path

import pytest
import requests
from support.act import (
    CONSUMER,
    Bench,
    job_tokens,
    make_consumer,
    template,
    with_own_tokens,
    workflow_files,
)
from support.loop_calls import POWERLESS, ask
from support.stage import seed_file

from accord_sandbox.server import RunningSandbox, serving

pytestmark = pytest.mark.slow

SOURCE = Path(__file__).parent / "consumer"
FILES = {str(path.relative_to(SOURCE)): path.read_text() for path in SOURCE.rglob("*") if path.is_file()}


@pytest.fixture
def github(tmp_path: Path) -> Iterator[RunningSandbox]:
    """Serve the consumer's repository on a local GitHub that knows the token of every job."""
    origin = make_consumer(tmp_path / "origin", FILES)
    tokens = job_tokens([*(path.read_text() for path in workflow_files()), "jobs: {none: {}}"])
    repository = {"name": CONSUMER, "git": str(origin), "default_labels": False}
    seed = seed_file(tmp_path, {"tokens": tokens, "repositories": [repository]})
    with serving(tmp_path / "sandbox", seed=seed) as running:
        yield running


def test_a_plan_that_fails_shows_its_class_and_the_next_step_in_the_status_comment(
    bench: Bench, github: RunningSandbox, tmp_path: Path
) -> None:
    ask(github, "POST", "issues", json={"title": "No specification", "body": "The agent finds no file of this name."})
    url = f"{github.url}/_sandbox/runs/{CONSUMER}/1"
    requests.put(url, json={"status": "in_progress"}, timeout=600).raise_for_status()
    inputs = {"item": "1", "start": "accord-0123456789ab"}
    access = {"api_url": github.url, "token": POWERLESS, "inputs": inputs, "files": FILES}
    run = bench.with_own_tokens.run(with_own_tokens(template("plan")), tmp_path / "plan", **access)
    assert run.exit_code != 0
    seen = run.artifacts.joinpath("in-reach-of-plan.txt").read_text()
    assert ("No specification" in seen, ".write" in seen, github.token in seen) == (True, False, False), "only texts"
    comments = [comment["body"] for comment in ask(github, "GET", "issues/1/comments")]
    (status,) = [body for body in comments if "<!-- accord:status" in body]
    assert "❌ **accord: the plan failed** ([run](" in status
    assert "Next: Fix the cause, then comment `/accord retry`." in status
    assert "- logic (agent):" in status, status
