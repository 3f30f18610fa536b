"""Comments on the code of a pull request, before it is known how they come: with a review or alone."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from accord_sandbox import diffs, payloads
from accord_sandbox.database import next_id
from accord_sandbox.diffs import LineRange, NotInDiff
from accord_sandbox.responses import Fields, schema_violation

if TYPE_CHECKING:
    from collections.abc import Sequence

    from accord_sandbox.calls import Call
    from accord_sandbox.database import Row
    from accord_sandbox.diffs import DiffLocation


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
    spot: LineRange | int | None


@dataclass(frozen=True)
class ThreadAnchor:
    """Where a remark hangs; ``place`` is None on a whole file."""

    path: str
    commit: str
    place: DiffLocation | None
    reply_to: int | None = None


def read_remark(document: Any) -> Remark:
    """Read the fields that say where a comment belongs and what it says."""
    fields = Fields(document)
    for name in ("path", "body"):
        fields.require(name)
    path, body = fields.string("path") or "", fields.string("body") or ""
    if fields.choice("subject_type", ("line", "file")) == "file":
        return Remark(path, body, None)
    line, start = _number(fields, "line"), _number(fields, "start_line")
    side = fields.choice("side", diffs.SIDES) or "RIGHT"
    start_side = fields.choice("start_side", (*diffs.SIDES, "side"))
    if line is None:
        position = _number(fields, "position")
        return Remark(path, body, -1 if position is None else position)
    if start is None:
        return Remark(path, body, LineRange(side, line))
    return Remark(path, body, LineRange(side, line, side if start_side in (None, "side") else start_side, start))


def anchor_remark(call: Call, pull: Row, said: Remark, commit: str) -> ThreadAnchor:
    """Find where a remark hangs in what the pull request changes up to a commit; an OffTheDiff when nowhere."""
    changes = diffs.pull_diff(call.bare, pull["base_sha"], commit)
    change = next((change for change in changes if change.path == said.path), None)
    if change is None:
        raise NotInDiff("path", "is invalid")
    if said.spot is None:
        return ThreadAnchor(said.path, commit, None)
    spot = diffs.range_at_position(change, said.spot) if isinstance(said.spot, int) else said.spot
    if spot is None:
        raise NotInDiff("line", "must be part of the diff")
    return ThreadAnchor(said.path, commit, diffs.locate(change, spot))


def insert_review_comment(call: Call, pull: Row, review_id: int, anchor: ThreadAnchor, body: str) -> int:
    """Insert a comment that was checked before, and return its id."""
    place, identifier = anchor.place, next_id(call.db)
    spot = place.spot if place else LineRange("RIGHT", 0)
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


def insert_reply(call: Call, pull: Row, review_id: int, first: Row, body: str) -> int:
    """Insert a reply, which hangs where the first comment of its thread hangs, and return its id."""
    identifier = insert_review_comment(
        call, pull, review_id, ThreadAnchor(first["path"], first["commit_id"], None, first["id"]), body
    )
    call.db.execute(
        f"UPDATE review_comments SET {', '.join(f'{name} = ?' for name in _OF_THE_THREAD)} WHERE id = ?",
        (*(first[name] for name in _OF_THE_THREAD), identifier),
    )
    return identifier


def is_pull_commit(call: Call, pull: Row, commit: str) -> bool:
    """Tell whether a commit is one of the pull request's."""
    if commit == pull["head_sha"]:
        return True
    start = diffs.fork_point(call.bare, pull["base_sha"], pull["head_sha"])
    return commit in call.bare.text("rev-list", f"{start}..{pull['head_sha']}").splitlines()


def _number(fields: Fields, name: str) -> int | None:
    if name not in fields:
        return None
    value = fields.integer(name)
    if value < 0:
        raise schema_violation(f"For 'properties/{name}', {value} is not a line.")
    return value


def review_documents(call: Call, pull: Row, rows: Sequence[Row]) -> list[payloads.Payload]:
    """Return ``pull-request-review`` documents of one pull request."""
    users = payloads.people(call, {row["author_id"] for row in rows})
    roles = payloads.Associations(call)
    links = payloads.pull_links(call, pull["full_name"], pull["number"], None)
    documents = []
    for row in rows:
        page = f"{links['html_url']}#pullrequestreview-{row['id']}"
        document = {
            "id": row["id"],
            "node_id": payloads.node_id("PRR", row["id"]),
            "user": users[row["author_id"]],
            "body": row["body"],
            "state": row["state"],
            "html_url": page,
            "pull_request_url": links["url"],
            "author_association": roles.of(pull, row["author_id"]),
            "_links": {"html": {"href": page}, "pull_request": {"href": links["url"]}},
            "commit_id": row["commit_id"],
        }
        if row["submitted_at"] is not None:
            document["submitted_at"] = payloads.moment(row["submitted_at"])
        documents.append(document)
    return documents


def comment_payloads(call: Call, pull: Row, rows: Sequence[Row]) -> list[payloads.Payload]:
    """Return ``pull-request-review-comment`` documents of one pull request."""
    users = payloads.people(call, {row["author_id"] for row in rows})
    roles = payloads.Associations(call)
    return [
        _review_comment_payload(call, pull, row, users[row["author_id"]], roles.of(pull, row["author_id"]))
        for row in rows
    ]


def _review_comment_payload(
    call: Call, pull: Row, row: Row, author: payloads.Payload, association: str
) -> payloads.Payload:
    links = payloads.pull_links(call, pull["full_name"], pull["number"], None)
    url = f"{call.api}/repos/{pull['full_name']}/pulls/comments/{row['id']}"
    page = f"{links['html_url']}#discussion_r{row['id']}"
    document = {
        "id": row["id"],
        "node_id": payloads.node_id("PRRC", row["id"]),
        "url": url,
        "html_url": page,
        "pull_request_url": links["url"],
        "pull_request_review_id": row["review_id"],
        "user": author,
        "author_association": association,
        "body": row["body"],
        "path": row["path"],
        "diff_hunk": row["diff_hunk"],
        "commit_id": row["commit_id"],
        "original_commit_id": row["original_commit_id"],
        "position": row["position"],
        "original_position": row["original_position"],
        "line": row["line"],
        "original_line": row["original_line"],
        "side": row["side"],
        "start_line": row["start_line"],
        "original_start_line": row["original_start_line"],
        "start_side": row["start_side"],
        "subject_type": row["subject_type"],
        "created_at": payloads.moment(row["created_at"]),
        "updated_at": payloads.moment(row["updated_at"]),
        "reactions": payloads.reactions(url),
        "_links": {
            "self": {"href": url},
            "html": {"href": page},
            "pull_request": {"href": links["url"]},
        },
    }
    if row["in_reply_to_id"] is not None:
        document["in_reply_to_id"] = row["in_reply_to_id"]
    return document
