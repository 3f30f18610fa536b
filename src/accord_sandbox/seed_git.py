"""The git part of a seed: commits, branches and pull requests between them."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from accord.core.errors import WrongUsage
from accord_sandbox.bare import DEFAULT_BRANCH, HEADS, GitFailed, valid_ref
from accord_sandbox.commits import noreply_signature

if TYPE_CHECKING:
    from collections.abc import Mapping

    from accord_sandbox.bare import BareRepository, GitStorage, Signature
    from accord_sandbox.database import Connection, Row


def plant_code(db: Connection, bares: GitStorage, row: Row, author: Row, entry: Mapping[str, Any], now: float) -> None:
    """Give a repository its history, its branches and their protection."""
    if any(name in entry for name in ("git", "files", "branches")):
        bare, start, parent = bares.open(row["full_name"]), DEFAULT_BRANCH, None
        if "git" in entry:
            start = _import(db, bare, row, entry["git"])
            parent = bare.branch(start)
        stream, signature = b"", noreply_signature(author, now)
        if "files" in entry:
            stream += _commit(start, entry["files"], signature, "Initial commit", parent)
        parent = f"{HEADS}{start}" if stream else parent
        for branch, files in entry.get("branches", {}).items():
            stream += _commit(branch, files, signature, f"Work on {branch}", parent)
        bare.run("fast-import", "--quiet", "--force", content=stream)
    for branch, rules in entry.get("protected", {}).items():
        db.execute("INSERT INTO protections VALUES (?, ?, ?)", (row["id"], branch, json.dumps(rules)))


def plant_pull(db: Connection, bares: GitStorage, row: Row, issue_id: int, entry: Mapping[str, Any]) -> None:
    """Make an issue that was just planted a pull request between two branches."""
    bare, base = bares.open(row["full_name"]), entry.get("base", DEFAULT_BRANCH)
    refs = bare.refs(HEADS)
    tips = {name: refs.get(HEADS + name) for name in (entry["head"], base)}
    for name, tip in tips.items():
        if tip is None:
            raise WrongUsage(
                f"The seed is wrong: {row['full_name']} has no branch {name} for its pull request.",
                hint="The format is described in accord_sandbox.seed.",
            )
    number = db.execute("SELECT number FROM issues WHERE id = ?", (issue_id,)).fetchone()[0]
    db.execute(
        "INSERT INTO pulls (issue_id, head_ref, head_sha, base_ref, base_sha, draft) VALUES (?, ?, ?, ?, ?, ?)",
        (issue_id, entry["head"], tips[entry["head"]], base, tips[base], entry.get("draft", False)),
    )
    bare.set_ref(f"refs/pull/{number}/head", str(tips[entry["head"]]))


def move_to_fork(db: Connection, bares: GitStorage, row: Row, issue_id: int, fork: Row) -> None:
    """Let a pull request that was just planted come from a fork: its branch is not in this repository any more."""
    head = db.execute("SELECT head_ref FROM pulls WHERE issue_id = ?", (issue_id,)).fetchone()[0]
    db.execute("UPDATE pulls SET fork_id = ? WHERE issue_id = ?", (fork["id"], issue_id))
    bares.open(row["full_name"]).drop_ref(HEADS + head)


def _import(db: Connection, bare: BareRepository, row: Row, source: str) -> str:
    """Take over all branches and tags of a repository, and return the name of its default branch."""
    try:
        bare.run("fetch", "--quiet", "--no-tags", source, "+refs/heads/*:refs/heads/*", "+refs/tags/*:refs/tags/*")
        listing = bare.text("ls-remote", "--symref", source, "HEAD")
    except GitFailed as error:
        raise WrongUsage(f"The seed is wrong: {source} cannot be read as a git repository: {error}.") from error
    branch = DEFAULT_BRANCH
    for line in listing.splitlines():
        if line.startswith(f"ref: {HEADS}"):
            branch = line.removeprefix(f"ref: {HEADS}").split("\t")[0]
    bare.run("symbolic-ref", "HEAD", f"{HEADS}{branch}")
    db.execute("UPDATE repositories SET default_branch = ? WHERE id = ?", (branch, row["id"]))
    return branch


def _commit(
    branch: str, files: Mapping[str, str | None], signature: Signature, message: str, parent: str | None
) -> bytes:
    """Return one commit for ``git fast-import``; a file without text is deleted."""
    ref = f"{HEADS}{branch}"
    if not valid_ref(ref):
        raise WrongUsage(f"The seed is wrong: {branch!r} is no name for a branch.")
    lines = [
        f"commit {ref}",
        f"committer {signature.name} <{signature.email}> {int(signature.moment)} +0000",
        f"data {len(message.encode())}\n{message}",
        *([f"from {parent}"] if parent else []),
    ]
    stream = "\n".join(lines).encode() + b"\n"
    for path, text in files.items():
        quoted = json.dumps(path, ensure_ascii=False)
        if text is None:
            stream += f"D {quoted}\n".encode()
            continue
        content = text.encode()
        stream += f"M 100644 inline {quoted}\ndata {len(content)}\n".encode() + content + b"\n"
    return stream
