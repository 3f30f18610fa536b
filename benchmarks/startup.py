"""How much CPU time accord needs to start: whole commands, against another checkout or against a floor.

    python benchmarks/startup.py [--against PATH] [--runs RUNS]

With ``--against``, each command of this checkout and of the one at PATH runs in turn, both with this interpreter and
its packages. Without it, the floor is ``python -c "import click, pydantic"``. Prints the median CPU time (user and
system, of the process and all that it waits for) of RUNS (15) starts, and the ratio.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import median

ROOT = Path(__file__).parents[1]
EXAMPLE = str(ROOT / "examples" / "planner-result.json")
FLOOR = 'python -c "import click, pydantic"'
IMPORTS = ["-c", "import click, pydantic"]


def cpu_seconds(checkout: Path, arguments: list[str], home: Path, **more: str) -> float:
    """Run Python with the packages of a checkout; its bytecode is kept below ``home``."""
    environment = {
        **{name: value for name, value in os.environ.items() if not name.startswith(("GITHUB_", "PYTHON"))},
        "PYTHONPATH": str(checkout / "src"),
        "PYTHONPYCACHEPREFIX": str(home / "bytecode"),
        **more,
    }
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, "-P", *arguments], check=True, stdout=subprocess.DEVNULL, env=environment, cwd=home)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def commands(home: Path) -> dict[str, list[str]]:
    """Return the arguments of each command; a dry run takes a new sandbox."""
    sandbox = tempfile.mkdtemp(dir=home)
    return {
        "accord --version": ["-m", "accord", "--version"],
        "accord check": ["-m", "accord", "check", EXAMPLE],
        "accord apply --dry-run --sandbox": ["-m", "accord", "apply", EXAMPLE, "--dry-run", "--sandbox", sandbox],
        "accord apply --dry-run": ["-m", "accord", "apply", EXAMPLE, "--dry-run"],
    }


def measure(checkouts: dict[str, Path], runs: int, home: Path, served: dict[str, str]) -> None:
    """Run every command of every checkout in turn, once to warm up and then ``runs`` times, and print the medians."""
    times: dict[tuple[str, str], list[float]] = {}
    for run in range(runs + 1):
        if len(checkouts) == 1:
            times.setdefault((FLOOR, ""), []).append(cpu_seconds(ROOT, IMPORTS, home))
        for name in commands(home):
            for side, checkout in checkouts.items():
                more = served if name.endswith("--dry-run") else {}
                seconds = cpu_seconds(checkout, commands(home)[name], home, **more)
                if run:
                    times.setdefault((name, side), []).append(seconds)
    for (name, side), taken in times.items():
        floor = times.get((name, "other")) or times[FLOOR, ""]
        label = f"{name} ({side})" if len(checkouts) > 1 else name
        print(f"{label:<46} {median(taken) * 1000:6.0f} ms   ratio {median(taken) / median(floor):.2f}")


def main() -> None:
    parser = argparse.ArgumentParser(description="Measure the CPU time of starting accord.")
    parser.add_argument("--against", type=Path, help="another checkout to compare with")
    parser.add_argument("--runs", type=int, default=15, help="measured starts of each command")
    options = parser.parse_args()
    checkouts = {"other": options.against.resolve()} if options.against else {}
    checkouts["this"] = ROOT
    with tempfile.TemporaryDirectory(prefix="accord-startup-") as directory:
        home = Path(directory)
        server = subprocess.Popen(
            [sys.executable, "-P", "-m", "accord", "sandbox", "serve", "--dir", str(home / "served")],
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONPATH": str(ROOT / "src")},
        )
        try:
            measure(checkouts, options.runs, home, served_at(server))
        finally:
            server.terminate()
            server.wait()


def served_at(server: subprocess.Popen[str]) -> dict[str, str]:
    """Return the environment by which a command finds the sandbox that is served."""
    assert server.stdout is not None
    said = json.loads(server.stdout.readline())
    return {
        "GITHUB_API_URL": f"{said['url']}/api/v3",
        "GITHUB_SERVER_URL": said["url"],
        "GITHUB_REPOSITORY": said["repository"],
        "GITHUB_TOKEN": said["token"],
    }


if __name__ == "__main__":
    main()
