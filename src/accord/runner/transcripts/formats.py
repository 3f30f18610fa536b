"""The formats of transcripts: how each is recognized and read, and what the exit codes of its programs mean."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from accord.runner.transcripts.claude import claude_events, is_claude
from accord.runner.transcripts.codex import codex_events, is_codex
from accord.runner.transcripts.gemini import gemini_events, is_gemini

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from accord.runner.transcripts.events import Event


@dataclass(frozen=True)
class Format:
    """A format of events.

    ``exits`` are causes by exit code, ``statuses`` HTTP statuses by exit code. ``session_totals`` are the numbers that
    are of the whole conversation after it was resumed; all others are of the turn. ``ends_with_result``: the last
    message is the structured result. ``may_be_document``: the output may also be one document over many lines.
    """

    events: Callable[[Iterable[bytes]], Iterator[Event]]
    is_event: Callable[[dict[str, Any]], bool]
    exits: Mapping[int, str] = field(default_factory=dict)
    statuses: Mapping[int, int] = field(default_factory=dict)
    session_totals: tuple[str, ...] = ()
    ends_with_result: bool = False
    may_be_document: bool = False


FORMATS = {
    "codex": Format(
        codex_events,
        is_codex,
        exits={2: "settings"},
        session_totals=("input_tokens", "output_tokens"),
        ends_with_result=True,
    ),
    "claude": Format(claude_events, is_claude, session_totals=("cost_usd",)),
    "gemini": Format(
        gemini_events,
        is_gemini,
        exits={41: "credential", 42: "settings", 44: "settings", 52: "settings", 53: "turns", 55: "settings"},
        statuses={status % 256: status for status in (400, 401, 402, 403, 404, 429, 500, 502, 503, 504)},
        may_be_document=True,
    ),
}
"""The formats by the name that the registry gives them as ``codec``; anything else is plain text."""
