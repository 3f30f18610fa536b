"""Fetching an artifact: whole or not at all, whatever happens on the way, and the token stays where it belongs."""

import json
from pathlib import Path
from typing import Any

import pytest
import requests
import responses
from support.archives import with_entry, zipped
from support.clocks import ManualClock
from support.stage import START, Stage

from accord.core.errors import BrokenContract, Refused, Stopped, WrongUsage
from accord.github import artifacts
from accord.github.artifacts import fetch_artifact, fetch_matching
from accord.github.client import GitHub
from accord.github.models import Access
from accord_sandbox import faults
from accord_sandbox.planting import INSTALLATION_TOKEN
from accord_sandbox.server import Fault

TOKEN = "ghp_" + "s3cretS3CRET" * 3
RESULT = json.dumps({"role": "planner"})


def upload(stage: Stage, content: bytes, name: str = "result", run: int = 7) -> None:
    url = f"{stage.server.url}/_sandbox/artifacts/{stage.repository}/{run}/{name}?overwrite=true"
    requests.put(url, data=content, timeout=600).raise_for_status()


def fetch(stage: Stage, into: Path, name: str = "result", run: int = 7, **more: Any) -> Any:
    return fetch_artifact(stage.adapter(token=INSTALLATION_TOKEN), name, run, into, **more)


def test_the_folder_holds_what_was_uploaded(stage: Stage, tmp_path: Path) -> None:
    upload(stage, zipped({"result.json": RESULT, "logs/a.txt": "a"}))
    upload(stage, zipped({"result.json": "another run's"}), run=8)
    fetched = fetch(stage, tmp_path / "into")

    assert (tmp_path / "into/result.json").read_text() == RESULT
    assert [(member.path, member.size) for member in fetched.members] == [("result.json", 19), ("logs/a.txt", 1)]
    assert fetched.file == ""
    assert list(tmp_path.iterdir()) == [tmp_path / "into"]


def test_the_only_file_is_the_one_that_is_wanted(stage: Stage, tmp_path: Path) -> None:
    upload(stage, zipped({"out/plan.json": RESULT}))
    assert fetch(stage, tmp_path / "one").file == "out/plan.json"
    assert fetch(stage, tmp_path / "two", wanted="out/plan.json").file == "out/plan.json"
    with pytest.raises(Refused, match=r"has no file plan\.json; it has out/plan\.json"):
        fetch(stage, tmp_path / "three", wanted="plan.json")
    assert not (tmp_path / "three").exists()


def test_all_artifacts_of_a_name_s_beginning_come_each_into_its_folder(stage: Stage, tmp_path: Path) -> None:
    for name, text in (("part-b", "2"), ("part-a", "1"), ("part-a", "3"), ("other", "4"), ("a-part", "5")):
        upload(stage, zipped({"x": text}), name)
    fetched = fetch_matching(stage.adapter(token=INSTALLATION_TOKEN), "part-", 7, tmp_path)
    assert [each.artifact.name for each in fetched] == ["part-a", "part-b"]
    assert {path.parent.name: path.read_text() for path in tmp_path.glob("*/x")} == {"part-a": "3", "part-b": "2"}
    with pytest.raises(Refused, match=r"begins with `parts`; it has a-part, other, part-a, part-b\."):
        fetch_matching(stage.adapter(token=INSTALLATION_TOKEN), "parts", 7, tmp_path)


def test_a_missing_artifact_is_refused_with_the_names_of_those_that_are_there(stage: Stage, tmp_path: Path) -> None:
    with pytest.raises(Refused, match=r"Workflow run 7 has no artifact `result`; it has no artifacts\. Upload it"):
        fetch(stage, tmp_path / "into")
    upload(stage, zipped({"a": "1"}), "results")
    with pytest.raises(Refused, match="no artifact `result`; it has results"):
        fetch(stage, tmp_path / "into")
    assert list(tmp_path.iterdir()) == []


def test_an_expired_artifact_is_refused_with_what_fixes_it(stage: Stage, tmp_path: Path) -> None:
    upload(stage, zipped({"a": "1"}))
    stage.clock.sleep(91 * 86400)
    with pytest.raises(Refused, match=r"has expired or was deleted\. Run the job that made it again"):
        fetch(stage, tmp_path / "into")


def test_a_token_without_read_access_to_actions_gets_a_hint(stage: Stage, tmp_path: Path) -> None:
    upload(stage, zipped({"a": "1"}))
    with stage.server.database.writing() as connection:
        connection.execute("UPDATE tokens SET permissions = '{}' WHERE token = ?", (INSTALLATION_TOKEN,))
    with pytest.raises(Refused, match="actions: read"):
        fetch(stage, tmp_path / "into")


