"""The real agent CLIs, at the versions of the shipped registry, each against a local provider.

accord installs them once into a folder of the checkout that git ignores (0.8 GB). Their keys are dummies, their HOME is
empty, and a proxy refuses every other connection.
"""

import base64
import json
import os
import shutil
import signal
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from support.agent_bench import WITHOUT_NAMESPACES, Bench, Left, has_namespaces, running_with
from support.plans import task_body
from support.providers import Answer, Calls, Fails, Hangs, Provider, Says, provider
from support.reviews import approve, needs_changes

from accord.agents.registry import shipped_registry
from accord.core.clock import SystemClock
from accord.runner.launch import install_program
from accord.runner.models import JobContext, StopSignals

Started = tuple[subprocess.Popen[str], Provider]

INSTALLED = Path(__file__).parents[2] / ".accord/agents"
KEY = "dummy-key-of-the-test"
pytestmark = [pytest.mark.matrix, pytest.mark.skipif(shutil.which("npm") is None, reason="npm is not on the PATH")]


class Cli(NamedTuple):
    """The differences between the agents: the settings for a local provider, and the exit code."""

    entry: dict[str, Any]
    job: dict[str, str]
    options: list[str]
    change: Calls
    unauthorized: tuple[int, dict[str, Any]]


CODEX_PROVIDER = (
    'model_providers.mock={name="mock",base_url="URL/v1",wire_api="responses",env_key="MOCK_KEY",'
    "request_max_retries=1,stream_max_retries=1}"
)
GEMINI = shipped_registry().agents["gemini"].home_files[".gemini/settings.json"]

CLIS = {
    "codex": Cli(
        entry={
            "arguments": ["-c", "model_provider=mock", "-c", CODEX_PROVIDER],
            "required_secrets": ["MOCK_KEY"],
            "secret_delivery": {},
        },
        job={"MOCK_KEY": KEY},
        options=["--model", "gpt-5.5", "--sandbox-mode", "danger-full-access"],
        change=Calls("exec_command", {"cmd": "echo new > new.txt"}),
        unauthorized=(1, {"error": {"message": "Incorrect API key provided"}}),
    ),
    "claude": Cli(
        entry={},
        job={"ANTHROPIC_API_KEY": KEY, "ANTHROPIC_BASE_URL": "URL", "CLAUDE_CODE_MAX_RETRIES": "0"},
        options=[],
        change=Calls("Write", {"file_path": "WORK/new.txt", "content": "new\n"}),
        unauthorized=(1, {"type": "error", "error": {"type": "authentication_error", "message": "invalid key"}}),
    ),
    "gemini": Cli(
        entry={"home_files": {".gemini/settings.json": {**GEMINI, "general": {"maxAttempts": 1}}}},
        job={"GEMINI_API_KEY": KEY, "GOOGLE_GEMINI_BASE_URL": "URL"},
        options=["--model", "gemini-2.5-flash"],
        change=Calls("write_file", {"file_path": "WORK/new.txt", "content": "new\n"}),
        unauthorized=(145, {"error": {"code": 401, "message": "no", "status": "UNAUTHENTICATED"}}),
    ),
}

MCP_NAMES = {"codex": "", "claude": "mcp__accord__", "gemini": "mcp_accord_"}
"""How the CLIs begin the names of the tools."""

MCP_NAMESPACES = {"codex": "mcp__accord"}


@pytest.fixture(params=CLIS)
def name(request: pytest.FixtureRequest) -> str:
    """Name an agent, and install it by accord, once per checkout, with the npm settings of the user."""
    agent, show = shipped_registry().agents[request.param], list[str]().append
    install_program(agent, INSTALLED, JobContext(os.environ, SystemClock(), show, StopSignals()))
    return str(request.param)


def in_turn(chosen: str) -> pytest.MarkDecorator:
    """Run a test with one agent, and every night with all: the agents take turns from test to test."""
    names = [name if name == chosen else pytest.param(name, marks=pytest.mark.matrix) for name in CLIS]
    return pytest.mark.parametrize("name", names, indirect=True)


