"""Texts of an agent as outputs: redacted before anything else, then made fit for where each of them is read.

Source: runner output contract, "Required Outputs". A masked secret that GitHub finds in an output costs the whole
output, and base64 would hide one from GitHub; so nothing of the kind may reach either.
"""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING

from accord.gha.commands import COMMAND, inert
from accord.gha.files import utf16_size
from accord.kernel.hidden_text import GUARD
from accord.kernel.outgoing.sanitise import sanitise, sanitise_line
from accord.kernel.terminal import as_seen

if TYPE_CHECKING:
    from accord.kernel.redaction import Redactor

SUMMARY_CHARS = 500
LINE_CHARS = 500
CUT = "\n\n[accord cut the message here, as GitHub takes no longer output; the run's artifact has all of it]\n"

_QUOTES = str.maketrans(
    {
        **dict.fromkeys("\"'`\u2018\u201a\u201b\u201c\u201d\u201e", "\u2019"),
        "$": "\uff04",
        "\\": "/",
        "<": "\u2039",
        ">": "\u203a",
    }
)


def sendable(text: str) -> str:
    """Replace what UTF-8 cannot hold (half surrogates) and what ends a text for many programs (NUL)."""
    return text.replace("\0", "\ufffd").encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def encoded(message: str, budget: int) -> tuple[str, bool]:
    """Write a redacted message as base64 of at most ``budget`` bytes as GitHub counts; tell whether it was cut."""
    whole = base64.b64encode(message.encode()).decode()
    if utf16_size(whole) <= budget:
        return whole, False
    room = max(budget // 8 * 3 - len(CUT.encode()), 0)
    kept = message.encode()[:room].decode("utf-8", "ignore")
    return base64.b64encode(f"{kept}{CUT}".encode()).decode(), True


def summary_of(message: str, redact: Redactor) -> str:
    """Write the first 500 characters of a redacted message so that it can stand in anybody's comment.

    Making it safe can make it longer; then a little less of the message is in it, and the rest is whole.
    """
    message = redact(as_seen(message))
    length = SUMMARY_CHARS
    while True:
        text = _obeyed_by_none(sanitise(message[:length], secrets=redact).text.strip())
        if len(text) <= SUMMARY_CHARS:
            return text
        length = max(length - max(len(text) - SUMMARY_CHARS, 1), 0)


def safe_line(text: str, redact: Redactor, limit: int = LINE_CHARS) -> str:
    """Write any text as one line that nobody obeys: no mention, HTML, quote or command, nothing that a shell expands.

    The contract's own example puts ``error-summary`` between double quotes of a script.
    """
    line = sanitise_line(sendable(redact(as_seen(text)))[: 4 * limit], secrets=redact).text.translate(_QUOTES)
    line = line.replace("![", "! [")
    line = line if len(line) <= limit else line[: limit - 1].rstrip() + "\u2026"
    return redact(inert(line))


def _obeyed_by_none(text: str) -> str:
    return COMMAND.sub(lambda hit: hit.group() + GUARD, text)
