"""What a local GitHub holds when it starts for the first time, and the file that says so.

A seed is YAML or JSON; every part may be left out::

    tokens:                              # besides the three built-in ones
      - token: t-1
        login: alice                     # the account is made when it is not there
        kind: fine-grained               # user (default) | fine-grained | installation
        permissions: {issues: write}     # not for kind user
        repositories: [octo/tools]       # left out: all that the account reaches
    repositories:
      - name: octo/tools                 # the first one is the home repository, unless --repo says otherwise
        description: Tools
        private: false
        archived: false
        has_issues: true
        default_labels: true             # GitHub's nine
        collaborators: {alice: triage}   # maintainer is admin everywhere
        files: {README.md: Hello}        # the first commit on main; left out: an empty git repository
        git: /path/to/repository         # or all branches and tags of another repository
        branches:                        # each with one commit on top of the default branch
          feature: {README.md: "Hello, world", old.txt: null}   # null deletes
        protected:                       # the rules as GitHub's PUT …/protection takes them
          main: {required_pull_request_reviews: {required_approving_review_count: 1}, enforce_admins: true}
        labels:
          - {name: "type: bug", color: d73a4a, description: Broken}
        issues:                          # numbered from 1 in this order
          - title: First
            body: Text
            labels: [bug]                # made when they are not there
            assignees: [maintainer]
            state: closed
            state_reason: not_planned
            author: alice                # default: maintainer
            created_at: 2026-01-01T00:00:00Z   # default: now
            locked: false
            pull_request: false          # true alone: shares the issues' numbers, but has no code
            head: feature                # a pull request between two branches that are there
            base: main
            fork: alice/tools            # the head is there; the fork is made when it is not there
            draft: false
            blocked_by: [2]              # numbers in the same repository
            comments:
              - {author: alice, body: Me too, created_at: 2026-01-02T00:00:00Z}
            label_events:                # what happened to its labels before
              - {label: needs-human, change: removed, author: alice, created_at: 2026-01-02T00:00:00Z}
            checks:                      # of a pull request's head; with run, jobs of GitHub Actions with their logs
              - {name: tests, conclusion: failure, run: 7001, log: "FAILED test_one", app: "github-actions[bot]"}
              - {name: lint, status: in_progress, title: Lint, summary: Still at it}
            statuses:
              - {context: ci, state: success, description: Built, author: maintainer}
            threads:                     # review threads on lines that the pull request changes, or on whole files
              - path: README.md
                line: 1
                resolved: false
                comments: [{author: "reviewer[bot]", body: Typo, created_at: 2026-01-02T00:00:00Z}]
        workflow_runs:                   # pull requests are theirs by head_sha; a check with run makes its own
          - {id: 7002, name: CI, path: .github/workflows/ci.yml, event: push, status: in_progress, head: feature}
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from accord.core.errors import BrokenContract, WrongUsage
from accord.files.yaml import read_yaml
from accord_sandbox import database, labels, planting, repositories
from accord_sandbox.calls import TokenKind
from accord_sandbox.database import words
from accord_sandbox.issues import CLOSING_REASONS, NewIssue, insert_issue
from accord_sandbox.planting import BOT, MAINTAINER, account, created_seconds, move_to_fork, plant_code, plant_pull
from accord_sandbox.repositories import NewRepository, add_repository, find_repository

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from accord_sandbox.database import Connection, Row
    from accord_sandbox.git_storage import GitStorage

HOME = "accord/sandbox"
STRANGER = "stranger"
TOKEN = "accord-sandbox-token"  # noqa: S105 (opens nothing but this sandbox)
INSTALLATION_TOKEN = "accord-sandbox-installation-token"  # noqa: S105
STRANGER_TOKEN = "accord-sandbox-stranger-token"  # noqa: S105
INSTALLATION_PERMISSIONS = {
    **dict.fromkeys(("actions", "issues", "pull_requests", "contents", "checks", "statuses"), "write"),
    "metadata": "read",
}

_KINDS = {str: "a text (quote it)", int: "a number", bool: "true or false", list: "a list", dict: "an object"}
_TOKEN_FIELDS = {"token": str, "login": str, "kind": str, "permissions": dict, "repositories": list}
_REPOSITORY_FIELDS = {
    "name": str,
    "description": str,
    "private": bool,
    "archived": bool,
    "has_issues": bool,
    "default_labels": bool,
    "collaborators": dict,
    "files": dict,
    "git": str,
    "branches": dict,
    "protected": dict,
    "labels": list,
    "issues": list,
    "workflow_runs": list,
}
_LABEL_FIELDS = {"name": str, "color": str, "description": str}
_COMMENT_FIELDS = {"author": str, "body": str, "created_at": str}
_ISSUE_FIELDS = {
    "title": str,
    "body": str,
    "labels": list,
    "assignees": list,
    "state": str,
    "state_reason": str,
    "author": str,
    "created_at": str,
    "locked": bool,
    "pull_request": bool,
    "head": str,
    "base": str,
    "fork": str,
    "draft": bool,
    "blocked_by": list,
    "comments": list,
    "label_events": list,
    "checks": list,
    "statuses": list,
    "threads": list,
}


@dataclass(frozen=True)
class Seed:
    """A checked seed: plain dicts in the shapes of the module's description."""

    tokens: tuple[Mapping[str, Any], ...] = ()
    repositories: tuple[Mapping[str, Any], ...] = ()


