"""The server of accord's tools for an agent in a run: how the agent starts it, and the result that it leaves.

The server runs as a process of the agent, with the agent's rights, so it can do nothing that the agent could not. It
writes the result into the agent's private folder, and accord takes it from there after the turn.
"""

from __future__ import annotations

import json
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import accord
from accord.agents.registry import Agent
from accord.core.environment import install_command
from accord.core.kinds import KINDS
from accord.git.patch_text import lines_of_files
from accord.git.program import Git
from accord.runner import record as layout
from accord.runner.models import AgentNotStarted, RunRequest
from accord.runner.transcripts.lines import is_shallow, json_value
from accord.text.redaction import Redactor

KINDS_OF_TOOLS = ("planner-result", "implementor-result", "reviewer-result")
NAME = "accord"
SNAPSHOT = "work-items.json"
"""The name of a data file with the output of ``accord items list --format json``."""

CHANGE = "change.diff"
"""The name of a data file with the diff of the reviewed change, as git prints it."""

_CHANGED_LINES = "change-lines.json"
_FILE = "mcp.json"
_SOURCES = Path(accord.__file__).parents[1]
"""The folder of accord's package, which need not be among Python's packages."""

PROGRAMS = (Path(sys.prefix), Path(sys.base_prefix), _SOURCES)
"""The folders that the server's process reads: Python, its packages, and accord."""

_START = "import runpy, sys; sys.path.insert(0, sys.argv.pop(1)); runpy.run_module('accord', run_name='__main__')"
"""Some agents refuse servers with PYTHONPATH among their variables."""

_MOST_BYTES = 64 * 1024 * 1024
"""The change of the work tree is in the result that the server writes."""

PROMPT = (
    "The MCP server `accord` helps with your result while you work. Ask its tool `contract` what the result must hold, "
    "and end with `submit_result`, which says at once what is wrong. A submitted result counts as your answer, and "
    "your last message may then be any text. If you cannot call `submit_result`, end with one JSON document that "
    "matches this JSON Schema, and write nothing after it:"
)


def offers_tools(agent: Agent, request: RunRequest) -> bool:
    """Return whether an agent gets the tools in a run. Raises AgentNotStarted if they are not installed."""
    if not agent.mcp or agent.mcp_server is None or request.kind not in KINDS_OF_TOOLS:
        return False
    if find_spec("mcp") is None:
        message = "The agent's registry entry has `mcp: true`, and the packages of the MCP server are not installed."
        raise AgentNotStarted("not-started", message, hint=f"Type `{install_command('mcp')}`, or remove `mcp`.")
    return True


def prepare_folder(folder: Path, request: RunRequest, redactor: Redactor) -> None:
    """Make the folder of the server, with what the job gave as data: work items, and the lines of a diff."""
    folder.mkdir(mode=0o700)
    for path in request.data:
        if path.name == SNAPSHOT:
            text = path.read_text(encoding="utf-8", errors="replace")
            (folder / SNAPSHOT).write_text(redactor(text), encoding="utf-8")
        elif path.name == CHANGE:
            lines = {redactor(name): numbers for name, numbers in lines_of_files(path.read_bytes()).items()}
            (folder / _CHANGED_LINES).write_text(json.dumps(lines), encoding="utf-8")


def server_entry(agent: Agent, request: RunRequest, folder: Path, base: str) -> dict[str, Any]:
    """Return the entry of the server in an agent's settings; ``base`` is the commit that the run began at."""
    role = request.kind.removesuffix("-result")
    compared = _reviewed_base(request) if role == "reviewer" else base
    words = ["-I", "-c", _START, str(_SOURCES), "mcp", "--no-session", "--role", role]
    words += ["--run-dir", str(folder), "--root", str(request.directory), *(["--base", compared] if compared else [])]
    options = agent.mcp_server.options if agent.mcp_server else {}
    return {"command": sys.executable, "args": words, **options}


def _reviewed_base(request: RunRequest) -> str:
    """Return the commit of the base branch, empty if it is unknown or the checkout is not ahead of it.

    In a checkout of another branch than the reviewed one, the agent must not take an empty difference for the change.
    """
    git, branch = Git(request.directory), request.context.base_ref.removeprefix("refs/heads/")
    for name in (f"refs/remotes/origin/{branch}", f"refs/heads/{branch}") if branch else ():
        commit = git.attempt("rev-parse", "--verify", "--quiet", f"{name}^{{commit}}").stdout.decode().strip()
        if commit and git.attempt("rev-list", "--max-count=1", f"{commit}..HEAD").stdout.strip():
            return commit
    return ""


def server_settings(agent: Agent, entry: dict[str, Any], private: Path) -> tuple[list[str], dict[str, Any]]:
    """Return the words that tell an agent of the server, and the files of its HOME with the server among them.

    Writes the file that the words may name into the ``private`` folder.
    """
    server, files = agent.mcp_server, dict(agent.home_files)
    if server is None:
        return [], files
    file = private / _FILE
    file.write_text(json.dumps({"mcpServers": {NAME: entry}}), encoding="utf-8")
    if server.home_file is not None:
        settings = files.get(server.home_file, {})
        files[server.home_file] = {**settings, "mcpServers": {**settings.get("mcpServers", {}), NAME: entry}}
    return [word.replace("{file}", str(file)).replace("{toml}", _toml(entry)) for word in server.arguments], files


def submitted_result(path: Path, kind: str) -> dict[str, Any] | None:
    """Return the result that the agent submitted, without what accord adds itself; None without one."""
    try:
        with layout.open_regular(path) as file:
            value = json_value(file.read(_MOST_BYTES))
    except OSError:
        return None
    return {**value, **dict.fromkeys(KINDS[kind].own_keys)} if isinstance(value, dict) and is_shallow(value) else None


def _toml(value: Any) -> str:
    if isinstance(value, dict):
        return "{" + ", ".join(f"{json.dumps(key)}={_toml(each)}" for key, each in value.items()) + "}"
    return json.dumps(value)
