"""Providers of models: how to reach them, and one request to one of them.

A request is bounded in time and size, never redirected, and never prints the key. It runs on its own thread, because
name resolution and headers that arrive byte by byte ignore timeouts; a late thread is left to end by itself.
"""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Mapping, Sequence
from dataclasses import field
from queue import Empty, SimpleQueue
from typing import Any

from accord.agents.providers import ALL, PROVIDERS, Provider, Wire
from accord.core.documents import read_object
from accord.core.errors import AccordError, BrokenContract, WrongUsage
from accord.core.frozen import Frozen
from accord.core.log import log
from accord.core.suggest import did_you_mean
from accord.text.addresses import is_web_address

ANTHROPIC_VERSION = "2023-06-01"
MOST_ANSWER_TOKENS = 4096
"""The messages API requires a limit. The answer is one line; the rest is for models that think first."""

LARGEST_RESPONSE = 1024 * 1024
_CHUNK = 64 * 1024
_MODEL = re.compile(r"[\w.:/@-]{1,100}")
_CODE = re.compile(r"[A-Za-z][\w.-]{1,60}")


class Unavailable(Exception):
    """A provider that cannot be used; the text says why."""


class ProviderFailed(Exception):
    """An attempt without an answer."""


class TaskPrompt(Frozen):
    """accord's instructions, the untrusted evidence, and the tasks in it, in the body's wording."""

    instructions: str
    evidence: str
    tasks: tuple[str, ...]


class Endpoint(Frozen):
    """The URL, model and key of a provider. The key is never printed."""

    wire: Wire
    url: str
    model: str
    key: str = field(repr=False)


def select_providers(names: Sequence[str]) -> list[Provider | None]:
    """Return the providers of these names, in this order; None is the fallback. Raises WrongUsage."""
    table = {provider.name: provider for provider in PROVIDERS}
    for name in names:
        if name not in ALL:
            hint = f"{did_you_mean(name, ALL)} Choose from: {', '.join(ALL)}.".strip()
            raise WrongUsage(f"Unknown provider `{name}`.", hint=hint)
    return [table.get(name) for name in dict.fromkeys(names)]


def endpoint_of(provider: Provider, environment: Mapping[str, str]) -> Endpoint:
    """Return the provider's endpoint. Raises Unavailable.

    ``ACCORD_VARS_NAME`` is the repository's variable of a name, which counts before that of the machine if it is set.
    """
    own = {name: value for name, value in environment.items() if name.startswith("ACCORD_VARS_") and value.strip()}
    environment = {**environment, **{name.removeprefix("ACCORD_VARS_"): value for name, value in own.items()}}
    url = environment.get(provider.url_variable, "").strip() or provider.url
    if not url:
        raise Unavailable(provider.without_url)
    if not is_web_address(url):
        raise Unavailable(f"{provider.url_variable} is not an http or https URL.")
    name = next((name for name in provider.key_variables if environment.get(name, "").strip()), None)
    if name is None:
        raise Unavailable(f"{' or '.join(provider.key_variables)} is not set.")
    key = environment[name].strip()
    if not (key.isascii() and key.isprintable()) or " " in key:
        raise Unavailable(f"{name} contains characters that a key cannot have. Set it again without them.")
    model = environment.get(f"ACCORD_{provider.name.replace('-', '_').upper()}_MODEL") or provider.model
    return Endpoint(provider.wire, url.rstrip("/"), model, key)


def request_answer(endpoint: Endpoint, prompt: TaskPrompt, schema: dict[str, Any], seconds: float) -> tuple[str, str]:
    """Ask a model for an answer of this schema within the time; return as ``reply_in``. Raises ProviderFailed."""
    answers: SimpleQueue[tuple[str, str] | ProviderFailed] = SimpleQueue()

    def work() -> None:
        try:
            answers.put(reply_in(endpoint.wire, _post(endpoint, prompt, schema, seconds)))
        except ProviderFailed as failed:
            answers.put(failed)
        except Exception as error:  # its message may quote the key
            answers.put(_failure_of(error, seconds))

    threading.Thread(target=work, name="accord-ask", daemon=True).start()
    try:
        answer = answers.get(timeout=seconds)
    except Empty as error:
        raise _failure_of(error, seconds) from None
    if isinstance(answer, ProviderFailed):
        raise answer
    return answer


