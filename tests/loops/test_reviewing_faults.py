"""Accidents and kills at every request of the end of a verifier's and of a bot-comments' run: the same end."""

from contextlib import suppress
from pathlib import Path

import pytest
from support.killing import kill_at
from support.reviewing_turns import ANSWERS, BOTS, FAIL, MERGED, OPEN, SECRET, answered, begun, ended, reviewed, seen
from support.rotation import in_turns, killed
from support.stage import Stage

from accord.core.errors import Stopped
from accord_sandbox.faults import Fault

pytestmark = pytest.mark.slow

LOOPS = {
    "verify": (MERGED, answered(FAIL)),
    "bot-comments": (OPEN, answered(ANSWERS, changes_made="true", commit_sha="c" * 40)),
}
RUN = "local-1"
STAGE = reviewed


class Case:
    """The end of one loop's run, from the same beginning again and again."""

    def __init__(self, stage: Stage, name: str) -> None:
        self.stage, self.name = stage, name
        self.number, self.outputs = LOOPS[name]
        begun(self.stage, name, self.number, RUN)
        self.put_back = self.stage.keep()
        self.stage.server.requests.clear()
        self.end()
        self.count = len(self.stage.server.requests)
        self.clean = seen(self.stage, self.number)
        assert self.end() == 0

    def end(self) -> int:
        """End the run; return how many requests wrote something."""
        return ended(self.stage, self.name, self.number, self.outputs, RUN).context.github.requests.write

    def check(self, nth: int) -> None:
        assert seen(self.stage, self.number) == self.clean, nth
        assert self.end() == 0, nth


TURNS = [pytest.param(name, marks=() if name == "verify" else pytest.mark.matrix) for name in LOOPS]


@pytest.mark.parametrize("name", TURNS)
def test_an_accident_at_any_request_changes_nothing_about_the_end(stage: Stage, name: str) -> None:
    case = Case(stage, name)
    kinds = ("lost-after", "error-500-after", "truncated", "lost-before", "secondary-403")
    for nth in range(1, case.count + 1):
        for kind in in_turns(nth, kinds):
            case.put_back()
            case.stage.server.faults.add(Fault(kind, nth=nth))
            case.end()
            case.stage.server.faults.clear()
            case.check(nth)


@pytest.mark.parametrize("name", TURNS)
def test_an_end_killed_at_a_request_is_continued_by_the_same_command(stage: Stage, name: str, tmp_path: Path) -> None:
    case = Case(stage, name)
    told, registry = tmp_path / "outputs.json", tmp_path / "registry.yml"
    told.write_text(case.outputs.model_dump_json(by_alias=True))
    registry.write_text(f"version: 1\nreview_bots: {[*BOTS]}\nagents: {{}}\n")
    words = [name, "run", "--pull", str(case.number), "--phase", "end", "--outputs", str(told)]
    words += ["--registry", str(registry), "--run-dir", str(tmp_path / "run")]
    for nth in killed(range(1, case.count + 1)):
        case.put_back()
        kill_at(nth, words, case.stage, GITHUB_RUN_ID=RUN, OPENAI_API_KEY=SECRET)
        with suppress(Stopped):
            case.end()
        case.check(nth)
