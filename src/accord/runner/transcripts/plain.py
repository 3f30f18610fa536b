"""Plain text: all of it is the message, and nothing in it tells how the run ended."""

from __future__ import annotations

from typing import IO

from accord.runner.transcripts.account import Account
from accord.runner.transcripts.fold import MAX_MESSAGE_CHARS

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
