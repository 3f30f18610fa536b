"""Walk through docs/getting-started.md on a local GitHub: run its blocks and press its button.

No workflow file runs here: ``_WORKS`` calls the main commands of their jobs, with the example results instead of an
agent's. Scripts stand for ``gh`` and for the agent of keepalive (tools/stand_ins.py), and every check succeeds.
tests/actions/test_act_flow.py runs the files.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import requests
import yaml
from markdown_it import MarkdownIt

from accord_sandbox.planting import INSTALLATION_TOKEN
from accord_sandbox.server import RunningSandbox, SandboxSettings, serving
from accord_sandbox.show import document

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs/getting-started.md"
EXAMPLES = ROOT / "examples"
REPOSITORY = "octo/contacts"
BUTTON = "Approve workflows to run"
CI = """name: CI
on: pull_request
permissions: {}
jobs:
  test: {runs-on: ubuntu-latest, steps: [{run: pytest}]}
"""
APPROVAL = {"verdict": "approve", "summary": "All criteria of the work item are met.", "comments": []}
SHELL = """set -euo pipefail
cd "$(cat "$WALK/folder")"; . "$WALK/exports"
{block}
export -p | grep 'GITHUB_[RT]' > "$WALK/exports" || true; pwd > "$WALK/folder"
"""
PROGRAMS = {
    "uvx": '[ "$1 $2" = "--from accord[web]" ] && shift 2 && exec "$@"',
    "pipx": '[ "$*" = "install accord[web]" ] || [ "$*" = "install ./accord[web]" ]',
    "gh": f'exec "{sys.executable}" -I "{ROOT}/tools/stand_ins.py" gh "$@"',
    "codex": f'exec "{sys.executable}" -I "{ROOT}/tools/stand_ins.py" codex "$@"',
}
_MOST_TURNS = 5
_MOST_SECONDS = 600

Accord = Callable[[Sequence[str], Path, Mapping[str, str]], tuple[int, str, str]]
"""Runs ``accord`` with these arguments, in this folder and environment; returns its code and what it printed."""


def run_accord(arguments: Sequence[str], folder: Path, environment: Mapping[str, str]) -> tuple[int, str, str]:
    """Run ``accord`` in a process."""
    settings: dict[str, Any] = {"capture_output": True, "text": True, "check": False, "timeout": _MOST_SECONDS}
    done = subprocess.run(["accord", *arguments], cwd=folder, env=environment, **settings)
    return done.returncode, done.stdout, done.stderr


def steps(page: str) -> Iterator[tuple[str, str]]:
    """Return the steps of the page in order: ``block`` to run, ``button`` to press, and ``picture`` to take."""
    for token in MarkdownIt("commonmark").parse(page):
        if token.type == "fence":
            yield ("block" if token.info == "bash" else token.info, token.content)
        for child in token.children or ():
            if child.type == "image":
                yield "picture", str(child.attrGet("src"))
        if f"press **{BUTTON}**" in token.content:
            yield "button", ""


@dataclass
class Walk:
    """A repository on the local GitHub, and what happened to it so far."""

    home: Path
    github: RunningSandbox
    accord: Accord
    followed: int = 0
    turns: int = 0
    output: list[str] = field(default_factory=list)

    @property
    def world(self) -> dict[str, Any]:
        """All that the local GitHub holds."""
        return document(self.home / "sandbox")

    def environment(self, **more: str) -> dict[str, str]:
        """Return the variables of a person's shell, or of a job with more of them."""
        kept = {
            name: value for name, value in os.environ.items() if not name.startswith(("GITHUB_", "ACCORD_", "RUNNER_"))
        }
        programs = f"{self.home / 'bin'}:{Path(sys.executable).parent}:{kept.get('PATH', '')}"
        ours = {
            "ACCORD_INIT_REF": "a" * 40,
            "GIT_CONFIG_GLOBAL": str(self.home / "gitconfig"),
            "GITHUB_API_URL": self.github.url,
            "GITHUB_SERVER_URL": self.github.url,
            "HOME": str(self.home),
            "PATH": programs,
            "WALK": str(self.home),
            "WALK_EVENTS": str(self.home / "events"),
            "WALK_TOKEN": self.github.token,
        }
        return kept | ours | more

    def run(self, *words: str, env: Mapping[str, str], cwd: Path | None = None) -> str:
        """Run a program and return its output. Raises CalledProcessError."""
        done = subprocess.run(
            words, env=env, cwd=cwd, capture_output=True, text=True, check=False, timeout=_MOST_SECONDS
        )
        self.output.append(done.stdout + done.stderr)
        if done.returncode:
            raise RuntimeError(f"{' '.join(words)} exited with {done.returncode}:\n{done.stdout}{done.stderr}")
        return done.stdout

    def job(self, *words: str, run_id: int = 900, **more: str) -> dict[str, Any]:
        """Run ``accord`` as a job of a workflow does, with the job's own token."""
        where = {"GITHUB_REPOSITORY": REPOSITORY, "GITHUB_TOKEN": INSTALLATION_TOKEN, "GITHUB_RUN_ID": str(run_id)}
        env = self.environment(**where, GITHUB_ACTOR="maintainer", OPENAI_API_KEY="sk-example", **more)
        code, out, err = self.accord([*words, "--format", "json"], self.home, env)
        self.output.append(out + err)
        if code:
            raise RuntimeError(f"accord {' '.join(words)} exited with {code}:\n{out}{err}")
        found: dict[str, Any] = json.loads(out)
        return found

    def block(self, text: str) -> None:
        """Run a block of the page like a person does, then deliver the events that it caused."""
        before = self._main()
        self.run("bash", "-c", SHELL.replace("{block}", text), env=self.environment())
        if (after := self._main()) != before:
            self._pushed(before, after)
        events = self.home / "events"
        for line in events.read_text(encoding="utf-8").splitlines():
            self.deliver(*json.loads(line))
        events.write_text("", encoding="utf-8")
        self.follow()

    def button(self) -> None:
        """Approve the held workflow runs of the open pull request, and let them succeed."""
        (pull,) = [pull for pull in self.world["pulls"] if pull["state"] == "open"]
        url = f"{self.github.url}/_sandbox/approvals/{REPOSITORY}/{pull['number']}"
        requests.post(url, headers={"origin": self.github.url}, timeout=600).raise_for_status()
        queued = [
            run for run in self.world["workflow_runs"] if run["event"] == "pull_request" and run["status"] == "queued"
        ]
        if not queued:
            raise RuntimeError("No workflow run waited for approval.")
        for run in queued:
            self._finish(run["id"])
        self.follow()

    def deliver(self, event: str, payload: Mapping[str, Any]) -> None:
        """Deliver an event to ``accord-start.yml``."""
        repository = {"default_branch": "main", "full_name": REPOSITORY, "pushed_at": 1_700_000_000}
        around = {"repository": repository, "sender": {"login": "maintainer", "type": "User"}}
        path = self.home / "payload.json"
        path.write_text(json.dumps({**payload, **around}), encoding="utf-8")
        self.job("start", "run", "--event", event, "--payload", str(path))

    def follow(self) -> None:
        """Run the workflows that were started, and turns of keepalive, until nothing is left to do."""
        for _ in range(_MOST_TURNS):
            world = self.world
            begun = [run for run in world["workflow_runs"] if run["event"] == "workflow_dispatch"]
            new = list(zip(world["dispatches"], begun, strict=True))[self.followed :]
            for dispatch, run in new:
                self.followed += 1
                _WORKS[dispatch["workflow"]](self, dispatch["inputs"], run["id"])
                self._finish(run["id"])
            pulls = [
                pull for pull in world["pulls"] if pull["state"] == "open" and "agents:keepalive" in pull["labels"]
            ]
            has_worked = any(self._turn(pull["number"]) for pull in pulls)
            if not (has_worked or new):
                return

    def _turn(self, number: int) -> bool:
        """Take a turn of keepalive; return whether it did something, such as run the agent or start a review."""
        self.turns += 1
        folder = self.home / f"turn-{self.turns}"
        words: tuple[str, ...] = (
            "--pull",
            str(number),
            "--review-workflow",
            "accord-review.yml",
            "--run-dir",
            str(folder),
        )
        words += ("--registry", str(self.home / "registry.yml"))
        return self.job("keepalive", "run", *words)["outcome"] in ("ended", "acted")

    def _main(self) -> str:
        repository = self.home / "sandbox/git" / f"{REPOSITORY}.git"
        return self.run("git", "--git-dir", str(repository), "rev-parse", "main", env=self.environment()).strip()

    def _pushed(self, before: str, after: str) -> None:
        """Do what a push of the default branch starts: labels, and plans of specifications."""
        repository = self.home / "sandbox/git" / f"{REPOSITORY}.git"
        command = ("git", "--git-dir", str(repository), "diff", "--name-only", before, after)
        names = self.run(*command, env=self.environment()).splitlines()
        if ".github/labels.yml" in names:
            self.job("labels", "sync", "--file", str(self.home / "contacts/.github/labels.yml"))
        if any(name.startswith("docs/specs/") for name in names):
            self.deliver("push", {"ref": "refs/heads/main", "before": before, "after": after})

    def _finish(self, run_id: int) -> None:
        url = f"{self.github.url}/_sandbox/runs/{REPOSITORY}/{run_id}"
        requests.put(url, json={"status": "completed", "conclusion": "success"}, timeout=600).raise_for_status()


