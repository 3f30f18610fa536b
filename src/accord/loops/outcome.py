"""How a run of the agent counts: from the runner's outputs to an iteration of a loop.

Source: runner output contract, "Required Outputs". Outputs are texts of another job; a number that cannot be read is
one that is not known.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
from typing import TYPE_CHECKING, Literal, get_args

from accord.kernel.errors import WrongUsage
from accord.loops.models import Iteration
from accord.runner.models import Category, Recovery, RunOutputs

if TYPE_CHECKING:
    from datetime import datetime

    from accord.loops.models import Running

_VARYING = re.compile(r"0x[0-9a-f]+|\b[0-9a-f]{7,64}\b|[0-9]+|\s+")
_LONGEST_SECONDS = 10_000_000.0


def read_outputs(text: str) -> RunOutputs:
    """Read the outputs of a run as another job tells them: a JSON object of texts. What it does not know is left out.

    Where there is no exit code, the job that publishes ended before it could say how the run went.
    Raises WrongUsage for what is no JSON object.
    """
    try:
        value = json.loads(text) if text.strip() else {}
    except (ValueError, RecursionError):
        value = ""
    if not isinstance(value, dict | None):
        mend = "Pass what accord publish left: the step's outputs as one JSON object."
        raise WrongUsage("The outputs of the run are no JSON object.", mend=mend)
    known = {name: told for name, told in (value or {}).items() if name in _OUTPUTS and isinstance(told, str)}
    return RunOutputs.model_validate(known if known.get("exit-code") else _UNTOLD)


_OUTPUTS = frozenset(RunOutputs().as_outputs())
_UNTOLD = {
    "exit-code": "1",
    "error-category": "infrastructure",
    "error-type": "infrastructure",
    "error-recovery": "retry",
    "error-summary": "The job that publishes ended before it could say how the run went.",
}


def iteration_of(
    outputs: RunOutputs,
    running: Running,
    *,
    number: int,
    now: datetime,
    kind: Literal["run", "fix"] = "run",
    trees: tuple[str, str] = ("", ""),
    tasks_done: int = 0,
) -> Iteration:
    """Describe a run that ended; ``trees`` are those of the head before and after it.

    A category or suggestion that the contract does not know is none, and so a person is asked.
    """
    failed = outputs.exit_code != "0"
    return Iteration(
        run_id=running.run_id,
        number=number,
        kind=kind,
        exit_code=outputs.exit_code[:100] or "1",
        changes_made=outputs.changes_made == "true",
        head_sha=outputs.commit_sha[:100],
        tree_before=trees[0],
        tree=trees[1],
        category=_known(outputs.error_category, get_args(Category)) if failed else "",
        recovery=_known(outputs.error_recovery, get_args(Recovery)) if failed else "",
        error=error_identity(outputs) if failed else "",
        retry_after_seconds=_number(outputs.retry_after_seconds),
        tasks_done=tasks_done,
        seconds=_number(outputs.duration_seconds) or 0,
        cost_usd=_number(outputs.cost_usd),
        ended_at=now,
    )


def error_identity(outputs: RunOutputs) -> str:
    """Make two runs of the same error alike: numbers, ids and blanks of its summary do not count."""
    summary = _VARYING.sub(" ", outputs.error_summary.lower()).strip()
    told = json.dumps([outputs.error_category, _rule(outputs.error_evidence), summary])
    return hashlib.sha256(told.encode()).hexdigest()[:16]


def _rule(evidence: str) -> str:
    try:
        value = json.loads(evidence)
    except (ValueError, RecursionError):
        return ""
    return str(value.get("rule", "")) if isinstance(value, dict) else ""


def _known(word: str, words: tuple[str, ...]) -> str:
    return word if word in words else ""


def _number(text: str) -> float | None:
    try:
        number = float(text)
    except ValueError:
        return None
    return number if math.isfinite(number) and 0 <= number <= _LONGEST_SECONDS else None
