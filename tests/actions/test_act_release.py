"""A rehearsal of the release builds packages that work, and publishes nothing."""

import subprocess
from pathlib import Path

import pytest
from support.act import CONSUMER, ROOT, Bench, rewritten

from accord_sandbox.planting import INSTALLATION_TOKEN
from accord_sandbox.server import RunningSandbox

pytestmark = pytest.mark.matrix


def test_a_release_started_by_hand_ends_with_packages(bench: Bench, github: RunningSandbox, tmp_path: Path) -> None:
    clone = tmp_path / "clone"
    subprocess.run(["git", "clone", "--quiet", str(ROOT), str(clone)], check=True)
    subprocess.run(["git", "remote", "set-url", "origin", f"https://github.com/{CONSUMER}.git"], cwd=clone, check=True)
    workflow = rewritten((ROOT / ".github/workflows/release.yml").read_text(encoding="utf-8"))
    gh = tmp_path / "programs/gh"
    gh.parent.mkdir()
    gh.write_text('#!/bin/sh\nmkdir dist && cp "$ARTIFACTS"/* dist\n')
    gh.chmod(0o755)
    run = bench.run(
        workflow.replace("ubuntu-24.04", "ubuntu-latest"),
        tmp_path / "run",
        clone=clone,
        api_url=github.url,
        token=INSTALLATION_TOKEN,
        programs=gh.parent,
    )
    assert run.exit_code == 0, run.trouble
    assert [name for name, ended in run.jobs.items() if ended == "success"] == [
        "Release/Build the packages",
        "Release/Play the demo from the package",
    ]
    assert "and again: unchanged" in run.log
    assert {path.suffix for path in run.artifacts.iterdir()} == {".whl", ".gz"}
    assert run.summary.strip()
