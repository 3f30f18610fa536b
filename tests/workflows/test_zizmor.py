"""zizmor names scripts and files to look at; accord grades them by who can start them, and names what it left out."""

import os
import stat
from pathlib import Path

import pytest
from support.runner_workflows import SHA

from accord.core.findings import DoctorCheck
from accord.workflows.doctor import examine_workflows
from accord.workflows.facts import read_repository
from accord.workflows.zizmor import audit_files, find_zizmor

HEAD = "name: A\non: {on}\npermissions: {{}}\njobs:\n  a:\n    runs-on: ubuntu-latest\n    steps:\n"
TITLE = "      - run: echo '${{ github.event.issue.title }}'\n"
W = ".github/workflows/a.yml"


def repository(root: Path, **files: str) -> Path:
    """A repository with these workflows."""
    (root / ".github/workflows").mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        (root / f".github/workflows/{name}.yml").write_text(text, encoding="utf-8")
    return root


def examine(root: Path) -> tuple[list[tuple[str, str, str]], DoctorCheck]:
    """Findings as path, code and severity, without those of names, and the check of zizmor."""
    checks = examine_workflows(root, *read_repository(root, "octo"))
    (own,) = [check for check in checks if check.name == "zizmor"]
    found = [(path, each.code, each.severity.value) for check in checks for path, each in check.findings]
    return [each for each in found if not each[1].startswith("workflow-name")], own


def fake(root: Path, script: str) -> str:
    """A program in place of zizmor."""
    program = root / "bin/zizmor"
    program.parent.mkdir(parents=True, exist_ok=True)
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    return str(program)


@pytest.mark.parametrize("is_installed", [True, False])
def test_text_of_outsiders_is_found_with_zizmor_and_without(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_installed: bool
) -> None:
    if not is_installed:
        monkeypatch.setattr("accord.workflows.doctor.find_zizmor", lambda: None)
    found, check = examine(repository(tmp_path, a=HEAD.format(on="issues") + TITLE))
    assert found == [(W, "unsafe-interpolation", "error")]
    assert (check.status, "not installed" in check.note) == (("ok", False) if is_installed else ("skipped", True))


GRADES = {
    "issues": ("${{ github.event.issue.title }}", ["error"]),
    "{workflow_dispatch: {inputs: {x: {type: string}}}}": ("${{ inputs.x }}", ["warning"]),
    "{workflow_dispatch: {inputs: {x: {type: choice, options: [a]}}}}": ("${{ inputs.x }}", []),
    "{push: {branches: [main]}}": ("${{ github.ref_name }}", []),
    "[pull_request]": ("${{ github.head_ref }}", ["error"]),
}


def test_zizmors_findings_weigh_by_who_chooses_the_text(tmp_path: Path) -> None:
    texts = {
        f"w{i}": HEAD.format(on=on) + f"      - run: echo '{value}'\n"
        for i, (on, (value, _)) in enumerate(GRADES.items())
    }
    found, _ = examine(repository(tmp_path, **texts))
    graded = [(path, severity) for path, code, severity in found if code == "unsafe-interpolation"]
    for i, (_, severities) in enumerate(GRADES.values()):
        assert [severity for path, severity in graded if path.endswith(f"/w{i}.yml")] == severities, texts[f"w{i}"]


def test_scripts_of_an_action_weigh_by_who_starts_the_workflow_that_uses_it(tmp_path: Path) -> None:
    action = tmp_path / ".github/actions/x/action.yml"
    action.parent.mkdir(parents=True)
    action.write_text(
        "name: X\ndescription: x\ninputs: {t: {required: true}}\nruns:\n  using: composite\n  steps:\n"
        "    - run: echo '${{ inputs.t }}'\n      shell: bash\n"
    )
    use = "      - uses: ./.github/actions/x\n        with: {t: '${{ github.event.issue.title }}'}\n"
    found, check = examine(repository(tmp_path, a=HEAD.format(on="issues") + use))
    assert found == [(".github/actions/x/action.yml", "unsafe-interpolation", "error")]
    assert check.note == "2 workflows and actions"


def test_a_comment_that_tells_zizmor_to_ignore_a_place_counts(tmp_path: Path) -> None:
    text = HEAD.format(on="issues") + TITLE.replace("\n", " # zizmor: ignore[template-injection]\n")
    assert examine(repository(tmp_path, a=text))[0] == []


def test_general_findings_are_one_warning_for_each_audit_and_file(tmp_path: Path) -> None:
    loose = HEAD.format(on="push").replace("permissions: {}\n", "") + "      - uses: o/a@v1\n      - uses: o/b@v1\n"
    root = repository(tmp_path, a=loose)
    assert sorted(examine(root)[0]) == [(W, "unpinned-action", "warning"), (W, "workflow-risk", "warning")]
    findings = [each for check in examine_workflows(root, *read_repository(root)) for _, each in check.findings]
    (pins,) = [each for each in findings if each.code == "unpinned-action"]
    assert (pins.line, pins.path, "More findings in this file: 1." in pins.message) == (7, "/jobs/a/steps/0/uses", True)
    assert "--fix" in pins.hint


