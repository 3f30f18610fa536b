"""``accord init`` and ``accord sync``: what people see, what programs read, and how they end."""

from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from conftest import Accord
from support.consumers import CONSUMER, NEW, PLAN, REVIEW, SHIPPED, consumer_stage, edited, installed, older_kit
from support.stage import Stage

from accord.git.program import Git
from accord.kit.manifest import PLACE

REF = ("--ref", NEW.commit)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "repository"
    folder.mkdir()
    return folder


@pytest.fixture
def stage(tmp_path: Path, accord: Accord) -> Iterator[Stage]:
    with consumer_stage(tmp_path, edited(installed(tmp_path / "kit", older_kit()))) as stage:
        accord.on(stage)
        yield stage


def files_of(root: Path) -> dict[str, bytes]:
    return {path.relative_to(root).as_posix(): path.read_bytes() for path in root.rglob("*") if path.is_file()}


def test_init_shows_the_difference_writes_and_then_has_nothing_to_do(accord: Accord, root: Path) -> None:
    first = accord("init", "--root", root, "--yes", *REF)
    assert (first.code, first.err) == (0, "")
    assert "+name: Accord plan" in first.out
    assert "applied" in first.out
    assert "Next:" in first.out
    before = files_of(root)
    assert before.keys() == {*SHIPPED.files, PLACE}
    second = accord.document("init", "--root", root, "--yes", *REF)
    assert (second["outcome"], second["diff"]) == ("unchanged", "")
    assert {file["action"] for file in second["files"]} == {"up-to-date"}
    assert files_of(root) == before


def test_init_leaves_the_workflows_of_a_repository_alone_and_says_so(accord: Accord, root: Path) -> None:
    own = {PLAN: b"name: Mine\n", ".github/workflows/ci.yml": b"name: CI\n", ".github/labels.yml": b"[]\n"}
    for path, content in own.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_bytes(content)
    files = accord.document("init", "--root", root, "--yes", *REF)["files"]
    kept = {file["path"] for file in files if file["action"] == "keep"}
    assert kept == {PLAN, ".github/labels.yml"}
    assert own.items() <= files_of(root).items()


def test_the_diff_of_a_dry_run_is_what_git_would_apply(accord: Accord, root: Path) -> None:
    planned = accord.document("init", "--root", root, "--dry-run", *REF)
    assert (planned["outcome"], files_of(root)) == ("planned", {})
    Git(root)("apply", "-", data=planned["diff"].encode())
    assert files_of(root).keys() == set(SHIPPED.files)


@pytest.mark.parametrize("options", [[], ["--format", "json"], ["--yes", "--ref", "main"], ["--yes", "--ref", "abc"]])
def test_without_consent_or_a_whole_commit_init_writes_nothing(accord: Accord, root: Path, options: list[str]) -> None:
    ended = accord("init", "--root", root, *REF, *options)
    assert (ended.code, files_of(root)) == (2, {})
    assert ("full SHA" in ended.err) == ("--ref" in options)


def test_a_conflict_is_shown_with_what_the_template_changed(accord: Accord, root: Path) -> None:
    for path, text in edited(installed(root, older_kit())).items():
        (root / path).write_text(text)
    ended = accord("init", "--root", root, "--yes", *REF)
    assert f"{REVIEW} stays unchanged" in ended.out
    assert "+    timeout-minutes: 60" in ended.out.partition("stays unchanged")[2]


def test_an_installed_kit_is_in_order_for_doctor_which_tells_when_it_is_behind(accord: Accord, root: Path) -> None:
    accord("init", "--root", root, "--yes", *REF)
    ended = accord("doctor", "--root", root, "--repo", CONSUMER)
    assert ended.code == 0, ended.out
    assert "0 errors" in ended.out
    installed(root / "old", older_kit())
    behind = accord("doctor", "--root", root / "old", "--format", "json")
    codes = {document["path"]: {f["code"] for f in document["findings"]} for document in behind.document["documents"]}
    assert codes[PLAN] == {"kit-drift"}


def test_sync_tells_programs_and_people_what_became_of_each_repository(accord: Accord, stage: Stage) -> None:
    repositories = accord.file("repositories.yml", yaml.safe_dump([CONSUMER, CONSUMER.upper()]))
    assert accord.document("sync", "--file", repositories, *REF, "--dry-run")["outcome"] == "planned"
    synced = accord.document("sync", "--file", repositories, *REF)
    (found,) = synced["repositories"]
    assert (synced["outcome"], found["repository"], found["outcome"]) == ("applied", CONSUMER, "applied")
    assert found["pull"]["url"].endswith(f"/{CONSUMER}/pull/{found['pull']['number']}")
    shown = accord("sync", "--repo", CONSUMER, *REF)
    assert shown.code == 0
    assert f"{CONSUMER}  unchanged  {found['pull']['url']}" in shown.out
    assert "conflict" in shown.out


def test_one_repository_that_is_refused_does_not_keep_others_from_being_synced(accord: Accord, stage: Stage) -> None:
    synced = accord.document("sync", "--repo", "octo/nowhere", "--repo", CONSUMER, *REF, code=4)
    assert [synced["outcome"], *(entry["outcome"] for entry in synced["repositories"])] == ["refused"] * 2 + ["applied"]
    assert "octo/nowhere" in synced["repositories"][0]["error"]["message"]


@pytest.mark.parametrize("text", ["- octo/api\n- octo\n", "{}", "[]", "[octo]", "[octo/a b]", "- 1"])
def test_a_list_with_anything_but_repositories_is_refused_before_any_request(accord: Accord, text: str) -> None:
    ended = accord("sync", "--file", accord.file("list.yml", text), *REF)
    assert ended.code == 1
    assert ("Line 2: 'octo' is not a repository" in ended.err) == text.startswith("- octo")