def read(path: Path) -> Seed:
    """Read and check a seed file; a WrongUsage names the place that is wrong."""
    try:
        document = read_yaml(path.read_bytes()).value
    except OSError as error:
        raise _wrong(str(path), f"cannot be read: {error.strerror}") from error
    except BrokenContract as error:
        raise _wrong(str(path), f"cannot be read: {'; '.join(found.message for found in error.findings)}") from error
    return check(document if document is not None else {})


def check(document: Any) -> Seed:
    """Check a seed; a WrongUsage names the place that is wrong."""
    top = _object(document, "seed", {"tokens": list, "repositories": list})
    tokens = [_token(entry, f"tokens[{index}]") for index, entry in enumerate(top.get("tokens", []))]
    repositories = [
        _repository(entry, f"repositories[{index}]") for index, entry in enumerate(top.get("repositories", []))
    ]
    return Seed(tuple(tokens), tuple(repositories))


def plant(db: Connection, bares: GitStorage, seed: Seed, home: str | None, now: float) -> None:
    """Fill an empty server: built-in accounts and tokens, what the seed says, and the home repository."""
    for login, kind in ((MAINTAINER, "User"), (STRANGER, "User"), (BOT, "Bot")):
        account(db, login, now, kind)
    for repository in seed.repositories:
        _plant_repository(db, bares, repository, now)
    home = home or (seed.repositories[0]["name"] if seed.repositories else HOME)
    ensure_repository(db, home, now)
    database.set_meta(db, "home", home)
    _add_token(db, TOKEN, MAINTAINER, "user", {}, None, now)
    _add_token(db, STRANGER_TOKEN, STRANGER, "user", {}, None, now)
    _add_token(db, INSTALLATION_TOKEN, BOT, "installation", INSTALLATION_PERMISSIONS, [home], now)
    for entry in seed.tokens:
        kind = entry.get("kind", "user")
        _add_token(
            db, entry["token"], entry["login"], kind, entry.get("permissions", {}), entry.get("repositories"), now
        )


def take_home(db: Connection, full_name: str, now: float) -> None:
    """Make sure that the repository is there and that the built-in installation token reaches it."""
    ensure_repository(db, full_name, now)
    row = db.execute("SELECT repositories FROM tokens WHERE token = ?", (INSTALLATION_TOKEN,)).fetchone()
    reach = sorted({*json.loads(row["repositories"]), full_name.lower()})
    db.execute("UPDATE tokens SET repositories = ? WHERE token = ?", (json.dumps(reach), INSTALLATION_TOKEN))


def ensure_repository(db: Connection, full_name: str, now: float) -> Row:
    """Return the repository of that name, made with GitHub's default labels when it is not there."""
    row = find_repository(db, full_name)
    return row if row is not None else _new_repository(db, NewRepository(full_name), now)


def _new_repository(db: Connection, facts: NewRepository, now: float, *, default_labels: bool = True) -> Row:
    owner = account(db, facts.full_name.partition("/")[0], now, "Organization")
    row = add_repository(db, facts, owner, now, default_labels=default_labels)
    maintainer = account(db, MAINTAINER, now)
    if maintainer != owner:
        db.execute("INSERT INTO collaborators VALUES (?, ?, 'admin')", (row["id"], maintainer))
    return row


