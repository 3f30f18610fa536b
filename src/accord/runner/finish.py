"""From a finished agent to its outputs: publish the changes, find the completed tasks, conclude.

It works from the folder that ``accord run`` left, or from the files of a run that another program carried out and
published. It may run again at any time: pushed changes are recognized, and the same outputs follow.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from urllib.parse import quote

from accord.core.clock import Clock
from accord.core.errors import AccordError, BrokenContract, Refused, Stopped, WrongUsage
from accord.core.findings import Finding, count_of
from accord.core.frozen import Frozen
from accord.engine.trust import NEEDS_HUMAN
from accord.files.store import write_whole
from accord.git.conflicts import conflict_notice, resolution
from accord.git.paths import some_of
from accord.github.client import GitHub
from accord.github.models import Pull
from accord.runner import record as layout
from accord.runner.analysis.analyse import Analysis, TaskEvidence, analyse
from accord.runner.causes import InternalErrorKind
from accord.runner.classify import classify, contract_exit_code, is_ended_well
from accord.runner.contract import check_result
from accord.runner.models import InternalError, RunOutputs
from accord.runner.outputs import (
    ConflictBranch,
    FinishOptions,
    Published,
    RunFacts,
    outputs_of,
    safe_line,
    summary_of,
    to_valid_text,
)
from accord.runner.publish import Publication, audit_patch, publish_patch
from accord.runner.record import RunRecord, make_writable, open_regular, read_record
from accord.runner.refs import short_name
from accord.runner.stats import count_files, diff_stat, patch_stats
from accord.runner.transcripts.account import Account
from accord.runner.transcripts.read import RunEvidence, evidence_in
from accord.text.markdown import as_code
from accord.text.markers import run_token
from accord.text.posting import PostingPolicy
from accord.text.redaction import Redactor, redact_json, redactor_for
from accord.text.sanitise import sanitise_plain

_BODY_CHARS, _MESSAGES_CHARS = 500, 4_000
"""How much of the agent's final message, or of its own commits' messages, the commit message quotes."""

_SUBJECT_CHARS = 72
_PATH_CHARS = 200
_IN_ARTIFACT = "The changes are in the artifact of the run."


def finish(run_dir: Path, options: FinishOptions, record: RunRecord | None = None) -> RunOutputs:
    """Publish the run's changes, find the tasks it completed, and conclude its outputs.

    A failed run publishes nothing; its patch stays in the folder. ``record`` replaces the folder's own, which the
    agent may have changed. Raises BrokenContract without a record.
    """
    record = record or read_record(run_dir)
    if record.is_skipped:
        return outputs_of(RunFacts(record.agent), options.redact, options.policy)
    declared = redactor_for(options.environment, certain=record.secret_names)
    options = replace(options, redact=options.redact.and_knows(declared))
    evidence = evidence_in(run_dir, record)
    is_broken = False
    if is_ended_well(evidence):
        is_broken = _has_broken_result(run_dir, record.kind, evidence.account)
        patch = run_dir / layout.PATCH
        evidence = replace(evidence, has_changes=_is_file(patch) and patch.stat().st_size > 0)
    is_success = contract_exit_code(evidence) == 0
    run = _FinishedRun(run_dir, record, evidence.account, options)
    evidence.account.usage = record.usage if record.attempts else evidence.account.usage
    facts = RunFacts(
        record.agent,
        account=evidence.account,
        duration_seconds=record.duration_seconds if record.started_at else None,
        warnings=record.warnings,
        attempts=record.attempts,
        is_result_broken=is_broken,
    )
    facts = run.publish_and_analyse(facts) if is_success else run.keep_changes(facts)
    is_disk_full = record.error is not None and record.error.kind == "disk-full"
    if not (is_disk_full or options.log.is_dry_run):  # on a full disk the outputs need the space
        run.save_answer()
    return conclude(facts, evidence, options.redact, options.policy)


def conclude(facts: RunFacts, evidence: RunEvidence, redact: Redactor, policy: PostingPolicy) -> RunOutputs:
    """Classify a failure and return the outputs. A failed push is a failed run."""
    if facts.published and facts.published.failure:
        evidence = replace(evidence, error=facts.published.failure)
    facts = replace(facts, classification=classify(evidence), exit_code=contract_exit_code(evidence))
    return outputs_of(replace(facts, has_changes=evidence.has_changes), redact, policy)


def outputs_of_error(error: InternalError, redact: Redactor, policy: PostingPolicy) -> RunOutputs:
    """Return the outputs of a run that accord refused to begin or to publish, or that left no record."""
    return conclude(RunFacts(""), RunEvidence(None, Account("", "cut"), error=error), redact, policy)


def _has_broken_result(run_dir: Path, kind: str, account: Account) -> bool:
    """Return whether the structured result breaks its contract; then it does not count, and each error is a warning."""
    try:
        with open_regular(run_dir / layout.SCHEMA) as file:
            schema = json.loads(file.read())
        checked = check_result(schema, kind, account.structured, account.final_message)
    except FileNotFoundError:
        return False
    except (OSError, ValueError, RecursionError, WrongUsage) as error:
        account.structured, account.warnings = None, (*account.warnings, f"{layout.SCHEMA} cannot be used: {error}")
        return True
    account.structured, account.warnings = checked.value, (*account.warnings, *checked.warnings)
    return checked.is_broken


class _FinishedRun(Frozen):
    run_dir: Path
    record: RunRecord
    account: Account
    options: FinishOptions

    def publish_and_analyse(self, facts: RunFacts) -> RunFacts:
        """Push, then analyze: tasks count as completed only when their changes are on GitHub."""
        try:
            patch = read_patch(self.run_dir, self.record)
            stats = patch_stats(patch)
        except BrokenContract as broken:
            return replace(facts, published=_failure("changes-unreadable", broken.message))
        options, ref = self.options, self.record.context.pr_ref
        pull, warnings = self._pull()
        facts = replace(facts, warnings=(*facts.warnings, *warnings))
        has_work = bool(patch.strip() or f"origin/{short_name(ref)}" in self.record.pushed)
        if not (has_work and ref and (options.remote or options.connection_error)):
            facts = self.keep_changes(facts)
        else:
            publication = self._publication(patch, pull)
            published = Published(failure=options.connection_error)
            if options.remote:
                published = self._fork_failure(pull) or publish_patch(options.remote, publication, options.github)
            facts = replace(facts, published=published)
            if published.conflict:
                where = self._report_conflict(published.conflict, publication.subject)
                return replace(facts, warnings=(*facts.warnings, where, *_path_warnings(published)))
            if published.failure:
                return self.keep_changes(facts)
            about = _publication_warnings(published, ref, patch, dry_run=options.log.is_dry_run)
            facts = replace(facts, warnings=(*facts.warnings, *about))
        body = options.pr_body if options.pr_body is not None else pull.body if pull else None
        if body is None or options.log.is_dry_run or (stats and not facts.published):
            return facts
        analysis = completed_tasks(body, self.account, diff_stat(stats), options.environment, options.clock)
        return replace(facts, analysis=analysis)

    def keep_changes(self, facts: RunFacts) -> RunFacts:
        """Say where changes are that accord did not push. An agent that was not started left none."""
        record = self.record
        if not (_is_file(self.run_dir / layout.PATCH) or record.patch_sha256):
            return facts
        try:
            patch = read_patch(self.run_dir, record)
            stats = patch_stats(patch)
        except BrokenContract as broken:
            return replace(facts, warnings=(*facts.warnings, broken.message))
        if not stats:
            return facts
        number = count_files(stats)
        files = "1 file is" if number == 1 else f"{number} files are"
        what = "The run's changes were not pushed"
        if record.pushed:
            files, number = f"All of them, {count_of(number, 'file')}, are", 0  # which ones remain, no fact tells
            where = some_of([f"{branch} at {commit[:7]}" for branch, commit in record.pushed.items()])
            what = f"The agent pushed changes of the run itself ({where}), and accord pushed none"
        warning = f"{what}. {files} in changes.patch of the run folder or artifact."
        if self.options.remote and not record.context.pr_ref:
            warning += " To push them, name the branch with `--pr-ref` of `accord publish`."
        about = _path_warnings(audit_patch(patch, stats, record.steering))
        return replace(facts, warnings=(*facts.warnings, warning, *about), files_not_pushed=number)

    def save_answer(self) -> None:
        """Save the final message and the structured result in the folder, as an output may be cut; NaN is not JSON."""
        path = self.run_dir / layout.FINAL_MESSAGE
        if self.account.final_message and not _is_file(path):
            with contextlib.suppress(OSError):
                make_writable(path)
                write_whole(path, to_valid_text(self.options.redact(self.account.final_message)))
        path = self.run_dir / layout.RESULT
        with contextlib.suppress(OSError, ValueError):
            make_writable(path)
            path.unlink(missing_ok=True)
            if self.account.structured is not None:
                value = redact_json(self.account.structured, self.options.redact)
                write_whole(path, to_valid_text(json.dumps(value, ensure_ascii=False, allow_nan=False)) + "\n")

    def _pull(self) -> tuple[Pull | None, tuple[str, ...]]:
        """Read the pull request of the run; the changes can be pushed without it."""
        number = self.record.context.pull.strip().removeprefix("#")
        if self.options.github is None or not number:
            if not (number and self.options.connection_error):
                return None, ()
            why = self.options.connection_error.detail
            return None, (f"The tasks of pull request {number} could not be read: {why}",)
        if not (number.isascii() and number.isdecimal() and len(number) < 19):
            return None, (f"`{number}` is not a pull request number, so no tasks were analyzed.",)
        try:
            pull = self.options.github.pull(int(number))
        except (Refused, Stopped) as error:
            return None, (f"The tasks of pull request {number} could not be read: {error}",)
        return pull, () if pull else (f"Pull request {number} not found, so no tasks were analyzed.",)

    def _fork_failure(self, pull: Pull | None) -> Published | None:
        """Refuse to push to a branch of a fork: here the push would create an unrelated branch of that name."""
        if pull is None or pull.head_repository.lower() == self.options.repository.lower():
            return None
        if pull.head_branch != short_name(self.record.context.pr_ref):
            return None
        where = f"{pull.head_repository or 'a deleted repository'}, and this job cannot push there"
        detail = f"The branch {pull.head_branch} of pull request {pull.number} is in {where}. {_IN_ARTIFACT}"
        return _failure("push-refused", detail, has_hint=True)

    def _publication(self, patch: bytes, pull: Pull | None) -> Publication:
        record, context, options = self.record, self.record.context, self.options
        own = record.model_dump_json(exclude={"context": {"pr_ref", "pull", "base_ref"}})
        digest = hashlib.sha256(f"{own}\0{short_name(context.pr_ref)}\0".encode() + patch).hexdigest()
        turn = ", ".join(filter(None, [context.mode, context.iteration and f"iteration {context.iteration}"]))
        messages = to_valid_text("\n\n".join(record.messages))[:_MESSAGES_CHARS]
        words = messages or to_valid_text(self.account.final_message)[:_BODY_CHARS]
        subject = f"{'fix' if context.mode == 'autofix' else 'feat'}: apply the changes of {record.agent}"
        return Publication(
            patch,
            context.pr_ref,
            record.base_sha,
            run_token(options.repository, digest),
            safe_line(f"{subject} ({turn})" if turn else subject, options.redact, options.policy, _SUBJECT_CHARS),
            options,
            sanitise_plain(words, secrets=options.redact, policy=options.policy).text,
            context.base_ref or (pull.base_branch if pull else ""),
            record.merged,
            record.pushed.get(f"origin/{short_name(context.pr_ref)}", ""),
        )

    def _report_conflict(self, conflict: ConflictBranch, title: str) -> str:
        """Open the draft, and return a sentence that says where the changes are. A dry run opens nothing."""
        options, github, log = self.options, self.options.github, self.options.log
        where = f"The changes conflict with {conflict.onto}, so they are on the branch {conflict.name}"
        page = options.remote.page if options.remote else ""
        compare = f"{page}/compare/{quote(conflict.onto, safe='/')}...{quote(conflict.name, safe='/')}"
        draft, problem, is_settled, failure = None, "", False, "Its pull requests could not be read"
        try:
            draft = _find_draft(github, conflict.name) if github else None
            is_settled = draft is not None and (draft.state != "open" or NEEDS_HUMAN in draft.labels)
            if github and not is_settled:
                failure = "No pull request was opened for it"
                send = partial(_open, github, title, self._draft_body(conflict), conflict)
                draft = draft or log.write("open-draft", conflict.name, send)
                failure = f"Its label {NEEDS_HUMAN} could not be added"
                number = draft.number if draft else 0
                add = partial(github.add_labels, number, [NEEDS_HUMAN])
                log.write("add-labels", NEEDS_HUMAN, add, number=number)
        except AccordError as error:
            problem = f"{failure}: {error.message}"
        if log.is_dry_run and draft is None and not problem:
            return f"Dry run: the changes would be pushed to {conflict.name}, in a draft for {conflict.onto}."
        if draft is None:
            return f"{where}: {compare} {problem}".rstrip()
        found = f"in the {_state(draft)}pull request {draft.number}: {draft.url}"
        if log.is_dry_run:
            return f"Dry run: the changes are {found}{'' if is_settled else f' It would get the label {NEEDS_HUMAN}.'}"
        return f"{where} and {found} {problem}".rstrip()

    def _draft_body(self, conflict: ConflictBranch) -> str:
        """Return the paths, the beginning of the agent's message, and how to resolve the conflict."""
        redact, policy = self.options.redact, self.options.policy
        number = self.record.context.pull.strip().removeprefix("#")
        paths = [as_code(safe_line(path, redact, policy, _PATH_CHARS)) for path in conflict.paths]
        onto = as_code(conflict.onto)
        steps = f"To resolve it:\n\n```bash\n{resolution(conflict.name, conflict.onto)}\n```"
        target = f"{onto} and its pull request #{number}" if number.isascii() and number.isdecimal() else onto
        end = f"Then mark this pull request as ready for review, and merge it into {target}."
        notice = conflict_notice(onto, paths)
        return "\n\n".join(filter(None, [notice, summary_of(self.account.final_message, redact, policy), steps, end]))


