"""Reviews: all of one is kept or nothing.

Docs: https://docs.github.com/rest/pulls/reviews
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from accord_sandbox import comments, diffs, pull_state, review_threads
from accord_sandbox.calls import AccessLevel
from accord_sandbox.comments import BODY_LIMIT, since_seconds
from accord_sandbox.database import next_id
from accord_sandbox.diffs import NotInDiff
from accord_sandbox.responses import ApiResponse, Refusal, not_found, schema_violation

if TYPE_CHECKING:
    from accord_sandbox.calls import Call
    from accord_sandbox.database import Row
    from accord_sandbox.review_threads import ThreadAnchor


EVENTS = ("APPROVE", "REQUEST_CHANGES", "COMMENT")
_STATES = {"APPROVE": "APPROVED", "REQUEST_CHANGES": "CHANGES_REQUESTED", "COMMENT": "COMMENTED"}
_OWN = {
    "APPROVE": "Can not approve your own pull request",
    "REQUEST_CHANGES": "Can not request changes on your own pull request",
}
_BLANK = {
    "REQUEST_CHANGES": "You need to leave a comment indicating the requested changes.",
    "COMMENT": "Body can not be blank",
}
ONE_PENDING = "User can only have one pending review per pull request"


def list_reviews(call: Call) -> ApiResponse:
    """GET /repos/{owner}/{repo}/pulls/{pull_number}/reviews, oldest first; a pending one only to its author."""
    pull = pull_state.find_pull(call)
    rows = call.db.execute(
        "SELECT * FROM reviews WHERE issue_id = ? AND (state != 'PENDING' OR author_id = ?) ORDER BY id",
        (pull["id"], call.actor.user_id if call.actor else None),
    ).fetchall()
    part = rows[call.page.offset : call.page.offset + call.page.size]
    return ApiResponse(200, review_threads.review_documents(call, pull, part), call.links(len(rows)))


def get_review(call: Call) -> ApiResponse:
    """GET /repos/{owner}/{repo}/pulls/{pull_number}/reviews/{review_id}."""
    pull, review = _find_review(call)
    return _review_response(call, pull, review["id"])


def create_review(call: Call) -> ApiResponse:
    """POST /repos/{owner}/{repo}/pulls/{pull_number}/reviews; without an event it stays pending."""
    pull = reviewable_pull(call)
    event = call.fields.choice("event", EVENTS)
    body = checked_body(call.fields.string("body", null=True) or "")
    commit = call.fields.string("commit_id") or pull["head_sha"]
    if not review_threads.is_pull_commit(call, pull, commit):
        raise review_refusal("Commit is not part of the pull request")
    if pending_review(call, pull) is not None:
        raise review_refusal(ONE_PENDING)
    remarks = [review_threads.read_remark(entry) for entry in _comment_entries(call)]
    _check_event(call, pull, event, body, bool(remarks))
    anchors = [
        (_anchor_or_refuse(call, pull, said, commit), checked_body(said.body, required=True)) for said in remarks
    ]
    identifier = insert_review(call, pull, body, commit)
    for anchor, text in anchors:
        review_threads.insert_review_comment(call, pull, identifier, anchor, text)
    if commit != pull["head_sha"]:
        diffs.relocate(call.db, call.bare, pull["id"])
    if event is not None:
        _submit(call, pull, identifier, event)
    return _review_response(call, pull, identifier)


def update_review(call: Call) -> ApiResponse:
    """PUT /repos/{owner}/{repo}/pulls/{pull_number}/reviews/{review_id}: another body."""
    pull, review = _find_review(call)
    _check_author(call, review)
    call.fields.require("body")
    body = checked_body(call.fields.string("body") or "")
    call.db.execute("UPDATE reviews SET body = ? WHERE id = ?", (body, review["id"]))
    return _review_response(call, pull, review["id"])


def delete_review(call: Call) -> ApiResponse:
    """DELETE /repos/{owner}/{repo}/pulls/{pull_number}/reviews/{review_id}, with its comments; only a pending one."""
    pull, review = _find_review(call)
    _check_author(call, review)
    if review["state"] != "PENDING":
        raise review_refusal("Can not delete a non-pending pull request review")
    answer = _review_response(call, pull, review["id"])
    call.db.execute("DELETE FROM review_comments WHERE review_id = ?", (review["id"],))
    call.db.execute("DELETE FROM reviews WHERE id = ?", (review["id"],))
    return answer


def submit_review(call: Call) -> ApiResponse:
    """POST /repos/{owner}/{repo}/pulls/{pull_number}/reviews/{review_id}/events: a pending review becomes public."""
    pull, review = _find_review(call)
    _check_author(call, review)
    pull_state.check_unlocked(call, pull)
    call.fields.require("event")
    event = call.fields.choice("event", EVENTS) or ""
    if review["state"] != "PENDING":
        raise review_refusal("Could not submit a review that is not pending")
    body = checked_body(call.fields.string("body") or review["body"])
    count = call.db.execute("SELECT count(*) FROM review_comments WHERE review_id = ?", (review["id"],)).fetchone()[0]
    _check_event(call, pull, event, body, bool(count))
    call.db.execute("UPDATE reviews SET body = ? WHERE id = ?", (body, review["id"]))
    _submit(call, pull, review["id"], event)
    return _review_response(call, pull, review["id"])


def dismiss_review(call: Call) -> ApiResponse:
    """PUT /repos/{owner}/{repo}/pulls/{pull_number}/reviews/{review_id}/dismissals; the body stays."""
    pull, review = _find_review(call)
    call.require("pull_requests", AccessLevel.WRITE)
    call.fields.require("message")
    message = call.fields.string("message") or ""
    if not message.strip():
        raise review_refusal("Message can not be blank")
    if review["state"] not in ("APPROVED", "CHANGES_REQUESTED"):
        raise review_refusal(f"Can not dismiss a {review['state'].lower()} pull request review")
    call.db.execute("UPDATE reviews SET state = 'DISMISSED', dismissal = ? WHERE id = ?", (message, review["id"]))
    dismissed = {"review_id": review["id"], "state": review["state"].lower(), "dismissal_message": message}
    comments.record_event(call, pull["id"], "review_dismissed", {"dismissed_review": dismissed})
    return _review_response(call, pull, review["id"])


def list_review_comments(call: Call) -> ApiResponse:
    """GET /repos/{owner}/{repo}/pulls/{pull_number}/reviews/{review_id}/comments."""
    pull, review = _find_review(call)
    rows = call.db.execute("SELECT * FROM review_comments WHERE review_id = ? ORDER BY id", (review["id"],)).fetchall()
    part = rows[call.page.offset : call.page.offset + call.page.size]
    return ApiResponse(200, review_threads.comment_payloads(call, pull, part), call.links(len(rows)))


def reviewable_pull(call: Call) -> Row:
    """Return the pull request of the path, which the caller may review."""
    pull = pull_state.find_pull(call)
    call.check_writable()
    if not call.grant.may_review():
        raise call.grant.refusal()
    pull_state.check_unlocked(call, pull)
    return pull


def pending_review(call: Call, pull: Row) -> Row | None:
    """Return the caller's review that is not submitted yet."""
    row: Row | None = call.db.execute(
        "SELECT * FROM reviews WHERE issue_id = ? AND author_id = ? AND state = 'PENDING'",
        (pull["id"], call.user.user_id),
    ).fetchone()
    return row


