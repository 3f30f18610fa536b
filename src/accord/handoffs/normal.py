"""A handoff as it is worked on: old names become today's, missing parts of the tests are filled, all else stays.

Source: handoff schema, "Backward compatibility". What has the wrong form elsewhere is left for the shape check to name.
"""

from __future__ import annotations

import copy
import re
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

OLD_STATUSES = {"todo": "backlog", "ready": "backlog", "in_progress": "implementing"}
TASK_ID = re.compile(r"T-(?:\d{5}|[1-9]\d{5,18})", re.ASCII)
"""Five digits, and more only where the number of the task has them: those of issues go on after 99,999."""

_OLD_KEYS = (
    ("planningArtifact", "implementationSteps", "steps"),
    ("awaitingHumanArtifact", "recommendedDefault", "recommendedOption"),
)
_LISTS = {
    "planned": ("gherkinScenarios", "unitTestIntent", "integrationTestIntent"),
    "implemented": ("testsAddedOrUpdated", "evidenceLinks", "commandsRun"),
}


def normalised(task: Mapping[str, Any]) -> dict[str, Any]:
    """Return the task in today's form; the given one stays as it is. To normalise twice changes nothing more."""
    found: dict[str, Any] = copy.deepcopy(dict(task))
    status = found.setdefault("status", "backlog")
    if isinstance(status, str):
        found["status"] = OLD_STATUSES.get(status, status)
    metadata = found.setdefault("metadata", {})
    if isinstance(metadata, dict):
        _normalise_metadata(metadata)
    return found


def as_patch(patch: Mapping[str, Any]) -> dict[str, Any]:
    """Return a patch in today's names; nothing is filled in, so that it says no more than its author did."""
    found: dict[str, Any] = copy.deepcopy(dict(patch))
    if isinstance(found.get("status"), str):
        found["status"] = OLD_STATUSES.get(found["status"], found["status"])
    if isinstance(found.get("metadata"), dict):
        _rename(found["metadata"])
    return found


def next_task_id(known: Iterable[object]) -> str:
    """Return the id after the highest of those that are well formed; T-00001 where there is none."""
    numbers = [int(name[2:]) for name in known if isinstance(name, str) and TASK_ID.fullmatch(name)]
    return f"T-{max(numbers, default=0) + 1:05d}"


def has_task_id(task: Mapping[str, Any]) -> bool:
    """Tell whether the task has an id of the right form."""
    metadata = task.get("metadata")
    found = metadata.get("canonicalTaskId") if isinstance(metadata, dict) else None
    return isinstance(found, str) and bool(TASK_ID.fullmatch(found))


def _normalise_metadata(metadata: dict[str, Any]) -> None:
    _rename(metadata)
    testing = metadata.get("testingArtifacts")
    if not isinstance(testing, dict):
        return
    if not isinstance(testing.get("schemaVersion"), str):
        testing["schemaVersion"] = "1.0"
    for part, lists in _LISTS.items():
        if not isinstance(testing.get(part), dict):
            testing[part] = {}
        for name in lists:
            if not isinstance(testing[part].get(name), list):
                testing[part][name] = []
        testing[part].setdefault("notes", None)


def _rename(metadata: dict[str, Any]) -> None:
    for name, old, new in _OLD_KEYS:
        artifact = metadata.get(name)
        if isinstance(artifact, dict) and old in artifact and new not in artifact:
            artifact[new] = artifact.pop(old)
    awaiting = metadata.get("awaitingHumanArtifact")
    if isinstance(awaiting, dict) and isinstance(awaiting.get("options"), list):
        awaiting["options"] = [
            {"label": option, "description": ""} if isinstance(option, str) else option
            for option in awaiting["options"]
        ]
