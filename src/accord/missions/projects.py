"""The project of missions: its root, from any directory in it or in the work tree of a lane, and its missions.

Layout: ``kitty-specs/SLUG/`` below the directory with ``.kittify/``.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

from accord.core.errors import BrokenContract
from accord.core.findings import Finding
from accord.missions.log import FILE, log_path
from accord.missions.models import BRANCHES, WORKTREES

SPECS = "kitty-specs"
_SLUG = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,199}")
PARTS = ("meta.json", "spec.md", "plan.md", "tasks.md", "tasks", "lanes.json", FILE)


def find_root(start: Path) -> Path:
    """Return the project that contains a directory or made a lane. Raises BrokenContract ``unknown-mission``."""
    start = Path(os.path.abspath(start))
    for folder in (start, *start.parents):
        if _is_project(folder):
            return _main_project(folder)
    raise _no_project(f"No `{SPECS}/` directory in `{start}` or its parents.")


def named_root(folder: Path) -> Path:
    """Return a directory as the project, with missions or without. Raises BrokenContract ``unknown-mission``."""
    root = Path(os.path.abspath(folder))
    if not root.is_dir():
        raise _no_project(f"`{root}` is not a directory.")
    return _main_project(root)


def _is_project(folder: Path) -> bool:
    return (folder / ".kittify").is_dir() or (folder / SPECS).is_dir()


def _main_project(root: Path) -> Path:
    """Return the project of the checkout that made the lane around a directory; the directory itself if none did."""
    for tree in (root, *root.parents):
        owner = tree.parent.parent
        if tree.parent.name == WORKTREES and _is_project(owner) and _is_lane(tree, owner):
            top = next((folder for folder in (owner, *owner.parents) if (folder / ".git").exists()), owner)
            same = top / root.relative_to(tree)
            return _main_project(same if _is_project(same) else owner)
    return root


def _is_lane(tree: Path, owner: Path) -> bool:
    """Tell a lane's work tree from another checkout beside it: by its name, or by its branch after a renaming."""
    try:
        folder = tree / (tree / ".git").read_text(encoding="utf-8").removeprefix("gitdir:").strip()
        branch = (folder / "HEAD").read_text(encoding="utf-8").removeprefix("ref: refs/heads/")
    except (OSError, ValueError):
        branch = ""
    return branch.startswith(BRANCHES) or any(tree.name.startswith(f"{slug}-") for slug in mission_slugs(owner))


def _no_project(message: str) -> BrokenContract:
    hint = f"Run it in the directory that contains `{SPECS}/`, or pass that to `--root`."
    return BrokenContract(message, findings=[Finding("unknown-mission", message, hint=hint)], hint=hint)


def mission_entries(root: Path) -> dict[str, Finding | None]:
    """Return what ``kitty-specs/`` has that is or seems to be a mission, with why it cannot be read."""
    folder = root / SPECS
    found = sorted(folder.iterdir()) if folder.is_dir() else []
    known = {path.name: _entry_problem(path) for path in found if path.is_dir() or not path.exists()}
    return {name: problem for name, problem in known.items() if problem or _SLUG.fullmatch(name)}


def _entry_problem(path: Path) -> Finding | None:
    """Return why a directory or a link is not read as a mission; None also for one that has no part of a mission."""
    form = "at most 200 of a-z, A-Z, 0-9, `.`, `_` and `-`, with a letter or a digit in front"
    if path.is_symlink():
        why, hint = "is a link, which is not read as a mission", "Replace it with the directory."
    elif os.path.lexists(log := log_path(path)) and not (log.is_file() and os.access(log, os.R_OK)):
        why, hint = f"is not read: its {FILE} is not a file that can be read", "Restore it from git."
    elif _SLUG.fullmatch(path.name) or not any((path / part).exists() for part in PARTS):
        return None
    else:
        why, hint = f"is not read as a mission: the name of one has {form}", "Rename it with `git mv`."
    return Finding("mission-not-read", f"`{path.name}` {why}.", hint=hint)


def mission_slugs(root: Path) -> list[str]:
    """Return the slugs of the missions of a project that can be read."""
    return [name for name, problem in mission_entries(root).items() if not problem]