def insert_review(call: Call, pull: Row, body: str, commit: str, state: str = "PENDING") -> int:
    """Insert a review that was checked before, and return its id."""
    identifier = next_id(call.db)
    submitted = None if state == "PENDING" else call.now
    call.db.execute(
        "INSERT INTO reviews VALUES (?, ?, ?, ?, ?, ?, ?, NULL)",
        (identifier, pull["id"], call.user.user_id, state, body, commit, submitted),
    )
    return identifier


def checked_body(body: str, *, required: bool = False) -> str:
    """Refuse a text that is too long, or missing where one must be."""
    if len(body) > BODY_LIMIT:
        raise review_refusal(f"Body is too long (maximum is {BODY_LIMIT} characters)")
    if required and not body.strip():
        raise review_refusal("Body can't be blank")
    return body


def review_refusal(reason: str) -> Refusal:
    """Return the 422 of the reviews' own kind: one sentence in ``errors``."""
    return Refusal(422, "Unprocessable Entity", errors=[reason])


def _find_review(call: Call) -> tuple[Row, Row]:
    pull = pull_state.find_pull(call)
    row = call.db.execute(
        "SELECT * FROM reviews WHERE id = ? AND issue_id = ?", (call.identifier("review_id"), pull["id"])
    ).fetchone()
    if row is None or (row["state"] == "PENDING" and (not call.actor or call.actor.user_id != row["author_id"])):
        raise not_found()
    return pull, row


def _check_author(call: Call, review: Row) -> None:
    call.check_writable()
    if review["author_id"] != call.user.user_id or not call.grant.may_review():
        raise call.grant.refusal()


def _comment_entries(call: Call) -> list[object]:
    entries = call.document.get("comments") if isinstance(call.document, dict) else None
    if entries is None:
        return []
    if not isinstance(entries, list):
        raise schema_violation("For 'properties/comments', it is not an array.")
    for index, entry in enumerate(entries):
        if not isinstance(entry, dict):
            raise schema_violation(f"For 'properties/comments/items/{index}', it is not an object.")
    return entries


