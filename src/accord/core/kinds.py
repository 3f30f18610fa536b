"""Kinds of documents: how each is recognised, read and checked.

The table names model and rules as text, so that checking one kind imports the code of no other.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeVar

from accord.core.documents import read_object, short_name
from accord.core.errors import BrokenContract, WrongUsage
from accord.core.findings import Finding, pointer, with_lines
from accord.core.suggest import did_you_mean, nearest

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from pydantic import BaseModel, ValidationError
    from pydantic_core import ErrorDetails


Model = TypeVar("Model", bound="BaseModel")

Format = Literal["json", "yaml"]

_OBJECTS = ("model_type", "dict_type")
"""Errors in which pydantic names classes of this program."""

_WANTED = {
    "string_type": "a string",
    "list_type": "an array",
    "int_type": "an integer",
    "bool_type": "true or false",
    **dict.fromkeys(_OBJECTS, "an object"),
    "string_too_long": "at most {max_length} characters long",
    "greater_than_equal": "{ge} or more",
    "less_than_equal": "{le} or less",
    "string_pattern_mismatch": "text that matches `{pattern}`",
}
"""The wanted type in words, by pydantic's name of the error."""

_QUOTED = re.compile(r"'([^']*)'")

_SHOWN_CHARS = 60
"""Longer values are not quoted: a part of a secret is not recognised as one and would not be redacted."""


def load_name(name: str) -> Any:
    """Return what ``module:name`` names."""
    module, _, attribute = name.partition(":")
    return getattr(import_module(module), attribute)


def read_shape(model: type[Model], value: Any) -> Model:
    """Validate a value. Raises BrokenContract with one ``schema`` finding for each place that does not fit."""
    from pydantic import ValidationError

    try:
        return model.model_validate(value, by_alias=True, by_name=False)
    except ValidationError as error:
        findings = shape_findings(error, model)
        raise BrokenContract("The document does not have the shape of its kind.", findings=findings) from None


def shape_findings(error: ValidationError, model: type[BaseModel]) -> list[Finding]:
    """Return one ``schema`` finding for each place that does not fit the model."""
    return [_finding(detail, model) for detail in error.errors(include_url=False, include_context=True)]


def _finding(detail: ErrorDetails, model: type[BaseModel]) -> Finding:
    steps, given, kind = detail["loc"], detail["input"], detail["type"]
    key = str(steps[-1]) if steps else "document"
    found = f"found {_described(given)}"
    if kind == "missing":
        names = {name for name in given if isinstance(name, str)} if isinstance(given, dict) else set()
        near = nearest(key, names.difference(keys_at(model, steps[:-1])))
        message = f"The required key `{key}` is missing."
        hint = f"Rename `{near}` to `{key}`." if near else "Add it."
    elif kind == "extra_forbidden":
        message = f"The key `{short_name(key)}` is not part of the contract."
        hint = did_you_mean(key, keys_at(model, steps[:-1])) or "Remove it."
    elif kind in ("literal_error", "enum"):
        expected = detail["ctx"]["expected"]
        message = f"{_named(steps)} must be {expected}; {found}."
        hint = did_you_mean(str(given), _QUOTED.findall(expected)) or f"Write {expected}."
    else:
        context = detail.get("ctx", {})
        wanted = _WANTED.get(kind, "").format(**context)
        reason = detail["msg"].removeprefix("Value error, ")
        message = f"{_named(steps)} must be {wanted}; {found}." if wanted else f"{reason}; {found}."
        hint = "Shorten it." if kind == "string_too_long" else f"Write {wanted}." if wanted else "Correct it."
        hint = context.get("hint", hint)
    return Finding("schema", message, pointer(*steps), hint=hint)


def _named(steps: Sequence[str | int]) -> str:
    """Name a place for people: its key, or its number in the nearest key above."""
    if not steps:
        return "The value"
    *above, last = steps
    return f"`{short_name(last)}`" if isinstance(last, str) else f"Entry {last + 1} of {_named(above)}"


def _described(value: Any) -> str:
    if isinstance(value, dict):
        return "an object"
    if isinstance(value, list):
        return "an array"
    text = json.dumps(value) if value is None or isinstance(value, bool) else repr(value)
    return text if len(text) <= _SHOWN_CHARS else f"{type(value).__name__} of {len(text)} characters"


