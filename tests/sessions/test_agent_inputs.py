"""Inputs of agents: whom the gates stop, what each role reads, and what its prompt lets it write."""

import json
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import get_args

import pytest
from support.sessions import GATES, TASKS, decision, make_session, writer

from accord.core.errors import BrokenContract
from accord.core.findings import Finding, has_errors
from accord.core.kinds import KINDS
from accord.sessions.dispatch import CHECKLISTS, FORMS, RULES, agent_input, output_schema, prompt_of
from accord.sessions.folder import read_session
from accord.sessions.models import ROLES, ProjectType
from accord.sessions.policy import OWNERS, WRITERS, WriteContext, check_path
from accord.sessions.run import answer

DESIGN = "UD-APPROVE-DESIGN"
READY = TASKS.replace("status: not-started  # by the Coder", "status: implemented")


@pytest.fixture(scope="module")
def committed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A git repository with a session in its first commit, and a change of code after it. For reading."""
    root = tmp_path_factory.mktemp("repository")
    folder = make_session(root, "IMPLEMENT_LOOP", user_decisions=GATES)
    (folder / "design-specs").mkdir()
    (folder / "design-specs/header.md").write_text("# Header\n")

    def git(*words: str) -> None:
        options = ["-c", "user.name=x", "-c", "user.email=x@example.org", "-c", "init.defaultBranch=main"]
        subprocess.run(["git", *options, *words], cwd=root, check=True, capture_output=True)

    git("init")
    git("add", ".")
    git("commit", "-m", "Begin")
    (root / "csv.py").write_text("HEADER = 1\n")
    return folder


@pytest.mark.parametrize("task", ["T-001", "meta"])
@pytest.mark.parametrize("role", ROLES)
def test_every_agent_gets_a_valid_input(committed: Path, role: str, task: str) -> None:
    document = agent_input(read_session(committed), task, role)
    assert not has_errors(KINDS["agent-input"].check(KINDS["agent-input"].read(json.dumps(document).encode()), role))
    assert (document["agent"], document["task"]["id"], document["repo_state"]["branch"]) == (role, task, "main")
    files = document["task"]["context_files"]
    assert all((committed.parents[1] / name).is_file() for name in files)
    changed = [{"path": "csv.py", "change_type": "added"}]
    assert document["task"]["session_changed_files"] == (changed if role == "Reviewer" else [])
    readers = ("Designer", "Planner", "Coder", "Reviewer")
    assert ("header.md" in {Path(name).name for name in files}) == (role in readers)
    extra = {"Researcher": ["NEEDS_INFO"], "Security": ["NEEDS_DECISION"]}.get(role, [])
    assert output_schema(role)["properties"]["status"]["enum"] == ["OK", "BLOCKED", "FAIL", *extra]


def test_an_agent_reads_the_decisions_and_the_requested_changes(tmp_path: Path) -> None:
    folder = make_session(tmp_path, "APPROVE_DESIGN", mode="full", user_decisions=[decision(DESIGN)])

    def read(role: str) -> set[str]:
        document = agent_input(read_session(folder), "meta", role)
        return {Path(path).name for path in document["task"]["context_files"]}

    assert not read("Architect") & {"status.json", "approve-design-history.jsonl"}
    answer(writer(folder), {DESIGN: "changes-requested: no database"})
    for role in ("SpecAgent", "Architect", "Designer"):
        assert read(role) >= {"spec.md", "status.json", "approve-design-history.jsonl"}
    assert "status.json" in read("Researcher")


def test_an_agent_cannot_start_without_the_files_that_it_must_read(committed: Path, tmp_path: Path) -> None:
    root = shutil.copytree(committed.parents[1], tmp_path / "repository")
    folder = Path(root, *committed.parts[-2:])
    (folder / "spec.md").unlink()
    (found,) = findings(folder, "T-001")
    assert (found.code, "spec.md" in found.message) == ("context-file-missing", True)
    assert agent_input(read_session(folder), "T-001", "Security", goal="Look.")["task"]["goal"] == "Look."
    assert refused(folder, "T-009", "Security") == ["task-unknown"]


def refused(folder: Path, task: str, role: str = "Coder") -> list[str]:
    return [finding.code for finding in findings(folder, task, role)]


def findings(folder: Path, task: str, role: str = "Coder") -> Sequence[Finding]:
    with pytest.raises(BrokenContract) as caught:
        agent_input(read_session(folder), task, role)
    return caught.value.findings


@pytest.mark.parametrize("state", ["DONE", "APPROVE_DESIGN", "BLOCKED", "INTEGRATE", "ASK_USER"])
def test_no_coder_is_sent_past_a_gate_or_behind_the_end(tmp_path: Path, state: str) -> None:
    more = {"blocked_from": "IMPLEMENT_LOOP"} if state == "BLOCKED" else {}
    folder = make_session(tmp_path, state, mode="full", user_decisions=GATES, **more)
    for task in ("T-001", "meta"):
        assert refused(folder, task) == ["session-done" if state == "DONE" else "state-forbids"]


@pytest.mark.parametrize("architecture", [None, "# Architecture\n\n## Overview\n\nNo modules.\n"])
def test_no_coder_works_in_a_full_session_without_its_architecture(tmp_path: Path, architecture: str | None) -> None:
    texts = {"architecture.md": architecture}
    folder = make_session(tmp_path, "IMPLEMENT_LOOP", mode="full", user_decisions=GATES, texts=texts)
    assert refused(folder, "T-001") == refused(folder, "T-001", "Reviewer") == ["context-file-missing"]
    assert agent_input(read_session(folder), "meta", "Architect")["agent"] == "Architect", "who writes it may fix it"
    lean = make_session(tmp_path / "lean", "IMPLEMENT_LOOP", mode="lean", texts=texts)
    assert agent_input(read_session(lean), "T-001", "Coder")["task"]["id"] == "T-001"


def test_a_task_waits_for_its_dependencies_and_its_context_files(tmp_path: Path) -> None:
    folder = make_session(tmp_path, "IMPLEMENT_LOOP", mode="full", user_decisions=GATES)
    assert refused(folder, "T-002") == ["state-forbids"]
    (folder / "tasks.yaml").write_text(READY)
    assert agent_input(read_session(folder), "T-002", "Coder")["task"]["id"] == "T-002"
    (folder / "tasks.yaml").write_text(TASKS.replace("owner: 'someone'", "context_files: [docs/none.md]"))
    (said,) = findings(folder, "T-001")
    assert (said.code, said.path) == ("context-file-missing", "/task/context_files/3")
    assert "docs/none.md" in said.message


@pytest.mark.parametrize("role", ROLES)
def test_a_prompt_names_exactly_the_files_that_the_role_may_write(tmp_path: Path, role: str) -> None:
    session = read_session(make_session(tmp_path, "IMPLEMENT_LOOP", mode="full", user_decisions=GATES))
    prompt = prompt_of({"agent": role, "project_type": "cli"}, session)
    rule = prompt.split("3. Write only")[1].split("Also keep")[0]
    named = {name for name in FORMS if f"/{name}`" in rule or f"/{name}/`" in rule}
    assert named == {name for name, roles in WRITERS.items() if role in roles}
    context = WriteContext(session.name, "IMPLEMENT_LOOP")
    for name in named:
        assert check_path(role, f".agents-work/{session.name}/{name}", context) is None
    assert ("source code" in rule) == (role in ("Coder", "Integrator"))


@pytest.mark.parametrize("project_type", get_args(ProjectType))
def test_a_prompt_carries_the_rules_of_its_role_and_the_checklist_of_the_project(
    tmp_path: Path, project_type: str
) -> None:
    session = read_session(make_session(tmp_path, "IMPLEMENT_LOOP", mode="full", user_decisions=GATES))
    prompts = {role: prompt_of({"agent": role, "project_type": project_type}, session) for role in ROLES}
    for role, prompt in prompts.items():
        assert "Return `status: BLOCKED`" in prompt
        assert "lack the tools to run them" in prompt
        assert all(rule in prompt for rule in RULES.get(role, ()))
        has_checklist = role in ("Reviewer", "QA", "Security")
        assert (CHECKLISTS[project_type] in prompt) == has_checklist
    assert "NEEDS_DECISION" in prompts["Security"]
    assert "CSRF" not in prompts["Coder"]
    assert set(CHECKLISTS) == set(get_args(ProjectType))


def test_every_file_of_a_session_has_a_role_that_writes_it_and_a_form() -> None:
    assert set(WRITERS) == set(FORMS) == set(OWNERS) - {"status.json", "approve-design-history.jsonl", "outputs.jsonl"}


def test_a_prompt_of_the_creator_names_the_lean_plan_and_the_keys_to_keep_current(tmp_path: Path) -> None:
    session = read_session(make_session(tmp_path, "INTAKE_LEAN", mode="lean"))
    prompt = prompt_of(agent_input(session, "meta", "SpecAgent"), session)
    folder = f".agents-work/{session.name}"
    assert f"{folder}/tasks.yaml`: " in prompt
    assert f"keep `assumptions`, `known_issues` and `last_ci_result` in `{folder}/status.json`" in prompt
