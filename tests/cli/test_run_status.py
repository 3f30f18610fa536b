"""The line that shows how an agent's run goes on: on a terminal, in a log, and what a line of output adds to it."""

import io
from pathlib import Path

import pytest

from accord.cli.run_status import RunStatus, showing_status, status_text
from accord.runner.transcripts.account import Usage
from accord.runner.transcripts.formats import LiveRun

LOGS = Path(__file__).parents[1] / "data/agent-logs"
STARTED = '{"type":"thread.started","thread_id":"t1"}'
ITEM = '"type":"command_execution","command":"npm test","exit_code":0,"status":"completed","aggregated_output":""'
COMMAND = f'{{"type":"item.completed","item":{{{ITEM}}}}}'
ENDED = '{"type":"turn.completed","usage":{"input_tokens":12000,"output_tokens":345}}'


class Screen(io.StringIO):
    def isatty(self) -> bool:
        return True


class Ticks:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def ticks(monkeypatch: pytest.MonkeyPatch) -> Ticks:
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "40")
    return Ticks()


def drawn(stream: io.StringIO) -> list[str]:
    return [part for part in stream.getvalue().split("\r\x1b[K") if part]


def test_a_quiet_agent_has_a_line_that_its_next_output_replaces(ticks: Ticks) -> None:
    stream = Screen()
    status = RunStatus(stream, ticks)
    status.show(STARTED, STARTED)
    ticks.now = 1.0
    status.tick()
    assert drawn(stream) == [f"{STARTED}\n"]
    status.show(COMMAND, "shown")
    ticks.now = 70.0
    status.tick()
    status.show(ENDED, "more")
    assert drawn(stream) == [f"{STARTED}\nshown\n", "1 min 10 s · command npm test, 1 min 9…", "more\n"]
    ticks.now = 75.0
    status.tick()
    status.end()
    assert drawn(stream)[-1] == "1 min 15 s · done, 5 s ago · 12,345 to…"
    assert stream.getvalue().endswith("\r\x1b[K")


@pytest.mark.parametrize(("is_tty", "term"), [(False, "xterm"), (True, "dumb")])
def test_a_log_gets_a_line_only_after_minutes_of_silence(
    ticks: Ticks, monkeypatch: pytest.MonkeyPatch, is_tty: bool, term: str
) -> None:
    monkeypatch.setenv("TERM", term)
    stream = Screen() if is_tty else io.StringIO()
    status = RunStatus(stream, ticks)
    status.show(STARTED, STARTED)
    for second in range(1, 400):
        ticks.now = float(second)
        status.tick()
    assert stream.getvalue().splitlines()[1:] == [
        "accord: the agent runs for 3 min, quiet for 3 min",
        "accord: the agent runs for 6 min, quiet for 6 min",
    ]
    assert "\x1b" not in stream.getvalue()


def test_control_characters_and_secrets_of_an_event_are_not_drawn(
    ticks: Ticks, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MY_TOKEN", "hunter2hunter2hunter2")
    monkeypatch.setenv("COLUMNS", "200")
    stream = Screen()
    status = RunStatus(stream, ticks)
    status.show(COMMAND.replace("npm test", "\\u001b]0;x\\u0007 hunter2hunter2hunter2"), "")
    ticks.now = 9.0
    status.tick()
    (line,) = [part for part in drawn(stream) if "command" in part]
    assert not {"\x1b", "\x07"} & set(line)
    assert "hunter2" not in line


def test_a_closed_stream_ends_nothing(ticks: Ticks) -> None:
    stream = Screen()
    with showing_status(stream) as status:
        stream.close()
        status.show(STARTED, STARTED)
        ticks.now = 9.0
        status.tick()


def test_the_line_has_only_what_is_known() -> None:
    assert status_text(5, 5, "", Usage()) == "5 s · quiet 5 s"
    text = "5 s · message, 2 s ago · 1,000 tokens · 0.50 US dollars"
    assert status_text(5, 2, "message", Usage(1000, None, 0.5)) == text


@pytest.mark.parametrize(
    ("line", "last"),
    [
        (STARTED, "started"),
        (COMMAND, "command npm test"),
        ('{"type":"item.completed","item":{"type":"agent_message","text":"hello"}}', "message"),
        ('{"type":"error","message":"stream disconnected"}', "error stream disconnected"),
        ('{"type":"system","subtype":"init","session_id":"s","model":"m"}', "started"),
        ("plain text", ""),
        ("{broken", ""),
        ('{"type": "unheard-of"}', ""),
        ("", ""),
    ],
)
def test_an_event_is_named_in_a_few_words(line: str, last: str) -> None:
    run = LiveRun()
    run.add(line)
    assert run.last == last


def test_every_line_of_recorded_runs_is_read_and_the_usage_is_known_at_the_end() -> None:
    known = 0
    for path in sorted(LOGS.rglob("stdout")):
        run = LiveRun()
        for line in path.read_text(encoding="utf-8", errors="replace").splitlines():
            run.add(line)
        known += run.usage != Usage()
    assert known
