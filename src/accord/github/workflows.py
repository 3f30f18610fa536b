"""Workflow runs over REST: their state, logs and artifacts, and how to start one.

GitHub answers a download with a redirect to a storage service. The token is not sent there: the address, which holds
for a minute, is the right to read.
"""

from __future__ import annotations

import hashlib
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, NamedTuple
from urllib.parse import quote, urlsplit

from accord.core.clock import Clock, attempts, doubling, parse_timestamp, timestamp
from accord.core.errors import BrokenContract, Refused, Stopped
from accord.github.models import Conflict, Forbidden, NotThere
from accord.github.once import send_until_answered
from accord.github.pacing import FIRST_BACKOFF_SECONDS, TRIES
from accord.github.pygithub import TIMEOUT_SECONDS
from accord.github.rest import Rest

if TYPE_CHECKING:
    from accord.files.archives import Member


_CHUNK_BYTES = 1 << 16


class StoredFile(NamedTuple):
    """Something in the storage: what to call it in a sentence, how to ask for its address, and the API that says it."""

    name: str
    place: Callable[[], str]
    api_url: str


def fetch(stored: StoredFile, take: Callable[[int, Iterator[bytes]], str], clock: Clock) -> None:
    """Fetch until ``take`` has what it wants: given a status and the content piece by piece, it returns no problem.

    The address is requested again at each try, as it soon expires. Raises Refused for one that is less safe than the
    API's own, Stopped when the storage does not answer.
    """
    problem = ""
    for _ in attempts(clock, doubling(FIRST_BACKOFF_SECONDS, TRIES - 1)):
        problem = _fetch_once(stored, take)
        if not problem:
            return
    raise Stopped(
        f"{stored.name} could not be fetched in {TRIES} tries ({problem}).",
        hint="Run the same command again; nothing is kept of what was fetched in part.",
    )


def _fetch_once(stored: StoredFile, take: Callable[[int, Iterator[bytes]], str]) -> str:
    """Fetch once; return what went wrong, if anything did. An auth of its own keeps out what ~/.netrc may hold."""
    import requests

    place = stored.place()
    if urlsplit(place).scheme not in {"https", urlsplit(stored.api_url).scheme}:
        raise Refused(
            f"{stored.name} is not where it can be fetched safely: the address has no https.",
            hint="Check the proxy or firewall between this machine and GitHub.",
        )
    try:
        with requests.get(
            place, auth=_as_nobody, stream=True, timeout=TIMEOUT_SECONDS, allow_redirects=False
        ) as answer:
            return take(answer.status_code, answer.iter_content(_CHUNK_BYTES))
    except requests.exceptions.RequestException as error:
        return type(error).__name__


def read_end(stored: StoredFile, most: int, clock: Clock) -> bytes:
    """Read the last ``most`` bytes of a text; empty where the storage has nothing (404, 410). Raises as ``fetch``."""
    kept = bytearray()

    def take(status: int, content: Iterator[bytes]) -> str:
        kept.clear()
        if status in (404, 410):
            return ""
        if status != 200:
            return f"status {status}"
        for chunk in content:
            kept.extend(chunk)
            if len(kept) > 2 * most:
                del kept[:-most]
        return ""

    fetch(stored, take, clock)
    return bytes(kept[-most:])


def _as_nobody(request: Any) -> Any:
    return request


MOST_ARCHIVE_BYTES = 256 << 20
_NAMED = 20


@dataclass(frozen=True, slots=True)
class Artifact:
    """An artifact as GitHub lists it. ``digest`` is that of its archive, such as ``sha256:…``; empty on old servers."""

    id: int
    name: str
    digest: str
    created_at: str
    is_expired: bool


@dataclass(frozen=True, slots=True)
class Fetched:
    """An artifact that is now a folder. ``file`` is the path of the one that was wanted, empty without one."""

    artifact: Artifact
    members: Sequence[Member]
    file: str


