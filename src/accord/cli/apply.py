"""``accord apply`` and ``accord patch``: apply an agent's result to GitHub exactly once."""

from __future__ import annotations

import json
import os
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from accord.cli.options import (
    FILE,
    ChangeArguments,
    FileArguments,
    PostingArguments,
    RootArguments,
    WritingArguments,
    argument,
    command,
    option,
    top_of,
)
from accord.cli.output import Progress, attempt, one_line, redactor
from accord.cli.receipts import report_receipt, show_receipt
from accord.cli.sources import github_for, policy_at, read_bytes, read_trusted
from accord.cli.step import redacted_cell, report_step
from accord.core.clock import SystemClock
from accord.core.errors import WrongUsage
from accord.core.findings import count_of, has_errors
from accord.engine.operations import ApplyOptions, LedgerEntry
from accord.engine.receipts import Receipt, report_errors
from accord.files.patterns import path_patterns
from accord.files.store import can_be_written, write_whole
from accord.git.configuration import APPROVALS
from accord.results.planner.structure import IssueStructure, read_settings
from accord.results.run import APPLICABLE, CheckedResult, apply_result, read_result, with_patch
from accord.results.run_options import MOST_COMMENTS, MOST_ITEMS, PlanOptions, ReviewOptions, RevisionOptions
from accord.text.posting import PostingPolicy
from accord.text.redaction import redact_json

if TYPE_CHECKING:
    from accord.github.client import Connection


_COMMIT = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")
_RUN_KEY = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")


class _ApplyArguments(WritingArguments, ChangeArguments, PostingArguments):
    result: str = argument("RESULT", envvar="ACCORD_APPLY_RESULT")
    kind: str | None = option("--kind", "The only accepted kind. Default: any.", among=sorted(APPLICABLE))
    run_key: str = option("--run-key", "Scope of exactly-once. Default: the request, else a digest.")
    receipt: Path | None = option("--receipt", "Also write the JSON receipt to this file, in a new folder if need be.")
    request: str = option("--request REQUEST", "Request of a plan: a spec's path, #12, session:NAME, mission:NAME.")
    plan_settings: Path | None = option(
        "--plan-settings FILE", "Parent, milestone, type and assignees of a plan's items (plan.yml)."
    )
    close_vanished: bool = option("--close-vanished", "Close items that the plan no longer has.")
    any_issue: bool = option("--any-issue", "Let a plan close and update issues that are not work items.")
    max_items: int = option("--max-items", "Refuse a plan with more items.", least=1, default=MOST_ITEMS)
    work_item: int | None = option("--work-item N", "The work item of an implementor result.")
    pull: int | None = option("--pull N", "The pull request of a reviewer result.")
    commit: str = option("--commit SHA", "The commit that a reviewer read. Default: the head.")
    max_comments: int = option(
        "--max-comments",
        "New comments of a review on lines and files; the rest is in its body.",
        least=0,
        most=1000,
        default=MOST_COMMENTS,
    )
    approvals: str | None = option(
        "--approvals", "How to post an approving review. Default: the configuration's.", among=APPROVALS
    )
    base: str = option("--base BRANCH", "The base branch of a new pull request.")
    checkout: Path = option(
        "--checkout", "Checkout to read git objects from; it stays unchanged.", type=FILE, default=Path()
    )
    author: str = option("--author 'NAME <MAIL>'", "Author of the commit.")
    co_author: tuple[str, ...] = option("--co-author 'NAME <MAIL>'", "Co-author of the commit.")
    commit_type: str = option("--commit-type", "Prefix of the commit's subject.", default="feat")
    protect: tuple[str, ...] = option("--protect PATTERN", "Another protected path, as in .gitignore.")
    keepalive: bool = option("--keepalive", "Let keepalive work on a new pull request.")


@command(_ApplyArguments)
def apply(given: _ApplyArguments) -> int:
    """Apply an agent's result to GitHub, exactly once.

    RESULT is a file, or - for stdin.

    Everything is checked before the first write. A second run writes only what is missing. A changed plan of the same
    request updates its items.
    """
    if given.run_key and not _RUN_KEY.fullmatch(given.run_key):
        message = f"`{given.run_key[:80]}` is not a run key."
        raise WrongUsage(message, hint="Use up to 100 letters, digits, dots, dashes and underscores.")
    if given.receipt and given.receipt.resolve() == Path(given.result).resolve():
        raise WrongUsage(f"The receipt would overwrite {given.result}.", hint="Use another file for `--receipt`.")
    if given.receipt and not can_be_written(given.receipt):
        raise WrongUsage(f"Cannot write the receipt {given.receipt}.", hint="Use a file that you may write.")
    raw = read_bytes(given.result)
    checked = read_result(raw, given.kind)
    if not has_errors(checked.findings):
        return _apply(checked, given, raw)
    repository = given.repo or os.environ.get("GITHUB_REPOSITORY", "")
    return _report(Receipt(checked.kind, repository, given.run_key, findings=list(checked.findings)), given)


