"""``accord mission``: state, workspaces and staleness of missions, and moves of their work packages."""

from __future__ import annotations

import getpass
import math
import os
import shlex
import sys
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

import click

from accord.cli.mission_output import (
    show_answer,
    show_move,
    show_overview,
    show_readiness,
    show_start,
    show_status,
    show_workspace,
    stale_text,
)
from accord.cli.options import Choice, dry_run_option, format_option
from accord.cli.output import one_line, print_findings, print_json, print_moves
from accord.core.errors import BrokenContract
from accord.core.moves import moves_to_json
from accord.missions.models import STATUSES, ExecutionMode
from accord.text.redaction import redactor_for

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from accord.core.findings import Finding
    from accord.core.moves import NextMove
    from accord.missions.load import Mission

legacy_option = click.option(
    "--legacy-default", type=Choice(get_args(ExecutionMode)), help="Mode of work packages without a mode of their own."
)


def _number(_: click.Context, __: click.Parameter, value: float) -> float:
    """Refuse ``nan``: every comparison with it is false, so nothing would be stale."""
    if math.isnan(value):
        raise click.BadParameter("nan is not a number of minutes.")
    return value


threshold_option = click.option(
    "--threshold",
    type=click.FloatRange(min=0),
    callback=_number,
    default=10.0,
    show_default=True,
    metavar="MIN",
    help="Minutes without a commit after which work is stale.",
)


_document_option = click.option(
    "--format",
    "output_format",
    type=Choice(["text", "json"]),
    callback=lambda _, __, value: value or ("text" if sys.stdout.isatty() else "json"),
    help="Text for people, or JSON. Default: text on a terminal, else JSON.",
)


@click.group()
@click.option("--root", metavar="DIR", help="Directory of kitty-specs/. Default: found from here upwards.")
def mission(root: str | None) -> None:
    """Query missions, and move their work packages."""


@mission.command("next")
@click.argument("slug")
@click.option("--agent", metavar="NAME", help="Name of the asking agent, repeated in the answer.")
@_document_option
@click.pass_context
def next_(ctx: click.Context, /, slug: str, agent: str | None, output_format: str) -> None:
    """Print the state of a mission, and its next step.

    Issues no step and starts no run. Prints exactly the contract's next-query-response; for a mission that cannot be
    read, prints {"error": …} and exits with 1. It also exits with 1 if the status of a work package is unknown.
    """
    from accord.core.clock import SystemClock
    from accord.missions.load import load_mission
    from accord.missions.query import answer_query, mission_overview

    with _refusals(ctx, output_format):
        found = load_mission(_root(ctx), slug)
        answer = answer_query(found, agent, SystemClock().now())
    if output_format == "json":
        print_json(answer.model_dump())
    else:
        show_answer(answer)
        show_readiness(mission_overview(found))
    _exit_unless_readable(ctx, found)


@mission.command("list")
@format_option
@click.pass_context
def list_(ctx: click.Context, /, output_format: str) -> None:
    """List missions and the work packages that may start now.

    Exits with 1 if a status is unknown.
    """
    from accord.missions.load import load_mission, mission_slugs
    from accord.missions.query import mission_overview, unreadable_statuses

    with _refusals(ctx, output_format):
        root = _root(ctx)
        missions = [load_mission(root, slug) for slug in mission_slugs(root)]
    overviews = [mission_overview(one) for one in missions]
    if output_format == "json":
        print_json({"missions": overviews})
    else:
        for overview in overviews:
            show_overview(overview)
    ctx.exit(BrokenContract.exit_code if any(map(unreadable_statuses, missions)) else 0)


@mission.command()
@click.argument("slug")
@click.argument("wp", metavar="WP")
@legacy_option
@_document_option
@click.pass_context
def workspace(ctx: click.Context, /, slug: str, wp: str, legacy_default: Any, output_format: str) -> None:
    """Print the workspace of a work package.

    It is the work tree of its lane, or the root of the repository.
    """
    from dataclasses import asdict

    from accord.missions.load import load_mission
    from accord.missions.workspace import resolve_workspace

    with _refusals(ctx, output_format):
        found = resolve_workspace(load_mission(_root(ctx), slug, legacy_default), wp)
    if output_format == "json":
        print_json(asdict(found))
    else:
        show_workspace(wp, found)


