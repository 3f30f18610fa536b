"""``accord labels``: list, check and sync the labels of a repository."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from urllib.parse import urlsplit

import click

from accord.cli.options import FormatArguments, Group, RepositoryArguments, WritingArguments, command, option
from accord.cli.output import (
    Progress,
    aligned_lines,
    colored_word,
    cut_text,
    error_lines,
    finding_lines,
    one_line,
    print_json,
    print_lines,
    screen_columns,
)
from accord.cli.sources import at_top, github_for, read_bytes, read_trusted
from accord.cli.step import as_output, long_table, present, redacted_cell, report_step
from accord.core.errors import BrokenContract, Problem, Refused, Stopped, WrongUsage
from accord.core.findings import Finding, count_of
from accord.engine.operations import OperationLog
from accord.files.store import can_be_written
from accord.results.label_sync import (
    FAILED,
    UP_TO_DATE,
    LabelAction,
    LabelEntry,
    LabelRecord,
    apply_labels,
    parse_labels,
    plan_labels,
    shipped_labels,
)


class _LabelFileArguments(FormatArguments):
    file: str | None = option("--file F", "A label file. Default: the labels that accord ships.")


class CheckLabelsArguments(_LabelFileArguments, RepositoryArguments):
    """The arguments of ``accord labels check``."""


class _SyncLabelsArguments(WritingArguments, CheckLabelsArguments):
    prune: bool = option("--prune", "Delete labels that an earlier sync created, but the file lacks.")
    remove: tuple[str, ...] = option("--remove NAME", "Also delete this label, if unlisted.")
    record: Path | None = option("--record", "The file that records which labels a sync created.")


labels = Group("labels", help="List, check and sync labels.")


@command(_LabelFileArguments, "list", of=labels)
def list_labels(given: _LabelFileArguments) -> None:
    """List the labels of the file."""
    entries = label_entries(given.file)
    if given.is_json:
        labels = [{"name": entry.name, "action": UP_TO_DATE, **entry.model_dump(mode="json")} for entry in entries]
        print_json({"outcome": "listed", "labels": labels})
        return
    lines = aligned_lines((one_line(entry.name), f"#{entry.color}", one_line(entry.description)) for entry in entries)
    print_lines([cut_text(line, screen_columns()) for line in lines])


@command(CheckLabelsArguments, of=labels)
def check(given: CheckLabelsArguments) -> int:
    """Compare the repository with the file.

    Exits 1 when they differ.
    """
    entries = label_entries(given.file, is_trusted=True)
    with github_for(given) as (github, *_):
        actions, findings = plan_labels(entries, github.labels(), ())
    in_step = not any(action.is_change for action in actions)
    _report("unchanged" if in_step else "drift", actions, findings, given)
    return 0 if in_step else 1


@command(_SyncLabelsArguments, of=labels)
def sync(given: _SyncLabelsArguments) -> int:
    """Create, update and rename labels as the file says.

    Other labels stay.
    """
    entries = label_entries(given.file, is_trusted=True)
    with github_for(given) as (github, repository, *_):
        api = urlsplit(os.environ.get("GITHUB_API_URL") or "https://api.github.com").netloc.replace(":", "_")
        state = Path(os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state", "accord", "labels", api)
        own = Path(given.sandbox) / "labels.json" if given.sandbox is not None else state / f"{repository.lower()}.json"
        path = given.record or own
        if not can_be_written(path):
            raise WrongUsage(f"Cannot write the record {path}.", hint="Pass a writable file with `--record`.")
        labels, log = github.labels(), OperationLog(given.dry_run)
        record = LabelRecord(path, labels)
        if not given.dry_run:
            record.save()
        planned, findings = plan_labels(entries, labels, record.names if given.prune else (), given.remove)
        ended, problem = apply_labels(github, planned, Progress(len(planned)), log, record.track)
    if problem is None and (failed := [action for action in ended if action.action == FAILED]):
        message = f"GitHub refused {count_of(len(failed), 'label')}. `{failed[0].name}`: {failed[0].error}"
        problem = Refused(message, hint="Correct each label that failed, and run the same command again.")
    code = problem.exit_code if problem else 0
    done = "applied" if any(action.is_change for action in ended) else "unchanged"
    outcome = "planned" if given.dry_run else "stopped" if code == Stopped.exit_code else "refused" if code else done
    _report(outcome, ended, findings, given, problem, log)
    return code


def label_entries(file: str | None, *, is_trusted: bool = False) -> Sequence[LabelEntry]:
    """Read the labels of a file; with ``is_trusted`` as the default branch has it, in a job."""
    if file is None:
        return shipped_labels()
    file = at_top(file)
    raw = read_trusted(file) if is_trusted else read_bytes(file)
    try:
        return parse_labels(raw)
    except BrokenContract as broken:
        places = " ".join(f"Line {finding.line}: {finding.text}" for finding in broken.findings)
        message = f"{file} is not a valid label file, so nothing was written. {places}"
        raise BrokenContract(message, findings=broken.findings, hint="Correct the file, and run it again.") from None


def _report(
    outcome: str,
    actions: Sequence[LabelAction],
    findings: Sequence[Finding],
    given: _LabelFileArguments,
    problem: Problem | None = None,
    log: OperationLog | None = None,
) -> None:
    document: dict[str, object] = {
        "outcome": outcome,
        "labels": list(map(_as_json, actions)),
        "findings": [finding.as_json() for finding in findings],
    }
    if problem:
        document["error"] = {"message": problem.message, "hint": problem.hint}
    changes = [action for action in actions if action.is_change]
    last = f"{outcome}: {len(changes)} of {len(actions)} labels differ" if outcome == "drift" else outcome
    shown = []
    for action in actions:
        old = f"(was {one_line(action.found.name)})" if action.found and action.action == "renamed" else ""
        words = colored_word(action.action, shown=action.description(outcome))
        shown.append((one_line(action.name), words, one_line(action.error) or old))
    present(given, document, [*aligned_lines(shown), *finding_lines(findings, given.file or "labels"), last], log)
    if problem and not given.is_json:
        click.echo(error_lines(problem), err=True)
    names = [{"name": action.name, "action": action.action} for action in actions]
    rows = [[redacted_cell(one.name), one.description(outcome), redacted_cell(one.error)] for one in changes]
    table = long_table(["Label", "Action", "Problem"], rows) or "All labels are up to date."
    report_step(f"labels: {outcome}", {"outcome": outcome, "labels": as_output(names)}, table)


def _as_json(action: LabelAction) -> dict[str, str]:
    record = {"name": action.name, "action": action.action}
    if action.action == "renamed" and action.found:
        record["was"] = action.found.name
    if action.error:
        record["error"] = action.error
    return record
