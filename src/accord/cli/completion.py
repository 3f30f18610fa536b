"""``accord completion``: completion of commands and options in the shell."""

from __future__ import annotations

import os
from pathlib import Path

import click
from click.shell_completion import get_completion_class

from accord.cli.options import Choice
from accord.core.errors import WrongUsage
from accord.files.store import write_whole

_FILES = {
    "bash": ("XDG_DATA_HOME", ".local/share", "bash-completion/completions/accord"),
    "fish": ("XDG_CONFIG_HOME", ".config", "fish/completions/accord.fish"),
    "zsh": ("XDG_DATA_HOME", ".local/share", "zsh/site-functions/_accord"),
}
"""By shell: the variable of the folder, the folder in the home directory without it, and the file there."""


@click.command()
@click.argument("shell", type=Choice(_FILES), required=False, metavar="[bash|zsh|fish]")
@click.option("--install", is_flag=True, help="Write the script where the shell finds it.")
@click.pass_context
def completion(ctx: click.Context, /, shell: str | None, install: bool) -> None:
    """Print or install completion for your shell.

    Without a name, the shell is that of the variable SHELL.
    """
    name = shell or Path(os.environ.get("SHELL", "")).name
    found = get_completion_class(name) if name in _FILES else None
    if found is None:
        message = f"No completion for the shell `{name}`." if name else "No shell given."
        raise WrongUsage(message, hint=f"Pass one of {', '.join(_FILES)}.")
    script = found(ctx.find_root().command, {}, "accord", "_ACCORD_COMPLETE").source()
    if not install:
        click.echo(script)
        return
    variable, folder, file = _FILES[name]
    path = Path(os.environ.get(variable) or Path.home() / folder) / file
    path.parent.mkdir(parents=True, exist_ok=True)
    write_whole(path, script + "\n")
    click.echo(f"Wrote {path}. It counts in new shells.")
    if name == "zsh":
        click.echo(f"Next: add `fpath+=({path.parent})` to ~/.zshrc, above `compinit`.")
