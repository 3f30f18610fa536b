"""Reviews, stored as a whole or not at all, and single comments on the code.

Docs: https://docs.github.com/rest/pulls/reviews, …/comments
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from accord_sandbox import payloads
from accord_sandbox.calls import AccessLevel, Call, Route
from accord_sandbox.comments import BODY_LIMIT, record_event
from accord_sandbox.database import Row, insert
from accord_sandbox.diffs import SIDES, NotInDiff, fork_point, locate, pull_diff, relocate
from accord_sandbox.pull_state import find_pull
from accord_sandbox.repositories import check_pulls_allowed
from accord_sandbox.responses import (
    ApiResponse,
    Fields,
    Refusal,
    created,
    invalid,
    not_found,
    of_kind,
    schema_violation,
)

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
_PUBLIC = "SELECT * FROM public_review_comments WHERE issue_id = ?"
_OF_THREAD = (
    *("subject_type", "side", "line", "position", "original_line", "original_position", "original_commit_id"),
    *("path", "commit_id", "diff_hunk"),
)
"""Columns that a reply shares with the first comment of its thread."""

_REVIEWS = "pulls/{number:int}/reviews"
_REVIEW = f"{_REVIEWS}/{{review_id:int}}"
_COMMENTS = "pulls/{number:int}/comments"
_REPLIES = f"{_COMMENTS}/{{comment_id:int}}/replies"


@Route("GET", _REVIEWS, "pulls/reviews#list-reviews-for-a-pull-request")
def list_reviews(call: Call) -> ApiResponse:
    """List reviews, oldest first; only its author sees a pending one."""
    pull = find_pull(call)
    statement = "SELECT * FROM reviews WHERE issue_id = ? AND (state != 'PENDING' OR author_id = ?) ORDER BY id"
    rows = call.fetch_all(statement, pull["id"], call.actor.user_id if call.actor else None)
    return call.list_response(rows, lambda row: review_payload(call, pull, row))


@Route("POST", _REVIEWS, "pulls/reviews#create-a-review-for-a-pull-request", creates=True)
def create_review(call: Call) -> ApiResponse:
    """Create a review; without an event it stays pending."""
    pull = _reviewable_pull(call)
    event = call.fields.choice("event", EVENTS)
    body = _checked_body(call.fields.get("body") or "")
    commit = call.fields.get("commit_id") or pull["head_sha"]
    if not is_pull_commit(call, pull, commit):
        raise _refusal("Commit is not part of the pull request")
    if _has_pending_review(call, pull):
        raise _refusal(ONE_PENDING)
    remarks = [read_remark(of_kind("comments", entry, dict)) for entry in call.fields.get("comments") or []]
    if event in _OWN and pull["author_id"] == call.user.user_id:
        raise _refusal(_OWN[event])
    if event == "APPROVE":
        check_pulls_allowed(call, _refusal("GitHub Actions is not permitted to approve pull requests."))
    if event in _BLANK and not body.strip() and not remarks:
        raise _refusal(_BLANK[event])
    places = [(_place(call, pull, remark, commit), _checked_body(remark.body, required=True)) for remark in remarks]
    identifier = insert_review(call, pull, body, commit, _STATES[event] if event else "PENDING")
    for place, text in places:
        insert_review_comment(call, pull, identifier, place, text)
    if commit != pull["head_sha"]:
        relocate(call, pull["id"])
    if event is not None:
        call.touch(pull["id"])
    return _review_response(call, pull, identifier)


@Route("PUT", _REVIEW, "pulls/reviews#update-a-review-for-a-pull-request")
def _update_review(call: Call) -> ApiResponse:
    pull, review = _own_review(call)
    body = _checked_body(call.fields.value_of("body"))
    call.db.execute("UPDATE reviews SET body = ? WHERE id = ?", (body, review["id"]))
    return _review_response(call, pull, review["id"])


@Route("DELETE", _REVIEW, "pulls/reviews#delete-a-pending-review-for-a-pull-request")
def _delete_review(call: Call) -> ApiResponse:
    pull, review = _own_review(call)
    if review["state"] != "PENDING":
        raise _refusal("Can not delete a non-pending pull request review")
    response = _review_response(call, pull, review["id"])
    call.db.execute("DELETE FROM review_comments WHERE review_id = ?", (review["id"],))
    call.db.execute("DELETE FROM reviews WHERE id = ?", (review["id"],))
    return response


@Route("PUT", f"{_REVIEW}/dismissals", "pulls/reviews#dismiss-a-review-for-a-pull-request")
def _dismiss_review(call: Call) -> ApiResponse:
    pull, review = _find_review(call)
    call.require("pull_requests", AccessLevel.WRITE)
    message = call.fields.value_of("message")
    if not message.strip():
        raise _refusal("Message can not be blank")
    if review["state"] not in ("APPROVED", "CHANGES_REQUESTED"):
        raise _refusal(f"Can not dismiss a {review['state'].lower()} pull request review")
    call.db.execute("UPDATE reviews SET state = 'DISMISSED', dismissal = ? WHERE id = ?", (message, review["id"]))
    dismissed = {"review_id": review["id"], "state": review["state"].lower(), "dismissal_message": message}
    record_event(call, pull["id"], "review_dismissed", {"dismissed_review": dismissed})
    return _review_response(call, pull, review["id"])


@Route("GET", _COMMENTS, "pulls/comments#list-review-comments-on-a-pull-request")
def _list_review_comments(call: Call) -> ApiResponse:
    pull = find_pull(call)
    rows = call.fetch_all(f"{_PUBLIC} ORDER BY created_at, id", pull["id"])
    return call.list_response(rows, lambda row: comment_payload(call, pull, row))


@Route("POST", _COMMENTS, "pulls/comments#create-a-review-comment-for-a-pull-request", creates=True)
def create_review_comment(call: Call) -> ApiResponse:
    """Create a comment inside a COMMENTED review of its own."""
    pull = _reviewable_pull(call)
    remark, commit = read_remark(call.fields), call.fields.value_of("commit_id")
    body = _checked_comment(remark.body)
    if not is_pull_commit(call, pull, commit):
        raise _comment_refusal("pull_request_review_thread.commit_id", "is not part of the pull request")
    _check_nothing_pending(call, pull)
    try:
        place = place_remark(call, pull, remark, commit)
    except NotInDiff as problem:
        raise _comment_refusal(f"pull_request_review_thread.{problem.field}", str(problem)) from None
    review = insert_review(call, pull, "", commit, "COMMENTED")
    identifier = insert_review_comment(call, pull, review, place, body)
    if commit != pull["head_sha"]:
        relocate(call, pull["id"])
    return _comment_response(call, pull, identifier)


@Route("POST", _REPLIES, "pulls/comments#create-a-reply-for-a-review-comment", creates=True)
def create_reply(call: Call) -> ApiResponse:
    """Reply to the first comment of a thread."""
    pull = _reviewable_pull(call)
    first = call.fetch(f"{_PUBLIC} AND id = ?", pull["id"], call.number("comment_id"))
    if first is None or first["in_reply_to_id"] is not None:
        raise not_found()
    body = _checked_comment(call.fields.value_of("body"))
    _check_nothing_pending(call, pull)
    review = insert_review(call, pull, "", pull["head_sha"], "COMMENTED")
    return _comment_response(call, pull, insert_reply(call, pull, review, first, body))


def insert_review(call: Call, pull: Row, body: str, commit: str, state: str = "PENDING") -> int:
    """Insert a review that was checked before, and return its id."""
    row = {"issue_id": pull["id"], "author_id": call.user.user_id, "state": state, "body": body, "commit_id": commit}
    return insert(call.db, "reviews", {**row, "submitted_at": None if state == "PENDING" else call.now})


def _reviewable_pull(call: Call) -> Row:
    """Return the pull request of the path; refuse a caller who may not review it."""
    pull = find_pull(call)
    call.check_writable()
    call.permit(call.grant.may_talk("pull_requests"))
    call.check_unlocked(pull, "pull_requests")
    return pull


def _find_review(call: Call) -> tuple[Row, Row]:
    pull = find_pull(call)
    row = call.fetch("SELECT * FROM reviews WHERE id = ? AND issue_id = ?", call.number("review_id"), pull["id"])
    if row is None or (row["state"] == "PENDING" and (not call.actor or call.actor.user_id != row["author_id"])):
        raise not_found()
    return pull, row


def _own_review(call: Call) -> tuple[Row, Row]:
    pull, review = _find_review(call)
    call.check_writable()
    call.permit(review["author_id"] == call.user.user_id and call.grant.may_talk("pull_requests"))
    return pull, review


def _has_pending_review(call: Call, pull: Row) -> bool:
    condition = "reviews WHERE issue_id = ? AND author_id = ? AND state = 'PENDING'"
    return call.count(condition, pull["id"], call.user.user_id) > 0


def _place(call: Call, pull: Row, remark: Remark, commit: str) -> dict[str, Any]:
    """Find a comment's place; a review's refusal never names the comment."""
    try:
        return place_remark(call, pull, remark, commit)
    except NotInDiff as problem:
        raise _refusal(f"{'Path' if problem.field == 'path' else 'Line'} could not be resolved") from None


def _checked_body(body: str, *, required: bool = False) -> str:
    if len(body) > BODY_LIMIT:
        raise _refusal(f"Body is too long (maximum is {BODY_LIMIT} characters)")
    if required and not body.strip():
        raise _refusal("Body can't be blank")
    return body


def _checked_comment(body: str) -> str:
    if not body.strip():
        raise _comment_refusal("body", "can't be blank")
    if len(body) > BODY_LIMIT:
        raise _comment_refusal("body", f"is too long (maximum is {BODY_LIMIT} characters)")
    return body


def _check_nothing_pending(call: Call, pull: Row) -> None:
    if _has_pending_review(call, pull):
        message = "user_id can only have one pending review per pull request"
        raise invalid("PullRequestReview", "user_id", "custom", message=message)


def _refusal(reason: str) -> Refusal:
    """Return the 422 for a review: one sentence in ``errors``."""
    return Refusal(422, "Unprocessable Entity", errors=[reason])


def _comment_refusal(field: str, problem: str) -> Refusal:
    return invalid("PullRequestReviewComment", field, "custom", message=f"{field} {problem}")


def _review_response(call: Call, pull: Row, identifier: int) -> ApiResponse:
    return ApiResponse(200, review_payload(call, pull, call.row("reviews", identifier)))


def _comment_response(call: Call, pull: Row, identifier: int) -> ApiResponse:
    return created(comment_payload(call, pull, call.row("review_comments", identifier)))


@dataclass(frozen=True)
class Remark:
    """A comment from a client; ``line`` is None for one on a whole file."""

    path: str
    body: str
    line: int | None
    side: str = "RIGHT"


def read_remark(document: Any) -> Remark:
    """Read the place and the text of a comment."""
    fields = Fields(document)
    path, body = fields.value_of("path"), fields.value_of("body")
    if fields.choice("subject_type", ("line", "file")) == "file":
        return Remark(path, body, None)
    if "start_line" in fields:
        raise schema_violation("The sandbox does not support `start_line`. Comment on one line.")
    line = fields.get("line", 0)  # 0: on no line of a diff, like the older ``position``
    return Remark(path, body, line, fields.choice("side", SIDES) or "RIGHT")


def place_remark(call: Call, pull: Row, remark: Remark, commit: str) -> dict[str, Any]:
    """Return the columns with the place of a comment in the changes up to a commit. Raises NotInDiff."""
    changes = pull_diff(call.bare, pull["base_sha"], commit)
    change = next((change for change in changes if change.path == remark.path), None)
    if change is None:
        raise NotInDiff("path", "is invalid")
    position, hunk = (1, "") if remark.line is None else locate(change, remark.side, remark.line)
    return {
        "path": remark.path,
        "subject_type": "line" if remark.line else "file",
        "side": remark.side,
        **dict.fromkeys(("line", "original_line"), remark.line),
        **dict.fromkeys(("position", "original_position"), position),  # GitHub has 1 for one on a file
        **dict.fromkeys(("commit_id", "original_commit_id"), commit),
        "diff_hunk": hunk,
    }


def insert_review_comment(call: Call, pull: Row, review_id: int, place: Mapping[str, Any], body: str) -> int:
    """Insert a comment that was checked before, and return its id."""
    about = {"review_id": review_id, "issue_id": pull["id"], "author_id": call.user.user_id, "body": body}
    times = dict.fromkeys(("created_at", "updated_at"), call.now)
    return insert(call.db, "review_comments", {**about, **place, **times})


def insert_reply(call: Call, pull: Row, review_id: int, first: Row, body: str) -> int:
    """Insert a reply at the place of its thread's first comment, and return its id."""
    place = {name: first[name] for name in _OF_THREAD}
    return insert_review_comment(call, pull, review_id, {**place, "in_reply_to_id": first["id"]}, body)


def is_pull_commit(call: Call, pull: Row, commit: str) -> bool:
    """Tell whether a commit is one of the pull request's."""
    if commit == pull["head_sha"]:
        return True
    start = fork_point(call.bare, pull["base_sha"], pull["head_sha"])
    return commit in call.bare.git.line("rev-list", f"{start}..{pull['head_sha']}").splitlines()


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
        **{name: row[name] for name in ("id", "body", *_OF_THREAD)},
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
