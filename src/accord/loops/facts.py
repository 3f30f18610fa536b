"""Gathering facts, stage by stage, in the order in which the questions are asked.

Before each stage the loop decides with what is not known yet taken for whatever would let the agent run. A decision
that does not run it even so is final, and nothing more is asked of GitHub: a pull request that a person paused costs
one request.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from accord.core.errors import Refused
from accord.github.models import Forbidden
from accord.loops.ledger import as_before, as_dated
from accord.loops.models import NEEDS_HUMAN, CheckFacts, GoAhead
from accord.loops.state import Kept, load

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import datetime

    from accord.github.checks import Check
    from accord.github.models import Pull
    from accord.loops.context import Site
    from accord.loops.loop import Loop
    from accord.loops.models import Decision, LoopFacts, Running


RUNS = ("run", "fix")
PARDONABLE = ("failure-budget", "transient-budget", "same-error", "no-progress")
"""Reasons that a person's go-ahead overrules; only then is it asked for who took the label off."""

OWN_JOB = "accord "
"""How the names of the loops' own jobs begin, behind the caller's (``Keepalive / accord decides``)."""


@dataclass(frozen=True)
class Gathered:
    """What is known so far. ``kept`` is the state as it was read, ``checks`` those that count."""

    loop: Loop
    site: Site
    pull: Pull
    facts: LoopFacts
    kept: Kept | None = None
    checks: tuple[Check, ...] = ()

    def knows(self, **facts: object) -> Gathered:
        """Add facts."""
        return replace(self, facts=self.facts.model_copy(update=facts))

    def decision(self) -> Decision:
        """Decide by what is known."""
        return self.loop.decide(self.facts, self.site.redact)


def gather(
    loop: Loop,
    site: Site,
    pull: Pull | None = None,
    kept: Kept | None = None,
    *,
    for_prompt: bool = True,
    more: Mapping[str, object] | None = None,
) -> tuple[Gathered, Decision]:
    """Ask GitHub for as much as the decision takes, and decide.

    ``pull`` and ``kept`` are taken as given where the caller has them, and so are ``more`` facts. Not
    ``for_prompt``: whether the agent runs is all that is asked.
    """
    pull = pull or site.pull()
    known = Gathered(loop, site, pull, loop.first_facts(site, pull), kept).knows(**(more or {}))
    decision = known.decision()
    for stage in (*loop.stages, *(loop.details if for_prompt else ())):
        if decision.action not in RUNS:
            break
        known = stage(known)
        decision = known.decision()
    return known, decision


def with_state(known: Gathered) -> Gathered:
    """Read the state, and what it raises questions about: a run that may be over, a go-ahead that may have come."""
    site, kept = known.site, known.kept or load(known.site.place(known.loop.name))
    state = as_before(kept.state, site.run_id)
    known = replace(known, kept=kept).knows(state=state, rate=site.rate(), now=site.now())
    if known.decision().reason == "running" and state.running and _has_ended(state.running, site):
        known = known.knows(running_has_ended=True)
    if known.decision().reason in PARDONABLE:
        last = as_dated(state, known.facts.now).last
        known = known.knows(go_ahead=go_ahead(site, after=last.ended_at if last else None))
    return known


def _has_ended(running: Running, site: Site) -> bool:
    """Ask GitHub whether the workflow run of a run under way is over; one at a terminal is known to nobody."""
    if not running.run_id.isdecimal():
        return False
    try:
        run = site.github.workflow_run(int(running.run_id))
    except Forbidden:  # it counts as lost in the end all the same
        return False
    return run is None or run.has_ended


def go_ahead(site: Site, after: datetime | None) -> GoAhead | None:
    """Find the last person who may write and took ``needs-human`` off after that moment."""
    for event in reversed(site.github.label_events(site.number)):
        if event.change != "removed" or event.label.casefold() != NEEDS_HUMAN or event.is_bot or not event.login:
            continue
        if after is not None and event.at <= after:
            return None
        if site.may_write(event.login):
            return GoAhead(by=event.login, at=event.at)
    return None


def with_checks(known: Gathered) -> Gathered:
    """Read the checks of the head."""
    listed = known.site.github.checks(known.pull.head_sha)
    checks = tuple(check for check in listed if not is_own(check, known.site.run_id))
    facts = check_facts(checks, known.pull.head_sha, _quiet_seconds(known))
    return replace(known, checks=checks).knows(checks=facts, now=known.site.now())


def is_own(check: Check, run_id: str) -> bool:
    """Tell whether a check is a loop's own job: of this workflow run, or of one of the loops by its name.

    They would wait for each other, and a loop that failed is no failure of the change.
    """
    if check.app != "github-actions":
        return False
    is_of_a_loop = check.name.rpartition(" / ")[2].startswith(OWN_JOB)
    return is_of_a_loop or (check.workflow_run_id is not None and str(check.workflow_run_id) == run_id)


def check_facts(checks: Sequence[Check], sha: str, quiet_seconds: int) -> CheckFacts:
    """Sort checks by their state; of two with one name the worse counts."""
    named = {state: {check.name for check in checks if check.state == state} for state in _STATES}
    failing, pending = named["failing"], named["pending"] - named["failing"]
    return CheckFacts(
        head_sha=sha,
        failing=tuple(sorted(failing)),
        pending=tuple(sorted(pending)),
        passing=tuple(sorted(named["passing"] - failing - pending)),
        seconds_since_push=quiet_seconds,
    )


_STATES = ("failing", "pending", "passing")


def _quiet_seconds(known: Gathered) -> int:
    """Seconds since anything happened to the pull request: GitHub does not tell when a commit was pushed.

    A push is something that happens to it, so checks that are still to come are never taken for none.
    """
    updated = known.pull.updated_at
    return 0 if updated is None else max(0, int((known.site.now() - updated).total_seconds()))


def with_logs(known: Gathered) -> Gathered:
    """Read the logs of failing checks, where the agent is to fix them."""
    from accord.loops.autofix import LOGS, CheckLog

    if known.decision().action != "fix":
        return known
    failing = [check for check in known.checks if check.state == "failing"]
    logs = [
        CheckLog(check=check.name, url=check.url, log=text)
        for check in failing[:LOGS]
        if (text := _log(check, known.site))
    ]
    return known.knows(logs=tuple(logs))


def _log(check: Check, site: Site) -> str:
    """Read what a check printed, or else what it says of itself. A token that may not read logs sees the latter."""
    try:
        printed = site.github.job_log(check.job_id) if check.job_id is not None else ""
    except Refused:
        printed = ""
    return printed or check.summary
