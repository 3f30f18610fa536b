"""Comments on the code of a pull request, before it is known how they come: with a review or alone."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from accord_sandbox import diffs, positions
from accord_sandbox.answers import schema_violation
from accord_sandbox.database import next_id
from accord_sandbox.fields import Fields
from accord_sandbox.positions import OffTheDiff, Spot

if TYPE_CHECKING:
    from accord_sandbox.calls import Call
    from accord_sandbox.database import Row
    from accord_sandbox.positions import Place

_OF_THE_THREAD = (
    "subject_type",
    "side",
    "line",
    "start_side",
    "start_line",
    "position",
    "original_line",
    "original_start_line",
    "original_position",
    "original_commit_id",
    "diff_hunk",
)
"""What a reply has in common with the comment that it answers."""


@dataclass(frozen=True)
class Remark:
    """A comment as a client sent it; ``spot`` is None for one on a whole file, a number for a position."""

    path: str
    body: str
    spot: Spot | int | None


@dataclass(frozen=True)
class Anchor:
    """Where a remark hangs; ``place`` is None on a whole file."""

    path: str
    commit: str
    place: Place | None
    reply_to: int | None = None


def remark(document: Any) -> Remark:
    """Read the fields that say where a comment belongs and what it says."""
    fields = Fields(document)
    for name in ("path", "body"):
        fields.require(name)
    path, body = fields.string("path") or "", fields.string("body") or ""
    if fields.choice("subject_type", ("line", "file")) == "file":
        return Remark(path, body, None)
    line, start = _number(fields, "line"), _number(fields, "start_line")
    side = fields.choice("side", positions.SIDES) or "RIGHT"
    start_side = fields.choice("start_side", (*positions.SIDES, "side"))
    if line is None:
        position = _number(fields, "position")
        return Remark(path, body, -1 if position is None else position)
    if start is None:
        return Remark(path, body, Spot(side, line))
    return Remark(path, body, Spot(side, line, side if start_side in (None, "side") else start_side, start))


def anchored(call: Call, pull: Row, said: Remark, commit: str) -> Anchor:
    """Find where a remark hangs in what the pull request changes up to a commit; an OffTheDiff when nowhere."""
    changes = diffs.of_pull(call.bare, pull["base_sha"], commit)
    change = next((change for change in changes if change.path == said.path), None)
    if change is None:
        raise OffTheDiff("path", "is invalid")
    if said.spot is None:
        return Anchor(said.path, commit, None)
    spot = positions.spot_at(change, said.spot) if isinstance(said.spot, int) else said.spot
    if spot is None:
        raise OffTheDiff("line", "must be part of the diff")
    return Anchor(said.path, commit, positions.place(change, spot))


def hang(call: Call, pull: Row, review_id: int, anchor: Anchor, body: str) -> int:
    """Insert a comment that was checked before, and return its id."""
    place, identifier = anchor.place, next_id(call.db)
    spot = place.spot if place else Spot("RIGHT", 0)
    position = place.position if place else 1  # what GitHub says of a comment on a file
    values = {
        "id": identifier,
        "review_id": review_id,
        "issue_id": pull["id"],
        "author_id": call.user.user_id,
        "in_reply_to_id": anchor.reply_to,
        "body": body,
        "path": anchor.path,
        "subject_type": "line" if place else "file",
        "side": spot.side,
        "line": spot.line if place else None,
        "start_side": spot.start_side,
        "start_line": spot.start_line,
        "position": position,
        "original_line": spot.line if place else None,
        "original_start_line": spot.start_line,
        "original_position": position,
        "commit_id": anchor.commit,
        "original_commit_id": anchor.commit,
        "diff_hunk": place.hunk if place else "",
        "created_at": call.now,
        "updated_at": call.now,
    }
    columns, marks = ", ".join(values), ", ".join("?" * len(values))
    call.db.execute(f"INSERT INTO review_comments ({columns}) VALUES ({marks})", tuple(values.values()))
    return identifier


def answer(call: Call, pull: Row, review_id: int, first: Row, body: str) -> int:
    """Insert a reply, which hangs where the first comment of its thread hangs, and return its id."""
    identifier = hang(call, pull, review_id, Anchor(first["path"], first["commit_id"], None, first["id"]), body)
    call.db.execute(
        f"UPDATE review_comments SET {', '.join(f'{name} = ?' for name in _OF_THE_THREAD)} WHERE id = ?",
        (*(first[name] for name in _OF_THE_THREAD), identifier),
    )
    return identifier


def belongs(call: Call, pull: Row, commit: str) -> bool:
    """Tell whether a commit is one of the pull request's."""
    if commit == pull["head_sha"]:
        return True
    start = diffs.fork(call.bare, pull["base_sha"], pull["head_sha"])
    return commit in call.bare.text("rev-list", f"{start}..{pull['head_sha']}").splitlines()


def _number(fields: Fields, name: str) -> int | None:
    if name not in fields:
        return None
    value = fields.integer(name)
    if value < 0:
        raise schema_violation(f"For 'properties/{name}', {value} is not a line.")
    return value
