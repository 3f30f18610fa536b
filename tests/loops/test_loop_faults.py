"""Accidents and kills at the requests of each loop's turns: the same command again, and the same end."""

import json
import re
from collections.abc import Callable, Iterator
from contextlib import nullcontext, suppress
from dataclasses import dataclass
from functools import cache, partial
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from support import reviewing_turns as reviews
from support.flows import CRITERIA, Flow, flow_stage
from support.killing import kill_at
from support.reviews import approve
from support.rotation import NIGHTLY, in_turns, killed
from support.stage import Stage
from support.turns import CI, REVIEW, WORKFLOW, Turns, did, failed, opened

from accord.core.errors import Stopped
from accord.loops.run import Turn
from accord.runner.models import RunOutputs
from accord_sandbox.planting import INSTALLATION_TOKEN
from accord_sandbox.server import Fault

pytestmark = pytest.mark.slow

RUN = "local-1"
ACCIDENTS = ("error-500-after", "secondary-403", "truncated", "lost-after")
TWINS = "- [ ] Add tests\n- [ ] Add tests\n- [ ] Add docs\n"


@dataclass
class Reviewing:
    """The turns of the verifier or of bot-comments."""

    stage: Stage
    loop: str = "verify"
    number: int = reviews.MERGED
    token: str = ""
    dispatches: tuple[str, ...] = ()

    def begin(self, run: str) -> Turn:
        return reviews.begun(self.stage, self.loop, self.number, run)

    def end(self, outputs: dict[str, str], run: str, **_: str) -> Turn:
        return reviews.ended(self.stage, self.loop, self.number, RunOutputs.model_validate(outputs), run)

    def seen(self) -> dict[str, Any]:
        return reviews.seen(self.stage, self.number)


@dataclass(frozen=True)
class Phase:
    """One phase of a turn: what was before, and the outputs of the run that ends; None where one begins."""

    subject: Callable[[Stage], Any]
    prepare: Callable[[Any], Any] = lambda _: None
    outputs: dict[str, str] | None = None
    words: tuple[str, ...] = ()
    accidents: tuple[str, ...] = ACCIDENTS
    uses_git: bool = False

    def act(self, subject: Any) -> Turn:
        turn = subject.begin(RUN) if self.outputs is None else subject.end(self.outputs, RUN, workflow=WORKFLOW)
        assert isinstance(turn, Turn)
        return turn

    def command(self, subject: Any, folder: Path) -> list[str]:
        """The command that takes this phase in a process of its own."""
        outputs, registry = folder / "outputs.json", folder / "registry.yml"
        outputs.write_text(json.dumps(self.outputs))
        registry.write_text(f"version: 1\nreview_bots: {[*reviews.BOTS]}\nagents: {{}}\n")
        words = [subject.loop, "run", "--pull", str(subject.number), "--run-dir", str(folder / "run"), *self.words]
        if self.outputs is None:
            return [*words, "--phase", "begin"]
        return [*words, "--phase", "end", "--outputs", str(outputs), "--registry", str(registry)]


def begun(subject: Any) -> None:
    subject.begin(RUN)


def begun_with_a_retry_label(turns: Any) -> None:
    turns.begin(RUN)
    turns.label("agent:retry")


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


def answers(document: Any, **more: str) -> dict[str, str]:
    outputs: dict[str, str] = reviews.answered(document, **more).model_dump(by_alias=True)
    return outputs


AGAIN = ("--dispatch-workflow", WORKFLOW)
git_phase = partial(Phase, Flow, uses_git=True, accidents=("error-500-after", "truncated", "lost-after"))
PUSHED = {"changes_made": "true", "commit_sha": "c" * 40}
BOTS = partial(Reviewing, loop="bot-comments", number=reviews.OPEN)
PHASES = {
    "begin": Phase(Turns),
    "end well": Phase(Turns, begun, did("Add tests", **{"duration-seconds": "3"}), AGAIN),
    "end badly": Phase(Turns, begun_with_a_retry_label, failed("manual", "logic"), AGAIN),
    "begin, runs held": Phase(Turns, lambda turns: turns.push("new", token=INSTALLATION_TOKEN)),
    "tick a criterion": git_phase(begun, did(CRITERIA[0]), AGAIN),
    "start a review": git_phase(unreviewed, words=("--review-workflow", REVIEW)),
    "announce": git_phase(approved),
    "merge the base": git_phase(outdated),
    "ask about a conflict": git_phase(in_conflict),
    "judge": Phase(Reviewing, begun, answers(reviews.FAIL)),
    "answer bots": Phase(BOTS, begun, answers(reviews.ANSWERS, **PUSHED)),
}
ALIKE = ("begin, runs held", "end well", "start a review", "ask about a conflict", "answer bots")
"""Phases whose writes are of kinds that others have: by method, path and what they set."""

DAILY = [name for name in PHASES if name not in ALIKE]
NIGHTLY_TOO = [*DAILY, *(pytest.param(name, marks=pytest.mark.matrix) for name in ALIKE)]
ALL_WRITES = ("begin", "end badly", "merge the base")
"""By day the other phases lose no write of the state's commits."""

