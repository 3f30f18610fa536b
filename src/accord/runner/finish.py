"""The second half of a run: from the folder that the agent's job left to commits, conclusions and outputs.

It may run again at any time: what was pushed is found again, and the same outputs follow.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from pydantic import ValidationError

from accord.core.errors import BrokenContract, Refused, Stopped, WrongUsage
from accord.core.findings import Finding
from accord.files.store import write_whole
from accord.git.branches import DEFAULT_AUTHOR
from accord.git.patches import extract_patch
from accord.git.paths import protected_paths
from accord.git.program import Git, GitFailed
from accord.github.markers import run_token
from accord.runner.analysis.analyse import TaskEvidence
from accord.runner.classify import RunEvidence
from accord.runner.outputs import RunFacts, outputs_of
from accord.runner.publish import Publication, Published, failure_of, is_where_others_see_it, publish_patch
from accord.runner.record import (
    FINAL_MESSAGE,
    PATCH,
    RECORD,
    RESULT,
    SCHEMA,
    STDERR,
    STDOUT,
    InternalError,
    RunRecord,
    diff_stat,
    make_writable,
    open_regular,
    patch_stats,
    range_stats,
)
from accord.runner.summary import safe_line, sendable
from accord.text.redaction import redacted, redactor_for
from accord.text.sanitise import sanitise_plain

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from accord.core.clock import Clock
    from accord.git.branches import Remote
    from accord.github.client import GitHub
    from accord.github.models import Pull
    from accord.runner.analysis.analyse import Analysis
    from accord.runner.models import RunOutputs
    from accord.runner.record import FileStat
    from accord.runner.transcripts.events import Account
    from accord.text.redaction import Redactor


_BODY_CHARS = 500
"""How much of the agent's last words the commit message tells."""

PATHS_SHOWN = 10
_STEERING = "The run changed files that steer agents or CI; a person should look at them"
_TOKENS = "The run pushed files with texts that look like tokens; revoke them, if they are real ones"


@dataclass(frozen=True)
class FinishOptions:
    """What finishing needs besides the folder. Without a ``remote`` nothing is pushed; without a ``github`` and a
    ``pr_body`` there are no tasks to look for.

    ``environment`` holds endpoints and keys of the analysis. ``pr_ref``, ``pr_number`` and ``base_ref`` say where to
    push and whose tasks to read; None believes the record, which an agent of another job may have written itself.
    ``lender`` is a checkout that no agent could write to.
    """

    repository: str
    redact: Redactor
    clock: Clock
    environment: Mapping[str, str]
    remote: Remote | None = None
    github: GitHub | None = None
    pr_ref: str | None = None
    pr_number: str | None = None
    base_ref: str | None = None
    pr_body: str | None = None
    author: str = DEFAULT_AUTHOR
    lender: Path | None = None


def finish(run_dir: Path, setting: FinishOptions, record: RunRecord | None = None) -> RunOutputs:
    """Publish what a run changed, look for the tasks it completed, and conclude its outputs.

    A failed run publishes nothing, as nobody may build on half of a work; its patch stays in the folder. Without a
    ``record`` the folder's own is read. Raises BrokenContract when the folder holds none.
    """
    from accord.runner.classify import contract_exit_code

    record = _directed(record or read_record(run_dir), setting)
    if record.is_skipped:
        return outputs_of(RunFacts(record.agent), setting.redact)
    declared = redactor_for(setting.environment, certain=record.secret_names)
    setting = replace(setting, redact=setting.redact.and_knows(declared))
    evidence = _evidence(run_dir, record)
    if contract_exit_code(evidence) == 0:
        evidence = replace(evidence, account=_held_against_schema(run_dir, evidence.account))
    work = _Work(run_dir, record, evidence.account, setting)
    ended = _publish_and_analyse(work) if contract_exit_code(evidence) == 0 else _Ended(warnings=_left_behind(work))
    if not (record.own and record.own.kind == "disk-full"):  # the little room that is left is for the outputs
        _keep_message(work)
        _keep_result(work)
    duration = record.duration_seconds if record.started_at else None
    return conclude(
        RunFacts(
            record.agent,
            account=evidence.account,
            published=ended.published,
            analysis=ended.analysis,
            duration_seconds=duration,
            warnings=(*record.warnings, *ended.warnings),
        ),
        evidence,
        setting.redact,
    )


