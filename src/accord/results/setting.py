"""What a run is given besides its result, whatever kind that is."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Callable

    from pydantic import BaseModel

    from accord.core.clock import Clock
    from accord.results.operations import LedgerEntry
    from accord.text.redaction import Redactor

Tell: TypeAlias = "Callable[[Entry, int, int], None]"
"""Called with each operation as it ends, how many ended, and how many there are."""


def _say_nothing(entry: LedgerEntry, ended: int, total: int) -> None:
    """Report no progress."""


@dataclass(frozen=True)
class RunOptions:
    """What a run is given besides its result. ``tell`` is called with each operation as it ends."""

    repository: str
    clock: Clock
    redact: Redactor
    run_key: str = ""
    is_dry_run: bool = False
    tell: Tell = _say_nothing


def default_run_key(result: BaseModel, *place: object) -> str:
    """Derive the scope of exactly-once from what is applied and where: the same result there is the same run.

    The place is a repository, and the number of an issue where that is not part of the result.
    """
    canonical = json.dumps(result.model_dump(by_alias=True), sort_keys=True, separators=(",", ":"))
    return hashlib.sha256("\n".join([*(str(part).lower() for part in place), canonical]).encode()).hexdigest()[:20]
