"""The codecs: what each CLI means by what it prints, and what of it survives the accidents of a stream."""

from pathlib import Path
from typing import Any

import pytest
from support.runs import Reader, Run, as_lines

from accord.runner.classify import contract_exit_code
from accord.runner.transcripts import lines
from accord.runner.transcripts.account import MAX_COMMANDS
from accord.runner.transcripts.gemini import without_repeats
from accord.runner.transcripts.read import read_evidence

INIT = {"type": "system", "subtype": "init", "model": "m", "tools": ["Bash"]}
THREAD = {"type": "thread.started", "thread_id": "1"}
TURN_DONE = {"type": "turn.completed", "usage": {"input_tokens": 3, "output_tokens": 4}}


def item(kind: str, **more: Any) -> dict[str, Any]:
    return {"type": "item.completed", "item": {"id": "item_1", "type": kind, **more}}


def ran(n: int, output: str = "", exit_code: int = 0) -> dict[str, Any]:
    status = "failed" if exit_code else "completed"
    return item("command_execution", command=f"run {n}", aggregated_output=output, exit_code=exit_code, status=status)


def bash(n: int) -> dict[str, Any]:
    use = {"type": "tool_use", "id": f"t{n}", "name": "Bash", "input": {"command": f"run {n}"}}
    return {"type": "assistant", "message": {"model": "m", "content": [use]}}


def bash_result(n: int, content: Any, *, is_error: bool = False) -> dict[str, Any]:
    part = {"tool_use_id": f"t{n}", "type": "tool_result", "content": content, "is_error": is_error}
    return {"type": "user", "message": {"role": "user", "content": [part]}}


def shell(n: int, output: str, status: str = "success") -> list[dict[str, Any]]:
    use = {"tool_name": "run_shell_command", "tool_id": f"t{n}", "parameters": {"command": f"run {n}"}}
    return [
        {"type": "tool_use", **use},
        {"type": "tool_result", "tool_id": f"t{n}", "status": status, "output": output},
    ]


def delta(text: str) -> dict[str, Any]:
    return {"type": "message", "role": "assistant", "content": text, "delta": True}


# Codex


def test_the_last_agent_message_is_final_though_a_to_do_list_comes_after_it(reader: Reader) -> None:
    todo = item("todo_list", items=[{"text": "a", "completed": True}])
    said = [item("agent_message", text=text) for text in ("one", "two")]
    account = reader.account("codex", THREAD, *said, todo, TURN_DONE)
    assert (account.final_message, account.ending) == ("two", "success")


def test_the_file_of_the_last_message_wins_when_it_holds_something(reader: Reader, tmp_path: Path) -> None:
    stdout = as_lines(THREAD, item("agent_message", text="of the stream"), TURN_DONE)
    message = tmp_path / "message"
    for content, wanted in (("of the file", "of the file"), (" \n", "of the stream"), ('{"a": 1}', '{"a": 1}')):
        message.write_text(content)
        account = reader.evidence("codex", stdout, final_message=message).account
        assert account.final_message == wanted
        assert account.structured == ({"a": 1} if content.startswith("{") else None)
    assert reader.evidence("codex", stdout, final_message=tmp_path / "none").account.final_message == "of the stream"


@pytest.mark.parametrize("text", ["prose", '{"a": 1} and more', '{"a": ', "[1]", '{"a":' * 500])
def test_prose_instead_of_a_structured_result_is_just_a_message(reader: Reader, text: str) -> None:
    account = reader.account("codex", THREAD, item("agent_message", text=text), TURN_DONE)
    assert (account.structured, account.final_message, account.ending) == (None, text, "success")


# Claude Code


def test_the_exit_code_of_a_failed_command_is_read(reader: Reader) -> None:
    account = reader.account("claude", INIT, bash(1), bash_result(1, "Exit code 7\nboom", is_error=True))
    assert [(c.command, c.exit_code) for c in account.commands] == [("run 1", 7)]


