"""CPU time of `accord check` on plans of 1,000 and 5,000 items in a job with 155 environment variables.

    python benchmarks/check_plans.py [RUNS] [--against CHECKOUT]

Each item has one finding. The baseline only reads the file with json and pydantic. All are processes with their start
and imports; the least user and system time of RUNS (3) counts.
"""

from __future__ import annotations

import json
import tempfile
from pathlib import Path

import plans
from processes import Measured, cpu_seconds, options, report

JOB = {f"VARIABLE_{n}": f"the value of variable {n}" for n in range(153)}
JOB |= {"OPENAI_API_KEY": "sk-" + "a1B2" * 8}
READ = """
import json, sys
from pathlib import Path
from accord.results.models import PlannerResult
PlannerResult.model_validate(json.loads(Path(sys.argv[1]).read_bytes()))
"""


def main(runs: int, _: int, checkouts: list[Path]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "plan.json"
        for items in (1000, 5000):
            plan = plans.plan(items)
            for item in plan["create"]:
                item["labels"] = item["labels"][:-1]
            file.write_text(json.dumps(plan, indent=2), encoding="utf-8")
            found: Measured = {"json.loads and pydantic": cpu_seconds(["-c", READ, str(file)], runs, variables=JOB)}
            for checkout in checkouts:
                words = ["-m", "accord", "check", str(file)]
                found[f"accord check ({checkout})"] = cpu_seconds(words, runs, checkout, JOB, code=1)
            print(f"{items} items, {file.stat().st_size / 1_048_576:.1f} MiB")
            report(found)


if __name__ == "__main__":
    main(*options(3, 0))
