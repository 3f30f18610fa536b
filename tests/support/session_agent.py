"""An agent for all roles of a session: it writes what its role writes, and prints its output, without accord.

``answers.json`` beside it has, by role, the statuses that it returns first; then it returns OK. ``files.json`` has the
files of a session by role.
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

HERE = Path(__file__).parent


def main() -> None:
    given = json.loads(re.findall(r"^```json\n(.*?)^```", sys.stdin.read(), re.MULTILINE | re.DOTALL)[-1])
    role, files = given["agent"], json.loads((HERE / "files.json").read_text())
    folder = max(Path(".agents-work").iterdir())
    for name, text in files.get(role, {}).items():
        (folder / name).write_text(text, encoding="utf-8")
    if role == "Coder":
        Path("export.py").write_text(f"TASK = {given['task']['id']!r}\n")
    planned = json.loads((HERE / "answers.json").read_text())
    status = planned[role].pop(0) if planned.get(role) else "OK"
    (HERE / "answers.json").write_text(json.dumps(planned))
    with (HERE / "turns.log").open("a") as log:
        log.write(f"{role} {given['task']['id']}\n")
    if status in ("nothing", "silence"):
        sys.exit(status == "nothing")
    gates = {"meets_definition_of_done": status == "OK", "needs_review": False, "needs_tests": False}
    output = {
        "status": status,
        "summary": f"{role} has looked at it.",
        "artifacts": {"commands_to_run": [], "notes": []},
        "gates": {**gates, "security_concerns": []},
        "next": {"recommended_agent": "Orchestrator", "recommended_task_id": "meta", "reason": "Go on."},
    }
    print(json.dumps(output))  # noqa: T201 - it is what an agent does


if __name__ == "__main__":
    main()
