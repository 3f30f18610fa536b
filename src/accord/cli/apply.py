"""``accord apply`` and ``accord patch``: apply an agent's result to GitHub exactly once."""

from __future__ import annotations

import json
import os
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from accord.cli.options import (
    Choice,
    Lines,
    dry_run_option,
    format_option,
    limit_options,
    posting_options,
    pull_option,
    root_option,
    steering_option,
    together,
    work_item_option,
)
from accord.cli.output import Progress, one_line, print_json
from accord.cli.posting import policy_at
from accord.cli.receipts import print_receipt, report_receipt
from accord.cli.records import leave_apply_record
from accord.cli.sources import github_for, read_bytes, read_trusted
from accord.core.errors import WrongUsage
from accord.core.findings import has_errors
from accord.engine.receipts import Receipt, reporting
from accord.files.store import can_be_written, write_whole
from accord.git.sizes import ChangeLimits
from accord.results.run import APPLICABLE, apply_result, read_result, with_patch
from accord.results.run_options import MOST_COMMENTS, MOST_ITEMS, RunOptions
from accord.text.redaction import redact_json, redactor_for

if TYPE_CHECKING:
    from collections.abc import Sequence

    from accord.core.findings import Finding
    from accord.results.run import CheckedResult


_COMMIT = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")
_RUN_KEY = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")

plan_options = together(
    click.option(
        "--request",
        default="",
        metavar="REQUEST",
        help="Request of a plan: a spec's path, #12, session:NAME, mission:NAME.",
    ),
    click.option(
        "--plan-settings",
        type=click.Path(path_type=Path),
        metavar="FILE",
        help="Parent, milestone, type and assignees of a plan's items (plan.yml).",
    ),
    click.option("--close-vanished", is_flag=True, help="Close items that the plan no longer has."),
    click.option(
        "--max-items",
        type=click.IntRange(1),
        default=MOST_ITEMS,
        show_default=True,
        help="Refuse a plan with more items.",
    ),
)
"""The options of ``accord apply`` for planner results; plans of one request are versions of one another."""

kind_options = together(
    work_item_option("The work item of an implementor result."),
    pull_option("The pull request of a reviewer result."),
    click.option("--commit", default="", metavar="SHA", help="The commit that a reviewer read. Default: the head."),
    click.option(
        "--max-comments",
        type=click.IntRange(0, 1000),
        default=MOST_COMMENTS,
        show_default=True,
        help="New comments of a review on lines and files; the rest is in its body.",
    ),
    click.option("--base", default="", metavar="BRANCH", help="The base branch of a new pull request."),
    click.option(
        "--checkout",
        type=click.Path(path_type=Path),
        default=Path(),
        help="Checkout to read git objects from; it stays unchanged.",
    ),
    click.option("--author", default="", metavar="'NAME <MAIL>'", help="Author of the commit."),
    click.option("--co-author", multiple=True, type=Lines(), metavar="'NAME <MAIL>'", help="Co-author of the commit."),
    click.option("--commit-type", default="feat", show_default=True, help="Prefix of the commit's subject."),
    click.option(
        "--protect", multiple=True, type=Lines(), metavar="PATTERN", help="Another protected path, as in .gitignore."
    ),
    steering_option,
    limit_options,
    click.option("--keepalive", is_flag=True, help="Let keepalive work on a new pull request."),
)
"""The options of ``accord apply`` that only some kinds of results need."""


@click.command()
@click.argument("result", metavar="RESULT", envvar="ACCORD_APPLY_RESULT")
@click.option("--kind", type=Choice(sorted(APPLICABLE)), help="The only accepted kind. Default: any.")
@click.option("--run-key", default="", help="Scope of exactly-once. Default: the request, else a digest.")
@dry_run_option
@click.option(
    "--receipt",
    type=click.Path(path_type=Path),
    help="Also write the JSON receipt to this file, in a new folder if need be.",
)
@plan_options
@kind_options
@posting_options
@format_option
@click.pass_context
def apply(
    ctx: click.Context,
    /,
    result: str,
    kind: str | None,
    run_key: str,
    dry_run: bool,
    receipt: Path | None,
    output_format: str,
    **options: Any,
) -> None:
    """Apply an agent's result to GitHub, exactly once.

    RESULT is a file, or - for stdin.

    Everything is checked before the first write. A second run writes only what is missing. A changed plan of the same
    request updates its items.
    """
    if run_key and not _RUN_KEY.fullmatch(run_key):
        message = f"`{run_key[:80]}` is not a run key."
        raise WrongUsage(message, hint="Use up to 100 letters, digits, dots, dashes and underscores.")
    if receipt and receipt.resolve() == Path(result).resolve():
        raise WrongUsage(f"The receipt would overwrite {result}.", hint="Use another file for `--receipt`.")
    if receipt and not can_be_written(receipt):
        raise WrongUsage(f"Cannot write the receipt {receipt}.", hint="Use a file that you may write.")
    raw = read_bytes(result)
    checked = read_result(raw, kind)
    if has_errors(checked.findings):
        repository = options["repo"] or os.environ.get("GITHUB_REPOSITORY", "")
        report = Receipt(checked.kind, repository, run_key, findings=list(checked.findings))
    else:
        report = _apply(checked, run_key, dry_run, options, raw)
    if receipt:
        write_whole(receipt, json.dumps(redact_json(report.as_json(), redactor_for(os.environ)), indent=2) + "\n")
    report_receipt(report, result, receipt)
    if output_format == "json":
        print_json(report.as_json())
    else:
        print_receipt(report, result)
    ctx.exit(report.exit_code)


