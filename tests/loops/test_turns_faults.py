"""Accidents and kills at every request of both phases of a turn: the same command again, and the same end."""

import json
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from support.killing import kill_at
from support.stage import Stage
from support.turns import WORKFLOW, Turns, did, failed, opened

from accord.core.errors import Stopped
from accord.github.once import TRIES
from accord_sandbox.server import Fault

DONE = did("Add tests", **{"duration-seconds": "3"})
FAILED = failed("manual", "logic")
STARTS = f"/actions/workflows/{WORKFLOW}/dispatches"
ACCIDENTS = ("error-500-after", "secondary-403", "truncated", "lost-after")
TWINS = "- [ ] Add tests\n- [ ] Add tests\n- [ ] Add docs\n"

pytestmark = pytest.mark.matrix


@pytest.fixture(scope="module")
def turns_stage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    with opened(tmp_path_factory.mktemp("turns"), body=TWINS) as stage:
        yield stage


def nothing(_: Turns) -> None: ...


def begun(turns: Turns) -> None:
    turns.begin("local-1")


def begun_with_a_retry_label(turns: Turns) -> None:
    turns.begin("local-1")
    turns.label("agent:retry")


PHASES: dict[str, tuple[Callable[[Turns], None], Callable[[Turns], Any]]] = {
    "begin": (nothing, lambda turns: turns.begin("local-1")),
    "end well": (begun, lambda turns: turns.end(DONE, "local-1", workflow=WORKFLOW)),
    "end badly": (begun_with_a_retry_label, lambda turns: turns.end(FAILED, "local-1", workflow=WORKFLOW)),
}


class Case:
    """One phase, begun from the same state again and again."""

    def __init__(self, stage: Stage, phase: str) -> None:
        stage.reset()
        self.turns = Turns(stage)
        prepare, self.act = PHASES[phase]
        prepare(self.turns)
        self.put_back = stage.keep()
        stage.server.requests.clear()
        self.act(self.turns)
        methods = [method for method, _, _ in stage.server.requests]
        self.count = len(methods)
        self.writes = [nth for nth, method in enumerate(methods, 1) if method != "GET"]
        self.clean = self.turns.seen()
        self.starts = len(self.turns.dispatches)
        assert self.act(self.turns).context.github.requests.write == 0

    def is_as_if_nothing_had_happened(self, nth: int, starts: int = 2) -> None:
        """A start whose answer was lost is asked for again, since it is harmless twice; without one, for good once."""
        assert self.turns.seen() == self.clean, nth
        assert self.starts <= len(self.turns.dispatches) <= starts * self.starts, nth
        assert self.act(self.turns).context.github.requests.write == 0, nth


@pytest.mark.parametrize("phase", PHASES)
@pytest.mark.parametrize("kind", ["lost-before", "lost-after"])
def test_a_turn_lost_at_any_request_is_continued_by_the_same_command(turns_stage: Stage, phase: str, kind: str) -> None:
    case = Case(turns_stage, phase)
    for nth in case.writes if kind == "lost-before" else range(1, case.count + 1):
        case.put_back()
        turns_stage.server.faults.add(Fault(kind, nth=nth, times=10_000))
        with pytest.raises(Stopped):
            case.act(case.turns)
        turns_stage.server.faults.clear()
        case.act(case.turns)
        case.is_as_if_nothing_had_happened(nth, starts=TRIES + 1)


@pytest.mark.parametrize("phase", PHASES)
def test_an_accident_at_any_request_changes_nothing_about_the_end(turns_stage: Stage, phase: str) -> None:
    case = Case(turns_stage, phase)
    for nth in range(1, case.count + 1):
        case.put_back()
        turns_stage.server.faults.add(Fault(ACCIDENTS[nth % len(ACCIDENTS)], nth=nth))
        case.act(case.turns)
        turns_stage.server.faults.clear()
        case.is_as_if_nothing_had_happened(nth)


@pytest.mark.parametrize("phase", PHASES)
def test_a_turn_killed_at_any_write_is_continued_when_repeated(turns_stage: Stage, phase: str, tmp_path: Path) -> None:
    case = Case(turns_stage, phase)
    told = tmp_path / "outputs.json"
    told.write_text(json.dumps(DONE if phase == "end well" else FAILED))
    words = ["keepalive", "run", "--pull", "1", "--run-dir", str(tmp_path / "run"), "--dispatch-workflow", WORKFLOW]
    words += ["--phase", "begin"] if phase == "begin" else ["--phase", "end", "--outputs", str(told)]
    for nth in case.writes:
        case.put_back()
        kill_at(nth, words, turns_stage, GITHUB_RUN_ID="local-1", GITHUB_TOKEN=case.turns.token)
        with suppress(Stopped):
            case.act(case.turns)
        case.is_as_if_nothing_had_happened(nth)


def test_a_start_is_asked_for_once_where_nothing_goes_wrong(turns_stage: Stage) -> None:
    assert Case(turns_stage, "end well").starts == 1
    assert Case(turns_stage, "end badly").starts == 0
