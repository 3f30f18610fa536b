"""Comments on the code of a pull request: finding their lines, storing them, and their payloads with reviews."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from accord_sandbox import payloads
from accord_sandbox.database import insert
from accord_sandbox.diffs import SIDES, DiffLocation, LineRange, NotInDiff, fork_point, locate, pull_diff
from accord_sandbox.responses import Fields, schema_violation

if TYPE_CHECKING:
    from collections.abc import Sequence

    from accord_sandbox.calls import Call
    from accord_sandbox.database import Row

_OF_THREAD = (
    *("subject_type", "side", "line", "start_side", "start_line", "position"),
    *("original_line", "original_start_line", "original_position", "original_commit_id", "diff_hunk"),
)
"""Columns that a reply shares with the first comment of its thread."""


@dataclass(frozen=True)
class Remark:
    """A comment from a client; ``lines`` is None for one on a whole file."""

    path: str
    body: str
    lines: LineRange | None


@dataclass(frozen=True)
class ThreadAnchor:
    """The place of a comment; ``location`` is None on a whole file."""

    path: str
    commit: str
    location: DiffLocation | None
    reply_to: int | None = None


def read_remark(document: Any) -> Remark:
    """Read the place and the text of a comment."""
    fields = Fields(document)
    path, body = fields.text("path"), fields.text("body")
    if fields.choice("subject_type", ("line", "file")) == "file":
        return Remark(path, body, None)
    line, start = _number(fields, "line"), _number(fields, "start_line")
    side = fields.choice("side", SIDES) or "RIGHT"
    start_side = fields.choice("start_side", (*SIDES, "side"))
    if line is None:
        line = 0  # on no line of a diff; the older ``position`` is not supported
    if start is None:
        return Remark(path, body, LineRange(side, line))
    return Remark(path, body, LineRange(side, line, side if start_side in (None, "side") else start_side, start))


def anchor_remark(call: Call, pull: Row, remark: Remark, commit: str) -> ThreadAnchor:
    """Find the place of a comment in the pull request's changes up to a commit. Raises NotInDiff."""
    changes = pull_diff(call.bare, pull["base_sha"], commit)
    change = next((change for change in changes if change.path == remark.path), None)
    if change is None:
        raise NotInDiff("path", "is invalid")
    if remark.lines is None:
        return ThreadAnchor(remark.path, commit, None)
    return ThreadAnchor(remark.path, commit, locate(change, remark.lines))


def insert_review_comment(call: Call, pull: Row, review_id: int, anchor: ThreadAnchor, body: str) -> int:
    """Insert a comment that was checked before, and return its id."""
    location = anchor.location
    lines = location.lines if location else LineRange("RIGHT", 0)
    line = lines.line if location else None
    position = location.position if location else 1  # GitHub's position of a comment on a file
    values = {
        "review_id": review_id,
        "issue_id": pull["id"],
        "author_id": call.user.user_id,
        "in_reply_to_id": anchor.reply_to,
        "body": body,
        "path": anchor.path,
        "subject_type": "line" if location else "file",
        "side": lines.side,
        "start_side": lines.start_side,
        **dict.fromkeys(("line", "original_line"), line),
        **dict.fromkeys(("start_line", "original_start_line"), lines.start_line),
        **dict.fromkeys(("position", "original_position"), position),
        **dict.fromkeys(("commit_id", "original_commit_id"), anchor.commit),
        "diff_hunk": location.hunk if location else "",
        **dict.fromkeys(("created_at", "updated_at"), call.now),
    }
    return insert(call.db, "review_comments", values)


def insert_reply(call: Call, pull: Row, review_id: int, first: Row, body: str) -> int:
    """Insert a reply at the place of its thread's first comment, and return its id."""
    anchor = ThreadAnchor(first["path"], first["commit_id"], None, first["id"])
    identifier = insert_review_comment(call, pull, review_id, anchor, body)
    columns = ", ".join(f"{name} = ?" for name in _OF_THREAD)
    values = (*(first[name] for name in _OF_THREAD), identifier)
    call.db.execute(f"UPDATE review_comments SET {columns} WHERE id = ?", values)
    return identifier


def is_pull_commit(call: Call, pull: Row, commit: str) -> bool:
    """Tell whether a commit is one of the pull request's."""
    if commit == pull["head_sha"]:
        return True
    start = fork_point(call.bare, pull["base_sha"], pull["head_sha"])
    return commit in call.bare.text("rev-list", f"{start}..{pull['head_sha']}").splitlines()


def review_payloads(call: Call, pull: Row, rows: Sequence[Row]) -> list[payloads.Payload]:
    """Return ``pull-request-review`` documents of one pull request."""
    users = payloads.users_by_id(call, {row["author_id"] for row in rows})
    roles = payloads.Associations(call)
    links = payloads.pull_links(call, pull["full_name"], pull["number"], None)
    documents = []
    for row in rows:
        page = f"{links['html_url']}#pullrequestreview-{row['id']}"
        document = {
            **{name: row[name] for name in ("id", "body", "state", "commit_id")},
            "node_id": payloads.node_id("PRR", row["id"]),
            "user": users[row["author_id"]],
            "html_url": page,
            "pull_request_url": links["url"],
            "author_association": roles.of(pull, row["author_id"]),
            "_links": {"html": {"href": page}, "pull_request": {"href": links["url"]}},
        }
        if row["submitted_at"] is not None:
            document["submitted_at"] = payloads.timestamp_of(row["submitted_at"])
        documents.append(document)
    return documents


def comment_payloads(call: Call, pull: Row, rows: Sequence[Row]) -> list[payloads.Payload]:
    """Return ``pull-request-review-comment`` documents of one pull request."""
    users = payloads.users_by_id(call, {row["author_id"] for row in rows})
    roles = payloads.Associations(call)
    return [
        _comment_payload(call, pull, row, users[row["author_id"]], roles.of(pull, row["author_id"])) for row in rows
    ]


def _comment_payload(call: Call, pull: Row, row: Row, author: payloads.Payload, association: str) -> payloads.Payload:
    links = payloads.pull_links(call, pull["full_name"], pull["number"], None)
    url = f"{call.api}/repos/{pull['full_name']}/pulls/comments/{row['id']}"
    page = f"{links['html_url']}#discussion_r{row['id']}"
    document = {
        **{name: row[name] for name in ("id", "body", "path", "commit_id", *_OF_THREAD)},
        "node_id": payloads.node_id("PRRC", row["id"]),
        "url": url,
        "html_url": page,
        "pull_request_url": links["url"],
        "pull_request_review_id": row["review_id"],
        "user": author,
        "author_association": association,
        "created_at": payloads.timestamp_of(row["created_at"]),
        "updated_at": payloads.timestamp_of(row["updated_at"]),
        "reactions": payloads.reactions(url),
        "_links": {"self": {"href": url}, "html": {"href": page}, "pull_request": {"href": links["url"]}},
    }
    if row["in_reply_to_id"] is not None:
        document["in_reply_to_id"] = row["in_reply_to_id"]
    return document


def _number(fields: Fields, name: str) -> int | None:
    if name not in fields:
        return None
    value = fields.integer(name)
    if value < 0:
        raise schema_violation(f"For 'properties/{name}', {value} is not a line.")
    return value