def _apply(
    checked: CheckedResult,
    run_key: str,
    dry_run: bool,
    options: dict[str, Any],
    raw: bytes,
) -> Receipt:
    """Apply a checked result, and keep its record."""
    from accord.core.clock import SystemClock
    from accord.results.planner.settings import read_settings

    allows_steering, keepalive = options.pop("allow_steering_files"), options.pop("keepalive")
    limits = ChangeLimits(options.pop("max_files"), options.pop("max_bytes"))
    max_comments = options.pop("max_comments")
    work_item, pull, commit = options.pop("work_item"), options.pop("pull"), options.pop("commit").strip().lower()
    needed = {"implementor-result": ("--work-item", work_item), "reviewer-result": ("--pull", pull)}
    option, number = needed.get(checked.kind, ("", 0))
    if number is None:
        raise WrongUsage(f"This result needs `{option}`.", hint=f"Pass `{option} 42`.")
    if commit and not _COMMIT.fullmatch(commit):
        message = f"`{commit[:80]}` is not the full SHA of a commit."
        raise WrongUsage(message, hint="Pass `--commit` with all 40 or 64 digits.")
    is_implementor = checked.kind == "implementor-result"
    git = {name: options.pop(name) for name in ("base", "checkout", "author", "co_author", "commit_type", "protect")}
    if is_implementor:
        _check_git_options((git["author"], *git["co_author"]), git["protect"])
    posting = (options.pop("allowed_hosts"), options.pop("break_words"))
    settings = options.pop("plan_settings")
    plan = {
        "structure": read_settings(read_trusted(str(settings)), str(settings)) if settings else None,
        "request": options.pop("request"),
        "closes_vanished": options.pop("close_vanished"),
        "most_items": options.pop("max_items"),
    }
    progress = Progress()
    with github_for(**options) as connection:
        clock = SystemClock()
        unread = Receipt(checked.kind, connection.repository, run_key)
        with reporting(connection.github, unread):
            policy = policy_at(connection.github, *posting)
        if unread.error or unread.findings:
            return unread
        run_options = RunOptions(
            connection.repository,
            clock,
            redactor_for(os.environ),
            policy,
            run_key,
            dry_run,
            lambda entry, ended, total: progress.show(f"{entry.op} {entry.key}", ended, total),
            **plan,
            on_warnings=_name_duplicates,
            work_item=work_item,
            pull=pull,
            commit=commit,
            max_comments=max_comments,
            remote=connection.remote(clock) if is_implementor else None,
            base=git["base"],
            checkout=git["checkout"],
            author=git["author"],
            co_authors=git["co_author"],
            commit_prefix=git["commit_type"],
            protected=git["protect"],
            allows_steering=allows_steering,
            limits=limits,
            keepalive=keepalive,
        )
        began = clock.now()
        receipt = apply_result(connection.github, checked, run_options)
        if not dry_run:
            leave_apply_record(receipt, raw, began, connection, work_item=work_item, pull=pull)
        return receipt


def _name_duplicates(findings: Sequence[Finding]) -> None:
    """Name likely duplicates on stderr while the run can still be stopped."""
    for finding in findings:
        if finding.code == "near-duplicate":
            click.echo(f"warning: {one_line(finding.message)}", err=True)


def _check_git_options(authors: Sequence[str], protected: Sequence[str]) -> None:
    from accord.files.patterns import path_patterns
    from accord.git.branches import check_author

    for name in filter(None, authors):
        check_author(name)
    path_patterns(protected)


@click.command()
@click.option("--base", required=True, metavar="REF", help="The branch or commit from which the agent started.")
@root_option
@click.option("--into", type=click.Path(path_type=Path), metavar="RESULT", help="Write the patch into this result.")
def patch(base: str, root: Path, into: Path | None) -> None:
    """Print the patch from a base to the work tree.

    The patch has the commits since the merge base with REF, uncommitted changes and untracked files. Ignored files and
    agent artifacts are left out. With --into, the patch replaces the one in an implementor result, and a completed
    result without a change becomes a validation failure. That file is never part of the patch.
    """
    from accord.git.extraction import extract
    from accord.runner.trusted_registry import registry_at

    extracted = extract(root, base, without=into, state_files=registry_at(root).state_patterns)
    for remark in extracted.remarks:
        click.echo(f"accord: {remark}", err=True)
    if into is None:
        sys.stdout.buffer.write(extracted.patch)
        return
    result = with_patch(read_bytes(str(into)), extracted.patch, str(into))
    write_whole(into, json.dumps(result, indent=2) + "\n")
    files = sum(line.startswith("diff --git ") for line in str(result["patch"] or "").split("\n"))
    _report_step(str(result["outcome"]), files)


def _report_step(outcome: str, files: int) -> None:
    """Report ``accord patch --into``: the output ``outcome``, and how many files the patch touches."""
    from accord.cli.step import leave_redacted, leave_summary, redacted_cell

    leave_redacted({"outcome": outcome})
    leave_summary(f"### accord patch: {redacted_cell(outcome)}\n\nFiles in the patch: {files}.")
