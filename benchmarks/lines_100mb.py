"""CPU time to classify 100 MB in one line, and 100 MB in lines of 100 bytes, against `jq -c .type` on the same files.

    python benchmarks/lines_100mb.py [MEGABYTES] [RUNS] [--against CHECKOUT]

Both are processes; the least user and system time of RUNS (3) counts.
"""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from processes import Measured, cpu_seconds, options, process_seconds, report

if TYPE_CHECKING:
    from collections.abc import Callable

Event = dict[str, Any]
BEGIN: Event = {"type": "thread.started", "thread_id": "0"}
END: Event = {"type": "turn.completed", "usage": {"input_tokens": 1, "output_tokens": 1}}
GEMINI_BEGIN: Event = {"type": "init", "timestamp": "2026-05-04T12:00:00.000Z", "session_id": "0", "model": "m"}
GEMINI_END: Event = {"type": "result", "timestamp": "2026-05-04T12:00:00.000Z", "status": "success", "stats": {}}


def as_line(event: Event) -> str:
    return json.dumps(event, ensure_ascii=False, separators=(",", ":")) + "\n"


def long_line(_: int, size: int) -> Event:
    output = '00000 ok   src/app/module.py "quoted" \\ café\n'
    item = {"id": "item_0", "type": "command_execution", "command": "pytest", "exit_code": 0, "status": "completed"}
    return {"type": "item.completed", "item": {**item, "aggregated_output": output * (size // len(output))}}


def codex_item(kind: str) -> Callable[[int, int], Event]:
    def item(n: int, _: int) -> Event:
        return {"type": "item.completed", "item": {"id": f"item_{n:07}", "type": kind, "text": "Now the next step"}}

    return item


def codex_command(n: int, _: int) -> Event:
    item = {"id": f"{n:06}", "type": "command_execution", "command": "ls", "exit_code": 0, "status": "completed"}
    return {"type": "item.completed", "item": item}


def gemini_piece(n: int, _: int) -> Event:
    begin = {"type": "message", "timestamp": "2026-05-04T12:00:00.000Z", "role": "assistant"}
    return {**begin, "content": f"{n:07}", "delta": True}


FILES: dict[str, tuple[Event, Callable[[int, int], Event], Event, int]] = {
    "one line": (BEGIN, long_line, END, 0),
    "reasoning of Codex": (BEGIN, codex_item("reasoning"), END, 100),
    "messages of Codex": (BEGIN, codex_item("agent_message"), END, 100),
    "commands of Codex": (BEGIN, codex_command, END, 100),
    "pieces of Gemini's messages": (GEMINI_BEGIN, gemini_piece, GEMINI_END, 100),
}
"""Files by name: first line, one of the lines between, last line, and how long the lines between are (0: one)."""


def write(path: Path, name: str, size: int) -> None:
    begin, between, end, length = FILES[name]
    with path.open("w", encoding="utf-8") as file:
        file.write(as_line(begin))
        file.writelines(as_line(between(n, size)) for n in range(size // length if length else 1))
        file.write(as_line(end))


def main(megabytes: int, runs: int, checkouts: list[Path]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "stdout.log"
        for name in FILES:
            write(path, name, megabytes * 1_000_000)
            found: Measured = {
                "jq -c .type": min(process_seconds(["jq", "-c", ".type", str(path)]) for _ in range(runs))
            }
            for checkout in checkouts:
                words = ["-m", "accord", "classify", "--exit-code", "0", str(path)]
                found[f"accord classify ({checkout})"] = cpu_seconds(words, runs, checkout)
            print(f"{name}, {path.stat().st_size / 1e6:.0f} MB")
            report(found)


if __name__ == "__main__":
    main(*options(100, 3))
