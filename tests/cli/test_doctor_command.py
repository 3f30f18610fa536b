"""``accord doctor``: a table of checks, findings by file, and GitHub asked only where there is a token."""

import json
import re
import shutil
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from support.commands import Accord
from support.runner_workflows import RUNNER, edited
from support.stage import Stage, staged

from accord.git.program import Git
from accord.workflows.zizmor import find_zizmor

Doctor = Callable[[], "Found"]


ROOT = Path(__file__).parents[2]
UNNAMED = "on: push\npermissions: {}\njobs: {a: {runs-on: x, steps: [{run: make}]}}\n"


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with one good workflow, on a machine without zizmor."""
    monkeypatch.setattr("accord.workflows.doctor.find_zizmor", lambda: None)
    place = tmp_path / "repository"
    (place / ".github/workflows").mkdir(parents=True)
    (place / ".github/workflows/run.yml").write_text(RUNNER)
    return place


@dataclass(frozen=True)
class Found:
    """The exit code of doctor, the verdict of each check, and the codes found in each file."""

    code: int
    statuses: dict[str, str]
    codes: dict[str, list[str]]
    document: Any


@pytest.fixture
def doctor(accord: Accord, repository: Path) -> Doctor:
    def examine() -> Found:
        ended = accord("doctor", "--root", repository, "--format", "json")
        document = ended.document
        statuses = {check["name"]: check["status"] for check in document["checks"]}
        codes = {file["path"]: [finding["code"] for finding in file["findings"]] for file in document["documents"]}
        return Found(ended.code, statuses, codes, document)

    return examine


def test_a_repository_in_order_passes_without_asking_anybody(doctor: Doctor, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("accord.workflows.doctor.find_zizmor", find_zizmor)
    found = doctor()
    assert (found.code, found.document["ok"], found.codes) == (0, True, {})
    for name in ("labels on GitHub", *LIVE):
        assert found.statuses.pop(name) == "skipped"
    assert found.statuses["zizmor"] == "ok"
    for name in ("agent jobs", "call permissions", "secrets", "called files", "caches"):
        assert found.statuses.pop(name) == "skipped", "nothing to look at"
    assert set(found.statuses.values()) == {"ok"}


@pytest.mark.parametrize(("found", "line"), [(None, "Install it: "), ("/nonexistent/zizmor", "cannot be read")])
def test_checks_that_zizmor_would_do_are_named_where_it_does_not_run(
    accord: Accord, repository: Path, monkeypatch: pytest.MonkeyPatch, found: str | None, line: str
) -> None:
    monkeypatch.setattr("accord.workflows.doctor.find_zizmor", lambda: found)
    ended = accord("doctor", "--root", repository, "--offline")
    assert ended.code == 0
    assert "zizmor            skipped  zizmor" in ended.out
    _, _, rest = ended.out.partition("Not checked (zizmor")
    assert "permissions, pins" in rest
    assert line in ended.out
    assert ("Install it" in rest) == (found is None)


@pytest.mark.slow
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


def test_a_workflow_that_cannot_be_read_does_not_hide_the_others(doctor: Doctor, repository: Path) -> None:
    (repository / ".github/workflows/a.yaml").write_text("on: [")
    (repository / ".github/workflows/z.yml").write_text(UNNAMED)
    found = doctor()
    assert found.codes[".github/workflows/a.yaml"] == ["not-yaml"]
    assert found.codes[".github/workflows/z.yml"] == ["workflow-unnamed"]
    assert found.statuses["workflows"] == "error"


@pytest.mark.parametrize(
    "name", [".github/workflows/f.yml", ".github/agents/registry.yml", ".github/labels.yml", ".github/workflows"]
)
def test_nothing_outside_of_the_repository_is_read_where_a_branch_brings_a_link(
    doctor: Doctor, repository: Path, tmp_path: Path, name: str
) -> None:
    """Otherwise, the author of a change could read files of the machine in the output of doctor."""
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "f.yml").write_text("name: correct-horse\non: push\njobs: {a: {steps: [{uses: correct/horse@v1}]}}\n")
    place = repository / name
    if name.endswith("workflows"):
        shutil.rmtree(place)
    place.parent.mkdir(parents=True, exist_ok=True)
    place.symlink_to(outside if name.endswith("workflows") else outside / "f.yml")
    found = doctor()
    assert (found.code, found.codes[name]) == (1, ["file-unreadable"])
    assert "correct" not in json.dumps(found.document)


def test_a_link_to_another_file_of_the_repository_is_followed(doctor: Doctor, repository: Path) -> None:
    (repository / "shared.yml").write_text(UNNAMED)
    (repository / ".github/workflows/l.yml").symlink_to("../../shared.yml")
    (repository / ".github/workflows/round.yml").symlink_to("round.yml")
    found = doctor()
    assert "workflow-unnamed" in found.codes[".github/workflows/l.yml"]
    assert found.codes[".github/workflows/round.yml"] == ["file-unreadable"]


def registry(repository: Path, text: str) -> None:
    (repository / ".github/agents").mkdir()
    (repository / ".github/agents/registry.yml").write_text(text)


def test_labels_and_a_registry_that_do_not_hold_are_errors_on_their_lines(doctor: Doctor, repository: Path) -> None:
    (repository / ".github/labels.yml").write_text("- {name: bug}\n")
    registry(repository, "agents:\n  codex:\n    codec: morse\n")
    found = doctor()
    assert (found.code, found.statuses["label file"], found.statuses["registry"]) == (1, "error", "error")
    lines = {file["path"]: file["findings"][0]["line"] for file in found.document["documents"]}
    assert lines == {".github/agents/registry.yml": 3, ".github/labels.yml": 1}


@pytest.mark.parametrize(("token", "code"), [("", "label-drift"), ("expired", "labels-unknown")])
def test_labels_that_differ_or_cannot_be_read_on_github_are_a_warning(
    accord: Accord, doctor: Doctor, repository: Path, stage: Stage, token: str, code: str
) -> None:
    (repository / ".github/labels.json").write_text('[{"name": "bug", "description": "", "color": "d73a4a"}]')
    accord.on(stage, GITHUB_TOKEN=token or stage.server.token)
    found = doctor()
    assert (found.code, found.statuses["labels on GitHub"]) == (0, "warning")
    assert found.codes[".github/labels.json"] == [code]


ORDERED = (
    "name: N\non: issues\npermissions: {}\njobs:\n  a:\n    runs-on: x\n    steps:\n"
    "      - uses: some/action@v1\n      - run: |\n          set -e\n          echo ${{ github.event.issue.title }}\n"
)


def test_errors_come_first_at_the_line_of_the_expression(accord: Accord, doctor: Doctor, repository: Path) -> None:
    (repository / ".github/workflows/a.yml").write_text(ORDERED.replace("${{ github.event.issue.title }}", "x"))
    (repository / ".github/workflows/b.yml").write_text(ORDERED)
    (file, *others) = doctor().document["documents"]
    first, *more = file["findings"]
    assert (file["path"], first["code"], first["line"]) == (".github/workflows/b.yml", "unsafe-interpolation", 11)
    later = [*more, *(each for other in others for each in other["findings"])]
    assert {each["severity"] for each in later} == {"warning"}
    text = accord("doctor", "--root", repository).out
    assert text.rindex(": error ") < text.index(": warning ")


@pytest.mark.slow
def test_the_remote_of_the_examined_checkout_names_the_repository(
    accord: Accord, doctor: Doctor, repository: Path, stage: Stage
) -> None:
    (repository / ".github/labels.json").write_text('[{"name": "bug", "description": "", "color": "d73a4a"}]')
    accord.on(stage)
    accord.monkeypatch.delenv("GITHUB_REPOSITORY")
    assert doctor().statuses["labels on GitHub"] == "skipped"
    git = Git(repository)
    git("init", "--quiet")
    git("remote", "add", "origin", f"{stage.server.url}/accord/sandbox.git")
    assert doctor().codes[".github/labels.json"] == ["label-drift"]


def test_a_step_gets_a_summary_with_the_table(accord: Accord, doctor: Doctor, repository: Path) -> None:
    step = accord.in_step(annotates=False)
    (repository / ".github/workflows/x.yml").write_text("on: push\npermissions: {}\njobs: {}\n")
    assert doctor().code == 0
    assert "| names | ⚠️ warning |" in step.summary
    assert "#### .github/workflows/x.yml" in step.summary
    assert step.outputs == {"ok": "true"}


def test_a_folder_that_is_not_a_repository_is_refused(accord: Accord, tmp_path: Path) -> None:
    ended = accord("doctor", "--root", tmp_path)
    assert (ended.code, ended.out) == (2, "")
    assert "neither `.git` nor `.github`" in ended.err


NEW_REPOSITORY = """
tokens:
  - {token: admin-app, login: "setup[bot]", kind: installation, permissions: {administration: read}}
