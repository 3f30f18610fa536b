"""``accord apply`` with a reviewer's result: options, the JSON document, and the files of a step."""

import pytest
from support.commands import Accord
from support.reviews import PULL, approve, comment, needs_changes, post, review_stage, status
from support.stage import Stage

STAGE = review_stage
RESULT = needs_changes(comment("added.txt", 1), comment("src/long.txt"), comment("no|such.txt", 7))


@pytest.fixture
def accord(accord: Accord, stage: Stage) -> Accord:
    accord.on(stage)
    return accord


@pytest.mark.slow
def test_the_document_and_the_step_tell_what_became_of_verdict_and_comments(accord: Accord, stage: Stage) -> None:
    step, file = accord.in_step(annotates=False), accord.file("review.json", RESULT)
    planned = accord("apply", file, "--pull", PULL, "--dry-run").out
    assert "comments: 1 on lines, 1 on files, 1 in the body" in planned
    document = accord.document("apply", file, "--pull", f"#{PULL}", "--work-item", 1)
    assert (document["kind"], document["outcome"]) == ("reviewer-result", "applied")
    review = document["review"]
    assert review["id"].isdecimal()
    assert review["verdict_requested"] == review["verdict_applied"] == "needs-changes"
    assert (review["inline"], review["file_level"], review["in_body"], review["follow_ups"]) == (1, 1, 1, 0)
    targets = {entry["op"]: entry["target"] for entry in document["operations"]}
    assert targets == {"post-review": "2", "comment-on-file": "2", "move-work-item": "1"}
    assert status(stage) == ["status:needs-refinement"]
    assert "Verdict `needs-changes`, applied as `needs-changes`: [review " in step.summary
    for row in ("| added.txt | 1 | inline |", "| src/long.txt |  | file-level |", "such.txt | 7 | body |"):
        assert row in step.summary
    assert "verdict_applied" in step.outputs["review"]


def test_a_wrong_option_value_is_named(accord: Accord, stage: Stage) -> None:
    pull, file = ("--pull", "2"), accord.file("review.json", approve())
    wrong = ((*pull, "--work-item", "x"), (*pull, "--commit", "main"), (*pull, "--commit", "abc1234"))
    for options in ((), ("--pull", "main"), *wrong):
        ended = accord("apply", file, *options)
        assert ended.code == 2
        assert (options or ["--pull"])[-1] in ended.err.splitlines()[0]
    assert status(stage) == ["status:review"]


@pytest.mark.slow
def test_a_dry_run_of_a_second_review_lists_what_is_kept_and_what_is_resolved(accord: Accord, stage: Stage) -> None:
    post(stage, needs_changes(comment("added.txt", 1), comment("added.txt", 2, "What: b.\nWhy: c.\nFix: d.")))
    result = needs_changes(comment("added.txt", 1), comment("src/long.txt", 3))
    file = accord.file("review.json", result)
    ended = accord("apply", file, "--pull", PULL, "--dry-run")
    assert "comments: 1 on lines, 1 in open threads; threads without a finding: 1 resolved" in ended.out
    for line in ("  kept       added.txt:1", "  inline     src/long.txt:3", "planned  resolve-thread"):
        assert line in ended.out
    step = accord.in_step(annotates=False)
    accord("apply", file, "--pull", PULL)
    assert "Threads resolved, because their finding is gone: 1." in step.summary


def test_a_limit_keeps_comments_in_the_body(accord: Accord, stage: Stage) -> None:
    document = accord.document("apply", accord.file("review.json", RESULT), "--pull", PULL, "--max-comments", 1)
    review = document["review"]
    assert (review["inline"], review["file_level"], review["in_body"]) == (1, 0, 2)
