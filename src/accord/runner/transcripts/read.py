"""Reading the output of a run: choose its format, and read its events or its plain text in constant memory."""

from __future__ import annotations

import io
import re
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import IO, Any

from accord.agents.registry import shipped_registry
from accord.core.frozen import Frozen
from accord.core.suggest import did_you_mean
from accord.runner import record as layout
from accord.runner.models import InternalError
from accord.runner.record import RunRecord, open_regular
from accord.runner.registry import registry_at
from accord.runner.transcripts.account import (
    MAX_MESSAGE_CHARS,
    NO_MESSAGE,
    Account,
    TranscriptReader,
    bounded_message,
)
from accord.runner.transcripts.claude import NO_STRUCTURED_RESULT, ClaudeReader
from accord.runner.transcripts.codex import CodexReader
from accord.runner.transcripts.gemini import GeminiReader
from accord.runner.transcripts.lines import events_in, indented_objects, is_shallow, json_value, lines

FORMATS: dict[str, type[TranscriptReader]] = {form.codec: form for form in (CodexReader, ClaudeReader, GeminiReader)}
"""The formats by the name that the registry gives them as ``codec``; anything else is plain text."""

TAIL_BYTES = 32 * 1024
"""How much of the end of stderr and of plain text counts as evidence."""

_OPENINGS = (b"{", b"[")
_BEGINNING = re.compile(rb'\[?\s*\{\s*"(?:type|session_id)"\s*:')
_LINES_TO_RECOGNISE = 64
_CHUNK_BYTES = 256 * 1024
_NO_EVENT = "The agent printed text without an event of `{0}`. If its command asks for text, set `codec: plain`."
_LONG_MESSAGE = f"The message is longer than {MAX_MESSAGE_CHARS:,} characters. The transcript has the rest."


class RunEvidence(Frozen):
    """The evidence of a run."""

    exit_code: int | None
    account: Account
    stderr: str = ""  # its tail
    text: str = ""  # the tail of stdout, if that is plain text
    error: InternalError | None = None
    has_changes: bool = False  # in the work tree, pushed or not


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


def plain_account(stream: IO[bytes], agent: str, codec: str = "plain") -> Account:
    """Return an account with the text as the message."""
    text = _message(stream).removeprefix("\ufeff")
    is_any = bool(text.strip())
    return Account(agent, final_message=text, is_structured=False, codec=codec, has_begun=is_any, has_worked=is_any)


def read_evidence(
    codec: str,
    agent: str,
    exit_code: int | None,
    stdout: Path,
    *,
    stderr: Path | None = None,
    final_message: Path | None = None,
    error: InternalError | None = None,
) -> RunEvidence:
    """Read what an agent printed, for ``accord.runner.classify``; a missing file counts as empty.

    Without any event, the output of an agent with a structured codec is plain text, too. ``final_message`` is a file
    with the CLI's last message; unless it is empty, it wins.
    """
    account = _structured_account(codec, agent, stdout, stderr) if codec in FORMATS else None
    if account is None:
        with _open_or_empty(stdout) as stream:
            account = plain_account(stream, agent, codec)
    with _open_or_empty(final_message) as stream:
        written = _message(stream)
    if written.strip():
        account.final_message = written
    if len(account.final_message) > MAX_MESSAGE_CHARS:
        account.warnings += (_LONG_MESSAGE,)
    if codec in FORMATS and FORMATS[codec].ends_with_result and account.ending != "failure":
        account.structured = _object_in(account.final_message)
    if exit_code == 0 and not account.is_structured and not account.final_message.strip():
        account.warnings += (NO_MESSAGE,)
    text = "" if account.is_structured else tail(stdout)
    return RunEvidence(exit_code, account, stderr=tail(stderr), text=text, error=error)


def evidence_in(run_dir: Path, record: RunRecord) -> RunEvidence:
    """Return the evidence in the folder of a run. A submitted result replaces the one in the agent's answer."""
    names = (layout.STDOUT, layout.STDERR, layout.FINAL_MESSAGE)
    stdout, stderr, message = (run_dir / name for name in names)
    known = (record.codec, record.agent, record.exit_code, stdout)
    evidence = read_evidence(*known, stderr=stderr, final_message=message, error=record.error)
    with _open_or_empty(run_dir / layout.SUBMITTED) as stream:
        value = _object_in(_message(stream))
    if value is not None:
        account = evidence.account
        account.structured = value
        account.warnings = tuple(text for text in account.warnings if text != NO_STRUCTURED_RESULT)
    if record.exit_code == 0 and record.codec in FORMATS and not evidence.account.is_structured:
        evidence.account.ending = "failure"  # accord asked for events
        evidence.account.warnings += (_NO_EVENT.format(record.codec),)
    return evidence


