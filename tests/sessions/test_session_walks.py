"""Random walks over all changes of a session: after each accepted one, the session keeps its contract.

They go over planned documents in memory; some go over files, too, and end there with the same documents.
"""

import json
import os
import random
import re
import tempfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from support.disks import Hasty
from support.sessions import (
    ARCHITECTURE,
    REPORT,
    SINGLE,
    SPEC,
    TASKS,
    acceptance,
    agent_output,
    clock,
    decision,
    make_session,
    outputs,
    writer,
)  # fmt: skip
from support.sessions import GATES as GATES_PASSED

from accord.core.errors import BrokenContract, WrongUsage
from accord.core.findings import has_errors
from accord.sessions import run
from accord.sessions.apply import SessionWriter
from accord.sessions.changes import hand_edits
from accord.sessions.folder import Part, Session, read_session, status_of, status_value
from accord.sessions.folder_rules import check_documents
from accord.sessions.machine import ORDER
from accord.sessions.models import GATES, LOOPS, ROLES, STATES, AgentOutput
from accord.sessions.moves import check_files
from accord.sessions.next_moves import next_moves, task_moves
from accord.sessions.outputs import apply_output
from accord.sessions.policy import parse_setting
from accord.sessions.questions import UserQuestion

WALKS = int(os.environ.get("ACCORD_WALKS", "10"))
SEED = int(os.environ.get("ACCORD_FUZZ_SEED", "0"))
STEPS = 40
"""Steps of a walk, accepted or refused."""

NAMES = ("T-001", "T-002", "T-003")
STATUSES = ("not-started", "in-progress", "implemented", "completed", "blocked")
REVIEWERS = ("Reviewer", "QA", "Security")
ANSWERS = ("approved", "approved", "per-batch", "single-final", "changes-requested: smaller", "yes", "")
PLAN = TASKS.replace('acceptance_checks: ["cmd', 'risk_flags: [security]\n    acceptance_checks: ["cmd')
PLAN += """\
  - {id: T-003, status: not-started, goal: Write the end., depends_on: [T-002], acceptance_checks: ["cmd: pytest"]}
"""

Change = Callable[[SessionWriter], object]


