"""Bringing a repository's labels in step with a file: decide from the two lists, then carry it out label by label."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from accord.core.errors import AccordError, Refused, Stopped, WrongUsage
from accord.core.findings import Finding, warning
from accord.files.store import write_whole
from accord.github.models import Forbidden, Label, NotThere
from accord.github.once import send_once

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence
    from pathlib import Path

    from accord.core.clock import Clock
    from accord.github.client import GitHub
    from accord.results.labels import LabelEntry


CREATED = "created"
UPDATED = "updated"
RENAMED = "renamed"
DELETED = "deleted"
UP_TO_DATE = "up-to-date"
FAILED = "failed"


@dataclass(frozen=True, slots=True)
class LabelAction:
    """What happens to one label. ``found`` is the label as the repository has it, under its old name if renamed."""

    name: str
    action: str
    wanted: Label | None = None
    found: Label | None = None
    error: str = ""

    @property
    def is_change(self) -> bool:
        """Whether the repository is out of step here."""
        return self.action != UP_TO_DATE

    def told(self, outcome: str) -> str:
        """Say what happens to people: where nothing is written, a label is to be deleted and not deleted."""
        return f"to be {self.action}" if self.is_change and outcome in ("planned", "drift") else self.action


def plan_labels(
    entries: Sequence[LabelEntry],
    current: Sequence[Label],
    ours: Collection[str],
    named: Collection[str] = (),
) -> tuple[list[LabelAction], list[Finding]]:
    """Compare the file with the repository.

    Of what the file does not want, labels that are ``ours`` go, and those that the user ``named``. GitHub compares
    names without case, so a name that differs only in case is renamed. An alias is renamed, and issues keep it; where
    alias and name both exist nothing can be merged, which is a finding, and only naming the alias deletes it.
    """
    by_name = {label.name.lower(): label for label in current}
    actions: list[LabelAction] = []
    findings: list[Finding] = []
    kept: set[str] = set()
    left_over: set[str] = set()
    for entry in entries:
        wanted = Label(entry.name, entry.description, entry.color)
        aliases = [by_name[alias.lower()] for alias in entry.aliases if alias.lower() in by_name]
        found = by_name.get(entry.name.lower())
        if found is None and aliases:
            found = aliases.pop(0)
        actions.append(_action(wanted, found))
        kept.update(label.name.lower() for label in (wanted, found) if label)
        for left in aliases:
            message = (
                f'"{left.name}" is an alias of "{entry.name}", and both exist, so it cannot be renamed. '
                "Move its issues by hand, then delete it."
            )
            findings.append(warning("alias-left", message))
            left_over.add(left.name.lower())
    for name in named:
        if name.lower() in kept or name.lower() not in by_name:
            why = "the file wants it" if name.lower() in kept else "there is no such label"
            findings.append(warning("not-removed", f'"{name}" is not removed: {why}.'))
    gone = ({name.lower() for name in ours} - left_over | {name.lower() for name in named}) - kept
    actions += [LabelAction(by_name[name].name, DELETED, None, by_name[name]) for name in sorted(gone & by_name.keys())]
    return actions, findings


def _action(wanted: Label, found: Label | None) -> LabelAction:
    if found is None:
        return LabelAction(wanted.name, CREATED, wanted)
    if found.name != wanted.name:
        return LabelAction(wanted.name, RENAMED, wanted, found)
    return LabelAction(wanted.name, UP_TO_DATE if found == wanted else UPDATED, wanted, found)


def apply_labels(
    github: GitHub, actions: Sequence[LabelAction], clock: Clock, tell: Callable[[LabelAction], None]
) -> tuple[list[LabelAction], AccordError | None]:
    """Carry the actions out; a refused label fails alone, an unreachable GitHub or a missing permission ends it.

    ``tell`` is called after each label. Returns the actions as they ended, and what stopped them.
    """
    ended: list[LabelAction] = []
    problem: AccordError | None = None
    for action in actions:
        result = action
        if action.is_change and problem is None:
            try:
                _carry_out(github, action, clock)
            except Stopped as stopped:
                problem = stopped
            except Refused as refused:
                result = replace(action, action=FAILED, error=refused.message)
                problem = refused if isinstance(refused, (Forbidden, NotThere)) else None
        if problem is not None and action.is_change:
            result = replace(action, action=FAILED, error=problem.message)
        ended.append(result)
        tell(result)
    return ended, problem


def _carry_out(github: GitHub, action: LabelAction, clock: Clock) -> None:
    wanted, found = action.wanted, action.found
    if wanted and found:
        _change(github, found.name, wanted)
    elif wanted:
        send_once(lambda: github.create_label(wanted), lambda: github.label(wanted.name), clock)
    elif found:
        github.delete_label(found.name)


def _change(github: GitHub, name: str, wanted: Label) -> None:
    """Change a label. Sent again after a lost answer, a rename does not find the old name, and is done."""
    try:
        github.change_label(name, wanted)
    except NotThere:
        if github.label(wanted.name) != wanted:
            raise


def read_record(path: Path) -> set[str]:
    """Return the names that earlier syncs created; none when there is no record. Raises WrongUsage for a broken one."""
    try:
        names = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return set()
    except (OSError, ValueError) as error:
        raise WrongUsage(f"The record {path} cannot be read: {error}", hint="Fix or delete the file.") from None
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise WrongUsage(f"The record {path} is no list of names.", hint="Fix or delete the file.")
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
