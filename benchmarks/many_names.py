"""How the CPU time of `accord check` grows with the items of a plan whose bodies name each other as owners.

    python benchmarks/many_names.py [ITEMS] [RUNS] [--against CHECKOUT]

Names have blanks, which takes longest: `(owned by #the module 7)`. Plans of ITEMS (1,000) and twice as many are planned
without a GitHub: the names of a plan are looked for in each body. The least user and system time of RUNS (3) counts.
"""

from __future__ import annotations

import json
import tempfile
from pathlib import Path

import plans
from processes import Measured, cpu_seconds, options, report

FIND = """
import json, sys
from pathlib import Path
from accord.results.bodies import longest_length, owners_in
from accord.results.models import PlannerResult
items = PlannerResult.model_validate(json.loads(Path(sys.argv[1]).read_bytes())).create
names = frozenset(item.temp_id for item in items)
assert all(owners_in(item.body, names) and longest_length(item.body, names) for item in items)
"""


def main(items: int, runs: int, checkouts: list[Path]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        for checkout in checkouts:
            found: Measured = {}
            for count in (items, 2 * items):
                plan = plans.plan(count)
                for n, item in enumerate(plan["create"]):
                    item["tempID"] = f"the module {n}"
                    item["body"] += f"\nThe rest is another item's (owned by #the module {n * 7 % count}).\n"
                file = Path(folder) / "plan.json"
                file.write_text(json.dumps(plan), encoding="utf-8")
                found[f"{count} items"] = cpu_seconds(["-c", FIND, str(file)], runs, checkout)
            print(checkout)
            report(found)


if __name__ == "__main__":
    main(*options(1000, 3))
