"""A text with a history at a ref: the second of two writers is refused, and a lost answer loses nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from support.stage import START, Stage, staged

from accord.core.clock import ManualClock
from accord.github.client import GitHub
from accord.github.models import Access
from accord.github.state import Chain, append, newest
from accord_sandbox.server import Fault

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

SEED = """
repositories: [{name: octo/code, files: {a.txt: "One"}}]
"""


@pytest.fixture
def stage(tmp_path: Path) -> Iterator[Stage]:
    (tmp_path / "seed.yml").write_text(SEED)
    with staged(tmp_path / "sandbox", seed=tmp_path / "seed.yml", rate_limits=None) as stage:
        yield stage


def chain(stage: Stage) -> Chain:
    return Chain(stage.adapter(), "refs/accord/texts/1", "A text.", stage.clock)


def test_versions_follow_each_other_and_the_newest_is_read(stage: Stage) -> None:
    assert newest(chain(stage)) is None
    first = append(chain(stage), None, "one\n\nmore", "First")
    assert newest(chain(stage)) == first
    second = append(chain(stage), first, "two", "Second")
    found = newest(chain(stage))
    assert found == second
    assert found is not None
    assert found.text == "two"


def test_who_knows_an_old_version_writes_nothing(stage: Stage) -> None:
    first = append(chain(stage), None, "one", "First")
    second = append(chain(stage), first, "two", "Second")
    assert append(chain(stage), first, "other", "Other") is None
    assert append(chain(stage), None, "other", "Other") is None
    assert newest(chain(stage)) == second


class Interrupted(ManualClock):
    """A clock on which others work while somebody waits for the first time."""

    def __init__(self, others: Callable[[], object]) -> None:
        super().__init__(START)
        self.others: Callable[[], object] | None = others

    def sleep(self, seconds: float) -> None:
        super().sleep(seconds)
        others, self.others = self.others, None
        if others:
            others()


def test_a_write_whose_answer_is_lost_counts_although_others_went_on_meanwhile(stage: Stage) -> None:
    first = append(chain(stage), None, "one", "First")
    clock = Interrupted(lambda: follow(stage))
    access = Access(stage.repository, stage.server.token, stage.server.url)
    mine = Chain(GitHub(access, clock, lambda *_: None), "refs/accord/texts/1", "A text.", clock)
    stage.server.faults.add(Fault("lost-after", method="PATCH"))
    written = append(mine, first, "mine", "Mine")
    found = newest(chain(stage))
    assert found is not None
    assert found.text == "after mine"  # others went on between the lost answer and the second try
    assert written is not None
    assert written.text == "mine"


def follow(stage: Stage) -> object:
    where = chain(stage)
    last = newest(where)
    assert last is not None
    return append(where, last, f"after {last.text}", "After")