class Walk:
    """One session and the steps that were tried on it."""

    def __init__(self, root: Path, chance: random.Random, *, is_in_memory: bool) -> None:
        self.chance = chance
        self.clock = clock()
        self.mode = chance.choice(("full", "full", "lean"))
        gates = chance.choice((GATES_PASSED, SINGLE)) if self.mode == "full" else []
        state = chance.choice(("INTAKE" if self.mode == "full" else "INTAKE_LEAN", "IMPLEMENT_LOOP"))
        decisions = gates if state == "IMPLEMENT_LOOP" else []
        self.folder = make_session(root, state, mode=self.mode, user_decisions=decisions, texts={"tasks.yaml": PLAN})
        self.planned = writer(self.folder, self.clock, is_dry_run=True) if is_in_memory else None
        self.steps: list[str] = []
        self.answers: dict[str, str] = {}
        self.earlier = [self.read()]

    def read(self) -> Session:
        return self.planned.read() if self.planned else read_session(self.folder)

    def writer(self) -> SessionWriter:
        return self.planned or writer(self.folder, self.clock, disk=Hasty())

    def files(self) -> dict[str, bytes]:
        if self.planned:
            return {part.name: part.raw for part in self.read().parts.values() if part.raw is not None}
        return {path.name: path.read_bytes() for path in self.folder.iterdir()}

    def go(self) -> None:
        for _ in range(STEPS):
            is_proposed = self.chance.random() < 0.6
            name, change = self.proposed() if is_proposed else self.any_step()
            before = self.files()
            self.clock.sleep(self.chance.choice((0, 1, 90)))
            try:
                change(self.writer())
            except (BrokenContract, WrongUsage) as refused:
                self.steps.append(f"{name}: refused by {getattr(refused, 'findings', 'usage')[0]}")
                assert self.files() == before, self.steps
                assert not is_proposed, self.steps
            else:
                self.steps.append(name)
                self.check()

    def check(self) -> None:
        session = self.read()
        found = [one for _, _, findings in check_documents(session) for one in findings]
        assert not has_errors(found), (found, self.steps)
        new = replace(session, parts={name: Part(name) for name in session.parts})
        assert [*hand_edits(self.chance.choice((new, *self.earlier)), session)] == [], self.steps
        if status_of(session).current_state != "DONE":  # it may be reopened and done again within a second
            self.earlier.append(session)
        status = json.loads(session.parts["status.json"].raw or b"")
        said = {one["decision_id"]: one["answer"] or "" for one in status["user_decisions"]}
        state, history = status["current_state"], [line.answer for line in session.history]
        asked = {name for name in GATES if not said.get(name)}  # a gate that is asked again, which keeps its history
        kept = {name: text for name, text in self.answers.items() if text and name not in asked}
        assert {name: said[name] for name in kept} == kept, self.steps
        design = self.answers.get("UD-APPROVE-DESIGN", "")
        assert not design.startswith("changes-requested") or design in history, self.steps
        self.answers = said
        if self.mode == "full" and state in ("PLAN", "REVIEW_STRATEGY", *WORKING):
            assert said.get("UD-APPROVE-DESIGN", "").startswith("approved"), self.steps
        if self.mode == "full" and state in WORKING:
            assert said.get("UD-REVIEW-STRATEGY") in ("per-batch", "single-final"), self.steps
        if state in ("INTEGRATE", "FIX_BUILD", "RELEASE", "DONE"):
            assert session.tasks
            assert {task.status for task in session.tasks.tasks} == {"completed"}, self.steps

    def any_step(self) -> tuple[str, Change]:
        """Return a change with any arguments, whether they make sense or not."""
        pick = self.chance.choice
        role = pick(("Orchestrator", "Orchestrator", pick(ROLES)))
        task, loop, state = pick((*NAMES, "meta")), pick(LOOPS), pick(STATES)
        question = UserQuestion(pick(("One?", f"{task} {loop}: Two?")), pick(("", *GATES)), pick(("", "security")))
        decision, reason = pick((*GATES, "UD-1", "UD-2")), pick(("later", "user deferred: later"))
        waiver, target = pick(("", "", "", "no time")), pick(STATUSES)
        setting = pick(
            ("last_ci_result=red", "last_ci_result=green", f"retry_counts.{task}.{loop}=0", "known_issues=x")
        )
        steps: dict[str, Change] = {
            f"advance {state}": lambda w: run.advance(w, state, role=role, blocker=pick(("", "x"))),
            f"task {task} {target} {role} {waiver}": lambda w: run.move_task(w, task, target, role=role, waiver=waiver),
            f"fix {task} {loop}": lambda w: run.start_fix(w, task, loop, role=role),
            f"ask {question}": lambda w: run.ask(w, [question]),
            f"answer {decision}": lambda w: run.answer(w, {decision: pick(ANSWERS)}, is_final=pick((True, False))),
            f"close {decision}": lambda w: run.close_question(w, decision, pick(("cancelled", "skipped")), reason),
            "resume": run.resume,
            "reopen": run.reopen,
            f"set {setting}": lambda w: run.set_values(w, [parse_setting(setting)], role=role),
            f"failed {task}": lambda w: run.fail_agent(w, task, role, "no output"),
            f"start {role} {task}": lambda w: run.start_agent(w, task, role),
            **self.taking(task, pick(("Coder", *REVIEWERS, pick(ROLES)))),
        }
        return pick(list(steps.items()))

    def taking(self, task: str, role: str, *, is_good: bool = False) -> dict[str, Change]:
        """Return the step that takes an output."""
        chance = self.chance
        other = {"Security": "NEEDS_DECISION", "Researcher": "NEEDS_INFO"}.get(role, "FAIL")
        output = agent_output(status="OK" if is_good else chance.choice(("OK", "OK", "OK", "FAIL", "BLOCKED", other)))
        output["summary"] = chance.choice(("One.", "Two."))
        for gate, likely in (("meets_definition_of_done", True), ("needs_review", False), ("needs_tests", False)):
            output["gates"][gate] = likely if is_good or chance.random() < 0.9 else not likely
        if not is_good and chance.random() < 0.1:
            output["gates"]["security_concerns"] = ["the port"]
        state = status_of(self.read()).current_state
        if role == "Integrator" and state in ("INTEGRATE", "FIX_BUILD") and chance.random() < 0.3:
            output["artifacts"]["files_changed"] = ["Makefile"]
        model = AgentOutput.model_validate(output)
        name = f"take {role} {task} {output['status']} {output['gates']}"
        return {name: lambda w: apply_output(w, task, role, model)}

    def proposed(self) -> tuple[str, Change]:
        """Return the change that a next move proposes."""
        session = self.read()
        moves = next_moves(session)
        for task in NAMES:
            moves += task_moves(session, task)
        ways = [one for one in moves if one.to not in ("ASK_USER", "BLOCKED", "blocked", "not-started", *LOOPS)]
        move = self.chance.choice(ways if ways and self.chance.random() < 0.8 else moves)
        step = move.step
        task, target = step.task, step.target
        if step.name == "dispatch" and "--take" in step.command:
            return next(iter(self.taking(task, step.role, is_good=True).items()))
        waiting = [one.decision_id for one in status_of(session).pending]
        said = {"UD-APPROVE-DESIGN": "approved", "UD-REVIEW-STRATEGY": self.chance.choice(ANSWERS[2:4])}
        blocker = "x" if target == "BLOCKED" else ""
        changes: dict[str, Change] = {
            "dispatch": lambda w: self.start(w, task, step.role),
            "advance": lambda w: run.advance(w, target, role=run.ROLE, blocker=blocker),
            "task": lambda w: run.move_task(w, task, target, role=run.ROLE),
            "fix": lambda w: run.start_fix(w, task, target, role=run.ROLE),
            "set": lambda w: run.set_values(w, [parse_setting("last_ci_result=green")], role="Integrator"),
            "ask": lambda w: run.ask(w, [UserQuestion(step.question or "Which one?", target)]),
            "answer": lambda w: run.answer(w, {name: said.get(name, "the first") for name in waiting}),
            "reopen": run.reopen,
        }
        return move.command, changes[step.name]

    def start(self, session: SessionWriter, task: str, role: str) -> None:
        """Record the start of an agent, and take its output, as its commands do one after the other."""
        now = self.clock.now()
        session.change(lambda one: run.plan_start(one, task, role, now=now))
        if self.chance.random() < 0.8:
            next(iter(self.taking(task, role, is_good=self.chance.random() < 0.8).values()))(session)


