"""Why a run failed: exactly one category, with the rule and the line that decided it.

Evidence is asked in this order: accord's own error, the errors of the transcript (fields before words), stderr, the end
of plain text, the exit code. The agent's words and the output of its commands never count, except for the message of
its own sandbox when no command could start in it.

How much a line must look like a report of an error depends on who may have written it. Plain text is mostly prose of
the agent, so only lines that begin like a report count. While the agent has done nothing and its events name no error,
stderr is the program's: every line counts whose words name a cause, unless it reads like prose or progress.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Literal, NamedTuple, TypeAlias

from accord.core.findings import sentence
from accord.core.frozen import Frozen
from accord.runner.causes import CAUSES, INTERNAL_ERRORS
from accord.runner.models import Classification, ErrorSource, Evidence, InternalError
from accord.runner.transcripts import error_rules as rules
from accord.runner.transcripts.account import Account, AgentError
from accord.runner.transcripts.formats import FORMATS
from accord.runner.transcripts.lines import cut, evidence_line, json_prefix
from accord.runner.transcripts.wording import delay_in, error_from
from accord.text.hidden import as_seen

SUMMARY_CHARS = 500
_MESSAGE_CHARS = 300
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

_URL = re.compile(r"\bhttps?://\S+")
_GLYPHS = re.compile(r"^\s*(?:(?![•✓✔✅])[^\w\s\x00-\x7f]{1,3}\s{1,3})+")
"""Marks that CLIs print before a line, such as a cross."""

_GOES_ON = re.compile(
    r"[:,(]\n|^(?=.{60}).*[^.!?)\]\"'`\u2026]\n|^(?:[ \t]*(?:[-*+>#|•]|\d+\.) .*|.*[.!?)\]\"'`])\n(?=.*[.!?]\Z)"
)
"""Lines that the next one belongs to: those that introduce it, long ones without an end, and sentences before one."""

_CAUSE = re.compile(r"Caused by:$|\s+\d: \S")
_LEADS = re.compile(r"Caused by:$|^go: .*:$")
"""Lines below an error in which Rust programs list its causes; the only one, and that of Go, is just indented."""

_STATUS_FIELD = re.compile(r"^\s+\"?(?:status|code)\"?: ([45]\d\d),?$")
_TRYING = re.compile(r"^Attempt \d+ failed\b")
_STATUS_WORDED = re.compile(
    r"(?:^(?:HTTP\S* )?|\w(?:Error|Exception)(?::| -) "
    r"|\b(?i:error|failed|returned|responded|received|rejected|got)(?: with)?(?: an?)?(?: code)?(?: HTTP)?:? |\bcode E)"
    r"(?:(?<=: )\[)?([45]\d\d)(?=[\]:;,.)]|$| [{(\"]| [A-Z]| from\b| [45]\d\d\b| page not found"
    r"| [\w -]{0,40}\b(?:limit|quota)\b| [a-z_]*[a-rt-z_]: \S+$)"
)
"""Statuses in a program's line, where ``status_in`` knows only those that are called so; counts have a plural."""

_NOT_ERRORS = re.compile(
    r"^(?:not )?ok \d|^E  |^expected |, \w+ing\b|^(?!missing)\w+ing: "
    r"|^\W{0,8}(?:\S{1,60} )?\[?(?:warn(?:ing)?|info|debug|trace|note|hint)\b|^[-*+>#•|✓✔✅] "
    r"|^\s{2,}|^\d+\. |^[\w./-]+\.\w+:\d+[:\s]|^(?:HEAD is now at |\[[\w/. -]+ )?[0-9a-f]{7,40}\]? |(?-i:\bI\b)",
    re.IGNORECASE,
)
"""Lines of a lower level or in a list or table, steps, results of tests, lines or programs that go on, places in files,
commits, and the words of a speaker."""

_DESCRIBED = re.compile(
    r"\b(?:if|when|whether|that|which|where|unless|(?:until|once|after)(?! \d))\b[^.:,]*$", re.IGNORECASE
)
"""Beginnings of clauses that describe an error."""

_MENTIONED = re.compile(rf"{_DESCRIBED.pattern}|\b(?:for|an?) $", re.IGNORECASE)
"""Those, and words before an error that a line without a report's beginning only mentions."""


_STOPPED = (None, 0, 1)
"""Exit codes of CLIs that a signal stopped, beside its own (128 + signal); another one tells of a crash."""


class RunEvidence(Frozen):
    """The evidence of a run."""

    exit_code: int | None
    account: Account
    stderr: str = ""  # its tail
    text: str = ""  # the tail of stdout, if that is plain text
    error: InternalError | None = None
    has_changes: bool | None = None  # None: the files count that the transcript reports as changed


class _Hit(NamedTuple):
    rule: str
    cause: str
    source: ErrorSource
    line: str
    message: str = ""
    delay: float | None = None
    has_hint: bool = False


