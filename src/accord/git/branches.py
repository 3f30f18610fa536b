"""A branch on a remote, and one more commit on it, never a forced one, made in a bare repository of our own.

Git's own words say why it could not read or push.
"""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Literal

from accord.core.clock import Clock, attempts, timestamp
from accord.core.errors import AccordError, Refused, Stopped, WrongUsage
from accord.core.frozen import Frozen
from accord.core.network import proxy_of
from accord.core.refusals import known_refusal
from accord.git.configuration import branch_in_the_way, item_of_branch, way_refusal
from accord.git.patches import Change, apply_patch, changes_between
from accord.git.program import Git, GitFailed, own_repository, split_nul, token_config
from accord.git.replacing import BASE_TRAILER, ITEM_TRAILER, replacing_tree, trailer, with_tree

RUN_TRAILER = "Accord-Run"
MERGED_TRAILER = "Accord-Merged"
"""The commit of the base that an agent merged, in the commit of its run."""

PAUSES = (2.0, 10.0, 60.0)
"""Seconds to wait between tries; a secondary rate limit asks for a minute."""

DEFAULT_AUTHOR = "github-actions[bot] <41898282+github-actions[bot]@users.noreply.github.com>"

Trouble = Literal["refused", "conflict", "unreachable", "unknown"]
"""Why a push failed: for good, because the branch moved, for now, or for an unknown reason."""

_COMMIT = re.compile(r"[0-9a-f]{40,64}")
_AUTHOR = re.compile(r"\A[^<>\n]+ <[^<>\s]+>")
_NAME_TAKEN = re.compile(r"directory file conflict|exists; cannot create")
_PUSH_HINTS = (
    (re.compile(r"GH001|file size limit"), "Take the large files out of the commits, or store them with Git LFS."),
    (re.compile(r"HTTP 413|returned error: 413|pack exceeds maximum"), "Push less at once, or leave large files out."),
    (_NAME_TAKEN, "A branch has the beginning of this name as its name, or the reverse. Push to another name."),
    (re.compile(r"GH003|force-push"), "Push without `--force`: merge the branch into the changes first."),
    (re.compile(r"\[remote rejected\]"), "Do what the server says about the branch, and push again."),
)
"""Words of refused pushes, the first that are found, and the hint that fixes each."""

_ADDRESS = re.compile(r"(?:(?<!\w)\w+://|(?<![\w.-])[\w.-]+@[\w.-]+:)[^\s']+")
"""Where a remote is. Git quotes it in what it says, and a repository may be called anything, access-denied too."""

_CERTIFICATE = re.compile(
    r"(?:SSL certificate problem|certificate verification failed|certificate subject name|alternative certificate"
    r"|SSL CA cert|certificate verify locations)[^\n]{0,200}",
    re.IGNORECASE,
)
"""OpenSSL's words and those of GnuTLS, which Debian's git uses."""

_MOVED = re.compile(
    r"non-fast-forward|fetch first|stale info|(?:cannot|failed to|unable to) (?:update|lock) ref|already exists",
    re.IGNORECASE,
)
_BUSY = re.compile(r"rate limit|returned error: (?:408|429)|internal server error", re.IGNORECASE)
_FINAL = re.compile(
    r"returned error: 4|authentication failed|could not read (?:username|password)|not found|denied|protected branch"
    r"|remote rejected|refusing|pre-receive|exceeds|GH0\d\d|(?-i:^(?:remote: )?ERROR: )",
    re.IGNORECASE | re.MULTILINE,
)
_PASSING = re.compile(
    r"returned error: 5|unable to access|could not resolve|connection|timed out|early eof|hung up|empty reply"
    r"|rpc failed|unexpected disconnect|bad line length|protocol error|unexpected end",
    re.IGNORECASE,
)
_TROUBLES: tuple[tuple[re.Pattern[str], Trouble], ...] = (
    (_NAME_TAKEN, "refused"),
    (_MOVED, "conflict"),
    (_CERTIFICATE, "refused"),
    (_BUSY, "unreachable"),
    (_FINAL, "refused"),
    (_PASSING, "unreachable"),
)
"""Git's words, the first that are found; a rate limit is a 403, and ``ERROR:`` begins what GitHub says over SSH."""

