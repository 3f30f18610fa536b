"""The overview of the sessions, missions and handoffs in a repository's folder, and of handoffs stored with issues."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any

from accord.board.models import Address, Entry, ItemHandoff, Overview, Placed, SessionQuestion, overview_from
from accord.core.clock import time_of
from accord.core.documents import MAX_BYTES, read_object
from accord.core.errors import AccordError, BrokenContract
from accord.core.findings import count_of, has_errors
from accord.git.program import Git, split_nul
from accord.handoffs.models import has_task_id, normalise, read_handoff
from accord.handoffs.stages import AWAITING, HandoffCommand, next_moves
from accord.sessions.folder import Session, is_session, read_session
from accord.sessions.folder_rules import check_session
from accord.sessions.next_moves import main_moves
from accord.sessions.policy import WORK

_OVER = ("done", "canceled")
"""Statuses of work packages on which nothing is left to do."""

MOST_SESSIONS = 50
"""The newest sessions; their names begin with their date."""

MOST_HANDOFFS = 50
_OTHERS = ("tests", "test", "testdata", "fixtures", "samples", "examples")
"""Directories, at any depth, whose files are not work."""

_ENDED = ("done", "cancelled")
"""Statuses of handoffs on which nothing is left to do."""

_ONWARD = {
    "backlog": "planning",
    "planning": "implementing",
    "implementing": "review",
    "review": "verification",
    "verification": "done",
}
"""The status that usually follows."""


def read_documents(root: Path, now: datetime) -> Overview:
    """Read the sessions, missions and handoffs of a folder; one that cannot be read needs a person."""
    return overview_from([*_sessions(root), *_missions(root, now), *read_handoffs(root, now)])


def _sessions(root: Path) -> Iterator[Placed]:
    work = root / WORK
    folders = sorted((path for path in work.iterdir() if path.is_dir()), reverse=True) if work.is_dir() else []
    for folder in [path for path in folders if is_session(path)][:MOST_SESSIONS]:
        is_broken = any(has_errors(findings) for _, _, findings in check_session(folder))
        yield from place_session(read_session(folder), is_broken=is_broken)


def place_session(session: Session, *, is_broken: bool) -> Iterator[Placed]:
    """Yield the entries of a session: one for each open question, else one for its state. Pure."""
    status, folder = session.status, str(session.folder)
    if status is None or is_broken:
        why, command = "Its documents break their contract.", _type("session", "check", folder)
        yield "needs_you", Entry("broken", session.name, session.name, why, command=command)
    if status is None:
        return
    since, (step, command) = time_of(status.last_update), _next_step(session)
    for decision in status.pending:
        command = _type("session", "answer", folder, f"{decision.decision_id}=ANSWER")
        question = SessionQuestion(folder, decision.decision_id)
        entry = Entry("question", session.name, decision.decision_id, decision.question, time_of(decision.asked_at))
        yield "needs_you", replace(entry, command=command, question=question)
    if status.current_state == "BLOCKED":
        why = status.blocker or "It is blocked."
        yield "needs_you", Entry("question", session.name, "BLOCKED", why, since, command=command)
    elif status.current_state == "DONE":
        yield "done", Entry("session", session.name, "DONE", _tasks(session), since)
    elif not status.pending:
        why = f"{_tasks(session)}{step}"
        yield "running", Entry("session", session.name, status.current_state, why, since, command=command)


def _next_step(session: Session) -> tuple[str, str]:
    """Return the next move of a session as a sentence with what it needs, and its command; a legal one, if any."""
    moves = sorted(main_moves(session), key=lambda move: (move.to == "BLOCKED", bool(move.missing)))
    if not moves:
        return "", _type("session", "show", str(session.folder))
    needs = f", which needs {', '.join(moves[0].missing)}" if moves[0].missing else ""
    return f" Next: {moves[0].to}{needs}.", moves[0].command


def _tasks(session: Session) -> str:
    tasks = session.plan
    completed = sum(task.status == "completed" for task in tasks)
    return f"{completed} of {len(tasks)} tasks completed." if tasks else "It has no tasks yet."


def _missions(root: Path, now: datetime) -> Iterator[Placed]:
    from accord.missions.load import load_mission
    from accord.missions.projects import mission_entries, named_root
    from accord.missions.query import mission_status

    try:
        found = named_root(root)
    except AccordError:  # the folder has no missions
        return
    for slug, problem in mission_entries(found).items():
        try:
            if problem:
                raise BrokenContract.of(problem)
            standing = mission_status(load_mission(found, slug, None), now)
        except AccordError as error:
            yield "needs_you", Entry("broken", slug, slug, error.message, command=_of_mission(root, "check", slug))
            continue
        yield from place_mission(slug, standing["work_packages"], root)


def place_mission(slug: str, packages: Sequence[dict[str, Any]], root: Path = Path()) -> Iterator[Placed]:
    """Yield the entries of a mission's work packages, and one for all that are broken. Pure.

    ``packages`` are as ``accord mission status`` reports them.
    """
    open_ones = [package for package in packages if package["status"] not in _OVER]
    broken = [package for package in open_ones if package["error"] or package["status"] is None]
    if broken:
        why = broken[0]["error"] or f"The status of {broken[0]['wp_id']} is unknown."
        count = count_of(len(broken), "work package")
        yield "needs_you", Entry("broken", slug, count, why, command=_of_mission(root, "check", slug))
    yield from (_place_package(slug, package, root) for package in open_ones if package not in broken)


def _place_package(slug: str, package: dict[str, Any], root: Path) -> Placed:
    status, name, title = package["status"], f"{slug} {package['wp_id']}", package["title"]
    command = _of_mission(root, "status", slug)
    if status == "blocked":
        return "needs_you", Entry("question", name, title, "It is blocked: a person decides.", command=command)
    if status == "in_progress":
        stale = package["stale"]
        if stale["status"] == "stale":
            minutes = stale["minutes_since_commit"]
            has_commit = minutes is not None
            age = f"Its last commit is {count_of(round(minutes), 'minute')} old." if has_commit else ""
            why = age or "It has no commit since its start."
            return "needs_you", Entry("stale", name, title, why, command=_of_mission(root, "stale", slug))
        by = f", by {package['worker']}" if package["worker"] else ""
        return "running", Entry("mission", name, title, f"It is in progress{by}.")
    if status == "planned" and package["ready"]:
        start = _of_mission(root, "start", slug, package["wp_id"])
        return "ready", Entry("mission", name, title, "Nothing blocks it.", command=start)
    blockers = ", ".join(package["blocked_by"])
    why = f"Blocked by {blockers}." if status == "planned" and blockers else f"Its status is {status}."
    return "waiting", Entry("mission", name, title, why)


def _type(*words: str) -> str:
    """Return a command as it can be typed: names of folders are untrusted."""
    return shlex.join(["accord", *words])


def _of_mission(root: Path, *words: str) -> str:
    return _type("mission", *(() if root == Path() else ("--root", str(root))), *words)


def read_handoffs(root: Path, now: datetime) -> Iterator[Placed]:
    """Yield the entries of the handoffs below a folder that git knows; none for a folder outside of a repository."""
    left_out = [f":(exclude,glob)**/{name}/**" for name in _OTHERS]
    found = Git(root).attempt(
        "grep", "-l", "-z", "-I", "--untracked", "-F", '"canonicalTaskId"', "--", "*.json", *left_out
    )
    for name in split_nul(found.stdout)[:MOST_HANDOFFS]:
        path = root / name
        with suppress(OSError, BrokenContract):  # other documents may hold the word, too
            with path.open("rb") as file:
                task = normalise(read_object(file.read(MAX_BYTES + 1)).value)
            if has_task_id(task):
                name, title = str(task["metadata"]["canonicalTaskId"]), str(task.get("title") or path.name)
                yield from place_handoff(task, name, title, shlex.quote(str(path)), now)


def place_item_handoff(handoff: ItemHandoff, address: Address, now: datetime) -> Iterator[Placed]:
    """Yield the entry of a handoff that is stored with an issue; none for a task that is over. Pure."""
    issue, place = handoff.issue, shlex.join(["--work-item", str(handoff.issue.number), *address.options])
    for section, entry in place_handoff(handoff.task, f"#{issue.number}", issue.title, place, now):
        yield section, replace(entry, url=issue.url)


def place_handoff(task: Mapping[str, Any] | None, name: str, title: str, place: str, now: datetime) -> Iterator[Placed]:
    """Yield the entry of a handoff; none for a task that is over. Pure.

    ``place`` names it in a command: its file, or options. Without a task, it cannot be read.
    """
    command = HandoffCommand(place)
    broken = Entry("broken", name, title, "The handoff breaks its contract.", command=f"accord handoff check {place}")
    if task is None:
        yield "needs_you", broken
        return
    status = str(task["status"])
    try:
        moves = next_moves(task, command, now) if status not in _ENDED else ()
        question = read_handoff(task).metadata.awaiting_human_artifact
    except BrokenContract:
        yield "needs_you", broken
        return
    if status == AWAITING and moves:
        why = question.question if question and question.question else "It waits for a person."
        asked = time_of(question.requested_at) if question else None
        first = min(moves, key=lambda move: (move.to in _ENDED, bool(move.missing)))
        yield "needs_you", Entry("question", name, title, why, asked, command=first.command)
    for move in moves:
        if move.to == _ONWARD.get(status):
            why = f"It cannot move from {status} to {move.to} without {', '.join(move.missing)}."
            why = why if move.missing else f"It may move from {status} to {move.to}."
            yield "needs_you" if move.missing else "ready", Entry("handoff", name, title, why, command=move.command)
