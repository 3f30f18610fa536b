"""A repository with code for the tests about git, pull requests and reviews, and real git to work on it."""

from __future__ import annotations

import os
import subprocess
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from accord.core.clock import ManualClock
from accord_sandbox.server import SandboxSettings, serving

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from accord_sandbox.server import RunningSandbox

START = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
ADMIN = "accord-sandbox-token"
INSTALLATION = "accord-sandbox-installation-token"
STRANGER = "accord-sandbox-stranger-token"
LONG = "".join(f"line {number}\n" for number in range(1, 41))
CHANGED = LONG.replace("line 3\n", "line three\n").replace("line 30\n", "").replace("line 40\n", "line 40\nline 41\n")

SEED = f"""
tokens:
  - {{token: writer, login: wanda}}
  - {{token: reader, login: rita, kind: fine-grained, permissions: {{contents: read, pull_requests: read}}}}
  - {{token: fine, login: wanda, kind: fine-grained, permissions: {{contents: write}}}}
  - token: flows
    login: "flows[bot]"
    kind: installation
    permissions: {{contents: write, workflows: write, pull_requests: write}}
repositories:
  - name: octo/code
    collaborators: {{wanda: write, rita: read}}
    files:
      long.txt: {LONG!r}
      gone.txt: "Farewell\\n"
      old name.txt: "Same\\ncontent\\nas before\\n"
      src/é.py: "x = 1\\n"
    branches:
      feature:
        long.txt: {CHANGED!r}
        gone.txt: null
        old name.txt: null
        new name.txt: "Same\\ncontent\\nas before\\n"
        added.txt: "New\\n"
      rival: {{long.txt: "Something else altogether\\n"}}
      other: {{other.txt: "Other\\n"}}
    protected:
      main: {{required_pull_request_reviews: {{required_approving_review_count: 1}}}}
      strict: {{enforce_admins: true, required_pull_request_reviews: {{}}}}
    issues:
      - {{title: To be closed}}
      - {{title: The change, head: feature, body: "Closes #1", author: wanda}}
  - {{name: octo/secret, private: true, files: {{secret.txt: "Hidden\\n"}}}}
  - {{name: octo/old, archived: true, files: {{a.txt: "Ancient\\n"}}}}
  - {{name: octo/empty}}
""".replace("'", '"')


@contextmanager
def code_server(directory: Path) -> Iterator[RunningSandbox]:
    """Serve the repositories above."""
    seed = directory / "seed.yml"
    seed.write_text(SEED, encoding="utf-8")
    settings = SandboxSettings(clock=ManualClock(START), rate_limits=None)
    with serving(directory / "home", seed=seed, settings=settings) as running:
        yield running


@dataclass
class Git:
    """Real git in a work tree of a repository of the sandbox, as any user."""

    sandbox: RunningSandbox
    folder: Path

    def url(self, token: str | None = ADMIN, repository: str = "octo/code") -> str:
        """Return the address to clone from, with a token as its password."""
        who = "" if token is None else f"x:{token}@"
        return f"{self.sandbox.url.replace('http://', f'http://{who}')}/{repository}.git"

    def __call__(self, *arguments: str, ok: bool = True) -> str:
        """Run git and return what it wrote to both channels."""
        environment = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")} | {
            "GIT_TERMINAL_PROMPT": "0",
            "GIT_CONFIG_NOSYSTEM": "1",
            "GIT_CONFIG_GLOBAL": os.devnull,
            **{f"GIT_{role}_{part}": value for role in ("AUTHOR", "COMMITTER") for part, value in WHO.items()},
        }
        command = ["git", *arguments]
        done = subprocess.run(
            command, cwd=self.folder, env=environment, capture_output=True, text=True, timeout=60, check=False
        )
        written = done.stdout + done.stderr
        assert (done.returncode == 0) == ok, written
        return written

    def clone(self, branch: str = "main", token: str = ADMIN) -> None:
        """Fill the folder with a clone."""
        self("clone", "-q", "-b", branch, self.url(token), ".")

    def commit(self, files: dict[str, str | None], message: str = "Work") -> str:
        """Write and delete files, commit, and return the commit's id."""
        for path, text in files.items():
            file = self.folder / path
            file.parent.mkdir(parents=True, exist_ok=True)
            if text is None:
                file.unlink()
            else:
                file.write_text(text, encoding="utf-8")
        self("add", "--all")
        self("commit", "-q", "-m", message)
        return self("rev-parse", "HEAD").strip()


WHO = {"NAME": "Wanda", "EMAIL": "wanda@example.org"}
