"""Plan each file of the kit from three texts: the installed template, the new template, and the file.

Only merging runs git. A person's text is never overwritten. A file is edited when it is neither template, whatever its
pins. After a conflict the file stays, and counts as the answer to that version of the template. In an edited file whose
template did not change, only the pins that accord wrote last move to the new one.
"""

from __future__ import annotations

import difflib
import re
import tempfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from enum import StrEnum
from pathlib import Path

from accord.core.documents import is_utf8
from accord.core.frozen import Frozen
from accord.git.configuration import CONFIG_PATHS, KIT_CONFIG
from accord.git.program import Git
from accord.kit.manifest import Manifest
from accord.kit.skills import AGENTS_FILE, block_in, has_broken_block, with_block
from accord.kit.templates import SOURCE, Choices, Kit, Pin, chosen_kit, with_pin


class Action(StrEnum):
    """The action for one file."""

    ADD = "add"
    UPDATE = "update"
    MERGE = "merge"
    CONFLICT = "conflict"
    KEEP = "keep"
    UP_TO_DATE = "up-to-date"
    REMOVE = "remove"


EDITED, DELETED = "edited here", "deleted here"
OWN = "not from accord"
RETIRED = "edited here, and no longer part of the kit"
PINNED = "edited here; moved to the new commit"
BROKEN = "not UTF-8, or the marks of accord's block are not one pair"
CONFIGURED = f"left out: {CONFIG_PATHS[0]} is the configuration"
CLASHES = "edited here and in the new version, in the same lines"


class FilePlan(Frozen):
    """A file before and after (None: no file), and the template's old and new text."""

    path: str
    action: Action
    before: str | None
    after: str | None
    note: str = ""
    template: tuple[str, str] = ("", "")

    @property
    def is_change(self) -> bool:
        """Whether the file is written or removed."""
        return self.before != self.after

    def as_json(self) -> dict[str, str]:
        """Return the JSON object of this file."""
        return {"path": self.path, "action": self.action.value, "note": self.note}


class KitPlan(Frozen):
    """The plan for a repository: its files, and its manifest after and before (None without one)."""

    files: tuple[FilePlan, ...]
    manifest: Manifest
    before: Manifest | None

    @property
    def changes(self) -> tuple[FilePlan, ...]:
        """The files that are written or removed."""
        return tuple(file for file in self.files if file.is_change)

    @property
    def is_change(self) -> bool:
        """Whether there is anything to write."""
        return bool(self.changes) or self.manifest != self.before

    def of(self, action: Action) -> tuple[FilePlan, ...]:
        """Return the files with this action."""
        return tuple(file for file in self.files if file.action is action)


def for_repository(
    kit: Kit, pin: Pin, manifest: Manifest | None, choices: Choices | None = None
) -> tuple[Kit, Pin, Choices]:
    """Return kit and pin as a repository chose them, now or when its kit was installed, and its choices."""
    made = choices or (manifest.choices if manifest else Choices())
    return chosen_kit(kit, made), replace(pin, source=made.source or SOURCE), made


def plan_kit(
    kit: Kit, pin: Pin, manifest: Manifest | None, found: Mapping[str, str], choices: Choices | None = None
) -> KitPlan:
    """Compare the kit with a repository; ``found`` has its files at the kit's and the manifest's paths.

    A repository with a configuration of its own, which is in ``found``, too, gets none of the kit.
    """
    kit, pin, chosen = for_repository(kit, pin, manifest, choices)
    known = manifest.files if manifest else {}
    last = manifest.pin if manifest else pin
    files = []
    templates: dict[str, str] = {}
    for path in sorted(kit.files.keys() | known.keys()):
        is_configured = path == KIT_CONFIG and CONFIG_PATHS[0] in found
        base, template = known.get(path), None if is_configured else kit.files.get(path)
        plan = plan_block if path == AGENTS_FILE else plan_file
        if file := plan(path, (base, found.get(path), template), pin, last):
            files.append(file)
            if template is not None and file.note not in (OWN, BROKEN):
                templates[path] = template
        elif is_configured:
            files.append(FilePlan(path, Action.KEEP, None, None, CONFIGURED))
    after = Manifest(version=pin.version, commit=pin.commit, choices=chosen, files=templates)
    return KitPlan(tuple(files), after, manifest)


