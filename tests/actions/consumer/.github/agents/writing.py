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


def plan() -> None:
    """Look for the specification that is asked for, which is not there."""
    Path(re.findall(r"^## Added by the workflow\n\n(.+)$", PROMPT, re.MULTILINE)[0]).read_text()


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


ROLES = {"Plan work items": plan, "Implement this work item": implement}

if __name__ == "__main__":
    PROMPT = sys.stdin.read()
    role = ROLES[PROMPT.splitlines()[0].removeprefix("# ")]
    tell_what_is_in_reach(role.__name__)
    role()
