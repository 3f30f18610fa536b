"""git over HTTP, by the CGI program that every git ships.

Docs: https://git-scm.com/docs/git-http-backend, https://git-scm.com/docs/http-protocol

Only the smart protocol, as on GitHub. A push is answered after the pull requests have followed their branches; its
report is held back until then, everything else is passed on as it comes.
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

from accord_sandbox import faults, pull_state, repositories
from accord_sandbox.calls import AccessLevel, authenticate, grant
from accord_sandbox.faults import Exchange, drop
from accord_sandbox.git_storage import git_environment, git_program
from accord_sandbox.repositories import find_repository
from accord_sandbox.responses import Refusal

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping

    from starlette.requests import Request
    from starlette.types import Send

    from accord_sandbox.calls import Actor, Grant, SandboxSettings
    from accord_sandbox.database import Database, Row
    from accord_sandbox.faults import Fault, Faults, Observer
    from accord_sandbox.git_storage import BareRepository, GitStorage

    Process: TypeAlias = asyncio.subprocess.Process
    from collections.abc import Iterator


PATTERN = re.compile(
    r"/(?P<owner>[^/]+)/(?P<repo>[^/]+?)(?:\.git)?/(?P<service>info/refs|git-upload-pack|git-receive-pack)"
)
CHUNK = 65_536
_METHODS = {"info/refs": "GET", "git-upload-pack": "POST", "git-receive-pack": "POST"}


@dataclass(frozen=True)
class _AdmittedRequest:
    """A request that was let in."""

    actor: Actor | None
    repository: Row
    bare: BareRepository
    rules: Mapping[str, str]
    """The variables that tell the update hook what binds this visitor."""


@dataclass
class GitEndpoint:
    """Where git comes in, for one request. ``requests`` is the server's log; ``observe`` tells those who watch."""

    database: Database
    bares: GitStorage
    settings: SandboxSettings
    faults: Faults
    requests: list[tuple[str, str, int]]
    observe: Observer
    applied: bool = False

    async def serve(self, request: Request, full_name: str, service: str, send: Send) -> None:
        """Serve one request of git."""
        self.observe(_exchange(request, "received"))
        fault = self.faults.take(request.method, request.scope["path"])
        if self.settings.latency_seconds:
            await asyncio.sleep(self.settings.latency_seconds)
        try:
            if fault is not None and fault.kind == "lost-before":
                await self._lose(request)
                return
            self._check_fault(fault, after=False)
            visit = self._admit(request, full_name, service)
            if service == "git-receive-pack":
                await self._push(request, visit, fault, send)
            else:
                await self._pass_on(request, visit, service, fault, send)
        except Refusal as refusal:
            await self._answer(request, refusal.status, _headers(refusal), f"{refusal.message}\n".encode(), send)

    async def _push(self, request: Request, visit: _AdmittedRequest, fault: Fault | None, send: Send) -> None:
        """Let git take a push, let the pull requests follow, and report."""
        with tempfile.TemporaryDirectory(prefix="accord-push-") as folder:
            verdicts = Path(folder) / "verdicts"
            rules = {**visit.rules, "SANDBOX_VERDICTS": str(verdicts)}
            async with _backend(request, visit, "git-receive-pack", rules) as process:
                status, headers = await _head(process)
                report = b"".join([chunk async for chunk in _body(process)])
            told = verdicts.read_text(encoding="utf-8") if verdicts.exists() else ""
        self._follow(visit)
        self.applied = True
        if fault is not None and fault.kind == "lost-after":
            await self._lose(request)
            return
        self._check_fault(fault, after=True)
        if fault is not None and fault.kind == "slow":
            await asyncio.sleep(fault.seconds)
        reasons = dict(line.split(" ", 1) for line in told.splitlines())
        report = with_reasons(report, reasons)
        headers["content-length"] = str(len(report))
        if fault is not None and fault.kind == "truncated":
            self._log(request, status)
            await send({"type": "http.response.start", "status": status, "headers": _raw(headers)})
            await send({"type": "http.response.body", "body": report[: len(report) // 2], "more_body": True})
            await drop(request)
            return
        await self._answer(request, status, headers, report, send)

    async def _pass_on(
        self, request: Request, visit: _AdmittedRequest, service: str, fault: Fault | None, send: Send
    ) -> None:
        """Answer a question, a clone or a fetch; nothing is kept in memory."""
        if fault is not None and fault.kind == "slow":
            await asyncio.sleep(fault.seconds)
        elif fault is not None:  # nothing changes by these, so it is all one when the answer gets lost
            await self._lose(request)
            return
        async with _backend(request, visit, service, visit.rules) as process:
            status, headers = await _head(process)
            self.applied = True
            self._log(request, status)
            await send({"type": "http.response.start", "status": status, "headers": _raw(headers)})
            async for chunk in _body(process):
                await send({"type": "http.response.body", "body": chunk, "more_body": True})
            await send({"type": "http.response.body", "body": b""})

    def _admit(self, request: Request, full_name: str, service: str) -> _AdmittedRequest:
        """Check who comes and what for; refuse as GitHub refuses."""
        asked = service if service != "info/refs" else parse_qs(request.url.query).get("service", [""])[0]
        if request.method != _METHODS[service] or asked not in _METHODS:
            raise Refusal(403, "Please upgrade your git client.\nGitHub.com no longer supports git over dumb-http.")
        pushes = asked == "git-receive-pack"
        with self.database.reading() as connection:
            try:
                actor = authenticate(connection, request.headers.get("authorization"))
            except Refusal:
                raise _unauthorized("Invalid username or token.") from None
            repository = find_repository(connection, full_name)
            held = None if repository is None else grant(connection, actor, repository)
            if repository is None or held is None or not held.sees or not held.may("contents", AccessLevel.READ):
                raise _unauthorized("Repository not found.") if actor is None else Refusal(404, "Repository not found.")
            if pushes:
                _check_push(actor, held, repository)
            rules = repositories.refused_to(held, repositories.protections(connection, repository))
        refused = {"SANDBOX_WORKFLOWS_REFUSED": _refused_workflows(actor)}
        return _AdmittedRequest(actor, repository, self.bares.open(repository["full_name"]), {**rules, **refused})

    def _follow(self, visit: _AdmittedRequest) -> None:
        actor = visit.actor
        assert actor is not None  # noqa: S101 (nobody pushes without a token)
        with self.database.writing() as connection:
            now = self.settings.clock.now().timestamp()
            pull_state.follow_branches(
                pull_state.RefUpdate(connection, visit.bare, visit.repository["id"], actor.user_id, now)
            )

    def _check_fault(self, fault: Fault | None, *, after: bool) -> None:
        if fault is None or (fault.kind in faults.AFTER) != after:
            return
        refusal = faults.refusal(fault, None, self.settings.clock.now().timestamp())
        if refusal is not None:
            raise refusal

    async def _lose(self, request: Request) -> None:
        self._log(request, 0)
        await drop(request)

    async def _answer(
        self, request: Request, status: int, headers: Mapping[str, str], content: bytes, send: Send
    ) -> None:
        self._log(request, status)
        headers = {**headers, "content-length": str(len(content))}
        await send({"type": "http.response.start", "status": status, "headers": _raw(headers)})
        await send({"type": "http.response.body", "body": content})

    def _log(self, request: Request, status: int) -> None:
        self.requests.append((request.method, request.scope["path"], status))
        self.observe(replace(_exchange(request, "applied"), status=status or None, applied=self.applied))


def _exchange(request: Request, phase: Literal["received", "applied"]) -> Exchange:
    query = {name: values[-1] for name, values in parse_qs(request.url.query).items()}
    return Exchange(phase, request.method, request.scope["path"], query, dict(request.headers), None)


def _check_push(actor: Actor | None, held: Grant, repository: Row) -> None:
    name = repository["full_name"]
    if actor is None:
        raise _unauthorized("Authentication required.")
    if not held.may("contents", AccessLevel.WRITE):
        raise Refusal(403, f"Permission to {name}.git denied to {actor.login}.")
    if repository["archived"]:
        raise Refusal(403, "This repository was archived so it is read-only.")


def _refused_workflows(actor: Actor | None) -> str:
    """Return whom workflow files are refused to and for lack of what, nothing for who may push them."""
    if actor is None or actor.may_write_workflows:
        return ""
    if actor.kind == "installation":
        return "a GitHub App|`workflows` permission"
    return "a Personal Access Token|`workflow` scope"


def _unauthorized(message: str) -> Refusal:
    return Refusal(401, message, headers={"www-authenticate": 'Basic realm="GitHub"'})


def _headers(refusal: Refusal) -> dict[str, str]:
    return {"content-type": "text/plain; charset=utf-8", **refusal.headers}


def _raw(headers: Mapping[str, str]) -> list[tuple[bytes, bytes]]:
    return [(name.encode("latin-1"), value.encode("latin-1")) for name, value in headers.items()]


@contextlib.asynccontextmanager
async def _backend(
    request: Request, visit: _AdmittedRequest, service: str, rules: Mapping[str, str]
) -> AsyncIterator[Process]:
    """Run the CGI with the request's body flowing in; it is stopped when the client leaves early."""
    process = await asyncio.create_subprocess_exec(
        git_program(),
        "http-backend",
        env={**git_environment(), **_cgi(request, visit, service), **rules},
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
    assert process.stdin is not None  # noqa: S101 (a pipe was asked for)
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
    assert process.stdout is not None  # noqa: S101 (a pipe was asked for)
    headers: dict[str, str] = {}
    while line := (await process.stdout.readline()).strip():
        name, _, value = line.decode("latin-1").partition(":")
        headers[name.lower()] = value.strip()
    if not headers:
        raise Refusal(500, "Internal Server Error")
    return int(headers.pop("status", "200").split()[0]), headers


async def _body(process: Process) -> AsyncIterator[bytes]:
    assert process.stdout is not None  # noqa: S101 (a pipe was asked for)
    while chunk := await process.stdout.read(CHUNK):
        yield chunk


def _cgi(request: Request, visit: _AdmittedRequest, service: str) -> dict[str, str]:
    """Return the request as CGI variables; without a length the program reads to the end, which chunks need."""
    variables = {
        "GIT_PROJECT_ROOT": str(visit.bare.path),
        "GIT_HTTP_EXPORT_ALL": "1",
        "PATH_INFO": f"/{service}",
        "REQUEST_METHOD": request.method,
        "QUERY_STRING": request.url.query,
        "REMOTE_ADDR": "127.0.0.1",
        "REMOTE_USER": visit.actor.login if visit.actor else "",
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
"""What git adds on its own account, and GitHub does not."""


def with_reasons(report: bytes, reasons: Mapping[str, str]) -> bytes:
    """Return the answer to a push in which the refused refs of ``reasons`` carry their reason."""
    if not reasons:
        return report
    told = [line for line in _packets(report) if line is not None]
    banded = all(line[:1] in (b"\x01", b"\x02", b"\x03") for line in told)
    if not banded:
        return b"".join(_rewritten(report, reasons))
    status = b"".join(line[1:] for line in told if line[:1] == b"\x01")
    others = [_packet(said) for line in told if line[:1] != b"\x01" and len(said := _NOISE.sub(b"", line)) > 1]
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
    place = 0
    while place < len(stream):
        length = int(stream[place : place + 4], 16)
        yield stream[place + 4 : place + length] if length else None
        place += length or 4


def _packet(line: bytes) -> bytes:
    return b"%04x" % (len(line) + 4) + line
