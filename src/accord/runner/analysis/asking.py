"""One request to a model: bounded in time and size, never redirected, and silent about the key.

The request runs on a thread of its own, because name resolution and headers that arrive byte by byte know no time
limit; a thread that is too late is left to end by itself.
"""

from __future__ import annotations

import json
import threading
from contextlib import closing
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Any

from accord.kernel.documents import read_object
from accord.kernel.errors import BrokenContract
from accord.runner.analysis.wires import Failed, Reply, error_code, key_headers, reply_in, request_for

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    import requests

    from accord.runner.analysis.providers import Endpoint
    from accord.runner.analysis.wires import Prompt, Request

LARGEST_RESPONSE = 1024 * 1024
PAUSE_SECONDS = 1.0
"""How long to wait before a second try where the provider does not say."""

_PASSING = frozenset({408, 500, 502, 503, 504, 529})
_CHUNK = 64 * 1024


def ask(endpoint: Endpoint, prompt: Prompt, schema: dict[str, Any], seconds: float) -> Reply:
    """Ask a model, and wait for its answer so many seconds at most. Raises Failed."""
    request = request_for(endpoint, prompt, schema)
    answers: SimpleQueue[Reply | Failed] = SimpleQueue()

    def work() -> None:
        try:
            answers.put(reply_in(endpoint.wire, _post(request, key_headers(endpoint), seconds)))
        except Failed as failed:
            answers.put(failed)
        except Exception as error:  # whatever it says may quote the key
            answers.put(_failure(error, seconds))

    threading.Thread(target=work, name="accord-ask", daemon=True).start()
    try:
        answer = answers.get(timeout=seconds)
    except Empty:
        raise _late(seconds) from None
    if isinstance(answer, Failed):
        raise answer
    return answer


def _post(request: Request, key: Mapping[str, str], seconds: float) -> dict[str, Any]:
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
            raise Failed(f"It redirects (HTTP {response.status_code}), which is not followed: the key stays here.")
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
            raise Failed(f"The response is larger than {LARGEST_RESPONSE // 1024} KiB.")
    return bytes(received)


def _document(body: bytes, status: int) -> dict[str, Any]:
    try:
        return read_object(body).value
    except BrokenContract:
        if status != 200:
            return {}
        raise Failed("The response is not one JSON object.") from None


def _refusal(response: requests.Response, document: dict[str, Any]) -> Failed:
    status, code = response.status_code, error_code(document)
    reason = f"HTTP {status}{f' ({code})' if code else ''}."
    if status != 429 and status not in _PASSING:
        return Failed(reason)
    return Failed(reason, retry_after=_retry_after(response.headers.get("Retry-After", "")))


def _retry_after(value: str) -> float:
    """Read a Retry-After: seconds or a date (RFC 9110, 10.2.3)."""
    if value.strip().isdecimal():
        return float(value)
    try:
        moment = parsedate_to_datetime(value)
        return max((moment - datetime.now(UTC)).total_seconds(), 0.0)
    except (TypeError, ValueError):
        return PAUSE_SECONDS


def _failure(error: Exception, seconds: float) -> Failed:
    """Say in our words what went wrong on the way."""
    import requests

    if isinstance(error, requests.exceptions.SSLError):
        return Failed("Its certificate is not accepted.")
    if isinstance(error, requests.exceptions.Timeout):
        return _late(seconds)
    if isinstance(error, (requests.exceptions.ConnectionError, requests.exceptions.ChunkedEncodingError)):
        if "timed out" in str(error).lower():
            return _late(seconds)
        return Failed("The connection failed or was lost.", retry_after=PAUSE_SECONDS)
    return Failed(f"The request could not be sent ({type(error).__name__}).")


def _late(seconds: float) -> Failed:
    return Failed(f"No answer within {seconds:.3g} s.")
