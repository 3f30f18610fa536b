"""Putting an agent's program where it can be started: its exact version, outside the workspace, whole or not at all."""

from __future__ import annotations

import secrets
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

from accord.runner.classify import AgentNotStarted
from accord.runner.command_line import install_environment
from accord.runner.process import Program, run_program

if TYPE_CHECKING:
    from collections.abc import Mapping

    from accord.runner.process import StopSignals, Watcher
    from accord.runner.registry import Agent, Install
    from accord.text.redaction import Redactor

_LIMIT_SECONDS = 600
_SAID_CHARS = 1000


def programs_of(
    agent: Agent, root: Path, job: Mapping[str, str], *, redactor: Redactor, show: Watcher, told: StopSignals
) -> str:
    """Return the PATH by which the agent's program is found; what must be installed for it, is, below ``root``.

    Raises NotRun: ``install-failed`` with what the installer said, or ``cancelled``.
    """
    path = job.get("PATH", "")
    if agent.install is None:
        return path
    target = root / f"{agent.install.package.replace('/', '+')}@{agent.install.version}"
    programs = target / "node_modules/.bin"
    if not programs.is_dir():
        _install(agent.install, target, job, redactor=redactor, show=show, told=told)
    return f"{programs}:{path}"


def _install(
    install: Install, target: Path, job: Mapping[str, str], *, redactor: Redactor, show: Watcher, told: StopSignals
) -> None:
    npm = shutil.which("npm", path=job.get("PATH", ""))
    if npm is None:
        message = f"{install.package} cannot be installed: npm is not on the PATH."
        raise AgentNotStarted(
            "install-failed", message, hint="Set up Node before this step, for example with actions/setup-node."
        )
    beside = target.with_name(f".{target.name}.{secrets.token_hex(8)}")
    beside.mkdir(parents=True)
    words = [npm, "install", "--prefix", str(beside), "--no-audit", "--no-fund", "--loglevel=error"]
    words += [] if install.runs_scripts else ["--ignore-scripts"]
    words += [f"{install.package}@{install.version}"]
    said = beside / "said.log"
    try:
        end = run_program(
            Program(words, beside, install_environment(job)),
            stdout=beside / "output.log",
            stderr=said,
            redactor=redactor,
            show=show,
            told=told,
            limit_seconds=_LIMIT_SECONDS,
        )
        if end.own and end.own.kind == "cancelled":
            raise AgentNotStarted("cancelled", end.own.detail)
        if end.exit_code:
            tail = " ".join(said.read_text("utf-8", "replace").split())[-_SAID_CHARS:]
            message = f"Installing {install.package}@{install.version} failed ({end.exit_code}): {tail}"
            raise AgentNotStarted("install-failed", message, hint="Check the version in the registry, and the network.")
        _put(beside, target)
    finally:
        shutil.rmtree(beside, ignore_errors=True)


def _put(beside: Path, target: Path) -> None:
    """Put the finished folder in place; another run may have been faster, which is as good."""
    try:
        beside.rename(target)
    except OSError:
        if not target.is_dir():
            raise


def find_program(word: str, path: str, directory: Path) -> str:
    """Return the path of a program. Raises NotRun, ``not-started``, when it is not there."""
    found = shutil.which(str(directory / word) if "/" in word else word, path=path)
    if found is None:
        hint = "Install it in an earlier step, or let the agent's entry of the registry install it."
        raise AgentNotStarted("not-started", f'There is no program "{word}".', hint=hint)
    return str(Path(found).absolute())
