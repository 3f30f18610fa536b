"""Providers accept strict schemas for enforced output, and results of that form pass the check."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest
from pydantic import BaseModel, ConfigDict
from support.plans import plan, refinement, task, update
from support.sessions import acceptance, agent_output

from accord.core.documents import Document
from accord.core.kinds import KINDS
from accord.core.schemas import ADDRESS, json_schema, strict_form, strict_schema
from accord.runner.analysis.analyse import TaskAnswer
from accord.sessions.dispatch import output_schema
from accord.sessions.models import ROLES

ROOT = Path(__file__).parents[2]
MOST_LEVELS, MOST_CHARS = 5, 120_000
NODE = {"$ref": "#/$defs/node"}


def only(needed: str, **properties: Any) -> dict[str, Any]:
    return {"properties": properties, "required": needed.split(), "additionalProperties": False}


STRICT = jsonschema_rs.Draft202012Validator(
    {
        "$ref": "#/$defs/object",
        "$defs": {
            "node": {
                "anyOf": [{"$ref": f"#/$defs/{kind}"} for kind in ("reference", "union", "object", "array", "value")]
            },
            "reference": only("$ref", **{"$ref": {}}),
            "union": only("anyOf", anyOf={"items": NODE}, description={}),
            "object": only(
                "type properties required additionalProperties",
                type={"const": "object"},
                properties={"minProperties": 1, "additionalProperties": NODE},
                additionalProperties={"const": False},
                **{"required": {}, "description": {}, "$defs": {"additionalProperties": NODE}},
            ),
            "array": only("type items", type={"const": "array"}, items=NODE, description={}),
            "value": only(
                "type",
                type={"enum": ["string", "number", "boolean", "integer", "null"]},
                enum={"maxItems": 1000},
                description={},
            ),
        },
    }
)
"""The documented rules of strict structured output.

Source: OpenAI, "Structured model outputs", section "Supported schemas". Where its editions differ, the tighter limit
counts. Its API also refuses a reference with other keys beside it.
"""


def broken_rules(schema: dict[str, Any]) -> list[str]:
    """Return what keeps a provider from accepting a schema."""
    found = [f"{error.instance_path}: {error.message}" for error in STRICT.iter_errors(schema)]
    every = [*nodes(schema)]
    found += [f"not required: {node}" for node in every if {*node.get("required", ())} != {*node.get("properties", ())}]
    definitions = {f"#/$defs/{name}" for name in schema.get("$defs", {})}
    found += [f"no definition: {node}" for node in every if node.get("$ref", "#") not in definitions | {"#"}]
    if found or len(json.dumps(schema)) > MOST_CHARS:
        return found or ["too long"]
    return ["too many levels"] if levels(schema, schema, ()) > MOST_LEVELS else []


def nodes(node: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Return each schema in a schema."""
    yield node
    named = [child for word in ("properties", "$defs") for child in node.get(word, {}).values()]
    for child in (*named, *([node["items"]] if "items" in node else ()), *node.get("anyOf", ())):
        yield from nodes(child)


def levels(node: dict[str, Any], root: dict[str, Any], above: tuple[str, ...]) -> int:
    """Return how deep objects nest."""
    if "$ref" in node:
        name = node["$ref"].rpartition("/")[2]
        return 0 if name in above else levels(root["$defs"][name], root, (*above, name))
    items = [node["items"]] if "items" in node else []
    below = [*node.get("properties", {}).values(), *node.get("anyOf", ()), *items]
    return (node.get("type") == "object") + max((levels(child, root, above) for child in below), default=0)


TEXT = {"type": "string"}


def closed(**properties: Any) -> dict[str, Any]:
    names = list(properties)
    return {"type": "object", "properties": properties, "required": names, "additionalProperties": False}


def nested(count: int) -> dict[str, Any]:
    return closed(text=TEXT) if count == 1 else closed(below={"type": "array", "items": nested(count - 1)})


@pytest.mark.parametrize(
    "schema",
    [
        {"anyOf": [closed(a=TEXT)]},
        {**closed(a=TEXT, b=TEXT), "required": ["a"]},
        {**closed(a=TEXT), "additionalProperties": True},
        closed(a={"type": "object", "additionalProperties": TEXT}),
        closed(a={"anyOf": [TEXT, {}]}),
        closed(a={"type": "array"}),
        closed(a={**TEXT, "default": ""}),
        {**closed(a={"$ref": "#/$defs/A", "description": "x"}), "$defs": {"A": TEXT}},
        closed(a={"$ref": "#/$defs/A"}),
        nested(6),
    ],
)
def test_the_check_of_the_rules_finds_each_broken_rule(schema: dict[str, Any]) -> None:
    assert broken_rules(schema)
    assert broken_rules(nested(5)) == []


