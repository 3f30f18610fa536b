"""Accidents and kills at every request of both phases of a turn: the same command again, and the same end."""

import json
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from support.killing import kill_at
from support.rotation import killed
from support.stage import Stage
from support.turn_faults import Case, Phase
from support.turns import CI, WORKFLOW, Turns, did, failed, opened

from accord.core.errors import Stopped
from accord_sandbox.planting import INSTALLATION_TOKEN
from accord_sandbox.server import Fault

DONE = did("Add tests", **{"duration-seconds": "3"})
FAILED = failed("manual", "logic")
STARTS = f"/actions/workflows/{WORKFLOW}/dispatches"
ACCIDENTS = ("error-500-after", "secondary-403", "truncated", "lost-after")
TWINS = "- [ ] Add tests\n- [ ] Add tests\n- [ ] Add docs\n"

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def turns_stage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    with opened(tmp_path_factory.mktemp("turns"), body=TWINS, files={".github/workflows/ci.yml": CI}) as stage:
        yield stage


def nothing(_: Turns) -> None: ...


def begun(turns: Turns) -> None:
    turns.begin("local-1")


def begun_with_a_retry_label(turns: Turns) -> None:
    turns.begin("local-1")
    turns.label("agent:retry")


def held(turns: Turns) -> None:
    turns.push("new", token=INSTALLATION_TOKEN)


PHASES: dict[str, Phase] = {
    "begin": (nothing, lambda turns: turns.begin("local-1")),
    "end well": (begun, lambda turns: turns.end(DONE, "local-1", workflow=WORKFLOW)),
    "end badly": (begun_with_a_retry_label, lambda turns: turns.end(FAILED, "local-1", workflow=WORKFLOW)),
    "begin, runs held": (held, lambda turns: turns.begin("local-1")),
}


@pytest.mark.parametrize("phase", PHASES)
def test_a_turn_lost_at_any_request_is_continued_by_the_same_command(turns_stage: Stage, phase: str) -> None:
    case = Case(turns_stage, PHASES[phase])
    for nth, kind in case.losses:
        case.put_back()
        turns_stage.server.faults.add(Fault(kind, nth=nth, times=10_000))
        with pytest.raises(Stopped):
            case.act(case.turns)
        turns_stage.server.faults.clear()
        case.act(case.turns)
        case.is_as_if_nothing_had_happened(nth)


@pytest.mark.parametrize("phase", PHASES)
def test_an_accident_at_any_request_changes_nothing_about_the_end(turns_stage: Stage, phase: str) -> None:
    case = Case(turns_stage, PHASES[phase])
    for nth, kind in case.accidents(ACCIDENTS):
        case.put_back()
        turns_stage.server.faults.add(Fault(kind, nth=nth))
        case.act(case.turns)
        turns_stage.server.faults.clear()
        case.is_as_if_nothing_had_happened(nth)


@pytest.mark.parametrize(
    "phase", [pytest.param(name, marks=pytest.mark.matrix if i % 3 else ()) for i, name in enumerate(PHASES)]
)
def test_a_turn_killed_at_any_write_is_continued_when_repeated(turns_stage: Stage, phase: str, tmp_path: Path) -> None:
    case = Case(turns_stage, PHASES[phase])
    told = tmp_path / "outputs.json"
    told.write_text(json.dumps(FAILED if phase == "end badly" else DONE))
    words = ["keepalive", "run", "--pull", "1", "--run-dir", str(tmp_path / "run"), "--dispatch-workflow", WORKFLOW]
    words += ["--phase", "begin"] if phase.startswith("begin") else ["--phase", "end", "--outputs", str(told)]
    for nth in killed(case.writes):
        case.put_back()
        kill_at(nth, words, turns_stage, GITHUB_RUN_ID="local-1", GITHUB_TOKEN=case.turns.token)
        with suppress(Stopped):
            case.act(case.turns)
        case.is_as_if_nothing_had_happened(nth)


def test_a_start_is_asked_for_once_where_nothing_goes_wrong(turns_stage: Stage) -> None:
    assert Case(turns_stage, PHASES["end well"]).starts == 1
    assert Case(turns_stage, PHASES["end badly"]).starts == 0