class ArtifactMethods(Rest):
    """Requests about artifacts of workflow runs."""

    def artifacts(self, run_id: int, name: str = "") -> list[Artifact]:
        """GET …/actions/runs/{run_id}/artifacts, all pages; those of one name when it is given."""
        params = {"name": name} if name else {}
        path = f"{self._root}/actions/runs/{run_id}/artifacts"
        return list(self._listed(path, _artifact, key="artifacts", **params))

    def download(self, artifact: Artifact, file: IO[bytes]) -> None:
        """Write the archive into a file that is open for writing, from its beginning.

        Raises Refused when the artifact has expired, Stopped when the storage does not answer, BrokenContract for more
        than ``MOST_ARCHIVE_BYTES``.
        """
        path = f"{self._root}/actions/artifacts/{artifact.id}/zip"

        def place() -> str:
            try:
                return str(self._transport.call("GET", path, takes_location=True).data)
            except NotThere as gone:
                raise _expired(artifact) from gone

        stored = StoredFile(f'The artifact "{artifact.name}"', place, self._access.api_url)
        fetch(stored, lambda status, content: _copied(status, content, artifact, file), self._clock)


def _copied(status: int, content: Iterator[bytes], artifact: Artifact, file: IO[bytes]) -> str:
    """Copy an archive from the storage; return what went wrong, if anything did."""
    file.seek(0)
    file.truncate()
    if status != 200:
        return f"status {status}"
    digest = hashlib.sha256()
    for chunk in content:
        if file.tell() + len(chunk) > MOST_ARCHIVE_BYTES:
            message = f'The artifact "{artifact.name}" is larger than {MOST_ARCHIVE_BYTES >> 20} MiB.'
            raise BrokenContract(message, hint="Upload only what the next job reads.")
        file.write(chunk)
        digest.update(chunk)
    has_digest = artifact.digest.startswith("sha256:")
    return "its digest differs" if has_digest and artifact.digest != f"sha256:{digest.hexdigest()}" else ""


def fetch_artifact(github: ArtifactMethods, name: str, run_id: int, into: Path, wanted: str = "") -> Fetched:
    """Fetch the newest artifact of a name in a workflow run, and unpack it into a folder that must not be there yet.

    ``wanted`` is the path of a file that must be in it; without it, the only file counts where there is one. The folder
    appears with all of it or not at all. Raises WrongUsage for a folder that is there, Refused for an artifact or a
    file that is not, BrokenContract for an archive that must not be unpacked.
    """
    from accord.files.archives import check_absent, read_members, unpack

    check_absent(into)
    artifact = _newest(github, name, run_id)
    with tempfile.TemporaryFile() as archive:
        github.download(artifact, archive)
        members = read_members(archive)
        file = _wanted(artifact, members, wanted)
        unpack(archive, members, into)
    return Fetched(artifact, members, file)


def fetch_matching(github: ArtifactMethods, prefix: str, run_id: int, into: Path) -> list[Fetched]:
    """Download the artifacts whose names begin with ``prefix``, each into a folder of its name below ``into``.

    Raises Refused where the run has none, and what ``fetch_artifact`` raises.
    """
    every = github.artifacts(run_id)
    names = sorted({artifact.name for artifact in every if artifact.name.startswith(prefix)})
    if not names:
        others = sorted({artifact.name for artifact in every})
        raise Refused(
            f"Workflow run {run_id} has no artifact whose name begins with `{prefix}`{_listed(others)}.",
            hint="Upload them in jobs that this one needs.",
        )
    return [fetch_artifact(github, name, run_id, into / name) for name in names]


def _newest(github: ArtifactMethods, name: str, run_id: int) -> Artifact:
    found = [artifact for artifact in github.artifacts(run_id, name) if artifact.name == name]
    if not found:
        others = sorted({artifact.name for artifact in github.artifacts(run_id)})
        raise Refused(
            f"Workflow run {run_id} has no artifact `{name}`{_listed(others)}.",
            hint="Upload it under the same name in a job that this one needs, with `if-no-files-found: error`.",
        )
    newest = max(found, key=lambda artifact: (artifact.created_at, artifact.id))
    if newest.is_expired:
        raise _expired(newest)
    return newest


