"""Comments on issues and pull requests over REST."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from datetime import datetime
from typing import Any

from accord.core.clock import parse_timestamp, timestamp
from accord.core.errors import Refused
from accord.core.frozen import Frozen, json_field
from accord.github.models import NotThere
from accord.github.rest import Rest


class Comment(Frozen):
    """A comment of a conversation, or of a thread of a review (schemas "issue-comment" and its like)."""

    id: int = json_field()
    url: str = json_field("html_url")
    body: str = json_field(empty="")
    author: str = json_field("user.login", empty="")
    is_bot: bool = json_field("user.type", "Bot".__eq__, default=False)
    review_id: int | None = json_field("pull_request_review_id", default=None)  # which its thread belongs to
    is_hidden: bool = False  # known to GraphQL alone
    created_at: datetime | None = json_field(read=parse_timestamp, default=None)  # known to REST alone, as is the next
    updated_at: datetime | None = json_field(read=parse_timestamp, default=None)


class CommentMethods(Rest):
    """Requests about comments of issues and pull requests."""

    def comments(self, number: int) -> Iterator[Comment]:
        """List the comments of an issue or pull request, oldest first. GET …/issues/{n}/comments."""
        return self._list_items(f"/issues/{number}/comments", Comment.from_json)

    def recent_comments(self, since: datetime) -> Iterator[tuple[int, Comment]]:
        """List the comments that changed since then with their issue's number, last first. GET …/issues/comments."""
        params = {"sort": "updated", "direction": "desc", "since": timestamp(since)}

        def with_number(data: dict[str, Any]) -> tuple[int, Comment]:
            return int(data["issue_url"].rpartition("/")[2]), Comment.from_json(data)

        return self._list_items("/issues/comments", with_number, **params)

    def create_comment(self, number: int, body: str) -> Comment:
        """Create a comment. POST …/issues/{n}/comments."""
        path = f"/issues/{number}/comments"
        return self._call("POST", path, body={"body": body}, creates_content=True).read(Comment.from_json)

    def change_comment(self, comment_id: int, body: str) -> Comment:
        """Replace the body of a comment. PATCH …/issues/comments/{id}."""
        return self._call("PATCH", f"/issues/comments/{comment_id}", body={"body": body}).read(Comment.from_json)

    def react(self, comment_id: int, reaction: str) -> None:
        """React to a comment, which GitHub counts once. POST …/reactions, sent again when its answer is lost."""
        path = f"/issues/comments/{comment_id}/reactions"
        self.send_until_answered(lambda: self._call("POST", path, body={"content": reaction}))

    def delete_comment(self, comment_id: int) -> None:
        """Delete a comment. DELETE …/issues/comments/{id}."""
        self._delete(f"/issues/comments/{comment_id}")


def show_comment(
    github: CommentMethods,
    number: int,
    body: str,
    ours: Sequence[Comment],
    *,
    find: Callable[[], Sequence[Comment]],
    is_ours: Callable[[str], bool],
) -> Comment:
    """Make the first of our comments show a text, or a new one if we have none; further ones are deleted.

    ``find`` lists ours again: after a lost answer, and where a person deleted one meanwhile. ``is_ours`` judges a
    login. Raises Refused where the token writes as another account.
    """
    if not ours:
        made = github.send_once(lambda: github.create_comment(number, body), lambda: next(iter(find()), None))
        if not is_ours(made.author):  # no run would find it again
            github.delete_comment(made.id)
            raise other_identity(made.author)
        return made
    first, *spares = ours
    try:
        shown = first if first.body == body else github.change_comment(first.id, body)
    except NotThere:
        return show_comment(github, number, body, find(), find=find, is_ours=is_ours)
    for spare in spares:
        github.delete_comment(spare.id)
    return shown


def other_identity(login: str) -> Refused:
    """Return the error for a token that writes as another account than the given identity."""
    return Refused(
        f"The token writes as `{login}`, not as the given identity.",
        hint=f"Pass `--identity '{login}'`, or set the input `identity` of the action or workflow.",
    )