def test_nothing_is_fetched_for_a_folder_that_is_there(stage: Stage, tmp_path: Path) -> None:
    upload(stage, zipped({"a": "1"}))
    (tmp_path / "mine.txt").write_text("mine")
    with pytest.raises(WrongUsage, match="already exists"):
        fetch(stage, tmp_path)
    assert stage.server.requests == []


@pytest.mark.parametrize("place", ["zip$", "_storage", "artifacts$"])
@pytest.mark.parametrize("kind", [kind for kind in faults.KINDS if kind != "slow"])
def test_one_accident_on_the_way_changes_nothing(kind: str, place: str, stage: Stage, tmp_path: Path) -> None:
    upload(stage, zipped({"result.json": RESULT}))
    stage.server.faults.add(Fault(kind, path=place))
    fetch(stage, tmp_path / "into")
    assert (tmp_path / "into/result.json").read_text() == RESULT


@pytest.mark.parametrize("kind", ["lost-before", "error-503", "truncated"])
def test_a_storage_that_does_not_answer_stops_the_command_and_leaves_nothing(
    kind: str, stage: Stage, tmp_path: Path
) -> None:
    upload(stage, zipped({"result.json": RESULT * 1000}))
    stage.server.faults.add(Fault(kind, times=99, path="_storage"))
    with pytest.raises(Stopped, match="could not be fetched in 5 tries"):
        fetch(stage, tmp_path / "into")
    assert list(tmp_path.iterdir()) == []
    stage.server.faults.clear()
    fetch(stage, tmp_path / "into")


def test_an_archive_that_differs_from_its_digest_is_not_unpacked(stage: Stage, tmp_path: Path) -> None:
    upload(stage, zipped({"result.json": RESULT}))
    with stage.server.database.writing() as connection:
        connection.execute("UPDATE artifacts SET content = ?", (zipped({"result.json": "swapped"}),))
    with pytest.raises(Stopped, match="its digest differs"):
        fetch(stage, tmp_path / "into")


def test_an_archive_that_does_harm_or_is_too_large_is_the_uploaders_fault(
    stage: Stage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    upload(stage, with_entry("../escape"))
    with pytest.raises(BrokenContract):
        fetch(stage, tmp_path / "into")
    monkeypatch.setattr(artifacts, "MOST_ARCHIVE_BYTES", 100)
    with pytest.raises(BrokenContract, match="larger than"):
        fetch(stage, tmp_path / "into")
    assert list(tmp_path.iterdir()) == []


def test_neither_the_token_nor_a_netrc_reaches_the_storage(
    stage: Stage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    netrc = tmp_path / "netrc"
    netrc.write_text("default login me password mine\n")
    monkeypatch.setenv("NETRC", str(netrc))
    upload(stage, zipped({"a": "1"}))
    fetch(stage, tmp_path / "into")  # the storage refuses requests with an Authorization header
    assert (tmp_path / "into" / "a").read_text() == "1"


ROOT = "https://api.github.com:443/repos/octo/tools/actions"
LISTED = {"id": 5, "name": "result", "expired": False, "digest": None, "created_at": "2026-01-01T00:00:00Z"}


def on_github(into: Path) -> None:
    access = Access("octo/tools", TOKEN)
    fetch_artifact(GitHub(access, ManualClock(START), lambda *_: None), "result", 7, into)


@pytest.mark.slow
@responses.activate
def test_on_github_the_token_stays_with_the_api(tmp_path: Path) -> None:
    place = "https://results.blob.example/archive.zip?sig=1"
    responses.get(f"{ROOT}/runs/7/artifacts", json={"total_count": 1, "artifacts": [LISTED]})
    responses.get(f"{ROOT}/artifacts/5/zip", status=302, headers={"location": place})
    stored = responses.get("https://results.blob.example/archive.zip", body=zipped({"result.json": RESULT}))
    on_github(tmp_path / "into")

    assert (tmp_path / "into/result.json").read_text() == RESULT
    (call,) = stored.calls
    assert "authorization" not in {name.lower() for name in call.request.headers}
    assert TOKEN not in f"{call.request.url} {call.request.headers}"


@pytest.mark.slow
@responses.activate
def test_an_address_that_anybody_on_the_way_could_answer_for_is_refused(tmp_path: Path) -> None:
    responses.get(f"{ROOT}/runs/7/artifacts", json={"total_count": 1, "artifacts": [LISTED]})
    responses.get(f"{ROOT}/artifacts/5/zip", status=302, headers={"location": "http://results.blob.example/a.zip"})
    with pytest.raises(Refused, match="the address has no https"):
        on_github(tmp_path / "into")
