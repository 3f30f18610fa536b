"""A program ends with all its processes, and its output is kept without secrets."""

import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from support.agent_bench import running_with

from accord.core.clock import SystemClock
from accord.runner.isolation import Confinement, Container, choose_confinement
from accord.runner.models import JobContext, StopSignals
from accord.runner.process import Program, ProgramEnd, run_program, span

pytestmark = pytest.mark.slow
SECRET = "correct-horse-battery"
linux = pytest.mark.skipif(sys.platform != "linux", reason="only Linux has subreapers and no_new_privs")


@dataclass
class Ran:
    """How a script ended, what is in its files, and what was shown."""

    end: ProgramEnd
    out: bytes
    err: bytes
    lines: list[str] = field(default_factory=list)

    @property
    def kind(self) -> str:
        return self.end.error.kind if self.end.error else ""


in_container_too = pytest.mark.parametrize("run", ["", "container"], indirect=True)


@pytest.fixture
def run(tmp_path: Path, request: pytest.FixtureRequest) -> Callable[..., Ran]:
    confinement = Confinement()
    if getattr(request, "param", ""):
        container = Container(str(tmp_path), (str(tmp_path),))
        confinement, problem = choose_confinement(container, {"GITHUB_ACTIONS": "true"}, is_required=False)
        if problem:
            pytest.skip(problem)

    def run_script(
        script: str,
        *,
        limit: float = 20,
        stop: StopSignals | None = None,
        out: Path | None = None,
        show: Callable[[str], None] | None = None,
        is_slow_to_begin: bool = False,
    ) -> Ran:
        """Run it; one that says that it is ready gets more time until the limit leaves it enough to begin."""
        stdout, stderr = out or tmp_path / "out", tmp_path / "err"
        lines: list[str] = []
        words = [sys.executable, "-c", script]
        end = run_program(
            Program(words, tmp_path, {"PATH": os.environ["PATH"]}, confinement=confinement),
            JobContext({"A_SECRET": SECRET}, SystemClock(), show or lines.append, stop or StopSignals()),
            stdout=stdout,
            stderr=stderr,
            limit_seconds=limit,
        )
        ran = Ran(end, b"" if out else stdout.read_bytes(), stderr.read_bytes(), lines)
        if is_slow_to_begin and b"ready\n" not in ran.out and limit < 300:
            return run_script(script, limit=limit * 4, is_slow_to_begin=True)
        return ran

    return run_script


