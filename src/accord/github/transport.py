"""Requests to GitHub: when to wait, when to send again, and what each response means."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from typing import Any, TypeVar
from urllib.parse import parse_qs, urlencode, urlsplit

from accord.core.clock import Clock, timestamp
from accord.core.errors import Stopped
from accord.core.log import log
from accord.github.models import Access, AnswerLost, RequestCount
from accord.github.pacing import NextStep, Pacer, RequestAttempt, judge
from accord.github.pygithub import LOCATION, connection_for, requester_for
from accord.github.refusals import refusal

Parsed = TypeVar("Parsed")

LONGEST_NAMED_WAIT_SECONDS = 366 * 86400


@dataclass(frozen=True, slots=True)
class Response:
    """A successful answer: status, headers in lower case, and the JSON document (None without a body)."""

    status: int
    headers: Mapping[str, str]
    data: Any
    request: str

    def read(self, parse: Callable[[Any], Parsed]) -> Parsed:
        """Parse the document. A response that GitHub does not document so counts as lost."""
        try:
            return parse(self.data)
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            said = f"{self.request} was answered with {self.status}, and not as GitHub documents it ({error!r:.80})."
            kind = AnswerLost if self.request.startswith("POST ") else Stopped
            raise kind(
                said,
                hint="Check the proxy or firewall between this machine and GitHub, and run the same command again.",
            ) from error


@dataclass(frozen=True, slots=True)
class RateLeft:
    """The remaining hourly requests by the last response, and when they reset (seconds since 1970)."""

    remaining: int
    resets_at: int


class Transport:
    """One token's way to one server. ``tell_wait`` is called before every wait of more than a second."""

    def __init__(self, access: Access, clock: Clock, tell_wait: Callable[[float, str], None], pacer: Pacer) -> None:
        self.requests = RequestCount()
        self.server_time: datetime | None = None
        self.rate_left: RateLeft | None = None
        self._access, self._clock, self._tell_wait = access, clock, tell_wait
        self._pacer = pacer
        self._requester = requester_for(access)
        self._connection = connection_for(access)

    def call(
        self,
        method: str,
        path: str,
        *,
        params: Mapping[str, Any] | None = None,
        body: Any = None,
        creates_content: bool = False,
        takes_location: bool = False,
        only_reads: bool = False,
    ) -> Response:
        """Send one request until it has an answer. ``path`` begins at the API's root, or is a whole URL of it.

        ``takes_location``: a redirect (302) is the answer that is wanted, and its address the data; it is not followed.
        ``only_reads``: a POST that is a question (GraphQL) counts as a read, and is sent again when its answer is lost.
        Raises AnswerLost for a POST that may have been carried out, Stopped when GitHub cannot be reached or asks to
        wait longer than is allowed, and Refused (NotThere for 404 and 410) for all other errors.
        """
        tries = 0
        weight = "GET" if only_reads else method
        while True:
            tries += 1
            self._keep_pace(weight, creates_content)
            status, headers, text, (problem, hint) = self._send(method, path, params, body, weight)
            data, is_whole = _parse(text, status)
            message = problem or _message(data, text)
            now = self._clock.now().timestamp()
            log(
                "github",
                "%s %s: %s %s",
                method,
                _path_with_params(path, params),
                status,
                "" if status == 200 else message,
            )
            ruling = judge(RequestAttempt(weight, tries, status, headers, message, is_whole and not problem, now))
            match ruling.step:
                case NextStep.TAKE:
                    return Response(status, headers, data, f"{method} {path}")
                case NextStep.REPEAT:
                    self._clock.sleep(ruling.seconds)
                case NextStep.WAIT_FOR_LIMIT:
                    self._wait(ruling.seconds, f"GitHub's rate limit ({status}: {message})")
                case NextStep.LOST | NextStep.GIVE_UP:
                    reason = f"status {status}: {message}" if status else message
                    raise _unanswered_error(ruling.step, f"{method} {path}", tries, reason, hint)
                case NextStep.REFUSED if takes_location and status == 302 and LOCATION in headers:
                    return Response(status, headers, headers[LOCATION], f"{method} {path}")
                case NextStep.REFUSED:
                    errors = data.get("errors") if isinstance(data, dict) else None
                    listed = errors if isinstance(errors, list) else []
                    about = (self._access.repository, self._access.server_url)
                    raise refusal(f"{method} {path}", status, message, listed, headers, *about)

    def pages(self, path: str, params: Mapping[str, Any]) -> Iterator[Response]:
        """Follow a listing page by page, as far as the caller consumes it."""
        answer = self.call("GET", path, params=params)
        yield answer
        while (following := _next_page(answer.headers.get("link", ""))) is not None:
            answer = self.call("GET", path, params={**params, **following})
            yield answer

    def _send(
        self, method: str, path: str, params: Mapping[str, Any] | None, body: Any, weight: str
    ) -> tuple[int, Mapping[str, str], str, tuple[str, str]]:
        """Send once; return status, headers, text, and the problem that left no answer (status 0) with its hint."""
        from requests.exceptions import RequestException

        from accord.core.connections import describe

        if weight == "GET":
            self.requests.read += 1
        elif self._access.read_only:
            raise RuntimeError(f"{method} {path} was not sent. {self._access.read_only}")
        else:
            self.requests.write += 1
        try:
            status, headers, text = self._requester.requestJson(
                method, path, parameters=dict(params or {}), input=body, cnx=self._connection
            )
        except RequestException as error:
            return 0, {}, "", describe(error)
        if "date" in headers:
            self.server_time = _date(headers["date"]) or self.server_time
        self.rate_left = _rate_left(headers) or self.rate_left
        return status, headers, text, ("", "")

    def _keep_pace(self, method: str, creates_content: bool) -> None:
        is_write = method != "GET"
        now = self._clock.now().timestamp()
        seconds = self._pacer.wait(now, is_write=is_write, creates_content=creates_content)
        if seconds > 0:
            self._wait(seconds, "staying inside GitHub's documented limits")
        self._pacer.spend(self._clock.now().timestamp(), is_write=is_write, creates_content=creates_content)

    def _wait(self, seconds: float, reason: str) -> None:
        self._pacer.waited += seconds
        if self._pacer.waited > self._access.max_wait_seconds:
            until = self._clock.now() + timedelta(seconds=min(seconds, LONGEST_NAMED_WAIT_SECONDS))
            raise Stopped(
                f"The wait for {reason} would take {seconds:.0f} s, with {self._access.max_wait_seconds:.0f} s "
                "allowed for all waits of a run.",
                hint=f"Run the same command again after {timestamp(until)}, or allow more with --max-wait.",
            )
        if seconds > 1:
            self._tell_wait(seconds, reason)
        self._clock.sleep(seconds)


