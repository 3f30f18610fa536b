"""All tests start from the same environment, for every caller, and a run of them says how it goes."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from support.environment import clean_environment

ROOT = Path(__file__).parents[2]

CALLERS = {
    "a terminal": {"TERM": "xterm-256color", "COLUMNS": "40", "FORCE_COLOR": "1", "LINES": "9"},
    "no colors": {"TERM": "dumb", "NO_COLOR": "1"},
    "a step of a job": {"CI": "true", "GITHUB_ACTIONS": "true", "GITHUB_TOKEN": "x", "RUNNER_DEBUG": "1"},
    "a developer": {"GIT_AUTHOR_NAME": "Me", "LC_ALL": "C", "TZ": "Asia/Kathmandu", "EDITOR": "false", "TMPDIR": "/no"},
    "a proxy": {"HTTPS_PROXY": "http://127.0.0.1:9", "all_proxy": "socks5://127.0.0.1:9", "no_proxy": "example.org"},
    "an option of accord": {"ACCORD_APPLY_REPO": "octo/third", "GH_TOKEN": "x", "OPENAI_API_KEY": "x"},
}


@pytest.mark.parametrize("caller", CALLERS.values(), ids=CALLERS)
def test_tests_do_not_see_the_settings_of_their_caller(caller: dict[str, str]) -> None:
    ordinary = {"PATH": "/bin", "HOME": "/home/me"}
    home = Path("/tmp/home")
    assert clean_environment(ordinary | caller, home) == clean_environment(ordinary, home)


def test_tests_find_the_packages_of_their_caller() -> None:
    mirror = {"PIP_INDEX_URL": "https://mirror.example/simple", "SSL_CERT_FILE": "/company.pem", "HOME": "/home/me"}
    kept = clean_environment(mirror, Path("/tmp/home"))
    assert kept.items() >= {**mirror, "HOME": "/tmp/home", "UV_CACHE_DIR": "/home/me/.cache/uv"}.items()


def test_this_process_and_those_that_it_starts_are_in_that_environment() -> None:
    read = "import os, time; print(os.umask(0), os.environ['HOME'], time.tzname[0], os.environ.get('TERM'))"
    printed = subprocess.run([sys.executable, "-c", read], capture_output=True, text=True, check=True).stdout.split()
    assert printed == [str(0o022), os.environ["HOME"], "UTC", "None"]
    settings = subprocess.run(["git", "config", "--list", "--show-scope"], cwd="/", capture_output=True, text=True)
    assert {line for line in settings.stdout.splitlines() if "user.name" in line} == {"global\tuser.name=Tess Tester"}


PLAYED = """
import pytest

def test_good(): pass
def test_bad(): assert "a b" == "c"
def test_odd(): pytest.skip("no Chromium: apt install chromium")
"""


@pytest.mark.slow
def test_a_run_prints_each_failure_with_its_command_and_what_was_skipped(tmp_path: Path) -> None:
    (tmp_path / "test_played.py").write_text(PLAYED)
    (tmp_path / "conftest.py").write_text((ROOT / "tests/conftest.py").read_text())
    (tmp_path / "pytest.ini").write_text(f"[pytest]\npythonpath = '{ROOT / 'tests'}'\naddopts = -q\n")
    own_temp = f"--basetemp={tmp_path / 'base'}"  # the default one removes what earlier runs left, for minutes
    command = [sys.executable, "-m", "pytest", "-n", "1", "-p", "no:anyio", own_temp]
    own = {name: value for name, value in os.environ.items() if not name.startswith(("PYTEST_", "COVERAGE_"))}
    done = subprocess.run(command, cwd=tmp_path, env=own, capture_output=True, text=True)
    assert done.returncode == 1
    assert "Repeat it with: ./dev quick test_played.py::test_bad\n" in done.stdout
    assert "1 skipped: no Chromium: apt install chromium\n" in done.stdout
    assert len(re.findall(r"^E +.*'a b' == 'c'$", done.stdout, re.MULTILINE)) == 1
    assert "FAILED test_played.py::test_bad" in done.stdout
