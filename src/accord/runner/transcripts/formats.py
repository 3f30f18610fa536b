"""The formats of transcripts: how each is recognized and read, and what the exit codes of its programs mean."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import field
from typing import Any

from accord.core.frozen import Frozen
from accord.runner.transcripts.account import Account, AccountBuilder, TranscriptReader
from accord.runner.transcripts.claude import ClaudeReader, is_claude
from accord.runner.transcripts.codex import CodexReader, is_codex
from accord.runner.transcripts.gemini import GeminiReader, is_gemini
from accord.runner.transcripts.lines import events_in


class Format(Frozen):
    """A format of events."""

    reader: type[TranscriptReader]
    is_event: Callable[[dict[str, Any]], bool]
    exits: Mapping[int, str] = field(default_factory=dict)  # causes by exit code
    statuses: Mapping[int, int] = field(default_factory=dict)  # HTTP statuses by exit code
    session_totals: tuple[str, ...] = ()  # numbers that are of the whole conversation after it was resumed
    ends_with_result: bool = False  # the last message is the structured result
    fails_on_stderr: bool = False  # stderr may end with the document of a failure


FORMATS = {
    "codex": Format(
        CodexReader,
        is_codex,
        exits={2: "settings"},
        session_totals=("input_tokens", "output_tokens"),
        ends_with_result=True,
    ),
    "claude": Format(ClaudeReader, is_claude, session_totals=("cost_usd",)),
    "gemini": Format(
        GeminiReader,
        is_gemini,
        exits={41: "credential", 42: "settings", 44: "settings", 52: "settings", 53: "turns", 55: "settings"},
        statuses={status % 256: status for status in (400, 401, 402, 403, 404, 429, 500, 502, 503, 504)},
        fails_on_stderr=True,
    ),
}
"""The formats by the name that the registry gives them as ``codec``; anything else is plain text."""


def account_of(codec: str, found: Iterable[bytes | None], agent: str) -> Account:
    """Read the lines of a transcript into an account; None is one that is too long."""
    form, builder = FORMATS[codec], AccountBuilder(agent, codec)
    reader = form.reader(builder)
    for line in found:
        if line is None:
            builder.skip_event()
            continue
        for event in events_in(line):
            if form.is_event(event):
                builder.account.has_begun = True
                reader.take(event, line)
    reader.finish()
    return builder.finish()


def format_of(event: dict[str, Any]) -> str:
    """Return the codec of an event; empty for an object that is not one."""
    return next((codec for codec, form in FORMATS.items() if form.is_event(event)), "")
