"""The kinds of documents of this room."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from accord.kernel.kinds import Kind

KINDS: tuple[Kind[Any], ...] = ()
