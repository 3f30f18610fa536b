"""Comments on issues and pull requests over REST."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from accord.github.rest import Rest
from accord.kernel.errors import Refused

if TYPE_CHECKING:
    from collections.abc import Iterator


@dataclass(frozen=True, slots=True)
class Comment:
    """A comment in the conversation of an issue or pull request."""

    id: int
    url: str
    body: str
    author: str
    is_bot: bool = False


class CommentPort(Protocol):
    """Comments of one repository. Every method may raise Refused or Stopped."""

    def comments(self, number: int) -> Iterator[Comment]:
        """List the comments of an issue or pull request, oldest first."""
        ...

    def create_comment(self, number: int, body: str) -> Comment:
        """Comment. Raises AnswerLost when it is unknown whether it was made."""
        ...

    def change_comment(self, comment_id: int, body: str) -> Comment:
        """Replace a comment's body; safe to repeat."""
        ...

    def delete_comment(self, comment_id: int) -> None:
        """Delete a comment; one that is gone counts as deleted."""
        ...


class CommentMethods(Rest):
    """Implements ``CommentPort``."""

    def comments(self, number: int) -> Iterator[Comment]:
        """GET …/issues/{n}/comments."""
        return self._listed(f"{self._root}/issues/{number}/comments", read_comment)

    def create_comment(self, number: int, body: str) -> Comment:
        """POST …/issues/{n}/comments."""
        path = f"{self._root}/issues/{number}/comments"
        return self._transport.call("POST", path, body={"body": body}, creates_content=True).read(read_comment)

    def change_comment(self, comment_id: int, body: str) -> Comment:
        """PATCH …/issues/comments/{id}."""
        path = f"{self._root}/issues/comments/{comment_id}"
        return self._transport.call("PATCH", path, body={"body": body}).read(read_comment)

    def delete_comment(self, comment_id: int) -> None:
        """DELETE …/issues/comments/{id}."""
        self._delete(f"{self._root}/issues/comments/{comment_id}")


def refuse_lost(github: CommentPort, made: Comment, *, is_ours: bool) -> None:
    """Take back a comment that was just made where its author is not us. Raises Refused then.

    Nobody would find it again by its marker, so each run would make another.
    """
    if is_ours:
        return
    github.delete_comment(made.id)
    raise Refused(
        f"The token writes as {made.author}, which is not who it is said to be.",
        mend=f"Pass --identity '{made.author}', or the input identity of the action or workflow.",
    )


def read_comment(data: dict[str, Any]) -> Comment:
    """Read the JSON of a comment (schemas "issue-comment" and "pull-request-review-comment")."""
    user = data.get("user") or {}
    is_bot = user.get("type") == "Bot"
    return Comment(data["id"], data["html_url"], data.get("body") or "", user.get("login", ""), is_bot)
