"""The agent that npm installs as codex in the flow of a repository: it plans, implements, reviews and works on.

It decides by the schema of the answer that it is asked for, and by the files that it finds. Nothing of accord is used.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

BODY = """## Objective

Greet people by their name.

## Spec Reference

- Spec: `docs/specs/greeting.md`
- Section(s): Names

## Scope

### In Scope

- `src/greeting.py`

### Out of Scope

None

## Acceptance Criteria

- [ ] A name is greeted
- [ ] An empty name is greeted as everybody

## Context

None

## Constraints

None
"""
LABELS = ["task:implement", "status:pending", "priority:medium", "complexity:low"]
FIRST = 'def greet(name: str) -> str:\n    return f"Hello, {name}!"\n'
FIXED = "def greet(name: str) -> str:\n    return f\"Hello, {name or 'everybody'}!\"\n"


def event(kind: str, **fields: object) -> None:
    """Print an event as codex does."""
    print(json.dumps({"type": kind, **fields}), flush=True)  # noqa: T201 - it is what an agent does


def option(*names: str) -> str:
    """Return the value of an option; empty without it."""
    return next((sys.argv[i + 1] for i, word in enumerate(sys.argv) if word in names), "")


def plan() -> str:
    item = {"tempID": "greet", "title": "Greet people by name", "body": BODY, "labels": LABELS, "blockedBy": []}
    return json.dumps({"role": "planner", "create": [item], "close": [], "update": []})


def implement() -> str:
    Path("src/greeting.py").write_text(FIRST)
    return json.dumps(
        {"role": "implementor", "outcome": "completed", "patch": None, "summary": "Names are greeted; tests pass."}
    )


def review() -> str:
    if "everybody" in Path("revision/src/greeting.py").read_text():
        return json.dumps(
            {"role": "reviewer", "review": {"verdict": "approve", "summary": "All is there.", "comments": []}}
        )
    body = "What: an empty name is not greeted.\n\nWhy: the second criterion asks for it.\n\nFix: greet everybody."
    comment = {"path": "src/greeting.py", "line": 2, "body": body}
    verdict = {"verdict": "needs-changes", "summary": "A criterion is missing.", "comments": [comment]}
    return json.dumps({"role": "reviewer", "review": verdict})


def judge() -> str:
    criteria = [{"number": number, "met": "yes", "evidence": "src/greeting.py"} for number in (1, 2)]
    verdict = {"verdict": "pass", "summary": "Both criteria are met.", "criteria": criteria, "follow_up": None}
    return json.dumps({"role": "verifier", **verdict})


def work_on() -> str:
    Path("src/greeting.py").write_text(FIXED)
    return "Greeted everybody.\n\n- [x] A name is greeted\n- [x] An empty name is greeted as everybody"


def main() -> None:
    """Answer."""
    if "exec" not in sys.argv:  # a trial of the sandbox
        return
    sys.stdin.read()
    schema = option("--output-schema")
    text = Path(schema).read_text() if schema else ""
    roles = {"planner": plan, "implementor": implement, "reviewer": review, "verifier": judge}
    answer = next((reply for role, reply in roles.items() if role in text), work_on)()
    event("item.completed", item={"id": "item_0", "type": "agent_message", "text": answer})
    event("turn.completed", usage={"input_tokens": 1200, "cached_input_tokens": 0, "output_tokens": 34})
    if option("-o"):
        Path(option("-o")).write_text(answer)


if __name__ == "__main__":
    main()
