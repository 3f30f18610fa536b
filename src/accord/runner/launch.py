"""Everything that an agent needs to start: its command, environment, HOME, program, and a machine for its sandbox."""

from __future__ import annotations

import json
import os
import re
import secrets
import shutil
import subprocess
import sys
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from accord.agents.registry import Agent, AgentChoice, AgentSettings, Delivery
from accord.agents.registry_rules import PLACEHOLDER
from accord.core.network import direct_loopback
from accord.core.suggest import did_you_mean
from accord.runner.models import AgentNotStarted, JobContext, RunRequest
from accord.runner.process import Program, run_program
from accord.runner.prompt import check_argument
from accord.runner.record import PROMPT, SCHEMA
from accord.runner.transcripts.lines import cut

_SESSION = re.compile(r"[0-9A-Za-z][0-9A-Za-z_-]{0,99}")
"""Names of sessions come from the output of an agent and become a word of a command line."""

_LEAST_USD = 0.01
_INSTALL_SECONDS = 600
_INSTALL_LOG_CHARS = 1000
_AGENT_VARIABLES = re.compile(
    r"PATH|LANG|LANGUAGE|LC_[A-Z]+|TZ|TERM|COLUMNS|SHELL|USER|LOGNAME|CI"
    r"|(?i:https?_proxy|no_proxy|all_proxy)|SSL_CERT_(FILE|DIR)|NODE_EXTRA_CA_CERTS|REQUESTS_CA_BUNDLE|CURL_CA_BUNDLE"
    r"|JAVA_HOME\w*|GOROOT\w*|DOTNET_ROOT|ANDROID_(HOME|SDK_ROOT|NDK\w*)|pythonLocation|Python3?_ROOT_DIR"
    r"|PKG_CONFIG_PATH|LD_LIBRARY_PATH|VIRTUAL_ENV|RUSTUP_HOME|CARGO_HOME|RUNNER_(OS|ARCH|TOOL_CACHE|TRACKING_ID)"
)
"""Paths, language, proxies, certificates and tool chains. Only a proxy with a password can be a secret.

By RUNNER_TRACKING_ID, the runner finds and ends processes that a job leaves behind.
"""

_NPM_VARIABLES = re.compile(
    r"PATH|LANG|LC_[A-Z]+|HOME|(?i:npm_config_\w+|https?_proxy|no_proxy)|NODE_EXTRA_CA_CERTS|SSL_CERT_FILE"
)

_PROBE_SECONDS = 60
_SYSCTL_SECONDS = 30
_REASON_CHARS = 200
_ALLOWING = ("kernel.unprivileged_userns_clone=1", "kernel.apparmor_restrict_unprivileged_userns=0")
"""Settings of Linux that allow user namespaces. Either may be missing, so the next probe decides."""

_SANDBOX_HINT = (
    "Allow user namespaces there, as with `sudo sysctl -w kernel.apparmor_restrict_unprivileged_userns=0`, or pass "
    "`--sandbox-mode danger-full-access` in a job without anything to protect."
)


def command_line(
    agent: Agent,
    request: RunRequest,
    prompt: str,
    *,
    schema: str = "",
    final_message: Path | None = None,
    session: str = "",
    usd_left: float | None = None,
    mcp_server: Sequence[str] = (),
) -> list[str]:
    """Fill the placeholders of the agent's command. Raises AgentNotStarted for what this agent does not support.

    ``schema`` is the JSON Schema of the result, empty without one; ``final_message`` the file for the final message;
    ``session`` the conversation to go on with, if ``can_resume`` allows it; ``usd_left`` the rest of the run's budget;
    ``mcp_server`` the words that tell it of accord's tools.
    """
    sandbox, strategy = settings_of(agent, request)
    model, form = _checked_model(agent, request), agent.result_schema
    prompt_file, schema_file = ((request.run_dir / name).absolute() for name in (PROMPT, SCHEMA))
    result_schema: list[str] = []
    if schema and form:  # an agent without a form gets it in its prompt
        value = str(schema_file) if form.passed_as == "file" else check_argument(schema, "result schema")
        result_schema = _with_value(form.arguments, value)
    words = {
        "sandbox": sandbox.arguments,
        "safety_strategy": strategy.arguments,
        "model": _with_value(agent.model, model) if model else [],
        "result_schema": result_schema,
        "final_message": _with_value(agent.final_message, str(final_message or "")),
        "arguments": agent.arguments,
        "max_cost": [] if usd_left is None else _with_value(agent.max_cost, f"{max(usd_left, _LEAST_USD):.2f}"),
        "command": list(request.command),
        "resume": _with_value(agent.resume, session) if can_resume(agent, session) else [],
        "mcp_server": list(mcp_server),
        "prompt": [check_argument(prompt, "prompt") if agent.prompt == "argument" else str(prompt_file)],
    }
    line: list[str] = []
    for word in agent.command:
        whole = PLACEHOLDER.fullmatch(word)
        line += words[whole[1]] if whole else [PLACEHOLDER.sub(lambda hit: " ".join(words[hit[1]]), word)]
    return line