def _plant_repository(db: Connection, bares: GitStorage, entry: Mapping[str, Any], now: float) -> None:
    flags = {name: entry[name] for name in ("private", "archived", "has_issues") if name in entry}
    facts = NewRepository(entry["name"], description=entry.get("description"), **flags)
    row = _new_repository(db, facts, now, default_labels=entry.get("default_labels", True))
    for login, role in entry.get("collaborators", {}).items():
        db.execute("INSERT OR REPLACE INTO collaborators VALUES (?, ?, ?)", (row["id"], account(db, login, now), role))
    for label in entry.get("labels", []):
        _label(db, row["id"], label["name"], label.get("color"), label.get("description"))
    maintainer = db.execute("SELECT * FROM users WHERE login = ?", (MAINTAINER,)).fetchone()
    plant_code(db, bares, row, maintainer, entry, now)
    issues = entry.get("issues", [])
    identifiers = [_plant_issue(db, row["id"], issue, now) for issue in issues]
    for identifier, issue in zip(identifiers, issues, strict=True):
        if "head" in issue:
            plant_pull(db, bares, row, identifier, issue)
            planting.plant(db, bares, row, identifier, issue, now)
        if "fork" in issue:
            facts = NewRepository(issue["fork"])
            fork = find_repository(db, facts.full_name) or _new_repository(db, facts, now, default_labels=False)
            move_to_fork(db, bares, row, identifier, fork)
        edges = [(identifier, identifiers[number - 1]) for number in issue.get("blocked_by", [])]
        db.executemany("INSERT INTO dependencies VALUES (?, ?)", edges)
    for run in entry.get("workflow_runs", []):
        planting.plant_run(db, bares, row, run, now)


def _plant_issue(db: Connection, repository_id: int, entry: Mapping[str, Any], now: float) -> int:
    author = account(db, entry.get("author", MAINTAINER), now)
    is_pull = entry.get("pull_request", "head" in entry)
    state = entry.get("state", "open")
    reason = entry.get("state_reason", "completed" if state == "closed" and not is_pull else None)
    draft = NewIssue(
        entry["title"],
        entry.get("body"),
        author_id=author,
        created_at=created_seconds(entry, now),
        is_pull=is_pull,
        state=state,
        state_reason=reason,
        locked=entry.get("locked", False),
    )
    identifier = insert_issue(db, repository_id, draft)
    for name in entry.get("labels", []):
        label = _label(db, repository_id, name, None, None)
        db.execute("INSERT INTO issue_labels VALUES (?, ?)", (identifier, label["id"]))
    for login in entry.get("assignees", []):
        db.execute("INSERT INTO assignees VALUES (?, ?)", (identifier, account(db, login, now)))
    for comment in entry.get("comments", []):
        moment, writer = created_seconds(comment, now), account(db, comment.get("author", MAINTAINER), now)
        db.execute(
            "INSERT INTO comments VALUES (?, ?, ?, ?, ?, ?, ?)",
            (database.next_id(db), identifier, writer, comment["body"], words(comment["body"]), moment, moment),
        )
    for event in entry.get("label_events", []):
        actor = account(db, event.get("author", MAINTAINER), now)
        planting.plant_label_event(db, identifier, actor, event, created_seconds(event, now))
    return identifier


def _label(db: Connection, repository_id: int, name: str, color: str | None, description: str | None) -> Row:
    row = labels.find_label(db, repository_id, name)
    if row is not None and color is None:
        return row
    if row is not None:
        db.execute("DELETE FROM labels WHERE id = ?", (row["id"],))
    return labels.insert_label(db, repository_id, name, color or labels.IMPLICIT_COLOR, description)


def _add_token(
    db: Connection,
    token: str,
    login: str,
    kind: TokenKind,
    permissions: Mapping[str, str],
    reach: list[str] | None,
    now: float,
) -> None:
    repositories = None if reach is None else json.dumps([name.lower() for name in reach])
    db.execute(
        "INSERT OR REPLACE INTO tokens VALUES (?, ?, ?, ?, ?)",
        (token, account(db, login, now), kind, json.dumps(permissions), repositories),
    )


def _token(entry: Any, place: str) -> Mapping[str, Any]:
    checked = _object(entry, place, _TOKEN_FIELDS, required=("token", "login"))
    _one_of(checked, "kind", ("user", "fine-grained", "installation"), place)
    for area, level in checked.get("permissions", {}).items():
        if level not in ("none", "read", "write", "admin"):
            raise _wrong(f"{place}.permissions.{area}", f"is {level!r}, not none, read, write or admin")
    return checked


