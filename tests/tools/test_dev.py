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


@pytest.mark.parametrize("choice", ["", "0"])
def test_dev_lets_uv_trust_the_certificates_of_the_system(checkout: Path, choice: str) -> None:
    script(checkout / "uv", 'echo "$UV_SYSTEM_CERTS" > told')
    script(checkout / "actions" / "setup" / "uv.sh", 'echo "$PWD/uv"')
    own = {name: value for name, value in os.environ.items() if name != "UV_SYSTEM_CERTS"}
    command = [str(checkout / "dev"), "demo"]
    subprocess.run(command, env=own | ({"UV_SYSTEM_CERTS": choice} if choice else {}), capture_output=True, check=True)
    assert (checkout / "told").read_text() == f"{choice or 1}\n"


def test_dev_installs_below_a_path_with_letters_that_the_locale_lacks(checkout: Path) -> None:
    script(checkout / "uv", 'echo "$LC_ALL" > told')
    script(checkout / "actions" / "setup" / "uv.sh", 'echo "$PWD/uv"')
    environment = os.environ | {"LC_ALL": "POSIX"}
    subprocess.run([str(checkout / "dev"), "demo"], env=environment, capture_output=True, check=True)
    assert (checkout / "told").read_text() == "C.UTF-8\n"


def test_dev_accord_reads_files_relative_to_the_callers_folder(checkout: Path, tmp_path: Path) -> None:
    mine = tmp_path / "my repository"
    mine.mkdir()
    command = [str(checkout / "dev"), "accord", "check", "my plan.json"]
    done = subprocess.run(command, cwd=mine, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == [str(mine), "check", "my plan.json"]


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


def test_dev_starts_from_another_folder_with_a_search_path_for_cd(checkout: Path, tmp_path: Path) -> None:
    (tmp_path / "other" / "accord").mkdir(parents=True)
    environment = os.environ | {"CDPATH": f"{tmp_path}/other:."}
    done = subprocess.run(
        ["accord/dev", "accord"], cwd=tmp_path, env=environment, capture_output=True, text=True, check=True
    )
    assert done.stdout.splitlines()[0] == str(tmp_path)


def test_dev_keeps_what_uv_downloads_where_a_home_cannot_be_written(checkout: Path) -> None:
    script(checkout / "uv", 'echo "$UV_CACHE_DIR" > told')
    script(checkout / "actions" / "setup" / "uv.sh", 'echo "$PWD/uv"')
    own = {name: value for name, value in os.environ.items() if name not in ("UV_CACHE_DIR", "XDG_CACHE_HOME")}
    subprocess.run([str(checkout / "dev"), "demo"], env=own | {"HOME": "/proc"}, capture_output=True, check=True)
    assert (checkout / "told").read_text() == f"{checkout}/.uv/cache\n"
