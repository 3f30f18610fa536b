"""Git, called as a program, without the caller's configuration, questions, or secrets that other processes can read."""

from __future__ import annotations

import base64
import os
import subprocess
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import field
from pathlib import Path
from typing import BinaryIO

from accord.core.errors import Refused
from accord.core.frozen import Frozen
from accord.core.log import log
from accord.core.network import certificate_files, direct_loopback

_STEADY = {
    "core.quotePath": "false",
    "core.autocrlf": "false",
    "core.safecrlf": "false",
    "core.hooksPath": os.devnull,
    "core.excludesFile": os.devnull,
    "core.attributesFile": os.devnull,
    "core.fsmonitor": "false",
    "core.protectHFS": "true",
    "core.protectNTFS": "true",
    "apply.whitespace": "nowarn",
    "apply.ignoreWhitespace": "no",
    "diff.external": "",
    "log.showSignature": "false",
    "gc.auto": "0",
    "maintenance.auto": "false",
    "safe.directory": "*",
    "protocol.file.allow": "always",
    "advice.detachedHead": "false",
}


_QUIET = {"GIT_TERMINAL_PROMPT": "0", "GIT_CONFIG_NOSYSTEM": "1", "GIT_CONFIG_GLOBAL": os.devnull}
_CALLERS = ("GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM", "GIT_CONFIG_NOSYSTEM")
_STORING = ("core.autocrlf", "core.safecrlf", "core.attributesFile")
_QUIET |= {"GIT_OPTIONAL_LOCKS": "0", "LC_ALL": "C", "GIT_NO_REPLACE_OBJECTS": "1"}


SUBMODULE = "160000"
"""The mode of an entry that is a commit of another repository."""


class GitFailed(Refused):
    """Git ended with an error; ``stderr`` is what it said."""

    def __init__(self, command: str, status: int, stderr: str) -> None:
        said = " ".join(stderr.split())[-2000:]
        super().__init__(f"git {command} failed ({status}): {said}")
        self.status = status
        self.stderr = stderr


class Git(Frozen):
    """A repository to run git in."""

    directory: Path
    environment: Mapping[str, str] = field(default_factory=dict)  # added to what every call gets
    config: Mapping[str, str] = field(default_factory=dict)
    inherited: tuple[int, ...] = ()  # file descriptors
    is_callers: bool = False  # git gets the caller's configuration, with filters such as Git LFS, but without hooks

    def __call__(self, *arguments: str, data: bytes | None = None, timeout: float = 600) -> bytes:
        """Run ``git ARGUMENTS`` with ``data`` on its input; return its output. Raises GitFailed."""
        done = self.attempt(*arguments, data=data, timeout=timeout)
        if done.returncode:
            raise GitFailed(arguments[0], done.returncode, done.stderr.decode("utf-8", "replace"))
        return done.stdout

    def line(self, *arguments: str, data: bytes | None = None) -> str:
        """Run git for an answer of one line."""
        return self(*arguments, data=data).decode("utf-8", "surrogateescape").strip()

    def commit_of(self, ref: str) -> str:
        """Return the commit of a ref; empty without one."""
        return self.attempt("rev-parse", "--verify", "--quiet", ref).stdout.decode().strip()

    def path_of(self, name: str) -> Path:
        """Return the path of a part of the git directory, such as ``index``."""
        return Path(self.line("rev-parse", "--path-format=absolute", "--git-path", name))

    def attempt(
        self, *arguments: str, data: bytes | None = None, timeout: float = 600, file: BinaryIO | None = None
    ) -> subprocess.CompletedProcess[bytes]:
        """Run git where failing is an answer, too; its input is ``data``, or a file from where it stands."""
        done = subprocess.run(
            ["git", *arguments],
            cwd=self.directory,
            env=self.variables(),
            input=data or b"" if file is None else None,
            stdin=file,
            capture_output=True,
            check=False,
            timeout=timeout,
            pass_fds=self.inherited,
        )
        log("git", "%s: exit %d", ("git", *arguments), done.returncode)
        return done

    def contents(self, blobs: Sequence[str]) -> Iterator[bytes | None]:
        """Yield the contents of blobs by one process, one content at a time; None for an id that is not a blob here."""
        if not blobs:
            return
        with tempfile.TemporaryFile() as names:
            names.write("".join(f"{blob}\n" for blob in blobs).encode())
            names.seek(0)
            log("git", "git cat-file --batch: %d objects", len(blobs))
            with subprocess.Popen(
                ["git", "cat-file", "--batch"],
                cwd=self.directory,
                env=self.variables(),
                stdin=names,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                pass_fds=self.inherited,
            ) as process:
                output = process.stdout
                assert output is not None  # noqa: S101 (it is a pipe)
                for _ in blobs:
                    name, kind, *size = output.readline().split() or (b"", b"")
                    if not name:
                        raise GitFailed("cat-file", process.wait(), "It ended early.")
                    content = output.read(int(size[0]) + 1)[:-1] if size else b""
                    yield content if kind == b"blob" else None

    def variables(self) -> dict[str, str]:
        """Return the environment of a call."""
        own = (*_CALLERS, *_STORING) if self.is_callers else ()
        settings = {name: value for name, value in _STEADY.items() if name not in own} | dict(self.config)
        numbered = {"GIT_CONFIG_COUNT": str(len(settings))}
        for i, (key, value) in enumerate(settings.items()):
            numbered |= {f"GIT_CONFIG_KEY_{i}": key, f"GIT_CONFIG_VALUE_{i}": value}
        kept = {name: value for name, value in os.environ.items() if not name.startswith("GIT_") or name in own}
        if self.is_callers:
            kept |= {name: value for name, value in os.environ.items() if name.startswith("GIT_LFS_")}
        quiet = {name: value for name, value in _QUIET.items() if name not in own}
        network = direct_loopback(os.environ)
        if given := os.environ.get("GIT_SSL_CAINFO") or next(iter(certificate_files(os.environ).values()), ""):
            network["GIT_SSL_CAPATH" if os.path.isdir(given) else "GIT_SSL_CAINFO"] = given
        return {**kept, **network, **quiet, **numbered, **dict(self.environment)}


