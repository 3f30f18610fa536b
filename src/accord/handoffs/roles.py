"""Who may write what: for each role the places that it must not change, as a table.

Source: handoff schema, "Role Contracts". What the contract does not forbid is allowed. The roles of its second phase,
for which it names outputs only, are held from the planner's outputs as the architect is. The engine's own places are
closed to every role.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from accord.handoffs.changes import lies_in, touch, value_at
from accord.kernel.findings import Finding, pointer

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from accord.handoffs.changes import Change, Place

PLAN: Place = ("metadata", "planningArtifact")
PLANNED: Place = ("metadata", "testingArtifacts", "planned")
REVIEW: Place = ("metadata", "reviewArtifact")
VERIFICATION: Place = ("metadata", "verificationArtifact")
DONE: Place = ("metadata", "doneArtifact")
PLANNER_OUTPUTS = (PLAN, PLANNED)
PLAN_CORE = tuple((*PLAN, key) for key in ("goals", "steps", "risks"))
REVIEW_REFERENCES = tuple((*output, "reviewReferences") for output in PLANNER_OUTPUTS)
"""Where the architect refers to a review in the planner's outputs; lists that only grow."""

ENGINE: tuple[Place, ...] = (("metadata", "workflowRuntime"), ("completedAt",))


@dataclass(frozen=True)
class Role:
    """``closed`` are places that the role must not change, ``open_within`` exceptions inside of these."""

    name: str
    closed: tuple[Place, ...] = ()
    open_within: tuple[Place, ...] = ()

    def may_change(self, place: Place) -> bool:
        """Tell whether the role may change what stands there."""
        if any(lies_in(place, exception) for exception in self.open_within):
            return True
        return not any(touch(place, closed) for closed in self.closed)


ROLES = {
    role.name: role
    for role in (
        Role("planner", (REVIEW, VERIFICATION, DONE)),
        Role("architect", PLANNER_OUTPUTS, REVIEW_REFERENCES),
        Role("tester", PLAN_CORE),
        Role("developer", PLANNER_OUTPUTS),
        Role("reviewer", PLANNER_OUTPUTS),
        Role("retrospective", PLANNER_OUTPUTS),
        Role("human"),
    )
}
"""``human`` is a person who answers or mends; agents are never given that role."""


def role_findings(role: str, changed: Iterable[Change]) -> Iterator[Finding]:
    """Name each change that the role must not make."""
    for place, _, _ in changed:
        if not ROLES[role].may_change(place):
            yield Finding(
                "role-must-not-write",
                f"The role {role} must not change {pointer(*place)}. Leave it out, or hand it to a role that may.",
                pointer(*place),
            )


def engine_findings(patch: Mapping[str, Any]) -> Iterator[Finding]:
    """Name each of the engine's places that a patch speaks of, even where it would change nothing."""
    for place in ENGINE:
        holder = value_at(patch, place[:-1])
        if isinstance(holder, dict) and place[-1] in holder:
            yield Finding(
                "engine-field",
                f"{pointer(*place)} is kept by the engine and written by no role. Leave it out of the patch.",
                pointer(*place),
            )
