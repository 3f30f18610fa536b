"""Threads of reviews: over GraphQL, as the REST API neither tells whether a thread is resolved nor resolves one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from accord.core.frozen import Frozen, json_field
from accord.github.comments import Comment
from accord.github.graphql import GraphQLMethods, login_of, next_page
from accord.github.models import NotThere
from accord.github.once import send_until_answered

_COMMENTS = """
fragment Comments on PullRequestReviewThread {
  comments(first: 100, after: $comments) {
    pageInfo { hasNextPage endCursor }
    nodes {
      fullDatabaseId body url isMinimized author { __typename login }
      originalCommit { oid } pullRequestReview { fullDatabaseId }
    }
  }
}"""
_THREADS = f"""
query Threads($owner: String!, $name: String!, $number: Int!, $threads: String, $comments: String) {{
  repository(owner: $owner, name: $name) {{ pullRequest(number: $number) {{
    reviewThreads(first: 100, after: $threads) {{
    pageInfo {{ hasNextPage endCursor }}
    nodes {{
      id path line originalLine isResolved isOutdated viewerCanResolve resolvedBy {{ login }} ...Comments
    }}
  }} }} }}
}}{_COMMENTS}"""
_MORE = f"query Comments($thread: ID!, $comments: String) {{ node(id: $thread) {{ ...Comments }} }}{_COMMENTS}"


_RESOLVE = """
mutation Resolve($thread: ID!) { resolveReviewThread(input: {threadId: $thread}) { thread { isResolved } } }"""


_READ_HINT = 'Grant the job "pull-requests: read" (a personal token needs the scope repo).'


def _comment(node: dict[str, Any]) -> Comment:
    login = login_of(node["author"])
    review = node["pullRequestReview"] or {}
    return Comment(
        int(node["fullDatabaseId"]),
        node["url"],
        node["body"],
        login,
        login.endswith("[bot]"),
        int(review["fullDatabaseId"]) if review else None,
        node["isMinimized"],
    )


def _first_commit(comments: list[dict[str, Any]]) -> str:
    return str((comments[0].get("originalCommit") or {}).get("oid", "")) if comments else ""


class ReviewThread(Frozen):
    """A thread of a pull request's review, as GraphQL shows it."""

    id: str = json_field()  # empty where only REST answered, which does not tell who resolved what
    path: str = json_field()
    line: int | None = json_field()  # at the head; None where it is gone, and on a whole file
    is_resolved: bool = json_field("isResolved")
    is_outdated: bool = json_field("isOutdated")
    comments: tuple[Comment, ...] = json_field("comments.nodes", lambda nodes: tuple(map(_comment, nodes)))  # in order
    original_line: int | None = json_field("originalLine", default=None)  # in the commit below
    original_commit: str = json_field("comments.nodes", _first_commit, default="")  # on which the thread began
    resolved_by: str = json_field("resolvedBy.login", default="")  # empty for a bot
    can_resolve: bool = json_field("viewerCanResolve", default=False)


class ThreadMethods(GraphQLMethods):
    """Requests about review threads."""

    def review_threads(self, number: int) -> tuple[ReviewThread, ...]:
        """List all threads of a pull request with all their comments, oldest first. POST /graphql, which only reads."""
        owner, _, name = self._access.repository.partition("/")
        asked: dict[str, Any] = {"owner": owner, "name": name, "number": number, "threads": None, "comments": None}
        found: list[ReviewThread] = []
        while True:
            page = self._ask(_THREADS, asked, _threads, _READ_HINT)
            if page is None:
                raise NotThere(f"Pull request #{number} does not exist.", hint="Check the number.")
            threads, asked["threads"] = page
            found += map(self._whole, threads)
            if not asked["threads"]:
                return tuple(found)

    def threads_without_state(self, number: int) -> tuple[ReviewThread, ...]:
        """List all threads where the server's GraphQL lacks them, as if none were resolved, oldest first."""
        found: dict[int, list[dict[str, Any]]] = {}
        for data in self._list_items(f"/pulls/{number}/comments", dict):
            found.setdefault(data.get("in_reply_to_id") or data["id"], []).append(data)
        return tuple(map(_thread_without_state, found.values()))

    def resolve_thread(self, thread_id: str) -> None:
        """Resolve a thread; sent again when its answer is lost. Raises Forbidden where the token may not."""
        # an app's token needs "contents: write", too (reported in github/gh-aw issue 35726)
        hint = 'Grant the job "contents: write" and "pull-requests: write".'
        send_until_answered(lambda: self._ask(_RESOLVE, {"thread": thread_id}, dict, hint, writes=True), self._clock)

    def reply(self, number: int, comment_id: int, body: str) -> Comment:
        """Reply to the first comment of a thread. POST …/pulls/{n}/comments/{id}/replies."""
        path = f"/pulls/{number}/comments/{comment_id}/replies"
        return self._call("POST", path, body={"body": body}, creates_content=True).read(Comment.from_json)

    def _whole(self, node: dict[str, Any]) -> ReviewThread:
        """Read a thread with the comments of further pages."""
        thread, more = ReviewThread.from_json(node), next_page(node["comments"])
        while more:
            asked = {"thread": thread.id, "comments": more}
            page = self._ask(_MORE, asked, lambda data: _page(data["node"], "comments"), _READ_HINT)
            if page is None:  # deleted meanwhile
                return thread
            comments, more = page
            thread = replace(thread, comments=thread.comments + tuple(map(_comment, comments)))
        return thread


def _threads(data: dict[str, Any]) -> tuple[list[dict[str, Any]], str] | None:
    return _page((data["repository"] or {}).get("pullRequest"), "reviewThreads")


def _page(node: dict[str, Any] | None, key: str) -> tuple[list[dict[str, Any]], str] | None:
    """Return the entries of a page, and where the next one begins; None where what has them is gone."""
    return None if node is None else (node[key]["nodes"], next_page(node[key]))


def _thread_without_state(comments: Sequence[dict[str, Any]]) -> ReviewThread:
    first = comments[0]
    return ReviewThread(
        "",
        first["path"],
        first.get("line"),
        is_resolved=False,
        is_outdated=first.get("subject_type") != "file" and first.get("line") is None,
        comments=tuple(map(Comment.from_json, comments)),
        original_line=first.get("original_line"),
        original_commit=first.get("original_commit_id") or "",
    )
