"""The requests of a turn, as ``reference/requests.md`` lists them."""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from support import reviewing_turns as reviews
from support.stage import Stage
from support.turns import REVIEW, WORKFLOW, Turns, did, failed

from accord.loops.run import Turn
from accord_sandbox.planting import INSTALLATION_TOKEN

pytestmark = pytest.mark.slow

PAGE = Path(__file__).parents[1] / "reference/requests.md"
IDLE_REQUESTS = 7
STAGE = partial(reviews.reviewed, is_short=True)
Step = Callable[[Any], Any]


def begin(run: str = "1") -> Step:
    return lambda turns: turns.begin(run)


def end(outputs: Any = None, **more: str) -> Step:
    return lambda turns: turns.end(outputs or did("Add tests"), "1", **more)


def push_and_end(turns: Turns) -> Turn:
    return turns.end(did("Add tests", **{"changes-made": "true", "commit-sha": turns.push("new")}), "1")


def become_autofix(turns: Turns) -> None:
    turns.loop = "autofix"
    turns.unlabel("agents:keepalive")
    turns.label("agent:codex")


def run_check(turns: Turns) -> None:
    sha = turns.push("new")
    turns.stage.send("POST", f"{turns.root}/check-runs", token=turns.token, name="test", head_sha=sha)


def hold(turns: Turns) -> None:
    sha = turns.push("new")
    turns.control("runs/77", head_sha=sha, conclusion="action_required")


def stop_by_person(turns: Turns) -> None:
    turns.label("agents:paused")
    turns.by_person = True


def become_reviewed(turns: Turns) -> None:
    turns.review = REVIEW
    turns.tick_all()


def complete(turns: Turns) -> None:
    turns.tick_all()
    turns.approve()
    turns.label("x")


Case = list[tuple[str, Step]]
"""Steps in order; the requests of those with a name count."""

IDLE: list[Case] = [
    [("", lambda turns: turns.label("agents:paused")), ("paused or a fork", begin("2"))],
    [("", lambda turns: turns.tick_all()), ("tasks done, no review", begin("2"))],
    [("", complete), ("", begin("1")), ("all done, announced", begin("2"))],
    [
        *[("", begin()), ("", end()), ("", run_check), ("checks pending", begin("2"))],
        *[("", lambda turns: turns.push("newer")), ("no check yet", begin("3"))],
    ],
    [("", hold), ("", begin("1")), ("runs held", begin("2"))],
    [("", become_autofix), ("autofix, checks green", begin("2"))],
]
TURNS: list[Case] = [
    [("", begin()), ("", end(failed("ignore"))), ("", stop_by_person), ("stopped by a person", begin("2"))],
    [
        ("begin, the first time", begin()),
        ("end, a task ticked, started again", end(workflow=WORKFLOW)),
        ("end, the same again", end()),
        ("begin, later", begin("2")),
    ],
    [
        ("", begin()),
        ("", end()),
        ("", lambda turns: turns.check(conclusion="failure")),
        ("begin, to fix checks", begin("2")),
    ],
    [("", become_reviewed), ("review started", begin("1"))],
    [("", complete), ("all done, announced", begin("1"))],
    [("", begin()), ("end, changes pushed, a task ticked", push_and_end)],
    [("", begin()), ("end, failed, a person is asked", end(failed("manual")))],
]


def told(page: str) -> dict[str, tuple[int, int]]:
    """The table of requests of a loop."""
    text = PAGE.read_text().partition(f"<!-- {page} -->")[2].partition(f"<!-- /{page} -->")[0]
    rows = [[cell.strip() for cell in line.strip("| ").split("|")] for line in text.splitlines() if "|" in line]
    return {row[0]: (int(row[1]), int(row[2])) for row in rows if row[1].isdecimal()}


def costs(stage: Stage, cases: list[Case], made: Step = lambda stage: stage) -> dict[str, tuple[int, int]]:
    """The requests of the named steps of each case, which take the stage or what is made of it."""
    found = {}
    for case in cases:
        stage.reset()
        subject = made(stage)
        for name, step in case:
            turn = step(subject)
            if name:
                found[name] = (turn.context.github.requests.read, turn.context.github.requests.write)
    return found


def test_the_page_tells_what_each_turn_costs(turns_stage: Stage) -> None:
    idle = costs(turns_stage, IDLE, Turns).values()
    most = (max(read for read, _ in idle), max(write for _, write in idle))
    assert (most[0] <= IDLE_REQUESTS, most[1]) == (True, 0)
    assert told("keepalive") == {"nothing to do, at most": most, **costs(turns_stage, TURNS, Turns)}


def test_the_page_tells_what_the_verifier_costs(stage: Stage) -> None:
    def start(run: str = "1", number: int = reviews.MERGED) -> Step:
        return lambda stage: reviews.begun(stage, "verify", number, run, token=INSTALLATION_TOKEN)

    def judge(document: object) -> Step:
        told = reviews.answered(document)
        return lambda stage: reviews.ended(stage, "verify", reviews.MERGED, told, token=INSTALLATION_TOKEN)

    assert told("verifier") == costs(
        stage,
        [
            [("idle: not merged", start(number=reviews.OPEN))],
            [
                ("begin, the first time", start()),
                ("end, passed", judge(reviews.PASS)),
                ("idle: already verified", start("2")),
            ],
            [
                ("", start()),
                ("end, follow-up opened", judge(reviews.FAIL)),
                ("end, the same again", judge(reviews.FAIL)),
            ],
        ],
    )


def test_the_page_tells_what_answering_bots_costs(stage: Stage) -> None:
    answered = reviews.answered(reviews.ANSWERS, changes_made="true", commit_sha="c" * 40)
    path = f"/repos/{stage.repository}/issues/{reviews.OPEN}/labels"

    def start(run: str = "1") -> Step:
        return lambda stage: reviews.begun(stage, "bot-comments", reviews.OPEN, run, token=INSTALLATION_TOKEN)

    def reply(stage: Stage) -> Turn:
        return reviews.ended(stage, "bot-comments", reviews.OPEN, answered, token=INSTALLATION_TOKEN)

    assert told("bot-comments") == costs(
        stage,
        [
            [("", lambda stage: stage.send("PUT", path, labels=[])), ("nothing to do: not asked for", start())],
            [
                ("begin, the first time", start()),
                ("end, two threads answered", reply),
                ("end, the same again", reply),
                ("nothing to do: no thread waits", start("2")),
            ],
        ],
    )