def codec_of(
    agent: str, stdout: Path, stderr: Path | None = None, directory: Path | None = None
) -> tuple[str, tuple[str, ...]]:
    """Return the codec of an agent's transcript, by the agent's name or else by the first events; and warnings.

    A name is known if it is in the registry of ``directory`` or of accord, or names a codec. Only accord's registry
    decides the codec: the agent may have changed the other one.
    """
    shipped = shipped_registry()
    if agent in shipped.agents:
        return shipped.agents[agent].codec, ()
    if agent in FORMATS or agent == "plain":
        return agent, ()
    codec = recognise(stdout, stderr)
    known = {*FORMATS, *registry_at(directory or Path()).agents}
    if not agent or agent in known:
        return codec, ()
    form = "plain text" if codec == "plain" else f"a transcript of {codec}"
    return codec, (f"Unknown agent `{agent}`. Its output was read as {form}. {did_you_mean(agent, known)}".rstrip(),)


def recognise(stdout: Path, stderr: Path | None = None) -> str:
    """Return the codec of a transcript by its first events; ``plain`` without any."""
    sources = [(stdout, lines), (stdout, _json_lines), (stderr, _json_lines)]
    found = (event for path, reader in sources for event in _first_events(path, reader))
    return next(filter(None, map(format_of, found)), "plain")


def _first_events(path: Path | None, reader: Callable[[IO[bytes]], Iterator[bytes | None]]) -> list[dict[str, Any]]:
    with _open_or_empty(path) as stream:
        first = islice(reader(stream), _LINES_TO_RECOGNISE)
        return [event for line in first for event in events_in(line or b"")]


def tail(path: Path | None, size: int = TAIL_BYTES) -> str:
    """Return the end of a file as text, from the beginning of a line."""
    with _open_or_empty(path) as stream:
        length = stream.seek(0, 2)
        stream.seek(max(0, length - size))
        end = stream.read(size)
    if length > size:
        end = end.partition(b"\n")[2] or end
    return end.decode("utf-8", "replace")


def _structured_account(codec: str, agent: str, stdout: Path, stderr: Path | None) -> Account | None:
    """Read a structured transcript; None if stdout has text that is neither events nor the beginning of one.

    Events of another format are read as what they are, with a warning; those of an unknown one count as a transcript
    that breaks off.
    """
    sources = [(stdout, lines), (stdout, _json_lines), *[(stderr, _json_lines)] * FORMATS[codec].fails_on_stderr]
    for path, reader in sources:
        with _open_or_empty(path) as stream:
            account = account_of(codec, reader(stream), agent)
        if account.has_begun:
            return account
    with _open_or_empty(stdout) as stream:
        start = stream.read(_CHUNK_BYTES).removeprefix(b"\xef\xbb\xbf").lstrip()
    found = [event for reader in (lines, _json_lines) for event in _first_events(stdout, reader)]
    other = next(filter(None, map(format_of, found)), "") if start.startswith(_OPENINGS) else ""
    if other and (read := _structured_account(other, agent, stdout, stderr)):
        read.warnings += (f"The output is a transcript of {other}, not of {codec}, and was read as one.",)
        return read
    is_stream = sum(isinstance(event.get("type"), str) for event in found) > 1
    account.has_begun = is_stream or bool(_BEGINNING.match(start) and not found)
    return account if account.has_begun or not start else None


def _json_lines(stream: IO[bytes]) -> Iterator[bytes | None]:
    """Yield the objects of an output that begins or ends as JSON over many lines does, each in one line."""
    first = next((line for line in lines(stream) if line and line.strip()), b"").strip()
    stream.seek(-min(TAIL_BYTES, stream.seek(0, 2)), 2)
    last = stream.read().rstrip().rpartition(b"\n")[2].strip()
    stream.seek(0)
    if first[:1] in _OPENINGS or last in {b"}", b"]"}:
        yield from indented_objects(lines(stream))


def _object_in(text: str) -> dict[str, Any] | None:
    """Parse a text as one JSON object; None if it is not one, or nested too deeply."""
    value = json_value(text.encode("utf-8", "replace")) if text.lstrip().startswith("{") else None
    return value if isinstance(value, dict) and is_shallow(value) else None


def _message(stream: IO[bytes]) -> str:
    """Read a message of any length in constant memory."""
    size = 2 * MAX_MESSAGE_CHARS + 4  # half of the bytes that so many characters may have, and one more
    beginning, end = stream.read(size), b""
    while chunk := stream.read(size):
        end = (end + chunk)[-size:]
    return bounded_message((beginning + end).decode("utf-8", "replace"))


def _open_or_empty(path: Path | None) -> IO[bytes]:
    """Open a file; a missing one, or one that is not a regular file, counts as empty."""
    if path is None:
        return io.BytesIO()
    try:
        return open_regular(path)
    except FileNotFoundError:
        return io.BytesIO()
