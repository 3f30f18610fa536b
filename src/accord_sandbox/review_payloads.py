"""Reviews and their comments as GitHub sends them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from accord_sandbox import payloads

if TYPE_CHECKING:
    from collections.abc import Sequence

    from accord_sandbox.calls import Call
    from accord_sandbox.database import Row


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
    return [_review_comment_payload(call, pull, row, users[row["author_id"]], roles.of(pull, row["author_id"])) for row in rows]


def _review_comment_payload(call: Call, pull: Row, row: Row, author: payloads.Payload, association: str) -> payloads.Payload:
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
