"""The server as an ASGI application: each request is one transaction and one answer.

A request passes the observers, the injected faults, the token and the rate limit. Its handler runs in its transaction,
the observers see the result, and only then the answer leaves.
"""

from __future__ import annotations

import asyncio
import json
import sys
import traceback
from collections.abc import Collection
from dataclasses import replace
from email.utils import format_datetime
from typing import Any
from urllib.parse import parse_qsl

from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from accord_sandbox import (  # noqa: F401 (handlers register themselves)
    comments,
    commits,
    git_data,
    git_http,
    graphql,
    issue_parts,
    issues,
    pulls,
    repositories,
    reviews,
    triggers,
    workflow_runs,
)
from accord_sandbox.calls import Call, Route, authenticate, match_route
from accord_sandbox.faults import (
    AFTER,
    Exchange,
    Fault,
    ServerState,
    drop,
    fault_refusal,
    send_answer,
    wait_until_closed,
)
from accord_sandbox.planting import TOKEN
from accord_sandbox.responses import ApiResponse, Refusal, not_found

ENTERPRISE_PREFIX = "/api/v3"
ENTERPRISE_GRAPHQL = "/api/graphql"
_HTTP_PORT = 80
"""Clients leave it out of the Host."""

API_ROOTS = frozenset({"repos", "user", "users", "orgs", "search", "rate_limit", "graphql", "_sandbox", "_storage"})


class Application(ServerState):
    """One local GitHub."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request: API, git, storage, test controls, or a page.

        Another Host than its own means a web page that rebound its name to this address; another Origin, or a form
        of another site, means a page that acts for the person who looks at it.
        """
        path, root = scope["path"], ""
        if path.startswith(f"{ENTERPRISE_PREFIX}/"):
            path, root = path.removeprefix(ENTERPRISE_PREFIX), ENTERPRISE_PREFIX
        elif path == ENTERPRISE_GRAPHQL:
            path = "/graphql"
        first = path.lstrip("/").partition("/")[0]
        git = git_http.PATTERN.fullmatch(path)
        request = Request(scope, receive)
        address, port = scope["server"]
        ports = (f":{port}", "") if port == _HTTP_PORT else (f":{port}",)
        hosts = {f"{host}{end}" for host in (address, "localhost") for end in ports}
        if request.headers.get("host") not in hosts:
            await Response("This Host is not served here.\n", 421, media_type="text/plain")(scope, receive, send)
        elif _is_foreign(request, hosts):
            await Response("Pages of other sites are not served here.\n", 403, media_type="text/plain")(
                scope, receive, send
            )
        elif not root and git is not None:
            await git_http.GitEndpoint(self, request, send, git["service"]).serve(f"{git['owner']}/{git['repo']}")
        elif root or first in API_ROOTS or scope["method"] not in ("GET", "HEAD"):
            await self._serve_api(request, path, root, send)
        else:
            from accord_sandbox.pages import respond  # imported here: only pages need templates and Markdown

            with self.database.reading() as connection:
                query = dict(parse_qsl(scope["query_string"].decode("latin-1")))
                response = respond(connection, self.storage, path, query)
            await response(scope, receive, send)

    async def _serve_api(self, request: Request, path: str, root: str, send: Send) -> None:
        content = await request.body()
        document, refused = _parse(content)
        query, headers = dict(request.query_params), dict(request.headers)
        if (control := self._control(request.method, path, content)) is not None:
            await _send(request, control, None, send)
            return
        exchange = Exchange("received", request.method, path, query, headers, document)
        if path.startswith("/_sandbox/"):  # a control is neither observed nor disturbed
            response, _ = self._answer(exchange, _web(request), root, content, refused, None)
            await _send(request, response, None, send)
            return
        self.observe(exchange)
        fault = self.faults.take(request.method, path)
        response, applied = self._answer(exchange, _web(request), root, content, refused, fault)
        status = response.status
        exchange = replace(exchange, phase="applied", applied=applied)
        if fault is not None and fault.kind in ("lost-before", "lost-after"):
            self.requests.append((request.method, path, 0))
        else:
            self.requests.append((request.method, path, status))
            exchange = replace(exchange, status=status, response_headers=response.headers, response_json=response.body)
        self.observe(exchange)
        await _send(request, response, fault, send)

    def _answer(
        self, exchange: Exchange, web: str, root: str, content: bytes, refused: Refusal | None, fault: Fault | None
    ) -> tuple[ApiResponse, bool]:
        """Carry the request out, unless it or a fault prevents that; return the answer, and whether it was."""
        now = self.settings.clock.now().timestamp()
        route, params = match_route(exchange.method, exchange.path)
        call = Call(
            db=None,  # type: ignore[arg-type] # set inside the transaction
            settings=self.settings,
            now=now,
            api=web + root,
            web=web,
            path=exchange.path,
            query=exchange.query,
            storage=self.storage,
            document=exchange.json,
            content=content,
            params=params,
        )
        applied = False
        try:
            if fault is not None and fault.kind not in AFTER:
                raise fault_refusal(fault, None, now) or not_found()
            response = self._transact(call, route, exchange, refused)
            applied = True
            if fault is not None and (failure := fault_refusal(fault, call.actor, now)):
                response = failure.to_response("")
        except Refusal as refusal:
            response = refusal.to_response(route.docs)
        except Exception:  # a bug of the sandbox: report it on both sides and go on
            traceback.print_exc(file=sys.stderr)
            response = Refusal(500, "Server Error").to_response(route.docs)
        return self._with_headers(call, route, response), applied

    def _transact(self, call: Call, route: Route, exchange: Exchange, refused: Refusal | None) -> ApiResponse:
        writes = route.writes(call.document)
        with self.database.writing() if writes else self.database.reading() as connection:
            call.db = connection
            header = exchange.headers.get("authorization")
            if route.is_open:
                call.actor = authenticate(
                    connection, f"token {TOKEN}" if header or call.path.startswith("/_sandbox/") else ""
                )
                return route.handler(call)
            call.actor = authenticate(connection, header)
            self.meter.check(call.actor, route.load(call.document), call.now)
            if refused is not None:
                raise refused
            return route.handler(call)

    def _with_headers(self, call: Call, route: Route, response: ApiResponse) -> ApiResponse:
        """Add the headers of every answer."""
        headers = dict[str, str]()
        if not route.is_open and "x-ratelimit-remaining" not in response.headers:
            load = route.load(call.document)
            if "retry-after" not in response.headers:
                self.meter.count(call.actor, load, call.now)
            headers |= self.meter.headers(call.actor, load.resource, call.now)
        headers |= {
            "date": format_datetime(self.settings.clock.now(), usegmt=True),
            "x-github-request-id": f"ACC0:{len(self.requests):X}",
        }
        return replace(response, headers=headers | response.headers)

    def _control(self, method: str, path: str, content: bytes) -> ApiResponse | None:
        """Serve the controls of faults and of the log of requests; None for others."""
        match method, path:
            case "POST", "/_sandbox/faults":
                try:
                    self.faults.add(Fault.parse(json.loads(content)))
                except ValueError as error:
                    return ApiResponse(422, {"message": str(error)})
            case "DELETE", "/_sandbox/faults":
                self.faults.clear()
            case "DELETE", "/_sandbox/requests":
                self.requests.clear()
            case "GET", "/_sandbox/requests":
                names = ("method", "path", "status")
                return ApiResponse(200, [dict(zip(names, entry, strict=True)) for entry in self.requests])
            case _:
                return None
        return ApiResponse(204)


