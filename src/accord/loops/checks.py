"""The checks of a pull request's head: read them and their logs, wait for them, and show failures to the agent.

GitHub holds workflow runs that GITHUB_TOKEN caused: such a run has no jobs until a person approves it, so the head
looks like one without checks.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import timedelta
from functools import partial

from accord.core.errors import Refused
from accord.core.findings import count_of, names_of
from accord.engine.owner import reason_of_checks
from accord.git.origin import gh_name
from accord.github.checks import CONCLUSIONS, Check
from accord.github.client import GitHub
from accord.github.models import Conflict, Forbidden, NotThere
from accord.github.workflows import WorkflowRun
from accord.loops.facts import Gathered
from accord.loops.models import CheckFacts, Closed, HeldRun, InconclusiveCheck, LoopDecision, decision_for
from accord.loops.questions import Situation
from accord.loops.texts import join_parts
from accord.text.hidden import as_seen, strip_hidden
from accord.text.untrusted import DATA as UNTRUSTED
from accord.text.untrusted import fenced_data

SETTLING_SECONDS = 120
"""How long a commit without any check may still get one; GitHub starts workflows within seconds."""

ACTIONS = "github-actions"
"""The app whose check runs are jobs of GitHub Actions."""

_KIT = ("autofix", "board", "bot-comments", "implement", "keepalive", "labels", "plan", "review", "start", "verifier")
KIT = frozenset(f".github/workflows/accord-{name}.yml" for name in _KIT)
"""The files of the kit's workflows. Their jobs start, show and merge work, and say nothing about the code."""

OWN_JOB = "accord "
"""How the names of the loops' own jobs begin, after the caller's (``Keepalive / accord decides``)."""

LOGS = 5
"""Logs in the appendix; further failing checks are only named."""

READ_CHARACTERS = 2_000_000
"""Only the end of a log is read: a failure ends it."""

PART_CHARACTERS = 6_000
LINE_CHARACTERS = 500
LINES_BEFORE = 15
LINES_AFTER = 25

_BY_HAND = {
    "action_required": "A person has to act on its page.",
    "startup_failure": "Fix the workflow file that GitHub cannot start, and push.",
}
_STATES = ("failing", "pending", "passing")
_TIME = re.compile(r"^\ufeff?\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{1,9})?Z ?", re.MULTILINE)
_OVERWRITTEN = re.compile(r"^[^\n]*\r(?=[^\n])", re.MULTILINE)
_STEP_END = re.compile(r"##\[error\]Process completed with exit code \d+")
_NOISE = re.compile(r"##\[(?:group|endgroup|debug|section)\]")
_ERROR = re.compile(
    r"##\[error\]"
    r"|^[^\S\n]*(?:E  |Traceback \(most recent|FAILED |FAIL:? |--- FAIL|panic: |npm ERR!|error(?:\[\w+\])?:|Error: )"
    r"|\b[A-Z]\w*(?:Error|Exception)\b: |: error(?: \w+)?: |\bAssertionError\b|\bfatal: ",
    re.MULTILINE,
)


class CheckLog(Closed):
    """The whole log of a failing check, or of its job."""

    check: str
    url: str = ""
    log: str


def check_settled(situation: Situation, checks: CheckFacts) -> LoopDecision | None:
    """Wait until the checks of this very head are finished."""
    pull = situation.facts.pull
    if checks.head_sha != pull.head_sha:
        return decision_for("stale-checks", "The checks belong to another commit than the head.")
    match reason_of_checks(checks.held or (), checks.pending, checks.failing, checks.inconclusive):
        case "held":
            return check_held(situation, checks)
        case "checks-pending":
            return decision_for("checks-pending", f"Pending: {names_of(checks.pending)}.")
        case "inconclusive":
            return decision_for("checks-inconclusive", inconclusive_text(checks.inconclusive, pull.url))
    if not checks.failing and not checks.passing and checks.seconds_since_push < SETTLING_SECONDS:
        left = SETTLING_SECONDS - checks.seconds_since_push
        return decision_for("checks-missing", "No check has started for this head yet.", wait_seconds=left)
    return None


