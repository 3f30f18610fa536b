"""Plans for tests: small builders for valid results, so that a test says only what it is about."""

from typing import Any

TASK_LABELS = ["task:implement", "status:pending", "priority:medium", "complexity:low"]
REFINEMENT_LABELS = ["task:refinement", "status:pending", "priority:high"]


def task_body(
    *,
    objective: str = "Make it work.",
    in_scope: str = "- src/a.py",
    out_of_scope: str = "- src/z.py",
    criteria: str = "- [ ] It works",
    context: str = "None",
    constraints: str = "None",
) -> str:
    return f"""## Objective

{objective}

## Spec Reference

- Spec: `docs/specs/a.md`
- Section(s): All

## Scope

### In Scope

{in_scope}

### Out of Scope

{out_of_scope}

## Acceptance Criteria

{criteria}

## Context

{context}

## Constraints

{constraints}
"""


def refinement_body(
    *,
    quote: str = '- Quote: "It shall be fast."',
    options: str = "1. **One** is cheap\n2. **Two** is better",
    recommendation: str = "Two, because it lasts.",
) -> str:
    return f"""## Ambiguity

How fast is fast?

## Spec Reference

- Spec: `docs/specs/a.md`
- Section(s): Speed
{quote}

## Options

{options}

## Recommendation

{recommendation}

## Blocked Tasks

- The task that makes it fast
"""


def task(temp_id: str, *blocked_by: str, title: str = "", body: str | None = None, **scope: str) -> dict[str, Any]:
    path = f"src/{temp_id}.py"
    scope.setdefault("in_scope", f"- `{path}`" if " " in path else f"- {path}")
    body = task_body(**scope) if body is None else body
    entry = {"tempID": temp_id, "title": title or f"Do {temp_id}", "body": body}
    return {**entry, "labels": list(TASK_LABELS), "blockedBy": list(blocked_by)}


def refinement(temp_id: str, *blocked_by: str, **parts: str) -> dict[str, Any]:
    entry = {"tempID": temp_id, "title": f"Clarify {temp_id}", "body": refinement_body(**parts)}
    return {**entry, "labels": list(REFINEMENT_LABELS), "blockedBy": list(blocked_by)}


def plan(
    *create: dict[str, Any], close: list[str] | None = None, update: list[dict[str, Any]] | None = None
) -> dict[str, Any]:
    return {"role": "planner", "create": list(create), "close": close or [], "update": update or []}


def update(number: int, *, body: str | None = None, labels: list[str] | None = None) -> dict[str, Any]:
    return {"workItemID": f"#{number}", "body": body, "labels": labels}