AGENTS = "SpecAgent Architect Planner Designer Researcher Coder Reviewer QA Security Integrator Docs Orchestrator"
STATES = (
    "INTAKE INTAKE_LEAN DESIGN APPROVE_DESIGN PLAN REVIEW_STRATEGY IMPLEMENT_LOOP INTEGRATE RELEASE DONE ASK_USER "
    "FIX_REVIEW FIX_TESTS FIX_SECURITY FIX_BUILD BLOCKED"
)
STATES_OF_AN_ARTIFACT = "draft complete superseded"
ENUMERATIONS: dict[str, dict[str, str]] = {
    "agent-input": {
        "/agent": AGENTS,
        "/project_type": "web api cli lib mixed",
        "/repo_state/ci_status": "unknown green red",
        "/task/risk_flags": "security perf breaking-change none",
        "/task/session_changed_files/change_type": "added modified deleted renamed",
    },
    "agent-output": {
        "/agent": AGENTS,
        "/next/recommended_agent": AGENTS,
        "/status": "OK BLOCKED NEEDS_INFO NEEDS_DECISION FAIL",
    },
    "session-status": {
        "/blocked_from": STATES,
        "/current_state": STATES,
        "/gate_tracking/APPROVE_DESIGN/correction_status": "none queued dispatched completed",
        "/gate_tracking/APPROVE_DESIGN/last_correction_dispatch/agent": "SpecAgent Architect Designer",
        "/gate_tracking/APPROVE_DESIGN/last_correction_dispatch/task_id": "meta",
        "/last_ci_result": "unknown green red",
        "/mode": "full lean",
        "/user_decisions/state_context": STATES,
        "/user_decisions/status": "pending answered cancelled skipped",
    },
    "session-tasks": {"/tasks/status": "not-started in-progress implemented completed blocked"},
    "session-acceptance": {},
    "handoff": {
        "/metadata/awaitingHumanArtifact/status": STATES_OF_AN_ARTIFACT,
        "/metadata/doneArtifact/status": STATES_OF_AN_ARTIFACT,
        "/metadata/planningArtifact/status": STATES_OF_AN_ARTIFACT,
        "/metadata/reviewArtifact/decision": "approved changes_requested",
        "/metadata/reviewArtifact/status": STATES_OF_AN_ARTIFACT,
        "/metadata/testingArtifacts/implemented/status": STATES_OF_AN_ARTIFACT,
        "/metadata/testingArtifacts/planned/status": STATES_OF_AN_ARTIFACT,
        "/metadata/testingArtifacts/status": STATES_OF_AN_ARTIFACT,
        "/metadata/verificationArtifact/result": "passed failed",
        "/metadata/verificationArtifact/status": STATES_OF_AN_ARTIFACT,
        "/metadata/workflowRuntime/actionHistory/phase": "onEnter onExit",
        "/metadata/workflowRuntime/actionHistory/result": "ok error",
        "/status": "backlog planning implementing review verification awaiting_human done cancelled",
    },
    "stale-status": {"/status": "fresh stale not_applicable"},
}
"""The values of each enumeration, as its contract lists them."""


def enumerated(node: Any, definitions: dict[str, Any], place: str = "") -> Iterator[tuple[str, str]]:
    """Yield the place of each enumeration of a schema, with its values."""
    if isinstance(node, list):
        for one in node:
            yield from enumerated(one, definitions, place)
    elif isinstance(node, dict):
        if "$ref" in node:
            yield from enumerated(definitions[node["$ref"].rpartition("/")[2]], definitions, place)
        if values := [text for text in node.get("enum", [node.get("const")]) if isinstance(text, str)]:
            yield place, " ".join(values)
        for key, child in node.get("properties", {}).items():
            yield from enumerated(child, definitions, f"{place}/{key}")
        for key in ("items", "anyOf", "additionalProperties"):
            yield from enumerated(node.get(key), definitions, place)


@pytest.mark.parametrize("kind", ENUMERATIONS)
def test_every_enumeration_has_exactly_the_values_of_its_contract(kind: str) -> None:
    schema = KINDS[kind].model.model_json_schema(by_alias=True)
    found = {place: sorted(values.split()) for place, values in enumerated(schema, schema.get("$defs", {}))}
    assert found == {place: sorted(values.split()) for place, values in ENUMERATIONS[kind].items()}


@pytest.mark.parametrize("kind", KINDS)
def test_a_strict_schema_is_accepted_for_enforced_output(kind: str) -> None:
    assert broken_rules(strict_schema(KINDS[kind].model)) == []


