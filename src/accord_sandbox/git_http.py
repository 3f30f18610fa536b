"""git over HTTP, by the CGI program that every git ships.

Docs: https://git-scm.com/docs/git-http-backend, https://git-scm.com/docs/http-protocol, and for the report of a push
(report-status in pkt-lines on band 1 of the side-band) https://git-scm.com/docs/pack-protocol

Only the smart protocol, like GitHub. The report of a push is sent after the pull requests have followed their branches;
all other output is passed on at once.
"""

from __future__ import annotations

import asyncio
import contextlib
import re
import tempfile
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypeAlias
from urllib.parse import parse_qs

from accord_sandbox.calls import AccessLevel, authenticate, grant_of
from accord_sandbox.faults import AFTER, Exchange, drop, fault_refusal, raw_headers, send_answer
from accord_sandbox.git_storage import git_environment, git_program
from accord_sandbox.pull_state import RefUpdate, follow_branches
from accord_sandbox.repositories import find_repository, hook_variables, protections
from accord_sandbox.responses import Refusal

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator, Mapping

    from starlette.requests import Request
    from starlette.types import Send

    from accord_sandbox.app import Application
    from accord_sandbox.calls import Actor, Grant
    from accord_sandbox.database import Row
    from accord_sandbox.faults import Fault
    from accord_sandbox.git_storage import BareRepository

    Process: TypeAlias = asyncio.subprocess.Process

PATTERN = re.compile(
    r"/(?P<owner>[^/]+)/(?P<repo>[^/]+?)(?:\.git)?/(?P<service>info/refs|git-upload-pack|git-receive-pack)"
)
CHUNK = 65_536
_METHODS = {"info/refs": "GET", "git-upload-pack": "POST", "git-receive-pack": "POST"}


@dataclass(frozen=True)
class _AdmittedRequest:
    """A request with access to its repository."""

    actor: Actor | None
    repository: Row
    bare: BareRepository
    rules: Mapping[str, str]
    """Variables that tell the update hook which changes to refuse."""


