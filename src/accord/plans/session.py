"""Read the tasks of a session's folder. It only reads the folder."""

from __future__ import annotations

from typing import TYPE_CHECKING

from accord.core.findings import has_errors
from accord.plans.links import task_numbers
from accord.plans.models import Source, SourceTask
from accord.sessions.folder import TASKS_FILE, read_session

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from accord.sessions.models import SessionTask


def read_session_tasks(folder: Path, root: str) -> Source:
    """Read ``tasks.yaml`` of a session; ``root`` is the folder's path in the repository."""
    session = read_session(folder)
    part = session.parts[TASKS_FILE]
    file = f"{root}/{TASKS_FILE}"
    spec = f"{root}/spec.md" if not session.parts["spec.md"].is_missing else file
    problems = [each for each in part.findings if has_errors([each])]
    if session.tasks is None or problems:
        from accord.core.findings import Finding

        missing = Finding(
            "artifact-missing", part.problem or f"{TASKS_FILE} cannot be read.", hint="Write the tasks first."
        )
        return Source(spec, (), tuple((file, each) for each in problems or [missing]))
    lines, numbers = lines_of_tasks(part.raw or b""), task_numbers(session)
    tasks = tuple(
        _task(task, numbers.get(task.id, 0), file, lines.get(i, 1)) for i, task in enumerate(session.tasks.tasks)
    )
    return Source(spec, tasks, numbers_into={task.id: folder / TASKS_FILE for task in tasks})


def lines_of_tasks(raw: bytes) -> Mapping[int, int]:
    """Return the line of each task's id, by its position."""
    from accord.files.yaml import read_mapping

    lines = read_mapping(raw).lines
    return {
        int(key.split("/")[2]): line
        for key, line in lines.items()
        if key.startswith("/tasks/") and key.endswith("/id") and key.count("/") == 3
    }


def _task(task: SessionTask, number: int, file: str, line: int) -> SourceTask:
    checks = [check if isinstance(check, str) else str(check) for check in task.acceptance_checks]
    return SourceTask(
        task.id,
        task.title or task.goal,
        line,
        file,
        section=task.id,
        objective=task.goal,
        scope=tuple(task.files_expected),
        criteria=(*checks, *task.done_when),
        context=tuple(f"Read `{path}`" for path in task.context_files)
        + tuple(f"Risk: {risk}" for risk in task.risk_flags if risk != "none"),
        constraints=tuple(f"Not a goal: {text}" for text in task.non_goals),
        blockers=tuple(task.depends_on),
        is_done=task.status == "completed",
        number=number,
        hint=f"Add `files_expected: [src/export.py]` to `{task.id}`.",
    )
