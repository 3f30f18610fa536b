"""Every block of docs/getting-started.md is run in order, and leads to a merged pull request."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest
from screenshots import EXAMPLES, MOST_BYTES, VIEWS
from support.forks import Forked
from walkthrough import PAGE, begun, steps, walk_through


def forked_accord(arguments: Sequence[str], folder: Path, environment: Mapping[str, str]) -> tuple[int, str, str]:
    with Forked(arguments, folder, environment) as started:
        out, err = started.communicate(timeout=600)
    return started.returncode or 0, out, err


@pytest.mark.slow
def test_the_blocks_of_getting_started_lead_to_a_merged_pull_request(tmp_path: Path) -> None:
    reached = []
    with begun(tmp_path, forked_accord) as walk:
        walk_through(walk, reached.append)
        world = walk.world
    assert len(reached) == len(VIEWS)
    (pull,) = world["pulls"]
    assert pull["merged"]
    assert pull["body"].count("- [x] ") == 4
    assert any("@maintainer" in comment["body"] for comment in pull["comments"])
    states = {issue["number"]: issue["state"] for issue in world["issues"]}
    assert (len(states), states[2]) == (11, "closed")


def test_the_pictures_are_those_of_the_page_and_small() -> None:
    shown = [Path(name).name for kind, name in steps(PAGE.read_text(encoding="utf-8")) if kind == "picture"]
    images = PAGE.parent / "images"
    assert shown == list(VIEWS)
    assert {path.name for path in images.iterdir()} == {*VIEWS, *(f"example-{name}.png" for name in EXAMPLES)}
    assert all((images / name).stat().st_size <= MOST_BYTES for name in shown)


@pytest.mark.parametrize("words", [["workflow", "run", "x.yml"], ["pr", "merge", "12"]])
def test_a_command_of_gh_that_its_stand_in_does_not_know_fails(words: list[str]) -> None:
    from stand_ins import gh

    with pytest.raises(SystemExit):
        gh(words)
