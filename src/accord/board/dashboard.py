"""The dashboard: one issue that shows the overview of its repository, edited in place."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, ClassVar

from accord.board.facts import is_board, read_repository
from accord.board.models import BOARD, HEADINGS, WITH_COMMAND, joined
from accord.board.work import overview_of_work
from accord.core.errors import Refused
from accord.core.findings import warning
from accord.github.limits import SEARCH_LAG_SECONDS
from accord.github.markers import run_token, write_marker
from accord.github.models import IssueChange
from accord.github.once import send_once
from accord.results.operations import (
    LedgerEntry,
    Operation,
    OperationStatus,
    Receipt,
    apply_in_order,
    reporting,
    skipped_if,
)
from accord.results.status import require_writable
from accord.text.markdown import as_code, table
from accord.text.sanitise import sanitise_cell

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from accord.board.models import Address, Entry, Overview
    from accord.core.clock import Clock
    from accord.github.client import GitHub
    from accord.github.models import Identity, Issue
    from accord.results.operations import RunOptions

TITLE = "Status of the agents' work"
MOST_ROWS = 50
"""Rows of a section; a body of this size is far below GitHub's limit."""

_FOLDED = ("waiting", "done")
_WITHDRAWN = "The account that wrote this issue is not the one that was named, so the issue is not kept up to date."
_FOOT = "Comment `/accord implement` on a ready item to start an agent, and `/accord review` on a pull request."


@dataclass(frozen=True, slots=True)
class WriteBoard(Operation):
    """Write the dashboard: into ``issue``, or into a new one if it is None."""

    op: ClassVar[str] = "write-board"
    is_content: ClassVar[bool] = True
    issue: Issue | None
    body: str


def show_dashboard(
    github: GitHub, address: Address, period: timedelta, options: RunOptions
) -> tuple[Receipt, Overview | None]:
    """Write the overview into the dashboard's issue; also return it, None where it cannot be read.

    Raises no AccordError: the receipt has it. The issue is written only where it changes.
    """
    receipt = Receipt("board", options.repository, "")
    overview = None
    with reporting(github, receipt):
        identity = github.identity()
        require_writable(github, identity)
        facts = read_repository(github, address, period, identity)
        overview = joined(overview_of_work(facts))
        boards = facts.boards or closed_boards(github, options.repository, facts.identity)

        def clean(text: str) -> str:
            return sanitise_cell(text, secrets=options.redact, policy=options.policy)

        operation = plan_board(boards, board_body(overview, clean, run_token(options.repository, BOARD)))
        if operation.issue:
            receipt.details = _details(operation.issue)
            if not operation.issue.is_open:
                message = f"The dashboard #{operation.issue.number} is closed, so it was not written."
                receipt.findings.append(warning("board-closed", message, hint="Reopen it, or turn the workflow off."))

        def apply(operation: WriteBoard) -> None:
            receipt.details = _details(_apply(github, facts.identity, operation, options.clock))

        entries, error = apply_in_order([operation], apply, _entry, options)
        receipt.end(entries, error, is_dry_run=options.is_dry_run)
    return receipt, overview


def closed_boards(github: GitHub, repository: str, identity: Identity) -> tuple[Issue, ...]:
    """Find dashboards that a person closed: by search and, for the minutes that its index lacks, in a listing.

    Where the search proves nothing, as on Enterprise Server, all closed issues are listed.
    """
    search = github.search(run_token(repository, BOARD))
    lately = github.server_time() - timedelta(seconds=SEARCH_LAG_SECONDS)
    listed = github.closed_issues(lately) if search.is_complete else github.issues(state="closed")
    return tuple(issue for issue in (*search.issues, *listed) if is_board(issue, identity))


def _details(issue: Issue) -> dict[str, dict[str, str]]:
    return {"board": {"id": str(issue.number), "url": issue.url}}


def plan_board(boards: Sequence[Issue], body: str) -> WriteBoard:
    """Return the one write: to the oldest dashboard, an open one first.

    There is nothing to do where its body is the same, or where a person closed it. Pure.
    """
    issue = min(boards, key=lambda issue: (not issue.is_open, issue.number), default=None)
    is_done = issue is not None and (issue.body == body or not issue.is_open)
    return WriteBoard(f"#{issue.number}" if issue else "new", skipped_if(is_done), issue, body)


def board_body(overview: Overview, clean: Callable[[str], str], token: str = "") -> str:
    """Return the body of the dashboard; ``clean`` makes untrusted text fit for a table's cell. Pure.

    ``token`` is the word by which the issue is found again; a step's summary has none.
    """
    parts = [_section(name, entries, clean) for name, entries in overview.sections().items() if entries]
    if not overview.needs_you:
        parts.insert(0, "### Nothing needs you")
    notes = [f"> {clean(note)}" for note in overview.notes]
    marker = [write_marker(BOARD, run=token)] if token else []
    return "\n\n".join([*parts, *notes, _FOOT, *marker])


def _section(name: str, entries: Sequence[Entry], clean: Callable[[str], str]) -> str:
    heading = f"{HEADINGS[name]} ({len(entries)})"
    head = ["What", "Why", "Since (UTC)", *(["Type"] if name in WITH_COMMAND else [])]
    rows = [_row(entry, clean, has_command=name in WITH_COMMAND) for entry in entries[:MOST_ROWS]]
    rest = f"\n\nand {len(entries) - MOST_ROWS} more" if len(entries) > MOST_ROWS else ""
    shown = f"{table(head, rows)}{rest}"
    if name in _FOLDED:
        return f"<details><summary>{heading}</summary>\n\n{shown}\n\n</details>"
    return f"### {heading}\n\n{shown}"


def _row(entry: Entry, clean: Callable[[str], str], *, has_command: bool) -> list[str]:
    name = entry.id if entry.id.startswith("#") else clean(entry.id)
    since = entry.since.strftime("%Y-%m-%d %H:%M") if entry.since else ""
    cost = f" ({clean(entry.cost)})" if entry.cost else ""
    command = [as_code(entry.command) if entry.command else ""] if has_command else []
    return [f"{name} {clean(entry.title)}", f"{clean(entry.why)}{cost}", since, *command]


def _apply(github: GitHub, identity: Identity, operation: WriteBoard, clock: Clock) -> Issue:
    if operation.issue:
        return github.change_issue(operation.issue.number, IssueChange(body=operation.body))

    def find() -> Issue | None:
        return next((issue for issue in github.issues(state="open") if is_board(issue, identity)), None)

    made = send_once(lambda: github.create_issue(TITLE, operation.body, []), find, clock)
    if not identity.counts(made.author):
        withdrawn = IssueChange(body=_WITHDRAWN, state="closed", state_reason="not_planned")
        github.change_issue(made.number, withdrawn)
        raise Refused(
            f"The token writes as `{made.author}`, not as the given identity.",
            hint=f"Pass `--identity '{made.author}'`, or set the input `identity` of the action.",
        )
    return made


def _entry(operation: WriteBoard, status: OperationStatus) -> LedgerEntry:
    return LedgerEntry(operation.op, operation.key, status, str(operation.issue.number) if operation.issue else None)
