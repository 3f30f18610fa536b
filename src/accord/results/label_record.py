"""Which labels our own syncs created, so that pruning never removes what somebody else made.

GitHub does not tell who made a label, so the record is a file: a JSON list of names. Without it nothing is pruned.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from accord.kernel.errors import WrongUsage
from accord.kernel.store import write_whole
from accord.results.label_sync import CREATED, DELETED, RENAMED, LabelAction

if TYPE_CHECKING:
    from pathlib import Path


def read_record(path: Path) -> set[str]:
    """Return the names that earlier syncs created; none when there is no record. Raises WrongUsage for a broken one."""
    try:
        names = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return set()
    except (OSError, ValueError) as error:
        raise WrongUsage(f"The record {path} cannot be read: {error}", mend="Mend or delete the file.") from None
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise WrongUsage(f"The record {path} is no list of names.", mend="Mend or delete the file.")
    return set(names)


def extend_record(path: Path, known: set[str], action: LabelAction) -> set[str]:
    """Keep what became of one label, and return the names that the record has now.

    It is called after each label, so that a sync that is cut off leaves none behind that nobody knows for ours.
    """
    after = set(known)
    if action.action == CREATED:
        after.add(action.name)
    elif action.action == DELETED:
        after.discard(action.name)
    elif action.action == RENAMED and action.found and action.found.name in known:
        after = {*after - {action.found.name}, action.name}
    if after != known:
        write_whole(path, json.dumps(sorted(after), indent=2, ensure_ascii=False) + "\n")
    return after
