"""``accord mcp``: tools for an agent while it works, over the Model Context Protocol."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import get_args

from accord.cli.options import EXISTING_FOLDER, FOLDER, RootArguments, command, option
from accord.core.environment import needs_extra
from accord.core.errors import WrongUsage
from accord.mcp.tools import ResultRole, Workspace


class _McpArguments(RootArguments):
    run_dir: Path = option("--run-dir", "Folder of the result and the snapshot of items.", type=FOLDER, default=".")
    role: ResultRole = option("--role", "The agent's role.", among=get_args(ResultRole), default="implementor")
    base: str = option("--base REF", "Commit that the change is compared with.")
    session: Path | None = option("--session", "Folder of a session, for ask_user and next_step.", type=EXISTING_FOLDER)
    no_session: bool = option("--no-session", "Leave out ask_user and next_step.")


@command(_McpArguments)
def mcp(given: _McpArguments) -> None:
    """Offer an agent tools that check its result while it works.

    Serves the Model Context Protocol on stdin and stdout, until stdin ends. Agents start it; see docs/mcp.md for their
    settings.
    """
    if given.session and given.no_session:
        raise WrongUsage("`--session` and `--no-session` exclude each other.", hint="Remove one of them.")
    with needs_extra("mcp", "The MCP server"):
        from accord.mcp.server import server_for
    workspace = Workspace(given.run_dir.resolve(), given.root.resolve(), given.role, given.base, given.session)
    for number in (signal.SIGINT, signal.SIGTERM):  # the thread that reads stdin would keep the process alive
        signal.signal(number, lambda *_: os._exit(0))
    server_for(workspace, has_session_tools=not given.no_session).run("stdio")
