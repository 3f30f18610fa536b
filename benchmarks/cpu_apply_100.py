"""CPU time of a plan with 100 issues and 60 dependencies on a sandbox without latency, against a plain requests loop.

    python benchmarks/cpu_apply_100.py [ITEMS] [RUNS] [--against CHECKOUT]

The sandbox is a process of its own. Each side is a process that applies the plan to a fresh sandbox; its least user and
system time of RUNS (3) counts, with its start and imports. The loop creates the same issues and dependencies on one
connection. ``--against`` measures the code of another checkout in the same run.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import plans

from accord_sandbox.server import SandboxSettings, serving

HERE = Path(__file__).parents[1]
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


def cpu_seconds(command: list[str], variables: dict[str, str]) -> float:
    child = subprocess.Popen(command, stdout=subprocess.DEVNULL, env={**os.environ, **variables})
    _, status, usage = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    assert child.returncode == 0, command
    return usage.ru_utime + usage.ru_stime


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
        accord = [sys.executable, "-P", "-m", "accord"]
        commands = {"requests loop": ([sys.executable, "-c", LOOP, str(file), server.url, server.repository], HERE)}
        commands |= {f"accord apply ({checkout})": ([*accord, "apply", str(file)], checkout) for checkout in checkouts}
        for _ in range(runs):
            for name, (command, checkout) in commands.items():
                server.reset()
                path = {"PYTHONPATH": str(checkout / "src")}
                cpu_seconds([*accord, "labels", "sync"], job | path)
                times.setdefault(name, []).append(cpu_seconds(command, job | path))
    floor = min(times["requests loop"])
    for name, found in times.items():
        print(f"{name:<40} {min(found):6.2f} s   ratio {min(found) / floor:.2f}")


if __name__ == "__main__":
    words = sys.argv[1:]
    others = [Path(words.pop(words.index("--against") + 1))] if "--against" in words else []
    numbers = [int(word) for word in words if word != "--against"]
    main(numbers[0] if numbers else 100, numbers[1] if len(numbers) > 1 else 3, [HERE, *others])
