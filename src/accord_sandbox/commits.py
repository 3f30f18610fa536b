"""Commits: lists, comparisons, their payloads, and the check runs and statuses on them.

Docs: https://docs.github.com/rest/commits/commits, …/commits/statuses, …/checks/runs. Only apps create check runs.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

from accord_sandbox import payloads
from accord_sandbox.calls import AccessLevel, Call, Route
from accord_sandbox.database import Row, SqlConnection, insert
from accord_sandbox.diffs import diff_between, file_payload
from accord_sandbox.git_storage import (
    GITHUB_SIGNATURE,
    HEADS,
    BareRepository,
    GitObject,
    Signature,
    count_between,
    signed_text,
)
from accord_sandbox.responses import ApiResponse, Fields, Refusal, created, not_found, schema_violation

GITHUB = ("GitHub", "noreply@github.com")
"""The committer of commits made over the API."""

MOST_COMPARED_COMMITS = 250
MOST_COMPARED_FILES = 300
_PERSON = re.compile(r"(?P<name>[^<]*)<(?P<email>[^>]*)>(?: (?P<seconds>[0-9]+))?")
_NOREPLY = re.compile(r"\A(?:[0-9]+\+)?(?P<login>[^@]+)@users\.noreply\.github\.com")


@dataclass(frozen=True)
class CommitRecord:
    """The fields of a commit."""

    sha: str
    tree: str
    parents: tuple[str, ...]
    author: Signature
    committer: Signature
    message: str
    signed: str = ""
    """The payload of GitHub's signature; empty without one."""


def read_commit(bare: BareRepository, sha: str) -> CommitRecord:
    """Return the commit with this full id."""
    (found,) = bare.objects(sha)
    assert found is not None  # noqa: S101 (the caller has its id from git)
    return _record(found)


def read_commits(bare: BareRepository, *revisions: str) -> list[CommitRecord]:
    """Return commits as ``git rev-list`` selects and orders them."""
    commits = bare.git.line("rev-list", *revisions).split()
    return [_record(found) for found in bare.objects(*commits) if found is not None]


def noreply_signature(user: Row, now: float) -> Signature:
    """Return GitHub's signature for a user with a private address."""
    return Signature(user["login"], f"{user['id']}+{user['login']}@users.noreply.github.com", now)


def author_signature(call: Call) -> Signature:
    """Return the caller's signature for a commit made now."""
    return noreply_signature(call.row("users", call.user.user_id), call.now)


@Route("GET", "commits", "commits/commits#list-commits")
def _list_commits(call: Call) -> ApiResponse:
    start = readable_bare(call).commit_id(call.query.get("sha") or call.repository["default_branch"])
    if start is None:
        check_not_empty(call)
        raise not_found()
    return call.list_response(read_commits(call.bare, start), lambda commit: commit_payload(call, commit))


@Route("GET", "compare/{basehead:path}", "commits/commits#compare-two-commits")
def _compare(call: Call) -> ApiResponse:
    base_name, dots, head_name = call.params["basehead"].partition("...")
    if not dots:
        raise not_found()
    base, head = (find_commit(call, name.rpartition(":")[2]) for name in (base_name, head_name))
    fork = call.bare.merge_base(base.sha, head.sha)
    if fork is None:
        raise Refusal(404, f"No common ancestor between {base_name} and {head_name}.")
    ahead, behind = (count_between(call.bare, *pair) for pair in ((base.sha, head.sha), (head.sha, base.sha)))
    found = read_commits(call.bare, "--reverse", "--topo-order", f"{base.sha}..{head.sha}")[:MOST_COMPARED_COMMITS]
    changes = diff_between(call.bare, fork, head.sha)[:MOST_COMPARED_FILES]
    end = f"/compare/{quote(base_name)}...{quote(head_name)}"
    page = f"{call.repository_page}{end}"
    status = "diverged" if ahead and behind else "ahead" if ahead else "behind" if behind else "identical"
    document = {
        "url": f"{call.repository_url}{end}",
        **dict.fromkeys(("html_url", "permalink_url"), page),
        "diff_url": f"{page}.diff",
        "patch_url": f"{page}.patch",
        "base_commit": commit_payload(call, base),
        "merge_base_commit": commit_payload(call, find_commit(call, fork)),
        "status": status,
        "ahead_by": ahead,
        "behind_by": behind,
        "total_commits": ahead,
        "commits": [commit_payload(call, commit) for commit in found],
        "files": [file_payload(call, change, head.sha) for change in changes],
    }
    return ApiResponse(200, document)


