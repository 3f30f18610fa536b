"""Facts made of GitHub's answers before any decision, and a rival between two requests."""

import json
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
import yaml
from support.loops import LONG_AGO, NOW, keepalive, running, state_of, well

from accord.core.errors import WrongUsage
from accord.github.checks import CONCLUSIONS, Check, CheckState
from accord.github.workflows import WorkflowRun
from accord.kit.templates import shipped_kit
from accord.loops.checks import (
    KIT,
    OWN_JOB,
    check_facts,
    code_checks,
    held_runs,
    inconclusive_text,
    is_own,
    may_be_held,
    runs_to_repeat,
)
from accord.loops.keepalive import appendix
from accord.loops.ledger import begin_run, progress_of, settled_state, state_before
from accord.loops.models import (
    CheckFacts,
    InconclusiveCheck,
    LoopDecision,
    LoopState,
    Notice,
    PendingEffects,
    decision_for,
)
from accord.loops.outputs import read_outputs
from accord.loops.plan import next_state, start_run
from accord.loops.run import LOOPS
from accord.loops.state import with_notice
from accord.loops.texts import Poster
from accord.text.posting import PostingPolicy
from accord.text.redaction import Redactor

decide = LOOPS["keepalive"].decide

WORKFLOWS = Path(__file__).parents[2] / ".github" / "workflows"
NAMES = ("keepalive", "autofix", "verifier", "bot-comments")
LOOPS = [path for name in NAMES if (path := WORKFLOWS / f"reusable-{name}.yml").exists()]


@pytest.mark.parametrize(
    ("check", "expected"),
    [
        (Check("Keepalive / accord decides", "pending", app="github-actions"), True),
        (Check("accord decides", "pending", app="github-actions"), True),
        (Check("accord decides", "failing", app="other"), False),
        (Check("accord decides", "failing"), False),
        (Check("test / according to plan", "failing", app="github-actions"), False),
        (Check("test", "failing", app="github-actions", workflow_run_id=900), True),
        (Check("test", "failing", app="github-actions", workflow_run_id=90), False),
    ],
)
def test_only_jobs_of_the_loops_and_of_this_run_are_left_out(check: Check, expected: bool) -> None:
    assert is_own(check, "900") is expected


@pytest.mark.parametrize("workflow", LOOPS, ids=lambda path: path.stem)
def test_every_job_of_a_loops_workflow_is_known_by_its_name(workflow: Path) -> None:
    jobs = yaml.safe_load(workflow.read_text())["jobs"].values()
    assert [job["name"] for job in jobs if not job["name"].startswith(OWN_JOB)] == []


def test_of_two_checks_with_one_name_the_worse_counts() -> None:
    states = ("passing", "pending", "failing")
    checks = [Check(f"{worse}", state) for worse in states for state in states[: states.index(worse) + 1]]  # type: ignore[arg-type]
    facts = check_facts(checks, "a" * 40, 3)
    assert (facts.passing, facts.pending, facts.failing) == (("passing",), ("pending",), ("failing",))
    assert facts.seconds_since_push == 3


@pytest.mark.parametrize(
    ("conclusion", "state"),
    [
        ("success", "passing"), ("neutral", "passing"), ("failure", "failing"), ("timed_out", "failing"),
        ("skipped", "skipped"), ("cancelled", "inconclusive"), ("action_required", "inconclusive"),
        ("stale", "inconclusive"), ("startup_failure", "inconclusive"), ("of the future", "inconclusive"),
    ],
)  # fmt: skip
def test_each_conclusion_has_a_meaning(conclusion: str, state: CheckState) -> None:
    found = CONCLUSIONS.get(conclusion, "inconclusive")
    assert found == state
    facts = check_facts([Check("test", found, conclusion=conclusion, workflow_run_id=7)], "4f0c", 600)
    decision = decide(keepalive(checks={**facts.model_dump(), "head_sha": keepalive().pull.head_sha}))
    reasons = {"passing": "tasks-open", "skipped": "tasks-open", "failing": "checks-failing"}
    assert decision.reason == reasons.get(state, "checks-inconclusive")
    assert (conclusion in decision.message) == (state == "inconclusive")


def test_the_table_has_every_conclusion_of_githubs_description() -> None:
    page = json.loads((Path(__file__).parents[1] / "data/github-openapi.json").read_text())
    listed = page["components"]["schemas"]["check-run"]["properties"]["conclusion"]["enum"]
    assert {name for name in listed if name} <= CONCLUSIONS.keys()


