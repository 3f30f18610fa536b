"""``accord apply``: an agent's result becomes operations on GitHub, exactly once."""

from __future__ import annotations

import json
import os
import re
import sys
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from accord.cli.options import Choice, Lines, dry_run_option, format_option, repository_options, root_option, together
from accord.cli.output import Progress, print_json
from accord.cli.receipts import print_receipt, report_receipt
from accord.cli.sources import github_for, read_bytes
from accord.core.documents import read_object
from accord.core.errors import BrokenContract, WrongUsage
from accord.core.findings import has_errors, with_lines
from accord.core.kinds import kind_for, read_shape
from accord.files.store import can_be_written, write_whole
from accord.results.models import ImplementorResult, PlannerResult
from accord.results.operations import Outcome, Receipt
from accord.results.planner.rules import Plan, item_number, read_plan
from accord.text.redaction import redacted, redactor_for

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from accord.cli.sources import Way
    from accord.core.documents import Document
    from accord.core.findings import Finding
    from accord.results.models import ImplementorResult, ReviewerResult
    from accord.results.operations import Receipt, RunOptions


_COMMIT = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")


@dataclass(frozen=True)
class Choices:
    """What the user chose for this run, beyond the result itself."""

    work_item: str | None
    pull: str | None
    commit: str
    base: str
    checkout: Path
    author: str
    co_author: tuple[str, ...]
    commit_type: str
    protect: tuple[str, ...]


kind_options = together(
    click.option("--work-item", metavar="N", help="The work item that an implementor worked on."),
    click.option("--pull", metavar="N", help="The pull request that a reviewer read."),
    click.option("--commit", default="", metavar="SHA", help="The commit that a reviewer read; else the head."),
    click.option("--base", default="", metavar="BRANCH", help="What to open the pull request against."),
    click.option(
        "--checkout",
        type=click.Path(path_type=Path),
        default=Path(),
        help="A checkout whose objects need not be fetched again; it is only read.",
    ),
    click.option("--author", default="", metavar="'NAME <MAIL>'", help="Author of the commit."),
    click.option("--co-author", multiple=True, type=Lines(), metavar="'NAME <MAIL>'", help="Co-author of the commit."),
    click.option("--commit-type", default="feat", show_default=True, help="Prefix of the commit's subject."),
    click.option(
        "--protect",
        multiple=True,
        type=Lines(),
        metavar="PATTERN",
        help="One more protected path, as in .gitignore.",
    ),
)
"""The options of ``accord apply`` that only some kinds of results need."""


@dataclass(frozen=True)
class Subject:
    """What is to be applied: its kind, its model (of a planner's result the plan), and what checking it found.

    ``document`` is None when there is none in what was read, and ``model`` when it does not have the kind's shape.
    """

    kind: str
    model: Any
    findings: Sequence[Finding]
    document: Document | None

    def placed(self, findings: Sequence[Finding]) -> Sequence[Finding]:
        """Say of findings where in the file they are."""
        return with_lines(findings, self.document.lines) if self.document and findings else findings


def read_subject(raw: bytes, only: str | None = None) -> Subject:
    """Read and check a document, once: what its rules worked out is what is applied.

    ``only`` names the one kind that is accepted; without it the document says what it is.
    """
    kind = only or "unknown"
    model: Any = None
    document: Document | None = None
    try:
        document = read_object(raw)
        found = kind_for(only, document.value)
        kind = found.name
        model = read_shape(found.model, document.value)
        if isinstance(model, PlannerResult):
            model = read_plan(model)
        findings = model.findings if isinstance(model, Plan) else found.findings(model)
    except BrokenContract as broken:
        findings = list(broken.findings)
    subject = Subject(kind, model, findings, document)
    return replace(subject, findings=subject.placed(findings))


def apply_subject(subject: Subject, way: Way, setting: RunOptions, choices: Choices) -> Receipt:
    """Apply a checked document. Raises WrongUsage for a kind that cannot be applied, or a missing option."""
    if subject.kind not in _APPLIERS:
        message = f"A document of the kind {subject.kind} is checked, not applied."
        raise WrongUsage(message, hint="Apply an agent's result.")
    receipt = _APPLIERS[subject.kind](subject.model, way, setting, choices)
    return replace(receipt, findings=subject.placed(receipt.findings))


def _planner(plan: Plan, way: Way, setting: RunOptions, choices: Choices) -> Receipt:
    from accord.results.planner.run import apply_plan

    return apply_plan(way.github, plan, setting)


def _implementor(result: ImplementorResult, way: Way, setting: RunOptions, choices: Choices) -> Receipt:
    from accord.git.branches import DEFAULT_AUTHOR, check_author
    from accord.git.paths import path_patterns
    from accord.results.implementor.facts import Implementation
    from accord.results.implementor.run import apply_implementation

    for name in filter(None, (choices.author, *choices.co_author)):
        check_author(name)
    path_patterns(choices.protect)
    work = Implementation(
        _number(choices.work_item, "--work-item"),
        way.remote(setting.clock),
        choices.base,
        choices.checkout,
        choices.author or DEFAULT_AUTHOR,
        choices.co_author,
        choices.commit_type,
        choices.protect,
    )
    return apply_implementation(way.github, result, work, setting)


def _reviewer(result: ReviewerResult, way: Way, setting: RunOptions, choices: Choices) -> Receipt:
    from accord.results.reviewer.facts import Reviewed
    from accord.results.reviewer.run import apply_review

    commit = choices.commit.strip().lower()
    if commit and not _COMMIT.fullmatch(commit):
        raise WrongUsage(f'"{commit[:80]}" is no full SHA of a commit.', hint="Pass --commit with all its digits.")
    work_item = _number(choices.work_item, "--work-item") if choices.work_item else None
    reviewed = Reviewed(_number(choices.pull, "--pull"), work_item, commit)
    return apply_review(way.github, result, reviewed, setting)


