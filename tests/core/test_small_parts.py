"""Clock, files, findings, shapes, schemas: the small parts that every package uses."""

from __future__ import annotations

import copy
import json
import os
import stat
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jsonschema_rs
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.plans import plan, refinement, task, update

from accord.core.clock import ManualClock, SystemClock, timestamp
from accord.core.errors import AccordError, BrokenContract, Refused, Stopped, WrongUsage
from accord.core.findings import Finding, has_errors, pointer, warning, with_lines
from accord.core.kinds import read_shape
from accord.core.schemas import json_schema, strict_schema
from accord.files.store import can_be_written, write_whole
from accord.results.models import PlannerResult

if TYPE_CHECKING:
    from collections.abc import Iterator


def test_timestamps_are_utc_in_whole_seconds() -> None:
    moment = datetime(2026, 1, 2, 3, 4, 5, 999_999, tzinfo=timezone(timedelta(hours=2)))
    assert timestamp(moment) == "2026-01-02T01:04:05Z"


def test_a_manual_clock_moves_only_while_a_caller_waits() -> None:
    clock = ManualClock(datetime(2026, 1, 1, tzinfo=UTC))
    assert clock.now() == clock.now()
    clock.sleep(90.5)
    assert clock.now() == datetime(2026, 1, 1, 0, 1, 30, 500_000, tzinfo=UTC)


def test_the_machines_clock_knows_its_time_zone() -> None:
    clock = SystemClock()
    before = clock.now()
    clock.sleep(0.01)
    assert before.utcoffset() == timedelta()
    assert clock.now() - before >= timedelta(milliseconds=9)


@pytest.mark.parametrize(("kind", "code"), [(BrokenContract, 1), (WrongUsage, 2), (Stopped, 3), (Refused, 4)])
def test_each_error_knows_its_exit_code_and_its_hint(kind: type[AccordError], code: int) -> None:
    error = kind("It broke.", hint="Fix it.")
    assert (error.exit_code, str(error)) == (code, "It broke. Fix it.")


def test_a_hint_begins_a_new_sentence_after_any_message() -> None:
    said = Refused("Git refused the push: Permission denied, fatal: 403", hint="Give the job contents: write.")
    assert str(said) == "Git refused the push: Permission denied, fatal: 403. Give the job contents: write."


def test_a_file_is_replaced_whole_and_nothing_is_left_beside_it(tmp_path: Path) -> None:
    file = tmp_path / "deep" / "er" / "file.json"
    write_whole(file, "one\n")
    write_whole(file, "zwei é\n")
    assert file.read_bytes() == "zwei é\n".encode()
    assert list(file.parent.iterdir()) == [file]


def test_a_write_that_fails_leaves_the_old_file_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "file.json"
    write_whole(file, "old")
    with pytest.raises(UnicodeEncodeError):
        write_whole(file, "new \ud800")
    monkeypatch.setattr(os, "fsync", lambda _: (_ for _ in ()).throw(OSError(28, "No space left on device")))
    with pytest.raises(OSError, match="No space"):
        write_whole(file, "new")
    assert file.read_text() == "old"
    assert list(tmp_path.iterdir()) == [file]


def test_a_long_name_leaves_space_for_the_file_beside_it(tmp_path: Path) -> None:
    file = tmp_path / ("n" * 250)
    write_whole(file, "text")
    assert file.read_text() == "text"


def test_another_user_of_the_machine_can_read_a_receipt_as_far_as_the_umask_lets_him(tmp_path: Path) -> None:
    new, old = tmp_path / "new", tmp_path / "old"
    old.write_text("old")
    old.chmod(0o640)
    before = os.umask(0o022)
    try:
        write_whole(new, "text")
        write_whole(old, "text")
    finally:
        os.umask(before)
    assert stat.S_IMODE(new.stat().st_mode) == 0o644
    assert stat.S_IMODE(old.stat().st_mode) == 0o640


@pytest.mark.parametrize(
    ("steps", "path"),
    [((), ""), (("a", 0), "/a/0"), (("a/b",), "/a~1b"), (("~",), "/~0"), (("~1",), "/~01"), (("",), "/")],
)
def test_a_pointer_is_escaped_as_rfc_6901_asks(steps: tuple[str | int, ...], path: str) -> None:
    assert pointer(*steps) == path