def readable_bare(call: Call) -> BareRepository:
    """Return the repository's git; refuse tokens that may not read its contents."""
    call.require_read("contents")
    return call.bare


def check_not_empty(call: Call) -> None:
    """Refuse an empty git repository."""
    if not call.bare.refs(HEADS):
        raise Refusal(409, "Git Repository is empty.")


def find_commit(call: Call, name: str) -> CommitRecord:
    """Return the commit of a name; like GitHub, answer 422 for an unknown sha and 404 for an unknown ref."""
    sha = readable_bare(call).commit_id(name)
    if sha is not None:
        return read_commit(call.bare, sha)
    check_not_empty(call)
    if re.fullmatch(r"[0-9a-f]{40}", name) or "/" not in call.path.partition("/commits/")[2]:
        raise Refusal(422, f"No commit found for SHA: {name}")
    raise not_found()


def git_commit_payload(call: Call, commit: CommitRecord) -> payloads.Payload:
    """Return a ``git-commit``."""
    url, page = f"{call.repository_url}/git", f"{call.repository_page}/commit"
    people = {"author": commit.author, "committer": commit.committer}
    parents = [{"sha": sha, "url": f"{url}/commits/{sha}", "html_url": f"{page}/{sha}"} for sha in commit.parents]
    names, verified_at = ("signature", "payload", "verified_at"), payloads.timestamp_of(commit.committer.seconds)
    values = (GITHUB_SIGNATURE, commit.signed, verified_at) if commit.signed else (None, None, None)
    signed = dict(zip(names, values, strict=True))
    return {
        "sha": commit.sha,
        "node_id": payloads.node_id("C", int(commit.sha[:12], 16)),
        "url": f"{url}/commits/{commit.sha}",
        "html_url": f"{page}/{commit.sha}",
        **{
            role: {"name": person.name, "email": person.email, "date": payloads.timestamp_of(person.seconds)}
            for role, person in people.items()
        },
        "tree": {"sha": commit.tree, "url": f"{url}/trees/{commit.tree}"},
        "message": commit.message,
        "parents": parents,
        "verification": {"verified": bool(commit.signed), "reason": "valid" if commit.signed else "unsigned", **signed},
    }


def commit_payload(call: Call, commit: CommitRecord) -> payloads.Payload:
    """Return a ``commit``."""
    inner, url = git_commit_payload(call, commit), f"{call.repository_url}/commits"
    return {
        **{name: inner.pop(name) for name in ("sha", "node_id", "html_url")},
        "parents": [{**parent, "url": f"{url}/{parent['sha']}"} for parent in inner.pop("parents")],
        "commit": {**inner, "comment_count": 0},
        "url": f"{url}/{commit.sha}",
        "comments_url": f"{url}/{commit.sha}/comments",
        "author": _account(call, commit.author),
        "committer": _account(call, commit.committer),
    }


def _account(call: Call, signed: Signature) -> payloads.Payload | None:
    found = _NOREPLY.fullmatch(signed.email)
    row = call.fetch("SELECT * FROM users WHERE login = ?", found["login"]) if found else None
    return None if row is None else payloads.user(call, row)


def _record(commit: GitObject) -> CommitRecord:
    head, _, message = commit.content.partition(b"\n\n")
    headers = [line.partition(b" ")[::2] for line in head.split(b"\n")]
    first = dict(reversed(headers))
    author, committer = (_signature(first[role]) for role in (b"author", b"committer"))
    parents = tuple(sha.decode() for name, sha in headers if name == b"parent")
    signed = signed_text(commit)
    text = message.decode(errors="replace").rstrip("\n")
    return CommitRecord(commit.sha, first[b"tree"].decode(), parents, author, committer, text, signed)