def contract_exit_code(evidence: RunEvidence) -> int:
    """Return the exit code by the contract: 0 becomes 1 without success in the transcript, or without any work."""
    return evidence.exit_code or (0 if is_ended_well(evidence) and not _has_no_sandbox(evidence) else 1)


def is_ended_well(evidence: RunEvidence) -> bool:
    """Return whether the agent reports success: by its exit code, and by the event that ends its transcript."""
    account = evidence.account
    is_success = account.ending == "success" or not account.is_structured
    return not evidence.exit_code and evidence.error is None and is_success


def _has_no_sandbox(evidence: RunEvidence) -> bool:
    """Return whether a run changed nothing because its agent's own sandbox refused every command."""
    has_changes = bool(evidence.account.files) if evidence.has_changes is None else evidence.has_changes
    return evidence.account.has_no_sandbox and not has_changes


def classify(evidence: RunEvidence) -> Classification | None:
    """Return why a run failed; None if it did not."""
    hit = _deciding_hit(evidence)
    return _classification(hit) if hit else None


def _deciding_hit(evidence: RunEvidence) -> _Hit | None:
    if error := evidence.error:
        line = evidence_line(error.detail)
        return _Hit(error.kind, INTERNAL_ERRORS[error.kind], "own", line, error.detail, has_hint=error.has_hint)
    if not contract_exit_code(evidence) and (evidence.exit_code == 0 or evidence.account.is_structured):
        return None
    hit = next(_hits(evidence), None)
    if hit is None and evidence.exit_code is None and not evidence.account.is_structured:
        return None
    return hit or _unknown_hit(evidence)


def _hits(evidence: RunEvidence) -> Iterator[_Hit]:
    if is_ended_well(evidence) and _has_no_sandbox(evidence):
        last = evidence.account.commands[-1]
        said = evidence_line(last.output.partition("\n")[0])
        yield _Hit("no-sandboxed-command", "sandbox", "event", evidence_line(last.command), said)
    if evidence.exit_code in rules.SHELL_EXITS and not evidence.account.has_begun and not evidence.text.strip():
        yield from _by_exit(evidence)
    for error in evidence.account.errors:
        yield from _by_error(error, "event", evidence)
    printed: dict[ErrorSource, str] = {"stderr": evidence.stderr, "text": evidence.text}
    for source, text in printed.items():
        for error in reversed(_reported_errors(text, source, evidence.account)):
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
    worded_cause = _worded_cause(error.message)
    broad = _refined_cause(error.kind, rules.BROAD_KINDS.get(error.kind, ""), error.message)
    beside = _status_rule(worded, error.message)
    beside = ("", "") if worded_cause and beside[1] == "request" else beside
    for rule, cause in (beside, broad) if error.classes else (broad, beside):
        if cause:
            yield hit(rule, cause)
    if worded_cause:
        is_spent = error.retry_after_seconds is None and _is_spent_quota(error.message)
        is_hard = worded_cause == "rate-limit" and (is_spent or _is_hard_quota(error))
        yield hit("hard-quota", "quota") if is_hard else hit(f"says-{worded_cause}", worded_cause)
    if error.kind in rules.WEAK_KINDS:
        yield hit(error.kind, rules.WEAK_KINDS[error.kind])


def _status_rule(status: int, message: str) -> tuple[str, str]:
    return _refined_cause(f"http-{status}", rules.status_cause(status), message)


def _refined_cause(rule: str, cause: str, message: str) -> tuple[str, str]:
    """Return the rule and the cause of an error.

    Too large a request may be a push. A refused request may say that it was too large, or unpaid; a forbidden one, that
    a limit was reached; one that found nothing, that it looked for a package or a repository.
    """
    limit = _worded_cause(message, "quota", "rate-limit")
    if rule == "http-403" and limit:
        limit = "quota" if _is_spent_quota(message) else limit
        return f"says-{limit}", limit
    if rule == "http-404" and _worded_cause(message, "settings"):
        return "says-settings", "settings"
    if rule == "http-413" and _worded_cause(message, "upload"):
        return rule, "upload"
    if cause == "request" and _worded_cause(message, "context"):
        return "says-context", "context"
    if cause == "request" and (limit == "quota" or rules.HARD_QUOTA.search(message)):
        return "says-quota", "quota"
    return rule, cause


def _worded_cause(message: str, *causes: str, described: re.Pattern[str] = _DESCRIBED) -> str:
    """Return the first of the causes, or of all, that words of a message name without describing it."""
    for cause in causes or rules.PRECEDENCE:
        found = rules.words(cause).finditer(message)
        if any(not described.search(message[: match.start()]) for match in found):
            return cause
    return ""


