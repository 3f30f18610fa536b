"""The example repositories: the demo plays each, and what its pull request holds works."""

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import requests
from support.commands import Accord

from accord.cli.demo import ITEMS
from accord_sandbox.server import RunningSandbox, serving

EXAMPLES = Path(__file__).parents[2] / "examples" / "repositories"
LINK = re.compile(r"\]\(([^)#:]+)\)")


def run_unittest(checkout: Path) -> None:
    subprocess.run([sys.executable, "-m", "unittest", "discover", "-s", "tests"], cwd=checkout, check=True)


def run_npm_test(checkout: Path) -> None:
    for words in (["ci", "--no-audit", "--no-fund"], ["test"]):
        subprocess.run(["npm", *words], cwd=checkout, check=True, env={**os.environ, "CI": "1"})


def follow_links(checkout: Path) -> None:
    for page in checkout.rglob("*.md"):
        for target in LINK.findall(page.read_text(encoding="utf-8")):
            assert (page.parent / target).exists(), f"{page.name} links to {target}"


TESTS: dict[str, Callable[[Path], None]] = {
    "python-library": run_unittest,
    "typescript-app": run_npm_test,
    "documentation": follow_links,
}


def ask(server: RunningSandbox, method: str, path: str) -> Any:
    headers = {"Authorization": f"Bearer {server.token}"}
    answer = requests.request(method, f"{server.url}/repos/{server.repository}{path}", headers=headers, timeout=600)
    answer.raise_for_status()
    return answer.json()


def test_every_example_repository_can_be_played_and_has_valid_results(accord: Accord) -> None:
    names = {path.name for path in EXAMPLES.iterdir()}
    assert names == set(ITEMS) - {"contacts"} == set(TESTS)
    checked = accord.document("check", *sorted(EXAMPLES.glob("*/*-result.json")))["documents"]
    assert [document["findings"] for document in checked] == [[]] * 3 * len(names)


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.matrix if i else ()) for i, name in enumerate(TESTS)]
)
def test_an_example_goes_from_its_spec_to_a_change_that_works(accord: Accord, tmp_path: Path, name: str) -> None:
    played = accord("demo", "--no-stay", "--example", name, "--dir", accord.home / "sandbox")
    assert played.code == 0, played.err
    assert played.out.count("and again: unchanged") == 3

    verdict = json.loads((EXAMPLES / name / "reviewer-result.json").read_text(encoding="utf-8"))["review"]["verdict"]
    with serving(accord.home / "sandbox") as server:
        (pull,) = ask(server, "GET", "/pulls")
        address = f"http://x-access-token:{server.token}@{server.url.partition('//')[2]}/{server.repository}.git"
        subprocess.run(
            ["git", "clone", "--quiet", "--branch", pull["head"]["ref"], address, str(tmp_path / "change")], check=True
        )
        TESTS[name](tmp_path / "change")

        states = {review["state"] for review in ask(server, "GET", f"/pulls/{pull['number']}/reviews")}
        assert {"approve": "COMMENTED", "needs-changes": "CHANGES_REQUESTED"}[verdict] in states
        if verdict == "approve":
            assert ask(server, "PUT", f"/pulls/{pull['number']}/merge")["merged"]
            assert ask(server, "GET", "/issues/1")["state"] == "closed"
            assert ask(server, "GET", "/issues/2")["state"] == "open"
