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
from collections.abc import AsyncIterator, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from starlette.requests import Request
from starlette.types import Send

from accord_sandbox.calls import AccessLevel, Grant, authenticate, grant_of
from accord_sandbox.database import Row, find_repository
from accord_sandbox.faults import AFTER, Exchange, Fault, ServerState, drop, fault_refusal, raw_headers, send_answer
from accord_sandbox.git_storage import BareRepository, http_backend
from accord_sandbox.pull_state import follow_branches
from accord_sandbox.responses import Refusal
from accord_sandbox.rulesets import hook_variables, protections, rule_variables
from accord_sandbox.tokens import TokenOwner
from accord_sandbox.triggers import RefUpdate

if TYPE_CHECKING:
    from asyncio.subprocess import Process

PATTERN = re.compile(
    r"/(?P<owner>[^/]+)/(?P<repo>[^/]+?)(?:\.git)?/(?P<service>info/refs|git-upload-pack|git-receive-pack)"
)
CHUNK = 65_536
_CGI_HEADERS = {
    "content-type": "CONTENT_TYPE",
    "content-length": "CONTENT_LENGTH",
    "content-encoding": "HTTP_CONTENT_ENCODING",
    "git-protocol": "GIT_PROTOCOL",
}
_CAPABILITIES: list[tuple[int, dict[str, str], bytes]] = []
"""The status, the headers and the content of git's answer, once it gave one."""

_METHODS = {"info/refs": "GET", "git-upload-pack": "POST", "git-receive-pack": "POST"}


class _Access(NamedTuple):
    """Access of the sender to the repository; ``variables`` are the sender's for git and for the update hook."""

    actor_id: int
    repository_id: int
    bare: BareRepository
    variables: Mapping[str, str]


@dataclass
class GitEndpoint:
    """Serves one request of git."""

    server: ServerState
    request: Request
    send: Send
    service: str
    applied: bool = False

    async def serve(self, full_name: str) -> None:
        """Serve the request."""
        self.server.observe(self._received)
        fault = self.server.faults.take(self.request.method, self.request.scope["path"])
        try:
            if fault is not None and fault.kind == "lost-before":
                await self._lose()
                return
            self._check_fault(fault, after=False)
            access = self._admit(full_name)
            await (self._push if self.service == "git-receive-pack" else self._pass_on)(access, fault)
        except Refusal as refusal:
            headers = {"content-type": "text/plain; charset=utf-8", **refusal.headers}
            await self._answer(refusal.status, headers, f"{refusal.message}\n".encode())

    async def _push(self, access: _Access, fault: Fault | None) -> None:
        """Let git receive a push, let the pull requests follow, and report."""
        with tempfile.TemporaryDirectory(prefix="accord-push-") as folder:
            verdicts = Path(folder) / "verdicts"
            async with self._backend(access, {"SANDBOX_VERDICTS": str(verdicts)}) as process:
                status, headers = await _head(process)
                report = b"".join([chunk async for chunk in _body(process)])
            listed = verdicts.read_text(encoding="utf-8") if verdicts.exists() else ""
        with self.server.database.writing() as connection:
            now = self.server.settings.clock.now().timestamp()
            follow_branches(RefUpdate(connection, access.bare, access.repository_id, access.actor_id, now))
        self.applied = True
        if fault is not None and fault.kind == "lost-after":
            await self._lose()
            return
        self._check_fault(fault, after=True)
        if fault is not None and fault.kind == "slow":
            await asyncio.sleep(fault.seconds)
        report = with_reasons(report, dict(line.split(" ", 1) for line in listed.splitlines()))
        await self._answer(status, headers, report, truncated=fault is not None and fault.kind == "truncated")

    async def _pass_on(self, access: _Access, fault: Fault | None) -> None:
        """Answer a listing of refs, a clone or a fetch without buffering it."""
        if fault is not None and fault.kind == "slow":
            await asyncio.sleep(fault.seconds)
        elif fault is not None:  # it changes nothing, so before and after make no difference
            await self._lose()
            return
        if self._asks_for_capabilities():
            self.applied = True
            await self._answer(*await self._capabilities(access))
            return
        async with self._backend(access, {}) as process:
            status, headers = await _head(process)
            self.applied = True
            self._log(status)
            await self.send({"type": "http.response.start", "status": status, "headers": raw_headers(headers)})
            async for chunk in _body(process):
                await self.send({"type": "http.response.body", "body": chunk, "more_body": True})
            await self.send({"type": "http.response.body", "body": b""})

    def _asks_for_capabilities(self) -> bool:
        """Tell whether the answer is what git can do, and names no ref: that is the same for all repositories."""
        is_version_2 = self.request.headers.get("git-protocol") == "version=2"
        return is_version_2 and self.service == "info/refs" and self._received.query["service"] == "git-upload-pack"

    async def _capabilities(self, access: _Access) -> tuple[int, dict[str, str], bytes]:
        """Ask git for its answer, until it gave one."""
        if _CAPABILITIES:
            return _CAPABILITIES[0]
        async with self._backend(access, {}) as process:
            status, headers = await _head(process)
            answer = status, headers, b"".join([chunk async for chunk in _body(process)])
        if status == 200:
            _CAPABILITIES.append(answer)
        return answer

    def _admit(self, full_name: str) -> _Access:
        """Check access; refuse like GitHub."""
        wanted = self._received.query.get("service", "") if self.service == "info/refs" else self.service
        if self.request.method != _METHODS[self.service] or wanted not in _METHODS:
            raise Refusal(403, "Please upgrade your git client.\nGitHub.com no longer supports git over dumb-http.")
        with self.server.database.reading() as connection:
            try:
                actor = authenticate(connection, self.request.headers.get("authorization"))
            except Refusal:
                raise _unauthorized("Invalid username or token.") from None
            repository = find_repository(connection, full_name)
            grant = None if repository is None else grant_of(connection, actor, repository)
            if repository is None or grant is None or not grant.sees or not grant.may("contents", AccessLevel.READ):
                raise _unauthorized("Repository not found.") if actor is None else Refusal(404, "Repository not found.")
            if wanted == "git-receive-pack":
                _check_push(actor, grant, repository)
            variables = hook_variables(grant, protections(connection, repository))
            web = f"{self.request.url.scheme}://{self.request.headers['host']}"
            variables |= rule_variables(connection, repository, web)
        variables |= {"SANDBOX_WORKFLOWS_REFUSED": _refused_workflows(actor)}
        variables |= {"REMOTE_USER": actor.login if actor else ""}
        bare = self.server.storage.open(repository["full_name"])
        return _Access(actor.user_id if actor else 0, repository["id"], bare, variables)

    def _check_fault(self, fault: Fault | None, *, after: bool) -> None:
        if fault is not None and (fault.kind in AFTER) == after:
            refusal = fault_refusal(fault, None, self.server.settings.clock.now().timestamp())
            if refusal is not None:
                raise refusal

    async def _lose(self) -> None:
        self._log(0)
        await drop(self.request)

    async def _answer(
        self, status: int, headers: Mapping[str, str], content: bytes, *, truncated: bool = False
    ) -> None:
        self._log(status)
        headers = {**headers, "content-length": str(len(content))}
        await send_answer(self.request, status, headers, content, self.send, truncated)

    def _log(self, status: int) -> None:
        self.server.requests.append((self.request.method, self.request.scope["path"], status))
        answered = replace(self._received, phase="applied", status=status or None, applied=self.applied)
        self.server.observe(answered)

    @cached_property
    def _received(self) -> Exchange:
        query, headers = dict(self.request.query_params), dict(self.request.headers)
        return Exchange("received", self.request.method, self.request.scope["path"], query, headers, None)

    @contextlib.asynccontextmanager
    async def _backend(self, access: _Access, more: Mapping[str, str]) -> AsyncIterator[Process]:
        """Run the CGI on the request's body; stop it when the client disconnects."""
        process = await asyncio.create_subprocess_exec(
            http_backend(),
            env={**access.bare.git.variables(), **self._cgi(access.bare), **access.variables, **more},
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL,
            limit=CHUNK,
        )
        feeding = asyncio.create_task(_feed(self.request, process))
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

    def _cgi(self, bare: BareRepository) -> dict[str, str]:
        """Return the request as CGI variables; chunks have no length, so the program reads to the end."""
        variables = {
            "GIT_PROJECT_ROOT": str(bare.path),
            "GIT_HTTP_EXPORT_ALL": "1",
            "PATH_INFO": f"/{self.service}",
            "REQUEST_METHOD": self.request.method,
            "QUERY_STRING": self.request.url.query,
            "REMOTE_ADDR": "127.0.0.1",
        }
        found = {name: self.request.headers.get(header) for header, name in _CGI_HEADERS.items()}
        return variables | {name: value for name, value in found.items() if value is not None}


