"""Comments on the code of a pull request: finding their lines, storing them, and their payloads with reviews."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from accord_sandbox import payloads
from accord_sandbox.calls import Call
from accord_sandbox.database import Row, insert
from accord_sandbox.diffs import SIDES, DiffLocation, NotInDiff, fork_point, locate, pull_diff
from accord_sandbox.responses import Fields, schema_violation

_OF_THREAD = (
    *("subject_type", "side", "line", "position", "original_line", "original_position", "original_commit_id"),
    "diff_hunk",
)
"""Columns that a reply shares with the first comment of its thread."""


@dataclass(frozen=True)
class Remark:
    """A comment from a client; ``line`` is None for one on a whole file."""

    path: str
    body: str
    line: int | None
    side: str = "RIGHT"


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
    if "start_line" in fields:
        raise schema_violation("The sandbox does not support `start_line`. Comment on one line.")
    line = fields.integer("line") if "line" in fields else 0  # 0: on no line of a diff, like the older ``position``
    return Remark(path, body, line, fields.choice("side", SIDES) or "RIGHT")


def anchor_remark(call: Call, pull: Row, remark: Remark, commit: str) -> ThreadAnchor:
    """Find the place of a comment in the pull request's changes up to a commit. Raises NotInDiff."""
    changes = pull_diff(call.bare, pull["base_sha"], commit)
    change = next((change for change in changes if change.path == remark.path), None)
    if change is None:
        raise NotInDiff("path", "is invalid")
    if remark.line is None:
        return ThreadAnchor(remark.path, commit, None)
    return ThreadAnchor(remark.path, commit, locate(change, remark.side, remark.line))


def insert_review_comment(call: Call, pull: Row, review_id: int, anchor: ThreadAnchor, body: str) -> int:
    """Insert a comment that was checked before, and return its id."""
    location = anchor.location
    position = location.position if location else 1  # GitHub's position of a comment on a file
    values = {
        "review_id": review_id,
        "issue_id": pull["id"],
        "author_id": call.user.user_id,
        "in_reply_to_id": anchor.reply_to,
        "body": body,
        "path": anchor.path,
        "subject_type": "line" if location else "file",
        "side": location.side if location else "RIGHT",
        **dict.fromkeys(("line", "original_line"), location and location.line),
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


def review_payload(call: Call, pull: Row, row: Row) -> payloads.Payload:
    """Return a ``pull-request-review``."""
    links = payloads.pull_links(call, pull["full_name"], pull["number"], None)
    page = f"{links['html_url']}#pullrequestreview-{row['id']}"
    document = {
        **{name: row[name] for name in ("id", "body", "state", "commit_id")},
        "node_id": payloads.node_id("PRR", row["id"]),
        "user": payloads.user_by_id(call, row["author_id"]),
        "html_url": page,
        "pull_request_url": links["url"],
        "author_association": payloads.association(call, pull["repository_id"], row["author_id"]),
        "_links": {"html": {"href": page}, "pull_request": {"href": links["url"]}},
    }
    if row["submitted_at"] is not None:
        document["submitted_at"] = payloads.timestamp_of(row["submitted_at"])
    return document


def comment_payload(call: Call, pull: Row, row: Row) -> payloads.Payload:
    """Return a ``pull-request-review-comment``."""
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
        "user": payloads.user_by_id(call, row["author_id"]),
        "author_association": payloads.association(call, pull["repository_id"], row["author_id"]),
        **{name: payloads.timestamp_of(row[name]) for name in ("created_at", "updated_at")},
        "reactions": payloads.reactions(url),
        "_links": {"self": {"href": url}, "html": {"href": page}, "pull_request": {"href": links["url"]}},
    }
    if row["in_reply_to_id"] is not None:
        document["in_reply_to_id"] = row["in_reply_to_id"]
    return document
