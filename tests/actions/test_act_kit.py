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
from actions.test_act_loops import CHANGES, GREEN, WORK_ITEMS
from actions.test_act_loops import PULLS as LOOP_PULLS
from support.act import CONSUMER, PUBLISHED, ROOT, Bench, Run, job_token, job_tokens, workflow_files
from support.consumers import OLD, PLAN, installed, older_kit
from support.loop_calls import AGENT, REGISTRY

from accord.results.label_sync import shipped_labels
from accord_sandbox.server import RunningSandbox, serving
from accord_sandbox.show import document

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
CALLERS = {"keepalive": "tasks", "autofix": "failing", "verifier": "kept", "bot-comments": "bots"}
"""The installed workflows of the loops, and the pull request that each is started for."""

PULLS = {
    "tasks": {"labels": ["agents:keepalive"], "body": BODY, "statuses": GREEN},
    "failing": {**LOOP_PULLS["failing"], "labels": ["autofix", "agent:looping"]},
    "kept": LOOP_PULLS["kept"],
    "bots": LOOP_PULLS["bots"],
}
NUMBERS = {name: number for number, name in enumerate(PULLS, 2)}
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

    def __init__(self, bench: Bench, github: RunningSandbox, home: Path, files: Mapping[str, str]) -> None:
        self.bench = bench.with_own_tokens
        self.github, self.home, self.files = github, home, files

    def run(self, name: str, workflow: str, secrets: Mapping[str, str] | None = None, **inputs: str) -> Run:
        folder = self.home / name
        folder.mkdir()
        others = {
            path: text for path, text in self.files.items() if "/workflows/" not in path
        }  # act would run them all
        access = {"api_url": self.github.url, "token": job_token({})}
        return self.bench.run(workflow, folder, files=others, inputs=inputs, secrets=secrets, run_id=900, **access)

    def api(self, path: str, method: str = "GET", json: Any = None, **params: Any) -> Any:
        headers = {"authorization": f"Bearer {self.github.token}"}
        url = f"{self.github.url}/repos/{path}"
        answer = requests.request(method, url, params=params, json=json, headers=headers, timeout=20)
        answer.raise_for_status()
        return answer.json()

    def patches(self, pull: int) -> dict[str, str]:
        """Return what a pull request changes, by file."""
        return {file["filename"]: file.get("patch", "") for file in self.api(f"{CONSUMER}/pulls/{pull}/files")}


@pytest.fixture(scope="module")
def consumer(bench: Bench, kit: dict[str, str], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Installed]:
    home = tmp_path_factory.mktemp("consumer")
    pulls = [{"title": name, "head": f"work/{name}", **pull} for name, pull in PULLS.items()]
    repositories = [
        {
            "name": CONSUMER,
            "files": kit,
            "branches": {f"work/{name}": CHANGES.get(name, {"notes.txt": "Notes\n"}) for name in PULLS},
            "issues": [WORK_ITEMS[0], *pulls],
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


def loops(files: Mapping[str, str]) -> str:
    """Put the jobs of the installed workflows of the loops into one, each started for a pull request of its own."""
    jobs = {}
    for name, pull in CALLERS.items():
        text = files[f".github/workflows/accord-{name}.yml"].replace("inputs.pr_number", f"'{NUMBERS[pull]}'")
        jobs |= yaml.safe_load(text)["jobs"]
    return json.dumps({"on": "workflow_dispatch", "jobs": jobs}, indent=1)


def test_the_installed_workflows_of_the_loops_do_what_they_are_there_for(consumer: Installed) -> None:
    consumer.api(f"{CONSUMER}/pulls/{NUMBERS['kept']}/merge", method="PUT", json={})
    run = consumer.run("loops", loops(consumer.files))
    assert run.exit_code == 0, run.trouble
    files = {name: consumer.patches(number) for name, number in NUMBERS.items()}
    assert "+Write one.txt" in files["tasks"]["one.txt"]
    assert consumer.api(f"{CONSUMER}/pulls/{NUMBERS['tasks']}")["body"] == BODY.replace(
        "[ ] Write one", "[x] Write one"
    )
    assert "+    return sum(numbers)" in files["failing"]["src/total.py"]
    assert "+The first line." in files["bots"]["lines.txt"]
    comments = consumer.api(f"{CONSUMER}/issues/{NUMBERS['kept']}/comments")
    assert any("**Verified** (`verdict-pass`)" in comment["body"] for comment in comments)


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
