"""GitHub's own OpenAPI description as a judge over every exchange with the sandbox.

Use it as an observer::

    with conforming(sandbox):
        ...  # any exchange outside the description fails the test at the end of the block
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

import jsonschema_rs

from accord_sandbox import git_http
from accord_sandbox.faults import Exchange
from accord_sandbox.server import RunningSandbox

_NAME = "urn:github"
"""The name by which references call the description."""

DESCRIPTION = Path(__file__).parent.parent / "data" / "github-openapi.json"
WITH_SLASHES = {"name", "path", "ref", "branch", "basehead"}
UNDESCRIBED_ERRORS = {400, 401, 403, 404, 410, 422, 429, 500, 502, 503}
"""Status codes that GitHub may answer anywhere, described or not."""
NULL_ALL_THE_SAME = {
    "pull-request-review-comment": ("line", "position", "original_line", "original_position"),
    "review-comment": ("line", "original_line", "original_position"),
    "pull-request-simple/properties/labels/items": ("description",),
}
"""Where GitHub answers null although its description does not say so: outdated comments, comments on a file, labels."""

OWN_CONCLUSIONS = ("stale", "startup_failure")
"""Conclusions that GitHub itself gives and shows, although its description of an answer lacks them."""


def _json(schema: dict[str, Any]) -> dict[str, Any]:
    return {"content": {"application/json": {"schema": schema}}}


def _schema(name: str) -> dict[str, Any]:
    return {"$ref": f"#/components/schemas/{name}"}


def _object(required: str = "", **properties: Any) -> dict[str, Any]:
    return {"type": "object", "required": required.split(), "properties": properties}


def _describe(
    name: str,
    answers: Mapping[str, dict[str, Any]],
    body: dict[str, Any] | None = None,
    parameters: Sequence[dict[str, Any]] = (),
) -> dict[str, Any]:
    """Describe an operation: its id, its answers by status, and its body and parameters if it has any."""
    described = {status: {"description": "", **(answer and _json(answer))} for status, answer in answers.items()}
    request = {"requestBody": {"required": bool(body["required"]), **_json(body)}} if body else {}
    return {"operationId": name, "parameters": list(parameters), "responses": described, **request}


_IN_REPOSITORY = [{"$ref": f"#/components/parameters/{name}"} for name in ("owner", "repo")]
_PAGE = [{"$ref": f"#/components/parameters/{name}"} for name in ("per-page", "page")]
_TEXT = {"type": "string"}
_STATE = {"in": "query", "name": "state", "schema": _TEXT}
_QUERY = {"in": "query", "name": "q", "required": True, "schema": _TEXT}
_ORG = {"in": "path", "name": "org", "required": True, "schema": _TEXT}
_EMPTY, _MILESTONE = _schema("empty-object"), _schema("nullable-milestone")
_LISTED = {"type": "array", "items": _schema("minimal-repository")}
_FOUND = {"total_count": {"type": "integer"}, "incomplete_results": {"type": "boolean"}, "items": _LISTED}
_RERUN = _object(enable_debug_logging={"type": ["boolean", "null"]})
_ERRORS = {"type": "array", "items": _object("message")}
_ANSWER = {**_object(errors=_ERRORS), "anyOf": [{"required": ["data"]}, {"required": ["errors"]}]}
_REACTION = _object(
    "id node_id user content created_at",
    id={"type": "integer"},
    user=_schema("nullable-simple-user"),
    content={"enum": ["+1", "-1", "laugh", "confused", "heart", "hooray", "rocket", "eyes"]},
    created_at={"type": "string", "format": "date-time"},
)
_REACTIONS = (
    "reactions/create-for-issue-comment",
    {"200": _REACTION, "201": _REACTION},
    _object("content", content=_TEXT),
)
_CANCEL = ("actions/cancel-workflow-run", {"202": _EMPTY, "409": _schema("basic-error")})
_MILESTONES = ("issues/list-milestones", {"200": {"type": "array", "items": _MILESTONE}})
_MOVED: dict[str, Any] = {"302": {}}
_OF_REPOSITORIES: dict[tuple[str, str], Any] = {
    ("get", "actions/artifacts/{artifact_id}/{archive_format}"): ("actions/download-artifact", _MOVED),
    ("get", "actions/jobs/{job_id}/logs"): ("actions/download-job-logs-for-workflow-run", _MOVED),
    ("post", "actions/runs/{run_id}/rerun"): ("actions/re-run-workflow", {"201": _EMPTY}, _RERUN),
    ("post", "actions/runs/{run_id}/cancel"): _CANCEL,
    ("post", "issues/comments/{comment_id}/reactions"): _REACTIONS,
    ("get", "milestones"): (*_MILESTONES, None, [*_PAGE, _STATE]),
    ("post", "milestones"): ("issues/create-milestone", {"201": _MILESTONE}, _object("title", title=_TEXT)),
}
_GRAPHQL = _object("query", query=_TEXT, variables={"type": ["object", "null"]})
ADDED: dict[str, Any] = {
    "/graphql": {"post": _describe("graphql", {"200": _ANSWER}, _GRAPHQL)},
    "/orgs/{org}/repos": {"get": _describe("repos/list-for-org", {"200": _LISTED}, None, [_ORG, *_PAGE])},
    "/search/repositories": {
        "get": _describe("search/repos", {"200": _object(" ".join(_FOUND), **_FOUND)}, None, [_QUERY, *_PAGE])
    },
}
"""Operations that the extract lacks, by GitHub's documentation."""

