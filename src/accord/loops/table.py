"""The loops that run, each as its parts."""

from __future__ import annotations

from typing import TYPE_CHECKING

from accord.loops import autofix, keepalive
from accord.loops.gather import with_checks, with_logs, with_state
from accord.loops.loop import Completed, Loop
from accord.loops.models import CheckFacts
from accord.loops.ticking import tick

if TYPE_CHECKING:
    from accord.github.pull_port import Pull
    from accord.loops.loop import Told
    from accord.loops.site import Site

_NOT_KNOWN = ("not known yet",)


def _keepalive_facts(site: Site, pull: Pull) -> keepalive.KeepaliveFacts:
    return keepalive.KeepaliveFacts(
        now=site.now(),
        pull=site.pull_facts(pull),
        agents=site.agents,
        token=site.token,
        checks=CheckFacts(head_sha=pull.head_sha, passing=_NOT_KNOWN),
    )


def _autofix_facts(site: Site, pull: Pull) -> autofix.AutofixFacts:
    return autofix.AutofixFacts(
        now=site.now(),
        pull=site.pull_facts(pull),
        agents=site.agents,
        token=site.token,
        checks=CheckFacts(head_sha=pull.head_sha, failing=_NOT_KNOWN),
    )


def _tasks(told: Told) -> Completed:
    ticked = tick(told.pull.body, told.outputs)
    return Completed(len(ticked.done), ticked.body)


LOOPS: dict[str, Loop] = {
    "keepalive": Loop(
        "keepalive",
        _keepalive_facts,
        (with_state, with_checks),
        keepalive.decide,
        (with_logs,),
        completed=_tasks,
    ),
    "autofix": Loop("autofix", _autofix_facts, (with_checks, with_state), autofix.decide, (with_logs,)),
}
