"""The page on migration tells the truth: its workflow, what doctor says of it, and what doctor corrects."""

from __future__ import annotations

from pathlib import Path

from markdown_it import MarkdownIt
from support.commands import Accord
from support.trees import commit, git

from accord.workflows.fixes import TWO_JOBS

PAGE = Path(__file__).parents[2] / "docs/migration.md"


def test_doctor_says_and_corrects_what_the_page_shows(accord: Accord, tmp_path: Path) -> None:
    blocks = [
        token for token in MarkdownIt("commonmark").parse(PAGE.read_text(encoding="utf-8")) if token.type == "fence"
    ]
    (workflow,) = [block.content for block in blocks if block.info == "yaml"]
    found, corrected = [block.content.splitlines() for block in blocks if block.info == "text"]
    path = tmp_path / ".github/workflows/agent.yml"
    path.parent.mkdir(parents=True)
    path.write_text(workflow)
    git(tmp_path, "init", "-q", "-b", "main")
    commit(tmp_path)
    said = accord("doctor", "--root", tmp_path)
    assert said.code == 1
    assert [line for line in found if line not in said.out + said.err] == []
    fixed = accord("doctor", "--root", tmp_path, "--fix")
    assert [line for line in corrected if line not in fixed.out + fixed.err] == []
    variable = "env:\n          COMMENT_BODY: ${{ github.event.comment.body }}\n"
    by_hand = TWO_JOBS.read_text().replace("- < prompt.md", '"$COMMENT_BODY"').replace("env:\n", variable, 1)
    path.write_text(workflow.partition("jobs:")[0] + by_hand)
    assert accord("doctor", "--root", tmp_path).code == 0
