"""Mistakes in a registry are found before an agent starts, with their line."""

import base64
import json
import math
from contextlib import nullcontext
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from accord.agents.registry import Agent, Registry, shipped_registry
from accord.agents.registry_rules import own_paths_in, registry_findings
from accord.core.errors import BrokenContract, WrongUsage
from accord.core.kinds import check_document
from accord.git.trusted_files import WorkTreeFiles
from accord.runner.launch import agent_environment, can_resume, command_line, install_environment
from accord.runner.models import AgentNotStarted, RunRequest
from accord.runner.registry import check_credentials, expiry_warnings, load_registry

SESSION = "0199a213-81c0-7800-8aa1-bbab2a035a53"
IN_USE = """\
version: 1
default_agent: codex
keepalive_marker_prefix: agents
agents:
  codex:
    runner_workflow: .github/workflows/reusable-codex-run.yml
    required_secrets: [CODEX_AUTH_JSON]
    required_secrets_mode: any
    branch_prefix: codex/issue-
    capacity: {window: 24h, limit: 3}
    ui_mentions_allowed: false
    automation_logins: [codex-bot]
    preflight: {checks: [auth]}
    capabilities: {pr_keepalive: true, pr_autofix: true, verifier_checkbox: false}
  elsewhere:
    runner_workflow: .github/workflows/other.yml
"""


def check(text: str) -> list[tuple[str, int | None]]:
    kind, findings = check_document(text.encode(), None, "registry.yml")
    assert kind == "agent-registry"
    return [(finding.code, finding.line) for finding in findings]


def written(tmp_path: Path, text: str) -> tuple[WorkTreeFiles, Path]:
    path = tmp_path / "registry.yml"
    path.write_text(text)
    return WorkTreeFiles(tmp_path), path


def test_the_shipped_registry_has_no_findings() -> None:
    assert registry_findings(shipped_registry()) == []
    hosts_and_words = [shipped_registry().allowed_hosts, shipped_registry().break_words]
    assert hosts_and_words == [[], []], "commands that post do not read it for their policy"
    unverified = {"copilot", "cursor", "opencode", "aider"}
    assert set(shipped_registry().agents) == {"codex", "claude", "gemini", "command"} | unverified
    assert set(shipped_registry().enabled_agents()) == {"codex", "claude", "gemini", "command"}


def test_a_registry_as_it_is_in_use_is_read_and_its_keys_are_kept(tmp_path: Path) -> None:
    assert check(IN_USE) == []
    registry = load_registry(*written(tmp_path, IN_USE))
    codex = registry.agent("codex")
    assert codex.capabilities["pr_keepalive"] is True
    assert codex.capacity == {"window": "24h", "limit": 3}
    assert codex.command == shipped_registry().agents["codex"].command
    assert codex.required_secrets == ["CODEX_AUTH_JSON"]


MISTAKES = {
    "place-unknown": "command: [x, '{modell}']",
    "place-missing": "{command: [x], model: [-m, '{value}']}",
    "pattern-invalid": "{command: [x], state_files: ['*.log', '[z-a]']}",
    "command-missing": "enabled: true",
    "default-unknown": "{command: [x], sandbox: {default: a, values: {b: {}}}}",
    "delivery-unclear": "{command: [x], required_secrets: [A_KEY], secret_delivery: {A_KEY: {}}}",
    "isolation-contradiction": "{command: [x], isolation: none, network: [example.com]}",
    "mcp-unsupported": "{command: [x], mcp: true}",
    "environment-forbidden": "{command: [x], environment_from: [GITHUB_TOKEN]}",
    "secret-undeclared": "{command: [x], environment_from: [OPENAI_API_KEY]}",
    "path-outside": "{command: [x], home_files: {../.bashrc: ls}}",
    "agent-key-misspelled": "{command: [x], isolaton: container}",
    "agent-key-unknown": "{command: [x], colour: red}",
    "schema": "{command: [x], isolation: user}",
}