def test_the_schemas_of_agents_in_sessions_and_of_the_analysis_are_accepted() -> None:
    assert [broken_rules(output_schema(role)) for role in ROLES] == [[]] * len(ROLES)
    assert broken_rules(strict_schema(TaskAnswer)) == []


BLOCKED = """Type: technical-constraint
Description: The library cannot do it at all.
Options:
1. Replace it, which takes a week
2. Drop the feature, which users will notice
Recommendation: replace it, because the feature was promised.
Impact: the release waits."""
FAILED = (
    "Step: the tests fail.\nTried: twice, with and without a cache.\nOutside: the cause is beyond the task's scope."
)
FINDING = "What: off by one.\nWhy: the spec says n.\nFix: use range(n)."


def ended(outcome: str, summary: str) -> dict[str, Any]:
    return {"role": "implementor", "outcome": outcome, "patch": None, "summary": summary}


def review(word: str, *comments: tuple[str, int | None, str]) -> dict[str, Any]:
    given = [{"path": path, "line": line, "body": body} for path, line, body in comments]
    return {"role": "reviewer", "review": {"verdict": word, "summary": "Read all of it.", "comments": given}}


THREADS = [{"number": 1, "done": "fixed", "what": "Renamed it."}, {"number": 2, "done": "question", "what": "Why?"}]
CRITERIA = [{"number": 1, "met": "yes", "evidence": "src/a.py"}, {"number": 2, "met": "no", "evidence": "No test."}]


def verdict(word: str, *criteria: dict[str, Any], follow_up: Any = None) -> dict[str, Any]:
    document = {"role": "verifier", "verdict": word, "summary": "Looked at it.", "criteria": list(criteria)}
    return {**document, "follow_up": follow_up}


def output(**texts: list[str]) -> dict[str, Any]:
    """Return an output with every property, as an enforced answer has it."""
    lists = "files_to_create_or_update files_changed tests_added_or_updated commands_to_run manual_steps"
    names = [*lists.split(), "review_comments", "findings", "notes"]
    given = agent_output()
    artifacts = {name: texts.get(name, []) for name in names}
    gates = {**given["gates"], "security_concerns": texts.get("security_concerns", [])}
    return {**given, "artifacts": artifacts, "gates": gates, "agent": "Coder"}


WRITTEN: list[tuple[str, dict[str, Any]]] = [
    ("planner-result", plan()),
    (
        "planner-result",
        plan(task("a"), refinement("b", "a"), close=["3"], update=[update(4), update(5, labels=task("a")["labels"])]),
    ),
    ("implementor-result", ended("completed", "Did it, and tested it.")),
    ("implementor-result", ended("blocked", BLOCKED)),
    ("implementor-result", ended("validation-failure", FAILED)),
    ("reviewer-result", review("approve")),
    ("reviewer-result", review("approve", ("src/a.py", None, "[Warning] outside of the scope"))),
    ("reviewer-result", review("needs-changes", ("src/a.py", 3, FINDING), ("src/b.py", None, FINDING))),
    ("thread-answers", {"role": "bot-comments", "threads": []}),
    ("thread-answers", {"role": "bot-comments", "threads": THREADS}),
    ("verdict", verdict("pass", CRITERIA[0])),
    ("verdict", verdict("fail", *CRITERIA, follow_up={"title": "Test it", "body": "No test covers it."})),
    ("session-acceptance", acceptance()),
    ("agent-output", output()),
    ("agent-output", output(findings=["low: a typo"], security_concerns=["low: none"], review_comments=["Good."])),
]
"""Results in the strict form of each kind that agents are asked for: small and full ones."""


@pytest.mark.parametrize(("kind", "document"), WRITTEN)
def test_results_that_fit_a_strict_schema_pass_the_check(kind: str, document: dict[str, Any]) -> None:
    jsonschema_rs.Draft202012Validator(strict_schema(KINDS[kind].model)).validate(document)
    own = KINDS[kind].own_keys  # accord fills them in
    findings = KINDS[kind].check(Document(document, ""))
    assert [finding for finding in findings if finding.path.removeprefix("/") not in own] == []


@pytest.mark.parametrize("kind", KINDS)
def test_a_kind_that_agents_write_leaves_out_no_required_part(kind: str) -> None:
    """People write workflows and registries, and accord itself writes the state of a session."""
    without = {"runner-workflow", "agent-registry", "session-status"}
    assert bool(strict_form(KINDS[kind].model).missing) is (kind in without)


class _Free(BaseModel):
    """Parts that have no strict form, and parts that have one."""

    model_config = ConfigDict(extra="allow")

    text: str
    anything: Any = None
    entries: dict[str, str] = {}
    rows: list[dict[str, int]] = []
    either: list[str | dict[str, Any]] = []
    maybe: dict[str, Any] | None = None
    needed: dict[str, int]


