"""Other processes that change a session in tests: they end in the middle of a write, or write at the same time.

Each process imports this module: nothing slow in here. The server that they fork from does the slow work.
"""

import shutil
from collections.abc import Callable, Iterator
from multiprocessing.context import ForkServerProcess
from pathlib import Path

from support.forks import forked

from accord.core.clock import Clock
from accord.files.store import Disk
from accord.sessions import run
from accord.sessions.apply import SessionWriter
from accord.sessions.folder import FILES

AT = "2026-01-31T09:30:00Z"
CHANGES = "changes-requested: smaller"
HISTORY = {"at": AT, "decision_id": "UD-APPROVE-DESIGN", "answer": CHANGES, "state_context": "APPROVE_DESIGN"}
OUTPUT = {
    "at": AT, "task_id": "T-001", "agent": "Reviewer", "status": "OK", "summary": "Looked at.",
    "security_concerns": 0,
}  # fmt: skip


def _writer(folder: Path, clock: Clock, *, disk: Disk | None = None) -> SessionWriter:
    from accord.files.store import DISK
    from accord.sessions.apply import SessionWriter

    return SessionWriter(folder, clock, disk=disk or DISK)


def act(name: str, folder: Path, disk: Disk, hour: int = 12) -> None:
    """Make one change of a session, by its name, at an hour of the day."""
    from support.sessions import clock, status

    now = clock(hour)
    if name in STEPS:
        step(name, folder, disk, now)
    elif name == "advance":
        run.advance(_writer(folder, now, disk=disk), "BLOCKED", role="Orchestrator", blocker="x")
    elif name == "task":
        run.move_task(_writer(folder, now, disk=disk), "T-001", "blocked", role="QA")
    elif name == "output":
        record(_writer(folder, now, disk=disk))
    else:
        for file in FILES:
            (folder / file).unlink(missing_ok=True)
        _writer(folder, now, disk=disk).create(status())


def record(session: SessionWriter, **changes: str) -> None:
    """Append a line to the outputs of a session."""
    from accord.sessions.models import OutputEntry
    from accord.sessions.plan import plan_entry

    entry = OutputEntry.model_validate({**OUTPUT, **changes})
    session.change(lambda one: plan_entry(one, entry, now=session.clock.now()))


_OUTPUTS = {"work": ("Coder", "OK"), "finding": ("Security", "NEEDS_DECISION"), "failure": ("QA", "FAIL")}
_OUTPUTS |= {"fix": ("Coder", "OK"), "review": ("Reviewer", "OK"), "completion": ("QA", "OK")}
STEPS = ("ask", "answer", "changes", "again", "silence", "cancel", "resume", "correct", "leave", *_OUTPUTS)


def step(name: str, folder: Path, disk: Disk, now: Clock) -> None:
    """Make one step of the protocol of questions, by its name."""
    from accord.sessions.questions import UserQuestion, with_correction

    gate = HISTORY["decision_id"]
    if name in ("ask", "again"):
        wanted = [UserQuestion("Approve?", gate)] if name == "again" else [UserQuestion("One?"), UserQuestion("Two?")]
        run.ask(_writer(folder, now, disk=disk), wanted)
    elif name in ("answer", "changes", "silence"):
        said = {"answer": {"UD-1": "the first"}, "changes": {gate: HISTORY["answer"]}, "silence": {}}[name]
        run.answer(_writer(folder, now, disk=disk), said, is_final=name == "silence")
    elif name == "cancel":
        run.close_question(_writer(folder, now, disk=disk), gate, "cancelled", "the user is away")
    elif name in _OUTPUTS:
        _apply_output(name, folder, disk, now)
    elif name == "correct":
        _writer(folder, now, disk=disk).change_status(
            lambda one: with_correction(one, "completed"), role="Orchestrator"
        )
    else:
        run.resume(_writer(folder, now, disk=disk), agent="Architect")


def _apply_output(name: str, folder: Path, disk: Disk, now: Clock) -> None:
    """Apply an output of an agent to a task."""
    from support.sessions import agent_output

    from accord.sessions.models import AgentOutput
    from accord.sessions.outputs import apply_output

    role, status = _OUTPUTS[name]
    output = AgentOutput.model_validate(agent_output(status=status))
    apply_output(_writer(folder, now, disk=disk), "T-001", role, output)


def crashes(name: str, before: Path, root: Path) -> Iterator[tuple[str, Path]]:
    """Make a change once; yield for each point of it the session that a process killed there leaves.

    Points that leave the same are one. ``before`` is the session to begin with, and stays; all others are in ``root``.
    """
    from support.disks import CrashImages

    images = CrashImages(copied(before, root / "run"))
    act(name, images.folder, images)
    for i, (moment, image) in enumerate(images.distinct()):
        folder = root / str(i) / before.parent.name / before.name
        folder.mkdir(parents=True)
        for file, raw in image.items():
            (folder / file).write_bytes(raw)
        yield moment, folder


def copied(folder: Path, root: Path) -> Path:
    """Return a copy of a session in a repository of its own."""
    return Path(shutil.copytree(folder, root / folder.parent.name / folder.name))


def _start(work: Callable[..., None], *arguments: object) -> ForkServerProcess:
    process = forked(work, *arguments)
    process.start()
    return process


def killed(name: str, folder: Path, nth: int, moment: str) -> bool:
    """Make a change in a process that ends at its n-th call of the disk; tell whether it came that far."""
    process = _start(_act_until, name, str(folder), nth, moment)
    process.join(30)
    assert process.exitcode in (0, 77), process.exitcode
    return process.exitcode == 77


def _act_until(name: str, folder: str, nth: int, moment: str) -> None:
    from support.disks import LastCall

    act(name, Path(folder), LastCall(nth, moment))


def asker(folder: Path, rounds: int) -> ForkServerProcess:
    """Start a process that answers whatever waits, so many questions, and resumes the session."""
    return _start(_ask, str(folder), rounds)


def mover(folder: Path, rounds: int) -> ForkServerProcess:
    """Start a process that blocks the session and lets it go on, so often."""
    return _start(_move, str(folder), rounds)


def _ask(folder: str, rounds: int) -> None:
    from accord.core.clock import SystemClock
    from accord.core.errors import BrokenContract
    from accord.sessions.folder import read_session, status_of
    from accord.sessions.questions import UserQuestion

    clock, place = SystemClock(), Path(folder)
    for i in range(rounds):
        while True:
            try:
                run.ask(_writer(place, clock), [UserQuestion(f"Number {i}?")])
                break
            except BrokenContract:  # blocked by the other process: nothing is asked there
                clock.sleep(0.01)
        waiting = status_of(read_session(place)).pending
        run.answer(_writer(place, clock), {item.decision_id: f"answer {i}" for item in waiting})


def _move(folder: str, rounds: int) -> None:
    from accord.core.clock import SystemClock
    from accord.core.errors import BrokenContract
    from accord.sessions.folder import read_session, status_of

    clock, place = SystemClock(), Path(folder)
    for _ in range(rounds):
        run.advance(_writer(place, clock), "BLOCKED", role="Orchestrator", blocker="x")
        back = status_of(read_session(place)).blocked_from
        assert back
        try:
            run.advance(_writer(place, clock), back, role="Orchestrator")
        except BrokenContract:  # its questions were answered meanwhile, and nothing waits there any more
            run.advance(_writer(place, clock), "ASK_USER", role="Orchestrator")
        run.resume(_writer(place, clock))
