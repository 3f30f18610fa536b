"""Comments on issues and pull requests over REST."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from accord.core.errors import Refused, Stopped
from accord.github.models import Forbidden, NotThere
from accord.github.once import send_until_answered
from accord.github.rest import Parsed, Rest


@dataclass(frozen=True, slots=True)
class Comment:
    """A comment in the conversation of an issue or pull request."""

    id: int
    url: str
    body: str
    author: str
    is_bot: bool = False


class CommentMethods(Rest):
    """Requests about comments of issues and pull requests."""

    def comments(self, number: int) -> Iterator[Comment]:
        """List the comments of an issue or pull request, oldest first. GET …/issues/{n}/comments, all pages."""
        return self._listed(f"{self._root}/issues/{number}/comments", read_comment)

    def create_comment(self, number: int, body: str) -> Comment:
        """Create a comment. POST …/issues/{n}/comments. Raises AnswerLost when it is unknown whether it was created."""
        path = f"{self._root}/issues/{number}/comments"
        return self._transport.call("POST", path, body={"body": body}, creates_content=True).read(read_comment)

    def change_comment(self, comment_id: int, body: str) -> Comment:
        """Replace the body of a comment; safe to repeat. PATCH …/issues/comments/{id}."""
        path = f"{self._root}/issues/comments/{comment_id}"
        return self._transport.call("PATCH", path, body={"body": body}).read(read_comment)

    def react(self, comment_id: int, reaction: str) -> None:
        """React to a comment as our account, which GitHub counts once; safe to repeat.

        POST …/issues/comments/{id}/reactions, sent again when its answer is lost.
        """
        path = f"{self._root}/issues/comments/{comment_id}/reactions"
        send_until_answered(lambda: self._transport.call("POST", path, body={"content": reaction}), self._clock)

    def delete_comment(self, comment_id: int) -> None:
        """Delete a comment; safe to repeat. DELETE …/issues/comments/{id}; a 404 counts as deleted."""
        self._delete(f"{self._root}/issues/comments/{comment_id}")


def refuse_lost(github: CommentMethods, made: Comment, *, is_ours: bool) -> None:
    """Take back a comment that was just made where its author is not us. Raises Refused then.

    No run would find it again by its marker, so each would make another.
    """
    if is_ours:
        return
    github.delete_comment(made.id)
    raise Refused(
        f"The token writes as `{made.author}`, not as the given identity.",
        hint=f"Pass `--identity '{made.author}'`, or set the input `identity` of the action or workflow.",
    )


def read_comment(data: dict[str, Any]) -> Comment:
    """Read the JSON of a comment (schemas "issue-comment" and "pull-request-review-comment")."""
    user = data.get("user") or {}
    is_bot = user.get("type") == "Bot"
    return Comment(data["id"], data["html_url"], data.get("body") or "", user.get("login", ""), is_bot)


_COMMENTS = """
fragment Comments on PullRequestReviewThread {
  comments(first: 100, after: $comments) {
    pageInfo { hasNextPage endCursor }
    nodes { fullDatabaseId body url author { __typename login } }
  }
}"""
_THREADS = f"""
query Threads($owner: String!, $name: String!, $number: Int!, $threads: String, $comments: String) {{
  repository(owner: $owner, name: $name) {{ pullRequest(number: $number) {{ reviewThreads(first: 50, after: $threads) {{
    pageInfo {{ hasNextPage endCursor }}
    nodes {{ id path line isResolved isOutdated ...Comments }}
  }} }} }}
}}{_COMMENTS}"""
_MORE = f"query Comments($thread: ID!, $comments: String) {{ node(id: $thread) {{ ...Comments }} }}{_COMMENTS}"


@dataclass(frozen=True, slots=True)
class ReviewThread:
    """A thread of a pull request's review, oldest comment first. ``line`` is None where the line is gone."""

    id: str
    path: str
    line: int | None
    is_resolved: bool
    is_outdated: bool
    comments: tuple[Comment, ...]


@dataclass(frozen=True, slots=True)
class _ThreadData:
    """A thread as one page shows it; ``more`` says where its further comments begin, empty when it has no more."""

    thread: ReviewThread
    more: str


