"""A plan of 100 issues and 90 dependencies on the sandbox with 50 ms latency: accord against a plain PyGithub loop.

    python benchmarks/apply_100.py [ITEMS]

The loop is what one writes in an afternoon: list the labels, check each item's, create the issues in order, add the
dependencies, with PyGithub as it comes. It looks for nothing that is there already. accord keeps GitHub's documented
limits by its own count, which the sandbox does not enforce here, so its waits are in the time.
"""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import github
import plans

from accord.core.clock import SystemClock
from accord.core.shapes import read_shape
from accord.github.client import GitHub
from accord.github.models import Access
from accord.results.label_sync import apply_labels, plan_labels, shipped_labels
from accord.results.models import PlannerResult
from accord.results.planner.rules import read_plan
from accord.results.planner.run import apply_plan
from accord.results.run_options import PlanOptions
from accord.text.posting import PostingPolicy
from accord.text.redaction import Redactor
from accord_sandbox.server import Fault, RunningSandbox, SandboxSettings, serving

if TYPE_CHECKING:
    from collections.abc import Callable

LATENCY_SECONDS = 0.05


def with_accord(server: RunningSandbox, plan: dict[str, Any]) -> None:
    access = Access(server.repository, server.token, server.url)
    receipt = apply_plan(
        GitHub(access, SystemClock(), lambda seconds, _: print(f"  (accord waits {seconds:.0f} s for a limit)")),
        read_plan(read_shape(PlannerResult, plan)),
        PlanOptions(server.repository, SystemClock(), Redactor(), PostingPolicy()),
    )
    assert receipt.exit_code == 0, receipt.error


def with_pygithub(server: RunningSandbox, plan: dict[str, Any]) -> None:
    client = github.Github(auth=github.Auth.Token(server.token), base_url=server.url)
    repository = client.get_repo(server.repository)
    known = {label.name for label in repository.get_labels()}
    issues = {}
    for item in plan["create"]:
        assert set(item["labels"]) <= known, item["labels"]
        issues[item["tempID"]] = repository.create_issue(item["title"], item["body"], labels=item["labels"])
    for item in plan["create"]:
        for name in item["blockedBy"]:
            path = f"{issues[item['tempID']].url}/dependencies/blocked_by"
            client.requester.requestJsonAndCheck("POST", path, input={"issue_id": issues[name].id})


def measure(
    name: str, server: RunningSandbox, action: Callable[[RunningSandbox, dict[str, Any]], None], plan: dict[str, Any]
) -> float:
    server.forget_requests()
    server.faults.add(Fault("slow", times=sys.maxsize, seconds=LATENCY_SECONDS))
    start = time.perf_counter()
    action(server, plan)
    taken = time.perf_counter() - start
    reads = sum(method == "GET" for method, _, _ in server.requests)
    writes = len(server.requests) - reads
    print(f"{name:<28} {reads:4} reads {writes:4} writes {taken:7.1f} s")
    return taken


def prepared(server: RunningSandbox) -> None:
    access = Access(server.repository, server.token, server.url)
    adapter = GitHub(access, SystemClock(), lambda *_: None)
    actions, _ = plan_labels(shipped_labels(), adapter.labels(), ())
    _, problem = apply_labels(adapter, actions, SystemClock(), lambda _: None)
    assert problem is None, problem


def main(items: int) -> None:
    plan = plans.plan(items)
    settings = SandboxSettings(rate_limits=None)
    with tempfile.TemporaryDirectory() as home, serving(Path(home), settings=settings) as server:
        prepared(server)
        first = measure("accord", server, with_accord, plan)
        again = measure("accord, second run", server, with_accord, plan)
        server.reset()
        prepared(server)
        plain = measure("PyGithub loop", server, with_pygithub, plan)
    print(
        f"ratio of times, loop to accord: {plain / first:.1f}; a second run of accord: {again / first:.3f} of its first"
    )


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 100)
