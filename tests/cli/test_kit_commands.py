"""``accord init`` and ``accord sync``: what people see, what programs read, and how they end."""

import os
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.commands import Accord, Ended
from support.consumers import CONSUMER, NEW, PLAN, REVIEW, SHIPPED, consumer_stage, edited, installed, older_kit
from support.stage import Stage
from support.trees import git

from accord.git.program import Git
from accord.kit.manifest import PLACE

REF = ("--ref", NEW.commit)


@pytest.fixture
def root(tmp_path: Path, accord: Accord) -> Path:
    """A checkout, on a machine that reaches no server."""
    accord.monkeypatch.setenv("GITHUB_SERVER_URL", "http://127.0.0.1:9")
    folder = tmp_path / "repository"
    folder.mkdir()
    git(folder, "init", "-q")
    git(folder, "remote", "add", "origin", "git@github.com:octo/web.git")
    return folder


@pytest.fixture
def stage(tmp_path: Path, accord: Accord) -> Iterator[Stage]:
    with consumer_stage(tmp_path, edited(installed(tmp_path / "kit", older_kit()))) as stage:
        accord.on(stage)
        yield stage


def files_of(root: Path) -> dict[str, bytes]:
    paths = (path for path in root.rglob("*") if path.is_file() and ".git" not in path.parts)
    return {path.relative_to(root).as_posix(): path.read_bytes() for path in paths}


def answered(accord: Accord, answers: str, *arguments: object) -> Ended:
    """Run a command at a terminal where a person types these answers."""
    person, terminal = os.openpty()
    os.write(person, answers.encode())
    with os.fdopen(terminal) as stdin, accord.monkeypatch.context() as patch:
        patch.setattr(sys, "stdin", stdin)
        ended = accord(*arguments)
    os.close(person)
    return ended


def test_init_lists_the_files_writes_and_then_has_nothing_to_do(accord: Accord, root: Path) -> None:
    first = accord("init", "--root", root, "--yes", *REF)
    assert (first.code, first.err) == (0, "")
    assert re.search(rf"^{PLAN} +add$", first.out, re.MULTILINE)
    assert "+name: Accord plan" not in first.out
    assert "applied" in first.out
    assert "https://github.com/octo/web/settings/secrets/actions" in first.out.partition("Next:")[2]
    assert 'gh workflow run accord-plan.yml -f request="' in first.out.partition("Next:")[2]
    before = files_of(root)
    assert before.keys() == {*SHIPPED.files, PLACE}
    second = accord.document("init", "--root", root, "--yes", *REF)
    assert (second["outcome"], second["diff"], second["next"]) == ("unchanged", "", [])
    assert {file["action"] for file in second["files"]} == {"up-to-date"}
    assert files_of(root) == before


@pytest.mark.slow
def test_choices_are_remembered_until_others_are_given(accord: Accord, root: Path) -> None:
    init = ("init", "--root", root, "--yes", *REF)
    first = accord.document(*init, "--only", "plan, review", "--agent", "claude", "--source", "octo/accord")
    assert (first["only"], first["agent"], first["source"]) == (["plan", "review"], "claude", "octo/accord")
    assert accord.document(*init)["outcome"] == "unchanged"
    changed = accord.document(*init, "--only", "all")
    assert (changed["only"], changed["agent"], changed["source"]) == (None, "claude", "octo/accord")


@pytest.mark.parametrize("below", ["pkg", "a/b", "with space"])
def test_init_below_the_top_names_the_command_for_the_top(accord: Accord, root: Path, below: str) -> None:
    (root / below / ".github").mkdir(parents=True)
    ended = accord("init", "--root", root / below, "--dry-run", *REF)
    assert (ended.code, f"Run `accord init --root {root}`." in ended.err) == (0, True)
    assert "warning" not in accord("init", "--root", root, "--dry-run", *REF).err


def test_the_diff_of_a_dry_run_is_what_git_would_apply(accord: Accord, root: Path) -> None:
    planned = accord.document("init", "--root", root, "--dry-run", *REF)
    assert (planned["outcome"], files_of(root)) == ("planned", {})
    shown = accord("init", "--root", root, "--dry-run", "--diff", *REF).out
    assert shown.index(f"{PLAN} ") < shown.index("+name: Accord plan"), "the list comes first"
    assert ("--diff" in shown, files_of(root)) == (False, {})
    Git(root)("apply", "-", data=planned["diff"].encode())
    assert files_of(root).keys() == set(SHIPPED.files)


@pytest.mark.parametrize("options", [[], ["--format", "json"], ["--yes", "--ref", "main"], ["--yes", "--ref", "abc"]])
def test_without_consent_or_a_whole_commit_init_writes_nothing(accord: Accord, root: Path, options: list[str]) -> None:
    ended = accord("init", "--root", root, *REF, *options)
    assert (ended.code, files_of(root)) == (2, {})
    assert ("full SHA" in ended.err) == ("--ref" in options)


@pytest.mark.slow
def test_a_commit_that_the_source_does_not_have_is_a_warning(accord: Accord, root: Path, tmp_path: Path) -> None:
    source = tmp_path / "server/octo/accord.git"
    source.mkdir(parents=True)
    git(source, "init", "-q")
    git(source, "commit", "-q", "--allow-empty", "-m", "First")
    commit = git(source, "rev-parse", "HEAD")
    options = ("init", "--root", root, "--source", "octo/accord")
    assert "Could not ask octo/accord" in accord(*options, "--dry-run", "--ref", commit).out
    accord.monkeypatch.setenv("GITHUB_SERVER_URL", f"file://{tmp_path}/server")
    missing = accord(*options, "--dry-run", *REF)
    assert missing.code == 0
    assert f"octo/accord does not have the commit {NEW.commit}" in missing.out
    assert accord.document(*options, "--yes", *REF)["published"] is False
    assert accord.document(*options, "--yes", "--ref", commit)["published"] is True
    assert "does not have" not in accord(*options, "--dry-run", "--ref", commit).out


