"""The options of applying a result, one class for each kind."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from accord.engine.operations import ApplyOptions
from accord.git.leaving_out import DEFAULT_LIMITS, ChangeLimits
from accord.github.limits import CONTENT_PER_HOUR

if TYPE_CHECKING:
    from accord.git.branches import Remote
    from accord.results.planner.structure import IssueStructure

MOST_COMMENTS = 50
"""New comments that a review posts on lines and files by default; further ones are listed in its body."""

MOST_ITEMS = CONTENT_PER_HOUR
"""The most items of a plan unless the caller allows more: GitHub lets no one create more in an hour."""


class PlanOptions(ApplyOptions, kw_only=True):
    """The options of applying a planner result."""

    request: str = ""
    closes_vanished: bool = False
    reaches_any_issue: bool = False  # not only work items
    most_items: int = MOST_ITEMS
    structure: IssueStructure | None = None


class RevisionOptions(ApplyOptions, kw_only=True):
    """The options of applying an implementor result."""

    work_item: int
    remote: Remote
    base: str = ""
    checkout: Path | None = None  # lends git objects, and is only read
    author: str = ""
    co_authors: tuple[str, ...] = ()
    commit_prefix: str = "feat"
    protected: tuple[str, ...] = ()
    allows_steering: bool = False
    limits: ChangeLimits = DEFAULT_LIMITS
    keepalive: bool = False  # starts that loop on a new pull request


class ReviewOptions(ApplyOptions, kw_only=True):
    """The options of applying a reviewer result."""

    pull: int
    work_item: int | None = None
    commit: str = ""  # a full SHA; empty: the head
    max_comments: int = MOST_COMMENTS
    approvals: str = ""  # comment or approve; empty: as the repository's configuration has it
