"""GraphQL: review threads, which the REST API does not know. Queries are read and answered field by field.

Docs: https://docs.github.com/graphql. A refusal is a 200 with ``errors``, as on GitHub.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from accord_sandbox.graphql_language import Malformed, Query, Selection, Variable, read_query
from accord_sandbox.graphql_types import TYPES, Node, Untold
from accord_sandbox.responses import ApiResponse, Refusal

if TYPE_CHECKING:
    from collections.abc import Mapping

    from accord_sandbox.calls import Call

DOCS = "https://docs.github.com/graphql"


def answer(call: Call) -> ApiResponse:
    """POST /graphql."""
    if call.actor is None:
        raise Refusal(401, "This endpoint requires you to be authenticated.", docs=f"{DOCS}/guides/forming-calls")
    call.fields.require("query")
    try:
        query = read_query(call.fields.string("query") or "")
    except Malformed as malformed:
        return ApiResponse(200, {"errors": [{"message": str(malformed)}]})
    given = call.document.get("variables") or {}
    execution = _Execution(call, given if isinstance(given, dict) else {})
    if wrong := [*execution.missing(query), *_unknown(query)]:
        return ApiResponse(200, {"errors": wrong})
    data = execution.object(Node("Query", None), query.fields, ())
    return ApiResponse(200, {"data": data, "errors": execution.errors} if execution.errors else {"data": data})


def _unknown(query: Query) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    _check("Query", query.fields, (f"query {query.name}".strip(),), found)
    return found


def _check(kind: str, fields: tuple[Selection, ...], path: tuple[str, ...], found: list[dict[str, Any]]) -> None:
    """Find fields and arguments that a type has not, and objects that are asked for as if they were values."""
    for asked in fields:
        here = (*path, asked.alias)
        owner = asked.on or kind
        known = TYPES.get(owner, {}).get(asked.name)
        if asked.name == "__typename":
            continue
        if known is None:
            found.append(_error(f"Field '{asked.name}' doesn't exist on type '{owner}'", here))
            continue
        extra = sorted(asked.arguments.keys() - set(known.arguments))
        found += [_error(f"Field '{asked.name}' doesn't accept argument '{name}'", here) for name in extra]
        if bool(known.type) != bool(asked.fields):
            what = "must have" if known.type else "can't have"
            found.append(_error(f"Field '{asked.name}' {what} selections (field '{asked.name}' returns ...)", here))
        elif known.type:
            _check(known.type, asked.fields, here, found)


class _Execution:
    """One query being answered; what goes wrong in a field leaves that field null."""

    def __init__(self, call: Call, variables: Mapping[str, Any]) -> None:
        self.errors: list[dict[str, Any]] = []
        self._call = call
        self._variables = variables

    def missing(self, query: Query) -> list[dict[str, Any]]:
        wanted = [name for name, required in query.variables.items() if required]
        absent = [name for name in wanted if self._variables.get(name) is None]
        text = "Variable ${} was provided invalid value"
        return [{"message": text.format(name), "extensions": {"value": None}} for name in absent]

    def object(self, node: Node, fields: tuple[Selection, ...], path: tuple[str | int, ...]) -> dict[str, Any]:
        shown: dict[str, Any] = {}
        for asked in fields:
            if asked.on and asked.on != node.type:
                continue
            if asked.name == "__typename":
                shown[asked.alias] = node.type
            else:
                shown[asked.alias] = self._field(node, asked, (*path, asked.alias))
        return shown

    def _field(self, node: Node, asked: Selection, path: tuple[str | int, ...]) -> Any:
        given = {name: self._given(value) for name, value in asked.arguments.items()}
        try:
            value = TYPES[asked.on or node.type][asked.name].resolve(self._call, node.value, given)
        except Untold as untold:
            self.errors.append(_error(str(untold), path) | {"type": untold.kind})
            return None
        if isinstance(value, list):
            return [self.object(entry, asked.fields, (*path, index)) for index, entry in enumerate(value)]
        return self.object(value, asked.fields, path) if isinstance(value, Node) else value

    def _given(self, value: Any) -> Any:
        return self._variables.get(value.name) if isinstance(value, Variable) else value


def _error(message: str, path: tuple[str | int, ...]) -> dict[str, Any]:
    return {"message": message, "path": list(path)}
