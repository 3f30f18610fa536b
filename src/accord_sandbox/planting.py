"""Filling a new local GitHub from a seed: accounts, tokens, repositories, code, issues and work in progress."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from accord.core.clock import parse_timestamp
from accord.core.errors import WrongUsage
from accord.git.program import GitFailed
from accord_sandbox.calls import Call, SandboxSettings
from accord_sandbox.comments import insert_comment, record_event
from accord_sandbox.commits import noreply_signature
from accord_sandbox.database import Row, SqlConnection, find_repository, find_user, insert, set_meta
from accord_sandbox.diffs import NotInDiff
from accord_sandbox.git_storage import DEFAULT_BRANCH, HEADS, ZERO, BareRepository, GitStorage, Signature, is_valid_ref
from accord_sandbox.issue_parts import DEFAULT_LABELS, IMPLICIT_COLOR, find_label, insert_label
from accord_sandbox.issues import NewIssue, insert_issue
from accord_sandbox.pulls import insert_pull
from accord_sandbox.repositories import save_values
from accord_sandbox.reviews import Remark, insert_reply, insert_review, insert_review_comment, place_remark
from accord_sandbox.tokens import BOT, MAINTAINER, TokenOwner
from accord_sandbox.workflow_runs import save_run

if TYPE_CHECKING:
    from accord_sandbox.seed import Seed, SeedCheck, SeedIssue, SeedRepository, SeedThread

HOME = "accord/sandbox"
STRANGER = "stranger"
TOKEN = "accord-sandbox-token"  # noqa: S105 (it is valid only here)
INSTALLATION_TOKEN = "accord-sandbox-installation-token"  # noqa: S105
STRANGER_TOKEN = "accord-sandbox-stranger-token"  # noqa: S105
INSTALLATION_PERMISSIONS = {
    **dict.fromkeys(("actions", "issues", "pull_requests", "contents", "checks", "statuses"), "write"),
    "metadata": "read",
}


def plant_seed(db: SqlConnection, storage: GitStorage, seed: Seed | None, home: str | None, now: float) -> None:
    """Fill an empty server: built-in accounts and tokens, the seed, and the home repository."""
    for login in (MAINTAINER, STRANGER, BOT):
        _account(db, login, now)
    repositories = seed.repositories if seed else []
    for repository in repositories:
        _Planter(db, storage, repository, now).plant()
    home = home or (repositories[0].name if repositories else HOME)
    ensure_repository(db, home, now)
    set_meta(db, "home", home)
    tokens: list[tuple[str, str, str, Mapping[str, str], list[str] | None]] = [
        (TOKEN, MAINTAINER, "user", {}, None),
        (STRANGER_TOKEN, STRANGER, "user", {}, None),
        (INSTALLATION_TOKEN, BOT, "installation", INSTALLATION_PERMISSIONS, [home]),
    ]
    more = seed.tokens if seed else ()
    tokens += [(each.token, each.login, each.kind, each.permissions, each.repositories) for each in more]
    for token, login, kind, permissions, reach in tokens:
        names = None if reach is None else json.dumps([name.lower() for name in reach])
        values = (token, _account(db, login, now), kind, json.dumps(permissions), names)
        db.execute("INSERT OR REPLACE INTO tokens VALUES (?, ?, ?, ?, ?)", values)


def use_as_home(db: SqlConnection, full_name: str, now: float) -> None:
    """Create the repository if it does not exist, and give the built-in installation token access."""
    ensure_repository(db, full_name, now)
    row = db.execute("SELECT repositories FROM tokens WHERE token = ?", (INSTALLATION_TOKEN,)).fetchone()
    reach = sorted({*json.loads(row["repositories"]), full_name.lower()})
    db.execute("UPDATE tokens SET repositories = ? WHERE token = ?", (json.dumps(reach), INSTALLATION_TOKEN))


def ensure_repository(db: SqlConnection, full_name: str, now: float) -> Row:
    """Return the repository of that name; create it if it does not exist."""
    return find_repository(db, full_name) or _create_repository(db, full_name, now)


def _create_repository(
    db: SqlConnection, full_name: str, now: float, *, default_labels: bool = True, **columns: str | bool | None
) -> Row:
    owner = _account(db, full_name.partition("/")[0], now, "Organization")
    values = {"owner_id": owner, "full_name": full_name, "created_at": now, **columns}
    identifier = insert(db, "repositories", values)
    for name, color, text in DEFAULT_LABELS if default_labels else ():
        insert_label(db, identifier, name, color, text, default=True)
    maintainer = _account(db, MAINTAINER, now)
    if maintainer != owner:
        db.execute("INSERT INTO collaborators VALUES (?, ?, 'admin')", (identifier, maintainer))
    row: Row = db.execute("SELECT * FROM repositories WHERE id = ?", (identifier,)).fetchone()
    return row


def _account(db: SqlConnection, login: str, now: float, kind: str = "User") -> int:
    """Return the id of an account; create it if it does not exist, as a bot if the login ends with [bot]."""
    row = find_user(db, login)
    if row is not None:
        return int(row["id"])
    kind = "Bot" if login.endswith("[bot]") else kind
    return insert(db, "users", {"login": login, "type": kind, "created_at": now})


def _wrong(problem: str, hint: str = "") -> WrongUsage:
    return WrongUsage(f"The seed is wrong: {problem}.", hint=hint)


class _Planter:
    """Creates one repository of a seed."""

    def __init__(self, db: SqlConnection, storage: GitStorage, seed: SeedRepository, now: float) -> None:
        self.db = db
        self.storage = storage
        self.seed = seed
        self.now = now
        fields = ("description", "private", "archived", "has_issues", "default_labels")
        columns = {name: getattr(seed, name) for name in fields}
        if seed.settings == "default":
            columns["may_create_pulls"] = False
        elif chosen := seed.settings:
            columns["may_create_pulls"] = chosen.can_approve_pull_request_reviews
            columns["workflow_permissions"] = chosen.default_workflow_permissions
        self.row = _create_repository(db, seed.name, now, **columns)

    def plant(self) -> None:
        db, key = self.db, self.row["id"]
        for login, role in self.seed.collaborators.items():
            values = (key, self._account(login), role)
            db.execute("INSERT OR REPLACE INTO collaborators VALUES (?, ?, ?)", values)
        for label in self.seed.labels:
            row = find_label(db, key, label.name)
            if row is not None and label.color is None:
                continue
            if row is not None:
                db.execute("DELETE FROM labels WHERE id = ?", (row["id"],))
            insert_label(db, key, label.name, label.color or IMPLICIT_COLOR, label.description)
        self._plant_code()
        self._plant_settings()
        identifiers = [self._plant_issue(issue) for issue in self.seed.issues]
        for identifier, issue in zip(identifiers, self.seed.issues, strict=True):
            if issue.head is not None:
                self._plant_pull(identifier, issue, issue.head)
            edges = [(identifier, identifiers[number - 1]) for number in issue.blocked_by]
            db.executemany("INSERT INTO dependencies VALUES (?, ?)", edges)
        for run in self.seed.workflow_runs:
            branch = run.head or self.row["default_branch"]
            head = {"head_branch": branch, "head_sha": self.storage.open(self.seed.name).branch(branch) or ""}
            save_run(db, key, run.id, {**run.model_dump(), **head}, self.now)

    def _account(self, login: str) -> int:
        return _account(self.db, login, self.now)

    def _time(self, entry: Any) -> float:
        return self.now if entry.created_at is None else parse_timestamp(entry.created_at).timestamp()

    def _plant_code(self) -> None:
        seed = self.seed
        if seed.git is not None or seed.files is not None or seed.branches:
            bare, start, parent = self.storage.open(seed.name), DEFAULT_BRANCH, None
            if seed.git is not None:
                start = _copy_git(bare, seed.git)
                self.db.execute("UPDATE repositories SET default_branch = ? WHERE id = ?", (start, self.row["id"]))
                parent = bare.branch(start)
            maintainer = find_user(self.db, MAINTAINER)
            assert maintainer is not None  # noqa: S101 (created before)
            signature, stream = noreply_signature(maintainer, self.now), b""
            if seed.files is not None:
                stream += _commit(start, seed.files, signature, "Initial commit", parent)
                parent = f"{HEADS}{start}"
            for branch, files in seed.branches.items():
                stream += _commit(branch, files, signature, f"Work on {branch}", parent)
            bare.git("fast-import", "--quiet", "--force", data=stream)
        for branch, rules in seed.protected.items():
            values = (self.row["id"], branch, rules.model_dump_json(exclude_unset=True))
            self.db.execute("INSERT INTO protections VALUES (?, ?, ?)", values)

    def _plant_settings(self) -> None:
        db, key, seed = self.db, self.row["id"], self.seed
        environments = {f"environment {name.lower()}": found.secrets for name, found in seed.environments.items()}
        secrets = {"repository": seed.secrets, "organization": seed.organization_secrets, **environments}
        for scope, names in secrets.items():
            save_values(db, key, scope, "secret", dict.fromkeys(names, ""), self.now)
        save_values(db, key, "repository", "environment", dict.fromkeys(seed.environments, ""), self.now)
        save_values(db, key, "repository", "variable", seed.variables, self.now)
        save_values(db, key, "organization", "variable", seed.organization_variables, self.now)
        for ruleset in seed.rulesets:
            values = {"branches": json.dumps(ruleset.branches), "rules": json.dumps(ruleset.rules)}
            insert(db, "rulesets", {"repository_id": key, **values})

    def _plant_issue(self, issue: SeedIssue) -> int:
        db, is_pull = self.db, issue.pull_request or issue.head is not None
        reason = issue.state_reason or ("completed" if issue.state == "closed" and not is_pull else None)
        author, at = self._account(issue.author), self._time(issue)
        new = NewIssue(issue.title, issue.body, author, at, is_pull, issue.state, reason, issue.locked)
        identifier = insert_issue(db, self.row["id"], new)
        for name in issue.labels:
            label = find_label(db, self.row["id"], name)
            label = label or insert_label(db, self.row["id"], name, IMPLICIT_COLOR, None)
            db.execute("INSERT INTO issue_labels VALUES (?, ?)", (identifier, label["id"]))
            if name not in {event.label for event in issue.label_events}:
                self._plant_label_event(identifier, "labeled", name, MAINTAINER, at)
        for login in issue.assignees:
            db.execute("INSERT INTO assignees VALUES (?, ?)", (identifier, self._account(login)))
        for comment in issue.comments:
            insert_comment(db, identifier, self._account(comment.author), comment.body, self._time(comment))
        for event in issue.label_events:
            kind = {"added": "labeled", "removed": "unlabeled"}[event.change]
            self._plant_label_event(identifier, kind, event.label, event.author, self._time(event))
        return identifier

    def _plant_label_event(self, identifier: int, kind: str, label: str, login: str, at: float) -> None:
        detail = {"label": {"name": label, "color": IMPLICIT_COLOR}}
        record_event(self._call(login, at), identifier, kind, detail)

    def _plant_pull(self, identifier: int, issue: SeedIssue, head: str) -> None:
        db, bare = self.db, self.storage.open(self.seed.name)
        tips = {}
        for name in (head, issue.base):
            tip = bare.branch(name)
            if tip is None:
                raise _wrong(f"{self.seed.name} has no branch `{name}` for its pull request", "Add it to `branches`.")
            tips[name] = tip
        insert_pull(db, identifier, (head, tips[head]), (issue.base, tips[issue.base]), draft=issue.draft)
        number = db.execute("SELECT number FROM issues WHERE id = ?", (identifier,)).fetchone()[0]
        bare.set_ref(f"refs/pull/{number}/head", tips[head])
        for check in issue.checks:
            self._plant_check(check, tips[head], head)
        for status in issue.statuses:
            values = {"creator_id": self._account(status.author), "created_at": self._time(status), "sha": tips[head]}
            values |= status.model_dump(include={"state", "context", "description"})
            insert(db, "statuses", {**values, "repository_id": self.row["id"]})
        for thread in issue.threads:
            self._plant_thread(identifier, thread)
        if issue.fork is not None:
            fork = find_repository(db, issue.fork)
            fork = fork or _create_repository(db, issue.fork, self.now, default_labels=False)
            db.execute("UPDATE pulls SET fork_id = ? WHERE issue_id = ?", (fork["id"], identifier))
            bare.set_ref(HEADS + head, ZERO)

    def _plant_check(self, check: SeedCheck, sha: str, branch: str) -> None:
        at = self._time(check)
        status = check.status or ("completed" if check.conclusion else "queued")
        values = {
            "repository_id": self.row["id"],
            "app_id": self._account(check.app),
            "head_sha": sha,
            "status": status,
            **check.model_dump(include={"name", "conclusion", "title", "summary", "log"}),
            "run_id": check.run,
            "started_at": at,
            "completed_at": at if status == "completed" else None,
        }
        insert(self.db, "check_runs", values)
        if check.run is not None:
            head = {"head_sha": sha, "head_branch": branch, "status": status, "conclusion": check.conclusion}
            save_run(self.db, self.row["id"], check.run, head, at)

    def _plant_thread(self, issue_id: int, thread: SeedThread) -> None:
        first: Row | None = None
        for comment in thread.comments:
            call = self._call(comment.author, self._time(comment))
            pull = call.row("pull_items", issue_id)
            review = insert_review(call, pull, "", pull["head_sha"], "COMMENTED")
            if first is not None:
                insert_reply(call, pull, review, first, comment.body)
                continue
            try:
                place = place_remark(call, pull, Remark(thread.path, comment.body, thread.line), pull["head_sha"])
            except NotInDiff as problem:
                hint = "Name a file and a line that the pull request changes."
                raise _wrong(f"a thread on `{thread.path}`: {problem.field} {problem}", hint) from problem
            identifier = insert_review_comment(call, pull, review, place, comment.body)
            first = call.row("review_comments", identifier)
            if thread.resolved:
                values = (call.user.user_id, identifier)
                self.db.execute("UPDATE review_comments SET resolver_id = ? WHERE id = ?", values)

    def _call(self, login: str, at: float) -> Call:
        """Return the request with which an account would have made a part of the seed."""
        owner, _, name = self.seed.name.partition("/")
        actor = TokenOwner(self._account(login), login, "", "user", {}, None)
        params = {"owner": owner, "repo": name}
        return Call(self.db, SandboxSettings(), at, "", "", "", {}, self.storage, actor=actor, params=params)


def _copy_git(bare: BareRepository, source: str) -> str:
    """Copy all branches and tags of a repository, and return the name of its default branch."""
    try:
        bare.git("fetch", "--quiet", "--no-tags", source, "+refs/heads/*:refs/heads/*", "+refs/tags/*:refs/tags/*")
        listing = bare.git.line("ls-remote", "--symref", source, "HEAD")
    except GitFailed as error:
        raise _wrong(f"git cannot read `{source}`: {' '.join(error.stderr.split())}") from error
    branch = DEFAULT_BRANCH
    for line in listing.splitlines():
        if line.startswith(f"ref: {HEADS}"):
            branch = line.removeprefix(f"ref: {HEADS}").split("\t")[0]
    bare.git("symbolic-ref", "HEAD", f"{HEADS}{branch}")
    return branch


def _commit(
    branch: str, files: Mapping[str, str | None], signature: Signature, message: str, parent: str | None
) -> bytes:
    """Return one commit for ``git fast-import``; a file without text is deleted."""
    ref = f"{HEADS}{branch}"
    if not is_valid_ref(ref):
        raise _wrong(f"`{branch}` is not a valid branch name")
    lines = [
        f"commit {ref}",
        f"committer {signature.line}",
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
