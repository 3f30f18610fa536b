"""Artifacts of workflow runs over REST: found by run and name, fetched from where GitHub keeps them, and unpacked.

GitHub answers a download with a redirect to a storage service. The token is not sent there: the address, which holds
for a minute, is the right to read.
"""

from __future__ import annotations

import hashlib
import tempfile
from dataclasses import dataclass
from typing import IO, TYPE_CHECKING, Any

from accord.github.limits import PAGE_SIZE
from accord.github.policy import TRIES, backoff
from accord.github.port import NotThere
from accord.github.rest import Rest
from accord.github.storage import check_place, open_place
from accord.kernel.archives import check_absent, read_members, unpack
from accord.kernel.errors import BrokenContract, Refused, Stopped

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from accord.kernel.archives import Member

MOST_ARCHIVE_BYTES = 256 << 20
_CHUNK_BYTES = 1 << 16
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
    """The requests about artifacts."""

    def artifacts(self, run_id: int, name: str = "") -> list[Artifact]:
        """GET …/actions/runs/{run_id}/artifacts, all pages; those of one name when it is given."""
        params = {"per_page": PAGE_SIZE, **({"name": name} if name else {})}
        pages = self._transport.pages(f"{self._root}/actions/runs/{run_id}/artifacts", params)
        return [artifact for page in pages for artifact in page.read(_artifacts)]

    def download(self, artifact: Artifact, file: IO[bytes]) -> None:
        """Write the archive into a file that is open for writing, from its beginning.

        The address is asked for anew at each try, as it soon expires. Raises Refused when the artifact has expired,
        Stopped when the storage does not answer, BrokenContract for more than ``MOST_ARCHIVE_BYTES``.
        """
        for tries in range(1, TRIES + 1):
            place = self._place(artifact)
            problem = self._copied(place, artifact, file)
            if not problem:
                return
            if tries < TRIES:
                self._clock.sleep(backoff(tries))
        raise Stopped(
            f'The artifact "{artifact.name}" could not be fetched in {TRIES} tries ({problem}).',
            mend="Run the same command again; nothing is kept of what was fetched in part.",
        )

    def _place(self, artifact: Artifact) -> str:
        path = f"{self._root}/actions/artifacts/{artifact.id}/zip"
        try:
            place = str(self._transport.call("GET", path, takes_place=True).data)
        except NotThere as gone:
            raise _expired(artifact) from gone
        check_place(place, self._access.api_url, f'The artifact "{artifact.name}"')
        return place

    def _copied(self, place: str, artifact: Artifact, file: IO[bytes]) -> str:
        """Copy an archive from the storage; return what went wrong, if anything did."""
        import requests

        file.seek(0)
        file.truncate()
        digest = hashlib.sha256()
        try:
            with open_place(place) as answer:
                if answer.status_code != 200:
                    return f"status {answer.status_code}"
                for chunk in answer.iter_content(_CHUNK_BYTES):
                    if file.tell() + len(chunk) > MOST_ARCHIVE_BYTES:
                        raise _too_large(artifact)
                    file.write(chunk)
                    digest.update(chunk)
        except requests.exceptions.RequestException as error:
            return type(error).__name__
        has_digest = artifact.digest.startswith("sha256:")
        return "its digest differs" if has_digest and artifact.digest != f"sha256:{digest.hexdigest()}" else ""


def fetch_artifact(github: ArtifactMethods, name: str, run_id: int, into: Path, wanted: str = "") -> Fetched:
    """Fetch the newest artifact of a name in a workflow run, and unpack it into a folder that must not be there yet.

    ``wanted`` is the path of a file that must be in it; without it, the only file counts where there is one. The folder
    appears with all of it or not at all. Raises WrongUsage for a folder that is there, Refused for an artifact or a
    file that is not, BrokenContract for an archive that must not be unpacked.
    """
    check_absent(into)
    artifact = _newest(github, name, run_id)
    with tempfile.TemporaryFile() as archive:
        github.download(artifact, archive)
        members = read_members(archive)
        file = _wanted(artifact, members, wanted)
        unpack(archive, members, into)
    return Fetched(artifact, members, file)


def _newest(github: ArtifactMethods, name: str, run_id: int) -> Artifact:
    found = [artifact for artifact in github.artifacts(run_id, name) if artifact.name == name]
    if not found:
        others = sorted({artifact.name for artifact in github.artifacts(run_id)})
        raise Refused(
            f'The run {run_id} has no artifact "{name}"{_listed(others)}.',
            mend="Upload it in a job that this one needs, with if-no-files-found: error, and name both alike.",
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
            mend="Name a file by its path in the artifact, which begins at what all uploaded files have in common.",
        )
    return wanted or (paths[0] if len(paths) == 1 else "")


def _listed(names: Sequence[str]) -> str:
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    return f"; it has {', '.join(names[:_NAMED])}{more}" if names else "; it has none"


def _expired(artifact: Artifact) -> Refused:
    return Refused(
        f'The artifact "{artifact.name}" has expired or was deleted.',
        mend="Run the job that made it again; retention-days of its upload says how long it is kept.",
    )


def _too_large(artifact: Artifact) -> BrokenContract:
    return BrokenContract(
        f'The artifact "{artifact.name}" is larger than {MOST_ARCHIVE_BYTES >> 20} MiB.',
        mend="Upload only what the next job reads.",
    )


def _artifacts(data: dict[str, Any]) -> list[Artifact]:
    """Read the JSON of a list (schema "artifact" of GitHub's OpenAPI description)."""
    return [
        Artifact(
            id=entry["id"],
            name=entry["name"],
            digest=entry.get("digest") or "",
            created_at=entry.get("created_at") or "",
            is_expired=bool(entry["expired"]),
        )
        for entry in data["artifacts"]
    ]
