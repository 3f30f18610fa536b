"""SIGKILL at any request, then the same command again: the end is that of a clean run."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
import test_faults
import test_implement
import test_review_faults
from support.exactly_once import assert_survives_kills
from support.reviews import PULL, review_stage
from support.stage import staged

if TYPE_CHECKING:
    from pathlib import Path

    from support.exactly_once import Work

pytestmark = pytest.mark.matrix


def kill_everywhere(work: Work, folder: Path, result: Any, *options: str, part: int = 0, parts: int = 1) -> None:
    file = folder / "result.json"
    file.write_text(json.dumps(result))
    clean = work.clean()
    moments = range(1 + part, clean.count + 1, parts)
    assert_survives_kills(work, ["apply", str(file), *options], moments, clean.state)


@pytest.mark.parametrize("part", range(3))
def test_a_killed_planner_run_is_finished_by_the_next_one(tmp_path: Path, part: int) -> None:
    with staged(tmp_path / "data") as stage:
        kill_everywhere(test_faults.plan_work(stage), tmp_path, test_faults.RESULT, part=part, parts=3)


def test_a_killed_review_is_finished_by_the_next_run(tmp_path: Path) -> None:
    with review_stage(tmp_path, rate_limits=None) as stage:
        work = test_review_faults.review_work(stage)
        kill_everywhere(work, tmp_path, test_review_faults.RESULT, "--pull", str(PULL))


@pytest.mark.parametrize(("outcome", "part"), [("completed", 0), ("completed", 1), ("blocked", 0)])
def test_a_killed_implementor_run_is_finished_by_the_next_one(tmp_path: Path, outcome: str, part: int) -> None:
    """Killed before a push, between push and pull request, before the item moves; git is killed with it."""
    with test_implement.implement_stage(tmp_path) as stage:
        begin = stage.keep()
        if outcome == "completed":
            result = test_implement.completed(test_implement.work_of_agent(stage, tmp_path / "agent"))
        else:
            result = test_implement.ended("blocked", test_implement.BLOCKED)
        work = test_implement.implement_work(stage, begin, result)
        parts = 2 if outcome == "completed" else 1
        kill_everywhere(work, tmp_path, result, "--work-item", "1", part=part, parts=parts)