def plan_file(path: str, texts: tuple[str | None, str | None, str | None], pin: Pin, last: Pin) -> FilePlan | None:
    """Plan one file; None when it is neither wanted nor present.

    ``texts`` are the installed template, the file, and the new template; ``last`` is the pin that accord wrote last.
    """
    base, found, template = texts
    lines, with_ends = _lines_of(found)
    then, now = [None if text is None else with_pin(text, pin) for text in (base, template)]
    own = None if lines is None else with_pin(lines, pin, sources=(last.source, pin.source))
    if own is None and now is None:
        return None
    action, after, note = _decide(then, own, now)
    if note == EDITED and action is Action.KEEP and lines is not None:
        after = with_pin(lines, pin, sources=(last.source,), only=last.commit)
    after = found if action is Action.CONFLICT or note in (OWN, RETIRED) else with_ends(after)
    if after is not None and not is_utf8(after):
        after = found
    if action is Action.MERGE and after == found:
        action = Action.KEEP
    elif action is Action.KEEP and after != found:
        action, note = Action.MERGE, PINNED
    elif after != found and action is Action.UP_TO_DATE:
        action = Action.UPDATE
    return FilePlan(path, action, found, after, note, (then or "", now or ""))


def plan_block(path: str, texts: tuple[str | None, str | None, str | None], pin: Pin, last: Pin) -> FilePlan | None:
    """Plan accord's block of the user's file, as ``plan_file`` plans a file. The rest of the text stays."""
    base, found, template = texts
    lines, with_ends = _lines_of(found)
    text = lines or ""
    if has_broken_block(text) or not is_utf8(text):
        return FilePlan(path, Action.KEEP, found, found, BROKEN)
    block = plan_file(path, (base, block_in(text), template), pin, last)
    if block is None:
        return None
    if not block.is_change:
        return replace(block, before=found, after=found)
    return replace(block, before=found, after=with_ends(with_block(text, block.after)))


def _lines_of(text: str | None) -> tuple[str | None, Callable[[str | None], str | None]]:
    """Return a text with LF where all its lines end in CR LF, and the function that gives another text its ends."""
    if not text or "\r\n" not in text or text.count("\n") != text.count("\r\n"):
        return text, lambda other: other
    return text.replace("\r\n", "\n"), lambda other: other and other.replace("\n", "\r\n")


def _decide(then: str | None, own: str | None, now: str | None) -> tuple[Action, str | None, str]:
    if now is None:
        return (Action.REMOVE, None, "") if own == then else (Action.KEEP, own, RETIRED)
    if own is None:
        return (Action.ADD, now, "") if then is None else (Action.KEEP, None, DELETED)
    if own == now:
        return Action.UP_TO_DATE, own, ""
    if then is None:
        return Action.KEEP, own, OWN
    if own == then:
        return Action.UPDATE, now, ""
    if now == then:
        return Action.KEEP, own, EDITED
    both = merge_texts(own, then, now)
    if both is None or not is_utf8(both):
        return Action.CONFLICT, own, CLASHES
    return Action.MERGE, both, EDITED


def merge_texts(own: str, base: str, template: str) -> str | None:
    """Apply the changes from ``base`` to ``template`` to ``own``; None where both changed the same lines."""
    texts = {"own": own, "base": base, "template": template}
    if any("\0" in text for text in texts.values()):
        return None
    with tempfile.TemporaryDirectory(prefix="accord-merge-") as folder:
        for name, text in texts.items():
            Path(folder, name).write_bytes(text.encode("utf-8", "surrogateescape"))
        done = Git(Path(folder)).attempt("merge-file", "-p", "--quiet", *texts)
    return done.stdout.decode("utf-8", "surrogateescape") if done.returncode == 0 else None


_LINES = re.compile(r"[^\n]*\n|[^\n]+")


def unified_diff(before: str | None, after: str | None, path: str) -> str:
    """Return the unified diff of one file (None: no file). As in git, only LF ends a line."""
    old, new = "/dev/null" if before is None else f"a/{path}", "/dev/null" if after is None else f"b/{path}"
    lines = difflib.unified_diff(_LINES.findall(before or ""), _LINES.findall(after or ""), old, new)
    return "".join(line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in lines)


def diffs(files: tuple[FilePlan, ...]) -> Iterator[str]:
    """Return the diff of each file that changes."""
    return (unified_diff(file.before, file.after, file.path) for file in files if file.is_change)