def _anchor_or_refuse(call: Call, pull: Row, said: review_threads.Remark, commit: str) -> ThreadAnchor:
    """Find a comment's place; a review's refusal never says which comment it is about."""
    try:
        return review_threads.anchor_remark(call, pull, said, commit)
    except NotInDiff as off:
        raise review_refusal(f"{'Path' if off.field == 'path' else 'Line'} could not be resolved") from None


def _check_event(call: Call, pull: Row, event: str | None, body: str, commented: bool) -> None:
    if event in _OWN and pull["author_id"] == call.user.user_id:
        raise review_refusal(_OWN[event])
    if event in _BLANK and not body.strip() and not commented:
        raise review_refusal(_BLANK[event])


def _submit(call: Call, pull: Row, identifier: int, event: str) -> None:
    call.db.execute(
        "UPDATE reviews SET state = ?, submitted_at = ? WHERE id = ?", (_STATES[event], call.now, identifier)
    )
    call.db.execute("UPDATE issues SET updated_at = ? WHERE id = ?", (call.now, pull["id"]))
    asked = (pull["id"], call.user.user_id)
    call.db.execute("DELETE FROM review_requests WHERE issue_id = ? AND user_id = ?", asked)


def _review_response(call: Call, pull: Row, identifier: int) -> ApiResponse:
    rows = call.db.execute("SELECT * FROM reviews WHERE id = ?", (identifier,)).fetchall()
    return ApiResponse(200, review_threads.review_documents(call, pull, rows)[0])


_PUBLIC = (
    "SELECT review_comments.* FROM review_comments JOIN reviews ON reviews.id = review_id"
    " WHERE reviews.state != 'PENDING'"
)


def list_comments(call: Call) -> ApiResponse:
    """GET /repos/{owner}/{repo}/pulls/{pull_number}/comments, oldest first unless asked; none of pending reviews."""
    pull = pull_state.find_pull(call)
    column = "updated_at" if call.query.get("sort") == "updated" else "created_at"
    direction = "DESC" if call.query.get("direction") == "desc" and "sort" in call.query else "ASC"
    rows = call.db.execute(
        f"{_PUBLIC} AND review_comments.issue_id = ? AND review_comments.updated_at >= ?"
        f" ORDER BY review_comments.{column} {direction}, review_comments.id {direction}",
        (pull["id"], since_seconds(call) or 0.0),
    ).fetchall()
    part = rows[call.page.offset : call.page.offset + call.page.size]
    return ApiResponse(200, review_threads.comment_payloads(call, pull, part), call.links(len(rows)))


def get_comment(call: Call) -> ApiResponse:
    """GET /repos/{owner}/{repo}/pulls/comments/{comment_id}."""
    pull, row = _find_review_comment(call)
    return _comment_response(call, pull, row["id"], 200)


def create_comment(call: Call) -> ApiResponse:
    """POST /repos/{owner}/{repo}/pulls/{pull_number}/comments, wrapped in a COMMENTED review of its own."""
    pull = reviewable_pull(call)
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
    review = insert_review(call, pull, "", commit, "COMMENTED")
    identifier = review_threads.insert_review_comment(call, pull, review, anchor, body)
    if commit != pull["head_sha"]:
        diffs.relocate(call.db, call.bare, pull["id"])
    return _comment_response(call, pull, identifier, 201)


def create_reply(call: Call) -> ApiResponse:
    """POST /repos/{owner}/{repo}/pulls/{pull_number}/comments/{comment_id}/replies."""
    pull = reviewable_pull(call)
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
    review = insert_review(call, pull, "", pull["head_sha"], "COMMENTED")
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
    return pull_state.pull_by_id(call, row["issue_id"]), row


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
    if pending_review(call, pull) is not None:
        message = "user_id can only have one pending review per pull request"
        error = {"resource": "PullRequestReview", "code": "custom", "field": "user_id", "message": message}
        raise Refusal(422, "Validation Failed", errors=[error])


def _comment_refusal(field: str, problem: str, *, prefix: str = "pull_request_review_thread.") -> Refusal:
    name = f"{prefix}{field}"
    error = {"resource": "PullRequestReviewComment", "code": "custom", "field": name, "message": f"{name} {problem}"}
    return Refusal(422, "Validation Failed", errors=[error])


def _comment_response(call: Call, pull: Row, identifier: int, status: int) -> ApiResponse:
    rows = call.db.execute("SELECT * FROM review_comments WHERE id = ?", (identifier,)).fetchall()
    payload = review_threads.comment_payloads(call, pull, rows)[0]
    return ApiResponse(status, payload, {"location": payload["url"]} if status == 201 else {})
