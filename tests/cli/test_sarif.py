"""Findings as SARIF: what code scanning accepts, from each command that has findings of files."""

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from support.commands import Accord
from support.runner_workflows import RUNNER, edited

from accord.cli.check import sarif_log
from accord.core.findings import Finding, warning

SCHEMA = json.loads((Path(__file__).parents[1] / "data/sarif-2.1.0.json").read_bytes())
VALIDATOR = jsonschema.Draft4Validator(SCHEMA)
BAD = edited(RUNNER, ("@3d3c42e5aac5ba805825da76410c181273ba90b1 # v7.0.1", "@v7"))


def read(text: str) -> Any:
    """The only run of a valid log."""
    log = json.loads(text)
    VALIDATOR.validate(log)
    (run,) = log["runs"]
    return run


def test_a_log_without_findings_is_valid() -> None:
    run = read(json.dumps(sarif_log("check", [("plan.json", [])])))
    assert (run["results"], run["tool"]["driver"]["rules"]) == ([], [])


def test_a_result_has_its_rule_level_place_and_an_identity_of_its_own() -> None:
    twice = [Finding("schema", "A.", "/a/0", line=3, hint="Fix it."), Finding("schema", "A.", "/a/0")]
    run = read(json.dumps(sarif_log("check", [("a b.json", twice), ("-", [warning("label-drift", "B.")])])))
    assert [rule["id"] for rule in run["tool"]["driver"]["rules"]] == ["label-drift", "schema"]
    first, second, third = run["results"]
    assert (first["ruleId"], first["ruleIndex"], first["level"]) == ("schema", 1, "error")
    assert first["message"]["text"] == "A.\nFix it."
    place = first["locations"][0]["physicalLocation"]
    assert (place["artifactLocation"]["uri"], place["region"]) == ("a%20b.json", {"startLine": 3})
    assert third["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] == "stdin"
    assert len({result["partialFingerprints"]["accord/v1"] for result in (first, second, third)}) == 3


@pytest.mark.parametrize("command", ["check", "conform"])
def test_documents_are_reported_with_paths_below_this_directory(accord: Accord, tmp_path: Path, command: str) -> None:
    file = accord.file("run.yml", BAD)
    accord.monkeypatch.chdir(file.parent)
    ended = accord(command, file, "--format", "sarif")
    assert ended.code == 1
    run = read(ended.out)
    assert [result["ruleId"] for result in run["results"]] == ["unpinned-action"]
    assert run["results"][0]["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] == "run.yml"
    assert run["automationDetails"]["id"] == f"accord/{command}/"


def test_doctor_reports_paths_below_the_repository(accord: Accord, tmp_path: Path) -> None:
    (tmp_path / ".github/workflows").mkdir(parents=True)
    (tmp_path / ".github/workflows/run.yml").write_text(BAD)
    ended = accord("doctor", "--root", tmp_path, "--format", "sarif")
    (result,) = read(ended.out)["results"]
    assert (ended.code, result["ruleId"]) == (1, "unpinned-action")
    uri = result["locations"][0]["physicalLocation"]["artifactLocation"]["uri"]
    assert uri == ".github/workflows/run.yml"
