"""What ``accord mission check`` leaves for the runner: outputs, a table of each mission, annotations."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from accord.cli.step import report_checks
from accord.cli.step_files import as_output, leave_outputs, leave_summary
from accord.cli.step_files import redacted_cell as cell
from accord.kernel.markdown_text import table

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from accord.kernel.findings import Finding

_ROWS = 200
_HEAD = ["Work package", "Status", "Where it runs", "Commits", "Problem"]


def report_missions(files: Mapping[str, list[Finding]], standings: Sequence[dict[str, Any]]) -> None:
    """Report a check of missions: outputs ``ok`` and ``missions``, verdicts on files, where each mission stands."""
    report_checks([(path, "mission", found) for path, found in files.items()], name="mission check")
    progress = {standing["mission_slug"]: standing["progress"] for standing in standings}
    leave_outputs({"missions": as_output(progress)})
    for standing in standings:
        leave_summary(_page(standing))


def _page(standing: Mapping[str, Any]) -> str:
    entries = standing["work_packages"]
    rows = [
        [
            cell(f"{entry['wp_id']} {entry['title']}"),
            entry["status"] or "unknown",
            cell(entry["lane_id"] or ("repository root" if entry["resolution_kind"] else "unknown")),
            _commits(entry),
            cell(entry["error"] or entry["stale_error"] or ""),
        ]
        for entry in entries[:_ROWS]
    ]
    progress = standing["progress"]
    done = f"\n\n{progress['weighted_percentage']} % of {progress['total_wps']} work packages." if progress else ""
    rest = f"\n\n{len(entries) - _ROWS} more are in the mission." if len(entries) > _ROWS else ""
    return f"#### {cell(standing['mission_slug'])}{done}\n\n{table(_HEAD, rows)}{rest}"


def _commits(entry: Mapping[str, Any]) -> str:
    """Tell of the heartbeat of work in progress; for planning in the root there is none, which is no fault."""
    stale = entry["stale"]
    if stale["status"] == "not_applicable":
        return "n/a"
    if entry["status"] != "in_progress" or stale["minutes_since_commit"] is None:
        return ""
    return f"{stale['status']}, {stale['minutes_since_commit']:.0f} min"
