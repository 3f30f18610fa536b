"""Our two answers and the contract's two schemas mean the same: one corpus, every instance judged alike."""

import json
import random
from functools import cache
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest
from pydantic import BaseModel

from accord.core.errors import BrokenContract
from accord.core.schemas import json_schema
from accord.core.shapes import read_shape
from accord.missions.models import SHARED_WORKSPACE, NextQueryResponse, StaleStatus

CONTRACTS = Path(__file__).parents[1] / "data" / "mission-contracts"
MODELS: dict[str, type[BaseModel]] = {"next-query-response": NextQueryResponse, "stale-status": StaleStatus}
MISSING = object()

DATES = ["2026-05-04T12:00:00Z", "2026-05-04t12:00:00.123456789z", "2026-05-04T12:00:00+02:00", "2016-12-31T23:59:60Z"]
NO_DATES = ["", "yesterday", "12:00:00Z", "2026-05-04", "2026-05-04T12:00:00", "2026-05-04 12:00:00"]
NO_DATES += ["2026-02-30T12:00:00Z", "2016-12-31T22:59:60Z"]
ODD: list[Any] = ["", "x", "not_started", "query", None, True, False, 0, 1, 1.5, -3, [], ["a"], ["a", 1], [None], {}]
ODD += [{"a": 1}, *DATES, *NO_DATES, SHARED_WORKSPACE, "fresh", "stale", "not_applicable", "😀", " ", MISSING]

QUERY = {"kind": "query", "agent": None, "mission_slug": "m", "mission": "software-dev", "is_query": True}
MORE = {"preview_step": "plan", "guard_failures": [], "progress": {"total_wps": 1}, "origin": {}, "options": ["a"]}
RESPONSES: list[dict[str, Any]] = [
    {**QUERY, "timestamp": DATES[0], "mission_state": state, **more}
    for state in ("not_started", "plan")
    for more in ({}, MORE)
]
STALE: list[dict[str, Any]] = [
    {"status": status, "reason": reason, "minutes_since_commit": minutes, "last_commit_time": time}
    for status in ("fresh", "stale", "not_applicable")
    for reason in (None, SHARED_WORKSPACE)
    for minutes, time in ((None, None), (2.5, DATES[0]))
]
SEEDS = {"next-query-response": RESPONSES, "stale-status": STALE}


@cache
def contract(name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((CONTRACTS / f"{name}.schema.json").read_text(encoding="utf-8"))
    return found


@cache
def corpus(name: str) -> list[dict[str, Any]]:
    """Every seed, every seed with one value changed, added or left out, and a thousand with two."""
    keys = [*contract(name)["properties"], "unknown"]
    changes = [(key, value) for key in keys for value in ODD]
    found = list(SEEDS[name])
    found += [changed(seed, change) for seed in SEEDS[name] for change in changes]
    chance = random.Random(78)
    for _ in range(1000):
        found.append(changed(changed(chance.choice(SEEDS[name]), chance.choice(changes)), chance.choice(changes)))
    return found


def changed(document: dict[str, Any], change: tuple[str, Any]) -> dict[str, Any]:
    key, value = change
    rest = {name: kept for name, kept in document.items() if name != key}
    return rest if value is MISSING else {**rest, key: value}


def fits(model: type[BaseModel], document: dict[str, Any]) -> bool:
    try:
        read_shape(model, document)
    except BrokenContract:
        return False
    return True


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("checks_formats", [True, False])
def test_our_schema_accepts_exactly_what_the_schema_of_the_contract_accepts(name: str, checks_formats: bool) -> None:
    ours = jsonschema_rs.Draft202012Validator(json_schema(MODELS[name]), validate_formats=checks_formats)
    theirs = jsonschema_rs.Draft202012Validator(contract(name), validate_formats=checks_formats)
    verdicts = [(ours.is_valid(document), theirs.is_valid(document), document) for document in corpus(name)]
    assert [document for our, their, document in verdicts if our != their] == []
    assert sum(their for _, their, _ in verdicts) > 100
    assert sum(not their for _, their, _ in verdicts) > 100


@pytest.mark.slow
@pytest.mark.parametrize("name", MODELS)
def test_our_answers_and_checks_agree_with_the_schema_of_the_contract(name: str) -> None:
    theirs = jsonschema_rs.Draft202012Validator(contract(name), validate_formats=True)
    wrong = [document for document in corpus(name) if fits(MODELS[name], document) != theirs.is_valid(document)]
    assert wrong == []


@pytest.mark.parametrize("name", MODELS)
def test_we_print_every_key_of_the_contract_and_no_other(name: str) -> None:
    assert list(MODELS[name].model_fields) == list(contract(name)["properties"])
