"""Any JSON is read and merged without a crash, and doing it twice changes nothing."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.handoffs import checked

from accord.handoffs.models import normalise
from accord.handoffs.rules import merge_patch

pytestmark = pytest.mark.slow

words = st.sampled_from(["a", "b", "-->", "@all", ""])
json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | words,
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(words, inner, max_size=3),
    max_leaves=8,
)
objects = st.dictionaries(words, json_values, max_size=3)


@given(task=objects, patch=objects)
def test_a_merge_changes_only_what_the_patch_names_and_twice_is_once(task: Any, patch: Any) -> None:
    merged = merge_patch(task, patch)
    assert merge_patch(merged, patch) == merged
    for key in task:
        if key not in patch:
            assert merged[key] == task[key]


@given(task=st.fixed_dictionaries({"metadata": json_values}, optional={"status": json_values, "tasks": objects}))
def test_reading_never_crashes_and_what_is_read_twice_stays(task: Any) -> None:
    if "tasks" in task and "status" not in task:
        return
    once = normalise(task)
    assert normalise(once) == once
    checked(task)