def test_a_gap_that_outsiders_can_use_at_once_is_an_error(tmp_path: Path) -> None:
    spoofed = "    if: github.actor == 'dependabot[bot]'\n    steps:"
    for name, on in {"a": "pull_request_target", "b": "{workflow_run: {workflows: [A]}}"}.items():
        text = (
            HEAD.format(on=on).replace("    steps:", spoofed).replace("name: A", f"name: {name.upper()}")
            + "      - run: make\n"
        )
        repository(tmp_path, **{name: text})
    found = [each for each in examine(tmp_path)[0] if each[1] == "workflow-risk"]
    assert found == [(path, "workflow-risk", "error") for path in (W, W.replace("a.yml", "b.yml"))]
    repository(tmp_path, a=HEAD.format(on="push") + "      - run: make\n")
    found = [each for each in examine(tmp_path)[0] if each[1] == "workflow-risk"]
    assert found == [(W.replace("a.yml", "b.yml"), "workflow-risk", "warning")]


def test_a_file_that_zizmor_cannot_read_is_named_and_checked_by_accord(tmp_path: Path) -> None:
    text = HEAD.format(on="issues").replace("    runs-on: ubuntu-latest\n", "") + TITLE
    found, check = examine(repository(tmp_path, a=text))
    assert found == [(W, "unsafe-interpolation", "error"), (W, "workflow-unaudited", "warning")]
    assert check.status == "warning"


def test_a_zizmor_that_fails_is_not_ok_and_stops_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for script in ("echo 'fatal: x' >&2; exit 1", "echo '{'", "echo '[{}]'", "echo '3'", ": ", "kill $$"):
        program = fake(tmp_path, script)
        assert audit_files(program, tmp_path, ["a.yml"]).failure.startswith("zizmor"), script
    monkeypatch.setattr("accord.workflows.doctor.find_zizmor", lambda: program)
    found, check = examine(repository(tmp_path, a=HEAD.format(on="issues") + TITLE))
    assert found == [(W, "unsafe-interpolation", "error")]
    assert (check.status, check.note.startswith("zizmor")) == ("skipped", True)


def test_zizmor_starts_once_offline_and_without_secrets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = fake(tmp_path, 'echo "$@" >> calls; env >> calls; echo "[]"')
    monkeypatch.setattr("accord.workflows.doctor.find_zizmor", lambda: program)
    monkeypatch.setenv("GITHUB_TOKEN", "ghs_secret")
    monkeypatch.setenv("ZIZMOR_CONFIG", "/nowhere")
    text = HEAD.format(on="push") + f"      - uses: actions/checkout@{SHA}\n"
    examine(repository(tmp_path, **{f"w{i}": text for i in range(5)}))
    calls = (tmp_path / "calls").read_text()
    assert calls.count("--offline") == 1
    assert all(f"./.github/workflows/w{i}.yml" in calls for i in range(5))
    assert "ghs_secret" not in calls
    assert "ZIZMOR" not in calls


def test_nothing_outside_of_the_repository_is_handed_to_zizmor(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = fake(tmp_path, 'echo "$@" >> calls; echo "[]"')
    monkeypatch.setattr("accord.workflows.doctor.find_zizmor", lambda: program)
    root = repository(tmp_path / "r", a=HEAD.format(on="push"))
    (tmp_path / "outside.yml").write_text(HEAD.format(on="push"))
    (root / ".github/workflows/link.yml").symlink_to(tmp_path / "outside.yml")
    examine(root)
    calls = (root / "calls").read_text()
    assert ("a.yml" in calls, "link.yml" in calls) == (True, False)


def test_zizmor_is_looked_for_beside_python_and_then_on_the_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    beside, elsewhere = fake(tmp_path / "venv", ":"), fake(tmp_path / "other", ":")
    monkeypatch.setenv("PATH", os.path.dirname(elsewhere))
    monkeypatch.setattr("sys.executable", str(tmp_path / "venv/bin/python"))
    assert find_zizmor() == beside
    Path(beside).unlink()
    assert find_zizmor() == elsewhere
    Path(elsewhere).unlink()
    assert find_zizmor() is None


def test_without_files_zizmor_is_not_started(tmp_path: Path) -> None:
    assert audit_files("/nonexistent", tmp_path, []).failure == ""
    assert "cannot be read" in audit_files("/nonexistent", tmp_path, ["a.yml"]).failure


CONTAINER = """      - uses: docker://alpine:3
        with:
          args: -c "echo ${{ github.event.comment.body }}"
"""


def test_places_that_zizmor_does_not_see_are_looked_at(tmp_path: Path) -> None:
    root = repository(tmp_path, a=HEAD.format(on="issue_comment") + CONTAINER)
    assert (W, "unsafe-interpolation", "error") in examine(root)[0]
