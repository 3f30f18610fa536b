"""Events that a client sends to start workflows. The sandbox runs none: it judges the event, and takes it.

Docs: https://docs.github.com/rest/repos/repos#create-a-repository-dispatch-event
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from accord_sandbox.access import AccessLevel
from accord_sandbox.answers import ApiResponse, schema_violation

if TYPE_CHECKING:
    from accord_sandbox.calls import Call

MOST_PROPERTIES = 10
MOST_NAME = 100


def create_event(call: Call) -> ApiResponse:
    """POST /repos/{owner}/{repo}/dispatches."""
    call.require("contents", AccessLevel.WRITE)
    call.fields.require("event_type")
    name = call.fields.string("event_type") or ""
    if not 0 < len(name) <= MOST_NAME:
        raise schema_violation(f"event_type must have 1 to {MOST_NAME} characters.")
    payload = call.document.get("client_payload", {}) if isinstance(call.document, dict) else {}
    if not isinstance(payload, dict):
        raise schema_violation("For 'properties/client_payload', the value is not an object.")
    if len(payload) > MOST_PROPERTIES:
        raise schema_violation(f"No more than {MOST_PROPERTIES} properties are allowed; {len(payload)} were supplied.")
    return ApiResponse(204)