def inconclusive_text(checks: Sequence[InconclusiveCheck], page: str = "") -> str:
    """Return a sentence about checks without a result of the pull request at ``page``, and what a person does."""
    named = names_of([f"{check.name[:60]} ({check.conclusion or 'unknown'})" for check in checks], 5)
    kinds = {check.conclusion if check.conclusion in _BY_HAND else "" for check in checks}
    again = {check.workflow_run for check in checks if check.workflow_run and check.conclusion not in _BY_HAND}
    options = f" --repo {gh_name(page)}" if page else ""
    reruns = names_of([f"`gh run rerun {run}{options}`" for run in sorted(again)], 3)
    commands = [f"Run it again: {reruns}."] if again else []
    todo = " ".join([*commands, *(text for name, text in _BY_HAND.items() if name in kinds)])
    return f"Without a result: {named}. {todo or 'Run it again on its page.'}"


def read_checks(gathered: Gathered) -> Gathered:
    """Read the checks of the head, and the workflow runs that GitHub holds; where it does, statuses do not count."""
    context, github, pull = gathered.context, gathered.context.github, gathered.pull
    checks, runs = read_code_checks(github, pull.head_sha, context.run_id, context.workflow)
    held = None if runs is None else held_runs(runs, context.workflow)
    held = held if may_be_held(checks) else ()
    checks = checks if held else (*checks, *github.statuses(pull.head_sha))
    now = github.server_time()
    quiet = 0 if pull.updated_at is None else max(0, int((now - pull.updated_at).total_seconds()))  # a push is an event
    facts, again = check_facts(checks, pull.head_sha, quiet), {run.id for run in runs or () if run.attempt > 1}
    lost = tuple(one.model_copy(update={"is_retried": one.workflow_run in again}) for one in facts.inconclusive)
    facts = facts.model_copy(update={"held": held, "inconclusive": lost})
    return replace(gathered, checks=checks).with_facts(checks=facts, now=now)


def runs_to_repeat(checks: CheckFacts) -> list[int]:
    """Return the workflow runs whose first attempt ended without a result that another one may have."""
    lost = [one for one in checks.inconclusive if one.conclusion not in _BY_HAND and not one.is_retried]
    return list(dict.fromkeys(one.workflow_run for one in lost if one.workflow_run))


def rerun_lost(gathered: Gathered) -> Gathered:
    """Run again, once, what ended without a result; what the token may not is left to a person."""
    context, checks, started = gathered.context, gathered.facts.checks, set()
    if checks is None or gathered.decide().reason != "checks-inconclusive":
        return gathered
    for run in runs_to_repeat(checks):
        with suppress(Forbidden, Conflict, NotThere):  # such as a run that is too old
            send = partial(context.github.rerun, run)
            context.log.write("rerun-workflow", f"run {run}", send, number=gathered.pull.number)
            started.add(run)
    left = tuple(one for one in checks.inconclusive if one.workflow_run not in started)
    again = (one.name for one in checks.inconclusive if one.workflow_run in started)
    update = {"pending": tuple(sorted({*checks.pending, *again})), "inconclusive": left}
    return gathered.with_facts(checks=checks.model_copy(update=update)) if started else gathered


def read_code_checks(
    github: GitHub, sha: str, run_id: str = "", workflow: str = ""
) -> tuple[tuple[Check, ...], tuple[WorkflowRun, ...] | None]:
    """Read the check runs of a commit that tell about its code, and its workflow runs; None if the token may not."""
    checks = tuple(check for check in github.check_runs(sha) if not is_own(check, run_id))
    runs: tuple[WorkflowRun, ...] | None = ()
    if may_be_held(checks) or any(check.app == ACTIONS for check in checks):  # else they decide nothing
        try:
            runs = github.runs_of(sha)
        except Forbidden:
            runs = None
    return code_checks(checks, runs or (), workflow), runs


