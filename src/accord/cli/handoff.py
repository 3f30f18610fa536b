"""``accord handoff``: check a task's handoff, change it in a role, move it, and tell GitHub about it."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

from accord.cli.options import (
    FormatArguments,
    Group,
    PostingArguments,
    ReadingArguments,
    RepositoryArguments,
    WritingArguments,
    argument,
    command,
    option,
)
from accord.cli.output import colored_word, document_lines, finding_lines, next_lines, one_line, redactor
from accord.cli.sources import github_for, posting_to, read_bytes
from accord.cli.step import as_output, findings_table, present, report_step
from accord.core.clock import SystemClock, timestamp
from accord.core.documents import read_object
from accord.core.errors import BrokenContract, Stopped, WrongUsage
from accord.core.findings import Finding, Severity, has_errors, with_lines
from accord.core.kinds import KINDS
from accord.core.machine import NextMove, moves_to_json
from accord.engine.operations import OperationLog
from accord.handoffs.models import OLD_STATUSES, is_task_store, normalise, read_handoff
from accord.handoffs.plan import Author, HandoffDecision, as_reason, decide_move, decide_patch
from accord.handoffs.rules import ROLES, handoff_findings
from accord.handoffs.stages import HANDOFF, HandoffCommand, next_moves
from accord.handoffs.store import HandoffStore, Task, change_file
from accord.text.redaction import redact_json

if TYPE_CHECKING:
    from accord.plans.links import LinkedDocument

_NOT_ALLOWED = "This token may set no check, as on a pull request from a fork. This step says it alone."


handoff = Group("handoff", help="Check, change and move a task's handoff.")


class IssueArguments(RepositoryArguments):
    """Where a handoff is, if it is not in a file."""

    issue: int | None = option("--work-item N", "The handoff of work item N, instead of a file.")


class _GateArguments(WritingArguments, PostingArguments):
    pull: int = option("--pull N", "Pull request to judge.")
    work_item: int | None = option("--work-item N", "Its work item; by default the one that it closes.")
    to: str = option(
        "--to",
        "Stage whose artifacts the handoff must have.",
        among=("review", "verification", "done"),
        default="review",
    )
    independent: bool = option("--independent", "Block if one actor wrote work, review and verification.")


@command(_GateArguments, of=handoff)
def gate(given: _GateArguments) -> int:
    """Set the check accord/handoff on a pull request.

    Judges the handoff of its work item. Exits 1 when a reason blocks it.
    """
    from accord.github.pulls import closing_references
    from accord.handoffs.gate import judge_pull, publish_check

    pull, target, redact = given.pull, given.to, redactor()
    with posting_to(given) as ((github, repository, *_), policy):
        found = github.pull(pull)
        if found is None:
            message, hint = f"{repository} has no pull request #{pull}.", "Pass an existing one with `--pull`."
            raise BrokenContract.of(Finding("unknown-reference", message, hint=hint))
        numbers = [given.work_item] if given.work_item else closing_references(found)
        judged = judge_pull(github, found, numbers, target, is_independent=given.independent)
        log = OperationLog(given.dry_run)
        shown, is_new = publish_check(github, found, judged, redact, policy, log)
    outcome = "planned" if given.dry_run else "not-allowed" if shown is None else "applied" if is_new else "unchanged"
    item = str(numbers[0]) if len(numbers) == 1 else None
    document: dict[str, object] = {
        "ok": judged.is_open,
        "outcome": outcome,
        "pull": str(pull),
        "workItem": item,
        "to": target,
        "status": judged.status or None,
        "blockingReasons": (reasons := list(map(_as_json, judged.reasons))),
        "check": {"kind": shown.kind, "url": shown.url} if shown else None,
    }
    color, word = ("green", "open") if judged.is_open else ("red", "blocked")
    line = f"#{pull}: {click.style(word, fg=color)} for {target}; check {outcome}"
    present(given, document, [*finding_lines(judged.reasons, f"#{pull}"), line], log)
    report_step(
        f"handoff: {'✅ open' if judged.is_open else '❌ blocked'}",
        {"ok": str(judged.is_open).lower(), "status": judged.status, "blocking-reasons": as_output(reasons)},
        f"The handoff{f' of #{item}' if item else ''} of pull request #{pull}.",
        _NOT_ALLOWED if shown is None and not given.dry_run else "",
        findings_table(judged.reasons),
        findings=judged.reasons,
    )
    return 0 if judged.is_open else 1


class _SendArguments(WritingArguments, IssueArguments):
    file: str | None = argument("[TASK.json]")
    again: bool = option("--again", "Send again what GitHub refused before.")


@command(_SendArguments, of=handoff)
def dispatch(given: _SendArguments) -> None:
    """Send each open action as a repository_dispatch event.

    The event is accord-handoff. A transient error is tried again, then exits 3; a permanent error is recorded, and
    exits 4.
    """
    from accord.handoffs.gate import open_actions, send_and_record

    issue, dry_run = given.issue, given.dry_run
    (file,) = _paths([given.file] if given.file else [], issue, 0, "TASK.json")
    clock = SystemClock()
    with github_for(given) as (github, *_):
        store = HandoffStore(github, issue, redactor()) if issue is not None else None

        def change(decide: Callable[[Task], HandoffDecision], writes: bool) -> HandoffDecision:
            if store is None:
                return change_file(Path(file), decide, clock, writes=writes)
            return store.decide(decide) if writes else decide(store.load().value)

        actions, log = open_actions(change(HandoffDecision, not dry_run).task, again=given.again), OperationLog(dry_run)
        sent = [*filter(None, (send_and_record(github, action, change, issue, log, clock) for action in actions))]
    entries = [{**each, "status": "planned"} for each in actions] if dry_run else []
    for one in sent:
        status = "sent" if one.error is None else "stopped" if isinstance(one.error, Stopped) else "refused"
        problem = {"error": one.error.message} if one.error else {}
        entries.append({"id": one.id, "type": one.type, "status": status, **problem})
    outcome = "unchanged" if not actions else "planned" if dry_run else "applied"
    document = {"ok": not any(one.error for one in sent), "outcome": outcome, "actions": entries}
    rows = [f"{entry['status']:<8} {one_line(entry['type']):<24} {one_line(entry['id'])}" for entry in entries]
    present(given, document, [*rows, outcome], log)
    for one in sent:
        if one.error:
            raise one.error


class _HandoffArguments(IssueArguments, FormatArguments):
    files: tuple[str, ...] = argument("[TASK.json]")


class _ChangeHandoffArguments(WritingArguments, _HandoffArguments):
    role: str = option("--role", "Role of the author.", among=ROLES, required=True)
    actor: str | None = option("--actor ID", "Author's id; the role by default.")
    adopt: bool = option("--adopt", "Trust the block in the issue's body where it has no ref.")


class _CheckHandoffArguments(ReadingArguments, _HandoffArguments):
    """The arguments of ``accord handoff check``."""


@command(_CheckHandoffArguments, of=handoff)
def check(given: _CheckHandoffArguments) -> int:
    """Check a handoff, or each of a file of tasks."""
    issue = given.issue
    (path,) = _paths(given.files, issue, 0, "TASK.json")
    task: Task | None = None
    clock = SystemClock()
    try:
        if issue is None:
            document = read_object(read_bytes(path))
            task = normalise(document.value) if document.is_alone and not is_task_store(document.value) else None
            findings = KINDS["handoff"].check(document)
        else:
            with github_for(given) as (github, *_):
                stored = HandoffStore(github, issue).load()
            findings = handoff_findings(read_handoff(stored.value), clock.now())
            task, findings = stored.value, [*findings, *stored.warnings]
    except BrokenContract as broken:
        findings = list(broken.findings)
    outcome, name = "rejected" if has_errors(findings) else "ok", f"#{issue}" if issue else path
    _present(task, findings, outcome, name, given, command=_command("TASK.json" if path == "-" else path, given))
    return 1 if has_errors(findings) else 0


class _PatchHandoffArguments(_ChangeHandoffArguments):
    files: tuple[str, ...] = argument("[TASK.json] PATCH.json", required=True)


@command(_PatchHandoffArguments, of=handoff)
def patch(given: _PatchHandoffArguments) -> int:
    """Merge a patch into a handoff, in a role."""
    path, patch_path = _paths(given.files, given.issue, 1, "TASK.json and PATCH.json")

    return _change(given, lambda author, merged, task: decide_patch(task, merged, author), path, patch_path)


class _MoveHandoffArguments(_ChangeHandoffArguments):
    to: str = option("--to STATUS", "The status to move to.", among=[*HANDOFF.states, *OLD_STATUSES], required=True)
    patch: str | None = option("--patch PATCH.json", "Patch to merge first; both are done, or neither.")
    on_missing: str = option(
        "--on-missing",
        "Where an artifact is missing: refuse, or ask a person.",
        among=("refuse", "redirect"),
        default="refuse",
    )


@command(_MoveHandoffArguments, of=handoff)
def move(given: _MoveHandoffArguments) -> int:
    """Move a task to another status.

    The status requires artifacts. A refused move only records the reasons in metadata.workflowRuntime, and exits 1.
    """
    (path,) = _paths(given.files, given.issue, 0, "TASK.json")
    to, redirects = OLD_STATUSES.get(given.to, given.to), given.on_missing == "redirect"
    decide = partial(decide_move, target=to, redirects=redirects)
    return _change(given, lambda author, merged, task: decide(task, author=author, patch=merged), path, given.patch)


def _change(
    given: _ChangeHandoffArguments,
    decide: Callable[[Author, Task, Task], HandoffDecision],
    path: str,
    patch_path: str | None,
) -> int:
    redact, clock = redactor(), SystemClock()
    issue, name = given.issue, f"#{given.issue}" if given.issue else path
    before, log = list[dict[str, object]](), OperationLog(given.dry_run)

    def decide_on(task: Task) -> HandoffDecision:
        before[:] = [task]
        return decide(author, merged, task)

    reading = patch_path or name
    try:
        actor = "" if given.actor is None else given.actor or " "  # an empty name does not mean the role
        author = Author(given.role, timestamp(clock.now()), redact(actor))
        given_patch = read_object(read_bytes(patch_path)) if patch_path else None
        merged = redact_json(given_patch.value, redact) if given_patch else {}
        reading = name
        if issue is None:
            decision = change_file(Path(path), decide_on, clock, writes=not given.dry_run)
        else:
            with github_for(given) as (github, *_):
                store = HandoffStore(github, issue, redact, adopts=given.adopt)
                decision = store.decide(decide_on, log)
    except BrokenContract as broken:
        _present(None, broken.findings, "rejected", reading, given)
        return 1
    done = "unchanged" if decision.task in before else "planned" if given.dry_run else "applied"
    outcome = done if decision.is_ok else "rejected"
    command = _command(path, given, given.role, given.actor or "")
    source, reasons = name, [*decision.reasons, *decision.warnings]
    if given_patch and patch_path and decision.blames_patch:
        reasons, source = with_lines(reasons, given_patch.lines), patch_path
    _present(decision.task, reasons, outcome, name, given, decision.is_redirected, command, log, source)
    return 0 if decision.is_ok else 1


def _paths(files: Sequence[str], issue: int | None, more: int, what: str) -> Sequence[str]:
    """Return the path of the task, empty for a work item's, and further paths. Raises WrongUsage for other counts."""
    if issue is not None and len(files) == more:
        return ("", *files)
    if issue is None and len(files) == more + 1:
        return files
    raise WrongUsage(f"Expected {what}.", hint="Name the handoff once: as TASK.json, or as `--work-item N` instead.")


