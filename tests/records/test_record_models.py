"""Records: their names are safe, their ids stable, and a later version of a record adds to the earlier one."""

import json
from datetime import UTC, datetime
from typing import Any

import pytest
from pydantic import ValidationError
from support.records import record

from accord.core.kinds import check_document
from accord.records.chain import parse_record
from accord.records.models import PublicRecord, is_weaker, joined_runs, merge_records, name_of, record_id


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("gpt-5", "gpt-5"),
        ("openai/gpt-5:free", "openai/gpt-5:free"),
        ("dependabot[bot]", "dependabot[bot]"),
        ("@octocat fixes #1", "-octocat-fixes-1"),
        ("<!-- accord -->\n", "-accord-"),
        ("é" * 3, "-"),
        ("x" * 300, "x" * 100),
    ],
)
def test_names_hold_nothing_that_a_page_interprets(text: str, name: str) -> None:
    assert name_of(text) == name


def test_every_name_in_a_record_is_cleaned() -> None:
    hostile = record(agent="@octocat", model="fixes #1", trigger={"cause": "hand", "by": "<b>"})
    assert not set("@#<") & set(hostile.as_json())


def test_a_text_that_is_too_long_is_refused() -> None:
    with pytest.raises(ValidationError):
        record(agent="x" * 101)


def test_the_same_parts_give_the_same_id_in_any_case_of_the_repository() -> None:
    assert record_id("Octo/Code", "run", 1) == record_id("octo/code", "run", 1)
    assert record_id("octo/code", "run", 1) != record_id("octo/code", "run", 2)


def test_a_record_is_a_document_of_its_kind() -> None:
    text = record().as_json()
    assert check_document(text.encode(), None) == ("run-record", [])
    assert parse_record(text) == record()


def test_keys_of_later_versions_are_ignored() -> None:
    value = json.loads(record().as_json())
    value["carbon"], value["result"]["mood"] = 1, "fine"
    assert parse_record(json.dumps(value)) == record()
    assert parse_record(json.dumps({**value, "version": 2})) is None


def test_timestamps_have_whole_seconds() -> None:
    at = datetime(2026, 1, 1, 0, 0, 0, 999_999, tzinfo=UTC)
    assert record(ended_at=at).ended_at == datetime(2026, 1, 1, tzinfo=UTC)


def test_the_same_version_adds_nothing_though_it_was_made_later() -> None:
    first, again = record(), record(hours=1)
    assert merge_records(first, again) is first


def test_a_later_version_fills_in_what_the_earlier_one_left_open() -> None:
    first = record(model="", cost_usd=None, inputs=({"name": "prompt.md", "sha256": "0" * 64},))
    later = record(result={"disposition": "failure"}, links={"pull": 7})
    version = merge_records(first, later)
    assert version.inputs == first.inputs
    assert (version.model, version.cost_usd) == ("gpt-5", 0.5)
    assert version.result.disposition == "failure"
    assert (version.links.issue, version.links.pull) == (1, 7)


PLAIN = {"kind": "run", "result": {"disposition": "no-change"}}


@pytest.mark.parametrize(("first", "second"), [({}, PLAIN), (PLAIN, {})])
def test_a_plain_run_does_not_hide_what_a_loop_or_a_start_says(first: dict[str, Any], second: dict[str, Any]) -> None:
    version = merge_records(record(**first), record(**second))
    assert (version.kind, version.result.disposition) == ("implement", "success")


def test_a_plain_run_is_part_of_the_turn_in_its_workflow_run() -> None:
    inputs = ({"name": "prompt.md", "sha256": "0" * 64},)
    part = record(2, kind="run", links={"workflow_run": 501}, inputs=inputs)
    turn = record(1, kind="verify", links={"workflow_run": 501, "pull": 7})
    same = part.model_copy(update={"links": turn.links})
    for records in ([part, turn], [turn, part], [turn, same]):
        (found,) = joined_runs(records)
        assert (found.id, found.kind, found.inputs) == (turn.id, "verify", part.inputs)
    other = record(3, kind="run", links={"workflow_run": 502})
    named = record(4, kind="run", links={"workflow_run": 501, "pull": 8})
    applied = record(5, kind="apply", links={"workflow_run": 502})
    assert joined_runs([turn, other, named, applied]) == [turn, other, named, applied]


@pytest.mark.parametrize(
    ("new", "old", "weaker"),
    [
        ("unchanged", "applied", True), ("applied", "stopped", False), ("stopped", "applied", False),
    ],
)  # fmt: skip
def test_an_apply_that_found_all_done_does_not_hide_the_one_that_did_it(new: str, old: str, weaker: bool) -> None:
    def applied(outcome: str) -> PublicRecord:
        disposition = "failure" if outcome == "stopped" else "no-change" if outcome == "unchanged" else "success"
        return record(kind="apply", result={"disposition": disposition, "outcome": outcome})

    assert is_weaker(applied(new), applied(old)) is weaker
