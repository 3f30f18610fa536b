"""The local GitHub with a pull request, and an agent's work tree beside it: the stage for publishing runs."""

import base64
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
import requests
from requests.adapters import HTTPAdapter
from support.implementations import clone
from support.stage import Stage, staged
from support.trees import commit, difference_of, git

from accord.core.clock import Clock, SystemClock
from accord.git.branches import Remote
from accord.runner.outputs import FinishOptions
from accord.runner.publish import Publication
from accord.text.posting import PostingPolicy
from accord.text.redaction import Redactor

SEED = """
tokens:
- {token: reader, login: rita, kind: fine-grained, permissions: {contents: read, pull_requests: read}}
- {token: job, login: "github-actions[bot]", kind: installation, permissions: {contents: write}}
repositories:
- name: accord/sandbox
  collaborators: {rita: read}
  files:
    src/a.py: "a = 1\\n"
    src/b.py: "b = 1\\n"
    README.md: "hello\\n"
  branches:
    feature: {feature.txt: "begun\\n"}
    strict: {strict.txt: "kept\\n"}
  protected:
    strict: {enforce_admins: true, required_pull_request_reviews: {}}
  issues:
  - {title: The work, head: feature, body: "- [ ] Add the thing\\n- [ ] Test it\\n"}
"""

TOKEN = "accord0123456789"


def publication_of(patch: bytes, base: str, /, **changed: Any) -> Publication:
    """Return the publication of a patch for ``feature``; ``changed`` are fields of it or of its options."""
    of_options = {name: changed.pop(name) for name in [*changed] if name in FinishOptions.__dataclass_fields__}
    options = FinishOptions("accord/sandbox", Redactor(), PostingPolicy(), SystemClock(), {})
    work = Publication(patch, "refs/heads/feature", base, TOKEN, "feat: do the work", options, "Did it.")
    return replace(work, options=replace(options, **of_options), **changed)


@dataclass
class Workshop:
    """The local GitHub with a pull request on the branch ``feature``, and the work tree of an agent beside it."""

    stage: Stage
    folder: Path

    def remote(self, token: str = "", clock: Clock | None = None) -> Remote:
        url = f"{self.stage.server.url}/{self.stage.repository}.git"
        return Remote(url, self.stage.server.url, token or self.stage.server.token, clock or self.stage.clock)

    def clone(self, name: str, branch: str = "feature") -> Path:
        return clone(self.stage, self.folder / name, branch)

    def person_commits(self, path: str, text: str, branch: str = "feature") -> str:
        """Let a person commit a file on the page of GitHub."""
        place = f"/repos/{self.stage.repository}"
        tree = self.stage.get(f"{place}/git/trees/{self.tip(branch)}", recursive=1)["tree"]
        old = {entry["path"]: {"sha": entry["sha"]} for entry in tree}
        content = base64.b64encode(text.encode()).decode()
        more = {"message": "By hand", "content": content, "branch": branch, **old.get(path, {})}
        return str(self.stage.send("PUT", f"{place}/contents/{path}", **more)["commit"]["sha"])

    def tip(self, branch: str = "feature") -> str:
        branches = self.stage.get(f"/repos/{self.stage.repository}/branches", per_page=100)
        return next((found["commit"]["sha"] for found in branches if found["name"] == branch), "")

    def commits(self, branch: str = "feature") -> list[str]:
        """Return the messages of a branch, newest first."""
        found = self.stage.get(f"/repos/{self.stage.repository}/commits", sha=branch, per_page=100)
        return [commit["commit"]["message"] for commit in found]


@pytest.fixture(scope="package")
def runner_stage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    with staged(tmp_path_factory.mktemp("runner"), seed=SEED, rate_limits=None) as stage:
        stage.begin_at_present()  # with the same commits for each test
        yield stage


@pytest.fixture
def workshop(runner_stage: Stage, tmp_path: Path) -> Workshop:
    runner_stage.reset()
    return Workshop(runner_stage, tmp_path)


@dataclass
class Agent:
    """An agent's work tree on ``feature``, the commit it began at, and the patch of what it did."""

    tree: Path
    base: str

    def patch(self) -> bytes:
        return difference_of(self.tree, self.base)

    def commit(self, message: str) -> str:
        return commit(self.tree, message)


@pytest.fixture(scope="package")
def first_agent(runner_stage: Stage, tmp_path_factory: pytest.TempPathFactory) -> Agent:
    """A clone of the beginning, which each test gets as a copy."""
    runner_stage.reset()
    tree = clone(runner_stage, tmp_path_factory.mktemp("agent") / "tree", "feature")
    return Agent(tree, git(tree, "rev-parse", "HEAD"))


@pytest.fixture
def agent(workshop: Workshop, first_agent: Agent) -> Agent:
    tree = workshop.folder / "agent"
    shutil.copytree(first_agent.tree, tree, symlinks=True)
    return replace(first_agent, tree=tree)


class Killed(BaseException):
    """The process ended here."""


@contextmanager
def killed_after(write: str) -> Iterator[None]:
    """End the process after its first request of a kind was carried out: a push, or a write of the API to a path."""

    def sent(adapter: HTTPAdapter, request: requests.PreparedRequest, **more: Any) -> requests.Response:
        answer = send(adapter, request, **more)
        if request.method != "GET" and (request.url or "").endswith(write):
            raise Killed
        return answer

    def done(command: list[str], **more: Any) -> subprocess.CompletedProcess[bytes]:
        ended = run(command, **more)
        if command[1] == write:
            raise Killed
        return ended

    send, run = HTTPAdapter.send, subprocess.run
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(HTTPAdapter, "send", sent)
        patch.setattr(subprocess, "run", done)
        yield