repositories:
  - name: accord/sandbox
    settings: default
    files: {README.md: Hello}
    rulesets: [{branches: ["accord/**"], rules: [required_signatures]}]
"""


@pytest.fixture
def new_repository(tmp_path: Path, repository: Path) -> Iterator[Stage]:
    """A repository with GitHub's default settings, and the kit's workflows in its checkout."""
    shutil.copytree(ROOT / "templates/consumer-repo/.github", repository / ".github", dirs_exist_ok=True)
    with staged(tmp_path / "stage", seed=NEW_REPOSITORY) as stage:
        yield stage


LIVE = {"token", "pull requests", "job permissions", "agent secrets", "logins", "branch rules"}


@pytest.mark.slow
def test_an_administrator_sees_what_github_would_refuse(accord: Accord, doctor: Doctor, new_repository: Stage) -> None:
    accord.on(new_repository)
    found = doctor()
    assert found.code == 1
    listed = {code for codes in found.codes.values() for code in codes} - {"label-drift", "secret-unnamed"}
    assert listed == {"pulls-not-allowed", "agent-secret-missing", "branch-rule"}
    assert {found.statuses[name] for name in ("token", "job permissions", "logins")} == {"ok"}
    assert found.codes[".github/workflows/accord-implement.yml"][0] == "pulls-not-allowed"
    ((hint,),) = [
        [each["hint"] for each in file["findings"] if each["code"] == "pulls-not-allowed"]
        for file in found.document["documents"]
        if file["path"].endswith("accord-implement.yml")
    ]
    assert f"{new_repository.server.url}/accord/sandbox/settings/actions" in hint
    writes = [request for request in new_repository.server.requests if request[0] != "GET"]
    assert writes == []


LOOSE = """\
name: Loose # kept
on: push
permissions: {}
jobs:
  a:
    runs-on: ubuntu-latest
    steps:
      - uses: accord/sandbox@main
      - uses: actions/checkout@v7
