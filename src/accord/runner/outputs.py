"""The outputs of a run, concluded from its facts. Pure.

Source: runner output contract, "Required Outputs" and "Output Semantics". Every output is set whatever happened, no
text can forge one, none contains a secret, and together they stay below GitHub's limit for a job.
"""

from __future__ import annotations

import base64
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import field
from itertools import accumulate
from pathlib import Path
from typing import TYPE_CHECKING, Any

from accord.core.clock import Clock
from accord.core.frozen import Frozen
from accord.engine.operations import OperationLog
from accord.gha.step import COMMAND, inert, utf16_size
from accord.git.branches import DEFAULT_AUTHOR, Remote
from accord.git.leaving_out import DEFAULT_LIMITS, ChangeLimits
from accord.runner.causes import Disposition
from accord.runner.models import Classification, Evidence, InternalError, RunOutputs
from accord.runner.record import Attempt
from accord.runner.transcripts.account import Account
from accord.text.hidden import GUARD, as_seen
from accord.text.posting import PostingPolicy
from accord.text.redaction import Redactor, redact_json
from accord.text.sanitise import sanitise, sanitise_line

if TYPE_CHECKING:
    from accord.github.client import GitHub
    from accord.github.commits import DeliveredCommit
    from accord.runner.analysis.analyse import Analysis

BUDGET = 960_000
"""Bytes in UTF-16 of all outputs with their names: below GitHub's 1 MB, whether 2**20 or 10**6."""

SUMMARY_CHARS = 500
LINE_CHARS = 500
_STRUCTURED_BYTES = 300_000
_TASKS_BYTES = 300_000
_ENTRIES = 40
_MOST_FINDINGS = 50
_MOST_EARLIER_FINDINGS = 10
TRUNCATION_NOTICE = "\n\n[accord cut the message here: GitHub's limit for outputs. The run's artifact has all of it.]\n"
_MESSAGE_CUT = "The final message exceeds GitHub's limit and was cut. The artifact of the run has all of it."
_RESULT_LEFT_OUT = "The structured result exceeds GitHub's limit and was left out. The transcript has it."
_RESULT_INVALID = "The structured result is not valid JSON and was left out. The transcript has it."
_TASKS_LEFT_OUT = "The completed tasks exceed GitHub's limit; the last of them were left out."
_ERROR_OUTPUTS = (
    "error-category", "error-type", "error-recovery", "error-summary", "retry-after-seconds", "error-evidence",
)  # fmt: skip
_UNEXPLAINED = Classification(
    category="unknown",
    type="unknown",
    recovery="manual",
    summary="The agent failed for an unknown reason.",
    evidence=Evidence(rule="no-evidence", source="exit"),
)
_QUOTES = str.maketrans(
    {
        **dict.fromkeys("\"'`\u2018\u201a\u201b\u201c\u201d\u201e", "\u2019"), "$": "\uff04", "\\": "/", "<": "\u2039",
        ">": "\u203a",
    }
)  # fmt: skip


class FinishOptions(Frozen):
    """Options of finishing a run."""

    repository: str
    redact: Redactor
    policy: PostingPolicy
    clock: Clock
    environment: Mapping[str, str]  # endpoints and keys of the analysis
    remote: Remote | None = None  # without one nothing is pushed
    github: GitHub | None = None
    connection_error: InternalError | None = None  # why GitHub could not be reached
    pr_body: str | None = None  # the body with the tasks; None: that of the pull request, if there is a ``github``
    author: str = DEFAULT_AUTHOR
    lender: Path | None = None  # a checkout that no agent could write to
    log: OperationLog = field(default_factory=OperationLog)
    allows_steering: bool = False  # push changes to steering files
    limits: ChangeLimits = DEFAULT_LIMITS  # changes beyond them are never pushed


class ConflictBranch(Frozen):
    """The branch that has a run's changes, which conflict with another branch."""

    name: str
    onto: str  # the other branch
    paths: tuple[str, ...]  # with conflicts


class Published(Frozen):
    """The result of publishing. Without a commit and a failure nothing was pushed (dry run), or nothing was new."""

    commit_sha: str = ""
    files_changed: int = 0  # paths of the commit, a renamed file once
    failure: InternalError | None = None
    conflict: ConflictBranch | None = None  # set if the changes are on a branch of their own
    with_tokens: tuple[str, ...] = ()  # paths with a text that looks like a token
    steering: tuple[str, ...] = ()  # paths that steer agents or CI
    dependencies: tuple[str, ...] = ()  # manifests and lock files
    records: tuple[str, ...] = ()  # files of sessions and missions
    delivery: DeliveredCommit | None = field(default=None, compare=False)  # None if it was there before
    was_there: bool = False  # pushed by the agent or by others
    flattened: tuple[str, ...] = ()  # commits that the agent merged and the branch does not have
    moved_to: str = ""  # a new branch, as the pull requests of the one that was asked for are over


