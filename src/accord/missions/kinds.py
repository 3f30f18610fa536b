"""The kinds of documents of this room: what ``accord mission next`` and ``accord mission stale`` print."""

from __future__ import annotations

from accord.core.kinds import Kind
from accord.missions.models import NextQueryResponse, StaleStatus

_STALE = ("fresh", "stale", "not_applicable")

KINDS = (
    Kind("next-query-response", NextQueryResponse, lambda _: [], {"kind": "query", "is_query": True}),
    Kind("stale-status", StaleStatus, lambda _: [], {"status": lambda value: value in _STALE}),
)
