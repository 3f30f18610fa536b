"""The manifest of an installed kit: its version, the repository's choices, and each template's text as installed.

The texts are the bases of three-way merges. They are in the consumer's repository, so that a merge needs neither
accord's history nor the consumer's, and compressed, because people edit few of the files and read none of the bases.
"""

from __future__ import annotations

import base64
import binascii
import json
import re
import zlib
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field

from accord.core.documents import read_object
from accord.core.errors import BrokenContract, Refused
from accord.core.shapes import read_shape
from accord.kit.templates import FOLDER, SOURCE, Choices, Pin

PLACE = f"{FOLDER}/accord/manifest.json"
_PATH = re.compile(
    r"\.github(?:/\.?[A-Za-z0-9][A-Za-z0-9._-]*)+|\.[a-z][a-z-]*/skills/accord-[a-z-]+/SKILL\.md|AGENTS\.md"
)
_MOST_BYTES = 4 * 2**20
_GZIP = 16 + zlib.MAX_WBITS
"""zlib's ``wbits`` for the format of gzip, so that people can read the bases with a shell."""


def _checked_path(path: str) -> str:
    if not _PATH.fullmatch(path) or path == PLACE:
        raise ValueError(f"The path has no plain names below {FOLDER} and is not a skill of the kit", "Remove it.")
    return path


def _unpacked_texts(value: Any) -> Any:
    if not isinstance(value, str):
        return value
    unpacker = zlib.decompressobj(wbits=_GZIP)
    try:
        data = unpacker.decompress(base64.b64decode(value, validate=True), _MOST_BYTES)
        if not unpacker.eof:
            raise ValueError("the templates are incomplete or too large")
        return json.loads(data)
    except (binascii.Error, zlib.error, UnicodeDecodeError, json.JSONDecodeError, RecursionError):
        raise ValueError("the templates cannot be unpacked") from None


_Path = Annotated[str, AfterValidator(_checked_path)]


class Manifest(BaseModel):
    """The kit of a repository."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    format: Literal[2] = 2
    version: str = Field(pattern=r"^[\w.+-]{1,100}$")
    commit: str = Field(pattern=r"^(?:[0-9a-f]{40}|[0-9a-f]{64})$")
    choices: Choices = Choices()
    files: Annotated[dict[_Path, str], BeforeValidator(_unpacked_texts)]  # as installed, with placeholders as pins

    @property
    def pin(self) -> Pin:
        """The pin that accord wrote last."""
        return Pin(self.commit, self.version, self.choices.source or SOURCE)


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
    later, own = (re.findall(r"\d+", one.partition("+")[0])[:3] for one in (manifest.version, version))
    if [*map(int, later)] > [*map(int, own)]:
        message = f"The installed kit is of accord {manifest.version}, which is later than this version ({version})."
        raise Refused(message, hint="Use that version or a later one.")


def manifest_text(manifest: Manifest) -> str:
    """Return a manifest as JSON; how its texts are packed may differ between versions of zlib."""
    packer = zlib.compressobj(9, wbits=_GZIP)
    texts = packer.compress(json.dumps(manifest.files, ensure_ascii=False, sort_keys=True).encode()) + packer.flush()
    document = manifest.model_dump(mode="json", exclude_defaults=True)
    document |= {"format": manifest.format, "files": base64.b64encode(texts).decode("ascii")}
    return json.dumps(document, indent=1, ensure_ascii=False, sort_keys=True) + "\n"
