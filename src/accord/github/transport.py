"""Requests to GitHub: when to wait, when to send again, what each response means, and the errors of refusals."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from typing import Any, NamedTuple, TypeVar
from urllib.parse import parse_qsl, urlencode, urlsplit

from accord.core.clock import Clock, timestamp
from accord.core.errors import AccordError, Refused, Stopped
from accord.core.log import log
from accord.core.refusals import known_refusal
from accord.github.models import (
    Access,
    AnswerLost,
    Conflict,
    EmptyRepository,
    Forbidden,
    NotThere,
    PullsNotAllowed,
    RequestCount,
)
from accord.github.pacing import Pacer, RequestAttempt, judge
from accord.github.pygithub import LOCATION, connection_for, requester_for

Parsed = TypeVar("Parsed")

LONGEST_NAMED_WAIT_SECONDS = 366 * 86400


class Response(NamedTuple):
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
            hint = "Check the proxy or firewall between this machine and GitHub, and run the same command again."
            raise (AnswerLost if self.request.startswith("POST ") else Stopped)(said, hint=hint) from error


class RateLeft(NamedTuple):
    """The remaining hourly requests by the last response, and when they reset (seconds since 1970)."""

    remaining: int
    resets_at: int


class Transport:
    """One token's way to one server. ``tell_wait`` is called before every wait of more than a second."""

    def __init__(self, access: Access, clock: Clock, tell_wait: Callable[[float, str], None], pacer: Pacer) -> None:
        self.requests = RequestCount()
        self.server_time: datetime | None = None
        self.rate_left: RateLeft | None = None
        self._access, self._clock, self._tell_wait, self._pacer = access, clock, tell_wait, pacer
        self._requester, self._connection = requester_for(access), connection_for(access)

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
        weight, request = "GET" if only_reads else method, f"{method} {path}"
        tries = 0
        while True:
            tries += 1
            self._keep_pace(weight, creates_content)
            status, headers, text, (problem, hint) = self._send(method, path, params, body, weight)
            data, is_whole = _parse(text, status)
            message = problem or _message(data, text)
            now = self._clock.now().timestamp()
            asked = f"?{urlencode(params)}" if params else ""
            log("github", "%s%s: %s %s", request, asked, status, "" if status == 200 else message)
            ruling = judge(RequestAttempt(weight, tries, status, headers, message, is_whole and not problem, now))
            reason = f"status {status}: {message}" if status else message
            match ruling.step:
                case "take":
                    return Response(status, headers, data, request)
                case "repeat":
                    self._clock.sleep(ruling.seconds)
                case "wait-for-limit":
                    self.wait(ruling.seconds, f"GitHub's rate limit ({status}: {message})")
                case "lost":
                    again = "Run the same command again; it looks first whether the request was carried out."
                    raise AnswerLost(f"{request} got no usable answer ({reason}).", hint=hint or again)
                case "give-up":
                    again = "Run the same command again when GitHub answers; it continues where it stopped."
                    said = f"GitHub cannot be reached: {request} failed {tries} times ({reason})."
                    raise Stopped(said, hint=hint or again)
                case "refused" if takes_location and status == 302 and LOCATION in headers:
                    return Response(status, headers, headers[LOCATION], request)
                case "refused":
                    errors = data.get("errors") if isinstance(data, dict) else None
                    listed = errors if isinstance(errors, list) else []
                    ref = str(body["ref"]) if isinstance(body, dict) and "ref" in body else path
                    about = (self._access.repository, self._access.server_url, ref)
                    raise refusal(request, status, message, listed, headers, *about)

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
        weight = {"is_write": method != "GET", "creates_content": creates_content}
        if (seconds := self._pacer.wait(self._clock.now().timestamp(), **weight)) > 0:
            self.wait(seconds, "staying inside GitHub's documented limits")
        self._pacer.spend(self._clock.now().timestamp(), **weight)

    def wait(self, seconds: float, reason: str) -> None:
        """Wait, and print the reason. Raises Stopped where all waits of the run would be longer than allowed."""
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
    from requests.utils import parse_header_links

    following = next((entry["url"] for entry in parse_header_links(link) if entry.get("rel") == "next"), None)
    return dict(parse_qsl(urlsplit(following).query)) if following else None


