"""Facts made of GitHub's answers before any decision, and a rival between two requests."""

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
import yaml
from support.loops import LONG_AGO, NOW, keepalive, running, state_of, well

from accord.core.errors import WrongUsage
from accord.github.checks import Check
from accord.loops.checks import OWN_JOB, check_facts, is_own
from accord.loops.keepalive import appendix
from accord.loops.ledger import begin_run, state_before
from accord.loops.models import LoopDecision, LoopState, Notice, decision_for
from accord.loops.outputs import read_outputs
from accord.loops.plan import next_state, start_run
from accord.loops.run import LOOPS
from accord.loops.state import with_notice
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
        return with_notice(state, decision, secrets=Redactor(), policy=PostingPolicy())

    found = next_state(keepalive(), state, decision, with_note)
    assert (found is not None) == is_written
    if found is not None:
        assert (found.running, found.notice and found.notice.reason) == (None, decision.reason)
