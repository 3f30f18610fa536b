"""Where a handoff stands: what its next move lacks, what it asks, and which files hold handoffs."""

import json
import shlex
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from support.handoffs import EVERYTHING, OUTPUTS, PLAN, PLANNED, QUESTION, REVIEW, VERIFICATION, by, handoff, patch
from support.stage import Stage, staged
from support.trees import git

from accord.board.documents import place_handoff, place_item_handoff, read_documents
from accord.board.facts import read_repository
from accord.board.models import address_of
from accord.handoffs.plan import decide_move
from accord.handoffs.store import HandoffStore, with_block

NOW = datetime(2026, 11, 2, 9, tzinfo=UTC)
PLACE = "'work/the task.json'"


def tip(stage: Stage, number: int) -> str:
    sha = stage.adapter().ref(f"refs/accord/handoffs/{number}")
    assert sha
    return sha


@pytest.mark.parametrize(
    ("task", "section", "kind", "why", "command"),
    [
        (handoff("backlog"), "ready", "handoff", "from backlog to planning", "move 'work/the task.json' --to planning"),
        (
            handoff("implementing", planningArtifact=PLAN, testingArtifacts={"planned": PLANNED}),
            "needs_you",
            "handoff",
            "cannot move from implementing to review without reviewArtifact, verificationArtifact",
            "patch 'work/the task.json' PATCH.json --role developer",
        ),
        (
            handoff("implementing", **{**EVERYTHING, "verificationArtifact": None}),
            "needs_you",
            "handoff",
            "without verificationArtifact",
            "PATCH.json --role tester",
        ),
        (handoff("implementing", **EVERYTHING), "ready", "handoff", "from implementing to review", "--to review"),
        (
            handoff(
                "review", reviewArtifact={**REVIEW, "decision": "changes_requested"}, verificationArtifact=VERIFICATION
            ),
            "needs_you",
            "handoff",
            "without reviewArtifact.decision approved",
            "--role reviewer",
        ),
        (
            handoff("awaiting_human", awaitingHumanArtifact=QUESTION),
            "needs_you",
            "question",
            "Which separator?",
            "--to planning --role human",
        ),
        (handoff("implementing", planningArtifact={"goals": "text"}), "needs_you", "broken", "breaks", "handoff check"),
    ],
)
def test_a_handoff_is_where_the_next_step_is_someones(
    task: dict[str, Any], section: str, kind: str, why: str, command: str
) -> None:
    ((found, entry),) = place_handoff(task, "T-00123", "Export tables", PLACE, NOW)
    assert (found, entry.kind, entry.id, entry.title) == (section, kind, "T-00123", "Export tables")
    assert why in entry.why
    assert command in entry.command
    assert "work/the task.json" in shlex.split(entry.command)


@pytest.mark.parametrize("status", ["done", "cancelled"])
def test_a_handoff_that_is_over_is_left_out(status: str) -> None:
    assert list(place_handoff(handoff(status, **EVERYTHING), "T-00123", "Export tables", PLACE, NOW)) == []


@pytest.mark.slow
def test_only_the_ref_of_an_issues_handoff_counts(tmp_path: Path) -> None:
    """A block that a person wrote into the body shows nothing; one that this version cannot read needs a person."""
    forged = with_block("", handoff("done", **EVERYTHING), "0" * 40)
    issues = [{"title": title, "body": body} for title, body in (("Stored", None), ("Forged", forged), ("Odd", None))]
    with staged(
        tmp_path, seed={"repositories": [{"name": "octo/web", "files": {"a.txt": "One\n"}, "issues": issues}]}
    ) as stage:
        github, plan = stage.adapter(), patch(**OUTPUTS)
        for number in (1, 3):
            HandoffStore(github, number).decide(lambda task: decide_move(task, "planning", by("planner"), plan))
        later = github.create_commit("x\n\n{}", github.commit_object(tip(stage, 3)).tree, [tip(stage, 3)])
        github.forward_ref("refs/accord/handoffs/3", later.sha)
        address = address_of("octo/web", "https://github.com")
        facts = read_repository(github, address, timedelta(days=7))
    placed = sorted(
        (found for one in facts.handoffs for found in place_item_handoff(one, address, NOW)),
        key=lambda found: found[1].id,
    )
    assert [(section, entry.kind, entry.id) for section, entry in placed] == [
        ("ready", "handoff", "#1"),
        ("needs_you", "broken", "#3"),
    ]
    assert placed[0][1].command == (
        "accord handoff move --work-item 1 --repo octo/web --to implementing --role planner"
    )


def test_handoffs_are_found_wherever_git_knows_or_sees_them(tmp_path: Path) -> None:
    (tmp_path / "docs").mkdir()
    (tmp_path / "tests").mkdir()
    files: dict[str, Any] = {
        "docs/export.json": handoff("backlog"),
        "new.json": {**handoff("backlog"), "title": "New"},
        "tests/sample.json": handoff("backlog"),
        "ignored.json": handoff("backlog"),
        "schema.json": {"properties": {"canonicalTaskId": {"type": "string"}}},
        "list.json": [handoff("backlog")],
    }
    for name, content in files.items():
        (tmp_path / name).write_text(json.dumps(content, indent=1), encoding="utf-8")
    (tmp_path / "broken.json").write_text('{"canonicalTaskId": ', encoding="utf-8")
    assert read_documents(tmp_path, NOW).ready == ()
    git(tmp_path, "init", "--quiet")
    (tmp_path / ".gitignore").write_text("ignored.json\n", encoding="utf-8")
    git(tmp_path, "add", "docs")
    assert sorted(entry.title for entry in read_documents(tmp_path, NOW).ready) == ["Export tables", "New"]
