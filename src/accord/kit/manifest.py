"""The shipped kit, and the manifest of an installed one: its version, and each template's text as installed.

The texts are the bases of three-way merges. They are in the consumer's repository, so that a merge needs neither
accord's history nor the consumer's, and stored by line, so that a reviewer can read their diff.
"""

from __future__ import annotations

import hashlib
import json
import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, model_validator

import accord
from accord import __version__
from accord.core.documents import read_object
from accord.core.errors import BrokenContract, Refused, WrongUsage
from accord.core.kinds import read_shape
from accord.git.program import Git

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

FOLDER = ".github"
"""The folder of all files of the kit, so that reading one folder is enough."""

_PROMPTS = ("autofix", "bot-comments", "implement", "keepalive", "plan", "review", "verifier")
_ALSO = {
    "results/labels.yml": ".github/labels.yml",
    **{f"runner/prompts/{mode}.md": f".github/prompts/{mode}.md" for mode in _PROMPTS},
}
"""Files of the package that consumers get unchanged; the templates have no second copy of them."""


@dataclass(frozen=True)
class Kit:
    """The templates of a version by path. Their pins are placeholders."""

    version: str
    files: Mapping[str, str]


@cache
def shipped_kit() -> Kit:
    """Return the kit of this version."""
    return Kit(__version__, dict(sorted(_files())))


def _files() -> Iterator[tuple[str, str]]:
    installed = Path(__file__).parent / "consumer-repo"
    root = installed if installed.is_dir() else Path(__file__).parents[3] / "templates/consumer-repo"
    for path in root.rglob("*"):
        if path.is_file():
            yield path.relative_to(root).as_posix(), path.read_text(encoding="utf-8")
    for name, place in _ALSO.items():
        yield place, (Path(accord.__file__).parent / name).read_text(encoding="utf-8")


PLACE = f"{FOLDER}/accord/manifest.json"
_SHA256 = r"^[0-9a-f]{64}$"
_PATH = re.compile(r"\.github(?:/[A-Za-z0-9][A-Za-z0-9._-]*)+")


def digest_of(text: str) -> str:
    """Return the SHA-256 of a text, as hex digits."""
    return hashlib.sha256(text.encode("utf-8", "surrogateescape")).hexdigest()


def _checked_path(path: str) -> str:
    if not _PATH.fullmatch(path) or path == PLACE:
        raise ValueError(f"a path of the kit is below {FOLDER} and has plain names")
    return path


class ManifestEntry(BaseModel):
    """A file of the kit: the template's text by lines, and its digest."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    sha256: str = Field(pattern=_SHA256)
    base: tuple[str, ...]

    @model_validator(mode="after")
    def _text_is_the_one_of_the_digest(self) -> ManifestEntry:
        if digest_of(self.text) != self.sha256:
            raise ValueError("base does not match sha256")
        return self

    @property
    def text(self) -> str:
        """The template as installed, with placeholders as pins."""
        return "\n".join(self.base)


class Pending(BaseModel):
    """A file that is about to be written: the digest of its content, and its entry afterwards."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    written: str = Field(pattern=_SHA256)
    entry: ManifestEntry


_Path = Annotated[str, AfterValidator(_checked_path)]


class Manifest(BaseModel):
    """The kit of a repository. ``pending`` is only used while files are being written."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    format: Literal[1] = 1
    version: str = Field(pattern=r"^[\w.+-]{1,100}$")
    commit: str = Field(pattern=r"^(?:[0-9a-f]{40}|[0-9a-f]{64})$")
    files: dict[_Path, ManifestEntry]
    pending: dict[_Path, Pending] = Field(default_factory=dict)


def manifest_entry(template: str) -> ManifestEntry:
    """Return the entry of a template."""
    return ManifestEntry(sha256=digest_of(template), base=tuple(template.split("\n")))


def read_manifest(text: str) -> Manifest:
    """Read a manifest. Raises BrokenContract."""
    try:
        return read_shape(Manifest, read_object(text.encode("utf-8", "surrogateescape")).value)
    except BrokenContract as broken:
        first = next((f"{found.path} {found.text}".strip() for found in broken.findings), broken.message)
        hint = "Restore it from git, use the version of accord that wrote it, or delete it and run `accord init`."
        raise BrokenContract(f"Cannot read {PLACE}: {first}", findings=broken.findings, hint=hint) from None


def check_version(manifest: Manifest, version: str) -> None:
    """Raise Refused for the kit of a later version than this one."""
    if _numbers(manifest.version) > _numbers(version):
        message = f"The installed kit is of accord {manifest.version}, which is later than this version ({version})."
        raise Refused(message, hint="Use that version or a later one.")


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(number) for number in re.findall(r"\d+", version.partition("+")[0])[:3])


def manifest_text(manifest: Manifest) -> str:
    """Return a manifest as JSON; the same one is always the same text."""
    document = manifest.model_dump(mode="json")
    if not manifest.pending:
        del document["pending"]
    return json.dumps(document, indent=1, ensure_ascii=False, sort_keys=True) + "\n"


def bases(manifest: Manifest, found: Mapping[str, str]) -> dict[str, str]:
    """Return the base of each file's merge; files that an interrupted run wrote count as written."""
    known = {path: entry.text for path, entry in manifest.files.items()}
    for path, pending in manifest.pending.items():
        if path in found and digest_of(found[path]) == pending.written:
            known[path] = pending.entry.text
    return known


_COMMIT = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")
_PIN = re.compile(r"(?P<uses>\baccord-ci/accord(?:/[^@\s]*)?)@(?P<commit>[0-9a-f]{64}|[0-9a-f]{40})\b(?: # v[\w.+-]+)?")


@dataclass(frozen=True)
class Pin:
    """A commit of accord, and its version."""

    commit: str
    version: str

    def __str__(self) -> str:
        return f"{self.commit} # v{self.version}"


def with_pin(text: str, pin: Pin | str, *, only: str = "") -> str:
    """Replace the pin of every ``uses: accord-ci/accord…@COMMIT # vX``; ``only`` limits it to one commit.

    Tags, branches, shortened commits and forks are the consumer's choice, and stay.
    """

    def moved(found: re.Match[str]) -> str:
        return found[0] if only and found["commit"] != only else f"{found['uses']}@{pin}"

    return _PIN.sub(moved, text)


def pin_for(ref: str | None) -> Pin:
    """Return the pin of a commit, by default of this version. Raises WrongUsage."""
    commit = ref or _own_commit()
    if not _COMMIT.fullmatch(commit):
        problem = f"`{ref}` is not a full commit SHA." if ref else "The commit of this version of accord is unknown."
        raise WrongUsage(problem, hint="Pass `--ref` with the full SHA of the release, 40 hex digits.")
    return Pin(commit, __version__)


@cache
def _own_commit() -> str:
    """Return the commit of accord's own checkout; empty for an installed package."""
    root = Path(__file__).parents[3]
    if not (root / ".git").exists() or not (root / "templates/consumer-repo").is_dir():
        return ""
    return Git(root).attempt("rev-parse", "--verify", "--quiet", "HEAD").stdout.decode("ascii", "replace").strip()