for (_method, _place), (_id, _answers, *_more) in _OF_REPOSITORIES.items():
    _body, _parameters = (*_more, None, None)[:2]
    _described_so = _describe(_id, _answers, _body, [*_IN_REPOSITORY, *(_parameters or ())])
    ADDED.setdefault(f"/repos/{{owner}}/{{repo}}/{_place}", {})[_method] = _described_so

_BASIC_ERROR = {"$ref": f"{_NAME}#/components/schemas/basic-error"}


class Conformance:
    """An observer that collects where an exchange differs from the description."""

    def __init__(self) -> None:
        self.failures: list[str] = []

    def __call__(self, exchange: Exchange) -> None:
        is_beside = exchange.path.startswith("/_storage/") or git_http.PATTERN.fullmatch(exchange.path)
        if exchange.phase == "applied" and exchange.status is not None and not is_beside:
            found = violations(exchange)
            self.failures += [f"{exchange.method} {exchange.path} ({exchange.status}): {text}" for text in found]


@contextmanager
def conforming(sandbox: RunningSandbox) -> Iterator[Conformance]:
    """Judge every exchange inside the block, and fail at its end when one was wrong."""
    judge = Conformance()
    sandbox.observers.append(judge)
    try:
        yield judge
    finally:
        sandbox.observers.remove(judge)
    assert not judge.failures, "\n".join(judge.failures)


def violations(exchange: Exchange) -> list[str]:
    """Return what is wrong with one exchange; what was refused as a bad request is not judged for being one."""
    assert exchange.status is not None
    operation = _operation(exchange.method, exchange.path)
    if operation is None:
        return [] if exchange.status == 404 else ["the description has no such operation"]
    found = _answer(operation, exchange)
    if exchange.status < 400:
        found += _query(operation, exchange) + _body(operation, exchange)
    return found


def _answer(operation: tuple[str, str], exchange: Exchange) -> list[str]:
    responses = _described(operation)["responses"]
    status = str(exchange.status)
    if status not in responses and exchange.status not in UNDESCRIBED_ERRORS:
        return [f"status {status} is not among {', '.join(responses)}"]
    if not _is_json(exchange):
        return []
    if _answer_schema(operation, status) is None:
        return [] if exchange.response_json is None or status == "304" else ["a body where none is described"]
    return _problems(_answer_validator(operation, status), exchange.response_json)


def _is_json(exchange: Exchange) -> bool:
    """Tell whether the answer is one that the description is about; a diff or a raw file is not."""
    kind = (exchange.response_headers or {}).get("content-type", "")
    return kind.startswith("application/json") or exchange.response_json is not None or not kind


def _answer_schema(operation: tuple[str, str], status: str) -> Any:
    """Return the schema of an answer, None where the answer has no body."""
    response = _described(operation)["responses"].get(status)
    if response is None:
        return _BASIC_ERROR
    if "$ref" in response:
        response = _document()["components"]["responses"][response["$ref"].rpartition("/")[2]]
    if "content" not in response and int(status) >= 400:  # it does answer with a reason, described or not
        return _BASIC_ERROR
    return response["content"]["application/json"]["schema"] if "content" in response else None


def _query(operation: tuple[str, str], exchange: Exchange) -> list[str]:
    described = {entry["name"]: entry for entry in _parameters(operation) if entry["in"] == "query"}
    found = []
    for name, text in exchange.query.items():
        if name not in described:
            found.append(f"unknown query parameter {name}")
            continue
        schema = described[name]["schema"]
        value: Any = int(text) if schema.get("type") == "integer" and text.isdigit() else text
        if schema.get("type") == "boolean":
            value = {"true": True, "false": False}.get(text, text)
        if not _parameter_validator(operation, name).is_valid(value):
            found.append(f"query parameter {name}={text} does not fit {schema}")
    missing = {name for name, entry in described.items() if entry.get("required")} - exchange.query.keys()
    return [*found, *(f"query parameter {name} is missing" for name in missing)]


