"""The attempts of one run: each is one turn of one agent. They share the work tree and the time limit.

The files of the attempt that counts are those of the run; others are kept in ``attempt-1``, ``attempt-2`` and so on.
The last attempt counts, unless it was to repair a result and failed: then the one before it does.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from accord.agents.registry import Agent
from accord.core.errors import AccordError
from accord.core.findings import count_of
from accord.core.frozen import Frozen
from accord.git.trusted_files import TrustedFiles
from accord.runner import record as layout
from accord.runner.agent_session import AgentSession
from accord.runner.classify import classify, contract_exit_code, is_ended_well
from accord.runner.contract import ContractResult, check_result, repair_prompt, second_prompt
from accord.runner.launch import can_resume
from accord.runner.models import AgentNotStarted, InternalError, JobContext, RunRequest
from accord.runner.process import span
from accord.runner.prompt import assemble, prompt_for, read_data
from accord.runner.record import Attempt, RunRecord
from accord.runner.tool_server import PROMPT as TOOLS_PROMPT
from accord.runner.transcripts.account import Account, Usage
from accord.runner.transcripts.read import FORMATS, evidence_in

_LEAST_REPAIR_SECONDS = 60.0
"""A repair turn with less time would probably be ended."""

_FILES = (layout.PROMPT, layout.STDOUT, layout.STDERR, layout.FINAL_MESSAGE, layout.SUBMITTED)
"""The files of an attempt."""


class RunBudget(Frozen):
    """The time and the money that all attempts of a run share."""

    record: RunRecord
    deadline: float  # on the monotonic clock, in seconds
    max_cost_usd: float | None = None  # None: any

    @property
    def seconds_left(self) -> float:
        """The rest, which is never negative."""
        return max(0.0, self.deadline - time.monotonic())

    @property
    def spent_usd(self) -> float:
        """The cost of the attempts, as far as the agents report it."""
        return self.record.usage.cost_usd or 0.0

    @property
    def usd_left(self) -> float | None:
        """The rest of the money, never less than 0; None without a limit."""
        return None if self.max_cost_usd is None else max(0.0, self.max_cost_usd - self.spent_usd)

    @property
    def is_spent(self) -> bool:
        """Whether the attempts left no money."""
        return self.usd_left == 0.0

    @property
    def spent_error(self) -> InternalError:
        """The error of a run whose money is spent."""
        tries = count_of(sum(attempt.outcome != "skipped" for attempt in self.record.attempts), "attempt")
        detail = (
            f"{tries} cost {self.spent_usd:.2f} of {self.max_cost_usd or 0:.2f} US dollars. "
            "Raise `max_cost_usd` in the agent registry, or split the task."
        )
        return InternalError(kind="budget", detail=detail, has_hint=True)


def take_turns(
    session: AgentSession, budget: RunBudget, save_changes: Callable[[], None], note_uncounted: Callable[[], None]
) -> None:
    """Let an agent work on the task, and ask it again as long as its result breaks its contract.

    ``note_uncounted`` is called where the last turn does not count, but may have changed files.
    """
    ready = session.ready
    try:
        account, checked = take_attempt(session, ready.prompt, budget)
    except BaseException:
        with suppress(AccordError, OSError):  # the first problem is the one to report
            save_changes()
        raise
    save_changes()
    turns = ready.entry.repair_turns if ready.request.repair_turns is None else ready.request.repair_turns
    for _ in range(turns):
        is_late = budget.seconds_left < _LEAST_REPAIR_SECONDS or budget.is_spent
        if not checked.is_broken or session.job.stop or is_late:
            return
        resume = account.session if can_resume(ready.entry, account.session) else ""
        prompt = repair_prompt(checked.findings)
        if not resume:
            prompt = second_prompt(ready.prompt, account.final_message, checked.findings)
        problems = count_of(len(checked.findings), "finding")
        session.job.show(f"accord: the result breaks its contract ({problems}); asking again")
        repaired = _take_repair_turn(session, prompt, budget, resume)
        if repaired is None:
            note_uncounted()
            return
        account, checked = repaired
        save_changes()


def _take_repair_turn(
    session: AgentSession, prompt: str, budget: RunBudget, resume: str
) -> tuple[Account, ContractResult] | None:
    """Let the agent correct its result. If that fails, warn, go back to the attempt before, and return None.

    A cancelled turn ends the run as cancelled.
    """
    record, run_dir = budget.record, session.ready.request.run_dir
    number, exit_code, error, count = last_turn(record.attempts), record.exit_code, record.error, len(record.attempts)
    try:
        taken = take_attempt(session, prompt, budget, resume=resume)
    except AgentNotStarted as problem:
        reason = problem.message
    except OSError as problem:
        reason = f"{problem.filename or 'A file'} cannot be used: {problem.strerror or problem}."
    else:
        last = record.attempts[-1]
        if last.outcome in ("done", "broken") or last.cause == "cancelled":
            return taken
        reason = last.reason
    if len(record.attempts) > count:
        _move_files(run_dir, run_dir / f"attempt-{len(record.attempts)}")
    _move_files(run_dir / f"attempt-{number}", run_dir)
    record.exit_code, record.error = exit_code, error
    session.progress.warn(f"The turn to correct the result failed, so the turn before it counts: {reason}")
    return None


def take_attempt(
    session: AgentSession, prompt: str, budget: RunBudget, *, resume: str = ""
) -> tuple[Account, ContractResult]:
    """Let the agent take one turn, and record it; return what it did and its checked result.

    ``resume`` is the conversation to go on with. A failed turn has no result.
    """
    ready, job, record = session.ready, session.job, budget.record
    run_dir = ready.request.run_dir
    if record.attempts:
        if number := last_turn(record.attempts):
            _move_files(run_dir, run_dir / f"attempt-{number}")
        write_prompt(ready.request, prompt)
    began = job.clock.now()
    end = session.take_turn(prompt, budget.seconds_left, resume=resume, usd_left=budget.usd_left)
    record.agent, record.codec = ready.name, ready.entry.codec
    record.exit_code, record.error = end.exit_code, end.error
    if end.error and end.error.kind == "time-limit":
        detail = f"The agent reached its time limit of {span(ready.request.max_runtime_minutes * 60)}."
        record.error = end.error.model_copy(update={"detail": detail})
    if names := ", ".join(end.replaced):
        session.progress.warn(f"The agent removed or replaced files of its run, which were restored: {names}.")
    if names := ", ".join(end.shortened):
        printed = f"The agent printed more than {ready.entry.output_mib} MiB"
        session.progress.warn(f"{printed}. The middle of {names} is missing.")
    evidence = evidence_in(run_dir, record)
    checked = ContractResult(None)
    if is_ended_well(evidence) and ready.schema:
        given = evidence.account.structured, evidence.account.final_message
        checked = check_result(json.loads(ready.schema), ready.request.kind, *given)
        evidence.account.structured = checked.value
    account, failure = evidence.account, classify(evidence)
    usage, cause = _usage_of_turn(account, record.attempts), failure.cause if failure else ""
    ended = "done" if not contract_exit_code(evidence) else "budget" if cause == "budget" else "failed"
    attempt = Attempt(
        agent=ready.name,
        turn=1 + sum(earlier.agent == ready.name for earlier in record.attempts),
        outcome="broken" if checked.is_broken else ended,
        cause=cause,
        reason=job.redactor(failure.summary) if failure else "",
        exit_code=end.exit_code,
        model=account.model,
        session=account.session,
        **asdict(usage),
        findings=tuple(checked.findings),
        fixes=tuple(fix.text for fix in checked.fixes),
        duration_seconds=round((job.clock.now() - began).total_seconds(), 3),
    )
    record.attempts += (attempt,)
    return account, checked


def last_turn(attempts: Sequence[Attempt]) -> int:
    """Return the number of the last attempt in which an agent ran; 0 without one."""
    return max((number for number, attempt in enumerate(attempts, 1) if attempt.outcome != "skipped"), default=0)


def _usage_of_turn(account: Account, attempts: Sequence[Attempt]) -> Usage:
    """Take the earlier turns out of what a CLI counts over its whole conversation."""
    earlier = [attempt for attempt in attempts if account.session and attempt.session == account.session]
    own: dict[str, Any] = {}
    for name in FORMATS[account.codec].session_totals if account.codec in FORMATS else ():
        total = getattr(account.usage, name)
        before = sum(getattr(attempt, name) or 0 for attempt in earlier)
        own[name] = total - before if total is not None and total >= before else total
    return replace(account.usage, **own)


def _move_files(source: Path, target: Path) -> None:
    """Move the files of an attempt to the folder where they are kept, or back; an agent may have put links there."""
    for name in _FILES:
        if (source / name).is_file() and not ((source / name).is_symlink() or source.is_symlink()):
            layout.make_writable(target / name)
            (source / name).replace(target / name)


def task_prompt(
    request: RunRequest, job: JobContext, agent: Agent, schema: str, files: TrustedFiles, *, has_tools: bool
) -> str:
    """Return the whole prompt of a task. Raises AgentNotStarted, ``prompt-invalid``."""
    run = request.context
    facts = {"Mode": run.mode, "Iteration": run.iteration, "Pull request": run.pull, "Base branch": run.base_ref}
    workspace = workspace_of(request.directory, request.files, job.environment)
    prompt = prompt_for(request.prompt_file, run.mode, workspace, files)
    text = assemble(prompt, request.appendix, facts, read_data(request.data))
    if schema and agent.result_schema is None:
        wanted = "End with one JSON document that matches this JSON Schema, and write nothing after it:"
        text += f"\n## Result\n\n{TOOLS_PROMPT if has_tools else wanted}\n\n{schema}\n"
    return job.redactor(text)


def write_prompt(request: RunRequest, text: str) -> None:
    """Write the prompt of a turn into the folder of the run."""
    path = request.run_dir / layout.PROMPT
    layout.make_writable(path)
    path.write_text(text, encoding="utf-8", errors="replace", newline="")


def workspace_of(directory: Path, files: TrustedFiles | None, environment: Mapping[str, str]) -> Path:
    """Return the runner's workspace if the checkout is inside it: a job may check out several repositories."""
    directory = files.top if files else directory
    workspace = Path(environment.get("GITHUB_WORKSPACE") or directory)
    return workspace if directory.resolve().is_relative_to(workspace.resolve()) else directory