def _signature(line: bytes) -> Signature:
    found = _PERSON.match(line.decode(errors="replace"))
    assert found is not None  # noqa: S101 (git writes and receives no other)
    return Signature(found["name"].strip(), found["email"], float(found["seconds"] or 0))


CHECK_STATUSES = ("queued", "in_progress", "completed", "waiting", "requested", "pending")
CONCLUSIONS = ("action_required", "cancelled", "failure", "neutral", "success", "skipped", "stale", "timed_out")
SHOWN_CONCLUSIONS = (*CONCLUSIONS, "startup_failure")
"""The conclusions that GitHub's API shows; the last one is GitHub's own (GraphQL API, "CheckConclusionState")."""

STATUS_STATES = ("error", "failure", "pending", "success")

_PASSED = ("success", "neutral", "skipped")


@Route("POST", "check-runs", "checks/runs#create-a-check-run")
def create_check_run(call: Call) -> ApiResponse:
    """Create a check run; a conclusion completes it, and completing it needs a conclusion."""
    call.check_writable()
    if call.user.kind == "user":
        raise Refusal(403, "You must authenticate via a GitHub App.")
    call.require("checks", AccessLevel.WRITE)
    fields = call.fields
    sha = find_commit(call, fields.value_of("head_sha")).sha
    status, conclusion = fields.choice("status", CHECK_STATUSES), fields.choice("conclusion", CONCLUSIONS)
    if status == "completed" and conclusion is None:
        raise schema_violation('"conclusion" wasn\'t supplied.')
    values: dict[str, Any] = {
        "repository_id": call.repository["id"],
        "app_id": call.user.user_id,
        "head_sha": sha,
        "name": fields.value_of("name"),
        **{name: fields.get(name) for name in ("details_url", "external_id")},
        "status": "completed" if conclusion else status or "queued",
        "conclusion": conclusion,
        "started_at": call.now,
        "completed_at": call.now if conclusion else None,
    }
    if "output" in fields:
        output = Fields(fields.value_of("output", dict))
        values |= {"summary": output.value_of("summary"), **{name: output.get(name) for name in ("title", "text")}}
    return created(_check_payload(call, call.row("check_runs", insert(call.db, "check_runs", values))))


@Route("GET", "commits/{ref:path}/check-runs", "checks/runs#list-check-runs-for-a-git-reference")
def list_for_ref(call: Call) -> ApiResponse:
    """List the newest check run of each name and app."""
    call.require_read("checks")
    sha = find_commit(call, call.params["ref"]).sha
    rows = _latest_runs(call.db, call.repository["id"], sha)
    rows = [row for row in rows if call.query.get("check_name") in (None, row["name"])]
    return call.list_response(rows, lambda row: _check_payload(call, row), "check_runs")


@Route("POST", "statuses/{sha}", "commits/statuses#create-a-commit-status")
def _create_status(call: Call) -> ApiResponse:
    call.require("statuses", AccessLevel.WRITE)
    state = call.fields.choice("state", STATUS_STATES, is_required=True)
    sha = find_commit(call, call.params["sha"]).sha
    context = call.fields.get("context") or "default"
    texts = {name: call.fields.get(name) for name in ("description", "target_url")}
    values = {"sha": sha, "state": state, "context": context, **texts, "created_at": call.now}
    values |= {"repository_id": call.repository["id"], "creator_id": call.user.user_id}
    row = call.row("statuses", insert(call.db, "statuses", values))
    return created({**_status_payload(call, row), "creator": payloads.user_by_id(call, row["creator_id"])})


