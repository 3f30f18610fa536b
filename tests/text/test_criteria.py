"""Acceptance criteria become a checklist, and its ticks find their way back by the text alone."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.rotation import NIGHTLY

from accord.text.criteria import (
    MOST_CHARACTERS,
    checklist,
    criteria_boxes,
    criteria_in,
    posted_line,
    posted_text,
    with_item_ticks,
)
from accord.text.hidden import GUARD
from accord.text.outline import tasks
from accord.text.posting import PostingPolicy
from accord.text.redaction import Redactor

ITEM = """## Objective

- [ ] not a criterion

## Acceptance Criteria

- [ ] It works <!-- really -->
  - [x] It is
    fast
- [ ] It works

```
- [ ] code
```

## Context

- [ ] It works
"""

SPLIT = """## Acceptance Criteria

- [ ] One
  - a detail
    - of it
- Two

### Tests

- Unit
  - [ ] Three
  - Four

#### Acceptance criteria

1. Five

## Notes

- [ ] Six
"""


def safe(text: str) -> str:
    return posted_text(text, Redactor(("correct-horse",)), PostingPolicy())


def section(*criteria: str, before: str = "") -> str:
    return checklist(criteria, before, safe, 12)


@pytest.mark.parametrize(
    ("body", "criteria"),
    [
        (ITEM, ["It works", "It is fast"]),
        ("# acceptance criteria:\n\n1. One\n2. Two\n", ["One", "Two"]),
        ("## 4. **Acceptance Criteria**:\n\n- [ ] One\n", ["One"]),
        ("## Acceptance Criteria\n\nNone\n", []),
        ("- [ ] It works\n", []),
        (SPLIT, ["One", "Two", "Three", "Four", "Five"]),
        ("# Acceptance Criteria\n\n- Group\n  - One\n- Two\n", ["Group", "One", "Two"]),
        ("## Acceptance Criteria\n\n- [ ] <!-- rebase-check -->If you want to rebase\n", []),
    ],
)
def test_criteria_are_the_boxes_below_their_heading_or_else_the_entries(body: str, criteria: list[str]) -> None:
    assert criteria_in(body) == criteria


def test_the_checklist_begins_unticked_and_keeps_the_ticks_of_texts_that_stay() -> None:
    first = section("a", "b", "c")
    assert [(box.text, box.is_checked) for box in criteria_boxes(first)] == [("a", False), ("b", False), ("c", False)]
    ticked = first.replace("- [ ] b", "- [X] b").replace("- [ ] c", "- [x] c")
    after = criteria_boxes(f"Text\n\n- [x] a\n\n{section('d', 'a', 'b', before=ticked)}\n\nMore")
    assert [(box.text, box.is_checked) for box in after] == [("d", False), ("a", False), ("b", True)]
    assert section() == ""


@pytest.mark.parametrize(
    ("text", "posted"),
    [
        ("ask @octocat", f"ask @{GUARD}octocat"), ("Fixes #3", f"F{GUARD}ixes #3"),
        ("<details><summary>x", "`<details><summary>x`"),
        ("the password correct-horse", "the password [redacted: secret of the environment]"),
        ("x <!-- accord:criteria-end -->", "x"), ("```", "```"), ("[skip ci] now", "(skip ci) now"),
    ],
)  # fmt: skip
def test_a_criterion_is_posted_as_one_box_that_triggers_nothing(text: str, posted: str) -> None:
    assert posted_line(text, safe) == f"- [ ] {posted}"
    assert with_item_ticks(f"# Acceptance criteria\n- [ ] {text}\n", {posted}, safe).count("[x]") == 1


@pytest.mark.slow
@settings(max_examples=100 if NIGHTLY else 30)
@given(st.lists(st.text(max_size=40), max_size=5))
def test_every_posted_criterion_is_read_back_as_it_stands(texts: list[str]) -> None:
    criteria = [" ".join(text.split()) for text in texts if text.strip()]
    lines = [line for text in criteria if (line := posted_line(text, safe))]
    boxes = criteria_boxes(f"Summary\n\n{section(*criteria)}\n\n### Scope")
    assert [f"- [ ] {box.text}" for box in boxes] == list(dict.fromkeys(lines))
    assert all(posted_line(box.text, safe) == f"- [ ] {box.text}" for box in boxes)


def test_many_criteria_fit_beside_the_rest_of_the_body() -> None:
    shown = section(*(f"{number} {'x' * 500}" for number in range(100)))
    assert len(shown) < MOST_CHARACTERS + 200
    assert tasks(shown)[-1].text.startswith("Meet the other acceptance criteria of #12 (6")


def test_only_the_same_text_among_the_criteria_is_ticked_in_the_item() -> None:
    ticked = with_item_ticks(ITEM, {"It works", "Context", "it is fast"}, safe)
    before, heading, rest = ITEM.partition("## Acceptance Criteria")
    criteria, context, end = rest.partition("## Context")
    assert ticked == before + heading + criteria.replace("- [ ] It", "- [x] It") + context + end
    assert with_item_ticks(ticked, {"It works"}, safe) == ticked


@pytest.mark.parametrize("body", ["- [ ] a", "<!-- accord:criteria -->\n- [ ] a", "<!-- accord:criteria-end -->"])
def test_boxes_outside_of_the_marked_section_are_not_criteria(body: str) -> None:
    assert criteria_boxes(body) == []