@contextmanager
def started(
    bench: Bench,
    name: str,
    *answers: Answer,
    more: Sequence[str] = (),
    below: Sequence[str] = (),
    tools: bool = False,
) -> Iterator[Started]:
    """Start ``accord run`` with an agent before a provider that gives these answers."""
    cli = CLIS[name]
    change = {key: str(value).replace("WORK", str(bench.work)) for key, value in cli.change.arguments.items()}
    answers = tuple(Calls(cli.change.tool, change) if answer is cli.change else answer for answer in answers)
    with provider(*answers) as served:
        entry = {**cli.entry, "mcp": tools}
        if "arguments" in entry:
            entry["arguments"] = [word.replace("URL", served.url) for word in entry["arguments"]]
        arguments = ["--agent", name, "--prompt-file", "prompt.md", "--install-dir", str(INSTALLED), *cli.options]
        arguments += ["--registry", bench.registry({"agents": {name: entry}}), *more]
        job = {key: value.replace("URL", served.url) for key, value in cli.job.items()}
        job["GITHUB_ACTIONS"] = "true"  # in a container, as in a job
        with bench.start(*arguments, job=job, below=below) as process:
            yield process, served


def run(bench: Bench, name: str, *answers: Answer, **more: Any) -> tuple[Left, Provider]:
    with started(bench, name, *answers, **more) as (process, served):
        return bench.wait(process), served


def words(left: Left) -> tuple[str, str, str]:
    """Return the three error words of the outputs, empty on success."""
    outputs = left.outputs
    return outputs["error-category"], outputs["error-type"], outputs["error-recovery"]


@pytest.mark.matrix
def test_a_change_of_the_agent_is_in_the_patch(bench: Bench, name: str) -> None:
    left, served = run(bench, name, CLIS[name].change, Says("I added new.txt."))
    assert left.record["exit_code"] == 0, left.err
    assert left.record["error"] is None
    assert (left.record["codec"], left.text("changes.patch").count("diff --git")) == (name, 1)
    assert "+new\n" in left.text("changes.patch")
    assert "I added new.txt." in left.text("stdout.log")
    assert (left.outputs["exit-code"], words(left)) == ("0", ("", "", ""))
    assert base64.b64decode(left.outputs["final-message"]).decode().strip() == "I added new.txt."
    assert "Add a file." in str(served.requests[0][1])
    assert all(KEY in credential for credential in served.credentials)
    assert (bench.git("status", "--short"), list((bench.top / "temp").iterdir())) == ("?? new.txt", [])


@in_turn("codex")
def test_a_refusal_of_the_provider_is_the_agents_failure(bench: Bench, name: str) -> None:
    code, body = CLIS[name].unauthorized
    left, served = run(bench, name, Fails(401, body))
    assert left.record["exit_code"] == code, left.err
    assert left.record["error"] is None
    assert served.requests
    assert (left.outputs["exit-code"], words(left)) == (str(code), ("auth", "agent", "manual"))
    assert left.outputs["error-summary"]
    assert KEY not in left.out + left.err + "".join(path.read_text() for path in left.folder.iterdir())


@in_turn("claude")
def test_a_cancelled_agent_ends_with_all_its_processes_and_its_change_is_kept(bench: Bench, name: str) -> None:
    with started(bench, name, CLIS[name].change, Hangs()) as (process, served):
        assert served.hanging.wait(60)
        process.send_signal(signal.SIGINT)
        left = bench.wait(process)
    assert left.record["error"]["kind"] == "cancelled"
    assert words(left) == ("transient", "infrastructure", "ignore")
    assert left.outputs["exit-code"] != "0"
    assert "+new\n" in left.text("changes.patch")
    assert running_with(str(bench.top), "environ") == 0


@in_turn("gemini")
def test_an_agent_gets_its_schema_and_an_unchanged_tree_has_an_empty_patch(bench: Bench, name: str) -> None:
    properties = {"verdict_of_the_test": {"type": "string"}}
    schema = {"type": "object", "properties": properties, "required": [*properties], "additionalProperties": False}
    (bench.top / "schema.json").write_text(json.dumps(schema))
    result = Says('{"verdict_of_the_test": "good"}')
    calls = [Calls("StructuredOutput", {"verdict_of_the_test": "good"})] if name == "claude" else []
    left, served = run(bench, name, *calls, result, more=("--schema", str(bench.top / "schema.json")))
    assert left.record["exit_code"] == 0, left.err
    request = served.requests[0][1]
    given = {"codex": request.get("text"), "claude": request.get("tools"), "gemini": request.get("contents")}[name]
    assert "verdict_of_the_test" in str(given)
    assert (left.outputs["exit-code"], words(left)) == ("0", ("", "", ""))
    assert (left.folder / "changes.patch").read_bytes() == b""
    assert json.loads(left.outputs["result-json"]) == {"verdict_of_the_test": "good"}


