"""Workflow runs of the head that GitHub holds: read them, wait for a person's approval, or start them again.

A run caused by GITHUB_TOKEN has no jobs until it is approved, so the head looks like one without checks. Only a run
that an app's token starts again needs no approval. That is off by default, and left to a person where the pull request
changes files that steer agents or CI.
"""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

from accord.github.limits import COMPARED_FILES
from accord.github.models import Forbidden
from accord.loops.models import HeldRun, decision_for

if TYPE_CHECKING:
    from collections.abc import Sequence

    from accord.github.checks import Check
    from accord.github.models import Pull
    from accord.loops.facts import LoopContext
    from accord.loops.models import CheckFacts, LoopDecision
    from accord.loops.questions import Situation

ACTIONS = "github-actions"
"""The app whose check runs are jobs of GitHub Actions."""


STARTS = ".github/workflows/accord-start.yml"
"""The kit's workflow that starts agents; it checks nothing, and a run of it for a bot has no job anyway."""


def may_be_held(checks: Sequence[Check], *, reruns_held: bool) -> bool:
    """Tell whether held runs decide: no check is pending, and no job of GitHub Actions has run.

    Where jobs have run, people started them in another way, and what is still held does not count. The loop starts held
    runs one by one, so it looks for the rest.
    """
    states = {check.state for check in checks if check.app == ACTIONS} - {"skipped"}
    return all(check.state != "pending" for check in checks) and (reruns_held or not states)


def read_held(context: LoopContext, pull: Pull) -> tuple[HeldRun, ...] | None:
    """Read the held runs of the head, except this workflow's and starts of the kit; None if the token may not."""
    try:
        runs = context.github.held_runs(pull.head_sha)
    except Forbidden:
        return None
    return tuple(
        HeldRun(id=run.id, name=run.name or run.path, created_at=run.created_at, attempt=run.attempt)
        for run in runs
        if run.path not in (context.workflow, STARTS)
    )


def read_steering(context: LoopContext, pull: Pull) -> tuple[str, ...] | None:
    """Return the files of the head that steer agents or CI, or that only people change; None if too many changed."""
    from accord.agents.registry import shipped_registry
    from accord.git.steering import audit_paths

    files = context.github.files_between(pull.base_sha, pull.head_sha)
    if len(files) >= COMPARED_FILES:
        return None
    paths = (path for file in files for path in (file.path, file.previous_path) if path)
    audit = audit_paths(paths, agent_files=shipped_registry().steering_patterns)
    return (*audit.steering, *audit.protected)


def check_held(situation: Situation, checks: CheckFacts) -> LoopDecision | None:
    """Wait for a person's approval of held runs, ask after a while, or start them again."""
    facts, held = situation.facts, checks.held
    if not held:
        return None
    names = _names(tuple(run.name for run in held))
    may_rerun = facts.token.reruns_held and facts.token.triggers_workflows
    if may_rerun and checks.steering == () and all(run.attempt == 1 for run in held):
        message = f"GitHub held these workflow runs, and the loop starts them again: {names}."
        return decision_for("checks-rerun", message, reruns=tuple(run.id for run in held))
    where = facts.pull.url or "the page of the pull request"
    message = f"GitHub holds workflow runs of this head. A person has to press Approve workflows to run on {where}."
    if may_rerun and checks.steering:
        message = f"{message} The loop does not start them, since these files changed: {_names(checks.steering)}."
    allowed = timedelta(hours=situation.settings.budgets.approval_hours)
    left = min(run.created_at for run in held) + allowed - facts.now
    if left <= timedelta():
        hours = situation.settings.budgets.approval_hours
        message = f"{message} They have waited for {hours} hours: {names}."
        return decision_for("checks-not-approved", message)
    return decision_for("checks-held", f"{message} Held: {names}.", wait_seconds=int(left.total_seconds()) + 1)


def _names(names: Sequence[str]) -> str:
    """Return the first five names as a list in a sentence."""
    more = f" and {len(names) - 5} more" if len(names) > 5 else ""
    return ", ".join(name[:60] for name in names[:5]) + more
