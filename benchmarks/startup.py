"""How much of accord's start is its own: two commands against the imports that they cannot do without.

    python benchmarks/startup.py [RUNS]

Prints the median of RUNS (15) starts of each command, and its ratio to `python -c "import click, pydantic"`.
"""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path
from statistics import median

EXAMPLE = Path(__file__).parents[1] / "examples" / "planner-result.json"
BASELINE = 'python -c "import click, pydantic"'
COMMANDS = {
    BASELINE: ["-c", "import click, pydantic"],
    "accord --version": ["-m", "accord", "--version"],
    "accord check": ["-m", "accord", "check", str(EXAMPLE)],
}


def seconds(arguments: list[str]) -> float:
    start = time.perf_counter()
    subprocess.run([sys.executable, "-P", *arguments], check=True, stdout=subprocess.DEVNULL)
    return time.perf_counter() - start


def main(runs: int) -> None:
    for arguments in COMMANDS.values():
        seconds(arguments)
    taken: dict[str, list[float]] = {name: [] for name in COMMANDS}
    for _ in range(runs):
        for name, arguments in COMMANDS.items():
            taken[name].append(seconds(arguments))
    baseline = median(taken[BASELINE])
    for name, times in taken.items():
        print(f"{name:<36} {median(times) * 1000:6.0f} ms   ratio {median(times) / baseline:.2f}")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 15)
