"""``accord repos``: list, run and summarise over several repositories of the local GitHub."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from support.commands import Accord
from support.consumers import NEW, installed, older_kit
from support.stage import Stage, staged


@contextmanager
def stage_of_four(folder: Path) -> Iterator[Stage]:
    repositories = [
        {"name": "octo/api", "files": installed(folder / "kit", older_kit())},
        {"name": "octo/gone", "archived": True},
        {"name": "octo/web", "files": {"README.md": "# Web\n"}},
        {"name": "other/own"},
    ]
    with staged(folder / "data", seed={"repositories": repositories}) as stage:
        yield stage


STAGE = stage_of_four


def test_an_organisation_is_listed_without_its_archived_repositories(accord: Accord, stage: Stage) -> None:
    accord.on(stage)
    writing = ("repos", "list", "--org", "octo", "--size", 1, "--out", "repositories.json")
    assert accord.document(*writing, "--dry-run")["repositories"] == ["octo/api", "octo/web"]
    assert not (accord.home / "repositories.json").exists()
    step = accord.in_step(annotates=False)
    listed = accord.document(*writing)
    assert listed["repositories"] == ["octo/api", "octo/web"]
    assert listed["left_out"] == ["octo/gone"]
    assert json.loads((accord.home / "repositories.json").read_text()) == ["octo/api", "octo/web"]
    assert json.loads(step.outputs["shards"]) == listed["shards"]
    assert [shard["shard"] for shard in listed["shards"]] == ["1/2", "2/2"]


def test_a_search_a_file_and_names_add_up_without_repetition(accord: Accord, stage: Stage) -> None:
    accord.on(stage)
    (accord.home / "more.yml").write_text("- other/own\n- octo/API\n")
    listed = accord.document("repos", "list", "--search", "org:octo archived:false", "--file", "more.yml")
    assert [name.lower() for name in listed["repositories"]] == ["octo/api", "octo/web", "other/own"]


@pytest.mark.parametrize("arguments", [[], ["--search", "nothing-like-it"]])
def test_an_empty_list_is_wrong_usage(accord: Accord, stage: Stage, arguments: list[str]) -> None:
    accord.on(stage)
    ended = accord("repos", "list", *arguments)
    assert ended.code == 2
    assert "--org NAME" in ended.err


def test_an_organisation_that_does_not_exist_is_named(accord: Accord, stage: Stage) -> None:
    accord.on(stage)
    ended = accord("repos", "list", "--org", "nope")
    assert ended.code == 4
    assert "Check that the organisation `nope` exists" in ended.err


def test_one_repository_is_counted_in_the_singular(accord: Accord) -> None:
    assert accord("repos", "list", "--repo", "octo/api").err.startswith("1 repository in 1 shard\n")


def test_a_name_without_an_owner_is_refused_before_a_list_is_written(accord: Accord) -> None:
    ended = accord("repos", "list", "--repo", "octo/api", "--repo", "a b", "--out", "list.json")
    assert (ended.code, "`a b` is not a repository." in ended.err, "--repo OWNER/NAME" in ended.err) == (2, True, True)
    assert not (accord.home / "list.json").exists()


@pytest.mark.slow
def test_doctor_labels_and_sync_run_over_the_list_and_a_second_run_writes_nothing(accord: Accord, stage: Stage) -> None:
    accord.on(stage)
    (accord.home / "all.json").write_text('["octo/api", "octo/web"]')
    planned = accord.document("repos", "run", "labels", "--file", "all.json", "--dry-run")
    assert planned["counts"] == {"planned": 2}
    first = accord.document("repos", "run", "labels", "--file", "all.json")
    assert first["counts"] == {"applied": 2}
    synced = accord.document(
        "repos", "run", "sync", "--file", "all.json", "--results", "sync.jsonl", "--ref", NEW.commit, code=4
    )
    assert synced["counts"] == {"refused": 1, "applied": 1}
    examined = accord.document("repos", "run", "doctor", "--file", "all.json", code=1)
    assert examined["counts"] == {"findings": 1, "unchanged": 1}
    assert "error" in next(each["note"] for each in examined["results"] if each["repository"] == "octo/api")

    again = accord.document("repos", "run", "labels", "--file", "all.json")
    assert (again["counts"], again["requests"]["write"]) == ({"unchanged": 2}, 0)

    step = accord.in_step(annotates=False)
    ended = accord("repos", "summary", "--file", "all.json", "sync.jsonl")
    assert ended.code == 4
    assert "1 refused, 1 applied" in ended.out
    assert "[open](http" in step.summary


@pytest.mark.slow
def test_status_over_a_list_names_the_repositories_that_need_a_person(accord: Accord, stage: Stage) -> None:
    accord.on(stage)
    (accord.home / "all.json").write_text('["octo/api", "octo/web"]')
    stage.send("POST", "/repos/octo/web/issues", title="Which one?", labels=["task:refinement", "status:pending"])
    found = accord.document("repos", "run", "status", "--file", "all.json", code=1)
    assert [(each["repository"], each["outcome"], each["note"]) for each in found["results"]] == [
        ("octo/web", "findings", "1 needs you"),
        ("octo/api", "unchanged", ""),
    ]
    assert found["requests"] == {"read": 12, "write": 0}


@pytest.mark.slow
def test_a_shard_without_a_result_counts_as_pending(accord: Accord, stage: Stage) -> None:
    accord.on(stage)
    (accord.home / "all.json").write_text('["octo/api", "octo/web"]')
    accord.document("repos", "run", "labels", "--file", "all.json", "--shard", "1/2", "--results", "one.jsonl")
    merged = accord.document("repos", "summary", "--file", "all.json", "one.jsonl", code=3)
    assert merged["counts"] == {"applied": 1, "pending": 1}
