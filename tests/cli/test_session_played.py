"""Sessions played to their end by typing only commands that the previous output proposed."""

import json
import re
import shlex
from pathlib import Path

import pytest
from support.commands import Accord, Ended
from support.sessions import REPORT, SPEC, TASKS, acceptance, agent_output

from accord.git.program import Git

ANSWERS = {"UD-APPROVE-DESIGN": "Approved", "UD-REVIEW-STRATEGY": "single final"}
WRITES = {
    "SpecAgent": {"spec.md": SPEC, "acceptance.json": json.dumps(acceptance()), "tasks.yaml": TASKS},
    "Docs": {"report.md": REPORT},
}


class Player:
    """Types commands, as a person or a script does who knows only the last output; agents do their work at once."""

    def __init__(self, accord: Accord) -> None:
        self.accord = accord
        self.typed: list[str] = []
        self.output = accord.file("output.json", agent_output())
        self.last = self.type(["accord", "session", "new", "Export", "--lean"])
        (self.folder,) = Path(".agents-work").iterdir()

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

    def play(self) -> None:
        while self.state() != "DONE":
            words = self.proposed[0]
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
        for name, text in WRITES.get(role, {}).items():
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


@pytest.mark.slow
def test_a_lean_session_ends_by_typing_the_first_proposed_command(repository: Accord) -> None:
    player = Player(repository)
    player.play()
    assert repository("session", "check", player.folder).code == 0
    outputs = [json.loads(line) for line in (player.folder / "outputs.jsonl").read_text().splitlines()]
    assert {"Coder", "Reviewer", "QA"} <= {line["agent"] for line in outputs}
