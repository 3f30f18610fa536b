"""``accord doctor --fix``: correct workflow files, and show what was corrected and what was not."""

from __future__ import annotations

import difflib
import textwrap
from functools import cache
from typing import TYPE_CHECKING

import click

from accord.cli.output import one_line
from accord.core.errors import AccordError, BrokenContract, Interrupted, Stopped
from accord.files.store import read_inside, write_whole
from accord.workflows.fixes import TWO_JOBS, Fixed, fix_workflow

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from pathlib import Path

    from accord.github.client import Connection


def fix_workflows(
    root: Path,
    paths: Iterable[str],
    programs: frozenset[str],
    connect: Callable[[], Connection] | None,
    *,
    is_written: bool,
) -> dict[str, tuple[str, Fixed]]:
    """Correct workflow files of a repository; return the old text and the result of each that has something to fix.

    GitHub is asked for no other commit after it did not answer once.
    """

    @cache
    def resolve(repository: str, ref: str) -> str | None:
        nonlocal connect
        try:
            return connect().github.commit_named(repository, ref) if connect else None
        except Interrupted:
            raise
        except Stopped:
            connect = None
        except AccordError:
            pass
        return None

    found = {}
    for path in paths:
        try:
            text = read_inside(root, path).decode("utf-8")
        except (BrokenContract, UnicodeDecodeError):
            continue
        fixed = fix_workflow(text, resolve, programs)
        if fixed.fixes and is_written:
            write_whole((root / path).resolve(), fixed.text)
        if fixed.fixes or fixed.left:
            found[path] = text, fixed
    return found


def template_for(found: Mapping[str, tuple[str, Fixed]]) -> str:
    """Return the template of two jobs if an agent may write somewhere; empty if not."""
    is_needed = any(fixed.has_agent_job for _, fixed in found.values())
    return TWO_JOBS.read_text(encoding="utf-8") if is_needed else ""


def print_fixes(found: Mapping[str, tuple[str, Fixed]], *, is_written: bool) -> None:
    """Print what was corrected and what was not; a dry run shows the changes as a diff."""
    for path, (text, fixed) in found.items():
        for fix in fixed.fixes:
            label = click.style("fixed" if is_written else "would fix", fg="green")
            click.echo(f"{one_line(path)}: {label}: {one_line(fix.text)}")
        for fix in fixed.left:
            click.echo(f"{one_line(path)}: {click.style('not fixed', fg='yellow')}: {one_line(fix.text)}")
        if not is_written:
            old, new = (each.splitlines() for each in (text, fixed.text))
            for line in difflib.unified_diff(old, new, path, path, lineterm=""):
                click.echo(one_line(line))
    if template := template_for(found):
        click.echo(f"\nThe template:\n\n{textwrap.indent(template, '  ')}".rstrip())
    if found:
        click.echo()
