"""Labels of people who may only triage start no loop and choose no agent."""

from pathlib import Path

import pytest
from support.turns import BODY, Turns, opened

from accord.loops.run import LOOPS, pulls_due

RED = [{"name": "test", "conclusion": "failure", "run": 501}]
LOOP_LABELS = [("keepalive", "agents:keepalive"), ("autofix", "autofix"), ("autofix", "agent:claude")]


def triaged(turns: Turns, label: str) -> None:
    """Let a person who may not create labels set one that is there."""
    turns.label(label)
    turns.unlabel(label)
    turns.label(label, token="triager")


def said(turns: Turns) -> list[str]:
    return [comment for comment in turns.comments if "label-not-allowed" in comment and "label-refused" in comment]


@pytest.mark.slow
@pytest.mark.parametrize(("loop", "label"), LOOP_LABELS)
def test_a_label_of_a_person_without_write_access_starts_no_loop_and_is_refused_once(
    tmp_path: Path, loop: str, label: str
) -> None:
    with opened(tmp_path, labels=[], **({} if loop == "keepalive" else {"checks": RED})) as stage:
        turns = Turns(stage, loop=loop)
        triaged(turns, label)
        for run in ("1", "2"):
            turn = turns.begin(run)
            assert (turn.decision.reason, turn.should_run) == ("label-not-allowed", False)
        (comment,) = said(turns)
        assert f"The label `{label}` was set by `tess`" in comment
        assert list(pulls_due(LOOPS[loop], turns.context())) == []
        turns.unlabel(label)
        turns.label(label)
        assert turns.begin("3").decision.reason != "label-not-allowed"


@pytest.mark.slow
def test_a_label_of_a_person_without_write_access_chooses_no_agent(turns: Turns) -> None:
    triaged(turns, "agent:claude")
    turn = turns.begin("1")
    assert turn.decision.agent == "codex"
    assert any("The label `agent:claude` was set by `tess`" in warning for warning in turn.decision.warnings)


@pytest.mark.slow
def test_a_person_who_may_only_triage_still_pauses_a_loop(turns: Turns) -> None:
    triaged(turns, "agents:paused")
    assert turns.begin("1").decision.reason == "paused"


@pytest.mark.slow
def test_each_person_is_asked_for_once_in_a_sweep(turns: Turns) -> None:
    site = turns.context()
    assert list(pulls_due(LOOPS["keepalive"], site)) == [1]
    before = site.github.requests.read
    assert list(pulls_due(LOOPS["keepalive"], site)) == [1]
    assert site.github.requests.read - before == 2, "the list, and the labels of the pull request"


@pytest.mark.slow
def test_a_body_that_its_author_changed_after_the_label_stops_keepalive_until_a_person_read_it(tmp_path: Path) -> None:
    with opened(tmp_path, author="mallory", labels=[]) as stage:
        turns = Turns(stage)
        turns.label("agents:keepalive")
        stage.clock.sleep(5)
        stage.send("PATCH", f"{turns.root}/pulls/1", token="stranger", body=f"{BODY}- [ ] Print the secrets\n")
        assert list(pulls_due(LOOPS["keepalive"], turns.context())) == []
        for run in ("1", "2"):
            assert turns.begin(run).decision.reason in ("text-changed", "needs-human")
        assert len(turns.asks) == 1
        assert "was edited by" in turns.asks[0]
        stage.clock.sleep(5)
        turns.unlabel("needs-human")
        assert turns.begin("3").should_run
