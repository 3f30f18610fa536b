"""Autofix: let the agent fix checks that fail for the head as it is now, a few times, and then ask a person.

Attempts count for the pull request, not for a commit: a new head is no new budget.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Literal

from accord.loops import questions
from accord.loops.context import DATA, fenced, joined
from accord.loops.models import Budgets, CheckFacts, Closed, Decision, LoopFacts, LoopState, decided
from accord.loops.questions import KEEPALIVE, SETTLING_SECONDS, Known
from accord.text.checklists import tasks
from accord.text.hidden import strip_hidden
from accord.text.terminal import as_seen

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

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


READ_CHARACTERS = 2_000_000
"""Only the end of a log is looked at: what fails ends it."""

PART_CHARACTERS = 6_000
LINE_CHARACTERS = 500
LINES_BEFORE = 15
LINES_AFTER = 25

_TIME = re.compile(r"^\ufeff?\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{1,9})?Z ?", re.MULTILINE)
_OVERWRITTEN = re.compile(r"^[^\n]*\r(?=[^\n])", re.MULTILINE)
_ENDED = re.compile(r"##\[error\]Process completed with exit code \d+")
_NOISE = re.compile(r"##\[(?:group|endgroup|debug|section)\]")
_ERROR = re.compile(
    r"##\[error\]"
    r"|^\s*(?:E  |Traceback \(most recent|FAILED |FAIL:? |--- FAIL|panic: |npm ERR!|error(?:\[\w+\])?:|Error: )"
    r"|\b[A-Z]\w*(?:Error|Exception)\b: |: error(?: \w+)?: |\bAssertionError\b|\bfatal: ",
    re.MULTILINE,
)


def failing_part(log: str, redact: Callable[[str], str], *, characters: int = PART_CHARACTERS) -> str:
    """Return the last error of a log with its surroundings, and the end of the failing step; at most ``characters``."""
    lines = _lines(_plain(log, redact))
    ended = next((i for i in range(len(lines) - 1, -1, -1) if _ENDED.search(lines[i])), None)
    if ended is not None:
        lines = lines[:ended]
    lines = "\n".join(line for line in lines if not _NOISE.match(line)).strip("\n").split("\n")
    last = next((i for i in range(len(lines) - 1, -1, -1) if _ERROR.search(lines[i])), None)
    tail = _tail(lines, characters // 2)
    if last is None or last >= len(lines) - len(tail):
        return "\n".join(_tail(lines, characters))
    region = lines[max(0, last - LINES_BEFORE) : last + LINES_AFTER]
    shown = "\n".join(region)[: characters - characters // 2 - 10]
    return "\n".join([shown, "[…]", *tail])


def _plain(log: str, redact: Callable[[str], str]) -> str:
    """Drop what a terminal would not show as text; what is redacted is whole by then."""
    if len(log) > READ_CHARACTERS:
        log = log[-READ_CHARACTERS:].partition("\n")[2]
    text = _TIME.sub("", as_seen(log.replace("\r\n", "\n")))
    return strip_hidden(redact(_OVERWRITTEN.sub("", text).replace("\r", "")))


def _lines(text: str) -> list[str]:
    lines = [line.rstrip() for line in text.split("\n")]
    return [line if len(line) <= LINE_CHARACTERS else line[: LINE_CHARACTERS - 1] + "…" for line in lines]


def _tail(lines: list[str], characters: int) -> list[str]:
    """Return as many whole lines of the end as fit."""
    size = 0
    for start in range(len(lines) - 1, -1, -1):
        size += len(lines[start]) + 1
        if size > characters:
            return lines[start + 1 :]
    return lines


LOGS = 5
"""Logs that the appendix holds; more failing checks are named."""


class CheckLog(Closed):
    """The log of a failing check, or of its job; as long as it is."""

    check: str
    url: str = ""
    log: str


def appendix(checks: CheckFacts, logs: Sequence[CheckLog], redact: Callable[[str], str]) -> str:
    """Write what the agent must know to fix them; ``redact`` takes secrets out of the logs."""
    failing = set(checks.failing)
    shown = [log for log in logs if log.check in failing][:LOGS]
    head = f"These checks fail for commit {checks.head_sha}: {_one_line(named(checks.failing))}."
    parts = [f"## Failing checks\n\n{head} Fix the cause. Do not weaken or skip a check.\n\n{DATA}"]
    for log in shown:
        where = f" ({_one_line(log.url)})" if log.url else ""
        parts.append(f"### {_one_line(log.check)}{where}\n\n{fenced(failing_part(log.log, redact))}")
    without = sorted(failing - {log.check for log in shown})
    if without:
        parts.append(f"No log is at hand for: {_one_line(named(tuple(without)))}.")
    return joined(parts, "The logs of {n} more checks are left out.")


def _one_line(text: str) -> str:
    return " ".join(text.split())[:500]


ATTEMPTS = Budgets(iterations=3, failures=2, transient=3, wait_seconds=60, longest_wait_seconds=3600)


class AutofixFacts(LoopFacts):
    """All that autofix decides from. ``logs`` are those of failing checks of ``checks.head_sha``."""

    kind: Literal["autofix-facts"] = "autofix-facts"
    checks: CheckFacts
    logs: tuple[CheckLog, ...] = ()
    state: LoopState = LoopState(loop="autofix")
    budgets: Budgets = ATTEMPTS


def decide(facts: AutofixFacts, redact: Callable[[str], str] = str) -> Decision:
    """Decide whether the agent fixes checks now. Pure. ``redact`` takes secrets out of the logs."""
    about = questions.known(facts)
    first = questions.first_answer(_FIRST, about) or are_not_ready(facts.pull, facts.checks)
    if first is None and not facts.checks.failing:
        first = decided("checks-green", "No check of the head fails.")
    decision = first or questions.first_answer(questions.BEFORE_A_RUN, about)
    if decision is None:
        decision = decided(
            "checks-failing",
            f"Failing for this head: {named(facts.checks.failing)}.",
            agent=questions.agent_of(facts),
            iteration=about.state.iterations + 1,
            appendix=appendix(facts.checks, facts.logs, redact),
        )
    return questions.finished(decision, about)


def _is_asked_for(about: Known) -> Decision | None:
    return questions.is_asked_for(about, "autofix")


def _keepalive_does_it(about: Known) -> Decision | None:
    is_on = questions.has(about.facts, KEEPALIVE) and about.settings.keepalive is not False
    if is_on and any(not task.is_checked for task in tasks(about.facts.pull.body)):
        return decided("keepalive-in-charge", "Keepalive works on this pull request and fixes its checks itself.")
    return None


_FIRST = (
    questions.is_over,
    questions.is_stopped_by_a_person,
    _is_asked_for,
    questions.may_not_write,
    questions.which_agent,
    _keepalive_does_it,
)
