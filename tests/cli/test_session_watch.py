"""``accord session watch`` on a real pseudo terminal."""

import fcntl
import os
import pty
import re
import select
import signal
import struct
import subprocess
import sys
import termios
import time
from pathlib import Path

import pytest
from support.sessions import GATES, decision, make_session

from accord.cli.session_output import screen
from accord.sessions.folder import read_session

ROWS, COLUMNS = 16, 40
MANY = "tasks:\n" + "".join(
    f"- {{id: T-{i:03}, status: {'in-progress' if i == 300 else 'not-started'}, goal: {'write ' * 20}it, "
    'acceptance_checks: ["manual: look"]}\n'
    for i in range(1, 401)
)


def make(tmp_path: Path) -> Path:
    waits = [decision("UD-1", question="Which database is it to be, " * 5, state_context="IMPLEMENT_LOOP")]
    return make_session(tmp_path, "ASK_USER", user_decisions=[*GATES, *waits], texts={"tasks.yaml": MANY})


def read_until(terminal: int, wanted: str) -> str:
    """Return what a terminal shows from now on, once this is in it."""
    shown, end = b"", time.monotonic() + 600
    while wanted not in shown.decode(errors="ignore") and time.monotonic() < end:
        if select.select([terminal], [], [], 0.2)[0]:
            shown += os.read(terminal, 65536)
    return shown.decode()


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no pseudo terminal")
def test_a_long_plan_fits_the_terminal_and_follows_changes(tmp_path: Path) -> None:
    folder = make(tmp_path)
    terminal, theirs = pty.openpty()
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, COLUMNS, 0, 0))
    words = [sys.executable, "-m", "accord", "session", "watch", str(folder)]
    own = {name: value for name, value in os.environ.items() if name not in ("COLUMNS", "LINES")}
    child = subprocess.Popen(words, stdin=theirs, stdout=theirs, stderr=theirs, env=own)
    os.close(theirs)
    read_until(terminal, "UD-1")
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS - 2, COLUMNS, 0, 0))
    drawn = read_until(terminal, "UD-1").split("\x1b[2J")[-1]
    lines = [re.sub(r"\x1b\[[0-9;]*m", "", line) for line in drawn.split("\r\n")]
    assert len(lines) <= ROWS - 2
    assert max(len(line) for line in lines) < COLUMNS
    assert [name for name in ("ASK_USER", "0/400", "T-300", "more", "? UD-1") if name not in drawn] == []
    child.send_signal(signal.SIGINT)
    said = read_until(terminal, "\n")
    assert (child.wait(30), "accord:" in said) == (0, False)
    os.close(terminal)


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no pseudo terminal")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize(("words", "shown"), [("status --watch", "Nothing needs you."), ("board", "Ctrl-C ends it")])
def test_a_live_command_ends_well_by_a_signal(tmp_path: Path, words: str, shown: str, number: int) -> None:
    terminal, theirs = pty.openpty()
    command = [sys.executable, "-m", "accord", *words.split(), "--sandbox", str(tmp_path / "sandbox")]
    child = subprocess.Popen(command, stdin=theirs, stdout=theirs, stderr=theirs, cwd=tmp_path)
    os.close(theirs)
    assert shown in read_until(terminal, shown)
    child.send_signal(number)
    assert child.wait(30) == 0
    os.close(terminal)


@pytest.mark.slow
def test_without_a_terminal_every_task_is_printed_in_full(tmp_path: Path) -> None:
    lines = screen(read_session(make(tmp_path)))
    assert sum(" T-" in line for line in lines) == 400
    assert any(line.endswith("write it") for line in lines)