_TUNNEL = re.compile(r"HTTP code (\d{3}) from proxy|tunnel failed, response (\d{3})", re.IGNORECASE)
_PROXY = re.compile(
    r"resolve proxy|from proxy|over proxy|proxy CONNECT|tunnel failed|SOCKS|unsupported proxy", re.IGNORECASE
)
_PLACE = re.compile(r"connect to (\S{1,300}) port (\d+)(?: via (\S{1,300}))?")
"""Where git could not connect; since version 8, curl names the host and then the proxy, or only the proxy's host."""


class Unreachable(Stopped):
    """The remote did not answer, however often it was asked."""


class Remote(Frozen):
    """Where the repository is, how to get in, and the clock to wait on between tries."""

    url: str
    server_url: str
    token: str
    clock: Clock

    def __repr__(self) -> str:
        return f"Remote({self.url})"

    @property
    def page(self) -> str:
        """The address of the repository's page; empty for a remote without a server."""
        return self.url.removesuffix(".git") if self.url.startswith(("http://", "https://")) else ""


class BranchFacts(Frozen):
    """The state of the remote."""

    base: str  # where a new branch begins
    tip: str  # of the branch to commit to, empty when no such branch exists
    applied: str  # the commit on it that this run made, empty when none did


@contextmanager
def scratch_repository(remote: Remote, lender: Path | None) -> Iterator[Git]:
    """Make a bare repository that exists for this block, with the way into the remote and what the lender has."""
    whole = None  # git in the lender's checkout, if that has all objects of its commits
    with suppress(GitFailed, OSError):
        if lender and Git(lender).line("rev-parse", "--is-shallow-repository") == "false":
            whole = Git(lender)
    with own_repository(whole) as git:
        yield replace(git, config=token_config(remote.server_url, remote.token))


@contextmanager
def folder_at_head(remote: Remote, path: str) -> Iterator[Path]:
    """Check out one folder of the default branch, without history, into a directory that exists for this block.

    The directory is empty where the branch has no such folder. Links become plain files. Raises Refused, Unreachable.
    """
    with scratch_repository(remote, None) as git, tempfile.TemporaryDirectory(prefix="accord-head-") as folder:
        git("remote", "add", "origin", remote.url)
        for name, value in (("promisor", "true"), ("partialclonefilter", "blob:none")):
            git("config", f"remote.origin.{name}", value)  # other files are not even downloaded
        shallow = ("--quiet", "--no-tags", "--no-write-fetch-head", "--depth=1", "--filter=blob:none")
        _patiently(git, remote, "fetch", *shallow, "origin", "+HEAD:refs/heads/head")
        if git.attempt("rev-parse", "--verify", "--quiet", f"refs/heads/head:{path}").returncode == 0:
            git("config", "core.symlinks", "false")
            git("--work-tree", folder, "checkout", "--quiet", "refs/heads/head", "--", path)
        yield Path(folder)


@contextmanager
def branch_clone(remote: Remote, base: str, branch: str, lender: Path | None) -> Iterator[Git]:
    """Fetch the base and the work item's branch into a bare repository of this block. Raises Refused, Unreachable."""
    with scratch_repository(remote, lender) as git:
        has_work = find_tip(remote_heads(git, remote), branch)
        fetch_refs(git, remote, {base: "base", **({branch: "work"} if has_work else {})})
        yield git


def fetch_branch(git: Git, remote: Remote, branch: str, into: str) -> str:
    """Fetch a branch under a name of our own; return its tip, empty when the remote has no such branch.

    Raises Refused, with the name, where another branch keeps it from being made.
    """
    if not find_tip(remote_heads(git, remote), branch):
        return ""
    fetch_refs(git, remote, {branch: into})
    return tip_of(git, into)


def fetch_refs(git: Git, remote: Remote, refs: Mapping[str, str]) -> None:
    """Fetch branches that are there, or ``HEAD``, the default one, each under a name of our own."""
    full = {name if name == "HEAD" else f"refs/heads/{name}": into for name, into in refs.items()}
    words = [f"+{name}:refs/heads/{into}" for name, into in full.items()]
    _patiently(git, remote, "fetch", "--quiet", "--no-tags", "--no-write-fetch-head", remote.url, *words)


def tip_of(git: Git, branch: str) -> str:
    """Return the commit at which a branch of our own repository ends. Raises GitFailed."""
    return git.line("rev-parse", f"refs/heads/{branch}")


