"""Exactly once: every request of a start, a stop, a move and a report fails in each way, or its process is killed."""

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from support.exactly_once import FaultCase, Work, assert_survives_faults, assert_survives_kills
from support.starts import PAGE, PENDING, PULL, READY, REQUEST, Starts, starts_stage

from accord.engine.receipts import Receipt
from accord.starts.ends import JobResult
from accord.starts.models import Trigger
from accord.starts.status import read_body, write_box

pytestmark = pytest.mark.slow

TIMES = re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d")
OPENED = {
    "apply": JobResult("success", {"outcome": "applied", "revision": json.dumps({"id": str(PULL), "draft": False})})
}


def state(starts: Starts) -> Any:
    """All that a person sees, without times, ids and the server's address, which differs in a process of its own."""
    address = f"{starts.stage.server.url}/{starts.stage.repository}"
    comments = [
        (
            TIMES.sub("", body.partition("<!--")[0]).replace(str(run["id"]), "RUN").replace(address, PAGE),
            len(found.rows),
        )
        for number in (REQUEST, READY, PENDING, PULL)
        for body in starts.comments(number)
        for run in starts.runs[:1]
        if (found := read_body(body, number))
    ]
    reactions = [
        comment["reactions"]["total_count"]
        for number in (REQUEST, PULL)
        for comment in starts.stage.get(f"{starts.root}/issues/{number}/comments")
    ]
    runs = [(run["path"], run["conclusion"]) for run in starts.runs]
    labels = [sorted(starts.labels(number)) for number in (READY, PENDING, PULL)]
    return comments, reactions, runs, labels, starts.started


Apply = Callable[[], Receipt]


def comment_starts(starts: Starts) -> Apply:
    event = starts.comment(REQUEST, "/accord plan")
    return lambda: starts.deliver(event)


def ticked_boxes(starts: Starts) -> Apply:
    boxes = [
        f"{write_box(READY, 'implement')} One",
        f"{write_box(PULL, 'review')} Two",
        f"{write_box(PENDING, 'ready')} Three",
    ]
    event = starts.ticked(starts.dashboard(*boxes), READY, PULL)
    return lambda: starts.deliver(event)


def named_on_the_dashboard(starts: Starts) -> Apply:
    event = starts.comment(starts.dashboard(), f"/accord implement #{READY}")
    return lambda: starts.deliver(event)


def stop(starts: Starts) -> Apply:
    starts.deliver(starts.comment(PULL, "/accord review"))
    event = starts.comment(PULL, "/accord stop")
    return lambda: starts.deliver(event)


def unblock(starts: Starts) -> Apply:
    event = starts.closed(READY)
    return lambda: starts.deliver(event)


def push(starts: Starts) -> Apply:
    text = "---\nstatus: approved\n---\n"
    event = starts.push({"docs/specs/a.md": text, "docs/specs/b.md": text})
    return lambda: starts.deliver(event)


def report(starts: Starts) -> Apply:
    starts.deliver(starts.comment(READY, "/accord implement"))
    run = starts.runs[-1]
    starts.begin("implement", READY, run_id=run["id"], key=run["display_title"].split()[-1])
    revision = (PULL, "f" * 40)
    more = {"run_id": run["id"], "key": run["display_title"].split()[-1], "by": "wanda"}
    return lambda: starts.end("implement", READY, OPENED, revision=revision, **more)


CASES = {
    work.__name__: work for work in (comment_starts, ticked_boxes, named_on_the_dashboard, stop, unblock, push, report)
}


BY_DAY = ("comment_starts", "unblock")
"""The others differ from them in what starts, not in how it is written."""


@pytest.fixture(params=[pytest.param(name, marks=[] if name in BY_DAY else pytest.mark.matrix) for name in CASES])
def work(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Work]:
    with starts_stage(tmp_path / "data", {trigger.value: True for trigger in Trigger}) as stage:
        starts = Starts(stage)
        apply = CASES[request.param](starts)
        stage.clock.sleep(60)
        yield Work(stage, stage.keep(), apply, lambda: state(starts), {})


KINDS = ("lost-before", "lost-after", "error-500-after", "secondary-403", "truncated")
FAULTS = [*map(FaultCase, KINDS), *(FaultCase(kind, is_permanent=True) for kind in ("lost-after", "lost-before"))]


def test_a_fault_at_any_request_loses_and_doubles_nothing(work: Work) -> None:
    assert_survives_faults(work, FAULTS)


def comment_event(starts: Starts) -> tuple[str, dict[str, Any]]:
    return starts.comment(REQUEST, "/accord plan")


def tick_event(starts: Starts) -> tuple[str, dict[str, Any]]:
    return starts.ticked(starts.dashboard(f"{write_box(READY, 'implement')} One"), READY)


@pytest.mark.parametrize("make", [comment_event, pytest.param(tick_event, marks=pytest.mark.matrix)])
def test_a_delivery_that_is_killed_at_any_request_is_finished_by_the_next_one(
    tmp_path: Path, make: Callable[[Starts], tuple[str, dict[str, Any]]]
) -> None:
    with starts_stage(tmp_path / "data") as stage:
        starts = Starts(stage)
        event = make(starts)
        payload = tmp_path / "event.json"
        payload.write_text(json.dumps(event[1]))
        token = {"GITHUB_TOKEN": starts.token}
        work = Work(stage, stage.keep(), lambda: starts.deliver(event), lambda: state(starts), {}, variables=token)
        assert_survives_kills(work, ["start", "run", "--event", event[0], "--payload", str(payload)])
