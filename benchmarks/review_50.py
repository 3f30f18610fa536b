"""A review with 50 comments on lines, on the sandbox with 50 ms latency: against one with 1, and against a loop.

    python benchmarks/review_50.py [COMMENTS]

Each review is of the same pull request, recreated each time. The loop is a quick script: a
request for each comment, and one for the verdict, with PyGithub as it comes. It ignores lines outside the
diff, and would post everything again.
"""

from __future__ import annotations

import json
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import github

from accord.core.clock import SystemClock
from accord.core.shapes import read_shape
from accord.github.client import GitHub
from accord.github.models import Access
from accord.results.models import ReviewerResult
from accord.results.reviewer.run import apply_review
from accord.results.run_options import ReviewOptions
from accord.text.posting import PostingPolicy
from accord.text.redaction import Redactor
from accord_sandbox.server import Fault, RunningSandbox, SandboxSettings, serving

if TYPE_CHECKING:
    from collections.abc import Callable

LATENCY_SECONDS = 0.05
PULL = 2
FEW = 1
BODY = "**What:** line {n} is wrong.\n**Why:** the spec says so.\n**Fix:** correct it."


def seed(lines: int) -> dict[str, Any]:
    """A work item in review, and its pull request by another user, which adds a file of so many lines."""
    repository = {
        "name": "accord/sandbox",
        "collaborators": {"author": "write"},
        "files": {"README.md": "Hello\n"},
        "branches": {"accord/1": {"src/new.py": "".join(f"line {n}\n" for n in range(1, lines + 1))}},
        "issues": [
            {"title": "The work", "labels": ["task:implement", "status:review", "priority:low"]},
            {"title": "The change", "head": "accord/1", "body": "Closes #1", "author": "author"},
        ],
    }
    return {"repositories": [repository]}


def result(comments: int) -> dict[str, Any]:
    found = [{"path": "src/new.py", "line": n, "body": BODY.format(n=n)} for n in range(1, comments + 1)]
    review = {"verdict": "needs-changes", "summary": f"{comments} lines are wrong.", "comments": found}
    return {"role": "reviewer", "review": review}


def with_accord(server: RunningSandbox, document: dict[str, Any]) -> None:
    access = Access(server.repository, server.token, server.url)
    adapter = GitHub(access, SystemClock(), lambda seconds, _: print(f"  (accord waits {seconds:.0f} s for a limit)"))
    options = ReviewOptions(server.repository, SystemClock(), Redactor(), PostingPolicy(), pull=PULL)
    receipt = apply_review(adapter, read_shape(ReviewerResult, document), options)
    assert receipt.exit_code == 0, receipt.error


def with_pygithub(server: RunningSandbox, document: dict[str, Any]) -> None:
    review = document["review"]
    client = github.Github(auth=github.Auth.Token(server.token), base_url=server.url)
    repository = client.get_repo(server.repository)
    pull = repository.get_pull(PULL)
    commit = pull.get_commits()[0]
    for comment in review["comments"]:
        pull.create_review_comment(comment["body"], commit, comment["path"], line=comment["line"], side="RIGHT")
    pull.create_review(commit, review["summary"], "REQUEST_CHANGES")
    repository.get_issue(1).set_labels("task:implement", "priority:low", "status:needs-refinement")


def measure(
    name: str,
    server: RunningSandbox,
    action: Callable[[RunningSandbox, dict[str, Any]], None],
    document: dict[str, Any],
) -> float:
    server.forget_requests()
    server.faults.add(Fault("slow", times=sys.maxsize, seconds=LATENCY_SECONDS))
    start = time.perf_counter()
    action(server, document)
    taken = time.perf_counter() - start
    reads = sum(method == "GET" for method, _, _ in server.requests)
    print(f"{name:<34} {reads:4} reads {len(server.requests) - reads:4} writes {taken:7.2f} s")
    return taken


def main(many: int) -> None:
    settings = SandboxSettings(rate_limits=None)
    with tempfile.TemporaryDirectory() as home:
        file = Path(home) / "seed.yml"
        file.write_text(json.dumps(seed(many + FEW)), encoding="utf-8")
        with serving(Path(home) / "data", seed=file, settings=settings) as server:
            measure("(warm-up)", server, with_accord, result(FEW))
            server.reset()
            one = measure(f"accord, {FEW} comment", server, with_accord, result(FEW))
            server.reset()
            all_of_them = measure(f"accord, {many} comments", server, with_accord, result(many))
            again = measure("accord, the same again", server, with_accord, result(many))
            server.reset()
            plain = measure(f"PyGithub loop, {many} comments", server, with_pygithub, result(many))
    print(
        f"ratio of times: {many} comments to {FEW}: {all_of_them / one:.2f}; "
        f"the same again: {again / all_of_them:.2f}; loop to accord: {plain / all_of_them:.0f}"
    )


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 50)
