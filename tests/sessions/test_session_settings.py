"""Values of a session that ``accord session set`` sets: which, how, and by whom."""

from pathlib import Path
from typing import Any

import pytest
from support.sessions import make_session, writer

from accord.core.errors import BrokenContract, WrongUsage
from accord.sessions.policy import parse_setting
from accord.sessions.run import set_values

BEFORE = {"known_issues": ["old"], "retry_counts": {"T-001": {"FIX_TESTS": 3, "FIX_BUILD": 1}}}


def after(root: Path, role: str, *settings: str) -> dict[str, Any]:
    folder = make_session(root, "DESIGN", mode="full", **BEFORE)
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


@pytest.mark.parametrize(
    "setting", ["retry_counts.T-001.FIX_TESTS=0", "runtime_flags.copilot_instructions_exists=true"]
)
def test_no_other_role_sets_what_is_the_orchestrators(tmp_path: Path, setting: str) -> None:
    with pytest.raises(BrokenContract) as caught:
        after(tmp_path, "Coder", setting)
    assert [finding.code for finding in caught.value.findings] == ["role-forbidden"]


@pytest.mark.parametrize(
    ("setting", "said"),
    [
        ("known_issues", "not KEY=VALUE"),
        ("=x", "not KEY=VALUE"),
        ("known_isues=x", "Did you mean `known_issues`?"),
        ("current_state=DONE", "cannot be set"),
        ("user_decisions=[]", "cannot be set"),
        ("last_ci_result=gren", "Did you mean `green`?"),
        ("last_ci_result+=green", "not a list"),
        ("project_type=site", "Use one of"),
        ("retry_counts.T-001.FIX_TEST=0", "Did you mean `FIX_TESTS`?"),
        ("retry_counts.T-001.FIX_TESTS=-1", "Write a number"),
    ],
)
def test_a_refusal_of_a_value_names_a_valid_one(tmp_path: Path, setting: str, said: str) -> None:
    with pytest.raises(WrongUsage) as caught:
        after(tmp_path, "Orchestrator", setting)
    assert said in f"{caught.value.message} {caught.value.hint}"


def test_a_count_belongs_to_a_task_of_the_session(tmp_path: Path) -> None:
    with pytest.raises(BrokenContract, match="Unknown task"):
        after(tmp_path, "Orchestrator", "retry_counts.T-009.FIX_TESTS=0")
