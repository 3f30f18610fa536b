"""Carrying operations out, one by one, whatever kind of result they come from; what stops one stops all that follow."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from accord.kernel.errors import AccordError
from accord.results.operations import Operation, Status

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from accord.results.operations import Entry
    from accord.results.setting import Tell

Op = TypeVar("Op", bound=Operation)


def in_order(
    operations: Sequence[Op], do: Callable[[Op], None], entry: Callable[[Op, Status], Entry], tell: Tell
) -> tuple[list[Entry], AccordError | None]:
    """Do what is not done yet, in order; return an entry for every operation, and what stopped the rest."""
    entries: list[Entry] = []
    problem: AccordError | None = None
    for operation in operations:
        status = operation.found or Status.PLANNED
        if status is Status.PLANNED and problem is None:
            try:
                do(operation)
                status = Status.DONE
            except AccordError as error:
                problem, status = error, Status.FAILED
        entries.append(entry(operation, status))
        try:
            tell(entries[-1], len(entries), len(operations))
        except AccordError as error:
            problem = problem or error
    return entries, problem
