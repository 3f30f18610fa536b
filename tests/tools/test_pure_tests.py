"""Tests of pure code load neither the sandbox nor PyGithub, so that one file of them runs in a second."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[1]
PURE = ("core", "files", "git", "gha", "missions", "text", "workflows")
HEAVY = {"accord_sandbox", "github", "starlette", "support.stage"}

COLLECT = """
import sys
import pytest

pytest.main(["--collect-only", "-q", "--no-header", *sys.argv[1:]])
print("MODULES", *sys.modules)
"""


@pytest.mark.slow
def test_pure_tests_load_nothing_heavy() -> None:
    folders = [str(TESTS / name) for name in PURE if (TESTS / name).is_dir()]
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("COVERAGE_", "PYTEST_"))}
    done = subprocess.run(
        [sys.executable, "-c", COLLECT, *folders], capture_output=True, text=True, check=True, env=environment
    )
    loaded = set(done.stdout.partition("MODULES ")[2].split())
    assert "accord.core.machine" in loaded
    assert loaded & HEAVY == set()
