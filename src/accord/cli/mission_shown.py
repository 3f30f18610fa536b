"""What a command of ``accord mission`` prints for people: where missions and their work packages stand."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from accord.cli.output import one_line, print_json
from accord.missions.models import STATUSES

if TYPE_CHECKING:
    from accord.missions.models import NextQueryResponse
    from accord.missions.move import Moved
    from accord.missions.workspace import ResolvedWorkspace

_COLORS = {"in_progress": "green", "blocked": "red", "approved": "green", "done": "green", "canceled": "yellow"}


def show_answer(answer: NextQueryResponse) -> None:
    """Print where a mission stands, and what is next."""
    click.echo(f"{one_line(answer.mission)} @ {click.style(one_line(answer.mission_state), bold=True)}")
    for name, value in (("next step", answer.preview_step), ("because", answer.reason), ("question", answer.question)):
        if value:
            click.echo(f"  {name}: {one_line(value)}")
    for option in answer.options or ():
        click.echo(f"    - {one_line(option)}")
    for failure in answer.guard_failures:
        click.echo(f"  missing: {one_line(failure)}")
    if answer.progress:
        click.echo(f"  {progress_text(answer.progress)}")


def show_workspace(wp: str, found: ResolvedWorkspace) -> None:
    """Print where a work package runs."""
    click.echo(f"{click.style(one_line(wp), bold=True)} {found.execution_mode} in {one_line(found.workspace_path)}")
    if found.branch_name:
        lane = f"{found.lane_id} with {', '.join(found.lane_wp_ids)}"
        click.echo(f"  branch {one_line(found.branch_name)}, {one_line(lane)}")
    for text in found.diagnostics:
        click.echo(click.style(f"  {one_line(text)}", dim=True))


def show_move(slug: str, wp: str, moved: Moved, output_format: str, *, is_dry_run: bool) -> None:
    """Print a move, as text or as one document."""
    outcome = "unchanged" if not moved.events else "planned" if is_dry_run else "applied"
    if output_format == "json":
        document = {"mission_slug": slug, "wp_id": wp, "from": moved.source, "to": moved.target, "outcome": outcome}
        print_json({**document, "events": list(moved.events)})
        return
    way = " → ".join([moved.source, *(event["to_lane"] for event in moved.events)])
    click.echo(f"{click.style(one_line(wp), bold=True)} {way}: {outcome}")


def show_status(found: dict[str, Any]) -> None:
    """Print all work packages of a mission."""
    click.echo(click.style(one_line(found["mission_slug"]), bold=True))
    if found["progress"]:
        click.echo(f"  {progress_text(found['progress'])}")
    for entry in found["work_packages"]:
        state = entry["status"] or "unknown"
        colored = click.style(f"{state:<11}", fg=_COLORS.get(state))
        place = entry["lane_id"] or ("repository root" if entry["resolution_kind"] else "nowhere")
        click.echo(f"  {entry['wp_id']:<6} {colored} {one_line(place):<15} {one_line(entry['title'])}")
        if state == "in_progress":
            click.echo(f"         {stale_text(entry['stale'])}")
        for problem in dict.fromkeys((entry["error"], entry["stale_error"])):
            if problem:
                click.echo(click.style(f"         {one_line(problem)}", fg="red"))
    for text in found["diagnostics"]:
        click.echo(click.style(f"  {one_line(text)}", dim=True))


def progress_text(progress: dict[str, Any]) -> str:
    """Say how far a mission is."""
    counts = ", ".join(f"{progress[f'{name}_wps']} {name}" for name in STATUSES if progress.get(f"{name}_wps"))
    return f"{progress['weighted_percentage']} % of {progress['total_wps']} work packages{counts and ': '}{counts}"


def stale_text(stale: dict[str, Any]) -> str:
    """Say how long ago a work package got its last commit."""
    if stale["status"] == "not_applicable":
        return "stale: n/a (planning in the repository root)"
    if stale["minutes_since_commit"] is None:
        return f"{stale['status']} ({stale['reason']})"
    text = f"{stale['status']}: last commit {stale['minutes_since_commit']:.0f} minutes ago"
    return click.style(text, fg="yellow" if stale["status"] == "stale" else None)