def code_checks(checks: Sequence[Check], runs: Sequence[WorkflowRun], workflow: str = "") -> tuple[Check, ...]:
    """Return the checks that count: none of the kit's workflows or of this one, and none that a newer one replaces.

    That is one of the same name, workflow file and event, of another run or where the check is inconclusive: jobs of
    one run may have one name. A run that GitHub could not start has no jobs, and is a check itself. Pure.
    """
    by_id = {run.id: run for run in runs if not is_of_kit(run, workflow)}
    others = {run.id for run in runs} - by_id.keys()
    found = [check for check in (*checks, *_unstarted_checks(by_id.values())) if check.workflow_run_id not in others]

    def subject(check: Check) -> tuple[str, str, str, str]:
        run = by_id.get(check.workflow_run_id or 0)
        return (check.app, check.name, run.path if run else "", run.event if run else "")

    newest: dict[tuple[str, str, str, str], Check] = {}
    for check in sorted(found, key=_began):
        newest[subject(check)] = check

    def is_replaced(check: Check) -> bool:
        last = newest[subject(check)]
        is_rerun = check.workflow_run_id in by_id and last.workflow_run_id != check.workflow_run_id
        return _began(last) > _began(check) and (is_rerun or check.state == "inconclusive")

    return tuple(check for check in found if not is_replaced(check))


def _began(check: Check) -> float:
    return check.started_at.timestamp() if check.started_at else 0


def _unstarted_checks(runs: Iterable[WorkflowRun]) -> Iterator[Check]:
    """Yield a check for the newest run of a workflow and event where GitHub could not start it: it has no jobs."""
    newest = {(run.path, run.event): run for run in sorted(runs, key=lambda run: run.id)}
    for run in newest.values():
        if run.conclusion == "startup_failure":
            name, state = run.name or run.path, CONCLUSIONS[run.conclusion]
            yield Check(name, state, "", ACTIONS, run.id, None, run.created_at, conclusion=run.conclusion)


def is_of_kit(run: WorkflowRun, workflow: str = "") -> bool:
    """Tell whether a run is of a workflow that the kit installs, or of this one; its branch may follow the file."""
    return run.path.partition("@")[0] in (*KIT, workflow)


def is_own(check: Check, run_id: str) -> bool:
    """Tell whether a check is a loop's own job, for which a loop must not wait: of this run, or named like one."""
    if check.app != ACTIONS:
        return False
    is_of_a_loop = check.name.rpartition(" / ")[2].startswith(OWN_JOB)
    return is_of_a_loop or (check.workflow_run_id is not None and str(check.workflow_run_id) == run_id)


def check_facts(checks: Sequence[Check], sha: str, quiet_seconds: int) -> CheckFacts:
    """Sort checks by state; of two with one name the worse counts."""
    named = {state: {check.name for check in checks if check.state == state} for state in _STATES}
    failing, pending = named["failing"], named["pending"] - named["failing"]
    unclear = {check.name: check for check in checks if check.state == "inconclusive"}
    without = [unclear[name] for name in sorted(unclear.keys() - failing - pending)]
    lost = [
        InconclusiveCheck(name=one.name, conclusion=one.conclusion, workflow_run=one.workflow_run_id or 0)
        for one in without
    ]
    return CheckFacts(
        head_sha=sha,
        failing=tuple(sorted(failing)),
        pending=tuple(sorted(pending)),
        inconclusive=tuple(lost),
        passing=tuple(sorted(named["passing"] - failing - pending - unclear.keys())),
        seconds_since_push=quiet_seconds,
    )


def may_be_held(checks: Sequence[Check]) -> bool:
    """Tell whether held runs decide: no check is pending, and no job of GitHub Actions has run.

    Where jobs have run, people started them in another way, and what is still held does not count.
    """
    states = {check.state for check in checks if check.app == ACTIONS} - {"skipped", "inconclusive"}
    return not states and all(check.state != "pending" for check in checks)


def held_runs(runs: Iterable[WorkflowRun], workflow: str = "") -> tuple[HeldRun, ...]:
    """Return the runs that wait for approval, except this workflow's and the kit's."""
    return tuple(
        HeldRun(id=run.id, name=run.name or run.path, created_at=run.created_at)
        for run in runs
        if run.is_held and not is_of_kit(run, workflow)
    )


