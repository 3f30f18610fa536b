"""Who put labels on and took them off, and who may write: what a person's word in a loop is told by."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, Protocol
from urllib.parse import quote

from accord.github.limits import PAGE_SIZE
from accord.github.moments import moment
from accord.github.port import NotThere
from accord.github.rest import Rest

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

Change = Literal["added", "removed"]
_CHANGES: Mapping[str, Change] = {"labeled": "added", "unlabeled": "removed"}


@dataclass(frozen=True, slots=True)
class LabelEvent:
    """A label that was put on or taken off. ``login`` is empty where the account is gone."""

    label: str
    change: Change
    login: str
    is_bot: bool
    at: datetime


class LabellingPort(Protocol):
    """Labels of issues and pull requests over time. Every method may raise Refused or Stopped."""

    def label_events(self, number: int) -> tuple[LabelEvent, ...]:
        """List what happened to the labels of an issue or pull request, oldest first."""
        ...

    def remove_label(self, number: int, label: str) -> None:
        """Take one label off; one that is not on it counts as taken off."""
        ...

    def may_write(self, login: str) -> bool:
        """Ask whether an account may push to the repository."""
        ...


class LabellingMethods(Rest):
    """Implements ``LabellingPort``."""

    def label_events(self, number: int) -> tuple[LabelEvent, ...]:
        """GET …/issues/{n}/timeline, all pages; a page holds comments as well."""
        pages = self._transport.pages(f"{self._root}/issues/{number}/timeline", {"per_page": PAGE_SIZE})
        return tuple(event for page in pages for event in page.read(_label_events))

    def remove_label(self, number: int, label: str) -> None:
        """DELETE …/issues/{n}/labels/{name}."""
        try:
            self._transport.call("DELETE", f"{self._root}/issues/{number}/labels/{quote(label, safe='')}")
        except NotThere:
            return

    def may_write(self, login: str) -> bool:
        """GET …/collaborators/{login}/permission; "write" is there also for the role maintain."""
        try:
            answer = self._transport.call("GET", f"{self._root}/collaborators/{quote(login, safe='')}/permission")
        except NotThere:
            return False
        return answer.read(lambda data: data["permission"] in ("admin", "write"))


def _label_events(data: list[dict[str, Any]]) -> list[LabelEvent]:
    """Read the entries about labels (schema "labeled-issue-event" and its like); others pass."""
    found = []
    for entry in data:
        change = _CHANGES.get(entry.get("event", ""))
        if change is not None:
            actor = entry.get("actor") or {}
            is_bot = actor.get("type") == "Bot"
            at = moment(entry["created_at"])
            found.append(LabelEvent(entry["label"]["name"], change, actor.get("login", ""), is_bot, at))
    return found
