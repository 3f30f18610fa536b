"""A consumer's workflow that calls ``reusable-agent-run.yml`` many times in one run, and what came of each call.

The repository is on the local GitHub, with a branch and a pull request for each call. Every job has a token of its own
with the permissions that it asks for, and the local GitHub holds it to them.
"""

from __future__ import annotations

import base64
import io
import json
import zipfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from support.act import CONSUMER, ROOT, Bench, Run, job_token, job_tokens, publish

from accord.sandbox.server import Running, serving

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

AGENT = Path(__file__).with_name("scripted_agent.py")
WORKFLOW = ROOT / ".github/workflows/reusable-agent-run.yml"
REUSABLE = "accord-ci/accord/.github/workflows/reusable-agent-run.yml@v0"
READER = "accord-sandbox-token-that-may-only-read"
POWERLESS = job_token({})
"""What act takes for ``github.token`` where a workflow does not name it."""

BODY = "## Tasks\n\n- [ ] Add unit tests\n- [ ] Fix typo in README\n- [ ] Write a changelog\n"
START = ["python3", ".github/agents/scripted.py"]
REGISTRY = {
    "agents": {
        "scripted": {"codec": "codex", "command": START},
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
    """What one call passes besides its own branch and pull request; ``task`` is what the agent is to do."""

    task: str = "looks"
    inputs: Mapping[str, Any] = field(default_factory=dict)
    secrets: Mapping[str, str] = field(default_factory=dict)
    branch: str = ""


@dataclass(frozen=True)
class Calls:
    """A finished run, by the names of its calls."""

    run: Run
    outputs: Mapping[str, Mapping[str, str]]
    results: Mapping[str, str]
    github: Running
    folder: Path

    def git(self, *arguments: str) -> str:
        """Ask git in the repository on the local GitHub."""
        return self.github.application.bares.open(CONSUMER).text(*arguments)

    @property
    def artifacts(self) -> dict[str, str]:
        """What was uploaded, by the name of the artifact and the path in it."""
        with self.github.database.reading() as db:
            rows = db.execute("SELECT name, content FROM artifacts").fetchall()
        found = {}
        for row in rows:
            with zipfile.ZipFile(io.BytesIO(row["content"])) as archive:
                found |= {
                    f"{row['name']}/{path}": archive.read(path).decode("utf-8", "replace")
                    for path in archive.namelist()
                }
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
    branches = {call.branch or f"work/{name}": {"notes.txt": f"{name}\n"} for name, call in calls.items()}
    return {
        "tokens": [
            *job_tokens([WORKFLOW.read_text(), "jobs: {none: {}}"]),
            {
                "token": READER,
                "login": "rita",
                "kind": "fine-grained",
                "permissions": {"contents": "read", "pull_requests": "read"},
            },
        ],
        "repositories": [
            {
                "name": CONSUMER,
                "collaborators": {"rita": "read"},
                "files": {
                    "README.md": "# The dmeo\n",
                    "src/a.py": "a = 1\n",
                    ".github/agents/registry.yml": json.dumps(REGISTRY),
                    ".github/agents/scripted.py": AGENT.read_text(),
                    **{f"prompts/{name}.md": f"{call.task}\n" for name, call in calls.items()},
                    **files,
                },
                "branches": branches,
                "protected": dict(protected),
                "issues": [{"title": branch, "head": branch, "body": BODY} for branch in branches],
            }
        ],
    }


def make_calls(
    bench: Bench,
    folder: Path,
    calls: Mapping[str, Call],
    *,
    files: Mapping[str, str] | None = None,
    protected: Mapping[str, Any] | None = None,
    **given: Any,
) -> Iterator[Calls]:
    """Run all of the calls in one workflow run; the local GitHub is there until the iterator is closed."""
    seed = folder / "seed.json"
    seed.write_text(json.dumps(seed_of(calls, files or {}, protected or {})))
    own = Bench(publish(folder / "published", own_tokens=True), bench.stand_ins, bench.home)
    with serving(folder / "sandbox", seed=seed) as github:
        run = own.run(caller(calls), folder, api_url=github.url, token=POWERLESS, **given)
        kept = run.artifacts / "needs.json"
        assert kept.exists(), run.trouble
        told = json.loads(kept.read_text())
        outputs = {name: told[name]["outputs"] for name in calls}
        yield Calls(run, outputs, {name: told[name]["result"] for name in calls}, github, folder)
