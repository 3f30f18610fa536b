"""GraphQL: how a query or mutation is sent, and how its refusals are read."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from accord.core.errors import Refused, Stopped
from accord.github.models import Forbidden, NotThere
from accord.github.rest import Parsed, Rest


class GraphQL(Rest):
    """One repository, also over GraphQL."""

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
    if kinds & {"FORBIDDEN", "INSUFFICIENT_SCOPES"}:
        return Forbidden(said, hint=forbidden_hint)
    return Refused(said, hint="GitHub's sentence says why; running the same again will not help.")
