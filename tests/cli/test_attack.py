"""``accord attack``: its judge sees each attack, all are held here, and what a repository allows gets through."""

import subprocess
from pathlib import Path

import pytest
from support.commands import Accord

from accord.cli.attack_rows import PATCHES, TEXTS, HostileText

REGISTRY = """
agents: {}
break_words: ["bors r+"]
steering: ["ops/", "*.policy"]
protected: ["*.sealed"]
"""


def repository(folder: Path, registry: str) -> Path:
    """A repository with this registry, on a branch that is not called main."""
    path = folder / ".github" / "agents" / "registry.yml"
    path.parent.mkdir(parents=True)
    path.write_text(registry, encoding="utf-8")
    config = folder / ".github" / "accord" / "config.yml"
    config.parent.mkdir()
    config.write_text("approvals: approve\n", encoding="utf-8")
    who = ["-c", "user.name=a", "-c", "user.email=a@example.org"]
    for words in (["init", "-q", "--initial-branch=dev"], ["add", "."], [*who, "commit", "-q", "-m", "One"]):
        subprocess.run(["git", *words], cwd=folder, check=True)
    return folder


@pytest.mark.parametrize("each", TEXTS, ids=lambda each: each.tried)
def test_the_judge_sees_each_text_that_is_posted_as_it_is(each: HostileText) -> None:
    assert each.is_alive_in(f"Note.\n\n{each.text}\n")
    assert not each.is_alive_in("Note.\n\nFix the mail of a@example.org, see #1 and ![x](/y.png)\n")


@pytest.mark.slow
def test_all_attacks_are_held_with_the_words_and_files_of_the_registry(accord: Accord, tmp_path: Path) -> None:
    ended = accord("attack", "--root", repository(tmp_path / "own", REGISTRY), "--format", "json")
    rows = {row["tried"]: row for row in ended.document["attacks"]}
    assert [row for row in rows.values() if row["outcome"] != "held" or not row["seen"]] == []
    assert (ended.code, ended.document["ok"], len(rows)) == (0, True, len(TEXTS) + len(PATCHES) + 11)
    assert "a word of `break_words`: bors r+ in a text" in rows
    own = {tried.rpartition(" ")[0]: row["seen"] for tried, row in rows.items() if "in your registry" in tried}
    assert [seen.startswith("a draft; ") for seen in own.values()] == [False, False, True]
    assert rows["a closing word in a text"]["seen"] == "posted as `F\u2060ixes #1`"


@pytest.mark.slow
def test_images_that_a_repository_allows_get_through(accord: Accord, tmp_path: Path) -> None:
    ended = accord("attack", "--root", repository(tmp_path / "own", 'agents: {}\nallowed_hosts: ["*"]\n'))
    assert ended.code == 1
    assert [line.partition(":")[0] for line in ended.out.splitlines() if line.startswith("THROUGH")] == [
        "THROUGH  an image that tells who reads in a text",
        "THROUGH  an image as a tag in a text",
    ]
    assert ended.out.splitlines()[-1].startswith("Next: look at what your registry allows")
