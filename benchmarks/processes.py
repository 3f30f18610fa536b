"""CPU time of commands as processes, for the benchmarks: the same measure for accord and for its peers.

Code of another checkout is measured in the same run with ``--against``. Bytecode is written before a run counts.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).parents[1]

Measured = dict[str, float]
"""Seconds by what was measured; the first is the baseline."""


def environment(checkout: Path = HERE, variables: dict[str, str] | None = None) -> dict[str, str]:
    """Return the variables of a process that runs a checkout's code, as an installed one does."""
    kept = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    return {**kept, "PYTHONPATH": str(checkout / "src"), **(variables or {})}


def process_seconds(
    command: list[str], variables: dict[str, str] | None = None, code: int = 0, folder: Path | None = None
) -> float:
    """Return the user and system time of one process that ends with this exit code, and of those that it starts.

    Without a ``folder`` it runs in that for temporary files, where no checkout has settings for it.
    """
    place = folder or tempfile.gettempdir()
    child = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=variables, cwd=place)
    _, status, usage = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    assert child.returncode == code, command
    return usage.ru_utime + usage.ru_stime


def cpu_seconds(
    words: list[str], runs: int, checkout: Path = HERE, variables: dict[str, str] | None = None, code: int = 0
) -> float:
    """Return the least time of some runs of Python with these arguments, after one that may write bytecode.

    Without ``runs``, the first one counts.
    """
    command = [sys.executable, "-P", *words]
    times = [process_seconds(command, environment(checkout, variables), code) for _ in range(runs + 1)]
    return min(times[1:] or times)


def report(found: Measured) -> None:
    """Print what was measured, with its ratio to the first."""
    floor = next(iter(found.values()))
    for name, seconds in found.items():
        print(f"{name:<56} {seconds:7.3f} s   ratio {seconds / floor:.2f}")


def options(size: int, runs: int) -> tuple[int, int, list[Path]]:
    """Read ``[SIZE] [RUNS] [--against CHECKOUT]``; return size, runs, and the checkouts, the older one first."""
    words = sys.argv[1:]
    others = [Path(words.pop(words.index("--against") + 1)).resolve()] if "--against" in words else []
    numbers = [int(word) for word in words if word != "--against"]
    size, runs = (*numbers, *(size, runs)[len(numbers) :])
    return size, runs, [*others, HERE]
