"""Where registry, prompts, schemas and label files come from: never from a branch that an agent may have written.

In GitHub Actions they come from the default branch. At a terminal the checked-out commit counts while it is on the
default branch; on any other branch, the default branch does. Uncommitted files count only if a person names them.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import field
from pathlib import Path
from typing import ClassVar

from accord.core.environment import is_in_actions
from accord.core.errors import WrongUsage
from accord.core.frozen import Frozen
from accord.git.paths import some_of
from accord.git.program import Git, GitFailed, is_ancestor, split_nul

_FORMAT = "--format=%(objectname) %(refname)"
_FETCH_HINT = "Check out with `fetch-depth: 0`, or run it on the default branch."


def _unknown_origin(name: str) -> WrongUsage:
    return WrongUsage(f"`{name}` is read from the default branch, which this checkout does not have.", hint=_FETCH_HINT)


class WorkTreeFiles(Frozen):
    """Reads files below ``top``, which is not a checkout, as they are. A job reads only those that it names."""

    top: Path
    in_job: bool = False
    warning: ClassVar[str] = ""

    def read(self, path: Path, *, is_named: bool = False) -> bytes | None:
        """Return the content of a file; None if it does not exist. Raises OSError for one that cannot be read."""
        if self.in_job and not is_named and path.is_file():
            raise _unknown_origin(str(path))
        return path.read_bytes() if path.is_file() else None


class CommittedFiles(Frozen):
    """Reads files of a checkout as the commit has them.

    Outside of a job, a file that is named on the command line is read from the work tree.
    """

    top: Path  # of the checkout
    commit: str  # empty, like the branch, if the default branch is unknown
    branch: str  # of the commit
    in_job: bool
    ignored: list[str] = field(default_factory=list)  # files that the work tree has otherwise

    @property
    def warning(self) -> str:
        """Name the files that the work tree has otherwise; empty without any."""
        if not self.ignored:
            return ""
        hint = "" if self.in_job else " To use one as it is, commit it there or name it with an option."
        message = f"Files were read from {self.branch or 'the default branch'}, because an agent may have changed them"
        return f"{message}: {some_of(self.ignored)}.{hint}"

    def read(self, path: Path, *, is_named: bool = False) -> bytes | None:
        """Return the content of a file; None if it does not exist. ``is_named``: the command line names it.

        Raises WrongUsage for a file that only the agent's branch has, OSError for one that cannot be read.
        """
        name = self._name_of(path)
        if name is None or (is_named and not self.in_job):
            return path.read_bytes() if path.is_file() else None
        content = self._committed_content(name)
        is_on_branch = content is None and self._is_on_branch(name)
        if is_named and content is None and not is_on_branch:  # an earlier step made it
            return path.read_bytes() if path.is_file() else None
        if content is None and not self.commit and (is_on_branch or path.is_file()):
            raise _unknown_origin(name)
        if content is None and is_named:
            message = f"`{name}` is on the checked-out branch only. It is read from `{self.branch}`."
            raise WrongUsage(message, hint=f"Merge it into `{self.branch}` first, or write it in an earlier step.")
        if name not in self.ignored and path.is_file() and path.read_bytes() != content:
            self.ignored.append(name)
        return content

    def _name_of(self, path: Path) -> str | None:
        """Return the path from the top of the checkout, by its own name or by the file that it leads to."""
        for place in (Path(os.path.abspath(path)), path.resolve()):
            if place.is_relative_to(self.top):
                return str(place.relative_to(self.top))
        return None

    def _committed_content(self, name: str) -> bytes | None:
        if not self.commit or "\n" in name:
            return None
        asked = os.fsencode(f"{self.commit}:{name}\n")
        head, _, rest = Git(self.top)("cat-file", "--batch", "--follow-symlinks", data=asked).partition(b"\n")
        kind = head.split(b" ")[1:]
        return rest[: int(kind[1])] if kind[:1] == [b"blob"] else None

    def _is_on_branch(self, name: str) -> bool:
        """Return whether the checked-out commit has the file, or a link or submodule in its place."""
        parts = Path(name).parts
        prefixes = ["/".join(parts[: i + 1]) for i in range(len(parts))]
        entries = split_nul(Git(self.top)("ls-tree", "-z", "--full-tree", "HEAD", "--", *prefixes))
        found = (entry.partition("\t") for entry in entries)
        return any(place in prefixes and meta.split(" ")[1] != "tree" for meta, _, place in found)


TrustedFiles = WorkTreeFiles | CommittedFiles


def trusted_files(directory: Path, environment: Mapping[str, str], *, branch: str = "", base: str = "") -> TrustedFiles:
    """Decide where the files of the checkout around ``directory`` are read.

    ``base`` is used if the default branch is unknown. ``branch`` is the one that an agent writes to; no guess names it.
    """
    git, in_job = Git(directory), is_in_actions(environment)
    try:
        top, head = Path(git.line("rev-parse", "--show-toplevel")), git.line("rev-parse", "--verify", "HEAD^{commit}")
        has_remote = bool(git("remote"))
    except (GitFailed, OSError):
        return WorkTreeFiles(directory.resolve(), in_job)
    name, commits = _bases(git, environment, _short(branch), _short(base))
    if in_job:
        return CommittedFiles(top, next(iter(commits), ""), name, in_job)
    is_on_base = head in commits or any(is_ancestor(git, head, commit) for commit in commits)
    if is_on_base or not (commits or has_remote):
        return CommittedFiles(top, head, name or "HEAD", in_job)
    return CommittedFiles(top, next(iter(commits), ""), name, in_job)


def _bases(git: Git, environment: Mapping[str, str], branch: str, base: str) -> tuple[str, list[str]]:
    """Return the default branch, or else ``base``, with its commits: on the remote first, then here."""
    default = _short(git.attempt("symbolic-ref", "--quiet", "--short", "refs/remotes/origin/HEAD").stdout.decode())
    if environment.get("GITHUB_EVENT_NAME") == "schedule":
        default = environment.get("GITHUB_REF_NAME", default)
    with suppress(OSError, ValueError, KeyError, TypeError):
        default = str(json.loads(Path(environment["GITHUB_EVENT_PATH"]).read_bytes())["repository"]["default_branch"])
    guesses = [name for name in (base, *(() if default else ("main", "master"))) if name and name != branch]
    for name in filter(None, (default, *guesses)):
        refs = [f"refs/remotes/origin/{name}", f"refs/heads/{name}"]
        listed = [line.split(" ") for line in git.line("for-each-ref", _FORMAT, *refs).splitlines()]
        if found := [commit for ref in refs for commit, listed_ref in listed if listed_ref == ref]:
            return name, found
    return "", []


def _short(branch: str) -> str:
    return branch.strip().removeprefix("refs/heads/").removeprefix("origin/")
