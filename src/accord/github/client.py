"""The client of GitHub's REST API: each method is one request, and responses become our own types."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from datetime import datetime
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from accord.core.clock import Clock, parse_timestamp, timestamp
from accord.core.errors import Refused
from accord.core.frozen import Frozen
from accord.github.artifacts import ArtifactMethods
from accord.github.checks import CheckMethods
from accord.github.comments import CommentMethods
from accord.github.git_data import GitDataMethods
from accord.github.graphql import GraphQLMethods
from accord.github.limits import PAGE_SIZE, SEARCH_RESULTS
from accord.github.models import Forbidden, Found, Identity, Issue, IssueChange, Label, Milestone, NotThere, Repository
from accord.github.pulls import PullMethods
from accord.github.rest import segment
from accord.github.settings import SettingsMethods
from accord.github.workflows import WorkflowMethods

if TYPE_CHECKING:
    from accord.git.branches import Remote

LabelChange = Literal["added", "removed"]
_CHANGES: Mapping[str, LabelChange] = {"labeled": "added", "unlabeled": "removed"}


class LabelEvent(Frozen):
    """A label that was put on or taken off. ``login`` is empty where the account is gone."""

    label: str
    change: LabelChange
    login: str
    is_bot: bool
    at: datetime


def _label_event(data: dict[str, Any]) -> LabelEvent | None:
    """Read an entry about a label (schema "labeled-issue-event" and its like); None for any other."""
    change = _CHANGES.get(data.get("event", ""))
    if change is None:
        return None
    actor, at = data.get("actor") or {}, parse_timestamp(data["created_at"])
    return LabelEvent(data["label"]["name"], change, actor.get("login", ""), actor.get("type") == "Bot", at)


_STRUCTURE_EVENTS = {
    "milestoned": ("milestone", False),
    "demilestoned": ("milestone", True),
    "issue_type_added": ("type", False),
    "issue_type_changed": ("type", False),
    "issue_type_removed": ("type", True),
    "assigned": ("assignees", False),
    "unassigned": ("assignees", True),
}
"""Parts of an issue by events of its timeline, and whether each took the part away."""


INSTALLATION_LOGIN = "github-actions[bot]"
"""The login of GITHUB_TOKEN. Tokens of other apps write under their own name, which the caller must give."""


def as_reader(identity: Identity) -> Identity:
    """Return the identity whose texts are accord's: a person's token reads what the workflows wrote, too."""
    return replace(identity, others=(*identity.others, INSTALLATION_LOGIN)) if identity.is_person else identity


class GitHub(
    ArtifactMethods,
    CheckMethods,
    CommentMethods,
    GitDataMethods,
    GraphQLMethods,
    PullMethods,
    SettingsMethods,
    WorkflowMethods,
):
    """One repository over REST: every request that accord makes."""

    def identity(self) -> Identity:
        """Read the login of the token. GET /user, which refuses an installation token: its login is the first given."""
        own, *others = (login.strip() for login in self._access.identity.split(","))
        try:
            answer = self._transport.call("GET", "/user")
        except Refused as refused:
            if "resource not accessible by integration" not in refused.message.lower():
                raise
            return Identity(own or INSTALLATION_LOGIN, False, tuple(others))
        return answer.read(lambda user: Identity(user["login"], user.get("type", "User") == "User", (own, *others)))

    def repository(self) -> Repository:
        """Read the repository. GET …. Raises Refused when this token cannot see it."""
        try:
            return self._call("GET", "").read(Repository.from_json)
        except NotThere as absent:
            raise Refused(absent.message, hint=absent.hint) from absent

    def server_time(self) -> datetime:
        """Return GitHub's clock as of its last response; the local clock before the first."""
        return self._transport.server_time or self.clock.now()

    def pause(self, seconds: float, reason: str) -> None:
        """Wait for another program. Raises Stopped where all waits of the run would be longer than allowed."""
        self._transport.wait(seconds, reason)

    def issue(self, number: int) -> Issue | None:
        """Read one issue or pull request; None without one of this number, or after a transfer. GET …/issues/{n}."""
        return self._find(f"/issues/{number}", Issue.from_json)

    def issues(self, *, state: str = "all", label: str = "") -> Iterator[Issue]:
        """List issues and pull requests, newest first, page by page as they are consumed. GET …/issues."""
        order = {"sort": "created", "direction": "desc", **({"labels": label} if label else {})}
        return self._list_items("/issues", Issue.from_json, state=state, **order)

    def closed_issues(self, since: datetime) -> Iterator[Issue]:
        """List closed issues and pull requests that changed since then, the last changed first. GET …/issues."""
        params = {"state": "closed", "sort": "updated", "direction": "desc", "since": timestamp(since)}
        return self._list_items("/issues", Issue.from_json, **params)

    def search(self, word: str) -> Found:
        """Search. It proves nothing where GitHub will not answer it, nor on Enterprise Server, which names itself.

        GHES leaves HTML comments, and so our markers, out of its index (reported).
        """
        params = {"q": f"{word} in:body is:issue repo:{self._access.repository}", "per_page": PAGE_SIZE}
        issues: list[Issue] = []
        is_complete = True
        try:
            for page in self._transport.pages("/search/issues", params):
                found, is_whole = page.read(_search_page)
                issues += found
                is_complete &= is_whole and "x-github-enterprise-version" not in page.headers
        except Refused:
            is_complete = False
        return Found(tuple(issues), is_complete)

    def count_issues(self, *labels: str, state: str = "all") -> int | None:
        """Count the issues with all of these labels by search, which lags behind; None where it does not tell."""
        words = ["is:issue", f"repo:{self._access.repository}", *(f'label:"{label}"' for label in labels)]
        words += [] if state == "all" else [f"state:{state}"]
        try:
            answer = self._transport.call("GET", "/search/issues", params={"q": " ".join(words), "per_page": 1})
        except Refused:
            return None
        count, is_part = answer.read(lambda data: (int(data["total_count"]), bool(data["incomplete_results"])))
        return None if is_part else count

    def create_issue(self, title: str, body: str, labels: Sequence[str]) -> Issue:
        """Create an issue. POST …/issues."""
        content = {"title": title, "body": body, "labels": list(labels)}
        return self._call("POST", "/issues", body=content, creates_content=True).read(Issue.from_json)

    def change_issue(self, number: int, change: IssueChange) -> Issue:
        """Change the given fields of an issue. PATCH …/issues/{n}."""
        fields = {"type" if key == "type_name" else key: value for key, value in asdict(change).items()}
        given = {key: value for key, value in fields.items() if value is not None}
        return self._call("PATCH", f"/issues/{number}", body=given).read(Issue.from_json)

    def replace_labels(self, number: int, labels: Sequence[str]) -> None:
        """Replace all labels of an issue. PUT …/issues/{n}/labels."""
        self._call("PUT", f"/issues/{number}/labels", body={"labels": list(labels)})

    def blockers(self, number: int) -> list[Issue]:
        """List the issues that block an issue. GET …/dependencies/blocked_by. Raises NotThere where GitHub has none."""
        return list(self._list_items(f"/issues/{number}/dependencies/blocked_by", Issue.from_json))

    def blocked_issues(self, number: int) -> list[Issue]:
        """List the issues that an issue blocks. GET …/dependencies/blocking. Raises NotThere where GitHub has none."""
        return list(self._list_items(f"/issues/{number}/dependencies/blocking", Issue.from_json))

    def add_blocker(self, number: int, blocker_id: int) -> Issue:
        """Add a dependency by the blocker's database id; an existing one counts. POST …/dependencies/blocked_by."""
        path = f"/issues/{number}/dependencies/blocked_by"
        try:
            return self._call("POST", path, body={"issue_id": blocker_id}).read(Issue.from_json)
        except NotThere:
            raise
        except Refused:
            for blocker in self.blockers(number):
                if blocker.id == blocker_id:
                    return blocker
            raise

    def remove_blocker(self, number: int, blocker_id: int) -> None:
        """Remove a dependency by the blocker's database id. DELETE …/dependencies/blocked_by/{id}."""
        self._delete(f"/issues/{number}/dependencies/blocked_by/{blocker_id}")

    def sub_issues(self, number: int) -> list[Issue]:
        """List the sub-issues of an issue. GET …/sub_issues. Raises NotThere where the server has none."""
        return list(self._list_items(f"/issues/{number}/sub_issues", Issue.from_json))

    def add_sub_issue(self, number: int, child_id: int) -> Issue:
        """Add a sub-issue by its database id, and return the parent. POST …/sub_issues."""
        return self._call("POST", f"/issues/{number}/sub_issues", body={"sub_issue_id": child_id}).read(Issue.from_json)

    def add_assignees(self, number: int, logins: Sequence[str]) -> Issue:
        """Assign accounts; GitHub leaves out those that cannot be assigned. POST …/issues/{n}/assignees."""
        return self._call("POST", f"/issues/{number}/assignees", body={"assignees": list(logins)}).read(Issue.from_json)

    def milestones(self) -> list[Milestone]:
        """List the milestones, open ones first. GET …/milestones."""
        found = self._list_items("/milestones", Milestone.from_json, state="all")
        return sorted(found, key=lambda milestone: not milestone.is_open)

    def labels(self) -> list[Label]:
        """List all labels. GET …/labels."""
        return list(self._list_items("/labels", Label.from_json))

    def create_label(self, label: Label) -> Label:
        """Create a label. POST …/labels."""
        content = {"name": label.name, "description": label.description, "color": label.color}
        return self._call("POST", "/labels", body=content).read(Label.from_json)

    def change_label(self, name: str, label: Label) -> None:
        """Change name, description and color of a label; issues keep it. PATCH …/labels/{name}."""
        content = {"new_name": label.name, "description": label.description, "color": label.color}
        self._call("PATCH", self._label_path(name), body=content)

    def delete_label(self, name: str) -> None:
        """Delete a label. DELETE …/labels/{name}."""
        self._delete(self._label_path(name), lambda: self.label(name) is not None)

    def label(self, name: str) -> Label | None:
        """Read one label by its name, ignoring case; None without one. GET …/labels/{name}."""
        return self._find(self._label_path(name), Label.from_json)

    def _label_path(self, name: str) -> str:
        return f"/labels/{segment(name)}"

    def label_events(self, number: int) -> tuple[LabelEvent, ...]:
        """List the changes of the labels of an issue or pull request, oldest first. GET …/issues/{n}/timeline."""
        found = self._list_items(f"/issues/{number}/timeline", _label_event)
        return tuple(event for event in found if event is not None)

    def closings(self, number: int) -> tuple[datetime, ...]:
        """List when an issue was closed, oldest first. GET …/issues/{n}/timeline."""

        def closed_at(data: dict[str, Any]) -> datetime | None:
            return parse_timestamp(data["created_at"]) if data.get("event") == "closed" else None

        return tuple(at for at in self._list_items(f"/issues/{number}/timeline", closed_at) if at)

    def removed_parts(self, number: int) -> frozenset[str]:
        """Return which of milestone, type and assignees an issue lost last; accord takes none. GET …/timeline."""
        found = self._list_items(f"/issues/{number}/timeline", lambda data: str(data.get("event", "")))
        last = dict(_STRUCTURE_EVENTS[event] for event in found if event in _STRUCTURE_EVENTS)
        return frozenset(part for part, is_removed in last.items() if is_removed)

    def remove_label(self, number: int, label: str) -> None:
        """Remove one label. DELETE …/issues/{n}/labels/{name}."""

        def is_there() -> bool:
            issue = self.issue(number)
            return issue is not None and label.casefold() in map(str.casefold, issue.labels)

        self._delete(f"/issues/{number}/labels/{segment(label)}", is_there)

    def may_write(self, login: str) -> bool:
        """Return whether an account may push. GET …/collaborators/{login}/permission, where maintain is "write"."""
        path = f"/collaborators/{segment(login)}/permission"
        return self._find(path, lambda data: data["permission"]) in ("admin", "write")

    def is_trusted(self, login: str, identity: Callable[[], Identity]) -> bool:
        """Return whether decisions of an account count: people who may push, and accord itself; each is asked once.

        Other bots may pass on untrusted text. No one counts where the token may not ask.
        """
        if login.endswith("[bot]"):
            return as_reader(identity()).counts(login)
        if login.lower() not in self._trusted:
            try:
                self._trusted[login.lower()] = bool(login) and self.may_write(login)
            except Forbidden:
                self._trusted[login.lower()] = False
        return self._trusted[login.lower()]

    @cached_property
    def _trusted(self) -> dict[str, bool]:
        return {}


class Connection(NamedTuple):
    """Access to a repository: its GitHub client, its name, and the server and token that git uses."""

    github: GitHub
    repository: str
    server_url: str
    token: str

    @property
    def page(self) -> str:
        """The address of the repository's page."""
        return f"{self.server_url.rstrip('/')}/{self.repository}"

    def remote(self, clock: Clock) -> Remote:
        """Return the repository as a remote of git."""
        from accord.git.branches import Remote

        return Remote(f"{self.page}.git", self.server_url, self.token, clock)


def _search_page(data: dict[str, Any]) -> tuple[list[Issue], bool]:
    """Read a page of search results, and whether the search found all that there is."""
    is_whole = not data["incomplete_results"] and data["total_count"] <= SEARCH_RESULTS
    return [Issue.from_json(entry) for entry in data["items"]], is_whole
