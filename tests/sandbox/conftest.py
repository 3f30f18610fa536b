"""One server a module, reset before each test, every exchange held against GitHub's own description."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pytest
import requests
from support.openapi import conforming

from accord.core.clock import ManualClock
from accord_sandbox.server import SandboxSettings, serving

if TYPE_CHECKING:
    from collections.abc import Iterator

    from accord_sandbox.server import RunningSandbox

START = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
STRANGER = "accord-sandbox-stranger-token"
INSTALLATION = "accord-sandbox-installation-token"

SEED = """
tokens:
  - {token: triage, login: sorter}
  - {token: fine-grained, login: maintainer, kind: fine-grained, permissions: {issues: read}}
  - token: pulls-only
    login: "some-app[bot]"
    kind: installation
    permissions: {pull_requests: write}
    repositories: [octo/home]
repositories:
  - name: octo/home
    collaborators: {sorter: triage}
    issues:
      - {title: First, author: stranger}
      - {title: Second}
      - {title: A revision, pull_request: true}
      - {title: Calm down, locked: true}
  - {name: octo/secret, private: true, issues: [{title: Hidden words}]}
  - {name: octo/old, archived: true, issues: [{title: Ancient}]}
  - {name: octo/code, has_issues: false, issues: [{title: Change, pull_request: true}, {title: Buried}]}
"""


@dataclass
class Client:
    """Requests with a token, on the home repository unless the path says otherwise."""

    sandbox: RunningSandbox
    session: requests.Session

    def __call__(
        self,
        method: str,
        path: str,
        json: Any = None,
        *,
        token: str | None = "accord-sandbox-token",
        headers: dict[str, str] | None = None,
        **options: Any,
    ) -> requests.Response:
        """Send one request; ``path`` begins with / for the server, else it is below the home repository."""
        url = f"{self.sandbox.url}{path}"
        if not path.startswith("/"):
            url = f"{self.sandbox.url}/repos/{self.sandbox.repository}/{path}".rstrip("/")
        authorization = {} if token is None else {"authorization": f"Bearer {token}"}
        return self.session.request(
            method, url, json=json, headers=authorization | (headers or {}), timeout=20, **options
        )

    def issue(self, title: str = "An issue", **more: Any) -> dict[str, Any]:
        """Open an issue as the maintainer."""
        answer = self("POST", "issues", {"title": title, **more})
        assert answer.status_code == 201, answer.text
        document: dict[str, Any] = answer.json()
        return document


@pytest.fixture(scope="module")
def clock() -> ManualClock:
    return ManualClock(START)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, clock: ManualClock) -> Iterator[RunningSandbox]:
    directory = tmp_path_factory.mktemp("sandbox")
    seed = directory / "seed.yml"
    seed.write_text(SEED)
    with serving(directory, seed=seed, settings=SandboxSettings(clock=clock)) as running:
        yield running


@pytest.fixture
def sandbox(server: RunningSandbox) -> Iterator[RunningSandbox]:
    server.reset()
    with conforming(server):
        yield server


@pytest.fixture
def client(sandbox: RunningSandbox) -> Iterator[Client]:
    with requests.Session() as session:
        yield Client(sandbox, session)
