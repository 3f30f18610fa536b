"""The kit's review: the diff that the agent gets shows every change, whatever the pull request's own files say."""

import os
import subprocess
from pathlib import Path

import yaml
from support.trees import git

from accord.kit.templates import shipped_kit


def test_no_file_of_a_pull_request_hides_a_change_from_the_reviewer(tmp_path: Path) -> None:
    revision = tmp_path / "revision"
    revision.mkdir()
    git(revision, "init", "--quiet", "--initial-branch", "main")
    (revision / "a.py").write_text("kept = 1\n")
    git(revision, "add", ".")
    git(revision, "commit", "--quiet", "-m", "Base")
    base = git(revision, "rev-parse", "HEAD").strip()
    git(revision, "update-ref", "refs/remotes/origin/main", base)
    (revision / "a.py").write_text("hidden = 2\n")
    (revision / ".gitattributes").write_text("*.py -diff\n")
    (revision / ".gitmodules").write_text('[submodule "s"]\n\tpath = s\n\turl = ./s\n\tignore = all\n')
    git(revision, "add", ".")
    git(revision, "update-index", "--add", "--cacheinfo", f"160000,{base},s")
    git(revision, "commit", "--quiet", "-m", "Change")

    steps = yaml.safe_load(shipped_kit().files[".github/workflows/accord-review.yml"])["jobs"]["review"]["steps"]
    script = next(step["run"] for step in steps if step.get("id") == "told")
    places = {"RUNNER_TEMP": str(tmp_path), "GITHUB_OUTPUT": str(tmp_path / "output"), "BASE": "main"}
    subprocess.run(["bash", "-e", "-c", script], cwd=tmp_path, env={**os.environ, **places}, check=True)
    diff = (tmp_path / "change.diff").read_text()
    assert "+hidden = 2" in diff
    assert f"+Subproject commit {base}" in diff
