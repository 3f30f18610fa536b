"""Reading the output of a run: choose the codec, and read its events or its plain text in constant memory."""

from __future__ import annotations

import io
import json
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from accord.agents.registry import shipped_registry
from accord.core.suggest import did_you_mean
from accord.runner import record as layout
from accord.runner.classify import RunEvidence
from accord.runner.record import open_regular
from accord.runner.registry import registry_at
from accord.runner.transcripts.account import MAX_MESSAGE_CHARS, Account
from accord.runner.transcripts.claude import NO_STRUCTURED_RESULT
from accord.runner.transcripts.formats import FORMATS, account_of, format_of
from accord.runner.transcripts.gemini import is_document
from accord.runner.transcripts.lines import MAX_LINE_BYTES, events_in, is_shallow, json_prefix, json_value, lines

if TYPE_CHECKING:
    from accord.runner.models import InternalError

TAIL_BYTES = 32 * 1024
"""How much of the end of stderr and of plain text counts as evidence."""

_STARTS = (b'{"type":"', b'{\n  "session_id"')
_LINES_TO_RECOGNISE = 64
_CHUNK_BYTES = 256 * 1024


def plain_account(stream: IO[bytes], agent: str, codec: str = "plain") -> Account:
    """Return an account with the text as the message; of a very long text the end, where agents conclude."""
    kept = b""
    is_cut = False
    while chunk := stream.read(_CHUNK_BYTES):
        kept += chunk
        if len(kept) > 2 * MAX_MESSAGE_CHARS:
            kept, is_cut = kept[-MAX_MESSAGE_CHARS:], True
    text = kept.decode("utf-8", "replace").removeprefix("\ufeff")
    warnings = ("The message is very long. Only its end was read.",) if is_cut else ()
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


def read_account(
    codec: str, agent: str, stdout: Path, *, stderr: Path | None = None, final_message: Path | None = None
) -> Account:
    """Read an agent's output into an account of its run; a missing file counts as empty.

    Without any event, the output of an agent with a structured codec is plain text, too. ``final_message`` is a file
    with the CLI's last message; unless it is empty, it wins.
    """
    account = _structured_account(codec, agent, stdout, stderr) if codec in FORMATS else None
    if account is None:
        with _open_or_empty(stdout) as stream:
            account = plain_account(stream, agent, codec)
    if written := _text(final_message):
        account = replace(account, final_message=written)
    if codec in FORMATS and FORMATS[codec].ends_with_result and account.ending != "failure":
        account = replace(account, structured=_object_in(account.final_message))
    return account


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
    """Return the evidence of a run for ``accord.runner.classify``."""
    account = read_account(codec, agent, stdout, stderr=stderr, final_message=final_message)
    text = "" if account.is_structured else tail(stdout)
    return RunEvidence(exit_code, account, stderr=tail(stderr), text=text, error=error)


def evidence_in(
    run_dir: Path, codec: str, agent: str, exit_code: int | None, error: InternalError | None
) -> RunEvidence:
    """Return the evidence in the folder of a run. A submitted result replaces the one in the agent's answer."""
    names = (layout.STDOUT, layout.STDERR, layout.FINAL_MESSAGE)
    stdout, stderr, message = (run_dir / name for name in names)
    evidence = read_evidence(codec, agent, exit_code, stdout, stderr=stderr, final_message=message, error=error)
    value = _object_in(_text(run_dir / layout.SUBMITTED))
    if value is None:
        return evidence
    warnings = tuple(text for text in evidence.account.warnings if text != NO_STRUCTURED_RESULT)
    return replace(evidence, account=replace(evidence.account, structured=value, warnings=warnings))


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
    with _open_or_empty(stdout) as stream:
        for line in islice(lines(stream), _LINES_TO_RECOGNISE):
            for event in events_in(line or b""):
                if codec := format_of(event):
                    return codec
    documents = (codec for codec in FORMATS for path in (stdout, stderr) if _document_in(codec, path))
    return next(documents, "plain")


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
    """Read a structured transcript; None if stdout has text that is neither an event nor the beginning of one."""
    with _open_or_empty(stdout) as stream:
        account = account_of(codec, lines(stream), agent)
    if account.has_begun:
        return account
    if document := _document_in(codec, stdout) or _document_in(codec, stderr):
        return account_of(codec, [document], agent)
    with _open_or_empty(stdout) as stream:
        all_lines = lines(stream)
        first = next((line for line in all_lines if line and line.strip()), b"")
        start = first + (next(all_lines, b"") or b"")
    is_broken = start.startswith(_STARTS) and not events_in(first)
    return replace(account, has_begun=is_broken) if is_broken or not start else None


def _document_in(codec: str, path: Path | None) -> bytes:
    """Return the document over many lines that ends an output of this format, in one line; empty without one."""
    if not FORMATS[codec].may_be_document:
        return b""
    end = tail(path, MAX_LINE_BYTES)
    start = end.rfind("\n{\n") + 1 or (0 if end.startswith("{\n") else -1)
    document = json_prefix(end[start:]) if start >= 0 else None
    return json.dumps(document).encode() if is_document(document) else b""


def _object_in(text: str) -> dict[str, Any] | None:
    """Parse a text as one JSON object; None if it is not one, or nested too deeply."""
    value = json_value(text.encode("utf-8", "replace")) if text.lstrip().startswith("{") else None
    return value if isinstance(value, dict) and is_shallow(value) else None


def _text(path: Path | None) -> str:
    with _open_or_empty(path) as stream:
        text = stream.read(4 * MAX_MESSAGE_CHARS).decode("utf-8", "replace")
    return text[:MAX_MESSAGE_CHARS] if text.strip() else ""


def _open_or_empty(path: Path | None) -> IO[bytes]:
    """Open a file; a missing one, or one that is not a regular file, counts as empty."""
    if path is None:
        return io.BytesIO()
    try:
        return open_regular(path)
    except FileNotFoundError:
        return io.BytesIO()
