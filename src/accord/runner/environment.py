"""What an agent sees of the job: where programs are, its own secrets, and nothing by which it could act as the job.

A variable that is not named here or in the agent's entry of the registry does not reach it. HOME and TMPDIR are
folders of its own that vanish after the run.
"""

from __future__ import annotations

import json
import os
import re
from typing import TYPE_CHECKING

from accord.runner.failures import NotRun

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from accord.runner.registry_models import Agent, Setting

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
    agent: Agent, job: Mapping[str, str], home: Path, temporary: Path, settings: tuple[Setting, ...] = ()
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
    raise NotRun(
        "credential-missing",
        f"The agent {name} needs {named}, which the environment does not hold.",
        mend="Add the secret to the repository, and pass it to the step under that name.",
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
