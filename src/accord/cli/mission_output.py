"""Output of the commands of ``accord mission`` for people: missions and their work packages."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from accord.cli.output import (
    document_lines,
    fitted,
    one_line,
    print_findings,
    print_json,
    print_lines,
    print_moves,
    screen_columns,
)
from accord.cli.step import as_output, leave_outputs, leave_summary, report_checks
from accord.cli.step import redacted_cell as cell
from accord.core.moves import moves_to_json
from accord.missions.models import STATUSES
from accord.text.markdown import table

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from accord.cli.options import FormatArguments
    from accord.core.moves import NextMove
    from accord.missions.check import MissionCheck
    from accord.missions.models import NextQueryResponse
    from accord.missions.move import MoveResult
    from accord.missions.start import StartResult
    from accord.missions.workspace import ResolvedWorkspace


_COLORS = {"in_progress": "green", "blocked": "red", "approved": "green", "done": "green", "canceled": "yellow"}
_BEFORE_TITLE = 37
"""Columns before the title of a work package."""


def show_answer(answer: NextQueryResponse) -> None:
    """Print the state of a mission, and its next step."""
    click.echo(f"{one_line(answer.mission)} @ {click.style(one_line(answer.mission_state), bold=True)}")
    for name, value in (("next step", answer.preview_step), ("reason", answer.reason), ("question", answer.question)):
        if value:
            click.echo(f"  {name}: {one_line(value)}")
    for option in answer.options or ():
        click.echo(f"    - {one_line(option)}")
    for failure in answer.guard_failures:
        click.echo(f"  missing: {one_line(failure)}")
    if answer.progress:
        click.echo(f"  {progress_text(answer.progress)}")


def show_workspace(wp: str, found: ResolvedWorkspace) -> None:
    """Print the workspace of a work package."""
    click.echo(f"{click.style(one_line(wp), bold=True)} {found.execution_mode} in {one_line(found.workspace_path)}")
    if found.branch_name:
        lane = f"{found.lane_id} with {', '.join(found.lane_wp_ids)}"
        click.echo(f"  branch {one_line(found.branch_name)}, {one_line(lane)}")
    for text in found.diagnostics:
        click.echo(click.style(f"  {one_line(text)}", dim=True))


def show_move(
    slug: str, wp: str, moved: MoveResult, output_format: str, *, is_dry_run: bool, moves: Sequence[NextMove]
) -> None:
    """Print a move and what is legal next, as text or as one document."""
    outcome = "unchanged" if not moved.events else "planned" if is_dry_run else "applied"
    if output_format == "json":
        document = {"mission_slug": slug, "wp_id": wp, "from": moved.source, "to": moved.target, "outcome": outcome}
        print_json({**document, "events": list(moved.events), "next_moves": moves_to_json(moves)})
        return
    steps = " → ".join([moved.source, *(event["to_lane"] for event in moved.events)])
    click.echo(f"{click.style(one_line(wp), bold=True)} {steps}: {outcome}")
    print_moves(moves)


def show_start(
    slug: str, wp: str, started: StartResult, output_format: str, *, is_dry_run: bool, moves: Sequence[NextMove]
) -> None:
    """Print a start and what is legal next, as text or as one document."""
    is_change = bool(started.operations or started.events)
    outcome = "unchanged" if not is_change else "planned" if is_dry_run else "applied"
    there = started.workspace
    if output_format == "json":
        document = {"mission_slug": slug, "wp_id": wp, "from": started.source, "to": "in_progress", "outcome": outcome}
        location = {name: getattr(there, name) for name in ("workspace_path", "branch_name", "lane_id")}
        operations = [{"op": step.op, "target": step.target} for step in started.operations]
        events = {"operations": operations, "events": list(started.events), "next_moves": moves_to_json(moves)}
        print_json({**document, **location, **events})
        return
    steps = " → ".join([started.source, *(event["to_lane"] for event in started.events)])
    click.echo(f"{click.style(one_line(wp), bold=True)} {steps}: {outcome}")
    branch = f" on {one_line(there.branch_name)}" if there.branch_name else ""
    click.echo(f"  {one_line(there.workspace_path)}{branch}")
    print_moves(moves)


def show_readiness(overview: Mapping[str, Any]) -> None:
    """Print which work packages may start now, and what blocks the others."""
    if overview["ready"]:
        click.echo(f"  ready: {', '.join(overview['ready'])}")
    for wp_id, names in overview["blocked"].items():
        click.echo(f"  {wp_id} is blocked by {one_line(', '.join(names))}")
    for wp_id, problem in overview["problems"].items():
        click.echo(click.style(f"  {wp_id}: {one_line(problem)}", fg="red"))


def show_overview(overview: Mapping[str, Any]) -> None:
    """Print a mission of a list."""
    click.echo(click.style(one_line(overview["mission_slug"]), bold=True))
    if overview["progress"]:
        click.echo(f"  {progress_text(overview['progress'])}")
    show_readiness(overview)


def show_status(found: dict[str, Any]) -> None:
    """Print all work packages of a mission."""
    print_lines(list(_status_lines(found, screen_columns())))


def _status_lines(found: dict[str, Any], columns: int | None) -> Iterator[str]:
    yield click.style(one_line(found["mission_slug"]), bold=True)
    if found["progress"]:
        yield f"  {progress_text(found['progress'])}"
    for entry in found["work_packages"]:
        state = entry["status"] or "unknown"
        colored = click.style(f"{state:<11}", fg=_COLORS.get(state))
        location = entry["lane_id"] or ("repository root" if entry["resolution_kind"] else "nowhere")
        title = fitted(one_line(entry["title"]), columns - _BEFORE_TITLE if columns else None)
        yield f"  {entry['wp_id']:<6} {colored} {one_line(location):<15} {title}"
        yield from _item_lines(entry)
        if state == "in_progress":
            yield f"         {stale_text(entry['stale'])}"
        if entry["ready"]:
            yield "         ready to start"
        elif entry["blocked_by"]:
            yield f"         blocked by {one_line(', '.join(entry['blocked_by']))}"
        for problem in dict.fromkeys((entry["error"], entry["stale_error"], entry["blocked_reason"])):
            if problem:
                yield click.style(f"         {one_line(problem)}", fg="red")
    for text in found["diagnostics"]:
        yield click.style(f"  {one_line(text)}", dim=True)


def _item_lines(entry: dict[str, Any]) -> Iterator[str]:
    """Return the work item of a work package, and its other documents."""
    from accord.plans.links import LinkedDocument

    if entry.get("work_item"):
        yield f"         work item #{entry['work_item']}: accord items show {entry['work_item']}"
        for line in document_lines(LinkedDocument(**each) for each in entry["documents"]):
            yield f"         {line}"


def progress_text(progress: dict[str, Any]) -> str:
    """Return the progress of a mission as text."""
    counts = ", ".join(
        f"{progress[f'{name}_wps']} {name}" for name in (*STATUSES, "unknown") if progress.get(f"{name}_wps")
    )
    return f"{progress['weighted_percentage']} % of {progress['total_wps']} work packages{counts and ': '}{counts}"


def stale_text(stale: dict[str, Any]) -> str:
    """Say how long ago a work package got its last commit."""
    if stale["status"] == "not_applicable":
        return "stale: n/a (planning in the repository root)"
    if stale["minutes_since_commit"] is None:
        return f"{stale['status']} ({stale['reason']})"
    text = f"{stale['status']}: last commit {stale['minutes_since_commit']:.0f} minutes ago"
    return click.style(text, fg="yellow" if stale["status"] == "stale" else None)


_ROWS = 200
_HEAD = ["Work package", "Status", "Where it runs", "Commits", "Problem"]


def show_check(found: MissionCheck, given: FormatArguments) -> None:
    """Print a check of missions, and report it: outputs ``ok`` and ``missions``, verdicts on files, each mission."""
    if given.is_json:
        print_json(found.as_json())
    else:
        for standing in found.standings:
            show_status(standing)
        for path, findings in found.files.items():
            print_findings(findings, path)
        count = len(found.standings)
        verdict = click.style("ok", fg="green") if found.is_ok else click.style("rejected", fg="red")
        click.echo(f"{count} mission{'s' * (count != 1)}, {len(found.files)} files: {verdict}")
    report_checks([(path, "mission", [*findings]) for path, findings in found.files.items()], name="mission check")
    leave_outputs({"missions": as_output({one["mission_slug"]: one["progress"] for one in found.standings})})
    for standing in found.standings:
        leave_summary(_page(standing))


def _page(standing: Mapping[str, Any]) -> str:
    entries = standing["work_packages"]
    rows = []
    for entry in entries[:_ROWS]:
        location = entry["lane_id"] or ("repository root" if entry["resolution_kind"] else "unknown")
        problem = entry["error"] or entry["stale_error"] or ""
        name = f"{entry['wp_id']} {entry['title']}"
        rows.append([cell(name), entry["status"] or "unknown", cell(location), _commits(entry), cell(problem)])
    progress = standing["progress"]
    done = f"\n\n{progress['weighted_percentage']} % of {progress['total_wps']} work packages." if progress else ""
    rest = f"\n\n{len(entries) - _ROWS} more work packages are in the mission." if len(entries) > _ROWS else ""
    return f"#### {cell(standing['mission_slug'])}{done}\n\n{table(_HEAD, rows)}{rest}"


def _commits(entry: Mapping[str, Any]) -> str:
    """Return the staleness of work in progress; planning in the root has none."""
    stale = entry["stale"]
    if stale["status"] == "not_applicable":
        return "n/a"
    if entry["status"] != "in_progress" or stale["minutes_since_commit"] is None:
        return ""
    return f"{stale['status']}, {stale['minutes_since_commit']:.0f} min"