@pytest.mark.parametrize("pattern", ["!AGENTS.md", "!*"])
@pytest.mark.parametrize("key", ["steering", "steering_files", "protected"])
def test_own_patterns_only_add(key: str, pattern: str) -> None:
    assert check(f"version: 1\n{key}:\n  - a.tf\n  - '{pattern}'\nagents: {{}}\n") == [("pattern-invalid", 4)]
    own = f"agents:\n  mine:\n    command: [x]\n    steering_files: ['{pattern}']\n"
    assert check(own) == [("pattern-invalid", 4)]


def test_a_repository_adds_files_that_are_not_pushed() -> None:
    own = (
        b"steering: [a]\nsteering_files: [b]\nprotected: [c]\nagents: {duck: {command: [duck], steering_files: [d]}}\n"
    )
    steering, protected = own_paths_in(own)
    assert {*steering} - {*own_paths_in(None)[0]} == {"a", "b", "d"}
    assert (list(protected), own_paths_in(b"agents: [")) == (["c"], own_paths_in(None))


@pytest.mark.parametrize("code", MISTAKES)
def test_a_mistake_is_found_on_its_line(code: str) -> None:
    line = 3 if code == "command-missing" else 4
    assert check(f"version: 1\nagents:\n  mine:\n    {MISTAKES[code]}\n") == [(code, line)]


STRATEGY = "safety_strategy: {default: unsafe, values: {unsafe: {keeps_sudo: true}}}"
SERVER = "mcp: true, mcp_server: {arguments: ['{file}'], home_file: s.json}"
USES_SERVER = f"command: [x, '{{mcp_server}}'], {SERVER}"
ENTRIES = {
    **{f"command: [x], {STRATEGY}, isolation: {kind}": list[str]() for kind in ("none", "auto")},
    **{
        f"command: [x], {STRATEGY}, {keys}": ["isolation-contradiction"]
        for keys in ("isolation: container", "network: []")
    },
    f"command: [x], {STRATEGY}, network: [], isolation: none": ["isolation-contradiction"] * 2,
    USES_SERVER: [],
    f"command: [x], {SERVER}": ["place-missing"],
    f"home_files: {{s.json: text}}, {USES_SERVER}": ["mcp-unsupported"],
    USES_SERVER.replace("s.json", "../s.json"): ["path-outside"],
    **{
        f"command: [x], {key}: [{name}]": ["environment-forbidden"]
        for key in ("environment_from", "required_secrets")
        for name in ("ACTIONS_RUNTIME_TOKEN", "GITHUB_ENV", "GH_TOKEN", "LD_PRELOAD")
    },
    "codec: plain": ["command-missing"],
    "enabled: false, codec: plain": [],
    "colour: red, netwrk: [a.b], prompt: telepathy": ["schema", "agent-key-misspelled", "agent-key-unknown"],
}


@pytest.mark.parametrize("entry", ENTRIES)
def test_a_mistake_in_an_entry_is_found_by_its_code(entry: str) -> None:
    assert sorted(code for code, _ in check(f"agents: {{mine: {{{entry}}}}}")) == sorted(ENTRIES[entry])
    assert check("agents: {codex: {codec: plain}}") == [], "only an agent of its own needs a command"


@pytest.mark.parametrize(
    ("top", "code"),
    [
        ("version: 2", "schema"), ("version: '1'", "schema"), ("defualt_agent: codex", "agent-key-misspelled"),
        ("default_agent: unknown", "default-unknown"),
        ("allowed_hosts: [ok.test, 'img.test:8443']", "host-invalid"),
        ("fallback: [claude, absent]", "fallback-unknown"), ("fallback: [aider]", "fallback-unknown"),
        ("modes: {verifier: {fallback: [gemini, absent]}}", "fallback-unknown"),
        ("modes: {verifier: {fallbak: []}}", "schema"), ("max_cost_usd: 0", "schema"), ("max_cost_usd: .nan", "schema"),
    ],
)  # fmt: skip
def test_a_mistake_at_the_top_is_found_on_its_line(top: str, code: str) -> None:
    assert check(f"agents: {{mine: {{command: [x]}}}}\n{top}\n") == [(code, 2)]


