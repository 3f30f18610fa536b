"""A loop on the stage: a pull request that it works on, its turns as commands take them, and their results."""

import base64
import json
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from support.stage import Stage, staged

from accord.loops import run
from accord.loops.facts import LoopContext
from accord.loops.models import LoopState, TokenFacts
from accord.loops.outputs import read_outputs
from accord.loops.run import LOOPS, Turn
from accord.loops.state import read_view
from accord.text.posting import PostingPolicy
from accord.text.redaction import Redactor
from accord_sandbox.planting import INSTALLATION_TOKEN
from accord_sandbox.tokens import RateLimits

BODY = "Intro\n\n- [ ] Add tests\n- [ ] Add docs\n"
CALLER = """
name: Loop
run-name: Loop ${{ inputs.pr_number }}
on:
  workflow_dispatch:
    inputs:
      pr_number: {type: string, required: true}
jobs: {}
"""
WORKFLOW = "accord-keepalive.yml"
CI = "name: CI\non: pull_request\njobs:\n  test: {}\n"
"""A workflow with one job, for the files of ``opened``."""

APP = {"token": "app", "login": "my-app[bot]"}
APP_RIGHTS = ("actions", "checks", "contents", "issues", "pull_requests", "statuses")
REVIEW = "accord-review.yml"
WORKFLOWS = {
    f".github/workflows/{WORKFLOW}": CALLER,
    f".github/workflows/{REVIEW}": CALLER.replace("pr_number", "pull"),
}
WELL = {"exit-code": "0", "llm-confidence": "0.9"}
LOGIN = "github-actions[bot]"


def did(*tasks: str, **more: str) -> dict[str, str]:
    """The outputs of a run that completed tasks."""
    return {**WELL, "llm-completed-tasks": json.dumps(tasks), **more}


def failed(recovery: str, category: str = "transient", **more: str) -> dict[str, str]:
    words = {"error-category": category, "error-recovery": recovery, "error-summary": "It broke."}
    return {"exit-code": "1", **words, **more}


def seed(files: dict[str, str] | None = None, **pull: Any) -> dict[str, Any]:
    """A repository whose first issue is a pull request with a green check, keepalive on, except these parts."""
    checks = [{"name": "test", "conclusion": "success", "run": 501}]
    work = {"title": "The change", "head": "feature", "body": BODY, "labels": ["agents:keepalive"], "checks": checks}
    reads, app = {"pull_requests": "read"}, {"login": "ci[bot]", "kind": "installation"}
    pushes = {"contents": "write", "checks": "read", "statuses": "read", **reads}
    people = {"stranger": "mallory", "writer": "wanda", "triager": "tess"}
    repository = {
        "name": "octo/code",
        "collaborators": {"wanda": "write", "tess": "triage"},
        "files": {"a.txt": "One\n", **WORKFLOWS, **(files or {})},
        "branches": {"feature": {"b.txt": "Two\n"}, "other": {"c.txt": "Three\n"}},
        "issues": [{**work, **pull}],
    }
    return {
        "tokens": [
            *({"token": token, "login": login} for token, login in people.items()),
            {**app, "token": "reading", "permissions": reads},
            {**app, "token": "pushing", "permissions": pushes},
            {**APP, "kind": "installation", "permissions": dict.fromkeys(APP_RIGHTS, "write")},
        ],
        "repositories": [repository],
    }


