"""Accidents at every request of what keepalive does between a pull request and its work item, and when all is done."""

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from support.flows import CRITERIA, Flow, flow_stage
from support.killing import kill_at
from support.reviews import approve
from support.rotation import killed
from support.stage import Stage
from support.turn_faults import Case, Phase
from support.turns import REVIEW, did

from accord.core.errors import Stopped
from accord_sandbox.server import Fault

ACCIDENTS = ("error-500-after", "truncated", "lost-after")

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def flow_home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    with flow_stage(tmp_path_factory.mktemp("flow")) as stage:
        yield stage


def begun(flow: Any) -> None:
    flow.begin("local-1")


def unreviewed(flow: Any) -> None:
    flow.review = REVIEW
    flow.tick_all()


def approved(flow: Any) -> None:
    flow.tick_all()
    flow.judge(approve())
    flow.label("x")


def outdated(flow: Any) -> None:
    flow.begin("local-0")
    flow.end(did(), "local-0")
    flow.commit(flow.stage.server.database.path.parent, "accord/1", b="b = 1\nmine\n")
    flow.commit(flow.stage.server.database.path.parent, "main", b="b = 1\ntheirs\n")


def in_conflict(flow: Any) -> None:
    flow.commit(flow.stage.server.database.path.parent, "main", a="a = 3\n")


PHASES: dict[str, Phase] = {
    "tick a criterion": (begun, lambda flow: flow.end(did(CRITERIA[0]), "local-1")),
    "start a review": (unreviewed, lambda flow: flow.begin("local-1")),
    "announce": (approved, lambda flow: flow.begin("local-1")),
    "merge the base": (outdated, lambda flow: flow.begin("local-1")),
    "ask about a conflict": (in_conflict, lambda flow: flow.begin("local-1")),
}


@pytest.mark.parametrize("phase", PHASES)
def test_an_action_lost_at_any_write_happens_once_when_the_command_is_repeated(flow_home: Stage, phase: str) -> None:
    case = Case(flow_home, PHASES[phase], Flow)
    for nth, kind in case.losses:
        case.put_back()
        flow_home.server.faults.add(Fault(kind, nth=nth, times=10_000))
        with pytest.raises(Stopped):
            case.act(case.turns)
        flow_home.server.faults.clear()
        case.act(case.turns)
        case.is_as_if_nothing_had_happened(nth)


@pytest.mark.parametrize("phase", PHASES)
def test_an_accident_at_any_request_changes_nothing_about_the_result(flow_home: Stage, phase: str) -> None:
    case = Case(flow_home, PHASES[phase], Flow)
    for nth, kind in case.accidents(ACCIDENTS):
        case.put_back()
        flow_home.server.faults.add(Fault(kind, nth=nth))
        with suppress(Stopped):  # git gives up sooner than the client of the API
            case.act(case.turns)
        flow_home.server.faults.clear()
        case.act(case.turns)
        case.is_as_if_nothing_had_happened(nth)


@pytest.mark.parametrize(
    "phase",
    [
        pytest.param(name, marks=pytest.mark.matrix if i % 3 else ())
        for i, name in enumerate(PHASES)
        if name != "tick a criterion"
    ],
)
def test_an_action_killed_at_any_write_happens_once_if_repeated(flow_home: Stage, phase: str, tmp_path: Path) -> None:
    case = Case(flow_home, PHASES[phase], Flow)
    words = ["keepalive", "run", "--pull", "2", "--phase", "begin", "--run-dir", str(tmp_path / "run")]
    words += ["--review-workflow", case.turns.review] if case.turns.review else []
    for nth in killed(case.writes):
        case.put_back()
        kill_at(nth, words, flow_home, GITHUB_RUN_ID="local-1", GITHUB_TOKEN=case.turns.token)
        case.act(case.turns)
        case.is_as_if_nothing_had_happened(nth)
