"""``accord completion``: completion of commands and options in the shell."""

from __future__ import annotations

import os
from pathlib import Path

import click
from click.shell_completion import get_completion_class

from accord.cli.options import Arguments, Choice, argument, command
from accord.core.errors import WrongUsage

_SHELLS = ("bash", "fish", "zsh")


class _CompletionArguments(Arguments):
    shell: str | None = argument("[bash|zsh|fish]", type=Choice(_SHELLS))


@command(_CompletionArguments)
def completion(given: _CompletionArguments) -> None:
    """Print completion for your shell.

    Without a name, the shell is that of the variable SHELL. For bash, add `eval "$(accord completion bash)"` to
    ~/.bashrc.
    """
    name = given.shell or Path(os.environ.get("SHELL", "")).name
    found = get_completion_class(name) if name in _SHELLS else None
    if found is None:
        message = f"No completion for the shell `{name}`." if name else "No shell given."
        raise WrongUsage(message, hint=f"Pass one of {', '.join(_SHELLS)}.")
    click.echo(found(click.get_current_context().find_root().command, {}, "accord", "_ACCORD_COMPLETE").source())
