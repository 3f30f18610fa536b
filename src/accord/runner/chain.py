"""The agents of one run, one after the other, in one work tree: the next one starts from the files of the first.

Changes of a failed agent are kept in the folder of its attempt, and are not part of the run.
"""

from __future__ import annotations

import hashlib
import os
import shlex
import tempfile
import time
from collections.abc import Mapping, Sequence
from contextlib import nullcontext, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from accord.agents.registry import Registry
from accord.core.environment import is_in_actions
from accord.core.errors import AccordError
from accord.core.findings import count_of, sentence
from accord.gha.step import guard_git_settings, guard_step_files
from accord.git.beside import RefChanges, Search, commands_to_undo, guard_refs, keep_work_beside, write_new
from accord.git.comparison import WorkTreeChanges, changes_since, own_messages
from accord.git.leaving_out import remarks_on
from accord.git.paths import some_of
from accord.git.snapshots import Snapshot, restorable
from accord.git.steering import audit_paths
from accord.git.trusted_files import TrustedFiles
from accord.runner import record as layout
from accord.runner.agent_session import ReadyAgent, agent_session
from accord.runner.attempts import RunBudget, last_turn, take_turns, task_prompt, write_prompt
from accord.runner.causes import INTERNAL_ERRORS
from accord.runner.launch import command_line, install_program
from accord.runner.models import AgentNotStarted, InternalError, JobContext, RunRequest
from accord.runner.record import Attempt, RunProgress
from accord.runner.refs import short_name
from accord.runner.registry import check_credentials, expiry_warnings
from accord.runner.tool_server import offers_tools
from accord.text.redaction import redactor_for

_OVERLOAD = "its provider is overloaded or unreachable"
_CREDENTIAL = "its credential is missing, invalid or refused"
SETBACKS = {
    "quota": "its quota is used up",
    **dict.fromkeys(("rate-limit", "outage", "network", "broken-answer"), _OVERLOAD),
    **dict.fromkeys(("credential", "credential-missing", "credential-invalid"), _CREDENTIAL),
    "stall": "it stalled",
    **dict.fromkeys(("install", "not-installed"), "it cannot be installed"),
}
"""Why an agent failed, by causes of ``accord.runner.causes`` that another agent would not share.

Any other failure ends the run.
"""

_UNSEEN = (
    "The agent worked where git has no commit, so its changes cannot be seen. "
    "Check out the repository before the run, or make its first commit."
)
_NAMED_REFS = 3
_MOST_PUSHED = 100
LEAST_SECONDS = 30.0
"""An agent with less time could only be ended."""


def verdict_after(cause: str, left: Sequence[str], budget: RunBudget) -> Literal["next", "spent", "end"]:
    """Decide after a failure of this cause: the next agent works, or no money is left for it, or the run ends."""
    if cause not in SETBACKS or not left:
        return "end"
    if budget.is_spent:
        return "spent"
    return "next" if budget.seconds_left >= LEAST_SECONDS else "end"


