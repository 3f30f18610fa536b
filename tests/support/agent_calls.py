"""A consumer's workflow that calls ``reusable-agent-run.yml`` many times in one run, and the outcome of each call.

The repository is on the local GitHub, with a branch and a pull request for each call. Every job has a token of its own
with the permissions that it asks for, and the local GitHub holds it to them.
"""

import base64
import fcntl
import io
import json
import zipfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from support.act import CONSUMER, ROOT, Bench, Run, job_token, job_tokens
from support.stage import seed_file

from accord_sandbox.database import Database
from accord_sandbox.git_storage import GitStorage
from accord_sandbox.server import serving

AGENT = Path(__file__).with_name("scripted_agent.py")
WORKFLOW = ROOT / ".github/workflows/reusable-agent-run.yml"
REUSABLE = "accord-ci/accord/.github/workflows/reusable-agent-run.yml@v0"
KEPT = "kept.json"
READER = "accord-sandbox-token-that-may-only-read"
POWERLESS = job_token({})
"""The value of ``github.token`` under act if a workflow does not set it."""

BODY = "## Tasks\n\n- [ ] Add unit tests\n- [ ] Fix typo in README\n- [ ] Write a changelog\n"
START = ["python3", ".github/agents/scripted.py"]
REGISTRY = {
    "agents": {
        "scripted": {"codec": "codex", "command": START},
        "unconfined": {"codec": "codex", "command": START, "isolation": "none"},
        "printing": {"codec": "plain", "command": START},
        "trusted": {
            "codec": "codex",
            "command": START,
            "required_secrets": ["OPENAI_API_KEY", "CODEX_AUTH_JSON"],
            "secret_delivery": {"CODEX_AUTH_JSON": {"file": ".codex/auth.json"}},
        },
    }
}


@dataclass(frozen=True)
class Call:
    """The inputs of one call besides its own branch and pull request; ``task`` is the agent's task.

    ``files`` are on its branch only.
    """

    task: str = "looks"
    inputs: Mapping[str, Any] = field(default_factory=dict)
    secrets: Mapping[str, str] = field(default_factory=dict)
    branch: str = ""
    files: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Calls:
    """A finished run, by the names of its calls; all that is left of it is in ``folder``."""

    folder: Path

    @cached_property
    def _kept(self) -> dict[str, Any]:
        kept: dict[str, Any] = json.loads((self.folder / KEPT).read_text())
        return kept

    @property
    def run(self) -> Run:
        return Run(self._kept["exit_code"], self._kept["events"], self.folder / "artifacts")

    @property
    def outputs(self) -> dict[str, dict[str, str]]:
        return {name: call["outputs"] for name, call in self._kept["told"].items()}

    @property
    def results(self) -> dict[str, str]:
        return {name: call["result"] for name, call in self._kept["told"].items()}

    def git(self, *arguments: str) -> str:
        """Ask git in the repository on the local GitHub."""
        return GitStorage(self.folder / "sandbox" / "git").open(CONSUMER).git.line(*arguments)

    @property
    def artifacts(self) -> dict[str, str]:
        """The uploaded files, by name of the artifact and path."""
        database = Database(self.folder / "sandbox")
        try:
            with database.reading() as db:
                rows = db.execute("SELECT name, content FROM artifacts").fetchall()
        finally:
            database.close()
        found = {}
        for row in rows:
            with zipfile.ZipFile(io.BytesIO(row["content"])) as archive:
                files = {path: archive.read(path).decode("utf-8", "replace") for path in archive.namelist()}
            found |= {f"{row['name']}/{path}": text for path, text in files.items()}
        return found


def message_of(outputs: Mapping[str, str]) -> str:
    """Decode the final message."""
    return base64.b64decode(outputs["final-message"], validate=True).decode()


def caller(calls: Mapping[str, Call]) -> str:
    """Write the consumer's workflow: a job for each call, and one that keeps what they told."""
    jobs: dict[str, Any] = {
        name: {"uses": REUSABLE, "with": inputs_of(name, call, number), "secrets": dict(call.secrets)}
        for number, (name, call) in enumerate(calls.items(), 1)
    }
    keep = {"run": 'printf %s "$NEEDS" > "$ARTIFACTS/needs.json"', "env": {"NEEDS": "${{ toJSON(needs) }}"}}
    jobs["told"] = {"needs": [*calls], "if": "always()", "runs-on": "ubuntu-latest", "steps": [keep]}
    return json.dumps({"on": "workflow_dispatch", "jobs": jobs}, indent=1)


def inputs_of(name: str, call: Call, number: int) -> dict[str, Any]:
    own = {"agent": "scripted", "prompt_file": f"prompts/{name}.md", "pr_number": str(number)}
    return {**own, "pr_ref": f"refs/heads/{call.branch or f'work/{name}'}", **call.inputs}


def seed_of(calls: Mapping[str, Call], files: Mapping[str, str], protected: Mapping[str, Any]) -> dict[str, Any]:
    """Describe the local GitHub."""
    branches = {call.branch or f"work/{name}": {"notes.txt": f"{name}\n", **call.files} for name, call in calls.items()}
    permissions = {"contents": "read", "pull_requests": "read"}
    reader = {"token": READER, "login": "rita", "kind": "fine-grained", "permissions": permissions}
    agent = {"registry.yml": json.dumps(REGISTRY), "scripted.py": AGENT.read_text()}
    own = {
        "README.md": "# The dmeo\n",
        "src/a.py": "a = 1\n",
        **{f".github/agents/{name}": text for name, text in agent.items()},
        **{f"prompts/{name}.md": f"{call.task}\n" for name, call in calls.items()},
    }
    repository = {
        "name": CONSUMER,
        "collaborators": {"rita": "read"},
        "files": {**own, **files},
        "branches": branches,
        "protected": dict(protected),
        "issues": [{"title": branch, "head": branch, "body": BODY} for branch in branches],
    }
    tokens = [*job_tokens([WORKFLOW.read_text(), "jobs: {none: {}}"]), reader]
    return {"tokens": tokens, "repositories": [repository]}


def once(folder: Path, make: Callable[[], None]) -> Calls:
    """Return the calls in a folder that all processes of a test session share; the first of them makes them."""
    with folder.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (folder / KEPT).exists():
            folder.mkdir()
            make()
    return Calls(folder)


def make_calls(
    bench: Bench,
    folder: Path,
    calls: Mapping[str, Call],
    *,
    files: Mapping[str, str] | None = None,
    protected: Mapping[str, Any] | None = None,
    **given: Any,
) -> None:
    """Make all of the calls in one workflow run."""
    seed = seed_file(folder, seed_of(calls, files or {}, protected or {}))
    with serving(folder / "sandbox", seed=seed) as github:
        run = bench.with_own_tokens.run(caller(calls), folder, api_url=github.url, token=POWERLESS, **given)
    told = run.artifacts / "needs.json"
    assert told.exists(), run.trouble
    kept = {"exit_code": run.exit_code, "events": run.events, "told": json.loads(told.read_text())}
    (folder / KEPT).write_text(json.dumps(kept))
