"""``accord mission``: state, workspaces and staleness of missions, and moves of their work packages."""

from __future__ import annotations

import getpass
import os
import shlex
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, replace
from pathlib import Path
from typing import Literal, get_args

import click

from accord.cli.mission_output import (
    answer_lines,
    progress_text,
    readiness_lines,
    report_check,
    stale_text,
    status_lines,
    workspace_lines,
)
from accord.cli.options import (
    Arguments,
    FormatArguments,
    Minutes,
    WritingArguments,
    argument,
    command,
    format_option,
    group,
    option,
)
from accord.cli.output import next_lines, one_line, print_json, print_lines, redactor, screen_columns
from accord.cli.step import present
from accord.core.clock import SystemClock
from accord.core.errors import BrokenContract
from accord.core.findings import finding_of
from accord.core.machine import NextMove, moves_to_json
from accord.missions.branches import git_of, stale_of
from accord.missions.lifecycle import MoveRequest
from accord.missions.load import Mission, load_mission
from accord.missions.models import STATUSES, ExecutionMode, WorkPackageStatus, as_status
from accord.missions.move import move as move_package
from accord.missions.next_moves import mission_moves, next_moves
from accord.missions.projects import find_root, mission_entries, mission_slugs, named_root
from accord.missions.query import answer_query, mission_overview, mission_status, unreadable_statuses
from accord.missions.rules import check_missions
from accord.missions.start import start as start_package
from accord.missions.workspace import resolve_workspace, short_ref
from accord.text.hidden import strip_hidden


class _MissionArguments(Arguments):
    root: str | None = option("--root DIR", "Directory of kitty-specs/. Default: found from here upwards.")


class _LegacyArguments(Arguments):
    legacy_default: ExecutionMode | None = option(
        "--legacy-default", "Mode of work packages without a mode of their own.", among=get_args(ExecutionMode)
    )


class _PackageArguments(_LegacyArguments):
    slug: str = argument("SLUG")
    wp: str = argument("WP")


class _ThresholdArguments(Arguments):
    threshold: float = option(
        "--threshold MIN", "Minutes without a commit after which work is stale.", type=Minutes(min=0), default=10.0
    )


class _DocumentArguments(FormatArguments):
    output_format: str = format_option(
        "Text for people, or JSON. Default: text on a terminal, else JSON.",
        "text",
        "json",
        default=None,
        callback=lambda _, __, value: value or ("text" if sys.stdout.isatty() else "json"),
    )


class _NextArguments(_DocumentArguments):
    slug: str = argument("SLUG")
    agent: str | None = option("--agent NAME", "Name of the asking agent, repeated in the answer.")


class _WorkspaceArguments(_PackageArguments, _DocumentArguments):
    """The arguments of ``accord mission workspace``."""


class _StaleArguments(_ThresholdArguments, _LegacyArguments, _DocumentArguments):
    slug: str = argument("SLUG")
    wp: str | None = argument("[WP]")


class _MissionStatusArguments(_ThresholdArguments, _LegacyArguments, FormatArguments):
    slug: str = argument("SLUG")


class _ChangeMissionArguments(_PackageArguments, WritingArguments):
    """The arguments of a command that changes a work package."""


class _MovePackageArguments(_ChangeMissionArguments):
    to: WorkPackageStatus | Literal["doing"] = option("--to", "New status.", among=[*STATUSES, "doing"])
    actor: str = option("--actor NAME", "Actor of the move.", required=True)
    feedback: str | None = option("--feedback TEXT", "Findings of a review, or the work to review.")
    review_ref: str | None = option("--review-ref REF", "Review that the move is based on.")
    override_reason: str | None = option(
        "--override-reason TEXT", "Reason for done without a merge, or to review own work."
    )
    force: bool = option("--force", "Allow any move with --reason; replaces no review, no merge.")
    reason: str | None = option("--reason TEXT", "Reason of the move.")


class _StartPackageArguments(_ChangeMissionArguments):
    actor: str = option("--actor NAME", "Actor of the work. Default: GITHUB_ACTOR, or your login.")


class _CheckMissionsArguments(_LegacyArguments, FormatArguments):
    slugs: tuple[str, ...] = argument("[SLUG]…", envvar="ACCORD_MISSION_CHECK_SLUGS")
    base: str = option("--base REF", "Check the missions changed since HEAD left this branch.")


@group(_MissionArguments)
def mission(given: _MissionArguments) -> None:
    """Query missions, and move their work packages."""


