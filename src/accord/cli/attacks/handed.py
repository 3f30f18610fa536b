"""Attacks that hand a text to a function of accord, which is the same in every repository."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager
from functools import partial
from pathlib import Path
from textwrap import shorten
from zipfile import ZipFile

import requests

from accord.agents.registry import shipped_registry
from accord.cli.attacks.ground import HANDED, IDENTITY, KNOWN, NAME, REPOSITORY, Attacked
from accord.cli.output import one_line
from accord.core.errors import AccordError
from accord.core.findings import Finding
from accord.files.archives import read_members
from accord.gha.step import annotate, guard_git_settings, guard_step_files, write_outputs
from accord.git.beside import guard_refs
from accord.git.leaving_out import ChangedPath, reasons_to_leave_out
from accord.git.program import Git
from accord.handoffs.gate import GateVerdict, verdict_of
from accord.loops.models import Budgets
from accord.loops.settings import read_settings
from accord.mcp.tools import RESULT, SNAPSHOT, Workspace
from accord.results.run import read_result
from accord.runner.analysis.analyse import answer_in
from accord.runner.analysis.providers import ProviderFailed
from accord.runner.contract import repair_prompt
from accord.runner.launch import agent_environment
from accord.runner.tool_server import submitted_result
from accord.starts.events import read_command
from accord.starts.status import ticks_between, write_box
from accord.text.posting import PostingPolicy
from accord.text.redaction import Redactor
from accord.text.untrusted import data_section
from accord.workflows.doctor import examine_workflows
from accord.workflows.facts import read_repository


def play_handed(home: Path, server: str) -> Iterator[Attacked]:
    """Hand in each text, and look for its harm in the answer or the refusal. ``server`` is the sandbox's address."""
    functions = _functions(home, server)
    for each in HANDED:
        try:
            answer = _text_of(functions[each.row](each.text))
        except (AccordError, ProviderFailed) as refused:
            answer = str(refused)
        seen = shorten(one_line(answer), 200, placeholder=" …") or "nothing comes of it"
        yield Attacked(each.row, each.tried, each.harm if each.is_alive_in(answer) else "", seen)


def _text_of(answer: object) -> str:
    """Return an answer as a person reads it; empty for none."""
    if isinstance(answer, Mapping):
        return ", ".join(f"{name}: {value}" for name, value in answer.items() if value)
    return " ".join(map(str, answer)) if isinstance(answer, list | tuple) else str(answer or "")


def _functions(home: Path, server: str) -> Mapping[str, Callable[[str], object]]:
    """Return the function of each row, which gives back all that comes of a text."""
    home.mkdir()
    work, git = Git(home, IDENTITY), home / ".git"
    work("init", "--quiet", "--initial-branch=main")
    work("commit", "--quiet", "--allow-empty", "-m", "One")
    redact, agent = Redactor((KNOWN,)), shipped_registry().agents["command"]
    tools, doctor = Workspace(home, home, "planner"), partial(_doctor, home / "doctor")
    elsewhere = home / "elsewhere"
    for name in (SNAPSHOT, RESULT):
        (home / name).symlink_to(elsewhere)
    return {
        "document": lambda text: [each.text for each in read_result(text.encode()).findings],
        "output": lambda text: _outputs(home / "output", text),
        "log": lambda text: "\n".join(annotate([Finding("schema", text, hint=text)], None)),
        "instruction": lambda text: data_section({"issue.md": text}),
        "repair": lambda text: repair_prompt([Finding("schema", text, hint=text)]),
        "archive": lambda text: _archive(home / "packed", text),
        "tool": lambda text: elsewhere.write_text(text) and tools.items(),
        "handoff": lambda text: vars(
            verdict_of(GateVerdict("", "", (Finding("schema", text, hint=text),)), redact, PostingPolicy())
        ),
        **dict.fromkeys(["refs", "lock"], lambda text: _left(guard_git_settings(git, with_refs=True), home / text)),
        "terminal": lambda text: _left(guard_refs(home), home / text),
        "git-settings": lambda text: _left(guard_git_settings(git), home / text),
        "step-files": lambda text: _left(guard_step_files({text: str(home / text)}), home / text),
        "claim": lambda text: answer_in(text, ["Add a"]).completed_tasks,
        "settings": _settings,
        "tick": lambda text: ticks_between("", f"{write_box(7, 'implement').replace('[ ]', text)} a"),
        "comment-text": read_command,
        **dict.fromkeys(["site", "rebinding"], partial(_answer_to, f"{server}/repos/{REPOSITORY}")),
        "variables": lambda text: agent_environment(agent, dict.fromkeys(text.split(), KNOWN), home, home),
        **dict.fromkeys(["dump", "digest"], redact),
        "huge": lambda text: reasons_to_leave_out([ChangedPath("a", 0o100644, int(text), is_new=True)], []) or "",
        "result-link": lambda text: elsewhere.write_text(text) and submitted_result(tools.result, tools.kind),
        **dict.fromkeys(["script", "checkout", "agent-token", "hidden-agent", "opened", "anyone"], doctor),
    }


def _outputs(path: Path, text: str) -> str:
    """Write an output of a step; return what the runner reads after it."""
    write_outputs(path, {"a": text})
    end, _, lines = path.read_text(encoding="utf-8").removeprefix("a<<").partition("\n")
    return lines.split(f"\n{end}\n", 1)[-1]


def _archive(path: Path, member: str) -> list[str]:
    with ZipFile(path, "w") as archive:
        archive.writestr(member, "x")
    with path.open("rb") as packed:
        return [each.path for each in read_members(packed)]


def _settings(text: str) -> Mapping[str, object]:
    """Return what counts of the settings in a stranger's pull request."""
    found = read_settings(text, Budgets(), is_trusted=False)
    notes = " ".join(each.text for each in found.findings)
    return {"iterations": found.budgets.iterations, "keepalive": found.keepalive, "note": notes}


def _answer_to(url: str, header: str) -> str:
    """Return what the sandbox answers to a request with a header."""
    answer = requests.get(url, headers=dict([header.split(": ")]), proxies={"http": ""}, timeout=30)
    return f"{answer.status_code} {answer.text}"


def _left(guard: AbstractContextManager[object], file: Path) -> str:
    """Return the content of a guarded file after an agent wrote to it."""
    with guard:
        file.write_text(f"ref: refs/heads/{NAME}\n", encoding="utf-8")
    return file.read_text(encoding="utf-8") if file.exists() else ""


def _doctor(root: Path, workflow: str) -> str:
    """Return what doctor says of a workflow."""
    path = root / ".github/workflows/a.yml"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(workflow, encoding="utf-8")
    checks = examine_workflows(root, *read_repository(root, REPOSITORY))
    return " ".join(f"{each.code}: {each.message}" for check in checks for _, each in check.findings)