def _post(endpoint: Endpoint, prompt: TaskPrompt, schema: dict[str, Any], seconds: float) -> dict[str, Any]:
    from accord.core.connections import session_for

    path, headers, body = _request(endpoint, prompt, schema)
    plain = {"Content-Type": "application/json", "Accept": "application/json", "Accept-Encoding": "identity"}
    with (
        session_for(endpoint.url) as session,
        session.post(
            endpoint.url if endpoint.url.endswith(path) else endpoint.url + path,
            data=json.dumps(body).encode(),
            headers=plain | headers,
            timeout=seconds,
            allow_redirects=False,
            stream=True,
        ) as response,
    ):
        status = response.status_code
        log("analysis", "POST %s: %d", endpoint.url, status)
        if 300 <= status < 400:
            raise ProviderFailed(f"The provider redirects (HTTP {status}). Redirects are not followed with a key.")
        received = bytearray()
        for chunk in response.iter_content(_CHUNK):
            received += chunk
            if len(received) > LARGEST_RESPONSE:
                raise ProviderFailed(f"The response is larger than {LARGEST_RESPONSE // 1024} KiB.")
    document = _document(bytes(received), status)
    if status == 200:
        return document
    error = document.get("error")  # with a short name (``invalid_api_key``), and a message that may quote a key
    names = [error.get("code"), error.get("type")] if isinstance(error, dict) else []
    code = next((f" ({name})" for name in names if isinstance(name, str) and _CODE.fullmatch(name)), "")
    raise ProviderFailed(f"HTTP {status}{code}.")


def _document(body: bytes, status: int) -> dict[str, Any]:
    try:
        return read_object(body).value
    except BrokenContract:
        if status != 200:
            return {}
        raise ProviderFailed("The response is not one JSON object.") from None


def _failure_of(error: Exception, seconds: float) -> ProviderFailed:
    import requests

    from accord.core.connections import ProxyDown

    if isinstance(error, AccordError):
        return ProviderFailed(str(error))
    if isinstance(error, ProxyDown):
        return ProviderFailed(f"The request failed: {error}. {error.hint}")
    is_lost = isinstance(error, (requests.exceptions.ConnectionError, requests.exceptions.ChunkedEncodingError))
    if isinstance(error, (Empty, requests.exceptions.Timeout)) or (is_lost and "timed out" in str(error).lower()):
        return ProviderFailed(f"No answer within {seconds:.3g} s.")
    if is_lost:
        return ProviderFailed("The connection failed or was lost.")
    return ProviderFailed(f"The request could not be sent ({type(error).__name__}).")


def reply_in(wire: Wire, document: dict[str, Any]) -> tuple[str, str]:
    """Return the text and, if named, the model of a response. Raises ProviderFailed without a whole text."""
    try:
        is_chat = wire == "chat-completions"
        choice = document["choices"][0] if is_chat else document
        reason = choice.get("finish_reason" if is_chat else "stop_reason")
        if (is_chat and choice["message"].get("refusal")) or reason in ("content_filter", "refusal"):
            raise ProviderFailed("The model refused to answer.")
        if reason in ("length", "max_tokens", "model_context_window_exceeded"):
            raise ProviderFailed("The answer was cut at the model's limit of length.")
        parts = [{"type": "text", "text": choice["message"]["content"]}] if is_chat else choice["content"]
        text = "".join(part["text"] for part in parts if part["type"] == "text")
    except (KeyError, IndexError, TypeError, AttributeError):
        raise ProviderFailed("The response is not of the form that the provider documents.") from None
    model = document.get("model")
    return text, model if isinstance(model, str) and _MODEL.fullmatch(model) else ""


def _request(endpoint: Endpoint, prompt: TaskPrompt, schema: dict[str, Any]) -> tuple[str, dict[str, str], Any]:
    question = {"role": "user", "content": prompt.evidence}
    if endpoint.wire == "anthropic-messages":
        headers = {"x-api-key": endpoint.key, "anthropic-version": ANTHROPIC_VERSION}
        enforced = {"output_config": {"format": {"type": "json_schema", "schema": schema}}}
        body = {"max_tokens": MOST_ANSWER_TOKENS, "system": prompt.instructions, "messages": [question], **enforced}
        return "/v1/messages", headers, {"model": endpoint.model, **body}
    named = {"name": "completed_tasks", "strict": True, "schema": schema}
    return (
        "/chat/completions",
        {"Authorization": f"Bearer {endpoint.key}"},
        {
            "model": endpoint.model,
            "messages": [{"role": "system", "content": prompt.instructions}, question],
            "response_format": {"type": "json_schema", "json_schema": named},
        },
    )
