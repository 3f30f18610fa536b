"""Two seeds for tests of the sandbox, with a client for its API and real git to work on its code, as any user."""

import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import requests
from support.trees import own_settings

from accord_sandbox.server import RunningSandbox

ADMIN = "accord-sandbox-token"
INSTALLATION = "accord-sandbox-installation-token"
STRANGER = "accord-sandbox-stranger-token"
LONG = "".join(f"line {number}\n" for number in range(1, 41))
CHANGED = LONG.replace("line 3\n", "line three\n").replace("line 30\n", "").replace("line 40\n", "line 40\nline 41\n")

HOME = """
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


"""A home repository with issues, and others that are private, archived, or without issues."""

CODE = f"""
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
"""A repository with code, protected branches and a pull request."""


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
        token: str | None = ADMIN,
        headers: dict[str, str] | None = None,
        **options: Any,
    ) -> requests.Response:
        """Send one request; ``path`` begins with / for the server, else it is below the home repository."""
        url = f"{self.sandbox.url}{path}"
        if not path.startswith("/"):
            url = f"{self.sandbox.url}/repos/{self.sandbox.repository}/{path}".rstrip("/")
        authorization = {} if token is None else {"authorization": f"Bearer {token}"}
        return self.session.request(
            method, url, json=json, headers=authorization | (headers or {}), timeout=600, **options
        )

    def send(self, status: int, *request: Any, **options: Any) -> Any:
        """Send a request that must get this status; return the document of the answer."""
        answer = self(*request, **options)
        assert answer.status_code == status, answer.text
        return answer.json()

    def issue(self, title: str = "An issue", **more: Any) -> Any:
        """Open an issue as the maintainer."""
        return self.send(201, "POST", "issues", {"title": title, **more})

    def tip(self, branch: str) -> str:
        """Return the commit of a branch."""
        sha: str = self("GET", f"git/ref/heads/{branch}").json()["object"]["sha"]
        return sha


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
        who = {f"GIT_{role}_{part}": value for role in ("AUTHOR", "COMMITTER") for part, value in WHO.items()}
        environment = own_settings() | who
        command = ["git", *arguments]
        done = subprocess.run(
            command, cwd=self.folder, env=environment, capture_output=True, text=True, timeout=600, check=False
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
