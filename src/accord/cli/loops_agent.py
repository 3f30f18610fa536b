"""The agent's run between the two phases of a loop, where both are taken here: at a terminal, or on the sandbox."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from accord.cli.loops_run import Choices
    from accord.cli.sources import Way
    from accord.loops.run import Turn
    from accord.runner.models import RunOutputs


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