@pytest.mark.slow
def test_a_person_chooses_sees_the_differences_and_agrees(accord: Accord, root: Path) -> None:
    arguments = ("init", "--root", root, *REF)
    refused = answered(accord, "plan\n\nd\nn\n", *arguments)
    assert (refused.code, files_of(root)) == (3, {})
    assert "+name: Accord plan" in refused.out
    agreed = answered(accord, "plan, revew\nplan, review\nclaude\ny\n", *arguments)
    assert agreed.code == 0, agreed.err
    assert "Did you mean `review`?" in agreed.out + agreed.err
    assert {path for path in files_of(root) if "workflows" in path} == {PLAN, REVIEW}
    assert b"default_agent: claude" in files_of(root)[".github/agents/registry.yml"]
    again = answered(accord, "y\n", *arguments, "--agent", "gemini")
    assert (again.code, "Workflows (" in again.out) == (0, False), "asked only once"
    assert b"default_agent: gemini" in files_of(root)[".github/agents/registry.yml"]


def test_a_conflict_is_shown_with_what_the_template_changed(accord: Accord, root: Path) -> None:
    for path, text in edited(installed(root, older_kit())).items():
        (root / path).write_text(text)
    ended = accord("init", "--root", root, "--yes", *REF)
    assert f"{REVIEW} stays unchanged" in ended.out
    assert "+    timeout-minutes: 60" in ended.out.partition("stays unchanged")[2]


@pytest.mark.slow
def test_an_installed_kit_is_in_order_for_doctor_which_tells_when_it_is_behind(accord: Accord, root: Path) -> None:
    accord.monkeypatch.setattr("accord.workflows.doctor.find_zizmor", lambda: None)
    accord("init", "--root", root, "--yes", *REF)
    ended = accord("doctor", "--root", root, "--repo", CONSUMER)
    assert ended.code == 0, ended.out
    assert "0 errors" in ended.out
    installed(root / "old", older_kit())
    behind = accord("doctor", "--root", root / "old", "--format", "json")
    codes = {document["path"]: {f["code"] for f in document["findings"]} for document in behind.document["documents"]}
    assert codes[PLAN] == {"kit-drift"}


@pytest.mark.slow
def test_sync_tells_programs_and_people_what_became_of_a_repository(accord: Accord, stage: Stage) -> None:
    words = ("sync", "--repo", CONSUMER, *REF)
    assert accord.document(*words, "--dry-run")["outcome"] == "planned"
    synced = accord.document(*words)
    (found,) = synced["repositories"]
    assert (synced["outcome"], found["repository"], found["outcome"]) == ("applied", CONSUMER, "applied")
    assert found["pull"]["url"].endswith(f"/{CONSUMER}/pull/{found['pull']['number']}")
    shown = accord(*words)
    assert shown.code == 0
    assert f"{CONSUMER}  unchanged  {found['pull']['url']}" in shown.out
    assert "conflict" in shown.out
    refused = accord.document("sync", "--repo", "octo/nowhere", *REF, code=4)
    assert (refused["outcome"], "octo/nowhere" in refused["repositories"][0]["error"]["message"]) == ("refused", True)


@pytest.mark.parametrize(
    ("folder", "words", "place"),
    [
        ("packages/web", (), "."),
        ("packages/web", ("--root", "."), "packages/web"),
        (".", (), "."),
        ("packages/own", (), "packages/own"),
    ],
)
def test_init_below_the_top_of_a_repository_installs_at_the_top(
    accord: Accord, root: Path, folder: str, words: tuple[str, ...], place: str
) -> None:
    (root / "packages/web").mkdir(parents=True)
    (root / "packages/own").mkdir()
    git(root / "packages/own", "init", "-q")
    accord.monkeypatch.chdir(root / folder)
    ended = accord("init", "--yes", *REF, *words)
    assert ended.code == 0, ended.err
    assert {path.parent.parent for path in root.rglob(".github/workflows")} == {root / place}


@pytest.mark.parametrize("words", [(), ("--root", "."), ("--dry-run",)])
def test_init_outside_a_repository_is_refused(accord: Accord, tmp_path: Path, words: tuple[str, ...]) -> None:
    ended = accord("init", "--yes", *REF, *words)
    assert (ended.code, list(tmp_path.rglob("workflows"))) == (2, [])
    assert "git init" in ended.err


@pytest.mark.parametrize("folder", ["packages/web", "."])
@pytest.mark.parametrize(
    "words",
    [
        ("labels", "list", "--file", ".github/labels.yml"),
        ("plan", "from", "docs/TASKS.md"),
        ("plan", "from", "specs/001-x"),
    ],
)
def test_a_path_of_the_repository_is_found_from_a_folder_below(
    accord: Accord, root: Path, folder: str, words: tuple[str, ...]
) -> None:
    files = {
        ".github/labels.yml": '- {name: "x:y", description: "d", color: "1d76db"}\n',
        "docs/TASKS.md": "- [ ] Write `src/a.py`\n",
        "specs/001-x/tasks.md": "- [ ] T001 Write src/a.py\n",
        "packages/web/a.txt": "a\n",
    }
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    accord.monkeypatch.chdir(root / folder)
    ended = accord(*words)
    assert ended.code == 0, ended.err
