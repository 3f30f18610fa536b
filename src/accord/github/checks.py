"""Checks of a commit over REST: check runs and commit statuses, which GitHub keeps apart and people see as one list."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, Protocol
from urllib.parse import quote

from accord.github.moments import moment_if_any
from accord.github.rest import Rest

if TYPE_CHECKING:
    from datetime import datetime

State = Literal["passing", "failing", "pending", "skipped"]

_STATES: dict[str | None, State] = {"success": "passing", "neutral": "passing", "skipped": "skipped"}
"""What conclusions mean; any other is a failure. A job that was skipped has said nothing of the commit."""

_JOB = re.compile(r"/actions/runs/(\d{1,18})/job/(\d{1,18})(?:[?#]|$)")
_SUMMARY_CHARACTERS = 20_000


@dataclass(frozen=True, slots=True)
class Check:
    """A check run or a commit status.

    ``app`` is the slug of the app that made a check run (``github-actions``), empty for a status. ``workflow_run_id``
    and ``job_id`` are known of jobs of GitHub Actions alone. ``summary`` is what the check itself says of its outcome,
    text of others.
    """

    name: str
    state: State
    url: str = ""
    app: str = ""
    workflow_run_id: int | None = None
    job_id: int | None = None
    started_at: datetime | None = None
    summary: str = ""


class CheckPort(Protocol):
    """Checks of one repository. Every method may raise Refused or Stopped."""

    def checks(self, sha: str) -> tuple[Check, ...]:
        """List the newest check run of each name and app, and the newest status of each context, on a commit."""
        ...


class CheckMethods(Rest):
    """Implements ``CheckPort``."""

    def checks(self, sha: str) -> tuple[Check, ...]:
        """GET …/commits/{sha}/check-runs and …/commits/{sha}/status, all pages: two requests as a rule."""
        commit = f"{self._root}/commits/{quote(sha, safe='')}"
        runs = self._listed(f"{commit}/check-runs", _check_run, key="check_runs", filter="latest")
        return (*runs, *self._listed(f"{commit}/status", _status, key="statuses"))


def _check_run(data: dict[str, Any]) -> Check:
    """Read the JSON of a check run (schema "check-run"). A job's check run has the job's id, and names its run."""
    app = (data.get("app") or {}).get("slug") or ""
    url = data.get("details_url") or data.get("html_url") or ""
    job = _JOB.search(url) if app == "github-actions" else None
    output = data.get("output") or {}
    summary = "\n\n".join(filter(None, (output.get("title"), output.get("summary"))))
    done = _STATES.get(data["conclusion"], "failing")
    return Check(
        name=data["name"],
        state=done if data["status"] == "completed" else "pending",
        url=url,
        app=app,
        workflow_run_id=int(job[1]) if job else None,
        job_id=int(job[2]) if job else None,
        started_at=moment_if_any(data.get("started_at")),
        summary=summary[:_SUMMARY_CHARACTERS],
    )


def _status(data: dict[str, Any]) -> Check:
    """Read the JSON of a status (schema "simple-commit-status")."""
    state: State = {"success": "passing", "pending": "pending"}.get(data["state"], "failing")  # type: ignore[assignment]
    return Check(
        name=data["context"],
        state=state,
        url=data.get("target_url") or "",
        started_at=moment_if_any(data.get("created_at")),
        summary=data.get("description") or "",
    )
