"""Turns of loops on the stage: a site to take them on, and what a run of the agent leaves."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from accord.kernel.redaction import Redactor
from accord.loops.run import begin, end
from accord.loops.site import Site
from accord.loops.table import LOOPS
from accord.runner.models import RunOutputs

if TYPE_CHECKING:
    from support.stage import Stage

    from accord.loops.run import Turn

BOTS = ("reviewer[bot]",)
SECRET = "correct-horse-battery-staple"


def site(stage: Stage, number: int, run: str = "1", **more: Any) -> Site:
    """The job of one workflow run, as a process of its own would see it."""
    known = {"agents": ("codex",), "bots": BOTS, "redact": Redactor((SECRET,))}
    token = more.pop("token", "")
    github = stage.adapter(token=token)
    return Site(github, stage.repository, number, run, clock=stage.clock, **{**known, **more})


def answered(document: Any = None, **more: str) -> RunOutputs:
    """The outputs of a run that ended well with this structured result."""
    return RunOutputs(result_json="" if document is None else json.dumps(document), **more)


def begun(stage: Stage, name: str, number: int, run: str = "1", **more: Any) -> Turn:
    return begin(LOOPS[name], site(stage, number, run, **more))


def ended(stage: Stage, name: str, number: int, outputs: RunOutputs, run: str = "1", **more: Any) -> Turn:
    return end(LOOPS[name], site(stage, number, run, **more), outputs, workflow=more.pop("workflow", ""))


def seen(stage: Stage, number: int) -> dict[str, Any]:
    """All that a user can see of a pull request and the issues, without what differs by nature."""
    repository = f"/repos/{stage.repository}"
    item = stage.get(f"{repository}/issues/{number}")
    comments = stage.get(f"{repository}/issues/{number}/comments", per_page=100)
    threads = stage.get(f"{repository}/pulls/{number}/comments", per_page=100)
    return {
        "body": item["body"],
        "labels": sorted(label["name"] for label in item["labels"]),
        "comments": [comment["body"].partition("<!-- accord:loop ")[0] for comment in comments],
        "threads": [comment["body"] for comment in threads],
        "issues": [(entry["title"], entry["body"], entry["state"], entry["labels"]) for entry in stage.snapshot()],
    }
