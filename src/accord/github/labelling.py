"""Who put labels on and took them off, and who may write: what a person's word in a loop is told by."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, Protocol
from urllib.parse import quote

from accord.github.moments import moment
from accord.github.rest import Rest

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

LabelChange = Literal["added", "removed"]
_CHANGES: Mapping[str, LabelChange] = {"labeled": "added", "unlabeled": "removed"}


@dataclass(frozen=True, slots=True)
class LabelEvent:
    """A label that was put on or taken off. ``login`` is empty where the account is gone."""

    label: str
    change: LabelChange
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
        found = self._listed(f"{self._root}/issues/{number}/timeline", _label_event)
        return tuple(event for event in found if event is not None)

    def remove_label(self, number: int, label: str) -> None:
        """DELETE …/issues/{n}/labels/{name}."""
        self._delete(f"{self._root}/issues/{number}/labels/{quote(label, safe='')}")

    def may_write(self, login: str) -> bool:
        """GET …/collaborators/{login}/permission; "write" is there also for the role maintain."""
        path = f"{self._root}/collaborators/{quote(login, safe='')}/permission"
        return self._found(path, lambda data: data["permission"]) in ("admin", "write")


def _label_event(data: dict[str, Any]) -> LabelEvent | None:
    """Read an entry about a label (schema "labeled-issue-event" and its like); None for any other."""
    change = _CHANGES.get(data.get("event", ""))
    if change is None:
        return None
    actor = data.get("actor") or {}
    is_bot = actor.get("type") == "Bot"
    return LabelEvent(data["label"]["name"], change, actor.get("login", ""), is_bot, moment(data["created_at"]))