class Robot(Walk):
    """Takes any proposed move in a damaged session; its agents write what their roles write, and succeed."""

    def __init__(self, root: Path, chance: random.Random) -> None:
        self.chance, self.clock, self.planned, self.steps, self.answers = chance, clock(), None, [], {}
        self.mode = chance.choice(("full", "full", "lean"))
        pick = chance.choice
        state = pick((*ORDER[self.mode], *LOOPS, "ASK_USER", "BLOCKED"))
        plan = pick((*[re.sub("not-started", lambda _: pick(STATUSES), PLAN)] * 6, "tasks: []", None))
        said = [
            (pick(("Coder", *REVIEWERS)), pick(("OK", "OK", "FAIL", "DISPATCHED"))) for _ in range(pick((0, 1, 4, 9)))
        ]
        lines = "".join(outputs(one, task=pick((*NAMES[:2], "meta"))) for one in said)
        texts: dict[str, str | None] = {"tasks.yaml": plan, "outputs.jsonl": lines}
        texts |= {name: pick((text, text, text, "# Nothing", None)) for name, text in WRITTEN.items()}
        more = {"blocked_from": pick(ORDER[self.mode][:-1]), "blocker": "x"} if state == "BLOCKED" else {}
        gates = pick((GATES_PASSED, SINGLE, GATES_PASSED[:1], [], [decision("UD-1", "answered"), *SINGLE]))
        more |= {"last_ci_result": pick(("green", "red")), "user_decisions": gates}
        self.folder = make_session(root, state, mode=self.mode, texts=texts, **more)

    def start(self, session: SessionWriter, task: str, role: str) -> None:
        now = self.clock.now()
        assert not check_files(session.read(), role, task), (role, task, self.steps)
        session.change(lambda one: run.plan_start(one, task, role, now=now))
        for name, owner in WRITER_OF.items():
            if owner == role or (role == "SpecAgent" and self.mode == "lean" and name == "tasks.yaml"):
                (self.folder / name).write_text(WRITTEN.get(name, PLAN))
        next(iter(self.taking(task, role, is_good=True).values()))(session)
        if role == "Integrator":
            session.change_status(lambda one: {**status_value(one), "last_ci_result": "green"}, role=role)

    def go(self) -> str:
        """Take proposed moves; return the end: a state, a question, an edit by hand, or the moves without an end."""
        for _ in range(300):
            session = self.read()
            status = status_of(session)
            if status.current_state in ("DONE", "BLOCKED") or status.pending:
                return "question" if status.pending else status.current_state
            self.clock.sleep(60)
            moves = [*next_moves(session), *(move for task in NAMES for move in task_moves(session, task))]
            if any(move.step.name == "show" for move in moves):
                return "by hand"
            name, change = self.proposed()
            self.steps.append(name)
            try:
                change(self.writer())
            except (BrokenContract, WrongUsage) as refused:
                return f"{self.steps}: {getattr(refused, 'findings', refused)}"
        return f"{self.steps}: no end"


