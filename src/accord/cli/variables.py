"""Variables of the environment named ``ACCORD_…``, and a warning for those that accord does not know."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping

import click
from click.core import ParameterSource

from accord.cli.options import FlagOption
from accord.core.suggest import did_you_mean, nearest

VARIABLES = {
    "ACCORD_ALLOWED_HOSTS": "Hosts that images in posted texts may come from, in addition to `--allowed-hosts`.",
    "ACCORD_ANTHROPIC_MODEL": "Model of the provider `anthropic`.",
    "ACCORD_BREAK_WORDS": "Bots' commands to break in posted texts, in addition to `--break-words`.",
    "ACCORD_GITHUB_MODELS_MODEL": "Model of the provider `github-models`.",
    "ACCORD_GITHUB_MODELS_URL": "Address of the provider `github-models`.",
    "ACCORD_HOME": "Folder in which `actions/setup` keeps accord on a self-hosted runner.",
    "ACCORD_KEEPALIVE": "Variable of a repository: `true` lets keepalive work on new pull requests.",
    "ACCORD_LOGIN": "Variable of a repository: login of the app of `ACCORD_TOKEN`.",
    "ACCORD_OPENAI_MODEL": "Model of the provider `openai`.",
    "ACCORD_REVIEW_LOGIN": "Variable of a repository: login of the app of `ACCORD_REVIEW_TOKEN`.",
    "ACCORD_REVIEW_TOKEN": "Secret of a repository: token of the reviewer.",
    "ACCORD_RUN_OUTPUTS": "Outputs of an agent's run as JSON, for the phase `end` of a loop.",
    "ACCORD_SYNC_TOKEN": "Secret of a repository: token of `accord sync`.",
    "ACCORD_TOKEN": "Secret of a repository: token that writes.",
    "ACCORD_TOKEN_IS_JOBS": "`true` where the token of a loop is that of the job.",
}
"""The variables that belong to no option, with their meaning."""

_OF_REPOSITORY = "ACCORD_VARS_"
"""Reusable workflows pass a repository's variable on with this prefix: one of the machine may have its name."""


def unknown_variables(environment: Mapping[str, str], context: click.Context) -> Iterator[tuple[str, str]]:
    """Yield each unknown name with a suggestion; ``context`` is that of the whole command line.

    Only the commands that the names begin with are imported.
    """
    for name in sorted(each.removeprefix(_OF_REPOSITORY) for each in environment):
        if name.startswith("ACCORD_") and name not in VARIABLES:
            contexts = [*_path(context, name)]
            known = {found for each in contexts for found in variables_of(each)}
            if name not in known:
                yield name, _suggestion(name, f"{contexts[-1].auto_envvar_prefix}_", [*VARIABLES, *known])


def _suggestion(name: str, prefix: str, known: Iterable[str]) -> str:
    """Suggest a name for a misspelt one: what the names of one command share says nothing about its options."""
    if not name.startswith(prefix):
        return did_you_mean(name, known)
    rest = name.removeprefix(prefix)
    near = nearest(rest, [each.removeprefix(prefix) for each in known if each.startswith(prefix)], cutoff=0.75)
    return f"Did you mean `{prefix}{near}`?" if near and near != f"NO_{rest}" else ""


def variables_of(context: click.Context) -> Iterator[str]:
    """Yield the variables of one command's options and arguments."""
    for each in context.command.get_params(context):
        if isinstance(each, FlagOption):
            yield from each.variables(context)
        elif isinstance(each.envvar, str):
            yield each.envvar


def variable_behind(context: click.Context | None, parameter: click.Parameter | None) -> str:
    """Return the variable that gave a parameter its value; empty for one that was given in another way."""
    if (
        not context
        or not parameter
        or context.get_parameter_source(parameter.name or "") is not ParameterSource.ENVIRONMENT
    ):
        return ""
    names = parameter.variables(context) if isinstance(parameter, FlagOption) else [str(parameter.envvar)]
    return next((name for name in names if os.environ.get(name)), "")


def _path(context: click.Context, name: str) -> Iterator[click.Context]:
    """Yield the contexts of the commands that a variable's name begins with, or that are spelled like its beginning."""
    while True:
        yield context
        if not isinstance(context.command, click.Group):
            return
        rest = name.removeprefix(f"{context.auto_envvar_prefix}_")
        words = {each.upper().replace("-", "_"): each for each in context.command.list_commands(context)}
        begun = [word for word in words if rest.startswith(f"{word}_")]
        word = max(begun, key=len) if begun else nearest(rest.partition("_")[0], words)
        command = context.command.get_command(context, words[word]) if word else None
        if word is None or command is None:
            return
        context = click.Context(command, context, words[word])
