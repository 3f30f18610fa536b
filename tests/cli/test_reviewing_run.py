"""``accord verify run``: who may ask for a verdict on an open pull request."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from support.commands import Accord
from support.reviewing_turns import OPEN, reviewed
from support.stage import Stage


@pytest.fixture(scope="module")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    with reviewed(tmp_path_factory.mktemp("reviewed"), is_short=True) as opened:
        yield opened


@pytest.mark.parametrize(
    ("event", "actor", "reason"),
    [
        ("issue_comment", "mallory", "not-merged"),
        ("issue_comment", "other[bot]", "not-merged"),
        ("issue_comment", "maintainer", "no-work-item"),
        ("workflow_dispatch", "mallory", "no-work-item"),  # who may start workflows may write
        ("pull_request", "maintainer", "not-merged"),
        ("", "", "no-work-item"),
    ],
)
def test_the_event_and_who_caused_it_decide_whether_an_open_pull_request_is_judged(
    accord: Accord, stage: Stage, tmp_path: Path, event: str, actor: str, reason: str
) -> None:
    accord.on(stage, GITHUB_EVENT_NAME=event, GITHUB_ACTOR=actor)
    registry = accord.file("registry.yml", "default_agent: script\nagents: {script: {command: [sh], codec: codex}}\n")
    words = ("--registry", registry, "--run-dir", tmp_path / "run")
    turn = accord.document("verify", "run", "--pull", OPEN, "--dry-run", *words)
    assert (turn["reason"], turn["requests"]["write"]) == (reason, 0)
