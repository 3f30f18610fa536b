"""Where a mission's run stands: the steps of its type, and what is known of a run that began. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pydantic import Field

from accord.kernel.errors import BrokenContract
from accord.kernel.findings import Finding
from accord.missions.models import LenientText, Listed, OfFile, Text

if TYPE_CHECKING:
    from collections.abc import Sequence

DEFAULT_TYPE = "software-dev"
_LINE = (
    "discovery",
    "specify",
    "plan",
    "tasks_outline",
    "tasks_packages",
    "tasks_finalize",
    "implement",
    "review",
    "accept",
)


class Step(OfFile):
    """One step of a mission type."""

    id: Text
    depends_on: Listed = Field([])
    requires_inputs: Listed = Field([])


class Template(OfFile):
    """``mission-runtime.yaml``: the steps of a mission type, in their order."""

    steps: list[Step]


class RunState(OfFile):
    """``state.json`` of a run."""

    run_id: LenientText = ""
    mission_key: LenientText = ""
    completed_steps: Listed = Field([])
    issued_step_id: str | None = None
    inputs: dict[str, Any] = Field({})
    pending_decisions: dict[str, Any] = Field({})
    blocked_reason: str | None = None


SOFTWARE_DEV = tuple(Step(id=name, depends_on=list(_LINE[max(0, i - 1) : i])) for i, name in enumerate(_LINE))


@dataclass(frozen=True)
class Decision:
    """A question that a run waits for."""

    id: str
    input_key: str | None = None
    question: str | None = None
    options: tuple[str, ...] | None = None
    step_id: str | None = None


@dataclass(frozen=True)
class Standing:
    """Where a run stands. ``preview_step`` is the step that would be issued next."""

    mission_state: str
    step_id: str | None = None
    preview_step: str | None = None
    reason: str | None = None
    decision: Decision | None = None


def stand(steps: Sequence[Step], state: RunState, mission_type: str) -> Standing:
    """Tell where a run stands. Raises BrokenContract ``no-first-step`` for a fresh one that cannot begin.

    A block comes before a question, and a question before the next step.
    """
    done = set(state.completed_steps)
    issued = state.issued_step_id if state.issued_step_id and state.issued_step_id not in done else None
    following = next(
        (step for step in steps if step.id not in done and step.id != issued and done.issuperset(step.depends_on)), None
    )
    preview = following.id if following else None
    decision = _pending(state)
    if state.blocked_reason:
        return Standing(issued or preview or "blocked", issued, preview, state.blocked_reason)
    if decision:
        return Standing(issued or decision.step_id or preview or "waiting", issued, preview, None, decision)
    if issued:
        return Standing(issued, issued, preview)
    if following:
        missing = _missing_input(following, state)
        if not done:
            return Standing("not_started", None, preview, None, missing)
        return Standing(following.id, None, preview, None, missing)
    if not done:
        message = f'The mission type "{mission_type}" has no issuable first step. Mend the steps in its template.'
        raise BrokenContract(message, findings=[Finding("no-first-step", message)])
    if all(step.id in done for step in steps):
        return Standing("done")
    return Standing("blocked", reason="No step can be issued: each waits for one that never comes.")


def _pending(state: RunState) -> Decision | None:
    """Return the pending decision with the lowest id."""
    if not state.pending_decisions:
        return None
    name = min(state.pending_decisions)
    value = state.pending_decisions[name]
    told = value if isinstance(value, dict) else {"question": value}
    options = told.get("options")
    key = told.get("input_key") or (name.removeprefix("input:") if name.startswith("input:") else None)
    return Decision(
        name,
        _text(key),
        _text(told.get("question")),
        tuple(str(option) for option in options) if isinstance(options, list) else None,
        _text(told.get("step_id")),
    )


def _text(value: object) -> str | None:
    return value if isinstance(value, str) and value else None


def _missing_input(step: Step, state: RunState) -> Decision | None:
    missing = next((name for name in step.requires_inputs if name not in state.inputs), None)
    if missing is None:
        return None
    return Decision(f"input:{missing}", missing, f'The step {step.id} needs the input "{missing}". What is it?')
