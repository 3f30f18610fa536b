"""How long a transcript of 100 MB takes to classify, and in how much memory, against what reads its lines anyway.

    python benchmarks/transcript_100mb.py [MEGABYTES] [RUNS]

The transcript is one of codex: commands with output of some kilobytes, and messages. `jq -c .type` reads the same file
where jq is installed; `json.loads` on every line is the baseline in Python. Each runs in a separate process, whose peak
memory the system reports; the shortest of RUNS (3) times counts. Fails when memory exceeds 150 MB or jq is faster.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

MAX_MEGABYTES = 150
EACH_LINE = "import json, sys\nfor line in open(sys.argv[1], 'rb'):\n    json.loads(line).get('type')"


def write(path: Path, megabytes: int) -> None:
    output = "".join(f'{n:05} ok   src/app/module_{n}.py "quoted" \\ café\n' for n in range(120))
    with path.open("w", encoding="utf-8") as file:

        def event(kind: str, **more: object) -> None:
            file.write(json.dumps({"type": kind, **more}, ensure_ascii=False, separators=(",", ":")) + "\n")

        event("thread.started", thread_id="0")
        event("turn.started")
        n = 0
        while file.tell() < megabytes * 1_000_000:
            n += 1
            item = {"id": f"item_{n}", "type": "command_execution", "command": f"pytest -k {n}"}
            event("item.started", item={**item, "aggregated_output": "", "exit_code": None, "status": "in_progress"})
            event("item.completed", item={**item, "aggregated_output": output, "exit_code": 0, "status": "completed"})
            event("item.completed", item={"id": f"item_{n}b", "type": "agent_message", "text": f"Step {n} is done."})
        event("turn.completed", usage={"input_tokens": 1, "output_tokens": 1})


def measured(command: list[str], runs: int) -> tuple[float, float]:
    """Return the shortest time in seconds and the peak of memory in MB of a command."""
    times, peaks = [], []
    for _ in range(runs):
        start = time.perf_counter()
        child = subprocess.Popen(command, stdout=subprocess.DEVNULL)
        _, status, usage = os.wait4(child.pid, 0)
        child.returncode = os.waitstatus_to_exitcode(status)
        times.append(time.perf_counter() - start)
        peaks.append(usage.ru_maxrss / 1024)
        assert child.returncode == 0, command
    return min(times), max(peaks)


def main(megabytes: int, runs: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "stdout.log"
        write(path, megabytes)
        commands = {
            "accord classify": [sys.executable, "-P", "-m", "accord", "classify", "--exit-code", "0", str(path)],
            "json.loads each line": [sys.executable, "-c", EACH_LINE, str(path)],
        }
        if jq := shutil.which("jq"):
            commands["jq -c .type"] = [jq, "-c", ".type", str(path)]
        results = {name: measured(command, runs) for name, command in commands.items()}
    ours = results["accord classify"][0]
    for name, (seconds, megabytes_peak) in results.items():
        print(f"{name:<22} {seconds:6.2f} s   {megabytes_peak:5.0f} MB   ratio {seconds / ours:.2f}")
    assert results["accord classify"][1] < MAX_MEGABYTES
    assert ours < 2 * results.get("jq -c .type", (float("inf"), 0))[0]


if __name__ == "__main__":
    given = [int(argument) for argument in sys.argv[1:]]
    main(given[0] if given else 100, given[1] if len(given) > 1 else 3)
