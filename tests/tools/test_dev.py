"""What ``./dev`` does around the programs that it starts; here they are scripts that tell how they were called."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def script(path: Path, body: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{body}\n")
    path.chmod(0o755)


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A checkout whose environment is set up already, and whose command prints its folder and its words."""
    place = tmp_path / "accord"
    script(place / "actions" / "setup" / "uv.sh", "echo /bin/true")
    script(place / ".venv" / "bin" / "accord", 'pwd; printf "%s\\n" "$@"')
    shutil.copy(ROOT / "dev", place / "dev")
    shutil.copy(ROOT / "actions" / "setup" / "environment.sh", place / "actions" / "setup")
    return place


@pytest.mark.parametrize(
    ("name", "given", "told"),
    [
        ("UV_SYSTEM_CERTS", {}, "1"),  # so that it trusts the certificates of the system
        ("UV_SYSTEM_CERTS", {"UV_SYSTEM_CERTS": "0"}, "0"),
        ("LC_ALL", {"LC_ALL": "POSIX"}, "C.UTF-8"),  # for a path with letters that the locale lacks
        ("UV_CACHE_DIR", {"HOME": "/proc"}, "{checkout}/.uv/cache"),  # where a home cannot be written
    ],
)
def test_dev_gives_uv_an_environment_that_works(checkout: Path, name: str, given: dict[str, str], told: str) -> None:
    script(checkout / "uv", f'echo "${name}" > told')
    script(checkout / "actions" / "setup" / "uv.sh", 'echo "$PWD/uv"')
    own = {key: value for key, value in os.environ.items() if not key.startswith(("UV_", "XDG_CACHE_HOME"))}
    subprocess.run([str(checkout / "dev"), "demo"], env=own | given, capture_output=True, check=True)
    assert (checkout / "told").read_text() == f"{told.format(checkout=checkout)}\n"


def test_dev_accord_reads_files_relative_to_the_callers_folder(checkout: Path, tmp_path: Path) -> None:
    mine = tmp_path / "my repository"
    mine.mkdir()
    command = [str(checkout / "dev"), "accord", "check", "my plan.json"]
    done = subprocess.run(command, cwd=mine, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == [str(mine), "check", "my plan.json"]


def test_dev_pure_runs_the_fast_tests_of_some_folders(checkout: Path) -> None:
    script(checkout / ".venv" / "bin" / "pytest", 'printf "%s\\n" "$@"')
    done = subprocess.run([str(checkout / "dev"), "pure", "-x"], capture_output=True, text=True, check=True)
    option, _, *words, last = done.stdout.splitlines()
    assert (option, words[:2], last) == ("-n", ["-m", "not matrix and not slow"], "-x")
    assert len(words) > 2
    assert [word for word in words[2:] if not (ROOT / word).is_dir()] == []


def test_dev_drops_what_the_caller_set_for_another_project(checkout: Path) -> None:
    script(checkout / "uv", "env > told")
    script(checkout / "actions" / "setup" / "uv.sh", 'env > "$PWD/asked"; echo "$PWD/uv"')
    kept = {"PIP_INDEX_URL": "https://mirror.invalid/simple", "UV_PYTHON": "3.12", "GIT_SSL_CAINFO": "/company.pem"}
    dropped = {
        "PIP_TARGET": "/other",
        "UV_PROJECT": "/other",
        "UV_WORKING_DIRECTORY": "/",
        "GIT_DIR": "/other/.git",
        "PYTHONHOME": "/other",
    }
    subprocess.run(
        [str(checkout / "dev"), "demo"],
        env=os.environ | kept | dropped | {"PIP_USER": "1"},
        capture_output=True,
        check=True,
    )
    for name in ("asked", "told"):
        found = dict(line.partition("=")[::2] for line in (checkout / name).read_text().splitlines())
        assert {key: found.get(key) for key in (*kept, *dropped)} == kept | dict.fromkeys(dropped)
        assert (found["PIP_USER"], found["PIP_REQUIRE_VIRTUALENV"]) == ("0", "0")
