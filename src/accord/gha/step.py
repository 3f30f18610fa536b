"""Files and commands of a workflow step: outputs, the summary and annotations.

Each has a budget: GitHub keeps 1 MB of UTF-16 of outputs a job, and 1 MiB of summary a step.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

from accord.core.findings import Finding, Severity
from accord.files.states import PathState, holds, paths_below, put_back, readable, states_of, with_targets
from accord.files.store import DISK_FULL
from accord.text.hidden import as_seen

SUMMARY_BYTES = 1024 * 1024
OUTPUT_BYTES = 1024 * 1024
_CUT_NOTICE = "\n\n*The summary is cut here: GitHub shows at most 1 MiB a step.*\n"


def clean(text: str) -> str:
    """Make a text that any UTF-8 file and any runner takes: no NUL, no half surrogates, line ends as LF."""
    text = text.replace("\r\n", "\n").replace("\r", "\n").replace("\0", "\N{REPLACEMENT CHARACTER}")
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def utf16_size(text: str) -> int:
    """Count the bytes of a text the way GitHub budgets outputs."""
    return len(text.encode("utf-16-le", "surrogatepass"))


def write_outputs(path: Path, outputs: Mapping[str, str]) -> list[str]:
    """Append outputs to the file of GITHUB_OUTPUT, each between delimiters that no value can guess.

    The largest values are left empty until the rest fits; returns their names. After an OSError the file is as it was.
    """
    values = {name: clean(value) for name, value in outputs.items()}
    left_out = []
    while sum(utf16_size(value) for value in values.values()) > OUTPUT_BYTES or not _are_appended(path, values):
        largest = max(values, key=lambda name: utf16_size(values[name]))
        values[largest] = ""
        left_out.append(largest)
    return left_out


def _are_appended(path: Path, values: Mapping[str, str]) -> bool:
    """Append all of the values; False, and nothing is changed, where the disk is full and a value could be left out."""
    before = path.stat().st_size if path.exists() else 0
    try:
        with path.open("a", encoding="utf-8", newline="\n") as file:
            for name, value in values.items():
                delimiter = f"accord-{os.urandom(16).hex()}"
                file.write(f"{name}<<{delimiter}\n{value}\n{delimiter}\n")
    except OSError as error:
        with suppress(OSError):  # a pipe or a device, which keeps nothing
            os.truncate(path, before)
        if error.errno not in DISK_FULL or not any(values.values()):
            raise
        return False
    return True


def write_summary(path: Path, markdown: str) -> None:
    """Append Markdown to the file of GITHUB_STEP_SUMMARY, cut with a notice where GitHub would drop all of it."""
    before = path.stat().st_size if path.exists() else 0
    budget = SUMMARY_BYTES - before - len(_CUT_NOTICE.encode())
    if budget < 0:
        return  # an earlier cut says so already, and one more byte would lose all of it
    encoded = (clean(markdown) + "\n").encode()
    if len(encoded) > budget:
        encoded = encoded[:budget].decode("utf-8", "ignore").encode() + _CUT_NOTICE.encode()
    with path.open("ab") as file:
        file.write(encoded)


STEP_FILES = ("GITHUB_ENV", "GITHUB_OUTPUT", "GITHUB_PATH", "GITHUB_STATE", "GITHUB_STEP_SUMMARY")


@contextmanager
def guard_step_files(environment: Mapping[str, str]) -> Iterator[list[str]]:
    """Undo what is written to the runner's files of this step meanwhile; the list gets the names of those files.

    An agent can find them in RUNNER_TEMP, and steer later steps. A link stays, and the file that it leads to counts;
    pipes, devices and accord's own output are not read. Raises OSError when one could not be restored.
    """
    named = {Path(environment[name]): name for name in STEP_FILES if environment.get(name)}
    names = {place: name for path, name in named.items() for place in with_targets(path) if not _is_own_output(place)}
    before, changed = states_of(names), list[str]()
    try:
        yield changed
    finally:
        put_back(names.items(), before, changed)


def _is_own_output(path: Path) -> bool:
    """Return whether this process writes its standard output or error to a file, such as that behind /dev/stdout."""
    for descriptor in (1, 2):
        with suppress(OSError):
            if os.path.samestat(path.lstat(), os.fstat(descriptor)):
                return True
    return False


_SETTINGS = ("commondir", "config", "config.worktree", "hooks", "info", "objects/info/alternates", "refs/remotes")
_REFS = ("HEAD", "packed-refs", "refs", "reftable", "shallow")
"""Files and folders of a git directory that decide what git does, and which commits it finds."""

_LOCKS = ("HEAD.lock", "index.lock", "packed-refs.lock", "config.lock", "shallow.lock")
"""Files that keep git from working; an agent that was killed leaves them."""

_WORKTREE = ("HEAD", "HEAD.lock", "index.lock", "commondir", "gitdir", "config.worktree")
"""Files of a further work tree of the repository."""


@contextmanager
def guard_git_settings(directory: Path | None, *, with_refs: bool = False) -> Iterator[list[str]]:
    """Undo changes to a repository's configuration and hooks, which git would obey in later steps of the job.

    With refs, branches, tags and locks are guarded, too: only where no person works in the repository meanwhile. Fills
    the list with what was changed. A directory in the place of git's own is moved aside.
    """
    changed: list[str] = []
    if directory is None:
        yield changed
        return
    own, tops = directory.stat(), [directory / name for name in (*_SETTINGS, *(_REFS + _LOCKS if with_refs else ()))]
    if with_refs:
        tops += [place / name for place in directory.glob("worktrees/*/") for name in _WORKTREE]
    roots = states_of(tops)
    before = states_of(path for root in roots for path in paths_below(root)) | roots
    try:
        yield changed
    finally:
        if directory.is_dir() and os.path.samestat(own, directory.lstat()):
            for folder in sorted({above for top in tops for above in top.parents if above.is_relative_to(directory)}):
                if folder.is_dir() and not folder.is_symlink():
                    readable(folder)
            put_back(((path, str(path)) for path in _places_to_put_back(roots, before)), before, changed)
        elif os.path.lexists(directory):
            changed.append(str(directory))
            directory.rename(directory.with_name(f"{directory.name}-of-the-agent-{os.urandom(4).hex()}"))


def _places_to_put_back(roots: Mapping[Path, PathState], before: Mapping[Path, PathState]) -> Iterator[Path]:
    """Yield the paths that were there or are there now: what is below the roots when these are as they were."""
    yield from sorted(roots)
    below = {path for root, state in roots.items() if holds(root, state) for path in paths_below(root)}
    yield from sorted({*before, *below} - {*roots})


ANNOTATIONS_PER_TYPE = 10

_CONTROL = re.compile(r"[\x00-\x09\x0b\x0c\x0e-\x1f\x7f-\x9f]")
_UNSEEN = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]+")
COMMAND = re.compile(r"##(?=\[)|^[^\S\n]*:(?=:)", re.MULTILINE)
"""Output that a runner obeys: ``::name::`` at the start of a line, the old ``##[name]`` anywhere."""


