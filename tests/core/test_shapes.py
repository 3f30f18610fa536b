"""Values that do not have the shape of their model: each place is named once, and in words of the document."""

from typing import Any, get_args

import pytest
from pydantic import BaseModel
from support.rotation import some

import accord.kinds  # noqa: F401 (fills the table)
from accord.core.errors import BrokenContract
from accord.core.kinds import KINDS
from accord.core.shapes import read_shape
from accord.missions.models import Meta, StatusEvent
from accord.results.planner.structure import PlanSettings
from accord.sessions.models import AgentOutput
from accord.workflows.models import Workflow

WRONG: tuple[Any, ...] = (None, 5, -1, 1.5, float("nan"), 10**30, True, "", "x", [], [5], ["x"], [None], [[]], [{}], {})
WRONG += ({"a": 5}, {"a": "b"}, {"a": []}, ["x", "x"], "2026-13-45T00:00:00Z")
RAW = ("Input ", "valid ", "Value error", "ould be", "unable to", "isoformat", "dict[", "literal[", "function-")


def models_in(part: Any, found: set[type[BaseModel]]) -> set[type[BaseModel]]:
    """Collect the models that an annotation uses."""
    if isinstance(part, type) and issubclass(part, BaseModel) and part not in found:
        found.add(part)
        part.model_rebuild()
        for each in part.model_fields.values():
            models_in(each.annotation, found)
    for each in get_args(part):
        models_in(each, found)
    return found


def findings(model: type[BaseModel], value: Any) -> dict[str, tuple[str, str]]:
    try:
        read_shape(model, value)
    except BrokenContract as broken:
        found = {each.path: (each.message, each.hint) for each in broken.findings}
        return found if len(found) == len(broken.findings) else {"a place that is named twice": ("", "")}
    return {}


@pytest.mark.slow
def test_no_word_of_python_reaches_who_wrote_a_document() -> None:
    """By day, every wrong value meets a third of all keys."""
    models = set[type[BaseModel]]()
    for kind in KINDS.values():
        models_in(kind.model, models)
    for model in models:
        keys = {field.alias or key for key, field in model.model_fields.items()}
        for key, value in ((key, value) for at, key in enumerate(sorted(keys)) for value in some(WRONG[at % 3 :], 3)):
            for path, (message, hint) in findings(model, {key: value}).items():
                first, *below = path.split("/")[1:] or [""]
                assert first in keys | {""}, (model, path)
                known = (step in ("a", "0", "1") or f"`{step}` is missing" in message for step in below)
                assert all(known), (model, path)
                assert not any(word in f"{message} {hint}" for word in RAW), (model, key, value, message)
                assert hint not in ("", "Write another value."), (model, key, value, message)


@pytest.mark.parametrize(
    ("model", "value", "path", "message", "hint"),
    [
        (PlanSettings, {"plan": {"parent": "requests"}}, "/plan/parent", "an integer or 'request'", "Did you mean"),
        (
            PlanSettings,
            {"plan": {"parent": []}},
            "/plan/parent",
            "an integer or 'request'; found an array",
            "Write an ",
        ),
        (AgentOutput, {"gates": {"security_concerns": [5]}}, "/gates/security_concerns/0", "a string or an object", ""),
        (Workflow, {"permissions": {"contents": 5}}, "/permissions/contents", "must be a string; found 5", ""),
        (
            Workflow,
            {"permissions": 5},
            "/permissions",
            "an object or a string; found 5",
            "Write an object or a string.",
        ),
        (Workflow, {1: "x"}, "/1", "The key `1` must be a string; found 1.", "Put it in quotes."),
        (Workflow, {"jobs": {2: {}}}, "/jobs/2", "The key `2` must be a string; found 2.", "Put it in quotes."),
        (StatusEvent, {"at": "yesterday"}, "/at", "The value is not a time", "Write one such as 2026-"),
        (Meta, {"mission_type": {}}, "/mission_type", "`mission_type` must be a string; found an object", "a string"),
    ],
)
def test_a_union_and_a_wrong_type_are_named_in_words(
    model: type[BaseModel], value: Any, path: str, message: str, hint: str
) -> None:
    found = findings(model, value)
    assert message in found[path][0]
    assert hint in found[path][1]
