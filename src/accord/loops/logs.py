"""The failing part of a job's log: what a person would scroll to, small enough for a prompt. Pure.

A log of GitHub has a time before each line, colours, and marks of the runner (``##[error]``). The step that failed ends
with ``##[error]Process completed with exit code 1.``; what comes behind it is tidying up. Logs hold whatever the code
under test printed, so secrets are taken out before anything is cut, and the text is shown as data.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from accord.kernel.hidden_text import strip_hidden
from accord.kernel.terminal import as_seen

if TYPE_CHECKING:
    from collections.abc import Callable

READ_CHARACTERS = 2_000_000
"""Only the end of a log is looked at: what fails ends it."""

PART_CHARACTERS = 6_000
LINE_CHARACTERS = 500
LINES_BEFORE = 15
LINES_AFTER = 25

_TIME = re.compile(r"^\ufeff?\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{1,9})?Z ?", re.MULTILINE)
_OVERWRITTEN = re.compile(r"^[^\n]*\r(?=[^\n])", re.MULTILINE)
_ENDED = re.compile(r"##\[error\]Process completed with exit code \d+")
_NOISE = re.compile(r"##\[(?:group|endgroup|debug|section)\]")
_ERROR = re.compile(
    r"##\[error\]"
    r"|^\s*(?:E  |Traceback \(most recent|FAILED |FAIL:? |--- FAIL|panic: |npm ERR!|error(?:\[\w+\])?:|Error: )"
    r"|\b[A-Z]\w*(?:Error|Exception)\b: |: error(?: \w+)?: |\bAssertionError\b|\bfatal: ",
    re.MULTILINE,
)


def failing_part(log: str, redact: Callable[[str], str], *, characters: int = PART_CHARACTERS) -> str:
    """Return the last error of a log with its surroundings, and the end of the failing step; at most ``characters``."""
    lines = _lines(_plain(log, redact))
    ended = next((i for i in range(len(lines) - 1, -1, -1) if _ENDED.search(lines[i])), None)
    if ended is not None:
        lines = lines[:ended]
    lines = "\n".join(line for line in lines if not _NOISE.match(line)).strip("\n").split("\n")
    last = next((i for i in range(len(lines) - 1, -1, -1) if _ERROR.search(lines[i])), None)
    tail = _tail(lines, characters // 2)
    if last is None or last >= len(lines) - len(tail):
        return "\n".join(_tail(lines, characters))
    region = lines[max(0, last - LINES_BEFORE) : last + LINES_AFTER]
    shown = "\n".join(region)[: characters - characters // 2 - 10]
    return "\n".join([shown, "[…]", *tail])


def _plain(log: str, redact: Callable[[str], str]) -> str:
    """Drop what a terminal would not show as text; what is redacted is whole by then."""
    if len(log) > READ_CHARACTERS:
        log = log[-READ_CHARACTERS:].partition("\n")[2]
    text = _TIME.sub("", as_seen(log.replace("\r\n", "\n")))
    return strip_hidden(redact(_OVERWRITTEN.sub("", text).replace("\r", "")))


def _lines(text: str) -> list[str]:
    lines = [line.rstrip() for line in text.split("\n")]
    return [line if len(line) <= LINE_CHARACTERS else line[: LINE_CHARACTERS - 1] + "…" for line in lines]


def _tail(lines: list[str], characters: int) -> list[str]:
    """Return as many whole lines of the end as fit."""
    size = 0
    for start in range(len(lines) - 1, -1, -1):
        size += len(lines[start]) + 1
        if size > characters:
            return lines[start + 1 :]
    return lines