def check_held(situation: Situation, checks: CheckFacts) -> LoopDecision:
    """Wait for a person's approval of held runs, and ask after a while."""
    facts, held, hours = situation.facts, checks.held or (), situation.settings.budgets.approval_hours
    names = names_of([run.name[:60] for run in held], 5)
    where = facts.pull.url or "the page of the pull request"
    message = f"GitHub holds workflow runs of this head. A person has to press Approve workflows to run on {where}."
    left = min(run.created_at for run in held) + timedelta(hours=hours) - facts.now
    if left <= timedelta():
        return decision_for(
            "checks-not-approved", f"{message} They have waited for {count_of(hours, 'hour')}: {names}."
        )
    return decision_for("checks-held", f"{message} Held: {names}.", wait_seconds=int(left.total_seconds()) + 1)


def read_logs(gathered: Gathered) -> Gathered:
    """Read the logs of failing checks, where the agent is to fix them."""
    if gathered.decide().action != "fix":
        return gathered
    failing = [check for check in gathered.checks if check.state == "failing"]
    logs = []
    for check in failing[:LOGS]:
        printed = ""
        with suppress(Refused):
            printed = gathered.context.github.job_log(check.job_id) if check.job_id is not None else ""
        if printed or check.summary:
            logs.append(CheckLog(check=check.name, url=check.url, log=printed or check.summary))
    return gathered.with_facts(logs=tuple(logs))


def appendix(checks: CheckFacts, logs: Sequence[CheckLog], redact: Callable[[str], str]) -> str:
    """Return what the agent needs to fix failing checks; ``redact`` removes secrets from the logs."""
    failing = set(checks.failing)
    shown = [log for log in logs if log.check in failing][:LOGS]
    head = f"These checks fail for commit {checks.head_sha}: {_one_line(names_of(checks.failing))}."
    parts = [f"## Failing checks\n\n{head} Fix the cause. Do not weaken or skip a check.\n\n{UNTRUSTED}"]
    for log in shown:
        where = f" ({_one_line(log.url)})" if log.url else ""
        parts.append(f"### {_one_line(log.check)}{where}\n\n{fenced_data(failing_part(log.log, redact))}")
    without = sorted(failing - {log.check for log in shown})
    if without:
        parts.append(f"No log is available for: {_one_line(names_of(without))}.")
    return join_parts(parts, "The logs of {n} more checks were left out.")


def _one_line(text: str) -> str:
    return " ".join(text.split())[:500]


def failing_part(log: str, redact: Callable[[str], str], *, characters: int = PART_CHARACTERS) -> str:
    """Return the last error of a log with its context, and the end of the failing step; at most ``characters``."""
    lines = _plain_lines(log, redact)
    end = _last(lines, _STEP_END, len(lines))
    lines = "\n".join(line for line in lines[:end] if not _NOISE.match(line)).strip("\n").split("\n")
    last = _last(lines, _ERROR, len(lines))
    tail = _tail(lines, characters // 2)
    if last >= len(lines) - len(tail):
        return "\n".join(_tail(lines, characters))
    region = lines[max(0, last - LINES_BEFORE) : last + LINES_AFTER]
    shown = "\n".join(region)[: characters - characters // 2 - 10]
    return "\n".join([shown, "[…]", *tail])


def _last(lines: Sequence[str], pattern: re.Pattern[str], default: int) -> int:
    return next((i for i in range(len(lines) - 1, -1, -1) if pattern.search(lines[i])), default)


def _plain_lines(log: str, redact: Callable[[str], str]) -> list[str]:
    """Return lines without escape sequences and timestamps; secrets are redacted before lines are cut."""
    if len(log) > READ_CHARACTERS:
        log = log[-READ_CHARACTERS:].partition("\n")[2]
    text = _TIME.sub("", as_seen(log.replace("\r\n", "\n")))
    text = strip_hidden(redact(_OVERWRITTEN.sub("", text).replace("\r", "")))
    lines = [line.rstrip() for line in text.split("\n")]
    return [line if len(line) <= LINE_CHARACTERS else line[: LINE_CHARACTERS - 1] + "…" for line in lines]


def _tail(lines: list[str], characters: int) -> list[str]:
    size = 0
    for start in range(len(lines) - 1, -1, -1):
        size += len(lines[start]) + 1
        if size > characters:
            return lines[start + 1 :]
    return lines
