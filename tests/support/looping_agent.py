"""An agent without a model for the loops: it reads what the prompt lists, does it, and prints what codex would.

A script of a consumer's repository; nothing of accord is used here.
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path


def keepalive() -> str:
    """Do the first open task, ``Write NAME`` or ``Look at NAME``, and list all of them."""
    tasks = PROMPT.partition("Description of the pull request")[0]
    (task, how, name), *rest = re.findall(r"^- \[ \] ((Write|Look at) (\S+).*)$", tasks, re.MULTILINE)
    if how == "Write":
        with Path(name).open("a", encoding="utf-8") as file:
            file.write(f"{task}\n")
    return "\n".join([f"- [x] {task}", *(f"- [ ] {other}" for other, _, _ in rest)])


def autofix() -> str:
    """Fix the function that the log names, if the log is there."""
    found = re.search(r"(src/\w+\.py):\d+: assert (\w+)\(.*\) == 3, got 2", PROMPT)
    if found is None:
        return "No log says what is wrong."
    path = Path(found[1])
    path.write_text(path.read_text(encoding="utf-8").replace("max(", "sum("), encoding="utf-8")
    return f"{found[2]} took the largest number. It adds now."


def verifier() -> str:
    """Judge criteria of the form ``NAME is there`` by looking."""
    listed = re.findall(r"^(\d+)\. (\S+) is there$", PROMPT, re.MULTILINE)
    judged = [
        {"number": int(number), "met": "yes" if Path(name).exists() else "no", "evidence": f"{name}: ls"}
        for number, name in listed
    ]
    missing = [name for _, name in listed if not Path(name).exists()]
    more = {"title": f"Add {missing[0]}", "body": f"`{missing[0]}` is not there."} if missing else None
    summary = "Looked at every file."
    verdict = "fail" if missing else "pass"
    found = {"role": "verifier", "verdict": verdict, "summary": summary, "criteria": judged, "follow_up": more}
    return json.dumps(found)


def bot_comments() -> str:
    """Fix the lines that a thread calls a typo, and decline the rest."""
    threads = re.findall(r"^### Thread (\d+)\n(.*?)(?=^### Thread |\Z)", PROMPT, re.MULTILINE | re.DOTALL)
    answers = []
    for number, text in threads:
        typo = re.search(r"(\S+\.txt):\d+.*typo: (\w+) should be (\w+)", text, re.DOTALL)
        if typo:
            path = Path(typo[1])
            path.write_text(path.read_text(encoding="utf-8").replace(typo[2], typo[3]), encoding="utf-8")
        done, what = ("fixed", f"It says {typo[3]} now.") if typo else ("declined", "It is meant to be so.")
        answers.append({"number": int(number), "done": done, "what": what})
    return json.dumps({"role": "bot-comments", "threads": answers})


def event(kind: str, **fields: object) -> None:
    print(json.dumps({"type": kind, **fields}), flush=True)  # noqa: T201 - it is what an agent does


PROMPT = sys.stdin.read()
ROLES = {
    "Work on the open tasks of this pull request": keepalive,
    "Fix the failing checks of this pull request": autofix,
    "Judge this change by the acceptance criteria of its work item": verifier,
    "Answer the review comments of bots": bot_comments,
}
event("thread.started", thread_id="0199a213-81c0-7800-8aa1-bbab2a035a54")
event("turn.started")
message = ROLES[PROMPT.splitlines()[0].removeprefix("# ")]()
event("item.completed", item={"id": "item_0", "type": "agent_message", "text": message})
event("turn.completed", usage={"input_tokens": 1200, "cached_input_tokens": 0, "output_tokens": 34})
