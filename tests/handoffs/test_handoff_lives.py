"""Whole lives of handoffs in a file: moves, patches, edits by hand and kills, by random roles and actors.

After each step, the task is judged by the contract alone, without accord's own rules.
"""

import copy
import json
import os
import random
import shlex
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from support.clocks import ManualClock
from support.handoffs import DONE, EDGES, QUESTION, checked
from support.handoffs import NOW as TODAY
from support.missions import NOW

from accord.core.clock import parse_timestamp
from accord.core.findings import has_errors
from accord.handoffs.models import normalise
from accord.handoffs.plan import Author, HandoffDecision, decide_move, decide_patch
from accord.handoffs.stages import HandoffCommand, next_moves
from accord.handoffs.store import change_file

Task = dict[str, Any]

CLOSED = {
    "planner": ("reviewArtifact", "verificationArtifact", "doneArtifact"),
    "architect": ("planningArtifact", "testingArtifacts.planned"),
    "tester": ("planningArtifact.goals", "planningArtifact.steps", "planningArtifact.risks"),
}
JUDGES = {
    "reviewArtifact.decision": ("architect", "reviewer", "human"),
    "verificationArtifact.result": ("tester", "human"),
}
RIGHT = dict(zip(JUDGES, ("approved", "passed"), strict=True))
PLAN = ("planningArtifact.goals", "planningArtifact.steps", "planningArtifact.risks", "testingArtifacts.planned")
TESTS, SUMMARY = "testingArtifacts.implemented", "reviewArtifact.changeSummary"
REVIEWED = (SUMMARY, "reviewArtifact.filesTouched")
COMMANDS = "verificationArtifact.commands"
JUDGED = {
    "reviewArtifact.decision": (*PLAN, f"{TESTS}.testsAddedOrUpdated", *REVIEWED),
    "verificationArtifact.result": (*PLAN, TESTS, *REVIEWED, COMMANDS),
}
GATED = {"review": [*JUDGES][1:], "verification": [*JUDGES], "done": [*JUDGES]}
TIMES, FUTURE = ("doneArtifact.completedAt", "awaitingHumanArtifact.requestedAt"), "2126-11-02T09:00:00Z"
APPEND_ONLY = (SUMMARY, "verificationArtifact.notes", f"{TESTS}.commandsRun")
IMMUTABLE = ("canonicalTaskId", "planningArtifact.createdAt", "workflow.branchName", "workflow.baseBranch")
ROLES = ("planner", "architect", "tester", "developer", "reviewer", "retrospective", "human")
ARTIFACTS = (
    "planningArtifact",
    "testingArtifacts",
    "reviewArtifact",
    "verificationArtifact",
    "doneArtifact",
    "workflow",
)
ODD = (None, "text", {}, {"status": "superseded"}, {"status": "done"}, {"x-own": "-->"}, {"createdAt": "never"})
OTHER = (
    {"metadata": None},
    {"title": "Another"},
    {"metadata": {"canonicalTaskId": "T-00124"}},
    {"metadata": {"canonicalTaskId": "nonsense"}},
    {"metadata": {"workflowRuntime": {"actionHistory": []}}},
)
STEPS = 40
LIVES = int(os.environ.get("ACCORD_WALKS", "6"))
SEED = os.environ.get("ACCORD_FUZZ_SEED", "0")


def at(task: Task, place: str) -> Any:
    """Return what a task has at a place of its metadata, without the notes on progress; None where that is nothing."""
    found: Any = task["metadata"]
    for key in place.split("."):
        found = found.get(key) if isinstance(found, dict) else None
    if isinstance(found, dict):
        found = {key: value for key, value in found.items() if value and not key.startswith(("updated", "status"))}
    return found or None


def patch_at(place: str, value: Any) -> Task:
    for key in reversed(place.split(".")):
        value = {key: value}
    return {"metadata": value}


