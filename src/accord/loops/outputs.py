"""The runner's outputs of a run, and the iteration that they describe.

Source: runner output contract, "Required Outputs". Outputs are text from another job; an invalid number is unknown.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
from typing import Any, get_args

from pydantic import TypeAdapter, ValidationError

from accord.core.documents import read_object
from accord.core.errors import BrokenContract, WrongUsage
from accord.core.shapes import Model, read_shape
from accord.loops.models import ActiveRun, Iteration
from accord.runner.causes import ErrorCategory, Recovery
from accord.runner.models import RunOutputs

_VARYING = re.compile(r"0x[0-9a-f]+|\b[0-9a-f]{7,64}\b|[0-9]+|\s+")
_LONGEST_SECONDS = 10_000_000.0
_BUDGET_RULES = ("budget", "error_max_budget_usd", "says-budget")
"""Rules of ``accord.runner.transcripts.error_rules`` by which a run has spent its money."""

_NAMES = frozenset(RunOutputs().as_outputs())
_LOST = {
    "exit-code": "1",
    "error-category": "infrastructure",
    "error-type": "infrastructure",
    "error-recovery": "retry",
    "terminal-disposition": "failure",
    "error-summary": "The publishing job ended before it could report on the run.",
}


def read_outputs(text: str) -> RunOutputs:
    """Read a run's outputs; without an exit code the run counts as lost. Raises WrongUsage for other JSON."""
    try:
        value = json.loads(text) if text.strip() else {}
    except (ValueError, RecursionError):
        value = ""
    if not isinstance(value, dict | None):
        hint = "Pass the outputs of the step `accord publish` as one JSON object."
        raise WrongUsage("The outputs of the run are not a JSON object.", hint=hint)
    known = {name: text for name, text in (value or {}).items() if name in _NAMES and isinstance(text, str)}
    return RunOutputs.model_validate(known if known.get("exit-code") else _LOST)


def result_of(outputs: RunOutputs, shape: type[Model]) -> Model | None:
    """Read the structured result of a run; None where the run failed or has no result of this shape."""
    if outputs.exit_code != "0":
        return None
    try:
        return read_shape(shape, read_object(outputs.result_json.encode("utf-8", "replace")).value)
    except BrokenContract:
        return None


def texts_in(output: str) -> tuple[str, ...]:
    """Read an output such as ``llm-completed-tasks``; empty where it is not a JSON array of strings."""
    try:
        return tuple(TypeAdapter(list[str]).validate_json(output, strict=True))
    except ValidationError:
        return ()


def iteration_of(outputs: RunOutputs, running: ActiveRun, **known: Any) -> Iteration:
    """Describe a run that ended; ``known`` are the fields that no output tells. An unknown category is empty."""
    failed = outputs.exit_code != "0"
    return Iteration(
        run_id=running.run_id,
        exit_code=outputs.exit_code[:100] or "1",
        changes_made=outputs.changes_made == "true",
        head_sha=outputs.commit_sha[:100],
        category=outputs.error_category if failed and outputs.error_category in get_args(ErrorCategory) else "",
        recovery=outputs.error_recovery if failed and outputs.error_recovery in get_args(Recovery) else "",
        error=error_identity(outputs) if failed else "",
        retry_after_seconds=number_in(outputs.retry_after_seconds),
        seconds=number_in(outputs.duration_seconds) or 0,
        cost_usd=number_in(outputs.cost_usd),
        is_over_budget=failed and _rule(outputs.error_evidence) in _BUDGET_RULES,
        **known,
    )


def error_identity(outputs: RunOutputs) -> str:
    """Return a digest that is the same for two runs with the same error: numbers, ids and spaces do not count."""
    summary = _VARYING.sub(" ", outputs.error_summary.lower()).strip()
    parts = json.dumps([outputs.error_category, _rule(outputs.error_evidence), summary])
    return hashlib.sha256(parts.encode()).hexdigest()[:16]


def _rule(evidence: str) -> str:
    try:
        value = json.loads(evidence)
    except (ValueError, RecursionError):
        return ""
    return str(value.get("rule", "")) if isinstance(value, dict) else ""


def number_in(text: str) -> float | None:
    """Read a number from zero to the longest time in seconds; None for any other text."""
    try:
        number = float(text)
    except ValueError:
        return None
    return number if math.isfinite(number) and 0 <= number <= _LONGEST_SECONDS else None
