"""The files, keys and values that each role may write."""

from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest
from support.sessions import GATES, NAME, decision, make_session, status, writer

from accord.core.errors import AccordError, BrokenContract, WrongUsage
from accord.sessions.models import ROLES
from accord.sessions.policy import ORCHESTRATOR_KEYS, check_path, forbidden_status, parse_setting
from accord.sessions.run import advance, set_values


def may(role: str, path: str, state: str = "IMPLEMENT_LOOP", *, is_lean: bool = False) -> bool:
    return check_path(role, path, NAME, state, is_lean=is_lean) is None


@pytest.mark.parametrize("state", ["IMPLEMENT_LOOP", "FIX_BUILD", "BLOCKED", "DONE"])
def test_only_coder_and_integrator_write_source_code(state: str) -> None:
    integrates = {"Integrator"} if state == "FIX_BUILD" else set()
    for path in ("src/app.py", "tests/test_app.py", "package.json", ".github/workflows/ci.yml"):
        assert {role for role in ROLES if may(role, path, state)} == {"Coder"} | integrates, path


DOCUMENTS = """
README.md README pkg/LICENSE NOTICE.txt Changelog pkg/readme.txt src/pkg/GUIDE.markdown
docs/usage.rst docs/images/a.PNG docs/a.html doc/flow.mmd man/a.1
"""
NO_DOCUMENTS = """
docs docs/conf.py docs/../src/page.html src/page.html src/logo.png src/news tests/fixtures/x.txt Dockerfile BUILD
requirements.txt docs/requirements.txt CMakeLists.txt docs/CMakeLists.txt AGENTS.md docs/claude.md docs/CLAUDE.MD
.github/prompts/review.md .github/workflows/triage.md .new-agent/rules.md
"""


def test_docs_writes_documentation_and_no_code() -> None:
    paths = [*DOCUMENTS.split(), *NO_DOCUMENTS.split()]
    assert [path for path in paths if may("Docs", path)] == DOCUMENTS.split()
    assert not any(may("Orchestrator", path) for path in paths)


FILES = {
    ("SpecAgent",): ["spec.md", "acceptance.json"],
    ("Architect",): ["architecture.md", "adr/0001.md"],
    ("Designer",): ["design-specs/form.md"],
    ("Researcher",): ["research/options.md"],
    ("Docs", "Integrator", "Orchestrator"): ["report.md"],
    ("Orchestrator",): ["approve-design-history.jsonl", "outputs.jsonl"],
    ROLES: ["tasks.yaml", "status.json", "notes/own.md"],
}


@pytest.mark.parametrize("writers", FILES)
def test_a_file_of_the_session_has_its_writers(writers: tuple[str, ...]) -> None:
    for name in FILES[writers]:
        assert {role for role in ROLES if may(role, f".agents-work/{NAME}/{name}")} == set(writers), name


def test_the_creator_of_a_lean_session_writes_its_first_files() -> None:
    for role in ("Orchestrator", "Coder"):
        assert may(role, f".agents-work/{NAME}/spec.md", "INTAKE_LEAN", is_lean=True) == (role == "Orchestrator")


def test_previous_sessions_are_read_only() -> None:
    for role in ROLES:
        assert "read-only" in str(check_path(role, ".agents-work/2025-01-01_old/status.json", NAME, "INTAKE")), role
        assert "read-only" in str(check_path(role, f".agents-work/{NAME}/status.json", NAME, "DONE"))
        assert "own folder" in str(check_path(role, ".agents-work/notes.md", NAME, "INTAKE")), role


@pytest.mark.parametrize("path", ["", "../x", "/etc/passwd", f".agents-work/{NAME}/../other/status.json"])
def test_no_role_writes_outside_the_repository(path: str) -> None:
    assert not any(may(role, path) for role in ROLES)


CHANGES: dict[str, Any] = {
    "current_state": "DESIGN",
    "user_decisions": [decision()],
    "gate_tracking": {},
    "runtime_flags": {},
    "retry_counts": {"T-001": {}},
    "mode": "lean",
    "blocker": "x",
    "blocked_from": "PLAN",
    "assumptions": [],
    "known_issues": ["x"],
    "last_ci_result": "green",
    "last_update": "2026-02-01T00:00:00Z",
    "notes": None,
}


@pytest.mark.parametrize("key", CHANGES)
def test_states_decisions_and_gates_are_the_orchestrators(key: str) -> None:
    changed = {**status(), key: CHANGES[key]}
    refused = {role: [found.path for found in forbidden_status(role, status(), changed)] for role in ROLES}
    others = [f"/{key}"] if key in ORCHESTRATOR_KEYS else []
    assert refused == {**dict.fromkeys(ROLES, others), "Orchestrator": []}


def test_removing_a_key_is_a_change_and_the_name_stays() -> None:
    assert forbidden_status("Coder", status(mode="full"), status())
    (renamed,) = forbidden_status("Orchestrator", status(), status(session="2026-01-01_b"))
    assert renamed.code == "role-forbidden"


BEFORE = {"known_issues": ["old"], "retry_counts": {"T-001": {"FIX_TESTS": 3, "FIX_BUILD": 1}}}


AGAIN = "T-001 FIX_TESTS, FIX_BUILD: again?"


def after(root: Path, role: str, *settings: str, decided: str = "answered", question: str = AGAIN) -> dict[str, Any]:
    said = decision("UD-1", decided, question=question)
    folder = make_session(root, "DESIGN", mode="full", user_decisions=[said], **BEFORE)
    status = set_values(writer(folder), [parse_setting(text) for text in settings], role=role)
    return status.model_dump(mode="json", by_alias=True, exclude_none=True)