@Route("GET", "commits/{ref:path}/status", "commits/statuses#get-the-combined-status-for-a-specific-reference")
def get_combined_status(call: Call) -> ApiResponse:
    """Return the newest status of each context; check runs do not count here."""
    call.require_read("statuses")
    sha = find_commit(call, call.params["ref"]).sha
    rows = _latest_statuses(call.db, call.repository["id"], sha)
    states = {row["state"] for row in rows}
    url = f"{call.repository_url}/commits/{sha}"
    document = {
        "state": "failure" if states & {"error", "failure"} else "success" if states == {"success"} else "pending",
        "sha": sha,
        "total_count": len(rows),
        "statuses": [_status_payload(call, row) for row in call.page.cut(rows)],
        "repository": payloads.repository_summary(call, call.repository),
        "commit_url": url,
        "url": f"{url}/status",
    }
    return ApiResponse(200, document, call.links(len(rows)))


def outcomes(db: SqlConnection, repository_id: int, sha: str) -> dict[str, str]:
    """Return success, failure or pending for each status context and check run."""
    statuses = _latest_statuses(db, repository_id, sha)
    found = {row["context"]: "failure" if row["state"] == "error" else row["state"] for row in statuses}
    for run in _latest_runs(db, repository_id, sha):
        passed = "success" if run["conclusion"] in _PASSED else "failure"
        found[run["name"]] = passed if run["status"] == "completed" else "pending"
    return found


def _latest_statuses(db: SqlConnection, repository_id: int, sha: str) -> list[Row]:
    return _latest(db, "statuses WHERE repository_id = ? AND sha = ? GROUP BY context", repository_id, sha)


def _latest_runs(db: SqlConnection, repository_id: int, sha: str) -> list[Row]:
    return _latest(db, "check_runs WHERE repository_id = ? AND head_sha = ? GROUP BY name, app_id", repository_id, sha)


def _latest(db: SqlConnection, groups: str, *values: Any) -> list[Row]:
    """Return the newest row of each group, the newest first."""
    table = groups.partition(" ")[0]
    statement = f"SELECT * FROM {table} WHERE id IN (SELECT max(id) FROM {groups}) ORDER BY id DESC"
    return db.execute(statement, values).fetchall()


def _check_payload(call: Call, row: Row) -> payloads.Payload:
    url, page = f"{call.repository_url}/check-runs/{row['id']}", call.repository_page
    job_page = f"{page}/actions/runs/{row['run_id']}/job/{row['id']}" if row["run_id"] else None
    return {
        **{name: row[name] for name in ("id", "name", "head_sha", "status", "conclusion")},
        "node_id": payloads.node_id("CR", row["id"]),
        "external_id": row["external_id"] or "",
        "url": url,
        "html_url": f"{page}/runs/{row['id']}",
        "details_url": job_page or row["details_url"],
        "started_at": payloads.timestamp_of(row["started_at"]),
        "completed_at": payloads.timestamp_of(row["completed_at"]),
        "output": {
            **{name: row[name] for name in ("title", "summary", "text")},
            "annotations_count": 0,
            "annotations_url": f"{url}/annotations",
        },
        "check_suite": {"id": row["app_id"]},
        "app": _app_payload(call, row["app_id"]),
        "pull_requests": [],
    }


def _app_payload(call: Call, identifier: int) -> payloads.Payload:
    """Return an ``integration``: the app behind a ``[bot]`` account."""
    row = call.row("users", identifier)
    slug, created = row["login"].removesuffix("[bot]"), payloads.timestamp_of(row["created_at"])
    page = f"{call.web}/apps/{slug}"
    return {
        "id": identifier,
        "node_id": payloads.node_id("A", identifier),
        "owner": payloads.user(call, row),
        **dict.fromkeys(("slug", "name"), slug),
        **dict.fromkeys(("external_url", "html_url"), page),
        **dict.fromkeys(("created_at", "updated_at"), created),
        "description": "",
        "permissions": {},
        "events": [],
    }


def _status_payload(call: Call, row: Row) -> payloads.Payload:
    return {
        **{name: row[name] for name in ("id", "state", "description", "target_url", "context")},
        "url": f"{call.repository_url}/statuses/{row['sha']}",
        "avatar_url": f"{call.web}/_static/avatar.svg",
        "node_id": payloads.node_id("SC", row["id"]),
        **dict.fromkeys(("created_at", "updated_at"), payloads.timestamp_of(row["created_at"])),
    }