class RunFacts(Frozen):
    """The facts that the outputs follow from."""

    agent: str
    exit_code: int = 0
    classification: Classification | None = None  # None without an error
    account: Account | None = None  # None without a transcript
    published: Published | None = None  # None if publishing was not attempted
    analysis: Analysis | None = None
    duration_seconds: float | None = None
    warnings: tuple[str, ...] = ()
    attempts: tuple[Attempt, ...] = ()
    has_changes: bool = False  # in the work tree, pushed or not
    files_not_pushed: int = 0  # in the run's folder only
    is_result_broken: bool = False  # the caller asked for a result, and the run left no valid one


def outputs_of(facts: RunFacts, redact: Redactor, policy: PostingPolicy) -> RunOutputs:
    """Return the outputs. Of a skipped run only the agent is known."""
    account = facts.account
    warnings = [*facts.warnings, *(account.warnings if account else ())]
    values: dict[str, str] = {"agent_name": safe_line(facts.agent, redact, policy, 100)}
    published, failure = facts.published, facts.published.failure if facts.published else None
    if facts.exit_code or facts.classification or failure:
        values["exit_code"] = str(1 if failure else facts.exit_code or 1)
        values |= error_outputs(facts.classification or _UNEXPLAINED, redact, policy)
    if published and published.commit_sha and not failure:
        count = str(published.files_changed)
        values |= {"changes_made": "true", "commit_sha": published.commit_sha, "files_changed": count}
    values |= analysis_outputs(facts.analysis, redact, policy, warnings)
    if account:
        values |= {
            "agent_model": safe_line(account.model, redact, policy, 200),
            "tokens_input": _number(account.usage.tokens_input),
            "tokens_output": _number(account.usage.tokens_output),
            "cost_usd": _number(account.usage.cost_usd, digits=6),
        }
        values["result_json"] = _result_json(account.structured, redact, warnings)
    values["attempts"] = attempts_output(facts.attempts, redact, policy)
    values["duration_seconds"] = _number(facts.duration_seconds, digits=1)
    values["terminal_disposition"] = disposition_of(facts)
    message = to_valid_text(redact(account.final_message)) if account else ""
    values["final_message_summary"] = summary_of(message, redact, policy)
    shown = [safe_line(text, redact, policy) for text in warnings[:_ENTRIES]]
    values["run_warnings"] = _json([*shown, _MESSAGE_CUT])
    outputs = RunOutputs.model_validate(values)
    rest = BUDGET - sum(utf16_size(name) + utf16_size(value) for name, value in outputs.as_outputs().items())
    final_message, is_cut = _base64_of(message, rest)
    shown += [_MESSAGE_CUT] if is_cut else []
    return outputs.with_message(final_message, _json(shown) if shown else "", facts.files_not_pushed)


def disposition_of(facts: RunFacts) -> Disposition:
    """Return how the run ended for its caller; a run is ``blocked`` where only a person can let it go on."""
    failure = facts.published.failure if facts.published else None
    result = facts.account.structured if facts.account else None
    if failure is not None and failure.kind == "steering-files":
        return "blocked"
    if facts.classification is not None and facts.classification.recovery == "ignore":
        return "cancelled"
    if facts.exit_code != 0 or facts.classification is not None or failure is not None:
        return "failure"
    if isinstance(result, dict) and result.get("outcome") == "blocked":
        return "blocked"
    if facts.published and facts.published.commit_sha:
        return "success"
    if facts.is_result_broken:
        return "failure"
    return "patch" if facts.has_changes and facts.published is None else "no-change"


def error_outputs(error: Classification | None, redact: Redactor, policy: PostingPolicy) -> dict[str, str]:
    """Return the error outputs by their wire names; all are empty without an error."""
    if error is None:
        return dict.fromkeys(_ERROR_OUTPUTS, "")
    evidence = {
        "rule": safe_line(error.evidence.rule, redact, policy, 100),
        "source": error.evidence.source,
        "line": safe_line(error.evidence.line, redact, policy),
    }
    summary = safe_line(error.summary, redact, policy) or _UNEXPLAINED.summary
    delay = _number(error.retry_after_seconds, digits=3)
    values = (error.category, error.type, error.recovery, summary, delay, _json(evidence))
    return dict(zip(_ERROR_OUTPUTS, values, strict=True))


def analysis_outputs(
    analysis: Analysis | None, redact: Redactor, policy: PostingPolicy, warnings: list[str]
) -> dict[str, str]:
    """Return the outputs ``llm-*`` of an analysis, none without one. Adds a warning if tasks are left out.

    Texts are redacted here, since the escapes of JSON would hide a secret from a later search.
    """
    if analysis is None:
        return {}
    tasks = [to_valid_text(text) for text in analysis.completed]
    sizes = accumulate(utf16_size(json.dumps(text)) + 4 for text in tasks)
    tasks = [redact(text) for text, size in zip(tasks, sizes, strict=True) if size <= _TASKS_BYTES]
    if len(tasks) < len(analysis.completed):
        warnings.append(_TASKS_LEFT_OUT)
    attempts = [
        {"provider": entry.provider, "outcome": entry.outcome, "reason": safe_line(entry.reason, redact, policy, 300),
         "ms": entry.milliseconds}
        for entry in analysis.attempts[:_ENTRIES]
    ]  # fmt: skip
    return {
        "llm-analysis-run": str(bool(analysis.provider)).lower(),
        "llm-provider": analysis.provider,
        "llm-model": safe_line(analysis.model, redact, policy, 200),
        "llm-confidence": str(round(float(analysis.confidence), 2)) if analysis.provider else "",
        "llm-completed-tasks": json.dumps(tasks),
        "llm-has-completions": str(bool(tasks)).lower(),
        "llm-attempts": json.dumps(attempts),
    }