@pytest.mark.parametrize(
    ("lost", "runs"),
    [
        ([("cancelled", 7, False)], [7]),
        ([("stale", 7, False), ("cancelled", 8, False), ("cancelled", 7, False)], [7, 8]),
        ([("cancelled", 7, True)], []),
        ([("cancelled", 0, False)], []),
        ([("action_required", 7, False)], []),
        ([("startup_failure", 7, False)], []),
    ],
)
def test_a_run_that_lost_its_result_is_repeated_unless_it_was_or_a_person_is_needed(
    lost: list[tuple[str, int, bool]], runs: list[int]
) -> None:
    found = [InconclusiveCheck(name="t", conclusion=what, workflow_run=run, is_retried=is_) for what, run, is_ in lost]
    assert runs_to_repeat(CheckFacts(head_sha="h", inconclusive=tuple(found))) == runs


def test_a_failing_check_is_fixed_though_another_was_cancelled_with_it() -> None:
    checks = [Check("a", "failing"), Check("b", "inconclusive", conclusion="cancelled"), Check("c", "passing")]
    facts = check_facts(checks, keepalive().pull.head_sha, 600)
    assert [check.name for check in facts.inconclusive] == ["b"]
    assert decide(keepalive(checks=facts.model_dump())).reason == "checks-failing"


@pytest.mark.parametrize(
    ("conclusion", "run", "words"),
    [
        ("cancelled", 7, "`gh run rerun 7`"), ("startup_failure", 7, "workflow file"), ("stale", 0, "on its page"),
        ("action_required", 7, "has to act on its page"), ("stale", 7, "`gh run rerun 7`"),
    ],
)  # fmt: skip
def test_the_message_says_what_to_do_about_a_check_without_a_result(conclusion: str, run: int, words: str) -> None:
    lost = [InconclusiveCheck(name="test", conclusion=conclusion, workflow_run=run)]
    text = inconclusive_text(lost)
    for page, name in (
        ("https://github.com/o/r/pull/1", "o/r"),
        ("https://ghe.example.org/o/r/pull/1", "ghe.example.org/o/r"),
    ):
        again = words.replace("rerun 7", f"rerun 7 --repo {name}")
        assert again in inconclusive_text(lost, page)
    assert f"test ({conclusion})" in text
    assert words in text


def job(name: str, state: CheckState, run: int, began: int = 0) -> Check:
    return Check(name, state, app="github-actions", workflow_run_id=run, started_at=NOW + timedelta(seconds=began))


def workflow_run(number: int, file: str, event: str = "pull_request", conclusion: str = "success") -> WorkflowRun:
    path = f".github/workflows/{file}"
    return WorkflowRun(number, "CI", path, event, "completed", conclusion, "4f0c", "feature", (7,), NOW)