class ThreadMethods(Rest):
    """Requests about review threads."""

    def review_threads(self, number: int) -> tuple[ReviewThread, ...]:
        """List all threads of a pull request with all their comments, oldest first.

        POST /graphql, which only reads: one request for every 50 threads, and one for every 100 more comments of a
        thread.
        """
        owner, _, name = self._access.repository.partition("/")
        asked: dict[str, Any] = {"owner": owner, "name": name, "number": number, "threads": None, "comments": None}
        found: list[ReviewThread] = []
        while True:
            page = self._ask(_THREADS, asked, _threads)
            if page is None:
                raise NotThere(f"Pull request #{number} does not exist.", hint="Check the number.")
            threads, asked["threads"] = page
            found += map(self._whole, threads)
            if not asked["threads"]:
                return tuple(found)

    def reply(self, number: int, comment_id: int, body: str) -> Comment:
        """Reply to the first comment of a thread.

        POST …/pulls/{n}/comments/{id}/replies. Raises AnswerLost when it is unknown whether it was posted.
        """
        path = f"{self._root}/pulls/{number}/comments/{comment_id}/replies"
        return self._transport.call("POST", path, body={"body": body}, creates_content=True).read(read_comment)

    def _whole(self, begun: _ThreadData) -> ReviewThread:
        """Add the comments of further pages."""
        thread, more = begun.thread, begun.more
        while more:
            page = self._ask(_MORE, {"thread": thread.id, "comments": more}, _more_comments)
            if page is None:  # deleted meanwhile
                return thread
            comments, more = page
            thread = replace(thread, comments=thread.comments + comments)
        return thread

    def _ask(self, query: str, variables: Mapping[str, Any], parse: Callable[[dict[str, Any]], Parsed]) -> Parsed:
        """Send a query; GraphQL answers 200 also where it refuses, and says so in the document."""
        body = {"query": query, "variables": dict(variables)}
        answer = self._transport.call("POST", graphql_path(self._access.api_url), body=body, only_reads=True)
        if errors := answer.read(lambda data: data.get("errors")):
            raise _refusal(errors)
        return answer.read(lambda data: parse(data["data"]))


def graphql_path(api_url: str) -> str:
    """Return where GraphQL is asked: beside the REST API, not below it, on Enterprise Server."""
    base = api_url.rstrip("/")
    return f"{base.removesuffix('/v3')}/graphql" if base.endswith("/api/v3") else "/graphql"


def _refusal(errors: list[dict[str, Any]]) -> Refused | Stopped:
    kinds = {str(error.get("type")) for error in errors}
    said = f'GitHub refused a GraphQL query: "{"; ".join(str(error.get("message")) for error in errors)[:500]}".'
    if "RATE_LIMITED" in kinds:
        return Stopped(said, hint="Run the same command again after the limit resets, within the hour.")
    if "NOT_FOUND" in kinds:
        return NotThere(said, hint="Check that the repository exists and that the token may see it.")
    if kinds & {"FORBIDDEN", "INSUFFICIENT_SCOPES"}:
        return Forbidden(said, hint='Grant the job "pull-requests: read" (a personal token needs the scope repo).')
    return Refused(said, hint="GitHub's sentence says why; running the same again will not help.")


def _threads(data: dict[str, Any]) -> tuple[list[_ThreadData], str] | None:
    """Read a page of threads, and where the next one begins; None where the pull request does not exist."""
    pull = (data.get("repository") or {}).get("pullRequest")
    if pull is None:
        return None
    page = pull["reviewThreads"]
    return [_thread(node) for node in page["nodes"]], _next(page)


def _thread(node: dict[str, Any]) -> _ThreadData:
    flags = {"is_resolved": node["isResolved"], "is_outdated": node["isOutdated"]}
    comments = _comments(node["comments"])
    thread = ReviewThread(node["id"], node["path"], node["line"], **flags, comments=comments)
    return _ThreadData(thread, _next(node["comments"]))


def _more_comments(data: dict[str, Any]) -> tuple[tuple[Comment, ...], str] | None:
    """Read a further page of a thread's comments, and where the next one begins; None where the thread is gone."""
    node = data.get("node")
    return None if node is None else (_comments(node["comments"]), _next(node["comments"]))


def _comments(page: dict[str, Any]) -> tuple[Comment, ...]:
    return tuple(_comment(node) for node in page["nodes"])


def _next(page: dict[str, Any]) -> str:
    """Say where the next page begins; empty after the last."""
    return str(page["pageInfo"]["endCursor"]) if page["pageInfo"]["hasNextPage"] else ""


def _comment(node: dict[str, Any]) -> Comment:
    """Read a comment; its author is spelled as over REST, where a bot's login ends with ``[bot]``."""
    author = node["author"] or {"__typename": "User", "login": ""}
    is_bot = author["__typename"] == "Bot"
    login = author["login"].removesuffix("[bot]") + ("[bot]" if is_bot else "")
    return Comment(int(node["fullDatabaseId"]), node["url"], node["body"], login, is_bot)
