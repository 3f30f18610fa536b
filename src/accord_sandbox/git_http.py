"""git over HTTP, by the smart protocol: git itself lists and packs; pushes are received here, by GitHub's rules.

Docs: https://git-scm.com/docs/http-protocol, https://git-scm.com/docs/pack-protocol ("Pushing Data To a Server")
"""

from __future__ import annotations

import asyncio
import re
import tempfile
import zlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import BinaryIO

from starlette.requests import Request

from accord.git.program import GitFailed
from accord_sandbox.calls import AccessLevel, Call, authenticate
from accord_sandbox.database import SqlConnection
from accord_sandbox.faults import Exchange, ServerState
from accord_sandbox.git_storage import HEADS, ZERO, is_valid_ref
from accord_sandbox.pull_state import follow_branches
from accord_sandbox.repositories import RULES, broken_rules, protection_problem, unsigned_commits
from accord_sandbox.responses import ApiResponse, Refusal

PATTERN = re.compile(
    r"/(?P<owner>[^/]+)/(?P<repo>[^/]+?)(?:\.git)?/(?P<service>info/refs|git-upload-pack|git-receive-pack)"
)
MOST_IN_A_LINE = 65_515
_COMMAND = re.compile(r"(?P<old>[0-9a-f]{40}) (?P<new>[0-9a-f]{40}) (?P<ref>[^\n]*)")
_FLUSH = b"0000"
_METHODS = {"info/refs": "GET", "git-upload-pack": "POST", "git-receive-pack": "POST"}


@dataclass
class GitEndpoint:
    """One request of git."""

    server: ServerState
    request: Request
    service: str
    full_name: str

    async def act(self) -> ApiResponse:
        """Let git answer, or receive a push."""
        with tempfile.TemporaryFile(buffering=0) as body:  # git reads on where the commands of a push end
            await self._store_body(body)
            content = await asyncio.to_thread(self._run, body)
        end = "advertisement" if self.service == "info/refs" else "result"
        headers = {"content-type": f"application/x-{self._wanted}-{end}", "cache-control": "no-cache"}
        return ApiResponse(200, headers=headers, content=content)

    def finish(self, result: ApiResponse | Refusal) -> ApiResponse:
        """Return the answer; a refusal is a plain text."""
        if not isinstance(result, Refusal):
            return result
        headers = {"content-type": "text/plain; charset=utf-8", **result.headers}
        return ApiResponse(result.status, headers=headers, content=f"{result.message}\n".encode())

    async def _store_body(self, body: BinaryIO) -> None:
        unzip = zlib.decompressobj(wbits=31) if self.request.headers.get("content-encoding") == "gzip" else None
        async for part in self.request.stream():
            body.write(unzip.decompress(part) if unzip else part)
        body.seek(0)

    def _run(self, body: BinaryIO) -> bytes:
        """Return what git answers; a push has moved its refs then, and the pull requests have followed."""
        with self.server.database.reading() as connection:
            bare = self._admit(connection).bare
        if self.service == "git-receive-pack":
            commands = read_commands(body)
            problem = bare.unpack(body)  # outside of the transaction: other requests go on
            with self.server.database.writing() as connection:
                call = self._admit(connection)
                report = receive(call, commands, problem)
                follow_branches(call)
            return report
        protocol = self.request.headers.get("git-protocol", "")
        git = replace(bare.git, environment={**bare.git.environment, "GIT_PROTOCOL": protocol})
        command = (self._wanted.removeprefix("git-"), "--stateless-rpc")
        if self.service != "info/refs":
            return git.attempt(*command, ".", data=body.read()).stdout
        head = (
            b"" if protocol == "version=2" and command[0] == "upload-pack" else _packet(f"# service={self._wanted}\n")
        )
        return head + (head and _FLUSH) + git(*command, "--advertise-refs", ".")

    def _admit(self, db: SqlConnection) -> Call:
        """Return the request as one of the API; refuse like GitHub who may not fetch or push."""
        if self.request.method != _METHODS[self.service] or self._wanted not in _METHODS:
            raise Refusal(403, "Please upgrade your git client.\nGitHub.com no longer supports git over dumb-http.")
        owner, _, name = self.full_name.partition("/")
        web = f"{self.request.url.scheme}://{self.request.headers['host']}"
        now, params = self.server.settings.clock.now().timestamp(), {"owner": owner, "repo": name}
        call = Call(db, self.server.settings, now, web, web, "", {}, self.server.storage, params=params)
        try:
            call.actor = authenticate(db, self.request.headers.get("authorization"))
        except Refusal:
            raise _unauthorized("Invalid username or token.") from None
        try:
            call.require_read("contents")
        except Refusal:
            refusal = _unauthorized("Repository not found.") if call.actor is None else None
            raise refusal or Refusal(404, "Repository not found.") from None
        if self._wanted == "git-receive-pack":
            if call.actor is None:
                raise _unauthorized("Authentication required.")
            if not call.grant.may("contents", AccessLevel.WRITE):
                raise Refusal(403, f"Permission to {self.full_name}.git denied to {call.actor.login}.")
            if call.repository["archived"]:
                raise Refusal(403, "This repository was archived so it is read-only.")
        return call

    @cached_property
    def _wanted(self) -> str:
        """The program of git that the request is about; empty for the dumb protocol."""
        return self.received.query.get("service", "") if self.service == "info/refs" else self.service

    @cached_property
    def received(self) -> Exchange:
        """The request as observers see it."""
        query, headers = dict(self.request.query_params), dict(self.request.headers)
        return Exchange("received", self.request.method, self.request.scope["path"], query, headers, None)


