"""Next moves of a document's state machine, with what each still needs and the command to type."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True)
class Need:
    """One requirement of a move: a sentence for its refusal, its short form, and a name for the way to get it.

    Without the short form, a command says it in its own words.
    """

    text: str
    missing: str = ""
    key: str = ""


@dataclass(frozen=True)
class NextMove:
    """A move to the state or status ``to``.

    ``missing`` names what the move still needs (files, reviews, answers); it is empty when the move is legal now.
    ``command`` is what to type next on the way to ``to``: the move itself, or while something is missing the command
    that gets the first of it.
    """

    to: str
    missing: tuple[str, ...]
    command: str


def moves_to_json(moves: Iterable[NextMove]) -> list[dict[str, Any]]:
    """Return the value of ``next_moves`` in a JSON document."""
    return [{**asdict(move), "missing": list(move.missing)} for move in moves]


def move_lines(moves: Iterable[NextMove]) -> list[str]:
    """Return the lines that end a command's text, legal moves first; none for an end state."""
    ordered = sorted(moves, key=lambda move: bool(move.missing))
    lines = ["Next:"] if ordered else []
    for move in ordered:
        needs = f" (needs {', '.join(move.missing)})" if move.missing else ""
        lines += [f"  {move.to}{needs}", f"    {move.command}"]
    return lines
