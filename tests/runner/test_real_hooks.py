"""The stop hook in the real agent CLIs, at the versions of the shipped registry, each against a local provider.

The agent wants to end while its result is broken, is refused with the finding, corrects the file, and ends.
"""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from support.providers import Calls, Provider, Says, provider
from support.reviews import approve
from support.trees import commit, git

from accord.agents.registry import shipped_registry
from accord.core.clock import SystemClock
from accord.kit.skills import hook_settings, skill_files
from accord.runner.launch import install_program
from accord.runner.models import JobContext, StopSignals

CHECKOUT = Path(__file__).parents[2]
INSTALLED = CHECKOUT / ".accord/agents"
FILE = "reviewer-result.json"
GOOD = json.dumps(approve())
pytestmark = [pytest.mark.matrix, pytest.mark.skipif(shutil.which("npm") is None, reason="npm is not on the PATH")]

CODEX_PROVIDER = 'model_providers.mock={name="mock",base_url="URL/v1",wire_api="responses",env_key="MOCK_KEY"}'
GEMINI = shipped_registry().agents["gemini"].home_files[".gemini/settings.json"]


class Cli(NamedTuple):
    """How an agent is started with its own settings, and the tool call that writes the corrected file."""

    command: str
    job: dict[str, str]
    fix: Calls


CLIS = {
    "codex": Cli(
        "codex exec --json --trust --dangerously-bypass-approvals-and-sandbox --dangerously-bypass-hook-trust "
        f"--disable plugins -c analytics.enabled=false -m gpt-5.5 -c model_provider=mock -c {CODEX_PROVIDER} Review.",
        {"MOCK_KEY": "dummy"},
        Calls("exec_command", {"cmd": f"cp good.json {FILE}"}),
    ),
    "claude": Cli(
        "claude -p Review. --output-format stream-json --verbose --allowedTools Bash",
        {"ANTHROPIC_API_KEY": "dummy", "ANTHROPIC_BASE_URL": "URL", "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1"},
        Calls("Bash", {"command": f"cp good.json {FILE}", "description": "Correct the result"}),
    ),
    "gemini": Cli(
        "gemini -p Review. --output-format stream-json --approval-mode yolo -m gemini-2.5-flash",
        {"GEMINI_API_KEY": "dummy", "GOOGLE_GEMINI_BASE_URL": "URL", "GEMINI_CLI_TRUST_WORKSPACE": "true"},
        Calls("run_shell_command", {"command": f"cp good.json {FILE}"}),
    ),
}


@pytest.fixture(params=CLIS)
def name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def work(tmp_path: Path, name: str) -> Path:
    """A repository with the skills, the agent's hook, and a result that breaks its contract."""
    work = tmp_path / "work"
    work.mkdir()
    git(work, "init", "-q", "-b", "main")
    hook = hook_settings(name, ())
    files = {**skill_files(), hook.file: json.dumps(hook.settings)}
    broken: dict[str, Any] = {**approve(), "role": "reviewer"}
    broken["review"] = {**broken["review"], "summary": ""}
    files |= {FILE: json.dumps(broken), "good.json": GOOD}
    for path, text in files.items():
        (work / path).parent.mkdir(parents=True, exist_ok=True)
        (work / path).write_text(text)
    commit(work)
    return work


def run(name: str, work: Path, served: Provider) -> subprocess.CompletedProcess[str]:
    """Start the agent as its user would, with an empty HOME and `accord` on the PATH."""
    agent = shipped_registry().agents[name]
    path = install_program(agent, INSTALLED, JobContext(os.environ, SystemClock(), [].append, StopSignals()))
    home = work.parent / "home"
    (home / ".gemini").mkdir(parents=True)
    (home / ".gemini/settings.json").write_text(json.dumps(GEMINI))
    program = work.parent / "bin/accord"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\nPYTHONPATH="{CHECKOUT}/src" exec "{sys.executable}" -P -m accord "$@"\n')
    program.chmod(0o755)
    cli = CLIS[name]
    replaced = [word.replace("URL", served.url) for word in cli.command.split()]
    job = {key: value.replace("URL", served.url) for key, value in cli.job.items()}
    job |= {"HOME": str(home), "PATH": f"{program.parent}:{path}", "HTTPS_PROXY": "http://127.0.0.1:9"}
    job |= {"NO_PROXY": "127.0.0.1", "IS_SANDBOX": "1"}
    streams: dict[str, Any] = {"stdin": subprocess.DEVNULL, "capture_output": True, "text": True}
    return subprocess.run(replaced, cwd=work, env=job, timeout=600, check=False, **streams)


def test_an_agent_with_a_broken_result_is_refused_corrects_it_and_ends(name: str, work: Path) -> None:
    with provider(Says("I am done."), CLIS[name].fix, Says("Now I am done.")) as served:
        done = run(name, work, served)
    assert done.returncode == 0, done.stdout + done.stderr
    assert (work / FILE).read_text() == GOOD, done.stdout + done.stderr
    bodies = [json.dumps(body) for _, body in served.requests]
    assert "breaks its contract" not in bodies[0]
    assert "breaks its contract" in bodies[1]
    assert FILE in bodies[1]
    assert "Writes reviewer-result.json, which accord checks" in bodies[0], "the agent does not know the skill"
    assert "Now I am done." in done.stdout
