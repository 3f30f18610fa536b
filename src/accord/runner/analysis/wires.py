"""The two formats in which models are asked, as pure functions: a prompt to a request, a response to the model's words.

Chat completions: OpenAI API reference, "Create chat completion", with ``response_format`` of type ``json_schema`` and
``strict``; also spoken by most gateways and local servers. Anthropic messages: Claude API reference, "Messages", with
``output_config.format`` ("Structured outputs"), which constrains the answer itself. A forced tool would not: the API
promises that the tool is called, not that its input follows the schema, and refuses to force one on models that think.

Parameters that some model refuses (temperature, limits of the answer where the API needs none) are not sent.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

    from accord.runner.analysis.providers import Endpoint, Wire

ANTHROPIC_VERSION = "2023-06-01"
MOST_ANSWER_TOKENS = 4096
"""The messages API wants a limit. The answer is a line; the rest is for models that think before they write it."""

_MODEL = re.compile(r"[\w.:/@-]{1,100}")
_CODE = re.compile(r"[A-Za-z][\w.-]{1,60}")


@dataclass(frozen=True)
class Prompt:
    """What is asked: our instructions, and apart from them the evidence that others wrote."""

    instructions: str
    evidence: str


@dataclass(frozen=True)
class Request:
    """One POST, without the headers that let it in."""

    url: str
    body: dict[str, Any]


@dataclass(frozen=True)
class Reply:
    """The text that the model wrote, and the model as the provider names it (empty where it does not)."""

    text: str
    model: str


class Failed(Exception):
    """A try that gave no answer. ``retry_after`` is how many seconds later the same request may do better, if ever."""

    def __init__(self, reason: str, *, retry_after: float | None = None) -> None:
        super().__init__(reason)
        self.reason = reason
        self.retry_after = retry_after


@dataclass(frozen=True)
class _Format:
    path: str
    headers: Callable[[str], dict[str, str]]
    body: Callable[[str, Prompt, dict[str, Any]], dict[str, Any]]
    read: Callable[[dict[str, Any]], str]


def request_for(endpoint: Endpoint, prompt: Prompt, schema: dict[str, Any]) -> Request:
    """Write the request that asks for an answer of this schema."""
    wire = _FORMATS[endpoint.wire]
    url = endpoint.url if endpoint.url.endswith(wire.path) else endpoint.url + wire.path
    return Request(url, wire.body(endpoint.model, prompt, schema))


def key_headers(endpoint: Endpoint) -> dict[str, str]:
    """Return the headers that let a request in."""
    return _FORMATS[endpoint.wire].headers(endpoint.key)


def reply_in(wire: Wire, document: dict[str, Any]) -> Reply:
    """Take the model's words out of a response with status 200. Raises Failed where there are none, or not all."""
    try:
        text = _FORMATS[wire].read(document)
    except (KeyError, IndexError, TypeError, AttributeError):
        raise Failed("The response is not of the form that this provider's interface describes.") from None
    model = document.get("model")
    return Reply(text, model if isinstance(model, str) and _MODEL.fullmatch(model) else "")


def error_code(document: dict[str, Any]) -> str:
    """Return the short name of an error (``invalid_api_key``); its message may quote a key, so nothing of that."""
    error = document.get("error")
    fields = error if isinstance(error, dict) else {}
    names = (fields.get("code"), fields.get("type"))
    return next((name for name in names if isinstance(name, str) and _CODE.fullmatch(name)), "")


def _chat_body(model: str, prompt: Prompt, schema: dict[str, Any]) -> dict[str, Any]:
    messages = [{"role": "system", "content": prompt.instructions}, {"role": "user", "content": prompt.evidence}]
    enforced = {"name": "completed_tasks", "strict": True, "schema": schema}
    return {
        "model": model,
        "messages": messages,
        "response_format": {"type": "json_schema", "json_schema": enforced},
    }


def _chat_text(document: dict[str, Any]) -> str:
    choice = document["choices"][0]
    message, reason = choice["message"], choice.get("finish_reason")
    if message.get("refusal") or reason == "content_filter":
        raise Failed("The model refused to answer.")
    if reason == "length":
        raise Failed("The answer was cut at the model's limit of length.")
    return _text(message["content"])


def _messages_body(model: str, prompt: Prompt, schema: dict[str, Any]) -> dict[str, Any]:
    return {
        "model": model,
        "max_tokens": MOST_ANSWER_TOKENS,
        "system": prompt.instructions,
        "messages": [{"role": "user", "content": prompt.evidence}],
        "output_config": {"format": {"type": "json_schema", "schema": schema}},
    }


def _messages_text(document: dict[str, Any]) -> str:
    reason = document.get("stop_reason")
    if reason == "refusal":
        raise Failed("The model refused to answer.")
    if reason in ("max_tokens", "model_context_window_exceeded"):
        raise Failed("The answer was cut at the model's limit of length.")
    texts = [_text(block["text"]) for block in document["content"] if block["type"] == "text"]
    return "".join(texts)


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError
    return value


_FORMATS: dict[Wire, _Format] = {
    "chat-completions": _Format(
        "/chat/completions", lambda key: {"Authorization": f"Bearer {key}"}, _chat_body, _chat_text
    ),
    "anthropic-messages": _Format(
        "/v1/messages",
        lambda key: {"x-api-key": key, "anthropic-version": ANTHROPIC_VERSION},
        _messages_body,
        _messages_text,
    ),
}