def test_a_repositorys_registry_replaces_keys_and_adds_agents(tmp_path: Path) -> None:
    text = 'agents:\n  codex:\n    install: {package: "@openai/codex", version: 0.1.2}\n  mine: {command: [x]}\n'
    registry = load_registry(*written(tmp_path, text))
    assert registry.agent("codex").install is not None
    assert registry.agents["codex"].install.version == "0.1.2"  # type: ignore[union-attr]
    assert (registry.agents["codex"].codec, registry.agent("mine").command) == ("codex", ["x"])
    assert registry.agent("claude")


@pytest.mark.parametrize("text", ["agents: [", "- 1", "agents:\n  a: {command: 7}\n", "agents:\n  a: {}\n  a: {}\n"])
def test_a_broken_registry_starts_nothing(tmp_path: Path, text: str) -> None:
    with pytest.raises(BrokenContract):
        load_registry(*written(tmp_path, text))


def test_an_agent_that_cannot_be_started_says_why(tmp_path: Path) -> None:
    registry = load_registry(*written(tmp_path, IN_USE + "  off: {enabled: false, command: [x]}\n"))
    for name, word in (("absent", "claude, codex"), ("off", "disabled"), ("elsewhere", "other.yml")):
        with pytest.raises(WrongUsage, match=word):
            registry.agent(name)


def line(
    agent: Agent, prompt: str = "do it", schema: str = "", final_message: Path | None = None, **options: Any
) -> list[str]:
    request = RunRequest("mine", Path("/run"), Path("/work"), **options)
    return command_line(agent, request, prompt, schema=schema, final_message=final_message)


def test_each_agent_is_started_as_its_cli_wants_it() -> None:
    agents = shipped_registry().agents
    asked: dict[str, Any] = {"model": "m-1", "schema": "{}", "final_message": Path("/f")}
    codex = " ".join(line(agents["codex"], sandbox_mode="read-only", **asked))
    assert codex.startswith("codex exec --json ")
    assert codex.endswith("-s read-only -m m-1 --output-schema /run/schema.json -o /f -")
    claude = " ".join(line(agents["claude"], **asked))
    assert claude.endswith("--verbose --permission-mode acceptEdits --model m-1 --json-schema {}")
    gemini = " ".join(line(agents["gemini"], sandbox_mode="danger-full-access", **asked))
    assert gemini == "gemini --output-format stream-json --approval-mode yolo -m m-1"
    assert line(agents["command"], command=["python", "x y.py"]) == ["python", "x y.py"]
    copilot = line(agents["copilot"], model="m-1")
    assert copilot == ["copilot", "-p", "do it", "--silent", "--no-color", "--allow-all-tools", "--model", "m-1"]
    assert line(agents["opencode"], model="p/m") == ["opencode", "run", "-m", "p/m", "do it"]
    assert line(agents["cursor"])[-2:] == ["--force", "do it"]
    assert line(agents["aider"])[-2:] == ["--message-file", "/run/prompt.md"]


@pytest.mark.parametrize("session", ["--dangerously-skip-permissions", "a b", "$(id)", "x" * 200, ""])
def test_a_session_that_is_not_a_name_stays_out_of_the_command_line(session: str) -> None:
    claude = shipped_registry().agents["claude"]
    assert not can_resume(claude, session)
    assert command_line(claude, RunRequest("claude", Path("/r"), Path("/w")), "", session=session)[-1] == "acceptEdits"
    assert command_line(claude, RunRequest("claude", Path("/r"), Path("/w")), "", session=SESSION)[-1] == SESSION


@pytest.mark.parametrize(("left", "word"), [(None, ""), (2.5, "2.50"), (0.004, "0.01"), (0.0, "0.01")])
def test_claude_gets_the_rest_of_the_budget(left: float | None, word: str) -> None:
    request = RunRequest("claude", Path("/run"), Path("/work"))
    words = command_line(shipped_registry().agents["claude"], request, "do it", usd_left=left)
    assert words[words.index("--max-budget-usd") + 1 :][:1] == [word] if word else "--max-budget-usd" not in words


def test_only_agents_with_events_can_stall_unless_the_entry_says_so() -> None:
    entries = {"codex": {}, "plain": {}, "set": {"stall_minutes": 2}, "off": {"codec": "claude", "stall_minutes": 0}}
    found = {
        name: Agent(**{"codec": name if name in ("codex", "plain") else "plain", **more})
        for name, more in entries.items()
    }
    assert {name: agent.silent_seconds for name, agent in found.items()} == {
        "codex": 900, "plain": math.inf, "set": 120, "off": math.inf,
    }  # fmt: skip


