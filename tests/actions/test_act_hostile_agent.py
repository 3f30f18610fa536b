"""An agent that attacks its job reaches neither a token nor a key, nor a file that a later step or run reads."""

from __future__ import annotations

import hashlib
import json
import os
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from support.act import CHECKOUT, Bench
from support.hostile_agent import POISON

from accord.runner.isolation import REACHES_CLOUD
from accord_sandbox.planting import INSTALLATION_TOKEN

if TYPE_CHECKING:
    from accord_sandbox.server import RunningSandbox

pytestmark = pytest.mark.slow

OWN_KEY = "key-of-the-hostile-agent-6c0d41"
SECRETS = {"ANTHROPIC_API_KEY": "key-of-another-agent-81f3aa", "DEPLOY_KEY": "key-for-deployments-2b77c9"}
RUNNERS_OWN = {"ACTIONS_RUNTIME_TOKEN": "token-that-writes-caches-and-artifacts-94e1"}
SETFCAP = "80000000"
"""The one capability that root's agents keep: without it they cannot start a sandbox of their own."""

HIDDEN = [INSTALLATION_TOKEN, *SECRETS.values(), *RUNNERS_OWN.values()]
HOME_FILES = (
    ".bashrc", ".profile", ".gitconfig", ".npmrc", ".cache/pip", ".npm/_cacache", ".ssh", ".config/pip/pip.conf",
)  # fmt: skip

PREPARE = """
import json, os, pathlib
home, temp = pathlib.Path(os.environ["HOME"]), pathlib.Path(os.environ["RUNNER_TEMP"])
for name in (".ssh", ".cache/pip", ".npm/_cacache", ".config/pip"):
    (home / name).mkdir(parents=True, exist_ok=True)
for path in (home / ".ssh/id_ed25519", home / ".netrc", temp / "git-credentials.config"):
    path.write_text(os.environ["DEPLOY_KEY"])
tools = pathlib.Path(os.environ["RUNNER_TOOL_CACHE"])
tools.mkdir(parents=True, exist_ok=True)
(tools / "node.js").write_text("run()")
wanted = json.loads(pathlib.Path("wanted.json").read_text())
names = ("GITHUB_ENV", "GITHUB_PATH", "GITHUB_OUTPUT", "GITHUB_STATE", "GITHUB_STEP_SUMMARY")
files = [os.environ[name] for name in names if name in os.environ]
folders = {str(pathlib.Path(file).parent) for file in files}
wanted["places"] += [*files, *folders, str(temp), str(tools), *(str(home / name) for name in wanted["home"])]
pathlib.Path(os.environ["WANTED"]).write_text(json.dumps(wanted))
"""
LOOK = """
import json, os, pathlib, subprocess
wanted = json.loads(pathlib.Path(os.environ["WANTED"]).read_text())
paths = [pathlib.Path(place) for place in wanted["places"]]
files = {file for path in paths for file in ([path] if path.is_file() else path.rglob("*")) if file.is_file()}
files -= {file for file in files if file.is_relative_to(pathlib.Path.cwd()) or file.name == "changes.patch"}
poison = os.environ["POISON"].encode()
def read(path):
    try:
        return path.read_bytes()
    except OSError:  # it has ended meanwhile
        return b""
alive = [path.parent.name for path in pathlib.Path("/proc").glob("[0-9]*/cmdline")
         if wanted["sleep"].encode() in read(path)]
git = [pathlib.Path(".git", name) for name in ("config", "hooks/pre-push", "hooks/post-checkout")]
run_dir = pathlib.Path(os.environ["RUN_DIR"])
print(json.dumps({
    "reached": json.loads(pathlib.Path("reached.json").read_text()),
    "poisoned": sorted(str(file) for file in files if poison in file.read_bytes()),
    "alive": alive,
    "git": [str(path) for path in git if path.exists() and poison in path.read_bytes()],
    "variables": [name for name, value in os.environ.items() if name != "POISON" and os.environ["POISON"] in value],
    "record": json.loads((run_dir / "record.json").read_text()),
    "searched": len(files),
    "folder": sorted(path.name for path in run_dir.iterdir()),
    "links": [path.name for path in run_dir.iterdir() if path.is_symlink()],
}))
"""
WORKFLOW = """
on: workflow_dispatch
jobs:
  agent:
    runs-on: ubuntu-latest
    steps:
      - uses: CHECKOUT
      - run: python3 prepare.py
        env:
          DEPLOY_KEY: ${{ secrets.DEPLOY_KEY }}
      - id: run
        uses: accord-ci/accord/actions/run-agent@v0
        with:
          agent: hostile
          prompt-file: prompt.md
        env:
          OPENAI_API_KEY: ${{ secrets.OPENAI_API_KEY }}
          ANTHROPIC_API_KEY: ${{ secrets.ANTHROPIC_API_KEY }}
          GITHUB_TOKEN: ${{ github.token }}
          DEPLOY_KEY: ${{ secrets.DEPLOY_KEY }}
      - run: python3 look.py > "$ARTIFACTS/look.json"
        env:
          RUN_DIR: ${{ steps.run.outputs.run-dir }}
""".replace("CHECKOUT", CHECKOUT)


