"""Runs that end badly: results that contradict themselves, background tasks, and transcripts of another form."""

import json
from typing import Any

import pytest
from support.runs import Reader, as_lines

from accord.runner.classify import contract_exit_code
from accord.runner.transcripts.read import codec_of, recognise

INIT = {"type": "system", "subtype": "init", "model": "m", "session_id": "1", "tools": ["Bash"]}
SAID = {"type": "assistant", "message": {"model": "m", "content": [{"type": "text", "text": "On it."}]}}
RESULT = {"type": "result", "subtype": "success", "is_error": False, "result": "All done.", "usage": {}}
EVENTS = [INIT, SAID, RESULT]
THREAD = [{"type": "thread.started", "thread_id": "1"}, {"type": "turn.completed", "usage": {}}]
DENIAL = {"permission_denials": [{"tool_name": "Write"}]}


def background(subtype: str, number: str = "b1", **more: Any) -> dict[str, Any]:
    return {"type": "system", "subtype": subtype, "task_id": number, **more}


def started(number: str = "b1", **more: Any) -> dict[str, Any]:
    return background("task_started", number, **{"description": f"Task {number}", "is_backgrounded": True, **more})


BROKEN: dict[str, Any] = {"subtype": "error_during_execution", "is_error": True, "result": ""}


def stops(tool: str, **given: str) -> dict[str, Any]:
    return {
        "type": "assistant",
        "message": {"content": [{"type": "tool_use", "id": "u", "name": tool, "input": given}]},
    }


@pytest.mark.parametrize(
    ("result", "exit_code", "rule"),
    [
        ({"subtype": "error_max_turns"}, 0, "error_max_turns"),
        ({"subtype": "error_max_budget_usd"}, 0, "error_max_budget_usd"),
        ({"subtype": "error_during_execution"}, 0, "error_during_execution"),
        (BROKEN | {"errors": ["TypeError: e.map is not a function"]}, 1, "unknown-error"),
        (BROKEN | {"errors": ["AbortError: stopped"]}, 1, "error_during_execution"),
        ({"subtype": "error_of_a_later_version"}, 0, "unknown-error"),
        ({"subtype": "", "result": "x"}, 0, ""),
        ({"is_error": True, "result": "I may not write.", **DENIAL}, 0, "tools-denied"),
        ({"is_error": True, "result": "API Error: 429 slow down", **DENIAL}, 1, "http-429"),
        ({"is_error": True, "result": "oops", "api_error_status": 500}, 0, "http-500"),
        (DENIAL, 0, ""),
        ({"result": ""}, 0, ""),
        ({}, 1, "no-evidence"),
        ({}, 137, "exit-137"),
    ],
)
def test_a_result_is_a_success_only_if_all_its_fields_and_the_process_say_so(
    reader: Reader, result: dict[str, Any], exit_code: int, rule: str
) -> None:
    stdout = as_lines(INIT, SAID, {**RESULT, **result})
    found = reader.classify("claude", stdout, exit_code=exit_code)
    assert (found.evidence.rule if found else "") == rule
    assert bool(contract_exit_code(reader.evidence("claude", stdout, exit_code=exit_code))) == bool(rule)


def test_a_success_with_another_exit_code_names_both(reader: Reader) -> None:
    found = reader.failure("claude", as_lines(*EVENTS), exit_code=1)
    assert "its transcript reports success, but it ended with exit code 1" in found.summary
    assert reader.failure("claude", as_lines(*EVENTS), exit_code=1, stderr=b"ENOSPC\n").category == "resource"


LATE = {"type": "error", "message": "stream disconnected before completion: closed"}
TURNS = {"type": "error", "severity": "error", "message": "Maximum session turns exceeded"}
GEMINI = [
    {"type": "init", "session_id": "1", "model": "m"},
    {"type": "message", "role": "assistant", "content": "On it."},
]
ENDED = {"type": "result", "status": "success", "stats": {}}
BAD_KEY = {
    "error": {
        "code": 400,
        "message": "This key is not valid.",
        "status": "INVALID_ARGUMENT",
        "details": [{"reason": "API_KEY_INVALID"}],
    }
}
WRAPPED = {"error": {"message": json.dumps(BAD_KEY), "code": 400, "status": "Bad Request"}}


