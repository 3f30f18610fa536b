"""For any plan, and any way a run can be cut off: valid ones end the same, invalid ones write nothing."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support.plans import plan, refinement, task, update
from support.rotation import NIGHTLY
from support.stage import Stage, staged

from accord.core.findings import has_errors
from accord.core.kinds import check_document
from accord.engine.receipts import Outcome
from accord_sandbox.faults import Fault

pytestmark = pytest.mark.slow

EXISTING = 4
NAMES = st.sampled_from(["a", "b", "temp-1", "ü", "x y", "--> <!-- accord:item -->", "@octocat", "`z`"])
SLOW = settings(
    max_examples=60 if NIGHTLY else 5,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)


@st.composite
def plans(draw: st.DrawFn) -> dict[str, Any]:
    names = draw(st.lists(NAMES, min_size=0, max_size=5, unique=True))
    create = []
    for i, name in enumerate(names):
        earlier = draw(st.lists(st.sampled_from(names[:i]), max_size=2, unique=True)) if i else []
        old = draw(st.lists(st.sampled_from(["1", "#2"]), max_size=1))
        make = draw(st.sampled_from([task, refinement]))
        item = make(name, *earlier, *old)
        if make is task:
            owner = draw(st.sampled_from(names))
            item["body"] = item["body"].replace("- src/z.py", f"- src/z.py (owned by #{owner})")
        create.append(item)
    order = draw(st.permutations(create))
    close = draw(st.sampled_from([[], ["3"]]))
    changes = draw(st.sampled_from([[], [update(4, labels=["priority:high", "later"])]]))
    return plan(*order, close=close, update=changes)


@contextmanager
def with_old_issues(folder: Path) -> Iterator[Stage]:
    with staged(folder) as stage:
        for number in range(EXISTING):
            stage.send(
                "POST",
                f"/repos/{stage.repository}/issues",
                title=f"Old {number}",
                labels=["task:implement", "priority:low"],
            )
        stage.begin_at_present()
        yield stage


STAGE = with_old_issues


@SLOW
@given(plans(), st.lists(st.tuples(st.integers(1, 30), st.integers(0, 1200)), max_size=4))
def test_any_valid_plan_ends_the_same_however_often_it_is_cut_off(stage: Stage, result: Any, cuts: Any) -> None:
    stage.reset()
    clean = stage.apply(result)
    assert clean.exit_code == 0, clean.findings
    expected = stage.snapshot()
    stage.reset()
    for nth, pause in cuts:
        stage.server.faults.add(Fault("lost-after", nth=nth, times=1000))
        stage.apply(result)
        stage.server.faults.clear()
        stage.clock.sleep(pause)
    last = stage.apply(result)
    assert last.exit_code == 0, last.error
    assert stage.snapshot() == expected
    assert stage.apply(result).writes == 0


@st.composite
def broken_plans(draw: st.DrawFn) -> dict[str, Any]:
    result = plan(*(task(name) for name in ("a", "b", "c")), close=["1"], update=[update(2, labels=["priority:low"])])
    victim = draw(st.sampled_from(result["create"]))
    break_it = draw(st.integers(0, 7))
    if break_it == 0:
        victim["tempID"] = draw(st.sampled_from(sorted({"a", "b", "c"} - {victim["tempID"]})))
    elif break_it == 1:
        victim["blockedBy"].append(draw(st.sampled_from([victim["tempID"], "nobody", "99", "0"])))
    elif break_it == 2:
        victim["labels"].remove(draw(st.sampled_from(victim["labels"])))
    elif break_it == 3:
        heading = draw(st.sampled_from(["## Objective", "### In Scope", "## Constraints", "- [ ]"]))
        victim["body"] = victim["body"].replace(heading, "Something")
    elif break_it == 4:
        result["close"].append(draw(st.sampled_from(["99", "x", "2"])))
    elif break_it == 5:
        victim["title"] = draw(st.sampled_from(["", "x" * 257]))
    elif break_it == 6:
        victim["labels"].append(draw(st.sampled_from(["priority:none", "status:ready", "x" * 51])))
    else:
        for name, other in zip(result["create"], "bca", strict=True):
            name["blockedBy"] = [other]
    return result


@SLOW
@given(broken_plans())
def test_any_invalid_plan_writes_nothing(stage: Stage, result: dict[str, Any]) -> None:
    stage.reset()
    before = stage.snapshot()
    receipt = stage.apply(result)
    assert (receipt.outcome, receipt.exit_code, receipt.writes) == (Outcome.REJECTED, 1, 0)
    assert stage.snapshot() == before


TEXT = st.text(max_size=40)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | TEXT,
    lambda children: st.lists(children, max_size=4) | st.dictionaries(TEXT, children, max_size=4),
    max_leaves=15,
)
WORDS = st.lists(TEXT, max_size=3)
ALMOST = st.fixed_dictionaries(
    {
        "role": st.just("planner"),
        "create": st.lists(
            st.fixed_dictionaries(
                {"tempID": JSON | TEXT, "title": TEXT, "body": TEXT, "labels": WORDS, "blockedBy": WORDS}
            )
            | JSON,
            max_size=3,
        ),
        "close": st.lists(TEXT, max_size=2) | JSON,
        "update": JSON
        | st.lists(st.fixed_dictionaries({"workItemID": TEXT, "body": TEXT, "labels": st.none() | st.lists(TEXT)})),
    }
)


@settings(max_examples=300 if NIGHTLY else 75, deadline=None)
@given(
    st.binary(max_size=300) | JSON.map(lambda v: json.dumps(v).encode()) | ALMOST.map(lambda v: json.dumps(v).encode())
)
def test_check_answers_anything_with_findings_that_can_be_printed(raw: bytes) -> None:
    _, findings = check_document(raw, None)
    for finding in findings:
        assert finding.code
        assert finding.message
        json.dumps(finding.as_json()).encode()
    if not has_errors(findings):
        assert json.loads(raw)["role"] == "planner"
