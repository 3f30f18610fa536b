"""Where a mission stands: one answer for every state of a run, and nothing changes by asking."""

import hashlib
import json
import logging
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest
from support.missions import NOW, Project

from accord.core.errors import BrokenContract
from accord.missions.next_moves import mission_moves, next_moves
from accord.missions.query import answer_query, mission_overview, mission_status, progress
from accord.missions.rules import mission_findings

CONTRACT = json.loads(
    (Path(__file__).parents[1] / "data/mission-contracts/next-query-response.schema.json").read_text(encoding="utf-8")
)
STEPS = ["discovery", "specify", "plan", "tasks_outline", "tasks_packages", "tasks_finalize"]
STEPS += ["implement", "review", "accept"]
PENDING = {
    "input:zeta": {"question": "Z?"},
    "input:approval": {"question": "Go?", "options": ["yes", "no"], "step_id": "plan"},
}


def ask(project: Project, agent: str | None = None) -> dict[str, Any]:
    answer = answer_query(project.load(), agent, NOW).model_dump()
    assert jsonschema_rs.Draft202012Validator(CONTRACT, validate_formats=True).is_valid(answer)
    assert set(answer) == set(CONTRACT["properties"])
    return answer


@pytest.mark.parametrize(
    ("mission_type", "first"), [("research", "scoping"), ("documentation", "discover"), ("plan", "specify")]
)
def test_the_types_of_strangers_are_built_in(project: Project, mission_type: str, first: str) -> None:
    project.begin(mission_type=mission_type)
    answer = ask(project)
    assert (answer["mission"], answer["preview_step"], answer["guard_failures"]) == (mission_type, first, [])


LATE = {"completed_steps": ["discovery", "specify"], "pending_decisions": PENDING}
GO = {"decision_id": "input:approval", "input_key": "approval", "question": "Go?", "options": ["yes", "no"]}
FRESH = {"mission_state": "not_started", "preview_step": "discovery", "step_id": None}
RUNS: dict[str, tuple[dict[str, Any] | None, dict[str, Any]]] = {
    "no run": (None, {**FRESH, "run_id": None, "progress": None, "timestamp": "2026-05-04T12:00:00Z"}),
    "nothing issued": ({"completed_steps": [], "issued_step_id": None}, {**FRESH, "run_id": "run-1"}),
    "between steps": (
        {"completed_steps": ["discovery"], "issued_step_id": "discovery"},
        {"mission_state": "specify", "step_id": None, "preview_step": "specify"},
    ),
    "ended": ({"completed_steps": STEPS}, {"mission_state": "done", "step_id": None, "preview_step": None}),
    "lowest id first": ({**LATE, "issued_step_id": "plan"}, {**GO, "mission_state": "plan"}),
    "step of the question": (LATE, {**GO, "mission_state": "plan"}),
    "question before the first step": (
        {"pending_decisions": {"D1": "Which one?"}},
        {"mission_state": "discovery", "question": "Which one?"},
    ),
    "options of other shapes": (
        {"pending_decisions": {"D1": {"options": [{"label": "Go"}, {"id": "ü"}, {"label": 3}, True, 2, None]}}},
        {"options": ["Go", '{"id": "ü"}', '{"label": 3}', "true", "2", "null"]},
    ),
    "options as a number": ({"pending_decisions": {"D1": {"options": 5}}}, {"decision_id": "D1", "options": None}),
    "block before the first step": ({"blocked_reason": "No key."}, {"mission_state": "discovery", "reason": "No key."}),
    "block before a question": (
        {"issued_step_id": "plan", "blocked_reason": "No key.", "pending_decisions": PENDING},
        {"mission_state": "plan", "reason": "No key.", "decision_id": None},
    ),
} | {
    step: (
        {"completed_steps": STEPS[:i], "issued_step_id": step},
        {"mission_state": step, "step_id": step, "reason": None, "preview_step": None},
    )
    for i, step in enumerate(STEPS)
}


