"""How long a plan of 1,000 items takes to check, against only reading it with json and pydantic.

    python benchmarks/check_1000.py [ITEMS] [RUNS]

Both run in one process after one warm-up, so imports count on neither side, and with the collector set as the command
line sets it.
"""

from __future__ import annotations

import gc
import json
import sys
import time
from statistics import median
from typing import TYPE_CHECKING

import plans

from accord.cli.main import _ALLOCATIONS_BEFORE_COLLECTING
from accord.core.kinds import check_document
from accord.results.models import PlannerResult

if TYPE_CHECKING:
    from collections.abc import Callable


def median_seconds(action: Callable[[], object], runs: int) -> float:
    action()
    times = []
    for _ in range(runs):
        start = time.perf_counter()
        action()
        times.append(time.perf_counter() - start)
    return median(times)


def main(items: int, runs: int) -> None:
    gc.set_threshold(_ALLOCATIONS_BEFORE_COLLECTING)
    raw = json.dumps(plans.plan(items), indent=2).encode()
    _, findings = check_document(raw, None)
    assert not findings, findings[0]
    floor = median_seconds(lambda: PlannerResult.model_validate(json.loads(raw)), 20 * runs)
    whole = median_seconds(lambda: check_document(raw, None), runs)
    print(f"{items} items, {len(raw) / 1_048_576:.1f} MiB")
    print(f"json.loads + pydantic  {floor:7.3f} s")
    print(f"accord check           {whole:7.3f} s   ratio {whole / floor:.0f}, {whole / items * 1000:.2f} ms an item")


if __name__ == "__main__":
    given = [int(argument) for argument in sys.argv[1:]]
    main(given[0] if given else 1000, given[1] if len(given) > 1 else 5)
