"""SIGKILL at any moment, then the same command again: the end is that of a clean run."""

from __future__ import annotations

import json
import multiprocessing
import os
import signal
from typing import TYPE_CHECKING

import pytest
import test_faults
from support.stage import Stage

if TYPE_CHECKING:
    from pathlib import Path

    from accord.sandbox.server import Exchange


pytestmark = pytest.mark.matrix


def run_accord(arguments: list[str], environment: dict[str, str]) -> None:
    from accord.cli.main import main

    os.environ.update(environment)
    with open(os.devnull, "w") as nowhere:
        os.dup2(nowhere.fileno(), 1)
        os.dup2(nowhere.fileno(), 2)
    main(arguments)


class Assassin:
    """Kills a process when the server has carried out so many requests, before it answers the last one."""

    def __init__(self, nth: int) -> None:
        self.nth = nth
        self.seen = 0
        self.process: multiprocessing.process.BaseProcess | None = None

    def __call__(self, exchange: Exchange) -> None:
        if exchange.phase != "applied":
            return
        self.seen += 1
        if self.seen == self.nth and self.process and self.process.pid:
            os.kill(self.process.pid, signal.SIGKILL)


@pytest.mark.parametrize("part", range(4))
def test_a_killed_run_is_finished_by_the_next_one(shared_stage: Stage, tmp_path: Path, part: int) -> None:
    stage = shared_stage
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["accord.cli.apply", "accord.github.adapter", "github", "accord.results.run"])
    file = tmp_path / "plan.json"
    file.write_text(json.dumps(test_faults.RESULT))
    environment = {
        "GITHUB_API_URL": stage.server.url,
        "GITHUB_TOKEN": stage.server.token,
        "GITHUB_REPOSITORY": stage.repository,
    }
    stage.server.reset()
    test_faults.seed(stage)
    stage.apply(test_faults.RESULT)
    count = len(stage.server.requests)
    expected = stage.snapshot()
    for nth in range(1 + part, count + 1, 4):
        stage.server.reset()
        test_faults.seed(stage)
        assassin = Assassin(nth)
        process = context.Process(target=run_accord, args=(["apply", str(file)], environment))
        assassin.process = process
        stage.server.observers.append(assassin)
        process.start()
        process.join(30)
        stage.server.observers.remove(assassin)
        assert process.exitcode == -signal.SIGKILL, (nth, process.exitcode)
        stage.clock.sleep(3600 * (nth % 3 == 0))
        receipt = stage.apply(test_faults.RESULT)
        assert receipt.exit_code == 0, (nth, receipt.error)
        assert stage.snapshot() == expected, nth
        assert stage.apply(test_faults.RESULT).writes == 0, nth
