"""Errors that lines of plain text report.

How much a line must look like a report of an error depends on who may have written it. Plain text is mostly prose of
the agent, so only lines that begin like a report count. While the agent has done nothing and its events name no error,
stderr is the program's: every line counts whose words name a cause, unless it reads like prose or progress.
"""

from __future__ import annotations

import re
from dataclasses import replace
from http import HTTPStatus
from itertools import takewhile
from typing import Literal, TypeAlias

from accord.runner.models import ErrorSource
from accord.runner.transcripts import error_rules as rules
from accord.runner.transcripts.account import Account, AgentError
from accord.runner.transcripts.error_rules import DESCRIBED, worded_cause
from accord.runner.transcripts.lines import json_prefix
from accord.runner.transcripts.wording import backoff_in, delay_in, error_from
from accord.text.hidden import as_seen

_LAST_LINES = 200

_Scope: TypeAlias = Literal["reports", "beginnings", "all"]
"""Lines that count: those that begin like reports, also those that begin with words of an error, or all with such."""

_REPORT = re.compile(
    r"^\s*(?:\[?\d{4}-\d\d-\d\d[^\s\]]*\]?\s+)?(?:"
    r"\[?(?:error|fatal|panic|critical)\]?(?::| \w+(?:::\w+)+:|!)|(?:npm )?ERR!|npm error |\[?API Error\b|"
    r"E: |docker: Error response from daemon:|go: (?:module )?\S{1,200}: |[\w.-]+@[\w.-]+: |"
    r"\[?\{ ?[\"']error[\"']: ?\{|(?:Error|Exception) [\w ]{0,40}(?::|Full report)|"
    r"(?:(?:error|fatal|uncaught|\(node:\d+\) Unhandled\w+:) +)?[\w.]*(?:Error|Exception)(?: \[\w+\])?:|"
    r"[\w./-]{1,40}: (?:error|fatal):|"
    r"[\w ]{1,40} failed: [45]\d\d [A-Z]|curl: \(\d+\)|\{\"type\": ?\"error\"|An unexpected (?:critical )?error)",
    re.IGNORECASE,
)
"""Beginnings of lines in which programs report errors; prose about errors begins otherwise."""

_LOG_PREFIX = re.compile(r"^(?:[^\t]{1,80}\t[^\t]{1,80}\t)?\ufeff?\d{4}-\d\d-\d\dT[\d:]{8}\.\d{7}Z ?")
_ERROR_COMMAND = re.compile(r"^(?:##\[error\]|::error(?: [^:]*)?::)")
"""How logs of GitHub Actions begin a line, and one with an error."""

_STEP_END = "\nError: Process completed with exit code "
"""The end of a failed step, and what GitHub Actions prints after it."""

_JSON_BLOCK = re.compile(r"^(?!\s).*(\{[ \t]*\n(?:[ \t].*\n)+\}).*$", re.MULTILINE)
_COMPARED = re.compile(
    r"\b(?:expect(?:ed)?|want(?:ed)?|assert\w*)\b.{0,40}\b[2-5]\d\d\b.{0,40}(?:\b(?:got|received|but|found|equal)\b|==)"
    r"|\b(?:got|received|returned)\b.{0,20}\b[2-5]\d\d\b.{0,20}\b(?:want|expected)\b|\bexpect\([^()\n]{0,80}\)"
    r"|^\W*(?:\d+ |[\w ]{0,40}: )?tests? (?:failed|timed out)\b|^(?-i:FAIL(?:ED)?)\b",
    re.IGNORECASE,
)
"""Results of tests: what they expect is a status of the tested program, not of the agent's provider."""

_GLYPHS = re.compile(r"^\s*(?:(?![•✓✔✅])[^\w\s\x00-\x7f]{1,3}\s{1,3})+")
"""Marks that CLIs print before a line, such as a cross."""

_BOX = " " + "".join(map(chr, range(0x2500, 0x25A0)))
"""Characters that terminals draw boxes and bars with."""

_GOES_ON = re.compile(
    r"[:,(]\n|^(?=.{60}).*[^.!?)\]\"'`\u2026^~]\n|^(?:[ \t]*(?:[-*+>#|•]|\d+\.) .*|.*[.!?)\]\"'`])\n(?=.*[.!?]\Z)"
)
"""Lines that the next one belongs to: those that introduce it, long ones without an end, and sentences before one."""

_CAUSE = re.compile(r"Caused by:$|\s+\d: \S")
_LEADS = re.compile(r"Caused by:$|^go: .*:$")
"""Lines below an error in which Rust programs list its causes; the only one, and that of Go, is just indented."""

_REMOTE = re.compile(r"remote: ")
_STATUS_FIELD = re.compile(r"^\s+\"?(?:status|code)\"?: ([45]\d\d),?$")
_STATUS_LINE = re.compile(r"^HTTP\S* \d{3}\b")
_HEADER = re.compile(r"^[\w-]+: ")
_TRYING = re.compile(r"^Attempt \d+ failed\b")
_STATUSES = "|".join([*(str(status.value) for status in HTTPStatus if status >= 400), "52\\d"])
"""Statuses registered for HTTP, and those of Cloudflare and Anthropic."""

_STATUS_WORDED = re.compile(
    r"(?:^(?:HTTP\S* )?|\w(?:Error|Exception)(?::| -) "
    r"|\b(?i:error|failed|returned|responded|received|rejected|got)(?: with)?(?: an?)?(?: code)?(?: HTTP)?:? |\bcode E)"
    rf"(?:(?<=: )\[)?({_STATUSES})(?=[\]:;,.)]|$| [{{(\"]| [A-Z]| from\b| [45]\d\d\b| page not found"
    r"| [\w -]{0,40}\b(?:limit|quota)\b| [a-z_]*[a-rt-z_]: \S+$)"
)
"""Statuses in a program's line, where ``status_in`` knows only those that are called so."""

