"""``accord apply`` with a reviewer's result: options, the JSON document, and what a step leaves on a runner."""

from __future__ import annotations

import gc
import json
import signal
from typing import TYPE_CHECKING, Any

import pytest
from support.reviews import PULL, approve, comment, needs_changes, review_stage, status

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from support.stage import Stage


@pytest.fixture(scope="module")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    with review_stage(tmp_path_factory.mktemp("command")) as stage:
        yield stage


@pytest.fixture
def runner(stage: Stage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Point the environment at the stage, as a runner would."""
    stage.server.reset()
    for name, value in {
        "GITHUB_API_URL": stage.server.url,
        "GITHUB_TOKEN": stage.server.token,
        "GITHUB_REPOSITORY": stage.repository,
        "GITHUB_OUTPUT": str(tmp_path / "output"),
        "GITHUB_STEP_SUMMARY": str(tmp_path / "summary"),
    }.items():
        monkeypatch.setenv(name, value)
    return tmp_path


def run(runner: Path, result: dict[str, Any], *options: str) -> int:
    from accord.cli.main import main

    file = runner / "review.json"
    file.write_text(json.dumps(result))
    terminator, threshold = signal.getsignal(signal.SIGTERM), gc.get_threshold()
    try:
        with pytest.raises(SystemExit) as ended:
            main(["apply", str(file), *options])
    finally:
        signal.signal(signal.SIGTERM, terminator)
        gc.set_threshold(*threshold)
    return int(ended.value.code or 0)


RESULT = needs_changes(comment("added.txt", 1), comment("src/long.txt"), comment("no|such.txt", 7))


def test_the_document_tells_what_became_of_verdict_and_comments(
    stage: Stage, runner: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(runner, RESULT, "--pull", f"#{PULL}", "--format", "json") == 0
    document = json.loads(capsys.readouterr().out)
    assert (document["kind"], document["outcome"]) == ("reviewer-result", "applied")
    review = document["review"]
    assert review["id"].isdecimal()
    assert review["verdict_requested"] == review["verdict_applied"] == "needs-changes"
    assert (review["inline"], review["file_level"], review["in_body"], review["follow_ups"]) == (1, 1, 1, 0)
    assert [(entry["op"], entry["target"]) for entry in document["operations"]] == [
        ("post-review", "2"),
        ("comment-on-file", "2"),
        ("move-work-item", "1"),
    ]
    assert status(stage) == ["status:needs-refinement"]


def test_a_step_shows_where_each_comment_went(runner: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(runner, RESULT, "--pull", str(PULL), "--work-item", "1") == 0
    summary = (runner / "summary").read_text()
    assert "Verdict `needs-changes`, applied as `needs-changes`: [review " in summary
    for row in ("| added.txt | 1 | inline |", "| src/long.txt |  | file-level |", "such.txt | 7 | body |"):
        assert row in summary
    assert "verdict_applied" in (runner / "output").read_text()
    assert "comments: 1 on lines, 1 on files, 1 in the body" in capsys.readouterr().out


WRONG = {
    "no pull request": [],
    "a pull request that is not a number": ["--pull", "main"],
    "a work item that is not a number": ["--pull", "2", "--work-item", "x"],
    "a branch for a commit": ["--pull", "2", "--commit", "main"],
    "a short commit": ["--pull", "2", "--commit", "abc1234"],
}


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_option_value_is_named(
    stage: Stage, runner: Path, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    assert run(runner, approve(), *WRONG[name]) == 2
    assert (WRONG[name] or ["--pull"])[-1] in capsys.readouterr().err.splitlines()[0]
    assert status(stage) == ["status:review"]
