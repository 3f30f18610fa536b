"""The runs of a period in a repository, from its records, and the moves of sessions, missions and handoffs.

The logs of documents are read as they are, and no second log is written.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from accord.core.clock import time_of
from accord.core.documents import MAX_BYTES, read_object
from accord.core.errors import AccordError, BrokenContract
from accord.git.program import Git, split_nul
from accord.github.client import INSTALLATION_LOGIN
from accord.handoffs.models import has_task_id, normalise
from accord.records.chain import read_records
from accord.records.models import PublicRecord, RecordLinks, RecordResult, RecordTrigger, name_of, record_id
from accord.sessions.folder import is_session, read_session
from accord.sessions.policy import WORK
from accord.text.markers import REVISION, find_markers

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from datetime import datetime
    from pathlib import Path

    from accord.github.client import GitHub
    from accord.github.models import Identity, Pull
    from accord.missions.models import StatusEvent
    from accord.records.models import MoveKind
    from accord.sessions.models import OutputEntry, SessionStatus

MOST_HANDOFFS = 500


@dataclass(frozen=True)
class RunHistory:
    """The runs of a repository that ended in a period, oldest first, and the pull requests that accord opened."""

    repository: str
    options: tuple[str, ...]  # name the repository in commands
    since: datetime
    until: datetime
    records: tuple[PublicRecord, ...] = ()
    pulls: tuple[Pull, ...] = ()  # opened, merged or closed in the period


def read_history(github: GitHub, repository: str, options: tuple[str, ...], since: datetime) -> RunHistory:
    """Read the runs since then: one request for each hundred records and pull requests, and three more."""
    identity = github.identity()
    if identity.is_person:  # their token reads, but accord wrote as the workflow's
        identity = replace(identity, others=(*identity.others, INSTALLATION_LOGIN))
    records = read_records(github, since)
    pulls = [pull for pull in github.pulls_changed_since(since) if is_result(pull, identity) and _is_in(pull, since)]
    return RunHistory(repository, options, since, github.server_time(), records, tuple(pulls))


def is_result(pull: Pull, identity: Identity) -> bool:
    """Tell whether accord opened a pull request with the result of an implementor."""
    return identity.counts(pull.author) and bool(find_markers(pull.body, REVISION))


def _is_in(pull: Pull, since: datetime) -> bool:
    """Tell whether a pull request was opened, merged or closed in the period."""
    ended = pull.merged_at or pull.closed_at
    return any(moment is not None and moment >= since for moment in (pull.created_at, ended))


def read_moves(root: Path, since: datetime) -> tuple[list[PublicRecord], list[str]]:
    """Return the moves of the documents in a folder since then, oldest first, and notes about what is not known."""
    sessions = list(_of_sessions(root))
    found = [*sessions, *_of_missions(root), *_of_handoffs(root)]
    moves = sorted((move for move in found if move.ended_at >= since), key=lambda move: move.ended_at)
    notes = ["Sessions log the outputs of agents and their last change; earlier ones are in git's history."]
    notes = notes if sessions else []
    return moves, notes


def _move(
    kind: MoveKind, document: str, at: datetime, outcome: str, by: str = "", *, failed: bool = False
) -> PublicRecord:
    return PublicRecord(
        id=record_id(document, kind, at.isoformat(), outcome),
        kind=kind,
        repository="",
        trigger=RecordTrigger(by=name_of(by)),
        ended_at=at,
        result=RecordResult(disposition="failure" if failed else "success", outcome=name_of(outcome)),
        links=RecordLinks(document=name_of(document)),
        source="log",
    )


def _of_sessions(root: Path) -> Iterator[PublicRecord]:
    work = root / WORK
    for folder in sorted(work.iterdir()) if work.is_dir() else ():
        if folder.is_dir() and is_session(folder):
            session = read_session(folder)
            yield from moves_of_session(folder.name, session.status, session.outputs)


def moves_of_session(name: str, status: SessionStatus | None, outputs: Iterable[OutputEntry]) -> Iterator[PublicRecord]:
    """Yield the outputs of agents that a session logged, and its last change. Pure."""
    for entry in outputs:
        if (at := time_of(entry.at)) is not None:
            outcome = f"{entry.task_id}:{entry.status}"
            yield _move("session-move", name, at, outcome, entry.agent, failed=entry.status == "FAIL")
    if status is not None and (at := time_of(status.last_update)) is not None:
        yield _move("session-move", name, at, status.current_state)


def _of_missions(root: Path) -> Iterator[PublicRecord]:
    from accord.missions.load import load_mission, mission_slugs, named_root

    with suppress(AccordError):  # the folder has no missions
        for slug in mission_slugs(named_root(root)):
            with suppress(AccordError):
                yield from (move_of_event(slug, event) for event in load_mission(root, slug).log.events)


def move_of_event(slug: str, event: StatusEvent) -> PublicRecord:
    """Return the move that a line of a mission's log tells of. Pure."""
    return _move("mission-move", f"{slug}/{event.wp_id}", event.at, event.to_lane, event.actor)


def _of_handoffs(root: Path) -> Iterator[PublicRecord]:
    found = Git(root).attempt("grep", "-l", "-z", "-I", "--untracked", "-F", '"actionHistory"', "--", "*.json")
    for name in split_nul(found.stdout)[:MOST_HANDOFFS]:
        with suppress(OSError, BrokenContract), (root / name).open("rb") as file:
            task = normalise(read_object(file.read(MAX_BYTES + 1)).value)
            if has_task_id(task):
                yield from moves_of_task(task)


def moves_of_task(task: Mapping[str, Any]) -> Iterator[PublicRecord]:
    """Yield the actions that a handoff logged. Pure."""
    metadata = task.get("metadata")
    runtime = metadata.get("workflowRuntime") if isinstance(metadata, dict) else None
    entries = runtime.get("actionHistory") if isinstance(runtime, dict) else None
    for entry in entries if isinstance(entries, list) else ():
        if isinstance(entry, dict) and (at := time_of(str(entry.get("at")))) is not None:
            outcome = f"{entry.get('phase')}:{entry.get('status')}"
            name = str(task["metadata"]["canonicalTaskId"])
            yield _move("handoff-move", name, at, outcome, failed=entry.get("result") == "error")
