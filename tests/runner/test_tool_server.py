"""An agent with `mcp: true` gets accord's tools in its run, and the result that it submits is the run's."""

import json
import tomllib
from pathlib import Path
from typing import Any

import pytest
from support.agent_bench import Bench, Left
from support.implementations import completed
from support.reviews import approve

from accord.agents.registry import Agent, McpServer
from accord.core.environment import install_command
from accord.runner import tool_server
from accord.runner.models import AgentNotStarted, RunRequest
from accord.runner.tool_server import offers_tools, server_entry, server_settings, submitted_result

AGENT = """
import json, pathlib, sys
from tool_client import tool_client

pathlib.Path("hello.txt").write_text("Hello.\\n")
result, wanted = json.loads(sys.argv[1]), sys.argv[2]
entry = json.loads(pathlib.Path(sys.argv[3]).read_text())["mcpServers"]["accord"]

if wanted == "submit":
    with tool_client(entry) as client:
        print(client.call("submit_result", {"result": result})[1])
else:
    folder = pathlib.Path(entry["args"][entry["args"].index("--run-dir") + 1])
    (folder / "result.json").symlink_to("/etc/hostname")
print("I said hello.")
"""
SERVER = {"arguments": ["{file}"]}
COMPLETED = completed(None, "I added the greeting.")


def play(bench: Bench, result: Any, *more: str, wanted: str = "submit", entry: dict[str, Any] | None = None) -> Left:
    """Run an agent that changes a file and submits a result."""
    (bench.top / "agent.py").write_text(AGENT)
    words = ["{command}", "{arguments}", "{mcp_server}"]
    mine = {"command": words, "arguments": [json.dumps(result), wanted], "mcp": True, "mcp_server": SERVER}
    registry = bench.registry({"agents": {"mine": {**mine, **(entry or {})}}})
    options = [*bench.scripted(AGENT, "mine"), "--registry", registry, "--repair-turns", "0", *more]
    return bench.run(*options, job={"GITHUB_ACTIONS": "true", "A_TOKEN": "ghp_" + "b2C3" * 9})


@pytest.mark.slow
def test_the_submitted_result_is_the_runs_and_its_change_is_the_runs_patch(bench: Bench) -> None:
    left = play(bench, COMPLETED, "--schema", "implementor-result", "--fail")
    assert left.code == 0, left.err
    assert json.loads(left.outputs["result-json"]) == COMPLETED
    assert json.loads(left.text("submitted-result.json"))["patch"] is None
    assert "+Hello." in left.text("changes.patch")
    assert left.outputs["final-message-summary"].endswith("I said hello.")


@pytest.mark.slow
def test_a_link_in_the_place_of_the_result_is_not_followed(bench: Bench) -> None:
    left = play(bench, approve(), "--schema", "reviewer-result", wanted="link")
    assert left.record["exit_code"] == 0
    assert not (left.folder / "submitted-result.json").exists()


@pytest.mark.parametrize("options", [[], ["--schema", "session-tasks"]])
@pytest.mark.slow
def test_without_a_result_of_a_role_an_agent_gets_no_tools(bench: Bench, options: list[str]) -> None:
    left = play(bench, approve(), *options)
    assert "submit_result" not in left.text("prompt.md")
    assert "IndexError" in left.text("stderr.log")


def test_missing_packages_are_named_before_the_agent_starts(monkeypatch: pytest.MonkeyPatch) -> None:
    agent = Agent(mcp=True, mcp_server=McpServer(**SERVER))
    request = RunRequest("mine", Path("run"), Path(), kind="planner-result")
    assert offers_tools(agent, request)
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