def test_a_strict_schema_leaves_out_what_could_only_be_empty_and_says_so() -> None:
    form = strict_form(_Free)
    assert broken_rules(form.schema) == []
    assert list(form.schema["properties"]) == ["text", "either"]
    assert form.left_out == ("`anything`", "`entries`", "`rows`", "`either` other than string", "`maybe`", "`needed`")
    assert form.missing == ("needed",)


class _Tree(BaseModel):
    below: "list[_Tree]"


def test_a_model_that_contains_itself_has_a_strict_schema() -> None:
    class Root(BaseModel):
        tree: _Tree | None

    assert broken_rules(strict_schema(Root)) == []


@pytest.mark.parametrize(("line", "is_accepted"), [("3", True), ("3.0", True), ("3e0", True), ("3.5", False)])
def test_schema_and_check_agree_on_the_numbers_that_are_integers(line: str, is_accepted: bool) -> None:
    kind = KINDS["reviewer-result"]
    raw = json.dumps(review("needs-changes", ("src/a.py", 7, FINDING))).replace("7", line).encode()
    model, findings = kind.read_model(kind.read(raw))
    assert jsonschema_rs.is_valid(json_schema(kind.model), json.loads(raw)) is is_accepted
    assert (findings == []) is is_accepted
    if is_accepted:
        assert repr(model.review.comments[0].line) == "3"


def test_a_model_may_number_completed_tasks_with_a_fraction_of_zero() -> None:
    answer = TaskAnswer.model_validate_json('{"completed_tasks": [1.0, 2], "confidence": 1}')
    assert answer.completed_tasks == [1, 2]


def test_a_published_schema_names_its_own_file() -> None:
    catalog = json.loads((ROOT / "schemas/catalog.json").read_text(encoding="utf-8"))
    for path in sorted((ROOT / "schemas").glob("*.schema.json")):
        schema = json.loads(path.read_text(encoding="utf-8"))
        assert schema.get("$id", "") == ("" if ".strict." in path.name else ADDRESS + path.name)
    for entry in catalog["schemas"]:
        assert (ROOT / "schemas" / entry["url"].removeprefix(ADDRESS)).is_file()


@pytest.mark.parametrize("kind", ["planner-result", "implementor-result", "reviewer-result"])
def test_each_field_of_a_result_is_described(kind: str) -> None:
    schema = json_schema(KINDS[kind].model)
    models = [schema, *schema.get("$defs", {}).values()]
    fields = {name: field for model in models for name, field in model.get("properties", {}).items()}
    assert [name for name, field in fields.items() if not field.get("description")] == []


RESULTS = """
PlannerResult {role: 'planner'; create: PlannedWorkItem[]; close: string[]; update: PlannedWorkItemUpdate[]}
PlannedWorkItem {tempID: string; title: string; body: string; labels: string[]; blockedBy: string[]}
PlannedWorkItemUpdate {workItemID: string; body: string | null; labels: string[] | null}
ImplementorResult {role: 'implementor'; outcome: 'completed' | 'blocked' | 'validation-failure'; patch: string | null; \
summary: string}
ReviewerResult {role: 'reviewer'; review: AgentReview}
AgentReview {verdict: 'approve' | 'needs-changes'; summary: string; comments: AgentReviewComment[]}
AgentReviewComment {path: string; line: number | null; body: string}
"""
"""The types of the workflow contracts ("Structured Output Formats"): all fields, and no other ones."""


def in_words_of_the_contract(schema: dict[str, Any]) -> str:
    if "anyOf" in schema:
        return " | ".join(map(in_words_of_the_contract, schema["anyOf"]))
    if values := schema.get("enum") or ("const" in schema and [schema["const"]]):
        return " | ".join(f"'{value}'" for value in values)
    if "items" in schema:
        return f"{in_words_of_the_contract(schema['items'])}[]"
    return schema["$ref"].rpartition("/")[2] if "$ref" in schema else schema["type"].replace("integer", "number")


@pytest.mark.parametrize("form", [json_schema, strict_schema])
def test_each_result_has_exactly_the_fields_types_and_values_of_the_contract(form: Any) -> None:
    models = {}
    for kind in ("planner-result", "implementor-result", "reviewer-result"):
        schema = form(KINDS[kind].model)
        models |= {KINDS[kind].model.__name__: schema, **schema.get("$defs", {})}
    lines = set()
    for name, model in models.items():
        assert (model.get("additionalProperties"), set(model["required"])) == (False, set(model["properties"])), name
        fields = [f"{key}: {in_words_of_the_contract(given)}" for key, given in model["properties"].items()]
        lines.add(f"{name} {{{'; '.join(fields)}}}")
    assert lines == set(RESULTS.strip().splitlines())
