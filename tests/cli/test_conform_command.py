"""``accord conform`` and ``accord check`` on workflow files: verdict, lines, exit codes, and what a step leaves."""

from itertools import pairwise
from pathlib import Path

import pytest
from support.commands import Accord
from support.runner_workflows import CALLED, OUTPUTS, RUNNER, THIN, edited

THINNEST = "on: {workflow_call: {inputs: {prompt_file: {type: string, required: true}}}}\njobs: {}\n"
UNPINNED = edited(RUNNER, ("@3d3c42e5aac5ba805825da76410c181273ba90b1 # v7.0.1", "@v7"))


@pytest.mark.parametrize("command", ["conform", "check"])
def test_a_runner_that_keeps_the_contract_is_ok(accord: Accord, command: str) -> None:
    ended = accord(command, accord.file("run.yml", RUNNER))
    assert ended.code == 0
    assert ended.out.endswith("run.yml: ok (runner-workflow)\n")


@pytest.mark.parametrize("command", ["conform", "check"])
def test_a_finding_has_line_pointer_and_the_lines_to_paste(accord: Accord, command: str) -> None:
    good, file = accord.file("good.yml", RUNNER), accord.file("run.yaml", UNPINNED)
    checked = accord.document(command, good, file, code=1)
    assert checked["ok"] is False
    first, document = checked["documents"]
    assert (first["findings"], document["path"], document["kind"]) == ([], str(file), "runner-workflow")
    (finding,) = document["findings"]
    assert (finding["code"], finding["severity"]) == ("unpinned-action", "error")
    assert finding["path"] == "/jobs/agent/steps/0/uses"
    assert "checkout@v7" in file.read_text().splitlines()[finding["line"] - 1]
    assert finding["hint"].startswith("uses: actions/checkout@<40 digits")


@pytest.mark.parametrize("folder", ["copies", "repository/.github/workflows"])
def test_a_workflow_that_a_thin_runner_calls_is_read_where_it_lies(accord: Accord, tmp_path: Path, folder: str) -> None:
    place = tmp_path / folder
    place.mkdir(parents=True)
    (place / "reusable-codex-run.yml").write_text(THIN)
    (place / CALLED.rpartition("/")[2]).write_text(
        edited(RUNNER, ("      exit-code:\n        value: ${{ jobs.agent.outputs.exit-code }}\n", ""))
    )
    (document,) = accord.document("conform", place / "reusable-codex-run.yml", code=1)["documents"]
    assert [finding["code"] for finding in document["findings"]] == ["output-unwired"]


@pytest.mark.parametrize(
    ("between", "script", "is_found"),
    [
        ([], "echo done", True),
        (["b.yml", "c.yml"], "echo done", True),
        (["b.yml", "c.yml"], "bash ./run.sh", False),
        ([f"{i}.yml" for i in range(40)], "echo done", False),
        (["b.yml", "c.yml", "b.yml"], "echo done", False),
    ],
    ids=["one call", "three calls", "a script that may set all", "more calls than GitHub allows", "a circle"],
)
def test_outputs_are_followed_into_called_workflows(
    accord: Accord, tmp_path: Path, between: list[str], script: str, is_found: bool
) -> None:
    place = tmp_path / ".github/workflows"
    place.mkdir(parents=True)
    faulty = edited(RUNNER, ('run: agent < "$PROMPT"', f"run: {script}"))
    (place / CALLED.rpartition("/")[2]).write_text(faulty)
    for name, callee in pairwise(["run.yml", *between, CALLED.rpartition("/")[2]]):
        if not (place / name).exists():
            (place / name).write_text(THIN.replace(CALLED, f"./.github/workflows/{callee}"))
    (document,) = accord.document("conform", place / "run.yml", code=int(is_found))["documents"]
    assert [finding["code"] for finding in document["findings"]] == ["output-unwired"] * len(OUTPUTS) * is_found


def test_a_called_workflow_that_cannot_be_read_counts_as_good(accord: Accord) -> None:
    file = accord.file("run.yml", THIN)
    assert accord("conform", file).code == 0
    accord.file(CALLED.rpartition("/")[2], "a: [")
    assert accord("conform", file).code == 0


