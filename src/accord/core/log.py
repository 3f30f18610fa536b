"""Lines for a maintainer who reads a user's report: what ran and what was decided, by the standard ``logging``."""

from __future__ import annotations

import sys

_MOST_CHARS = 1_000


def log(subject: str, text: str, *values: object) -> None:
    """Log a line at level DEBUG under ``accord.SUBJECT``, which ``--debug`` shows.

    Nothing happens until a program has imported ``logging``: only its handlers can show the line. ``text`` and
    ``values`` are those of ``Logger.debug``; a handler of accord redacts the line.
    """
    if logging := sys.modules.get("logging"):
        logging.getLogger(f"accord.{subject}").debug(text, *values)


def cut(text: str) -> str:
    """Return the beginning of a text, short enough for one line."""
    return text if len(text) <= _MOST_CHARS else f"{text[:_MOST_CHARS]}…"
