"""The outputs of a runner, concluded from what is known of a run. Pure.

Source: runner output contract, "Required Outputs" and "Output Semantics". Every output is there whatever happened, none
is forged by a text, none holds a secret, and all together stay below what GitHub keeps of a job.
"""

from __future__ import annotations

import json
import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from accord.gha.files import utf16_size
from accord.runner.models import Classification, Evidence, RunOutputs
from accord.runner.summary import encoded, safe_line, sendable, summary_of
from accord.text.redaction import redacted

if TYPE_CHECKING:
    from collections.abc import Iterable

    from accord.runner.analysis.analyse import Analysis
    from accord.runner.publish import Published
    from accord.runner.transcripts.events import Account
    from accord.text.redaction import Redactor

BUDGET = 960_000
"""Bytes in UTF-16 of all outputs with their names: below GitHub's 1 MB, read as 2**20 or 10**6, and some to spare."""

_STRUCTURED_BYTES = 300_000
_TASKS_BYTES = 300_000
_ENTRIES = 40
_LINE_CHARS = 500
_ERROR_OUTPUTS = (
    "error-category",
    "error-type",
    "error-recovery",
    "error-summary",
    "retry-after-seconds",
    "error-evidence",
)
_MESSAGE_CUT = "The final message is longer than GitHub takes and was cut; the artifact of the run has all of it."
_RESULT_LEFT_OUT = "The structured result is longer than GitHub takes and was left out; the transcript has it."
_RESULT_INVALID = "The structured result holds what JSON cannot, and was left out; the transcript has it."
_TASKS_LEFT_OUT = "There are more completed tasks than GitHub takes; the last of them were left out."
_UNEXPLAINED = Classification(
    category="unknown",
    type="unknown",
    recovery="manual",
    summary="The agent failed, and nothing tells why.",
    evidence=Evidence(rule="no-evidence", source="exit"),
)


@dataclass(frozen=True)
class RunFacts:
    """All that the outputs follow from. ``exit_code`` is by the contract, ``classification`` None without an error.

    None of the rest says that it did not happen: no transcript, nothing to publish, no analysis, no known duration.
    """

    agent: str
    exit_code: int = 0
    classification: Classification | None = None
    account: Account | None = None
    published: Published | None = None
    analysis: Analysis | None = None
    duration_seconds: float | None = None
    warnings: tuple[str, ...] = ()


def outputs_of(facts: RunFacts, redact: Redactor) -> RunOutputs:
    """Conclude the outputs. A skipped run is one of which nothing is known but its agent."""
    account = facts.account
    warnings = [*facts.warnings, *(account.warnings if account else ())]
    values: dict[str, str] = {"agent_name": safe_line(facts.agent, redact, 100)}
    values |= _error(facts, redact)
    values |= _changes(facts)
    values |= analysis_outputs(facts.analysis, redact, warnings)
    if account:
        values |= _usage(account, redact)
        values["result_json"] = _structured(account.structured, redact, warnings)
    values["duration_seconds"] = _number(facts.duration_seconds, digits=1)
    message = sendable(redact(account.final_message)) if account else ""
    values["final_message_summary"] = summary_of(message, redact)
    return _fitted(
        RunOutputs.model_validate(values), message, [safe_line(text, redact) for text in warnings[:_ENTRIES]]
    )


def _fitted(outputs: RunOutputs, message: str, warnings: list[str]) -> RunOutputs:
    """Add the message, of which alone the length has no other bound, and cut it to what the others leave."""
    rest = outputs.model_copy(update={"run_warnings": _json([*warnings, _MESSAGE_CUT])})
    room = BUDGET - sum(utf16_size(name) + utf16_size(value) for name, value in rest.as_outputs().items())
    final_message, is_cut = encoded(message, room)
    shown = [*warnings, _MESSAGE_CUT] if is_cut else warnings
    return outputs.model_copy(update={"final_message": final_message, "run_warnings": _json(shown) if shown else ""})


def _error(facts: RunFacts, redact: Redactor) -> dict[str, str]:
    """Fill the error outputs: all of them on a failure, none on success."""
    failure = facts.published.failure if facts.published else None
    if facts.exit_code == 0 and facts.classification is None and failure is None:
        return {"exit_code": "0"}
    exit_code = str(1 if failure else facts.exit_code or 1)
    return {"exit_code": exit_code, **error_outputs(facts.classification or _UNEXPLAINED, redact)}


def error_outputs(error: Classification | None, redact: Redactor) -> dict[str, str]:
    """Write a classification as the error outputs, by their wire names; all of them are empty without an error."""
    if error is None:
        return dict.fromkeys(_ERROR_OUTPUTS, "")
    evidence = {
        "rule": safe_line(error.evidence.rule, redact, 100),
        "source": error.evidence.source,
        "line": sendable(redact(error.evidence.line))[:_LINE_CHARS],
    }
    summary = safe_line(error.summary, redact) or _UNEXPLAINED.summary
    delay = _number(error.retry_after_seconds, digits=3)
    values = (error.category, error.type, error.recovery, summary, delay, _json(evidence))
    return dict(zip(_ERROR_OUTPUTS, values, strict=True))


def _changes(facts: RunFacts) -> dict[str, str]:
    """Tell of changes only when the remote has them."""
    published = facts.published
    if published is None or published.failure or not published.commit_sha:
        return {}
    count = str(published.files_changed)
    return {"changes_made": "true", "commit_sha": published.commit_sha, "files_changed": count}


def analysis_outputs(analysis: Analysis | None, redact: Redactor, warnings: list[str]) -> dict[str, str]:
    """Write an analysis as the outputs ``llm-*``; without one there are none. Adds to the warnings what is left out."""
    from accord.runner.analysis.analyse import llm_outputs

    if analysis is None:
        return {}
    attempts = tuple(
        replace(attempt, reason=safe_line(attempt.reason, redact, 300)) for attempt in analysis.attempts[:_ENTRIES]
    )
    tasks = tuple(_within(map(sendable, analysis.completed), _TASKS_BYTES))
    if len(tasks) < len(analysis.completed):
        warnings.append(_TASKS_LEFT_OUT)
    model = safe_line(analysis.model, redact, 200)
    return llm_outputs(replace(analysis, model=model, completed=tasks, attempts=attempts), redact)


def _within(texts: Iterable[str], budget: int) -> Iterable[str]:
    for text in texts:
        budget -= utf16_size(json.dumps(text)) + 4
        if budget < 0:
            return
        yield text


def _usage(account: Account, redact: Redactor) -> dict[str, str]:
    usage = account.usage
    return {
        "agent_model": safe_line(account.model, redact, 200),
        "tokens_input": _number(usage.input_tokens),
        "tokens_output": _number(usage.output_tokens),
        "cost_usd": _number(usage.cost_usd, digits=6),
    }


def _structured(result: Any, redact: Redactor, warnings: list[str]) -> str:
    """Write the structured result; half a JSON document is none, so one too long is left out."""
    if result is None:
        return ""
    try:
        text = sendable(json.dumps(redacted(result, redact), ensure_ascii=False, allow_nan=False))
    except ValueError:
        warnings.append(_RESULT_INVALID)
        return ""
    if utf16_size(text) <= _STRUCTURED_BYTES:
        return text
    warnings.append(_RESULT_LEFT_OUT)
    return ""


def _number(value: float | None, *, digits: int = 0) -> str:
    """Write a number as people do, without an exponent; nothing for what is no number."""
    if value is None or not math.isfinite(value):
        return ""
    text = f"{value:.{digits}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)