def _wanted(artifact: Artifact, members: Sequence[Member], wanted: str) -> str:
    paths = [member.path for member in members]
    if wanted and wanted not in paths:
        raise Refused(
            f'The artifact "{artifact.name}" has no file {wanted}{_listed(paths)}.',
            hint="Name a file by its path in the artifact, which begins at what all uploaded files have in common.",
        )
    return wanted or (paths[0] if len(paths) == 1 else "")


def _listed(names: Sequence[str]) -> str:
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    return f"; it has {', '.join(names[:_NAMED])}{more}" if names else "; it has no artifacts"


def _expired(artifact: Artifact) -> Refused:
    return Refused(
        f'The artifact "{artifact.name}" has expired or was deleted.',
        hint="Run the job that made it again; retention-days of its upload says how long it is kept.",
    )


def _artifact(data: dict[str, Any]) -> Artifact:
    """Read the JSON of an artifact (schema "artifact" of GitHub's OpenAPI description)."""
    return Artifact(
        id=data["id"],
        name=data["name"],
        digest=data.get("digest") or "",
        created_at=data.get("created_at") or "",
        is_expired=bool(data["expired"]),
    )


MOST_LOG_BYTES = 4 << 20
"""Only the end of a longer log is kept: what fails ends it."""


@dataclass(frozen=True, slots=True)
class WorkflowRun:
    """A run of a workflow. ``status`` is GitHub's word (queued, in_progress, completed, …), ``conclusion`` empty until
    it is completed. ``pulls`` are the pull requests of this repository whose head it ran for; attempts count from 1.
    ``title`` is what the page shows, which a workflow's ``run-name`` decides.
    """

    id: int
    name: str
    path: str
    event: str
    status: str
    conclusion: str
    head_sha: str
    head_branch: str
    pulls: tuple[int, ...]
    created_at: datetime
    title: str = ""
    attempt: int = 1

    @property
    def has_ended(self) -> bool:
        """Whether nothing more comes of it."""
        return self.status == "completed"

    @property
    def is_held(self) -> bool:
        """Whether GitHub waits for a person to approve it; it has no jobs until then, and so no check runs."""
        return self.has_ended and self.conclusion == "action_required"


