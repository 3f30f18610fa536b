"""An agent without a model: it reads what its prompt gives it, edits files, and prints results.

Each role also tells, in a file for the test, all that was in its reach: its environment, git's settings, the files of
its job's temporary folder.
"""

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
    """Make a task of a section of the spec that is asked for, unless it is there, and print the result."""
    spec = Path(re.findall(r"^## Added by the workflow\n\n(.+)$", PROMPT, re.MULTILINE)[0])
    section, objective = re.findall(r"^## (.+)\n\n(.+)$", spec.read_text(), re.MULTILINE)[0]
    body = BODY.format(objective=objective, spec=spec, section=section)
    item = {"tempID": "by-name", "title": "Greet people by name", "body": body, "labels": LABELS, "blockedBy": []}
    planned = [planned["title"] for planned in json.loads(given("work-items.json"))["items"]]
    create = [item] if item["title"] not in planned else []
    show({"role": "planner", "create": create, "close": [], "update": []})


def implement() -> None:
    """Edit the file that the work item names, add a test beside it, and print the result."""
    item = json.loads(given("work-item.json"))
    source = Path(re.findall(r"### In Scope\n\n- `(.+)`", item["body"])[0])
    by_name = '\n\ndef greet_by_name(name: str) -> str:\n    """Say hello to someone."""\n    return "Hello" + name\n'
    source.write_text(source.read_text() + by_name)
    source.with_name(f"test_{source.name}").write_text('assert "Ada" in greet_by_name("Ada")\n')
    Path("agent.log").write_text("not needed\n")
    result = {"role": "implementor", "outcome": "completed", "patch": None}
    show({**result, "summary": f"Implements #{item['id']}, {item['title']}, and tests it."})


def review() -> None:
    """Find the line of the change, and of the file, that greets without a blank; print the result."""
    item, diff = json.loads(given("work-item.json")), given("change.diff")
    change = diff[diff.index("+++ b/src/greeting.py") :]
    first = int(re.findall(r"^@@ -\S+ \+(\d+)", change, re.MULTILINE)[0])
    new = [line for line in change.split("\n")[2:] if line[:1] in "+ "]
    line = first + next(n for n, text in enumerate(new) if text.startswith("+") and '"Hello" + name' in text)
    assert '"Hello" + name' in Path("revision/src/greeting.py").read_text().split("\n")[line - 1]
    body = "**What:** A blank before the name is missing.\n\n**Why:** It reads HelloAda.\n\n**Fix:** Add `, `."
    comment = {"path": "src/greeting.py", "line": line, "body": body}
    summary = f"For #{item['id']}, one blank is missing."
    show({"role": "reviewer", "review": {"verdict": "needs-changes", "summary": summary, "comments": [comment]}})


def given(name: str) -> str:
    """Return an untrusted text that the prompt quotes as data."""
    return re.findall(rf"^### {re.escape(name)}\n\n(`+)text\n(.*?)\n\1$", PROMPT, re.MULTILINE | re.DOTALL)[0][1]


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


ROLES = {"Plan work items": plan, "Implement this work item": implement, "Review this pull request": review}

if __name__ == "__main__":
    PROMPT = sys.stdin.read()
    role = ROLES[PROMPT.splitlines()[0].removeprefix("# ")]
    tell_what_is_in_reach(role.__name__)
    role()
