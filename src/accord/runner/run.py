"""Running an agent: gather what it needs, run it, take what it changed, and write down how it went.

The folder of the run is all that is left: whatever happens, it ends with a record. Nothing is pushed here, and nothing
is concluded from what the agent said.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import tempfile
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from accord.core.clock import timestamp
from accord.core.errors import AccordError, WrongUsage
from accord.files.store import DISK_FULL, write_whole
from accord.gha.files import guarded
from accord.git.snapshots import Snapshot, changes_since, take_snapshot
from accord.runner import record as layout
from accord.runner.classify import AgentNotStarted, internal_error
from accord.runner.launch import (
    CommandInputs,
    agent_environment,
    check_credentials,
    command_line,
    find_program,
    furnish_home,
    programs_of,
    setting_of,
)
from accord.runner.process import Program, run_program
from accord.runner.prompt import assemble, prompt_for, read_data, validator
from accord.runner.record import InternalError, RunRecord
from accord.runner.registry import declared_secrets, load_registry, repository_registry
from accord.text.redaction import RedactedStream, redactor_for

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from accord.core.clock import Clock
    from accord.runner.process import StopSignals, Watcher
    from accord.runner.registry import Agent
    from accord.text.redaction import Redactor

_CERTAIN = re.compile(r".*(TOKEN|(?<!CACHE_)(?<!PUBLIC_)KEY|SECRET|PASSWORD)", re.IGNORECASE)
"""Variables whose values are surely secrets: one of them in a change stops it. Redaction takes a wider view."""

_PATHS_SHOWN = 10
_RESERVED_BYTES = 64 * 1024
_RESERVE = ".reserve"
"""So much is freed for the record when the disk is full."""


@dataclass(frozen=True)
class RunRequest:
    """What is asked for. Empty is what is not said; ``directory`` is where the agent works.

    Without an ``agent`` it is the registry's default; ``data`` are files with text of others for the prompt.
    """

    agent: str
    run_dir: Path
    directory: Path
    prompt_file: Path | None = None
    appendix: str = ""
    mode: str = ""
    pr_number: str = ""
    pr_ref: str = ""
    base_ref: str = ""
    iteration: str = ""
    sandbox: str = ""
    safety_strategy: str = ""
    model: str = ""
    max_runtime_minutes: float = 45
    is_skipped: bool = False
    registry: Path | None = None
    schema: Path | Mapping[str, Any] | None = None
    data: Sequence[Path] = ()
    command: Sequence[str] = ()
    install_dir: Path | None = None


@dataclass(frozen=True)
class JobContext:
    """The job around the run: its environment, its clock, who watches, and whether it was told to stop."""

    environment: Mapping[str, str]
    clock: Clock
    show: Watcher
    told: StopSignals
    declared: frozenset[str] = frozenset()
    """Names of variables that the registry says are secrets."""

    @property
    def redactor(self) -> Redactor:
        """Know the secrets of the job."""
        return redactor_for(self.environment, certain=self.certain)

    @property
    def certain(self) -> frozenset[str]:
        """Name the variables whose values are surely secrets; a key may also be the path of one, which is none."""
        named = (name for name, value in self.environment.items() if _CERTAIN.fullmatch(name) and value[:1] != "/")
        return self.declared.union(named)


@dataclass
class _Notes:
    """What becomes known while it goes; the record is made of it however it ends."""

    agent: str = ""
    codec: str = "plain"
    base_sha: str = ""
    exit_code: int | None = None
    own: InternalError | None = None
    declared: frozenset[str] = frozenset()
    has_run: bool = False
    patch_sha256: str = ""
    warnings: list[str] = field(default_factory=list)


def run_agent(request: RunRequest, job: JobContext) -> RunRecord:
    """Run an agent and fill ``request.run_dir``, however it goes. Raises WrongUsage when that folder cannot be used.

    The record that is returned counts: where it cannot be written, it says so.
    """
    _prepare(request)
    notes = _Notes()
    began = job.clock.now()
    try:
        if not request.is_skipped:
            _attempt(request, job, notes)
    except AgentNotStarted as failure:
        notes.own = notes.own or failure.own
    except AccordError as error:
        notes.own = notes.own or internal_error("not-started", error)
    except OSError as error:
        notes.own = notes.own or _unusable(error, notes)
    except Exception as error:
        notes.own = notes.own or InternalError(
            kind="not-started", detail=f"accord failed: {type(error).__name__}: {error}"
        )
        raise
    finally:
        record = _record(request, job, notes, (job.clock.now() - began).total_seconds(), timestamp(began))
        record = _written(record, request.run_dir, notes)
    return record


def _unusable(error: OSError, notes: _Notes) -> InternalError:
    """Say that a file is in the way: of the start, or of what the agent that ran has left."""
    kind = "disk-full" if error.errno in DISK_FULL else "changes-unreadable" if notes.has_run else "not-started"
    detail = f"{error.filename or 'A file'} cannot be used: {error.strerror}."
    return InternalError.model_validate({"kind": kind, "detail": detail})


def _written(record: RunRecord, folder: Path, notes: _Notes) -> RunRecord:
    """Write the record, whatever the agent did to the folder."""
    path = folder / layout.RECORD
    try:
        layout.make_writable(path)
        (folder / _RESERVE).unlink(missing_ok=True)
        write_whole(path, record.model_dump_json(indent=2) + "\n")
    except OSError as error:
        return record.model_copy(update={"own": record.own or _unusable(error, notes)})
    return record


def _record(request: RunRequest, job: JobContext, notes: _Notes, seconds: float, started_at: str) -> RunRecord:
    redact = replace(job, declared=notes.declared).redactor
    own = notes.own and notes.own.model_copy(update={"detail": redact(notes.own.detail)})
    return RunRecord(
        agent=notes.agent or request.agent,
        codec=notes.codec,
        mode=request.mode,
        pr_number=request.pr_number,
        pr_ref=request.pr_ref,
        base_ref=request.base_ref,
        iteration=request.iteration,
        base_sha=notes.base_sha,
        is_skipped=request.is_skipped,
        exit_code=notes.exit_code,
        own=own,
        secret_names=tuple(sorted(notes.declared)),
        started_at=started_at,
        duration_seconds=round(seconds, 3),
        patch_sha256=notes.patch_sha256,
        warnings=tuple(redact(text) for text in notes.warnings),
    )


def _prepare(request: RunRequest) -> None:
    folder = request.run_dir
    folder.mkdir(parents=True, exist_ok=True)
    if any(folder.iterdir()):
        raise WrongUsage(f"The folder {folder} is not empty.", hint="Name a new one for each run.")
    if folder.resolve().is_relative_to(request.directory.resolve()):
        message = f"The folder {folder} lies where the agent works, and would become a part of its changes."
        raise WrongUsage(message, hint="Name one outside, such as below RUNNER_TEMP.")
    (folder / _RESERVE).write_bytes(os.urandom(_RESERVED_BYTES))


def _attempt(request: RunRequest, job: JobContext, notes: _Notes) -> None:
    registry = load_registry(request.registry or repository_registry(request.directory))
    notes.declared = declared_secrets(registry)
    job = replace(job, declared=notes.declared)
    notes.agent = request.agent or registry.default_agent or ""
    agent = registry.agent(notes.agent)
    notes.codec = agent.codec
    snapshot = take_snapshot(request.directory)
    notes.base_sha = snapshot.commit if snapshot else ""
    schema = _schema(request)
    prompt = _prompt(request, job, agent, schema)
    asked = CommandInputs(
        prompt=prompt,
        prompt_file=(request.run_dir / layout.PROMPT).absolute(),
        sandbox=request.sandbox,
        safety_strategy=request.safety_strategy,
        model=request.model,
        result_schema=schema,
        result_schema_file=(request.run_dir / layout.SCHEMA).absolute(),
        command=request.command,
    )
    command_line(agent, asked)  # before anything is installed: what cannot be asked for is found here
    check_credentials(notes.agent, agent, job.environment)
    root = request.install_dir or Path(job.environment.get("RUNNER_TEMP") or tempfile.gettempdir()) / "accord-agents"
    path = programs_of(agent, root.absolute(), job.environment, redactor=job.redactor, show=job.show, told=job.told)
    with guarded(job.environment) as written:
        _run(request, job, agent, asked, path, notes)
    for name in written:
        job.show(f"accord: somebody wrote to the runner's file {name} while the agent ran. That was undone.")
    if snapshot:
        _keep_changes(request, job, agent, snapshot, notes)


def _schema(request: RunRequest) -> str:
    """Read the schema of the structured result, and put it beside the record for those who validate by it."""
    if request.schema is None:
        return ""
    try:
        schema = json.loads(request.schema.read_bytes()) if isinstance(request.schema, Path) else dict(request.schema)
    except (OSError, ValueError) as error:
        raise AgentNotStarted(
            "not-started", f"The schema {request.schema} is no JSON that can be read: {error}."
        ) from None
    if not isinstance(schema, dict):
        raise AgentNotStarted(
            "not-started", f"The schema {request.schema} is no JSON Schema.", hint="Write one JSON object."
        )
    validator(schema)
    text = json.dumps(schema, ensure_ascii=False, separators=(",", ":"))
    (request.run_dir / layout.SCHEMA).write_text(text, encoding="utf-8")
    return text


def _prompt(request: RunRequest, job: JobContext, agent: Agent, schema: str) -> str:
    """Put the prompt together and write it down, without secrets: what the agent is asked is what can be read later."""
    context = {
        "Mode": request.mode,
        "Iteration": request.iteration,
        "Pull request": request.pr_number,
        "Base branch": request.base_ref,
    }
    asked = prompt_for(request.prompt_file, request.mode, _workspace(request, job))
    text = assemble(asked, request.appendix, context, read_data(request.data))
    if schema and agent.result_schema is None:
        text += (
            f"\n## Result\n\nEnd with one JSON document that fits this JSON Schema, nothing behind it:\n\n{schema}\n"
        )
    text = job.redactor(text)
    (request.run_dir / layout.PROMPT).write_text(text, encoding="utf-8", errors="replace", newline="")
    return text


def _workspace(request: RunRequest, job: JobContext) -> Path:
    """Return the runner's workspace where the agent works inside of it: a job may check several repositories out."""
    workspace = Path(job.environment.get("GITHUB_WORKSPACE") or request.directory)
    return workspace if request.directory.resolve().is_relative_to(workspace.resolve()) else request.directory


