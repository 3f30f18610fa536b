"""A handoff in a file: replaced as a whole, by one writer at a time."""

import base64
import json
import multiprocessing
import os
import re
import signal
import zlib
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.clocks import ManualClock
from support.handoffs import EVERYTHING, by, handoff, patch

from accord.core.clock import SystemClock
from accord.core.documents import read_object
from accord.core.errors import BrokenContract, Stopped, WrongUsage
from accord.files.store import Storage, folder_lock
from accord.github.limits import BODY_CHARS
from accord.handoffs import store
from accord.handoffs.plan import decide_move, decide_patch
from accord.handoffs.store import change_file, read_block, with_block
from accord.text.markers import take_copy
from accord.text.untrusted import visible_text


@pytest.fixture
def path(tmp_path: Path) -> Path:
    place = tmp_path / "task.json"
    place.write_text(json.dumps(handoff()), encoding="utf-8")
    return place


NUMBERS = '[12345678901234567.25, {"version": 1.10}, 1E5, -0.0, 12345678901234567890]'


def written(path: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return found


def append(path: Path, name: str) -> None:
    def decide(task: dict[str, Any]) -> Any:
        known = task["metadata"].get("x-seen", [])
        return decide_patch(task, patch(**{"x-seen": [*known, name]}), by("developer"))

    change_file(path, decide, SystemClock(), writes=True)


def test_a_handoff_behind_a_link_is_written_there_and_one_outside_is_refused(path: Path, tmp_path: Path) -> None:
    (tmp_path / "store").mkdir()
    (tmp_path / "store/task.json").write_bytes(path.read_bytes())
    path.unlink()
    path.symlink_to("store/task.json")
    append(path, "one")
    assert (path.is_symlink(), written(tmp_path / "store/task.json")["metadata"]["x-seen"]) == (True, ["one"])
    (tmp_path / "away").mkdir()
    (tmp_path / "away/task.json").symlink_to("../task.json")
    with pytest.raises(BrokenContract, match="leads out of"):
        append(tmp_path / "away/task.json", "two")
    (tmp_path / ".git").mkdir()
    append(tmp_path / "away/task.json", "two")
    assert written(path)["metadata"]["x-seen"] == ["one", "two"]


def test_the_decision_is_written_where_asked_to_and_other_keys_stay(path: Path) -> None:
    task = json.dumps({**handoff(), "x-board": {"column": 3}, "ünïcode": "ß"})
    path.write_text(task.replace('"column": 3', f'"column": 3, "numbers": {NUMBERS}'), encoding="utf-8")
    before = path.read_bytes()
    decided = change_file(path, lambda task: decide_patch(task, patch(x="1"), by("human")), SystemClock(), writes=False)
    assert decided.task["metadata"]["x"] == "1"
    assert path.read_bytes() == before
    append(path, "one")
    assert written(path)["metadata"]["x-seen"] == ["one"]
    assert written(path)["x-board"] == {"column": 3, "numbers": json.loads(NUMBERS)}
    assert re.sub(r"\s+", "", NUMBERS) in re.sub(r"\s+", "", path.read_text(encoding="utf-8"))
    fields, _ = take_copy(with_block("", read_object(path.read_bytes()).value, "f" * 40))
    assert re.sub(r"\s+", "", NUMBERS) in zlib.decompress(base64.b64decode((fields or {})["data"])).decode()
    assert "ünïcode" in path.read_text(encoding="utf-8")


def test_a_file_that_nothing_changes_in_keeps_its_bytes(path: Path) -> None:
    path.write_text('{"status": "todo",   "metadata": {"canonicalTaskId": "T-00001"}}', encoding="utf-8")
    before = path.read_bytes()
    change_file(path, lambda task: decide_patch(task, {}, by("developer")), SystemClock(), writes=True)
    assert path.read_bytes() == before


def test_a_missing_file_is_named_and_a_wrong_shape_by_its_line(path: Path) -> None:
    with pytest.raises(WrongUsage, match=r"absent\.json cannot be read"):
        append(path.with_name("absent.json"), "one")
    path.write_text('{\n "status": "review",\n "metadata": {\n  "reviewArtifact": []}}', encoding="utf-8")
    with pytest.raises(BrokenContract) as broken:
        append(path, "one")
    assert [(item.path, item.line) for item in broken.value.findings] == [("/metadata/reviewArtifact", 4)]


def test_a_new_task_gets_the_id_after_the_highest_in_its_folder(path: Path) -> None:
    path.write_text('{"title": "New", "status": "backlog"}', encoding="utf-8")
    (path.parent / "other.json").write_text(json.dumps(handoff(canonicalTaskId="T-00041")), encoding="utf-8")
    (path.parent / "list.json").write_text("[1, 2]", encoding="utf-8")
    append(path, "one")
    assert written(path)["metadata"]["canonicalTaskId"] == "T-00042"


@pytest.mark.parametrize(
    "content",
    [
        "",
        "[]",
        "{}",
        '{"tasks": []}',
        '{"metadata": []}',
        '{"status": "nowhere"}',
        '{"a": 1, "a": 2}',
        '{"metadata": {"x-cost": 1e400}}',
        '# A task\n```json\n{"metadata": {}}\n```\n',
    ],
)
def test_a_file_that_is_not_a_handoff_stays_as_it_is(path: Path, content: str) -> None:
    path.write_text(content, encoding="utf-8")
    with pytest.raises(BrokenContract):
        append(path, "one")
    assert path.read_text(encoding="utf-8") == content


def _write_often(path: Path, name: str) -> None:
    for number in range(10):
        append(path, f"{name}{number}")


@pytest.mark.slow
def test_of_several_writers_at_once_no_word_is_lost(path: Path) -> None:
    context = multiprocessing.get_context("fork")
    writers = [context.Process(target=_write_often, args=(path, name)) for name in "abc"]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join(60)
    assert sorted(written(path)["metadata"]["x-seen"]) == sorted(f"{name}{n}" for name in "abc" for n in range(10))


def _write_and_die(path: Path, moment: str) -> None:
    replace = os.replace

    def die(*args: Any, **kwargs: Any) -> None:
        if moment.startswith("after"):
            replace(*args, **kwargs)
        os.kill(os.getpid(), signal.SIGKILL)

    os.replace = die  # type: ignore[assignment]
    append(path, "one")


@pytest.mark.parametrize("moment", ["before the file is put in place", "after the file is put in place"])
def test_a_killed_writer_leaves_the_old_or_new_file_and_the_same_again_ends_the_same(path: Path, moment: str) -> None:
    once = patch(reviewArtifact={"changeSummary": ["One"]})
    process = multiprocessing.get_context("fork").Process(target=_write_and_die, args=(path, moment))
    process.start()
    process.join(60)
    assert process.exitcode == -signal.SIGKILL
    seen = written(path)["metadata"].get("x-seen")
    assert seen == (None if moment.startswith("before") else ["one"])
    for _ in range(2):
        change_file(path, lambda task: decide_patch(task, once, by("reviewer")), SystemClock(), writes=True)
    assert written(path)["metadata"]["reviewArtifact"]["changeSummary"] == ["One"]
    assert list(path.parent.iterdir()) == [path]


def test_a_writer_does_not_wait_for_ever_and_a_reader_not_at_all(path: Path, caplog: pytest.LogCaptureFixture) -> None:
    clock = ManualClock(datetime(2026, 1, 1, tzinfo=UTC))

    def nothing(task: dict[str, Any]) -> Any:
        return decide_patch(task, {}, by("developer"))

    with folder_lock(path.parent, Storage(clock)):
        assert change_file(path, nothing, clock, writes=False).is_ok
        assert caplog.messages == []
        with pytest.raises(Stopped):
            change_file(path, nothing, clock, writes=True)
    (told,) = caplog.messages
    assert "another process is writing" in told


SHA = "0123456789abcdef0123456789abcdef01234567"
OTHER = "f" * 40
bodies = st.lists(
    st.sampled_from(["text", "\n", "\r\n", "```", "<!-- note -->", "-->", "<!--", "<!-- accord:handoff -->", " ", "é"]),
    max_size=8,
).map("".join)


@pytest.mark.slow
@given(body=bodies, value=st.text(max_size=40))
def test_a_body_keeps_every_byte_and_the_block_every_value(body: str, value: str) -> None:
    task = handoff(note=value.encode("utf-8", "ignore").decode())
    whole = with_block(body, task, SHA)
    assert take_copy(whole)[1] == body
    assert read_block(whole) == (SHA, task)
    again = with_block(whole, handoff(note="-->"), OTHER)
    assert take_copy(again)[1] == body
    assert again.count("<!-- accord:handoff commit=") == 1


def test_no_value_ends_the_block_and_no_reader_of_the_page_sees_it() -> None:
    evil = handoff(note="--> <script>alert(1)</script> @everyone fixes #1 <!-- accord:handoff commit=" + OTHER)
    for body in ("Visible", "```\nopen fence", "<details>open"):
        whole = with_block(body, evil, SHA)
        head, _, rest = whole.partition("\n")
        assert head.count("-->") == 1
        assert head.endswith("-->")
        assert rest == body
        assert "script" not in head
        assert "accord" not in visible_text(whole)


def test_a_document_that_does_not_fit_leaves_the_commit_that_holds_it() -> None:
    body = "x" * (BODY_CHARS - 100)
    whole = with_block(body, handoff(), SHA)
    assert len(whole) <= BODY_CHARS
    assert read_block(whole) == (SHA, None)
    assert take_copy(whole)[1] == body


def test_a_damaged_or_too_large_block_holds_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = with_block("", handoff(), SHA)
    packed = base64.b64encode(zlib.compress(json.dumps({"a": "0" * 1000}).encode(), 9)).decode()
    assert read_block(f"<!-- accord:handoff commit={SHA} data={packed} -->") == (SHA, {"a": "0" * 1000})
    monkeypatch.setattr(store, "MAX_BYTES", 1000)
    for body in (whole.replace("data=e", "data=f"), f"<!-- accord:handoff commit={SHA} data={packed} -->"):
        assert read_block(body) == (SHA, None)
    assert read_block("no block") is None
    assert read_block("<!-- accord:handoff commit=short data=x -->") is None


@pytest.mark.slow
def test_a_long_history_fits_into_a_body() -> None:
    task: dict[str, Any] = handoff("planning", **EVERYTHING)
    for number in range(25):
        for target in ("implementing", "review", "awaiting_human", "planning"):
            task = decide_move(task, target, by("human", f"2026-11-02T{number % 24:02}:00:00Z")).task
    assert read_block(with_block("A body", task, SHA)) == (SHA, task)