OF_STATE = re.compile(r"/git/(?:trees|commits|refs)")
KILLED_DAILY = ("begin", "judge")
"""The other phases only differ in what they write."""


class Case:
    """One phase, begun from the same state again and again."""

    def __init__(self, stage: Stage, phase: Phase) -> None:
        stage.reset()
        self.stage, self.phase, self.subject = stage, phase, phase.subject(stage)
        phase.prepare(self.subject)
        self.began, self.put_back_data = stage.clock.now(), stage.keep()
        stage.server.requests.clear()
        phase.act(self.subject)
        paths = [path for _, path, _ in stage.server.requests]
        reads = [method == "GET" or path.endswith("/git-upload-pack") for method, path, _ in stage.server.requests]
        self.count = len(reads)
        self.writes = [nth for nth, is_read in enumerate(reads, 1) if not is_read]
        self.reads = [nth for nth, is_read in enumerate(reads, 1) if is_read]
        is_like_others = not NIGHTLY and phase not in map(PHASES.get, ALL_WRITES)
        self.lost = [nth for nth in self.writes if not (is_like_others and OF_STATE.search(paths[nth - 1]))]
        self.clean, self.starts = self.subject.seen(), len(self.subject.dispatches)
        assert phase.act(self.subject).context.github.requests.write == 0

    def put_back(self) -> None:
        """Return to the beginning, and to its time."""
        self.put_back_data()
        self.stage.clock.sleep((self.began - self.stage.clock.now()).total_seconds())

    @property
    def losses(self) -> list[tuple[int, str]]:
        """Each write with how the connection is lost there: before or after GitHub carried it out.

        A loss at a read leaves what a loss before the next write leaves.
        """
        reads = [(nth, "lost-after") for nth in self.reads if NIGHTLY]
        return reads + [(nth, kind) for nth in self.lost for kind in in_turns(nth, ("lost-before", "lost-after"))]

    def accidents(self, turn: int) -> list[tuple[int, str]]:
        """Return every second accident with a write that meets it, in turns from phase to phase; nightly all."""
        kinds = self.phase.accidents
        if NIGHTLY:
            return [(nth, kind) for nth in range(1, self.count + 1) for kind in kinds]
        return [(self.writes[(self.count + i) % len(self.writes)], kind) for i, kind in enumerate(kinds[turn % 2 :: 2])]

    def assert_end(self, nth: int) -> None:
        """Its end is that of a clean run, and each workflow was started once: one that was started is found again."""
        self.stage.server.faults.clear()
        with suppress(Stopped):
            self.phase.act(self.subject)
        assert self.subject.seen() == self.clean, nth
        assert len(self.subject.dispatches) == self.starts, nth
        assert not NIGHTLY or self.phase.act(self.subject).context.github.requests.write == 0, nth


@pytest.fixture(scope="module")
def cases(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[str], Case]]:
    turns = opened(tmp_path_factory.mktemp("turns"), body=TWINS, files={".github/workflows/ci.yml": CI})
    flow = flow_stage(tmp_path_factory.mktemp("flow"))
    with turns as one, flow as two, reviews.reviewed(tmp_path_factory.mktemp("reviewed")) as three:
        stages = {Turns: one, Flow: two, Reviewing: three, BOTS: three}
        yield cache(lambda name: Case(stages[PHASES[name].subject], PHASES[name]))


@pytest.fixture
def case(request: pytest.FixtureRequest, cases: Callable[[str], Case]) -> Case:
    return cases(request.param)


@pytest.mark.parametrize("case", NIGHTLY_TOO, indirect=True)
def test_a_turn_lost_at_any_write_is_continued_by_the_same_command(case: Case) -> None:
    for nth, kind in case.losses:
        case.put_back()
        case.stage.server.faults.add(Fault(kind, nth=nth, times=10_000))
        with pytest.raises(Stopped):
            case.phase.act(case.subject)
        case.assert_end(nth)


@pytest.mark.parametrize(
    ("case", "turn"),
    [*zip(DAILY, count()), *(pytest.param(name, 0, marks=pytest.mark.matrix) for name in ALIKE)],
    indirect=["case"],
)
def test_an_accident_at_any_request_changes_nothing_about_the_end(case: Case, turn: int) -> None:
    for nth, kind in case.accidents(turn):
        case.put_back()
        case.stage.server.faults.add(Fault(kind, nth=nth))
        with suppress(Stopped) if case.phase.uses_git else nullcontext():  # git gives up sooner than the client
            case.phase.act(case.subject)
        case.assert_end(nth)


@pytest.mark.parametrize(
    "case",
    [pytest.param(name, marks=() if name in KILLED_DAILY else pytest.mark.matrix) for name in PHASES],
    indirect=True,
)
def test_a_turn_killed_at_any_write_is_continued_when_repeated(case: Case, tmp_path: Path) -> None:
    words = case.phase.command(case.subject, tmp_path)
    secrets = {"OPENAI_API_KEY": reviews.SECRET, **({"GITHUB_TOKEN": token} if (token := case.subject.token) else {})}
    for nth in killed(case.writes):
        case.put_back()
        kill_at(nth, words, case.stage, GITHUB_RUN_ID=RUN, **secrets)
        case.assert_end(nth)
