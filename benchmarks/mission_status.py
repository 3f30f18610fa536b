"""CPU time of `accord mission status` for 2,000 work packages, against only reading their files and YAML in C.

    python benchmarks/mission_status.py [WORK_PACKAGES] [RUNS] [--against CHECKOUT]

Both are processes with their start and imports; the least user and system time of RUNS (3) counts.
"""

from __future__ import annotations

import json
import tempfile
from pathlib import Path

from processes import Measured, cpu_seconds, options, report

HEAD = """---
work_package_id: {name}
title: Part {number} of the work
dependencies: [{before}]
requirement_refs:
- FR-{number:03}
- NFR-001
planning_base_branch: main
merge_target_branch: main
branch_strategy: Planning artifacts were generated on main. Completed changes must merge back into main.
subtasks:
- T{number:03}
agent: "codex:default:implementer"
history:
- timestamp: '2026-05-04T12:00:00Z'
  event: created
authoritative_surface: src/part_{number}.py
owned_files:
- src/part_{number}.py
- tests/test_part_{number}.py
tags: []
---

# {name}

Change the part, and its tests.
"""
READ = """
import sys, yaml
from pathlib import Path
for path in sorted(Path(sys.argv[1]).iterdir()):
    yaml.load(path.read_bytes().split(b"---\\n")[1], yaml.CSafeLoader)
"""


def write_mission(root: Path, count: int) -> Path:
    """Write a mission whose work packages wait for the one before them, in ten lanes; return its folder of tasks."""
    folder = root / "kitty-specs" / "many-parts"
    (folder / "tasks").mkdir(parents=True)
    names = [f"WP{number:02}" for number in range(1, count + 1)]
    for number, name in enumerate(names, start=1):
        text = HEAD.format(name=name, number=number, before=names[number - 2] if number > 1 else "")
        (folder / "tasks" / f"{name}-part.md").write_text(text, encoding="utf-8")
    lanes = [{"lane_id": f"lane-{i}", "wp_ids": names[i::10]} for i in range(10)]
    (folder / "lanes.json").write_text(json.dumps({"version": 1, "lanes": lanes}), encoding="utf-8")
    return folder / "tasks"


def main(count: int, runs: int, checkouts: list[Path]) -> None:
    with tempfile.TemporaryDirectory() as home:
        tasks = write_mission(Path(home), count)
        found: Measured = {"files and yaml.CSafeLoader": cpu_seconds(["-c", READ, str(tasks)], runs)}
        words = ["-m", "accord", "mission", "--root", home, "status", "many-parts", "--format", "json"]
        for checkout in checkouts:
            found[f"accord mission status ({checkout})"] = cpu_seconds(words, runs, checkout)
        print(f"{count} work packages")
        report(found)


if __name__ == "__main__":
    main(*options(2000, 3))
