"""Completed tasks are ticked where they stand; nothing else in a body changes, however hostile it is."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from accord.loops.keepalive import tick
from accord.loops.outputs import texts_in
from accord.runner.models import RunOutputs


def outputs(*tasks: str, **more: str) -> RunOutputs:
    return RunOutputs(llm_completed_tasks=json.dumps(tasks), **{"llm_confidence": "0.9", **more})


@pytest.mark.parametrize(
    ("body", "done", "expected"),
    [
        ("- [ ] Add\n- [ ] Add tests\n", ["Add"], "- [x] Add\n- [ ] Add tests\n"),
        ("- [ ] Add\n- [ ] Add tests\n", ["Add tests"], "- [ ] Add\n- [x] Add tests\n"),
        ("- [ ] a\r\n- [ ] b\r\n", ["b"], "- [ ] a\r\n- [x] b\r\n"),
        ("```\n- [ ] a\n```\n- [ ] a\n", ["a"], "```\n- [ ] a\n```\n- [x] a\n"),
        ("<!-- - [ ] a -->\n\n- [ ] a", ["a"], "<!-- - [ ] a -->\n\n- [x] a"),
        ("- [ ] match \\d+ and $1\n", ["match \\d+ and $1"], "- [x] match \\d+ and $1\n"),
        ("- [ ] same\n- [ ] same\n", ["same"], "- [x] same\n- [ ] same\n"),
        ("- [x] a\n", ["a"], "- [x] a\n"),
        ("- [ ] Add\n- [ ] b\n", ["add", "Ad", "- [ ] b", "Add\n- [ ] b"], "- [ ] Add\n- [ ] b\n"),
        ("- [ ] a\n  - [ ] b\n1. [ ] c\n", ["c", "b"], "- [ ] a\n  - [x] b\n1. [x] c\n"),
        ("- [ ] -->\n- [ ] <b>\n", ["-->"], "- [x] -->\n- [ ] <b>\n"),
        ("\ufeff- [ ] é\u2028\n- [ ] b\n", ["b"], "\ufeff- [ ] é\u2028\n- [x] b\n"),
    ],
)  # fmt: skip
def test_a_completed_task_is_ticked_and_nothing_else_changes(body: str, done: list[str], expected: str) -> None:
    assert tick(body, outputs(*done))[0] == expected


def test_a_task_that_is_not_open_in_the_body_changes_nothing() -> None:
    assert tick("- [ ] a\n", outputs("a", "rm -rf", "a")) == ("- [x] a\n", 1)


@pytest.mark.parametrize(
    "word", [{"exit_code": "1"}, {"llm_confidence": "0.4"}, {"llm_confidence": ""}, {"llm_confidence": "nan"}]
)
def test_a_run_that_failed_or_an_analysis_that_is_unsure_ticks_nothing(word: dict[str, str]) -> None:
    assert tick("- [ ] a\n", outputs("a", **word)) == ("- [ ] a\n", 0)


@pytest.mark.parametrize("text", ["", "null", "{}", '["a", 1]', "[" * 100_000, "not json"])
def test_only_an_array_of_strings_names_tasks(text: str) -> None:
    assert texts_in(text) == ()


def test_a_body_as_long_as_github_takes_is_ticked() -> None:
    lines = [f"- [ ] task {number}: " + "x" * 50 + "\r\n" for number in range(900)]
    done = [line[6:-2] for line in lines[::2]]
    body, _ = tick("".join(lines), outputs(*done))
    assert body == "".join(line.replace("[ ]", "[x]") if number % 2 == 0 else line for number, line in enumerate(lines))


@pytest.mark.slow
@given(st.text(alphabet="-[] x\n\r\t`<!>*a1.", max_size=120), st.lists(st.sampled_from(["a", "a1", "*a", "x"])))
def test_only_marks_change_in_any_text(body: str, done: list[str]) -> None:
    found, _ = tick(body, outputs(*done))
    assert len(found) == len(body)
    changed = [i for i, (old, new) in enumerate(zip(body, found, strict=True)) if old != new]
    assert all(body[i - 1 : i + 2] == "[ ]" and found[i] == "x" for i in changed)