def keys_at(model: type[BaseModel], steps: Iterable[str | int]) -> list[str]:
    """Return the keys that the schema of a model knows at a place; several shapes may be allowed there."""
    schema = model.model_json_schema(by_alias=True)
    definitions = schema.get("$defs", {})

    def shapes(node: Any) -> list[dict[str, Any]]:
        if not isinstance(node, dict):
            return []
        if "$ref" in node:
            return shapes(definitions[node["$ref"].rpartition("/")[2]])
        return [node, *(shape for key in ("anyOf", "oneOf") for child in node.get(key, ()) for shape in shapes(child))]

    places = shapes(schema)
    for step in steps:
        below = "items" if isinstance(step, int) else "additionalProperties"
        children = [place.get("properties", {}).get(step) or place.get(below) for place in places]
        places = [shape for child in children for shape in shapes(child)] or places  # a union's own step has no schema
    return [key for place in places for key in place.get("properties", {})]


class Located(Protocol):
    """A document that was read from JSON or YAML: its value, and the line (from 1) of each of its JSON pointers."""

    @property
    def value(self) -> Mapping[str, Any]:
        """The document."""

    @property
    def lines(self) -> Mapping[str, int]:
        """The line of each part."""

    @property
    def is_alone(self) -> bool:
        """Whether the file holds nothing but the document."""


def format_of(path: str) -> Format:
    """Return the format of a document by its file name: YAML by its suffix, everything else JSON."""
    return "yaml" if PurePath(path).suffix.lower() in {".yml", ".yaml"} else "json"


def read_as(form: Format, raw: bytes) -> Located:
    """Read one document. Raises BrokenContract where ``raw`` is not exactly one of this format."""
    if form == "json":
        return read_object(raw)
    document: Located = load_name("accord.files.yaml:read_mapping")(raw)
    return document


_TEXT_AROUND = Finding(
    "text-around", "Text or a code fence surrounds the JSON object.", hint="Write the object and nothing else."
)


def _is_array(raw: bytes) -> bool:
    try:
        return isinstance(json.loads(raw), list)
    except (ValueError, RecursionError):
        return False


@dataclass(frozen=True)
class Kind:
    """One kind of document; ``marks`` are its keys, each with its value or a test of its value.

    ``is_alone`` refuses JSON that text surrounds; the rules take a role where ``has_role``. accord sets the keys in
    ``own_keys`` itself, whatever an agent writes there. ``list_key`` is where the entries of a bare array belong.
    """

    name: str
    model_name: str
    rules_name: str
    marks: Mapping[str, Any]
    form: Format = "json"
    is_alone: bool = False
    has_role: bool = False
    fixes_name: str = ""
    own_keys: frozenset[str] = frozenset()
    list_key: str = ""

    @property
    def model(self) -> type[BaseModel]:
        """The model, imported now."""
        model: type[BaseModel] = load_name(self.model_name)
        return model

    def matches(self, value: Mapping[str, Any]) -> bool:
        """Return whether a document says that it is of this kind."""
        return all(
            mark(value.get(key)) if callable(mark) else value.get(key) == mark for key, mark in self.marks.items()
        )

    def read(self, raw: bytes) -> Located:
        """Read a document in the format of this kind. Raises BrokenContract."""
        try:
            return read_as(self.form, raw)
        except BrokenContract:
            if self.list_key and _is_array(raw):
                hint = f'Write it as `{{"{self.list_key}": […]}}`.'
                found = Finding("bare-array", "The document is a bare array.", line=1, hint=hint)
                raise BrokenContract.of(found) from None
            raise

    def findings(self, model: BaseModel, role: str = "") -> list[Finding]:
        """Hold a document that has the shape against the rules."""
        rules: Callable[..., list[Finding]] = load_name(self.rules_name) if self.rules_name else lambda *_: []
        return rules(model, role) if self.has_role else rules(model)

    def fix(self, value: dict[str, Any]) -> tuple[dict[str, Any], list[Any]]:
        """Return a document without the small faults of this kind, and each ``Fix``."""
        if not self.fixes_name:
            return value, []
        fixed: tuple[dict[str, Any], list[Any]] = load_name(self.fixes_name)(value)
        return fixed

    def check(self, document: Located, role: str = "") -> list[Finding]:
        """Check shape, then rules; every finding with its line."""
        return self.read_model(document, role)[1]

    def read_model(self, document: Located, role: str = "") -> tuple[Any, list[Finding]]:
        """Return the model, None where the shape is wrong, and the findings, each with its line."""
        model = None
        findings = [] if document.is_alone or not self.is_alone else [_TEXT_AROUND]
        try:
            model = read_shape(self.model, document.value)
            findings += self.findings(model, role)
        except BrokenContract as broken:
            findings += broken.findings
            if unknown_keys := getattr(self.model, "unknown_key_findings", None):
                findings += unknown_keys(document.value)
        return model, with_lines(findings, document.lines) if findings else []


