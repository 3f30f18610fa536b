"""A bug report has all that a maintainer needs, and no secret."""

import base64
import json
import zipfile
from pathlib import Path

import pytest
from support.commands import Accord

from accord.doctor import bundle

TOKEN = "ghp_" + "a1B2" * 9
VALUE = "correct-horse-battery-staple"
WORKFLOW = "on: push\njobs: {a: {runs-on: ubuntu-latest, steps: [{run: 'echo %s'}]}}\n"


def repository(folder: Path) -> Path:
    for name, text in {
        ".github/workflows/ci.yml": WORKFLOW % TOKEN,
        ".github/agents/registry.yml": f"# {VALUE}\nagents: {{}}\n",
        "src/private.py": "print('not configuration')\n",
    }.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    return folder


def contents(path: Path) -> dict[str, str]:
    with zipfile.ZipFile(path) as archive:
        return {name.removeprefix("accord-bundle/"): archive.read(name).decode() for name in archive.namelist()}


def bundled(accord: Accord, *include: Path) -> dict[str, str]:
    accord.monkeypatch.setenv("DEPLOY_PASSWORD", VALUE)
    root = repository(accord.home / "repository")
    path = accord.home / "report.zip"
    words = [word for each in include for word in ("--include", each)]
    ended = accord("doctor", "--root", root, "--bundle", path, *words)
    assert "Next: read it" in ended.out
    return contents(path)


@pytest.mark.slow
def test_secrets_of_every_form_are_replaced_in_every_file(accord: Accord, tmp_path: Path) -> None:
    run = tmp_path / "run"
    run.mkdir()
    encoded = base64.b64encode(VALUE.encode()).decode()
    (run / "stdout.log").write_text(f"{TOKEN}\n{VALUE}\n{encoded}\n{VALUE.encode().hex()}\n")
    (run / f"{VALUE}.txt").write_text("named like a secret")
    (run / "receipt.json").write_text(json.dumps({"outcome": "applied", "note": TOKEN}))
    found = bundled(accord, run, run / "receipt.json")
    whole = "".join([*found, *found.values()])
    assert all(secret not in whole for secret in (TOKEN, VALUE, encoded, VALUE.encode().hex()))
    assert found[".github/workflows/ci.yml"].count("[redacted: ") == 1
    assert '"outcome": "applied"' in found["included/1/run/receipt.json"]
    assert "included/2/receipt.json" in found


@pytest.mark.slow
def test_it_holds_versions_configuration_and_findings_but_no_other_file(accord: Accord) -> None:
    found = bundled(accord)
    assert found.keys() == {
        *("MANIFEST.txt", "versions.json", "doctor.json"),
        *(".github/workflows/ci.yml", ".github/agents/registry.yml"),
    }
    assert json.loads(found["versions.json"])["accord"]
    assert json.loads(found["doctor.json"])["checks"]


@pytest.mark.slow
def test_links_and_binary_files_stay_out_and_are_named(accord: Accord, tmp_path: Path) -> None:
    run, outside = tmp_path / "run", tmp_path / "outside"
    run.mkdir()
    outside.mkdir()
    (outside / "private.txt").write_text("private words")
    (run / "link").symlink_to(outside / "private.txt")
    (run / "folder").symlink_to(outside)
    (run / "image.png").write_bytes(b"\x89PNG\0")
    (accord.home / "repository/.github/workflows").mkdir(parents=True)
    (accord.home / "repository/.github/workflows/link.yml").symlink_to(outside / "private.txt")
    found = bundled(accord, run)
    assert "private words" not in "".join(found.values())
    for name in ("run/link: not a regular file", "run/image.png: not text", "workflows/link.yml: not a regular file"):
        assert name in found["MANIFEST.txt"]


@pytest.mark.slow
def test_long_files_are_cut_and_many_are_left_out(accord: Accord, tmp_path: Path) -> None:
    accord.monkeypatch.setattr(bundle, "FILE_BYTES", 1000)
    accord.monkeypatch.setattr(bundle, "ALL_BYTES", 20_000)
    run = tmp_path / "run"
    run.mkdir()
    (run / "0.log").write_text("first\n" + "x" * 5000 + "\nlast")
    for i in range(1, 40):
        (run / f"{i}.log").write_text("y" * 900)
    found = bundled(accord, run)
    assert found["included/1/run/0.log"].startswith("first")
    assert found["included/1/run/0.log"].endswith("last")
    assert "bytes are left out here" in found["included/1/run/0.log"]
    assert sum(len(text) for name, text in found.items() if name != "MANIFEST.txt") < 22_000
    assert "MiB already" in found["MANIFEST.txt"]


@pytest.mark.slow
def test_the_same_repository_gives_the_same_bytes(accord: Accord) -> None:
    bundled(accord)
    first = (accord.home / "report.zip").read_bytes()
    bundled(accord)
    assert (accord.home / "report.zip").read_bytes() == first


@pytest.mark.parametrize("words", [["--include", "."], ["--bundle", "kept.txt"]])
def test_wrong_words_write_nothing(accord: Accord, words: list[str]) -> None:
    root = repository(accord.home / "repository")
    (accord.home / "kept.txt").write_text("mine")
    refused = accord("doctor", "--root", root, *words)
    assert refused.code == 2
    assert (accord.home / "kept.txt").read_text() == "mine"


@pytest.mark.slow
def test_the_json_names_the_files(accord: Accord) -> None:
    root = repository(accord.home / "repository")
    ended = accord("doctor", "--root", root, "--bundle", accord.home / "report.zip", "--format", "json")
    assert ".github/workflows/ci.yml" in ended.document["bundle"]["files"]
    dry = accord("doctor", "--root", root, "--bundle", accord.home / "other.zip", "--dry-run")
    assert dry.code in (0, 1)
    assert not (accord.home / "other.zip").exists()
