"""The base of what only GraphQL tells: queries, their refusals and pages, and who wrote and changed a text."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from datetime import datetime
from typing import Any, Literal

from accord.core.clock import parse_timestamp, timestamp
from accord.core.errors import Refused, Stopped
from accord.core.frozen import Frozen
from accord.core.refusals import known_refusal
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


class TextChange(Frozen):
    """A change of the text of an issue or pull request, and who made it; an unknown one has no ``login``."""

    what: Literal["opened", "edited", "renamed"]
    at: datetime
    login: str


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


def _text_changes(item: Mapping[str, Any]) -> Iterator[TextChange]:
    opened = parse_timestamp(item["createdAt"])
    yield TextChange("opened", opened, login_of(item["author"]))
    edited = parse_timestamp(item["lastEditedAt"]) if item["lastEditedAt"] else None
    edits, titles = item["userContentEdits"] or {"nodes": (), "pageInfo": {"hasNextPage": True}}, item["timelineItems"]
    for one in edits["nodes"]:
        at = parse_timestamp(one["editedAt"])
        if at > opened:  # the first version is listed, too
            yield TextChange("edited", at, login_of(one["editor"]))
    if edited and edits["pageInfo"]["hasNextPage"]:
        yield TextChange("edited", edited, "")
    for one in titles["nodes"]:
        yield TextChange("renamed", parse_timestamp(one["createdAt"]), login_of(one["actor"]))
    if titles["pageInfo"]["hasNextPage"]:
        yield TextChange("renamed", datetime.max.replace(tzinfo=opened.tzinfo), "")


def login_of(actor: Mapping[str, Any] | None) -> str:
    """Return a login as REST spells it, where a bot's ends with ``[bot]``; empty for an account that is gone."""
    if actor is None:
        return ""
    return str(actor["login"]).removesuffix("[bot]") + ("[bot]" if actor["__typename"] == "Bot" else "")


def graphql_path(api_url: str) -> str:
    """Return where GraphQL is asked: beside the REST API, not below it, on Enterprise Server."""
    base = api_url.rstrip("/")
    return f"{base.removesuffix('/v3')}/graphql" if base.endswith("/api/v3") else "/graphql"


def next_page(page: Mapping[str, Any]) -> str:
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