def attempts_output(attempts: Sequence[Attempt], redact: Redactor, policy: PostingPolicy) -> str:
    """Return the attempts as JSON; ``repaired`` are the errors of the attempt before that are gone."""

    def line(text: str) -> str:
        return safe_line(text, redact, policy, 300)

    entries, before = [], dict[tuple[str, str], str]()
    for attempt in attempts[:_ENTRIES]:
        errors = {(entry.code, entry.path): entry.message for entry in attempt.findings if entry.severity == "error"}
        most = _MOST_FINDINGS if attempt is attempts[-1] else _MOST_EARLIER_FINDINGS
        repaired = [key for key in before if key not in errors] if attempt.outcome in ("done", "broken") else []
        entries.append(
            {
                "agent": line(attempt.agent),
                "turn": attempt.turn,
                "outcome": attempt.outcome,
                "reason": line(attempt.reason),
                "findings": [
                    {"code": line(code), "path": line(f"at {path}")[3:], "message": line(message)}
                    for (code, path), message in [*errors.items()][:most]
                ],
                "fixed": [line(text) for text in attempt.fixes[:most]],
                "repaired": [line(f"{code} at {path}") for code, path in repaired[:most]],
                "seconds": _finite(attempt.duration_seconds, 1),
                "cost_usd": _finite(attempt.cost_usd, 6),
            }
        )
        before = errors
    return json.dumps(entries, ensure_ascii=False, allow_nan=False) if entries else ""


def _finite(value: float | None, digits: int) -> float | None:
    return round(value, digits) if value is not None and math.isfinite(value) else None


def _result_json(result: Any, redact: Redactor, warnings: list[str]) -> str:
    """Return the structured result as JSON; one that is too long is left out, as half a document is not valid."""
    if result is None:
        return ""
    try:
        text = to_valid_text(json.dumps(redact_json(result, redact), ensure_ascii=False, allow_nan=False))
    except ValueError:
        warnings.append(_RESULT_INVALID)
        return ""
    if utf16_size(text) <= _STRUCTURED_BYTES:
        return text
    warnings.append(_RESULT_LEFT_OUT)
    return ""


def _number(value: float | None, *, digits: int = 0) -> str:
    if value is None or not math.isfinite(value):
        return ""
    text = f"{value:.{digits}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def to_valid_text(text: str) -> str:
    """Replace half surrogates, which UTF-8 cannot encode, and NUL, which ends a text for many programs."""
    return text.replace("\0", "\ufffd").encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _base64_of(message: str, budget: int) -> tuple[str, bool]:
    """Encode a redacted message as base64 of at most ``budget`` UTF-16 bytes; also return whether it was cut."""
    whole = base64.b64encode(message.encode()).decode()
    if utf16_size(whole) <= budget:
        return whole, False
    size = max(budget // 8 * 3 - len(TRUNCATION_NOTICE.encode()), 0)
    beginning = message.encode()[:size].decode("utf-8", "ignore")
    return base64.b64encode(f"{beginning}{TRUNCATION_NOTICE}".encode()).decode(), True


def summary_of(message: str, redact: Redactor, policy: PostingPolicy) -> str:
    """Return the first 500 characters of a redacted message, safe to post in a comment.

    Sanitizing can make a text longer; then fewer characters of the message are used, so that nothing is cut inside.
    """
    message = redact(as_seen(message))
    length = SUMMARY_CHARS
    while True:
        text = sanitise(message[:length], secrets=redact, policy=policy).text.strip()
        text = COMMAND.sub(lambda hit: hit.group() + GUARD, text)
        if len(text) <= SUMMARY_CHARS:
            return text
        length = max(length - max(len(text) - SUMMARY_CHARS, 1), 0)


def safe_line(text: str, redact: Redactor, policy: PostingPolicy, limit: int = LINE_CHARS) -> str:
    """Return a text as one inert line: no mention, HTML, quote, workflow command or shell expansion.

    The contract's own example puts ``error-summary`` between double quotes of a script.
    """
    shown = to_valid_text(redact(as_seen(text)))[: 4 * limit]
    line = sanitise_line(shown, secrets=redact, policy=policy).text.translate(_QUOTES)
    line = line.replace("![", "! [")
    line = line if len(line) <= limit else line[: limit - 1].rstrip() + "\u2026"
    return redact(inert(line))
