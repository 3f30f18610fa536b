"""The requests of a turn, as the pages of the loops list them."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from support import reviewing_turns as reviews
from support.stage import Stage
from support.turns import WORKFLOW, Turns, did, failed

from accord.loops.run import Turn
from accord_sandbox.planting import INSTALLATION_TOKEN

DOCS = Path(__file__).parents[2] / "docs"
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


def told(page: str) -> dict[str, tuple[int, int]]:
    """The table of requests on a page."""
    text = (DOCS / f"{page}.md").read_text().partition("<!-- requests -->")[2].partition("<!-- /requests -->")[0]
    rows = [[cell.strip() for cell in line.strip("| ").split("|")] for line in text.splitlines() if "|" in line]
    return {row[0]: (int(row[1]), int(row[2])) for row in rows if row[1].isdecimal()}


def counted(turns: Turns, turn: Callable[[Turns], Turn]) -> tuple[int, int]:
    turns.stage.reset()
    requests = turn(turns).context.github.requests
    return requests.read, requests.write


@pytest.mark.unmeasured
def test_the_page_tells_what_each_turn_costs(turns_stage: Stage) -> None:
    assert {name: counted(Turns(turns_stage), turn) for name, turn in TURNS.items()} == told("keepalive")


@pytest.mark.parametrize("turn", [paused, done, waiting, green])
def test_an_evaluation_that_does_nothing_costs_five_requests_at_most(
    turns_stage: Stage, turn: Callable[[Turns], Turn]
) -> None:
    read, write = counted(Turns(turns_stage), turn)
    assert (read <= IDLE_REQUESTS, write) == (True, 0)


TASKS_ANSWERED = reviews.answered(reviews.ANSWERS, changes_made="true", commit_sha="c" * 40)


@pytest.fixture(scope="module")
def shared_stage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    with reviews.reviewed(tmp_path_factory.mktemp("reviewed"), is_short=True) as stage:
        stage.begin_at_present()
        yield stage


def costs(stage: Stage, turns: dict[str, list[Callable[[], Turn]]]) -> dict[str, tuple[int, int]]:
    """The requests of the last turn of each list."""
    found = {}
    for name, taken in turns.items():
        stage.reset()
        requests = [turn().context.github.requests for turn in taken][-1]
        found[name] = (requests.read, requests.write)
    return found


@pytest.mark.unmeasured
def test_the_page_tells_what_the_verifier_costs(stage: Stage) -> None:
    def begin(run: str = "1", number: int = reviews.MERGED) -> Callable[[], Turn]:
        return lambda: reviews.begun(stage, "verify", number, run, token=INSTALLATION_TOKEN)

    def end(document: object) -> Callable[[], Turn]:
        return lambda: reviews.ended(
            stage, "verify", reviews.MERGED, reviews.answered(document), token=INSTALLATION_TOKEN
        )

    turns: dict[str, list[Callable[[], Turn]]] = {
        "nothing to do: not merged": [begin(number=reviews.OPEN)],
        "nothing to do: already verified": [begin(), end(reviews.PASS), begin("2")],
        "begin, the first time": [begin()],
        "end, passed": [begin(), end(reviews.PASS)],
        "end, failed, a follow-up opened": [begin(), end(reviews.FAIL)],
        "end, the same again": [begin(), end(reviews.FAIL), end(reviews.FAIL)],
    }
    assert told("verifier") == costs(stage, turns)


@pytest.mark.unmeasured
def test_the_page_tells_what_answering_bots_costs(stage: Stage) -> None:
    def begin(run: str = "1") -> Turn:
        return reviews.begun(stage, "bot-comments", reviews.OPEN, run, token=INSTALLATION_TOKEN)

    def end() -> Turn:
        return reviews.ended(stage, "bot-comments", reviews.OPEN, TASKS_ANSWERED, token=INSTALLATION_TOKEN)

    def not_asked_for() -> Turn:
        stage.send("PUT", f"/repos/{stage.repository}/issues/{reviews.OPEN}/labels", labels=[])
        return begin()

    turns: dict[str, list[Callable[[], Turn]]] = {
        "nothing to do: not asked for": [not_asked_for],
        "nothing to do: no thread waits": [begin, end, lambda: begin("2")],
        "begin, the first time": [begin],
        "end, two threads answered": [begin, end],
        "end, the same again": [begin, end, end],
    }
    assert told("bot-comments") == costs(stage, turns)
