"""The operations on pull requests and their reviews."""

from __future__ import annotations

from accord_sandbox import pull_state, pulls, reviews
from accord_sandbox.route import Route

_REPO = "/repos/{owner}/{repo}"
_PULL = f"{_REPO}/pulls/{{number:int}}"
_REVIEWERS = f"{_PULL}/requested_reviewers"
_REVIEW = f"{_PULL}/reviews/{{review_id:int}}"
_COMMENT = f"{_REPO}/pulls/comments/{{comment_id:int}}"
_ASKING = "pulls/review-requests#"

ROUTES = (
    Route("GET", f"{_REPO}/pulls", pulls.list_pulls, "pulls/pulls#list-pull-requests"),
    Route("POST", f"{_REPO}/pulls", pulls.create_pull, "pulls/pulls#create-a-pull-request", creates=True),
    Route("GET", _PULL, pulls.get_pull, "pulls/pulls#get-a-pull-request"),
    Route("PATCH", _PULL, pulls.update_pull, "pulls/pulls#update-a-pull-request"),
    Route("GET", f"{_PULL}/files", pulls.list_files, "pulls/pulls#list-pull-requests-files"),
    Route("GET", f"{_PULL}/commits", pulls.list_commits, "pulls/pulls#list-commits-on-a-pull-request"),
    Route("GET", f"{_PULL}/merge", pull_state.get_merged, "pulls/pulls#check-if-a-pull-request-has-been-merged"),
    Route("PUT", f"{_PULL}/merge", pull_state.merge_pull, "pulls/pulls#merge-a-pull-request"),
    Route("GET", _REVIEWERS, pulls.list_reviewers, f"{_ASKING}get-all-requested-reviewers-for-a-pull-request"),
    Route(
        "POST",
        _REVIEWERS,
        pulls.request_reviewers,
        f"{_ASKING}request-reviewers-for-a-pull-request",
        creates=True,
    ),
    Route("DELETE", _REVIEWERS, pulls.remove_reviewers, f"{_ASKING}remove-requested-reviewers-from-a-pull-request"),
    Route("GET", f"{_PULL}/reviews", reviews.list_reviews, "pulls/reviews#list-reviews-for-a-pull-request"),
    Route("POST", f"{_PULL}/reviews", reviews.create_review, "pulls/reviews#create-a-review-for-a-pull-request", True),
    Route("GET", _REVIEW, reviews.get_review, "pulls/reviews#get-a-review-for-a-pull-request"),
    Route("PUT", _REVIEW, reviews.update_review, "pulls/reviews#update-a-review-for-a-pull-request"),
    Route("DELETE", _REVIEW, reviews.delete_review, "pulls/reviews#delete-a-pending-review-for-a-pull-request"),
    Route(
        "GET",
        f"{_REVIEW}/comments",
        reviews.list_review_comments,
        "pulls/reviews#list-comments-for-a-pull-request-review",
    ),
    Route(
        "PUT",
        f"{_REVIEW}/dismissals",
        reviews.dismiss_review,
        "pulls/reviews#dismiss-a-review-for-a-pull-request",
    ),
    Route(
        "POST",
        f"{_REVIEW}/events",
        reviews.submit_review,
        "pulls/reviews#submit-a-review-for-a-pull-request",
        creates=True,
    ),
    Route(
        "GET",
        f"{_PULL}/comments",
        reviews.list_comments,
        "pulls/comments#list-review-comments-on-a-pull-request",
    ),
    Route(
        "POST",
        f"{_PULL}/comments",
        reviews.create_comment,
        "pulls/comments#create-a-review-comment-for-a-pull-request",
        creates=True,
    ),
    Route(
        "POST",
        f"{_PULL}/comments/{{comment_id:int}}/replies",
        reviews.create_reply,
        "pulls/comments#create-a-reply-for-a-review-comment",
        creates=True,
    ),
    Route("GET", _COMMENT, reviews.get_comment, "pulls/comments#get-a-review-comment-for-a-pull-request"),
    Route(
        "PATCH",
        _COMMENT,
        reviews.update_comment,
        "pulls/comments#update-a-review-comment-for-a-pull-request",
    ),
    Route(
        "DELETE",
        _COMMENT,
        reviews.delete_comment,
        "pulls/comments#delete-a-review-comment-for-a-pull-request",
    ),
)
"""In the order in which they are tried."""
