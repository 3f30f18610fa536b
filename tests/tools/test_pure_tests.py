"""Tests of pure code load neither the sandbox nor PyGithub, so that one file of them runs in a second."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[1]
PURE = ("core", "files", "git", "gha", "missions", "text", "workflows")
HEAVY = {"accord_sandbox", "github", "starlette", "support.stage"}

IMPORT = """
import importlib.util
import sys

for number, file in enumerate(sys.argv[1:]):
    spec = importlib.util.spec_from_file_location(f"test_{number}", file)
    sys.modules[spec.name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(sys.modules[spec.name])
print("MODULES", *sys.modules)
"""


@pytest.mark.slow
def test_pure_tests_load_nothing_heavy() -> None:
    files = [TESTS / "conftest.py", *(file for name in PURE for file in sorted((TESTS / name).glob("*.py")))]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(TESTS), str(TESTS.parent / "tools")])}
    environment = {name: value for name, value in environment.items() if not name.startswith(("COVERAGE_", "PYTEST_"))}
    done = subprocess.run(
        [sys.executable, "-c", IMPORT, *files], capture_output=True, text=True, check=True, env=environment
    )
    loaded = set(done.stdout.partition("MODULES ")[2].split())
    assert "accord.core.machine" in loaded
    assert loaded & HEAVY == set()