def _held_against_schema(run_dir: Path, account: Account) -> Account:
    """Keep of the structured result what fits the schema that was asked for; what does not fit is a warning."""
    from accord.runner.prompt import structured_result

    try:
        with open_regular(run_dir / SCHEMA) as file:
            schema = json.loads(file.read())
        made = structured_result(schema, account.structured, account.final_message)
    except FileNotFoundError:
        return account
    except (OSError, ValueError, WrongUsage) as error:
        return replace(account, structured=None, warnings=(*account.warnings, f"{SCHEMA} cannot be used: {error}"))
    value = json.loads(made.text) if made.text else None
    return replace(account, structured=value, warnings=(*account.warnings, *made.problems))


def _directed(record: RunRecord, setting: FinishOptions) -> RunRecord:
    """Put what the caller says about places before what the record says."""
    said = {"pr_ref": setting.pr_ref, "pr_number": setting.pr_number, "base_ref": setting.base_ref}
    return record.model_copy(update={name: value for name, value in said.items() if value is not None})


def conclude(facts: RunFacts, evidence: RunEvidence, redact: Redactor) -> RunOutputs:
    """Add to the facts whether the run failed and why, and write the outputs. A failed push is a failed run."""
    from accord.runner.classify import classify, contract_exit_code

    if facts.published and facts.published.failure:
        evidence = replace(evidence, own=facts.published.failure)
    error, exit_code = classify(evidence), contract_exit_code(evidence)
    return outputs_of(replace(facts, classification=error, exit_code=exit_code), redact)


def read_record(run_dir: Path) -> RunRecord:
    """Read ``record.json``. Raises BrokenContract when there is none, or none that accord wrote."""
    try:
        with open_regular(run_dir / RECORD) as file:
            return RunRecord.model_validate_json(file.read())
    except (OSError, ValidationError) as error:
        problem = "is missing" if isinstance(error, OSError) else "is none that accord wrote"
        message = f"{run_dir / RECORD} {problem}."
        raise BrokenContract.of(
            Finding("run-record", message),
            hint="Name the folder that accord run wrote; the job that runs the agent may have ended before it did.",
        ) from None


def outputs_without_record(problem: str, redact: Redactor, likely: str = "") -> RunOutputs:
    """Write the outputs of a run of which nothing is left: all outputs are there even then.

    ``likely`` is what may have ended the agent's job, with what fixes it; empty where nothing is known.
    """
    from accord.runner.transcripts.events import Account

    own = InternalError(kind="record-missing", detail=f"{problem} {likely}".strip(), has_hint=bool(likely))
    return conclude(RunFacts(""), RunEvidence(None, Account("", "cut"), own=own), redact)


@dataclass(frozen=True)
class _Work:
    run_dir: Path
    record: RunRecord
    account: Account
    setting: FinishOptions

    def patch(self) -> bytes:
        """Read the patch. Raises BrokenContract when a run in a repository left none, or this is not what it left."""
        try:
            with open_regular(self.run_dir / PATCH) as file:
                patch = file.read()
        except OSError as error:
            if not (self.record.base_sha or self.record.patch_sha256):
                return b""
            raise _damaged(f"{PATCH} of the run cannot be read: {error.strerror}.") from None
        digest = self.record.patch_sha256
        if digest and hashlib.sha256(patch).hexdigest() != digest:
            raise _damaged(f"{PATCH} is not the file that the run wrote.")
        return patch


def _damaged(message: str) -> BrokenContract:
    return BrokenContract.of(Finding("patch-invalid", message))


@dataclass(frozen=True)
class _Ended:
    published: Published | None = None
    analysis: Analysis | None = None
    warnings: tuple[str, ...] = ()


def _evidence(run_dir: Path, record: RunRecord) -> RunEvidence:
    from accord.runner.transcripts.read import read_evidence

    return read_evidence(
        record.codec,
        record.agent,
        record.exit_code,
        run_dir / STDOUT,
        stderr=run_dir / STDERR,
        final_message=run_dir / FINAL_MESSAGE,
        own=record.own,
    )