@given(st.lists(st.text(), max_size=4))
def test_a_pointer_can_be_read_back(steps: list[str]) -> None:
    parts = pointer(*steps).split("/")[1:]
    assert [part.replace("~1", "/").replace("~0", "~") for part in parts] == steps


def test_a_finding_gets_the_line_of_what_is_nearest_above_it() -> None:
    lines = {"": 1, "/a": 2, "/a/0": 3}
    found = [Finding("c", "m", path) for path in ("/a/0/missing/too", "/a/7", "/b", "", "/a/0")]
    found.append(Finding("c", "m", "/a", line=99))
    placed = with_lines(found, lines)
    assert [(finding.path, finding.line) for finding in placed] == [
        ("/b", 1), ("", 1), ("/a/7", 2), ("/a/0/missing/too", 3), ("/a/0", 3), ("/a", 99),
    ]  # fmt: skip
    assert with_lines([Finding("c", "m", "/x")], {})[0].line is None


def test_a_warning_stops_nothing_and_an_unknown_line_is_omitted() -> None:
    found = warning("c", "m", "/a")
    assert not has_errors([found])
    assert has_errors([found, Finding("c", "m")])
    assert found.as_json() == {"code": "c", "message": "m", "path": "/a", "severity": "warning"}


def broken() -> Iterator[tuple[Any, str, str]]:
    """Each way to leave the shape, with the pointer and a word of the finding."""
    yield {"role": "planner"}, "/create", "missing"
    yield {**plan(), "extra": 1}, "/extra", "not part of the contract"
    yield {**plan(), "x/y": 1}, "/x~1y", "not part of the contract"
    yield {**plan(), "close": [7]}, "/close/0", "found 7"
    yield {**plan(), "close": None}, "/close", "found null"
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


def nodes(schema: Any) -> Iterator[dict[str, Any]]:
    if isinstance(schema, dict):
        yield schema
        for child in schema.values():
            yield from nodes(child)
    elif isinstance(schema, list):
        for child in schema:
            yield from nodes(child)


FULL = plan(task("a"), refinement("b", "a"), close=["3"], update=[update(4), update(5, body="x", labels=["y"])])


def test_every_valid_result_fits_both_schemas() -> None:
    for schema in (json_schema(PlannerResult), strict_schema(PlannerResult)):
        validator = jsonschema_rs.Draft202012Validator(schema)
        assert validator.is_valid(FULL)
        assert validator.is_valid(plan())
        assert not validator.is_valid({**FULL, "more": 1})
        assert not validator.is_valid({"role": "planner"})


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
    assert jsonschema_rs.Draft202012Validator(json_schema(PlannerResult)).is_valid(document) is fits
    assert jsonschema_rs.Draft202012Validator(strict_schema(PlannerResult)).is_valid(document) is fits


def test_the_strict_schema_is_one_that_every_provider_takes() -> None:
    schema = strict_schema(PlannerResult)
    objects = [node for node in nodes(schema) if node.get("type") == "object"]
    assert len(objects) == 3
    for node in objects:
        assert node["additionalProperties"] is False
        assert node["required"] == list(node["properties"])
    text = json.dumps(schema)
    assert not any(f'"{word}":' in text for word in ("default", "const", "pattern", "$schema", "oneOf", "format"))


@pytest.mark.parametrize("name", ["new.json", "old.json", "missing/folders/new.json"])
def test_a_check_for_write_access_leaves_no_file(tmp_path: Path, name: str) -> None:
    (tmp_path / "old.json").write_text("old")
    assert can_be_written(tmp_path / name)
    assert [path.name for path in tmp_path.iterdir()] == ["old.json"]
    assert (tmp_path / "old.json").read_text() == "old"


@pytest.mark.parametrize(
    "name",
    ["folder", "file/new.json", "file/missing/new.json", "/proc/accord/new.json", "/dev/null/new.json", f"{'x' * 300}"],
)
def test_a_file_that_cannot_be_written_is_found_before_it_has_to_be(tmp_path: Path, name: str) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "file").write_text("in the way")
    assert not can_be_written(tmp_path / name)
    assert not can_be_written(Path())
    assert sorted(path.name for path in tmp_path.iterdir()) == ["file", "folder"]


def test_a_pipe_or_device_is_not_replaced_by_a_file(tmp_path: Path) -> None:
    """As root, ``--receipt /dev/stdout`` would take that from everybody on the machine."""
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "stdout").symlink_to("pipe")
    assert not can_be_written(tmp_path / "pipe")
    assert not can_be_written(tmp_path / "stdout")
