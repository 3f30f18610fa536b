"""The agent's run between the two phases of a loop, where both are taken here: at a terminal, or on the sandbox."""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from accord.cli.loops_options import HISTORY
from accord.kernel.errors import WrongUsage

if TYPE_CHECKING:
    from accord.cli.loops_options import Choices
    from accord.cli.sources import Way
    from accord.loops.run import Turn
    from accord.runner.models import RunOutputs


_OURS = ".accord-loop"
"""Says that a folder is of a loop's run, and that what an earlier try left in it may be removed."""


def check_place(agent: str, choices: Choices, run_dir: Path) -> None:
    """Find out, before a run is recorded on GitHub, whether it can be kept here and whether the agent has its secrets.

    Raises WrongUsage where not. A run that only has to be published needs no secret any more.
    """
    from accord.runner.environment import check_credentials
    from accord.runner.failures import NotRun
    from accord.runner.record import RECORD
    from accord.runner.registry import load_registry, repository_registry

    _claim(run_dir)
    if (run_dir / "agent" / RECORD).is_file():
        return
    registry = load_registry(choices.registry or repository_registry(Path.cwd()))
    try:
        check_credentials(agent, registry.agent(agent), os.environ)
    except NotRun as missing:
        mend = "Set it in the environment of this command. Nothing was written."
        raise WrongUsage(missing.message, mend=mend) from None


def _claim(run_dir: Path) -> None:
    """Make the folder of a run, for this user alone. One that holds other files is somebody's, and left as it is."""
    try:
        run_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
        there = {entry.name for entry in run_dir.iterdir()}
        if _OURS not in there and there - {HISTORY}:
            raise WrongUsage(
                f"The folder {run_dir} holds other files, such as {min(there - {HISTORY})}.",
                mend="Name a new one by --run-dir, or the one of a run that was cut off.",
            )
        (run_dir / _OURS).touch()
        with tempfile.TemporaryFile(dir=run_dir):
            pass
    except OSError as error:
        message = f"The run cannot be kept in {run_dir}: {error.strerror}."
        raise WrongUsage(message, mend="Name a folder by --run-dir that can be written.") from None


def checked_out(turn: Turn, way: Way, folder: Path) -> Path:
    """Clone the pull request's branch and its base into a folder; the token stays out of what the agent can read.

    What is merged is in the base, and its branch may be gone.
    """
    from accord.kernel.branches import fetch_ref
    from accord.kernel.clock import SystemClock
    from accord.kernel.git import Git, token_config

    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    remote = way.remote(SystemClock())
    git = Git(folder, config=token_config(remote.server_url, remote.token))
    git("init", "--quiet", "--initial-branch", "none")
    pull = turn.pull
    for branch in dict.fromkeys((pull.base_branch, *(() if pull.merge_commit else (pull.head_branch,)))):
        fetch_ref(git, remote, f"refs/heads/{branch}", branch)
    git("checkout", "--quiet", pull.merge_commit or pull.head_branch)
    return folder


def run_here(turn: Turn, choices: Choices, way: Way, run_dir: Path) -> RunOutputs:
    """Run the agent in a clone below ``run_dir`` and publish what it changed; one that ran already is only published.

    The caller's work tree is left as it is.
    """
    from accord.cli.run import run_shown, schema_of
    from accord.cli.run_step import finished
    from accord.runner.record import RECORD
    from accord.runner.registry import repository_registry
    from accord.runner.run import RunRequest
    from accord.runner.signals import listening

    folder = run_dir.resolve() / "agent"
    record = None
    if not (folder / RECORD).is_file():
        shutil.rmtree(folder, ignore_errors=True)  # of a run that was ended before it could say how it went
        request = RunRequest(
            agent=turn.decision.agent,
            run_dir=folder,
            directory=checked_out(turn, way, run_dir.resolve() / "tree"),
            prompt_file=Path(choices.prompt_file) if choices.prompt_file else None,
            appendix=turn.decision.appendix,
            mode=turn.loop.mode,
            pr_number=str(turn.pull.number),
            pr_ref=turn.pull.head_branch if turn.loop.changes_code else "",
            base_ref=turn.pull.base_branch,
            iteration=str(turn.decision.iteration),
            max_runtime_minutes=choices.max_runtime_minutes,
            registry=choices.registry or repository_registry(Path.cwd()),
            schema=schema_of(turn.loop.schema),
        )
        with listening() as told:
            record = run_shown(request, told)
    return finished(folder, way, record)