@dataclass
class GitEndpoint:
    """Serves one request of git."""

    server: Application
    applied: bool = False

    async def serve(self, request: Request, full_name: str, service: str, send: Send) -> None:
        """Serve one request of git."""
        self.server.observe(_exchange(request, "received"))
        fault = self.server.faults.take(request.method, request.scope["path"])
        if self.server.settings.latency_seconds:
            await asyncio.sleep(self.server.settings.latency_seconds)
        try:
            if fault is not None and fault.kind == "lost-before":
                await self._lose(request)
                return
            self._check_fault(fault, after=False)
            admitted = self._admit(request, full_name, service)
            if service == "git-receive-pack":
                await self._push(request, admitted, fault, send)
            else:
                await self._pass_on(request, admitted, service, fault, send)
        except Refusal as refusal:
            await self._answer(request, refusal.status, _headers(refusal), f"{refusal.message}\n".encode(), send)

    async def _push(self, request: Request, admitted: _AdmittedRequest, fault: Fault | None, send: Send) -> None:
        """Let git receive a push, let the pull requests follow, and report."""
        with tempfile.TemporaryDirectory(prefix="accord-push-") as folder:
            verdicts = Path(folder) / "verdicts"
            rules = {**admitted.rules, "SANDBOX_VERDICTS": str(verdicts)}
            async with _backend(request, admitted, "git-receive-pack", rules) as process:
                status, headers = await _head(process)
                report = b"".join([chunk async for chunk in _body(process)])
            listed = verdicts.read_text(encoding="utf-8") if verdicts.exists() else ""
        self._follow(admitted)
        self.applied = True
        if fault is not None and fault.kind == "lost-after":
            await self._lose(request)
            return
        self._check_fault(fault, after=True)
        if fault is not None and fault.kind == "slow":
            await asyncio.sleep(fault.seconds)
        reasons = dict(line.split(" ", 1) for line in listed.splitlines())
        report = with_reasons(report, reasons)
        truncated = fault is not None and fault.kind == "truncated"
        await self._answer(request, status, headers, report, send, truncated=truncated)

    async def _pass_on(
        self, request: Request, admitted: _AdmittedRequest, service: str, fault: Fault | None, send: Send
    ) -> None:
        """Answer a listing of refs, a clone or a fetch without buffering it."""
        if fault is not None and fault.kind == "slow":
            await asyncio.sleep(fault.seconds)
        elif fault is not None:  # it changes nothing, so before and after make no difference
            await self._lose(request)
            return
        async with _backend(request, admitted, service, admitted.rules) as process:
            status, headers = await _head(process)
            self.applied = True
            self._log(request, status)
            await send({"type": "http.response.start", "status": status, "headers": raw_headers(headers)})
            async for chunk in _body(process):
                await send({"type": "http.response.body", "body": chunk, "more_body": True})
            await send({"type": "http.response.body", "body": b""})

    def _admit(self, request: Request, full_name: str, service: str) -> _AdmittedRequest:
        """Check access; refuse like GitHub."""
        wanted = service if service != "info/refs" else parse_qs(request.url.query).get("service", [""])[0]
        if request.method != _METHODS[service] or wanted not in _METHODS:
            raise Refusal(403, "Please upgrade your git client.\nGitHub.com no longer supports git over dumb-http.")
        pushes = wanted == "git-receive-pack"
        with self.server.database.reading() as connection:
            try:
                actor = authenticate(connection, request.headers.get("authorization"))
            except Refusal:
                raise _unauthorized("Invalid username or token.") from None
            repository = find_repository(connection, full_name)
            grant = None if repository is None else grant_of(connection, actor, repository)
            if repository is None or grant is None or not grant.sees or not grant.may("contents", AccessLevel.READ):
                raise _unauthorized("Repository not found.") if actor is None else Refusal(404, "Repository not found.")
            if pushes:
                _check_push(actor, grant, repository)
            rules = hook_variables(grant, protections(connection, repository))
        refused = {"SANDBOX_WORKFLOWS_REFUSED": _refused_workflows(actor)}
        return _AdmittedRequest(
            actor, repository, self.server.storage.open(repository["full_name"]), {**rules, **refused}
        )

    def _follow(self, admitted: _AdmittedRequest) -> None:
        actor = admitted.actor
        assert actor is not None  # noqa: S101 (a push needs a token)
        with self.server.database.writing() as connection:
            now = self.server.settings.clock.now().timestamp()
            follow_branches(RefUpdate(connection, admitted.bare, admitted.repository["id"], actor.user_id, now))

    def _check_fault(self, fault: Fault | None, *, after: bool) -> None:
        if fault is None or (fault.kind in AFTER) != after:
            return
        refusal = fault_refusal(fault, None, self.server.settings.clock.now().timestamp())
        if refusal is not None:
            raise refusal

    async def _lose(self, request: Request) -> None:
        self._log(request, 0)
        await drop(request)

    async def _answer(
        self,
        request: Request,
        status: int,
        headers: Mapping[str, str],
        content: bytes,
        send: Send,
        *,
        truncated: bool = False,
    ) -> None:
        self._log(request, status)
        await send_answer(request, status, {**headers, "content-length": str(len(content))}, content, send, truncated)

    def _log(self, request: Request, status: int) -> None:
        self.server.requests.append((request.method, request.scope["path"], status))
        self.server.observe(replace(_exchange(request, "applied"), status=status or None, applied=self.applied))


def _exchange(request: Request, phase: Literal["received", "applied"]) -> Exchange:
    query = {name: values[-1] for name, values in parse_qs(request.url.query).items()}
    return Exchange(phase, request.method, request.scope["path"], query, dict(request.headers), None)


def _check_push(actor: Actor | None, grant: Grant, repository: Row) -> None:
    name = repository["full_name"]
    if actor is None:
        raise _unauthorized("Authentication required.")
    if not grant.may("contents", AccessLevel.WRITE):
        raise Refusal(403, f"Permission to {name}.git denied to {actor.login}.")
    if repository["archived"]:
        raise Refusal(403, "This repository was archived so it is read-only.")


def _refused_workflows(actor: Actor | None) -> str:
    """Return the kind of token and the permission it lacks to push workflow files, "" when it may."""
    if actor is None or actor.may_write_workflows:
        return ""
    if actor.kind == "installation":
        return "a GitHub App|`workflows` permission"
    return "a Personal Access Token|`workflow` scope"


def _unauthorized(message: str) -> Refusal:
    return Refusal(401, message, headers={"www-authenticate": 'Basic realm="GitHub"'})


def _headers(refusal: Refusal) -> dict[str, str]:
    return {"content-type": "text/plain; charset=utf-8", **refusal.headers}


