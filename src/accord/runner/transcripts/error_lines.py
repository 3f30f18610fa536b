"""Lines of stderr and of plain text that report an error.

How much a line must look like a report depends on who may have written it. Plain text is mostly prose of the agent, so
only lines that begin like a report count. While the agent has done nothing and its events name no error, stderr is the
program's: every line counts whose words name a cause, unless it reads like prose or progress.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING, Literal, TypeAlias

from accord.runner.transcripts.error_rules import WORDS
from accord.runner.transcripts.wording import delay_in, error_from
from accord.text.hidden import as_seen

if TYPE_CHECKING:
    from accord.runner.models import Source
    from accord.runner.transcripts.events import Account, AgentError

_LAST_LINES = 200

_Scope: TypeAlias = Literal["reports", "beginnings", "all"]
"""Lines that count: those that begin like reports, also those that begin with words of an error, or all with such."""

_REPORT = re.compile(
    r"^\s*(?:[^\x00-\x7f]{1,3}\s{1,3})?(?:\[?\d{4}-\d\d-\d\d[^\s\]]*\]?\s+)?(?:"
    r"\[?(?:error|fatal|panic|critical)\]?(?::| \w+(?:::\w+)+:|!)|(?:npm )?ERR!|\[?API Error\b|"
    r"(?:Error|Exception) [\w ]{0,40}(?::|Full report)|[\w.]*(?:Error|Exception)(?: \[\w+\])?:|"
    r"[\w./-]{1,40}: (?:error|fatal):|"
    r"curl: \(\d+\)|An unexpected (?:critical )?error)",
    re.IGNORECASE,
)
"""Beginnings of lines in which programs report errors; prose about errors begins otherwise."""

_VERBATIM = re.compile(
    r"^(?:Invalid auth method selected\.|When using Gemini API, you must specify|Unknown arguments?: |"
    r"No input provided via stdin|Not inside a trusted directory|Gemini CLI is not running in a trusted directory|"
    r"Failed to read output schema|--dangerously-skip-permissions cannot be used|Reached max session turns|"
    r"Invalid API key · |Not logged in · |Credit balance is too low$|Prompt is too long(?: ·|$)|"
    r"Failed to authenticate\. |"
    r"You've hit your [\w-]+ limit · |There's an issue with the selected model \(|Request too large \(|"
    r"(?:stream error: )?unexpected status [45]\d\d [A-Z]|stream disconnected before completion: |"
    r"No space left on device(?: \(os error 28\))?$|"
    r"<--- Last few GCs|FATAL ERROR: )"
)
"""Error lines of the known CLIs that begin otherwise."""

_STATUS_FIELD = re.compile(r"^\s+\"?(?:status|code)\"?: ([45]\d\d),?$")
_TRYING = re.compile(r"^Attempt \d+ failed\b")
_BACKGROUND = re.compile(
    r"ERROR (?:codex_models_manager|rmcp|codex_core::tools|codex_api::endpoint)|^Error executing tool "
)
"""Lines that successful runs have, too: background work of the CLI, tools that the agent called wrongly."""

_CONVERSATION = re.compile(r"^(?:OpenAI Codex v\d.*|user|codex|exec|thinking|tokens used)$", re.MULTILINE)
"""Lines between which codex prints the whole conversation to stderr, unless it prints events."""

_STATUS_WORDED = re.compile(
    r"(?:^(?:[^\x00-\x7f]{1,3}\s+)?(?:HTTP\S* )?"
    r"|\b(?i:error|failed|returned|responded|received|rejected|got)(?: with)?(?: an?)?(?: code)?(?: HTTP)?:? )"
    r"([45]\d\d)(?=[:;,.)]|$| [A-Z]| from\b)"
)
"""Statuses in a program's line, where ``status_in`` knows only those that are called so."""

_NOT_ERRORS = re.compile(
    r"^\W{0,8}(?:\S{1,60} )?\[?(?:warn(?:ing)?|info|debug|trace|note|hint)\b|^[-*+>#•] |^\s{2,}|(?-i:\bI\b)",
    re.IGNORECASE,
)
"""Lines of a lower level, entries of lists, lines that go on, and the words of a speaker."""


def reported_errors(text: str, source: Source, account: Account) -> list[AgentError]:
    """Return the errors that lines report, in order, each with the status and the delay of the dump below it."""
    found: list[AgentError] = []
    is_counted = False
    scope = _scope(text, source, account)
    for line in (as_seen(line).rstrip() for line in text.splitlines()[-_LAST_LINES:]):
        if _TRYING.match(line) or _is_report(line, scope):
            is_counted = not (_TRYING.match(line) and account.has_worked)
            if is_counted:
                found.append(_error_in(line))
        elif found and is_counted:
            found[-1] = _with_dump(found[-1], line)
    return found


def _scope(text: str, source: Source, account: Account) -> _Scope:
    if source == "text" or account.errors or _CONVERSATION.search(text):
        return "reports"
    return "beginnings" if account.has_worked else "all"


def _is_report(line: str, scope: _Scope) -> bool:
    if not line or _BACKGROUND.search(line):
        return False
    if _REPORT.match(line) or _VERBATIM.match(line):
        return True
    if scope == "reports" or _NOT_ERRORS.search(line):
        return False
    if scope == "beginnings":
        return bool(_STATUS_WORDED.match(line)) or any(words.match(line) for words in WORDS.values())
    error = _error_in(line)
    return bool(error.status) or any(words.search(error.message) for words in WORDS.values())


def _error_in(line: str) -> AgentError:
    error = error_from(line.strip(), line)
    if error.status is None and (worded := _STATUS_WORDED.search(line)):
        return replace(error, status=int(worded[1]), is_status_worded=True)
    return error


def _with_dump(error: AgentError, line: str) -> AgentError:
    field = _STATUS_FIELD.match(line)
    if field and error.is_status_worded:
        return replace(error, status=int(field[1]), is_status_worded=False)
    if error.retry_after_seconds is None and (delay := delay_in(line)) is not None:
        return replace(error, retry_after_seconds=delay)
    return error