@pytest.mark.parametrize(("run", "wanted"), RUNS.values(), ids=RUNS)
def test_the_answer_follows_from_the_state_of_the_run(project: Project, run: Any, wanted: Any) -> None:
    if run is not None:
        project.run(**run)
    answer = ask(project, "claude")
    assert {name: answer[name] for name in wanted} == wanted
    assert (answer["agent"], answer["mission"], answer["mission_slug"]) == ("claude", "software-dev", "078-ships")


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
    for name in ("audit", "../../x", "x" * 5000, "a\x00b", "ünï"):
        project.begin(mission_type=name)
        with pytest.raises(BrokenContract, match="no issuable first step"):
            ask(project)
    project.begin(mission_type="research")
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
def test_a_run_that_cannot_be_read_is_an_error_and_not_fresh(project: Project, file: str, content: str | None) -> None:
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


WITHOUT_TEXT = (
    "",
    " \n",
    "\ufeff# Plan\n\n## Steps\n",
    "# Plan\n\nTODO\n\n## Steps\n\n- [ ] TBD\n- ...\n",
    "Plan\n====\n<!-- steps -->\n<summary>",
    "# Plan\n\n[NEEDS CLARIFICATION]\n\n- [ ] [NEEDS CLARIFICATION: which parser?]\n",
    "# Plan\n\n| Part | Owner |\n|---|---|\n| TODO | <!-- who --> |\n| [NAME] | - |\n",
)


@pytest.mark.parametrize("text", WITHOUT_TEXT)
def test_a_document_without_text_does_not_complete_its_step(project: Project, text: str) -> None:
    project.run(completed_steps=STEPS[: STEPS.index("plan")], issued_step_id="plan")
    project.write("plan.md", text)
    assert ask(project)["guard_failures"] == ["plan.md has no text"]
    for more in ("- Read the file once.", "- [docs](docs/a.md)", "- [ ] Read the file", "| Part |\n|---|\n| Parser |"):
        project.write("plan.md", f"{text}\n\n{more}\n")
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
    once = dict.fromkeys([f"{name}_wps" for name in ("done", "approved", "in_progress", "planned", "for_review")], 1)
    assert progress(project.load()) == {"total_wps": 8, **once, "weighted_percentage": 43.1}
    project.write("status.events.jsonl", '{"wp_id": "WP02", "to_lane": "gone"}\n')
    project.write("tasks/WP01-part.md", "")
    unreadable = progress(project.load())
    assert (unreadable["total_wps"], unreadable["planned_wps"], unreadable["unknown_wps"]) == (8, 6, 2), (
        "they count only in the total"
    )


NAMING = {"event_id": "E", "wp_id": "WP02", "from_lane": "planned", "to_lane": "done", "at": "2026-05-04T12:00:00Z"}


@pytest.mark.parametrize(
    "line",
    [
        json.dumps({**NAMING, "to_lane": "testing"}),
        json.dumps({**NAMING, "at": "2026-05-04T12:00:00"}),
        json.dumps(NAMING)[:-9],
    ],
)
@pytest.mark.parametrize("source", [None, "in_progress"])
def test_work_that_a_line_of_the_log_leaves_in_doubt_is_unknown_to_each_reader(
    project: Project, line: str, source: str | None
) -> None:
    project.work_package("WP01", "planning_artifact")
    project.work_package("WP02", "planning_artifact")
    if source:
        project.event("WP02", None, source)
    with (project.folder / "status.events.jsonl").open("a", encoding="utf-8") as log:
        log.write(f"{line}\n")
    mission = project.load()
    with pytest.raises(BrokenContract, match=r"status\.events\.jsonl, line [12]") as refused:
        project.move("WP02", "in_progress")
    why = str(refused.value)
    asked, overview, shown = ask(project)["progress"] or {}, mission_overview(mission), mission_status(mission, NOW)
    for counts in (asked, overview["progress"], shown["progress"]):
        assert (counts["planned_wps"], counts["unknown_wps"]) == (1, 1)
    for ahead in (asked, overview):
        assert (ahead["ready"], ahead["problems"]) == (["WP01"], {"WP02": why})
    (entry,) = [one for one in shown["work_packages"] if one["wp_id"] == "WP02"]
    assert (entry["status"], entry["ready"], entry["blocked_reason"], entry["error"]) == (None, False, why, why)


