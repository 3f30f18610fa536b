"""The loops that run, each as its parts."""

from __future__ import annotations

from typing import TYPE_CHECKING

from accord.loops import answering, autofix, bot_comments, keepalive, verify, verifying
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
    "verify": Loop(
        "verify",
        verifying.first_facts,
        (with_state, verifying.with_work_items),
        verify.decide,
        (verifying.with_diff,),
        completed=verifying.completed,
        carry_out=verifying.carry_out,
        given=verifying.given,
        schema="verdict",
        is_swept=False,
        changes_code=False,
    ),
    "bot-comments": Loop(
        "bot-comments",
        answering.first_facts,
        (answering.with_threads, with_state),
        bot_comments.decide,
        completed=answering.completed,
        carry_out=answering.carry_out,
        given=answering.given,
        schema="thread-answers",
    ),
}
