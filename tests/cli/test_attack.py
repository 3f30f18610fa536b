"""``accord attack``: it has the rows of the tables, its judge sees each attack, and all are held here."""

import re
import subprocess
import sys
from pathlib import Path

import pytest
from support.commands import Accord

from accord.agents.registry_rules import registry_from
from accord.cli.attack import play_in_container, play_without_container
from accord.cli.attacks.ground import HANDED, KNOWN, PATCHES, ROWS, TEXTS, HostileText

ROOT = Path(__file__).parents[2]

REGISTRY = """
agents: {}
break_words: ["bors r+"]
steering: ["ops/", "*.policy"]
protected: ["*.sealed"]
references: own
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


@pytest.mark.parametrize("each", HANDED, ids=lambda each: f"{each.row}: {each.tried}")
def test_the_judge_sees_what_a_function_without_its_defence_answers(each: HostileText) -> None:
    """It returns the text, also between equal fences, or nothing, a secret, the file of the agent, or a good status."""
    answers = [
        each.text,
        "",
        f"```text\n{each.text}\n```",
        KNOWN,
        "ref: refs/heads/accord-attack\n",
        "200 OK",
    ]
    assert any(each.is_alive_in(answer) for answer in answers)


def test_the_command_has_the_rows_of_the_tables_with_something_to_try_or_a_reason() -> None:
    page = (ROOT / "tests/reference/attacks.md").read_text(encoding="utf-8").partition("## Secrets")[0]
    shown = re.findall(r"^\| (?!\*\*|Attack|---)(.+?) \| .+ \| (`.+) \|$", page, re.MULTILINE)
    assert [row.attack for row in ROWS] == [attack.replace("../../docs/", "") for attack, _ in shown]
    assert [[f"`{name}`" for name in row.tests] for row in ROWS] == [tests.split(", ") for _, tests in shown]
    assert [row.attack for row in ROWS if bool(row.id) == bool(row.unplayed)] == []
    ids = [row.id for row in ROWS if row.id]
    assert len(ids) == len(set(ids)) > 60
    assert {each.row for each in (*TEXTS, *HANDED, *PATCHES)} <= set(ids)


@pytest.mark.slow
def test_all_attacks_are_held_with_the_words_and_files_of_the_registry(accord: Accord, tmp_path: Path) -> None:
    accord.monkeypatch.setattr("accord.workflows.doctor.find_zizmor", lambda: None)
    ended = accord("attack", "--root", repository(tmp_path / "own", REGISTRY), "--format", "json")
    rows = ended.document["attacks"]
    assert [row["attack"] for row in rows] == [row.title for row in ROWS]
    assert [row for row in rows if row["outcome"] == "through"] == []
    assert (ended.code, ended.document["ok"]) == (0, True)
    elsewhere = {row.title for row in ROWS if row.section == "Process of an agent"}  # without containers here
    for row, known in zip(rows, ROWS, strict=True):
        assert bool(row["reason"]) == (row["outcome"] == "not-played")
        assert row["outcome"] == ("not-played" if known.unplayed else "held") or row["attack"] in elsewhere, row
        assert all(each["seen"] for each in row["tried"]) or row["reason"], row
        assert row["tried"] or known.unplayed
    tried = {each["tried"]: each["seen"] for row in rows for each in row["tried"]}
    assert {each.tried for each in (*TEXTS, *HANDED, *PATCHES)} <= tried.keys()
    assert {"a word of `break_words`: bors r+", "a reference"} <= tried.keys()
    own = {name: seen for name, seen in tried.items() if "in your registry" in name}
    assert [seen.startswith("a draft; ") for seen in own.values()] == [False, False, True]
    assert [seen for seen in tried.values() if re.match(r"[({<]|\['|\w+\(|None\b", seen)] == [], "values of Python"
    assert tried["a closing word"] == "posted as `F\u2060ixes #1`"


@pytest.mark.slow
def test_a_registry_that_allows_more_lets_attacks_through(accord: Accord, tmp_path: Path) -> None:
    """The images of all hosts, and an agent without a container. Other attacks are left out here."""
    images = [each for each in TEXTS if "image" in each.row]
    plays = dict.fromkeys(("play_people", "play_handed", "play_in_container"), lambda *_: ())
    for name, value in {"PATCHES": (), "TEXTS": images, **plays}.items():
        accord.monkeypatch.setattr(f"accord.cli.attack.{name}", value)
    own = 'agents: {claude: {isolation: none}}\nallowed_hosts: ["*"]\n'
    ended = accord("attack", "--root", repository(tmp_path / "own", own))
    assert ended.code == 1
    titles = [row.title for row in ROWS if row.id in {*OPEN, "image"}]
    assert [line for line in ended.out.splitlines() if line.startswith("THROUGH")] == [
        f"THROUGH     {title}" for title in titles
    ]
    assert ended.out.count(": THROUGH, its host learns who reads (an issue, a pull request, a review); seen: ") == 2
    assert "\nnot played  reference that leaves a link back in another repository: the registry lets" in ended.out
    assert ended.out.splitlines()[-1].startswith("Next: look at what your registry allows")


OPEN = {"home", "memory", "end", "cloud", "network", "container"}
"""Rows that only a container stops, also where the agent has no more rights than any program."""


@pytest.mark.parametrize(
    ("entry", "said", "rows"),
    [
        ("{isolation: none}", "it has `isolation: none`: remove that key", OPEN),
        (
            "{safety_strategy: {default: unsafe, values: {unsafe: {keeps_sudo: true}}}}",
            "use another one",
            {*OPEN, "rights"},
        ),
        ("{enabled: false, isolation: none}", "", set()),
    ],
)
def test_attacks_that_only_a_container_stops_get_through_without_one(entry: str, said: str, rows: set[str]) -> None:
    through = [*play_without_container(registry_from(f"agents: {{claude: {entry}}}\n".encode()))]
    assert {each.row for each in through} == rows
    assert all("the agent `claude`" in each.tried and each.through and said in each.seen for each in through)


def test_a_machine_without_containers_does_not_play_what_needs_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "platform", "darwin")
    tried = [*play_in_container(tmp_path, "http://127.0.0.1:9")]
    assert {each.row for each in tried} == {*OPEN, "outlives", "rights"}
    assert {each.unplayed for each in tried} == {
        "This machine cannot isolate the agent, neither with sudo nor with user namespaces: only Linux has namespaces"
    }
