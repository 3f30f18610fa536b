"""The words that start an agent, out of its entry of the registry and what the run asks for. Pure."""

from __future__ import annotations

import json
import os
import re
import secrets
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from accord.runner.classify import AgentNotStarted
from accord.runner.process import Program, run_program
from accord.runner.prompt import as_argument
from accord.runner.registry_rules import PLACE

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from accord.runner.process import StopSignals, Watcher
    from accord.runner.registry import Agent, AgentSettings, Choice, Install
    from accord.text.redaction import Redactor


@dataclass(frozen=True)
class CommandInputs:
    """What one run puts into the places of a command; empty or None is what is not asked for."""

    prompt: str
    prompt_file: Path
    sandbox: str = ""
    safety_strategy: str = ""
    model: str = ""
    result_schema: str = ""
    result_schema_file: Path | None = None
    final_message_file: Path | None = None
    command: Sequence[str] = ()


def command_line(agent: Agent, asked: CommandInputs) -> list[str]:
    """Fill the places of a command. Raises NotRun for what this agent cannot be asked for."""
    words = {
        "sandbox": setting_of(agent.sandbox, asked.sandbox, "sandbox mode").arguments,
        "safety_strategy": setting_of(agent.safety_strategy, asked.safety_strategy, "safety strategy").arguments,
        "model": _model(agent, asked.model),
        "result_schema": _result_schema(agent, asked),
        "final_message": _with_value(agent.final_message, str(asked.final_message_file or "")),
        "arguments": agent.arguments,
        "command": _command(agent, asked.command),
        "prompt": [as_argument(asked.prompt, "prompt") if agent.prompt == "argument" else str(asked.prompt_file)],
    }
    line: list[str] = []
    for word in agent.command:
        place = PLACE.fullmatch(word)
        line += words[place[1]] if place else [PLACE.sub(lambda hit: " ".join(words[hit[1]]), word)]
    return line


def setting_of(choice: Choice | None, value: str, what: str) -> AgentSettings:
    """Return what a value of a choice comes to. Raises NotRun with the values that there are."""
    from accord.runner.registry import AgentSettings

    if choice is None:
        if value:
            raise _unknown(f'The agent has no {what}, so "{value}" means nothing to it.', "Leave it empty.")
        return AgentSettings()
    if (value or choice.default) not in choice.values:
        known = ", ".join(choice.values)
        raise _unknown(f'"{value}" is no {what} of this agent.', f"Choose one of: {known}.")
    return choice.values[value or choice.default]


def _model(agent: Agent, model: str) -> list[str]:
    model = model or agent.default_model
    if not model:
        return []
    if not agent.model:
        raise _unknown(f'The agent takes no model, so "{model}" means nothing to it.', "Leave it empty.")
    if model.startswith("-") or not model.isprintable():
        raise _unknown(f'"{model}" is no name of a model.', "Write it as its provider does.")
    return _with_value(agent.model, model)


def _result_schema(agent: Agent, asked: CommandInputs) -> list[str]:
    """An agent that cannot be given a schema must have it in its prompt; the result is validated all the same."""
    if not asked.result_schema or agent.result_schema is None:
        return []
    if agent.result_schema.passed_as == "file":
        return _with_value(agent.result_schema.arguments, str(asked.result_schema_file))
    return _with_value(agent.result_schema.arguments, as_argument(asked.result_schema, "result schema"))


def _command(agent: Agent, command: Sequence[str]) -> list[str]:
    takes_one = any("{command}" in word for word in agent.command)
    if takes_one and not command:
        raise _unknown("The agent runs any command, and none is given.", "Pass --command.")
    if command and not takes_one:
        raise _unknown("The agent has a command of its own.", 'Leave --command out, or name the agent "command".')
    return list(command)


def _with_value(words: Sequence[str], value: str) -> list[str]:
    return [word.replace("{value}", value) for word in words]


def _unknown(message: str, hint: str) -> AgentNotStarted:
    return AgentNotStarted("not-started", message, hint=hint)


_SEEN = re.compile(
    r"PATH|LANG|LANGUAGE|LC_[A-Z]+|TZ|TERM|COLUMNS|SHELL|USER|LOGNAME|CI"
    r"|(?i:https?_proxy|no_proxy|all_proxy)|SSL_CERT_(FILE|DIR)|NODE_EXTRA_CA_CERTS|REQUESTS_CA_BUNDLE|CURL_CA_BUNDLE"
    r"|JAVA_HOME\w*|GOROOT\w*|DOTNET_ROOT|ANDROID_(HOME|SDK_ROOT|NDK\w*)|pythonLocation|Python3?_ROOT_DIR"
    r"|PKG_CONFIG_PATH|LD_LIBRARY_PATH|VIRTUAL_ENV|RUSTUP_HOME|CARGO_HOME|RUNNER_(OS|ARCH|TOOL_CACHE)"
)
"""The machine: paths, language, proxies, certificates, tool chains. None is secret but a proxy with a password."""

_NPM = re.compile(
    r"PATH|LANG|LC_[A-Z]+|HOME|(?i:npm_config_\w+|https?_proxy|no_proxy)|NODE_EXTRA_CA_CERTS|SSL_CERT_FILE"
)


