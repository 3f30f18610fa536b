"""Comments on the code that come alone, replies, and what becomes of comments later.

Docs: https://docs.github.com/rest/pulls/comments
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from accord_sandbox import positions, pull_rows, review_payloads, review_threads, reviews
from accord_sandbox.access import AccessLevel
from accord_sandbox.answers import ApiResponse, Refusal, not_found
from accord_sandbox.comments import BODY_LIMIT, since_seconds
from accord_sandbox.positions import NotInDiff

if TYPE_CHECKING:
    from accord_sandbox.calls import Call
    from accord_sandbox.database import Row

_PUBLIC = (
    "SELECT review_comments.* FROM review_comments JOIN reviews ON reviews.id = review_id"
    " WHERE reviews.state != 'PENDING'"
)


def list_comments(call: Call) -> ApiResponse:
    """GET /repos/{owner}/{repo}/pulls/{pull_number}/comments, oldest first unless asked; none of pending reviews."""
    pull = pull_rows.find_pull(call)
    column = "updated_at" if call.query.get("sort") == "updated" else "created_at"
    direction = "DESC" if call.query.get("direction") == "desc" and "sort" in call.query else "ASC"
    rows = call.db.execute(
        f"{_PUBLIC} AND review_comments.issue_id = ? AND review_comments.updated_at >= ?"
        f" ORDER BY review_comments.{column} {direction}, review_comments.id {direction}",
        (pull["id"], since_seconds(call) or 0.0),
    ).fetchall()
    part = rows[call.page.offset : call.page.offset + call.page.size]
    return ApiResponse(200, review_payloads.comment_payloads(call, pull, part), call.links(len(rows)))


def get_comment(call: Call) -> ApiResponse:
    """GET /repos/{owner}/{repo}/pulls/comments/{comment_id}."""
    pull, row = _find_review_comment(call)
    return _comment_response(call, pull, row["id"], 200)


def create_comment(call: Call) -> ApiResponse:
    """POST /repos/{owner}/{repo}/pulls/{pull_number}/comments, wrapped in a COMMENTED review of its own."""
    pull = reviews.reviewable_pull(call)
    if "in_reply_to" in call.fields:
        return _reply(call, pull, call.fields.integer("in_reply_to"))
    for name in ("body", "commit_id", "path"):
        call.fields.require(name)
    said = review_threads.read_remark(call.document)
    body = _checked_comment_body(said.body)
    commit = call.fields.string("commit_id") or ""
    if not review_threads.is_pull_commit(call, pull, commit):
        raise _comment_refusal("commit_id", "is not part of the pull request")
    _check_pending(call, pull)
    try:
        anchor = review_threads.anchor_remark(call, pull, said, commit)
    except NotInDiff as off:
        raise _comment_refusal(off.field, str(off)) from None
    review = reviews.insert_review(call, pull, "", commit, "COMMENTED")
    identifier = review_threads.insert_review_comment(call, pull, review, anchor, body)
    if commit != pull["head_sha"]:
        positions.relocate(call.db, call.bare, pull["id"])
    return _comment_response(call, pull, identifier, 201)


def create_reply(call: Call) -> ApiResponse:
    """POST /repos/{owner}/{repo}/pulls/{pull_number}/comments/{comment_id}/replies."""
    pull = reviews.reviewable_pull(call)
    return _reply(call, pull, call.identifier("comment_id"))


def update_comment(call: Call) -> ApiResponse:
    """PATCH /repos/{owner}/{repo}/pulls/comments/{comment_id}, by its author or by who may write."""
    pull, row = _editable_review_comment(call)
    call.fields.require("body")
    body = _checked_comment_body(call.fields.string("body") or "")
    call.db.execute("UPDATE review_comments SET body = ?, updated_at = ? WHERE id = ?", (body, call.now, row["id"]))
    return _comment_response(call, pull, row["id"], 200)


def delete_comment(call: Call) -> ApiResponse:
    """DELETE /repos/{owner}/{repo}/pulls/comments/{comment_id}; a review that was only its wrapping goes with it."""
    _, row = _editable_review_comment(call)
    call.db.execute("DELETE FROM review_comments WHERE id = ?", (row["id"],))
    call.db.execute(
        "DELETE FROM reviews WHERE id = ? AND state = 'COMMENTED' AND body = ''"
        " AND id NOT IN (SELECT review_id FROM review_comments)",
        (row["review_id"],),
    )
    return ApiResponse(204)


def _reply(call: Call, pull: Row, identifier: int) -> ApiResponse:
    first = call.db.execute(
        f"{_PUBLIC} AND review_comments.id = ? AND review_comments.issue_id = ?", (identifier, pull["id"])
    ).fetchone()
    if first is None or first["in_reply_to_id"] is not None:
        raise not_found()
    call.fields.require("body")
    body = _checked_comment_body(call.fields.string("body") or "")
    _check_pending(call, pull)
    review = reviews.insert_review(call, pull, "", pull["head_sha"], "COMMENTED")
    return _comment_response(call, pull, review_threads.insert_reply(call, pull, review, first, body), 201)


def _find_review_comment(call: Call) -> tuple[Row, Row]:
    _ = call.repository
    if not call.grant.may("pull_requests", AccessLevel.READ):
        raise call.grant.refusal()
    row = call.db.execute(
        "SELECT review_comments.*, reviews.state FROM review_comments JOIN reviews ON reviews.id = review_id"
        " JOIN issues ON issues.id = review_comments.issue_id WHERE review_comments.id = ? AND repository_id = ?",
        (call.identifier("comment_id"), call.repository["id"]),
    ).fetchone()
    if row is None or (row["state"] == "PENDING" and (not call.actor or call.actor.user_id != row["author_id"])):
        raise not_found()
    return pull_rows.pull_by_id(call, row["issue_id"]), row


def _editable_review_comment(call: Call) -> tuple[Row, Row]:
    pull, row = _find_review_comment(call)
    call.check_writable()
    own = row["author_id"] == call.user.user_id and call.grant.may_review()
    if not own and not call.grant.may("pull_requests", AccessLevel.WRITE):
        raise call.grant.refusal()
    return pull, row


def _checked_comment_body(body: str) -> str:
    if not body.strip():
        raise _comment_refusal("body", "can't be blank", prefix="")
    if len(body) > BODY_LIMIT:
        raise _comment_refusal("body", f"is too long (maximum is {BODY_LIMIT} characters)", prefix="")
    return body


def _check_pending(call: Call, pull: Row) -> None:
    if reviews.pending_review(call, pull) is not None:
        message = "user_id can only have one pending review per pull request"
        error = {"resource": "PullRequestReview", "code": "custom", "field": "user_id", "message": message}
        raise Refusal(422, "Validation Failed", errors=[error])


def _comment_refusal(field: str, problem: str, *, prefix: str = "pull_request_review_thread.") -> Refusal:
    name = f"{prefix}{field}"
    error = {"resource": "PullRequestReviewComment", "code": "custom", "field": name, "message": f"{name} {problem}"}
    return Refusal(422, "Validation Failed", errors=[error])


def _comment_response(call: Call, pull: Row, identifier: int, status: int) -> ApiResponse:
    rows = call.db.execute("SELECT * FROM review_comments WHERE id = ?", (identifier,)).fetchall()
    payload = review_payloads.comment_payloads(call, pull, rows)[0]
    return ApiResponse(status, payload, {"location": payload["url"]} if status == 201 else {})