@mission.command()
@click.argument("slug")
@click.argument("wp", metavar="[WP]", required=False)
@threshold_option
@legacy_option
@_document_option
@click.pass_context
def stale(
    ctx: click.Context, /, slug: str, wp: str | None, threshold: float, legacy_default: Any, output_format: str
) -> None:
    """Print which work packages in progress are stale.

    Prints a stale-status for each, or for WP alone. Reasons why one cannot be judged go to stderr.
    """
    from accord.core.clock import SystemClock
    from accord.missions.branches import git_of, stale_of
    from accord.missions.load import load_mission

    now = SystemClock().now()
    with _refusals(ctx, output_format):
        found = load_mission(_root(ctx), slug, legacy_default)
        git = git_of(found)
        results = {name: stale_of(found, name, git, now, threshold) for name in ([wp] if wp else found.ids)}
    for name, result in results.items():
        if result.error:
            click.echo(f"{name}: {one_line(result.error)}", err=True)
    if output_format == "json":
        print_json({name: result.status.model_dump() for name, result in results.items()})
        return
    for name, result in results.items():
        click.echo(f"{name:<6} {stale_text(result.status.model_dump())}")


@mission.command()
@click.argument("slug")
@threshold_option
@legacy_option
@format_option
@click.pass_context
def status(ctx: click.Context, /, slug: str, threshold: float, legacy_default: Any, output_format: str) -> None:
    """Show the work packages of a mission.

    For each: status, mode, workspace, what blocks it, and what is broken. Ends with the commands that bring the mission
    forward. Exits with 1 if a status is unknown.
    """
    from accord.core.clock import SystemClock
    from accord.missions.dependencies import blockers
    from accord.missions.load import load_mission
    from accord.missions.next_moves import mission_moves, next_moves
    from accord.missions.query import mission_status
    from accord.plans.links import documents_by_number, package_numbers

    with _refusals(ctx, output_format):
        read = load_mission(_root(ctx), slug, legacy_default)
        blocked = blockers(read)
        found = mission_status(read, SystemClock().now(), threshold, blocked)
        numbers = package_numbers(read)
        linked = documents_by_number(_root(ctx)) if numbers else {}
        for entry in found["work_packages"]:
            number = numbers.get(entry["wp_id"], 0)
            entry["work_item"] = str(number) if number else None
            entry["documents"] = [each.as_json() for each in linked.get(number, ()) if each.name != slug]
        ahead = mission_moves(read, _command(ctx), blocked)
    if output_format == "json":
        for entry in found["work_packages"]:
            entry["next_moves"] = moves_to_json(next_moves(read, entry["wp_id"], _command(ctx), blocked))
        print_json({**found, "next_moves": moves_to_json(ahead)})
    else:
        show_status(found)
        print_moves(ahead)
    _exit_unless_readable(ctx, read)


@mission.command()
@click.argument("slug")
@click.argument("wp", metavar="WP")
@click.option("--to", "target", required=True, type=Choice([*STATUSES, "doing"]), help="New status.")
@click.option("--actor", required=True, metavar="NAME", help="Actor of the move.")
@click.option("--feedback", default="", metavar="TEXT", help="Findings of a review, or the work to review.")
@click.option("--review-ref", default="", metavar="REF", help="Review that the move is based on.")
@click.option(
    "--override-reason",
    default="",
    metavar="TEXT",
    help="Reason for done without a merge, or to review own work.",
)
@click.option("--force", is_flag=True, help="Allow any move, with --reason; done stays guarded.")
@click.option("--reason", default="", metavar="TEXT", help="Reason of the move.")
@legacy_option
@dry_run_option
@format_option
@click.pass_context
def move(ctx: click.Context, /, slug: str, wp: str, target: Any, output_format: str, **values: Any) -> None:
    """Move a work package, if its lifecycle allows it."""
    from accord.core.clock import SystemClock
    from accord.missions.lifecycle import MoveRequest
    from accord.missions.move import move as make_move

    request = MoveRequest(
        wp_id=wp,
        target="in_progress" if target == "doing" else target,
        is_forced=values["force"],
        **{name: values[name].strip() for name in ("actor", "feedback", "review_ref", "override_reason", "reason")},
    )
    how = {"legacy_default": values["legacy_default"], "is_dry_run": values["dry_run"]}
    with _refusals(ctx, output_format, slug, wp):
        moved = make_move(_root(ctx), slug, request, SystemClock(), redact=redactor_for(os.environ), **how)
    show_move(slug, wp, moved, output_format, is_dry_run=values["dry_run"], moves=_moves(ctx, slug, wp))


@mission.command()
@click.argument("slug")
@click.argument("wp", metavar="WP")
@click.option("--actor", default="", metavar="NAME", help="Actor of the work. Default: GITHUB_ACTOR, or your login.")
@legacy_option
@dry_run_option
@format_option
@click.pass_context
def start(
    ctx: click.Context, /, slug: str, wp: str, actor: str, legacy_default: Any, dry_run: bool, output_format: str
) -> None:
    """Start a work package: make its branch and work tree.

    Moves it to in_progress. The same command continues a start that was interrupted.
    """
    from accord.core.clock import SystemClock
    from accord.missions.start import start as make_start

    named = actor.strip()
    how = {"legacy_default": legacy_default, "is_dry_run": dry_run, "is_named": bool(named)}
    with _refusals(ctx, output_format, slug, wp):
        who = named or os.environ.get("GITHUB_ACTOR", "") or _login()
        started = make_start(_root(ctx), slug, wp, who, SystemClock(), redact=redactor_for(os.environ), **how)
    show_start(slug, wp, started, output_format, is_dry_run=dry_run, moves=_moves(ctx, slug, wp))


