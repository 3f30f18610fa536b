"""The next moves of a task: what is legal, what is missing, and a command that gets it."""

from typing import Any

import pytest
from support.handoffs import EVERYTHING, REVIEW, VERIFICATION, by, handoff

from accord.handoffs.next_moves import HandoffCommand, next_moves
from accord.handoffs.plan import decide_move
from accord.handoffs.stages import HANDOFF

NONE: dict[str, Any] = {}
BOTH = {"reviewArtifact": {**REVIEW, "decision": "changes_requested"}, "verificationArtifact": VERIFICATION}


@pytest.mark.parametrize("status", HANDOFF.states)
@pytest.mark.parametrize("artifacts", [NONE, BOTH, EVERYTHING], ids=["nothing", "rejected", "everything"])
def test_exactly_the_moves_without_needs_may_be_made(status: str, artifacts: dict[str, Any]) -> None:
    task = handoff(status, **artifacts)
    moves = next_moves(task, HandoffCommand("task.json"))
    assert [move.to for move in moves] == list(HANDOFF.targets(status))
    for move in moves:
        assert decide_move(task, move.to, by("human")).is_ok is not bool(move.missing)
        verb = f"accord handoff {'patch' if move.missing else 'move'} task.json "
        assert move.command.startswith(verb)


def test_needs_are_named_and_the_command_is_for_who_may_write_the_first() -> None:
    task = handoff("review", **BOTH)
    found = {move.to: move for move in next_moves(task, HandoffCommand("'my task.json'", "reviewer", "rev 1"))}
    assert found["verification"].missing == ("reviewArtifact.decision approved",)
    assert found["verification"].command == (
        "accord handoff patch 'my task.json' PATCH.json --role reviewer --actor 'rev 1'"
    )
    assert found["implementing"].command.endswith("--to implementing --role reviewer --actor 'rev 1'")
    empty = {move.to: move for move in next_moves(handoff(), HandoffCommand("--work-item 12", "reviewer", "rev"))}
    assert empty["review"].missing == ("reviewArtifact", "verificationArtifact")
    assert empty["review"].command == "accord handoff patch --work-item 12 PATCH.json --role developer"