@pytest.mark.parametrize(
    ("content", "code"),
    [
        ("a: [", "not-yaml"),
        ("on: workflow_call\njobs: {a: {steps: 1}}\n", "schema"),
        ("#" * (1024 * 1024 + 1), "too-large"),
    ],
)
@pytest.mark.parametrize("command", [["conform"], ["check", "--kind", "runner-workflow"]])
def test_a_file_other_than_a_workflow_is_a_finding(accord: Accord, command: list[str], content: str, code: str) -> None:
    (document,) = accord.document(*command, accord.file("run.yml", content), code=1)["documents"]
    assert {finding["code"] for finding in document["findings"]} == {code}


def test_a_kind_given_by_name_decides_how_a_file_is_read(accord: Accord) -> None:
    assert accord("check", "--kind", "runner-workflow", accord.file("run.txt", RUNNER)).code == 0
    file = accord.file("plan.yml", "role: planner\n")
    (document,) = accord.document("check", "--kind", "planner-result", file, code=1)["documents"]
    assert [finding["code"] for finding in document["findings"]] == ["not-json"]
    ended = accord("check", accord.file("ci.yml", "on: push\njobs: {}\n"))
    assert (ended.code, "--kind" in ended.out) == (1, True), "YAML of an unknown kind"


def test_two_versions_are_compared(accord: Accord) -> None:
    old, broken = accord.file("old.yml", RUNNER), accord.file("broken.yml", "a: [")
    new = accord.file("new.yml", edited(RUNNER, ("exit-code:\n        value", "exit-status:\n        value")))
    (document,) = accord.document("conform", "--against", old, new, code=1)["documents"]
    assert document["path"] == str(new)
    assert [finding["code"] for finding in document["findings"]] == ["breaking-change", "deprecation-missing"]
    assert accord("conform", "--against", old, old).code == 0
    (document,) = accord.document("conform", "--against", broken, new, code=1)["documents"]
    assert document["path"] == str(broken)


def test_runners_of_a_folder_are_found_and_each_other_workflow_is_one_line(accord: Accord, tmp_path: Path) -> None:
    place = tmp_path / "repository/.github/workflows"
    place.mkdir(parents=True)
    (place / "ci.yml").write_text("on: push\njobs: {}\n")
    (place / "called.yml").write_text("on: {workflow_call: {inputs: {pr_number: {type: string}}}}\njobs: {}\n")
    (nothing,) = accord.document("conform", place.parents[1], code=1)["documents"]
    assert [finding["code"] for finding in nothing["findings"]] == ["no-runner"]
    (place / "run.yml").write_text(RUNNER)
    for folder in (place.parents[1], place):
        ended = accord("conform", folder)
        assert (ended.code, len(ended.out.splitlines())) == (0, 3)
        assert ended.out.count("not an agent runner") == 2
        documents = accord.document("conform", folder)["documents"]
        assert [(Path(each["path"]).name, each["kind"]) for each in documents] == [
            ("called.yml", None), ("ci.yml", None), ("run.yml", "runner-workflow"),
        ]  # fmt: skip


def test_wrong_words_exit_2(accord: Accord) -> None:
    file, empty = accord.file("run.yml", RUNNER), accord.home / "empty"
    empty.mkdir()
    for words in ((), ("nowhere.yml",), (empty,), ("--against", file, file, file)):
        assert accord("conform", *words).code == 2


def test_a_step_gets_outputs_annotations_and_a_summary_to_paste_from(accord: Accord) -> None:
    step = accord.in_step()
    text = RUNNER.replace("    outputs:\n      final", "    outputs:\n      'a```b': {}\n      final", 1)
    file, thin = (
        accord.file("run.yml", text),
        accord.file("thin.yml", THINNEST),
    )
    ended = accord("conform", file, thin)
    assert (ended.code, step.outputs["ok"]) == (1, "false")
    assert step.summary.startswith("### accord conform\n")
    assert "````yaml\nvalue: ${{ jobs.agent.outputs.a```b }}" in step.summary
    assert step.summary.count("missing-output at") == len(OUTPUTS)
    assert "::error file=" in ended.err
