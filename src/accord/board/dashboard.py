"""The dashboard: one issue that shows the overview of its repository, edited in place, with boxes that start work."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from datetime import timedelta
from functools import partial

from accord.board.facts import read_repository
from accord.board.models import HEADINGS, WITH_COMMAND, Address, Entry, Overview, join_overviews
from accord.board.work import overview_of_work
from accord.core.errors import BrokenContract, Problem
from accord.core.findings import warning
from accord.engine.operations import ApplyOptions, OperationLog, skipped_if
from accord.engine.receipts import Receipt, report_errors
from accord.git.configuration import find_config
from accord.github.client import INSTALLATION_LOGIN, GitHub
from accord.github.comments import other_identity
from accord.github.limits import BODY_CHARS, SEARCH_LAG_SECONDS
from accord.github.models import Forbidden, Identity, Issue, IssueChange
from accord.results.status import require_writable
from accord.starts.config import read_config
from accord.starts.status import BOARD, hears_edits, is_dashboard, write_box
from accord.text.hidden import GUARD
from accord.text.markdown import as_code, table
from accord.text.markers import run_token, write_marker
from accord.text.sanitise import sanitise_cell

TITLE = "Status of the agents' work"
MOST_ROWS = 50
"""Rows of a section; fewer where the body would exceed GitHub's limit."""

START_WORKFLOW = ".github/workflows/accord-start.yml"
"""The workflow of the kit that starts what ticked boxes ask for."""

_FOLDED = ("waiting", "done")
_WITHDRAWN = "The account that wrote this issue is not the one that was named, so the issue is not kept up to date."
_FOOT = "Comment `/accord implement` on a ready item to start an agent, and `/accord review` on a pull request."
_FOOT_OF_BOXES = (
    "People with write access start agents here: tick a box, or comment a command with the number of the item, such as "
    "`/accord implement #12`. This issue is written again after each start; other edits of it are lost."
)
_LABELS = {"implement": "Start", "review": "Review", "retry": "Retry", "ready": "Mark as ready"}

_REFERENCE = re.compile(r"(?<![\w/\\])\\?#([1-9][0-9]{0,14})(?!\w)")
_ANY_REFERENCE = re.compile(r"#(?=\d)|(?<=\bGH-)(?=\d)", re.IGNORECASE)
_ISSUES_BESIDE = "../issues"
"""The issues of the repository, seen from one of them. GitHub records no mention for a link that names no host."""


def show_dashboard(
    github: GitHub, address: Address, period: timedelta, options: ApplyOptions
) -> tuple[Receipt, Overview | None]:
    """Write the overview into the dashboard's issue; also return it, None where it cannot be read.

    Raises no Problem: the receipt has it. The issue is written only where it changes.
    """
    receipt = Receipt("board", options.repository, "")
    overview = None
    with report_errors(github, receipt):
        identity = github.identity()
        require_writable(github, identity)
        facts = read_repository(github, address, period, identity)
        overview = join_overviews(overview_of_work(facts))
        boards = facts.boards or closed_boards(github, options.repository, facts.identity)

        def clean(text: str) -> str:
            return sanitise_cell(text, secrets=options.redact, policy=options.policy)

        token = run_token(options.repository, BOARD)
        body = board_body(overview, clean, token=token, has_boxes=_can_start(github, identity))
        _write(github, boards, body, identity, receipt, options)
    return receipt, overview


def _can_start(github: GitHub, identity: Identity) -> bool:
    """Return whether a ticked box starts anything: by the kit's workflow, whose token must have written the box."""
    if identity.login != INSTALLATION_LOGIN:
        return False
    branch = github.repository().default_branch
    try:
        is_on = read_config(find_config(lambda path: github.find_file(path, branch))).starts.dashboard
        return is_on and hears_edits(github.find_file(START_WORKFLOW, branch))
    except (BrokenContract, Forbidden):  # nothing starts with a broken configuration; `accord doctor` shows the fault
        return False


def closed_boards(github: GitHub, repository: str, identity: Identity) -> tuple[Issue, ...]:
    """Find dashboards that a person closed: by search and, for the minutes that its index lacks, in a listing.

    Where the search proves nothing, as on Enterprise Server, all closed issues are listed.
    """
    search = github.search(run_token(repository, BOARD))
    lately = github.server_time() - timedelta(seconds=SEARCH_LAG_SECONDS)
    listed = github.closed_issues(lately) if search.is_complete else github.issues(state="closed")
    return tuple(issue for issue in (*search.issues, *listed) if is_dashboard(issue, identity))


