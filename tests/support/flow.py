"""A consumer's repository as people use it: events start its workflows under act, and those start others.

Stands for the part of GitHub that reacts to events: it runs every workflow of the default branch that listens, each
job with a token of just its permissions, and then the workflows that those dispatched.
"""

import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import requests
import yaml
from support.act import CONSUMER, Bench, Run, job_token, rewritten, with_own_tokens
from support.rotation import NIGHTLY

from accord_sandbox.server import RunningSandbox
from accord_sandbox.show import document

FIRST_DISPATCHED = 1_000_000
"""Runs of the flow's own numbering are below."""

REPOSITORY = {"default_branch": "main", "full_name": CONSUMER, "pushed_at": 1_700_000_000}
AGENT = Path(__file__).with_name("flow_agent.py")
NPM = """#!/usr/bin/env bash
# Stands for npm: installs the scripted agent as codex.
while [ $# -gt 0 ]; do
    [ "$1" != --prefix ] || into=$2
    shift
done
mkdir -p "$into/node_modules/.bin"
{ # a line of #! would end at a blank in the path of Python; Python reads the second line as a text
    echo '#!/bin/sh'
    echo "'''exec' '{python}' -I \\"\\$0\\" \\"\\$@\\" #'''"
    grep -v '^from __future__' "{agent}" # which may follow one text only
} > "$into/node_modules/.bin/codex"
chmod +x "$into/node_modules/.bin/codex"
"""


def programs(directory: Path) -> Path:
    """Write the folder for the PATH in which npm installs the scripted agent."""
    directory.mkdir()
    npm = directory / "npm"
    npm.write_text(NPM.replace("{python}", sys.executable).replace("{agent}", str(AGENT)))
    npm.chmod(0o755)
    return directory


@dataclass(frozen=True)
class Start:
    """A workflow with the event that starts it."""

    workflow: str
    text: str
    event: str
    payload: Mapping[str, Any]
    actor: str
    run_id: int


