"""A verdict on a commit, where the list of checks of a pull request shows it.

A check run says why; only apps may make one, and the token of a job is an app's. Other tokens set a commit status
instead, which has one line.
Docs: https://docs.github.com/rest/checks/runs, https://docs.github.com/rest/commits/statuses
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol
from urllib.parse import quote

from accord.github.rest import Rest
from accord.kernel.markdown_text import shortened

if TYPE_CHECKING:
    from collections.abc import Mapping

STATUS_CHARS = 140
"""GitHub refuses a longer description of a commit status."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """What is said about a commit, and where; ``mark`` tells a verdict from another one without reading its text."""

    name: str
    is_passed: bool
    title: str
    summary: str
    mark: str


@dataclass(frozen=True, slots=True)
class Shown:
    """A verdict that GitHub shows: ``kind`` is check-run or commit-status."""

    kind: str
    url: str
    is_passed: bool
    mark: str


class VerdictPort(Protocol):
    """Verdicts on commits of one repository. Every method may raise Refused or Stopped."""

    def check_run(self, sha: str, name: str) -> Shown | None:
        """Read the newest check run of this name; None where there is none."""
        ...

    def create_check_run(self, sha: str, verdict: Verdict) -> Shown:
        """Make a check run. Raises Forbidden for a token that is no app's, AnswerLost when it may have been made."""
        ...

    def commit_status(self, sha: str, name: str) -> Shown | None:
        """Read the newest commit status of this name; None where there is none."""
        ...

    def create_commit_status(self, sha: str, verdict: Verdict) -> Shown:
        """Set a commit status. Raises Forbidden, AnswerLost."""
        ...


class VerdictMethods(Rest):
    """Implements ``VerdictPort``."""

    def check_run(self, sha: str, name: str) -> Shown | None:
        """GET …/commits/{ref}/check-runs with the name."""
        path = f"{self._root}/commits/{quote(sha, safe='')}/check-runs"
        return next(self._listed(path, _check_run, key="check_runs", check_name=name, filter="latest"), None)

    def create_check_run(self, sha: str, verdict: Verdict) -> Shown:
        """POST …/check-runs."""
        content = {
            "name": verdict.name,
            "head_sha": sha,
            "status": "completed",
            "conclusion": "success" if verdict.is_passed else "failure",
            "external_id": verdict.mark,
            "output": {"title": verdict.title, "summary": verdict.summary},
        }
        return self._transport.call("POST", f"{self._root}/check-runs", body=content).read(_check_run)

    def commit_status(self, sha: str, name: str) -> Shown | None:
        """GET …/commits/{ref}/status, all pages."""
        path = f"{self._root}/commits/{quote(sha, safe='')}/status"
        named = self._listed(path, lambda data: (data["context"], _status(data)), key="statuses")
        return next((status for context, status in named if context == name), None)

    def create_commit_status(self, sha: str, verdict: Verdict) -> Shown:
        """POST …/statuses/{sha}."""
        content = {
            "state": "success" if verdict.is_passed else "failure",
            "context": verdict.name,
            "description": status_line(verdict.title),
        }
        return self._transport.call("POST", f"{self._root}/statuses/{quote(sha, safe='')}", body=content).read(_status)


def status_line(text: str) -> str:
    """Cut a text to what a commit status can say."""
    return shortened(text, STATUS_CHARS)


def _check_run(data: Mapping[str, Any]) -> Shown:
    """Read the JSON of a check run (schema "check-run")."""
    return Shown("check-run", data["html_url"] or "", data["conclusion"] == "success", data["external_id"] or "")


def _status(data: Mapping[str, Any]) -> Shown:
    """Read the JSON of a commit status (schemas "status" and "simple-commit-status")."""
    url = data["target_url"] or ""
    return Shown("commit-status", url, data["state"] == "success", data["description"] or "")