def _unauthorized(message: str) -> Refusal:
    return Refusal(401, message, headers={"www-authenticate": 'Basic realm="GitHub"'})


def read_commands(body: BinaryIO) -> list[bytes]:
    """Read the commands of a push, up to its pack."""
    commands = list[bytes]()
    while length := int(body.read(4), 16):
        commands.append(body.read(length - 4))
    return commands


def receive(call: Call, commands: Sequence[bytes], problem: str) -> bytes:
    """Move the refs that the rules let a push move, unless its pack had a ``problem``, and return the report."""
    found = (_COMMAND.match(line.partition(b"\0")[0].decode(errors="surrogateescape")) for line in commands)
    changes = [(each["ref"], each["old"], each["new"]) for each in found if each]
    verdicts = [("unpacker error", "") if problem else _refusal_of(call, *change) for change in changes]
    stops = any(reason for reason, _ in verdicts) and any(b" atomic" in line for line in commands)
    report, said = _packet(f"unpack {problem or 'ok'}\n"), "".join(text for _, text in verdicts)
    for change, (reason, _) in zip(changes, verdicts, strict=True):
        failure = reason or ("atomic push failure" if stops else _move_ref(call, *change))
        report += _packet(f"ng {change[0]} {failure}\n" if failure else f"ok {change[0]}\n")
    sent = ((b"\x02", said.encode()), (b"\x01", report + _FLUSH if commands else b""))
    parts = (band + text[at : at + MOST_IN_A_LINE] for band, text in sent for at in range(0, len(text), MOST_IN_A_LINE))
    return b"".join(map(_packet, parts)) + _FLUSH


def _refusal_of(call: Call, ref: str, old: str, new: str) -> tuple[str, str]:
    """Return why GitHub refuses to move a ref, and what it writes about that; empty where it does not."""
    user = call.user
    if not is_valid_ref(ref) or ref.count("/") < 2:
        return "funny refname", ""
    if new != ZERO and not call.bare.is_complete(new):
        return "missing necessary objects", ""
    if ref.startswith("refs/pull/"):
        return "deny updating a hidden ref", ""
    if new == ZERO and ref == HEADS + call.repository["default_branch"]:
        return f"refusing to delete the current branch: {ref}", ""
    if not user.may_write_workflows and (flows := call.bare.added_workflows(new)):
        who, missing = "a Personal Access Token", "`workflow` scope"
        if user.kind == "installation":
            who, missing = "a GitHub App", "`workflows` permission"
        return f"refusing to allow {who} to create or update workflow `{flows[0]}` without {missing}", ""
    if broken := broken_rules(call, ref, old, new):
        page = f"{call.repository_page}/rules?ref={ref.replace('/', '%2F')}"
        words = f"error: GH013: Repository rule violations found for {ref}.\nReview all repository rules at {page}\n\n"
        words += "".join(f"- {RULES[rule]}\n" for rule in broken)
        if "required_signatures" in broken:
            commits = unsigned_commits(call.bare, old, new)
            violations = f"{len(commits)} violation{'s' if len(commits) > 1 else ''}"
            words += f"  Found {violations}:\n\n" + "".join(f"  {sha}\n" for sha in commits)
        return "push declined due to repository rule violations", f"{words}\n"
    if problem := protection_problem(call, ref, old, new):
        words = f"error: GH006: Protected branch update failed for {ref}.\nerror: {problem}\n"
        return "protected branch hook declined", words
    return "", ""


def _move_ref(call: Call, ref: str, old: str, new: str) -> str:
    """Move a ref, or return why git cannot."""
    try:
        call.bare.set_ref(ref, new, old)
    except GitFailed as error:
        return error.stderr.strip().rpartition("fatal: ")[2].replace("\n", " ")
    return ""


def _packet(line: bytes | str) -> bytes:
    content = line.encode(errors="surrogateescape") if isinstance(line, str) else line
    return b"%04x" % (len(content) + 4) + content