@dataclass
class Turns:
    """Takes turns of a loop on the pull request 1 of a stage, each request by the job's own token."""

    stage: Stage
    loop: str = "keepalive"
    number: int = 1
    token: str = INSTALLATION_TOKEN
    agents: tuple[str, ...] = ("codex", "claude")
    facts: TokenFacts = field(default_factory=TokenFacts)
    by_person: bool = False
    identity: str = ""
    review: str = ""

    def context(self, run_id: str = "900") -> LoopContext:
        github = self.stage.adapter(token=self.token, identity=self.identity)
        where = (self.stage.repository, self.number, run_id, self.agents)
        more = {"by_person": self.by_person, "review_workflow": self.review}
        return LoopContext(github, *where, self.stage.clock, Redactor(), PostingPolicy(), self.facts, **more)

    def begin(self, run_id: str = "900", **more: Any) -> Turn:
        return run.begin(LOOPS[self.loop], self.context(run_id), **more)

    def end(self, outputs: dict[str, str] | None = None, run_id: str = "900", **more: Any) -> Turn:
        told = read_outputs(json.dumps(WELL if outputs is None else outputs))
        return run.end(LOOPS[self.loop], self.context(run_id), told, **more)

    @property
    def root(self) -> str:
        return f"/repos/{self.stage.repository}"

    @property
    def pull(self) -> dict[str, Any]:
        found: dict[str, Any] = self.stage.get(f"{self.root}/pulls/{self.number}")
        return found

    @property
    def body(self) -> str:
        return str(self.pull["body"])

    @property
    def labels(self) -> set[str]:
        return {label["name"] for label in self.pull["labels"]}

    @property
    def comments(self) -> list[str]:
        found = self.stage.get(f"{self.root}/issues/{self.number}/comments", per_page=100)
        return [comment["body"] for comment in found]

    @property
    def state(self) -> LoopState:
        """The state in the comment."""
        (shown,) = filter(None, (read_view(body, self.loop, self.number) for body in self.comments))
        return shown.value

    @property
    def asks(self) -> list[str]:
        return [body for body in self.comments if "accord:loop-asks" in body]

    @property
    def dispatches(self) -> list[dict[str, str]]:
        from accord_sandbox.show import document

        found: list[dict[str, Any]] = document(self.stage.server.database.path.parent)["dispatches"]
        return [entry["inputs"] for entry in found]

    def label(self, *names: str, token: str = "writer") -> None:
        self.stage.send("POST", f"{self.root}/issues/{self.number}/labels", token=token, labels=list(names))

    def unlabel(self, name: str, token: str = "writer") -> None:
        self.stage.send("DELETE", f"{self.root}/issues/{self.number}/labels/{name}", token=token)

    def approve(self, token: str = "writer") -> None:
        """Let a person approve the head."""
        self.stage.send("POST", f"{self.root}/pulls/{self.number}/reviews", token=token, event="APPROVE")

    def tick_all(self) -> None:
        """Tick every task, as a person does."""
        body = self.body.replace("- [ ]", "- [x]")
        self.stage.send("PATCH", f"{self.root}/pulls/{self.number}", body=body)

    def check(self, name: str = "test", conclusion: str = "success", sha: str = "") -> None:
        """Let a check of the head, or of another commit, end."""
        body = {"name": name, "head_sha": sha or self.pull["head"]["sha"], "conclusion": conclusion}
        self.stage.send("POST", f"{self.root}/check-runs", token=INSTALLATION_TOKEN, **body)

    @property
    def runs(self) -> list[dict[str, Any]]:
        """The workflow runs of the head."""
        query = {"head_sha": self.pull["head"]["sha"]}
        found: list[dict[str, Any]] = self.stage.get(f"{self.root}/actions/runs", **query)["workflow_runs"]
        return found

    def control(self, path: str, **body: Any) -> None:
        """Approve what is held, or set the result of a run."""
        url = f"{self.stage.server.url}/_sandbox/{path.replace('/', f'/{self.stage.repository}/', 1)}"
        assert self.stage.session.put(url, json=body, timeout=600).status_code == 204

    def push(self, text: str, path: str = "b.txt", token: str = "") -> str:
        """Put a commit on the head, and return it."""
        path = f"{path}.{text}"
        content = base64.b64encode(text.encode()).decode()
        branch = self.pull["head"]["ref"]
        body = {"message": "Work", "content": content, "branch": branch}
        made = self.stage.send("PUT", f"{self.root}/contents/{path}", token=token, **body)
        return str(made["commit"]["sha"])

    def seen(self) -> dict[str, Any]:
        """All that a person could see, without what differs by nature: commits, times, and the number of writes."""
        state = self.state.model_dump(mode="json", exclude={"revision"})
        for entry in (*state["history"], state["running"] or {}):
            for name in ("started_at", "ended_at"):
                entry.pop(name, None)
        return {
            "state": state,
            "body": self.body,
            "labels": self.labels,
            "runs": sorted((run["path"], run["status"], run["run_attempt"]) for run in self.runs),
            "comments": sorted(body for body in self.comments if "accord:loop " not in body),
        }


def opened(folder: Path, limits: RateLimits | None = None, **pull: Any) -> AbstractContextManager[Stage]:
    """Open a stage with a pull request that differs from the common one by these parts."""
    return staged(folder, seed=seed(**pull), rate_limits=limits)
