"""Events on the stage: a repository with requests, work items and a pull request, and payloads as GitHub sends them."""

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from support.plans import task_body
from support.stage import Stage, staged

from accord.engine.receipts import Receipt
from accord.starts.ends import JobResult, RunOfWork, begin, end, report_of
from accord.starts.events import read_event
from accord.starts.facts import StartContext
from accord.starts.run import start
from accord.starts.status import BOARD
from accord.text.markers import write_marker
from accord.text.redaction import Redactor
from accord_sandbox.planting import INSTALLATION_TOKEN

CONFIG = ".github/accord/config.yml"
PAGE = "https://github.example/octo/code"
REQUEST, READY, PENDING, PULL, DRAFT = 1, 2, 3, 4, 5
LABELS = ["task:implement", "priority:low", "complexity:low"]
READING = {"contents": "read", "issues": "read", "pull_requests": "read", "actions": "read"}
"""The permissions of a run for a pull request from a fork."""

BOT = {"login": "helper[bot]", "type": "Bot"}


def workflow(work: str, *inputs: str) -> str:
    """A workflow that can be started with these inputs, besides the key of its start and an agent."""
    named = "".join(f"      {name}: {{type: string}}\n" for name in (*inputs, "agent", "as-of", "start"))
    title = f"run-name: Accord {work} ${{{{ inputs.start }}}}\n"
    return f"name: Accord {work}\n{title}on:\n  workflow_dispatch:\n    inputs:\n{named}jobs: {{}}\n"


FILES = {
    ".github/workflows/accord-plan.yml": workflow("plan", "item", "request", "run-key"),
    ".github/workflows/accord-implement.yml": workflow("implement", "work-item"),
    ".github/workflows/accord-review.yml": workflow("review", "pull", "head"),
    "a.txt": "One\n",
}


def seed(
    starts: Mapping[str, bool] | None = None,
    files: Mapping[str, str] | None = None,
    tokens: Sequence[Mapping[str, Any]] = (),
) -> dict[str, Any]:
    """The repository; ``starts`` are lines of its configuration, ``tokens`` further ones."""
    lines = "".join(f"  {name}: {str(value).lower()}\n" for name, value in (starts or {}).items())
    config = {CONFIG: f"starts:\n{lines}"} if lines else {}
    item = {"body": task_body(in_scope="- a.txt")}
    return {
        "tokens": [
            {"token": "writer", "login": "wanda"},
            {"token": "triager", "login": "tess"},
            {"token": "fork-event", "login": "github-actions[bot]", "kind": "installation", "permissions": READING},
            *tokens,
        ],
        "repositories": [
            {
                "name": "octo/code",
                "collaborators": {"wanda": "write", "tess": "triage"},
                "files": {**FILES, **config, **(files or {})},
                "branches": {"feature": {"b.txt": "Two\n"}, "other": {"c.txt": "Three\n"}},
                "issues": [
                    {"title": "Export contacts", "body": "As CSV, please."},
                    {"title": "Ready", "labels": [*LABELS, "status:ready"], **item},
                    {"title": "Pending", "labels": [*LABELS, "status:pending"], "blocked_by": [READY], **item},
                    {"title": "The change", "head": "feature", "author": "github-actions[bot]"},
                    {"title": "A draft", "head": "other", "draft": True},
                ],
            }
        ],
    }


@contextmanager
def starts_stage(
    folder: Path, starts: Mapping[str, bool] | None = None, *, names_started_runs: bool = True, **more: Any
) -> Iterator[Stage]:
    settings = {"rate_limits": None, "names_started_runs": names_started_runs}
    with staged(folder, seed=seed(starts, **more), **settings) as stage:
        stage.begin_at_present()
        yield stage


