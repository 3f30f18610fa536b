"""Boxes of the dashboard: which edit ticks them, and what a tick starts on the local GitHub."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.starts import BOT, PENDING, PULL, READY, Starts

from accord.engine.receipts import Outcome
from accord.starts.models import Tick
from accord.starts.status import hears_edits, ticks_between, write_box

ONE, TWO = write_box(7, "implement"), write_box(8, "retry")


def done(line: str) -> str:
    return line.replace("[ ]", "[x]", 1)


@pytest.mark.parametrize(
    ("before", "after", "ticks"),
    [
        (f"{ONE} a\n{TWO} b", f"{done(ONE)} a\n{TWO} b", [(7, "implement")]),
        (f"{ONE} a\n{TWO} b", f"{done(ONE)} a\r\n{done(TWO)} b", [(7, "implement"), (8, "retry")]),
        (f"{ONE} a", f"{done(ONE).replace('[x]', '[X]')} other words", [(7, "implement")]),
        (f"{done(ONE)} a", f"{done(ONE)} a and more", []),
        (f"{done(ONE)} a", f"{ONE} a", []),
        ("no box", f"{done(ONE)} a", []),
        (f"{ONE} a", done(write_box(7, "review")), []),
        (f"{ONE} a", done(write_box(9, "implement")), []),
        (f"{ONE} a", f"{ONE} a\n{done(ONE)} a", []),
        (f"> {ONE} a", f"> {done(ONE)} a", []),
        (f"{ONE} a", f"  {done(ONE)} a", []),
        ("- [ ] <!-- accord:box item=0 start=plan -->", "- [x] <!-- accord:box item=0 start=plan -->", []),
        ("- [ ] <!-- accord:box item=7 start=stop -->", "- [x] <!-- accord:box item=7 start=stop -->", []),
        ("", "", []),
    ],
)
def test_only_boxes_that_were_there_and_empty_are_ticked_by_an_edit(
    before: str, after: str, ticks: list[tuple[int, str]]
) -> None:
    assert ticks_between(before, after) == tuple(Tick(*tick) for tick in ticks)


PIECES = st.lists(st.sampled_from([ONE, TWO, done(ONE), "\n", "\r\n", "- [ ]", "<!--", "-->", "text", "\u2028"]))


@pytest.mark.slow
@given(PIECES, PIECES)
def test_any_texts_tick_only_boxes_of_both(before: list[str], after: list[str]) -> None:
    old, new = "".join(before), "".join(after)
    assert set(ticks_between(old, new)) <= {Tick(7, "implement")}
    assert ticks_between(old, old) == ()


@pytest.mark.parametrize(
    ("text", "hears"),
    [
        (b"on:\n  issues:\n    types: [labeled, edited]\n", True),
        (b"on:\n  issues:\n    types: [labeled]\n", False),
        (b"on:\n  issues:\n", False),
        (b"on: issues\n", False),
        (b"on: [", False),
        (None, False),
    ],
)
def test_a_workflow_hears_edits_only_if_its_events_say_so(text: bytes | None, hears: bool) -> None:
    assert hears_edits(text) == hears


@pytest.mark.slow
def test_a_tick_starts_what_its_line_says_once(starts: Starts) -> None:
    board = starts.dashboard(f"{write_box(READY, 'implement')} a", f"{write_box(PULL, 'review')} b")
    event = starts.ticked(board, READY, PULL)
    assert starts.deliver(event).outcome is Outcome.APPLIED
    assert starts.deliver(event).writes == 0
    assert starts.started == [("accord-implement.yml", {"work-item": "2"}), ("accord-review.yml", {"pull": "4"})]
    keys = [entry["inputs"]["start"] for entry in starts.dispatches]
    assert len({*keys}) == 2
    assert "asked for by `wanda`" in starts.status(READY)
    assert starts.comments(board) == []


@pytest.mark.slow
def test_a_box_makes_a_pending_item_ready(starts: Starts) -> None:
    board = starts.dashboard(f"{write_box(PENDING, 'ready')} a")
    event = starts.ticked(board, PENDING)
    assert "#3 cannot move" in starts.deliver(event).details["reason"]
    starts.stage.send("PATCH", f"{starts.root}/issues/{READY}", state="closed")
    starts.deliver(event)
    assert "status:ready" in starts.labels(PENDING)
    assert starts.deliver(event).writes == 0
    assert starts.started == []


@pytest.mark.parametrize("by", ["tess", "stranger"])
def test_people_without_write_access_tick_for_nothing(starts: Starts, by: str) -> None:
    event = starts.ticked(starts.dashboard(f"{write_box(READY, 'implement')} a"), READY, by=by)
    receipt = starts.deliver(event)
    assert (receipt.writes, receipt.details["reason"]) == (0, "Only people with write access start agents.")


def test_bots_and_edits_of_the_title_tick_nothing(starts: Starts) -> None:
    name, payload = starts.ticked(starts.dashboard(f"{write_box(READY, 'implement')} a"), READY)
    assert "bots start nothing" in starts.deliver((name, {**payload, "sender": BOT})).details["reason"]
    renamed: dict[str, Any] = {**payload, "changes": {"title": {"from": "x"}}}
    assert starts.deliver((name, renamed)).details["reason"] == "This event starts nothing."
    assert starts.started == []


@pytest.mark.parametrize("token", ["writer", "accord-sandbox-stranger-token"])
def test_boxes_of_an_issue_that_accord_did_not_write_start_nothing(starts: Starts, token: str) -> None:
    board = starts.dashboard(f"{write_box(READY, 'implement')} a", token=token)
    receipt = starts.deliver(starts.ticked(board, READY))
    assert (receipt.writes, starts.started) == (0, [])
    assert receipt.details["reason"] == f"#{board} is not a dashboard of `github-actions[bot]`."


@pytest.mark.slow
def test_a_command_on_the_dashboard_names_its_item(starts: Starts) -> None:
    board = starts.dashboard()
    starts.deliver(starts.comment(board, "/accord implement #99"))
    assert "#99 does not exist." in starts.status(board)
    event = starts.comment(board, f"/accord review #{PULL}")
    starts.deliver(event)
    assert starts.deliver(event).writes == 0
    assert starts.started == [("accord-review.yml", {"pull": "4"})]
    assert starts.reactions(event) == {"eyes": 1}
    assert (len(starts.comments(PULL)), len(starts.comments(board))) == (1, 1)