def _later(name: str) -> Callable[[Any], bool]:
    """Return a test of a value that is imported when it is used."""
    return lambda value: bool(load_name(name)(value))


def _is(of_type: type) -> Callable[[Any], bool]:
    return lambda value: isinstance(value, of_type)


def _is_given(value: Any) -> bool:
    return value is not None


_TABLE = """
planner-result       json   results.models:PlannerResult         results.planner.rules:result_findings
implementor-result   json   results.models:ImplementorResult     results.implementor.rules:implementor_findings
reviewer-result      json   results.models:ReviewerResult        results.reviewer.rules:reviewer_findings
runner-workflow      yaml   workflows.models:Workflow            workflows.rules:runner_findings
agent-registry       yaml   runner.registry:Registry             runner.registry:own_findings
accord-config        yaml   starts.config:AccordConfig           -
plan-settings        yaml   results.planner.settings:PlanSettings -
autofix-facts        json   loops.autofix:AutofixFacts           -
thread-answers       json   loops.bot_comments:ThreadAnswers     loops.bot_comments:answer_findings
bot-comments-facts   json   loops.bot_comments:BotCommentFacts   -
loop-history         json   loops.state:HistoryLine              -
keepalive-facts      json   loops.keepalive:KeepaliveFacts       -
verify-facts         json   loops.verify:VerifyFacts             -
verdict              json   loops.verify:Verdict                 loops.verify:verdict_findings
agent-input          alone  sessions.models:AgentInput           sessions.rules:input_findings
agent-output         alone  sessions.models:AgentOutput          sessions.output_rules:output_findings
session-status       alone  sessions.models:SessionStatus               sessions.rules:status_findings
session-tasks        yaml   sessions.models:SessionTasks                sessions.rules:tasks_findings
session-acceptance   alone  sessions.models:Acceptance           sessions.rules:acceptance_findings
next-query-response  json   missions.models:NextQueryResponse    -
stale-status         json   missions.models:StaleStatus          -
handoff              json   handoffs.models:Handoff              handoffs.rules:handoff_findings
run-record           json   records.models:PublicRecord          -
"""
"""Name, format (``alone`` is JSON with nothing around it), model and rules, both from the package ``accord`` on."""

_MARKS: dict[str, Mapping[str, Any]] = {
    "planner-result": {"role": "planner"},
    "implementor-result": {"role": "implementor"},
    "reviewer-result": {"role": "reviewer"},
    "runner-workflow": {"on": _later("accord.workflows.rules:is_reusable")},
    "agent-registry": {"agents": _is_given},
    "accord-config": {"starts": _is_given},
    "plan-settings": {"plan": _is_given},
    "autofix-facts": {"kind": "autofix-facts"},
    "thread-answers": {"role": "bot-comments"},
    "bot-comments-facts": {"kind": "bot-comments-facts"},
    "loop-history": {"loop": _is_given, "iteration": _is_given},
    "keepalive-facts": {"kind": "keepalive-facts"},
    "verify-facts": {"kind": "verify-facts"},
    "verdict": {"role": "verifier"},
    "agent-input": {"task": _is(dict)},
    "agent-output": {"status": _is(str), "gates": _is(dict)},
    "session-status": {"current_state": _is(str)},
    "session-tasks": {"tasks": _is(list)},
    "session-acceptance": {"acceptance_criteria": _is(list)},
    "next-query-response": {"kind": "query", "is_query": True},
    "stale-status": {"status": lambda value: value in ("fresh", "stale", "not_applicable")},
    "handoff": {"metadata": _is(dict)},
    "run-record": {"id": _is(str), "kind": _is(str), "result": _is(dict), "ended_at": _is(str)},
}

_WITH_ROLE = {"agent-input", "agent-output"}
_FIXES = {
    "implementor-result": "accord.results.fixes:fix_implementation",
    "planner-result": "accord.results.fixes:fix_plan",
    "reviewer-result": "accord.results.fixes:fix_review",
}
_LIST_KEYS = {"session-acceptance": "acceptance_criteria"}
_OWN_KEYS = {"implementor-result": frozenset({"patch"})}


def _kind(name: str, form: str, model: str, rules: str) -> Kind:
    return Kind(
        name,
        f"accord.{model}",
        "" if rules == "-" else f"accord.{rules}",
        _MARKS[name],
        "yaml" if form == "yaml" else "json",
        is_alone=form == "alone",
        has_role=name in _WITH_ROLE,
        fixes_name=_FIXES.get(name, ""),
        own_keys=_OWN_KEYS.get(name, frozenset()),
        list_key=_LIST_KEYS.get(name, ""),
    )