WHY = "GitHub's sentence says why; running the same again will not help."
"""The hint for a refusal that accord does not know."""

_BY_RULE = {"push-protection", "unsigned-commits", "workflow-files", "ruleset", "protected-branch"}
"""Refusals of a change that stay, whatever the status of the answer. Another writer did not cause them."""


def refusal(
    request: str,
    status: int,
    message: str,
    errors: Sequence[object],
    headers: Mapping[str, str],
    repository: str,
    server_url: str = "",
    ref: str = "",
) -> AccordError:
    """Name a 3xx or 4xx answer. ``request`` is method and path; ``errors`` GitHub's list; ``ref`` what changes."""
    details = f" ({'; '.join(map(_detail, errors))})" if errors else ""
    said = f'GitHub refused {request} with {status}: "{" ".join(message.split()).rstrip(".")}"{details}.'
    known = known_refusal(f"{message} {details}", ref) if status in (403, 409, 422) else None
    if known is not None:
        kind: type[Refused] = Refused if known.code in _BY_RULE else Conflict
        if status == 403:
            kind = PullsNotAllowed if known.code == "pull-requests-not-allowed" else Forbidden
        return kind(said, hint=known.hint_for(f"{server_url}/{repository}" if server_url else ""))
    if status < 400:
        return NotThere(said, hint=f"It has moved: name {repository} as it is called now, with --repo.")
    if status == 401:
        return Refused(said, hint="The token is not valid: check that GITHUB_TOKEN is set to one that has not expired.")
    if status == 403:
        return Forbidden(said, hint=_forbidden_hint(request, message, headers))
    if status in (404, 410):
        access = "may see it (repository access, permissions)"
        if not request.startswith("GET"):
            access = "may write there: GitHub hides what a token without write access asks to change"
        return NotThere(said, hint=f"Check that {repository} exists and that the token {access}.")
    if status == 422:
        return Conflict(said, hint="The request was understood and found invalid; correct what GitHub names.")
    if status == 409 and "repository is empty" in message.lower():
        return EmptyRepository(said, hint=f"{repository} holds no commit yet: push one, and run the same again.")
    return (Conflict if status == 409 else Refused)(said, hint=WHY)


_CALLER = (
    "A reusable workflow gets no more than the job that calls it grants, a run for a fork's pull request only reads."
)


_RIGHTS = re.compile(r"\bmust have\b|\brights?\b|\bpermi(?:ssions?|tted)\b|\baccess\b|\bforbidden\b|\bdenied\b")
"""Sentences about rights; only for these, more rights may help."""


def _forbidden_hint(request: str, message: str, headers: Mapping[str, str]) -> str:
    said, starts = message.lower(), request.endswith("/dispatches")
    kind = "pull-requests" if "/pulls" in request else "issues"
    needed = headers.get("x-accepted-github-permissions", "").replace("=", ": ").replace(";", " or ")
    is_file = "/contents/" in request
    hints = {
        f"The token lacks a permission: it needs {needed}.": needed,
        'The token may not send events: grant the job "contents: write".': starts and "/actions/" not in request,
        'The token may not write git data: grant the job "contents: write". Workflow files need "workflows: write", '
        "which `GITHUB_TOKEN` never has.": "/git/" in request or is_file,
        'The token may not start workflows: grant the job "actions: write".': starts,
        'The token may not read artifacts and logs: grant the job "actions: read".': "/actions/" in request,
        f'The token lacks a permission: grant the job "{kind}: write" (and what else the command writes).': (
            "resource not accessible" in said
        ),
        f"The token may not do this: give it write access to {kind.replace('-', ' ')} of this repository.": bool(
            _RIGHTS.search(said)
        ),
        WHY: True,
    }
    hint = next(hint for hint, applies in hints.items() if applies)
    return f"{hint} {_CALLER}" if "by integration" in said else hint


def _detail(error: object) -> str:
    if not isinstance(error, dict):
        return str(error)
    field = ".".join(str(error[key]) for key in ("resource", "field") if error.get(key))
    return f"{field}: {error.get('message') or error.get('code') or 'invalid'}".strip(": ")