def remote_heads(git: Git, remote: Remote) -> dict[str, str]:
    """Return the remote's branches, and where they end."""
    listed = _patiently(git, remote, "ls-remote", "--heads", remote.url).decode("utf-8", "surrogateescape")
    lines = (line.split("\t") for line in listed.split("\n") if line)
    return {name.removeprefix("refs/heads/"): commit for commit, name in lines}


def find_tip(heads: Mapping[str, str], branch: str) -> str:
    """Return where a branch ends, empty without it. Raises Refused if another one keeps it from being made."""
    other = "" if branch in heads else branch_in_the_way(branch, heads)
    if other:
        raise way_refusal(branch, other)
    return heads.get(branch, "")


def work_branches(names: Iterable[str], item: int) -> list[str]:
    """Choose the branches that are named like those of a work item, under any prefix."""
    return sorted(name for name in names if item_of_branch(name) == item)


def commit_of_run(git: Git, token: str, commits: str, patch: bytes) -> str:
    """Find the commit that a run made among these, by its trailer and its patch, as a trailer can be copied."""
    log = git("log", "-z", f"--format=%H%n%(trailers:key={RUN_TRAILER},valueonly)", commits).decode("utf-8", "replace")
    found = ""
    for entry in log.split("\0"):
        commit, *values = entry.split("\n")
        if token in (value.strip() for value in values) and _does_what(git, commit.strip(), patch):
            found = commit.strip()
    return found


def _does_what(git: Git, commit: str, patch: bytes) -> bool:
    """Return whether the patch makes a commit's tree of its parent's, or replaces the commits before it."""
    parents, start = git.line("rev-parse", f"{commit}^@").split(), trailer(git, commit, BASE_TRAILER)
    start = start if _COMMIT.fullmatch(start) else ""
    if len(parents) != 1 and parents[1:] not in ([start], [trailer(git, commit, MERGED_TRAILER)]):
        return False
    before, after = git.line("rev-parse", f"{parents[0]}^{{tree}}", f"{commit}^{{tree}}").split()
    try:
        if start:
            item = trailer(git, commit, ITEM_TRAILER)
            return before != after == replacing_tree(git, patch, start, parents[0], item)
        return before != after == apply_patch(git, patch, parents[0])
    except AccordError:
        return False


def runs_of(git: Git, commits: str) -> list[str]:
    """Name the runs that made some of these commits (``base..tip``), the latest first."""
    found = git("log", f"--format=%(trailers:key={RUN_TRAILER},valueonly)", commits).decode("utf-8", "replace")
    return list(dict.fromkeys(found.split()))


def commit_patch(
    git: Git, facts: BranchFacts, patch: bytes, author: str, message: str, now: datetime, merged: str = ""
) -> tuple[str, list[Change]]:
    """Make the commit of the branch, and list its changes; ``message`` ends with a trailer.

    With the commit ``merged``, which the patch brings in, it is a merge.
    Raises PatchConflict, or BrokenContract for a bad patch.
    """
    parent = facts.tip or facts.base
    tree = apply_patch(git, patch, parent, facts.base)
    commit = commit_tree(git, tree, [parent, *filter(None, [merged])], author, with_tree(message, tree), now)
    return commit, changes_between(git, parent, tree)


def own_changes(git: Git, before: str, commit: str) -> list[Change]:
    """List the changes of a commit; of a merge, how it differs from the merge that git makes by itself."""
    merged = git.line("rev-list", "--parents", "--max-count=1", commit).split()[2:]
    if not merged:
        return changes_between(git, before, commit)
    words = ("merge-tree", "--write-tree", "-z", "--name-only", "--no-messages", before, merged[0])
    tree, *conflicts = [field for field in split_nul(git.attempt(*words).stdout) if field] or [before]
    changes = changes_between(git, tree, commit)
    found = {change.path for change in changes}
    return [*changes, *(each for each in changes_between(git, before, commit) if each.path in {*conflicts} - found)]


def commit_tree(git: Git, tree: str, parents: Sequence[str], author: str, message: str, now: datetime) -> str:
    """Make a commit of a tree."""
    name, _, address = author.rpartition(" <")
    who: dict[str, str] = {}
    for role in ("AUTHOR", "COMMITTER"):
        who |= {f"GIT_{role}_NAME": name, f"GIT_{role}_EMAIL": address.rstrip(">"), f"GIT_{role}_DATE": timestamp(now)}
    named = replace(git, environment=who)
    given = [word for parent in parents for word in ("-p", parent)]
    return named("commit-tree", tree, *given, data=message.encode()).decode().strip()


