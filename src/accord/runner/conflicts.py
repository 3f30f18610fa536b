"""A draft pull request for changes of a run that conflict with their branch. A person resolves the conflict there."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING
from urllib.parse import quote

from accord.core.errors import AccordError
from accord.git.conflicts import conflict_notice, resolution
from accord.github.once import send_once
from accord.runner.outputs import safe_line, summary_of
from accord.text.markdown import as_code

if TYPE_CHECKING:
    from collections.abc import Sequence

    from accord.core.clock import Clock
    from accord.engine.operations import OperationLog
    from accord.github.client import GitHub
    from accord.github.models import Pull
    from accord.runner.outputs import FinishOptions
    from accord.runner.publish import ConflictBranch
    from accord.text.posting import PostingPolicy
    from accord.text.redaction import Redactor

NEEDS_HUMAN = "needs-human"
_PATH_CHARS = 200


def draft_body(conflict: ConflictBranch, message: str, pull: str, redact: Redactor, policy: PostingPolicy) -> str:
    """Return the body of the draft: the paths, the beginning of the agent's message, and how to resolve the conflict.

    ``pull`` is the number of the run's own pull request; empty without one.
    """
    paths = [as_code(safe_line(path, redact, policy, _PATH_CHARS)) for path in conflict.paths]
    onto = as_code(conflict.onto)
    steps = f"To resolve it:\n\n```bash\n{resolution(conflict.name, conflict.onto)}\n```"
    target = f"{onto} and its pull request #{pull}" if pull else onto
    end = f"Then mark this pull request as ready for review, and merge it into {target}."
    notice = conflict_notice(onto, paths)
    return "\n\n".join(filter(None, [notice, summary_of(message, redact, policy), steps, end]))


@dataclass(frozen=True, slots=True)
class OpenDraft:
    """Open the draft pull request."""

    title: str
    body: str
    branch: str
    base: str


@dataclass(frozen=True, slots=True)
class LabelDraft:
    """Add a label to the draft."""

    label: str


def plan_draft(
    conflict: ConflictBranch, title: str, body: str, found: Pull | None
) -> tuple[OpenDraft | LabelDraft, ...]:
    """Plan the draft with its label; ``found`` is the one that an earlier try opened. Pure."""
    if found is not None and (found.state != "open" or NEEDS_HUMAN in found.labels):
        return ()
    opened = () if found else (OpenDraft(title, body, conflict.name, conflict.onto),)
    return (*opened, LabelDraft(NEEDS_HUMAN))


def _apply(
    github: GitHub, operations: Sequence[OpenDraft | LabelDraft], draft: Pull | None, clock: Clock, log: OperationLog
) -> tuple[Pull | None, str]:
    """Apply the operations; return the draft, and why one of them failed, or nothing."""
    for operation in operations:
        try:
            if isinstance(operation, OpenDraft):
                draft = log.write("open-draft", operation.branch, partial(_open, github, operation, clock)) or draft
            else:
                number = draft.number if draft else 0
                add = partial(github.add_labels, number, [operation.label])
                log.write("add-labels", operation.label, add, number=number)
        except AccordError as error:
            failed = f"Its label {NEEDS_HUMAN} could not be added" if draft else "No pull request was opened for it"
            return draft, f"{failed}: {error.message}"
    return draft, ""


def _open(github: GitHub, draft: OpenDraft, clock: Clock) -> Pull:
    return send_once(
        lambda: github.create_pull(draft.title, draft.body, draft.branch, draft.base, draft=True),
        lambda: _find_draft(github, draft.branch),
        clock,
    )


def _find_draft(github: GitHub, branch: str) -> Pull | None:
    return next(iter(github.pulls_from(branch)), None)


def report_conflict(conflict: ConflictBranch, title: str, message: str, pull: str, options: FinishOptions) -> str:
    """Open the draft, and return a sentence that says where the changes are. A dry run opens nothing."""
    where = f"The changes conflict with {conflict.onto}, so they are on the branch {conflict.name}"
    page = options.remote.page if options.remote else ""
    compare = f"{page}/compare/{quote(conflict.onto, safe='/')}...{quote(conflict.name, safe='/')}"
    number = pull.strip().removeprefix("#")
    number = number if number.isascii() and number.isdecimal() else ""
    body = draft_body(conflict, message, number, options.redact, options.policy)
    try:
        found = _find_draft(options.github, conflict.name) if options.github else None
    except AccordError as error:
        return f"{where}: {compare} Its pull requests could not be read: {error.message}"
    operations = plan_draft(conflict, title, body, found)
    if options.github is None:
        return _rehearsal(conflict, operations, found) if options.log.is_dry_run else f"{where}: {compare}"
    draft, problem = _apply(options.github, operations, found, options.clock, options.log)
    if options.log.is_dry_run:
        return _rehearsal(conflict, operations, found)
    if draft is None:
        return f"{where}: {compare} {problem}"
    return f"{where} and in the {_state(draft)}pull request {draft.number}: {draft.url} {problem}".rstrip()


def _rehearsal(conflict: ConflictBranch, operations: Sequence[OpenDraft | LabelDraft], found: Pull | None) -> str:
    """Return what a dry run says of the plan."""
    if found is None:
        return f"Dry run: the changes would be pushed to {conflict.name}, in a draft for {conflict.onto}."
    labels = f" It would get the label {NEEDS_HUMAN}." if operations else ""
    return f"Dry run: the changes are in the {_state(found)}pull request {found.number}: {found.url}{labels}"


def _state(pull: Pull) -> str:
    return "" if pull.state == "open" else "merged " if pull.is_merged else "closed "