def _checked_model(agent: Agent, request: RunRequest) -> str:
    """Return the model to use, empty for the agent's own. Raises AgentNotStarted for a wrong model or command."""
    model, takes_command = request.model or agent.default_model, _has_place(agent, "command")
    if model and not agent.model:
        raise _setting_error(f"The agent does not accept a model, so `{model}` cannot be set.", "Leave it empty.")
    if model.startswith("-") or not model.isprintable():
        raise _setting_error(f"`{model}` is not a model name.", "Use the name that the provider uses.")
    if takes_command and not request.command:
        raise _setting_error("This agent runs a command of yours, and none was given.", "Pass `--command`.")
    if request.command and not takes_command:
        raise _setting_error("This agent has its own command.", "Remove `--command`, or pass `--agent command`.")
    return model


def _has_place(agent: Agent, name: str) -> bool:
    return any(f"{{{name}}}" in word for word in agent.command)


def can_resume(agent: Agent, session: str) -> bool:
    """Return whether an agent can go on with a conversation that its output named."""
    return bool(agent.resume and _has_place(agent, "resume") and _SESSION.fullmatch(session))


def settings_of(agent: Agent, request: RunRequest) -> tuple[AgentSettings, AgentSettings]:
    """Return the settings of the sandbox mode and of the safety strategy. Raises AgentNotStarted for unknown ones."""
    strategy = _setting(agent.safety_strategy, request.safety_strategy, "safety strategy")
    return _setting(agent.sandbox, request.sandbox_mode, "sandbox mode"), strategy


def _setting(choice: AgentChoice | None, value: str, what: str) -> AgentSettings:
    if choice is None:
        if value:
            raise _setting_error(f"The agent has no {what}, so `{value}` cannot be set.", "Leave it empty.")
        return AgentSettings()
    if (value or choice.default) not in choice.values:
        hint = f"{did_you_mean(value, choice.values)} Use one of: {', '.join(choice.values)}.".strip()
        raise _setting_error(f"Unknown {what} `{value}`.", hint)
    return choice.values[value or choice.default]


def _with_value(words: Sequence[str], value: str) -> list[str]:
    return [word.replace("{value}", value) for word in words]


def _setting_error(message: str, hint: str) -> AgentNotStarted:
    return AgentNotStarted("not-started", message, hint=hint)


def agent_environment(
    agent: Agent, job: Mapping[str, str], home: Path, temporary: Path, settings: Sequence[AgentSettings] = ()
) -> dict[str, str]:
    """Return the whole environment of an agent's process."""
    environment = {
        name: value for name, value in job.items() if _AGENT_VARIABLES.fullmatch(name) or name in agent.environment_from
    }
    environment |= {"HOME": str(home), "TMPDIR": str(temporary), **agent.environment}
    deliveries = ((name, agent.secret_delivery.get(name, Delivery())) for name in agent.required_secrets)
    environment |= {way.variable or name: job[name] for name, way in deliveries if job.get(name) and not way.file}
    for setting in settings:
        environment |= setting.environment
    return environment | direct_loopback(environment)


def install_environment(job: Mapping[str, str]) -> dict[str, str]:
    """Return the environment of npm: its own settings, and no secret of the job."""
    kept = {name: value for name, value in job.items() if _NPM_VARIABLES.fullmatch(name)}
    return kept | direct_loopback(kept)


def write_home(agent: Agent, files: Mapping[str, Any], job: Mapping[str, str], home: Path) -> None:
    """Write the files that the agent reads from its HOME, secrets included, readable only by its user."""
    texts = {path: content if isinstance(content, str) else json.dumps(content) for path, content in files.items()}
    secret_files = {name: way.file for name, way in agent.secret_delivery.items() if name in agent.required_secrets}
    texts |= {file: job[name] for name, file in secret_files.items() if file and job.get(name)}
    for name, text in texts.items():
        path = home / name
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with open(handle, "w", encoding="utf-8", newline="") as file:
            file.write(text)


