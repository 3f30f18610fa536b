"""CPU time to classify 100 MB in one line, and 100 MB in lines of 100 bytes, against `jq -c .type` on the same files.

    python benchmarks/lines_100mb.py [MEGABYTES] [RUNS] [--against CHECKOUT]

Each runs in a separate process; the least user and system time of RUNS (3) counts. ``--against`` measures the code of
another checkout in the same run.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).parents[1]
BEGIN = {"type": "thread.started", "thread_id": "0"}
END = {"type": "turn.completed", "usage": {"input_tokens": 1, "output_tokens": 1}}


def as_line(event: dict[str, object]) -> str:
    return json.dumps(event, ensure_ascii=False, separators=(",", ":")) + "\n"


def write_one_line(path: Path, size: int) -> None:
    output = '00000 ok   src/app/module.py "quoted" \\ café\n'
    item = {"id": "item_0", "type": "command_execution", "command": "pytest", "exit_code": 0, "status": "completed"}
    event = {"type": "item.completed", "item": {**item, "aggregated_output": output * (size // len(output))}}
    path.write_text("".join(map(as_line, (BEGIN, event, END))), encoding="utf-8")


def write_short_lines(path: Path, size: int) -> None:
    with path.open("w", encoding="utf-8") as file:
        file.write(as_line(BEGIN))
        for n in range(size // 100):
            item = {"id": f"item_{n:07}", "type": "reasoning", "text": "Now the next step"}
            file.write(as_line({"type": "item.completed", "item": item}))
        file.write(as_line(END))


def cpu_seconds(command: list[str], source: Path, runs: int) -> float:
    times = []
    for _ in range(runs):
        environment = {**os.environ, "PYTHONPATH": str(source)}
        child = subprocess.Popen(command, stdout=subprocess.DEVNULL, env=environment)
        _, status, usage = os.wait4(child.pid, 0)
        child.returncode = os.waitstatus_to_exitcode(status)
        assert child.returncode == 0, command
        times.append(usage.ru_utime + usage.ru_stime)
    return min(times)


def main(megabytes: int, runs: int, checkouts: list[Path]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "stdout.log"
        for what, write in (("one line", write_one_line), ("lines of 100 bytes", write_short_lines)):
            write(path, megabytes * 1_000_000)
            floor = cpu_seconds(["jq", "-c", ".type", str(path)], HERE, runs)
            print(f"{what}, {path.stat().st_size / 1e6:.0f} MB\n  jq -c .type      {floor:6.2f} s")
            for checkout in checkouts:
                words = [sys.executable, "-P", "-m", "accord", "classify", "--exit-code", "0", str(path)]
                seconds = cpu_seconds(words, checkout / "src", runs)
                print(f"  accord classify  {seconds:6.2f} s   ratio {seconds / floor:.2f}   {checkout}")


if __name__ == "__main__":
    words = sys.argv[1:]
    others = [Path(words.pop(words.index("--against") + 1))] if "--against" in words else []
    numbers = [int(word) for word in words if word != "--against"]
    main(numbers[0] if numbers else 100, numbers[1] if len(numbers) > 1 else 3, [HERE, *others])
