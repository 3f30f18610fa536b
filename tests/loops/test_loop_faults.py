"""Accidents and kills at the requests of each loop's turns: the same command again, and the same end."""

import json
import os
import re
import shutil
from collections.abc import Callable, Iterator
from contextlib import nullcontext, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache, partial
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from support import reviewing_turns as reviews
from support.commands import RUNNER
from support.flows import CRITERIA, Flow, flow_stage
from support.forks import Forked
from support.killing import environment_on, kill_at
from support.reviews import approve
from support.rotation import NIGHTLY, in_turns, killed
from support.stage import Stage
from support.turns import CI, REVIEW, WORKFLOW, Turns, did, failed, opened

from accord.core.errors import Stopped
from accord.loops.run import Turn
from accord.records.chain import read_records
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

    def act(self, subject: Any, _: Path) -> int:
        """Take the phase and return how often it wrote."""
        turn = subject.begin(RUN) if self.outputs is None else subject.end(self.outputs, RUN, workflow=WORKFLOW)
        assert isinstance(turn, Turn)
        return turn.context.github.requests.write

    def seen(self, subject: Any) -> object:
        return subject.seen()

    def command(self, subject: Any, folder: Path) -> list[str]:
        """The command that takes this phase in a process of its own."""
        outputs, registry = folder / "outputs.json", folder / "registry.yml"
        outputs.write_text(json.dumps(self.outputs))
        registry.write_text(f"version: 1\nreview_bots: {[*reviews.BOTS]}\nagents: {{}}\n")
        words = [subject.loop, "run", "--pull", str(subject.number), "--run-dir", str(folder / "run"), *self.words]
        if self.outputs is None:
            return [*words, "--phase", "begin"]
        return [*words, "--phase", "end", "--outputs", str(outputs), "--registry", str(registry)]


AGENT = """
import json, pathlib, sys
message, *paths = sys.argv[1:]
for path in paths:
    pathlib.Path(path).write_text("new")
usage = {"input_tokens": 1, "cached_input_tokens": 0, "output_tokens": 1}
for event in ({"type": "thread.started", "thread_id": "0"}, {"type": "turn.started"},
              {"type": "item.completed", "item": {"id": "0", "type": "agent_message", "text": message}},
              {"type": "turn.completed", "usage": usage}):
    print(json.dumps(event))
"""
VARYING = re.compile(
    r'[0-9a-f]{40}|(?<=`)[0-9a-f]{12}(?=`)|\d{4}-\d\d-\d\dT[\d:.]+(?:Z|\+00:00)?|(?<="seconds": )[\d.]+|\b\d:\d\d\b'
)
"""Parts of what is seen that differ by nature: commits and times."""


@dataclass(frozen=True)
class WholeTurn(Phase):
    """A turn in one command, whose agent ends with a message and writes files."""

    message: str = ""
    writes: tuple[str, ...] = ()

    def act(self, subject: Any, folder: Path) -> int:
        known = {name: text for name, text in os.environ.items() if not name.startswith(RUNNER)}
        words, environment = [*self.command(subject, folder), "--format", "json"], known | environment_on(subject.stage)
        with Forked(words, folder, environment) as forked:
            out, err = forked.communicate(timeout=60)
        assert forked.returncode == 0, err
        return int(json.loads(out)["requests"]["write"])

    def command(self, subject: Any, folder: Path) -> list[str]:
        agent, registry = folder / "agent.py", folder / "registry.yml"
        agent.write_text(AGENT)
        entry = {"command": ["python3", str(agent), self.message, *self.writes], "codec": "codex"}
        told = {"version": 1, "default_agent": "script", "review_bots": [*reviews.BOTS], "agents": {"script": entry}}
        registry.write_text(json.dumps(told))
        given = ["--pull", str(subject.number), "--registry", str(registry), "--run-dir", str(folder / "run")]
        return [subject.loop, "run", *given, *self.words]

    def seen(self, subject: Any) -> object:
        """All that a person could see, the newest state with its revision, the pull request's commits, and records."""
        stage, number = subject.stage, subject.number
        stored = reviews.context(stage, number).store(subject.loop).newest()
        assert stored is not None
        root, records = f"/repos/{stage.repository}", read_records(stage.adapter(), datetime(2020, 1, 1, tzinfo=UTC))
        comments = stage.get(f"{root}/issues/{number}/comments", per_page=100)
        found = {
            "seen": subject.seen(),
            "state": stored.value.model_dump(mode="json"),
            "shown": [comment["body"].partition("<!-- accord:loop ")[0] for comment in comments],
            "commits": [
                one["commit"]["message"].partition("\n")[0] for one in stage.get(f"{root}/pulls/{number}/commits")
            ],
            "records": [record.result.disposition for record in records],
        }
        return json.loads(VARYING.sub("0", json.dumps(found, default=sorted)))


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


def broken(turns: Any) -> None:
    turns.unlabel("agents:keepalive")
    turns.label("autofix")
    turns.check(conclusion="failure")


def with_the_agent(subject: Any) -> None:
    path = f"/repos/{subject.stage.repository}/issues/{subject.number}/labels"
    subject.stage.send("PUT", path, labels=["agent:script"])


def answers(document: Any, **more: str) -> dict[str, str]:
    outputs: dict[str, str] = reviews.answered(document, **more).model_dump(by_alias=True)
    return outputs


