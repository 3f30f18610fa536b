"""Who can be asked which tasks are done: a table of providers, and what the environment says about each.

Another endpoint that speaks one of the two formats is one more entry of ``PROVIDERS``.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

from accord.core.errors import WrongUsage
from accord.core.urls import is_web_address

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

Wire = Literal["chat-completions", "anthropic-messages"]
"""How a provider is spoken to; see ``accord.runner.analysis.requests``."""


@dataclass(frozen=True)
class Provider:
    """One entry: which variables say where it is, with which key and which model, and what holds without them.

    The first of ``key_variables`` that is set counts. ``without_url`` is said where no address is known.
    """

    name: str
    wire: Wire
    url_variable: str
    key_variables: tuple[str, ...]
    model_variable: str
    model: str
    url: str = ""
    without_url: str = ""


PROVIDERS = (
    Provider(
        name="github-models",
        wire="chat-completions",
        url_variable="ACCORD_GITHUB_MODELS_URL",
        key_variables=("GITHUB_TOKEN",),
        model_variable="ACCORD_GITHUB_MODELS_MODEL",
        model="gpt-4o",
        without_url="GitHub Models was retired on 2026-07-30, and ACCORD_GITHUB_MODELS_URL names no other endpoint.",
    ),
    Provider(
        name="openai",
        wire="chat-completions",
        url_variable="OPENAI_BASE_URL",
        key_variables=("OPENAI_API_KEY",),
        model_variable="ACCORD_OPENAI_MODEL",
        model="gpt-6-luna",
        url="https://api.openai.com/v1",
    ),
    Provider(
        name="anthropic",
        wire="anthropic-messages",
        url_variable="ANTHROPIC_BASE_URL",
        key_variables=("CLAUDE_API_STRANSKE", "ANTHROPIC_API_KEY"),
        model_variable="ACCORD_ANTHROPIC_MODEL",
        model="claude-haiku-4-5",
        url="https://api.anthropic.com",
    ),
)

REGEX_FALLBACK = "regex-fallback"
ALL = (*(provider.name for provider in PROVIDERS), REGEX_FALLBACK)
"""All providers, in the order in which they are asked (runner output contract, "Provider priority")."""


class Unavailable(Exception):
    """A provider that cannot be asked; the text says why."""


@dataclass(frozen=True)
class Endpoint:
    """Where to ask, which model, with which key. The key is never printed."""

    wire: Wire
    url: str
    model: str
    key: str = field(repr=False)


def chosen(names: Sequence[str]) -> list[Provider | None]:
    """Look providers up by name, in this order; None is the fallback, which asks nobody. Raises WrongUsage."""
    table = {provider.name: provider for provider in PROVIDERS}
    unknown = [name for name in names if name not in ALL]
    if unknown:
        raise WrongUsage(f"No provider is called {unknown[0]}.", hint=f"Choose from {', '.join(ALL)}.")
    return [table.get(name) for name in dict.fromkeys(names)]


def endpoint(provider: Provider, environment: Mapping[str, str]) -> Endpoint:
    """Say how to reach a provider. Raises Unavailable."""
    url = environment.get(provider.url_variable, "").strip() or provider.url
    if not url:
        raise Unavailable(provider.without_url)
    if not is_web_address(url):
        raise Unavailable(f"{provider.url_variable} is no http or https address.")
    name = next((name for name in provider.key_variables if environment.get(name, "").strip()), None)
    if name is None:
        raise Unavailable(f"{' or '.join(provider.key_variables)} is not set.")
    key = environment[name].strip()
    if not (key.isascii() and key.isprintable()) or " " in key:
        raise Unavailable(f"{name} holds characters that are in no key.")
    return Endpoint(provider.wire, url.rstrip("/"), environment.get(provider.model_variable) or provider.model, key)