@pytest.mark.parametrize(
    ("codec", "events", "rule"),
    [
        ("codex", [*THREAD, LATE], "says-broken-answer"),
        ("codex", [*THREAD, {"type": "turn.started"}], "no-terminal-event"),
        ("codex", [THREAD[0], LATE, THREAD[1]], ""),
        ("codex", [*THREAD, LATE, {"type": "turn.started"}, THREAD[1]], ""),
        ("gemini", [*GEMINI, TURNS, ENDED], "says-turns"),
        ("gemini", [*GEMINI, {**TURNS, "message": "Something odd"}, ENDED], "unknown-error"),
        ("gemini", [*GEMINI, TURNS, GEMINI[1], ENDED], ""),
        ("gemini", [*GEMINI, {**TURNS, "severity": "warning"}, ENDED], ""),
        ("gemini", [*GEMINI, TURNS], "says-turns"),
        ("gemini", [*GEMINI, {**TURNS, "message": "401 Unauthorized"}, GEMINI[1]], "no-terminal-event"),
        *(
            ("gemini", [*GEMINI, {**ENDED, "status": "error", "error": {"type": "ApiError", "message": text}}], rule)
            for text, rule in (
                (json.dumps(BAD_KEY), "API_KEY_INVALID"),
                (json.dumps(WRAPPED), "API_KEY_INVALID"),
                (f"[API Error: {json.dumps(BAD_KEY)}]", "API_KEY_INVALID"),
                (json.dumps(BAD_KEY).replace("API_KEY_INVALID", "BAD_FIELD"), "http-400"),
            )
        ),
    ],
)
def test_an_error_that_nothing_follows_ends_the_run(
    reader: Reader, codec: str, events: list[dict[str, Any]], rule: str
) -> None:
    found = reader.classify(codec, as_lines(*events), exit_code=0)
    assert (found.evidence.rule if found else "") == rule


@pytest.mark.parametrize(
    ("exit_code", "stdout", "stderr", "rule"),
    [
        (127, b"", b"bash: codex: command not found", "exit-127"),
        (127, b"", b"/bin/sh: 1: codex: not found", "exit-127"),
        (126, b"", b"bash: /usr/bin/codex: Permission denied", "exit-126"),
        (1, b"", b"bash: codex: command not found", "says-settings"),
        (127, as_lines(*THREAD[:1]), b"Error: 401 Unauthorized", "http-401"),
    ],
)
def test_a_shell_that_could_not_start_the_agent_says_so_first(
    reader: Reader, exit_code: int, stdout: bytes, stderr: bytes, rule: str
) -> None:
    found = reader.failure("codex", stdout, exit_code=exit_code, stderr=stderr)
    assert found.evidence.rule == rule
    assert stderr.decode() in found.summary


@pytest.mark.parametrize("codec", ["plain", "claude"])
def test_an_empty_answer_at_exit_code_0_is_a_warning(reader: Reader, codec: str) -> None:
    stdout = as_lines(INIT, SAID, {**RESULT, "result": ""}) if codec == "claude" else b" \n"
    assert reader.evidence(codec, stdout).account.warnings == ("The agent ended without a message.",)
    assert not reader.evidence("plain", b"", exit_code=1).account.warnings


@pytest.mark.parametrize(
    ("events", "names"),
    [
        ([started(), background("task_notification", status="stopped")], "Task b1"),
        ([started(), background("task_updated", patch={"status": "killed"})], "Task b1"),
        ([started(), started("b2"), background("task_notification", "b2", status="completed")], "Task b1"),
        ([started(), started("b2")], "Task b1, Task b2"),
        ([started(is_backgrounded=False), background("task_updated", patch={"is_backgrounded": True})], "Task b1"),
        ([started(description="")], "b1"),
        ([started(), background("task_notification", status="completed")], ""),
        ([started(), background("task_notification", status="failed")], ""),
        ([started(), background("task_updated", patch={"status": "completed"})], ""),
        ([started(is_backgrounded=False)], ""),
        ([started(ambient=True), background("task_notification", status="stopped")], ""),
        ([started(), stops("TaskStop", task_id="b1"), background("task_notification", status="stopped")], ""),
        ([started(), stops("KillShell", shell_id="b1"), background("task_updated", patch={"status": "killed"})], ""),
    ],
)
@pytest.mark.parametrize("is_after", [False, True])
def test_background_tasks_that_did_not_end_are_named(
    reader: Reader, events: list[dict[str, Any]], names: str, *, is_after: bool
) -> None:
    parts = [RESULT, *events] if is_after else [*events, RESULT]
    account = reader.account("claude", INIT, SAID, *parts)
    told = [text for text in account.warnings if "background tasks" in text]
    assert [text.partition(": ")[2].partition(". ")[0] for text in told] == ([names] if names else [])
    assert account.ending == "success"


