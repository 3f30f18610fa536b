"""A table of edges judges moves, names the legal ones, and draws itself."""

import pytest

from accord.core.machine import Edge, Machine, NextMove, move_lines, moves_to_json

FINAL = '"thrown-away" does not lead to "on". Legal moves from "thrown-away": none, it is final.'
SWITCH_ON: Edge[bool] = Edge("off", "on", "power", lambda has_power: "" if has_power else "Power is missing.")
EDGES = (SWITCH_ON, Edge[bool]("on", "off"), Edge[bool]("off", "thrown-away"))
LAMP = Machine("lamp", "off", frozenset({"thrown-away"}), EDGES)


@pytest.mark.parametrize(
    ("source", "target", "has_power", "refusal"),
    [
        ("off", "on", True, ""),
        ("on", "off", False, ""),
        ("off", "on", False, "Power is missing."),
        ("on", "thrown-away", True, '"on" does not lead to "thrown-away". Legal moves from "on": off.'),
        ("thrown-away", "on", True, FINAL),
        ("off", "dim", True, "Unknown state `dim` of the lamp. States: off, on, thrown-away."),
    ],
)
def test_an_illegal_move_names_the_legal_ones(source: str, target: str, has_power: bool, refusal: str) -> None:
    assert LAMP.refusal(source, target, has_power) == refusal


def test_states_and_targets_come_from_the_table() -> None:
    assert LAMP.states == ("off", "on", "thrown-away")
    assert LAMP.targets("off") == ("on", "thrown-away")


def test_the_picture_is_the_table() -> None:
    assert LAMP.mermaid() == (
        "stateDiagram-v2\n"
        "    [*] --> off\n"
        "    thrown_away : thrown-away\n"
        "    off --> on : power\n"
        "    on --> off\n"
        "    off --> thrown_away\n"
        "    thrown_away --> [*]"
    )


DONE = NextMove("done", (), "accord move 1 --to done")
REVIEW = NextMove("review", ("spec.md", "an answer to UD-1"), "accord answer UD-1=TEXT")


def test_next_moves_are_listed_with_their_commands_and_what_they_need() -> None:
    assert moves_to_json([REVIEW]) == [
        {"to": "review", "missing": ["spec.md", "an answer to UD-1"], "command": "accord answer UD-1=TEXT"}
    ]
    assert move_lines([REVIEW, DONE]) == [
        "Next:",
        "  done",
        "    accord move 1 --to done",
        "  review (needs spec.md, an answer to UD-1)",
        "    accord answer UD-1=TEXT",
    ]
    assert move_lines([]) == []