def _command(path: str, given: IssueArguments, role: str = "", actor: str = "") -> HandoffCommand:
    repository = f" --repo {shlex.quote(given.repo)}" if given.repo else ""
    place = f"--work-item {given.issue}{repository}" if given.issue else shlex.quote(path)
    return HandoffCommand(place, role, actor)


def _present(
    task: Task | None,
    findings: Sequence[Finding],
    outcome: str,
    name: str,
    given: _HandoffArguments,
    is_redirected: bool = False,
    command: HandoffCommand | None = None,
    log: OperationLog | None = None,
    source: str = "",
) -> None:
    """Print a handoff with its next moves; without a ``command``, it was not read, and has none.

    ``source`` is the file of the findings, where that is another.
    """
    documents: Sequence[LinkedDocument] = ()
    if command and given.issue and not given.repo:
        from accord.plans.links import documents_of

        documents = documents_of(Path(), given.issue)
    moves: Sequence[NextMove] = ()
    with suppress(BrokenContract):  # one that cannot be read has no moves
        moves = next_moves(task, command, SystemClock().now()) if task and command else ()
    status = task.get("status") if task else None
    document = {
        "ok": outcome != "rejected",
        "outcome": outcome,
        "status": status,
        "redirected": is_redirected,
        "source": source or name,
        "blockingReasons": [_as_json(each) for each in findings if each.severity is Severity.ERROR],
        "warnings": [_as_json(each) for each in findings if each.severity is Severity.WARNING],
        "documents": [each.as_json() for each in documents],
        "next_moves": moves_to_json(moves),
        "task": task,
    }
    at = f" at {click.style(one_line(str(status)), bold=True)}" if task else ""
    also = " (redirected to a person)" if is_redirected else ""
    line = f"{one_line(name)}{at}: {colored_word(outcome)}{also}"
    lines = [*finding_lines(findings, source or name), line, *document_lines(documents), *next_lines(moves)]
    present(given, document, lines, log)


def _as_json(finding: Finding) -> dict[str, object]:
    """Return a finding as a blocking reason, with its hint, and with its line where the file has one."""
    return {**as_reason(finding), "hint": finding.hint, **({"line": finding.line} if finding.line else {})}
