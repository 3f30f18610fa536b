"""The reviews that a task passes before it is completed, judged by what their agents gave back. Pure.

Source: global agent contract, "Task status lifecycle": Reviewer OK, QA OK, and Security OK where it is required.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from accord.sessions.models import AgentOutput, Task


def open_gates(task: Task, outputs: Mapping[str, AgentOutput]) -> tuple[str, ...]:
    """Name the roles whose review of a task did not pass, or is not there.

    ``outputs`` has the last output of each role. Security is required where the task is flagged, where an agent had
    a concern, and where Security spoke at all.
    """
    is_flagged = "security" in task.risk_flags or "Security" in outputs
    has_concern = any(output.gates.security_concerns for output in outputs.values())
    required = ("Reviewer", "QA", "Security") if is_flagged or has_concern else ("Reviewer", "QA")
    return tuple(role for role in required if role not in outputs or outputs[role].status != "OK")