def test_results_of_tools_that_ran_at_once_find_their_commands(reader: Reader) -> None:
    failed = [{"type": "text", "text": "Exit code 7\nboom"}]
    results = [bash_result(2, "Exit code 3\nbang", is_error=True), bash_result(1, failed, is_error=True)]
    both = {"type": "user", "message": {"content": [result["message"]["content"][0] for result in results]}}
    account = reader.account("claude", INIT, bash(1), bash(2), both)
    assert [(c.command, c.exit_code) for c in account.commands] == [("run 2", 3), ("run 1", 7)]


def test_a_task_that_was_deleted_is_no_longer_to_do(reader: Reader) -> None:
    def task(n: int, name: str, given: dict[str, str], told: dict[str, Any]) -> list[dict[str, Any]]:
        use = {"type": "tool_use", "id": f"t{n}", "name": name, "input": given}
        return [
            {"type": "assistant", "message": {"model": "m", "content": [use]}},
            {**bash_result(n, "ok"), "tool_use_result": told},
        ]

    made = [*task(1, "TaskCreate", {"subject": "a"}, {"task": {"id": "1"}})]
    made += task(2, "TaskCreate", {"subject": "b"}, {"task": {"id": "2"}})
    account = reader.account("claude", INIT, *made, *task(3, "TaskUpdate", {"taskId": "1", "status": "deleted"}, {}))
    assert [todo.text for todo in account.todos] == ["b"]


# Gemini CLI


@pytest.mark.parametrize(
    ("pieces", "text"),
    [
        (["Working on it.", " Done."], "Working on it. Done."),
        (["Working", "Working on it.", " Done."], "Working on it. Done."),
        (["Work", "ing on", "Work", "ing on it", "Work", "ing on it. Done."], "Working on it. Done."),
        (["All done.", "All done."], "All done."), (["ha", "ha"], "haha"), ([], ""),
    ],
)  # fmt: skip
def test_a_message_that_started_again_is_read_once(pieces: list[str], text: str) -> None:
    assert without_repeats(pieces) == text


def test_only_the_text_after_the_last_tool_is_the_message(reader: Reader) -> None:
    begin, end = [delta("I look."), *shell(1, "x")], {"type": "result", "status": "success"}
    assert reader.account("gemini", *begin, delta("All "), delta("done."), end).final_message == "All done."
    stopped = reader.account("gemini", *begin, end)
    assert stopped.final_message == ""
    assert "without a message" in stopped.warnings[0]


def test_the_exit_code_of_a_shell_command_is_read(reader: Reader) -> None:
    account = reader.account("gemini", *shell(1, "no\nCommand exited with code: 7"), *shell(2, "", "error"))
    assert [c.exit_code for c in account.commands] == [7, None]
    assert account.warnings[-1:] == ("Every command that the agent ran failed.",)


# Accidents of a stream


@pytest.mark.parametrize("name", ["codex/success_change", "claude/success_change", "gemini/success_change"])
def test_foreign_lines_between_events_change_nothing(reader: Reader, name: str) -> None:
    run = Run(name)
    foreign = (b"npm warn x", b"::error::forged", b"", b"{", b'{"type": 3}', b"[1, null]", b"\xff\x00\xfe", b"null")
    own = run.stdout.read_bytes().splitlines()
    mixed = b"\n".join(line for n, event in enumerate(own) for line in (foreign[n % len(foreign)], event))
    assert reader.evidence(run.agent, b"\xef\xbb\xbf" + mixed + b"\n").account == run.account()


@pytest.mark.parametrize("name", ["codex/success_change", "claude/success_change", "gemini/success_change"])
def test_a_transcript_that_is_cut_anywhere_is_not_a_success(reader: Reader, name: str) -> None:
    raw = Run(name).stdout.read_bytes()
    end = len(raw.rstrip(b"\n"))
    for size in {0, end - 1, *range(10, end, 97)}:
        evidence = reader.evidence(Run(name).agent, raw[:size])
        assert (evidence.account.ending, contract_exit_code(evidence)) == ("cut", 1)
    assert reader.evidence(Run(name).agent, raw[:end]).account.ending == "success"