@in_turn("codex")
def test_a_broken_result_is_repaired_in_the_same_session(bench: Bench, name: str) -> None:
    broken, whole = needs_changes(summary="It is broken."), approve()
    said: list[Answer] = [Says(json.dumps(broken)), Says(json.dumps(whole))]
    if name == "claude":
        said = [Calls("StructuredOutput", document) for document in (broken, whole)]
    left, served = run(bench, name, *said, more=("--schema", "reviewer-result", "--fail"))
    assert left.code == 0, left.err
    first, second = left.record["attempts"]
    assert (first["outcome"], second["outcome"]) == ("broken", "done")
    assert first["session"] == second["session"] != ""
    asked = [json.dumps(body) for _, body in served.requests]
    assert ["needs-changes-without-finding" in text for text in asked] == [False, True]
    assert all("Add a file." in text and ("It is broken." in text) == (text is asked[1]) for text in asked)
    assert json.loads(left.outputs["result-json"]) == whole
    assert (first["tokens_input"], second["tokens_input"], left.outputs["tokens-input"]) == (100, 100, "200")
    assert first["cost_usd"] == second["cost_usd"]


@pytest.mark.skipif(os.geteuid() != 0, reason="root without capabilities is the hard case")
@pytest.mark.parametrize("name", ["codex"], indirect=True)
def test_an_agents_own_sandbox_works_in_the_container(bench: Bench, name: str) -> None:
    answers = (CLIS[name].change, Says("I added new.txt."))
    left, _ = run(bench, name, *answers, more=("--sandbox-mode", "workspace-write"))
    assert left.record["warnings"] == []
    assert "+new\n" in left.text("changes.patch")


@pytest.mark.skipif(not has_namespaces(), reason="a machine without user namespaces is made with one")
@pytest.mark.parametrize("name", ["codex"], indirect=True)
@pytest.mark.parametrize("mode", [pytest.param("read-only", marks=pytest.mark.matrix), "workspace-write"])
def test_an_agent_whose_own_sandbox_cannot_start_costs_nothing(bench: Bench, name: str, mode: str) -> None:
    left, served = run(bench, name, more=("--sandbox-mode", mode), below=WITHOUT_NAMESPACES)
    assert (left.record["error"]["kind"], served.requests) == ("sandbox-unavailable", []), left.err
    assert words(left) == ("infrastructure", "infrastructure", "manual")
    assert "bwrap: " in left.outputs["error-summary"]


def test_an_agent_changes_a_file_uses_every_tool_and_submits_its_result_after_one_was_refused(
    bench: Bench, name: str
) -> None:
    broken, whole = needs_changes(summary="It is broken."), approve()
    item = {"id": 7, "title": "Say hello", "status": "ready", "body": task_body(in_scope="- src/hello.py")}
    items = bench.top / "work-items.json"
    items.write_text(json.dumps({"items": [item], "left_out": 0}))
    tools: list[tuple[str, dict[str, Any], str]] = [
        ("contract", {}, "reviewer-result"),
        ("list_work_items", {}, "Say hello"),
        ("read_work_item", {"number": "7"}, "src/hello.py"),
        ("scope_of", {"number": "7", "path": "src/hello.py"}, "in_scope"),
        ("diff_lines", {}, "The job named no base"),
        ("check_result", {"result": broken}, "needs-changes-without-finding"),
        ("submit_result", {"result": broken}, "Nothing was written"),
        ("submit_result", {"result": whole}, "written"),
    ]
    answers = [Calls(MCP_NAMES[name] + tool, inputs, MCP_NAMESPACES.get(name, "")) for tool, inputs, _ in tools]
    more = ("--schema", "reviewer-result", "--fail", "--data", str(items))
    left, served = run(bench, name, CLIS[name].change, *answers, Says("Done."), more=more, tools=True)
    assert left.code == 0, left.err
    assert "+new\n" in left.text("changes.patch")
    assert all(KEY in credential for credential in served.credentials)
    assert (bench.git("status", "--short"), list((bench.top / "temp").iterdir())) == ("?? new.txt", [])
    asked = [json.dumps(body) for _, body in served.requests][1:]
    for (tool, _, words), before, after in zip(tools, asked[:-1], asked[1:], strict=True):
        assert after.count(words) > before.count(words), f"{tool}: {after[-2000:]}"
    assert json.loads(left.outputs["result-json"]) == json.loads(left.text("result.json")) == whole
    assert [attempt["outcome"] for attempt in left.record["attempts"]] == ["done"]
    (warning,) = json.loads(left.outputs["run-warnings"])
    assert "changes were not pushed" in warning