_NOT_ERRORS = re.compile(
    r"^(?:not )?ok \d|^E  |^expected |, \w+ing\b|^(?!missing)\w+ing: "
    r"|^\W{0,8}(?:(?:\d{4}-\d\d-\d\d )?\S{1,60} {1,4}(?:- (?:\S{1,60} - )?)?)?\[?"
    r"(?:level=)?(?:warn(?:ing)?|info|debug|trace|note|hint)\b|^[-*+>#•|✓✔✅] "
    r"|^\s{2,}|^\d+\. |^[\w./-]+\.\w+:\d+[:\s]|^(?:HEAD is now at |\[[\w/. -]+ )?[0-9a-f]{7,40}\]? |(?-i:\bI\b)",
    re.IGNORECASE,
)
"""Lines of a lower level or in a list or table, steps, results of tests, lines or programs that go on, places in files,
commits, and the words of a speaker."""

_MENTIONED = re.compile(rf"{DESCRIBED.pattern}|\b(?:for|an?) $", re.IGNORECASE)
"""Those, and words before an error that a line without a report's beginning only mentions."""


def reported_errors(text: str, source: ErrorSource, account: Account) -> list[AgentError]:
    """Return the errors that lines report, in order, each with the status and the delay of the dump below it.

    The CLI's own wait before its last attempt also counts for the error of that attempt.
    """
    found: list[AgentError] = []
    waited: float | None = None
    is_counted = follows_git = False
    is_quoted = source == "text" or account.errors or rules.CONVERSATION.search(text)
    usual: _Scope = "reports" if is_quoted else "beginnings" if account.has_worked else "all"
    lines = printed_lines(text)
    last = first = len(lines) if source == "text" else 0
    while first > 1 and _HEADER.match(lines[first - 1]):
        first -= 1
    last = first if last and _STATUS_LINE.match(lines[first - 1]) else last  # of a response of HTTP
    for number, line in enumerate(lines, 1):
        is_end = number == last and not (number > 1 and _GOES_ON.search("\n".join(lines[number - 2 : number])))
        scope = "all" if is_end else usual  # no text leads to the line: the program said it as it ended
        if follows_git and rules.AFTERMATH.search(line):
            continue
        follows_git = bool(rules.GIT_ERROR.match(line) or (follows_git and rules.GIT_PROGRESS.match(line)))
        if _TRYING.match(line) or _is_report(line, scope):
            is_counted = not (_TRYING.match(line) and account.has_worked)
            if is_counted:
                above = takewhile(_REMOTE.match, reversed(lines[: number - 1] if rules.GIT_ERROR.match(line) else ()))
                found.append(_error_in(line, *above))
        elif found and is_counted:
            found[-1] = _with_dump(found[-1], line)
        if (wait := backoff_in(line)) is not None and (is_counted or scope == "all"):
            waited = wait
        if found and is_counted and waited is not None:
            found[-1] = replace(found[-1], backoff_seconds=waited)
    return found


def printed_lines(text: str) -> list[str]:
    """Return the last lines as their program printed them, without boxes, but JSON over several lines in one."""
    lines = [_LOG_PREFIX.sub("", as_seen(line).rstrip()) for line in text.splitlines()[-_LAST_LINES:]]
    boxes = [line.strip(_BOX) for line in lines]
    lines = [line if inside == line.strip() else inside for line, inside in zip(lines, boxes, strict=True)]
    whole = "\n".join(_ERROR_COMMAND.sub("Error: ", line) for line in lines)
    joined = _JSON_BLOCK.sub(lambda at: at[0] if json_prefix(at[1]) is None else " ".join(at[0].split()), whole)
    before, end, _ = joined.rpartition(_STEP_END) if _LOG_PREFIX.match(text) else ("", "", "")
    return [_GLYPHS.sub("", line) for line in (before if end else joined).rstrip().splitlines()]


def _is_report(line: str, scope: _Scope) -> bool:
    if not line or rules.BACKGROUND.search(line) or ("{" not in line and _COMPARED.search(line)):
        return False
    if _REPORT.match(line) or rules.VERBATIM.match(line):
        return True
    if scope == "reports" or _NOT_ERRORS.search(line):
        return False
    if scope == "beginnings":
        return bool(_STATUS_WORDED.match(line)) or any(rules.words(cause).match(line) for cause in rules.PRECEDENCE)
    error = _error_in(line)
    if error.status or rules.CLASSES & {error.kind, *error.classes}:
        return True
    return bool(worded_cause(error.message, described=_MENTIONED))


def _error_in(line: str, *others: str) -> AgentError:
    error = error_from(" ".join((line.strip(), *others)), line)
    if error.status is None and (worded := _STATUS_WORDED.search(line)):
        return replace(error, status=int(worded[1]), is_status_worded=True)
    return error


def _with_dump(error: AgentError, line: str) -> AgentError:
    if _CAUSE.match(line) or (_LEADS.search(error.message) and line[:1].isspace()):
        return _error_in(f"{error.message} {line.strip()}")
    field = _STATUS_FIELD.match(line)
    if field and error.is_status_worded:
        return replace(error, status=int(field[1]), is_status_worded=False)
    if error.retry_after_seconds is None and (delay := delay_in(line)) is not None:
        return replace(error, retry_after_seconds=delay)
    return error
