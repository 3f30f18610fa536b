"""Pull requests and reviews over REST."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from datetime import datetime
from functools import cache
from itertools import takewhile
from typing import Any

from accord.core.errors import Refused
from accord.core.refusals import known_refusal
from accord.git.program import Git, is_ancestor
from accord.github.comments import Comment
from accord.github.models import AnchorRefused, Issue, NewReview, Pull, PullFile, Review, VerdictRefused
from accord.github.rest import Rest
from accord.github.transport import Response

_ANCHOR = re.compile(r"could not be resolved|must be part of the diff|review_thread\.(?:path|line)", re.IGNORECASE)
_VERDICT = re.compile(r"your own pull request|not permitted to approve", re.IGNORECASE)
"""GitHub's words; all these answers are 422, and nothing but the words tells one reason from another (reported)."""


class PullMethods(Rest):
    """Requests about pull requests and reviews."""

    def pull(self, number: int) -> Pull | None:
        """Read one pull request; None without one of this number. GET …/pulls/{n}."""
        return self._find(f"/pulls/{number}", read_pull)

    def pulls_from(self, branch: str, *, state: str = "all") -> list[Pull]:
        """List the pull requests whose head is this branch of this repository, newest first. GET …/pulls."""
        owner = self._access.repository.partition("/")[0]
        params = {"head": f"{owner}:{branch}", "state": state, "sort": "created", "direction": "desc"}
        found = self._list_items("/pulls", read_pull, **params)
        return [pull for pull in found if pull.head_branch == branch]

    def open_pulls(self) -> Iterator[Pull]:
        """List the open pull requests, oldest first. GET …/pulls."""
        return self._list_items("/pulls", read_pull, state="open", sort="created", direction="asc")

    def pulls_changed_since(self, since: datetime) -> Iterator[Pull]:
        """Yield the pull requests that changed since then, in any state, the last changed first. GET …/pulls."""
        found = self._list_items("/pulls", read_pull, state="all", sort="updated", direction="desc")
        return takewhile(lambda pull: pull.updated_at is None or pull.updated_at >= since, found)

    def create_pull(self, title: str, body: str, head: str, base: str, *, draft: bool) -> Pull:
        """Open a pull request. POST …/pulls."""
        content = {"title": title, "body": body, "head": head, "base": base, "draft": draft}
        return self._call("POST", "/pulls", body=content, creates_content=True).read(read_pull)

    def change_pull(self, number: int, *, title: str, body: str) -> Pull:
        """Change title and body. PATCH …/pulls/{n}."""
        content = {"title": title, "body": body}
        return self._call("PATCH", f"/pulls/{number}", body=content).read(read_pull)

    def change_body(self, number: int, *, was: str, body: str) -> bool:
        """Replace a body that is unchanged since it was read; False when it was changed.

        GET and PATCH …/pulls/{n}. GitHub does not compare the old body, so a race between the two requests remains.
        """
        pull = self.pull(number)
        if pull is None or pull.body not in (was, body):
            return False
        if pull.body != body:
            self._call("PATCH", f"/pulls/{number}", body={"body": body})
        return True

    def add_labels(self, number: int, labels: Sequence[str]) -> None:
        """Add labels to an issue or pull request. POST …/issues/{n}/labels, sent again when its answer is lost."""
        body = {"labels": list(labels)}
        self.send_until_answered(lambda: self._call("POST", f"/issues/{number}/labels", body=body))

    def files(self, number: int) -> list[PullFile]:
        """List the files of a pull request at its head; see ``limits.PULL_FILES``. GET …/pulls/{n}/files."""
        return list(self._list_items(f"/pulls/{number}/files", PullFile.from_json))

    def files_between(self, base: str, commit: str) -> list[PullFile]:
        """List the files that changed since ``commit`` left ``base``; see ``limits.COMPARED_FILES``."""
        return self._compare(base, commit)[1]

    def files_since(self, old: str, commit: str) -> list[PullFile] | None:
        """List the files that changed from ``old`` to ``commit``; None where ``old`` is not before it."""
        status, files = self._compare(old, commit)
        return files if status in ("ahead", "identical") else None

    def is_beyond(self, base: str, commit: str) -> bool:
        """Return whether ``base`` lacks a commit."""
        return self._compare(base, commit)[0] in ("ahead", "diverged")

    def _compare(self, base: str, commit: str) -> tuple[str, list[PullFile]]:
        """GET …/compare/{base}...{commit}, whose first page has all files."""
        answer = self._call("GET", f"/compare/{base}...{commit}", params={"per_page": 1})
        return answer.read(lambda data: (str(data["status"]), [PullFile.from_json(entry) for entry in data["files"]]))

    def reviews(self, number: int) -> list[Review]:
        """List reviews, oldest first; pending ones only of the token's own login. GET …/pulls/{n}/reviews."""
        return list(self._list_items(f"/pulls/{number}/reviews", Review.from_json))

    def create_review(self, number: int, review: NewReview) -> Review:
        """Post a review with its inline comments, all or nothing. Raises AnchorRefused, VerdictRefused."""
        comments = [{"path": c.path, "line": c.line, "side": c.side, "body": c.body} for c in review.comments]
        content = {"commit_id": review.commit, "event": review.event, "body": review.body, "comments": comments}
        return self._post(f"/pulls/{number}/reviews", content).read(Review.from_json)

    def change_review(self, number: int, review_id: int, body: str) -> Review:
        """Replace the body of a review. PUT …/pulls/{n}/reviews/{id}."""
        return self._call("PUT", f"/pulls/{number}/reviews/{review_id}", body={"body": body}).read(Review.from_json)

    def dismiss_review(self, number: int, review_id: int, message: str) -> None:
        """Dismiss a review that approves or requests changes. Raises Refused when it was dismissed before."""
        path = f"/pulls/{number}/reviews/{review_id}/dismissals"
        self._call("PUT", path, body={"message": message, "event": "DISMISS"})

    def delete_pending_review(self, number: int, review_id: int) -> None:
        """Delete a review that was not submitted. DELETE …/pulls/{n}/reviews/{id}."""
        self._delete(f"/pulls/{number}/reviews/{review_id}")

    def comment_on_file(self, number: int, commit: str, path: str, body: str) -> str:
        """Comment on a file as a whole, which no review can hold; return the URL. Raises AnchorRefused."""
        content = {"commit_id": commit, "path": path, "subject_type": "file", "body": body}
        return self._post(f"/pulls/{number}/comments", content).read(lambda data: str(data["html_url"]))

    def review_comments(self, number: int) -> Iterator[Comment]:
        """List the comments on lines and files, oldest first. GET …/pulls/{n}/comments."""
        return self._list_items(f"/pulls/{number}/comments", Comment.from_json)

    def _post(self, path: str, content: dict[str, Any]) -> Response:
        try:
            return self._call("POST", path, body=content, creates_content=True)
        except Refused as refused:
            if _VERDICT.search(refused.message):
                hint = refused.hint if known_refusal(refused.message) else ""
                raise VerdictRefused(refused.message, hint=hint) from refused
            if _ANCHOR.search(refused.message):
                raise AnchorRefused(refused.message, hint=refused.hint) from refused
            raise