@mission.command()
@click.argument("slugs", nargs=-1, metavar="[SLUG]…", envvar="ACCORD_MISSION_CHECK_SLUGS")
@click.option("--base", default="", metavar="REF", help="Check the missions changed since HEAD left this branch.")
@legacy_option
@format_option
@click.pass_context
def check(ctx: click.Context, /, slugs: Sequence[str], base: str, legacy_default: Any, output_format: str) -> None:
    """Check the files of missions, and show their state.

    Checks all missions where none is named. Exits with 1 on an error.
    """
    from accord.cli.mission_output import report_missions
    from accord.core.clock import SystemClock
    from accord.core.findings import has_errors
    from accord.missions.branches import changed_missions
    from accord.missions.load import load_mission, mission_slugs
    from accord.missions.query import mission_status
    from accord.missions.rules import mission_findings

    with _refusals(ctx, output_format):
        root = _root(ctx)
        changed = changed_missions(root, base) if base else None
        chosen = slugs or [slug for slug in mission_slugs(root) if changed is None or slug in changed]
        missions = [load_mission(root, slug, legacy_default) for slug in chosen]
    files: dict[str, list[Finding]] = {}
    for path, found in ((path, found) for one in missions for path, found in mission_findings(one).items()):
        known = files.setdefault(path, [])  # missions share the files of their runs
        known += [finding for finding in found if finding not in known]
    standings = [mission_status(one, SystemClock().now()) for one in missions]
    is_ok = not any(has_errors(findings) for findings in files.values())
    if output_format == "json":
        documents = [{"path": path, "findings": [item.as_json() for item in found]} for path, found in files.items()]
        print_json({"ok": is_ok, "documents": documents, "missions": standings})
    else:
        for standing in standings:
            show_status(standing)
        for path, found in files.items():
            print_findings(found, path)
        verdict = click.style("ok", fg="green") if is_ok else click.style("rejected", fg="red")
        click.echo(f"{len(missions)} mission{'s' * (len(missions) != 1)}, {len(files)} files: {verdict}")
    report_missions(files, standings)
    ctx.exit(0 if is_ok else BrokenContract.exit_code)


def _root(ctx: click.Context) -> Path:
    """Return the project of ``--root``, or the one around the working directory. Raises BrokenContract without one."""
    from accord.missions.load import find_root, named_root

    named = ctx.parent.params["root"] if ctx.parent else None
    return named_root(Path(named)) if named else find_root(Path.cwd())


def _login() -> str:
    """Return the login name of the user; empty where the system has none."""
    try:
        return getpass.getuser()
    except (OSError, KeyError):
        return ""


def _command(ctx: click.Context) -> str:
    """Return how to call ``accord mission`` for the same project."""
    named = ctx.parent.params["root"] if ctx.parent else None
    return f"accord mission --root {shlex.quote(named)}" if named else "accord mission"


def _moves(ctx: click.Context, slug: str, wp: str) -> list[NextMove]:
    """Return what is legal next for a work package, or for the others of its mission if it has no move."""
    from accord.missions.load import load_mission
    from accord.missions.next_moves import mission_moves, next_moves

    try:
        found = load_mission(_root(ctx), slug)
        return next_moves(found, wp, _command(ctx)) or mission_moves(found, _command(ctx))
    except BrokenContract:
        return []


def _exit_unless_readable(ctx: click.Context, found: Mission) -> None:
    """Exit with 1, and say why on stderr, where the status of a work package cannot be read: the counts lack it."""
    from accord.missions.query import unreadable_statuses

    problems = unreadable_statuses(found)
    for wp_id, problem in problems.items():
        click.echo(f"{wp_id}: status unknown. {one_line(problem)}", err=True)
    if problems:
        ctx.exit(BrokenContract.exit_code)


@contextmanager
def _refusals(ctx: click.Context, output_format: str, slug: str = "", wp: str = "") -> Iterator[None]:
    """End a broken contract with exit code 1: one sentence for people, one object for programs.

    A refused move of a work package ends with what is legal instead.
    """
    try:
        yield
    except BrokenContract as broken:
        is_move = any(finding.code == "illegal-move" for finding in broken.findings)
        broken.next_moves = _moves(ctx, slug, wp) if is_move else []
        if output_format != "json":
            raise
        error = {"error": " ".join(filter(None, (broken.message, broken.hint)))}
        print_json({**error, "next_moves": moves_to_json(broken.next_moves)} if is_move else error)
        ctx.exit(BrokenContract.exit_code)
