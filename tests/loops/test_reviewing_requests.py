"""The requests of the turns of the loops that review, as their pages list them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from support.reviewing_turns import ANSWERS, FAIL, MERGED, OPEN, PASS, answered, begun, ended, reviewed

from accord_sandbox.planting import INSTALLATION_TOKEN

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from support.stage import Stage

    from accord.loops.run import Turn

DOCS = Path(__file__).parents[2] / "docs"
TOKEN = {"token": INSTALLATION_TOKEN}
DONE = answered(ANSWERS, changes_made="true", commit_sha="c" * 40)


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Stage, Callable[[], None]]]:
    with reviewed(tmp_path_factory.mktemp("reviewed"), is_short=True) as stage:
        yield stage, stage.keep()


def told(page: str) -> dict[str, tuple[int, int]]:
    lines = (DOCS / page).read_text().partition("<!-- requests -->")[2].partition("<!-- /requests -->")[0].splitlines()
    rows = [[part.strip() for part in line.strip("|").split("|")] for line in lines if line.startswith("| ")]
    return {row[0]: (int(row[1]), int(row[2])) for row in rows[1:] if row[1].isdecimal()}


def counted(*turns: Callable[[], Turn]) -> tuple[int, int]:
    """The requests of the last of these turns."""
    requests = [turn().context.github.requests for turn in turns][-1]
    return requests.read, requests.write


@pytest.mark.unmeasured
def test_the_page_tells_what_the_verifier_costs(kept: tuple[Stage, Callable[[], None]]) -> None:
    stage, put_back = kept

    def begin(run: str = "1", number: int = MERGED) -> Callable[[], Turn]:
        return lambda: begun(stage, "verify", number, run, **TOKEN)

    def end(document: object) -> Callable[[], Turn]:
        return lambda: ended(stage, "verify", MERGED, answered(document), **TOKEN)

    turns = {
        "nothing to do: not merged": (begin(number=OPEN),),
        "nothing to do: already verified": (begin(), end(PASS), begin("2")),
        "begin, the first time": (begin(),),
        "end, passed": (begin(), end(PASS)),
        "end, failed, a follow-up opened": (begin(), end(FAIL)),
        "end, the same again": (begin(), end(FAIL), end(FAIL)),
    }
    found = {}
    for name, taken in turns.items():
        put_back()
        found[name] = counted(*taken)
    assert told("verifier.md") == found


@pytest.mark.unmeasured
def test_the_page_tells_what_answering_bots_costs(kept: tuple[Stage, Callable[[], None]]) -> None:
    stage, put_back = kept

    def begin(run: str = "1") -> Turn:
        return begun(stage, "bot-comments", OPEN, run, **TOKEN)

    def end() -> Turn:
        return ended(stage, "bot-comments", OPEN, DONE, **TOKEN)

    def not_asked_for() -> Turn:
        stage.send("PUT", f"/repos/{stage.repository}/issues/{OPEN}/labels", labels=[])
        return begin()

    turns: dict[str, tuple[Callable[[], Turn], ...]] = {
        "nothing to do: not asked for": (not_asked_for,),
        "nothing to do: no thread waits": (begin, end, lambda: begin("2")),
        "begin, the first time": (begin,),
        "end, two threads answered": (begin, end),
        "end, the same again": (begin, end, end),
    }
    found = {}
    for name, taken in turns.items():
        put_back()
        found[name] = counted(*taken)
    assert told("bot-comments.md") == found
