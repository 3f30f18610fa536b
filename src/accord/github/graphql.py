"""Requests to GraphQL, for what REST does not tell: authors and changes of texts, and threads of reviews."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any, Literal

from accord.core.clock import parse_timestamp, timestamp
from accord.core.errors import Refused, Stopped
from accord.core.frozen import Frozen, json_field
from accord.core.refusals import known_refusal
from accord.github.comments import Comment
from accord.github.models import Forbidden, NotThere
from accord.github.rest import Rest
from accord.github.transport import WHY, Parsed

_PAGE = 100
_CHANGES = f"""
    createdAt author {{ __typename login }} lastEditedAt
    userContentEdits(first: {_PAGE}) {{ pageInfo {{ hasNextPage }} nodes {{ editedAt editor {{ __typename login }} }} }}
    timelineItems(first: {_PAGE}, since: $since, itemTypes: [RENAMED_TITLE_EVENT]) {{
      pageInfo {{ hasNextPage }} nodes {{ ... on RenamedTitleEvent {{ createdAt actor {{ __typename login }} }} }}
    }}"""
_ITEM = f"""
query Changes($owner: String!, $name: String!, $number: Int!, $since: DateTime!) {{
  repository(owner: $owner, name: $name) {{ issueOrPullRequest(number: $number) {{
    ... on Issue {{ {_CHANGES} }}
    ... on PullRequest {{ {_CHANGES} }}
  }} }}
}}"""

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


class TextChange(Frozen):
    """A change of the text of an issue or pull request, and who made it; an unknown one has no ``login``."""

    what: Literal["opened", "edited", "renamed"]
    at: datetime
    login: str


def _login_of(actor: Mapping[str, Any] | None) -> str:
    """Return a login as REST spells it, where a bot's ends with ``[bot]``; empty for an account that is gone."""
    if actor is None:
        return ""
    return str(actor["login"]).removesuffix("[bot]") + ("[bot]" if actor["__typename"] == "Bot" else "")


def _comment(node: dict[str, Any]) -> Comment:
    login = _login_of(node["author"])
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


class GraphQLMethods(Rest):
    """Requests to GraphQL."""

    def text_changes(self, number: int, since: datetime) -> tuple[TextChange, ...]:
        """List who wrote an issue or pull request, and who changed its text or title since then. POST /graphql.

        More changes than a page has are one of an unknown account. Raises NotThere without the issue.
        """
        owner, _, name = self._access.repository.partition("/")
        asked = {"owner": owner, "name": name, "number": number, "since": timestamp(since)}
        hint = 'Grant the job "issues: read" and "pull-requests: read".'
        item = self._ask(_ITEM, asked, lambda data: (data["repository"] or {}).get("issueOrPullRequest"), hint)
        if item is None:
            raise NotThere(f"#{number} does not exist.", hint="Check the number.")
        return tuple(change for change in _text_changes(item) if change.at >= since or change.what == "opened")

    def _ask(
        self,
        query: str,
        variables: Mapping[str, Any],
        parse: Callable[[dict[str, Any]], Parsed],
        forbidden_hint: str,
        *,
        writes: bool = False,
    ) -> Parsed:
        """Send a query, or a mutation, with the hint for a token that may not do it.

        POST /graphql. It answers 200 also where it refuses, and says so in the document.
        """
        body = {"query": query, "variables": dict(variables)}
        answer = self._transport.call("POST", graphql_path(self._access.api_url), body=body, only_reads=not writes)
        if errors := answer.read(lambda data: data.get("errors")):
            raise _refusal(errors, forbidden_hint)
        return answer.read(lambda data: parse(data["data"]))

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
        self.send_until_answered(lambda: self._ask(_RESOLVE, {"thread": thread_id}, dict, hint, writes=True))

    def reply(self, number: int, comment_id: int, body: str) -> Comment:
        """Reply to the first comment of a thread. POST …/pulls/{n}/comments/{id}/replies."""
        path = f"/pulls/{number}/comments/{comment_id}/replies"
        return self._call("POST", path, body={"body": body}, creates_content=True).read(Comment.from_json)

    def _whole(self, node: dict[str, Any]) -> ReviewThread:
        """Read a thread with the comments of further pages."""
        thread, more = ReviewThread.from_json(node), _next_page(node["comments"])
        while more:
            asked = {"thread": thread.id, "comments": more}
            page = self._ask(_MORE, asked, lambda data: _page(data["node"], "comments"), _READ_HINT)
            if page is None:  # deleted meanwhile
                return thread
            comments, more = page
            thread = replace(thread, comments=thread.comments + tuple(map(_comment, comments)))
        return thread


def _text_changes(item: Mapping[str, Any]) -> Iterator[TextChange]:
    opened = parse_timestamp(item["createdAt"])
    yield TextChange("opened", opened, _login_of(item["author"]))
    edited = parse_timestamp(item["lastEditedAt"]) if item["lastEditedAt"] else None
    edits, titles = item["userContentEdits"] or {"nodes": (), "pageInfo": {"hasNextPage": True}}, item["timelineItems"]
    for one in edits["nodes"]:
        at = parse_timestamp(one["editedAt"])
        if at > opened:  # the first version is listed, too
            yield TextChange("edited", at, _login_of(one["editor"]))
    if edited and edits["pageInfo"]["hasNextPage"]:
        yield TextChange("edited", edited, "")
    for one in titles["nodes"]:
        yield TextChange("renamed", parse_timestamp(one["createdAt"]), _login_of(one["actor"]))
    if titles["pageInfo"]["hasNextPage"]:
        yield TextChange("renamed", datetime.max.replace(tzinfo=opened.tzinfo), "")


def graphql_path(api_url: str) -> str:
    """Return where GraphQL is asked: beside the REST API, not below it, on Enterprise Server."""
    base = api_url.rstrip("/")
    return f"{base.removesuffix('/v3')}/graphql" if base.endswith("/api/v3") else "/graphql"


def _next_page(page: Mapping[str, Any]) -> str:
    """Return where the next page of a connection begins; empty after the last."""
    return str(page["pageInfo"]["endCursor"]) if page["pageInfo"]["hasNextPage"] else ""


def _refusal(errors: list[dict[str, Any]], forbidden_hint: str) -> Refused | Stopped:
    kinds = {str(error.get("type")) for error in errors}
    said = f'GitHub refused a GraphQL query: "{"; ".join(str(error.get("message")) for error in errors)[:500]}".'
    if "RATE_LIMITED" in kinds:
        return Stopped(said, hint="Run the same command again after the limit resets, within the hour.")
    if "NOT_FOUND" in kinds:
        return NotThere(said, hint="Check that it exists and that the token may see it.")
    is_forbidden, known = kinds & {"FORBIDDEN", "INSUFFICIENT_SCOPES"}, known_refusal(said)
    hint = known.hint_for("") if known else forbidden_hint if is_forbidden else WHY
    return (Forbidden if is_forbidden else Refused)(said, hint=hint)


def _threads(data: dict[str, Any]) -> tuple[list[dict[str, Any]], str] | None:
    return _page((data["repository"] or {}).get("pullRequest"), "reviewThreads")


def _page(node: dict[str, Any] | None, key: str) -> tuple[list[dict[str, Any]], str] | None:
    """Return the entries of a page, and where the next one begins; None where what has them is gone."""
    return None if node is None else (node[key]["nodes"], _next_page(node[key]))


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