@dataclass
class Flow:
    """A repository on the local GitHub, and the runs of its workflows so far, by name."""

    bench: Bench
    github: RunningSandbox
    home: Path
    programs: Path
    secrets: Mapping[str, str]
    variables: Mapping[str, str] = field(default_factory=dict)
    runs: list[tuple[str, Run]] = field(default_factory=list)
    followed: int = 0
    repeats: bool = True
    repeated: set[tuple[str, str]] = field(default_factory=set)

    @property
    def writer(self) -> str:
        """The login that accord writes as."""
        return self.variables.get("ACCORD_LOGIN", "github-actions[bot]")

    def api(self, method: str, path: str, /, *, token: str = "", **body: Any) -> Any:
        """Ask as the maintainer, or as the owner of a token."""
        headers = {"authorization": f"Bearer {token or self.github.token}"}
        url = f"{self.github.url}/repos/{CONSUMER}/{path}".rstrip("/")
        answer = requests.request(method, url, json=body or None, headers=headers, timeout=600)
        answer.raise_for_status()
        return answer.json() if answer.content else None

    def control(self, path: str, /, **body: Any) -> None:
        """Do what only a person or a runner of GitHub can."""
        url = f"{self.github.url}/_sandbox/{path}"
        requests.put(url, json=body or None, timeout=600).raise_for_status()

    def world(self) -> dict[str, Any]:
        """Return all that the local GitHub holds."""
        return document(self.home / "sandbox")

    def git(self, *arguments: str, cwd: Path | None = None) -> str:
        """Run git as a person."""
        user = ("-c", "user.name=octo", "-c", "user.email=octo@example.org")
        done = subprocess.run(["git", *user, *arguments], cwd=cwd, capture_output=True, text=True, check=True)
        return done.stdout.strip()

    @property
    def url(self) -> str:
        """The address that a person clones from."""
        return f"http://x-access-token:{self.github.token}@{self.github.url.partition('//')[2]}/{CONSUMER}.git"

    def push(self, files: Mapping[str, str], message: str) -> tuple[str, str]:
        """Push files to the default branch as a person; return its commits before and after."""
        folder = self.home / f"push-{len(list(self.home.glob('push-*')))}"
        self.git("clone", "--quiet", self.url, str(folder))
        before = self.git("rev-parse", "HEAD", cwd=folder)
        for name, text in files.items():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_text(text)
        self.git("add", "--all", cwd=folder)
        self.git("commit", "--quiet", "--message", message, cwd=folder)
        self.git("push", "--quiet", "origin", "HEAD:main", cwd=folder)
        return before, self.git("rev-parse", "HEAD", cwd=folder)

    def deliver(self, event: str, payload: Mapping[str, Any], *, sender: str = "maintainer") -> list[tuple[str, Run]]:
        """Deliver an event to the workflows that listen, and run what they start; return the runs in order.

        Then deliver the first event of each kind once more where the flow ``repeats``, and see that this writes
        nothing; a schedule is another event each time.
        """
        found = self._deliver(event, payload, sender)
        kind = (event, str(payload.get("action", "")))
        if event == "schedule" or not self.repeats or (kind in self.repeated and not NIGHTLY):
            return found
        self.repeated.add(kind)
        before = self.writes()
        again = self._deliver(event, payload, sender)
        assert self.writes() == before, [(name, run.summary) for name, run in again]
        return found

    def writes(self) -> list[tuple[str, str, int]]:
        """Return the requests so far that may have written something."""
        asked = self.github.requests
        ours = [entry for entry in asked if not entry[1].startswith("/_sandbox")]
        return [entry for entry in ours if entry[0] != "GET" and not entry[1].endswith("/git-upload-pack")]

    def on_issue(self, event: str, number: int, **payload: Any) -> list[tuple[str, Run]]:
        """Deliver an event of an issue or, for ``pull_request``, of a pull request."""
        is_pull = event == "pull_request"
        place, key = (f"pulls/{number}", "pull_request") if is_pull else (f"issues/{number}", "issue")
        return self.deliver(event, {"number": number, **payload, key: self.api("GET", place)})

    def label(self, number: int, name: str, *, is_pull: bool = False) -> list[tuple[str, Run]]:
        """Put a label on, as a person does."""
        self.api("POST", f"issues/{number}/labels", labels=[name])
        event = "pull_request" if is_pull else "issues"
        return self.on_issue(event, number, action="labeled", label={"name": name})

    def comment(self, number: int, text: str) -> list[tuple[str, Run]]:
        """Comment, as a person does."""
        made = self.api("POST", f"issues/{number}/comments", body=text)
        return self.on_issue("issue_comment", number, action="created", comment=made)

    def finish_checks(self) -> list[str]:
        """Complete the runs of pull requests that wait for a runner; return their names."""
        queued = [
            run for run in self.world()["workflow_runs"] if run["event"] == "pull_request" and run["status"] == "queued"
        ]
        for run in queued:
            self.control(f"runs/{CONSUMER}/{run['id']}", status="completed", conclusion="success")
        return [run["name"] for run in queued]

    def status(self, number: int) -> str:
        """Return the one status comment of an item, without its hidden data."""
        bodies = [entry["body"] for entry in self.api("GET", f"issues/{number}/comments")]
        (found,) = [body for body in bodies if "accord:status" in body]
        return str(found.partition("<!-- accord:status")[0])

    def _deliver(self, event: str, payload: Mapping[str, Any], sender: str) -> list[tuple[str, Run]]:
        begun = len(self.runs)
        clone = self._clone()
        for name, text in sorted(self._workflows(clone)):
            if listens(text, event, str(payload.get("action", ""))):
                given = {**payload, "sender": {"login": sender, "type": "User"}}
                self._run(clone, Start(name, text, event, given, sender, 9000 + len(self.runs)))
        self._follow()
        return self.runs[begun:]

    def start(self, name: str, **inputs: str) -> list[tuple[str, Run]]:
        """Start a workflow by hand."""
        begun = len(self.runs)
        clone = self._clone()
        text = dict(self._workflows(clone))[name]
        payload = {"inputs": with_defaults(text, inputs)}
        self._run(clone, Start(name, text, "workflow_dispatch", payload, "maintainer", 9000 + len(self.runs)))
        self._follow()
        return self.runs[begun:]

    def _follow(self) -> None:
        """Run the workflows that were dispatched."""
        while len(dispatches := self.world()["dispatches"]) > self.followed:
            queued = [
                run for run in self.world()["workflow_runs"] if run["event"] == "workflow_dispatch" and run["actor"]
            ]
            entry, run = dispatches[self.followed], queued[self.followed]
            self.followed += 1
            clone = self._clone()
            text = dict(self._workflows(clone))[entry["workflow"]]
            payload = {"inputs": with_defaults(text, entry["inputs"])}
            self._run(clone, Start(entry["workflow"], text, "workflow_dispatch", payload, entry["author"], run["id"]))

    def _clone(self) -> Path:
        folder = self.home / f"clone-{len(list(self.home.glob('clone-*')))}"
        self.git("clone", "--quiet", self.url, str(folder))
        self.git("remote", "set-url", "origin", f"https://github.com/{CONSUMER}.git", cwd=folder)
        return folder

    def _workflows(self, clone: Path) -> Iterator[tuple[str, str]]:
        for path in (clone / ".github/workflows").glob("*.yml"):
            if path.name.startswith("accord-"):
                yield path.name, path.read_text()

    def _run(self, clone: Path, start: Start) -> None:
        number = len(self.runs) + 1
        folder = self.home / f"run-{number}"
        folder.mkdir()
        consumer = folder / "clone"
        shutil.copytree(clone, consumer, symlinks=True)
        described = {"name": start.workflow, "path": f".github/workflows/{start.workflow}", "event": start.event}
        is_new = start.run_id < FIRST_DISPATCHED  # the local GitHub described a dispatched run itself
        self.control(f"runs/{CONSUMER}/{start.run_id}", status="in_progress", **(described if is_new else {}))
        run = self.bench.with_own_tokens.run(
            with_own_tokens(rewritten(start.text)),
            folder,
            event=start.event,
            payload={**start.payload, "repository": REPOSITORY},
            api_url=self.github.url,
            token=job_token({}),
            run_id=start.run_id,
            secrets=self.secrets,
            settings=self.variables,
            clone=consumer,
            actor=start.actor,
            programs=self.programs,
        )
        conclusion = "success" if run.exit_code == 0 else "failure"
        self.control(f"runs/{CONSUMER}/{start.run_id}", status="completed", conclusion=conclusion)
        self.runs.append((start.workflow, run))


def listens(workflow: str, event: str, action: str) -> bool:
    """Tell whether a workflow listens to an event."""
    triggers = yaml.load(workflow, Loader=yaml.BaseLoader)["on"]
    if event not in (triggers if isinstance(triggers, dict | list) else [triggers]):
        return False
    given = (triggers[event] or {}) if isinstance(triggers, dict) else {}
    types = given.get("types") if isinstance(given, dict) else None
    return not (action and types) or action in types


def with_defaults(workflow: str, inputs: Mapping[str, Any]) -> dict[str, Any]:
    """Fill in the defaults of a workflow's inputs, as GitHub does."""
    described = yaml.safe_load(workflow)[True]["workflow_dispatch"] or {}
    return {name: entry.get("default", "") for name, entry in described.get("inputs", {}).items()} | dict(inputs)
