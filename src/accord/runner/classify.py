"""Why a run failed: exactly one category, with the rule and the line that decided it.

Evidence is asked in this order: accord's own error, the errors of the transcript (fields before words), stderr, the end
of plain text, the exit code. The agent's words and the output of its commands never count.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from typing import NamedTuple

from accord.core.findings import sentence
from accord.runner.causes import CAUSES, INTERNAL_ERRORS
from accord.runner.models import Classification, ErrorSource, Evidence
from accord.runner.transcripts import error_rules as rules
from accord.runner.transcripts.account import AgentError
from accord.runner.transcripts.error_rules import worded_cause
from accord.runner.transcripts.lines import cut, evidence_line
from accord.runner.transcripts.read import FORMATS, RunEvidence
from accord.runner.transcripts.reports import printed_lines, reported_errors
from accord.runner.transcripts.wording import delay_in

SUMMARY_CHARS = 500
_MESSAGE_CHARS = 300

_URL = re.compile(r"\bhttps?://\S+")

_STOPPED = (None, 0, 1)
"""Exit codes of CLIs that a signal stopped, beside its own (128 + signal); another one tells of a crash."""


class _Hit(NamedTuple):
    rule: str
    cause: str
    source: ErrorSource
    line: str
    message: str = ""
    delay: float | None = None
    has_hint: bool = False


def contract_exit_code(evidence: RunEvidence) -> int:
    """Return the exit code by the contract: 0 becomes 1 without success in the transcript."""
    return evidence.exit_code or (0 if is_ended_well(evidence) else 1)


def is_ended_well(evidence: RunEvidence) -> bool:
    """Return whether the agent reports success: by its exit code, and by the event that ends its transcript."""
    account = evidence.account
    is_success = account.ending == "success" or (account.ending == "cut" and not account.is_structured)
    return not evidence.exit_code and evidence.error is None and is_success


def classify(evidence: RunEvidence) -> Classification | None:
    """Return why a run failed; None if it did not."""
    if (hit := _deciding_hit(evidence)) is None:
        return None
    cause = CAUSES[hit.cause]
    message = cut(hit.message, SUMMARY_CHARS if hit.has_hint else _MESSAGE_CHARS)
    what = f"{cause.label or cause.means}: {message}" if message else cause.means
    return Classification(
        category=cause.category,
        type=cause.type,
        recovery=cause.recovery,
        summary=cut(f"{sentence(what)} {'' if hit.has_hint else cause.hint}".strip(), SUMMARY_CHARS),
        retry_after_seconds=hit.delay if cause.recovery == "retry" else None,
        evidence=Evidence(rule=hit.rule, source=hit.source, line=hit.line),
        cause=hit.cause,
    )


def _deciding_hit(evidence: RunEvidence) -> _Hit | None:
    if error := evidence.error:
        line = evidence_line(error.detail)
        cause = INTERNAL_ERRORS[error.kind]
        cause = "upload" if cause == "push" and worded_cause(error.detail, "upload") else cause
        return _Hit(error.kind, cause, "own", line, error.detail, has_hint=error.has_hint)
    if not contract_exit_code(evidence) and (evidence.exit_code == 0 or evidence.account.is_structured):
        return None
    hit = next(_hits(evidence), None)
    if hit is None and evidence.exit_code is None and not evidence.account.is_structured:
        return None
    return hit or _unknown_hit(evidence)


def _hits(evidence: RunEvidence) -> Iterator[_Hit]:
    if evidence.exit_code in rules.SHELL_EXITS and not evidence.account.has_begun and not evidence.text.strip():
        yield from _by_exit(evidence)
    for error in evidence.account.errors:
        yield from _by_error(error, "event", evidence)
    printed: dict[ErrorSource, str] = {"stderr": evidence.stderr, "text": evidence.text}
    for source, text in printed.items():
        for error in reversed(reported_errors(text, source, evidence.account)):
            yield from _by_error(error, source, evidence)
    yield from _by_exit(evidence)


def _by_error(error: AgentError, source: ErrorSource, evidence: RunEvidence) -> Iterator[_Hit]:
    """Yield hits by the fields of an error from the most to the least specific, by its words, by its weak fields.

    A status in words comes before them, and before the broad class in the answer below it, but one that
    only says that a request was refused comes after them.
    """

    def hit(rule: str, cause: str, source: ErrorSource = source, line: str = error.line) -> _Hit:
        return _Hit(rule, cause, source, line, error.message, delay)

    delay = error.backoff_seconds if error.retry_after_seconds is None else error.retry_after_seconds
    worded = (error.status or 0) if error.is_status_worded else 0
    by_exit = (_exit_status(evidence) or 0) if source == "event" else 0
    status = (0 if worded else error.status or 0) or by_exit
    rule, cause = _status_rule(status, error.message)
    named = (error.kind, *error.classes)
    error = replace(error, kind=next((each for each in named if each in rules.CLASSES), named[-1]))
    kind = rules.KINDS.get(error.kind, "")
    if "rate-limit" in {cause, kind, _status_rule(worded, error.message)[1]} and _is_hard_quota(error):
        yield hit("hard-quota", "quota")
    if kind and kind != cause:
        yield hit(error.kind, kind)
    if cause and (worded == status or (error.status == status and not worded)):
        yield hit(rule, cause)
    if cause:
        yield hit(rule, cause, "exit", _exit_line(evidence))
    by_words = worded_cause(error.message)
    broad = _refined_cause(error.kind, rules.BROAD_KINDS.get(error.kind, ""), error.message)
    beside = _status_rule(worded, error.message)
    beside = ("", "") if by_words and beside[1] == "request" else beside
    for rule, cause in (beside, broad) if error.classes else (broad, beside):
        if cause:
            yield hit(rule, cause)
    if by_words:
        is_spent = error.retry_after_seconds is None and _is_spent_quota(error.message)
        is_hard = by_words == "rate-limit" and (is_spent or _is_hard_quota(error))
        yield hit("hard-quota", "quota") if is_hard else hit(f"says-{by_words}", by_words)
    weak = rules.WEAK_KINDS.get(error.kind)
    if weak and not (weak == "interrupted" and rules.NATIVE_ERROR.search(error.message)):
        yield hit(error.kind, weak)


def _status_rule(status: int, message: str) -> tuple[str, str]:
    return _refined_cause(f"http-{status}", rules.status_cause(status), message)


def _refined_cause(rule: str, cause: str, message: str) -> tuple[str, str]:
    """Return the rule and the cause of an error.

    Too large a request may be a push. A refused request may say that it was too large, or unpaid; a forbidden one, that
    a limit was reached; one that found nothing, that it looked for a package or a repository.
    """
    limit = worded_cause(message, "quota", "rate-limit")
    if rule == "http-403" and limit:
        limit = "quota" if _is_spent_quota(message) else limit
        return f"says-{limit}", limit
    if rule == "http-404" and worded_cause(message, "settings"):
        return "says-settings", "settings"
    if rule == "http-413" and worded_cause(message, "upload"):
        return rule, "upload"
    if cause == "request" and worded_cause(message, "context"):
        return "says-context", "context"
    if cause == "request" and (limit == "quota" or rules.HARD_QUOTA.search(message)):
        return "says-quota", "quota"
    return rule, cause


def _is_hard_quota(error: AgentError) -> bool:
    """Return whether waiting does not lift a rate limit: its message or class says so and names no delay."""
    message = rules.GOOGLES_RATE_LIMIT.sub("", error.message) if "ai.google.dev" in error.message else error.message
    words = " ".join((_URL.sub("", message), *error.classes))
    is_money = rules.HARD_QUOTA.search(words) or worded_cause(words, "quota")
    is_hard = rules.LONG_PERIOD.search(words) or (is_money and not rules.SHORT_PERIOD.search(words))
    return error.retry_after_seconds is None and bool(is_hard)


def _is_spent_quota(message: str) -> bool:
    """Return whether a message says that a quota is used up, and neither a delay nor a short time."""
    spent = (match.group().lower() for match in rules.words("rate-limit").finditer(message))
    is_short = re.search(r"(?i)per[ _]?(?:minute|second)|\b[rt]pm\b|\brate\b", message) or delay_in(message) is not None
    return not is_short and any("quota" in words for words in spent)


def _by_exit(evidence: RunEvidence) -> Iterator[_Hit]:
    code, account = evidence.exit_code, evidence.account
    line = _exit_line(evidence)
    for exits in (FORMATS[account.codec].exits if account.codec in FORMATS else {}, rules.EXITS):
        if code and code in exits:
            message = _last_line(evidence.stderr) if code in rules.SHELL_EXITS else ""
            yield _Hit(f"exit-{code}", exits[code], "exit", line, message or line)
    if status := _exit_status(evidence):
        yield _Hit(f"http-{status}", rules.status_cause(status), "exit", line, line)
    has_crashed = code not in _STOPPED or bool(code and reported_errors(evidence.stderr, "stderr", account))
    if account.is_structured and account.ending == "cut" and account.has_begun and not has_crashed:
        yield _Hit("no-terminal-event", "interrupted", "exit", line, "its transcript ends without a result")


def _exit_status(evidence: RunEvidence) -> int | None:
    form = FORMATS.get(evidence.account.codec)
    return form.statuses.get(evidence.exit_code or 0) if form else None


def _exit_line(evidence: RunEvidence) -> str:
    return "no exit code" if evidence.exit_code is None else f"exit code {evidence.exit_code}"


def _unknown_hit(evidence: RunEvidence) -> _Hit:
    """Report the last error that no rule recognizes, or the last line of the output for a person to judge."""
    if errors := evidence.account.errors:
        return _Hit("unknown-error", "unknown", "event", errors[-1].line, errors[-1].message)
    if reported := reported_errors(evidence.stderr, "stderr", evidence.account):
        return _Hit("unknown-error", "unknown", "stderr", reported[-1].line, reported[-1].message)
    ended = _exit_line(evidence)
    said = f"it ended with {ended} and printed no error"
    for text, place in ((evidence.text, "its output"), (evidence.stderr, "stderr")):
        if line := _last_line(text):
            said = f'the last line of {place} is "{cut(line, _MESSAGE_CHARS - 50)}"'
    before = "its transcript reports success, but " if evidence.account.ending == "success" else ""
    return _Hit("no-evidence", "unknown", "exit", ended, before + said)


def _last_line(text: str) -> str:
    return next((line.strip() for line in reversed(printed_lines(text)) if line.strip()), "")
