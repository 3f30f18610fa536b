"""Running an agent: gather what it needs, run it, save its changes, and record how it went.

Only the folder of the run remains: whatever happens, it ends with a record. Nothing is pushed here, and nothing is
concluded from the agent's words.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import tempfile
from contextlib import ExitStack, contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from accord.core.clock import timestamp
from accord.core.environment import is_in_actions
from accord.core.errors import AccordError, WrongUsage
from accord.core.kinds import KINDS
from accord.core.suggest import did_you_mean
from accord.files.store import DISK_FULL, write_whole
from accord.gha.step import guard_git_settings, guard_step_files
from accord.git.paths import some_of
from accord.git.refs import RefChanges, guard_refs
from accord.git.snapshots import changes_since, take_snapshot
from accord.git.trusted_files import trusted_files
from accord.runner import record as layout
from accord.runner.confine import forbid_reading
from accord.runner.isolation import confinement_of, container_for
from accord.runner.launch import (
    agent_environment,
    check_credentials,
    command_line,
    find_program,
    install_program,
    settings_of,
    write_home,
)
from accord.runner.models import AgentNotStarted, InternalError
from accord.runner.probe import check_sandbox, probe_of
from accord.runner.process import Program, run_program
from accord.runner.prompt import assemble, prompt_for, read_data, validator
from accord.runner.proxy import serve_proxy, through_proxy
from accord.runner.record import RunRecord
from accord.runner.registry import declared_secrets, load_registry
from accord.text.redacted_stream import RedactedStream
from accord.text.redaction import redactor_for

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from datetime import datetime

    from accord.core.clock import Clock
    from accord.git.snapshots import Snapshot
    from accord.git.trusted_files import TrustedFiles
    from accord.runner.models import InternalErrorKind, RunRequest
    from accord.runner.process import LineWatcher, ProgramEnd, StopSignals
    from accord.runner.registry import Agent
    from accord.text.redaction import Redactor

_SECRET_VARIABLE = re.compile(r"(?:TOKEN|(?<!CACHE_)(?<!PUBLIC_)KEY|SECRET|PASSWORD)\Z", re.IGNORECASE)
"""Variables that certainly hold secrets: a change with such a value is refused. Redaction takes a wider view."""

_RESERVED_BYTES = 64 * 1024
_MESSAGE_BYTES = 16 * 1024 * 1024
"""Of a longer final message, only the beginning is kept: it would make a folder that no job accepts."""

_RESERVE = ".reserve"
"""A file that is deleted to free space for the record on a full disk."""


@dataclass(frozen=True)
class JobContext:
    """The job around the run. ``declared`` names the variables that the registry declares as secrets."""

    environment: Mapping[str, str]
    clock: Clock
    show: LineWatcher
    stop: StopSignals
    declared: frozenset[str] = frozenset()

    @property
    def redactor(self) -> Redactor:
        """Return a redactor that knows the secrets of the job."""
        return redactor_for(self.environment, certain=self.secret_names)

    @property
    def secret_names(self) -> frozenset[str]:
        """Name the variables that certainly hold secrets; the path of a key file is not a secret."""
        named = (n for n, value in self.environment.items() if _SECRET_VARIABLE.search(n) and value[:1] != "/")
        return self.declared.union(named)


@dataclass
class _Progress:
    """The facts known so far; the record is made of them, however the run ends."""

    agent: str
    codec: str = "plain"
    base_sha: str = ""
    snapshot: Snapshot | None = None
    exit_code: int | None = None
    error: InternalError | None = None
    declared: frozenset[str] = frozenset()
    has_run: bool = False
    patch_sha256: str = ""
    warnings: list[str] = field(default_factory=list)


def run_agent(request: RunRequest, job: JobContext) -> RunRecord:
    """Run an agent and fill ``request.run_dir``, however it goes. Raises WrongUsage if that folder cannot be used.

    The returned record counts: if it cannot be written, it says so.
    """
    forbid_reading()
    _prepare_folder(request)
    progress = _Progress(request.agent)
    began = job.clock.now()
    try:
        if not request.skip:
            _run(request, job, progress)
    except AgentNotStarted as failure:
        progress.error = progress.error or failure.error
    except AccordError as error:
        progress.error = progress.error or InternalError(kind="not-started", detail=str(error), has_hint=True)
    except OSError as error:
        progress.error = progress.error or _file_error(error, progress)
    except Exception as error:
        detail = f"Internal error of accord: {type(error).__name__}: {error}"
        progress.error = progress.error or InternalError(kind="not-started", detail=detail, has_hint=True)
        raise
    finally:
        record = _write_record(_record(request, job, progress, began), request.run_dir, progress)
    return record


def _file_error(error: OSError, progress: _Progress) -> InternalError:
    """Say that a file cannot be used: before the agent ran, or in what it left."""
    detail = f"{error.filename or 'A file'} cannot be used: {error.strerror or error}."
    if error.errno in DISK_FULL:
        return InternalError(kind="disk-full", detail=detail)
    kind: InternalErrorKind = "changes-unreadable" if progress.has_run else "not-started"
    return InternalError(kind=kind, detail=detail, has_hint=not progress.has_run)


def _write_record(record: RunRecord, folder: Path, progress: _Progress) -> RunRecord:
    """Write the record, whatever the agent did to the folder."""
    path = folder / layout.RECORD
    try:
        layout.make_writable(path)
        (folder / _RESERVE).unlink(missing_ok=True)
        write_whole(path, record.model_dump_json(indent=2) + "\n")
    except OSError as error:
        return record.model_copy(update={"error": record.error or _file_error(error, progress)})
    return record


def _record(request: RunRequest, job: JobContext, progress: _Progress, began: datetime) -> RunRecord:
    redact = replace(job, declared=progress.declared).redactor
    error = progress.error and progress.error.model_copy(update={"detail": redact(progress.error.detail)})
    return RunRecord(
        agent=progress.agent,
        codec=progress.codec,
        context=request.context,
        base_sha=progress.base_sha,
        is_skipped=request.skip,
        exit_code=progress.exit_code,
        error=error,
        secret_names=tuple(sorted(progress.declared)),
        started_at=timestamp(began),
        duration_seconds=round((job.clock.now() - began).total_seconds(), 3),
        patch_sha256=progress.patch_sha256,
        warnings=tuple(redact(text) for text in progress.warnings),
    )


def _prepare_folder(request: RunRequest) -> None:
    folder = request.run_dir
    folder.mkdir(parents=True, exist_ok=True)
    if any(folder.iterdir()):
        raise WrongUsage(f"The run folder {folder} is not empty.", hint="Pass a new folder with `--run-dir`.")
    if folder.resolve().is_relative_to(request.directory.resolve()):
        message = f"The run folder {folder} is inside the agent's work tree and would become part of its changes."
        raise WrongUsage(message, hint="Pass `--run-dir` with a folder outside, such as one below RUNNER_TEMP.")
    (folder / _RESERVE).write_bytes(os.urandom(_RESERVED_BYTES))


def _run(request: RunRequest, job: JobContext, progress: _Progress) -> None:
    context = request.context
    files = request.files or trusted_files(
        request.directory, job.environment, branch=context.pr_ref, base=context.base_ref
    )
    registry = load_registry(files, request.registry)
    progress.declared = declared_secrets(registry)
    job = replace(job, declared=progress.declared)
    progress.agent = request.agent or registry.default_agent or ""
    agent = registry.agent(progress.agent)
    progress.codec = agent.codec
    snapshot = progress.snapshot = take_snapshot(request.directory)
    progress.base_sha = snapshot.commit if snapshot else ""
    schema = _write_schema(request, files)
    prompt = _write_prompt(request, job, agent, schema, files)
    progress.warnings += [files.warning] if files.warning else []
    command_line(agent, request, prompt, schema=schema)  # finds unsupported options before anything is installed
    check_credentials(progress.agent, agent, job.environment)
    root = request.install_dir or Path(job.environment.get("RUNNER_TEMP") or tempfile.gettempdir()) / "accord-agents"
    path = install_program(agent, root.absolute(), job.environment, redactor=job.redactor, show=job.show, stop=job.stop)
    git_directory = snapshot.objects.parent if snapshot else None
    in_job = is_in_actions(job.environment)
    guard = guard_git_settings(git_directory, with_refs=in_job)
    refs = guard_refs(request.directory) if snapshot and not in_job else nullcontext(RefChanges())
    with refs as found, guard as changed, guard_step_files(job.environment) as restored:
        _run_program(request, job, agent, prompt, schema, path, progress)
        if snapshot:
            _save_changes(request, job, agent, snapshot, progress)
    undone = [*changed, *found.undone]
    for name in [*(f"the runner's file {name}" for name in restored), *(f"git's {path}" for path in undone)]:
        job.show(f"accord: {name} was changed while the agent ran. The change was undone.")
    if found.moved and progress.error is None:
        progress.error = _moved_refs(found.moved)


def _moved_refs(moved: Mapping[str, str]) -> InternalError:
    """Name the refs that changed; a person may have moved them, so they stay."""
    name, old = next(iter(moved.items()))
    back = f"git update-ref {name} {old}" if old else f"git update-ref -d {name}"
    undo = f"They stay as they are. If no person moved them, undo it with `{back}`. Then run it again."
    detail = f"{some_of(list(moved))}. {undo}"
    return InternalError(kind="refs-moved", detail=detail, has_hint=True)


def _write_schema(request: RunRequest, files: TrustedFiles) -> str:
    """Return the JSON Schema of the result, empty without one, and save it for the validation."""
    if request.schema is None:
        return ""
    try:
        if isinstance(request.schema, Path):
            content = files.read(request.schema, is_named=True)
            schema = json.loads(request.schema.read_bytes() if content is None else content)
        else:
            schema = dict(request.schema)
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else f"it is not JSON ({error})"
        hint = did_you_mean(str(request.schema), KINDS) or "Pass a document kind or a JSON file as `--schema`."
        message = f"Cannot read the schema `{request.schema}`: {reason}."
        raise AgentNotStarted("not-started", message, hint=hint) from None
    if not isinstance(schema, dict):
        message = f"The schema {request.schema} is not a JSON Schema."
        raise AgentNotStarted("not-started", message, hint="Write one JSON object.")
    validator(schema)
    text = json.dumps(schema, ensure_ascii=False, separators=(",", ":"))
    (request.run_dir / layout.SCHEMA).write_text(text, encoding="utf-8")
    return text


def _write_prompt(request: RunRequest, job: JobContext, agent: Agent, schema: str, files: TrustedFiles) -> str:
    """Assemble the prompt, without secrets, and save it."""
    run = request.context
    facts = {"Mode": run.mode, "Iteration": run.iteration, "Pull request": run.pull, "Base branch": run.base_ref}
    prompt = prompt_for(request.prompt_file, run.mode, _workspace(request, job), files)
    text = assemble(prompt, request.appendix, facts, read_data(request.data))
    if schema and agent.result_schema is None:
        wanted = "End with one JSON document that matches this JSON Schema, and write nothing after it:"
        text += f"\n## Result\n\n{wanted}\n\n{schema}\n"
    text = job.redactor(text)
    (request.run_dir / layout.PROMPT).write_text(text, encoding="utf-8", errors="replace", newline="")
    return text


def _workspace(request: RunRequest, job: JobContext) -> Path:
    """Return the runner's workspace if the checkout is inside it: a job may check out several repositories."""
    directory = request.files.top if request.files else request.directory
    workspace = Path(job.environment.get("GITHUB_WORKSPACE") or directory)
    return workspace if directory.resolve().is_relative_to(workspace.resolve()) else directory


