"""The line that shows how an agent's run goes on: on a terminal, in a log, and what a line of output adds to it."""

import io

import pytest

from accord.cli.run_step import RunStatus

STARTED = '{"type":"thread.started","thread_id":"t1"}'


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
    status.show(STARTED)
    ticks.now = 1.0
    status.tick()
    assert drawn(stream) == [f"{STARTED}\n"]
    ticks.now = 70.0
    status.tick()
    status.show("more")
    assert drawn(stream) == [f"{STARTED}\n", "1 min 10 s · quiet 1 min 10 s", "more\n"]
    ticks.now = 75.0
    with status:
        status.tick()
    assert drawn(stream)[-1] == "1 min 15 s · quiet 5 s"
    assert stream.getvalue().endswith("\r\x1b[K")


@pytest.mark.parametrize(("is_tty", "term"), [(False, "xterm"), (True, "dumb")])
def test_a_log_gets_a_line_only_after_minutes_of_silence(
    ticks: Ticks, monkeypatch: pytest.MonkeyPatch, is_tty: bool, term: str
) -> None:
    monkeypatch.setenv("TERM", term)
    stream = Screen() if is_tty else io.StringIO()
    status = RunStatus(stream, ticks)
    status.show(STARTED)
    for second in range(1, 400):
        ticks.now = float(second)
        status.tick()
    assert stream.getvalue().splitlines()[1:] == [
        "accord: the agent runs for 3 min, quiet for 3 min",
        "accord: the agent runs for 6 min, quiet for 6 min",
    ]
    assert "\x1b" not in stream.getvalue()


def test_a_closed_stream_ends_nothing(ticks: Ticks) -> None:
    stream = Screen()
    with RunStatus(stream) as status:
        stream.close()
        status.show(STARTED)
        ticks.now = 9.0
        status.tick()
    assert stream.closed