"""


@pytest.mark.slow
def test_workflows_are_corrected_in_place_and_a_dry_run_shows_the_diff(accord: Accord, repository: Path) -> None:
    file = repository / ".github/workflows/loose.yml"
    file.write_text(LOOSE)
    ended = accord("doctor", "--root", repository, "--fix", "--dry-run")
    assert file.read_text() == LOOSE
    assert "would fix: Pinned `actions/checkout@v7` to its commit" in ended.out
    assert "+          persist-credentials: false\n" in ended.out
    ended = accord("doctor", "--root", repository, "--fix")
    assert "not fixed: `accord/sandbox@main` is not pinned" in ended.out
    lines = file.read_text().splitlines()
    assert lines[8:11] == [
        "      - uses: actions/checkout@3d3c42e5aac5ba805825da76410c181273ba90b1 # v7.0.1",
        "        with:",
        "          persist-credentials: false",
    ]
    assert [line for line in LOOSE.splitlines() if line not in lines] == ["      - uses: actions/checkout@v7"]
    again = accord("doctor", "--root", repository, "--fix", "--format", "json").document["fixes"]
    assert [(each["path"], each["fixed"]) for each in again] == [
        (f".github/workflows/{name}.yml", []) for name in ("loose", "run")
    ]


@pytest.mark.slow
def test_github_is_asked_for_commits_that_are_not_known(
    accord: Accord, repository: Path, new_repository: Stage
) -> None:
    (repository / ".github/workflows/loose.yml").write_text(LOOSE)
    accord.on(new_repository)
    accord("doctor", "--root", repository, "--fix")
    text = (repository / ".github/workflows/loose.yml").read_text()
    assert re.search(r"uses: accord/sandbox@[0-9a-f]{40} # main\n", text)
    asked = [request for request in new_repository.server.requests if request[1].endswith("/sandbox/commits")]
    assert len(asked) == 1


def test_doctor_gives_up_after_the_first_request_that_gets_no_answer(
    accord: Accord, repository: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It takes all its tries once, says so once, and names what would not wait."""
    monkeypatch.setattr("accord.github.pacing.FIRST_BACKOFF_SECONDS", 0.0)
    tried = []

    def turn_away(listener: socket.socket) -> None:
        with suppress(OSError):
            while True:
                listener.accept()[0].close()
                tried.append(1)

    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=turn_away, args=[listener])
        thread.start()
        monkeypatch.setenv("GITHUB_API_URL", f"http://127.0.0.1:{listener.getsockname()[1]}")
        for name, value in {"GITHUB_TOKEN": "dummy", "GITHUB_REPOSITORY": "octo/web"}.items():
            monkeypatch.setenv(name, value)
        ended = accord("doctor", "--root", repository)
        asked = len(tried)
        offline = accord("doctor", "--root", repository, "--offline")
        assert len(tried) == asked == 5
        listener.shutdown(socket.SHUT_RDWR)
        thread.join()
    assert ended.out.count("GitHub cannot be reached") == 1
    assert "): labels on GitHub, token, pull requests, job permissions, agent secrets, logins, br" in ended.out
    assert "with `--offline`" in ended.out
    assert (offline.code, "GitHub (--offline): labels on GitHub, token" in offline.out) == (0, True)