@contextlib.asynccontextmanager
async def _backend(
    request: Request, admitted: _AdmittedRequest, service: str, rules: Mapping[str, str]
) -> AsyncIterator[Process]:
    """Run the CGI on the request's body; stop it when the client disconnects."""
    process = await asyncio.create_subprocess_exec(
        git_program(),
        "http-backend",
        env={**git_environment(), **_cgi(request, admitted, service), **rules},
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
        limit=CHUNK,
    )
    feeding = asyncio.create_task(_feed(request, process))
    try:
        yield process
    finally:
        feeding.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await feeding
        if process.returncode is None:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(process.wait(), 5)
        if process.returncode is None:
            process.kill()
            await process.wait()


async def _feed(request: Request, process: Process) -> None:
    assert process.stdin is not None  # noqa: S101 (it is a pipe)
    with contextlib.suppress(ConnectionError):  # git may stop reading, a client may leave
        try:
            while True:
                message = await request.receive()
                if message["type"] == "http.disconnect":
                    process.terminate()
                    break
                process.stdin.write(message.get("body", b""))
                await process.stdin.drain()
                if not message.get("more_body", False):
                    break
        finally:
            process.stdin.close()


async def _head(process: Process) -> tuple[int, dict[str, str]]:
    """Read the CGI's headers."""
    assert process.stdout is not None  # noqa: S101 (it is a pipe)
    headers: dict[str, str] = {}
    while line := (await process.stdout.readline()).strip():
        name, _, value = line.decode("latin-1").partition(":")
        headers[name.lower()] = value.strip()
    if not headers:
        raise Refusal(500, "Internal Server Error")
    return int(headers.pop("status", "200").split()[0]), headers


async def _body(process: Process) -> AsyncIterator[bytes]:
    assert process.stdout is not None  # noqa: S101 (it is a pipe)
    while chunk := await process.stdout.read(CHUNK):
        yield chunk


def _cgi(request: Request, admitted: _AdmittedRequest, service: str) -> dict[str, str]:
    """Return the request as CGI variables; chunks have no length, so the program reads to the end."""
    variables = {
        "GIT_PROJECT_ROOT": str(admitted.bare.path),
        "GIT_HTTP_EXPORT_ALL": "1",
        "PATH_INFO": f"/{service}",
        "REQUEST_METHOD": request.method,
        "QUERY_STRING": request.url.query,
        "REMOTE_ADDR": "127.0.0.1",
        "REMOTE_USER": admitted.actor.login if admitted.actor else "",
    }
    names = {
        "content-type": "CONTENT_TYPE",
        "content-length": "CONTENT_LENGTH",
        "content-encoding": "HTTP_CONTENT_ENCODING",
        "git-protocol": "GIT_PROTOCOL",
    }
    variables |= {names[name]: request.headers[name] for name in names if name in request.headers}
    return variables


MOST_IN_A_LINE = 65_515
_FLUSH = b"0000"
_DECLINED = "hook declined"
_NOISE = re.compile(rb"error: hook declined to update [^\n]*\n")
"""A line that git adds and GitHub does not."""


def with_reasons(report: bytes, reasons: Mapping[str, str]) -> bytes:
    """Return the answer to a push in which the refused refs of ``reasons`` carry their reason."""
    if not reasons:
        return report
    lines = [line for line in _packets(report) if line is not None]
    banded = all(line[:1] in (b"\x01", b"\x02", b"\x03") for line in lines)
    if not banded:
        return b"".join(_rewritten(report, reasons))
    status = b"".join(line[1:] for line in lines if line[:1] == b"\x01")
    others = [_packet(text) for line in lines if line[:1] != b"\x01" and len(text := _NOISE.sub(b"", line)) > 1]
    changed = b"".join(_rewritten(status, reasons))
    parts = [changed[start : start + MOST_IN_A_LINE] for start in range(0, len(changed), MOST_IN_A_LINE)]
    return b"".join([*others, *(_packet(b"\x01" + part) for part in parts), _FLUSH])


def _rewritten(status: bytes, reasons: Mapping[str, str]) -> Iterator[bytes]:
    for line in _packets(status):
        if line is None:
            yield _FLUSH
            continue
        words = line.decode(errors="surrogateescape").rstrip("\n").split(" ", 2)
        if len(words) == 3 and words[0] == "ng" and words[2] == _DECLINED and words[1] in reasons:
            line = f"ng {words[1]} {reasons[words[1]]}\n".encode(errors="surrogateescape")
        yield _packet(line)


def _packets(stream: bytes) -> Iterator[bytes | None]:
    """Return the payloads of pkt-lines, None for a flush."""
    start = 0
    while start < len(stream):
        length = int(stream[start : start + 4], 16)
        yield stream[start + 4 : start + length] if length else None
        start += length or 4


def _packet(line: bytes) -> bytes:
    return b"%04x" % (len(line) + 4) + line
