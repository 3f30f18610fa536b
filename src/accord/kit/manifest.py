"""The manifest of a kit: which version a repository has, and each template's text as it was put there.

The texts are the bases of three-way merges. They lie in the consumer's repository, so that a merge needs neither
accord's history nor the consumer's; see docs/decisions. Line by line, so that a reviewer can read their diff.
"""

from __future__ import annotations

import hashlib
import json
import re
from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, model_validator

from accord.kernel.documents import read_object
from accord.kernel.errors import BrokenContract, Refused
from accord.kernel.shapes import read_shape
from accord.kit.templates import FOLDER

if TYPE_CHECKING:
    from collections.abc import Mapping

PLACE = f"{FOLDER}/accord/manifest.json"
_SHA256 = r"^[0-9a-f]{64}$"
_PATH = re.compile(r"\.github(?:/[A-Za-z0-9][A-Za-z0-9._-]*)+")


def digest_of(text: str) -> str:
    """Return the SHA-256 of a text, as hex digits."""
    return hashlib.sha256(text.encode("utf-8", "surrogateescape")).hexdigest()


def _checked_path(path: str) -> str:
    if not _PATH.fullmatch(path) or path == PLACE:
        raise ValueError(f"a path of the kit lies below {FOLDER}, and has plain names")
    return path


class Entry(BaseModel):
    """A file of the kit: the template's text by lines, and the digest that holds it."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    sha256: str = Field(pattern=_SHA256)
    base: tuple[str, ...]

    @model_validator(mode="after")
    def _text_is_the_one_of_the_digest(self) -> Entry:
        if digest_of(self.text) != self.sha256:
            raise ValueError("base is not the text that sha256 is of")
        return self

    @property
    def text(self) -> str:
        """The template as it was put there, its pins placeholders."""
        return "\n".join(self.base)


class Pending(BaseModel):
    """A file that is about to be written: what will be there then, and its entry from then on."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    written: str = Field(pattern=_SHA256)
    entry: Entry


_Path = Annotated[str, AfterValidator(_checked_path)]


class Manifest(BaseModel):
    """What a repository has of the kit. ``pending`` is there only while files are being written."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    format: Literal[1] = 1
    version: str = Field(pattern=r"^[\w.+-]{1,100}$")
    commit: str = Field(pattern=r"^(?:[0-9a-f]{40}|[0-9a-f]{64})$")
    files: dict[_Path, Entry]
    pending: dict[_Path, Pending] = Field(default_factory=dict)


def entry_of(template: str) -> Entry:
    """Make the entry of a template."""
    return Entry(sha256=digest_of(template), base=tuple(template.split("\n")))


def read_manifest(text: str) -> Manifest:
    """Read a manifest. Raises BrokenContract that says what is wrong with it, and what to do."""
    try:
        return read_shape(Manifest, read_object(text.encode("utf-8", "surrogateescape")).value)
    except BrokenContract as broken:
        first = next((f"{found.path} {found.message}".strip() for found in broken.findings), broken.message)
        raise BrokenContract(
            f"{PLACE} cannot be read: {first}",
            findings=broken.findings,
            mend="Restore it from git, use the version of accord that wrote it, or delete it and run accord init.",
        ) from None


def require_known(manifest: Manifest, version: str) -> None:
    """Raise Refused for the kit of a later version than this one: it would be taken back."""
    if _numbers(manifest.version) > _numbers(version):
        raise Refused(
            f"The kit that is installed is of accord {manifest.version}, and this is {version}.",
            mend="Use that version or a later one.",
        )


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(number) for number in re.findall(r"\d+", version.partition("+")[0])[:3])


def manifest_text(manifest: Manifest) -> str:
    """Write a manifest; the same one is always the same text."""
    document = manifest.model_dump(mode="json")
    if not manifest.pending:
        del document["pending"]
    return json.dumps(document, indent=1, ensure_ascii=False, sort_keys=True) + "\n"


def bases(manifest: Manifest, found: Mapping[str, str]) -> dict[str, str]:
    """Return the text that each file began with; what was written before a run was cut off counts as written."""
    known = {path: entry.text for path, entry in manifest.files.items()}
    for path, pending in manifest.pending.items():
        if path in found and digest_of(found[path]) == pending.written:
            known[path] = pending.entry.text
    return known