def push(git: Git, remote: Remote, commit: str, branch: str, expected: str) -> bool:
    """Push a commit unless the branch moved (False); a lost answer is looked up. Raises Refused and Unreachable."""
    said = ""
    for _ in attempts(remote.clock, PAUSES):
        done = git.attempt("push", "--quiet", "--no-verify", remote.url, f"{commit}:refs/heads/{branch}")
        if done.returncode == 0:
            return True
        said = done.stderr.decode("utf-8", "replace")
        tip = find_tip(remote_heads(git, remote), branch)
        if tip == commit:
            return True
        if tip != expected:
            return False
        if push_trouble(said) in ("refused", "unknown"):
            raise push_refusal(said, remote.page)
    raise _unreachable(remote, said)


def check_author(author: str) -> None:
    """Raise WrongUsage for what git cannot write as the author of a commit."""
    if not _AUTHOR.fullmatch(author):
        raise WrongUsage(f"`{author}` is not an author.", hint="Use the form `Name <mail@example.org>`.")


def push_trouble(said: str) -> Trouble:
    """Return why git did not reach a remote, or did not push, by its own words."""
    words = _without_addresses(said)
    if known_refusal(words) or proxy_of("", {}).refusal(_tunnel_status(words)):
        return "refused"
    return next((trouble for pattern, trouble in _TROUBLES if pattern.search(words)), "unknown")


def push_refusal(said: str, repository_url: str = "") -> Refused:
    """Say what git and the server said, and what fixes it: a setting, whose page is below ``repository_url``."""
    known = known_refusal(words := _without_addresses(said))
    found = (hint for pattern, hint in _PUSH_HINTS if pattern.search(words))
    hint = next(found, "Give the job contents: write, or a token that may push to this branch.")
    return Refused(f"Git refused the push: {in_short(said)}", hint=known.hint_for(repository_url) if known else hint)


def in_short(said: str) -> str:
    """Write what git said as one line."""
    return " ".join(line.removeprefix("remote:").strip() for line in said.splitlines() if line.strip())[:1000]


def _patiently(git: Git, remote: Remote, *arguments: str) -> bytes:
    """Run a command that only reads from the remote, again while the reason is a passing one."""
    said = ""
    for _ in attempts(remote.clock, PAUSES):
        done = git.attempt(*arguments)
        if done.returncode == 0:
            return done.stdout
        said = done.stderr.decode("utf-8", "replace")
        if push_trouble(said) != "unreachable":
            raise _read_refusal(said, remote.url)
    raise _unreachable(remote, said)


def _unreachable(remote: Remote, said: str) -> Unreachable:
    trouble, hint = _trouble_of_proxy(said, remote.url)
    return Unreachable(
        f"Git could not reach {remote.url} in {len(PAUSES) + 1} tries{f' ({trouble})' if trouble else ''}.",
        hint=hint or "Run the same command again to continue.",
    )


def _read_refusal(said: str, url: str) -> Refused:
    """Say why git cannot read from a URL. Raises WrongUsage for an unusable file of certificates."""
    if refused := proxy_of(url, os.environ).refusal(_tunnel_status(said)):
        return refused
    if reason := _CERTIFICATE.search(said):
        from accord.core.connections import certificate_refusal, trusted_context

        trusted_context(os.environ)
        return certificate_refusal(url, reason[0])
    hint = "Check the repository, its base branch, and that the token has contents: read."
    return Refused(f"Git cannot read {url}: {' '.join(said.split())[:500]}", hint=hint)


def _trouble_of_proxy(said: str, url: str) -> tuple[str, str]:
    """Return what is wrong with the proxy for a URL, and the hint; empty where git does not speak of it."""
    proxy = proxy_of(url, os.environ)
    place = _PLACE.search(said)
    is_proxy = place and (place[3] == proxy.host or (place[1], place[2]) == (proxy.host, str(proxy.port)))
    speaks = proxy.variable and (is_proxy or _PROXY.search(said))
    return proxy.trouble(_tunnel_status(said)) if speaks else ("", "")


def _tunnel_status(said: str) -> int:
    found = _TUNNEL.search(said)
    return int(found[1] or found[2]) if found else 0


def _without_addresses(said: str) -> str:
    return _ADDRESS.sub("", said)