def test_a_hostile_agent_reaches_no_token_no_key_no_cache_and_no_file_of_the_next_run(
    bench: Bench, github: RunningSandbox, tmp_path: Path
) -> None:
    agent = {
        "command": ["python3", "hostile_agent.py", str(tmp_path / "wanted.json")],
        "required_secrets": ["OPENAI_API_KEY"],
    }
    wanted = {
        "hashes": [hashlib.sha256(value.encode()).hexdigest() for value in HIDDEN],
        "places": [str(bench.home), str(tmp_path / "act"), str(tmp_path / "artifacts")],
        "home": HOME_FILES,
        "sleep": f"600.{time.monotonic_ns()}",
    }
    files = {
        ".github/agents/registry.yml": json.dumps({"agents": {"hostile": agent}}),
        "hostile_agent.py": (Path(__file__).parents[1] / "support/hostile_agent.py").read_text(),
        "prepare.py": PREPARE,
        "look.py": LOOK,
        "prompt.md": "Fix the bug.\n",
        "wanted.json": json.dumps(wanted),
    }
    for name in ("home", "tools"):
        (tmp_path / name).mkdir()
    own = {"HOME": tmp_path / "home", "RUNNER_TOOL_CACHE": tmp_path / "tools", "WANTED": tmp_path / "wanted.json"}
    run = bench.run(
        WORKFLOW,
        tmp_path,
        files=files,
        api_url=github.url,
        token=INSTALLATION_TOKEN,
        secrets={**SECRETS, "OPENAI_API_KEY": OWN_KEY},
        environment={**RUNNERS_OWN, "POISON": POISON, **{name: str(path) for name, path in own.items()}},
    )
    assert run.exit_code == 0, run.trouble
    found: dict[str, Any] = json.loads((run.artifacts / "look.json").read_text())
    reached = found.pop("reached")
    assert set(reached.pop("capabilities")) <= ({SETFCAP} if os.geteuid() == 0 else set())
    assert {name: reached[name] for name in ("found", "killed", "sockets", "groups")} == {
        name: [] for name in ("found", "killed", "sockets", "groups")
    }
    record = found.pop("record")
    assert found.pop("searched") > 1000
    assert (record["agent"], record["exit_code"], record["error"]) == ("hostile", 0, None)
    assert set(record["warnings"]) <= {REACHES_CLOUD}
    assert found == {
        "poisoned": [],
        "alive": [],
        "git": [],
        "variables": [],
        "folder": [
            *("changes.patch", "final-message.md", "prompt.md"),
            *("record.json", "run-record.json", "stderr.log", "stdout.log"),
        ],
        "links": [],
    }
