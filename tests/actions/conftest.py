"""One set-up of accord for all runs of a test session, whichever process they are in."""

import fcntl
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.act import CONSUMER, Bench, make_consumer, publish, stand_ins

from accord_sandbox.server import RunningSandbox, serving

PLANTED = [f"{name}.py" for name in ("pip", "sitecustomize", "uv", "venv")]
"""Files of a workspace that must not become part of the set-up."""

ASTRAY = {"PYTHONPATH": ".", "PYTHONHOME": "/nowhere", "PIP_TARGET": "/nowhere", "UV_PROJECT": "/nowhere"}
"""Variables of a job that must not redirect the set-up."""


@pytest.fixture(scope="session")
def bench(tmp_path_factory: pytest.TempPathFactory, worker_id: str) -> Bench:
    own = tmp_path_factory.mktemp("bench")
    shared = tmp_path_factory.getbasetemp() if worker_id == "master" else tmp_path_factory.getbasetemp().parent
    programs = own / "programs"
    programs.mkdir()
    (programs / "python3").symlink_to(Path(sys.executable).resolve())
    bench = Bench(shared / "published", stand_ins(own / "stand-ins"), shared / "accord-home", programs)
    with (shared / "accord-home.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if bench.home.exists():
            return bench
        sources = publish(shared / "sources") / "src"
        publish(bench.published, sources=sources)
        publish(bench.with_own_tokens.published, sources=sources, own_tokens=True)
        workspace = own / "workspace"
        make_consumer(workspace, dict.fromkeys(PLANTED, "raise SystemExit('hijacked')\n"))
        environment = {**os.environ, **ASTRAY, "ACCORD_HOME": str(bench.home)}
        subprocess.run(["bash", bench.published / "actions/setup/setup.sh"], cwd=workspace, env=environment, check=True)
    return bench


@pytest.fixture
def github(tmp_path: Path) -> Iterator[RunningSandbox]:
    with serving(tmp_path / "sandbox", repository=CONSUMER) as running:
        yield running
