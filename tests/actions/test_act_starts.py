"""Starts in a consumer's repository: a comment and a label start workflows of the kit once, a bot's starts no job.

The job has a token with just the permissions that it asks for, and the local GitHub holds it to them.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import requests
from support.act import CONSUMER, TEMPLATES, Bench, job_token, job_tokens, make_consumer, template, with_own_tokens
from support.stage import seed_file

from accord_sandbox.server import RunningSandbox, serving
from accord_sandbox.show import document

pytestmark = pytest.mark.slow

NAMES = ("plan", "implement", "review", "start")
FILES = {f".github/workflows/accord-{name}.yml": (TEMPLATES / f"accord-{name}.yml").read_text() for name in NAMES}
STARTED = {"Accord start/Start": "success"}
READY = {"title": "Ready", "labels": ["task:implement", "status:ready", "priority:low"]}


@pytest.fixture
def github(tmp_path: Path) -> Iterator[RunningSandbox]:
    """Serve the consumer's repository with a request, a ready item and a writer."""
    origin = make_consumer(tmp_path / "origin", FILES)
    repository = {"name": CONSUMER, "git": str(origin), "issues": [{"title": "Export contacts"}, READY]}
    repository |= {"collaborators": {"wanda": "write"}, "labels": [{"name": "agent:claude", "color": "ffffff"}]}
    tokens = [*job_tokens(FILES.values()), {"token": "writer", "login": "wanda"}]
    seed = seed_file(tmp_path, {"tokens": tokens, "repositories": [repository]})
    with serving(tmp_path / "sandbox", seed=seed) as running:
        yield running


class Events:
    """Runs the workflow of starts for events."""

    def __init__(self, bench: Bench, github: RunningSandbox, home: Path) -> None:
        self.bench, self.github, self.home, self.count = bench.with_own_tokens, github, home, 0

    def api(self, method: str, path: str, **body: Any) -> Any:
        url, headers = f"{self.github.url}/repos/{CONSUMER}/{path}", {"authorization": "Bearer writer"}
        answer = requests.request(method, url, headers=headers, json=body or None, timeout=600)
        answer.raise_for_status()
        return answer.json()

    def deliver(self, event: str, action: str, sender: str = "User", **payload: Any) -> dict[str, str]:
        """Return how the jobs ended."""
        around = {"repository": {"full_name": CONSUMER, "default_branch": "main"}}
        around |= {"action": action, "sender": {"login": "wanda", "type": sender}, **payload}
        self.count += 1
        access = {"api_url": self.github.url, "token": job_token({})}
        run = self.bench.run(
            with_own_tokens(template("start")), self.home / str(self.count), event=event, payload=around, **access
        )
        assert (run.exit_code, run.forged) == (0, []), run.trouble
        return run.jobs

    def writes(self) -> list[tuple[str, str, int]]:
        return [entry for entry in self.github.requests if entry[0] != "GET"]


def test_a_comment_and_a_label_start_their_workflows_once(bench: Bench, github: RunningSandbox, tmp_path: Path) -> None:
    events = Events(bench, github, tmp_path)
    hostile = f"/accord plan\n$(touch {tmp_path}/hit) ${{{{ github.token }}}}"
    made = events.api("POST", "issues/1/comments", body=hostile)
    issue = events.api("GET", "issues/1")
    assert events.deliver("issue_comment", "created", comment=made, issue=issue) == STARTED

    events.api("POST", "issues/2/labels", labels=["agent:claude"])
    label, issue = {"name": "agent:claude"}, events.api("GET", "issues/2")
    assert events.deliver("issues", "labeled", label=label, issue=issue) == STARTED
    written = events.writes()
    assert events.deliver("issues", "labeled", label=label, issue=issue) == STARTED
    assert events.writes() == written, "a start that is delivered again writes nothing"

    held = document(tmp_path / "sandbox")
    started = [(entry["workflow"], entry["inputs"]) for entry in held["dispatches"]]
    (plan, first), (implement, second) = started
    assert (plan, first["item"], implement) == ("accord-plan.yml", "1", "accord-implement.yml")
    assert (second["work-item"], second["agent"]) == ("2", "claude")
    for number, words in ((1, "the plan is starting"), (2, "the implementation is starting")):
        listed = events.api("GET", f"issues/{number}/comments")
        (status,) = [entry for entry in listed if "accord:status" in entry["body"]]
        assert words in status["body"]
        assert status["user"]["login"] == "github-actions[bot]"

    assert not (tmp_path / "hit").exists()
    other = events.api("POST", "issues/1/comments", body="Thanks, /accord")
    issue = events.api("GET", "issues/1")
    assert events.deliver("issue_comment", "created", comment=other, issue=issue) == {}
    assert events.deliver("issue_comment", "created", sender="Bot", comment=made, issue=issue) == {}
