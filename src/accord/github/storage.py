"""What GitHub hands out by redirect: the address is the right to read, holds for a minute, and gets no token."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from accord.github.policy import TRIES, backoff
from accord.github.transport import TIMEOUT_SECONDS
from accord.kernel.errors import Refused, Stopped

if TYPE_CHECKING:
    from collections.abc import Callable

    import requests

    from accord.kernel.clock import Clock

_CHUNK_BYTES = 1 << 16


def check_place(place: str, api_url: str, what: str) -> None:
    """Refuse an address that is less safe than the API's own."""
    if urlsplit(place).scheme not in {"https", urlsplit(api_url).scheme}:
        raise Refused(
            f"{what} is not where it can be fetched safely: the address has no https.",
            mend="Check what stands between here and GitHub.",
        )


def open_place(place: str) -> requests.Response:
    """Ask the storage; the answer is to be closed. An auth of its own keeps out what ~/.netrc may hold."""
    import requests

    return requests.get(place, auth=_as_nobody, stream=True, timeout=TIMEOUT_SECONDS, allow_redirects=False)


def read_end(place: Callable[[], str], api_url: str, most: int, clock: Clock) -> bytes:
    """Read the last ``most`` bytes of a text; the address is asked for anew at each try.

    Empty where the storage has nothing (404, 410). Raises Stopped when it does not answer.
    """
    problem = ""
    for tries in range(1, TRIES + 1):
        where = place()
        check_place(where, api_url, "The log")
        found, problem = _end_of(where, most)
        if not problem:
            return found
        if tries < TRIES:
            clock.sleep(backoff(tries))
    raise Stopped(f"A log could not be fetched in {TRIES} tries ({problem}).", mend="Run the same command again.")


def _end_of(place: str, most: int) -> tuple[bytes, str]:
    import requests

    kept = bytearray()
    try:
        with open_place(place) as answer:
            if answer.status_code in (404, 410):
                return b"", ""
            if answer.status_code != 200:
                return b"", f"status {answer.status_code}"
            for chunk in answer.iter_content(_CHUNK_BYTES):
                kept += chunk
                if len(kept) > 2 * most:
                    del kept[:-most]
    except requests.exceptions.RequestException as error:
        return b"", type(error).__name__
    return bytes(kept[-most:]), ""


def _as_nobody(request: Any) -> Any:
    return request