UNTRUSTED = {"GIT_ALLOW_PROTOCOL": "none", "GIT_NO_LAZY_FETCH": "1"}
"""For a repository to which an agent could write: what is missing there would be fetched by a program of its choice."""


def ask_as_caller(directory: Path, *arguments: str) -> bytes:
    """Return the output of git with the configuration of the caller, which every other call leaves out."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("GIT_") or name in _CALLERS}
    safe = {"GIT_CONFIG_COUNT": "1", "GIT_CONFIG_KEY_0": "safe.directory", "GIT_CONFIG_VALUE_0": "*"}
    own, words = {**kept, **safe}, ["git", *arguments]
    return subprocess.run(words, cwd=directory, env=own, capture_output=True, check=False, timeout=60).stdout


@contextmanager
def own_repository(lender: Git | None = None) -> Iterator[Git]:
    """Make a bare repository that vanishes, with settings of its own and a lender's objects; yield git in it."""
    with tempfile.TemporaryDirectory(prefix="accord-git-") as folder:
        if lender:
            asked = ("--show-object-format", "--path-format=absolute", "--git-path", "objects")
            object_format, objects = lender.line("rev-parse", *asked).split("\n", 1)
            make_repository(Path(folder), object_format, Path(objects))
        else:
            make_repository(Path(folder), "sha1")
        yield Git(Path(folder), {"GIT_DIR": folder})


def make_repository(folder: Path, object_format: str, *objects: Path) -> None:
    """Write the files of an empty bare repository that reads these objects, too, faster than ``git init`` does.

    Source: gitrepository-layout(5); git-config(1), "extensions.objectFormat".
    """
    version = "[core]\n\trepositoryFormatVersion = 1\n\tbare = true\n[extensions]\n\tobjectFormat = "
    for name, text in (
        ("HEAD", "ref: refs/heads/main\n"),
        ("config", f"{version}{object_format}\n"),
        ("objects/info/alternates", "".join(f"{path}\n" for path in objects)),
        ("info/attributes", ""),
    ):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    (folder / "refs").mkdir()


def is_ancestor(git: Git, older: str, newer: str) -> bool:
    """Return whether a commit goes back to another one; false, too, where git does not know one of them."""
    return git.attempt("merge-base", "--is-ancestor", older, newer).returncode == 0


def file_at(git: Git, commit: str, path: str) -> bytes | None:
    """Return a file of a commit, None where it has none."""
    found = git.attempt("cat-file", "blob", f"{commit}:{path}")
    return None if found.returncode else found.stdout


def token_config(server_url: str, token: str) -> dict[str, str]:
    """Return the configuration by which git authenticates at a server with a GitHub token."""
    basic = base64.b64encode(f"x-access-token:{token}".encode()).decode()
    return {f"http.{server_url.rstrip('/')}/.extraHeader": f"Authorization: Basic {basic}"}


def split_nul(output: bytes) -> list[str]:
    """Read git's ``-z`` output: paths as they are, undecodable bytes kept."""
    return [part.decode("utf-8", "surrogateescape") for part in output.split(b"\0") if part]


def changed_paths(git: Git, start: str, folder: str) -> list[str]:
    """Return the paths below a folder that differ from a commit, uncommitted ones too; a moved file has two."""
    changed = git("diff", "--name-only", "--no-renames", "--relative", "-z", start, "--", folder)
    return split_nul(changed + git("ls-files", "--others", "--exclude-standard", "-z", "--", folder))


def join_nul(paths: Iterable[str]) -> bytes:
    """Write paths for git's options ``-z``."""
    return b"\0".join(map(os.fsencode, paths))