def read_pull(data: dict[str, Any]) -> Pull:
    """Read the JSON of a pull request, in which two values depend on others."""
    pull = Pull.from_json(data)
    is_mergeable = False if data.get("mergeable_state") == "behind" else pull.is_mergeable
    return replace(pull, is_mergeable=is_mergeable, merge_commit=pull.merge_commit if pull.is_merged else "")


def heads_on(git: Git, tip: str, pulls: Sequence[Pull]) -> list[str] | None:
    """Return the heads of pull requests that a branch which ends at ``tip`` has; None without a branch."""
    return [pull.head_sha for pull in pulls if is_ancestor(git, pull.head_sha, tip)] if tip else None


def are_over(pulls: Sequence[Pull], heads: Collection[str] | None) -> bool:
    """Return whether all pull requests of a branch have ended, so that the branch is not used again.

    ``heads`` are those of them that the branch has, None if it was deleted. One that was made again has none of them,
    and is new. The default branch goes on, whatever it was merged into.
    """
    if not pulls or any(pull.state == "open" or pull.head_branch == pull.default_branch for pull in pulls):
        return False
    return heads is None or bool(heads)


MOST_ITEMS = 10
"""More than people close at once; each may cost a request."""


@cache
def _closing_pattern() -> re.Pattern[str]:
    from accord.text.words import CLOSING_KEYWORDS

    return re.compile(
        rf"(?<![^\W_]|[/-])(?<![^\W_]_)(?<![^\W_]__)(?:{'|'.join(CLOSING_KEYWORDS)}):?[ \t]{{1,8}}[<\[]?"
        r"(?:https?://(?P<address>[\w.-]{1,200}(?::[0-9]{1,5})?/[\w.-]{1,100}/[\w.-]{1,100})/issues/"
        r"|(?P<repository>[\w.-]{1,100}/[\w.-]{1,100})#|#|GH-)(?P<number>[1-9][0-9]{0,8})(?!_{0,3}[^\W_])",
        re.IGNORECASE,
    )


def closing_references(pull: Pull | Issue) -> tuple[int, ...]:
    """Return the numbers of its repository's issues that a body closes, in its order, ``MOST_ITEMS`` at most.

    A reference is ``#1``, ``GH-1``, ``owner/name#1`` or an address on its server, each with its own keyword. A keyword
    and its reference are one text: emphasis may be around both, not between them. Source: GitHub documentation,
    "Linking a pull request to an issue" and "Autolinked references and URLs".
    """
    from accord.text.blocks import read_blocks
    from accord.text.outline import spans
    from accord.text.words import as_rendered

    paragraphs = (content for block in read_blocks(pull.body).leaves for content in block.texts)
    parts = (span.text for paragraph in paragraphs for span in spans(paragraph) if span.kind == "text")
    text = "\n".join(as_rendered(part, (), has_escapes=True).text for part in parts)
    here = "/".join(pull.url.casefold().split("/")[2:5])
    _, _, repository = here.partition("/")
    names = {None, here, repository}
    found = ((hit["address"] or hit["repository"], int(hit["number"])) for hit in _closing_pattern().finditer(text))
    numbers = (number for name, number in found if (name and name.casefold()) in names)
    return tuple(dict.fromkeys(numbers))[:MOST_ITEMS]