@dataclass
class Starts:
    """Delivers events on a stage, each request by the job's own token."""

    stage: Stage
    token: str = field(default=INSTALLATION_TOKEN, repr=False)

    @property
    def root(self) -> str:
        return f"/repos/{self.stage.repository}"

    def context(self) -> StartContext:
        github = self.stage.adapter(token=self.token)
        return StartContext(github, self.stage.repository, PAGE, self.stage.clock, Redactor())

    def deliver(self, event: tuple[str, dict[str, Any]], **options: Any) -> Receipt:
        name, payload = event
        return start(self.context(), read_event(name, payload), **options)

    def comment(self, number: int, body: str, *, by: str = "wanda") -> tuple[str, dict[str, Any]]:
        """Comment as a person, and return the event."""
        token = {"wanda": "writer", "tess": "triager"}.get(by, "accord-sandbox-stranger-token")
        made = self.stage.send("POST", f"{self.root}/issues/{number}/comments", token=token, body=body)
        return "issue_comment", {"action": "created", "comment": made, **self._around(number, by)}

    def edited(self, number: int, body: str, *, by: str = "wanda") -> tuple[str, dict[str, Any]]:
        """Write another body into an issue as a person who may, and return the event."""
        before = self.stage.get(f"{self.root}/issues/{number}")["body"]
        self.stage.send("PATCH", f"{self.root}/issues/{number}", body=body)
        return "issues", {"action": "edited", "changes": {"body": {"from": before}}, **self._around(number, by)}

    def ticked(self, number: int, *items: int, by: str = "wanda") -> tuple[str, dict[str, Any]]:
        """Tick the boxes of items on the dashboard, and return the event."""
        lines = self.stage.get(f"{self.root}/issues/{number}")["body"].splitlines()
        wanted = tuple(f"- [ ] <!-- accord:box item={item} " for item in items)
        return self.edited(
            number,
            "\r\n".join(re.sub(r"\[ \]", "[x]", line, count=1) if line.startswith(wanted) else line for line in lines),
            by=by,
        )

    def dashboard(self, *boxes: str, token: str = INSTALLATION_TOKEN) -> int:
        """Open an issue with these boxes, as the dashboard has them, and return its number."""
        body = "\n".join([*boxes, "", write_marker(BOARD, run="x")])
        made = self.stage.send("POST", f"{self.root}/issues", token=token, title="Status", body=body)
        return int(made["number"])

    def labelled(self, number: int, label: str, *, by: str = "wanda") -> tuple[str, dict[str, Any]]:
        """Label an issue or pull request, and return the event; the label is there before."""
        path, token = f"{self.root}/issues/{number}/labels", {"tess": "triager"}.get(by, "writer")
        if by != "wanda":
            self.stage.send("POST", path, labels=[label])
            self.stage.send("DELETE", f"{path}/{label}")
        self.stage.send("POST", path, token=token, labels=[label])
        around = self._around(number, by)
        if "pull_request" in around["issue"]:
            return self.pull_event("labeled", number, by=by, label={"name": label})
        return "issues", {"action": "labeled", "label": {"name": label}, **around}

    def closed(self, number: int, **sender: str) -> tuple[str, dict[str, Any]]:
        """Close an issue, and return the event."""
        self.stage.send("PATCH", f"{self.root}/issues/{number}", state="closed")
        return "issues", {"action": "closed", **self._around(number, "wanda"), **({"sender": sender} if sender else {})}

    def pull_event(
        self, action: str, number: int = PULL, *, by: str = "wanda", **more: Any
    ) -> tuple[str, dict[str, Any]]:
        pull = self.stage.get(f"{self.root}/pulls/{number}")
        return "pull_request", {"action": action, "pull_request": pull, **self._around(number, by), **more}

    def push(self, files: Mapping[str, str | None]) -> tuple[str, dict[str, Any]]:
        """Push files to the default branch, None removes one, and return the event."""
        github = self.stage.adapter()
        before = github.ref("refs/heads/main") or ""
        changes = {path: None if text is None else ("100644", text) for path, text in files.items()}
        tree = github.create_tree(changes, github.tree(before).sha)
        after = github.create_commit("Write", tree, [before]).sha
        github.forward_ref("refs/heads/main", after)
        repository = {**self._repository, "pushed_at": int(self.stage.clock.now().timestamp())}
        sender = {"login": "wanda", "type": "User"}
        ends = {"ref": "refs/heads/main", "before": before, "after": after}
        return "push", {**ends, "repository": repository, "sender": sender}

    @property
    def _repository(self) -> dict[str, Any]:
        return {"full_name": self.stage.repository, "default_branch": "main"}

    def _around(self, number: int, by: str) -> dict[str, Any]:
        issue = self.stage.get(f"{self.root}/issues/{number}")
        return {"issue": issue, "repository": self._repository, "sender": {"login": by, "type": "User"}}

    def begin(self, work: Any, number: int, *, run_id: int = 0, **more: Any) -> Receipt:
        return begin(self.context(), RunOfWork(work, number, run_id or self.runs[-1]["id"], **more))

    def end(self, work: Any, number: int, jobs: Mapping[str, JobResult], *, run_id: int = 0, **more: Any) -> Receipt:
        revision = more.pop("revision", None)
        run = RunOfWork(work, number, run_id or self.runs[-1]["id"], **more)
        report = report_of(work, jobs, None)
        return end(self.context(), run, report, revision=revision, is_dry_run=False)

    @property
    def runs(self) -> list[dict[str, Any]]:
        """The workflow runs that were started, oldest first."""
        found = [
            self.stage.get(f"{self.root}/actions/workflows/accord-{work}.yml/runs")["workflow_runs"]
            for work in ("plan", "implement", "review")
        ]
        return sorted((run for runs in found for run in runs), key=lambda run: run["id"])

    @property
    def started(self) -> list[tuple[str, dict[str, str]]]:
        """The workflows that were started with their inputs, without the keys, and what the sender read."""
        hidden = ("start", "as-of", "head")
        return [
            (entry["workflow"], {name: value for name, value in entry["inputs"].items() if name not in hidden})
            for entry in self.dispatches
        ]

    @property
    def dispatches(self) -> list[dict[str, Any]]:
        """The workflows that were started, with all inputs."""
        from accord_sandbox.show import document

        return list(document(self.stage.server.database.path.parent)["dispatches"])

    def comments(self, number: int) -> list[str]:
        """The comments of accord on an item."""
        listed = self.stage.get(f"{self.root}/issues/{number}/comments", per_page=100)
        return [comment["body"] for comment in listed if comment["user"]["login"] == "github-actions[bot]"]

    def status(self, number: int) -> str:
        """The one status comment of an item, without its marker."""
        (body,) = self.comments(number)
        return body.partition("\n\n<!-- accord:status")[0]

    def reactions(self, event: tuple[str, dict[str, Any]]) -> dict[str, int]:
        listed = self.stage.get(f"{self.root}/issues/{event[1]['issue']['number']}/comments", per_page=100)
        (found,) = [entry["reactions"] for entry in listed if entry["id"] == event[1]["comment"]["id"]]
        return {name: count for name, count in found.items() if name not in ("url", "total_count") and count}

    def labels(self, number: int) -> set[str]:
        return {label["name"] for label in self.stage.get(f"{self.root}/issues/{number}")["labels"]}

    def by(self, token: str) -> "Starts":
        return replace(self, token=token)
