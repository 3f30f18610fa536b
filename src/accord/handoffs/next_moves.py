"""The next moves of a task: each legal move, what it still lacks, and the command to type. Pure."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from accord.core.moves import NextMove
from accord.handoffs.rules import read_handoff
from accord.handoffs.stages import AWAITING, DONE, HANDOFF, gate_findings

if TYPE_CHECKING:
    from collections.abc import Mapping

    from accord.core.findings import Finding

PATCH = "PATCH.json"
"""The placeholder for the file with what a move lacks."""

_MOVERS = {
    "backlog": "planner",
    "planning": "planner",
    "implementing": "developer",
    "review": "reviewer",
    "verification": "tester",
    AWAITING: "human",
    DONE: "human",
    "cancelled": "human",
}
"""The role that usually moves a task out of a status."""

_AUTHORS = {
    "reviewArtifact": "developer",
    "reviewArtifact.decision": "reviewer",
    "verificationArtifact": "tester",
    "doneArtifact": "retrospective",
    "awaitingHumanArtifact": "planner",
}
"""The role that usually writes an artifact, or one of its fields."""

_VERDICTS = {"review-not-approved": "approved", "verification-not-passed": "passed"}


@dataclass(frozen=True)
class HandoffCommand:
    """How to name a handoff in a command: its file, or options for its work item. ``actor`` and ``role`` just wrote."""

    place: str
    role: str = ""
    actor: str = ""

    def text(self, verb: str, role: str, *, patch: str = "", to: str = "") -> str:
        """Return a command for this handoff; the actor stays where the role does."""
        actor = ["--actor", shlex.quote(self.actor)] if self.actor and role == self.role else []
        words = [f"accord handoff {verb}", self.place, patch, *(["--to", to] if to else []), "--role", role, *actor]
        return " ".join(filter(None, words))


def next_moves(task: Mapping[str, Any], command: HandoffCommand) -> list[NextMove]:
    """Return the legal moves of a task that has the required shape."""
    status, metadata = str(task["status"]), read_handoff(task).metadata
    found = []
    for target in HANDOFF.targets(status):
        missing = gate_findings(status, target, metadata)
        if missing:
            typed = command.text("patch", _author_of(missing[0]), patch=PATCH)
        else:
            typed = command.text("move", _MOVERS[status], to=target)
        found.append(NextMove(target, tuple(dict.fromkeys(map(_name_of, missing))), typed))
    return found


def _name_of(finding: Finding) -> str:
    """Name what is missing: an artifact, a field of it, or a verdict."""
    name = finding.path.removeprefix("/metadata/").replace("/", ".")
    verdict = _VERDICTS.get(finding.code)
    return f"{name} {verdict}" if verdict else name


def _author_of(finding: Finding) -> str:
    name = finding.path.removeprefix("/metadata/").replace("/", ".")
    return _AUTHORS.get(name) or _AUTHORS[name.partition(".")[0]]
