"""An agent whose own sandbox cannot start is not started, or starts once GitHub's runner allows it."""

import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from support.agent_bench import WITHOUT_NAMESPACES, Bench, Left, has_namespaces

from accord.agents.registry import AgentSettings
from accord.core.clock import SystemClock
from accord.runner.launch import check_sandbox
from accord.runner.models import AgentNotStarted, JobContext, RunOutputs, StopSignals
from accord.runner.process import Program

pytestmark = pytest.mark.slow
AGENT = "print('I am started.')"
DENIED = "bwrap: loopback: Failed RTM_NEWADDR: Operation not permitted"
HOSTED = {"RUNNER_OS": "Linux", "RUNNER_ENVIRONMENT": "github-hosted"}
REAL = ["unshare", "-Urn", "true"]
SETTINGS = ["kernel.unprivileged_userns_clone=1", "kernel.apparmor_restrict_unprivileged_userns=0"]


def entry(probe: Sequence[str]) -> dict[str, Any]:
    values = {"confined": {"probe": list(probe)}, "free": {}}
    return {"sandbox": {"default": "confined", "values": values}, "isolation": "none"}


@pytest.fixture
def programs(bench: Bench) -> Path:
    """Programs that come first on the PATH: a sandbox that starts only once it is allowed, and sudo."""
    folder = bench.top / "bin"
    folder.mkdir()
    allowed, log = bench.top / "allowed", bench.top / "sudo.log"
    scripts = {
        "sandbox": f'[ -e "{allowed}" ] && exit 0; echo "warning: old" >&2; echo "{DENIED}" >&2; exit 1',
        "sudo": f'echo "$*" >> "{log}"; case $* in *restrict*) touch "{allowed}";; *) exit 255;; esac',
    }
    for name, text in scripts.items():
        (folder / name).write_text(f"#!/bin/sh\n{text}\n")
        (folder / name).chmod(0o755)
    return folder


def run(bench: Bench, probe: Sequence[str], *more: str, job: Mapping[str, str], programs: Path) -> Left:
    path = f"{programs}:{os.environ['PATH']}"
    registry = bench.registry({"agents": {"mine": {"command": ["{command}"], **entry(probe)}}})
    return bench.run(*bench.scripted(AGENT, "mine"), "--registry", registry, *more, job={"PATH": path, **job})


def refused(left: Left) -> str:
    """Return the summary of a run that was refused before the agent started, with all outputs."""
    assert (left.code, left.record["exit_code"], left.text("stdout.log")) == (0, None, "")
    outputs = left.outputs
    assert set(outputs) == set(RunOutputs().as_outputs())
    words = [outputs[f"error-{name}"] for name in ("category", "type", "recovery")]
    assert (outputs["exit-code"], words) == ("1", ["infrastructure", "infrastructure", "manual"])
    assert json.loads(outputs["error-evidence"])["rule"] == "sandbox-unavailable"
    return outputs["error-summary"]


def test_an_agent_is_refused_if_its_sandbox_cannot_start_and_the_hint_says_what_to_type(
    bench: Bench, programs: Path
) -> None:
    summary = refused(run(bench, ["sandbox"], job={}, programs=programs))
    assert DENIED in summary
    assert "warning: old" not in summary
    assert "sudo sysctl -w kernel.apparmor_restrict_unprivileged_userns=0" in summary
    assert not (bench.top / "sudo.log").exists(), "a machine that is not GitHub's is left alone"


def test_githubs_runner_allows_it_before_the_agent_starts(bench: Bench, programs: Path) -> None:
    left = run(bench, ["sandbox"], job=HOSTED, programs=programs)
    assert (left.outputs["exit-code"], left.text("stdout.log")) == ("0", "I am started.\n")
    assert (bench.top / "sudo.log").read_text().splitlines() == [f"-n -- sysctl -q -w {name}" for name in SETTINGS]
    assert "allowing user namespaces" in left.err
    assert DENIED in left.err


def probe(bench: Bench, programs: Path) -> None:
    """Try the sandbox on GitHub's runner."""
    environment = {"PATH": f"{programs}:{os.environ['PATH']}", **HOSTED}
    context = JobContext(environment, SystemClock(), lambda _: None, StopSignals())
    check_sandbox([AgentSettings(probe=["sandbox"])], Program([], bench.work, environment), bench.top, context)


def test_sudo_is_used_only_where_it_is_needed(bench: Bench, programs: Path) -> None:
    (bench.top / "allowed").touch()
    probe(bench, programs)
    assert not (bench.top / "sudo.log").exists()


def test_an_agent_is_refused_if_githubs_runner_does_not_allow_it_either(bench: Bench, programs: Path) -> None:
    (programs / "sudo").write_text("#!/bin/sh\necho 'sudo: a password is required' >&2; exit 1\n")
    with pytest.raises(AgentNotStarted, match=DENIED) as found:
        probe(bench, programs)
    assert found.value.error.kind == "sandbox-unavailable"


@pytest.mark.skipif(not has_namespaces(), reason="the real thing needs a machine with user namespaces")
def test_the_real_probe_tells_a_machine_with_user_namespaces_from_one_without(bench: Bench) -> None:
    arguments = [*bench.scripted(AGENT, "mine"), "--registry"]
    arguments.append(bench.registry({"agents": {"mine": {"command": ["{command}"], **entry(REAL)}}}))
    assert bench.run(*arguments).text("stdout.log") == "I am started.\n"
    (bench.top / "run").rename(bench.top / "first")
    with bench.start(*arguments, below=WITHOUT_NAMESPACES) as started:
        assert "unshare failed" in refused(bench.wait(started))
