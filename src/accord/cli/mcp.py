"""``accord mcp``: tools for an agent while it works, over the Model Context Protocol."""

from __future__ import annotations

from pathlib import Path
from typing import get_args

import click

from accord.cli.options import EXISTING_FOLDER, Choice
from accord.core.environment import needs_extra
from accord.core.errors import WrongUsage
from accord.mcp.workspace import Role, Workspace


@click.command()
@click.option("--run-dir", type=EXISTING_FOLDER, default=".", help="Folder of the result and the snapshot of items.")
@click.option("--root", type=EXISTING_FOLDER, default=".", help="The repository's directory.")
@click.option("--role", type=Choice(get_args(Role)), default="implementor", show_default=True, help="The agent's role.")
@click.option("--base", default="", metavar="REF", help="Commit that the change is compared with.")
@click.option("--session", type=EXISTING_FOLDER, help="Folder of a session, for ask_user and next_step.")
@click.option("--no-session", is_flag=True, help="Leave out ask_user and next_step.")
def mcp(run_dir: Path, root: Path, role: Role, base: str, session: Path | None, no_session: bool) -> None:
    """Offer an agent tools that check its result while it works.

    Serves the Model Context Protocol on stdin and stdout, offline and without a token. Agents start it themselves; see
    docs/mcp.md for their settings.
    """
    if session and no_session:
        raise WrongUsage("`--session` and `--no-session` exclude each other.", hint="Remove one of them.")
    with needs_extra("mcp", "The MCP server"):
        from accord.mcp.server import server_for
    workspace = Workspace(run_dir.resolve(), root.resolve(), role, base, session)
    server_for(workspace, has_session_tools=not no_session).run("stdio")
