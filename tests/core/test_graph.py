"""Orders and cycles, held against the obvious slow way."""

from itertools import permutations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from accord.core.machine import ancestors, dependency_order, find_cycle

GRAPHS = st.integers(0, 6).flatmap(
    lambda size: st.fixed_dictionaries(
        {i: st.lists(st.integers(0, max(size - 1, 0)), max_size=3, unique=True) for i in range(size)}
    )
)
ACYCLIC = st.lists(st.integers(0, 7), max_size=14).map(
    lambda picks: {
        i: sorted({(i + 1 + pick) for pick in picks if i + 1 + pick < 8 and pick % 3 != i % 3}) for i in range(8)
    }
)


def reachable(blockers: dict[int, list[int]], start: int) -> set[int]:
    seen: set[int] = set()
    todo = list(blockers[start])
    while todo:
        position = todo.pop()
        if position not in seen:
            seen.add(position)
            todo += blockers[position]
    return seen


@pytest.mark.slow
@given(GRAPHS)
def test_a_cycle_is_shown_whenever_there_is_one_and_each_of_it_waits_for_the_next(
    blockers: dict[int, list[int]],
) -> None:
    cycle = find_cycle(blockers)
    assert bool(cycle) == any(i in reachable(blockers, i) for i in blockers)
    assert len(set(cycle)) == len(cycle)
    assert all(after in blockers[before] for before, after in zip(cycle, cycle[1:] + cycle[:1], strict=True))


@pytest.mark.slow
@given(GRAPHS)
def test_the_first_ready_item_comes_first(blockers: dict[int, list[int]]) -> None:
    if find_cycle(blockers):
        return
    legal = (
        order
        for order in permutations(blockers)
        if all(set(blockers[position]) <= set(order[:i]) for i, position in enumerate(order))
    )
    assert tuple(dependency_order(blockers)) == min(legal)


@pytest.mark.slow
@given(ACYCLIC)
def test_an_item_waits_for_everything_that_can_be_reached(blockers: dict[int, list[int]]) -> None:
    masks = ancestors(blockers)
    for position in blockers:
        assert {i for i in range(8) if masks[position] >> i & 1} == reachable(blockers, position)


def test_a_long_chain_does_not_recurse_deeply() -> None:
    chain = {i: [i + 1] if i < 4999 else [] for i in range(5000)}
    assert dependency_order(chain) == list(range(4999, -1, -1))
    assert ancestors(chain)[0].bit_count() == 4999


@pytest.mark.parametrize("blockers", [{0: [0]}, {0: [1], 1: [0]}, {0: [], 1: [2], 2: [3], 3: [1]}])
def test_the_smallest_cycles_are_found(blockers: dict[int, list[int]]) -> None:
    assert sorted(find_cycle(blockers)) == [i for i in blockers if blockers[i]]
