"""The formats of transcripts, by the name that the registry gives them as ``codec``; anything else is plain text."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from accord.runner.transcripts.account import Account, TranscriptReader
from accord.runner.transcripts.claude import ClaudeReader
from accord.runner.transcripts.codex import CodexReader
from accord.runner.transcripts.gemini import GeminiReader
from accord.runner.transcripts.lines import events_in

FORMATS: dict[str, type[TranscriptReader]] = {form.codec: form for form in (CodexReader, ClaudeReader, GeminiReader)}


def account_of(codec: str, found: Iterable[bytes | None], agent: str) -> Account:
    """Read the lines of a transcript into an account; None is one that is too long."""
    reader = FORMATS[codec](agent)
    for line in found:
        if line is None:
            reader.skip_event()
            continue
        for event in events_in(line):
            if reader.is_event(event):
                reader.account.has_begun = True
                reader.take(event, line)
    return reader.finish()


def format_of(event: dict[str, Any]) -> str:
    """Return the codec of an event; empty for an object that is not one."""
    return next((codec for codec, form in FORMATS.items() if form.is_event(event)), "")
