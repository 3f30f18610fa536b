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
