"""The part of a seed about work in progress: checks and statuses, review threads, workflow runs, labels over time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from accord.core.errors import WrongUsage
from accord_sandbox import events, pull_rows, review_threads, reviews
from accord_sandbox.access import Actor
from accord_sandbox.calls import Call
from accord_sandbox.checks import CONCLUSIONS
from accord_sandbox.checks import CHECK_STATUSES as PROGRESS
from accord_sandbox.database import next_id
from accord_sandbox.positions import NotInDiff, LineRange
from accord_sandbox.seed_rows import BOT, MAINTAINER, account, created_seconds
from accord_sandbox.settings import SandboxSettings
from accord_sandbox.statuses import STATUS_STATES
from accord_sandbox.workflow_runs import save_job, save_run

if TYPE_CHECKING:
    from collections.abc import Mapping

    from accord_sandbox.bare import GitStorage
    from accord_sandbox.database import Connection, Row

_TEXTS = dict.fromkeys(("author", "created_at"), str)
RUN_FIELDS = {**dict.fromkeys(("name", "path", "event", "status", "conclusion", "head"), str), "id": int}
FIELDS: Mapping[str, tuple[Mapping[str, Any], tuple[str, ...]]] = {
    "label_events": ({**_TEXTS, "label": str, "change": str}, ("label", "change")),
    "checks": (
        {
            **dict.fromkeys(("name", "app", "status", "conclusion", "title", "summary", "log", "created_at"), str),
            "run": int,
        },
        ("name",),
    ),
    "statuses": ({**_TEXTS, "context": str, "state": str, "description": str}, ("context", "state")),
    "threads": ({"path": str, "line": int, "resolved": bool, "comments": list}, ("path", "comments")),
}
"""What an issue may hold of each kind, and what of it must be there."""

WORDS = {"change": ("added", "removed"), "conclusion": CONCLUSIONS, "status": PROGRESS, "state": STATUS_STATES}


def plant(db: Connection, bares: GitStorage, repository: Row, issue_id: int, entry: Mapping[str, Any], now: float) -> None:
    """Give a pull request that was just planted its checks, statuses and threads."""
    sha = db.execute("SELECT head_sha FROM pulls WHERE issue_id = ?", (issue_id,)).fetchone()[0]
    for check in entry.get("checks", []):
        _plant_check(db, repository["id"], sha, entry["head"], check, created_seconds(check, now))
    for status in entry.get("statuses", []):
        author = account(db, status.get("author", MAINTAINER), now)
        values = (status["state"], status["context"], status.get("description"), None, created_seconds(status, now))
        db.execute(
            "INSERT INTO statuses VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
            (next_id(db), repository["id"], author, sha, *values),
        )
    for thread in entry.get("threads", []):
        _plant_thread(db, bares, repository, issue_id, thread, now)


def plant_run(db: Connection, bares: GitStorage, repository: Row, entry: Mapping[str, Any], now: float) -> None:
    """Write down a workflow run; ``head`` is the branch that it ran for."""
    branch = entry.get("head", repository["default_branch"])
    sha = bares.open(repository["full_name"]).branch(branch) or ""
    save_run(db, repository["id"], entry["id"], {**entry, "head_branch": branch, "head_sha": sha}, now)


def plant_label_event(db: Connection, issue_id: int, actor: int, entry: Mapping[str, Any], at: float) -> None:
    """Keep that a label was put on or taken off, whatever labels there are now."""
    kind = {"added": "labeled", "removed": "unlabeled"}[entry["change"]]
    events.insert_event(db, issue_id, kind, actor, at, {"label": {"name": entry["label"], "color": "ededed"}})


def _plant_check(
    db: Connection, repository_id: int, sha: str, branch: str, check: Mapping[str, Any], at: float
) -> None:
    identifier = next_id(db)
    conclusion = check.get("conclusion")
    status = check.get("status", "completed" if conclusion else "queued")
    values = (account(db, check.get("app", BOT), at), sha, check["name"], status, conclusion)
    db.execute(
        "INSERT INTO check_runs (id, repository_id, app_id, head_sha, name, status, conclusion, title, summary,"
        " started_at, completed_at) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (
            identifier,
            repository_id,
            *values,
            check.get("title"),
            check.get("summary"),
            at,
            at if status == "completed" else None,
        ),
    )
    if "run" in check:
        head = {"head_sha": sha, "head_branch": branch, "status": status, "conclusion": conclusion}
        save_run(db, repository_id, check["run"], head, at)
        save_job(db, identifier, check["run"], check.get("log"))


def _plant_thread(
    db: Connection, bares: GitStorage, repository: Row, issue_id: int, thread: Mapping[str, Any], now: float
) -> None:
    first: Row | None = None
    for comment in thread["comments"]:
        call = _call(db, bares, repository, comment, now)
        pull = pull_rows.pull_by_id(call, issue_id)
        review = reviews.insert_review(call, pull, "", pull["head_sha"], "COMMENTED")
        if first is not None:
            review_threads.insert_reply(call, pull, review, first, comment["body"])
            continue
        identifier = _begin(call, pull, review, thread, comment["body"])
        first = db.execute("SELECT * FROM review_comments WHERE id = ?", (identifier,)).fetchone()
        if thread.get("resolved"):
            db.execute("INSERT INTO resolved_threads VALUES (?)", (identifier,))


def _begin(call: Call, pull: Row, review: int, thread: Mapping[str, Any], body: str) -> int:
    spot = LineRange("RIGHT", thread["line"]) if "line" in thread else None
    try:
        anchor = review_threads.anchor_remark(
            call, pull, review_threads.Remark(thread["path"], body, spot), pull["head_sha"]
        )
    except NotInDiff as off:
        raise WrongUsage(
            f"The seed is wrong: a thread on {thread['path']} has no place in the pull request ({off.field} {off}).",
            hint="Name a file and a line that the pull request changes.",
        ) from off
    return review_threads.insert_review_comment(call, pull, review, anchor, body)


def _call(db: Connection, bares: GitStorage, repository: Row, comment: Mapping[str, Any], now: float) -> Call:
    """Return the request by which the author of a comment would have made it."""
    owner, _, name = repository["full_name"].partition("/")
    login = comment.get("author", MAINTAINER)
    actor = Actor(account(db, login, now), login, "", "user", {}, None)
    at = created_seconds(comment, now)
    params = {"owner": owner, "repo": name}
    return Call(db, SandboxSettings(), at, "", "", "", {}, bares, actor=actor, params=params)