def read_patch(run_dir: Path, record: RunRecord) -> bytes:
    """Read the patch of a run. Raises BrokenContract if it is missing or not the one that the run wrote."""
    digest = record.patch_sha256
    try:
        with open_regular(run_dir / layout.PATCH) as file:
            patch = file.read()
    except OSError as error:
        if not (record.base_sha or digest):
            return b""
        raise _invalid_patch(f"Cannot read {layout.PATCH} of the run: {error.strerror}.") from None
    if digest and hashlib.sha256(patch).hexdigest() != digest:
        raise _invalid_patch(f"{layout.PATCH} is not the file that the run wrote.")
    return patch


def _invalid_patch(message: str) -> BrokenContract:
    return BrokenContract.of(Finding("patch-invalid", message, hint="Run the agent again."))


def _failure(kind: InternalErrorKind, detail: str, *, has_hint: bool = False) -> Published:
    return Published(failure=InternalError(kind=kind, detail=detail, has_hint=has_hint))


def _path_warnings(changes: Published) -> list[str]:
    about = (
        ("The run changed files that steer agents or CI. Review them", changes.steering),
        ("The run changed dependency files. Check what they install", changes.dependencies),
        ("The run changed sessions or missions, which later agents read. Check who wrote what", changes.records),
        ("The run changed files with texts that look like tokens. Revoke the real ones", changes.with_tokens),
    )
    return [f"{what}: {some_of(paths)}." for what, paths in about if paths]