def _plan(walk: Walk, _inputs: Mapping[str, str], run_id: int) -> None:
    walk.job("apply", str(EXAMPLES / "planner-result.json"), run_id=run_id)


def _implement(walk: Walk, inputs: Mapping[str, str], run_id: int) -> None:
    item = inputs["work-item"]
    about = ("--work", "implement", "--item", item, "--key", inputs["start"], "--agent", inputs["agent"])
    walk.job("start", "begin", *about, run_id=run_id)
    walk.job("preflight", run_id=run_id)
    walk.job("items", "move", item, "--to", "in-progress", run_id=run_id)
    applied = walk.job("apply", str(EXAMPLES / "implementor-result.json"), "--work-item", item, run_id=run_id)
    _end(walk, about, {"revision": applied["revision"]}, run_id)


def _review(walk: Walk, inputs: Mapping[str, str], run_id: int) -> None:
    about = ("--work", "review", "--item", inputs["pull"], "--key", inputs.get("start", ""))
    walk.job("start", "begin", *about, run_id=run_id)
    path = EXAMPLES / "reviewer-result.json"
    if walk.turns > 1:
        path = walk.home / "approval.json"
        path.write_text(json.dumps({"role": "reviewer", "review": APPROVAL}), encoding="utf-8")
    applied = walk.job("apply", str(path), "--pull", inputs["pull"], run_id=run_id)
    _end(walk, about, {"review": applied["review"]}, run_id)