def _is_hard_quota(error: AgentError) -> bool:
    """Return whether waiting does not lift a rate limit: its message or class says so and names no delay."""
    message = rules.GOOGLES_RATE_LIMIT.sub("", error.message) if "ai.google.dev" in error.message else error.message
    words = " ".join((_URL.sub("", message), *error.classes))
    is_money = rules.HARD_QUOTA.search(words) or _worded_cause(words, "quota")
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
    for codec in (account.codec, ""):
        if code and code in rules.EXITS.get(codec, {}):
            message = _last_line(evidence.stderr) if code in rules.SHELL_EXITS else ""
            yield _Hit(f"exit-{code}", rules.EXITS[codec][code], "exit", line, message or line)
    if status := _exit_status(evidence):
        yield _Hit(f"http-{status}", rules.status_cause(status), "exit", line, line)
    has_crashed = code not in _STOPPED or bool(code and _reported_errors(evidence.stderr, "stderr", account))
    if account.is_structured and account.ending == "cut" and (account.has_begun or not code) and not has_crashed:
        yield _Hit("no-terminal-event", "interrupted", "exit", line, "its transcript ends without a result")


def _exit_status(evidence: RunEvidence) -> int | None:
    form = FORMATS.get(evidence.account.codec)
    return form.statuses.get(evidence.exit_code or 0) if form else None


def _exit_line(evidence: RunEvidence) -> str:
    return "no exit code" if evidence.exit_code is None else f"exit code {evidence.exit_code}"


def _unknown_hit(evidence: RunEvidence) -> _Hit:
    """Report the last error or line that no rule recognizes."""
    if errors := evidence.account.errors:
        return _Hit("unknown-error", "unknown", "event", errors[-1].line, errors[-1].message)
    if reported := _reported_errors(evidence.stderr, "stderr", evidence.account):
        return _Hit("unknown-error", "unknown", "stderr", reported[-1].line, reported[-1].message)
    return _Hit("no-evidence", "unknown", "exit", _exit_line(evidence), _last_words(evidence))


def _last_words(evidence: RunEvidence) -> str:
    """Quote the last line of the output for a person to judge, after a success that the exit code contradicts."""
    before = "its transcript reports success, but " if evidence.account.ending == "success" else ""
    for text, place in ((evidence.stderr, "stderr"), (evidence.text, "its output")):
        if line := _last_line(text):
            return f'{before}the last line of {place} is "{cut(line, _MESSAGE_CHARS - 50)}"'
    return f"{before}it ended with {_exit_line(evidence)} and printed no error"


def _last_line(text: str) -> str:
    return next((line.strip() for line in reversed(as_seen(text).splitlines()) if line.strip()), "")


def _classification(hit: _Hit) -> Classification:
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


def _reported_errors(text: str, source: ErrorSource, account: Account) -> list[AgentError]:
    """Return the errors that lines report, in order, each with the status and the delay of the dump below it."""
    found: list[AgentError] = []
    is_counted = follows_git = False
    scope = _scope(text, source, account)
    lines = _printed_lines(text)
    for number, line in enumerate(lines, 1):
        if source == "text" and number == len(lines) and not (number > 1 and _GOES_ON.search("\n".join(lines[-2:]))):
            scope = "all"  # no text leads to the line: the program said it as it ended
        if follows_git and rules.AFTERMATH.search(line):
            continue
        follows_git = bool(rules.GIT_ERROR.match(line) or (follows_git and rules.GIT_PROGRESS.match(line)))
        if _TRYING.match(line) or _is_report(line, scope):
            is_counted = not (_TRYING.match(line) and account.has_worked)
            if is_counted:
                found.append(_error_in(line))
        elif found and is_counted:
            found[-1] = _with_dump(found[-1], line)
    return found


def _printed_lines(text: str) -> list[str]:
    """Return the last lines as their program printed them, but JSON over several lines in one."""
    lines = (_LOG_PREFIX.sub("", as_seen(line).rstrip()) for line in text.rstrip().splitlines()[-_LAST_LINES:])
    whole = "\n".join(_ERROR_COMMAND.sub("Error: ", line) for line in lines)
    joined = _JSON_BLOCK.sub(lambda at: at[0] if json_prefix(at[1]) is None else " ".join(at[0].split()), whole)
    before, end, _ = joined.rpartition(_STEP_END) if _LOG_PREFIX.match(text) else ("", "", "")
    return [_GLYPHS.sub("", line) for line in (before if end else joined).splitlines()]


def _scope(text: str, source: ErrorSource, account: Account) -> _Scope:
    if source == "text" or account.errors or rules.CONVERSATION.search(text):
        return "reports"
    return "beginnings" if account.has_worked else "all"


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
    return bool(_worded_cause(error.message, described=_MENTIONED))


def _error_in(line: str) -> AgentError:
    error = error_from(line.strip(), line)
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