def test_a_mode_replaces_what_the_whole_registry_says() -> None:
    modes = {"fix": {"fallback": []}, "plan": {"max_cost_usd": 1}}
    registry = Registry.model_validate({"agents": {}, "fallback": ["b"], "max_cost_usd": 5, "modes": modes})
    seen = {mode: (registry.fallback_for(mode), registry.max_cost_for(mode)) for mode in ("", "fix", "plan")}
    assert seen == {"": (("b",), 5), "fix": ((), 5), "plan": (("b",), 1)}


def test_a_prompt_goes_where_the_entry_says() -> None:
    assert line(Agent(command=["x", "--ask={prompt}"], prompt="argument")) == ["x", "--ask=do it"]
    assert line(Agent(command=["x", "{prompt}"], prompt="file")) == ["x", "/run/prompt.md"]
    with pytest.raises(AgentNotStarted, match="limit of a command line argument is 131071"):
        line(Agent(command=["x", "{prompt}"], prompt="argument"), prompt="é" * 70_000)


def test_braces_that_are_not_a_placeholder_stay() -> None:
    word = 'model_providers.mock={name="mock"}'
    assert line(Agent(command=["x", word])) == ["x", word]


@pytest.mark.parametrize("asked", [{"sandbox_mode": "x"}, {"safety_strategy": "x"}, {"model": "x"}, {"command": ["x"]}])
def test_an_unsupported_option_starts_nothing(asked: dict[str, Any]) -> None:
    with pytest.raises(AgentNotStarted) as failed:
        line(Agent(command=["x"]), **asked)
    assert failed.value.error.kind == "not-started"


def test_each_shipped_agent_gets_its_own_key_and_no_other() -> None:
    keys = ["OPENAI_API_KEY", "CODEX_AUTH_JSON", "ANTHROPIC_API_KEY", "CLAUDE_CODE_OAUTH_TOKEN", "GEMINI_API_KEY"]
    job = dict.fromkeys(keys, "some-secret-value") | {"PATH": "/bin", "GITHUB_TOKEN": "t", "ACTIONS_CACHE_URL": "u"}
    seen = {}
    for name, agent in shipped_registry().agents.items():
        environment = agent_environment(agent, job, Path("/home"), Path("/tmp"))
        seen[name] = {key for key, value in environment.items() if value == "some-secret-value"}
        assert not {"GITHUB_TOKEN", "ACTIONS_CACHE_URL"} & environment.keys()
        assert environment["HOME"] == "/home"
    claude = {"ANTHROPIC_API_KEY", "CLAUDE_CODE_OAUTH_TOKEN"}
    several = {key: {"ANTHROPIC_API_KEY", "OPENAI_API_KEY"} for key in ("opencode", "aider")}
    none: dict[str, set[str]] = {name: set() for name in ("command", "copilot", "cursor")}
    assert seen == {"codex": {"CODEX_API_KEY"}, "claude": claude, "gemini": {"GEMINI_API_KEY"}, **several, **none}


def test_of_the_shipped_agents_codex_is_tried_unless_it_has_no_sandbox() -> None:
    tried = {
        f"{name} {mode}": setting.probe
        for name, agent in shipped_registry().agents.items()
        for mode, setting in (agent.sandbox.values if agent.sandbox else {}).items()
        if setting.probe
    }
    probe = ["codex", "sandbox", "--", "true"]
    assert tried == {"codex read-only": probe, "codex workspace-write": probe}


def test_the_installer_gets_npms_settings_and_no_secret() -> None:
    job = {"PATH": "/bin", "HOME": "/h", "npm_config_registry": "x", "NPM_CONFIG_CACHE": "y", "OPENAI_API_KEY": "z"}
    assert install_environment(job).keys() == job.keys() - {"OPENAI_API_KEY"} | {"NO_PROXY", "no_proxy"}