async def _send(request: Request, response: ApiResponse, fault: Fault | None, send: Send) -> None:
    kind = fault.kind if fault is not None else ""
    if kind in ("lost-before", "lost-after"):
        await drop(request)
        return
    if fault is not None and kind == "slow":
        try:
            await asyncio.wait_for(wait_until_closed(request), fault.seconds)
        except TimeoutError:
            pass
        else:
            return
    content, headers = response.content or b"", dict(response.headers)
    if response.content is None and response.body is not None:
        content = json.dumps(response.body, ensure_ascii=False, separators=(",", ":")).encode()
        headers = {"content-type": "application/json; charset=utf-8", **headers}
    if response.status != 204:
        headers["content-length"] = str(len(content))
    await send_answer(request, response.status, headers, content, send, kind == "truncated")


def _web(request: Request) -> str:
    return f"{request.url.scheme}://{request.headers.get('host', 'localhost')}"


def _is_foreign(request: Request, hosts: Collection[str]) -> bool:
    """Return whether a browser says that a page of another site sent a request; its links to pages are fine."""
    origin = request.headers.get("origin")
    if origin is not None and origin.removeprefix("http://") not in hosts:
        return True
    return request.method not in ("GET", "HEAD") and request.headers.get("sec-fetch-site") in {
        "cross-site",
        "same-site",
    }


def _parse(raw: bytes) -> tuple[Any, Refusal | None]:
    """Return the JSON of a body (None for an empty one), or the refusal of a body that is not JSON."""
    if not raw.strip():
        return None, None
    try:
        document = json.loads(raw, parse_constant=_refuse_constant)
        if b"\\u" in raw:
            json.dumps(document, ensure_ascii=False).encode()  # fails for half a surrogate pair
    except (ValueError, RecursionError):
        return None, Refusal(400, "Problems parsing JSON")
    return document, None


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is not JSON")
