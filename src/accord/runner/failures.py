"""What accord itself sees go wrong in a run, as an error that ends the attempt and becomes a part of its record."""

from __future__ import annotations

from typing import TYPE_CHECKING

from accord.kernel.errors import AccordError
from accord.runner.record import Own

if TYPE_CHECKING:
    from accord.runner.record import OwnKind


class NotRun(AccordError):
    """The agent was not started, or what it did cannot be handed on; ``own`` goes into the record."""

    def __init__(self, kind: OwnKind, message: str, *, mend: str = "") -> None:
        super().__init__(message, mend=mend)
        self.own = own_of(kind, self)


def own_of(kind: OwnKind, error: AccordError) -> Own:
    """Make an error what accord itself knows of a run."""
    return Own(kind=kind, detail=str(error), has_mend=bool(error.mend))
