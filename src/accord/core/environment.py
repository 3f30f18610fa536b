"""The place where accord runs, read from the environment."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping


def is_in_actions(environment: Mapping[str, str]) -> bool:
    """Return whether a step of a GitHub Actions job runs this."""
    return environment.get("GITHUB_ACTIONS") == "true"


def wants_color(environment: Mapping[str, str]) -> bool | None:
    """Return whether to print colors; None leaves it to whether a terminal reads.

    ``NO_COLOR`` and ``FORCE_COLOR`` count if they are not empty (no-color.org, force-color.org), the first one first.
    """
    if environment.get("NO_COLOR") or environment.get("TERM") == "dumb":
        return False
    return True if environment.get("FORCE_COLOR", "0") not in ("", "0", "false") else None