def escape_data(text: str) -> str:
    """Escape the message of a workflow command: what ends a line becomes percent codes, other control a blank."""
    return _CONTROL.sub(" ", as_seen(text)).replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def command(name: str, message: str, **properties: str | int | None) -> str:
    """Write one workflow command; properties that are None are left out."""
    values = {key: escape_data(str(value)) for key, value in properties.items() if value is not None}
    given = ",".join(f"{key}={value.replace(':', '%3A').replace(',', '%2C')}" for key, value in values.items())
    return f"::{name}{' ' + given if given else ''}::{escape_data(message)}"


def annotate(findings: Iterable[Finding], file: str | None) -> Iterator[str]:
    """Turn findings into annotations on ``file``, at most ten of each severity, the tenth naming the rest."""
    by_severity: dict[Severity, list[Finding]] = {}
    for finding in findings:
        by_severity.setdefault(finding.severity, []).append(finding)
    for severity, group in by_severity.items():
        shown = group if len(group) <= ANNOTATIONS_PER_TYPE else group[: ANNOTATIONS_PER_TYPE - 1]
        for finding in shown:
            line = finding.line if file else None
            yield command(severity, finding.text, file=file, line=line, title=finding.code)
        if len(shown) < len(group):
            rest = f"{len(group) - len(shown)} more findings of this severity are in the step summary."
            yield command(severity, rest, file=file, title="more findings")


def inert(text: str) -> str:
    """Write untrusted text as one line that a runner and a terminal show and do not obey; later commands still work."""
    line = _UNSEEN.sub(" ", as_seen(text)).strip()
    return COMMAND.sub(lambda match: match.group() + "\N{ZERO WIDTH NON-JOINER}", line)
