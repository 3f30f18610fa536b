"""Events of our own that start workflows.

Docs: https://docs.github.com/rest/repos/repos#create-a-repository-dispatch-event
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

from accord.github.rest import Rest

if TYPE_CHECKING:
    from collections.abc import Mapping


class EventPort(Protocol):
    """Events of one repository. The method may raise Refused or Stopped."""

    def send_event(self, name: str, payload: Mapping[str, Any]) -> None:
        """Start the workflows on ``repository_dispatch`` of this type. Raises AnswerLost when they may have started."""
        ...


class EventMethods(Rest):
    """Implements ``EventPort``."""

    def send_event(self, name: str, payload: Mapping[str, Any]) -> None:
        """POST …/dispatches."""
        content = {"event_type": name, "client_payload": dict(payload)}
        self._transport.call("POST", f"{self._root}/dispatches", body=content)
