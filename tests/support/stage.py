"""A stage for tests that write: the real local GitHub, the real adapter, and one clock without real waiting."""

import base64
import json
import shutil
import sqlite3
import tempfile
import weakref
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import requests
from support.clocks import ManualClock
from support.openapi import conforming
from support.trees import restore_files

from accord.core.shapes import read_shape
from accord.engine.receipts import Receipt
from accord.github.client import GitHub
from accord.github.models import Access
from accord.results.models import PlannerResult
from accord.results.planner.rules import read_plan
from accord.results.planner.run import apply_plan
from accord.results.run_options import PlanOptions
from accord.text.posting import PostingPolicy
from accord.text.redaction import Redactor
from accord_sandbox.database import find_repository, find_user
from accord_sandbox.issues import NewIssue, insert_issue
from accord_sandbox.server import RunningSandbox, SandboxSettings, serving
from accord_sandbox.tokens import MAINTAINER

START = datetime(2026, 11, 2, 9, 0, tzinfo=UTC)


def codes(receipt: Receipt) -> set[str]:
    """The codes of all findings."""
    return {finding.code for finding in receipt.findings}


NO_LEASE = 1
"""Writes for a lease in an empty repository: it is asked for a tree, and refuses."""

FIRST_LEASE = 5
"""Writes for the first lease on something: a tree, a commit and a ref; a commit and the ref again to end it."""

LEASE = 4
"""Writes for a later one: twice a commit and the ref."""


def keep(server: RunningSandbox) -> Callable[[], None]:
    """Keep what a local GitHub holds now; return what puts it back, which is quicker than making it again."""
    path, repositories = server.database.path, server.application.storage.root
    held = sqlite3.connect(":memory:", check_same_thread=False)
    with closing(sqlite3.connect(path)) as now:
        now.backup(held)
    copy = Path(tempfile.mkdtemp(prefix="kept-", dir=path.parent)) / "git"
    shutil.copytree(repositories, copy)

    def put_back() -> None:
        with closing(sqlite3.connect(path)) as now:
            held.backup(now)
        restore_files(copy, repositories)
        server.forget_requests()

    weakref.finalize(put_back, held.close)  # Python 3.13 warns of connections that are left open
    return put_back


@dataclass
class Stage:
    server: RunningSandbox
    clock: ManualClock
    waits: list[tuple[float, str]]
    session: requests.Session
    put_back: Callable[[], None] | None = field(default=None, repr=False)
    began: datetime = START

    @property
    def repository(self) -> str:
        return self.server.repository

    def keep(self) -> Callable[[], None]:
        """Keep what the local GitHub holds now; return what puts it back."""
        return keep(self.server)

    def commit(self, text: str = "A file.") -> None:
        """Give the empty repository of the seed its first commit."""
        content = base64.b64encode(text.encode()).decode()
        self.send("PUT", f"/repos/{self.repository}/contents/README.md", message="Begin", content=content)

    def begin_at_present(self) -> None:
        """Let ``reset`` return to what the local GitHub holds now instead of to its seed."""
        self.put_back, self.began = self.keep(), self.clock.now()

    def reset(self) -> None:
        """Return to the beginning: data, time, faults, rate limits, the logs of requests and waits."""
        self.clock.sleep((self.began - self.clock.now()).total_seconds())
        (self.put_back or self.server.reset)()
        self.waits.clear()

    def adapter(
        self, *, token: str = "", identity: str = "", max_wait: float = 1e5, repo: str = "", below: str = ""
    ) -> GitHub:
        url = self.server.url + below
        access = Access(repo or self.repository, token or self.server.token, url, identity, max_wait)
        return GitHub(access, self.clock, lambda seconds, reason: self.waits.append((seconds, reason)))

    def apply(self, result: dict[str, Any], *, adapter: GitHub | None = None, **setting: Any) -> Receipt:
        github = adapter or self.adapter()
        plan = read_plan(read_shape(PlannerResult, result))
        return apply_plan(
            github, plan, PlanOptions(self.repository, self.clock, Redactor(), PostingPolicy(), **setting)
        )

    def get(self, path: str, **params: Any) -> Any:
        headers = {"Authorization": f"Bearer {self.server.token}"}
        answer = self.session.get(f"{self.server.url}{path}", params=params, headers=headers, timeout=600)
        answer.raise_for_status()
        return answer.json()

    def send(self, method: str, path: str, *, token: str = "", **body: Any) -> Any:
        headers = {"Authorization": f"Bearer {token or self.server.token}"}
        answer = self.session.request(
            method, f"{self.server.url}{path}", json=body or None, headers=headers, timeout=600
        )
        answer.raise_for_status()
        return answer.json() if answer.content else None

    def listed(self, path: str, **params: Any) -> list[dict[str, Any]]:
        """List everything under a path of the repository, from all pages."""
        found: list[dict[str, Any]] = []
        for page in range(1, 100):
            part = self.get(f"/repos/{self.repository}{path}", per_page=100, page=page, **params)
            found += part
            if len(part) < 100:
                break
        return found

    def issues(self) -> list[dict[str, Any]]:
        return self.listed("/issues", state="all", direction="asc")

    def snapshot(self) -> list[dict[str, Any]]:
        """All that a user could see of the issues, without what differs by nature: times and ids."""
        found = []
        for issue in self.issues():
            is_blocked = issue.get("issue_dependencies_summary", {}).get("total_blocked_by")
            blockers = self.listed(f"/issues/{issue['number']}/dependencies/blocked_by") if is_blocked else []
            same = {name: issue[name] for name in ("number", "title", "body", "state")}
            labels = sorted(label["name"] for label in issue["labels"])
            blocked_by = sorted(blocker["number"] for blocker in blockers)
            found.append({**same, "reason": issue["state_reason"], "labels": labels, "blocked_by": blocked_by})
        return found


def insert_issues(server: RunningSandbox, count: int) -> list[int]:
    """Insert issues that are a year old, a second apart; return their numbers."""
    with server.database.writing() as connection:
        row, user = find_repository(connection, server.repository), find_user(connection, MAINTAINER)
        assert row
        assert user
        begin = server.application.settings.clock.now().timestamp() - 365 * 86_400
        for n in range(1, count + 1):
            insert_issue(connection, row["id"], NewIssue(f"Old issue {n}", f"Body {n}", user["id"], begin + n))
        return list(range(row["last_number"] + 1, row["last_number"] + count + 1))


def seed_file(directory: Path, seed: str | Mapping[str, Any]) -> Path:
    """Write a seed, given as YAML or as a document, into a folder."""
    path = directory / "seed.yml"
    directory.mkdir(parents=True, exist_ok=True)
    path.write_text(seed if isinstance(seed, str) else json.dumps(seed), encoding="utf-8")
    return path


@contextmanager
def staged(directory: Path, *, seed: Mapping[str, Any] | str = "", **settings: Any) -> Iterator[Stage]:
    """Open a stage, with a seed or its YAML; every exchange on it is held against GitHub's OpenAPI description."""
    clock, path = ManualClock(START), seed_file(directory, seed) if seed else None
    settings.setdefault("search_lag_seconds", 300.0)
    chosen = SandboxSettings(clock=clock, **settings)
    with serving(directory, seed=path, settings=chosen) as server, conforming(server), requests.Session() as session:
        session.trust_env = False  # it reads all variables of the environment at each request
        yield Stage(server, clock, [], session)
