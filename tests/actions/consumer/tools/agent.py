"""An agent without a model: it reads what agents are given, edits files, and writes down results.

Each role also tells, in a file for the test, all that was in its reach: its environment, git's settings, the files of
its job's temporary folder.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

BODY = """## Objective

{objective}

## Spec Reference

- Spec: `{spec}`
- Section(s): {section}

## Scope

### In Scope

- `src/greeting.py`

### Out of Scope

None

## Acceptance Criteria

- [ ] A name is part of the greeting

## Context

None

## Constraints

None
"""
LABELS = ["task:implement", "status:pending", "priority:high", "complexity:low"]


def plan() -> None:
    """Make a task of a section of a spec, and print the result."""
    spec = Path("docs/specs/greeting.txt")
    section, objective = re.findall(r"^## (.+)\n\n(.+)$", spec.read_text(), re.MULTILINE)[0]
    body = BODY.format(objective=objective, spec=spec, section=section)
    item = {"tempID": "by-name", "title": "Greet people by name", "body": body, "labels": LABELS, "blockedBy": []}
    show({"role": "planner", "create": [item], "close": [], "update": []})


def implement() -> None:
    """Edit the file that the work item names, add a test beside it, and write the result."""
    item = json.loads(Path(os.environ["WORK_ITEM"]).read_text())
    source = Path(re.findall(r"### In Scope\n\n- `(.+)`", item["body"])[0])
    by_name = '\n\ndef greet_by_name(name: str) -> str:\n    """Say hello to somebody."""\n    return "Hello" + name\n'
    source.write_text(source.read_text() + by_name)
    source.with_name(f"test_{source.name}").write_text('assert "Ada" in greet_by_name("Ada")\n')
    Path("agent.log").write_text("nobody needs this\n")
    result = {"role": "implementor", "outcome": "completed", "patch": None}
    written = {**result, "summary": f"Implements #{item['id']}, {item['title']}, and tests it."}
    Path(os.environ["RESULT"]).write_text(json.dumps(written))


def review() -> None:
    """Find the line of the change that greets without a blank, and print the result."""
    diff = git("diff", "--unified=0", f"{os.environ['BASE']}...HEAD", "--", "src/greeting.py", folder="revision")
    first = int(re.findall(r"^@@ -\S+ \+(\d+)", diff, re.MULTILINE)[0])
    added = [line for line in diff.splitlines() if line.startswith("+") and not line.startswith("+++")]
    line = first + next(n for n, text in enumerate(added) if '"Hello" + name' in text)
    body = "**What:** There is no blank before the name.\n\n**Why:** It reads HelloAda.\n\n**Fix:** Add `, `."
    comment = {"path": "src/greeting.py", "line": line, "body": body}
    found = {"verdict": "needs-changes", "summary": "One blank is missing.", "comments": [comment]}
    show({"role": "reviewer", "review": found})


def show(result: dict[str, Any]) -> None:
    """Print a result as agents do, among other words."""
    sys.stdout.write(f"Here is what you asked for:\n\n```json\n{json.dumps(result, indent=1)}\n```\n")


def tell_what_is_in_reach(role: str) -> None:
    """Write down everything that this process could hand to others."""
    seen = [f"{name}={value}" for name, value in os.environ.items()]
    seen += [git("config", "--list", "--show-origin", folder=str(folder.parent)) for folder in Path().rglob(".git")]
    files = [path for path in Path(os.environ["RUNNER_TEMP"]).rglob("*") if path.is_file()]
    seen += [f"{path}\n{path.read_bytes()!r}" for path in files]
    Path(os.environ["ARTIFACTS"], f"in-reach-of-{role}.txt").write_text("\n".join(seen))


def git(*arguments: str, folder: str = ".") -> str:
    """Run git."""
    return subprocess.run(["git", *arguments], cwd=folder, check=True, capture_output=True, text=True).stdout


if __name__ == "__main__":
    tell_what_is_in_reach(sys.argv[1])
    {"plan": plan, "implement": implement, "review": review}[sys.argv[1]]()