def _run_program(
    request: RunRequest, job: JobContext, agent: Agent, prompt: str, schema: str, path: str, progress: _Progress
) -> None:
    settings = (
        settings_of(agent.sandbox, request.sandbox_mode, "sandbox mode"),
        settings_of(agent.safety_strategy, request.safety_strategy, "safety strategy"),
    )
    with _private_folder(job) as private, ExitStack() as services:
        home, temporary, message = private / "home", private / "tmp", private / "final-message"
        write_home(agent, job.environment, home)
        words = command_line(agent, request, prompt, schema=schema, final_message=message)
        words[0] = find_program(words[0], path, request.directory)
        environment = agent_environment(agent, {**job.environment, "PATH": path}, home, temporary, settings)
        proxy = private / "proxy" if agent.network is not None else None
        refused = services.enter_context(serve_proxy(agent.network or [], proxy, job.environment)) if proxy else []
        snapshot = progress.snapshot
        writable = [snapshot.top, snapshot.objects.parent] if snapshot else [request.directory]
        readable = [request.run_dir / layout.PROMPT, request.run_dir / layout.SCHEMA]
        readable += [Path(path.split(":")[0]).parents[1]] if agent.install else []
        container = container_for(job.environment, private, writable, readable, proxy=proxy)
        confinement, warning = confinement_of(agent, settings, job.environment, container)
        progress.warnings += [warning] if warning else []
        program = Program(
            words,
            request.directory,
            through_proxy(environment) if proxy else environment,
            stdin=request.run_dir / layout.PROMPT if agent.prompt == "stdin" else None,
            confinement=confinement,
            output_mib=agent.output_mib,
        )
        check_sandbox(
            probe_of(settings), program, private, job.environment, redactor=job.redactor, show=job.show, stop=job.stop
        )
        progress.has_run = True
        end = run_program(
            program,
            stdout=request.run_dir / layout.STDOUT,
            stderr=request.run_dir / layout.STDERR,
            redactor=job.redactor,
            show=job.show,
            stop=job.stop,
            limit_seconds=request.max_runtime_minutes * 60,
        )
        progress.exit_code, progress.error = end.exit_code, end.error
        progress.warnings += _end_warnings(end, agent, refused)
        target = request.run_dir / layout.FINAL_MESSAGE
        layout.make_writable(target)
        target.unlink(missing_ok=True)
        if message.is_file() and not message.is_symlink():
            _copy_redacted(message, target, job.redactor)


