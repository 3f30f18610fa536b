"""A result is checked by its schema or by all rules of its kind; keys that accord sets are not asked of an agent."""

import json
from typing import Any

import pytest
from support.implementations import BLOCKED, ended
from support.sessions import agent_output

from accord.core.errors import WrongUsage
from accord.runner.contract import ContractResult, check_result, validator

SCHEMA = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"], "additionalProperties": False}


@pytest.mark.parametrize(
    ("value", "message", "text"),
    [
        ({"n": 1}, "", '{"n": 1}'), ({"n": 1}, '{"n": 2}', '{"n": 1}'), (None, '{"n": 2}', '{"n": 2}'),
        (None, 'Here it is:\n```json\n{"n": 3}\n```', '{"n": 3}'),
    ],
)  # fmt: skip
def test_the_result_of_the_cli_counts_before_the_final_message(value: Any, message: str, text: str) -> None:
    assert check_result(SCHEMA, "", value, message) == ContractResult(json.loads(text), [])


@pytest.mark.parametrize(
    ("value", "message", "reason"),
    [
        ({"n": "one"}, "", "at /n, "), ({}, "", '"n"'), (None, "I am done.", "No complete JSON object"),
        (None, '{"n": 1} {"n": 2}', "Found 2 JSON objects"), (None, "[1]", "object"),
    ],
)  # fmt: skip
def test_an_answer_that_does_not_match_is_not_a_result_and_says_why(value: Any, message: str, reason: str) -> None:
    checked = check_result(SCHEMA, "", value, message)
    assert checked.value is None
    assert reason in checked.warnings[0]


def test_a_result_in_a_fence_may_have_a_decimal_number() -> None:
    schema = {"type": "object", "properties": {"score": {"type": "number"}}, "required": ["score"]}
    checked = check_result(schema, "", None, 'Here it is:\n```json\n{"score": 0.80}\n```')
    assert (checked.value, checked.warnings) == ({"score": 0.8}, ())


UNREADABLE = {
    "deep": (SCHEMA, "[" * 900 + "]" * 900),
    "half as deep": ({}, "[" * 450 + "]" * 450),
    "half a character": (SCHEMA, '["\\ud83d"]'),
}


@pytest.mark.parametrize(("schema", "message"), UNREADABLE.values(), ids=UNREADABLE)
def test_a_result_that_the_checker_cannot_read_is_broken_and_not_an_error_of_accord(schema: Any, message: str) -> None:
    checked = check_result(schema, "", None, message)
    assert (checked.is_broken, checked.value) == (True, None)
    assert "cannot be checked" in checked.warnings[0]


def test_a_record_that_names_an_unknown_kind_is_wrong_usage() -> None:
    with pytest.raises(WrongUsage, match="planner-resul"):
        check_result({}, "planner-resul", {}, "")


def test_a_schema_loads_nothing_from_elsewhere() -> None:
    with pytest.raises(WrongUsage, match=r"not loaded|present"):
        validator({"$ref": "http://127.0.0.1:9/schema.json"})


def test_the_problems_of_a_bad_result_are_bounded() -> None:
    checked = check_result({"items": {"type": "integer"}}, "", ["x" * 10_000] * 1000, "")
    assert (len(checked.findings), len(checked.warnings)) == (50, 11)
    assert all(len(finding.message) <= 300 for finding in checked.findings)


COMPLETED = {"role": "implementor", "outcome": "completed", "summary": "Did it."}


@pytest.mark.parametrize("patch", [{}, {"patch": None}, {"patch": 5}, {"patch": "diff"}])
def test_the_patch_of_an_implementor_is_not_asked_of_the_agent(patch: dict[str, Any]) -> None:
    contract: tuple[dict[str, Any], str] = ({}, "implementor-result")
    given = patch.get("patch")
    expected = {**COMPLETED, "patch": given if isinstance(given, str) else None}
    assert check_result(*contract, {**COMPLETED, **patch}, "").value == expected
    assert check_result(*contract, None, json.dumps({**ended("blocked", BLOCKED), **patch})).findings == []


@pytest.mark.parametrize(
    ("key", "value", "code"), [("close", ["x"], "unknown-reference"), ("close", 5, "schema"), ("more", 1, "schema")]
)
def test_a_result_that_breaks_a_rule_of_its_kind_is_not_a_result(key: str, value: Any, code: str) -> None:
    document = {"role": "planner", "create": [], "close": [], "update": []}
    assert check_result({}, "planner-result", document, "").value == document
    checked = check_result({}, "planner-result", {**document, key: value}, "")
    assert (checked.value, checked.is_broken, [finding.code for finding in checked.findings]) == (None, True, [code])


def test_text_around_a_result_is_a_fault_only_where_the_contract_forbids_it() -> None:
    for kind, document, fixes in (
        ("agent-output", agent_output(), ["Removed the text around the JSON object."]),
        ("implementor-result", {**COMPLETED, "patch": None}, []),
    ):
        checked = check_result({}, kind, None, f"Here:\n```json\n{json.dumps(document)}\n```\n")
        assert (checked.value, [fix.text for fix in checked.fixes]) == (document, fixes)


@pytest.mark.parametrize(
    ("message", "code"),
    [
        ("I am done.", "not-json"), ('{"role": "planner", "role": "planner"}', "duplicate-key"),
        ('{"role": "planner"} {"role": "planner"}', "several-objects"), ('{"role": "reviewer"}', "schema"),
        ("[1]", "not-json"),
    ],
)  # fmt: skip
def test_an_answer_without_a_document_of_the_kind_is_a_finding(message: str, code: str) -> None:
    checked = check_result({}, "planner-result", None, message)
    assert (checked.value, checked.findings[0].code) == (None, code)
