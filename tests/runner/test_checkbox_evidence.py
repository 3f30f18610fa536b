"""Without a model, only the checked boxes of the agent's message count, and none about which it says "not"."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.growth import grows_too_fast

from accord.runner.analysis.analyse import TaskEvidence, completed_by_boxes
from accord.runner.transcripts.account import Todo
from accord.text.outline import tasks

BODY = "## Tasks\n\n- [ ] Add tests\n- [ ] Fix docs\n- [x] Old thing\n"


def read(message: str, body: str = BODY, todos: tuple[Todo, ...] = ()) -> tuple[list[int], float]:
    return completed_by_boxes(TaskEvidence(body, message, todos=todos), tasks(body))


STRONG, WEAK = 0.7, 0.5
EVIDENCE: list[tuple[str, list[int], float]] = [
    ("- [x] Add tests", [0], STRONG), ("Done.\n\n* [X] Add tests\n* [ ] Fix docs", [0], STRONG),
    ("1. [x] Fix docs\n2. [x] Add   tests", [0, 1], STRONG),
    ("- [ ] Add tests\n\nWorked on it.\n\n- [x] Add tests", [0], STRONG),
    ("I could not run the linter. State of the tasks:\n\n- [x] Add tests", [0], STRONG),
    ("## Done\n\n- [x] Add tests\n\n## Not done\n\n- [x] Fix docs", [0], STRONG),
    ("- [x] Add tests\n- Not touched: Windows", [0], STRONG), ("- [x] Add tests\n  - [x] Fix docs", [0, 1], STRONG),
    ("- [x] Add tests\n  - [x] Fix docs\n  - more", [1], STRONG),
    ("Not done:\n- [x] Fix docs\n\nDone:\n- [x] Add tests", [0], STRONG),
    ("- [x] Add tests\n\n" + "More text.\n" * 20_000, [0], STRONG),
    ("Add tests is not done.\n\n" + "More text.\n" * 20_000 + "\n- [x] Add tests", [], 0.0),
    ("- [x] add tests.", [0], WEAK), ("- [x] **Add tests**", [0], WEAK),
    ("I could not run CI, but:\n\n- [x] Add tests\n- [x] Fix docs", [0, 1], STRONG),
    ("- [x] Add tests ✅", [0], WEAK), ("- [x] ✔️ Add tests.", [0], WEAK), ("- [x] Add tests… ☑", [0], WEAK),
    ("- [x] [Add tests](tests/test_a.py)", [0], WEAK), ("- [x] Add tests\n- [x] fix docs", [0, 1], WEAK),
]  # fmt: skip
NONE = [
    "", "All good.", "Add tests: done.", "✅ Add tests", "Completed:\n\n- Add tests", "- [ ] Add tests",
    "- [x] Add tests\n- [ ] Add tests", "- [x] Add tests for the API", "- [x] More: Add tests", "- [x] Old thing",
    "```\n- [x] Add tests\n```", "<!--\n- [x] Add tests\n-->", "- [x] Add tests (not done for Windows)",
    "- [x] Add tests: 90 %", "- [x] Add tests\n\n  This is not done on Windows.",
    "- [x] Add tests\n  - not done: Windows", "- [x] Add tests\n\nNote that Add tests is not done for Windows.",
    "- [x] Add tests\n\n- Add tests isn\u2019t done.", "## Not done\n\n- [x] Add tests",
    "Not done:\n- [x] Add tests", "I tried.\n**Not done**\n\n- [x] Add tests",
    "**Couldn't finish:**\n\n- [x] Add tests", "- [x] ~~Add tests~~", "- [x] ~Add tests~",
    *(f"{label}\n\n- [x] Add tests\n- [x] Fix docs" for label in (
        "These are not finished, sorry:", "I have not done these yet, as time ran out:", "Still not done; see CI:",
        "The following is not done, namely:", "I wrote these, but could not test them, sorry:",
        "I could not finish these, as the time of the job ran out before the tests had ended:",
    )),
]  # fmt: skip


@pytest.mark.parametrize(("message", "expected", "confidence"), [*EVIDENCE, *((text, [], 0.0) for text in NONE)])
def test_plain_checked_boxes_of_these_words_alone_are_evidence(
    message: str, expected: list[int], confidence: float
) -> None:
    assert read(message) == (expected, confidence)


@pytest.mark.parametrize(
    ("body", "message", "expected"),
    [
        ("- [ ] Do not log keys", "- [x] Do not log keys", [0]),
        ("- [ ] Add tests\n- [ ] Add tests", "- [x] Add tests", [0]),
        ("- [ ] Add tests\n- [ ] Add tests", "- [ ] Add tests\n- [x] Add tests", [1]),
        ("- [x] Add tests\n- [ ] Add tests", "- [x] Add tests", []),
        ("- [x] Add tests\n- [ ] Add tests", "- [x] Add tests\n- [x] Add tests", [1]),
        ("- [ ] Add it\n- [ ] add it", "- [ ] Add it\n- [ ] Add it\n\n- [x] Add it\n- [ ] Add it", [0]),
        ("- [ ] Test", "- [x] Test", [0]),
        ("- [ ] Do not log keys", "- [x] Do not log keys\n\nThe task “Do not log keys” took an hour.", [0]),
        ("- [ ] Do not log keys", "- [x] Do not log keys\n\nI did not finish “Do not log keys”.", []),
        ("- [ ] a.*b\n- [ ] (", "- [x] a.*b\n- [x] (", [0, 1]),
        ("- [ ] <!-- nothing -->", "- [x] <!-- nothing -->", []), ("- [ ] ** **", "- [x] ** **", []),
        ("", "- [x] Add tests", []),
    ],
)  # fmt: skip
def test_a_tasks_name_is_not_evidence_and_a_box_counts_once(body: str, message: str, expected: list[int]) -> None:
    assert read(message, body)[0] == expected


def test_the_agents_own_list_is_weak_evidence_and_its_message_has_the_last_word() -> None:
    listed = (Todo("Add tests", is_done=True), Todo("Fix docs", is_done=False))
    assert read("Bye.", todos=listed) == ([0], 0.5)
    assert read("- [ ] Add tests", todos=listed) == ([], 0.0)
    assert read("- [x] Fix docs", todos=listed) == ([0, 1], 0.5)


WORDS = st.sampled_from(
    ["- [x] ", "- [ ] ", "Add tests", "Fix docs", "done", "not", "✅ ", ". ", ": ", "> ", "## ", "\n", "\n\n", "```\n"]
)


@pytest.mark.slow
@given(st.lists(WORDS, max_size=25).map("".join))
def test_every_result_is_an_open_task_with_a_confidence_of_the_fallback(message: str) -> None:
    completed, confidence = read(message)
    assert set(completed) <= {0, 1}
    assert confidence in ({0.5, 0.7} if completed else {0.0})


@pytest.mark.slow
@given(st.text(), st.text())
def test_no_text_is_too_odd_to_be_read(body: str, message: str) -> None:
    completed, _ = read(message, body)
    assert all(not tasks(body)[position].is_checked for position in completed)


@pytest.mark.slow
@pytest.mark.parametrize(
    "unit", ["- [x] Add tests\n", "Add tests. ", "Add tests is not\n\n", "- " * 50 + "\n", "\0" * 30]
)
def test_a_message_made_to_take_long_does_not(unit: str) -> None:
    body = "".join(f"- [ ] Add tests {i}\n" for i in range(300)) + BODY
    assert not grows_too_fast(lambda size: read(unit * size, body), 4_000)


def test_a_task_that_is_wrapped_is_found_in_a_box_that_is_wrapped_too() -> None:
    body = "- [ ] multi line\n  continues here\n- [ ] Other\n"
    assert read("- [x] multi line\n  continues here", body) == ([0], 0.7)