def _end(walk: Walk, about: tuple[str, ...], outputs: Mapping[str, Any], run_id: int) -> None:
    texts = {name: json.dumps(value) for name, value in outputs.items()}
    needs = json.dumps({"apply": {"result": "success", "outputs": {"outcome": "applied", **texts}}})
    walk.job("start", "end", *about, "--needs", needs, run_id=run_id)


_WORKS: dict[str, Callable[[Walk, Mapping[str, str], int], None]] = {
    "accord-plan.yml": _plan,
    "accord-implement.yml": _implement,
    "accord-review.yml": _review,
}


def _make_source(walk: Walk) -> None:
    """Make what the page clones: a repository whose ``dev`` is the installed command."""
    source = walk.home / "source"
    source.mkdir()
    (source / "dev").write_text('#!/bin/sh\nexec accord "$@"\n', encoding="utf-8")
    (source / "dev").chmod(0o755)
    for words in (("init", "--quiet"), ("add", "dev"), ("commit", "--quiet", "--message", "Begin")):
        walk.run("git", *words, env=walk.environment(), cwd=source)


@contextmanager
def begun(home: Path, accord: Accord = run_accord) -> Iterator[Walk]:
    """Serve the repository of the page as GitHub makes a new one, and clone it; jobs run ``accord``."""
    seed = yaml.safe_load((EXAMPLES / "sandbox-seed.yml").read_text(encoding="utf-8"))
    (repository,) = seed["repositories"]
    repository["files"].pop("docs/specs/export.md")
    repository["files"][".github/workflows/ci.yml"] = CI
    repository |= {"name": REPOSITORY, "settings": "default", "secrets": ["OPENAI_API_KEY"]}
    path = home / "seed.yml"
    path.write_text(yaml.safe_dump(seed), encoding="utf-8")
    (home / "bin").mkdir()
    for name, body in PROGRAMS.items():
        program = home / "bin" / name
        program.write_text(f"#!/bin/sh\n{body}\n", encoding="utf-8")
        program.chmod(0o755)
    agent = {"command": [str(home / "bin" / "codex"), "exec"], "codec": "codex"}
    registry = {"version": 1, "default_agent": "script", "agents": {"script": agent}}
    (home / "registry.yml").write_text(yaml.safe_dump(registry), encoding="utf-8")
    (home / "plan.json").write_bytes((EXAMPLES / "planner-result.json").read_bytes())
    settings = SandboxSettings(rate_limits=None)
    with serving(home / "sandbox", seed=path, settings=settings) as github:
        walk = Walk(home, github, accord)
        address = f"http://x-access-token:{github.token}@{github.url.partition('//')[2]}/"
        (home / "gitconfig").write_text(
            f'[user]\nname = Maintainer\nemail = maintainer@example.org\n[url "{address}"]\ninsteadOf = https://github.com/\n'
            f'[url "{home}/source"]\ninsteadOf = https://github.com/accord-ci/accord\n',
            encoding="utf-8",
        )
        _make_source(walk)
        url = f"https://github.com/{REPOSITORY}.git"
        walk.run("git", "clone", "--quiet", url, str(home / "contacts"), env=walk.environment())
        for name in ("exports", "events"):
            (home / name).write_text("", encoding="utf-8")
        (home / "folder").write_text(str(home), encoding="utf-8")
        yield walk


def walk_through(walk: Walk, take_picture: Callable[[str], None]) -> None:
    """Take all steps of the page in order. Raises RuntimeError for a command that fails."""
    for kind, text in steps(PAGE.read_text(encoding="utf-8")):
        if kind == "picture":
            take_picture(text)
        elif kind == "button":
            walk.button()
        elif kind == "block":
            if "accord init" in text:  # the page says to go to a checkout here
                (walk.home / "folder").write_text(str(walk.home / "contacts"), encoding="utf-8")
            walk.block(text)
        else:
            raise RuntimeError(f"A block of the page is not run, because its language is {kind!r}.")
