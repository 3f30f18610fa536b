"""What the checks of a pull request's head allow."""

from __future__ import annotations

from typing import TYPE_CHECKING

from accord.loops.questions import SETTLING_SECONDS
from accord.loops.reasons import decided

if TYPE_CHECKING:
    from accord.loops.models import CheckFacts, Decision, PullFacts


def are_not_ready(pull: PullFacts, checks: CheckFacts) -> Decision | None:
    """Ask whether the checks of this very head are done."""
    if checks.head_sha != pull.head_sha:
        return decided("stale-checks", "The checks are those of another commit than the head.")
    if checks.pending:
        return decided("checks-pending", f"Pending: {named(checks.pending)}.")
    if not checks.failing and not checks.passing and checks.seconds_since_push < SETTLING_SECONDS:
        left = SETTLING_SECONDS - checks.seconds_since_push
        return decided("checks-missing", "No check has begun for this head yet.", wait_seconds=left)
    return None


def named(checks: tuple[str, ...]) -> str:
    """Name checks in a sentence: the first ten."""
    more = f" and {len(checks) - 10} more" if len(checks) > 10 else ""
    return ", ".join(checks[:10]) + more
