"""Review threads over GraphQL, the only way to know which are resolved; replies to them over REST."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Protocol

from accord.github.comments import Comment, read_comment
from accord.github.port import Forbidden, NotThere
from accord.github.rest import Rest
from accord.kernel.errors import Refused, Stopped

if TYPE_CHECKING:
    from collections.abc import Mapping

_COMMENTS = """
comments(first: 100, after: $comments) {
  pageInfo { hasNextPage endCursor }
  nodes { fullDatabaseId body url author { __typename login } }
}"""

_THREADS = (
    """
query Threads($owner: String!, $name: String!, $number: Int!, $threads: String, $comments: String) {
  repository(owner: $owner, name: $name) {
    pullRequest(number: $number) {
      reviewThreads(first: 50, after: $threads) {
        pageInfo { hasNextPage endCursor }
        nodes { id path line isResolved isOutdated """
    + _COMMENTS
    + """ }
      }
    }
  }
}"""
)

_MORE = (
    """
query Comments($thread: ID!, $comments: String) {
  node(id: $thread) { ... on PullRequestReviewThread { """
    + _COMMENTS
    + """ } }
}"""
)


@dataclass(frozen=True, slots=True)
class ThreadWord:
    """One comment of a thread. ``author`` is spelled as over REST: a bot's login ends with ``[bot]``."""

    id: int
    url: str
    author: str
    is_bot: bool
    body: str


@dataclass(frozen=True, slots=True)
class ReviewThread:
    """A thread of a pull request's review, oldest comment first. ``line`` is None where the line is gone."""

    id: str
    path: str
    line: int | None
    is_resolved: bool
    is_outdated: bool
    comments: tuple[ThreadWord, ...]


class ThreadPort(Protocol):
    """Review threads of one repository. Every method may raise Refused or Stopped."""

    def review_threads(self, number: int) -> tuple[ReviewThread, ...]:
        """List all threads of a pull request with all their comments, oldest first."""
        ...

    def reply(self, number: int, comment_id: int, body: str) -> Comment:
        """Reply to the first comment of a thread. Raises AnswerLost when it is unknown whether it was posted."""
        ...


class ThreadMethods(Rest):
    """Implements ``ThreadPort``."""

    def review_threads(self, number: int) -> tuple[ReviewThread, ...]:
        """POST /graphql: a request for every 50 threads, and one for every 100 comments more in one of them."""
        owner, _, name = self._access.repository.partition("/")
        asked: dict[str, Any] = {"owner": owner, "name": name, "number": number, "threads": None, "comments": None}
        found: list[ReviewThread] = []
        while True:
            data = self._ask(_THREADS, asked)
            pull = (data.get("repository") or {}).get("pullRequest")
            if pull is None:
                raise NotThere(f"There is no pull request #{number}.", mend="Name one that is there.")
            page = pull["reviewThreads"]
            found += [self._whole(_thread(node), node["comments"]["pageInfo"]) for node in page["nodes"]]
            if not page["pageInfo"]["hasNextPage"]:
                return tuple(found)
            asked["threads"] = page["pageInfo"]["endCursor"]

    def reply(self, number: int, comment_id: int, body: str) -> Comment:
        """POST …/pulls/{n}/comments/{id}/replies."""
        path = f"{self._root}/pulls/{number}/comments/{comment_id}/replies"
        return self._transport.call("POST", path, body={"body": body}, creates_content=True).read(read_comment)

    def _whole(self, thread: ReviewThread, page: Mapping[str, Any]) -> ReviewThread:
        """Add the comments of further pages."""
        while page["hasNextPage"]:
            node = self._ask(_MORE, {"thread": thread.id, "comments": page["endCursor"]}).get("node")
            if node is None:  # deleted meanwhile
                return thread
            words = tuple(_word(entry) for entry in node["comments"]["nodes"])
            thread, page = replace(thread, comments=thread.comments + words), node["comments"]["pageInfo"]
        return thread

    def _ask(self, query: str, variables: Mapping[str, Any]) -> dict[str, Any]:
        """Send a query; GraphQL answers 200 also where it refuses, and says so in the document."""
        body = {"query": query, "variables": dict(variables)}
        answer = self._transport.call("POST", graphql_path(self._access.api_url), body=body, only_reads=True)
        if errors := answer.read(lambda data: data.get("errors")):
            raise _refusal(errors)
        data: dict[str, Any] = answer.read(lambda data: data["data"])
        return data


def graphql_path(api_url: str) -> str:
    """Return where GraphQL is asked: beside the REST API, not below it, on Enterprise Server."""
    base = api_url.rstrip("/")
    return f"{base.removesuffix('/v3')}/graphql" if base.endswith("/api/v3") else "/graphql"


def _refusal(errors: list[dict[str, Any]]) -> Refused | Stopped:
    kinds = {str(error.get("type")) for error in errors}
    said = f'GitHub refused a GraphQL query: "{"; ".join(str(error.get("message")) for error in errors)[:500]}".'
    if "RATE_LIMITED" in kinds:
        return Stopped(said, mend="Run the same command again within the hour, when the limit begins anew.")
    if "NOT_FOUND" in kinds:
        return NotThere(said, mend="Check that the repository exists and that the token may see it.")
    if kinds & {"FORBIDDEN", "INSUFFICIENT_SCOPES"}:
        return Forbidden(said, mend='Grant the job "pull-requests: read" (a personal token needs the scope repo).')
    return Refused(said, mend="GitHub's sentence says why; running the same again will not help.")


def _thread(node: dict[str, Any]) -> ReviewThread:
    return ReviewThread(
        id=node["id"],
        path=node["path"],
        line=node["line"],
        is_resolved=node["isResolved"],
        is_outdated=node["isOutdated"],
        comments=tuple(_word(entry) for entry in node["comments"]["nodes"]),
    )


def _word(node: dict[str, Any]) -> ThreadWord:
    author = node["author"] or {"__typename": "User", "login": ""}
    is_bot = author["__typename"] == "Bot"
    login = author["login"].removesuffix("[bot]") + ("[bot]" if is_bot else "")
    return ThreadWord(int(node["fullDatabaseId"]), node["url"], login, is_bot, node["body"])
