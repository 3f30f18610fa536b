"""The requests of a turn, as the table of docs/keepalive.md lists them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from support.turns import WORKFLOW, Turns, did, failed

if TYPE_CHECKING:
    from collections.abc import Callable

    from support.stage import Stage

    from accord.loops.run import Turn

PAGE = Path(__file__).parents[2] / "docs" / "keepalive.md"
IDLE_REQUESTS = 5


def paused(turns: Turns) -> Turn:
    turns.label("agents:paused")
    return turns.begin("2")


def stopped(turns: Turns) -> Turn:
    turns.begin("1")
    turns.end(failed("ignore"), "1")
    turns.label("agents:paused")
    turns.by_person = True
    return turns.begin("2")


def done(turns: Turns) -> Turn:
    turns.stage.send("PATCH", f"{turns.root}/pulls/1", body="- [x] a\n")
    return turns.begin("2")


def waiting(turns: Turns) -> Turn:
    one_run(turns)
    turns.push("new")
    return turns.begin("2")


def green(turns: Turns) -> Turn:
    turns.loop = "autofix"
    turns.unlabel("agents:keepalive")
    turns.label("agent:codex")
    return turns.begin("2")


def running(turns: Turns) -> Turn:
    turns.begin("501")
    return turns.begin("2")


def one_run(turns: Turns) -> None:
    turns.begin("1")
    turns.end(did("Add tests"), "1")


def first(turns: Turns) -> Turn:
    return turns.begin("1")


def later(turns: Turns) -> Turn:
    one_run(turns)
    return turns.begin("2")


def mending(turns: Turns) -> Turn:
    one_run(turns)
    turns.check(conclusion="failure")
    return turns.begin("2")


def ended(turns: Turns) -> Turn:
    turns.begin("1")
    more = {"changes-made": "true", "commit-sha": turns.push("new")}
    return turns.end(did("Add tests", **more), "1")


def restarted(turns: Turns) -> Turn:
    turns.begin("1")
    return turns.end(did("Add tests"), "1", workflow=WORKFLOW)


def given_up(turns: Turns) -> Turn:
    turns.begin("1")
    return turns.end(failed("manual"), "1")


def again(turns: Turns) -> Turn:
    one_run(turns)
    return turns.end(did("Add tests"), "1")


TURNS: dict[str, Callable[[Turns], Turn]] = {
    "nothing to do: paused, not asked for, a fork, all tasks done": done,
    "nothing to do: checks pending, or a pause that is not over": waiting,
    "nothing to do: autofix, all checks green": green,
    "a person stops it, and the comment says so": stopped,
    "begin, the first time": first,
    "begin, later": later,
    "begin, to fix checks": mending,
    "end, changes pushed and a task ticked": ended,
    "end, a task ticked and the workflow started again": restarted,
    "end, failed, a person is asked": given_up,
    "end, the same again": again,
}


def told() -> dict[str, tuple[int, int]]:
    lines = PAGE.read_text().partition("<!-- requests -->")[2].partition("<!-- /requests -->")[0].splitlines()
    rows = [[cell.strip() for cell in line.strip("| ").split("|")] for line in lines if line.startswith("| ")][2:]
    return {row[0]: (int(row[1]), int(row[2])) for row in rows}


def counted(turns: Turns, turn: Callable[[Turns], Turn]) -> tuple[int, int]:
    turns.stage.server.reset()
    requests = turn(turns).context.github.requests
    return requests.read, requests.write


@pytest.mark.unmeasured
def test_the_page_tells_what_each_turn_costs(shared: Stage) -> None:
    assert {name: counted(Turns(shared), turn) for name, turn in TURNS.items()} == told()


@pytest.mark.parametrize("turn", [paused, done, waiting, green])
def test_an_evaluation_that_does_nothing_costs_five_requests_at_most(
    shared: Stage, turn: Callable[[Turns], Turn]
) -> None:
    read, write = counted(Turns(shared), turn)
    assert (read <= IDLE_REQUESTS, write) == (True, 0)
