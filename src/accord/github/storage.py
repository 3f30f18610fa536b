"""What GitHub hands out by redirect: the address is the right to read, holds for a minute, and gets no token."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import urlsplit

from accord.github.policy import TRIES, backoff
from accord.github.transport import TIMEOUT_SECONDS
from accord.kernel.errors import Refused, Stopped

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from accord.kernel.clock import Clock

_CHUNK_BYTES = 1 << 16


class Stored(NamedTuple):
    """Something in the storage: what to call it in a sentence, how to ask for its address, and the API that says it."""

    name: str
    place: Callable[[], str]
    api_url: str


def fetch(stored: Stored, take: Callable[[int, Iterator[bytes]], str], clock: Clock) -> None:
    """Fetch until ``take`` has what it wants: given a status and the content piece by piece, it returns no problem.

    The address is asked for anew at each try, as it soon expires. Raises Refused for one that is less safe than the
    API's own, Stopped when the storage does not answer.
    """
    problem = ""
    for tries in range(1, TRIES + 1):
        problem = _tried(stored, take)
        if not problem:
            return
        if tries < TRIES:
            clock.sleep(backoff(tries))
    raise Stopped(
        f"{stored.name} could not be fetched in {TRIES} tries ({problem}).",
        mend="Run the same command again; nothing is kept of what was fetched in part.",
    )


def _tried(stored: Stored, take: Callable[[int, Iterator[bytes]], str]) -> str:
    """Fetch once; return what went wrong, if anything did. An auth of its own keeps out what ~/.netrc may hold."""
    import requests

    place = stored.place()
    if urlsplit(place).scheme not in {"https", urlsplit(stored.api_url).scheme}:
        raise Refused(
            f"{stored.name} is not where it can be fetched safely: the address has no https.",
            mend="Check what stands between here and GitHub.",
        )
    try:
        with requests.get(
            place, auth=_as_nobody, stream=True, timeout=TIMEOUT_SECONDS, allow_redirects=False
        ) as answer:
            return take(answer.status_code, answer.iter_content(_CHUNK_BYTES))
    except requests.exceptions.RequestException as error:
        return type(error).__name__


def read_end(stored: Stored, most: int, clock: Clock) -> bytes:
    """Read the last ``most`` bytes of a text; empty where the storage has nothing (404, 410). Raises as ``fetch``."""
    kept = bytearray()

    def take(status: int, content: Iterator[bytes]) -> str:
        kept.clear()
        if status in (404, 410):
            return ""
        if status != 200:
            return f"status {status}"
        for chunk in content:
            kept.extend(chunk)
            if len(kept) > 2 * most:
                del kept[:-most]
        return ""

    fetch(stored, take, clock)
    return bytes(kept[-most:])


def _as_nobody(request: Any) -> Any:
    return request
