"""Who can be asked which tasks are done: a table of providers, and what the environment says about each.

Another endpoint that speaks one of the two formats is one more entry of ``PROVIDERS``.
"""

from __future__ import annotations

import json
import re
import threading
from contextlib import closing
from dataclasses import dataclass, field
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Any, Literal

from accord.core.documents import read_object
from accord.core.errors import BrokenContract, WrongUsage
from accord.core.urls import is_web_address

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    import requests


Wire = Literal["chat-completions", "anthropic-messages"]
"""How a provider is spoken to; see ``accord.runner.analysis.providers``."""


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
class ProviderRequest:
    """One POST, without the headers that let it in."""

    url: str
    body: dict[str, Any]


@dataclass(frozen=True)
class ProviderReply:
    """The text that the model wrote, and the model as the provider names it (empty where it does not)."""

    text: str
    model: str


class ProviderFailed(Exception):
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


def request_for(endpoint: Endpoint, prompt: Prompt, schema: dict[str, Any]) -> ProviderRequest:
    """Write the request that asks for an answer of this schema."""
    wire = _FORMATS[endpoint.wire]
    url = endpoint.url if endpoint.url.endswith(wire.path) else endpoint.url + wire.path
    return ProviderRequest(url, wire.body(endpoint.model, prompt, schema))


def key_headers(endpoint: Endpoint) -> dict[str, str]:
    """Return the headers that let a request in."""
    return _FORMATS[endpoint.wire].headers(endpoint.key)


def reply_in(wire: Wire, document: dict[str, Any]) -> ProviderReply:
    """Take the model's words out of a response with status 200. Raises Failed where there are none, or not all."""
    try:
        text = _FORMATS[wire].read(document)
    except (KeyError, IndexError, TypeError, AttributeError):
        raise ProviderFailed("The response is not of the form that this provider's interface describes.") from None
    model = document.get("model")
    return ProviderReply(text, model if isinstance(model, str) and _MODEL.fullmatch(model) else "")


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
        raise ProviderFailed("The model refused to answer.")
    if reason == "length":
        raise ProviderFailed("The answer was cut at the model's limit of length.")
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
        raise ProviderFailed("The model refused to answer.")
    if reason in ("max_tokens", "model_context_window_exceeded"):
        raise ProviderFailed("The answer was cut at the model's limit of length.")
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


LARGEST_RESPONSE = 1024 * 1024
PAUSE_SECONDS = 1.0
"""How long to wait before a second try where the provider does not say."""

_PASSING = frozenset({408, 500, 502, 503, 504, 529})
_CHUNK = 64 * 1024


def ask(endpoint: Endpoint, prompt: Prompt, schema: dict[str, Any], seconds: float) -> ProviderReply:
    """Ask a model, and wait for its answer so many seconds at most. Raises Failed."""
    request = request_for(endpoint, prompt, schema)
    answers: SimpleQueue[ProviderReply | ProviderFailed] = SimpleQueue()

    def work() -> None:
        try:
            answers.put(reply_in(endpoint.wire, _post(request, key_headers(endpoint), seconds)))
        except ProviderFailed as failed:
            answers.put(failed)
        except Exception as error:  # whatever it says may quote the key
            answers.put(_failure(error, seconds))

    threading.Thread(target=work, name="accord-ask", daemon=True).start()
    try:
        answer = answers.get(timeout=seconds)
    except Empty:
        raise _late(seconds) from None
    if isinstance(answer, ProviderFailed):
        raise answer
    return answer


def _post(request: ProviderRequest, key: Mapping[str, str], seconds: float) -> dict[str, Any]:
    import requests

    response = requests.post(
        request.url,
        data=json.dumps(request.body).encode(),
        headers={"Content-Type": "application/json", "Accept": "application/json", "Accept-Encoding": "identity"},
        auth=_with(key),  # an auth of our own keeps ~/.netrc out
        timeout=seconds,
        allow_redirects=False,
        stream=True,
    )
    with closing(response):
        if 300 <= response.status_code < 400:
            raise ProviderFailed(
                f"It redirects (HTTP {response.status_code}), which is not followed: the key stays here."
            )
        document = _document(_body(response), response.status_code)
        if response.status_code != 200:
            raise _refusal(response, document)
        return document


def _with(key: Mapping[str, str]) -> Callable[[requests.PreparedRequest], requests.PreparedRequest]:
    def add(prepared: requests.PreparedRequest) -> requests.PreparedRequest:
        prepared.headers.update(key)
        return prepared

    return add


def _body(response: requests.Response) -> bytes:
    received = bytearray()
    for chunk in response.iter_content(_CHUNK):
        received += chunk
        if len(received) > LARGEST_RESPONSE:
            raise ProviderFailed(f"The response is larger than {LARGEST_RESPONSE // 1024} KiB.")
    return bytes(received)


def _document(body: bytes, status: int) -> dict[str, Any]:
    try:
        return read_object(body).value
    except BrokenContract:
        if status != 200:
            return {}
        raise ProviderFailed("The response is not one JSON object.") from None


def _refusal(response: requests.Response, document: dict[str, Any]) -> ProviderFailed:
    status, code = response.status_code, error_code(document)
    reason = f"HTTP {status}{f' ({code})' if code else ''}."
    if status != 429 and status not in _PASSING:
        return ProviderFailed(reason)
    return ProviderFailed(reason, retry_after=_retry_after(response.headers.get("Retry-After", "")))


def _retry_after(value: str) -> float:
    """Read a Retry-After: seconds or a date (RFC 9110, 10.2.3)."""
    if value.strip().isdecimal():
        return float(value)
    try:
        moment = parsedate_to_datetime(value)
        return max((moment - datetime.now(UTC)).total_seconds(), 0.0)
    except (TypeError, ValueError):
        return PAUSE_SECONDS


def _failure(error: Exception, seconds: float) -> ProviderFailed:
    """Say in our words what went wrong on the way."""
    import requests

    if isinstance(error, requests.exceptions.SSLError):
        return ProviderFailed("Its certificate is not accepted.")
    if isinstance(error, requests.exceptions.Timeout):
        return _late(seconds)
    if isinstance(error, (requests.exceptions.ConnectionError, requests.exceptions.ChunkedEncodingError)):
        if "timed out" in str(error).lower():
            return _late(seconds)
        return ProviderFailed("The connection failed or was lost.", retry_after=PAUSE_SECONDS)
    return ProviderFailed(f"The request could not be sent ({type(error).__name__}).")


def _late(seconds: float) -> ProviderFailed:
    return ProviderFailed(f"No answer within {seconds:.3g} s.")
