"""A run counts by the runner's outputs, whatever texts they are."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.loops import NOW, running

from accord.loops.models import Iteration
from accord.loops.outputs import error_identity, iteration_of
from accord.runner.models import RunOutputs


def failing(summary: str, **more: str) -> RunOutputs:
    return RunOutputs(exit_code="1", error_summary=summary, error_category="logic", error_recovery="manual", **more)


def test_outputs_become_an_iteration() -> None:
    outputs = RunOutputs(changes_made="true", commit_sha="abc", duration_seconds="61.5", cost_usd="0.25")
    found = iteration_of(outputs, running("9"), number=2, ended_at=NOW, tree_before="t1", tree="t2", tasks_done=1)
    assert found == Iteration(
        run_id="9", number=2, changes_made=True, head_sha="abc", tree_before="t1", tree="t2", tasks_done=1,
        seconds=61.5, cost_usd=0.25, ended_at=NOW,
    )  # fmt: skip
    assert not iteration_of(RunOutputs(), running("9"), number=2, ended_at=NOW).changes_made


@pytest.mark.parametrize(
    ("one", "other", "is_same"),
    [
        ("Line 12 of a.py at 0x7f3a", "line 345 of a.py  at 0x9b", True),
        ("commit 1a2b3c4d5e failed", "commit 99887766aa failed", True),
        ("Tests fail", "Lint fails", False),
    ],
)
def test_the_same_error_is_known_again_by_its_words(one: str, other: str, is_same: bool) -> None:
    assert (error_identity(failing(one)) == error_identity(failing(other))) == is_same


@pytest.mark.slow
@settings(max_examples=30)
@given(st.builds(RunOutputs, **{name: st.text(max_size=200) for name in RunOutputs.model_fields}))
def test_no_outputs_break_the_count(outputs: RunOutputs) -> None:
    found = iteration_of(outputs, running(), number=1, ended_at=NOW)
    assert found == Iteration.model_validate_json(found.model_dump_json())