def _report(receipt: Receipt, given: _ApplyArguments) -> int:
    """Report a receipt, first on stdout, and return its exit code. A part that cannot be written keeps no other."""
    code = show_receipt(receipt, given.result, given)
    file = given.receipt
    if file:
        text = json.dumps(redact_json(receipt.as_json(), redactor()), indent=2) + "\n"
        file = file if attempt(f"the receipt to {file}", lambda: write_whole(given.receipt or Path(), text)) else None
    report_receipt(receipt, given.result, file)
    return code


def _apply(checked: CheckedResult, given: _ApplyArguments, raw: bytes) -> int:
    """Apply a result and report it. Its record goes into the receipt, and last to the ref."""
    _check_kind(checked.kind, given)
    settings = given.plan_settings
    structure = read_settings(read_trusted(str(settings)), str(settings)) if settings else None
    with github_for(given) as connection:
        unread = Receipt(checked.kind, connection.repository, given.run_key)
        with report_errors(connection.github, unread):
            policy = policy_at(connection, given.allowed_hosts, given.break_words)
        if unread.error or unread.findings:
            return _report(unread, given)
        began = SystemClock().now()
        receipt = apply_result(
            connection.github, checked, _options_of(checked.kind, given, structure, connection, policy)
        )
        if given.dry_run:
            return _report(receipt, given)
        from accord.cli.records import apply_record_of, leave_record  # slow, and only this needs them

        record = apply_record_of(receipt, raw, began, work_item=given.work_item, pull=given.pull)
        leave_record(record, None)
        code = _report(receipt, given)
        leave_record(record, connection)
        return code


def _options_of(
    kind: str,
    given: _ApplyArguments,
    structure: IssueStructure | None,
    connection: Connection,
    policy: PostingPolicy,
) -> ApplyOptions:
    progress = Progress()

    def show(entry: LedgerEntry, ended: int, total: int) -> None:
        progress.show(f"{entry.op} {entry.key}", ended, total)

    clock = SystemClock()
    shared = (connection.repository, clock, redactor(), policy, given.run_key, given.dry_run, show)
    if kind == "planner-result":
        return PlanOptions(
            *shared,
            request=given.request,
            closes_vanished=given.close_vanished,
            reaches_any_issue=given.any_issue,
            most_items=given.max_items,
            structure=structure,
        )
    if kind == "implementor-result":
        return RevisionOptions(
            *shared,
            work_item=given.work_item or 0,
            remote=connection.remote(clock),
            base=given.base,
            checkout=given.checkout,
            author=given.author,
            co_authors=given.co_author,
            commit_prefix=given.commit_type,
            protected=given.protect,
            allows_steering=given.allow_steering_files,
            limits=given.limits,
            keepalive=given.keepalive,
        )
    if kind == "reviewer-result":
        return ReviewOptions(
            *shared,
            pull=given.pull or 0,
            work_item=given.work_item,
            commit=given.commit.strip().lower(),
            max_comments=given.max_comments,
            approvals=given.approvals or "",
        )
    return ApplyOptions(*shared)


def _check_kind(kind: str, given: _ApplyArguments) -> None:
    needed = {"implementor-result": ("--work-item", given.work_item), "reviewer-result": ("--pull", given.pull)}
    flag, number = needed.get(kind, ("", 0))
    if number is None:
        raise WrongUsage(f"This result needs `{flag}`.", hint=f"Pass `{flag} 42`.")
    commit = given.commit.strip().lower()
    if commit and not _COMMIT.fullmatch(commit):
        message = f"`{commit[:80]}` is not the full SHA of a commit."
        raise WrongUsage(message, hint="Pass `--commit` with all 40 or 64 digits.")
    if kind == "implementor-result":
        from accord.git.branches import check_author  # slow, and no other kind needs it

        for name in filter(None, (given.author, *given.co_author)):
            check_author(name)
        path_patterns(given.protect, may_negate=False)


class _PatchArguments(FileArguments, RootArguments):
    base: str = option("--base REF", "The branch or commit from which the agent started.", required=True)
    into: Path | None = option("--into RESULT", "Write the patch into this result.")


@command(_PatchArguments)
def patch(given: _PatchArguments) -> None:
    """Print the patch from a base to the work tree.

    The patch has the commits since the merge base with REF, uncommitted changes and untracked files. Ignored files
    and agent artifacts are left out. With --into, the patch replaces the one in an implementor result, and a
    completed result without a change becomes a validation failure.
    """
    from accord.git.extraction import extract  # slow, and no other command needs them
    from accord.runner.registry import registry_at

    into, agents_own = given.into, registry_at(top_of(given.root)).state_patterns
    extracted = extract(given.root, given.base, without=into, state_files=agents_own)
    for remark in extracted.remarks:
        click.echo(f"accord: {remark}", err=True)
    if into is None:
        sys.stdout.buffer.write(extracted.patch)
        return
    result = with_patch(read_bytes(str(into)), extracted.patch, str(into))
    files = sum(line.startswith("diff --git ") for line in str(result["patch"] or "").split("\n"))
    outcome = str(result["outcome"])
    if given.shows_only:
        click.echo(f"{one_line(str(into))} would have the outcome {outcome} and a patch of {count_of(files, 'file')}.")
    else:
        write_whole(into, json.dumps(result, indent=2) + "\n")
    report_step(f"patch: {redacted_cell(outcome)}", {"outcome": outcome}, f"Files in the patch: {files}.")
