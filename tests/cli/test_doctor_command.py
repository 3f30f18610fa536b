"""``accord doctor``: a table of checks, findings by file, and GitHub asked only where there is a token."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from support.runner_workflows import RUNNER, edited

from accord.git.program import Git

if TYPE_CHECKING:
    from conftest import Accord
    from support.stage import Stage

ROOT = Path(__file__).parents[2]
LABELS = [{"name": "bug", "description": "", "color": "d73a4a"}]


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """A folder with one good workflow."""
    place = tmp_path / "repository"
    (place / ".github/workflows").mkdir(parents=True)
    (place / ".github/workflows/run.yml").write_text(RUNNER)
    return place


def statuses(document: dict[str, list[dict[str, str]]]) -> dict[str, str]:
    return {check["name"]: check["status"] for check in document["checks"]}


def test_a_repository_in_order_passes_without_asking_anybody(accord: Accord, repository: Path) -> None:
    ended = accord("doctor", "--root", repository, "--format", "json")
    assert ended.code == 0
    assert ended.document["ok"] is True
    assert ended.document["documents"] == []
    assert statuses(ended.document).pop("labels on GitHub") == "skipped"
    assert {status for name, status in statuses(ended.document).items() if name != "labels on GitHub"} == {"ok"}


def test_this_repository_is_in_order(accord: Accord) -> None:
    ended = accord("doctor", "--root", ROOT)
    assert ended.code == 0, ended.out
    assert "0 errors" in ended.out


def test_a_finding_has_its_file_line_and_hint(accord: Accord, repository: Path) -> None:
    file = repository / ".github/workflows/run.yml"
    file.write_text(
        edited(RUNNER, ("contents: read", "contents: write"), ('agent < "$PROMPT"', 'codex exec - < "$PROMPT"'))
    )
    ended = accord("doctor", "--root", repository)
    assert ended.code == 1
    line = next(n for n, text in enumerate(file.read_text().splitlines(), 1) if "    permissions:" in text)
    assert f".github/workflows/run.yml:{line}: error agent-may-write" in ended.out
    assert "contents: read" in ended.out
    assert "agent jobs        error    1 finding" in ended.out


def test_a_workflow_that_cannot_be_read_does_not_hide_the_others(accord: Accord, repository: Path) -> None:
    (repository / ".github/workflows/a.yaml").write_text("on: [")
    (repository / ".github/workflows/z.yml").write_text("on: push\njobs: {a: {steps: [{uses: actions/x@v1}]}}\n")
    ended = accord("doctor", "--root", repository, "--format", "json")
    found = {d["path"]: [f["code"] for f in d["findings"]] for d in ended.document["documents"]}
    assert found[".github/workflows/a.yaml"] == ["not-yaml"]
    assert found[".github/workflows/z.yml"] == ["workflow-unnamed"]
    assert statuses(ended.document)["workflows"] == "error"


@pytest.mark.parametrize("name", [".github/workflows/f.yml", ".github/agents/registry.yml", ".github/labels.yml"])
def test_a_folder_in_the_place_of_a_file_is_a_finding(accord: Accord, repository: Path, name: str) -> None:
    (repository / name).mkdir(parents=True)
    ended = accord("doctor", "--root", repository, "--format", "json")
    assert ended.code == 1
    (document,) = ended.document["documents"]
    assert (document["path"], [finding["code"] for finding in document["findings"]]) == (name, ["file-unreadable"])
    assert "Is a directory" in document["findings"][0]["message"]


PRIVATE = "name: correct-horse\non: push\njobs: {a: {steps: [{uses: correct/horse@v1}]}}\n"


@pytest.mark.parametrize(
    "name", [".github/workflows/f.yml", ".github/agents/registry.yml", ".github/labels.yml", ".github/workflows"]
)
def test_nothing_outside_of_the_repository_is_read_where_a_branch_brings_a_link(
    accord: Accord, repository: Path, tmp_path: Path, name: str
) -> None:
    """Otherwise, the author of a change could read files of the machine in the output of doctor."""
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "f.yml").write_text(PRIVATE)
    place = repository / name
    if name.endswith("workflows"):
        shutil.rmtree(place)
    place.parent.mkdir(parents=True, exist_ok=True)
    place.symlink_to(outside if name.endswith("workflows") else outside / "f.yml")
    ended = accord("doctor", "--root", repository, "--format", "json")
    assert ended.code == 1
    assert ("correct" in ended.out, "correct" in ended.err) == (False, False)
    found = {d["path"]: [f["code"] for f in d["findings"]] for d in ended.document["documents"]}
    assert found[name] == ["file-unreadable"]


def test_a_link_to_another_file_of_the_repository_is_followed(accord: Accord, repository: Path) -> None:
    (repository / "shared.yml").write_text("on: push\njobs: {a: {steps: [{uses: actions/x@v1}]}}\n")
    (repository / ".github/workflows/l.yml").symlink_to("../../shared.yml")
    (repository / ".github/workflows/round.yml").symlink_to("round.yml")
    ended = accord("doctor", "--root", repository, "--format", "json")
    found = {d["path"]: {f["code"] for f in d["findings"]} for d in ended.document["documents"]}
    assert "workflow-unnamed" in found[".github/workflows/l.yml"]
    assert found[".github/workflows/round.yml"] == {"file-unreadable"}


def test_an_agent_of_the_repositorys_own_registry_is_known_by_its_command(accord: Accord, repository: Path) -> None:
    (repository / ".github/agents").mkdir()
    (repository / ".github/agents/registry.yml").write_text("agents: {mine: {command: [helper, go]}}\n")
    file = repository / ".github/workflows/run.yml"
    file.write_text(edited(RUNNER, ("contents: read", "contents: write"), ("agent <", "sudo -u a helper go <")))
    ended = accord("doctor", "--root", repository, "--format", "json")
    assert statuses(ended.document)["agent jobs"] == "error"


def test_a_label_file_that_does_not_hold_is_an_error(accord: Accord, repository: Path) -> None:
    (repository / ".github/labels.yml").write_text("- {name: bug}\n")
    ended = accord("doctor", "--root", repository, "--format", "json")
    assert ended.code == 1
    assert statuses(ended.document)["label file"] == "error"
    assert ended.document["documents"][0]["findings"][0]["line"] == 1


def registry(repository: Path, text: str) -> None:
    (repository / ".github/agents").mkdir()
    (repository / ".github/agents/registry.yml").write_text(text)


def test_a_registry_that_does_not_hold_is_an_error_on_its_line(accord: Accord, repository: Path) -> None:
    registry(repository, "agents:\n  codex:\n    codec: morse\n")
    ended = accord("doctor", "--root", repository, "--format", "json")
    assert ended.code == 1
    assert statuses(ended.document)["registry"] == "error"
    (document,) = ended.document["documents"]
    assert (document["path"], document["findings"][0]["line"]) == (".github/agents/registry.yml", 3)


@pytest.mark.parametrize(("is_enabled", "codes"), [("true", ["secret-unnamed"]), ("false", [])])
def test_an_agent_of_the_registry_without_its_secrets_is_found(
    accord: Accord, repository: Path, is_enabled: str, codes: list[str]
) -> None:
    registry(repository, f"agents:\n  gemini:\n    enabled: {is_enabled}\n")
    ended = accord("doctor", "--root", repository, "--format", "json")
    assert ended.code == 0
    found = [finding["code"] for document in ended.document["documents"] for finding in document["findings"]]
    assert found == codes


def test_labels_out_of_step_on_github_are_a_warning(accord: Accord, repository: Path, stage: Stage) -> None:
    (repository / ".github/labels.json").write_text(json.dumps(LABELS))
    accord.on(stage)
    ended = accord("doctor", "--root", repository, "--format", "json")
    assert ended.code == 0
    assert statuses(ended.document)["labels on GitHub"] == "warning"
    assert [f["code"] for f in ended.document["documents"][0]["findings"]] == ["label-drift"]


def test_github_that_refuses_to_tell_is_a_warning(accord: Accord, repository: Path, stage: Stage) -> None:
    accord.on(stage, GITHUB_TOKEN="expired")
    ended = accord("doctor", "--root", repository, "--format", "json")
    assert ended.code == 0
    assert ended.document["documents"][0]["findings"][0]["code"] == "labels-unknown"


@pytest.mark.parametrize(
    ("origin", "is_foreign"),
    [("git@github.com:octo/app.git", True), ("https://github.com/flows/app", False), (None, False)],
)
def test_the_remote_names_the_owner(accord: Accord, repository: Path, origin: str | None, is_foreign: bool) -> None:
    call = (
        f"name: Call\non: push\npermissions: {{}}\njobs:\n  a:\n    uses: flows/x/.github/workflows/r.yml@{'0' * 40}\n"
    )
    (repository / ".github/workflows/call.yml").write_text(call + "    permissions: {}\n    secrets: inherit\n")
    if origin:
        git = Git(repository)
        git("init", "--quiet")
        git("remote", "add", "origin", origin)
    ended = accord("doctor", "--root", repository, "--format", "json")
    assert (ended.code == 1) is is_foreign


def test_a_step_gets_a_summary_with_the_table(accord: Accord, repository: Path, tmp_path: Path) -> None:
    accord.monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(tmp_path / "summary"))
    accord.monkeypatch.setenv("GITHUB_OUTPUT", str(tmp_path / "output"))
    (repository / ".github/workflows/x.yml").write_text("on: push\npermissions: {}\njobs: {}\n")
    assert accord("doctor", "--root", repository).code == 0
    summary = (tmp_path / "summary").read_text()
    assert "| names | ⚠️ warning |" in summary
    assert "#### .github/workflows/x.yml" in summary
    assert "true" in (tmp_path / "output").read_text()


def test_a_folder_that_is_not_there_is_wrong_usage(accord: Accord) -> None:
    assert accord("doctor", "--root", "nowhere").code == 2
