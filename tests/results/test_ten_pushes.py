"""Ten pushes with a review each, while people work in the threads: open threads are the open findings, and no more."""

import base64
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support.reviews import (
    answer,
    approve,
    comment,
    finding,
    hide,
    needs_changes,
    post,
    resolve,
    review_stage,
    snapshot,
    threads,
)
from support.rotation import NIGHTLY
from support.stage import Stage

from accord.engine.receipts import Outcome

pytestmark = pytest.mark.slow

PATH = "added.txt"
"""A file that the pull request adds, so that the diff shows every line."""


@dataclass
class Line:
    """A line of the file: its text, and the finding that it has."""

    text: str
    finding: str = ""


@dataclass
class Model:
    """The file, and the findings whose threads a person ended or answered in."""

    lines: list[Line]
    ended: set[str] = field(default_factory=set)
    answered: set[str] = field(default_factory=set)

    def comments(self) -> list[dict[str, Any]]:
        return [
            comment(PATH, number, finding(line.finding)) for number, line in enumerate(self.lines, 1) if line.finding
        ]


EDITS = st.sampled_from(["insert", "delete", "rewrite", "find", "fix", "nothing"])
ACTS = st.sampled_from(["resolve", "hide", "answer", "nothing", "nothing"])
PUSHES = st.lists(
    st.tuples(st.lists(st.tuples(EDITS, st.integers(0, 99)), min_size=1, max_size=4), ACTS, st.integers(0, 99)),
    min_size=10,
    max_size=10,
)


@pytest.fixture(scope="module")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    with review_stage(tmp_path_factory.mktemp("pushes"), rate_limits=None) as stage:
        yield stage


def edit(model: Model, kind: str, number: int, name: str) -> None:
    """Change the file, or what there is to find in it. A finding has a name of its own, and never comes back."""
    at = number % len(model.lines)
    match kind:
        case "insert":
            model.lines.insert(at, Line(f"inserted {name}"))
        case "delete" if len(model.lines) > 1:
            del model.lines[at]
        case "rewrite":
            model.lines[at].text = f"rewritten {name}"
        case "find":
            model.lines[at].finding = model.lines[at].finding or f"Finding {name}"
        case "fix":
            model.lines[at].finding = ""


def push(stage: Stage, model: Model, number: int) -> str:
    url = f"/repos/{stage.repository}/contents/{PATH}"
    text = "".join(f"{line.text}\n" for line in model.lines) + f"push {number}\n"
    content = base64.b64encode(text.encode()).decode()
    file = stage.get(url, ref="accord/1")
    made = stage.send("PUT", url, message="More", content=content, branch="accord/1", sha=file["sha"])
    return str(made["commit"]["sha"])


def finding_of(thread: dict[str, Any]) -> str:
    return str(thread["comments"][0]["body"].removeprefix("What: ").partition(".\n")[0])


def act(stage: Stage, model: Model, kind: str, number: int) -> None:
    """Let a person do something in one of the open threads."""
    waiting = [
        thread for thread in threads(stage) if not thread["isResolved"] and finding_of(thread) not in model.ended
    ]
    if not waiting or kind == "nothing":
        return
    thread = waiting[number % len(waiting)]
    name = finding_of(thread)
    match kind:
        case "resolve":
            resolve(stage, thread)
            model.ended.add(name)
        case "hide":
            hide(stage, thread)
            model.ended.add(name)
        case "answer":
            answer(stage, thread, "I see this differently.")
            model.answered.add(name)


def check_threads(stage: Stage, model: Model) -> None:
    found = threads(stage)
    named = [finding_of(thread) for thread in found]
    assert max(Counter(named).values(), default=1) == 1, "a finding was posted twice"
    present = {line.finding for line in model.lines if line.finding}
    is_open = {finding_of(thread) for thread in found if not thread["isResolved"]} - model.ended
    assert is_open - model.answered == present - model.ended - model.answered
    assert present - model.ended <= is_open, "an open finding has no open thread"
    assert model.answered & set(named) <= is_open | model.ended, "the thread of a person was resolved"
    for thread in found:
        replies = [one["body"] for one in thread["comments"][1:] if "No longer found" in one["body"]]
        assert len(replies) <= 1
        assert not (replies and finding_of(thread) in present)


@settings(
    max_examples=4 if NIGHTLY else 1,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(PUSHES)
def test_after_each_review_the_open_threads_are_the_open_findings(
    stage: Stage, pushes: list[tuple[list[tuple[str, int]], str, int]]
) -> None:
    stage.reset()
    model = Model([Line("New", "Finding 0"), Line("file"), Line("third", "Finding 1"), Line("fourth"), Line("fifth")])
    for number, (edits, kind, which) in enumerate(pushes):
        for position, (change, at) in enumerate(edits):
            edit(model, change, at, f"{number}.{position}")
        commit = push(stage, model, number)
        comments = model.comments()
        result = needs_changes(*comments) if comments else approve()
        receipt = post(stage, result, commit=commit)
        assert receipt.outcome is Outcome.APPLIED, receipt.error
        check_threads(stage, model)
        before = snapshot(stage)
        again = post(stage, result, commit=commit)
        assert (again.writes, snapshot(stage)) == (0, before)
        act(stage, model, kind, which)
