"""Implementor's results for tests: builders, and a stage with a little code and one work item in progress."""

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from support.plans import task_body
from support.stage import Stage, staged
from support.trees import difference_of

from accord.core.shapes import read_shape
from accord.engine.receipts import Receipt
from accord.git.branches import Remote
from accord.results.implementor.run import apply_implementation
from accord.results.models import ImplementorResult
from accord.results.run_options import RevisionOptions
from accord.text.posting import PostingPolicy
from accord.text.redaction import Redactor

WRITER, REVIEWER = "writer[bot]", "reviewer[bot]"
"""Two apps, each with a token of its own."""
WRITER_TOKEN, REVIEWER_TOKEN = "writer-token", "reviewer-token"
_WRITES = "{contents: write, issues: write, pull_requests: write}"
SEED = f"""tokens:
- {{token: {WRITER_TOKEN}, login: "{WRITER}", kind: installation, permissions: {_WRITES}}}
- {{token: {REVIEWER_TOKEN}, login: "{REVIEWER}", kind: installation, permissions: {_WRITES}}}
repositories:
- name: accord/sandbox
  files:
    src/a.py: "a = 1\\n"
    src/b.py: "b = 1\\n"
    README.md: "hello\\n"
"""
BLOCKED = """Type: technical-constraint
Description: The library cannot do it at all.
Options:
1. Replace it, which takes a week
2. Drop the feature, which users will notice
Recommendation: replace it, because the feature was promised.
Impact: the release waits."""
FAILED = "The test step failed. I tried twice; the cause is outside of the task's scope."


@contextmanager
def implement_stage(folder: Path, more: str = "") -> Iterator[Stage]:
    """Open a stage with a little code, one work item that is in progress, and more of the repository's seed."""
    with staged(folder, seed=f"{SEED}{more}", rate_limits=None) as stage:
        labels = ["task:implement", "status:in-progress", "priority:low", "complexity:low"]
        body = task_body(in_scope="- src/a.py")
        stage.send("POST", f"/repos/{stage.repository}/issues", title="Do the work", body=body, labels=labels)
        stage.begin_at_present()
        yield stage


def clone(stage: Stage, to: Path, branch: str = "main") -> Path:
    url = f"{stage.server.url.replace('http://', f'http://x:{stage.server.token}@')}/{stage.repository}.git"
    subprocess.run(["git", "clone", "-q", "-b", branch, url, str(to)], check=True, capture_output=True)
    return to


def work_of_agent(stage: Stage, folder: Path) -> str:
    """Return the patch of an agent that changed a file and wrote a test."""
    tree = clone(stage, folder)
    (tree / "src" / "a.py").write_text("a = 2\n")
    (tree / "src" / "test_a.py").write_text("def test_a(): ...\n")
    return difference_of(tree, "origin/main").decode()


def completed(patch: str, summary: str = "Did it, and tested it.") -> dict[str, Any]:
    return {"role": "implementor", "outcome": "completed", "patch": patch, "summary": summary}


def ended(outcome: str, summary: str) -> dict[str, Any]:
    return {"role": "implementor", "outcome": outcome, "patch": None, "summary": summary}


def set_status(stage: Stage, status: str = "in-progress") -> None:
    stage.send("PUT", f"/repos/{stage.repository}/issues/1/labels", labels=["task:implement", f"status:{status}"])


def end_pull(stage: Stage, number: int, how: str) -> None:
    """Merge or close a pull request, perhaps delete its branch, and begin the work item again."""
    pull = f"/repos/{stage.repository}/pulls/{number}"
    branch = stage.get(pull)["head"]["ref"]
    if how == "closed":
        stage.send("PATCH", pull, state="closed")
    else:
        method = {"elsewhere": "merge", "deleted": "squash"}.get(how, how)
        stage.send("PUT", f"{pull}/merge", merge_method=method)
    if how == "deleted":
        stage.send("DELETE", f"/repos/{stage.repository}/git/refs/heads/{branch}")
    stage.send("PATCH", f"/repos/{stage.repository}/issues/1", state="open")
    set_status(stage)


def remote_of(stage: Stage, token: str = "") -> Remote:
    url, token = f"{stage.server.url}/{stage.repository}.git", token or stage.server.token
    return Remote(url, stage.server.url, token, stage.clock)


def apply(
    stage: Stage,
    result: dict[str, Any],
    *,
    token: str = "",
    identity: str = "",
    secrets: tuple[str, ...] = (),
    **options: Any,
) -> Receipt:
    """Apply an implementor's result to the work item; git pushes with the token of the API."""
    remote, redact = remote_of(stage, token), Redactor(secrets)
    run = RevisionOptions(stage.repository, stage.clock, redact, PostingPolicy(), work_item=1, remote=remote, **options)
    adapter = stage.adapter(token=token, identity=identity)
    return apply_implementation(adapter, read_shape(ImplementorResult, result), run)


def state(stage: Stage) -> dict[str, Any]:
    """All that a user could see afterwards, without times and ids."""
    pulls = stage.get(f"/repos/{stage.repository}/pulls", state="all")
    branches = stage.get(f"/repos/{stage.repository}/branches")
    trees = {}
    for branch in branches:
        commit = stage.get(f"/repos/{stage.repository}/git/commits/{branch['commit']['sha']}")
        trees[branch["name"]] = (commit["tree"]["sha"], commit["message"], len(commit["parents"]))
    return {
        "issue": stage.snapshot()[0],
        "comments": [c["body"] for c in stage.get(f"/repos/{stage.repository}/issues/1/comments")],
        "pulls": [(p["number"], p["title"], p["body"], p["draft"], p["state"]) for p in pulls],
        "labels": [sorted(label["name"] for label in p["labels"]) for p in pulls],
        "trees": trees,
    }