def test_an_agent_and_the_installer_reach_this_machine_without_a_proxy() -> None:
    job = {"HTTPS_PROXY": "http://proxy:3128", "no_proxy": "a.example"}
    agent = agent_environment(Agent(command=["x"]), job, Path("/home"), Path("/tmp"))
    for environment in (agent, install_environment(job)):
        assert environment["HTTPS_PROXY"] == "http://proxy:3128"
        for name in ("NO_PROXY", "no_proxy"):
            assert environment[name].split(",")[:3] == ["a.example", "localhost", "127.0.0.1"]


@pytest.mark.parametrize(
    ("mode", "there", "is_enough"),
    [("any", {"A"}, True), ("any", set(), False), ("all", {"A"}, False), ("all", {"A", "B"}, True)],
)
def test_a_missing_secret_is_named(mode: Any, there: set[str], is_enough: bool) -> None:
    agent = Agent(command=["x"], required_secrets=["A", "B"], required_secrets_mode=mode)
    job = dict.fromkeys(there, "value") | {"A": "value" if "A" in there else " "}
    with nullcontext() if is_enough else pytest.raises(AgentNotStarted, match="B"):
        check_credentials("mine", agent, job)


def test_the_schema_of_the_registry_takes_the_shipped_one() -> None:
    import jsonschema_rs

    from accord.core.schemas import json_schema

    shipped = json.loads(shipped_registry().model_dump_json(exclude_unset=True))
    assert jsonschema_rs.is_valid(json_schema(Registry), shipped)


def test_the_registry_in_the_guide_is_a_good_one() -> None:
    page = Path(__file__).parents[2] / "docs/agent-registry.md"
    example = page.read_text().partition("```yaml\n")[2].partition("```")[0]
    assert check(example) == []


NOW = datetime(2026, 11, 23, 9, tzinfo=UTC)
CODEX = shipped_registry().agent("codex")


def login(**claims: Any) -> str:
    body = base64.urlsafe_b64encode(json.dumps(claims).encode()).decode().rstrip("=")
    return json.dumps({"OPENAI_API_KEY": None, "tokens": {"access_token": f"e30.{body}.sig", "refresh_token": "r"}})


@pytest.mark.parametrize("text", ["dummy", "[]", '"{}"', '{"tokens": ', "ZXhhbXBsZQ==", "auth.json"])
def test_a_login_file_that_is_not_json_is_refused_before_the_agent_starts(text: str) -> None:
    for job in ({"CODEX_AUTH_JSON": text}, {"CODEX_AUTH_JSON": text, "OPENAI_API_KEY": "sk-1"}):
        with pytest.raises(
            AgentNotStarted, match="CODEX_AUTH_JSON of the agent `codex` is not a JSON object"
        ) as refused:
            check_credentials("codex", CODEX, job)
        assert refused.value.error.kind == "credential-invalid"


def test_a_login_file_or_a_key_alone_is_enough() -> None:
    for job in ({"CODEX_AUTH_JSON": login()}, {"CODEX_AUTH_JSON": " \n", "OPENAI_API_KEY": "not json"}):
        check_credentials("codex", CODEX, job)


@pytest.mark.parametrize(
    ("left", "says"),
    [
        (timedelta(days=-1), "expired at 2026-11-22T09:00:00"),
        (timedelta(hours=30), "expires at 2026-11-24T15:00:00"),
        (timedelta(days=9), ""),
    ],
)
def test_a_token_that_expires_soon_is_a_warning_that_says_what_to_do(left: timedelta, says: str) -> None:
    found = expiry_warnings(CODEX, {"CODEX_AUTH_JSON": login(exp=int((NOW + left).timestamp()))}, NOW)
    assert len(found) == bool(says)
    assert all(says in text and "CODEX_AUTH_JSON" in text and "Log in again" in text for text in found)


@pytest.mark.parametrize(
    "text",
    [
        login(), login(exp="soon"), login(exp=1e300), login(exp=None), "{}", '{"tokens": []}', "dummy",
        '{"tokens": {"access_token": "opaque"}}', '{"tokens": {"access_token": "a.%%.c"}}',
        '{"tokens": {"access_token": 7}}',
    ],
)  # fmt: skip
def test_a_token_without_a_readable_time_says_nothing(text: str) -> None:
    assert expiry_warnings(CODEX, {"CODEX_AUTH_JSON": text}, NOW) == []
