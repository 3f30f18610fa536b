"""Workflow runs over REST: their state and logs, and how to start one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any

from accord.core.clock import parse_timestamp, timestamp
from accord.core.errors import Refused
from accord.core.frozen import Frozen, json_field
from accord.github.artifacts import StoredFile, read_end
from accord.github.models import Conflict, Forbidden, NotThere
from accord.github.rest import Rest, segment

MOST_LOG_BYTES = 4 << 20
"""Only the end of a longer log is kept: what fails ends it."""


def _text(value: str | None) -> str:
    return value or ""


class WorkflowRun(Frozen):
    """A run of a workflow (schema "workflow-run")."""

    id: int = json_field()
    name: str = json_field(empty="")
    path: str = json_field()
    event: str = json_field()
    status: str = json_field(read=_text)  # GitHub's word (queued, in_progress, completed, …)
    conclusion: str = json_field(read=_text)  # empty until it is completed
    head_sha: str = json_field()
    head_branch: str = json_field(read=_text)
    # of this repository, whose head it ran for
    pulls: tuple[int, ...] = json_field("pull_requests", lambda pulls: tuple(pull["number"] for pull in pulls or ()))
    created_at: datetime = json_field(read=parse_timestamp)
    title: str = json_field("display_title", default="")  # as its page shows it, which a workflow's run-name decides
    attempt: int = json_field("run_attempt", default=1)  # from 1

    @property
    def has_ended(self) -> bool:
        """Whether nothing more comes of it."""
        return self.status == "completed"

    @property
    def is_held(self) -> bool:
        """Whether a pull request's run waits for a person's approval; until then it has no jobs, and no check runs."""
        return self.has_ended and self.conclusion == "action_required" and self.event == "pull_request"


class WorkflowMethods(Rest):
    """Requests about workflow runs."""

    _names_started_runs = True
    """False once the server refused to be asked for the run that it starts."""

    def run_page(self, run_id: int) -> str:
        """Return the address of a run's page. No request."""
        return f"{self._access.server_url}/{self._access.repository}/actions/runs/{run_id}"

    def workflow_run(self, run_id: int) -> WorkflowRun | None:
        """Read a run; None without one, or after it was deleted. GET …/actions/runs/{run_id}."""
        return self._find(f"/actions/runs/{run_id}", WorkflowRun.from_json)

    def dispatched_runs(self, file: str, word: str, since: datetime) -> Iterator[WorkflowRun]:
        """Yield runs that were started by ``workflow_dispatch`` since then, newest first, if their title has the word.

        A workflow's ``run-name`` puts inputs into the title. Yields nothing where the workflow does not exist.
        """
        path, created = f"/actions/workflows/{segment(file)}/runs", f">={timestamp(since)}"
        asked = {"event": "workflow_dispatch", "created": created}
        try:
            runs = self._list_items(path, WorkflowRun.from_json, key="workflow_runs", **asked)
            yield from (run for run in runs if word in run.title.split())
        except NotThere:
            return

    def cancel_run(self, run_id: int) -> bool:
        """Ask GitHub to cancel a run; False where it has ended already. Sent again when its answer is lost."""
        try:
            self.send_until_answered(lambda: self._call("POST", f"/actions/runs/{run_id}/cancel"))
        except Conflict:
            return False
        return True

    def rerun(self, run_id: int) -> None:
        """Run all jobs of a workflow run again. POST …/actions/runs/{run_id}/rerun, with actions: write."""
        self._call("POST", f"/actions/runs/{run_id}/rerun")

    def runs_of(self, sha: str) -> tuple[WorkflowRun, ...]:
        """List the runs of a commit, newest first. Raises Forbidden without ``actions: read``."""
        return tuple(self._list_items("/actions/runs", WorkflowRun.from_json, key="workflow_runs", head_sha=sha))

    def runs_in(self, status: str) -> Iterator[WorkflowRun]:
        """List the runs in a status or with a conclusion, newest first. Raises Forbidden without ``actions: read``."""
        return self._list_items("/actions/runs", WorkflowRun.from_json, key="workflow_runs", status=status)

    def job_log(self, job_id: int) -> str:
        """Read the end of a job's log, ``MOST_LOG_BYTES`` at most; empty without one. The storage gets no token."""

        def place() -> str:
            return str(self._call("GET", f"/actions/jobs/{job_id}/logs", takes_location=True).data)

        log = StoredFile("The log", place, self._access.api_url)
        try:
            return read_end(log, MOST_LOG_BYTES, self.clock).decode("utf-8", "replace")
        except NotThere:
            return ""

    def dispatch_workflow(self, file: str, ref: str, inputs: Mapping[str, str]) -> int:
        """Start a workflow by the name of its file, and return the id of its run; 0 where the server does not tell.

        POST …/actions/workflows/{file}/dispatches. Versions of Enterprise Server before 3.21 refuse the field that asks
        for the run, so they get the request again without it. Raises AnswerLost when it is unknown whether it was
        started.
        """
        path = f"/actions/workflows/{segment(file)}/dispatches"
        body: dict[str, Any] = {"ref": ref, "inputs": dict(inputs)}
        if self._names_started_runs:
            try:
                answer = self._call("POST", path, body={**body, "return_run_details": True})
                return answer.read(lambda data: int(data["workflow_run_id"])) if answer.data else 0
            except (NotThere, Forbidden):
                raise
            except Refused:  # for the field, or for another reason: then it is refused again
                self._call("POST", path, body=body)
                self._names_started_runs = False
                return 0
        self._call("POST", path, body=body)
        return 0

    def send_event(self, name: str, payload: Mapping[str, Any]) -> None:
        """Start the workflows on ``repository_dispatch`` of this type. POST …/dispatches."""
        content = {"event_type": name, "client_payload": dict(payload)}
        self._call("POST", "/dispatches", body=content)