def _repository(entry: Any, place: str) -> Mapping[str, Any]:
    checked = _object(entry, place, _REPOSITORY_FIELDS, required=("name",))
    if checked["name"].count("/") != 1 or not all(checked["name"].split("/")):
        raise _wrong(f"{place}.name", f"is {checked['name']!r}, not owner/name")
    for login, role in checked.get("collaborators", {}).items():
        if role not in ("read", "triage", "write", "maintain", "admin"):
            raise _wrong(f"{place}.collaborators.{login}", f"is {role!r}, not read, triage, write, maintain or admin")
    for index, label in enumerate(checked.get("labels", [])):
        checked_label = _object(label, f"{place}.labels[{index}]", _LABEL_FIELDS, required=("name",))
        if not labels.is_color(checked_label.get("color", labels.IMPLICIT_COLOR)):
            raise _wrong(f"{place}.labels[{index}].color", "is not six hexadecimal digits")
    _code(checked, place)
    for index, run in enumerate(checked.get("workflow_runs", [])):
        _object(run, f"{place}.workflow_runs[{index}]", planting.RUN_FIELDS, required=("id",))
    issues = checked.get("issues", [])
    for index, issue in enumerate(issues):
        _issue(issue, f"{place}.issues[{index}]", len(issues))
    return checked


def _code(checked: Mapping[str, Any], place: str) -> None:
    trees = {"files": checked.get("files", {})}
    for branch, files in checked.get("branches", {}).items():
        trees[f"branches.{branch}"] = _object(files, f"{place}.branches.{branch}")
    for name, files in trees.items():
        for path, text in files.items():
            if not (isinstance(text, str) or (text is None and name != "files")):
                raise _wrong(f"{place}.{name}.{path}", f"is {text!r}, not a text (quote it)")
    for branch, rules in checked.get("protected", {}).items():
        _object(rules, f"{place}.protected.{branch}", repositories.PROTECTION_FIELDS)


def _issue(entry: Any, place: str, count: int) -> None:
    checked = _object(entry, place, _ISSUE_FIELDS, required=("title",))
    _one_of(checked, "state", ("open", "closed"), place)
    if "fork" in checked and ("head" not in checked or checked["fork"].count("/") != 1):
        raise _wrong(f"{place}.fork", "is not the owner/name that a pull request's head is in")
    _one_of(checked, "state_reason", (*CLOSING_REASONS, "reopened"), place)
    for number in checked.get("blocked_by", []):
        if not isinstance(number, int) or not 1 <= number <= count:
            raise _wrong(f"{place}.blocked_by", f"has {number!r}; the repository has issues 1 to {count}")
    _check_moment(checked, place)
    for index, comment in enumerate(checked.get("comments", [])):
        where = f"{place}.comments[{index}]"
        _check_moment(_object(comment, where, _COMMENT_FIELDS, required=("body",)), where)
    _check_work(checked, place)


def _check_work(checked: Mapping[str, Any], place: str) -> None:
    for name, (fields, required) in planting.FIELDS.items():
        if name in checked and name != "label_events" and "head" not in checked:
            raise _wrong(f"{place}.{name}", "belongs to a pull request with a head")
        for index, part in enumerate(checked.get(name, [])):
            where = f"{place}.{name}[{index}]"
            _check_moment(_object(part, where, fields, required=required), where)
            for key, allowed in planting.WORDS.items():
                _one_of(part, key, allowed, where)
            for at, comment in enumerate(part.get("comments", [])):
                there = f"{where}.comments[{at}]"
                _check_moment(_object(comment, there, _COMMENT_FIELDS, required=("body",)), there)


def _check_moment(entry: Mapping[str, Any], place: str) -> None:
    try:
        created_seconds(entry, 0.0)
    except ValueError:
        raise _wrong(f"{place}.created_at", f"is {entry['created_at']!r}, not a moment in ISO 8601") from None


def _object(
    value: Any, place: str, allowed: Mapping[str, Any] | None = None, required: tuple[str, ...] = ()
) -> Mapping[str, Any]:
    if not isinstance(value, dict):
        raise _wrong(place, "is not an object")
    for name in required:
        if name not in value:
            raise _wrong(place, f"lacks {name!r}")
    if allowed is None:
        return value
    for name, part in value.items():
        if name not in allowed:
            raise _wrong(f"{place}.{name}", f"is unknown; there are {', '.join(allowed)}")
        if not isinstance(part, allowed[name]):
            raise _wrong(f"{place}.{name}", f"is {part!r}, not {_KINDS[allowed[name]]}")
    return value


def _one_of(entry: Mapping[str, Any], name: str, allowed: tuple[str, ...], place: str) -> None:
    if name in entry and entry[name] not in allowed:
        raise _wrong(f"{place}.{name}", f"is {entry[name]!r}, not {', '.join(allowed)}")


def _wrong(place: str, problem: str) -> WrongUsage:
    return WrongUsage(f"The seed is wrong: {place} {problem}.", hint="The format is described in accord_sandbox.seed.")
