"""Kinds name what exists and import no other; a document that does not fit its shape is shown where it does not."""

import copy
import json
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import jsonschema_rs
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.plans import plan, refinement, task, update

from accord.core.errors import BrokenContract
from accord.core.kinds import KINDS, Kind, check_document, contract_of
from accord.core.schemas import json_schema, strict_schema
from accord.core.shapes import read_shape
from accord.results.models import PlannerResult


@pytest.mark.parametrize("kind", KINDS.values(), ids=list(KINDS))
def test_every_kind_names_a_model_and_rules_that_exist(kind: Kind) -> None:
    assert kind.model.model_json_schema()
    rules = kind.load().rules
    assert rules is None or callable(rules)


@pytest.mark.parametrize("text", ["starts: {}", "approvals: approve", "branch_prefix: bots", "branch_prefix: 7"])
def test_each_key_of_the_configuration_alone_shows_its_kind(text: str) -> None:
    kind, found = check_document(f"{text}\n".encode(), None, "config.yml")
    assert (kind, bool(found)) == ("accord-config", text.endswith("7"))


def test_a_document_in_a_string_of_another_object_is_named_by_its_key() -> None:
    text = f"Here it is:\n```json\n{json.dumps(plan())}\n```"
    envelope = {"type": "result", "subtype": "success", "result": text}
    for kind in (None, "planner-result"):
        _, (found,) = check_document(json.dumps(envelope).encode(), kind)
        assert (found.path, found.hint) == ("/result", "Write the inner object alone.")


CHECK = """
import sys
from accord.core.kinds import check_document
check_document(sys.argv[1].encode(), None)
print(*sys.modules)
"""
PLAN = {"role": "planner", "create": [], "close": [], "update": []}


@pytest.mark.slow
def test_checking_a_plan_imports_no_other_contract_and_no_client() -> None:
    run = subprocess.run([sys.executable, "-c", CHECK, json.dumps(PLAN)], capture_output=True, text=True, check=True)
    modules = set(run.stdout.split())
    others = ("gha", "git", "runner", "workflows", "loops", "sessions", "missions", "handoffs", "kit", "github.client")
    assert modules.isdisjoint(f"accord.{name}" for name in (*others, "results.implementor", "results.reviewer"))
    assert modules.isdisjoint(("github", "requests"))
    assert "accord.results.planner.rules" in modules


def broken() -> Iterator[tuple[Any, str, str]]:
    """Each way to leave the shape, with the pointer and a word of the finding."""
    yield {"role": "planner"}, "/create", "missing"
    yield {**plan(), "extra": 1}, "/extra", "not part of the contract"
    yield {**plan(), "x/y": 1}, "/x~1y", "not part of the contract"
    yield {**plan(), "close": [7]}, "/close/0", "found 7"
    yield {**plan(), "close": None}, "/close", "found null"
    yield {**plan(), "close": True}, "/close", "found true"
    yield {**plan(), "create": {}}, "/create", "found an object"
    yield {**plan(), "create": [[]]}, "/create/0", "Entry 1 of `create` must be an object; found an array"
    yield {**plan(), "role": "boss"}, "/role", "found 'boss'"
    yield plan({**task("a"), "labels": "x"}), "/create/0/labels", "found 'x'"
    yield plan({**task("a"), "temp_id": "b"}), "/create/0/temp_id", "not part of the contract"
    yield plan({**task("a"), "title": ["x"]}), "/create/0/title", "found an array"


@pytest.mark.parametrize(("value", "path", "word"), list(broken()))
def test_a_shape_that_does_not_fit_is_shown_where_it_does_not(value: Any, path: str, word: str) -> None:
    with pytest.raises(BrokenContract) as caught:
        read_shape(PlannerResult, value)
    found = [finding for finding in caught.value.findings if finding.path == path]
    assert [finding.code for finding in found] == ["schema"]
    assert word in found[0].message


def test_a_megabyte_in_the_wrong_place_is_not_shown_whole() -> None:
    with pytest.raises(BrokenContract) as caught:
        read_shape(PlannerResult, {**plan(), "role": "x" * 1_000_000, "y" * 1_000_000: 1})
    assert all(len(finding.message) < 300 for finding in caught.value.findings)


FULL = plan(task("a"), refinement("b", "a"), close=["3"], update=[update(4), update(5, body="x", labels=["y"])])


VALIDATORS = [jsonschema_rs.Draft202012Validator(form(PlannerResult)) for form in (json_schema, strict_schema)]


def test_every_valid_result_fits_both_schemas() -> None:
    for validator in VALIDATORS:
        assert validator.is_valid(FULL)
        assert validator.is_valid(plan())
        assert not validator.is_valid({**FULL, "more": 1})
        assert not validator.is_valid({"role": "planner"})


@pytest.mark.slow
@settings(max_examples=40)
@given(
    st.sampled_from(["role", "create", "close", "update"]), st.none() | st.integers() | st.text() | st.lists(st.text())
)
def test_schema_and_reader_agree_on_what_fits(key: str, value: Any) -> None:
    document = {**copy.deepcopy(FULL), key: value}
    try:
        read_shape(PlannerResult, document)
        fits = True
    except BrokenContract:
        fits = False
    assert [validator.is_valid(document) for validator in VALIDATORS] == [fits] * 2


@pytest.mark.parametrize("name", sorted(KINDS))
def test_a_schema_names_the_contract_with_its_version(name: str) -> None:
    comment = json_schema(KINDS[name].model, name).get("$comment", "")
    contract = KINDS[name].contract
    assert (comment == "") == (contract is None)
    assert (
        contract is None or comment == f"Contract: {contract.name}{f' {contract.version}' if contract.version else ''}"
    )


def test_kinds_of_results_and_runners_have_a_versioned_contract() -> None:
    versions = {name: KINDS[name].contract for name in ("planner-result", "runner-workflow", "handoff")}
    assert [contract and contract.version for contract in versions.values()] == ["1.0.0", "1.0", "2026-02-18"]
    assert contract_of("planner-result") == {"contract": {"name": "workflow-contracts", "version": "1.0.0"}}
    assert contract_of("keepalive-facts") == contract_of(None) == {}
