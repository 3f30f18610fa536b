"""Lines for a maintainer who reads a user's report: what ran and what was decided, by the standard ``logging``."""

from __future__ import annotations

import sys


def log(subject: str, text: str, *values: object) -> None:
    """Log a line at level DEBUG under ``accord.SUBJECT``, which ``--debug`` shows.

    Nothing happens until a program has imported ``logging``: only its handlers can show the line. ``text`` and
    ``values`` are those of ``Logger.debug``; a tuple is a command. A handler of accord redacts, quotes and shortens:
    a secret that is quoted or cut before is not found.
    """
    if logging := sys.modules.get("logging"):
        logging.getLogger(f"accord.{subject}").debug(text, *values)
