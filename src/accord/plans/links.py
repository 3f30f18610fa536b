"""Links between a work item and the documents that belong to it: session tasks, work packages, and its handoff.

A task of ``tasks.yaml`` and the frontmatter of a work package name their issue as ``work_item: 12``. The handoff of an
item is stored under its number. Statuses are shown side by side as facts; none follows from another.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from accord.core.errors import AccordError
from accord.core.frozen import Frozen
from accord.core.numbers import issue_number
from accord.sessions.folder import TASKS_FILE, Session, is_session, read_session

if TYPE_CHECKING:
    from accord.github.client import GitHub
    from accord.github.models import Issue
    from accord.missions.load import Mission


class LinkedDocument(Frozen):
    """A document of a work item: its kind, its name, its id in there, its status, and the command that shows it."""

    kind: str
    name: str
    id: str
    status: str
    command: str

    def as_json(self) -> dict[str, Any]:
        """Return the JSON object of ``accord items show``."""
        return asdict(self)


def task_numbers(session: Session) -> dict[str, int]:
    """Return the issues that the tasks of a session name, by the tasks' ids."""
    value = session.parts[TASKS_FILE].value
    if session.tasks is None or not isinstance(value, dict):
        return {}
    pairs = zip(session.tasks.tasks, value["tasks"], strict=True)
    return {task.id: number for task, raw in pairs if (number := issue_number(raw.get("work_item")))}


def package_numbers(mission: Mission) -> dict[str, int]:
    """Return the issues that the work packages of a mission name, by their ids."""
    return {name: one.head.work_item for name, one in mission.work_packages.items() if one.head.work_item}


def documents_of(root: Path, number: int) -> list[LinkedDocument]:
    """Return the session tasks and work packages of a checkout that name an issue; broken documents are skipped."""
    return documents_by_number(root).get(number, [])


def documents_by_number(root: Path) -> dict[int, list[LinkedDocument]]:
    """Return the session tasks and work packages of a checkout by the issues that they name."""
    found: dict[int, list[LinkedDocument]] = {}
    for number, document in (*_session_tasks(root), *_work_packages(root)):
        found.setdefault(number, []).append(document)
    return found


def packages_with_links(packages: list[dict[str, Any]], mission: Mission, root: Path) -> list[dict[str, Any]]:
    """Add to the work packages of a status the issue that each names, and what else in the checkout names it."""
    numbers = package_numbers(mission)
    linked = documents_by_number(root) if numbers else {}
    found = []
    for entry in packages:
        number = numbers.get(entry["wp_id"], 0)
        others = [each.as_json() for each in linked.get(number, ()) if each.name != mission.slug]
        found.append({**entry, "work_item": str(number) if number else None, "documents": others})
    return found


def handoff_of(github: GitHub, issue: Issue) -> LinkedDocument | None:
    """Return the handoff of an issue; None without a block in its body, or where it cannot be read."""
    from accord.handoffs.store import HandoffStore, read_block

    if read_block(issue.body) is None:
        return None
    try:
        task = HandoffStore(github, issue.number).load().value
    except AccordError:
        return None
    name = f"#{issue.number}"
    return LinkedDocument(
        "handoff", name, name, str(task["status"]), f"accord handoff check --work-item {issue.number}"
    )


def _session_tasks(root: Path) -> Iterator[tuple[int, LinkedDocument]]:
    for path in sorted((root / ".agents-work").glob("*/")):
        session = read_session(path) if is_session(path) else None
        for name, number in task_numbers(session).items() if session else ():
            if session and (task := session.task(name)):
                command = shlex.join(["accord", "session", "show", str(path)])
                yield number, LinkedDocument("session-task", session.name, name, task.status, command)


def _work_packages(root: Path) -> Iterator[tuple[int, LinkedDocument]]:
    from accord.missions.load import load_mission
    from accord.missions.projects import mission_slugs

    for slug in mission_slugs(root):
        with suppress(AccordError):
            mission = load_mission(root, slug, "code_change")
            command = shlex.join(["accord", "mission", "status", slug])
            for name, number in package_numbers(mission).items():
                status = mission.known_status(name) or "unknown"
                yield number, LinkedDocument("work-package", slug, name, status, command)
