"""CPU time to check plans with a finding for each item, as a process with 155 environment variables.

    python benchmarks/check_environment.py [RUNS] [--against CHECKOUT]

The least user and system time of RUNS (3) counts, with start and imports. ``--against`` measures the code of another
checkout in the same run.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import plans

HERE = Path(__file__).parents[1]
JOB = {f"VARIABLE_{n}": f"the value of variable {n}" for n in range(153)}
JOB |= {"PATH": os.environ["PATH"], "OPENAI_API_KEY": "sk-" + "a1B2" * 8}


def cpu_seconds(file: Path, source: Path, runs: int) -> float:
    times = []
    for _ in range(runs):
        words = [sys.executable, "-P", "-m", "accord", "check", str(file)]
        child = subprocess.Popen(words, stdout=subprocess.DEVNULL, env={**JOB, "PYTHONPATH": str(source)})
        _, status, usage = os.wait4(child.pid, 0)
        child.returncode = os.waitstatus_to_exitcode(status)
        assert child.returncode == 1, words
        times.append(usage.ru_utime + usage.ru_stime)
    return min(times)


def main(runs: int, checkouts: list[Path]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "plan.json"
        for items in (1000, 5000):
            plan = plans.plan(items)
            for item in plan["create"]:
                item["labels"] = item["labels"][:-1]
            file.write_text(json.dumps(plan, indent=2), encoding="utf-8")
            for checkout in checkouts:
                print(f"{items} items  {cpu_seconds(file, checkout / 'src', runs):6.2f} s  {checkout}")


if __name__ == "__main__":
    words = sys.argv[1:]
    others = [Path(words.pop(words.index("--against") + 1))] if "--against" in words else []
    numbers = [int(word) for word in words if word != "--against"]
    main(numbers[0] if numbers else 3, [HERE, *others])