RUNS = [
    workflow_run(1, "ci.yml"), workflow_run(2, "ci.yml"), workflow_run(3, "ci.yml", "push"),
    workflow_run(4, "docs.yml"), workflow_run(5, "accord-start.yml"), workflow_run(6, "accord-board.yml@main"),
    workflow_run(7, "accord-of-ours.yml"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("checks", "left"),
    [
        ([job("test", "failing", 1), job("test", "passing", 2, 9)], [2]),
        ([job("test", "passing", 2, 9), job("test", "inconclusive", 1)], [2]),
        ([job("test", "passing", 1), job("test", "inconclusive", 2, 9)], [2]),
        ([job("test", "failing", 1), job("test", "passing", 3, 9)], [1, 3]),
        ([job("test", "failing", 1), job("test", "passing", 4, 9)], [1, 4]),
        ([job("test", "failing", 1), job("test", "passing", 1, 9)], [1, 1]),
        ([job("test", "inconclusive", 1), job("test", "passing", 1, 9)], [1]),
        ([job("test", "failing", 8), job("test", "passing", 9, 9)], [8, 9]),
        ([job("test", "failing", 1), job("lint", "passing", 2, 9)], [1, 2]),
        ([job("Start", "passing", 5), job("Start", "passing", 1)], [1]),
        ([job("Anything", "failing", 5), job("Board", "pending", 6), job("x", "passing", 7)], [7]),
        ([Check("test", "passing", app="other"), Check("test", "inconclusive", app="other")], [None, None]),
    ],
)
def test_checks_of_the_kit_and_replaced_ones_do_not_count(checks: list[Check], left: list[int | None]) -> None:
    assert [check.workflow_run_id for check in code_checks(checks, RUNS)] == left


def test_a_workflow_that_github_could_not_start_is_a_check_without_a_result() -> None:
    broken = workflow_run(8, "ci.yml", conclusion="startup_failure")
    (found,) = code_checks([], [workflow_run(1, "ci.yml"), broken])
    assert (found.name, found.state, found.workflow_run_id) == ("CI", "inconclusive", 8)
    assert code_checks([], [workflow_run(9, "ci.yml"), broken]) == ()
    assert code_checks([], [workflow_run(8, "accord-start.yml", conclusion="startup_failure")]) == ()


def test_ci_that_is_held_is_not_taken_for_run_because_the_kit_ran() -> None:
    assert not may_be_held([job("Start", "passing", 5)])
    assert may_be_held(code_checks([job("Start", "passing", 5)], RUNS))
    held = [
        workflow_run(number, file, conclusion="action_required")
        for number, file in ((1, "ci.yml"), (5, "accord-start.yml"))
    ]
    assert [run.id for run in held_runs(held)] == [1]
    assert held_runs(held, ".github/workflows/ci.yml") == ()


def test_every_workflow_of_the_kit_is_known_by_its_file() -> None:
    assert {f".github/workflows/accord-{name}.yml" for name in shipped_kit().workflows} == KIT


def test_a_rival_that_began_meanwhile_is_not_lost_because_the_run_before_it_was() -> None:
    lost = begin_run(LoopState(), running("1"))
    rival = begin_run(state_of(well("1")), running("2"))
    assert lost is not None
    assert rival is not None
    facts = keepalive(state=lost, running_has_ended=True, now=NOW + timedelta(minutes=5))
    assert start_run(decide, facts, rival, running("3")) is None


def test_a_run_that_is_begun_again_is_judged_as_at_first() -> None:
    before = state_of(well("1"))
    after = begin_run(before, running("2"))
    assert after is not None
    assert state_before(after, "2") == before
    assert state_before(after, "3") is after


LATE = LoopState(running=running("1", started_at=LONG_AGO))


@pytest.mark.parametrize(
    ("state", "progress"),
    [
        (LoopState(), "unknown"),
        (state_of(well("2")), "unknown"),
        (LATE, "running"),
        (state_of(well("1"), pending=PendingEffects(run_id="1")), "ended"),
        (state_of(well("1"), pending=PendingEffects(run_id="2")), "settled"),
        (settled_state(keepalive(state=LATE)), "unknown"),
    ],
)
def test_a_state_tells_how_far_a_run_got_and_a_lost_one_is_unknown(state: LoopState, progress: str) -> None:
    assert progress_of(state, "1") == progress


@pytest.mark.parametrize("text", ["", " ", "{}", "null", '{"exit-code": ""}', '{"exit-code": 0}', '{"other": "0"}'])
def test_outputs_without_an_exit_code_are_those_of_a_run_that_was_lost(text: str) -> None:
    outputs = read_outputs(text)
    assert (outputs.exit_code, outputs.error_category, outputs.error_recovery) == ("1", "infrastructure", "retry")


@pytest.mark.parametrize("text", ["[]", "1", '"x"', "{", "[" * 100_000])
def test_outputs_that_are_not_an_object_are_refused(text: str) -> None:
    with pytest.raises(WrongUsage, match="not a JSON object"):
        read_outputs(text)


def test_unknown_outputs_are_ignored() -> None:
    assert read_outputs('{"exit-code": "0", "surprise": "x", "cost-usd": 3}').as_outputs()["cost-usd"] == ""


@pytest.mark.parametrize("tasks", [1, 500])
def test_the_agent_sees_the_open_tasks_within_bounds(tasks: int) -> None:
    body = "Why\n\n" + "".join(f"- [ ] Task {number} ``` {'word ' * 30}\n" for number in range(tasks)) + "- [x] Done\n"
    told = appendix(body, lambda text: text.replace("Why", "***"))
    assert "- [ ] Task 0" in told
    assert "- [x] Done" not in told.partition("### Description")[0]
    assert "Why" not in told
    assert len(told) < 30_000


def noted(reason: str, action: Any = "wait") -> LoopState:
    """A state whose comment shows this decision."""
    return LoopState(notice=Notice(action=action, reason=reason, message="It waits."))


BUSY = noted("checks-held").model_copy(update={"running": running("1")})


@pytest.mark.parametrize(
    ("state", "decision", "is_written"),
    [
        (noted("tasks-open", "run"), decision_for("paused", "Stop."), True),
        (noted("paused", "stop"), decision_for("needs-human", "Stop."), False),
        (BUSY, decision_for("not-enabled", "Stop."), False),
        (LoopState(), decision_for("same-error", "Ask."), True),
        (LoopState(), decision_for("checks-pending", "Wait."), False),
        (LoopState(), decision_for("checks-held", "Wait."), True),
        (noted("checks-held"), decision_for("checks-held", "It waits."), False),
        (noted("checks-held"), decision_for("checks-pending", "Wait."), True),
        (LoopState(running=running("1", started_at=LONG_AGO)), decision_for("checks-pending", "Wait."), True),
    ],
)  # fmt: skip
def test_a_decision_not_to_run_is_written_where_people_would_read_something_else(
    state: LoopState, decision: LoopDecision, is_written: bool
) -> None:
    def with_note(state: LoopState, decision: LoopDecision) -> LoopState:
        return with_notice(state, decision, Poster(Redactor(), PostingPolicy()))

    found = next_state(keepalive(), state, decision, with_note)
    assert (found is not None) == is_written
    if found is not None:
        assert (found.running, found.notice and found.notice.reason) == (None, decision.reason)
