"""The options of a run of ``accord apply``."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from accord.engine.operations import ApplyOptions
from accord.git.sizes import DEFAULT_LIMITS
from accord.github.limits import CONTENT_PER_HOUR

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from accord.core.findings import Finding
    from accord.git.branches import Remote
    from accord.git.sizes import ChangeLimits
    from accord.results.planner.settings import IssueStructure

MOST_COMMENTS = 50
"""New comments that a review posts on lines and files by default; further ones are listed in its body."""

OnWarnings: TypeAlias = "Callable[[Sequence[Finding]], None]"

MOST_ITEMS = CONTENT_PER_HOUR
"""The most items of a plan unless the caller allows more: GitHub lets no one create more in an hour."""


@dataclass(frozen=True)
class RunOptions(ApplyOptions):
    """The options of a run, passed from the command line down to the last operation.

    ``request``, ``closes_vanished``, ``most_items``, ``structure`` and ``on_warnings``, which is called before the
    first write, are for planner results. ``work_item``, ``remote`` and what follows are for implementor results;
    ``pull`` and ``commit`` (full SHA, empty: the head) for reviewer results, which may name the work item too.
    ``checkout`` lends git objects and is only read. Without ``allows_steering``, a patch that changes steering files is
    refused, and always one beyond the ``limits``. ``keepalive`` starts that loop on a new pull request. A review posts
    at most ``max_comments`` new comments on lines and files.
    """

    request: str = ""
    closes_vanished: bool = False
    most_items: int = MOST_ITEMS
    structure: IssueStructure | None = None
    on_warnings: OnWarnings = lambda _: None
    work_item: int | None = None
    pull: int | None = None
    commit: str = ""
    remote: Remote | None = None
    base: str = ""
    checkout: Path | None = None
    author: str = ""
    co_authors: tuple[str, ...] = ()
    commit_prefix: str = "feat"
    protected: tuple[str, ...] = ()
    allows_steering: bool = False
    limits: ChangeLimits = DEFAULT_LIMITS
    keepalive: bool = False
    max_comments: int = MOST_COMMENTS