def _check_push(actor: TokenOwner | None, grant: Grant, repository: Row) -> None:
    name = repository["full_name"]
    if actor is None:
        raise _unauthorized("Authentication required.")
    if not grant.may("contents", AccessLevel.WRITE):
        raise Refusal(403, f"Permission to {name}.git denied to {actor.login}.")
    if repository["archived"]:
        raise Refusal(403, "This repository was archived so it is read-only.")


def _refused_workflows(actor: TokenOwner | None) -> str:
    """Return the kind of token and the permission it lacks to push workflow files, "" when it may."""
    if actor is None or actor.may_write_workflows:
        return ""
    if actor.kind == "installation":
        return "a GitHub App|`workflows` permission"
    return "a Personal Access Token|`workflow` scope"


def _unauthorized(message: str) -> Refusal:
    return Refusal(401, message, headers={"www-authenticate": 'Basic realm="GitHub"'})


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
    status = b"".join(line[1:] for line in lines if line[:1] == b"\x01")
    others = [_packet(text) for line in lines if line[:1] != b"\x01" and len(text := _NOISE.sub(b"", line)) > 1]
    changed = b"".join(_with_reason(line, reasons) for line in _packets(status))
    parts = [changed[start : start + MOST_IN_A_LINE] for start in range(0, len(changed), MOST_IN_A_LINE)]
    return b"".join([*others, *(_packet(b"\x01" + part) for part in parts), _FLUSH])


def _with_reason(line: bytes | None, reasons: Mapping[str, str]) -> bytes:
    if line is None:
        return _FLUSH
    words = line.decode(errors="surrogateescape").rstrip("\n").split(" ", 2)
    if words[0] == "ng" and words[2:] == [_DECLINED] and words[1] in reasons:
        line = f"ng {words[1]} {reasons[words[1]]}\n".encode(errors="surrogateescape")
    return _packet(line)


def _packets(stream: bytes) -> Iterator[bytes | None]:
    """Return the payloads of pkt-lines, None for a flush."""
    start = 0
    while start < len(stream):
        length = int(stream[start : start + 4], 16)
        yield stream[start + 4 : start + length] if length else None
        start += length or 4


def _packet(line: bytes) -> bytes:
    return b"%04x" % (len(line) + 4) + line
