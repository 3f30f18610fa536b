"""How to install accord: from a clone as long as no version is published, then from the package index."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

PIN = "tools/pin.txt"
"""The commit of the newest release, which all examples use: ``<sha>`` before the first one."""

PUBLISHED = re.compile(
    r"\b(?:uvx|uv tool (?:install|run)|pipx (?:install|run)|pip install)(?: --?[\w-]+)* ['\"]?accord\b(?!\[\w+\] @)"
)
"""A command that takes accord from the package index."""

_CLONE = "No version is published yet, so `accord` comes from a clone."


def is_released(root: Path) -> bool:
    """Return whether a version is on the package index."""
    return not (root / PIN).read_text(encoding="utf-8").startswith("<")


def install_in_readme(root: Path) -> str:
    """Return how to get the command after the demo from a clone."""
    if is_released(root):
        return "Without a clone, `uvx accord demo` shows the same, and `pipx install accord` installs the command."
    return (
        f"{_CLONE} `./dev accord ARGS` runs it in the current folder,\n"
        "and `pipx install .` in the clone installs it as `accord`."
    )


def install_to_start(root: Path) -> str:
    """Return the first commands of a newcomer."""
    if is_released(root):
        return "```bash\nuvx accord demo      # without installing it, or:\npipx install accord\n```"
    return f"```bash\npipx install .       # in a clone of accord\naccord demo\n```\n\n{_CLONE}"


def install_with_tools(root: Path) -> str:
    """Return how to get the command with the packages of the tools for agents."""
    if is_released(root):
        return (
            "```bash\npipx install 'accord[mcp]'\n```\n\nWith uvx, use `uvx --from 'accord[mcp]' accord mcp`, "
            "also in the agent's settings."
        )
    return f"```bash\npipx install '.[mcp]'       # in a clone of accord\n```\n\n{_CLONE}"