AGAIN = ("--dispatch-workflow", WORKFLOW)
git_phase = partial(Phase, Flow, uses_git=True, accidents=("error-500-after", "truncated", "lost-after"))
PUSHED = {"changes_made": "true", "commit_sha": "c" * 40}
AUTOFIX = partial(Turns, loop="autofix")
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
TURNS = {
    "keepalive": WholeTurn(Flow, message=f"- [x] {CRITERIA[0]}", writes=("new.txt",), words=AGAIN),
    "autofix": WholeTurn(AUTOFIX, broken, message="Fixed.", writes=("new.txt",), words=AGAIN),
    "verify": WholeTurn(Reviewing, message=json.dumps(reviews.FAIL)),
    "bot-comments": WholeTurn(BOTS, with_the_agent, message=json.dumps(reviews.ANSWERS), writes=("new.txt",)),
}
ALIKE = ("begin, runs held", "end well", "start a review", "ask about a conflict", "answer bots")
"""Phases whose writes are of kinds that others have: by method, path and what they set."""

DAILY = [name for name in PHASES if name not in ALIKE]
NIGHTLY_TOO = [*DAILY, *(pytest.param(name, marks=pytest.mark.matrix) for name in ALIKE)]
ALL_WRITES = ("begin", "end badly", "merge the base")
"""By day the other phases lose no write of the state's commits."""

OF_STATE = re.compile(r"/git/(?:trees|commits|refs)")
TURNING_POINTS = re.compile(r"/refs/accord/loops/|/git-receive-pack$|/pulls/\d+$|/issues$")
"""Writes of a whole turn after which it has other things left to do: the state, the push, ticks, a follow-up."""

KILLED_DAILY = ("begin", "judge")
"""The other phases only differ in what they write."""


class Case:
    """One phase, begun from the same state again and again."""

    def __init__(self, stage: Stage, phase: Phase, folder: Path) -> None:
        stage.reset()
        self.stage, self.phase, self.subject, self.folder = stage, phase, phase.subject(stage), folder
        phase.prepare(self.subject)
        self.began, self.put_back_data = stage.clock.now(), stage.keep()
        stage.server.requests.clear()
        self.act()
        paths = [path for _, path, _ in stage.server.requests]
        reads = [method == "GET" or path.endswith("/git-upload-pack") for method, path, _ in stage.server.requests]
        self.count = len(reads)
        self.writes = [nth for nth, is_read in enumerate(reads, 1) if not is_read]
        self.reads = [nth for nth, is_read in enumerate(reads, 1) if is_read]
        self.turning_points = [nth for nth in self.writes if TURNING_POINTS.search(paths[nth - 1])]
        is_like_others = not NIGHTLY and phase not in map(PHASES.get, ALL_WRITES)
        self.lost = [nth for nth in self.writes if not (is_like_others and OF_STATE.search(paths[nth - 1]))]
        self.clean, self.starts = phase.seen(self.subject), len(self.subject.dispatches)
        assert self.act() == 0
        assert phase.seen(self.subject) == self.clean

    def act(self) -> int:
        return self.phase.act(self.subject, self.folder)

    def put_back(self) -> None:
        """Return to the beginning, and to its time."""
        self.put_back_data()
        shutil.rmtree(self.folder / "run", ignore_errors=True)
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
            self.act()
        assert self.phase.seen(self.subject) == self.clean, nth
        assert len(self.subject.dispatches) == self.starts, nth
        assert not NIGHTLY or self.act() == 0, nth


@pytest.fixture(scope="module")
def cases(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[str], Case]]:
    turns = opened(tmp_path_factory.mktemp("turns"), body=TWINS, files={".github/workflows/ci.yml": CI})
    flow = flow_stage(tmp_path_factory.mktemp("flow"))
    with turns as one, flow as two, reviews.reviewed(tmp_path_factory.mktemp("reviewed")) as three:
        stages = {Turns: one, AUTOFIX: one, Flow: two, Reviewing: three, BOTS: three}
        phases = PHASES | TURNS
        homes = {name: tmp_path_factory.mktemp("home") for name in phases}
        yield cache(lambda name: Case(stages[phases[name].subject], phases[name], homes[name]))


@pytest.fixture
def case(request: pytest.FixtureRequest, cases: Callable[[str], Case]) -> Case:
    return cases(request.param)


@pytest.mark.parametrize("case", NIGHTLY_TOO, indirect=True)
def test_a_turn_lost_at_any_write_is_continued_by_the_same_command(case: Case) -> None:
    for nth, kind in case.losses:
        case.put_back()
        case.stage.server.faults.add(Fault(kind, nth=nth, times=10_000))
        with pytest.raises(Stopped):
            case.act()
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
            case.act()
        case.assert_end(nth)


@pytest.mark.parametrize(
    "case",
    [pytest.param(name, marks=() if name in KILLED_DAILY else pytest.mark.matrix) for name in PHASES],
    indirect=True,
)
def test_a_turn_killed_at_any_write_is_continued_when_repeated(case: Case) -> None:
    words = case.phase.command(case.subject, case.folder)
    secrets = {"OPENAI_API_KEY": reviews.SECRET, **({"GITHUB_TOKEN": token} if (token := case.subject.token) else {})}
    for nth in killed(case.writes):
        case.put_back()
        kill_at(nth, words, case.stage, GITHUB_RUN_ID=RUN, **secrets)
        case.assert_end(nth)


@pytest.mark.parametrize("case", TURNS, indirect=True)
def test_a_whole_turn_killed_at_any_request_is_continued_when_repeated(case: Case) -> None:
    words = case.phase.command(case.subject, case.folder)
    for nth in range(1, case.count + 1) if NIGHTLY else case.turning_points:
        case.put_back()
        kill_at(nth, words, case.stage)
        case.assert_end(nth)
