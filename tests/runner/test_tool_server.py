"""An agent with `mcp: true` gets accord's tools in its run, and the result that it submits is the run's."""

import tomllib
from dataclasses import replace
from pathlib import Path

import pytest
from support.agent_bench import Bench

from accord.agents.registry import Agent, McpServer
from accord.core.environment import install_command
from accord.runner import tool_server
from accord.runner.models import AgentNotStarted, RunRequest
from accord.runner.tool_server import offers_tools, server_entry, server_settings, submitted_result

AGENT = """
import json, pathlib, sys
entry = json.loads(pathlib.Path(sys.argv[1]).read_text())["mcpServers"]["accord"]
folder = pathlib.Path(entry["args"][entry["args"].index("--run-dir") + 1])
(folder / "result.json").symlink_to("/etc/hostname")
"""
SERVER = {"arguments": ["{file}"]}


@pytest.mark.slow
def test_a_link_in_the_place_of_the_result_is_not_followed(bench: Bench) -> None:
    mine = {"command": ["{command}", "{mcp_server}"], "mcp": True, "mcp_server": SERVER}
    words = [*bench.scripted(AGENT, "mine"), "--registry", bench.registry({"agents": {"mine": mine}})]
    left = bench.run(*words, "--repair-turns", "0", "--schema", "reviewer-result", job={"GITHUB_ACTIONS": "true"})
    assert left.record["exit_code"] == 0
    assert not (left.folder / "submitted-result.json").exists()


def test_missing_packages_are_named_before_the_agent_starts(monkeypatch: pytest.MonkeyPatch) -> None:
    agent = Agent(mcp=True, mcp_server=McpServer(**SERVER))
    request = RunRequest("mine", Path("run"), Path(), kind="planner-result")
    assert offers_tools(agent, request)
    assert not any(offers_tools(agent, replace(request, kind=kind)) for kind in ("", "session-tasks"))
    monkeypatch.setattr(tool_server, "find_spec", lambda _name: None)
    with pytest.raises(AgentNotStarted) as refused:
        offers_tools(agent, request)
    assert refused.value.hint == f"Type `{install_command('mcp')}`, or remove `mcp`."


def test_the_settings_of_an_agent_keep_what_they_have(tmp_path: Path) -> None:
    server = McpServer(arguments=["-c", "x={toml}"], home_file="s.json", options={"trust": True})
    agent = Agent(mcp=True, mcp_server=server, home_files={"s.json": {"a": 1, "mcpServers": {"own": {}}}, "b": "text"})
    request = RunRequest("mine", Path("run"), Path("work"), kind="planner-result")
    entry = server_entry(agent, request, tmp_path, "1" * 40)
    (_, toml), files = server_settings(agent, entry, tmp_path)
    assert files == {"s.json": {"a": 1, "mcpServers": {"own": {}, "accord": entry}}, "b": "text"}
    assert tomllib.loads(toml) == {"x": entry}
    assert (entry["trust"], "env" in entry) == (True, False), "Gemini CLI refuses variables such as PYTHONPATH"


@pytest.mark.parametrize("content", ["", "[]", "no JSON", '{"a":' * 2000 + "1" + "}" * 2000])
def test_a_file_without_a_result_is_ignored(tmp_path: Path, content: str) -> None:
    (tmp_path / "result.json").write_text(content)
    assert submitted_result(tmp_path / "result.json", "planner-result") is None
