from accord.core.moves import NextMove, move_lines, moves_to_json

DONE = NextMove("done", (), "accord move 1 --to done")
REVIEW = NextMove("review", ("spec.md", "an answer to UD-1"), "accord answer UD-1=TEXT")


def test_json_lists_each_move_with_its_command() -> None:
    assert moves_to_json([REVIEW]) == [
        {"to": "review", "missing": ["spec.md", "an answer to UD-1"], "command": "accord answer UD-1=TEXT"}
    ]


def test_text_starts_with_the_moves_that_are_legal_now() -> None:
    assert move_lines([REVIEW, DONE]) == [
        "Next:",
        "  done",
        "    accord move 1 --to done",
        "  review (needs spec.md, an answer to UD-1)",
        "    accord answer UD-1=TEXT",
    ]


def test_an_end_state_prints_nothing() -> None:
    assert move_lines([]) == []
