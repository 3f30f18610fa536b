"""Entries of the registry for a run, from files that no agent has written, and their credentials.

Credentials are checked before an agent starts: they are set and readable, and do not expire soon.
"""

from __future__ import annotations

import base64
import json
import os
from collections.abc import Iterator, Mapping
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from accord.agents import REGISTRY_PATH
from accord.agents.registry import Agent, Registry, shipped_registry
from accord.agents.registry_rules import registry_from
from accord.core.clock import timestamp
from accord.core.errors import AccordError, WrongUsage
from accord.git.trusted_files import TrustedFiles, trusted_files
from accord.runner.models import AgentNotStarted
from accord.runner.transcripts.lines import json_value

_SOON = timedelta(days=3)
_RENEW = "Log in again and store the new file in the secret."


def load_registry(files: TrustedFiles, named: Path | None = None) -> Registry:
    """Read the shipped registry, merged with the named one, or else with the repository's own if it has one.

    An agent's keys replace those of the shipped one. Raises BrokenContract with findings if the file breaks a rule,
    WrongUsage if it cannot be read.
    """
    path, reason = named or files.top / REGISTRY_PATH, "File not found"
    try:
        raw = files.read(path, is_named=named is not None)
        if raw is not None or not named:
            return registry_from(raw, path)
    except OSError as error:
        reason = str(error.strerror)
    raise WrongUsage(f"Cannot read the registry {path}: {reason}.", hint="Pass an existing file as `--registry`.")


def registry_at(directory: Path) -> Registry:
    """Return the registry of the checkout around a directory; the shipped one where its own cannot be read."""
    with suppress(AccordError, OSError):
        return load_registry(trusted_files(directory, os.environ))
    return shipped_registry()


def check_credentials(name: str, agent: Agent, job: Mapping[str, str]) -> None:
    """Raise AgentNotStarted for a secret of the agent: ``credential-missing``, or ``credential-invalid`` if unreadable.

    The CLIs ignore a login file that they cannot read, so only the provider's refusal would tell.
    """
    for secret, document in _login_files(agent, job):
        if not isinstance(document, dict):
            file = agent.secret_delivery[secret].file
            message = f"The secret {secret} of the agent `{name}` is not a JSON object, but it becomes the file {file}."
            hint = "Store the whole content of that file, from a machine where the agent is logged in."
            raise AgentNotStarted("credential-invalid", message, hint=hint)
    missing = [secret for secret in agent.required_secrets if not job.get(secret, "").strip()]
    is_any_enough = agent.required_secrets_mode == "any"
    if not missing or (is_any_enough and len(missing) < len(agent.required_secrets)):
        return
    raise AgentNotStarted(
        "credential-missing",
        f"The agent `{name}` needs {(' or ' if is_any_enough else ' and ').join(missing)}, which is not set.",
        hint="Add the secret to the repository, and pass it to the step under that name.",
    )


def expiry_warnings(agent: Agent, job: Mapping[str, str], now: datetime) -> list[str]:
    """Return a warning for each login file whose access token expires soon, or did."""
    found = []
    for secret, document in _login_files(agent, job):
        expiry = _expiry_of(document)
        if expiry is not None and expiry <= now + _SOON:
            verb = "expired" if expiry <= now else "expires"
            found.append(f"The access token in {secret} {verb} at {timestamp(expiry)}. {_RENEW}")
    return found


def _login_files(agent: Agent, job: Mapping[str, str]) -> Iterator[tuple[str, Any]]:
    """Yield the name and the document, None if it is invalid, of each secret that is set and becomes a JSON file."""
    for name in agent.required_secrets:
        delivery = agent.secret_delivery.get(name)
        text = job.get(name, "").strip()
        if text and delivery and (delivery.file or "").endswith(".json"):
            yield name, json_value(text.encode("utf-8", "replace"))


def _expiry_of(document: Any) -> datetime | None:
    """Return when the access token of a login file expires; None for a token that does not say so."""
    tokens = document.get("tokens") if isinstance(document, dict) else None
    token = tokens.get("access_token") if isinstance(tokens, dict) else None
    parts = token.split(".") if isinstance(token, str) else []
    if len(parts) != 3:
        return None
    try:
        claims = json.loads(base64.urlsafe_b64decode(parts[1] + "=" * (-len(parts[1]) % 4)))
        return datetime.fromtimestamp(claims["exp"], UTC)
    except (ValueError, TypeError, KeyError, OverflowError, OSError, RecursionError):
        return None
