"""Valid documents of sessions, so that a test says only what is different; and folders of them."""

import json
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from support.clocks import ManualClock

from accord.core.clock import Clock
from accord.files.store import DISK, Disk
from accord.sessions.apply import SessionWriter

NAME = "2026-01-31_csv-export"
AT = "2026-01-31T09:30:00Z"

SPEC = "# Spec\n\n## Goals\n\nExport.\n\n## Acceptance Criteria\n\n- AC-001\n\n## Definition of Done\n\nTests pass.\n"
ARCHITECTURE = "# Architecture\n\n## Overview\n\nOne writer.\n\n## Modules\n\n- csv\n"
REPORT = "# Report\n\n## What was done\n\nx\n\n## How to run\n\nx\n\n## How to test\n\nx\n\n## Known issues\n\nNone.\n"
TASKS = """\
# the plan, by the Planner
project: {name: csv, definition_of_done: [tests pass]}
tasks:
  - id: T-001
    status: not-started  # by the Coder
    goal: Write the header.
    acceptance_checks: ["cmd: pytest tests/csv"]
    owner: 'someone'
  - id: T-002
    status: not-started
    goal: Write the rows.
    depends_on: [T-001]
    acceptance_checks:
      - "manual: open the file"
"""


def clock(hour: int = 12) -> ManualClock:
    return ManualClock(datetime(2026, 1, 31, hour, tzinfo=UTC))


def decision(decision_id: str = "UD-1", status: str = "pending", **changes: Any) -> dict[str, Any]:
    contexts = {"UD-APPROVE-DESIGN": "APPROVE_DESIGN", "UD-REVIEW-STRATEGY": "REVIEW_STRATEGY"}
    answers = {"UD-APPROVE-DESIGN": "approved", "UD-REVIEW-STRATEGY": "per-batch"}
    return {
        "decision_id": decision_id,
        "question": "Which one?",
        "status": status,
        "answer": answers.get(decision_id, "the first") if status == "answered" else None,
        "asked_at": AT,
        "resolved_at": None if status == "pending" else AT,
        "state_context": contexts.get(decision_id, "IMPLEMENT_LOOP"),
        "resolution_reason": "not needed" if status in ("cancelled", "skipped") else None,
        **changes,
    }


GATES = [decision("UD-APPROVE-DESIGN", "answered"), decision("UD-REVIEW-STRATEGY", "answered")]
SINGLE = [GATES[0], decision("UD-REVIEW-STRATEGY", "answered", answer="single-final")]
"""Both gates, with reviews only at the end: no final review of ``meta`` is asked for."""


def status(state: str = "INTAKE", **changes: Any) -> dict[str, Any]:
    empty: dict[str, Any] = {"user_decisions": [], "retry_counts": {}, "known_issues": []}
    made = {"current_state": state, "session": NAME, "assumptions": ["UTF-8"], **empty}
    return {**made, "last_ci_result": "unknown", "last_update": AT, **changes}


def acceptance() -> dict[str, Any]:
    return {"acceptance_criteria": [{"id": "AC-001", "description": "A file is written.", "verify": ["cmd: pytest"]}]}


def agent_input(**task: Any) -> dict[str, Any]:
    made = {
        "id": "T-001",
        "title": "Header",
        "goal": "Write the header.",
        "non_goals": [],
        "context_files": [f".agents-work/{NAME}/spec.md"],
        "constraints": [],
        "acceptance_checks": ["cmd: pytest"],
        "risk_flags": ["none"],
    }
    return {
        "task": {**made, **task},
        "project_type": "cli",
        "repo_state": {"branch": "main", "ci_status": "green", "last_failed_step": None},
        "tools_available": ["read_file"],
    }


def agent_output(**changes: Any) -> dict[str, Any]:
    return {
        "status": "OK",
        "summary": "The header is written.",
        "artifacts": {"commands_to_run": ["pytest"], "notes": []},
        "gates": {
            "meets_definition_of_done": True,
            "needs_review": False,
            "needs_tests": False,
            "security_concerns": [],
        },
        "next": {"recommended_agent": "Reviewer", "recommended_task_id": "T-001", "reason": "Review it."},
        **changes,
    }


def outputs(*said: tuple[str, str], task: str = "T-001", concerns: int = 0, **gates: Any) -> str:
    """Return ``outputs.jsonl`` after these agents gave back these statuses and gates for a task."""
    more = {"summary": "Looked at.", "security_concerns": concerns, **gates}
    lines = [{"at": AT, "task_id": task, "agent": agent, "status": status, **more} for agent, status in said]
    return "".join(json.dumps(line) + "\n" for line in lines)


WORKED_ON = outputs(("Coder", "OK")) + outputs(("Coder", "OK"), task="T-002")
ALL_REVIEWED = WORKED_ON + outputs(("Reviewer", "OK"), ("QA", "OK"), task="meta")
"""The work on every task, and its reviews all at once."""
INTEGRATED = ALL_REVIEWED + outputs(("Integrator", "OK"), task="meta")


def make_session(
    root: Path, state: str = "INTAKE", *, texts: Mapping[str, str | None] | None = None, **changes: Any
) -> Path:
    """Write a folder with every document; ``texts`` replaces files, None leaves one out. Return the folder."""
    folder = root / ".agents-work" / changes.get("session", NAME)
    folder.mkdir(parents=True)
    files = {
        "status.json": json.dumps(status(state, **changes), indent=2) + "\n",
        "tasks.yaml": TASKS,
        "acceptance.json": json.dumps(acceptance()),
        "spec.md": SPEC,
        "architecture.md": ARCHITECTURE,
        "report.md": REPORT,
        **(texts or {}),
    }
    for name, text in files.items():
        if text is not None:
            (folder / name).write_bytes(text.encode("utf-8"))
    return folder


def done(tasks: str = TASKS) -> str:
    """Return the plan with every task completed."""
    return tasks.replace("status: not-started", "status: completed")


def writer(folder: Path, clock_: Clock | None = None, *, disk: Disk = DISK, is_dry_run: bool = False) -> SessionWriter:
    return SessionWriter(folder, clock_ or clock(), disk=disk, is_dry_run=is_dry_run)
