"""How to install accord: from a clone as long as no version is published, then from the package index."""

from __future__ import annotations

import re
import shlex
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

PIN = "tools/pin.txt"
"""The commit of the newest release, which all examples use: ``<sha>`` before the first one."""

PUBLISHED = re.compile(
    r"\b(?:uvx|uv tool (?:install|run)|pipx (?:install|run)|pip install)"
    r"(?! --(?:from|spec)[ =](?!['\"]?accord\b))"
    r"(?: --?[\w-]+(?:[ =](?!['\"]?accord\b)[^\s-]\S*)?)* ['\"]?accord\b(?!(?:\[[\w,]+\])? @)"
)
"""A command that takes accord from the package index."""

SOURCE = "git+https://github.com/accord-ci/accord"
"""Where pip, pipx and uv get accord from before the first release."""

_CLONE = "No version is published yet, so `accord` comes from a clone."


def is_released(root: Path) -> bool:
    """Return whether a version is on the package index."""
    return not (root / PIN).read_text(encoding="utf-8").startswith("<")


def install_in_readme(root: Path) -> str:
    """Return how to get the command after the demo from a clone."""
    if is_released(root):
        return (
            "Without a clone, `uvx --from 'accord[web]' accord demo` shows the same, and `pipx install 'accord[web]'`\n"
            "installs the command. The extra `web` is for the sandbox and the pages of the board."
        )
    return (
        f"{_CLONE} `./dev accord ARGS` runs it in the current folder,\n"
        "`pipx install '.[web]'` in the clone installs it as `accord`, and so does, without a clone,\n"
        f"`pipx install 'accord[web] @ {SOURCE}'`. The extra `web` is for the sandbox and the pages of\nthe board."
    )


def install_to_start(root: Path) -> str:
    """Return the first commands of a newcomer."""
    if is_released(root):
        return (
            "```bash\nuvx --from 'accord[web]' accord demo    # without installing it, or:\n"
            "pipx install 'accord[web]'\n```"
        )
    return (
        "```bash\ngit clone https://github.com/accord-ci/accord\n"
        "accord/dev demo          # installs nothing outside of that folder\n"
        f"pipx install './accord[web]'    # for the commands below\n```\n\n{_CLONE}"
    )


def install_with_tools(root: Path) -> str:
    """Return how to get the command with the packages of the tools for agents."""
    if is_released(root):
        return (
            "```bash\npipx install --force 'accord[mcp,web]'\n```\n\n"
            "With uvx, use `uvx --from 'accord[mcp]' accord mcp`, also in the agent's settings."
        )
    return f"```bash\npipx install --force '.[mcp,web]'   # in a clone of accord\n```\n\n{_CLONE}"


def gh_package(root: Path) -> str:
    """Return the package that ``gh accord`` runs, with its pages."""
    return "accord[web]" if is_released(root) else f"accord[web] @ {SOURCE}"


def gh_extension(root: Path) -> str:
    """Return the program ``gh accord``."""
    return _GH.replace("PACKAGE", shlex.quote(gh_package(root)))


_GH = """\
#!/usr/bin/env bash
# gh accord ARGS: runs accord with the token of gh. This folder is the repository accord-ci/gh-accord.
set -euo pipefail
package=PACKAGE
if [ -z "${GITHUB_TOKEN:-}" ] && token=$(gh auth token 2>/dev/null); then
    export GITHUB_TOKEN=$token
fi
if command -v uvx >/dev/null; then exec uvx --from "$package" accord "$@"; fi
if command -v pipx >/dev/null; then exec pipx run --spec "$package" accord "$@"; fi
echo "gh accord needs uv or pipx. Install one of them, for example with \\`python3 -m pip install --user pipx\\`." >&2
exit 2
"""
