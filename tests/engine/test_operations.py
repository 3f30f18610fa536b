"""A dry run estimates how long GitHub's limits make the operations take that are still to do."""

from accord.engine.operations import Operation, OperationStatus, planned_seconds
from accord.github.pacing import estimate_seconds


class Note(Operation, op="note", is_content=True):
    pass


class Touch(Operation, op="touch"):
    pass


def test_only_operations_to_do_take_time_and_content_takes_more() -> None:
    coming = [*[Note(str(n), None) for n in range(100)], *[Touch(str(n), None) for n in range(50)]]
    ended = [Note("a", OperationStatus.SKIPPED), Touch("b", OperationStatus.DONE)] * 100
    assert planned_seconds(ended) == 0
    assert planned_seconds([*ended, *coming]) == planned_seconds(coming) == estimate_seconds(100, 50)
    assert planned_seconds(coming) > planned_seconds([Touch(str(n), None) for n in range(150)])