@command(_NextArguments, "next", of=mission)
def next_(given: _NextArguments) -> int:
    """Print the state of a mission, and its next step.

    Prints the contract's next-query-response; for a mission that cannot be read, prints {"error": …} and exits with
    1, as it does if the status of a work package is unknown.
    """
    with _refusals(given):
        found = load_mission(_root(), given.slug)
        answer = answer_query(found, given.agent, SystemClock().now())
    present(given, answer.model_dump(), [*answer_lines(answer), *readiness_lines(mission_overview(found))])
    return _check_readable(found)


@command(FormatArguments, "list", of=mission)
def list_(given: FormatArguments) -> int:
    """List missions and the work packages that may start now.

    Exits with 1 if a status is unknown, or a mission cannot be read.
    """
    with _refusals(given):
        root = _root()
        problems = {name: problem.text for name, problem in mission_entries(root).items() if problem}
        missions = [load_mission(root, slug) for slug in mission_slugs(root)]
    overviews = [mission_overview(one) for one in missions]
    lines = []
    for each in overviews:
        lines.append(click.style(one_line(each["mission_slug"]), bold=True))
        lines += [f"  {progress_text(each['progress'])}"] if each["progress"] else []
        lines += readiness_lines(each)
    present(given, {"missions": overviews, "problems": problems}, [*lines, *map(one_line, problems.values())])
    return BrokenContract.exit_code if problems or any(map(unreadable_statuses, missions)) else 0


@command(_WorkspaceArguments, of=mission)
def workspace(given: _WorkspaceArguments) -> None:
    """Print the workspace of a work package.

    It is the work tree of its lane, or the root of the repository.
    """
    with _refusals(given):
        found = resolve_workspace(load_mission(_root(), given.slug, given.legacy_default), given.wp)
    present(given, asdict(found), workspace_lines(found))


@command(_StaleArguments, of=mission)
def stale(given: _StaleArguments) -> int:
    """Print which work packages in progress are stale.

    Prints a stale-status for each, or for WP alone. Reasons why one cannot be judged go to stderr. Exits with 1 if the
    files of one are broken, such as one without a mode.
    """
    now = SystemClock().now()
    with _refusals(given):
        found = load_mission(_root(), given.slug, given.legacy_default)
        git, names = git_of(found), [given.wp] if given.wp else found.ids
        results = {name: stale_of(found, name, git, now, given.threshold) for name in names}
    for name, result in results.items():
        if result.error:
            click.echo(f"{name}: {one_line(result.error)}", err=True)
    document = {name: result.status.model_dump() for name, result in results.items()}
    present(given, document, (f"{name:<6} {stale_text(status)}" for name, status in document.items()))
    return BrokenContract.exit_code if any(result.is_broken for result in results.values()) else 0


@command(_MissionStatusArguments, of=mission)
def status(given: _MissionStatusArguments) -> int:
    """Show the work packages of a mission.

    Exits with 1 if a status is unknown.
    """
    from accord.plans.links import packages_with_links

    now = SystemClock().now()
    with _refusals(given):
        read = load_mission(_root(), given.slug, given.legacy_default)
        found = mission_status(read, now, given.threshold)
        found["work_packages"] = packages_with_links(found["work_packages"], read, _root())
        ahead = _in_mode(given, mission_moves(read, _command(), now))
    if given.is_json:
        for entry in found["work_packages"]:
            entry["next_moves"] = moves_to_json(_in_mode(given, next_moves(read, entry["wp_id"], _command(), now)))
        print_json({**found, "next_moves": moves_to_json(ahead)})
    else:
        print_lines([*status_lines(found, screen_columns()), *next_lines(ahead)])
    return _check_readable(read)


@command(_MovePackageArguments, of=mission)
def move(given: _MovePackageArguments) -> None:
    """Move a work package, if its lifecycle allows it."""
    redact, mode = redactor(), given.legacy_default
    target: WorkPackageStatus = as_status(given.to)
    texts = {name: getattr(given, name) for name in ("feedback", "review_ref", "override_reason", "reason")}
    texts = {name: text.strip() for name, text in texts.items() if text is not None}
    with _refusals(given, given):
        if blank := next((name.replace("_", "-") for name, text in texts.items() if not strip_hidden(text)), ""):
            text = f"`--{blank}` is blank. Pass a text, or leave it out."
            raise BrokenContract.of(finding_of("illegal-move", text))
        request = MoveRequest(given.wp, target, given.actor.strip(), is_forced=given.force, **texts)
        moved = move_package(
            _root(), given.slug, request, SystemClock(), redact=redact, legacy_default=mode, is_dry_run=given.dry_run
        )
    _present_change(given, moved.source, moved.target, moved.events, is_change=bool(moved.events))


