"""CPU time of a plan with 100 issues and 60 dependencies on a sandbox without latency, against a plain requests loop.

    python benchmarks/cpu_apply_100.py [ITEMS] [RUNS] [--against CHECKOUT]

The sandbox is a process of its own. Each side is a process that applies the plan to a fresh sandbox; its least user and
system time of RUNS (3) counts, with its start and imports. The loop creates the same issues and dependencies on one
connection. Both run outside of any checkout.
"""

from __future__ import annotations

import json
import tempfile
from pathlib import Path

import plans
from processes import Measured, cpu_seconds, options, report

from accord_sandbox.server import SandboxSettings, serving

DEPENDENCIES = 60
LOOP = """
import json, os, sys, requests
plan, base = json.load(open(sys.argv[1])), f"{sys.argv[2]}/repos/{sys.argv[3]}"
session = requests.Session()
session.headers["Authorization"] = f"Bearer {os.environ['GITHUB_TOKEN']}"
def post(path, body):
    answer = session.post(f"{base}{path}", json=body, timeout=30)
    answer.raise_for_status()
    return answer.json()
issues = {}
for item in plan["create"]:
    body = {"title": item["title"], "body": item["body"], "labels": item["labels"]}
    issues[item["tempID"]] = post("/issues", body)
for item in plan["create"]:
    for name in item["blockedBy"]:
        number = issues[item["tempID"]]["number"]
        post(f"/issues/{number}/dependencies/blocked_by", {"issue_id": issues[name]["id"]})
"""


def plan_of(items: int) -> dict[str, object]:
    plan = plans.plan(items)
    left = DEPENDENCIES * items // 100
    for item in plan["create"]:
        item["blockedBy"] = item["blockedBy"] if left > 0 else []
        left -= len(item["blockedBy"])
    return plan


def main(items: int, runs: int, checkouts: list[Path]) -> None:
    times: dict[str, list[float]] = {}
    settings = SandboxSettings(rate_limits=None)
    with tempfile.TemporaryDirectory() as home, serving(Path(home), settings=settings) as server:
        file = Path(home) / "plan.json"
        file.write_text(json.dumps(plan_of(items)), encoding="utf-8")
        job = {"GITHUB_TOKEN": server.token, "GITHUB_REPOSITORY": server.repository, "GITHUB_API_URL": server.url}
        commands = {"requests loop": (["-c", LOOP, str(file), server.url, server.repository], checkouts[-1])}
        for checkout in checkouts:
            commands[f"accord apply ({checkout})"] = (["-m", "accord", "apply", str(file)], checkout)
        for _ in range(runs + 1):
            for name, (words, checkout) in commands.items():
                server.reset()
                cpu_seconds(["-m", "accord", "labels", "sync"], 0, checkout, job)
                times.setdefault(name, []).append(cpu_seconds(words, 0, checkout, job))
    found: Measured = {name: min(each[1:]) for name, each in times.items()}
    report(found)


if __name__ == "__main__":
    main(*options(100, 3))
