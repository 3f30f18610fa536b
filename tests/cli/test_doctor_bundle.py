"""A bug report has all that a maintainer needs, and no secret."""

import base64
import json
import zipfile
from pathlib import Path

import pytest
from support.commands import Accord

from accord.doctor import bundle
from accord.text.redaction import redactor_for

TOKEN = "ghp_" + "a1B2" * 9
VALUE = "correct-horse-battery-staple"
WORKFLOW = "on: push\njobs: {a: {runs-on: ubuntu-latest, steps: [{run: 'echo %s'}]}}\n"


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A repository with secrets in its configuration, examined where only git is installed."""
    monkeypatch.setattr(bundle, "_PROGRAMS", ("git",))
    monkeypatch.setattr("accord.workflows.doctor.find_zizmor", lambda: None)
    for name, text in {
        ".github/workflows/ci.yml": WORKFLOW % TOKEN,
        ".github/agents/registry.yml": f"# {VALUE}\nagents: {{}}\n",
        "src/private.py": "print('not configuration')\n",
    }.items():
        (tmp_path / "repository" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "repository" / name).write_text(text)
    return tmp_path / "repository"


def bundled(root: Path, *include: Path) -> dict[str, str]:
    path = root.parent / "report.zip"
    bundle.write_bundle(path, root, include, {"checks": []}, redactor_for({"DEPLOY_PASSWORD": VALUE}))
    with zipfile.ZipFile(path) as archive:
        return {name.removeprefix("accord-bundle/"): archive.read(name).decode() for name in archive.namelist()}


def test_secrets_of_every_form_are_replaced_in_every_file(root: Path, tmp_path: Path) -> None:
    run = tmp_path / "run"
    run.mkdir()
    encoded = base64.b64encode(VALUE.encode()).decode()
    (run / "stdout.log").write_text(f"{TOKEN}\n{VALUE}\n{encoded}\n{VALUE.encode().hex()}\n")
    (run / f"{VALUE}.txt").write_text("named like a secret")
    (run / "receipt.json").write_text(json.dumps({"outcome": "applied", "note": TOKEN}))
    found = bundled(root, run, run / "receipt.json")
    whole = "".join([*found, *found.values()])
    assert all(secret not in whole for secret in (TOKEN, VALUE, encoded, VALUE.encode().hex()))
    assert found[".github/workflows/ci.yml"].count("[redacted: ") == 1
    assert '"outcome": "applied"' in found["included/1/run/receipt.json"]
    assert "included/2/receipt.json" in found


def test_links_and_binary_files_stay_out_and_are_named(root: Path, tmp_path: Path) -> None:
    run, outside = tmp_path / "run", tmp_path / "outside"
    run.mkdir()
    outside.mkdir()
    (outside / "private.txt").write_text("private words")
    (run / "link").symlink_to(outside / "private.txt")
    (run / "folder").symlink_to(outside)
    (run / "image.png").write_bytes(b"\x89PNG\0")
    (root / ".github/workflows/link.yml").symlink_to(outside / "private.txt")
    found = bundled(root, run)
    assert "private words" not in "".join(found.values())
    for name in ("run/link: not a regular file", "run/image.png: not text", "workflows/link.yml: not a regular file"):
        assert name in found["MANIFEST.txt"]


def test_long_files_are_cut_and_many_are_left_out(root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bundle, "FILE_BYTES", 1000)
    monkeypatch.setattr(bundle, "ALL_BYTES", 20_000)
    run = tmp_path / "run"
    run.mkdir()
    (run / "0.log").write_text("first\n" + "x" * 5000 + "\nlast")
    for i in range(1, 40):
        (run / f"{i}.log").write_text("y" * 900)
    found = bundled(root, run)
    assert found["included/1/run/0.log"].startswith("first")
    assert found["included/1/run/0.log"].endswith("last")
    assert "bytes are left out here" in found["included/1/run/0.log"]
    assert sum(len(text) for name, text in found.items() if name != "MANIFEST.txt") < 22_000
    assert "MiB already" in found["MANIFEST.txt"]


@pytest.mark.parametrize("words", [["--include", "."], ["--bundle", "kept.txt"]])
def test_wrong_words_write_nothing(accord: Accord, root: Path, words: list[str]) -> None:
    kept = accord.file("kept.txt", "mine")
    assert accord("doctor", "--root", root, *words).code == 2
    assert kept.read_text() == "mine"


@pytest.mark.slow
def test_doctor_writes_configuration_and_findings_but_no_other_file(accord: Accord, root: Path) -> None:
    path, doctor = accord.home / "report.zip", ("doctor", "--root", root, "--bundle")
    assert accord(*doctor, path, "--dry-run").code in (0, 1)
    assert not path.exists()
    named = accord(*doctor, path, "--format", "json").document["bundle"]["files"]
    before = path.read_bytes()
    with zipfile.ZipFile(path) as archive:
        found = {name.removeprefix("accord-bundle/"): archive.read(name).decode() for name in archive.namelist()}
    assert found.keys() == {
        *("MANIFEST.txt", "versions.json", "doctor.json"),
        *(".github/workflows/ci.yml", ".github/agents/registry.yml"),
    }
    assert set(named) == found.keys() - {"MANIFEST.txt"}
    assert json.loads(found["versions.json"])["accord"]
    assert json.loads(found["doctor.json"])["checks"]
    assert "Next: read it" in accord(*doctor, path).out
    assert path.read_bytes() == before, "the same repository gives the same bytes"
