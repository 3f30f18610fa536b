"""Whether the agent's own sandbox can start on this machine, tried before the agent and before it costs anything.

Ubuntu denies user namespaces to programs without an AppArmor profile. On GitHub's own runners, accord allows them for
the rest of the job; nowhere else does it change the machine. Source: openai/codex-action, pull request 77.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING

from accord.runner.launch import find_program
from accord.runner.models import AgentNotStarted
from accord.runner.process import run_program
from accord.runner.transcripts.lines import cut

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

    from accord.agents.registry import AgentSettings
    from accord.runner.process import LineWatcher, Program, StopSignals
    from accord.text.redaction import Redactor

_PROBE_SECONDS = 60
_SYSCTL_SECONDS = 30
_REASON_CHARS = 200
_ALLOWING = ("kernel.unprivileged_userns_clone=1", "kernel.apparmor_restrict_unprivileged_userns=0")
"""Settings of Linux that allow user namespaces. Either may be missing, so the next probe decides."""

_HINT = (
    "Allow user namespaces there, as with `sudo sysctl -w kernel.apparmor_restrict_unprivileged_userns=0`, or pass "
    "`--sandbox-mode danger-full-access` in a job without anything to protect."
)


def probe_of(settings: Iterable[AgentSettings]) -> list[str]:
    """Return the command that tries the agent's own sandbox; none where there is nothing to try."""
    return next((setting.probe for setting in settings if setting.probe), []) if sys.platform == "linux" else []


def is_hosted_by_github(job: Mapping[str, str]) -> bool:
    """Return whether this is a Linux machine of GitHub's that only this job uses."""
    return (job.get("RUNNER_OS"), job.get("RUNNER_ENVIRONMENT")) == ("Linux", "github-hosted")


def check_sandbox(
    words: list[str],
    agent: Program,
    private: Path,
    job: Mapping[str, str],
    *,
    redactor: Redactor,
    show: LineWatcher,
    stop: StopSignals,
) -> None:
    """Try the agent's own sandbox with the rights of ``agent``; on GitHub's runners, allow user namespaces if it fails.

    ``private`` is a folder for the output. Raises AgentNotStarted: ``sandbox-unavailable`` if it still fails, or
    ``cancelled``.
    """
    if not words:
        return
    words = [find_program(words[0], agent.environment.get("PATH", ""), agent.directory), *words[1:]]
    log = private / "probe.log"

    def problem() -> str:
        end = run_program(
            replace(agent, words=words, stdin=None),
            stdout=private / "probe.out",
            stderr=log,
            redactor=redactor,
            show=lambda _: None,
            stop=stop,
            limit_seconds=_PROBE_SECONDS,
        )
        if end.error and end.error.kind == "cancelled":
            raise AgentNotStarted("cancelled", end.error.detail)
        said = log.read_text("utf-8", "replace").strip().splitlines() or [f"exit code {end.exit_code}"]
        return "" if end.exit_code == 0 else cut(end.error.detail if end.error else said[-1], _REASON_CHARS)

    found = problem()
    if found and is_hosted_by_github(job):
        show(f"accord: allowing user namespaces, because the agent's sandbox cannot start ({found})")
        _allow_user_namespaces(job)
        found = problem()
    if found:
        raise AgentNotStarted("sandbox-unavailable", found.removesuffix(".") + ".", hint=_HINT)


def _allow_user_namespaces(job: Mapping[str, str]) -> None:
    """Change these settings, by sudo where it exists: on GitHub's runners it needs no password."""
    path = job.get("PATH", "")
    sudo = shutil.which("sudo", path=path)
    words = [sudo, "-n", "--", "sysctl"] if sudo else [shutil.which("sysctl", path=path) or "sysctl"]
    for setting in _ALLOWING:
        with suppress(OSError, subprocess.TimeoutExpired):
            subprocess.run(  # noqa: S603 - a program of the runner, with words of accord
                [*words, "-q", "-w", setting], env={"PATH": path}, capture_output=True, timeout=_SYSCTL_SECONDS
            )
