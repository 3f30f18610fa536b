"""``accord hooks``: print the settings of an agent's stop hook, and be that hook."""

from __future__ import annotations

import hashlib
import json
import os
import sys
import tempfile
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import click

from accord.cli.options import Arguments, argument, command, option
from accord.cli.output import one_line, print_json
from accord.cli.sources import read_bytes
from accord.core.errors import WrongUsage
from accord.core.findings import Severity
from accord.core.kinds import KINDS, check_document
from accord.files.store import write_whole
from accord.kit.skills import HOOKED_AGENTS, MOST_REFUSALS, RESULT_FILES, hook_settings

_MOST_BYTES = 2**20
_REFUSED = 2
"""The exit code by which all three agents are kept from ending."""


class _HooksArguments(Arguments):
    paths: tuple[str, ...] = argument("[PATH]…")
    agent: str | None = option("--agent", "Print the settings for this agent.", among=HOOKED_AGENTS)
    run: bool = option("--run", "Be the hook: exit 2 while a result breaks its contract.")


@command(_HooksArguments)
def hooks(given: _HooksArguments) -> int:
    """Let an agent in an editor end with a valid result.

    Prints settings with which the agent runs `accord hooks --run` before it ends. That checks each PATH, by default the
    result files of the skills.
    """
    if given.run:
        return _run_hook(given.paths)
    if given.agent is None:
        raise WrongUsage("No agent given.", hint=f"Pass `--agent` with one of {', '.join(HOOKED_AGENTS)}.")
    found = hook_settings(given.agent, given.paths)
    print_json(found.settings)
    click.echo(f"Next: add this to {found.file}. {found.next_step}", err=True)
    return 0


def _run_hook(paths: Sequence[str]) -> int:
    problems = [line for path in paths or RESULT_FILES for line in _problems(path)]
    event: object = {}
    if sys.stdin is not None and not sys.stdin.isatty():
        with suppress(ValueError, RecursionError):
            event = json.loads(sys.stdin.buffer.read(_MOST_BYTES))
    event = event if isinstance(event, dict) else {}
    session = json.dumps([os.getuid(), os.getcwd(), str(event.get("session_id", ""))])
    count = Path(tempfile.gettempdir(), f"accord-hook-{hashlib.sha256(session.encode()).hexdigest()[:32]}")
    if not problems:
        count.unlink(missing_ok=True)
        return 0
    refusals = 0
    with suppress(OSError, ValueError):
        refusals = int(count.read_text()) if event.get("stop_hook_active") is True else 0
    lines = "\n".join(problems)
    if refusals >= MOST_REFUSALS:
        count.unlink(missing_ok=True)
        click.echo(f"accord refused this {refusals} times, so the agent may end. Still wrong:\n{lines}", err=True)
        return 1
    write_whole(count, str(refusals + 1))
    click.echo(f"The result breaks its contract. Correct the file before you end:\n{lines}", err=True)
    return _REFUSED


def _problems(path: str) -> list[str]:
    if not Path(path).exists():
        return []
    kind = Path(path).stem if path in RESULT_FILES else None
    try:
        _, findings = check_document(read_bytes(path), kind if kind in KINDS else None, path, "")
    except WrongUsage as error:
        return [one_line(f"{path}: {error.message} {error.hint}")]
    return [
        one_line(f"{path}{f':{found.line}' if found.line else ''}: {found.code}: {found.message} {found.hint}").rstrip()
        for found in findings
        if found.severity is Severity.ERROR
    ]
