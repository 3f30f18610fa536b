"""The rules of a handoff at rest: what its status rests on is there, and its id can be told from others.

Source: handoff schema, "Validation Strategy".
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from accord.handoffs.models import Handoff
from accord.handoffs.normal import TASK_ID
from accord.handoffs.stages import gate_findings
from accord.kernel.documents import read_object, shown
from accord.kernel.findings import warning
from accord.kernel.shapes import read_shape

if TYPE_CHECKING:
    from collections.abc import Mapping

    from accord.kernel.findings import Finding


def read_handoff(task: Mapping[str, Any]) -> Handoff:
    """Read a task. Raises BrokenContract with every place that has not the right form."""
    return read_shape(Handoff, task)


def check_limits(task: Mapping[str, Any]) -> None:
    """Hold a task against the limits of documents, so that what is written can be read again. Raises BrokenContract."""
    read_object(json.dumps(task).encode())


def handoff_findings(handoff: Handoff) -> list[Finding]:
    """Judge a handoff that has the right form.

    Of its status's gate, what is missing is an error: somebody took it away, or wrote the status by hand. A verdict
    that turned since is none: it says where the task goes next.
    """
    findings = gate_findings("", handoff.status, handoff.metadata)
    missing = [finding for finding in findings if finding.code.startswith("missing-")]
    task_id = handoff.metadata.canonical_task_id
    if task_id is not None and not TASK_ID.fullmatch(task_id):
        message = (
            f'"{shown(task_id)}" is no task id. Write T- and five digits or more; else the next write gives a new one.'
        )
        missing.append(warning("task-id-invalid", message, "/metadata/canonicalTaskId"))
    return missing
