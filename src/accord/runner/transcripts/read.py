"""Reading what a run printed: the right codec, the other streams where they matter, and one account in the end."""

from __future__ import annotations

import io
from dataclasses import replace
from itertools import islice
from typing import IO, TYPE_CHECKING

from accord.runner.classify import RunEvidence
from accord.runner.record import open_regular
from accord.runner.transcripts.claude import claude_events, is_claude
from accord.runner.transcripts.codex import codex_events, is_codex
from accord.runner.transcripts.events import Account
from accord.runner.transcripts.fold import MAX_MESSAGE_CHARS, account_of
from accord.runner.transcripts.gemini import gemini_events, is_document, is_gemini
from accord.runner.transcripts.lines import events_in, is_shallow, lines, parsed_text

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from pathlib import Path

    from accord.runner.record import InternalError
    from accord.runner.transcripts.events import Account, Event


_CHUNK_BYTES = 256 * 1024


def plain_account(stream: IO[bytes], agent: str, codec: str = "plain") -> Account:
    """Take a text as the message; of a very long one its end, where agents conclude."""
    kept = b""
    is_cut = False
    while chunk := stream.read(_CHUNK_BYTES):
        kept += chunk
        if len(kept) > 2 * MAX_MESSAGE_CHARS:
            kept, is_cut = kept[-MAX_MESSAGE_CHARS:], True
    text = kept.decode("utf-8", "replace").removeprefix("\ufeff")
    warnings = ("The message is very long; only its end was read.",) if is_cut else ()
    return Account(
        agent,
        "cut",
        final_message=text[-MAX_MESSAGE_CHARS:],
        warnings=warnings,
        is_structured=False,
        codec=codec,
        has_begun=bool(text.strip()),
        has_worked=bool(text.strip()),
    )


CODECS: dict[str, Callable[[Iterable[bytes]], Iterator[Event]]] = {
    "codex": codex_events,
    "claude": claude_events,
    "gemini": gemini_events,
}
"""The structured formats; anything else is plain text."""

TAIL_BYTES = 32 * 1024
"""How much of the end of stderr and of plain text counts as evidence."""

_STARTS = (b'{"type":"', b'{\n  "session_id"')
_DOCUMENT_BYTES = 1024 * 1024
_LINES_TO_RECOGNISE = 64


def read_account(
    codec: str, agent: str, stdout: Path, *, stderr: Path | None = None, final_message: Path | None = None
) -> Account:
    """Read what an agent printed into an account of its run; a file that is not there counts as empty.

    An agent whose codec is structured may still print plain text, when it is called so: without any event, text is the
    message. ``final_message`` is a file that the CLI wrote its last message to; when it holds something, it wins.
    """
    account = _structured(codec, agent, stdout, stderr) if codec in CODECS else None
    if account is None:
        with _opened(stdout) as stream:
            account = plain_account(stream, agent, codec)
    if written := _text(final_message):
        account = replace(account, final_message=written)
    if codec == "codex" and account.ending != "failure":
        value = parsed_text(account.final_message) if account.final_message.lstrip().startswith("{") else None
        account = replace(account, structured=value if isinstance(value, dict) and is_shallow(value) else None)
    return account


def read_evidence(
    codec: str,
    agent: str,
    exit_code: int | None,
    stdout: Path,
    *,
    stderr: Path | None = None,
    final_message: Path | None = None,
    own: InternalError | None = None,
) -> RunEvidence:
    """Gather all that ``accord.runner.classify`` wants to know of a run."""
    account = read_account(codec, agent, stdout, stderr=stderr, final_message=final_message)
    text = "" if account.is_structured else tail(stdout)
    return RunEvidence(exit_code, account, stderr=tail(stderr), text=text, own=own)


def recognise(stdout: Path, stderr: Path | None = None) -> str:
    """Tell the codec of a transcript by its first events; ``plain`` when it has none."""
    with _opened(stdout) as stream:
        for line in islice(lines(stream), _LINES_TO_RECOGNISE):
            for event in events_in(line):
                for codec, is_event in (("codex", is_codex), ("claude", is_claude), ("gemini", is_gemini)):
                    if is_event(event):
                        return codec
    for path in (stdout, stderr):
        if _document_events(path):
            return "gemini"
    return "plain"


def tail(path: Path | None, size: int = TAIL_BYTES) -> str:
    """Return the end of a file as text, from the beginning of a line on."""
    with _opened(path) as stream:
        length = stream.seek(0, 2)
        stream.seek(max(0, length - size))
        end = stream.read(size)
    if length > size:
        end = end.partition(b"\n")[2] or end
    return end.decode("utf-8", "replace")


def _structured(codec: str, agent: str, stdout: Path, stderr: Path | None) -> Account | None:
    """Read a structured transcript; None when stdout holds text and no event at all."""
    with _opened(stdout) as stream:
        account = account_of(CODECS[codec](lines(stream)), agent, codec)
    if account.has_begun:
        return account
    if codec == "gemini" and (found := _document_events(stdout) or _document_events(stderr)):
        return account_of(found, agent, codec)
    return account if _breaks_off_at_once(stdout) else None


def _breaks_off_at_once(stdout: Path) -> bool:
    """Tell whether a transcript without an event is empty, or was cut within its first event, and so is no text."""
    with _opened(stdout) as stream:
        all_lines = lines(stream)
        first = next((line for line in all_lines if line.strip()), b"")
        start = first + next(all_lines, b"")
    return not start or (start.startswith(_STARTS) and not events_in(first))


def _document_events(path: Path | None) -> list[Event]:
    """Return what the one document tells that Gemini CLI ends its output with, or nothing when there is none."""
    end = tail(path, _DOCUMENT_BYTES)
    start = end.rfind("\n{\n") + 1 or (0 if end.startswith("{\n") else -1)
    document = parsed_text(end[start:]) if start >= 0 else None
    return list(gemini_events([end[start:].replace("\n", " ").encode()])) if is_document(document) else []


def _text(path: Path | None) -> str:
    with _opened(path) as stream:
        text = stream.read(4 * MAX_MESSAGE_CHARS).decode("utf-8", "replace")
    return text[:MAX_MESSAGE_CHARS] if text.strip() else ""


def _opened(path: Path | None) -> IO[bytes]:
    """Open a file; one that is not there, or is no regular file, is an empty one."""
    if path is None:
        return io.BytesIO()
    try:
        return open_regular(path)
    except FileNotFoundError:
        return io.BytesIO()