def _end_warnings(end: ProgramEnd, agent: Agent, refused: Sequence[str]) -> Iterator[str]:
    if end.replaced:
        yield f"The agent removed or replaced files of its run, which were restored: {', '.join(end.replaced)}."
    if end.shortened:
        cut = ", ".join(end.shortened)
        yield f"The agent printed more than {agent.output_mib} MiB. The middle of {cut} is missing."
    if refused:
        yield f"The agent's network does not allow: {some_of(refused)}."


@contextmanager
def _private_folder(job: JobContext) -> Iterator[Path]:
    """Make a HOME and a TMPDIR that only this user can read, and remove them afterwards, credentials included."""
    private = Path(tempfile.mkdtemp(prefix="accord-agent-", dir=job.environment.get("RUNNER_TEMP") or None))
    try:
        for name in ("home", "tmp"):
            (private / name).mkdir(mode=0o700)
        yield private
    finally:
        shutil.rmtree(private, onerror=_make_removable)


def _make_removable(function: Any, path: str, _error: object) -> None:
    """Retry after adding write permission, which some tools remove (Go's module cache); leave the rest."""
    try:
        Path(path).parent.chmod(0o700)
        Path(path).chmod(0o700)
        function(path)
    except OSError:
        pass


def _copy_redacted(source: Path, target: Path, redactor: Redactor) -> None:
    stream = RedactedStream(redactor)
    with layout.open_regular(source) as read, target.open("xb") as write:
        while read.tell() < _MESSAGE_BYTES and (data := read.read(64 * 1024)):
            write.write(stream.feed(data))
        write.write(stream.end())


def _save_changes(request: RunRequest, job: JobContext, agent: Agent, snapshot: Snapshot, progress: _Progress) -> None:
    """Write the patch, unless it cannot be read or contains a secret."""
    names = job.secret_names
    known = {name: value for name, value in job.environment.items() if name in names}
    secrets = redactor_for(known, certain=names).values
    try:
        changes = changes_since(snapshot, state_files=agent.state_files, secrets=secrets)
    except AccordError as error:
        raise AgentNotStarted("changes-unreadable", error.message, hint=error.hint) from None
    path = request.run_dir / layout.PATCH
    layout.make_writable(path)
    path.unlink(missing_ok=True)
    path.write_bytes(changes.patch)
    progress.patch_sha256 = hashlib.sha256(changes.patch).hexdigest()
    if changes.left_out:
        progress.warnings.append(f"New state files of agents were left out: {some_of(changes.left_out)}.")
    inputs = {(request.directory / path).resolve() for path in (request.prompt_file, *request.data) if path}
    if untouched := [path for path in changes.untouched if (snapshot.top / path).resolve() not in inputs]:
        message = "Files that were already uncommitted before the run were left out"
        progress.warnings.append(f"{message}: {some_of(untouched)}.")
