"""Lists and waits on a terminal: long lists go through the pager, lines fit, and a wait counts down."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from support.commands import Accord
from support.stage import staged
from test_run_status import Screen

from accord.cli.output import Progress, cut_text, print_wait

SEED = {
    "repositories": [
        {
            "name": "octo/web",
            "issues": [
                {
                    "title": f"Item {n} with a long title, which no narrow terminal can hold",
                    "labels": ["task:implement", "status:ready"],
                }
                for n in range(1, 40)
            ],
        }
    ]
}
PTY = """
import os, pty, sys
pid, terminal = pty.fork()
if pid == 0:
    os.execv(sys.argv[1], sys.argv[1:])
found = b""
try:
    while data := os.read(terminal, 65536):
        found += data
except OSError:
    pass
sys.stdout.buffer.write(found)
"""


def on_terminal(accord: Accord, *words: str, **variables: str) -> list[str]:
    """Run a command on a terminal of its own, and return the lines that it printed."""
    environment = {**os.environ, "TERM": "xterm", "NO_COLOR": "1", **variables}
    command = [sys.executable, "-c", PTY, sys.executable, "-P", "-m", "accord", *words]
    ended = subprocess.run(
        command, env=environment, cwd=accord.home, capture_output=True, text=True, timeout=600, check=True
    )
    return ended.stdout.replace("\r\n", "\n").splitlines()


@pytest.mark.slow
def test_a_long_list_goes_through_the_pager_and_its_lines_fit(tmp_path: Path, accord: Accord) -> None:
    with staged(tmp_path / "data", seed=SEED) as stage:
        accord.on(stage)
        paged = on_terminal(accord, "items", "list", PAGER="sed s/^/paged:/", COLUMNS="60", LINES="10")
        short = on_terminal(accord, "items", "list", PAGER="sed s/^/paged:/", COLUMNS="40", LINES="50")
        piped = accord("items", "list").out.splitlines()
    assert (len(paged), {line[:6] for line in paged}) == (39, {"paged:"})
    assert max(len(line.removeprefix("paged:")) for line in paged) == 60
    assert max(map(len, short)) == 40
    assert not [line for line in short if line.startswith("paged:")]
    assert all(line.endswith("can hold") for line in piped)


def test_a_wait_is_a_line_of_its_own_in_the_place_of_the_bar(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    print_wait(30, "GitHub's rate limit")
    assert capsys.readouterr().err == "waiting 30 s: GitHub's rate limit\n"
    screen = Screen()
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "60")
    monkeypatch.setattr(sys, "stderr", screen)
    Progress(3).show("a" * 100, 1, 3)
    print_wait(3, "GitHub's rate limit")
    Progress(3).show("next", 2, 3)
    bar, waiting, last = [part for part in screen.getvalue().split("\r\x1b[K") if part]
    assert len(bar) < 60
    assert waiting == "waiting 3 s: GitHub's rate limit\n"
    assert last.endswith("2/3 next")


def test_a_text_keeps_some_columns_on_any_terminal() -> None:
    assert cut_text("a" * 50, 30) == "a" * 29 + "…"
    assert len(cut_text("a" * 50, 3)) == 16
    assert cut_text("a" * 50, None) == "a" * 50
