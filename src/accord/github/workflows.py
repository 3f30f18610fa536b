"""Workflow runs over REST: what became of one, what a job of it printed, and starting one by hand."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from accord.github.artifacts import StoredFile, read_end
from accord.github.models import NotThere
from accord.github.rest import Rest

if TYPE_CHECKING:
    from collections.abc import Mapping


MOST_LOG_BYTES = 4 << 20
"""Only the end of a longer log is kept: what fails ends it."""


@dataclass(frozen=True, slots=True)
class WorkflowRun:
    """A run of a workflow. ``status`` is GitHub's word (queued, in_progress, completed, …), ``conclusion`` empty until
    it is completed. ``pulls`` are the pull requests of this repository whose head it ran for.
    """

    id: int
    name: str
    path: str
    event: str
    status: str
    conclusion: str
    head_sha: str
    head_branch: str
    pulls: tuple[int, ...]

    @property
    def has_ended(self) -> bool:
        """Whether nothing more comes of it."""
        return self.status == "completed"


class WorkflowMethods(Rest):
    """Requests about workflow runs."""

    def workflow_run(self, run_id: int) -> WorkflowRun | None:
        """Read a run; None without one, or after it was deleted.

        GET …/actions/runs/{run_id}.
        """
        return self._found(f"{self._root}/actions/runs/{run_id}", _run)

    def job_log(self, job_id: int) -> str:
        """Read the end of a job's log, ``MOST_LOG_BYTES`` at most; empty when GitHub has no log any more.

        GET …/actions/jobs/{job_id}/logs, which redirects to GitHub's storage; the token is not sent there.
        """
        path = f"{self._root}/actions/jobs/{job_id}/logs"

        def place() -> str:
            return str(self._transport.call("GET", path, takes_location=True).data)

        log = StoredFile("The log", place, self._access.api_url)
        try:
            return read_end(log, MOST_LOG_BYTES, self._clock).decode("utf-8", "replace")
        except NotThere:
            return ""

    def dispatch_workflow(self, file: str, ref: str, inputs: Mapping[str, str]) -> None:
        """Start a workflow by the name of its file.

        POST …/actions/workflows/{file}/dispatches. Raises AnswerLost when it is unknown whether it was started.
        """
        path = f"{self._root}/actions/workflows/{quote(file, safe='')}/dispatches"
        self._transport.call("POST", path, body={"ref": ref, "inputs": dict(inputs)})


def _run(data: dict[str, Any]) -> WorkflowRun:
    """Read the JSON of a run (schema "workflow-run")."""
    return WorkflowRun(
        id=data["id"],
        name=data.get("name") or "",
        path=data["path"],
        event=data["event"],
        status=data["status"] or "",
        conclusion=data["conclusion"] or "",
        head_sha=data["head_sha"],
        head_branch=data["head_branch"] or "",
        pulls=tuple(pull["number"] for pull in data["pull_requests"] or ()),
    )


class EventMethods(Rest):
    """Requests that start workflows by events."""

    def send_event(self, name: str, payload: Mapping[str, Any]) -> None:
        """Start the workflows on ``repository_dispatch`` of this type.

        POST …/dispatches. Raises AnswerLost when they may have started.
        """
        content = {"event_type": name, "client_payload": dict(payload)}
        self._transport.call("POST", f"{self._root}/dispatches", body=content)