@pytest.mark.parametrize(
    ("settings", "key", "value"),
    [
        (["known_issues=new"], "known_issues", ["new"]),
        (["known_issues+=new", "known_issues+=old"], "known_issues", ["old", "new"]),
        (["known_issues=a=b", "known_issues=c"], "known_issues", ["a=b", "c"]),
        (['known_issues=["a", "b"]'], "known_issues", ["a", "b"]),
        (["known_issues="], "known_issues", []),
        (["known_issues=[1]"], "known_issues", ["[1]"]),
        (["assumptions+=UTF-16"], "assumptions", ["UTF-8", "UTF-16"]),
        (["last_ci_result=red"], "last_ci_result", "red"),
        (["project_type=web"], "project_type", "web"),
    ],
)
def test_every_agent_sets_what_its_work_changes(tmp_path: Path, settings: list[str], key: str, value: Any) -> None:
    assert after(tmp_path, "QA", *settings)[key] == value


def test_the_orchestrator_sets_flags_and_counts(tmp_path: Path) -> None:
    status = after(
        tmp_path, "Orchestrator", "retry_counts.T-001.FIX_TESTS=0", "runtime_flags.copilot_instructions_exists=true"
    )
    assert status["retry_counts"]["T-001"]["FIX_TESTS"] == 0
    assert status["retry_counts"]["T-001"]["FIX_BUILD"] == 1
    flags = {"copilot_instructions_exists": True, "copilot_checked_at": "2026-01-31T12:00:00Z"}
    assert status["runtime_flags"] == flags


def test_a_session_that_was_blocked_by_hand_returns_to_the_state_that_is_set(tmp_path: Path) -> None:
    folder = make_session(tmp_path, "BLOCKED", mode="full", user_decisions=GATES, blocker="x")
    for text, reason in (("DONE", "cannot be"), ("PLAN", ""), ("DESIGN", "does not record it")):
        with pytest.raises(WrongUsage, match=reason) if reason else nullcontext():
            set_values(writer(folder), [parse_setting(f"blocked_from={text}")], role="Orchestrator")
    assert advance(writer(folder), "PLAN", role="Orchestrator").current_state == "PLAN"


@pytest.mark.parametrize(("loop", "count"), [("FIX_TESTS", 2), ("FIX_BUILD", 0)])
def test_a_count_is_set_back_only_after_a_decision_of_the_user(tmp_path: Path, loop: str, count: int) -> None:
    with pytest.raises(BrokenContract, match="the user did not decide"):
        after(tmp_path, "Orchestrator", f"retry_counts.T-001.{loop}={count}", decided="cancelled")
    with pytest.raises(BrokenContract, match="the user did not decide"):
        after(tmp_path / "other", "Orchestrator", f"retry_counts.T-001.{loop}={count}", question="Which port?")
    status = after(tmp_path / "more", "Orchestrator", f"retry_counts.T-001.{loop}=3", decided="cancelled")
    assert status["retry_counts"]["T-001"][loop] == 3


@pytest.mark.parametrize(
    "setting", ["retry_counts.T-001.FIX_TESTS=0", "runtime_flags.copilot_instructions_exists=true"]
)
def test_no_other_role_sets_what_is_the_orchestrators(tmp_path: Path, setting: str) -> None:
    with pytest.raises(BrokenContract) as caught:
        after(tmp_path, "Coder", setting)
    assert [finding.code for finding in caught.value.findings] == ["role-forbidden"]


@pytest.mark.parametrize(
    ("setting", "said", "error"),
    [
        ("known_issues", "not KEY=VALUE", WrongUsage),
        ("=x", "not KEY=VALUE", WrongUsage),
        ("known_isues=x", "Did you mean `known_issues`?", WrongUsage),
        ("current_state=DONE", "cannot be set", WrongUsage),
        ("user_decisions=[]", "cannot be set", WrongUsage),
        ("last_ci_result=gren", "Did you mean `green`?", WrongUsage),
        ("last_ci_result+=green", "not a list", WrongUsage),
        ("project_type=site", "Use one of", WrongUsage),
        ("blocked_from=PLAN", "only in a blocked session", WrongUsage),
        ("retry_counts.T-001.FIX_TEST=0", "Did you mean `FIX_TESTS`?", WrongUsage),
        ("retry_counts.T-001.FIX_TESTS=-1", "Write a number", WrongUsage),
        ("runtime_flags.copilot_instructions_exists=yes", "exists` must be true or false; found 'yes'", BrokenContract),
        ("runtime_flags.copilot_instructions_exists=null", "exists` must be true or false; found null", BrokenContract),
        ("runtime_flags.copilot_checked_at=yesterday", "required key `copilot_instructions_exists`", BrokenContract),
    ],
)
def test_a_refusal_of_a_value_names_a_valid_one(
    tmp_path: Path, setting: str, said: str, error: type[AccordError]
) -> None:
    with pytest.raises(error) as caught:
        after(tmp_path, "Orchestrator", setting)
    assert said in f"{caught.value.message} {caught.value.hint}"


def test_a_count_belongs_to_a_task_of_the_session(tmp_path: Path) -> None:
    with pytest.raises(BrokenContract, match="Unknown task"):
        after(tmp_path, "Orchestrator", "retry_counts.T-009.FIX_TESTS=0")
