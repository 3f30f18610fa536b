"""Output of the commands of ``accord mission``: missions and their work packages, for people and in a summary."""

from __future__ import annotations

from collections.abc import Iterator

import click

from accord.cli.check import report_checks
from accord.cli.options import FormatArguments
from accord.cli.output import Json, colored_word, cut_text, document_lines, finding_lines, one_line, screen_columns
from accord.cli.step import as_output, leave_outputs, leave_summary, long_table, present
from accord.cli.step import redacted_cell as cell
from accord.core.findings import count_of
from accord.missions.models import STATUSES, NextQueryResponse
from accord.missions.rules import MissionCheck
from accord.missions.workspace import ResolvedWorkspace

_BEFORE_TITLE = 37
"""Columns before the title of a work package."""


def answer_lines(answer: NextQueryResponse) -> Iterator[str]:
    """Yield the state of a mission, and its next step."""
    yield f"{one_line(answer.mission)} @ {click.style(one_line(answer.mission_state), bold=True)}"
    for name, value in (("next step", answer.preview_step), ("reason", answer.reason), ("question", answer.question)):
        if value:
            yield f"  {name}: {one_line(value)}"
    yield from (f"    - {one_line(option)}" for option in answer.options or ())
    yield from (f"  missing: {one_line(failure)}" for failure in answer.guard_failures)
    if answer.progress:
        yield f"  {progress_text(answer.progress)}"


def workspace_lines(found: ResolvedWorkspace) -> Iterator[str]:
    """Yield the workspace of a work package."""
    yield f"{click.style(one_line(found.wp_id), bold=True)} {found.execution_mode} in {one_line(found.workspace_path)}"
    if found.branch_name:
        lane = f"{found.lane_id} with {', '.join(found.lane_wp_ids)}"
        yield f"  branch {one_line(found.branch_name)}, {one_line(lane)}"
    yield from (click.style(f"  {one_line(text)}", dim=True) for text in found.diagnostics)


def readiness_lines(overview: Json) -> Iterator[str]:
    """Yield which work packages may start now, and what blocks the others."""
    if overview["ready"]:
        yield f"  ready: {', '.join(overview['ready'])}"
    for wp_id, names in overview["blocked"].items():
        yield f"  {wp_id} is blocked by {one_line(', '.join(names))}"
    for wp_id, problem in overview["problems"].items():
        yield click.style(f"  {wp_id}: {one_line(problem)}", fg="red")


def status_lines(found: Json, columns: int | None) -> Iterator[str]:
    """Yield all work packages of a mission; titles are cut at the width of a terminal."""
    yield click.style(one_line(found["mission_slug"]), bold=True)
    if found["progress"]:
        yield f"  {progress_text(found['progress'])}"
    for entry in found["work_packages"]:
        state = entry["status"] or "unknown"
        location = entry["lane_id"] or ("repository root" if entry["resolution_kind"] else "nowhere")
        title = cut_text(one_line(entry["title"]), columns, _BEFORE_TITLE)
        yield f"  {entry['wp_id']:<6} {colored_word(state, 11)} {one_line(location):<15} {title}"
        yield from _item_lines(entry)
        if state == "in_progress":
            worker = f"{one_line(entry['worker'])} works on it, " if entry["worker"] else ""
            yield f"         {worker}{stale_text(entry['stale'])}"
        if entry["ready"]:
            yield "         ready to start"
        elif entry["blocked_by"]:
            yield f"         blocked by {one_line(', '.join(entry['blocked_by']))}"
        for problem in dict.fromkeys((entry["error"], entry["stale_error"], entry["blocked_reason"])):
            if problem:
                yield click.style(f"         {one_line(problem)}", fg="red")
    for text in found["diagnostics"]:
        yield click.style(f"  {one_line(text)}", dim=True)


def _item_lines(entry: Json) -> Iterator[str]:
    if entry.get("work_item"):
        from accord.plans.links import LinkedDocument

        yield f"         work item #{entry['work_item']}: accord items show {entry['work_item']}"
        for line in document_lines(LinkedDocument(**each) for each in entry["documents"]):
            yield f"         {line}"


def progress_text(progress: Json) -> str:
    """Return the progress of a mission as text."""
    counts = ", ".join(
        f"{progress[f'{name}_wps']} {name}" for name in (*STATUSES, "unknown") if progress.get(f"{name}_wps")
    )
    return f"{progress['weighted_percentage']} % of {progress['total_wps']} work packages{counts and ': '}{counts}"


def stale_text(stale: Json) -> str:
    """Say how long ago a work package got its last commit."""
    if stale["status"] == "not_applicable":
        return "stale: n/a (planning in the repository root)"
    if stale["minutes_since_commit"] is None:
        return f"{stale['status']} ({stale['reason']})"
    age = count_of(round(stale["minutes_since_commit"]), "minute")
    text = f"{stale['status']}: last commit {age} ago"
    return click.style(text, fg="yellow" if stale["status"] == "stale" else None)


def report_check(found: MissionCheck, given: FormatArguments) -> None:
    """Print a check of missions, and report it: outputs ``ok`` and ``missions``, verdicts on files, each mission."""
    verdict = colored_word("ok" if found.is_ok else "rejected")
    present(
        given,
        found.as_json(),
        [
            *(line for each in found.standings for line in status_lines(each, screen_columns())),
            *(line for path, findings in found.files.items() for line in finding_lines(findings, path)),
            f"{count_of(len(found.standings), 'mission')}, {len(found.files)} files: {verdict}",
        ],
    )
    report_checks([(path, "mission", [*findings]) for path, findings in found.files.items()], name="mission check")
    leave_outputs({"missions": as_output({one["mission_slug"]: one["progress"] for one in found.standings})})
    for standing in found.standings:
        _leave_standing(standing)


def _leave_standing(standing: Json) -> None:
    rows = []
    for entry in standing["work_packages"]:
        location = entry["lane_id"] or ("repository root" if entry["resolution_kind"] else "unknown")
        problem = entry["error"] or entry["stale_error"] or ""
        name = f"{entry['wp_id']} {entry['title']}"
        rows.append([cell(name), entry["status"] or "unknown", cell(location), _commits(entry), cell(problem)])
    progress = standing["progress"]
    done = f"{progress['weighted_percentage']} % of {progress['total_wps']} work packages." if progress else ""
    head = ["Work package", "Status", "Where it runs", "Commits", "Problem"]
    leave_summary(f"#### {cell(standing['mission_slug'])}", done, long_table(head, rows, "in the mission"))


def _commits(entry: Json) -> str:
    """Return the staleness of work in progress; planning in the root has none."""
    stale = entry["stale"]
    if stale["status"] == "not_applicable":
        return "n/a"
    if entry["status"] != "in_progress" or stale["minutes_since_commit"] is None:
        return ""
    return f"{stale['status']}, {stale['minutes_since_commit']:.0f} min"
