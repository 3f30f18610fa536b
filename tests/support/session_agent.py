"""An agent for all roles of a session: it writes what its role writes, and prints its output, without accord.

``answers.json`` beside it has, by role, the statuses that it returns first, some ``in prose``; then it returns OK.
``files.json`` has the files of a session by role.
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any


def act(given: dict[str, Any], here: Path) -> tuple[str, str]:
    """Write the files of a role; return the status that is planned for it, and the output with that status."""
    role, files = given["agent"], json.loads((here / "files.json").read_text())
    folder = max(Path(".agents-work").iterdir())
    for name, text in files.get(role, {}).items():
        (folder / name).resolve().parent.mkdir(exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")
    if role == "Coder":
        Path("export.py").write_text(f"TASK = {given['task']['id']!r}\n")
    planned = json.loads((here / "answers.json").read_text())
    status, *form = (planned[role].pop(0) if planned.get(role) else "OK").split(" in ")
    (here / "answers.json").write_text(json.dumps(planned))
    with (here / "turns.log").open("a") as log:
        log.write(f"{role} {given['task']['id']}\n")
    gates = {"meets_definition_of_done": status == "OK", "needs_review": False, "needs_tests": False}
    output = {
        "status": status,
        "summary": f"{role} has looked at it.",
        "artifacts": {"commands_to_run": [], "notes": []},
        "gates": {**gates, "security_concerns": []},
        "next": {"recommended_agent": "Orchestrator", "recommended_task_id": "meta", "reason": "Go on."},
    }
    return status, f"{'My output:' if form else ''}\n\n{json.dumps(output)}"


if __name__ == "__main__":
    (*_, shown) = re.findall(r"^```json\n(.*?)^```", sys.stdin.read(), re.MULTILINE | re.DOTALL)
    ended, printed = act(json.loads(shown), Path(__file__).parent)
    if ended in ("nothing", "silence"):
        sys.exit(ended == "nothing")
    print(printed)  # noqa: T201 - it is what an agent does