def _number(text: str | None, option: str) -> int:
    number = item_number(text or "")
    if number is None:
        message = f'"{text[:80]}" is no number for {option}.' if text else f"This result needs {option}."
        raise WrongUsage(message, hint=f"Pass {option} 42.")
    return number


_APPLIERS: Mapping[str, Callable[[Any, Way, RunOptions, Choices], Receipt]] = {
    "planner-result": _planner,
    "implementor-result": _implementor,
    "reviewer-result": _reviewer,
}

APPLICABLE = tuple(sorted(_APPLIERS))
"""The kinds of documents that can be applied."""


_RUN_KEY = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")


@click.command()
@click.argument("result", metavar="RESULT", envvar="ACCORD_APPLY_RESULT")
@click.option("--kind", type=Choice(APPLICABLE), help="The only kind that is accepted; any when not given.")
@click.option("--run-key", default="", help="Scope of exactly-once; a digest of result and repository when not given.")
@dry_run_option
@click.option("--receipt", type=click.Path(path_type=Path), help="Write the JSON receipt to this file too.")
@kind_options
@repository_options
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
    """Check RESULT (a file, or - for stdin), and carry it out exactly once.

    Nothing is written before everything is checked. Running it again writes only what is missing.
    """
    if run_key and not _RUN_KEY.fullmatch(run_key):
        raise WrongUsage(f'"{run_key[:80]}" is no run key.', hint="Use up to 100 letters, digits, dots, dashes or _.")
    if receipt and receipt.resolve() == Path(result).resolve():
        raise WrongUsage(f"The receipt would be written over {result}.", hint="Name another file.")
    if receipt and not can_be_written(receipt):
        raise WrongUsage(f"The receipt {receipt} cannot be written.", hint="Name a file that may be written.")
    subject = read_subject(read_bytes(result), kind)
    if has_errors(subject.findings):
        repository = options["repo"] or os.environ.get("GITHUB_REPOSITORY", "")
        report = Receipt(subject.kind, Outcome.REJECTED, run_key, repository, subject.findings)
    else:
        report = _apply(subject, run_key, dry_run, options)
    if receipt:
        write_whole(receipt, json.dumps(redacted(report.as_json(), redactor_for(os.environ)), indent=2) + "\n")
    report_receipt(report, result, receipt)
    if output_format == "json":
        print_json(report.as_json())
    else:
        print_receipt(report, result)
    ctx.exit(report.exit_code)


def _apply(subject: Subject, run_key: str, dry_run: bool, options: dict[str, Any]) -> Receipt:
    from accord.core.clock import SystemClock
    from accord.results.operations import RunOptions

    choices = Choices(**{name: options.pop(name) for name in Choices.__dataclass_fields__})
    progress = Progress()
    with github_for(**options) as way:
        setting = RunOptions(
            way.repository,
            SystemClock(),
            redactor_for(os.environ),
            run_key,
            dry_run,
            lambda entry, ended, total: progress.show(f"{entry.op} {entry.key}", ended, total),
        )
        return apply_subject(subject, way, setting, choices)


@click.command()
@click.option("--base", required=True, metavar="REF", help="The branch or commit that the agent started from.")
@root_option
@click.option("--into", type=click.Path(path_type=Path), metavar="RESULT", help="Put the patch into this result.")
def patch(base: str, root: Path, into: Path | None) -> None:
    """Print the patch from the merge base with REF to the work tree: commits, changes and untracked files.

    Ignored files and what agents leave behind are not in it. With --into, the patch is written into an implementor's
    result instead, in place of any that it has; a completed result without a change becomes a validation failure. That
    file is never a part of the patch.
    """
    from accord.cli.step import report_patch
    from accord.git.patches import extract_patch

    if into is None:
        sys.stdout.buffer.write(extract_patch(root, base))
        return
    raw = read_bytes(str(into))
    taken = extract_patch(root, base, without=into)
    try:
        document = read_object(raw)
        result = read_shape(ImplementorResult, {"patch": None, **document.value})
    except BrokenContract as broken:
        raise _named(broken, into) from None
    written = enriched(result.model_dump(), taken)
    write_whole(into, json.dumps(written, indent=2) + "\n")
    report_patch(str(written["outcome"]), files_in(str(written["patch"] or "")))


def files_in(patch: str) -> int:
    """Count the files of a patch of ours; inside of a file, every line begins otherwise."""
    return sum(line.startswith("diff --git ") for line in patch.split("\n"))


def enriched(result: dict[str, object], taken: bytes) -> dict[str, object]:
    """Give a result its patch, or turn a completed one that changed nothing into a validation failure."""
    if result["outcome"] != "completed":
        return {**result, "patch": None}
    if not taken.strip():
        reason = (
            "The validation step that compares the work tree with its base failed: nothing was changed. What the agent "
            "tried left no trace, so the cause is outside of what accord can see."
        )
        summary = f"{reason}\n\n{result['summary']}"
        return {**result, "outcome": "validation-failure", "patch": None, "summary": summary}
    return {**result, "patch": taken.decode()}


def _named(broken: BrokenContract, into: Path) -> BrokenContract:
    """Name the file that is no implementor's result."""
    first = broken.findings[0].message if broken.findings else broken.message
    return BrokenContract(f"{into} is no implementor's result: {first}", findings=broken.findings)