@command(_StartPackageArguments, of=mission)
def start(given: _StartPackageArguments) -> None:
    """Start a work package: make its branch and work tree.

    Moves it to in_progress. The same command continues a start that was interrupted.
    """
    actor = given.actor.strip() or os.environ.get("GITHUB_ACTOR", "")
    with suppress(OSError, KeyError):
        actor = actor or getpass.getuser()
    with _refusals(given, given):
        started = start_package(
            _root(),
            given.slug,
            given.wp,
            actor,
            SystemClock(),
            redact=redactor(),
            legacy_default=given.legacy_default,
            is_dry_run=given.dry_run,
        )
    location = {name: getattr(started.workspace, name) for name in ("workspace_path", "branch_name", "lane_id")}
    operations = [{"op": step.op, "target": step.target} for step in started.operations]
    branch = f" on {one_line(started.workspace.branch_name)}" if started.workspace.branch_name else ""
    base = f", from {one_line(short_ref(started.base))}" if started.base else ""
    _present_change(
        given,
        started.source,
        "in_progress",
        started.events,
        is_change=bool(started.operations or started.events),
        more={**location, "operations": operations, "base": started.base or None, "warnings": list(started.warnings)},
        lines=[
            f"  {one_line(started.workspace.workspace_path)}{branch}{base}",
            *(click.style(f"  warning: {one_line(text)}", fg="yellow") for text in started.warnings),
        ],
    )


def _present_change(
    given: _ChangeMissionArguments,
    source: str,
    target: str,
    events: Sequence[Mapping[str, object]],
    *,
    is_change: bool,
    more: Mapping[str, object] | None = None,
    lines: Sequence[str] = (),
) -> None:
    outcome = "unchanged" if not is_change else "planned" if given.dry_run else "applied"
    moves = _moves(given)
    document = {"mission_slug": given.slug, "wp_id": given.wp, "from": source, "to": target, "outcome": outcome}
    steps = " → ".join([source, *(str(event["to_lane"]) for event in events)])
    present(
        given,
        {**document, **(more or {}), "events": list(events), "next_moves": moves_to_json(moves)},
        [f"{click.style(one_line(given.wp), bold=True)} {steps}: {outcome}", *lines, *next_lines(moves)],
    )


@command(_CheckMissionsArguments, of=mission)
def check(given: _CheckMissionsArguments) -> int:
    """Check the files of missions, and show their state.

    Checks all missions where none is named. Exits with 1 on an error.
    """
    with _refusals(given):
        found = check_missions(_root(), given.slugs, given.base, given.legacy_default, SystemClock().now())
    report_check(found, given)
    return 0 if found.is_ok else BrokenContract.exit_code


def _root() -> Path:
    """Return the project of ``--root``, or the one around the working directory. Raises BrokenContract without one."""
    named = _named_root()
    return named_root(Path(named)) if named else find_root(Path.cwd())


def _named_root() -> str | None:
    parent = click.get_current_context().parent
    named: str | None = parent.params["root"] if parent else None
    return named


def _command() -> str:
    named = _named_root()
    return f"accord mission --root {shlex.quote(named)}" if named else "accord mission"


def _in_mode(given: _LegacyArguments, moves: list[NextMove]) -> list[NextMove]:
    """Return moves whose commands have the option for the mode, as this one has; each ends with one for a mission."""
    option = f" --legacy-default {given.legacy_default}" if given.legacy_default else ""
    return [replace(each, command=f"{each.command}{option}") for each in moves]


def _moves(given: _PackageArguments) -> list[NextMove]:
    """Return what is legal next for a work package, or for the others of its mission if it has no move."""
    try:
        found, command = load_mission(_root(), given.slug, given.legacy_default), _command()
        now = SystemClock().now()
        return _in_mode(given, next_moves(found, given.wp, command, now) or mission_moves(found, command, now))
    except BrokenContract:
        return []


def _check_readable(found: Mission) -> int:
    """Return 1, and say why on stderr, where the status of a work package is unknown or in doubt."""
    problems = unreadable_statuses(found)
    for wp_id, problem in problems.items():
        click.echo(f"{wp_id}: status unknown or in doubt. {one_line(str(problem))}", err=True)
    return BrokenContract.exit_code if problems else 0


@contextmanager
def _refusals(given: FormatArguments, package: _PackageArguments | None = None) -> Iterator[None]:
    """End a broken contract with exit code 1: one sentence for people, one object for programs.

    A refused move of a work package ends with what is legal instead.
    """
    try:
        yield
    except BrokenContract as broken:
        is_move = any(finding.code == "illegal-move" for finding in broken.findings)
        broken.next_moves = _moves(package) if package and is_move else []
        if not given.is_json:
            raise
        error = {"error": str(broken), **({"hint": broken.first_hint} if broken.first_hint else {})}
        print_json({**error, "next_moves": moves_to_json(broken.next_moves)} if is_move else error)
        raise click.exceptions.Exit(BrokenContract.exit_code) from None
