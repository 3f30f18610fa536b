"""Pull requests of accord that another merge made unmergeable: the base is merged in, or a person is asked."""

from pathlib import Path

import pytest
from support.flows import ITEM, Flow

from accord.github.pulls import read_pull
from accord.loops.run import LOOPS, pulls_due


def due(flow: Flow, loop: str = "keepalive") -> list[int]:
    return list(pulls_due(LOOPS[loop], flow.context()))


@pytest.mark.slow
@pytest.mark.parametrize("is_on", [True, False])
def test_a_base_that_git_can_merge_where_github_cannot_is_merged_in(flow: Flow, tmp_path: Path, is_on: bool) -> None:
    by_hand = flow.commit(tmp_path, f"accord/{ITEM}", b="b = 1\nmine\n")
    if not is_on:
        flow.unlabel("agents:keepalive")
        assert due(flow) == []
    base = flow.commit(tmp_path, "main", b="b = 1\ntheirs\n")
    assert flow.pull["mergeable"] is False
    assert (due(flow), due(flow, "autofix")) == ([2], [])
    turn = flow.begin("1")
    assert (turn.outcome, turn.decision.reason) == ("acted", "unmergeable")
    assert (flow.pull["mergeable"], flow.parents) == (True, [by_hand, base])
    head = flow.stage.get(f"{flow.root}/git/commits/{flow.pull['head']['sha']}")
    assert (head["verification"]["verified"], head["author"]["name"]) == (True, "github-actions[bot]")
    assert (flow.file("src/b.py"), flow.file("src/a.py")) == ("b = 1\nmine\ntheirs\n", "a = 2\n")
    again = flow.begin("2")
    assert again.decision.reason == ("checks-missing" if is_on else "not-enabled")
    assert again.context.github.requests.write == 0


@pytest.mark.slow
def test_a_conflict_asks_a_person_once_for_the_same_commits(flow: Flow, tmp_path: Path) -> None:
    flow.commit(tmp_path, "main", a="a = 3\n")
    head = flow.pull["head"]["sha"]
    turn = flow.begin("1")
    assert (turn.outcome, turn.decision.reason, "needs-human" in flow.labels) == ("asked", "conflict", True)
    (text,) = flow.asks
    assert "main conflicts with accord/1 in src/a.py." in text
    assert (flow.pull["head"]["sha"], flow.begin("2").decision.reason) == (head, "needs-human")
    flow.unlabel("needs-human")
    assert flow.begin("3").outcome == "asked"
    assert (len(flow.asks), "needs-human" in flow.labels) == (1, True)
    flow.unlabel("needs-human")
    flow.commit(tmp_path, "main", c="c = 1\n")
    flow.begin("4")
    assert len(flow.asks) == 2


@pytest.mark.slow
def test_an_item_that_a_person_closed_costs_no_more_runs_and_asks_once(flow: Flow) -> None:
    item = f"{flow.root}/issues/{ITEM}"
    flow.stage.send("PATCH", item, state="closed", state_reason="not_planned")
    turn = flow.begin("1")
    assert (turn.outcome, turn.decision.reason, "needs-human" in flow.labels) == ("asked", "item-closed", True)
    assert "work item is closed" in flow.asks[0]
    flow.unlabel("needs-human")
    assert (flow.begin("2").decision.reason, len(flow.asks)) == ("item-closed", 1)
    flow.stage.send("PATCH", item, state="open")
    flow.unlabel("needs-human")
    assert flow.begin("3").outcome == "begun"


@pytest.mark.slow
def test_a_pull_request_of_a_person_is_left_alone(flow: Flow, tmp_path: Path) -> None:
    flow.commit(tmp_path, "main", a="a = 3\n")
    body = flow.body.partition("<!-- accord:revision")[0]
    flow.stage.send("PATCH", f"{flow.root}/pulls/2", body=body)
    flow.unlabel("agents:keepalive")
    assert (due(flow), flow.begin().decision.reason) == ([], "not-enabled")


def test_a_branch_that_its_rules_call_outdated_is_not_mergeable(flow: Flow) -> None:
    assert read_pull(flow.pull).is_mergeable is True
    assert read_pull({**flow.pull, "mergeable_state": "behind"}).is_mergeable is False
