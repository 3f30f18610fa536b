"""The server itself, as an ASGI application: one request in, one transaction, one answer out.

A request passes these stations: the observers hear of it, a fault may claim it, the token and the rate limit are
checked, the handler runs in its transaction, the observers hear the result, and only then does the answer leave.
"""

from __future__ import annotations

import asyncio
import json
import sys
import traceback
from dataclasses import dataclass, replace
from email.utils import format_datetime
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from accord_sandbox import faults, git_http, responses, routes, workflow_runs
from accord_sandbox.calls import Call, authenticate
from accord_sandbox.faults import Exchange, Fault, Faults, Observer, drop, gone
from accord_sandbox.git_storage import GitStorage
from accord_sandbox.rates import READ_POINTS, WRITE_POINTS, Load, Meter
from accord_sandbox.responses import ApiResponse, Refusal, not_found

if TYPE_CHECKING:
    from collections.abc import Mapping

    from starlette.types import Receive, Scope, Send

    from accord_sandbox.calls import Actor, SandboxSettings
    from accord_sandbox.database import Database
    from accord_sandbox.route import Route

ENTERPRISE_PREFIX = "/api/v3"
ENTERPRISE_GRAPHQL = "/api/graphql"
API_ROOTS = frozenset({"repos", "user", "users", "orgs", "search", "rate_limit", "graphql"})


@dataclass(frozen=True)
class _Outcome:
    """What came of a request, ready to be sent. ``applied``: the handler ran to its end."""

    answer: ApiResponse
    content: bytes
    actor: Actor | None
    applied: bool = False


