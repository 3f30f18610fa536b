"""``accord artifact``, ``accord patch --into``, ``accord apply --kind``: steps around an agent, and what they write."""

from __future__ import annotations

import json
import subprocess
from typing import TYPE_CHECKING, Any

import pytest
import requests
from support.archives import with_entry, zipped
from support.plans import plan

if TYPE_CHECKING:
    from pathlib import Path

    from support.stage import Stage

RESULT = json.dumps(plan())


def upload(stage: Stage, content: bytes, run: int = 7) -> None:
    url = f"{stage.server.url}/_sandbox/artifacts/{stage.repository}/{run}/result"
    requests.put(url, data=content, timeout=20).raise_for_status()


def outputs(path: Path) -> dict[str, str]:
    lines = path.read_text().split("\n")
    starts = [n for n, line in enumerate(lines) if "<<" in line]
    return {lines[n].partition("<<")[0]: lines[n + 1] for n in starts}


def test_the_artifact_of_the_own_run_becomes_a_folder_an_output_and_a_summary(
    accord: Any, stage: Stage, tmp_path: Path
) -> None:
    upload(stage, zipped({"result.json": RESULT}))
    files = {"GITHUB_OUTPUT": str(tmp_path / "output"), "GITHUB_STEP_SUMMARY": str(tmp_path / "summary")}
    accord.on(stage, GITHUB_RUN_ID="7", **files)
    ended = accord("artifact", "result", "--into", "it", "--format", "json")

    assert ended.code == 0
    assert (tmp_path / "it/result.json").read_text() == RESULT
    assert ended.document | {"id": ""} == {
        "artifact": "result",
        "id": "",
        "run_id": "7",
        "path": "it",
        "file": "it/result.json",
        "files": [{"path": "result.json", "bytes": len(RESULT)}],
    }
    assert outputs(tmp_path / "output") == {"path": "it", "file": "it/result.json"}
    assert "### accord artifact: result" in (tmp_path / "summary").read_text()
    assert "result.json" in (tmp_path / "summary").read_text()


def test_names_that_would_command_the_runner_are_shown_as_text(
    accord: Any, stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    upload(stage, zipped({"::error::forged": "1", "##[error]forged": "2"}))
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    accord.on(stage)
    ended = accord("artifact", "result", "--run-id", 7, "--into", "it")
    assert ended.code == 0
    assert not [line for line in ended.out.split("\n") if line.lstrip().startswith("::") or "##[" in line]


def test_each_way_in_which_there_is_nothing_to_fetch_has_its_exit_code(accord: Any, stage: Stage) -> None:
    accord.on(stage)
    assert accord("artifact", "result", "--into", "it").code == 2
    assert accord("artifact", "result", "--run-id", 0, "--into", "it").code == 2
    assert accord("artifact", "result", "--run-id", 7, "--into", ".").code == 4
    upload(stage, with_entry("../escape"))
    ended = accord("artifact", "result", "--run-id", 7, "--into", "it", "--format", "json")
    assert (ended.code, ended.document["outcome"]) == (1, "rejected")
    assert not (accord.home / "it").exists()


def test_only_the_kind_that_was_asked_for_is_applied(accord: Any, stage: Stage) -> None:
    accord.on(stage)
    accord.file("plan.json", RESULT)
    refused = accord("apply", "plan.json", "--kind", "reviewer-result", "--format", "json")
    assert (refused.code, refused.document["outcome"]) == (1, "rejected")
    assert {finding["code"] for finding in refused.document["findings"]} == {"schema"}
    assert stage.server.requests == []
    assert accord("apply", "plan.json", "--kind", "planner-result").code == 0


@pytest.mark.parametrize(
    ("changes", "outcome", "count"), [({"new.txt": "1", "a": "2"}, "completed", 2), ({}, "validation-failure", 0)]
)
def test_a_step_that_takes_the_patch_says_how_the_result_ends_now(
    changes: dict[str, str], outcome: str, count: int, accord: Any, tmp_path: Path
) -> None:
    tree = tmp_path / "tree"
    tree.mkdir()
    (tree / "a").write_text("diff --git a/x b/x\n")
    who = ["-c", "user.name=o", "-c", "user.email=o@example.org"]
    for words in (["init", "-q"], ["add", "-A"], [*who, "commit", "-qm", "Start"]):
        subprocess.run(["git", *words], cwd=tree, check=True)
    for name, text in changes.items():
        (tree / name).write_text(text)
    accord.file("result.json", {"role": "implementor", "outcome": "completed", "patch": None, "summary": "Done."})
    accord.monkeypatch.setenv("GITHUB_OUTPUT", str(tmp_path / "output"))
    accord.monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(tmp_path / "summary"))

    assert accord("patch", "--base", "HEAD", "--root", tree, "--into", "result.json").code == 0
    assert outputs(tmp_path / "output") == {"outcome": outcome}
    assert f"Files in the patch: {count}." in (tmp_path / "summary").read_text()
    assert json.loads((tmp_path / "result.json").read_text())["outcome"] == outcome
