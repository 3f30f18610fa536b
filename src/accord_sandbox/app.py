"""The server as an ASGI application: each request is one transaction and one answer.

A request passes the observers, the injected faults, the token and the rate limit. Its handler runs in its transaction,
the observers see the result, and only then the answer leaves.
"""

from __future__ import annotations

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
from accord_sandbox.calls import Call, authenticate, match_route
from accord_sandbox.faults import AFTER, LOST, Exchange, Fault, ServerState, fault_refusal, send_response
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
            endpoint = git_http.GitEndpoint(self, request, git["service"], f"{git['owner']}/{git['repo']}")
            await self._serve(endpoint, request, send)
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
        if (control := self._control(request.method, path, content)) is not None:
            await send_response(request, control, send, None)
            return
        endpoint = ApiEndpoint(self, request, path, root, content)
        if path.startswith("/_sandbox/"):  # a control is neither observed nor disturbed
            response, _ = await self._answer(endpoint, None)
            await send_response(request, response, send, None)
            return
        await self._serve(endpoint, request, send)

    async def _serve(self, endpoint: AnyEndpoint, request: Request, send: Send) -> None:
        """Answer a request under the next fault; observers and the log learn of it before the answer leaves."""
        received = endpoint.received
        self.observe(received)
        fault = self.faults.take(received.method, received.path)
        response, applied = await self._answer(endpoint, fault)
        if fault and fault.kind in AFTER and not applied and isinstance(endpoint, git_http.GitEndpoint):
            fault = None  # git gets its refusal, such as the one that asks for credentials
        done, status = replace(received, phase="applied", applied=applied), 0
        if fault is None or fault.kind not in LOST:
            status = response.status
            done = replace(done, status=status, response_headers=response.headers, response_json=response.body)
        self.requests.append((received.method, received.path, status))
        self.observe(done)
        await send_response(request, response, send, fault)

    async def _answer(self, endpoint: AnyEndpoint, fault: Fault | None) -> tuple[ApiResponse, bool]:
        """Carry a request out, unless it or a fault prevents that; return the answer, and whether it was."""
        applied, now = False, self.settings.clock.now().timestamp()
        try:
            if refusal := fault_refusal(fault, now, is_after=False):
                raise refusal
            result: ApiResponse | Refusal = await endpoint.act()
            applied = True
            result = fault_refusal(fault, now, is_after=True) or result
        except Refusal as refused:
            result = refused
        return endpoint.finish(result), applied

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


class ApiEndpoint:
    """One request of the API, of the test controls or of the storage."""

    def __init__(self, server: ServerState, request: Request, path: str, root: str, content: bytes) -> None:
        document, self._refused = _parse(content)
        query, headers = dict(request.query_params), dict(request.headers)
        web = f"{request.url.scheme}://{request.headers.get('host', 'localhost')}"
        self._server = server
        self._route, params = match_route(request.method, path)
        self.received = Exchange("received", request.method, path, query, headers, document)
        self._call = Call(
            db=None,  # type: ignore[arg-type] # set inside the transaction
            settings=server.settings,
            now=server.settings.clock.now().timestamp(),
            api=web + root,
            web=web,
            path=path,
            query=query,
            storage=server.storage,
            document=document,
            content=content,
            params=params,
        )

    async def act(self) -> ApiResponse:
        """Carry the request out in its transaction."""
        try:
            return self._transact()
        except Refusal:
            raise
        except Exception:  # a bug of the sandbox: report it on both sides and go on
            traceback.print_exc(file=sys.stderr)
            raise Refusal(500, "Server Error") from None

    def _transact(self) -> ApiResponse:
        call, route, database = self._call, self._route, self._server.database
        with database.writing() if route.writes(call.document) else database.reading() as connection:
            call.db = connection
            header = self.received.headers.get("authorization")
            if route.is_open:
                call.actor = authenticate(
                    connection, f"token {TOKEN}" if header or call.path.startswith("/_sandbox/") else ""
                )
                return route.handler(call)
            call.actor = authenticate(connection, header)
            self._server.meter.check(call.actor, route.costs(call.document), call.now)
            if self._refused is not None:
                raise self._refused
            if not getattr(call.settings, route.setting, True):
                raise not_found()
            return route.handler(call)

    def finish(self, result: ApiResponse | Refusal) -> ApiResponse:
        """Return the answer with the headers of every answer."""
        call, route, meter = self._call, self._route, self._server.meter
        response = result.to_response(route.docs) if isinstance(result, Refusal) else result
        headers = dict[str, str]()
        if not route.is_open and "x-ratelimit-remaining" not in response.headers:
            if "retry-after" not in response.headers:
                meter.count(call.actor, route.costs(call.document), call.now)
            headers |= meter.headers(call.actor, route.resource, call.now)
        headers |= {
            "date": format_datetime(self._server.settings.clock.now(), usegmt=True),
            "x-github-request-id": f"ACC0:{len(self._server.requests):X}",
        }
        return replace(response, headers=headers | response.headers)


AnyEndpoint = ApiEndpoint | git_http.GitEndpoint


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