KINDS: dict[str, Kind] = {line.split()[0]: _kind(*line.split()) for line in _TABLE.strip().splitlines()}
"""Every kind of document by its name, in the order in which a document is held against them."""

FOLDERS = {"session": ("accord.sessions.folder:is_session", "accord.sessions.folder:check_session")}
"""Every kind of folder by its name, with a test and a check of its documents as ``module:name``."""


def kind_for(name: str | None, value: Mapping[str, Any], form: Format = "json") -> Kind:
    """Return the kind of this name, else the one that the document shows. Raises BrokenContract for another or none."""
    if name is None:
        return recognised_kind(value, form)
    kind = KINDS[name]
    others = [] if kind.matches(value) else [other for other in KINDS.values() if other.matches(value)]
    for other in others:
        for key, mark in kind.marks.items():
            if not callable(mark) and other.marks.get(key, mark) != mark:
                message = f"The document's kind is {other.name}, not {name}."
                hint = f"Pass `--kind {other.name}`, or no `--kind`."
                raise BrokenContract.of(Finding("schema", message, pointer(key), hint=hint))
    return kind


def recognised_kind(value: Mapping[str, Any], form: Format) -> Kind:
    """Return the kind that a document of this format shows. Raises BrokenContract when it shows no known kind."""
    candidates = [kind for kind in KINDS.values() if kind.form == form]
    for kind in candidates:
        if kind.matches(value):
            return kind
    if form == "yaml":
        names = ", ".join(kind.name for kind in candidates)
        message = "The document shows no known kind."
        hint = f"Pass `--kind` with one of: {names}."
        raise BrokenContract.of(Finding("schema", message, hint=hint))
    role, roles = value.get("role"), role_names()
    if role is None and (key := misspelled_role(value)):
        message = f"The key `{key}` is not `role`, so the document's kind is unknown."
        raise BrokenContract.of(Finding("schema", message, pointer(key), hint=f"Rename `{key}` to `role`."))
    if role is None and (key := wrapping_key(value)):
        message = f"The document is inside another object, under the key `{key}`."
        raise BrokenContract.of(Finding("schema", message, pointer(key), hint="Write the inner object alone."))
    if role is None:
        message = "The document has no `role`, so its kind is unknown."
        hint = f"Add it ({', '.join(roles)}), or pass `--kind`."
    else:
        message = f"Unknown role `{short_name(str(role))}`."
        hint = did_you_mean(str(role), roles) or f"Use one of: {', '.join(roles)}."
    raise BrokenContract.of(Finding("schema", message, "/role", hint=hint))


def role_names() -> list[str]:
    """Return the roles by which a document shows its kind."""
    return [str(kind.marks["role"]) for kind in KINDS.values() if "role" in kind.marks]


def misspelled_role(value: Mapping[str, Any]) -> str | None:
    """Return the key that stands for `role`: near to it, with a known role as its value, in any case."""
    near = [key for key in value if nearest(key.strip(), ["role"], cutoff=0.75)]
    near = [key for key in near if str(value[key]).strip().lower() in role_names()]
    return near[0] if len(near) == 1 and "role" not in value else None


def wrapping_key(value: Mapping[str, Any]) -> str | None:
    """Return the only key of an object that wraps a document with a role."""
    (key, inner), *others = [*value.items()] or [("", None)]
    if others or not isinstance(inner, dict):
        return None
    return short_name(key) if inner.get("role") in role_names() or misspelled_role(inner) else None


def check_document(raw: bytes, kind: str | None, path: str = "-", role: str = "") -> tuple[str | None, list[Finding]]:
    """Check one document, read as its kind or file name says; return its kind (None: unknown) and the findings."""
    form = KINDS[kind].form if kind else format_of(path)
    try:
        document = read_as(form, raw)
        try:
            found = kind_for(kind, document.value, form)
        except BrokenContract as broken:
            return kind, with_lines(broken.findings, document.lines)
    except BrokenContract as broken:
        return kind, list(broken.findings)
    return found.name, found.check(document, role)


def check_folder(folder: Path, kind: str | None) -> list[tuple[Path, str, list[Finding]]]:
    """Check the documents of a folder together. Raises WrongUsage if its kind is not given and unknown."""
    for name, (test, check) in FOLDERS.items():
        if kind == name or (kind is None and load_name(test)(folder)):
            checked: list[tuple[Path, str, list[Finding]]] = load_name(check)(folder)
            return checked
    raise WrongUsage(f"`{folder}` is not a folder of a known kind.", hint=f"Pass `--kind` with {', '.join(FOLDERS)}.")
