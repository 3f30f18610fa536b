"""All that is known of how a run ended, gathered before anything is concluded from it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from accord.runner.record import Own
    from accord.runner.transcripts.account import Account


@dataclass(frozen=True)
class RunEvidence:
    """``stderr`` and ``text`` are tails: of what was printed there, and of stdout where that is plain text."""

    exit_code: int | None
    account: Account
    stderr: str = ""
    text: str = ""
    own: Own | None = None