def _publish_and_analyse(work: _Work) -> _Ended:
    """Push first: tasks count as done only when the work is where others see it."""
    try:
        patch = work.patch()
        stats = patch_stats(patch)
    except BrokenContract as broken:
        return _Ended(Published(failure=InternalError(kind="changes-unreadable", detail=broken.message)))
    pull, warnings = _pull(work)
    remote, ref = work.setting.remote, work.record.pr_ref
    published = None
    if patch.strip() and remote and ref:
        published = _from_a_fork(pull, ref, work) or publish_patch(remote, _publication(work, patch, ref))
        if published.failure:
            return _Ended(published, warnings=warnings)
        if steering := protected_paths(stat.path for stat in stats):
            warnings = (*warnings, f"{_STEERING}: {_listed(steering)}.")
        if published.with_tokens:
            warnings = (*warnings, f"{_TOKENS}: {_listed(published.with_tokens)}.")
        if not published.commit_sha:
            warnings = (*warnings, "The branch had all of the run's changes already.")
    else:
        warnings = (*warnings, *_left_behind(work))
    if not is_where_others_see_it(published, has_changes=bool(stats)):
        return _Ended(published, warnings=warnings)
    body = work.setting.pr_body
    if body is None and pull:
        body = pull.body
    if body is None:
        return _Ended(published, warnings=warnings)
    analysis = tasks_done(body, work.account, diff_stat(stats), work.setting.environment, work.setting.clock)
    return _Ended(published, analysis, warnings)


def _pull(work: _Work) -> tuple[Pull | None, tuple[str, ...]]:
    """Read the pull request of the run; without it the changes can be pushed all the same."""
    number = work.record.pr_number.strip().removeprefix("#")
    if work.setting.github is None or not number:
        return None, ()
    if not (number.isascii() and number.isdecimal() and len(number) < 19):
        return None, (f'"{number}" is no number of a pull request, so no tasks were looked for.',)
    try:
        pull = work.setting.github.pull(int(number))
    except (Refused, Stopped) as error:
        return None, (f"The tasks of pull request {number} could not be read: {error}",)
    return pull, () if pull else (f"There is no pull request {number} to read tasks from.",)


def _from_a_fork(pull: Pull | None, ref: str, work: _Work) -> Published | None:
    """Refuse to push a fork's pull request here, where it would make a branch that belongs to nothing."""
    if pull is None or pull.head_repository.lower() == work.setting.repository.lower():
        return None
    if pull.head_branch != ref.strip().removeprefix("refs/heads/"):
        return None
    place = pull.head_repository or "a repository that is gone"
    detail = (
        f"The branch {pull.head_branch} of pull request {pull.number} is in {place}, and this job cannot push there. "
        "The changes are in the artifact of the run."
    )
    return Published(failure=InternalError(kind="push-refused", detail=detail, has_hint=True))


def _publication(work: _Work, patch: bytes, ref: str) -> Publication:
    record, setting = work.record, work.setting
    digest = hashlib.sha256(record.model_dump_json().encode() + b"\0" + patch).hexdigest()
    turn = ", ".join(filter(None, [record.mode, record.iteration and f"iteration {record.iteration}"]))
    subject = f"{'fix' if record.mode == 'autofix' else 'feat'}: apply the changes of {record.agent}"
    return Publication(
        patch,
        ref,
        record.base_sha,
        run_token(setting.repository, digest),
        safe_line(f"{subject} ({turn})" if turn else subject, setting.redact, 72),
        sanitise_plain(sendable(work.account.final_message)[:_BODY_CHARS], secrets=setting.redact).text,
        record.base_ref,
        setting.author,
        setting.lender,
    )


def tasks_done(body: str, account: Account, diff: str, environment: Mapping[str, str], clock: Clock) -> Analysis:
    """Ask which tasks of a pull request's body a run completed."""
    from accord.runner.analysis.analyse import analyse

    commands = tuple(
        f"{command.command} (exit code {'unknown' if command.exit_code is None else command.exit_code})"
        for command in account.commands
    )
    question = TaskEvidence(body, account.final_message, commands, diff, account.todos)
    return analyse(question, environment=environment, clock=clock)


def _listed(paths: tuple[str, ...]) -> str:
    return ", ".join(paths[:PATHS_SHOWN]) + (" and more" if len(paths) > PATHS_SHOWN else "")


