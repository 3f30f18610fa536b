"""What every part of a seed needs: the account behind a login, made when it is not there, and moments."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from accord.core.errors import WrongUsage
from accord_sandbox import comments, pull_state, review_threads, reviews
from accord_sandbox.calls import Actor, Call, SandboxSettings
from accord_sandbox.checks import CHECK_STATUSES as PROGRESS
from accord_sandbox.checks import CONCLUSIONS, STATUS_STATES
from accord_sandbox.commits import noreply_signature
from accord_sandbox.database import next_id
from accord_sandbox.diffs import LineRange, NotInDiff
from accord_sandbox.git_storage import DEFAULT_BRANCH, HEADS, GitFailed, valid_ref
from accord_sandbox.repositories import find_user
from accord_sandbox.workflow_runs import save_job, save_run

if TYPE_CHECKING:
    from collections.abc import Mapping

    from accord_sandbox.database import Connection, Row
    from accord_sandbox.git_storage import BareRepository, GitStorage, Signature


MAINTAINER = "maintainer"
BOT = "github-actions[bot]"


def account(db: Connection, login: str, now: float, kind: str = "User") -> int:
    """Return the id of an account; a login that ends with [bot] is a bot's."""
    row = find_user(db, login)
    if row is not None:
        return int(row["id"])
    identifier = next_id(db)
    kind = "Bot" if login.endswith("[bot]") else kind
    db.execute("INSERT INTO users VALUES (?, ?, ?, ?)", (identifier, login, kind, now))
    return identifier


def created_seconds(entry: Mapping[str, Any], default: float) -> float:
    """Return when something was made, in seconds since the epoch. Raises ValueError for what is no moment."""
    value = entry.get("created_at")
    if value is None:
        return default
    moment = datetime.fromisoformat(value)
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()


def plant_code(db: Connection, bares: GitStorage, row: Row, author: Row, entry: Mapping[str, Any], now: float) -> None:
    """Give a repository its history, its branches and their protection."""
    if any(name in entry for name in ("git", "files", "branches")):
        bare, start, parent = bares.open(row["full_name"]), DEFAULT_BRANCH, None
        if "git" in entry:
            start = _import(db, bare, row, entry["git"])
            parent = bare.branch(start)
        stream, signature = b"", noreply_signature(author, now)
        if "files" in entry:
            stream += _commit(start, entry["files"], signature, "Initial commit", parent)
        parent = f"{HEADS}{start}" if stream else parent
        for branch, files in entry.get("branches", {}).items():
            stream += _commit(branch, files, signature, f"Work on {branch}", parent)
        bare.run("fast-import", "--quiet", "--force", content=stream)
    for branch, rules in entry.get("protected", {}).items():
        db.execute("INSERT INTO protections VALUES (?, ?, ?)", (row["id"], branch, json.dumps(rules)))


def plant_pull(db: Connection, bares: GitStorage, row: Row, issue_id: int, entry: Mapping[str, Any]) -> None:
    """Make an issue that was just planted a pull request between two branches."""
    bare, base = bares.open(row["full_name"]), entry.get("base", DEFAULT_BRANCH)
    refs = bare.refs(HEADS)
    tips = {name: refs.get(HEADS + name) for name in (entry["head"], base)}
    for name, tip in tips.items():
        if tip is None:
            raise WrongUsage(
                f"The seed is wrong: {row['full_name']} has no branch {name} for its pull request.",
                hint="The format is described in accord_sandbox.seed.",
            )
    number = db.execute("SELECT number FROM issues WHERE id = ?", (issue_id,)).fetchone()[0]
    db.execute(
        "INSERT INTO pulls (issue_id, head_ref, head_sha, base_ref, base_sha, draft) VALUES (?, ?, ?, ?, ?, ?)",
        (issue_id, entry["head"], tips[entry["head"]], base, tips[base], entry.get("draft", False)),
    )
    bare.set_ref(f"refs/pull/{number}/head", str(tips[entry["head"]]))


def move_to_fork(db: Connection, bares: GitStorage, row: Row, issue_id: int, fork: Row) -> None:
    """Let a pull request that was just planted come from a fork: its branch is not in this repository any more."""
    head = db.execute("SELECT head_ref FROM pulls WHERE issue_id = ?", (issue_id,)).fetchone()[0]
    db.execute("UPDATE pulls SET fork_id = ? WHERE issue_id = ?", (fork["id"], issue_id))
    bares.open(row["full_name"]).drop_ref(HEADS + head)


def _import(db: Connection, bare: BareRepository, row: Row, source: str) -> str:
    """Take over all branches and tags of a repository, and return the name of its default branch."""
    try:
        bare.run("fetch", "--quiet", "--no-tags", source, "+refs/heads/*:refs/heads/*", "+refs/tags/*:refs/tags/*")
        listing = bare.text("ls-remote", "--symref", source, "HEAD")
    except GitFailed as error:
        raise WrongUsage(f"The seed is wrong: {source} cannot be read as a git repository: {error}.") from error
    branch = DEFAULT_BRANCH
    for line in listing.splitlines():
        if line.startswith(f"ref: {HEADS}"):
            branch = line.removeprefix(f"ref: {HEADS}").split("\t")[0]
    bare.run("symbolic-ref", "HEAD", f"{HEADS}{branch}")
    db.execute("UPDATE repositories SET default_branch = ? WHERE id = ?", (branch, row["id"]))
    return branch


def _commit(
    branch: str, files: Mapping[str, str | None], signature: Signature, message: str, parent: str | None
) -> bytes:
    """Return one commit for ``git fast-import``; a file without text is deleted."""
    ref = f"{HEADS}{branch}"
    if not valid_ref(ref):
        raise WrongUsage(f"The seed is wrong: {branch!r} is no name for a branch.")
    lines = [
        f"commit {ref}",
        f"committer {signature.name} <{signature.email}> {int(signature.moment)} +0000",
        f"data {len(message.encode())}\n{message}",
        *([f"from {parent}"] if parent else []),
    ]
    stream = "\n".join(lines).encode() + b"\n"
    for path, text in files.items():
        quoted = json.dumps(path, ensure_ascii=False)
        if text is None:
            stream += f"D {quoted}\n".encode()
            continue
        content = text.encode()
        stream += f"M 100644 inline {quoted}\ndata {len(content)}\n".encode() + content + b"\n"
    return stream


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


def plant(
    db: Connection, bares: GitStorage, repository: Row, issue_id: int, entry: Mapping[str, Any], now: float
) -> None:
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
    comments.insert_event(db, issue_id, kind, actor, at, {"label": {"name": entry["label"], "color": "ededed"}})


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
        pull = pull_state.pull_by_id(call, issue_id)
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
