"""``accord doctor --bundle``: one file for a bug report, without secrets."""

from __future__ import annotations

import io
import json
import os
import platform
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from accord import __version__
from accord.agents.registry import shipped_registry
from accord.core.errors import WrongUsage
from accord.files.store import write_whole
from accord.kit.templates import own_commit

CONFIGURATION = (
    ".github/workflows/*.y*ml", ".github/actions/*/action.y*ml", ".github/agents/*", ".github/prompts/*",
    ".github/accord/*.yml", ".github/labels.y*ml", ".github/plan.y*ml",
)  # fmt: skip
"""Files of a repository that accord reads, and workflows."""

_PROGRAMS = ("git", "node", "npm", "gh", "zizmor")
FILE_BYTES = 1024 * 1024
ALL_BYTES = 20 * FILE_BYTES
_FIRST_DAY = (1980, 1, 1, 0, 0, 0)


@dataclass
class Bundle:
    """Texts by their name in the archive, redacted and cut; ``left_out`` has the reason for each other file."""

    redact: Callable[[str], str]
    texts: dict[str, str] = field(default_factory=dict)
    left_out: dict[str, str] = field(default_factory=dict)
    size: int = 0

    def add_text(self, name: str, text: str) -> None:
        """Add a text, redacted; of a long one, its beginning and its end."""
        data = self.redact(text).encode("utf-8", "replace")
        if len(data) > FILE_BYTES:
            half = FILE_BYTES // 2
            cut = f"\n[{len(data) - FILE_BYTES} bytes are left out here]\n".encode()
            data = data[:half] + cut + data[-half:]
        if self.size + len(data) > ALL_BYTES:
            self.left_out[name] = f"the bundle has {ALL_BYTES // FILE_BYTES} MiB already"
            return
        self.size += len(data)
        self.texts[self.redact(name)] = data.decode("utf-8", "replace")

    def add_file(self, name: str, path: Path) -> None:
        """Add a file; links, other kinds of files, large ones, and files that are not text are left out."""
        if path.is_symlink() or not path.is_file():
            self.left_out[name] = "not a regular file"
        elif path.stat().st_size > ALL_BYTES:
            self.left_out[name] = f"larger than {ALL_BYTES // FILE_BYTES} MiB"
        else:
            try:
                data = path.read_bytes()
                if b"\0" in data:
                    raise UnicodeError
                self.add_text(name, data.decode())
            except OSError as error:
                self.left_out[name] = str(error.strerror)
            except UnicodeError:
                self.left_out[name] = "not text in UTF-8"

    def manifest(self) -> str:
        """Return the list of what is in the bundle and what is not."""
        lines = ["Secrets are replaced by [redacted: …]. Read the files before you attach them to a public issue.", ""]
        lines += [f"{len(text.encode()):>9}  {name}" for name, text in sorted(self.texts.items())]
        if self.left_out:
            lines += ["", "Left out:"]
            lines += [f"  {self.redact(name)}: {reason}" for name, reason in sorted(self.left_out.items())]
        return "\n".join(lines) + "\n"

    def to_bytes(self) -> bytes:
        """Return the archive; equal contents give equal bytes."""
        packed = io.BytesIO()
        with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
            for name, text in sorted({**self.texts, "MANIFEST.txt": self.manifest()}.items()):
                info = zipfile.ZipInfo(f"accord-bundle/{name}", _FIRST_DAY)
                info.external_attr = 0o600 << 16
                info.compress_type = zipfile.ZIP_DEFLATED
                archive.writestr(info, text)
        return packed.getvalue()


def write_bundle(
    path: Path, root: Path, included: Sequence[Path], findings: object, redact: Callable[[str], str]
) -> Bundle:
    """Write versions, configuration, findings and ``included`` files to an archive. Raises WrongUsage without a path.

    A folder of ``included`` stands for all files in it.
    """
    if path.exists() and path.suffix != ".zip":
        raise WrongUsage(f"`{path}` exists and is not a bundle.", hint="Name a file that ends with `.zip`.")
    bundle = Bundle(redact)
    bundle.add_text("versions.json", json.dumps(versions(), indent=2) + "\n")
    bundle.add_text("doctor.json", json.dumps(findings, indent=2, ensure_ascii=False) + "\n")
    files = [file for pattern in CONFIGURATION for file in sorted(root.glob(pattern))]
    named = [(file.relative_to(root).as_posix(), file) for file in files]
    for i, each in enumerate(included, 1):
        below = sorted(each.rglob("*")) if each.is_dir() else [each]  # which enters no folders behind links
        named += [(f"included/{i}/{file.relative_to(each.parent).as_posix()}", file) for file in below]
    for name, file in named:
        if not file.is_dir() and file.resolve() != path.resolve():
            bundle.add_file(name, file)
    write_whole(path, bundle.to_bytes())
    return bundle


def versions() -> Mapping[str, str]:
    """Return the versions of accord, of the machine, and of the programs that accord starts."""
    found = {"accord": __version__, "commit": own_commit() or "unknown", "python": sys.version.split()[0]}
    found |= {"system": platform.platform(), "runner": os.environ.get("RUNNER_ENVIRONMENT", "")}
    agents = shipped_registry().agents.values()  # a repository's own registry names no program that is started
    own = [agent.command[0] for agent in agents if agent.enabled and not agent.command[0].startswith("{")]
    return found | {program: _version_of(program) for program in (*_PROGRAMS, *own)}


def _version_of(program: str) -> str:
    path = shutil.which(program)
    if path is None:
        return ""
    try:
        done = subprocess.run([path, "--version"], capture_output=True, text=True, timeout=20, check=False)  # noqa: S603
    except (OSError, subprocess.TimeoutExpired, UnicodeError):
        return "cannot be started"
    return (done.stdout or done.stderr).strip().partition("\n")[0][:200]
