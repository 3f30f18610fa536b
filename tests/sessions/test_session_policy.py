"""The files and keys that each role may write."""

from typing import Any

import pytest
from support.sessions import NAME, decision, status

from accord.sessions.models import ROLES
from accord.sessions.policy import ORCHESTRATOR_KEYS, WriteContext, check_path, forbidden_status

HERE = WriteContext(NAME, "IMPLEMENT_LOOP")


def may(role: str, path: str, place: WriteContext = HERE) -> bool:
    return check_path(role, path, place) is None


@pytest.mark.parametrize("path", ["src/app.py", "tests/test_app.py", "package.json", ".github/workflows/ci.yml"])
@pytest.mark.parametrize("state", ["IMPLEMENT_LOOP", "FIX_BUILD", "BLOCKED", "DONE"])
def test_only_coder_and_integrator_write_source_code(path: str, state: str) -> None:
    place = WriteContext(NAME, state)
    integrates = {"Integrator"} if state in ("INTEGRATE", "FIX_BUILD") else set()
    assert {role for role in ROLES if may(role, path, place)} == {"Coder"} | integrates


def test_docs_writes_documentation_and_no_code() -> None:
    assert may("Docs", "README.md")
    assert may("Docs", "docs/usage.rst")
    assert not may("Docs", "docs/conf.py")
    assert not may("Orchestrator", "README.md")


@pytest.mark.parametrize(
    ("name", "writers"),
    [
        ("spec.md", {"SpecAgent"}),
        ("acceptance.json", {"SpecAgent"}),
        ("architecture.md", {"Architect"}),
        ("adr/0001.md", {"Architect"}),
        ("design-specs/form.md", {"Designer"}),
        ("research/options.md", {"Researcher"}),
        ("report.md", {"Docs", "Integrator", "Orchestrator"}),
        ("approve-design-history.jsonl", {"Orchestrator"}),
        ("tasks.yaml", set(ROLES)),
        ("status.json", set(ROLES)),
        ("notes/own.md", set(ROLES)),
    ],
)
def test_a_file_of_the_session_has_its_writers(name: str, writers: set[str]) -> None:
    assert {role for role in ROLES if may(role, f".agents-work/{NAME}/{name}")} == writers


def test_the_creator_of_a_lean_session_writes_its_first_files() -> None:
    lean = WriteContext(NAME, "INTAKE_LEAN", is_lean=True)
    assert may("Orchestrator", f".agents-work/{NAME}/spec.md", lean)
    assert not may("Coder", f".agents-work/{NAME}/spec.md", lean)


@pytest.mark.parametrize("role", ROLES)
def test_previous_sessions_are_read_only(role: str) -> None:
    assert "read-only" in str(check_path(role, ".agents-work/2025-01-01_old/status.json", HERE))
    assert "read-only" in str(check_path(role, f".agents-work/{NAME}/status.json", WriteContext(NAME, "DONE")))
    assert "read-only" in str(check_path(role, ".agents-work/notes.md", HERE))


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


@pytest.mark.parametrize("role", ROLES)
@pytest.mark.parametrize("key", CHANGES)
def test_states_decisions_and_gates_are_the_orchestrators(role: str, key: str) -> None:
    refused = forbidden_status(role, status(), {**status(), key: CHANGES[key]})
    assert [f.path for f in refused] == ([f"/{key}"] if key in ORCHESTRATOR_KEYS and role != "Orchestrator" else [])


def test_removing_a_key_is_a_change_and_the_name_stays() -> None:
    assert forbidden_status("Coder", status(mode="full"), status())
    (renamed,) = forbidden_status("Orchestrator", status(), status(session="2026-01-01_b"))
    (unknown,) = forbidden_status("Tester", status(), status())
    assert (renamed.code, unknown.code) == ("role-forbidden", "role-unknown")
