"""All checks of a repository for agents: its files, and what GitHub knows of it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING

from accord.core.errors import AccordError, BrokenContract, Interrupted, Stopped
from accord.core.findings import DoctorCheck
from accord.doctor.settings import LiveFacts, gather_settings, setting_checks
from accord.files.store import file_behind, read_inside, write_whole
from accord.github.models import Label
from accord.kit.install import kit_check
from accord.results.label_sync import label_checks
from accord.starts.config import approves_in, config_check
from accord.workflows.doctor import examine_workflows
from accord.workflows.facts import read_repository
from accord.workflows.fixes import Fixed, fix_workflow
from accord.workflows.requirements import required_settings

if TYPE_CHECKING:
    from accord.github.client import Connection


def doctor_checks(root: Path, repository: str, connect: Callable[[], Connection] | str) -> list[DoctorCheck]:
    """Run all checks of a repository. ``connect`` gives access to it on GitHub, or says why GitHub is not asked.

    GitHub is asked for nothing else after it did not answer once: that takes 15 seconds.
    """
    facts, _ = read_repository(root, repository)
    live: LiveFacts | str
    try:
        live = _live_facts(connect)
    except Interrupted:
        raise
    except Stopped as stopped:
        live = connect = _without_full_stop(stopped)
    approves = approves_in(root)
    is_private = None if isinstance(live, str) else live.is_private
    return [
        *label_checks(root, connect if isinstance(connect, str) else partial(_read_labels, connect)),
        *setting_checks(
            live, required_settings(facts.workflows, facts.default_agent, approves=approves), facts.workflows
        ),
        *examine_workflows(root, repository, is_private),
        config_check(root),
        kit_check(root),
    ]


def _read_labels(connect: Callable[[], Connection]) -> tuple[str, Sequence[Label]]:
    connection = connect()
    return connection.repository, connection.github.labels()


def _live_facts(connect: Callable[[], Connection] | str) -> LiveFacts | str:
    """Read the settings on GitHub, or return why they cannot be read. Raises Stopped where GitHub does not answer."""
    if isinstance(connect, str):
        return connect
    try:
        return gather_settings(connect())
    except Stopped:
        raise
    except AccordError as error:
        return _without_full_stop(error)


def _without_full_stop(error: AccordError) -> str:
    return error.message.removesuffix(".")


def fix_workflows(
    root: Path, connect: Callable[[], Connection] | str, *, is_written: bool
) -> dict[str, tuple[str, Fixed]]:
    """Correct workflow files of a repository; return the old text and the result of each that has something to fix.

    GitHub is asked for no other commit after it did not answer once.
    """

    @cache
    def resolve(repository: str, ref: str) -> str | None:
        nonlocal connect
        try:
            return None if isinstance(connect, str) else connect().github.commit_named(repository, ref)
        except Interrupted:
            raise
        except Stopped as stopped:
            connect = stopped.message
        except AccordError:
            pass
        return None

    found = {}
    facts, _ = read_repository(root)
    for path in facts.workflows:
        try:
            text = read_inside(root, path).decode("utf-8")
        except (BrokenContract, UnicodeDecodeError):
            continue
        fixed = fix_workflow(text, resolve, facts.known)
        if fixed.fixes and is_written:
            write_whole(file_behind(root / path), fixed.text)
        if fixed.fixes or fixed.left:
            found[path] = text, fixed
    return found