WRITTEN = {"spec.md": SPEC, "acceptance.json": json.dumps(acceptance()), "architecture.md": ARCHITECTURE}
WRITTEN |= {"report.md": REPORT}
WRITER_OF = {"tasks.yaml": "Planner"} | dict(zip(WRITTEN, ("SpecAgent", "SpecAgent", "Architect", "Docs"), strict=True))
WORKING = ("IMPLEMENT_LOOP", *LOOPS, "INTEGRATE", "RELEASE", "DONE")


def walk(number: int, *, is_in_memory: bool = True) -> tuple[set[str], dict[str, bytes]]:
    """Go a walk; return the states on it and the documents at its end."""
    with tempfile.TemporaryDirectory() as root:
        walked = Walk(Path(root), random.Random(f"{SEED}-{number}"), is_in_memory=is_in_memory)
        walked.go()
        return {status_of(one).current_state for one in walked.earlier}, walked.files()


@pytest.mark.slow
def test_no_walk_over_the_commands_breaks_a_session_or_passes_a_gate() -> None:
    states = set().union(*(walk(number)[0] for number in range(WALKS)))
    assert len(states) > 3, "the walks lead somewhere"


@pytest.mark.slow
def test_a_robot_that_takes_any_proposed_move_is_never_refused_and_gets_to_an_end_or_a_person() -> None:
    ends = set()
    for number in range(WALKS):
        with tempfile.TemporaryDirectory() as root:
            ends.add(Robot(Path(root), random.Random(f"robot-{SEED}-{number}")).go())
    assert ends - {"DONE", "BLOCKED", "question", "by hand"} == set()


@pytest.mark.slow
def test_a_walk_over_files_ends_with_the_documents_that_were_planned() -> None:
    for number in range(1, 2 + WALKS // 50):
        assert walk(number, is_in_memory=False) == walk(number)