def is_running(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


@in_container_too
def test_the_exit_code_and_both_outputs_are_kept_byte_for_byte_and_the_input_is_empty(run: Callable[..., Ran]) -> None:
    ran = run(
        "import sys; sys.stdout.buffer.write(b'\\xff\\x00caf\\xc3\\n')\n"
        "print(repr(sys.stdin.read()), file=sys.stderr); sys.exit(7)"
    )
    assert (ran.end, ran.out, ran.err) == (ProgramEnd(7), b"\xff\x00caf\xc3\n", b"''\n")
    assert len(ran.lines) == 2


@in_container_too
def test_a_program_that_ignores_sigterm_is_killed(run: Callable[..., Ran], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("accord.runner.process._PATIENCE_SECONDS", {"time-limit": 0.3})
    ran = run(
        "import signal, time; signal.signal(signal.SIGTERM, lambda *_: print('asked', flush=True))\n"
        "print('ready', flush=True)\nwhile True: time.sleep(1)",
        limit=0.49997,  # a limit of half a second less the time of the start
        is_slow_to_begin=True,
    )
    assert (ran.end.exit_code, ran.kind) == (137, "time-limit")
    assert ran.end.error
    assert re.fullmatch(r"The agent reached its time limit of (0\.5|2|8|32|128|512) seconds\.", ran.end.error.detail)
    assert ran.out == b"ready\nasked\n"


@in_container_too
def test_a_program_that_is_asked_to_end_may_say_its_last_words(run: Callable[..., Ran]) -> None:
    script = (
        "import signal, sys, time\n"
        "signal.signal(signal.SIGTERM, lambda *_: (print('x' * 500_000, flush=True), sys.exit(3)))\n"
        "print('ready', flush=True)\nwhile True: time.sleep(1)"
    )
    ran = run(script, limit=0.5, is_slow_to_begin=True)
    assert (ran.end.exit_code, len(ran.out)) == (3, 500_007)


ORPHANS = {
    "a child": "subprocess.Popen(['sleep', '300'])",
    "a child in a session of its own": "subprocess.Popen(['sleep', '300'], start_new_session=True)",
    "a grandchild whose parent is gone": "subprocess.Popen(['sh', '-c', 'setsid sleep 300 & echo $!']).wait()",
}
ENDINGS = {
    "by itself": ("", 0), "by SIGKILL": ("os.kill(os.getpid(), 9)", 137), "at the limit": ("time.sleep(300)", 143),
}  # fmt: skip


@linux
@in_container_too
@pytest.mark.parametrize(
    ("ending", "kind"),
    [
        pytest.param(ending, kind, marks=() if i == j else pytest.mark.matrix)
        for i, ending in enumerate(ENDINGS)
        for j, kind in enumerate(ORPHANS)
    ],
)
def test_nothing_that_a_program_started_outlives_it(run: Callable[..., Ran], kind: str, ending: str) -> None:
    last, code = ENDINGS[ending]
    seconds = f"300.{os.getpid()}{time.monotonic_ns()}"
    child = ORPHANS[kind].replace("300", seconds)
    began = time.monotonic()
    script = f"import os, subprocess, time\n{child}\nprint('ready', flush=True)\n{last}"
    ran = run(script, limit=1, is_slow_to_begin=True)
    assert b"ready\n" in ran.out
    assert ran.end.exit_code == code
    assert running_with(seconds) == 0
    assert time.monotonic() - began < 290


RUNS = """
import os, sys
from pathlib import Path
from accord.core.clock import SystemClock
from accord.runner.isolation import Confinement, Container, choose_confinement
from accord.runner.models import JobContext, StopSignals
from accord.runner.process import Program, run_program
place = Path(sys.argv[1])
container = Container(str(place), writable=(str(place),))
inside, _ = choose_confinement(container, {"GITHUB_ACTIONS": "true"}, is_required=False)
ways = {"no rights": Confinement(), "sudo": None, "container": inside}
run_program(
    Program([sys.executable, "-c", sys.argv[2]], place, {"PATH": os.environ["PATH"]}, confinement=ways[sys.argv[3]]),
    JobContext({}, SystemClock(), lambda _: None, StopSignals()),
    stdout=place / "out", stderr=place / "err", limit_seconds=300,
)
"""


@linux
@pytest.mark.parametrize("kind", [pytest.param("a child", marks=pytest.mark.matrix), "a child in a session of its own"])
@pytest.mark.parametrize("way", ["no rights", "sudo", "container"])
def test_an_agent_ends_though_accord_itself_was_killed(tmp_path: Path, kind: str, way: str) -> None:
    """Otherwise it would go on at the user's cost, without any use."""
    seconds = f"300.{os.getpid()}{time.monotonic_ns()}"
    child = ORPHANS[kind].replace("300", seconds)
    script = f"import os, subprocess, time\n{child}\nprint('ready', flush=True)\ntime.sleep({seconds})"
    with subprocess.Popen([sys.executable, "-c", RUNS, str(tmp_path), script, way]) as accord:
        assert soon(lambda: words(tmp_path / "out") == ["ready"])
        assert running_with(seconds) >= 3
        accord.kill()
    assert soon(lambda: running_with(seconds) == 0)


@linux
def test_an_agent_ends_when_a_person_interrupts_accord_for_good(run: Callable[..., Ran]) -> None:
    shown: list[str] = []

    def interrupt(line: str) -> None:
        shown.append(line)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run("import os, time; print(os.getpid(), flush=True); time.sleep(300)", show=interrupt)
    assert not is_running(int(shown[0]))


def words(file: Path) -> list[str]:
    return file.read_text().split() if file.exists() else []


def soon(is_so: Callable[[], bool]) -> bool:
    deadline = time.monotonic() + 600
    while not is_so():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.02)
    return True


def test_a_secret_split_over_writes_is_in_no_file_and_no_line(run: Callable[..., Ran]) -> None:
    half = len(SECRET) // 2
    script = (
        f"import sys, time\nfor part in ({SECRET[:half]!r}, {SECRET[half:]!r}):\n"
        "    sys.stdout.write(part); sys.stdout.flush(); time.sleep(0.1)\n"
    )
    ran = run(script)
    assert SECRET.encode() not in ran.out
    assert ran.lines == ["[redacted: secret of the environment]"]


def test_a_huge_line_is_kept_whole_and_shown_in_part(run: Callable[..., Ran]) -> None:
    ran = run("print('y' * 500_000)")
    assert (ran.out, len(ran.lines)) == (b"y" * 500_000 + b"\n", 1)
    assert len(ran.lines[0]) < 5000
    assert "more bytes" in ran.lines[0]


@in_container_too
@linux
def test_a_program_can_gain_no_privileges(run: Callable[..., Ran]) -> None:
    ran = run("print(next(line for line in open('/proc/self/status') if line.startswith('NoNewPrivs')))")
    assert ran.out.split() == [b"NoNewPrivs:", b"1"]


@linux
def test_a_program_starts_with_the_usual_signals(tmp_path: Path) -> None:
    """Python ignores SIGPIPE, and a program that it starts would do the same."""
    cat = shutil.which("cat") or "cat"
    run_program(
        Program([cat, "/proc/self/status"], tmp_path, {}),
        JobContext({}, SystemClock(), lambda _: None, StopSignals()),
        stdout=tmp_path / "out",
        stderr=tmp_path / "err",
        limit_seconds=20,
    )
    ignored = (tmp_path / "out").read_text().partition("SigIgn:\t")[2].split()[0]
    python_ignores = 1 << signal.SIGPIPE - 1 | 1 << signal.SIGXFSZ - 1
    assert int(ignored, 16) & python_ignores == 0


def test_a_time_has_its_unit() -> None:
    assert [span(seconds) for seconds in (60, 59.96, 90, 1, 0.25)] == [
        "1 minute", "1 minute", "1.5 minutes", "1 second", "0.25 seconds",
    ]  # fmt: skip
