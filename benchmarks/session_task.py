"""CPU time of one `accord session task` in a session of 1,000 tasks, against only reading its YAML in C.

    python benchmarks/session_task.py [TASKS] [RUNS] [--against CHECKOUT]

The least user and system time of RUNS (3) counts. Both are processes with their start and imports. The command checks
the whole folder, writes the status, and reads it back.
"""

from __future__ import annotations

import json
import tempfile
from pathlib import Path

from processes import Measured, cpu_seconds, options, report

AT = "2026-01-31T09:30:00Z"
SPEC = "# Spec\n\n## Goals\n\nExport.\n\n## Acceptance Criteria\n\n- AC-001\n\n## Definition of Done\n\nTests pass.\n"
DESIGN = "# Architecture\n\n## Overview\n\nOne writer.\n\n## Modules\n\n- csv\n"
TASK = """\
  - id: T-{number:03}
    status: not-started
    goal: Write part {number} of the export.
    depends_on: [{before}]
    acceptance_checks: ["cmd: pytest tests/part_{number}"]
"""
"""A task waits for the one before it, in chains of ten."""
READ = "import sys, yaml; yaml.load(open(sys.argv[1]), yaml.CSafeLoader)"


def answered(decision_id: str, state: str, answer: str) -> dict[str, object]:
    question = {"decision_id": decision_id, "question": "Which one?", "asked_at": AT, "resolved_at": AT}
    return {**question, "status": "answered", "answer": answer, "state_context": state, "resolution_reason": None}


def write_session(root: Path, count: int) -> Path:
    folder = root / ".agents-work" / "2026-01-31_export"
    folder.mkdir(parents=True)
    gates = [answered("UD-APPROVE-DESIGN", "APPROVE_DESIGN", "approved")]
    gates += [answered("UD-REVIEW-STRATEGY", "REVIEW_STRATEGY", "single-final")]
    status = {"current_state": "IMPLEMENT_LOOP", "session": folder.name, "assumptions": [], "user_decisions": gates}
    status |= {"retry_counts": {}, "known_issues": [], "last_ci_result": "unknown", "last_update": AT}
    criterion = {"id": "AC-001", "description": "A file is written.", "verify": ["cmd: pytest"]}
    (folder / "status.json").write_text(json.dumps(status, indent=2))
    (folder / "acceptance.json").write_text(json.dumps({"acceptance_criteria": [criterion]}, indent=2))
    (folder / "spec.md").write_text(SPEC)
    (folder / "architecture.md").write_text(DESIGN)
    tasks = (TASK.format(number=n, before=f"T-{n - 1:03}" if n % 10 != 1 else "") for n in range(1, count + 1))
    head = "project: {name: export, definition_of_done: [tests pass]}\ntasks:\n"
    (folder / "tasks.yaml").write_text(head + "".join(tasks))
    return folder


def main(count: int, runs: int, checkouts: list[Path]) -> None:
    with tempfile.TemporaryDirectory() as home:
        found: Measured = {}
        for checkout in checkouts:
            folder = write_session(Path(home) / str(len(found)), count)
            words = ["session", "task", str(folder), "T-001", "--to", "in-progress", "--role", "Coder", "--dry-run"]
            found["yaml.CSafeLoader"] = cpu_seconds(["-c", READ, str(folder / "tasks.yaml")], runs)
            found[f"accord session task ({checkout})"] = cpu_seconds(["-m", "accord", *words], runs, checkout)
        report(found)


if __name__ == "__main__":
    main(*options(1000, 3))