@pytest.mark.parametrize("status", ["planned", "blocked"])
def test_a_canceled_dependency_is_a_choice_of_a_person_everywhere(project: Project, status: str) -> None:
    for wp_id, names in (("WP01", []), ("WP02", ["WP01"]), ("WP03", ["WP02"])):
        project.work_package(wp_id, "planning_artifact", dependencies=names)
    project.event("WP01", "planned", "canceled")
    project.event("WP02", "planned", status)
    mission = project.load()
    choice = "It depends on WP01, which is canceled. A person decides: remove it from `dependencies`"
    with pytest.raises(BrokenContract, match=choice) as refused:
        project.move("WP02", "in_progress")
    assert "Finish that first" not in str(refused.value)
    assert choice in mission_overview(mission)["problems"]["WP02"]
    assert choice in (ask(project)["progress"] or {})["problems"]["WP02"]
    found = [one for items in mission_findings(mission, NOW).values() for one in items]
    assert [(one.code, one.path) for one in found] == [("dependency-canceled", "/dependencies/0")]
    (move,) = [move for move in next_moves(mission, "WP02", "accord mission", NOW) if move.to == "in_progress"]
    assert (move.missing, move.command) == (
        ("another dependency than WP01",),
        "accord mission check 078-ships",
    )
    assert [move.to for move in mission_moves(mission, "accord mission", NOW)] == []
    project.work_package("WP02", "planning_artifact", dependencies=[])
    assert project.move("WP02", "in_progress").events


def test_a_status_asks_git_each_question_once_for_all_work_packages(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG, "accord.git")
    counts = []
    for count in (3, 9):
        names = [f"WP{number:02}" for number in range(1, count + 1)]
        project = Project(tmp_path / str(count)).begin(target_branch="main").repository()
        project.lanes(lane_a=names)
        for before, name in zip(["", *names], names, strict=False):
            project.work_package(name, "code_change", dependencies=[before] if before else [])
            project.event(name, "planned", "in_progress")
        project.git("branch", f"kitty/mission-{project.slug}-lane-a")
        caplog.clear()
        mission = project.load()
        mission_status(mission, NOW)
        moves = mission_moves(mission, "accord mission", NOW)
        assert all(next_moves(mission, name, "accord mission", NOW) for name in names)
        assert len(moves) == count
        counts.append(sum(record.name == "accord.git" for record in caplog.records))
    assert counts[0] == counts[1] > 0


def test_canceled_work_keeps_no_step_open_and_a_dependency_in_doubt_is_named(project: Project) -> None:
    project.work_package("WP01", "planning_artifact")
    project.work_package("WP02", "planning_artifact", dependencies=["WP01"])
    project.event("WP01", "planned", "canceled")
    project.event("WP02", "planned", "in_progress")
    project.run(issued_step_id="implement")
    assert ask(project)["guard_failures"] == ["WP02 is in_progress, not yet for_review"]
    project.write("status.events.jsonl", '{"wp_id": "WP01", "to_lane": "gone"}\n')
    assert (
        "WP01, which has a line in the log that cannot be read" in mission_overview(project.load())["problems"]["WP02"]
    )


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


def test_an_error_speaks_of_the_file_and_not_of_our_classes(project: Project) -> None:
    project.run(completed_steps=5)
    with pytest.raises(BrokenContract, match=r"run-1/state\.json cannot be read at /completed_steps: "):
        ask(project)
    index = project.root / ".kittify" / "runtime" / "feature-runs.json"
    index.write_text(json.dumps({project.slug: 7}), encoding="utf-8")
    with pytest.raises(BrokenContract, match="The value must be an object; found 7"):
        ask(project)
    project.write("status.events.jsonl", json.dumps({"event_id": "E", "wp_id": "WP01", "to_lane": "done", "at": 7}))
    with pytest.raises(BrokenContract, match="/at: The value is not a time between 1970 and 9000; found 7"):
        project.load().log.check_readable("WP01")