def _path_with_params(path: str, params: Mapping[str, Any] | None) -> str:
    return f"{path}?{urlencode(params)}" if params else path


def _unanswered_error(step: NextStep, request: str, tries: int, reason: str, hint: str) -> Stopped:
    """Say of a request that it may have been carried out, or that GitHub cannot be reached."""
    if step is NextStep.LOST:
        again = "Run the same command again; it looks first whether the request was carried out."
        return AnswerLost(f"{request} got no usable answer ({reason}).", hint=hint or again)
    again = "Run the same command again when GitHub answers; it continues where it stopped."
    return Stopped(f"GitHub cannot be reached: {request} failed {tries} times ({reason}).", hint=hint or again)


def _rate_left(headers: Mapping[str, str]) -> RateLeft | None:
    """Read the headers of the primary limit; searches and GraphQL have limits of their own."""
    remaining, reset = headers.get("x-ratelimit-remaining", ""), headers.get("x-ratelimit-reset", "")
    is_core = headers.get("x-ratelimit-resource", "core") == "core"
    if not is_core or not remaining.isdecimal() or not reset.isdecimal():
        return None
    return RateLeft(int(remaining), int(reset))


def _date(date: str) -> datetime | None:
    """Read a Date header; None when a proxy wrote something else into it."""
    try:
        moment = parsedate_to_datetime(date)
    except ValueError:
        return None
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


def _parse(text: str, status: int) -> tuple[Any, bool]:
    """Parse an answer; tell whether it could be read to its end."""
    if status == 204 or not text.strip():
        return None, status in (0, 204, 205, 304)
    try:
        return json.loads(text), True
    except ValueError:
        return None, False


def _message(data: Any, text: str) -> str:
    if isinstance(data, dict) and isinstance(data.get("message"), str):
        return str(data["message"])
    return "" if data is not None else " ".join(text[:200].split())


def _next_page(link: str) -> dict[str, str] | None:
    """Read the parameters of the next page from a Link header, so that only our own server is asked."""
    for part in link.split(","):
        url, _, relation = part.partition(";")
        if 'rel="next"' in relation:
            query = parse_qs(urlsplit(url.strip().strip("<>")).query)
            return {key: values[0] for key, values in query.items()}
    return None