@dataclass
class AgentChain:
    """The agents of one run, one after the other: the next works where the one before is full, down or stalled."""

    request: RunRequest
    job: JobContext
    progress: RunProgress
    registry: Registry
    schema: str
    files: TrustedFiles
    about_changes: tuple[str, ...] = ()

    def run(self) -> None:
        """Run agents until one has no setback. Raises AgentNotStarted if none could start."""
        progress, record, mode = self.progress, self.progress.record, self.request.context.mode
        snapshot = progress.snapshot
        names = tuple(dict.fromkeys((record.agent, *self.registry.fallback_for(mode))))
        budget: RunBudget | None = None
        with restorable(snapshot) if snapshot and len(names) > 1 else nullcontext(None) as restore:
            for number, name in enumerate(names):
                left = names[number + 1 :]
                taken = len(record.attempts)
                try:
                    ready = self._prepare(name, is_first=number == 0)
                    deadline = time.monotonic() + self.request.max_runtime_minutes * 60
                    budget = budget or RunBudget(record, deadline, self.registry.max_cost_for(mode))
                    if progress.has_run and restore:
                        self._set_aside()
                        restore()
                    self._run_one(ready, budget, is_last=not left)
                except AgentNotStarted as problem:
                    if len(record.attempts) > taken or not self._can_skip(problem, name, left):
                        raise
                    continue
                if not self._goes_on(name, left, budget):
                    break
        progress.warn(*self.about_changes)

    def _prepare(self, name: str, *, is_first: bool) -> ReadyAgent:
        """Prepare an agent for its first attempt. The model and the command of the request are those of the first."""
        agent, job, request, schema = self.registry.agent(name), self.job, self.request, self.schema
        self.progress.warn(*expiry_warnings(agent, job.environment, job.clock.now()))
        request = request if is_first else replace(request, model="", command=())
        if has_tools := offers_tools(agent, request):  # the CLI would have a submitted result written a second time
            agent = agent.model_copy(update={"result_schema": None})
        prompt = task_prompt(request, job, agent, schema, self.files, has_tools=has_tools)
        if not (request.run_dir / layout.PROMPT).exists():
            write_prompt(request, prompt)
        command_line(agent, request, prompt, schema=schema)  # finds unsupported options before anything is installed
        check_credentials(name, agent, job.environment)
        folder = Path(job.environment.get("RUNNER_TEMP") or tempfile.gettempdir()) / "accord-agents"
        path = install_program(agent, (request.install_dir or folder).absolute(), job)
        return ReadyAgent(name, agent, request, prompt, schema, path, has_tools)

    def _can_skip(self, problem: AgentNotStarted, name: str, left: Sequence[str]) -> bool:
        """Record an agent that could not start, if the run goes on without it or has the failure of another one."""
        cause, record = INTERNAL_ERRORS[problem.error.kind], self.progress.record
        has_failed = any(attempt.outcome != "skipped" for attempt in record.attempts)
        if problem.error.kind == "cancelled" or not (has_failed or (cause in SETBACKS and left)):
            return False
        if not has_failed:
            record.error = record.error or problem.error
        reason = self.job.redactor(problem.message)
        record.attempts += (Attempt(agent=name, turn=0, outcome="skipped", cause=cause, reason=reason),)
        self.progress.warn(f"The agent `{name}` was skipped: {reason}")
        return True

    def _goes_on(self, name: str, left: Sequence[str], budget: RunBudget) -> bool:
        progress, record = self.progress, self.progress.record
        last = record.attempts[-1] if record.attempts else None
        if last is not None and last.outcome in ("done", "broken") and budget.is_spent:
            progress.warn(f"The run spent its whole budget: {budget.spent_usd:.2f} US dollars.")
        has_moved_refs = record.error is not None and record.error.kind == "refs-moved"
        if last is None or last.outcome != "failed" or last.turn > 1 or has_moved_refs or self.job.stop:
            return False
        verdict = verdict_after(last.cause, left, budget)
        if verdict == "spent":
            record.error = budget.spent_error
        if verdict == "next":
            text = f"The agent `{name}` failed, as {SETBACKS[last.cause]}. The next one is `{left[0]}`."
            progress.warn(text)
            self.job.show(f"accord: {text}")
        return verdict == "next"

    def _run_one(self, ready: ReadyAgent, budget: RunBudget, *, is_last: bool) -> None:
        job, progress, snapshot, record = self.job, self.progress, self.progress.snapshot, self.progress.record

        def save_changes() -> None:
            if snapshot is None:
                progress.warn(_UNSEEN)
                return
            try:
                self.about_changes = self._save_changes(snapshot)
            except AgentNotStarted as unreadable:
                if is_last or not record.attempts or record.attempts[-1].outcome != "failed":
                    raise
                progress.warn(f"The changes of the agent `{ready.name}` were not kept: {unreadable.message}")

        in_job = is_in_actions(job.environment)
        guard = guard_git_settings(snapshot.objects.parent if snapshot else None, with_refs=in_job)
        refs = guard_refs(self.request.directory) if snapshot and not in_job else nullcontext(RefChanges())
        with (
            refs as found,
            guard as changed,
            guard_step_files(job.environment) as restored,
            agent_session(ready, job, progress) as session,
        ):
            take_turns(session, budget, save_changes, self._note_uncounted)
        undone = [*changed, *found.undone]
        for name in [*(f"the runner's file {name}" for name in restored), *(f"git's {path}" for path in undone)]:
            job.show(f"accord: {name} was changed while the agent ran. The change was undone.")
        if found.moved and (record.error is None or INTERNAL_ERRORS[record.error.kind] in SETBACKS):
            record.error = _moved_refs(found.moved, self.request)
        costs = [attempt.cost_usd for attempt in record.attempts if attempt.agent == ready.name]
        if budget.max_cost_usd is not None and not ready.entry.max_cost and set(costs) == {None}:
            progress.warn(f"`{ready.name}` reports no cost, so `max_cost_usd` does not limit it.")

    def _set_aside(self) -> None:
        """Keep the changes of the failed agent in the folder of its attempt; they are not those of the run."""
        run_dir, record = self.request.run_dir, self.progress.record
        number = last_turn(record.attempts)
        patch, kept = run_dir / layout.PATCH, run_dir / f"attempt-{number}" / layout.PATCH
        record.patch_sha256, record.steering, record.left_out_steering, self.about_changes = "", (), (), ()
        for beside in run_dir.glob("beside*"):
            layout.make_writable(kept)
            beside.replace(kept.with_name(beside.name))
        if patch.is_file() and not patch.is_symlink():
            if patch.stat().st_size:
                layout.make_writable(kept)
                patch.replace(kept)
                name = record.attempts[number - 1].agent
                self.progress.warn(f"The changes of `{name}` are in {kept.relative_to(run_dir)}.")
            else:
                patch.unlink()

    def _secrets(self) -> Sequence[str]:
        job, names = self.job, self.job.secret_names
        known = {name: value for name, value in job.environment.items() if name in names}
        return redactor_for(known, certain=names).values

    def _changes_since(self, snapshot: Snapshot, secrets: Sequence[str] = ()) -> WorkTreeChanges:
        own = self.registry.steering_patterns, self.registry.protected
        return changes_since(snapshot, secrets=secrets, own=own)

    def _steering_left_out(self, changes: WorkTreeChanges) -> tuple[str, ...]:
        return _to_text(audit_paths(changes.left_out, agent_files=self.registry.steering_patterns).steering)

    def _note_uncounted(self) -> None:
        """Record what steers agents in the tree after a turn that does not count; the patch lacks it."""
        if snapshot := self.progress.snapshot:
            with suppress(AccordError):
                changes = self._changes_since(snapshot)
                self.progress.record.left_out_steering = _to_text(changes.steering) + self._steering_left_out(changes)

    def _save_changes(self, snapshot: Snapshot) -> tuple[str, ...]:
        """Write the patch, unless it cannot be read or contains a secret; return warnings about it."""
        request, record, secrets = self.request, self.progress.record, self._secrets()
        try:
            changes = self._changes_since(snapshot, secrets)
        except AccordError as error:
            raise AgentNotStarted("changes-unreadable", error.message, hint=error.hint) from None
        path = request.run_dir / layout.PATCH
        layout.make_writable(path)
        path.unlink(missing_ok=True)
        path.write_bytes(changes.patch)
        record.merged = changes.merged
        record.steering, record.left_out_steering = _to_text(changes.steering), self._steering_left_out(changes)
        record.pushed = dict([*changes.own_pushes.items()][:_MOST_PUSHED])
        record.patch_sha256 = hashlib.sha256(changes.patch).hexdigest()
        warnings = remarks_on(changes.left_out)
        hidden = [secret.encode("utf-8", "surrogateescape") for secret in secrets]
        branch = f"origin/{short_name(request.context.pr_ref)}"
        search = Search(hidden, snapshot.is_private, changes.pushed.get(branch, ""))
        git, start = snapshot.agents_git(), snapshot.commit
        record.messages = own_messages(git, start, record.merged)
        warnings += keep_work_beside(git, start, snapshot.beside, request.run_dir, search)
        if changes.pushed:
            places = some_of([f"{name} ({commit[:7]})" for name, commit in changes.pushed.items()])
            said = f"The agent or someone else pushed from here: {places}."
            warnings.append(f"{said} An agent's job needs no token that writes.")
        if changes.undone:  # files of earlier commits, which the agent left by going on from elsewhere
            files = f"{count_of(len(changes.undone), 'file')}: {some_of(changes.undone)}."
            warnings.append(f"The agent's branch lacks commits from before the run, so the changes undo {files}")
        if (changes.unfinished or changes.marked) and record.error is None:
            marked = f"conflict-markers are in {some_of(changes.marked)}" if changes.marked else ""
            detail = sentence("; ".join(filter(None, [changes.unfinished, marked])))
            record.error = InternalError(kind="merge-unfinished", detail=detail)
        inputs = {(request.directory / path).resolve() for path in (request.prompt_file, *request.data) if path}
        if untouched := [path for path in changes.untouched if (snapshot.top / path).resolve() not in inputs]:
            message = "Files that were already uncommitted before the run were left out"
            warnings.append(f"{message}: {some_of(untouched)}.")
        return tuple(warnings)


def _to_text(paths: Sequence[str]) -> tuple[str, ...]:
    return tuple(os.fsencode(path).decode("utf-8", "replace") for path in paths)


def _moved_refs(moved: Mapping[str, str], request: RunRequest) -> InternalError:
    """Name the refs that changed, which a person may have moved, and write a script that puts them back."""
    script = request.run_dir / layout.UNDO
    layout.make_writable(script)
    lines = ["set -e", f"cd {shlex.quote(str(request.directory))}", *commands_to_undo(moved)]
    write_new(script, os.fsencode("\n".join(lines) + "\n"))
    command = f"sh {shlex.quote(str(script))}"
    undo = f"They stay as they are. If no person moved them, undo it with `{command}`. Then run it again."
    detail = f"{some_of(list(moved), _NAMED_REFS)}. {undo}"
    return InternalError(kind="refs-moved", detail=detail, has_hint=True)