class WorkflowMethods(Rest):
    """Requests about workflow runs."""

    _names_started_runs = True
    """False once the server refused to be asked for the run that it starts."""

    def run_page(self, run_id: int) -> str:
        """Return the address of a run's page. No request."""
        return f"{self._access.server_url}/{self._access.repository}/actions/runs/{run_id}"

    def workflow_run(self, run_id: int) -> WorkflowRun | None:
        """Read a run; None without one, or after it was deleted. GET …/actions/runs/{run_id}."""
        return self._found(f"{self._root}/actions/runs/{run_id}", _run)

    def workflow_runs(self, file: str, *, event: str, since: datetime) -> Iterator[WorkflowRun]:
        """List the runs of a workflow that an event started since then, newest first.

        GET …/actions/workflows/{file}/runs, all pages. Raises NotThere where the workflow does not exist.
        """
        path = f"{self._root}/actions/workflows/{quote(file, safe='')}/runs"
        return self._listed(path, _run, key="workflow_runs", event=event, created=f">={timestamp(since)}")

    def dispatched_runs(self, file: str, word: str, since: datetime) -> Iterator[WorkflowRun]:
        """Yield runs that were started by ``workflow_dispatch`` since then, newest first, if their title has the word.

        A workflow's ``run-name`` puts inputs into the title. Yields nothing where the workflow does not exist.
        """
        try:
            runs = self.workflow_runs(file, event="workflow_dispatch", since=since)
            yield from (run for run in runs if word in run.title.split())
        except NotThere:
            return

    def cancel_run(self, run_id: int) -> bool:
        """Ask GitHub to cancel a run; False where it has ended already. Safe to repeat.

        POST …/actions/runs/{run_id}/cancel, sent again when its answer is lost.
        """
        path = f"{self._root}/actions/runs/{run_id}/cancel"
        try:
            send_until_answered(lambda: self._transport.call("POST", path), self._clock)
        except Conflict:
            return False
        return True

    def held_runs(self, sha: str) -> tuple[WorkflowRun, ...]:
        """List the runs for pull requests with this head that wait for a person's approval, newest first.

        GET …/actions/runs, all pages: one request as a rule. Raises Forbidden without ``actions: read``.
        """
        params = {"head_sha": sha, "event": "pull_request", "status": "action_required"}
        listed = self._listed(f"{self._root}/actions/runs", _run, key="workflow_runs", **params)
        return tuple(run for run in listed if run.is_held)

    def rerun(self, run_id: int) -> None:
        """Start a run again; by an app's token it needs no approval then.

        POST …/actions/runs/{run_id}/rerun. Raises Forbidden for a run in progress too, and AnswerLost.
        """
        self._transport.call("POST", f"{self._root}/actions/runs/{run_id}/rerun")

    def job_log(self, job_id: int) -> str:
        """Read the end of a job's log, ``MOST_LOG_BYTES`` at most; empty when GitHub has no log any more.

        GET …/actions/jobs/{job_id}/logs, which redirects to GitHub's storage; the token is not sent there.
        """
        path = f"{self._root}/actions/jobs/{job_id}/logs"

        def place() -> str:
            return str(self._transport.call("GET", path, takes_location=True).data)

        log = StoredFile("The log", place, self._access.api_url)
        try:
            return read_end(log, MOST_LOG_BYTES, self._clock).decode("utf-8", "replace")
        except NotThere:
            return ""

    def dispatch_workflow(self, file: str, ref: str, inputs: Mapping[str, str]) -> int:
        """Start a workflow by the name of its file, and return the id of its run; 0 where the server does not tell.

        POST …/actions/workflows/{file}/dispatches. Versions of Enterprise Server before 3.21 refuse the field that asks
        for the run, so they get the request again without it. Raises AnswerLost when it is unknown whether it was
        started.
        """
        path = f"{self._root}/actions/workflows/{quote(file, safe='')}/dispatches"
        body: dict[str, Any] = {"ref": ref, "inputs": dict(inputs)}
        if self._names_started_runs:
            try:
                answer = self._transport.call("POST", path, body={**body, "return_run_details": True})
                return answer.read(lambda data: int(data["workflow_run_id"])) if answer.data else 0
            except (NotThere, Forbidden):
                raise
            except Refused:  # for the field, or for another reason: then it is refused again
                self._transport.call("POST", path, body=body)
                self._names_started_runs = False
                return 0
        self._transport.call("POST", path, body=body)
        return 0

    def send_event(self, name: str, payload: Mapping[str, Any]) -> None:
        """Start the workflows on ``repository_dispatch`` of this type.

        POST …/dispatches. Raises AnswerLost when they may have started.
        """
        content = {"event_type": name, "client_payload": dict(payload)}
        self._transport.call("POST", f"{self._root}/dispatches", body=content)


def _run(data: dict[str, Any]) -> WorkflowRun:
    """Read the JSON of a run (schema "workflow-run")."""
    return WorkflowRun(
        id=data["id"],
        name=data.get("name") or "",
        path=data["path"],
        event=data["event"],
        status=data["status"] or "",
        conclusion=data["conclusion"] or "",
        head_sha=data["head_sha"],
        head_branch=data["head_branch"] or "",
        pulls=tuple(pull["number"] for pull in data["pull_requests"] or ()),
        title=data.get("display_title") or "",
        created_at=parse_timestamp(data["created_at"]),
        attempt=data.get("run_attempt") or 1,
    )