def _left_behind(work: _Work) -> tuple[str, ...]:
    """Say where the changes are that were not pushed. An agent that was not started left none."""
    if not (_is_file(work.run_dir / PATCH) or work.record.patch_sha256):
        return ()
    try:
        count = len(patch_stats(work.patch()))
    except BrokenContract as broken:
        return (broken.message,)
    files = "1 file" if count == 1 else f"{count} files"
    return (f"What the run changed was not pushed; {files} in {PATCH} of the run's artifact.",) if count else ()


def _keep_message(work: _Work) -> None:
    """Keep the whole message beside the transcript, as an output may have to be cut."""
    path = work.run_dir / FINAL_MESSAGE
    if work.account.final_message and not _is_file(path):
        with contextlib.suppress(OSError):
            make_writable(path)
            write_whole(path, sendable(work.setting.redact(work.account.final_message)))


def _keep_result(work: _Work) -> None:
    """Keep the structured result as a file, as it may be too long for an output; a NaN in it is no JSON."""
    path = work.run_dir / RESULT
    with contextlib.suppress(OSError, ValueError):
        make_writable(path)
        path.unlink(missing_ok=True)
        if work.account.structured is not None:
            value = redacted(work.account.structured, work.setting.redact)
            write_whole(path, sendable(json.dumps(value, ensure_ascii=False, allow_nan=False)) + "\n")


def _is_file(path: Path) -> bool:
    return path.is_file() and not path.is_symlink()


@dataclass(frozen=True)
class ExternalRun:
    """The evidence. ``pushed`` is None where nobody tried; ``push_error`` what git said when it failed."""

    agent: str
    exit_code: int
    stdout: Path
    stderr: Path | None = None
    final_message: Path | None = None
    pr_body: str | None = None
    work_tree: Path | None = None
    base: str = ""
    pushed: bool | None = None
    push_error: str = ""


def outputs_of_external_run(
    given: ExternalRun, redact: Redactor, environment: Mapping[str, str], clock: Clock
) -> RunOutputs:
    """Conclude the outputs. Raises WrongUsage when the work tree or its base is none."""
    from accord.runner.classify import contract_exit_code
    from accord.runner.transcripts.read import read_evidence

    evidence = read_evidence(
        codec_of(given),
        given.agent,
        given.exit_code,
        given.stdout,
        stderr=given.stderr,
        final_message=given.final_message,
    )
    stats = _changes(given)
    published = _published(given, stats)
    warnings = ("What the run changed was not pushed.",) if stats and published is None else ()
    analysis = None
    is_delivered = is_where_others_see_it(published, has_changes=bool(stats))
    if contract_exit_code(evidence) == 0 and is_delivered and given.pr_body is not None:
        analysis = tasks_done(given.pr_body, evidence.account, diff_stat(stats), environment, clock)
    facts = RunFacts(given.agent, account=evidence.account, published=published, analysis=analysis, warnings=warnings)
    return conclude(facts, evidence, redact)


def codec_of(given: ExternalRun) -> str:
    """Tell how the agent's transcript is to be read: as its name says, else as the transcript looks."""
    from accord.runner.registry import shipped_registry
    from accord.runner.transcripts.read import CODECS, recognise

    agent = shipped_registry().agents.get(given.agent)
    if agent:
        return agent.codec
    return given.agent if given.agent in CODECS else recognise(given.stdout, given.stderr)


def _changes(given: ExternalRun) -> list[FileStat]:
    """List what was pushed; else everything that could have been: commits, changes and untracked files."""
    if given.work_tree is None:
        return []
    if not given.pushed:
        return patch_stats(extract_patch(given.work_tree, given.base))
    try:
        return range_stats(Git(given.work_tree), given.base, "HEAD")
    except GitFailed as failed:
        raise WrongUsage(
            f"Git cannot tell what changed in {given.work_tree} since {given.base}: {' '.join(failed.stderr.split())}",
            hint="Pass --repo with the agent's work tree, and --base with the commit that it began at.",
        ) from None


def _published(given: ExternalRun, stats: list[FileStat]) -> Published | None:
    """Tell what became of the changes. A push that failed counts, unless there was nothing to push."""
    if given.pushed and given.work_tree:
        return Published(Git(given.work_tree).line("rev-parse", "HEAD"), len(stats)) if stats else None
    if given.push_error.strip() or (given.pushed is False and (stats or given.work_tree is None)):
        return Published(failure=failure_of(given.push_error))
    return None
