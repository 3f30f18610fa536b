"""What one loop is to those who run it: what it asks, in which order, and what it does more at the end of a run."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    from accord.github.models import Pull
    from accord.loops.context import Site
    from accord.loops.facts import Gathered
    from accord.loops.models import Decision, Ending, LoopFacts, LoopName, LoopState
    from accord.runner.models import RunOutputs
    from accord.text.redaction import Redactor

Stage: TypeAlias = "Callable[[Gathered], Gathered]"


@dataclass(frozen=True)
class EndedRun:
    """A run that ended, as its job tells it. ``state`` is the one in which it was still under way.

    ``pull`` is the pull request as it is at the end of the run. Where the end is carried out, ``state`` has what was
    decided.
    """

    loop: Loop
    site: Site
    pull: Pull
    state: LoopState
    outputs: RunOutputs


@dataclass(frozen=True)
class Completed:
    """What a run completed, decided before anything is written.

    ``tasks_done`` counts for progress. ``body`` is the pull request's body with its ticks, None where a loop ticks
    none. ``decision`` is what follows, where the loop itself knows; else it is decided once more from facts, to which
    ``facts`` are added. ``verified`` is the commit that has a verdict now. ``said`` tells
    people what of the run cannot be used, though it did not fail.
    """

    tasks_done: int = 0
    body: str | None = None
    decision: Decision | None = None
    facts: Mapping[str, object] = field(default_factory=dict)
    verified: str = ""
    said: str = ""


def nothing_completed(_: EndedRun) -> Completed:
    """Count no task: for a loop whose progress is the files alone."""
    return Completed()


def nothing_more(_told: EndedRun, _ending: Ending) -> None:
    """Do no more than every loop does."""


def nothing_given(_: Gathered) -> tuple[str, ...]:
    """Give the agent nothing that it answers by number."""
    return ()


@dataclass(frozen=True)
class Loop:
    """One loop.

    ``first_facts`` are what the pull request alone tells, with all else as it would let the agent run. ``stages`` read
    the rest, in the order in which ``decide`` asks; ``details`` read what only the agent's prompt needs. ``completed``
    writes nothing. ``carry_out`` writes what the loop does more at the end of a run; it is called again after a crash,
    so it must find what it has written. ``given`` names what the agent's answer will refer to by number. ``schema``
    is the kind of the structured result, empty without one; ``is_swept`` says that open pull requests are looked
    through for work, ``changes_code`` that what the agent changes is kept.
    """

    name: LoopName
    first_facts: Callable[[Site, Pull], LoopFacts]
    stages: tuple[Stage, ...]
    decide: Callable[[Any, Redactor], Decision]
    details: tuple[Stage, ...] = ()
    completed: Callable[[EndedRun], Completed] = nothing_completed
    carry_out: Callable[[EndedRun, Ending], None] = nothing_more
    given: Callable[[Gathered], tuple[str, ...]] = nothing_given
    schema: str = ""
    is_swept: bool = True
    changes_code: bool = True

    @property
    def mode(self) -> str:
        """What a run is for, in the word of the runner contract."""
        return "verifier" if self.name == "verify" else self.name
