"""Failing checks as an agent is shown them: which fail for which commit, and the failing part of their logs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from accord.loops.appendix import DATA, fenced, joined
from accord.loops.checks import named
from accord.loops.logs import failing_part
from accord.loops.models import CheckFacts, Closed

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

LOGS = 5
"""Logs that the appendix holds; more failing checks are named."""


class CheckLog(Closed):
    """The log of a failing check, or of its job; as long as it is."""

    check: str
    url: str = ""
    log: str


def appendix(checks: CheckFacts, logs: Sequence[CheckLog], redact: Callable[[str], str]) -> str:
    """Write what the agent must know to mend them; ``redact`` takes secrets out of the logs."""
    failing = set(checks.failing)
    shown = [log for log in logs if log.check in failing][:LOGS]
    head = f"These checks fail for commit {checks.head_sha}: {_one_line(named(checks.failing))}."
    parts = [f"## Failing checks\n\n{head} Mend the cause. Do not weaken or skip a check.\n\n{DATA}"]
    for log in shown:
        where = f" ({_one_line(log.url)})" if log.url else ""
        parts.append(f"### {_one_line(log.check)}{where}\n\n{fenced(failing_part(log.log, redact))}")
    without = sorted(failing - {log.check for log in shown})
    if without:
        parts.append(f"No log is at hand for: {_one_line(named(tuple(without)))}.")
    return joined(parts, "The logs of {n} more checks are left out.")


def _one_line(text: str) -> str:
    return " ".join(text.split())[:500]