def board_body(
    overview: Overview,
    clean: Callable[[str], str],
    issues: str = _ISSUES_BESIDE,
    *,
    token: str = "",
    has_boxes: bool = False,
    most: int = MOST_ROWS,
) -> str:
    """Return the body of the dashboard; ``clean`` makes untrusted text fit for a table's cell. Pure.

    ``issues`` is the address of the repository's issues, as seen from the page. ``token`` is the word by which the
    issue is found again; a step's summary has none. ``has_boxes``: entries that can be started have a box. Each section
    has ``most`` rows, or fewer if the body exceeds GitHub's limit.
    """

    def render(text: str) -> str:
        """Link references by hand, so that GitHub finds none: it would record a mention of each. Others stay text."""
        linked = _REFERENCE.sub(lambda found: rf"[\#{found[1]}]({issues}/{found[1]})", clean(text))
        return _ANY_REFERENCE.sub(lambda found: f"{found[0]}{GUARD}", linked)

    sections = overview.sections()
    parts = [
        _section(name, entries, render, has_boxes=has_boxes, most=most) for name, entries in sections.items() if entries
    ]
    if not overview.needs_you:
        parts.insert(0, "### Nothing needs you")
    notes = [f"> {render(note)}" for note in overview.notes]
    marker = [write_marker(BOARD, run=token)] if token else []
    body = "\n\n".join([*parts, *notes, _FOOT_OF_BOXES if has_boxes else _FOOT, *marker])
    if len(body) <= BODY_CHARS or most == 1:
        return body
    return board_body(overview, clean, issues, token=token, has_boxes=has_boxes, most=most // 2)


def _section(name: str, entries: Sequence[Entry], render: Callable[[str], str], *, has_boxes: bool, most: int) -> str:
    heading = f"{HEADINGS[name]} ({len(entries)})"
    first = entries[:most]
    boxes = [_box(entry, render) for entry in first if has_boxes and entry.start]
    head = ["What", "Why", "Since (UTC)", *(["Type"] if name in WITH_COMMAND else [])]
    rows = [_row(entry, render, has_command=name in WITH_COMMAND) for entry in first if not (has_boxes and entry.start)]
    rest = f"and {len(entries) - most} more" if len(entries) > most else ""
    content = "\n\n".join(filter(None, [table(head, rows) if rows else "", "\n".join(boxes), rest]))
    if name in _FOLDED:
        return f"<details><summary>{heading}</summary>\n\n{content}\n\n</details>"
    return f"### {heading}\n\n{content}"


def _box(entry: Entry, render: Callable[[str], str]) -> str:
    """Return the line of an entry with a box: GitHub lets no one tick a box in a table."""
    since = f" Since {entry.since:%Y-%m-%d %H:%M} UTC." if entry.since else ""
    what = f"**{_LABELS[entry.start]}** {render(entry.id)} {render(entry.title)}: {render(entry.why)}"
    return f"{write_box(int(entry.id.removeprefix('#')), entry.start)} {what}{_cost(entry, render)}{since}"  # type: ignore[arg-type]


def _row(entry: Entry, render: Callable[[str], str], *, has_command: bool) -> list[str]:
    since = entry.since.strftime("%Y-%m-%d %H:%M") if entry.since else ""
    command = [as_code(entry.command) if entry.command else ""] if has_command else []
    return [
        f"{render(entry.id)} {render(entry.title)}",
        f"{render(entry.why)}{_cost(entry, render)}",
        since,
        *command,
    ]


def _cost(entry: Entry, render: Callable[[str], str]) -> str:
    return f" ({render(entry.cost)})" if entry.cost else ""


def _write(
    github: GitHub, boards: Sequence[Issue], body: str, identity: Identity, receipt: Receipt, options: ApplyOptions
) -> None:
    """Write into the oldest dashboard, an open one first, or into a new issue; fill the receipt.

    Nothing is written where the body is the same, or where a person closed the issue. A new issue is taken back where
    another account than the named one wrote it: no run would find it again.
    """
    issue = min(boards, key=lambda issue: (not issue.is_open, issue.number), default=None)
    if issue:
        receipt.details = _details(issue)
    if issue and not issue.is_open:
        message = f"The dashboard #{issue.number} is closed, so it was not written."
        receipt.findings.append(warning("board-closed", message, hint="Reopen it, or turn the workflow off."))
    found = skipped_if(issue is not None and (issue.body.replace("\r\n", "\n") == body or not issue.is_open))
    key, number = (f"#{issue.number}", issue.number) if issue else ("new", 0)
    log = OperationLog(options.is_dry_run)
    error: Problem | None = None

    def find() -> Issue | None:
        return next((issue for issue in github.issues(state="open") if is_dashboard(issue, identity)), None)

    def send() -> Issue:
        if issue:
            return github.change_issue(issue.number, IssueChange(body=body))
        return github.send_once(lambda: github.create_issue(TITLE, body, []), find)

    try:
        made = log.write("write-board", key, send, number=number, found=found)
        receipt.details = _details(made) if made else receipt.details
        if made and not identity.counts(made.author):
            withdrawn = IssueChange(body=_WITHDRAWN, state="closed", state_reason="not_planned")
            withdraw = partial(github.change_issue, made.number, withdrawn)
            log.write("withdraw-board", f"#{made.number}", withdraw, number=made.number)
            error = other_identity(made.author)
    except Problem as problem:
        error = problem
    receipt.end(log.entries, error, is_dry_run=options.is_dry_run)


def _details(issue: Issue) -> dict[str, dict[str, str]]:
    return {"board": {"id": str(issue.number), "url": issue.url}}