def _body(operation: tuple[str, str], exchange: Exchange) -> list[str]:
    described = _described(operation).get("requestBody")
    if described is None:
        return [] if exchange.json is None else ["a request body where none is described"]
    body = exchange.json
    if body is None:
        return ["the request body is missing"] if described.get("required") else []
    return _problems(_body_validator(operation), body)


def _problems(validator: Any, value: Any) -> list[str]:
    return [f"{error.instance_path}: {error.message[:300]}" for error in validator.iter_errors(value)]


@cache
def _answer_validator(operation: tuple[str, str], status: str) -> Any:
    return _validator(_answer_schema(operation, status))


@cache
def _parameter_validator(operation: tuple[str, str], name: str) -> Any:
    """Return the validator of a query parameter, whose format is not its own: a date may follow ``>=``."""
    (schema,) = (entry["schema"] for entry in _parameters(operation) if entry["name"] == name)
    return _validator(schema, formats=False)


@cache
def _body_validator(operation: tuple[str, str]) -> Any:
    return _validator(_described(operation)["requestBody"]["content"]["application/json"]["schema"])


def _validator(schema: dict[str, Any], formats: bool = True) -> Any:
    return jsonschema_rs.Draft202012Validator(schema, validate_formats=formats, registry=_registry())


@cache
def _registry() -> jsonschema_rs.Registry:
    """Return the shared schemas, compiled once for all validators."""
    return jsonschema_rs.Registry([(_NAME, {"components": _document()["components"]})])


@cache
def _operation(method: str, path: str) -> tuple[str, str] | None:
    for pattern, template in _patterns():
        if pattern.fullmatch(path) and method.lower() in _document()["paths"][template]:
            return template, method.lower()
    return None


@cache
def _patterns() -> list[tuple[re.Pattern[str], str]]:
    templates = sorted(_document()["paths"], key=lambda template: (template.count("{"), -len(template)))
    return [(re.compile(_pattern(template)), template) for template in templates]


def _pattern(template: str) -> str:
    parts = re.split(r"\{(\w+)\}", template)
    names = [".+" if name in WITH_SLASHES else "[^/]+" for name in parts[1::2]]
    return "".join(re.escape(text) + name for text, name in zip(parts[::2], [*names, ""], strict=True))


def _described(operation: tuple[str, str]) -> dict[str, Any]:
    described: dict[str, Any] = _document()["paths"][operation[0]][operation[1]]
    return described


def _parameters(operation: tuple[str, str]) -> list[dict[str, Any]]:
    shared = _document()["components"]["parameters"]
    entries = _described(operation).get("parameters", [])
    return [shared[entry["$ref"].rpartition("/")[2]] if "$ref" in entry else entry for entry in entries]


@cache
def _document() -> dict[str, Any]:
    document: dict[str, Any] = _converted(json.loads(DESCRIPTION.read_text(encoding="utf-8")))
    document["paths"] |= _converted(ADDED)
    for schema, names in NULL_ALL_THE_SAME.items():
        for name in names:
            found = document["components"]["schemas"]
            for part in schema.split("/"):
                found = found[part]
            found["properties"][name]["type"] = [found["properties"][name]["type"], "null"]
    conclusion = document["components"]["schemas"]["check-run"]["properties"]["conclusion"]
    conclusion["enum"] = [*conclusion["enum"], *OWN_CONCLUSIONS]
    return document


def _converted(node: Any) -> Any:
    """Turn OpenAPI 3.0 into JSON Schema 2020-12: ``nullable``, alternatives that overlap in practice, references."""
    if isinstance(node, list):
        return [_converted(child) for child in node]
    if not isinstance(node, dict):
        return node
    schema = {key: _converted(child) for key, child in node.items() if key not in ("nullable", "minItems")}
    if isinstance(reference := schema.get("$ref"), str):
        schema["$ref"] = f"{_NAME}{reference}"
    if "oneOf" in schema:
        schema["anyOf"] = schema.pop("oneOf")
    if node.get("nullable") is not True:
        return schema
    if "enum" in schema:
        schema["enum"] = [*schema["enum"], None]
    if "type" in schema:
        schema["type"] = [schema["type"], "null"]
        return schema
    return {"anyOf": [schema, {"type": "null"}]}
