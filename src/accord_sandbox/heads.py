"""How pull requests follow their branches, whoever moved them: a push, the API or a merge.

A pull request whose head branch moved has that new head, and its line comments find their new places. One whose head
branch is gone is closed. One whose head has got into its base by other ways is merged.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from accord_sandbox import events
from accord_sandbox.bare import HEADS
from accord_sandbox.positions import relocate

if TYPE_CHECKING:
    from accord_sandbox.bare import BareRepository
    from accord_sandbox.calls import Call
    from accord_sandbox.database import Connection, Row


@dataclass(frozen=True)
class RefUpdate:
    """Some refs of a repository have moved. ``now`` is in seconds since the epoch."""

    db: Connection
    bare: BareRepository
    repository_id: int
    actor_id: int
    now: float


def follow_branches(move: RefUpdate) -> None:
    """Bring every open pull request between branches of the repository in line with them."""
    rows = move.db.execute(
        "SELECT pulls.*, issues.number FROM pulls JOIN issues ON issues.id = issue_id"
        " WHERE repository_id = ? AND state = 'open' AND fork_id IS NULL",
        (move.repository_id,),
    ).fetchall()
    if not rows:
        return
    refs = move.bare.refs(HEADS)
    for row in rows:
        head, base = refs.get(HEADS + row["head_ref"]), refs.get(HEADS + row["base_ref"])
        if head is None:
            close_issue(move, row["issue_id"])
            continue
        if head != row["head_sha"]:
            update_head(move, row, head, base or row["base_sha"])
        if base is not None and base != row["base_sha"] and move.bare.is_ancestor(head, base):
            mark_merged(move, row["issue_id"], base)


def update_head(move: RefUpdate, pull: Row, head: str, base: str) -> None:
    """Give a pull request its new head."""
    key = pull["issue_id"]
    move.db.execute("UPDATE pulls SET head_sha = ?, base_sha = ? WHERE issue_id = ?", (head, base, key))
    move.db.execute("UPDATE issues SET updated_at = ? WHERE id = ?", (move.now, key))
    move.bare.set_ref(f"refs/pull/{pull['number']}/head", head)
    relocate(move.db, move.bare, key)


def mark_merged(move: RefUpdate, issue_id: int, commit: str) -> None:
    """Keep that a pull request got into its base, as which commit, and close it."""
    move.db.execute(
        "UPDATE pulls SET merged_at = ?, merged_by_id = ?, merge_sha = ? WHERE issue_id = ?",
        (move.now, move.actor_id, commit, issue_id),
    )
    events.insert_event(move.db, issue_id, "merged", move.actor_id, move.now)
    close_issue(move, issue_id)


def close_issue(move: RefUpdate, issue_id: int, reason: str | None = None) -> None:
    """Close an issue or pull request that is open."""
    changed = move.db.execute(
        "UPDATE issues SET state = 'closed', state_reason = ?, closed_at = ?, closed_by_id = ?, updated_at = ?"
        " WHERE id = ? AND state = 'open'",
        (reason, move.now, move.actor_id, move.now, issue_id),
    ).rowcount
    if changed:
        events.insert_event(move.db, issue_id, "closed", move.actor_id, move.now, {"state_reason": reason})


def ref_update(call: Call) -> RefUpdate:
    """Return the change of a ref that the caller just made, for the pull requests to follow."""
    return RefUpdate(call.db, call.bare, call.repository["id"], call.user.user_id, call.now)
