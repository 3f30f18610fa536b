"""``accord hooks``: the settings of each agent, and the hook itself with its exit codes."""

import json
import shlex
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from support.reviews import approve

from accord.cli.main import accord
from accord.kit.skills import HOOKED_AGENTS, MOST_REFUSALS, hook_settings

FILE = "reviewer-result.json"
GOOD = json.dumps(approve())
BAD = json.dumps(approve(summary=""))


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "work").mkdir()
    (tmp_path / "temp").mkdir()
    monkeypatch.chdir(tmp_path / "work")
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "temp"))
    return tmp_path / "work"


def hook(*paths: str, event: str | None = None, **fields: Any) -> Result:
    given = json.dumps({"session_id": "one", **fields}) if event is None else event
    return CliRunner().invoke(accord, ["hooks", "--run", "--", *paths], input=given)


@pytest.mark.parametrize("agent", HOOKED_AGENTS)
@pytest.mark.parametrize("files", [(), ("out/a b.json", "--x.json")])
def test_the_settings_run_the_hook_with_the_same_files(agent: str, files: tuple[str, ...], folder: Path) -> None:
    given = CliRunner().invoke(accord, ["hooks", "--agent", agent, "--", *files])
    assert json.loads(given.stdout) == hook_settings(agent, files).settings
    assert hook_settings(agent, files).file in given.stderr
    ((entries,),) = json.loads(given.stdout)["hooks"].values()
    words = shlex.split(entries["hooks"][0]["command"])
    for path in files or (FILE,):
        (folder / path).parent.mkdir(exist_ok=True)
        (folder / path).write_text(BAD)
    done = CliRunner().invoke(accord, words[1:], input="{}")
    assert done.exit_code == 2
    assert all(path in done.stderr for path in files or (FILE,))


def test_no_agent_is_wrong_usage_that_lists_them() -> None:
    done = CliRunner().invoke(accord, ["hooks"])
    assert "--agent" in getattr(done.exception, "hint", "")


@pytest.mark.parametrize("text", [None, GOOD])
def test_without_a_broken_result_the_agent_ends(folder: Path, text: str | None) -> None:
    if text:
        (folder / FILE).write_text(text)
    done = hook()
    assert (done.exit_code, done.output) == (0, "")


@pytest.mark.parametrize("event", [None, "", "no JSON", "[]", "[" * 100_000, '{"stop_hook_active": "yes"}'])
def test_a_broken_result_is_refused_with_place_and_hint(folder: Path, event: str | None) -> None:
    (folder / FILE).write_text(BAD)
    done = hook(event=event)
    assert (done.exit_code, done.stdout) == (2, "")
    said = f"{FILE}:1: summary-empty: The summary is empty, or the template's. Write the result of the review."
    assert said in done.stderr


def test_the_kind_of_a_result_is_that_of_its_name(folder: Path) -> None:
    (folder / "planner-result.json").write_text(GOOD)
    assert hook().exit_code == 2


def test_a_folder_in_the_place_of_a_result_is_refused(folder: Path) -> None:
    (folder / FILE).mkdir()
    done = hook()
    assert done.exit_code == 2
    assert FILE in done.stderr


def test_an_agent_is_refused_some_times_in_a_row_and_a_new_turn_counts_from_the_start(folder: Path) -> None:
    (folder / FILE).write_text(BAD)
    assert hook().exit_code == 2
    codes = [hook(stop_hook_active=True).exit_code for _ in range(MOST_REFUSALS)]
    assert codes == [2] * (MOST_REFUSALS - 1) + [1]
    assert hook().exit_code == 2
    assert hook(stop_hook_active=True, session_id="two").exit_code == 2
    assert hook(stop_hook_active=True).exit_code == 2


def test_a_valid_result_ends_the_count(folder: Path) -> None:
    (folder / FILE).write_text(BAD)
    assert hook().exit_code == 2
    (folder / FILE).write_text(GOOD)
    assert hook(stop_hook_active=True).exit_code == 0
    assert not list((folder.parent / "temp").glob("accord-hook-*"))
