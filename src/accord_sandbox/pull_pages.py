"""The pages of pull requests: the list, and one with its reviews and its diff."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from accord_sandbox import check_states, diffs

if TYPE_CHECKING:
    from accord_sandbox.bare import BareRepository
    from accord_sandbox.database import Row
    from accord_sandbox.diffs import FileDiff, Hunk, Line
    from accord_sandbox.pages import Look

MOST_ROWS = 3000
"""How many lines of a diff a page shows; the files after that are listed without."""

_VERDICTS = {
    "APPROVED": "approved",
    "CHANGES_REQUESTED": "requested changes",
    "COMMENTED": "reviewed",
    "DISMISSED": "reviewed, and was dismissed",
    "PENDING": "has not submitted this review yet",
}
_STANDING = {"APPROVED": "approved", "CHANGES_REQUESTED": "changes requested"}


@dataclass
class _ShownFile:
    """One file of the diff on the page. ``rows`` is None where the file is too much to show."""

    change: FileDiff
    head: list[Row] = field(default_factory=list)
    rows: list[tuple[Hunk | None, Line | None, list[Row]]] | None = None


def list_context(look: Look, repository: Row, state: str) -> dict[str, Any]:
    """Return what the list of pull requests shows."""
    rows = look.all(
        "SELECT issues.*, pulls.*, users.login, (SELECT count(*) FROM comments WHERE issue_id = issues.id)"
        " + (SELECT count(*) FROM review_comments WHERE issue_id = issues.id) AS comment_count"
        " FROM pulls JOIN issues ON issues.id = pulls.issue_id JOIN users ON users.id = author_id"
        " WHERE repository_id = ? AND issues.state = ? ORDER BY number DESC",
        repository["id"],
        state,
    )
    items = [
        {"row": row, "labels": look.labels(row["id"]), "standing": _standing(look, row["id"]), "mark": pull_mark(row)}
        for row in rows
    ]
    return {"state": state, "items": items}


def pull_context(look: Look, bare: BareRepository, pull: Row) -> dict[str, Any]:
    """Return what the page of a pull request shows besides its conversation."""
    changes = diffs.pull_diff(bare, pull["base_sha"], pull["head_sha"])
    comments = look.all(
        "SELECT review_comments.*, login, reviews.state AS review_state FROM review_comments"
        " JOIN users ON users.id = review_comments.author_id JOIN reviews ON reviews.id = review_id"
        " WHERE review_comments.issue_id = ? ORDER BY review_comments.id",
        pull["issue_id"],
    )
    start = diffs.fork_point(bare, pull["base_sha"], pull["head_sha"])
    shown = _shown_files(changes, comments)
    here = {comment["id"] for file in shown for comment in _shown_comments(file)}
    runs = check_states.outcomes(look.db, pull["repository_id"], pull["head_sha"])
    return {
        "pull": pull,
        "mark": pull_mark(pull),
        "reviews": _shown_reviews(look, pull["issue_id"], comments),
        "files": shown,
        "outdated": [comment for comment in comments if comment["id"] not in here],
        "additions": sum(change.additions for change in changes),
        "deletions": sum(change.deletions for change in changes),
        "commit_count": int(bare.text("rev-list", "--count", f"{start}..{pull['head_sha']}")),
        "requested": look.all(
            "SELECT login FROM review_requests JOIN users ON users.id = user_id WHERE issue_id = ?", pull["issue_id"]
        ),
        "checks": sorted(runs.items()),
    }


def pull_mark(pull: Row) -> str:
    """Return the one word for what has become of a pull request: open, draft, merged or closed."""
    if pull["merged_at"] is not None:
        return "merged"
    if pull["state"] == "closed":
        return "closed"
    return "draft" if pull["draft"] else "open"


def _standing(look: Look, issue_id: int) -> str:
    """Return the weightiest of the last verdicts, one a reviewer; nothing without any."""
    rows = look.all(
        "SELECT author_id, state FROM reviews WHERE issue_id = ? AND state IN ('APPROVED', 'CHANGES_REQUESTED')"
        " ORDER BY id",
        issue_id,
    )
    verdicts = {row["author_id"]: row["state"] for row in rows}.values()
    return next((words for state, words in reversed(_STANDING.items()) if state in verdicts), "")


def _shown_reviews(look: Look, issue_id: int, comments: list[Row]) -> list[dict[str, Any]]:
    """Return the reviews that say something of their own; the wrapping of a single comment does not."""
    counts: dict[int, int] = defaultdict(int)
    for comment in comments:
        counts[comment["review_id"]] += 1
    rows = look.all(
        "SELECT reviews.*, login FROM reviews JOIN users ON users.id = author_id"
        " WHERE issue_id = ? ORDER BY reviews.id",
        issue_id,
    )
    return [
        {"row": row, "verdict": _VERDICTS[row["state"]], "count": counts[row["id"]]}
        for row in rows
        if row["state"] != "COMMENTED" or row["body"] or counts[row["id"]] > 1
    ]


def _shown_files(changes: tuple[FileDiff, ...], comments: list[Row]) -> list[_ShownFile]:
    under: dict[tuple[str, str, int], list[Row]] = defaultdict(list)
    heads: dict[str, list[Row]] = defaultdict(list)
    for comment in comments:
        if comment["subject_type"] == "file":
            heads[comment["path"]].append(comment)
        elif comment["line"] is not None:
            under[comment["path"], comment["side"], comment["line"]].append(comment)
    shown, left = [], MOST_ROWS
    for change in changes:
        size = sum(len(hunk.lines) for hunk in change.hunks)
        file = _ShownFile(change, heads[change.path])
        if change.hunks and size <= left:
            file.rows, left = _diff_rows(change, under), left - size
        shown.append(file)
    return shown


def _diff_rows(
    change: FileDiff, under: dict[tuple[str, str, int], list[Row]]
) -> list[tuple[Hunk | None, Line | None, list[Row]]]:
    rows: list[tuple[Hunk | None, Line | None, list[Row]]] = []
    for hunk in change.hunks:
        rows.append((hunk, None, []))
        for line in hunk.lines:
            places = (("LEFT", line.old), ("RIGHT", line.new))
            found = [
                comment
                for side, number in places
                if number is not None
                for comment in under.get((change.path, side, number), [])
            ]
            rows.append((None, line, found))
    return rows


def _shown_comments(file: _ShownFile) -> list[Row]:
    return [*file.head, *(comment for _, _, found in file.rows or [] for comment in found)]
