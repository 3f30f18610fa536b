"""Reviews over REST; implements ``accord.github.pull_port.ReviewPort``."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from accord.github.comments import read_comment
from accord.github.pull_port import AnchorRefused, PullFile, Review, VerdictRefused
from accord.github.rest import Rest
from accord.kernel.errors import Refused

if TYPE_CHECKING:
    from collections.abc import Iterator

    from accord.github.comments import Comment
    from accord.github.pull_port import NewReview
    from accord.github.transport import Answer

_ANCHOR = re.compile(r"could not be resolved|must be part of the diff|review_thread\.(?:path|line)", re.IGNORECASE)
_VERDICT = re.compile(r"your own pull request|not permitted to approve", re.IGNORECASE)
"""GitHub's words; all these answers are 422, and nothing but the words tells one reason from another (reported)."""


class ReviewMethods(Rest):
    """The requests about reviews of pull requests."""

    def files(self, number: int) -> list[PullFile]:
        """GET …/pulls/{n}/files, all pages."""
        return list(self._listed(f"{self._root}/pulls/{number}/files", _file))

    def files_between(self, base: str, commit: str) -> list[PullFile]:
        """GET …/compare/{base}...{commit}; its first page has all the files, whatever its size."""
        path = f"{self._root}/compare/{base}...{commit}"
        answer = self._transport.call("GET", path, params={"per_page": 1})
        return answer.read(lambda data: [_file(entry) for entry in data["files"]])

    def reviews(self, number: int) -> list[Review]:
        """GET …/pulls/{n}/reviews, all pages."""
        return list(self._listed(f"{self._root}/pulls/{number}/reviews", _review))

    def create_review(self, number: int, review: NewReview) -> Review:
        """POST …/pulls/{n}/reviews."""
        comments = [{"path": c.path, "line": c.line, "side": c.side, "body": c.body} for c in review.comments]
        content = {"commit_id": review.commit, "event": review.event, "body": review.body, "comments": comments}
        return self._post(f"{self._root}/pulls/{number}/reviews", content).read(_review)

    def change_review(self, number: int, review_id: int, body: str) -> Review:
        """PUT …/pulls/{n}/reviews/{id}."""
        path = f"{self._root}/pulls/{number}/reviews/{review_id}"
        return self._transport.call("PUT", path, body={"body": body}).read(_review)

    def dismiss_review(self, number: int, review_id: int, message: str) -> None:
        """PUT …/pulls/{n}/reviews/{id}/dismissals."""
        path = f"{self._root}/pulls/{number}/reviews/{review_id}/dismissals"
        self._transport.call("PUT", path, body={"message": message, "event": "DISMISS"})

    def delete_pending_review(self, number: int, review_id: int) -> None:
        """DELETE …/pulls/{n}/reviews/{id}."""
        self._delete(f"{self._root}/pulls/{number}/reviews/{review_id}")

    def comment_on_file(self, number: int, commit: str, path: str, body: str) -> str:
        """POST …/pulls/{n}/comments with a file as subject, which the endpoint for reviews cannot have."""
        content = {"commit_id": commit, "path": path, "subject_type": "file", "body": body}
        return self._post(f"{self._root}/pulls/{number}/comments", content).read(lambda data: str(data["html_url"]))

    def review_comments(self, number: int) -> Iterator[Comment]:
        """GET …/pulls/{n}/comments, page by page."""
        return self._listed(f"{self._root}/pulls/{number}/comments", read_comment)

    def _post(self, path: str, content: dict[str, Any]) -> Answer:
        try:
            return self._transport.call("POST", path, body=content, creates_content=True)
        except Refused as refused:
            if _VERDICT.search(refused.message):
                raise VerdictRefused(refused.message, mend=refused.mend) from refused
            if _ANCHOR.search(refused.message):
                raise AnchorRefused(refused.message, mend=refused.mend) from refused
            raise


def _file(data: dict[str, Any]) -> PullFile:
    """Read the JSON of a file (schema "diff-entry")."""
    return PullFile(data["filename"], data["status"], data.get("previous_filename") or "", data.get("patch"))


def _review(data: dict[str, Any]) -> Review:
    """Read the JSON of a review (schema "pull-request-review")."""
    user = data.get("user") or {}
    return Review(
        id=data["id"],
        url=data["html_url"],
        author=user.get("login", ""),
        author_is_bot=user.get("type") == "Bot",
        body=data.get("body") or "",
        state=data["state"],
        commit=data.get("commit_id") or "",
    )