def agent_environment(
    agent: Agent, job: Mapping[str, str], home: Path, temporary: Path, settings: tuple[AgentSettings, ...] = ()
) -> dict[str, str]:
    """Return the whole environment of an agent's process."""
    environment = {
        name: value for name, value in job.items() if _SEEN.fullmatch(name) or name in agent.environment_from
    }
    environment |= {"HOME": str(home), "TMPDIR": str(temporary), **agent.environment}
    for name in agent.required_secrets:
        delivery = agent.secret_delivery.get(name)
        if job.get(name) and not (delivery and delivery.file):
            environment[(delivery and delivery.variable) or name] = job[name]
    for setting in settings:
        environment |= setting.environment
    return environment


def install_environment(job: Mapping[str, str]) -> dict[str, str]:
    """Return the environment of the installer: npm's own settings, and no secret of the job."""
    return {name: value for name, value in job.items() if _NPM.fullmatch(name)}


def check_credentials(name: str, agent: Agent, job: Mapping[str, str]) -> None:
    """Raise NotRun, ``credential-missing``, when the agent lacks the secrets that it needs."""
    missing = [secret for secret in agent.required_secrets if not job.get(secret, "").strip()]
    some = agent.required_secrets_mode == "any" and len(missing) < len(agent.required_secrets)
    if not missing or some:
        return
    named = " or ".join(missing) if agent.required_secrets_mode == "any" else " and ".join(missing)
    raise AgentNotStarted(
        "credential-missing",
        f"The agent {name} needs {named}, which the environment does not hold.",
        hint="Add the secret to the repository, and pass it to the step under that name.",
    )


def furnish_home(agent: Agent, job: Mapping[str, str], home: Path) -> None:
    """Write the files that the agent reads from its HOME, secrets among them, readable by its user alone."""
    for path, content in agent.home_files.items():
        _write_private(home / path, content if isinstance(content, str) else json.dumps(content))
    for name in agent.required_secrets:
        delivery = agent.secret_delivery.get(name)
        if job.get(name) and delivery and delivery.file:
            _write_private(home / delivery.file, job[name])


def _write_private(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w", encoding="utf-8", newline="") as file:
        file.write(text)


_LIMIT_SECONDS = 600
_SAID_CHARS = 1000


def programs_of(
    agent: Agent, root: Path, job: Mapping[str, str], *, redactor: Redactor, show: Watcher, told: StopSignals
) -> str:
    """Return the PATH by which the agent's program is found; what must be installed for it, is, below ``root``.

    Raises NotRun: ``install-failed`` with what the installer said, or ``cancelled``.
    """
    path = job.get("PATH", "")
    if agent.install is None:
        return path
    target = root / f"{agent.install.package.replace('/', '+')}@{agent.install.version}"
    programs = target / "node_modules/.bin"
    if not programs.is_dir():
        _install(agent.install, target, job, redactor=redactor, show=show, told=told)
    return f"{programs}:{path}"


def _install(
    install: Install, target: Path, job: Mapping[str, str], *, redactor: Redactor, show: Watcher, told: StopSignals
) -> None:
    npm = shutil.which("npm", path=job.get("PATH", ""))
    if npm is None:
        message = f"{install.package} cannot be installed: npm is not on the PATH."
        raise AgentNotStarted(
            "install-failed", message, hint="Set up Node before this step, for example with actions/setup-node."
        )
    beside = target.with_name(f".{target.name}.{secrets.token_hex(8)}")
    beside.mkdir(parents=True)
    words = [npm, "install", "--prefix", str(beside), "--no-audit", "--no-fund", "--loglevel=error"]
    words += [] if install.runs_scripts else ["--ignore-scripts"]
    words += [f"{install.package}@{install.version}"]
    said = beside / "said.log"
    try:
        end = run_program(
            Program(words, beside, install_environment(job)),
            stdout=beside / "output.log",
            stderr=said,
            redactor=redactor,
            show=show,
            told=told,
            limit_seconds=_LIMIT_SECONDS,
        )
        if end.own and end.own.kind == "cancelled":
            raise AgentNotStarted("cancelled", end.own.detail)
        if end.exit_code:
            tail = " ".join(said.read_text("utf-8", "replace").split())[-_SAID_CHARS:]
            message = f"Installing {install.package}@{install.version} failed ({end.exit_code}): {tail}"
            raise AgentNotStarted("install-failed", message, hint="Check the version in the registry, and the network.")
        _put(beside, target)
    finally:
        shutil.rmtree(beside, ignore_errors=True)


def _put(beside: Path, target: Path) -> None:
    """Put the finished folder in place; another run may have been faster, which is as good."""
    try:
        beside.rename(target)
    except OSError:
        if not target.is_dir():
            raise


def find_program(word: str, path: str, directory: Path) -> str:
    """Return the path of a program. Raises NotRun, ``not-started``, when it is not there."""
    found = shutil.which(str(directory / word) if "/" in word else word, path=path)
    if found is None:
        hint = "Install it in an earlier step, or let the agent's entry of the registry install it."
        raise AgentNotStarted("not-started", f'There is no program "{word}".', hint=hint)
    return str(Path(found).absolute())
