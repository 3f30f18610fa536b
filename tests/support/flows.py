"""A work item, the pull request that an implementor's result opened for it, and the loop that continues there."""

import base64
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from support.implementations import apply, clone, completed, remote_of, work_of_agent
from support.plans import task_body
from support.reviews import post
from support.stage import Stage, staged
from support.trees import git
from support.turns import WORKFLOWS, Turns

from accord.loops.facts import LoopContext
from accord_sandbox.planting import INSTALLATION_TOKEN

ITEM, PULL = 1, 2
CRITERIA = ("It works", "Ask @octocat & <b>me</b>")
FILES = {"src/a.py": "a = 1\n", "src/b.py": "b = 1\n", ".gitattributes": "src/b.py merge=union\n"}
LABELS = ["task:implement", "status:in-progress", "priority:low", "complexity:low"]


def seed(*assignees: str, **repository: Any) -> dict[str, Any]:
    """A repository with a little code and one work item in progress, except these parts."""
    criteria = "\n".join(f"- [ ] {text}" for text in CRITERIA)
    body = task_body(in_scope="- src/a.py", criteria=criteria)
    events = [{"label": label, "change": "added", "author": "github-actions[bot]"} for label in LABELS]
    item = {"title": "Do the work", "body": body, "labels": LABELS, "label_events": events}
    return {
        "tokens": [{"token": "writer", "login": "wanda"}, {"token": "reader", "login": "rita"}],
        "repositories": [
            {
                "name": "octo/code",
                "collaborators": {"wanda": "write", "rita": "read"},
                "files": {**FILES, **WORKFLOWS},
                "issues": [{**item, "assignees": list(assignees)}],
                **repository,
            }
        ],
    }


@dataclass
class Flow(Turns):
    """The turns of keepalive on the implementor's pull request."""

    number: int = PULL

    @property
    def announcements(self) -> list[str]:
        return [body for body in self.comments if "accord:announced" in body]

    def context(self, run_id: str = "900") -> LoopContext:
        return replace(super().context(run_id), remote=remote_of(self.stage, INSTALLATION_TOKEN))

    def commit(self, folder: Path, branch: str, **files: str | None) -> str:
        """Push a commit of a person to a branch, with these files of ``src`` changed or removed; return it."""
        tree = clone(self.stage, Path(tempfile.mkdtemp(dir=folder)) / "tree", branch)
        for name, text in files.items():
            path = tree / "src" / f"{name}.py"
            path.unlink() if text is None else path.write_text(text)
        git(tree, "add", "-A")
        git(tree, "commit", "-qm", "By hand")
        git(tree, "push", "-q", "origin", branch)
        return git(tree, "rev-parse", "HEAD")

    @property
    def parents(self) -> list[str]:
        """The parents of the head."""
        found = self.stage.get(f"{self.root}/git/commits/{self.pull['head']['sha']}")
        return [parent["sha"] for parent in found["parents"]]

    def file(self, path: str) -> str:
        """The content of a file at the head."""
        content = self.stage.get(f"{self.root}/contents/{path}", ref=self.pull["head"]["sha"])["content"]
        return base64.b64decode(content).decode()

    def judge(self, result: dict[str, Any], token: str = INSTALLATION_TOKEN) -> None:
        """Post a reviewer's result on the head."""
        receipt = post(self.stage, result, adapter=self.stage.adapter(token=token), pull=self.number)
        assert receipt.exit_code == 0, receipt.error

    def seen(self) -> dict[str, Any]:
        """All that a person could see, with the work item and the shape of the branch."""
        item, labels = self.item["body"], sorted(label["name"] for label in self.item["labels"])
        branch = {"parents": len(self.parents), "mergeable": self.pull["mergeable"]}
        return {**super().seen(), "item": item, "item labels": labels, **branch}

    @property
    def item(self) -> dict[str, Any]:
        found: dict[str, Any] = self.stage.get(f"{self.root}/issues/{ITEM}")
        return found


@contextmanager
def flow_stage(folder: Path, *assignees: str, **repository: Any) -> Iterator[Stage]:
    """Open the stage after the result was applied by the job's token, with a green check."""
    with staged(folder / "data", seed=seed(*assignees, **repository), rate_limits=None) as stage:
        result = completed(work_of_agent(stage, folder / "agent"))
        receipt = apply(stage, result, token=INSTALLATION_TOKEN, keepalive=True)
        assert receipt.exit_code == 0, receipt.error
        Flow(stage).check()
        stage.begin_at_present()
        yield stage
