"""A handoff from backlog to done, played by typing only what the output before proposed."""

import json
import re
import shlex
from typing import Any

from support.commands import Accord
from support.handoffs import DONE, OUTPUTS, handoff, patch

FORWARD = ["planning", "implementing", "review", "verification", "done"]
PROPOSAL = re.compile(r"^  (?P<to>\w+)(?: \(needs (?P<needs>.*)\))?\n    (?P<command>.*)$", re.MULTILINE)
WORK: dict[str, dict[str, Any]] = {
    "planner": patch(**OUTPUTS),
    "developer": patch(reviewArtifact={"changeSummary": ["Adds an export"]}),
    "tester": patch(verificationArtifact={"commands": ["pytest"], "result": "passed"}),
    "reviewer": patch(reviewArtifact={"decision": "approved"}),
    "retrospective": patch(doneArtifact=DONE),
}


def test_a_handoff_is_played_with_proposed_commands_alone(accord: Accord) -> None:
    path = accord.file("task.json", handoff("backlog"))
    accord.monkeypatch.chdir(path.parent)
    out, typed = accord("handoff", "check", "task.json").out, []
    while json.loads(path.read_text())["status"] != "done":
        proposals = {found["to"]: found for found in PROPOSAL.finditer(out)}
        status = json.loads(path.read_text())["status"]
        wanted = FORWARD[FORWARD.index(status) + 1 if status in FORWARD else 0]
        words = shlex.split(proposals[wanted]["command"])
        if "PATCH.json" in words:
            accord.file("PATCH.json", WORK[words[words.index("--role") + 1]])
        ended = accord(*words[1:])
        assert ended.code == 0, (words, ended.out)
        out = ended.out
        typed.append(words[2])
        assert len(typed) < 15
    assert typed == ["move", "patch", "move", "patch", "patch", "move", "patch", "move", "patch", "move"]
    assert accord("handoff", "check", "task.json").code == 0