def install_program(agent: Agent, root: Path, job: JobContext) -> str:
    """Install the agent's npm package below ``root`` if it has one; return the PATH on which its program is found.

    Raises AgentNotStarted: ``install-failed`` with the end of npm's output, or ``cancelled``.
    """
    path = job.environment.get("PATH", "")
    if agent.install is None:
        return path
    package = f"{agent.install.package}@{agent.install.version}"
    target = root / package.replace("/", "+")
    if not (target / "node_modules/.bin").is_dir():
        npm = shutil.which("npm", path=path)
        if npm is None:
            message = f"Cannot install {agent.install.package}: npm is not on the PATH."
            hint = "Set up Node before this step, for example with `actions/setup-node`."
            raise AgentNotStarted("install-failed", message, hint=hint)
        options = [] if agent.install.runs_scripts else ["--ignore-scripts"]
        _install([npm, "install", *options, package], target, job)
    return f"{target / 'node_modules/.bin'}:{path}"


def _install(words: Sequence[str], target: Path, job: JobContext) -> None:
    scratch = target.with_name(f".{target.name}.{secrets.token_hex(8)}")
    scratch.mkdir(parents=True)
    options = ["--prefix", str(scratch), "--no-audit", "--no-fund", "--loglevel=error"]
    program = Program([*words[:-1], *options, words[-1]], scratch, install_environment(job.environment))
    log = scratch / "stderr.log"
    try:
        end = run_program(program, job, stdout=scratch / "stdout.log", stderr=log, limit_seconds=_INSTALL_SECONDS)
        if end.error and end.error.kind == "cancelled":
            raise AgentNotStarted("cancelled", end.error.detail)
        if end.exit_code != 0:
            tail = " ".join(log.read_text("utf-8", "replace").split())[-_INSTALL_LOG_CHARS:]
            message = f"`npm install {words[-1]}` failed with exit code {end.exit_code}: {tail}"
            hint = "Check the version in the registry, and the network."
            raise AgentNotStarted("install-failed", message, hint=hint)
        try:
            scratch.rename(target)
        except OSError:  # another run may have installed the same in the meantime
            if not target.is_dir():
                raise
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


def find_program(word: str, path: str, directory: Path) -> str:
    """Return the path of a program. Raises AgentNotStarted, ``not-started``, if it does not exist."""
    found = shutil.which(str(directory / word) if "/" in word else word, path=path)
    if found is None:
        hint = "Install it in an earlier step, or add `install` to the agent's registry entry."
        raise AgentNotStarted("not-started", f"Program `{word}` not found.", hint=hint)
    return str(Path(found).absolute())


def check_sandbox(settings: Iterable[AgentSettings], agent: Program, private: Path, job: JobContext) -> None:
    """Try the agent's own sandbox with the rights of ``agent``, before it costs anything.

    Ubuntu denies user namespaces to programs without an AppArmor profile. On GitHub's own Linux runners, which only
    this job uses, accord allows them for the rest of the job; nowhere else does it change the machine. Source:
    openai/codex-action, pull request 77. ``private`` is a folder for the output. Raises AgentNotStarted:
    ``sandbox-unavailable`` if it still fails, or ``cancelled``.
    """
    words = next((setting.probe for setting in settings if setting.probe), [])
    if not words or sys.platform != "linux":
        return
    words = [find_program(words[0], agent.environment.get("PATH", ""), agent.directory), *words[1:]]
    program, log = replace(agent, words=words, stdin=None), private / "probe.log"
    quiet = replace(job, show=lambda _: None)

    def problem() -> str:
        end = run_program(program, quiet, stdout=private / "probe.out", stderr=log, limit_seconds=_PROBE_SECONDS)
        if end.error and end.error.kind == "cancelled":
            raise AgentNotStarted("cancelled", end.error.detail)
        said = log.read_text("utf-8", "replace").strip().splitlines() or [f"exit code {end.exit_code}"]
        return "" if end.exit_code == 0 else cut(end.error.detail if end.error else said[-1], _REASON_CHARS)

    found = problem()
    machine = job.environment.get("RUNNER_OS"), job.environment.get("RUNNER_ENVIRONMENT")
    if found and machine == ("Linux", "github-hosted"):
        job.show(f"accord: allowing user namespaces, because the agent's sandbox cannot start ({found})")
        path = job.environment.get("PATH", "")
        sudo = shutil.which("sudo", path=path)  # on GitHub's runners it needs no password
        command = [sudo, "-n", "--", "sysctl"] if sudo else [shutil.which("sysctl", path=path) or "sysctl"]
        for setting in _ALLOWING:
            with suppress(OSError, subprocess.TimeoutExpired):
                subprocess.run(  # noqa: S603 - a program of the runner, with words of accord
                    [*command, "-q", "-w", setting], env={"PATH": path}, capture_output=True, timeout=_SYSCTL_SECONDS
                )
        found = problem()
    if found:
        raise AgentNotStarted("sandbox-unavailable", found.removesuffix(".") + ".", hint=_SANDBOX_HINT)
