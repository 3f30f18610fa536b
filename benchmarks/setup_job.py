"""CPU and wall time to set up a job, of its first commands, and of `./dev accord`.

    python benchmarks/setup_job.py [RUNS] [--against CHECKOUT]

`actions/setup/setup.sh` into an empty folder, against a virtual environment into which pip installs the same packages.
Then `accord check` twice by `accord.sh`, outside of the workspace as on a runner: the first compiles the modules that
it imports. The least of RUNS (2) counts. Needs the package index, whose answers pip may have cached; `./dev` needs an
environment that is in step.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from processes import HERE, Measured, options, process_seconds, report

Times = dict[str, list[float]]
PIP = ["--quiet", "--disable-pip-version-check", "--no-deps", "--require-hashes", "--requirement"]


def measure(times: Times, name: str, *command: str, **variables: str) -> None:
    """Add the CPU time and the wall time of a command."""
    kept = {key: value for key, value in os.environ.items() if key != "PYTHONDONTWRITEBYTECODE"}
    start = time.perf_counter()
    times.setdefault(name, []).append(process_seconds(list(command), {**kept, **variables}))
    times.setdefault(f"{name}, wall time", []).append(time.perf_counter() - start)


def set_up(times: Times, checkout: Path) -> None:
    """Set up a job, run its first commands, and let pip install the same packages."""
    scripts = checkout / "actions" / "setup"
    plan = str(checkout / "examples" / "planner-result.json")
    with tempfile.TemporaryDirectory() as folder:
        job = {"RUNNER_TEMP": folder, "GITHUB_WORKSPACE": f"{folder}/work"}
        measure(times, f"set-up ({checkout})", "bash", str(scripts / "setup.sh"), **job)
        for compiled in list((checkout / "src").rglob("__pycache__")):
            shutil.rmtree(compiled)
        for name in ("first command", "second command"):
            measure(times, f"{name} ({checkout})", "bash", str(scripts / "accord.sh"), "check", plan, **job)
        if checkout == HERE:
            (packages,) = Path(folder).glob("*/packages.txt")
            environment = f"{folder}/peer"
            made = f"{sys.executable} -m venv {environment}"
            words = ["bash", "-c", f'{made} && "$0" "$@"', f"{environment}/bin/python", "-m", "pip", "install"]
            measure(times, "venv and pip", *words, *PIP, str(packages))


def run_dev(times: Times) -> None:
    subprocess.run([str(HERE / "dev"), "accord", "--version"], stdout=subprocess.DEVNULL, check=True)
    for _ in range(5):
        measure(times, "accord --version", str(HERE / ".venv" / "bin" / "accord"), "--version")
        measure(times, "./dev accord --version", str(HERE / "dev"), "accord", "--version")


def print_least(times: Times, *, is_wall: bool) -> None:
    peer_first = sorted(times, key=lambda name: not name.startswith("venv"))
    found: Measured = {name: min(times[name]) for name in peer_first if name.endswith("wall time") == is_wall}
    report(found)


def main(runs: int, _: int, checkouts: list[Path]) -> None:
    jobs: Times = {}
    commands: Times = {}
    for _ in range(runs):
        for checkout in reversed(checkouts):
            set_up(jobs, checkout)
    run_dev(commands)
    for times in (jobs, commands):
        print_least(times, is_wall=False)
        print_least(times, is_wall=True)


if __name__ == "__main__":
    main(*options(2, 0))
