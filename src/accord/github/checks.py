"""Checks of a commit over REST: check runs and commit statuses, which GitHub keeps apart and people see as one list."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import datetime
from typing import Any, Literal

from accord.core.frozen import Frozen
from accord.github.rest import Rest, optional_timestamp, segment
from accord.text.markdown import shorten

CheckState = Literal["passing", "failing", "inconclusive", "pending", "skipped"]

CONCLUSIONS: Mapping[str, CheckState] = {
    "success": "passing",
    "neutral": "passing",
    "failure": "failing",
    "timed_out": "failing",
    "skipped": "skipped",
    "cancelled": "inconclusive",
    "action_required": "inconclusive",
    "stale": "inconclusive",
    "startup_failure": "inconclusive",
}
"""The meaning of conclusions; any other is inconclusive. A job that is skipped or inconclusive says nothing about the
commit, but an inconclusive one should have. Source: GitHub's
OpenAPI description, schemas "check-run" and "workflow-run".
"""

_JOB = re.compile(r"/actions/runs/(\d{1,18})/job/(\d{1,18})(?:[?#]|$)")
_SUMMARY_CHARACTERS = 20_000


class Check(Frozen):
    """A check run or a commit status."""

    name: str
    state: CheckState
    url: str = ""
    app: str = ""  # slug of the app that made a check run (github-actions), empty for a status
    workflow_run_id: int | None = None  # known of jobs of GitHub Actions alone
    job_id: int | None = None  # likewise
    started_at: datetime | None = None
    summary: str = ""  # the outcome in the words of the check: untrusted text
    conclusion: str = ""  # GitHub's word, empty until the check run is completed
    mark: str = ""  # text of its own that its maker set, of a status the description

    @property
    def kind(self) -> str:
        """The word for it in reports."""
        return "check-run" if self.app else "commit-status"


STATUS_CHARS = 140
"""GitHub refuses a longer description of a commit status."""


class CommitVerdict(Frozen):
    """A verdict about a commit, and where it is shown; ``mark`` tells verdicts apart without reading their text."""

    name: str
    is_passed: bool
    title: str
    summary: str
    mark: str


class CheckMethods(Rest):
    """Requests about checks and statuses of commits."""

    def check_runs(self, sha: str, **params: str) -> tuple[Check, ...]:
        """List the newest check run of each name and app. GET …/commits/{sha}/check-runs."""
        path = f"/commits/{segment(sha)}/check-runs"
        return tuple(self._list_items(path, _check_run, key="check_runs", filter="latest", **params))

    def statuses(self, sha: str) -> tuple[Check, ...]:
        """List the newest commit status of each context. GET …/commits/{sha}/status."""
        return tuple(self._list_items(f"/commits/{segment(sha)}/status", _status, key="statuses"))

    def create_check_run(self, sha: str, verdict: CommitVerdict) -> Check:
        """Create a check run. POST …/check-runs. Raises Forbidden for a token that does not belong to an app."""
        content = {
            "name": verdict.name,
            "head_sha": sha,
            "status": "completed",
            "conclusion": "success" if verdict.is_passed else "failure",
            "external_id": verdict.mark,
            "output": {"title": verdict.title, "summary": verdict.summary},
        }
        return self._call("POST", "/check-runs", body=content).read(_check_run)

    def create_commit_status(self, sha: str, verdict: CommitVerdict) -> Check:
        """Set a commit status. POST …/statuses/{sha}. Raises Forbidden."""
        state, path = "success" if verdict.is_passed else "failure", f"/statuses/{segment(sha)}"
        content = {"state": state, "context": verdict.name, "description": shorten(verdict.title, STATUS_CHARS)}
        return self._call("POST", path, body=content).read(_status)


def _check_run(data: dict[str, Any]) -> Check:
    """Read the JSON of a check run (schema "check-run"). A job's check run has the job's id, and names its run."""
    app = (data.get("app") or {}).get("slug") or ""
    details, page = data.get("details_url") or "", data.get("html_url") or ""
    job = _JOB.search(details) if app == "github-actions" else None
    output = data.get("output") or {}
    summary = "\n\n".join(filter(None, (output.get("title"), output.get("summary"))))
    conclusion = data["conclusion"] or "" if data["status"] == "completed" else ""
    return Check(
        name=data["name"],
        state=CONCLUSIONS.get(conclusion, "inconclusive") if data["status"] == "completed" else "pending",
        url=details if job else page or details,
        app=app,
        workflow_run_id=int(job[1]) if job else None,
        job_id=int(job[2]) if job else None,
        started_at=optional_timestamp(data.get("started_at")),
        summary=summary[:_SUMMARY_CHARACTERS],
        conclusion=conclusion,
        mark=data.get("external_id") or "",
    )


def _status(data: dict[str, Any]) -> Check:
    """Read the JSON of a status (schema "simple-commit-status")."""
    state: CheckState = {"success": "passing", "pending": "pending"}.get(data["state"], "failing")  # type: ignore[assignment]
    return Check(
        name=data["context"],
        state=state,
        url=data.get("target_url") or "",
        started_at=optional_timestamp(data.get("created_at")),
        summary=data.get("description") or "",
        mark=data.get("description") or "",
    )