def _run(request: RunRequest, job: JobContext, agent: Agent, asked: CommandInputs, path: str, notes: _Notes) -> None:
    settings = (
        setting_of(agent.sandbox, asked.sandbox, "sandbox mode"),
        setting_of(agent.safety_strategy, asked.safety_strategy, "safety strategy"),
    )
    with _private(job) as private:
        home, temporary, message = private / "home", private / "tmp", private / "final-message"
        furnish_home(agent, job.environment, home)
        words = command_line(agent, replace(asked, final_message_file=message))
        environment = agent_environment(agent, {**job.environment, "PATH": path}, home, temporary, settings)
        words[0] = find_program(words[0], path, request.directory)
        notes.has_run = True
        end = run_program(
            Program(
                words,
                request.directory,
                environment,
                stdin=asked.prompt_file if agent.prompt == "stdin" else None,
                keeps_sudo=any(setting.keeps_sudo for setting in settings),
            ),
            stdout=request.run_dir / layout.STDOUT,
            stderr=request.run_dir / layout.STDERR,
            redactor=job.redactor,
            show=job.show,
            told=job.told,
            limit_seconds=request.max_runtime_minutes * 60,
        )
        notes.exit_code, notes.own = end.exit_code, end.own
        if end.replaced:
            notes.warnings.append(
                f"The agent removed or replaced files of its run, which were put back: {', '.join(end.replaced)}."
            )
        target = request.run_dir / layout.FINAL_MESSAGE
        layout.make_writable(target)
        target.unlink(missing_ok=True)
        if message.is_file() and not message.is_symlink():
            _copy_redacted(message, target, job.redactor)


