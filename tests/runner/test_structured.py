"""A structured result counts only if it matches its schema."""

from __future__ import annotations

import json
from typing import Any

import pytest

from accord.core.errors import WrongUsage
from accord.runner.prompt import structured_result, validator

SCHEMA = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"], "additionalProperties": False}


@pytest.mark.parametrize(
    ("value", "message", "text"),
    [
        ({"n": 1}, "", '{"n": 1}'),
        ({"n": 1}, '{"n": 2}', '{"n": 1}'),
        (None, '{"n": 2}', '{"n": 2}'),
        (None, 'Here it is:\n```json\n{"n": 3}\n```', '{"n": 3}'),
    ],
)
def test_the_result_of_the_cli_counts_before_the_final_message(value: Any, message: str, text: str) -> None:
    assert structured_result(SCHEMA, value, message) == (json.loads(text), ())


@pytest.mark.parametrize(
    ("value", "message", "reason"),
    [
        ({"n": "one"}, "", "at /n, "),
        ({}, "", '"n"'),
        (None, "I am done.", "the final message has no JSON"),
        (None, '{"n": 1} {"n": 2}', "the final message has no JSON"),
        (None, "[1]", "object"),
    ],
)
def test_an_answer_that_does_not_match_is_not_a_result_and_says_why(value: Any, message: str, reason: str) -> None:
    result, problems = structured_result(SCHEMA, value, message)
    assert result is None
    assert reason in problems[0]


def test_a_schema_loads_nothing_from_elsewhere() -> None:
    with pytest.raises(WrongUsage, match=r"not loaded|present"):
        validator({"$ref": "http://127.0.0.1:9/schema.json"})


def test_the_problems_of_a_bad_result_are_bounded() -> None:
    _, problems = structured_result({"items": {"type": "integer"}}, ["x" * 10_000] * 1000, "")
    assert len(problems) <= 10
    assert all(len(problem) <= 200 for problem in problems)
