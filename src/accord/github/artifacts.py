"""Downloads from GitHub's storage over REST: artifacts of workflow runs, and the ends of texts such as logs.

GitHub answers a download with a redirect to a storage service. The token is not sent there: the address, which holds
for a minute, is the right to read.
"""

from __future__ import annotations

import hashlib
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, NamedTuple
from urllib.parse import urlsplit

from accord.core.clock import Clock, attempts, doubling_pauses
from accord.core.errors import BrokenContract, Refused, Stopped
from accord.core.findings import names_of
from accord.core.frozen import Frozen, json_field
from accord.core.log import log
from accord.github.models import NotThere
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
    from requests.exceptions import RequestException

    from accord.core.connections import describe, session_for

    problem = hint = ""
    for _ in attempts(clock, doubling_pauses(FIRST_BACKOFF_SECONDS, TRIES - 1)):
        place = stored.place()
        if urlsplit(place).scheme not in {"https", urlsplit(stored.api_url).scheme}:
            message = f"{stored.name} is not where it can be fetched safely: the address has no https."
            raise Refused(message, hint="Check the proxy or firewall between this machine and GitHub.")
        get: dict[str, Any] = {"stream": True, "timeout": TIMEOUT_SECONDS, "allow_redirects": False}
        try:
            with session_for(place) as session, session.get(place, **get) as answer:
                log("github", "GET %s of %s: %d", stored.name, urlsplit(place).netloc, answer.status_code)
                problem, hint = take(answer.status_code, answer.iter_content(_CHUNK_BYTES)), ""
        except RequestException as error:
            problem, hint = describe(error)
        if not problem:
            return
    message = f"{stored.name} could not be fetched in {TRIES} tries ({problem})."
    raise Stopped(message, hint=hint or "Run the same command again; nothing is kept of what was fetched in part.")


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


MOST_ARCHIVE_BYTES = 256 << 20
_NAMED = 20


class Artifact(Frozen):
    """An artifact as GitHub lists it. ``digest`` is that of its archive, such as ``sha256:…``; empty on old servers."""

    id: int = json_field()
    name: str = json_field()
    digest: str = json_field(empty="")
    created_at: str = json_field(empty="")
    is_expired: bool = json_field("expired", bool)


class Fetched(Frozen):
    """An artifact that is now a folder. ``file`` is the path of the one that was wanted, empty without one."""

    artifact: Artifact
    members: Sequence[Member]
    file: str


class ArtifactMethods(Rest):
    """Requests about artifacts of workflow runs."""

    def artifacts(self, run_id: int, name: str = "") -> list[Artifact]:
        """GET …/actions/runs/{run_id}/artifacts, all pages; those of one name when it is given."""
        path, params = f"/actions/runs/{run_id}/artifacts", {"name": name} if name else {}
        return list(self._list_items(path, Artifact.from_json, key="artifacts", **params))

    def download(self, artifact: Artifact, file: IO[bytes]) -> None:
        """Write the archive into a file that is open for writing, from its beginning.

        Raises Refused when the artifact has expired, Stopped when the storage does not answer, BrokenContract for more
        than ``MOST_ARCHIVE_BYTES``.
        """

        def place() -> str:
            try:
                return str(self._call("GET", f"/actions/artifacts/{artifact.id}/zip", takes_location=True).data)
            except NotThere as gone:
                raise _expired_error(artifact) from gone

        stored = StoredFile(f'The artifact "{artifact.name}"', place, self._access.api_url)
        fetch(stored, lambda status, content: _copy_archive(status, content, artifact, file), self.clock)


def _copy_archive(status: int, content: Iterator[bytes], artifact: Artifact, file: IO[bytes]) -> str:
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


def fetch_artifact(
    github: ArtifactMethods, name: str, run_id: int, into: Path, wanted: str = "", *, is_kept: bool = True
) -> Fetched:
    """Fetch the newest artifact of a name in a workflow run, and unpack it into a folder that must not be there yet.

    ``wanted`` is the path of a file that must be in it; without it, the only file counts where there is one. The folder
    appears with all of it or not at all. Raises WrongUsage for a folder that is there, Refused for an artifact or a
    file that is not, BrokenContract for an archive that must not be unpacked. Unless it ``is_kept``, no folder appears.
    """
    from accord.files.archives import check_absent, read_members, unpack

    check_absent(into)
    found = [artifact for artifact in github.artifacts(run_id, name) if artifact.name == name]
    if not found:
        raise Refused(
            f"Workflow run {run_id} has no artifact `{name}`{_names_text(_names_in(github, run_id))}.",
            hint="Upload it under the same name in a job that this one needs, with `if-no-files-found: error`.",
        )
    artifact = max(found, key=lambda artifact: (artifact.created_at, artifact.id))
    if artifact.is_expired:
        raise _expired_error(artifact)
    with tempfile.TemporaryFile() as archive:
        github.download(artifact, archive)
        members = read_members(archive)
        paths = [member.path for member in members]
        if wanted and wanted not in paths:
            raise Refused(
                f'The artifact "{artifact.name}" has no file {wanted}{_names_text(paths)}.',
                hint="Name a file by its path in the artifact, which begins at what all uploaded files have in common.",
            )
        if is_kept:
            unpack(archive, members, into)
    return Fetched(artifact, members, wanted or (paths[0] if len(paths) == 1 else ""))


def fetch_matching(
    github: ArtifactMethods, prefix: str, run_id: int, into: Path, *, is_kept: bool = True
) -> list[Fetched]:
    """Fetch artifacts whose names begin with ``prefix``, each into its folder. Raises as ``fetch_artifact``."""
    every = _names_in(github, run_id)
    names = [name for name in every if name.startswith(prefix)]
    if not names:
        raise Refused(
            f"Workflow run {run_id} has no artifact whose name begins with `{prefix}`{_names_text(every)}.",
            hint="Upload them in jobs that this one needs.",
        )
    return [fetch_artifact(github, name, run_id, into / name, is_kept=is_kept) for name in names]


def _names_in(github: ArtifactMethods, run_id: int) -> list[str]:
    return sorted({artifact.name for artifact in github.artifacts(run_id)})


def _names_text(names: Sequence[str]) -> str:
    return f"; it has {names_of(names, _NAMED)}" if names else "; it has no artifacts"


def _expired_error(artifact: Artifact) -> Refused:
    return Refused(
        f'The artifact "{artifact.name}" has expired or was deleted.',
        hint="Run the job that made it again; retention-days of its upload says how long it is kept.",
    )
