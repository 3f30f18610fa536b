"""Sessions played to their end by typing only commands that the previous output proposed."""

import json
import re
import shlex
from collections.abc import Callable
from pathlib import Path

import pytest
from support.commands import Accord, Ended
from support.sessions import ARCHITECTURE, REPORT, SPEC, TASKS, acceptance, agent_output

from accord.git.program import Git

ANSWERS = {"UD-APPROVE-DESIGN": "Approved", "UD-REVIEW-STRATEGY": "single final"}
WRITES = {
    "SpecAgent": {"spec.md": SPEC, "acceptance.json": json.dumps(acceptance())},
    "Architect": {"architecture.md": ARCHITECTURE},
    "Planner": {"tasks.yaml": TASKS},
    "Docs": {"report.md": REPORT},
}


class Player:
    """Types commands, as a person or a script does who knows only the last output; agents do their work at once."""

    def __init__(self, accord: Accord, *new: str) -> None:
        self.accord = accord
        self.typed: list[str] = []
        self.output = accord.file("output.json", agent_output())
        self.last = self.type(["accord", "session", "new", "Export", *new])
        (self.folder,) = Path(".agents-work").iterdir()
        self.is_lean = "--lean" in new

    def type(self, words: list[str]) -> Ended:
        self.typed.append(shlex.join(words))
        ended = self.accord(*words[1:])
        assert ended.code == 0, (self.typed, ended)
        return ended

    @property
    def proposed(self) -> list[list[str]]:
        text = self.last.out + self.last.err
        after = text.split("\nNext:\n")[-1] if "\nNext:\n" in text else text.split("Next:\n")[-1]
        return [shlex.split(line) for line in after.splitlines() if re.match(r" +accord ", line)]

    def state(self) -> str:
        return str(json.loads((self.folder / "status.json").read_text())["current_state"])

    def play(self, choose: Callable[[list[list[str]]], list[str]], end: str = "DONE") -> None:
        while self.state() != end:
            words = choose(self.proposed)
            assert len(self.typed) < 60, self.typed
            self.last = self.type([self.filled(word) for word in words])
            if words[1] == "dispatch" and "--take" not in words:
                self.work(words[words.index("--role") + 1])

    def filled(self, word: str) -> str:
        name, _, value = word.partition("=")
        if value == "ANSWER":
            return f"{name}={ANSWERS.get(name, 'the first')}"
        return {"OUTPUT.json": str(self.output), "GOAL": "Let users export rows."}.get(word, word)

    def work(self, role: str) -> None:
        """Do what the agent of this role does."""
        files = dict(WRITES.get(role, {}))
        if role == "SpecAgent" and self.is_lean:
            files["tasks.yaml"] = TASKS
        for name, text in files.items():
            (self.folder / name).write_text(text, encoding="utf-8")
        if role == "Coder":
            Path("export.py").write_text("HEADER = 1\n")


@pytest.fixture
def repository(accord: Accord) -> Accord:
    """A repository with a commit, in the current folder."""
    git = Git(Path.cwd(), config={"user.name": "a", "user.email": "a@example.org"})
    git("init", "--quiet", "-b", "main")
    git("commit", "--quiet", "--allow-empty", "-m", "Begin")
    return accord


def last(proposed: list[list[str]]) -> list[str]:
    """Choose the move on, once an agent that writes files of the session has written them."""
    return proposed[-1] if proposed[0][1] == "dispatch" and "--take" in proposed[0] else proposed[0]


def first(proposed: list[list[str]]) -> list[str]:
    """Choose the first command, and so take every output."""
    return proposed[0]


@pytest.mark.slow
def test_a_full_session_of_two_tasks_takes_at_most_25_commands(repository: Accord) -> None:
    player = Player(repository)
    player.play(last)
    assert len(player.typed) <= 25, "\n".join(player.typed)
    assert "UD-APPROVE-DESIGN=Approved" in " ".join(player.typed)
    assert repository("session", "check", player.folder).code == 0


@pytest.mark.slow
def test_a_lean_session_ends_by_typing_the_first_proposed_command(repository: Accord) -> None:
    player = Player(repository, "--lean")
    player.play(first)
    assert repository("session", "check", player.folder).code == 0
    outputs = [json.loads(line) for line in (player.folder / "outputs.jsonl").read_text().splitlines()]
    assert {"Coder", "Reviewer", "QA"} <= {line["agent"] for line in outputs}
