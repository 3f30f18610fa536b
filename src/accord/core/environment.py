"""The place where accord runs, read from the environment."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping


def is_in_actions(environment: Mapping[str, str]) -> bool:
    """Return whether a step of a GitHub Actions job runs this."""
    return environment.get("GITHUB_ACTIONS") == "true"
