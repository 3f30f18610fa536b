"""The kinds of documents of this room."""

from __future__ import annotations

from typing import Any

from accord.core.kinds import Kind
from accord.handoffs.models import Handoff
from accord.handoffs.rules import handoff_findings


def _is_object(value: Any) -> bool:
    return isinstance(value, dict)


HANDOFF = Kind("handoff", Handoff, handoff_findings, {"metadata": _is_object})
KINDS = (HANDOFF,)