def as_document(value: Any, indent: int | str = 2, end: str = "\n") -> bytes:
    return json.dumps(value, indent=indent).replace("\n", end).encode()


FORMS = {
    "list": as_document(EVENTS),
    "list-with-tabs": as_document(EVENTS, "\t", "\r\n") + b"\r\n",
    "list-after-a-line": b"npm notice: new version\n" + as_document(EVENTS, 4),
    "one-object": as_document(RESULT),
    "object-after-object": b"\n".join(as_document(event) for event in EVENTS),
    "list-in-a-line": json.dumps(EVENTS).encode(),
    "byte-order-mark": b"\xef\xbb\xbf" + as_document(EVENTS),
}


@pytest.mark.parametrize("form", FORMS)
def test_a_transcript_is_read_in_any_layout_of_its_json(reader: Reader, form: str) -> None:
    account = reader.evidence("claude", FORMS[form]).account
    assert (account.final_message, account.ending, account.is_structured) == ("All done.", "success", True)
    assert recognise(reader.folder / "stdout") == "claude"
    assert codec_of("", reader.folder / "stdout") == ("claude", ())


def test_a_layout_of_many_lines_is_read_for_every_format(reader: Reader) -> None:
    assert reader.evidence("codex", as_document(THREAD)).account.ending == "success"
    document = {"session_id": "1", "response": "Yes.", "stats": {}}
    assert reader.evidence("gemini", as_document([document])).account.final_message == "Yes."


@pytest.mark.parametrize("cut", [20, 150, -20, -1])
def test_a_document_that_breaks_off_is_neither_success_nor_text(reader: Reader, cut: int) -> None:
    events = [INIT, SAID, SAID, {**RESULT, "result": "x" * 40}]
    evidence = reader.evidence("claude", as_document(events)[:cut])
    assert evidence.account.is_structured
    assert (evidence.account.ending == "success") == (cut == -1)


def test_an_object_of_many_lines_that_is_too_long_is_skipped(reader: Reader, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("accord.runner.transcripts.lines.MAX_LINE_BYTES", 1000)
    account = reader.evidence("claude", as_document([INIT, {**SAID, "x": ["y" * 90] * 20}, RESULT])).account
    assert (account.final_message, account.ending) == ("All done.", "success")
    assert account.warnings == ("One event of the transcript was too long to be read.",)


def test_events_of_another_format_are_never_the_message(reader: Reader) -> None:
    other = reader.evidence("claude", as_lines(*THREAD)).account
    assert (other.codec, other.ending) == ("codex", "success")
    assert "The output is a transcript of codex, not of claude, and was read as one." in other.warnings
    for stdout in (as_lines({"type": "step"}, {"type": "stop"}), as_document([{"type": "step"}, {"type": "stop"}])):
        found = reader.failure("claude", stdout)
        assert (found.evidence.rule, found.recovery) == ("no-terminal-event", "retry")


@pytest.mark.parametrize(
    "text",
    [
        '{"role": "reviewer", "verdict": "approve"}',
        '{\n  "type": "object"\n}',
        f"The event is:\n```json\n{as_document(RESULT).decode()}\n```\n",
        f"It prints {json.dumps(RESULT)} at the end.",
    ],
)
def test_an_answer_that_has_json_stays_an_answer(reader: Reader, text: str) -> None:
    account = reader.evidence("claude", text.encode()).account
    assert (account.is_structured, account.final_message) == (False, text)
