"""The formats that agents print, and the providers of models that task analysis asks.

An endpoint that speaks one of the two wire formats is one more provider.
"""

from __future__ import annotations

from typing import Literal, get_args

from accord.core.frozen import Frozen

Codec = Literal["codex", "claude", "gemini", "plain"]
"""The formats in which agents print what they do; ``accord.runner.transcripts`` reads them."""

STRUCTURED: tuple[str, ...] = get_args(Codec)[:-1]
"""The formats with events; anything else is plain text."""

Wire = Literal["chat-completions", "anthropic-messages"]
"""The format of a provider's requests and responses."""


class Provider(Frozen):
    """A provider, the variables for its URL and key, and its default model; ``ACCORD_<NAME>_MODEL`` names another."""

    name: str
    wire: Wire
    url_variable: str
    key_variables: tuple[str, ...]  # the first that is set counts
    model: str
    url: str = ""
    without_url: str = ""  # the reason to skip it without a URL


PROVIDERS = (
    Provider(
        name="github-models",
        wire="chat-completions",
        url_variable="ACCORD_GITHUB_MODELS_URL",
        key_variables=("GITHUB_TOKEN",),
        model="gpt-4o",
        without_url="GitHub Models was retired on 2026-07-30, and ACCORD_GITHUB_MODELS_URL is not set.",
    ),
    Provider(
        name="openai",
        wire="chat-completions",
        url_variable="OPENAI_BASE_URL",
        key_variables=("OPENAI_API_KEY",),
        model="gpt-6-luna",
        url="https://api.openai.com/v1",
    ),
    Provider(
        name="anthropic",
        wire="anthropic-messages",
        url_variable="ANTHROPIC_BASE_URL",
        key_variables=("CLAUDE_API_STRANSKE", "ANTHROPIC_API_KEY"),
        model="claude-haiku-4-5",
        url="https://api.anthropic.com",
    ),
)

REGEX_FALLBACK = "regex-fallback"
ALL = (*(provider.name for provider in PROVIDERS), REGEX_FALLBACK)
"""All providers in their order (runner output contract, "Provider priority")."""
