"""Ticking completed tasks in a pull request's body: their marks, and not one character beside them.

The tasks come out of a job in which an agent ran. So a text counts only if it is exactly that of an open task of the
body as it is now; a task that begins alike, or one that stands in code or in a comment, is another.
"""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

from accord.kernel.checklists import tasks, ticked

if TYPE_CHECKING:
    from accord.runner.models import RunOutputs

LEAST_CONFIDENCE = 0.5
"""What the contract calls low is below it ("Confidence scoring"); a wrong tick is taken back by unticking it."""


@dataclass(frozen=True)
class Ticked:
    """The new body, the tasks that were ticked in their order, and those that were named and are not open in it."""

    body: str
    done: tuple[str, ...] = ()
    left_out: tuple[str, ...] = ()
    reason: str = ""


def tick(body: str, outputs: RunOutputs) -> Ticked:
    """Tick what a run completed; the same body where nothing is to be ticked, with the reason."""
    if outputs.exit_code != "0":
        return Ticked(body, reason="The run failed, so its word on tasks does not count.")
    if not _is_confident(outputs.llm_confidence):
        return Ticked(body, reason=f"Nobody is sure of it: the confidence is below {LEAST_CONFIDENCE}.")
    wanted = Counter(named := completed(outputs.llm_completed_tasks))
    found = []
    for task in tasks(body):
        if not task.is_checked and wanted[task.text] > 0:
            wanted[task.text] -= 1
            found.append(task)
    left_out = tuple(text for text in dict.fromkeys(named) if wanted[text] > 0)
    return Ticked(ticked(body, found), tuple(task.text for task in found), left_out)


def completed(text: str) -> tuple[str, ...]:
    """Read ``llm-completed-tasks``; nothing where it is no JSON array of texts."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return ()
    is_list = isinstance(value, list) and all(isinstance(entry, str) for entry in value)
    return tuple(value) if is_list else ()


def _is_confident(text: str) -> bool:
    try:
        return LEAST_CONFIDENCE <= float(text) <= 1
    except ValueError:
        return False
