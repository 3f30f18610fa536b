"""The step outputs and the summary of ``accord classify``."""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING

import pytest
from support.act import ROOT, read_yaml

if TYPE_CHECKING:
    from pathlib import Path

    from conftest import Accord


@pytest.mark.parametrize(
    ("log", "code", "category"),
    [("ERROR: unexpected status 401 Unauthorized: invalid key", "1", "auth"), ("all is well", "0", "")],
)
def test_a_step_gets_every_output_of_the_action(
    accord: Accord, tmp_path: Path, log: str, code: str, category: str
) -> None:
    output, summary = tmp_path / "output", tmp_path / "summary"
    accord.monkeypatch.setenv("GITHUB_OUTPUT", str(output))
    accord.monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(summary))
    stderr = accord.file("stderr.log", log + "\n")
    ended = accord("classify", "--exit-code", code, "--stderr", stderr, accord.file("stdout.log", "\n"))
    assert ended.code == 0
    lines = output.read_text().splitlines()
    told = {line.partition("<<")[0]: lines[i + 1] for i, line in enumerate(lines) if "<<accord-" in line}
    assert set(told) == set(read_yaml(ROOT / "actions/classify-error/action.yml")["outputs"])
    assert told["error-category"] == category
    assert (category or "no error") in summary.read_text()


def test_the_summary_of_an_error_cannot_be_run_by_the_example_of_the_contract(accord: Accord, tmp_path: Path) -> None:
    output = tmp_path / "output"
    accord.monkeypatch.setenv("GITHUB_OUTPUT", str(output))
    odd = (
        f"""HTTP 429 Too Many Requests: "$(touch {tmp_path}/run)" `touch {tmp_path}/run`; retry after 2592000 seconds"""
    )
    stderr = accord.file("stderr.log", odd + "\n")
    accord("classify", "--exit-code", "1", "--stderr", stderr, accord.file("stdout.log", "\n"))
    lines = output.read_text().splitlines()
    told = {line.partition("<<")[0]: lines[i + 1] for i, line in enumerate(lines) if "<<accord-" in line}
    subprocess.run(["bash", "-c", f'echo "{told["error-summary"]}"'], check=True)
    assert "touch" in told["error-summary"]
    assert not (tmp_path / "run").exists()
    assert told["retry-after-seconds"] == "2592000"
