"""The attempts of one run: each is one turn of one agent. They share the work tree and the time limit.

The files of the last attempt are those of the run; earlier ones are kept in ``attempt-1``, ``attempt-2`` and so on.
"""

from __future__ import annotations

import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from accord.runner import record as layout
from accord.runner.agent_session import ReadyAgent, agent_session, turn_warnings
from accord.runner.classify import contract_exit_code
from accord.runner.launch import check_credentials, command_line, install_program
from accord.runner.prompt import assemble, prompt_for, read_data
from accord.runner.record import Attempt
from accord.runner.transcripts.read import read_evidence

if TYPE_CHECKING:
    from accord.git.trusted_files import TrustedFiles
    from accord.runner.agent_session import AgentSession
    from accord.runner.classify import RunEvidence
    from accord.runner.context import JobContext, Progress
    from accord.runner.models import RunRequest
    from accord.runner.registry import Agent, Registry


@dataclass(frozen=True)
class TimeBudget:
    """The time that all attempts share, as a point on the monotonic clock, in seconds."""

    deadline: float

    @property
    def seconds_left(self) -> float:
        """The rest, which is never negative."""
        return max(0.0, self.deadline - time.monotonic())


def prepare_agent(
    name: str, registry: Registry, request: RunRequest, job: JobContext, schema: str, files: TrustedFiles
) -> ReadyAgent:
    """Make everything ready that an agent needs before its first attempt. Raises AgentNotStarted, WrongUsage."""
    agent = registry.agent(name)
    prompt = _task_prompt(request, job, agent, schema, files)
    _write_prompt(request, prompt)
    command_line(agent, request, prompt, schema=schema)  # finds unsupported options before anything is installed
    check_credentials(name, agent, job.environment)
    root = request.install_dir or Path(job.environment.get("RUNNER_TEMP") or tempfile.gettempdir()) / "accord-agents"
    path = install_program(agent, root.absolute(), job.environment, redactor=job.redactor, show=job.show, stop=job.stop)
    return ReadyAgent(name, agent, prompt, schema, path)


def run_attempts(ready: ReadyAgent, request: RunRequest, job: JobContext, progress: Progress) -> None:
    """Let an agent take its turns. Raises AgentNotStarted."""
    with agent_session(ready, request, job, progress) as session:
        budget = TimeBudget(time.monotonic() + request.max_runtime_minutes * 60)
        take_attempt(session, ready.prompt, budget, progress)


def take_attempt(session: AgentSession, prompt: str, budget: TimeBudget, progress: Progress) -> RunEvidence:
    """Let the agent take one turn, and record it; return its evidence."""
    ready, run_dir = session.ready, session.request.run_dir
    if progress.attempts:
        _keep_files(run_dir, len(progress.attempts))
        _write_prompt(session.request, prompt)
    began = session.job.clock.now()
    end = session.take_turn(prompt, budget.seconds_left)
    progress.agent, progress.codec = ready.name, ready.entry.codec
    progress.exit_code, progress.error = end.exit_code, end.error
    progress.warn(*turn_warnings(end, ready.entry))
    stdout, stderr, message = (run_dir / name for name in (layout.STDOUT, layout.STDERR, layout.FINAL_MESSAGE))
    given = (ready.entry.codec, ready.name, end.exit_code, stdout)
    evidence = read_evidence(*given, stderr=stderr, final_message=message, error=end.error)
    account = evidence.account
    attempt = Attempt(
        agent=ready.name,
        turn=1 + sum(earlier.agent == ready.name for earlier in progress.attempts),
        outcome="failed" if contract_exit_code(evidence) else "done",
        exit_code=end.exit_code,
        model=account.model,
        tokens_input=account.usage.input_tokens,
        tokens_output=account.usage.output_tokens,
        cost_usd=account.usage.cost_usd,
        duration_seconds=round((session.job.clock.now() - began).total_seconds(), 3),
    )
    progress.attempts.append(attempt)
    return evidence


def _keep_files(run_dir: Path, number: int) -> None:
    """Move the files of an attempt into a folder of their own, before the next one writes its files."""
    for name in (layout.PROMPT, layout.STDOUT, layout.STDERR, layout.FINAL_MESSAGE):
        source, target = run_dir / name, run_dir / f"attempt-{number}" / name
        if source.is_file() and not source.is_symlink():
            layout.make_writable(target)
            source.replace(target)


def _task_prompt(request: RunRequest, job: JobContext, agent: Agent, schema: str, files: TrustedFiles) -> str:
    """Assemble the prompt of the first attempt, without secrets."""
    run = request.context
    facts = {"Mode": run.mode, "Iteration": run.iteration, "Pull request": run.pull, "Base branch": run.base_ref}
    prompt = prompt_for(request.prompt_file, run.mode, _workspace(request, job), files)
    text = assemble(prompt, request.appendix, facts, read_data(request.data))
    if schema and agent.result_schema is None:
        wanted = "End with one JSON document that matches this JSON Schema, and write nothing after it:"
        text += f"\n## Result\n\n{wanted}\n\n{schema}\n"
    return job.redactor(text)


def _write_prompt(request: RunRequest, text: str) -> None:
    path = request.run_dir / layout.PROMPT
    layout.make_writable(path)
    path.write_text(text, encoding="utf-8", errors="replace", newline="")


def _workspace(request: RunRequest, job: JobContext) -> Path:
    """Return the runner's workspace if the checkout is inside it: a job may check out several repositories."""
    directory = request.files.top if request.files else request.directory
    workspace = Path(job.environment.get("GITHUB_WORKSPACE") or directory)
    return workspace if directory.resolve().is_relative_to(workspace.resolve()) else directory