class Application:
    """One local GitHub. ``requests`` is the log of (method, path, status); a dropped connection has status 0."""

    def __init__(self, database: Database, settings: SandboxSettings) -> None:
        self.database = database
        self.settings = settings
        self.faults = Faults()
        self.meter = Meter(settings.rate_limits)
        self.bares = GitStorage(database.path.parent / "git")
        self.observers: list[Observer] = []
        self.requests: list[tuple[str, str, int]] = []

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request: API, git, test controls, or a page to look at."""
        path, root = scope["path"], ""
        if path.startswith(f"{ENTERPRISE_PREFIX}/"):
            path, root = path.removeprefix(ENTERPRISE_PREFIX), ENTERPRISE_PREFIX
        elif path == ENTERPRISE_GRAPHQL:
            path = "/graphql"
        first = path.lstrip("/").partition("/")[0]
        visited = git_http.PATTERN.fullmatch(path)
        if not root and visited is not None:
            door = git_http.GitEndpoint(
                self.database, self.bares, self.settings, self.faults, self.requests, self._observe
            )
            await door.serve(Request(scope, receive), f"{visited['owner']}/{visited['repo']}", visited["service"], send)
        elif not root and first == "_storage":
            await self._storage(Request(scope, receive), path, send)
        elif not root and first == "_sandbox":
            await (await self._control(Request(scope, receive), path))(scope, receive, send)
        elif root or first in API_ROOTS or scope["method"] not in ("GET", "HEAD"):
            await self._api(Request(scope, receive), path, root, send)
        else:
            from accord_sandbox.pages import respond  # only those who look pay for templates and Markdown

            with self.database.reading() as connection:
                query = dict(parse_qsl(scope["query_string"].decode("latin-1")))
                response = respond(connection, self.bares, path, query)
            await response(scope, receive, send)

    async def _api(self, request: Request, path: str, root: str, send: Send) -> None:
        raw = await request.body()
        document, refused = _parse(raw)
        exchange = Exchange(
            "received",
            request.method,
            path,
            dict(request.query_params),
            dict(request.headers),
            document,
        )
        self._observe(exchange)
        fault = self.faults.take(request.method, path)
        if self.settings.latency_seconds:
            await asyncio.sleep(self.settings.latency_seconds)
        web = f"{request.url.scheme}://{request.headers.get('host', 'localhost')}"
        outcome = self._outcome(exchange, web, root, refused, fault)
        dropped = fault is not None and fault.kind in ("lost-before", "lost-after")
        status = None if dropped else outcome.answer.status
        self.requests.append((request.method, path, status or 0))
        self._observe(
            replace(
                exchange,
                phase="applied",
                status=status,
                response_headers=None if dropped else outcome.answer.headers,
                response_json=None if dropped else outcome.answer.body,
                applied=outcome.applied,
            )
        )
        await _send(request, outcome, fault, send)

    def _outcome(
        self, exchange: Exchange, web: str, root: str, refused: Refusal | None, fault: Fault | None
    ) -> _Outcome:
        """Do what the request asks for, unless it or a fault prevents that, and dress the answer."""
        now = self.settings.clock.now().timestamp()
        found = routes.match(exchange.method, exchange.path)
        route, params = found if found is not None else (None, {})
        call = Call(
            db=None,  # type: ignore[arg-type] # set inside the transaction
            settings=self.settings,
            now=now,
            api=web + root,
            web=web,
            bares=self.bares,
            accept=exchange.headers.get("accept", ""),
            path=exchange.path,
            query=exchange.query,
            document=exchange.json,
            meter=self.meter,
            params=params,
        )
        applied = False
        try:
            if fault is not None and fault.kind not in faults.AFTER:
                raise faults.refusal(fault, None, now) or not_found()
            answer = self._transact(call, route, exchange.headers.get("authorization"), refused)
            applied = True
            if fault is not None and (failure := faults.refusal(fault, call.actor, now)):
                answer = failure.answer("")
        except Refusal as refusal:
            answer = refusal.answer(route.docs if route else "")
        except Exception:  # a defect of the sandbox: say so on both sides instead of dying
            traceback.print_exc(file=sys.stderr)
            answer = Refusal(500, "Server Error").answer(route.docs if route else "")
        return self._dress(call, route, answer, exchange, applied)

    def _transact(
        self, call: Call, route: Route | None, authorization: str | None, refused: Refusal | None
    ) -> ApiResponse:
        writes = route is not None and route.writes
        with self.database.writing() if writes else self.database.reading() as connection:
            call.db = connection
            call.actor = authenticate(connection, authorization)
            if route is None:
                raise not_found()
            if route.resource:
                self.meter.check(call.actor, route.load, call.now)
            if refused is not None:
                raise refused
            return route.handler(call)

    def _dress(
        self, call: Call, route: Route | None, answer: ApiResponse, exchange: Exchange, applied: bool
    ) -> _Outcome:
        """Add what every answer carries, and turn one that the client already has into 304."""
        content = responses.encode(answer.body) if answer.content is None else answer.content
        headers = {"content-type": "application/json; charset=utf-8"} if content else {}
        if exchange.method == "GET" and answer.status == 200:
            headers |= {"etag": responses.etag(content), "cache-control": "private, max-age=60, s-maxage=60"}
            if _known(exchange.headers.get("if-none-match", ""), headers["etag"]):
                answer, content = ApiResponse(304, headers=answer.headers), b""
                del headers["content-type"]
        resource = route.resource if route else "core"
        if resource and "x-ratelimit-remaining" not in answer.headers:
            load = route.load if route else Load("core", READ_POINTS if exchange.method == "GET" else WRITE_POINTS)
            if "retry-after" not in answer.headers:
                self.meter.count(call.actor, load, call.now, free=answer.status == 304)
            headers |= self.meter.headers(call.actor, resource, call.now)
        headers |= {
            "date": format_datetime(self.settings.clock.now(), usegmt=True),
            "x-github-media-type": "github.v3; format=json",
            "x-github-request-id": f"ACC0:{len(self.requests):X}",
            "x-content-type-options": "nosniff",
        }
        if call.actor is not None and call.actor.kind == "user":
            headers["x-oauth-scopes"] = "repo, workflow"
        return _Outcome(ApiResponse(answer.status, answer.body, headers | answer.headers), content, call.actor, applied)

    def _observe(self, exchange: Exchange) -> None:
        for observer in tuple(self.observers):
            try:
                observer(exchange)
            except Exception:  # the client gets a 500; whoever reads stderr gets the reason
                traceback.print_exc(file=sys.stderr)
                raise

    async def _storage(self, request: Request, path: str, send: Send) -> None:
        """Serve what downloads are redirected to: another service than the API, with other refusals and no limits."""
        fault = self.faults.take(request.method, path)
        now = self.settings.clock.now().timestamp()
        try:
            if fault is not None and (failure := faults.refusal(fault, None, now)):
                raise failure
            with self.database.reading() as connection:
                has_token = "authorization" in request.headers
                fetch = (
                    workflow_runs.fetch_log
                    if workflow_runs.LOG_STORAGE.fullmatch(path)
                    else workflow_runs.fetch_artifact
                )
                answer = fetch(connection, path, request.query_params, has_token, now)
        except Refusal as refusal:
            answer = refusal.answer("")
        self.requests.append((request.method, path, answer.status))
        content = responses.encode(answer.body) if answer.content is None else answer.content
        await _send(request, _Outcome(answer, content, None), fault, send)

    def _keep(self, path: str, query: Mapping[str, str], content: bytes) -> Response:
        """Do what GitHub does by itself: keep an artifact, let a workflow run go its way, keep the log of a job."""
        keep = workflow_runs.put_run if workflow_runs.RUN_CONTROL.fullmatch(path) else workflow_runs.put_artifact
        try:
            with self.database.writing() as connection:
                answer = keep(connection, path, query, content, self.settings.clock.now().timestamp())
        except Refusal as refusal:
            answer = refusal.answer("")
        return Response(status_code=204) if answer.status == 204 else JSONResponse(answer.body, answer.status)

    async def _control(self, request: Request, path: str) -> Response:
        """Serve the controls below /_sandbox for tests in other processes: faults, requests, artifacts, runs, jobs."""
        match request.method, path:
            case "POST", "/_sandbox/faults":
                try:
                    fault = Fault.parse(json.loads(await request.body()))
                except ValueError as error:
                    return JSONResponse({"message": str(error)}, 422)
                self.faults.add(fault)
            case "DELETE", "/_sandbox/faults":
                self.faults.clear()
            case "DELETE", "/_sandbox/requests":
                self.requests.clear()
            case "GET", "/_sandbox/requests":
                names = ("method", "path", "status")
                return JSONResponse([dict(zip(names, entry, strict=True)) for entry in self.requests])
            case "PUT", _:
                return self._keep(path, request.query_params, await request.body())
            case _:
                return JSONResponse({"message": "Not Found"}, 404)
        return Response(status_code=204)


async def _send(request: Request, outcome: _Outcome, fault: Fault | None, send: Send) -> None:
    kind = fault.kind if fault is not None else ""
    if kind in ("lost-before", "lost-after"):
        await drop(request)
        return
    if fault is not None and kind == "slow":
        try:
            await asyncio.wait_for(gone(request), fault.seconds)
        except TimeoutError:
            pass
        else:
            return
    headers = {**outcome.answer.headers, "content-length": str(len(outcome.content))}
    if outcome.answer.status in (204, 304):
        del headers["content-length"]
    raw = [(name.encode("latin-1"), value.encode("latin-1")) for name, value in headers.items()]
    await send({"type": "http.response.start", "status": outcome.answer.status, "headers": raw})
    if kind == "truncated":
        half = outcome.content[: len(outcome.content) // 2]
        await send({"type": "http.response.body", "body": half, "more_body": True})
        await drop(request)
        return
    await send({"type": "http.response.body", "body": outcome.content})


def _parse(raw: bytes) -> tuple[Any, Refusal | None]:
    """Return the JSON of a body (None for none), or the refusal of what is no JSON."""
    if not raw.strip():
        return None, None
    try:
        document = json.loads(raw, parse_constant=_no_constant)
        if b"\\u" in raw:
            json.dumps(document, ensure_ascii=False).encode()  # half a surrogate pair is no text
    except (ValueError, RecursionError):
        return None, Refusal(400, "Problems parsing JSON")
    return document, None


def _no_constant(name: str) -> None:
    raise ValueError(f"{name} is not JSON")


def _known(header: str, tag: str) -> bool:
    tags = {part.strip().removeprefix("W/") for part in header.split(",")}
    return "*" in tags or tag.removeprefix("W/") in tags
