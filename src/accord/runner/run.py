"""Running an agent: gather what it needs, run it, save its changes, and record how it went.

Only the folder of the run remains: whatever happens, it ends with a record. Nothing is pushed here, and nothing is
concluded from the agent's words.
"""

from __future__ import annotations

import json
import os
from dataclasses import replace
from pathlib import Path

from accord.agents.registry import declared_secrets
from accord.core.clock import timestamp
from accord.core.errors import AccordError, Interrupted, WrongUsage
from accord.core.kinds import KINDS
from accord.core.log import log
from accord.core.suggest import did_you_mean
from accord.files.store import DISK_FULL, write_whole
from accord.git.snapshots import take_snapshot
from accord.git.trusted_files import TrustedFiles, trusted_files
from accord.runner import record as layout
from accord.runner.causes import InternalErrorKind
from accord.runner.chain import AgentChain
from accord.runner.confine import forbid_reading
from accord.runner.contract import validator
from accord.runner.models import AgentNotStarted, InternalError, JobContext, RunRequest
from accord.runner.record import RunProgress, RunRecord
from accord.runner.registry import load_registry

_RESERVED_BYTES = 64 * 1024
_RESERVE = ".reserve"
"""A file that is deleted to free space for the record on a full disk."""


def run_agent(request: RunRequest, job: JobContext) -> RunRecord:
    """Run an agent and fill ``request.run_dir``, however it goes. Raises WrongUsage or OSError where that fails.

    The returned record counts: if it cannot be written, it says so.
    """
    forbid_reading()
    _prepare_folder(request)
    began = job.clock.now()
    record = RunRecord(
        agent=request.agent,
        kind=request.kind,
        context=request.context,
        is_skipped=request.skip,
        started_at=timestamp(began),
    )
    progress = RunProgress(record)
    try:
        if not request.skip:
            _run(request, job, progress)
    except (Exception, Interrupted) as error:
        record.error = record.error or _error_of(error, progress)
        if not isinstance(error, (AccordError, OSError)):
            raise
    finally:
        record.duration_seconds = round((job.clock.now() - began).total_seconds(), 3)
        record = _write_record(record, request.run_dir, progress, job)
        outcomes = [f"{attempt.agent} {attempt.outcome}" for attempt in record.attempts]
        log("runner", "attempts %s, error %s", outcomes, record.error)
    return record


def _error_of(error: BaseException, progress: RunProgress) -> InternalError:
    if isinstance(error, Interrupted):
        return InternalError.of("cancelled", error)
    if isinstance(error, AgentNotStarted):
        return error.error
    if isinstance(error, AccordError):
        return InternalError(kind="not-started", detail=str(error), has_hint=True)
    if not isinstance(error, OSError):
        detail = f"Internal error of accord: {type(error).__name__}: {error}"
        return InternalError(kind="not-started", detail=detail, has_hint=True)
    detail = f"{error.filename or 'A file'} cannot be used: {error.strerror or error}."
    if error.errno in DISK_FULL:
        return InternalError(kind="disk-full", detail=detail)
    kind: InternalErrorKind = "changes-unreadable" if progress.has_run else "not-started"
    return InternalError(kind=kind, detail=detail, has_hint=not progress.has_run)


def _write_record(record: RunRecord, folder: Path, progress: RunProgress, job: JobContext) -> RunRecord:
    """Write the record without secrets."""
    redact = replace(job, declared=frozenset(record.secret_names)).redactor
    error = record.error and record.error.model_copy(update={"detail": redact(record.error.detail)})
    texts = {name: tuple(map(redact, getattr(record, name))) for name in ("warnings", "messages")}
    record, path = record.model_copy(update={"error": error, **texts}), folder / layout.RECORD
    try:
        layout.make_writable(path)
        layout.make_writable(folder / layout.OUTPUTS)
        for name in (_RESERVE, layout.OUTPUTS):  # an agent may have written outputs of its own
            (folder / name).unlink(missing_ok=True)
        write_whole(path, record.model_dump_json(indent=2) + "\n")
    except OSError as error:
        return record.model_copy(update={"error": record.error or _error_of(error, progress)})
    return record


def _prepare_folder(request: RunRequest) -> None:
    folder = request.run_dir
    folder.mkdir(parents=True, exist_ok=True)
    if any(folder.iterdir()):
        raise WrongUsage(f"The run folder {folder} is not empty.", hint="Pass a new folder with `--run-dir`.")
    if folder.resolve().is_relative_to(request.directory.resolve()):
        message = f"The run folder {folder} is inside the agent's work tree and would become part of its changes."
        raise WrongUsage(message, hint="Pass `--run-dir` with a folder outside, such as one below RUNNER_TEMP.")
    (folder / _RESERVE).write_bytes(os.urandom(_RESERVED_BYTES))


def _run(request: RunRequest, job: JobContext, progress: RunProgress) -> None:
    context, record = request.context, progress.record
    files = request.files or trusted_files(
        request.directory, job.environment, branch=context.pr_ref, base=context.base_ref
    )
    registry = load_registry(files, request.registry)
    job = replace(job, declared=declared_secrets(registry))
    record.secret_names = tuple(sorted(job.declared))
    record.agent = request.agent or registry.default_agent or ""
    record.codec = registry.agent(record.agent).codec
    snapshot = progress.snapshot = take_snapshot(request.directory, registry.state_patterns)
    record.base_sha = snapshot.commit if snapshot else ""
    schema = _write_schema(request, files)
    try:
        AgentChain(request, job, progress, registry, schema, files).run()
    finally:
        progress.warn(files.warning)  # the prompts have been read by now


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
