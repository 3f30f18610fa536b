"""One entry in a repository's registry is all that accord must know of an agent."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from support.trees import commit, git

if TYPE_CHECKING:
    from pathlib import Path

    from support.commands import Accord

ENTRY = """
default_agent: duck
agents:
  duck:
    command: [duck-cli, work, "{prompt}"]
    prompt: file
    required_secrets: [DUCK_API_KEY]
    state_files: [.duck/]
    steering_files: [.duckrules, DUCK.md]
    actions: {Duck-Inc/duck-action: [session]}
"""


@pytest.fixture
def root(tmp_path: Path) -> Path:
    top = tmp_path / "repository"
    top.mkdir()
    git(top, "init", "-q", "-b", "main")
    (top / ".github/agents").mkdir(parents=True)
    (top / ".github/agents/registry.yml").write_text(ENTRY)
    commit(top)
    return top


def patch(accord: Accord, root: Path) -> list[str]:
    text = accord("patch", "--base", "main", "--root", root).out
    return [line.partition(" b/")[2] for line in text.splitlines() if line.startswith("diff --git")]


def test_patch_leaves_its_state_out_whatever_the_agents_branch_says(accord: Accord, root: Path) -> None:
    git(root, "switch", "-qc", "work")
    (root / ".duck").mkdir()
    (root / ".duck/session.jsonl").write_text("{}\n")
    (root / "new.py").write_text("1\n")
    assert patch(accord, root) == ["new.py"]
    (root / ".github/agents/registry.yml").write_text(ENTRY.replace(".duck/", "none"))
    git(root, "commit", "-qam", "change the registry")
    assert patch(accord, root) == [".github/agents/registry.yml", "new.py"]


def test_init_names_its_secret(accord: Accord, root: Path) -> None:
    steps = accord.document("init", "--root", root, "--yes", "--ref", "0" * 40)["next"]
    assert "gh secret set DUCK_API_KEY" in [command for step in steps for command in step["commands"]]
    assert any(step["text"].startswith("Pass `DUCK_API_KEY` on") for step in steps)
