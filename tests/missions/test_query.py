"""Where a mission stands: one answer for every state of a run, and nothing changes by asking."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jsonschema_rs
import pytest
from support.missions import NOW

from accord.core.errors import BrokenContract
from accord.missions.query import answer_query, progress

if TYPE_CHECKING:
    from support.missions import Project

CONTRACT = json.loads(
    (Path(__file__).parents[1] / "data/mission-contracts/next-query-response.schema.json").read_text(encoding="utf-8")
)
STEPS = [
    "discovery",
    "specify",
    "plan",
    "tasks_outline",
    "tasks_packages",
    "tasks_finalize",
    "implement",
    "review",
    "accept",
]
PENDING = {
    "input:zeta": {"question": "Z?"},
    "input:approval": {"question": "Go?", "options": ["yes", "no"], "step_id": "plan"},
}


def ask(project: Project, agent: str | None = None) -> dict[str, Any]:
    answer = answer_query(project.load(), agent, NOW).model_dump()
    assert jsonschema_rs.Draft202012Validator(CONTRACT, validate_formats=True).is_valid(answer)
    assert set(answer) == set(CONTRACT["properties"])
    return answer


def test_a_mission_without_a_run_is_not_started_and_previews_its_first_step(project: Project) -> None:
    answer = ask(project, "claude")
    assert (answer["mission_state"], answer["preview_step"], answer["run_id"]) == ("not_started", "discovery", None)
    assert (answer["agent"], answer["mission"], answer["mission_slug"]) == ("claude", "software-dev", "078-ships")
    assert (answer["timestamp"], answer["progress"], answer["step_id"]) == ("2026-05-04T12:00:00Z", None, None)


def test_a_run_that_issued_nothing_is_as_fresh_and_has_its_id(project: Project) -> None:
    project.run(completed_steps=[], issued_step_id=None)
    answer = ask(project)
    assert (answer["mission_state"], answer["preview_step"], answer["run_id"]) == ("not_started", "discovery", "run-1")


@pytest.mark.parametrize("position", range(len(STEPS)))
def test_a_started_run_is_in_the_step_that_was_issued_and_gives_no_reason(project: Project, position: int) -> None:
    project.run(completed_steps=STEPS[:position], issued_step_id=STEPS[position])
    answer = ask(project)
    assert (answer["mission_state"], answer["step_id"], answer["reason"]) == (STEPS[position], STEPS[position], None)
    assert answer["preview_step"] is None


def test_between_two_steps_the_next_one_is_named(project: Project) -> None:
    project.run(completed_steps=["discovery"], issued_step_id="discovery")
    answer = ask(project)
    assert (answer["mission_state"], answer["step_id"], answer["preview_step"]) == ("specify", None, "specify")


def test_a_run_that_ended_is_done(project: Project) -> None:
    project.run(completed_steps=STEPS)
    answer = ask(project)
    assert (answer["mission_state"], answer["step_id"], answer["preview_step"]) == ("done", None, None)


@pytest.mark.parametrize("issued", ["plan", None])
def test_a_pending_decision_is_asked_lowest_id_first(project: Project, issued: str | None) -> None:
    project.run(completed_steps=["discovery", "specify"], issued_step_id=issued, pending_decisions=PENDING)
    answer = ask(project)
    assert (answer["decision_id"], answer["input_key"]) == ("input:approval", "approval")
    assert (answer["question"], answer["options"], answer["mission_state"]) == ("Go?", ["yes", "no"], "plan")


def test_a_run_with_a_question_or_a_block_is_not_fresh(project: Project) -> None:
    project.run(pending_decisions={"D1": "Which one?"})
    assert (ask(project)["mission_state"], ask(project)["question"]) == ("discovery", "Which one?")
    project.run(blocked_reason="No key.")
    assert (ask(project)["mission_state"], ask(project)["reason"]) == ("discovery", "No key.")


def test_a_block_comes_before_a_question(project: Project) -> None:
    project.run(issued_step_id="plan", blocked_reason="No key.", pending_decisions=PENDING)
    answer = ask(project)
    assert (answer["mission_state"], answer["reason"], answer["decision_id"]) == ("plan", "No key.", None)


def template(project: Project, text: str, name: str = "research") -> None:
    path = project.root / ".kittify" / "missions" / name / "mission-runtime.yaml"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


def test_a_mission_type_of_the_project_has_its_own_steps_and_asks_for_its_inputs(project: Project) -> None:
    project.begin(mission_type="research")
    template(project, "steps: [{id: ask, requires_inputs: [topic]}, {id: write, depends_on: [ask]}]")
    answer = ask(project)
    assert (answer["mission"], answer["mission_state"], answer["preview_step"]) == ("research", "not_started", "ask")
    assert (answer["decision_id"], answer["input_key"]) == ("input:topic", "topic")
    assert answer["origin"] == {"template": ".kittify/missions/research/mission-runtime.yaml"}


@pytest.mark.parametrize(
    "steps", ["[]", "[{id: a, depends_on: [a]}]", "[{id: a, depends_on: [b]}, {id: b, depends_on: [a]}]"]
)
def test_a_mission_that_cannot_begin_is_an_error_and_no_made_up_step(project: Project, steps: str) -> None:
    project.begin(mission_type="research")
    with pytest.raises(BrokenContract, match="no issuable first step"):
        ask(project)
    template(project, f"steps: {steps}")
    with pytest.raises(BrokenContract, match="no issuable first step"):
        ask(project)


@pytest.mark.parametrize(
    ("file", "content"),
    [
        ("runs/run-1/state.json", "{"),
        ("runs/run-1/state.json", '{"completed_steps": 5}'),
        ("runs/run-1/state.json", None),
        ("feature-runs.json", "[]"),
        ("feature-runs.json", '{"078-ships": {"run_id": "../../x"}}'),
        ("feature-runs.json", '{"078-ships": {"run_id": "other", "run_dir": "/etc"}}'),
    ],
)
def test_a_run_that_cannot_be_read_is_an_error_and_not_a_fresh_one(
    project: Project, file: str, content: str | None
) -> None:
    project.run(issued_step_id="plan")
    path = project.root / ".kittify" / "runtime" / file
    path.unlink() if content is None else path.write_text(content, encoding="utf-8")
    with pytest.raises(BrokenContract) as broken:
        ask(project)
    assert [finding.code for finding in broken.value.findings] == ["run-invalid"]


def test_an_answer_that_the_schema_refuses_is_an_error_and_never_given(project: Project) -> None:
    project.run(completed_steps=STEPS, issued_step_id="not_started")
    with pytest.raises(BrokenContract):
        ask(project)


@pytest.mark.parametrize("name", ["../../x", "x" * 5000, "a\x00b", "ünï"])
def test_a_strange_mission_type_is_an_unknown_one(project: Project, name: str) -> None:
    project.begin(mission_type=name)
    with pytest.raises(BrokenContract, match="no issuable first step"):
        ask(project)


def test_a_meta_file_that_cannot_be_read_is_an_error(project: Project) -> None:
    project.write("meta.json", "{")
    with pytest.raises(BrokenContract, match=r"meta\.json"):
        ask(project)


GUARDS = {
    "specify": ["spec.md is missing"],
    "plan": ["plan.md is missing"],
    "tasks_outline": ["tasks.md is missing"],
    "tasks_packages": ["tasks/ has no work package"],
    "accept": [],
}


@pytest.mark.parametrize("step", GUARDS)
def test_a_step_reports_its_missing_files(project: Project, step: str) -> None:
    project.run(completed_steps=STEPS[: STEPS.index(step)], issued_step_id=step)
    assert ask(project)["guard_failures"] == GUARDS[step]
    for name in ("spec.md", "plan.md", "tasks.md"):
        project.write(name, "text")
    project.work_package("WP01", "planning_artifact")
    assert ask(project)["guard_failures"] == []


def test_a_step_reports_each_incomplete_work_package(project: Project) -> None:
    project.work_package("WP01", "planning_artifact")
    project.write("tasks/WP02-x.md", "---\nwork_package_id: WP02\nexecution_mode: planning_artifact\n---\n")
    project.event("WP01", "in_progress", "for_review")
    project.run(issued_step_id="tasks_finalize")
    assert ask(project)["guard_failures"] == ["WP02 does not declare its dependencies"]
    project.run(issued_step_id="implement")
    assert ask(project)["guard_failures"] == ["WP02 is planned, not yet for_review"]
    project.run(issued_step_id="review")
    assert len(ask(project)["guard_failures"]) == 2


def test_progress_weighs_every_status_as_the_rules_say(project: Project) -> None:
    statuses = ["planned", "claimed", "in_progress", "for_review", "in_review", "approved", "done", "blocked"]
    for number, status in enumerate(statuses, start=1):
        project.work_package(f"WP{number:02}", "planning_artifact")
        project.event(f"WP{number:02}", None, status)
    assert progress(project.load()) == {
        "total_wps": 8,
        "done_wps": 1,
        "approved_wps": 1,
        "in_progress_wps": 1,
        "planned_wps": 1,
        "for_review_wps": 1,
        "weighted_percentage": 43.1,
    }


def tree(root: Path) -> dict[str, tuple[str, int]]:
    return {
        str(path): (hashlib.sha256(path.read_bytes() if path.is_file() else b"").hexdigest(), path.stat().st_mtime_ns)
        for path in root.rglob("*")
    }


@pytest.mark.parametrize("has_run", [False, True])
def test_asking_creates_and_changes_no_file(project: Project, has_run: bool) -> None:
    project.work_package("WP01", owned_files=["kitty-specs/a"])
    project.repository()
    if has_run:
        project.run(issued_step_id="plan", pending_decisions=PENDING)
    before = tree(project.root)
    first = ask(project)
    assert ask(project) == first
    assert tree(project.root) == before


def test_an_unreadable_status_counts_only_in_the_total(project: Project) -> None:
    project.work_package("WP01", "planning_artifact")
    project.work_package("WP02", "planning_artifact")
    project.write("status.events.jsonl", '{"wp_id": "WP01"}\n')
    told = progress(project.load())
    assert told is not None
    assert (told["total_wps"], told["planned_wps"]) == (2, 1)


def test_a_run_that_cannot_be_read_is_named_by_its_file(project: Project) -> None:
    project.run(completed_steps=5)
    with pytest.raises(BrokenContract, match=r"run-1/state\.json cannot be read as a run at /completed_steps: "):
        ask(project)


def test_an_error_speaks_of_the_file_and_not_of_our_classes(project: Project) -> None:
    project.run()
    index = project.root / ".kittify" / "runtime" / "feature-runs.json"
    index.write_text(json.dumps({project.slug: 7}), encoding="utf-8")
    with pytest.raises(BrokenContract, match="Input should be an object; found 7"):
        ask(project)
    project.write("status.events.jsonl", json.dumps({"event_id": "E", "wp_id": "WP01", "to_lane": "done", "at": 7}))
    with pytest.raises(BrokenContract, match="/at: The value is not a text; found 7"):
        project.status("WP01")
