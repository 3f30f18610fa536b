"""How long a mission of 500 work packages takes to load and to show, against only reading its files and their YAML.

    python benchmarks/mission_500.py [WORK_PACKAGES] [RUNS]

All run in one process after one warm-up, so imports count on no side, and with the collector set as the command line
sets it. Also counts how often a mode is settled, which is once a work package.
"""

from __future__ import annotations

import gc
import json
import sys
import tempfile
from datetime import UTC, datetime
from pathlib import Path

import yaml
from check_1000 import median_seconds

from accord.cli.main import _ALLOCATIONS_BEFORE_COLLECTING
from accord.missions import load
from accord.missions.load import load_mission
from accord.missions.query import mission_status
from accord.missions.workspace import settle_mode

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


def write(root: Path, count: int) -> list[Path]:
    folder = root / "kitty-specs" / "500-parts"
    (folder / "tasks").mkdir(parents=True)
    names = [f"WP{number:02}" for number in range(1, count + 1)]
    for number, name in enumerate(names, start=1):
        text = HEAD.format(name=name, number=number, before=names[number - 2] if number > 1 else "")
        (folder / "tasks" / f"{name}-part.md").write_text(text, encoding="utf-8")
    lanes = [{"lane_id": f"lane-{i}", "wp_ids": names[i::10]} for i in range(10)]
    (folder / "lanes.json").write_text(json.dumps({"version": 1, "lanes": lanes}), encoding="utf-8")
    return sorted((folder / "tasks").iterdir())


def floor(paths: list[Path]) -> None:
    for path in paths:
        yaml.load(path.read_bytes().split(b"---\n")[1], yaml.CSafeLoader)


def settled(root: Path) -> int:
    asked = []

    def counted(*arguments):  # type: ignore[no-untyped-def]
        asked.append(arguments)
        return settle_mode(*arguments)

    load.settle_mode = counted
    mission_status(load_mission(root, "500-parts"), datetime.now(UTC))
    load.settle_mode = settle_mode
    return len(asked)


def main(count: int, runs: int) -> None:
    gc.set_threshold(_ALLOCATIONS_BEFORE_COLLECTING)
    with tempfile.TemporaryDirectory() as home:
        root = Path(home)
        paths = write(root, count)
        least = median_seconds(lambda: floor(paths), runs)
        loading = median_seconds(lambda: load_mission(root, "500-parts"), runs)
        mission = load_mission(root, "500-parts")
        showing = median_seconds(lambda: mission_status(mission, datetime.now(UTC)), runs)
        print(f"{count} work packages, {settled(root)} modes settled")
    print(f"files + YAML in C      {least:7.3f} s")
    for name, seconds in (("load", loading), ("status, once loaded", showing)):
        print(f"{name:<22} {seconds:7.3f} s   ratio {seconds / least:.1f}, {seconds / count * 1000:.2f} ms each")


if __name__ == "__main__":
    given = [int(argument) for argument in sys.argv[1:]]
    main(given[0] if given else 500, given[1] if len(given) > 1 else 5)