@dataclass
class Life:
    """One handoff in a file, and what happened to it; ``seen`` has the work that each verdict is about."""

    path: Path
    chance: random.Random
    minute: int = 0
    story: list[str] = field(default_factory=list)
    seen: dict[str, Any] = field(default_factory=dict)
    answered: dict[str, Any] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)
    is_edited: bool = False

    @property
    def task(self) -> Task:
        return normalise(json.loads(self.path.read_text()))

    @property
    def now(self) -> str:
        return f"2026-11-10T{self.minute // 60:02}:{self.minute % 60:02}:00Z"

    @property
    def text(self) -> str:
        return f"{self.chance.choice(['ran', 'saw', 'did'])} {self.chance.randrange(9)}"

    def step(self) -> list[str]:
        """Take a step; return what breaks the contract."""
        kind, task = self.chance.random(), self.task
        if kind < 0.6:
            self.follow_proposal(task)
        elif kind < 0.8:
            self.give(self.chance.choice(ROLES), self.any_patch(task))
        elif kind < 0.94:
            target = self.chance.choice([*EDGES, *EDGES[task["status"]].split()])
            patch = self.any_patch(task) if self.chance.random() < 0.3 else None
            self.give(self.chance.choice(ROLES), patch, target, redirects=self.chance.random() < 0.3)
        else:
            self.edit(task)
        return self.problems

    def any_patch(self, task: Task) -> Task:
        if self.chance.random() < 0.2:
            odd = [patch_at(self.chance.choice(ARTIFACTS), value) for value in ODD]
            return copy.deepcopy(self.chance.choice([*odd, *OTHER]))
        if self.chance.random() < 0.1:
            ran = {"commandsRun": [*(at(task, f"{TESTS}.commandsRun") or []), self.text]}
            result = {"result": "passed"} if self.chance.random() < 0.7 else {}
            return {"metadata": {"testingArtifacts": {"implemented": ran}, "verificationArtifact": result}}
        place = self.chance.choice(
            [*PLAN[:3], TESTS, *APPEND_ONLY, *REVIEWED, COMMANDS, *IMMUTABLE[1:3], *JUDGES, "doneArtifact"]
        )
        kept = at(task, place) if self.chance.random() < 0.8 else None
        value: Any = [*(kept or []), self.text] if place not in (TESTS, "doneArtifact") else None
        if place in JUDGES:
            value = self.chance.choice(
                [RIGHT[place], RIGHT[place], "changes_requested" if "dec" in place else "failed"]
            )
        elif place in IMMUTABLE:
            value = f"2026-11-0{self.chance.randrange(1, 9)}T08:00:00Z"
        elif value is None:
            value = DONE if place == "doneArtifact" else {"testsAddedOrUpdated": [self.text]}
        patch = patch_at(place, value)
        if self.chance.random() < 0.5:
            patch["metadata"]["transitionNote"] = f"Because {self.chance.random()}"
        return patch

    def edit(self, task: Task) -> None:
        """Change the work in the file itself, or a time."""
        place = self.chance.choice([*PLAN[:3], f"{TESTS}.evidenceLinks", SUMMARY, *TIMES])
        *above, last = place.split(".")
        part = task["metadata"]
        for key in above:
            part[key] = part.get(key) or {}
            part = part[key]
        part[last] = FUTURE if place in TIMES else [*(part.get(last) or []), self.text]
        self.story.append(f"edit {place}")
        self.is_edited = True
        self.path.write_text(json.dumps(task))

    def follow_proposal(self, task: Task) -> None:
        """Type what accord proposes; it must not be refused, and each patch gets what is named first."""
        found = next_moves(task, HandoffCommand("task.json"), TODAY)
        move = self.chance.choice([each for each in found if each.to not in ("cancelled", "backlog")] * 9 + found)
        words = shlex.split(move.command)
        role = words[words.index("--role") + 1]
        if not move.missing:
            if not self.give(role, None, move.to).is_ok:
                self.fail(f"a proposed move is refused: {move.command}")
            return
        artifact = move.missing[0].split()[0].partition(".")[0]
        if move.missing[0].startswith(tuple(JUDGES)):
            place = move.missing[0].split()[0]
            patch = patch_at(place, RIGHT[place])
        else:
            whole: dict[str, Any] = {
                "reviewArtifact": {"changeSummary": [*(at(task, SUMMARY) or []), self.text]},
                "verificationArtifact": {"commands": ["pytest"], **({"result": "passed"} if role == "tester" else {})},
                "doneArtifact": DONE,
                "planningArtifact": {"steps": [self.text]},
                "testingArtifacts": {"planned": {"unitTestIntent": [self.text]}},
                "awaitingHumanArtifact": {**QUESTION, "question": f"{self.text}?", "requestedAt": self.now},
            }
            patch = patch_at(artifact, {**whole[artifact], "status": "complete"})
            patch["metadata"]["transitionNote"] = f"Because {self.chance.random()}"
        if not self.give(role, patch).is_ok:
            self.fail(f"a proposed patch is refused: {move.command}, {patch}")
        after = {each.to: each.missing for each in next_moves(self.task, HandoffCommand("task.json"), TODAY)}
        if move.missing[0] in after[move.to]:
            self.fail(f"{move.missing[0]} is still missing for {move.to} after {patch}")

    def give(self, role: str, patch: Task | None, target: str = "", *, redirects: bool = False) -> HandoffDecision:
        """Give a command, at times as if it was killed before or after its write, and judge it."""
        self.minute += 1
        now = self.now
        author, before = Author(role, now, self.chance.choice(["", "ada", "bob"])), self.task
        self.story.append(f"{role} {json.dumps(patch)} {target}{' or a person' if redirects else ''}")

        def decide(task: Task) -> HandoffDecision:
            if not target:
                return decide_patch(task, patch or {}, author)
            return decide_move(task, target, author, patch, redirects=redirects)

        def run() -> HandoffDecision:
            return change_file(self.path, decide, ManualClock(NOW), writes=True)

        raw, kill = self.path.read_bytes(), self.chance.random()
        decided = run()
        once = self.path.read_bytes()
        if kill < 0.2:
            self.path.write_bytes(raw if kill < 0.1 else once)
            self.path.with_name(f".{self.path.name}.0123456789abcdef").write_bytes(raw[: len(raw) // 2])
            author = Author(role, now if kill < 0.1 else "2026-11-20T08:00:00Z", author.actor)
            run()
            if self.path.read_bytes() != once:
                self.fail("a killed command ends otherwise when it is given again")
        self.judge(before, self.task, decided, role, patch)
        return decided

    def judge(self, before: Task, after: Task, decided: HandoffDecision, role: str, patch: Task | None) -> None:
        """Hold a command against the contract."""
        self.judge_parts(before, after, role)
        old, new = (one["metadata"].get("workflowRuntime") or {} for one in (before, after))
        known = old.get("actionHistory", [])
        self.hold(new.get("actionHistory", [])[: len(known)] == known, "the history lost an entry")
        if not decided.is_ok:
            left = {**after, "metadata": {**after["metadata"], "workflowRuntime": old}}
            self.hold(left == {**before, "metadata": {**before["metadata"], "workflowRuntime": old}}, "a refusal wrote")
        self.learn(before, after, decided, role, patch)
        is_broken = has_errors(checked(after)[1])
        self.hold(self.is_edited or not is_broken, "the document breaks its contract")
        self.is_edited &= is_broken
        for move in next_moves(after, HandoffCommand("task.json"), parse_timestamp(self.now)):
            is_ok = decide_move(after, move.to, Author("human", self.now)).is_ok
            self.hold(is_ok is not bool(move.missing), f"{move} tells the wrong needs")
        source, target = before["status"], after["status"]
        if target == "done":
            self.hold(all(at(after, verdict) == right for verdict, right in RIGHT.items()), "done without its verdicts")
            self.hold(bool(at(after, "doneArtifact.summary")), "done without a done artifact")
        if source == target == "done":
            listed, time = at(before, "doneArtifact.summary") or [], TIMES[0]
            self.hold(at(after, "doneArtifact.summary")[: len(listed)] == listed, "a done task has another summary")
            self.hold(at(before, time) in (None, at(after, time)), "a done task has another time")
        if (source, target) == ("planning", "implementing"):
            self.hold(any(at(after, place) for place in PLAN[:3]) and bool(at(after, PLAN[3])), "planned nothing")
        if source != target:
            self.judge_question(after, source, target)
            place = dict(zip(("done", "awaiting_human"), TIMES, strict=True)).get(target, "doneArtifact.none")
            self.hold(at(after, place) != FUTURE, f"{place} is in the future")
            self.hold(target in EDGES[source].split(), f"{source} went to {target}")
            self.hold(target == "awaiting_human" or not decided.is_redirected, "a redirect went elsewhere")
            for verdict in GATED.get(target, ()) if source != "done" else ():
                self.hold(self.seen.get(verdict) == self.work(after, verdict), f"{verdict} is older than the work")

    def judge_question(self, after: Task, source: str, target: str) -> None:
        asked = at(after, "awaitingHumanArtifact") or {}
        if target == "awaiting_human":
            self.hold(asked != self.answered, "an answered question is asked again")
            self.hold(asked["requestedAt"] != self.answered.get("requestedAt"), "a new question has an old time")
        if source == "awaiting_human":
            self.answered = asked

    def judge_parts(self, before: Task, after: Task, role: str) -> None:
        for place in APPEND_ONLY:
            listed = at(before, place) or []
            self.hold((at(after, place) or [])[: len(listed)] == listed, f"{place} lost an entry")
        for place in IMMUTABLE:
            self.hold(at(before, place) in (None, at(after, place)), f"{place} changed")
        changed = [place for place in PLAN if at(before, place) and at(before, place) != at(after, place)]
        has_reason = at(before, "transitionNote") != at(after, "transitionNote")
        self.hold(has_reason or not changed, f"{changed} changed without a reason")
        for place in CLOSED.get(role, ()):
            self.hold(at(before, place) == at(after, place), f"{role} changed {place}")
        for verdict, judges in JUDGES.items():
            is_withdrawn = self.is_superseded(before, verdict) and not at(after, verdict)
            is_same = at(before, verdict) == at(after, verdict)
            self.hold(role in judges or is_same or is_withdrawn, f"{role} gave the {verdict}")

    def learn(self, before: Task, after: Task, decided: HandoffDecision, role: str, patch: Task | None) -> None:
        """Note which work each verdict is about; one that was withdrawn does not come back by itself."""
        for verdict, judges in JUDGES.items():
            is_given = role in judges and bool(at({"metadata": {}, **(patch or {})}, verdict))
            is_back = self.is_superseded(before, verdict) and not self.is_superseded(after, verdict)
            self.hold(is_given or not is_back or not at(after, verdict), f"{verdict} came back")
            if not at(after, verdict):
                self.seen.pop(verdict, None)
            elif is_given and decided.is_ok:
                self.seen[verdict] = self.work(after, verdict)

    def is_superseded(self, task: Task, verdict: str) -> bool:
        return (task["metadata"].get(verdict.partition(".")[0]) or {}).get("status") == "superseded"

    def work(self, task: Task, verdict: str) -> Any:
        return copy.deepcopy([at(task, place) for place in JUDGED[verdict]])

    def hold(self, is_right: bool, what: str) -> None:
        if not is_right:
            self.fail(what)

    def fail(self, what: str) -> None:
        self.problems.append("\n".join([what, *self.story[-12:]]))


@pytest.mark.slow
@pytest.mark.parametrize("first", range(0, LIVES, 6))
def test_no_life_of_a_handoff_breaks_its_contract(first: int, tmp_path: Path) -> None:
    for number in range(first, min(first + 6, LIVES)):
        path = tmp_path / f"{number}.json"
        path.write_text(
            json.dumps({"title": "Export", "status": "backlog", "metadata": {"canonicalTaskId": "T-00001"}})
        )
        life = Life(path, random.Random(f"{SEED}-{number}"))
        for _ in range(STEPS):
            assert life.step() == []
        path.unlink()
