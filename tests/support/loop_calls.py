"""A consumer's repository in which the loops work, and calls of their workflows in it.

It is on a local GitHub, with a pull request for each thing that can happen. Every job has a token of its own with the
permissions that it asks for, and the local GitHub holds it to them.
"""

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import requests
import yaml
from support.act import (
    CONSUMER,
    ROOT,
    Bench,
    Run,
    job_token,
    job_tokens,
    make_consumer,
    permissions_of,
    template,
)

from accord_sandbox.server import RunningSandbox
from accord_sandbox.show import document

LOOPS = ("keepalive", "autofix", "verifier", "bot-comments")
"""The loops by the names of their workflows."""

AGENT = Path(__file__).with_name("looping_agent.py")
POWERLESS = job_token({})
"""The ``github.token`` of act where a workflow does not name one."""

REGISTRY = {
    "default_agent": "looping",
    "review_bots": ["typos[bot]"],
    "agents": {"looping": {"codec": "codex", "command": ["python3", ".github/agents/looping.py"]}},
}


def call(loop: str, pull: str) -> dict[str, Any]:
    """Return the job of the kit's workflow for a loop, for the pull request of that expression."""
    (job,) = yaml.safe_load(template(loop).replace("inputs.pr_number", pull))["jobs"].values()
    return dict(job)


def caller(loop: str) -> str:
    """Write the kit's workflow for a loop, with a job that keeps its outputs."""
    on = {"workflow_dispatch": {"inputs": {"pr_number": {"type": "string", "required": True}}}}
    jobs = {"loop": call(loop, "inputs.pr_number"), "told": told(["loop"])}
    return json.dumps({"on": on, "jobs": jobs}, indent=1)


def told(jobs: list[str]) -> dict[str, Any]:
    """Write a job that keeps the outputs of other jobs."""
    keep = {"run": 'printf %s "$NEEDS" > "$ARTIFACTS/needs.json"', "env": {"NEEDS": "${{ toJSON(needs) }}"}}
    return {"needs": jobs, "if": "always()", "runs-on": "ubuntu-latest", "steps": [keep]}


FILES = {
    ".github/agents/registry.yml": json.dumps(REGISTRY),
    ".github/agents/looping.py": AGENT.read_text(encoding="utf-8"),
    **{f".github/workflows/accord-{loop}.yml": caller(loop) for loop in LOOPS},
}
"""Files of every consumer of the loops."""


def seed(files: Mapping[str, str], **repository: Any) -> dict[str, Any]:
    """Describe a local GitHub that knows the token of every job of the loops' workflows."""
    workflows = [(ROOT / f".github/workflows/reusable-{loop}.yml").read_text(encoding="utf-8") for loop in LOOPS]
    tokens = job_tokens([*workflows, "jobs: {none: {}}"])
    return {
        "tokens": tokens,
        "repositories": [{"name": CONSUMER, "files": {**FILES, **files}, "default_labels": False, **repository}],
    }


def ask(github: RunningSandbox, method: str, path: str, **options: Any) -> Any:
    """Ask about the consumer's repository, as a person who may do everything."""
    headers = {"authorization": f"Bearer {github.token}"}
    url = f"{github.url}/repos/{CONSUMER}/{path}"
    answer = requests.request(method, url, headers=headers, timeout=600, **options)
    answer.raise_for_status()
    return answer.json() if answer.content else None


@dataclass
class Consumer:
    """A repository on a local GitHub, and the workflow runs in it."""

    bench: Bench
    github: RunningSandbox
    home: Path
    runs: dict[str, Run] = field(default_factory=dict)
    outputs: dict[str, dict[str, dict[str, str]]] = field(default_factory=dict)

    def run(self, name: str, workflow: str, run_id: int, **inputs: str) -> Run:
        """Run a workflow as a workflow run of its own, and keep what its jobs told by their names."""
        folder = self.home / name
        folder.mkdir()
        access = {"api_url": self.github.url, "token": POWERLESS}
        files = {path: text for path, text in FILES.items() if "/workflows/" not in path}  # act would run them all
        run = self.bench.run(workflow, folder, files=files, run_id=run_id, inputs=inputs, **access)
        needs = run.artifacts / "needs.json"
        assert needs.exists(), run.trouble
        self.runs[name] = run
        self.outputs[name] = {job: said["outputs"] for job, said in json.loads(needs.read_text()).items()}
        return run

    def calls(self, name: str, calls: Mapping[str, tuple[str, object]], run_id: int) -> Run:
        """Call workflows of loops on pull requests, by the names of the jobs, all in one workflow run."""
        jobs: dict[str, Any] = {job: call(loop, f"'{pull}'") for job, (loop, pull) in calls.items()}
        jobs["told"] = told([*jobs])
        return self.run(name, json.dumps({"on": "workflow_dispatch", "jobs": jobs}, indent=1), run_id)

    def follow(self, name: str, run_id: int) -> Run:
        """Run what was started last by workflow_dispatch: the file that it names, with the inputs that it has."""
        started = self.held["dispatches"][-1]
        return self.run(name, FILES[f".github/workflows/{started['workflow']}"], run_id, **started["inputs"])

    def accord(self, *arguments: str, run_id: int) -> subprocess.CompletedProcess[str]:
        """Run the command as a step of a workflow run would, of which nothing else is left."""
        environment = {
            **{name: value for name, value in os.environ.items() if not name.startswith(("GITHUB_", "ACCORD_"))},
            "GITHUB_ACTIONS": "true",
            "GITHUB_API_URL": self.github.url,
            "GITHUB_SERVER_URL": self.github.url,
            "GITHUB_REPOSITORY": CONSUMER,
            "GITHUB_RUN_ID": str(run_id),
            "GITHUB_TOKEN": token_of("keepalive", "decide"),
            "PYTHONPATH": str(ROOT / "src"),
        }
        folder = self.home / "checkout"
        if not folder.exists():
            make_consumer(folder, FILES)
        command = [sys.executable, "-P", "-m", "accord", *arguments]
        return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)

    def api(self, method: str, path: str, **options: Any) -> Any:
        return ask(self.github, method, path, **options)

    def checks_pass(self, pull: int) -> None:
        """Do what the repository's CI does for a new head."""
        head = self.api("GET", f"pulls/{pull}")["head"]["sha"]
        self.api("POST", f"statuses/{head}", json={"state": "success", "context": "ci"})

    @property
    def held(self) -> dict[str, Any]:
        """The content of the local GitHub."""
        return document(self.home / "sandbox")


def token_of(loop: str, job: str) -> str:
    """Name the token of a job of a loop's workflow."""
    workflow = (ROOT / f".github/workflows/reusable-{loop}.yml").read_text(encoding="utf-8")
    return job_token(permissions_of(workflow)[job])