@contextmanager
def _private(job: JobContext) -> Iterator[Path]:
    """Make folders that only this user can read, and that are gone afterwards, the credentials in them first."""
    private = Path(tempfile.mkdtemp(prefix="accord-agent-", dir=job.environment.get("RUNNER_TEMP") or None))
    try:
        for name in ("home", "tmp"):
            (private / name).mkdir(mode=0o700)
        yield private
    finally:
        shutil.rmtree(private, onerror=_make_removable)


def _make_removable(function: Any, path: str, _error: object) -> None:
    """Tools write folders without the right to write into (Go's module cache); what cannot be removed at all stays."""
    try:
        Path(path).parent.chmod(0o700)
        Path(path).chmod(0o700)
        function(path)
    except OSError:
        pass


def _copy_redacted(source: Path, target: Path, redactor: Redactor) -> None:
    stream = RedactedStream(redactor)
    with layout.open_regular(source) as read, target.open("xb") as write:
        while data := read.read(64 * 1024):
            write.write(stream.feed(data))
        write.write(stream.end())


def _keep_changes(request: RunRequest, job: JobContext, agent: Agent, snapshot: Snapshot, notes: _Notes) -> None:
    """Write the patch down. Where it cannot be had whole and free of secrets, there is none."""
    certain = job.certain
    known = {name: value for name, value in job.environment.items() if name in certain}
    secrets = redactor_for(known, certain=certain).values
    try:
        changes = changes_since(snapshot, droppings=agent.droppings, secrets=secrets)
    except AccordError as error:
        raise AgentNotStarted("changes-unreadable", error.message, hint=error.hint) from None
    path = request.run_dir / layout.PATCH
    layout.make_writable(path)
    path.unlink(missing_ok=True)
    path.write_bytes(changes.patch)
    notes.patch_sha256 = hashlib.sha256(changes.patch).hexdigest()
    if changes.left_out:
        what = "New files that look like what agents leave behind were left out of the changes"
        notes.warnings.append(f"{what}: {_listed(changes.left_out)}.")
    given = {(request.directory / path).resolve() for path in (request.prompt_file, *request.data) if path}
    if untouched := [path for path in changes.untouched if (snapshot.top / path).resolve() not in given]:
        what = "What lay there uncommitted before the run, and is as it was, is not among its changes"
        notes.warnings.append(f"{what}: {_listed(untouched)}.")


def _listed(paths: Sequence[str]) -> str:
    """Name files for people, some of many."""
    shown = ", ".join(
        path.encode("utf-8", "surrogateescape").decode("utf-8", "replace") for path in paths[:_PATHS_SHOWN]
    )
    more = f" and {len(paths) - _PATHS_SHOWN} more" if len(paths) > _PATHS_SHOWN else ""
    return f"{shown}{more}"
