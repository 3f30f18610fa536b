"""The kinds of documents of this room: what the loops decide from, and what two of their runs answer."""

from __future__ import annotations

from accord.loops import autofix, bot_comments, keepalive, verify
from accord.loops import state as history

KINDS = (
    autofix.FACTS,
    bot_comments.ANSWERS,
    bot_comments.FACTS,
    history.LINE,
    keepalive.FACTS,
    verify.FACTS,
    verify.VERDICT,
)
