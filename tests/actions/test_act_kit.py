"""The consumer kit in a consumer's repository: ``accord init`` puts it there, and its workflows run as they are.

Beside it the matrix workflow that keeps consumers in step, on one that is behind and one that has no kit.
"""

from __future__ import annotations

import base64
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import requests
import yaml
from support.act import CONSUMER, PUBLISHED, ROOT, Bench, Run, job_token, job_tokens, publish, workflow_files
from support.consumers import OLD, PLAN, installed, older_kit
from support.loop_calls import AGENT, REGISTRY

from accord.results.labels import shipped_labels
from accord.sandbox.server import Running, serving
from accord.sandbox.show import document

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

pytestmark = pytest.mark.unmeasured

COMMIT = "c" * 40
BEHIND, KITLESS = "octo/behind", "octo/kitless"
SOURCE = Path(__file__).parent / "consumer"
WRITING = yaml.safe_load((SOURCE / ".github/agents/registry.yml").read_text())
OWN = {
    **{str(path.relative_to(SOURCE)): path.read_text() for path in SOURCE.rglob("*") if path.is_file()},
    "README.md": "# Mine\n",
    ".github/workflows/ci.yml": "name: CI\non: push\npermissions: {}\njobs: {}\n",
    ".github/agents/registry.yml": json.dumps({**REGISTRY, "agents": {**REGISTRY["agents"], **WRITING["agents"]}}),
    ".github/agents/looping.py": AGENT.read_text(encoding="utf-8"),
}
BODY = '<!-- keepalive-config: {"wait_seconds": 0} -->\n\n## Tasks\n\n- [ ] Write one.txt\n- [ ] Write two.txt\n'
SYNC = f"""
on: workflow_dispatch
jobs:
  sync:
    uses: {PUBLISHED.replace("@", "/.github/workflows/reusable-sync.yml@")}
    with:
      repositories: '["{BEHIND}", "{KITLESS}"]'
      ref: "{COMMIT}"
    secrets:
      token: ${{{{ secrets.SYNC_TOKEN }}}}
"""


@pytest.fixture(scope="module")
def kit(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """A repository with files of its own, after ``accord init``."""
    root = tmp_path_factory.mktemp("kit")
    for path, text in OWN.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text)
    command = [sys.executable, "-P", "-m", "accord", "init", "--root", str(root), "--yes", "--ref", COMMIT]
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
    subprocess.run(command, env=environment, check=True, stdout=subprocess.DEVNULL)
    return {path.relative_to(root).as_posix(): path.read_text() for path in root.rglob("*") if path.is_file()}


class Installed:
    """The repository on a local GitHub, and its workflows under act, each job with a token of its own."""

    def __init__(self, bench: Bench, github: Running, home: Path, files: Mapping[str, str]) -> None:
        published = publish(home / "published", own_tokens=True)
        self.bench = Bench(published, bench.stand_ins, bench.home)
        self.github, self.home, self.files = github, home, files

    def run(self, name: str, workflow: str, secrets: Mapping[str, str] | None = None, **inputs: str) -> Run:
        folder = self.home / name
        folder.mkdir()
        others = {
            path: text for path, text in self.files.items() if "/workflows/" not in path
        }  # act would run them all
        access = {"api_url": self.github.url, "token": job_token({})}
        return self.bench.run(workflow, folder, files=others, inputs=inputs, secrets=secrets, run_id=900, **access)

    def api(self, path: str, **params: Any) -> Any:
        headers = {"authorization": f"Bearer {self.github.token}"}
        answer = requests.get(f"{self.github.url}/repos/{path}", params=params, headers=headers, timeout=20)
        answer.raise_for_status()
        return answer.json()


@pytest.fixture(scope="module")
def consumer(bench: Bench, kit: dict[str, str], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Installed]:
    home = tmp_path_factory.mktemp("consumer")
    pull = {
        "title": "Two files",
        "head": "work/tasks",
        "body": BODY,
        "labels": ["agents:keepalive"],
        "statuses": [{"context": "ci", "state": "success"}],
    }
    repositories = [
        {
            "name": CONSUMER,
            "files": kit,
            "branches": {"work/tasks": {"notes.txt": "Notes\n"}},
            "issues": [pull],
            "default_labels": False,
        },
        {"name": BEHIND, "files": installed(tmp_path_factory.mktemp("behind"), older_kit(), OLD)},
        {"name": KITLESS, "files": {"README.md": "# Nothing\n"}},
    ]
    tokens = job_tokens([*(path.read_text() for path in workflow_files()), "jobs: {none: {}}"])
    writes = {"contents": "write", "pull_requests": "write", "workflows": "write"}
    app = {"token": "app", "login": "syncer[bot]", "kind": "installation", "permissions": writes}
    seed = {"tokens": [*tokens, app], "repositories": repositories}
    (home / "seed.json").write_text(json.dumps(seed))
    with serving(home / "sandbox", seed=home / "seed.json") as github:
        yield Installed(bench, github, home, kit)


def test_init_left_what_was_there_before(kit: dict[str, str]) -> None:
    assert {path: kit[path] for path in OWN} == OWN
    assert f"@{COMMIT} # v" in kit[PLAN]


def test_the_installed_workflow_for_keepalive_runs_an_agent_on_a_pull_request(consumer: Installed) -> None:
    run = consumer.run("keepalive", consumer.files[".github/workflows/accord-keepalive.yml"], pr_number="1")
    assert run.exit_code == 0, run.trouble
    pull = consumer.api(f"{CONSUMER}/pulls/1")
    assert pull["body"] == BODY.replace("- [ ] Write one.txt", "- [x] Write one.txt")
    (file,) = [file for file in consumer.api(f"{CONSUMER}/pulls/1/files") if file["filename"] == "one.txt"]
    assert file["status"] == "added"


def test_the_installed_workflow_for_labels_makes_the_labels_that_all_others_use(consumer: Installed) -> None:
    run = consumer.run("labels", consumer.files[".github/workflows/accord-labels.yml"])
    assert run.exit_code == 0, run.trouble
    names = {label["name"] for label in consumer.api(f"{CONSUMER}/labels", per_page=100)}
    assert names >= {entry.name for entry in shipped_labels()}


def test_the_installed_workflow_for_plans_creates_work_items(consumer: Installed) -> None:
    run = consumer.run("plan", consumer.files[PLAN], request="docs/specs/greeting.txt", agent="writing")
    assert run.exit_code == 0, run.trouble
    assert "Greet people by name" in {issue["title"] for issue in document(consumer.home / "sandbox")["issues"]}


def test_consumers_are_kept_in_step_each_in_a_job_of_its_own(consumer: Installed) -> None:
    run = consumer.run("sync", SYNC, secrets={"SYNC_TOKEN": "app"})
    assert run.exit_code != 0  # for the one without a kit
    (pull,) = consumer.api(f"{BEHIND}/pulls")
    assert (pull["head"]["ref"], pull["user"]["login"]) == ("accord/sync", "syncer[bot]")
    held = consumer.api(f"{BEHIND}/contents/{PLAN}", ref="accord/sync")["content"]
    assert f"@{COMMIT} # v" in base64.b64decode(held).decode()
    assert consumer.api(f"{KITLESS}/pulls") == []
    assert "does not have the kit" in run.summary
    assert "accord sync: applied" in run.summary
