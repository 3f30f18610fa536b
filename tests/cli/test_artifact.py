"""``accord artifact``, ``accord patch --into``, ``accord apply --kind``: steps around an agent, and what they write."""

import json

import pytest
import requests
from support.archives import with_entry, zipped
from support.commands import Accord
from support.plans import plan
from support.stage import Stage
from support.workshop import git
from test_check import assert_harmless

RESULT = json.dumps(plan())


def upload(stage: Stage, content: bytes, run: int = 7) -> None:
    url = f"{stage.server.url}/_sandbox/artifacts/{stage.repository}/{run}/result"
    requests.put(url, data=content, timeout=600).raise_for_status()


def test_the_artifact_of_the_own_run_becomes_a_folder_an_output_and_a_summary(accord: Accord, stage: Stage) -> None:
    upload(stage, zipped({"result.json": RESULT}))
    accord.on(stage, GITHUB_RUN_ID="7")
    for name, shown in (("result", "result of run 7 would be in it"), ("res*", "it/result")):
        assert accord("artifact", name, "--into", "it", "--dry-run").out.endswith(f"{shown}\n")
        assert not (accord.home / "it").exists()
    step = accord.in_step(annotates=False)
    document = accord.document("artifact", "result", "--into", "it")
    assert (accord.home / "it/result.json").read_text() == RESULT
    assert document | {"id": ""} == {
        "artifact": "result",
        "id": "",
        "run_id": "7",
        "path": "it",
        "file": "it/result.json",
        "files": [{"path": "result.json", "bytes": len(RESULT)}],
    }
    assert step.outputs == {"path": "it", "file": "it/result.json"}
    assert "### accord artifact: result" in step.summary
    assert "result.json" in step.summary


def test_names_that_would_command_the_runner_are_shown_as_text(accord: Accord, stage: Stage) -> None:
    upload(stage, zipped({"::error::forged": "1", "##[error]forged": "2"}))
    accord.monkeypatch.setenv("GITHUB_ACTIONS", "true")
    accord.on(stage)
    ended = accord("artifact", "result", "--run-id", 7, "--into", "it")
    assert ended.code == 0
    assert_harmless(ended.out)


def test_each_way_in_which_there_is_nothing_to_fetch_has_its_exit_code(accord: Accord, stage: Stage) -> None:
    accord.on(stage)
    assert accord("artifact", "result", "--into", "it").code == 2
    assert "is empty" in accord("artifact", "", "--run-id", 7, "--into", "it").err
    assert accord("artifact", "result", "--run-id", 0, "--into", "it").code == 2
    assert accord("artifact", "result", "--run-id", 7, "--into", ".").code == 4
    upload(stage, with_entry("../escape"))
    assert accord.document("artifact", "result", "--run-id", 7, "--into", "it", code=1)["outcome"] == "rejected"
    assert not (accord.home / "it").exists()


def test_only_the_kind_that_was_asked_for_is_applied(accord: Accord, stage: Stage) -> None:
    accord.on(stage)
    accord.file("plan.json", RESULT)
    refused = accord.document("apply", "plan.json", "--kind", "reviewer-result", code=1)
    assert refused["outcome"] == "rejected"
    assert {finding["code"] for finding in refused["findings"]} == {"schema"}
    assert stage.server.requests == []
    assert accord("apply", "plan.json", "--kind", "planner-result").code == 0


@pytest.mark.parametrize(
    ("changes", "outcome", "count"), [({"new.txt": "1", "a": "2"}, "completed", 2), ({}, "validation-failure", 0)]
)
def test_a_step_that_takes_the_patch_says_how_the_result_ends_now(
    changes: dict[str, str], outcome: str, count: int, accord: Accord
) -> None:
    tree = accord.home / "tree"
    tree.mkdir()
    (tree / "a").write_text("diff --git a/x b/x\n")
    for words in (["init", "-q"], ["add", "-A"], ["commit", "-qm", "Start"]):
        git(tree, *words)
    for name, text in changes.items():
        (tree / name).write_text(text)
    file = accord.file(
        "result.json", {"role": "implementor", "outcome": "completed", "patch": None, "summary": "Done."}
    )
    before = file.read_bytes()
    rehearsed = accord("patch", "--base", "HEAD", "--root", tree, "--into", "result.json", "--dry-run")
    assert rehearsed.out.startswith(f"result.json would have the outcome {outcome} and a patch of {count} file")
    assert file.read_bytes() == before
    step = accord.in_step(annotates=False)
    assert accord("patch", "--base", "HEAD", "--root", tree, "--into", "result.json").code == 0
    assert step.outputs == {"outcome": outcome}
    assert f"Files in the patch: {count}." in step.summary
    assert json.loads((accord.home / "result.json").read_text())["outcome"] == outcome