def _publication_warnings(published: Published, ref: str, patch: bytes, *, dry_run: bool) -> tuple[str, ...]:
    warnings = _path_warnings(published)
    if published.delivery and published.delivery.problem:
        warnings.append(f"The commit was pushed, so GitHub did not sign it: {published.delivery.problem}")
    if published.moved_to:
        why = f"The pull requests of `{ref}` were merged or closed"
        warnings.append(f"{why}, so the changes are for the new branch `{published.moved_to}`. Open a pull request.")
    for commit in published.flattened:
        warnings.append(
            f"The agent's merge of {commit[:7]} was not kept: that commit is not on the base, or the branch moved. "
            "Its changes are part of the pushed commit, and the branch may still conflict."
        )
    if published.was_there:
        where = f"The branch already had the run's changes, in commit {published.commit_sha[:7]}"
        warnings.append(f"{where}: the agent or someone else pushed them. An agent's job needs no token that writes.")
    elif not published.files_changed:
        warnings += ["The branch already had all of the run's changes."] if patch.strip() else []
    elif dry_run:
        warnings.append(f"Dry run: {count_of(published.files_changed, 'file')} would be pushed to `{ref}`.")
    return tuple(warnings)


def completed_tasks(body: str, account: Account, diff: str, environment: Mapping[str, str], clock: Clock) -> Analysis:
    """Find the tasks of a pull request's body that a run completed."""
    codes = ((c.command, "unknown" if c.exit_code is None else c.exit_code) for c in account.commands)
    commands = tuple(f"{command} (exit code {code})" for command, code in codes)
    evidence = TaskEvidence(body, account.final_message, commands, diff, account.todos)
    return analyse(evidence, environment=environment, clock=clock)


def _is_file(path: Path) -> bool:
    return path.is_file() and not path.is_symlink()


def _open(github: GitHub, title: str, body: str, conflict: ConflictBranch) -> Pull:
    return github.send_once(
        lambda: github.create_pull(title, body, conflict.name, conflict.onto, draft=True),
        lambda: _find_draft(github, conflict.name),
    )


def _find_draft(github: GitHub, branch: str) -> Pull | None:
    return next(iter(github.pulls_from(branch)), None)


def _state(pull: Pull) -> str:
    return "" if pull.state == "open" else "merged " if pull.is_merged else "closed "