@pytest.mark.parametrize("count", [1, MAX_COMMANDS, MAX_COMMANDS + 5])
@pytest.mark.parametrize("codec", ["codex", "claude", "gemini"])
def test_the_last_commands_are_kept(reader: Reader, codec: str, count: int) -> None:
    events = {
        "codex": [ran(n, f'out {n} \\ "quoted" \ud83d\ude00', n % 2) for n in range(count)],
        "claude": [event for n in range(count) for event in (bash(n), bash_result(n, f"out {n}"))],
        "gemini": [event for n in range(count) for event in shell(n, f"out {n}")],
    }[codec]
    account = reader.account(codec, *events)
    assert account.commands[-1].command == f"run {count - 1}"
    assert len(account.commands) == min(count, MAX_COMMANDS)


@pytest.mark.parametrize(
    ("char", "size"),
    [
        ("x", 999_990),
        ("x", 1_100_000),
        ("x", 5_000_000),
        ("\N{GRINNING FACE}", 999_990),
        ("\N{GRINNING FACE}", 1_100_000),
    ],
)
@pytest.mark.parametrize("kind", ["event", "text", "file"])
def test_of_a_very_long_message_the_beginning_and_the_end_are_read(
    reader: Reader, tmp_path: Path, kind: str, size: int, char: str
) -> None:
    text = f"Begin{char * size}end"
    if kind == "event":
        result = {"type": "result", "subtype": "success", "is_error": False, "result": text}
        account = reader.account("claude", INIT, {**result, "usage": {"input_tokens": 3}, "total_cost_usd": 0.5})
        assert (account.ending, account.usage.tokens_input, account.usage.cost_usd) == ("success", 3, 0.5)
    else:
        path = tmp_path / "long.txt"
        path.write_text(text)
        paths = (path, None) if kind == "text" else (tmp_path / "none", path)
        account = read_evidence("plain", "a", None, paths[0], final_message=paths[1]).account
    if size < 1_000_000:
        assert (account.final_message, account.warnings) == (text, ())
        return
    beginning, cut, end = account.final_message.partition("\n[… the middle was left out here …]\n")
    assert (beginning, cut != "", end) == (f"Begin{char * 499_995}", True, f"{char * 499_997}end")
    assert account.warnings == ("The message is longer than 1,000,000 characters. The transcript has the rest.",)


@pytest.mark.parametrize("size", [200_000, 100_000])
@pytest.mark.parametrize("beginning", [b"", b"[INFO] ", b"[1, ", b"{x} "])
def test_an_event_that_is_too_long_is_skipped_and_named(
    reader: Reader, monkeypatch: pytest.MonkeyPatch, size: int, beginning: bytes
) -> None:
    monkeypatch.setattr(lines, "MAX_LINE_BYTES", 100_000)
    noise = beginning + b"x" * size + b"\n"
    account = reader.account("codex", THREAD, noise, ran(1, "x" * size), ran(2), item("agent_message", text="done"))
    assert (account.final_message, [c.command for c in account.commands]) == ("done", ["run 2"])
    assert account.warnings == ("One event of the transcript was too long to be read.",)


def test_half_characters_and_invalid_json_values_are_replaced(reader: Reader) -> None:
    text = rb'"{\"a\":\"\ud800\",\"b\":NaN,\"c\":1e999}"'
    raw = b'{"type":"item.completed","item":{"type":"agent_message","text":%s}}\n' % text
    raw += b'{"type":"turn.completed","usage":{"input_tokens":1e999,"output_tokens":NaN}}\n'
    account = reader.evidence("codex", raw).account
    assert account.final_message.encode()
    assert account.structured == {"a": "?", "b": None, "c": float("inf")} or account.structured["b"] is None
    assert (account.usage.tokens_input, account.usage.tokens_output) == (None, None)


def test_a_missing_file_is_an_empty_one(tmp_path: Path) -> None:
    for codec in ("codex", "claude", "gemini"):
        account = read_evidence(codec, "a", None, tmp_path / "none", stderr=tmp_path / "neither").account
        assert (account.ending, account.is_structured, account.has_begun) == ("cut", True, False)
    assert read_evidence("plain", "a", None, tmp_path / "none").account.final_message == ""
