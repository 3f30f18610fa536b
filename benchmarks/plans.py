"""Plans of any size for the benchmarks: valid tasks in chains of ten, each waiting for the one before it."""

from __future__ import annotations

from typing import Any

LABELS = ["task:implement", "status:pending", "priority:medium", "complexity:low"]
CHAIN = 10

BODY = """## Objective

Module {n} does its part.

## Spec Reference

- Spec: `docs/specs/module.md`
- Section(s): Part {n}

## Scope

### In Scope

- `src/module_{n}.py`
- `tests/test_module_{n}.py`

### Out of Scope

- `src/main.py`

## Acceptance Criteria

- [ ] Module {n} answers as the spec says
- [ ] Test: `tests/test_module_{n}.py` passes

## Context

Modules before it in its chain are done by then.

## Constraints

No new dependency.
"""


def plan(count: int) -> dict[str, Any]:
    """Return a planner result with so many tasks."""
    create = [
        {
            "tempID": f"module-{n}",
            "title": f"Write module {n}",
            "body": BODY.format(n=n),
            "labels": LABELS,
            "blockedBy": [f"module-{n - 1}"] if n % CHAIN else [],
        }
        for n in range(count)
    ]
    return {"role": "planner", "create": create, "close": [], "update": []}
