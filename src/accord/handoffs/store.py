"""Where a handoff is stored: in a JSON file, or with its work item.

With a work item the history is at a ref, and the newest version in the issue's body too. The author of an issue can
edit its body, so the ref decides (``accord.github.state``). A block in the body counts only without a ref, where the
caller adopts it: it travels with a transferred issue.
"""

from __future__ import annotations

import base64
import re
import zlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import nullcontext, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from accord.core.clock import Clock
from accord.core.documents import MAX_BYTES, read_object, write_json
from accord.core.errors import BrokenContract, Refused, WrongUsage
from accord.core.findings import Finding, warning, with_lines
from accord.core.kinds import TEXT_AROUND
from accord.engine.operations import OperationLog
from accord.files.store import Storage, can_be_written, file_behind, folder_lock, write_whole
from accord.github.limits import BODY_CHARS
from accord.github.models import Issue, IssueChange
from accord.github.state import Stored, StoredDocument
from accord.handoffs.models import next_task_id, normalise, read_handoff, written_id
from accord.handoffs.plan import HandoffDecision, decide_with_id
from accord.text.hidden import strip_hidden
from accord.text.markers import take_copy, with_copy
from accord.text.redaction import Redactor, redact_json

if TYPE_CHECKING:
    from accord.github.client import GitHub

Task = dict[str, Any]

_LARGEST_NEIGHBOUR = 1_048_576
"""Bytes; a larger file beside a handoff is not searched for a task id."""

README = (
    "accord maintains this ref. The message of each commit holds one version of the handoff of a work item; the "
    "newest one is also in the body of the issue.\n"
)
_ACTED_ON = re.compile("[@#<>/]")
"""Characters by which GitHub recognises a mention, a reference or an address in the message of a commit."""

START = "Start one with `accord handoff patch PATCH.json --work-item {number} --role ROLE`."
_DIFFERS = "The block in the body of #{number} differs from the ref."
_REF_COUNTS = "The ref counts; the next write fixes the body."
_ADOPT = "If you trust it, pass `--adopt`; else delete it."
_UNTRUSTED = (
    "The body of #{number} contains a handoff that no ref of this repository confirms: the issue came from another "
    "repository, the ref was deleted, or a person wrote the block."
)


def change_file(
    path: Path, decide: Callable[[Task], HandoffDecision], clock: Clock, *, writes: bool
) -> HandoffDecision:
    """Decide about the task in a file, and write the result if ``writes`` and it changed.

    Raises BrokenContract when the file is not a handoff or behind a link that leads away, WrongUsage when it cannot be
    read or written, Stopped when another process keeps writing in its directory.
    """
    path = file_behind(path) if writes else path
    if writes and not can_be_written(path):
        raise WrongUsage(f"{path} cannot be written.", hint="Pass a file in a writable directory.")
    with folder_lock(path.parent, Storage(clock), path.name) if writes and path.parent.is_dir() else nullcontext():
        try:
            with path.open("rb") as file:
                document = read_object(file.read(MAX_BYTES + 1))
        except OSError as error:
            raise WrongUsage(f"{path} cannot be read: {error.strerror}.", hint="Pass an existing file.") from None
        found, task = document.value, normalise(document.value)
        if not document.is_alone:
            raise BrokenContract.of(TEXT_AROUND)
        try:
            read_handoff(task)
        except BrokenContract as broken:
            raise BrokenContract(broken.message, findings=with_lines(broken.findings, document.lines)) from None

        def neighbour_ids() -> Iterator[object]:
            for other in sorted(path.parent.glob("*.json")):
                with suppress(OSError, BrokenContract):  # a file that is not a task is skipped
                    if other.stat().st_size <= _LARGEST_NEIGHBOUR:
                        yield written_id(read_object(other.read_bytes()).value)

        decision = decide_with_id(task, decide, lambda: next_task_id(neighbour_ids()))
        if writes and decision.task not in (task, found):
            write_whole(path, write_json(decision.task, indent=2) + "\n")
    return decision


def read_block(body: str) -> tuple[str, Task | None] | None:
    """Read the first block of a body: the commit that confirms it, and the task. A block alone proves nothing.

    None without a block. The task is None where it did not fit or is damaged.
    """
    fields, _ = take_copy(body)
    return (fields["commit"], _unpack(fields.get("data", ""))) if fields else None


def with_block(body: str, task: Mapping[str, Any], commit: str) -> str:
    """Put the block into a body, replacing others: with the task, with its commit only, or none, as it fits."""
    text = write_json(task, separators=(",", ":"))
    packed = base64.b64encode(zlib.compress(text.encode(), 9)).decode()
    return with_copy({"commit": commit, "data": packed}, take_copy(body)[1], BODY_CHARS)


def _unpack(data: str) -> Task | None:
    try:
        unpacking = zlib.decompressobj()
        raw = unpacking.decompress(base64.b64decode(data, validate=True), MAX_BYTES)
        return read_object(raw).value if raw and unpacking.eof else None
    except (ValueError, zlib.error, BrokenContract):
        return None


class LoadedHandoff(Stored[Task]):
    """A task as it was read, with warnings; ``is_adopted``: it comes from a block without a ref."""

    is_new: bool = False
    is_adopted: bool = False
    warnings: tuple[Finding, ...] = ()


class HandoffStore(StoredDocument[Task]):
    """The stored handoff of a work item. ``adopts``: the caller trusts a block that no ref confirms."""

    def __init__(self, github: GitHub, number: int, secrets: Redactor | None = None, *, adopts: bool = False) -> None:
        ref, name = f"refs/accord/handoffs/{number}", f"the handoff of #{number}"
        super().__init__(github, ref, README, name)
        self.github, self.number, self.adopts = github, number, adopts
        self.secrets = secrets or Redactor()

    def encode(self, value: Task) -> str:
        """Return a version's text, in which GitHub finds nothing to act on."""
        return _ACTED_ON.sub(lambda hit: f"\\u{ord(hit.group()):04x}", write_json(value, indent=1))

    def decode(self, text: str) -> Task:
        """Parse a version."""
        try:
            task = normalise(read_object(text.encode()).value)
            read_handoff(task)
        except BrokenContract as broken:
            raise Refused(
                f"{self.ref} holds no handoff that this version can read: {broken.message}",
                hint="Use the version that wrote it, or delete the ref and continue from the body with `--adopt`.",
            ) from None
        return task

    def title(self, value: Task) -> str:
        """Return the first line of a commit message."""
        return f"Handoff of #{self.number}: {value['status']}"

    def load(self) -> LoadedHandoff:
        """Read the handoff of a work item, or a new one: three requests.

        Raises BrokenContract when the work item does not exist, or its block is not confirmed and not adopted.
        """
        issue, stored = self._issue(), self.newest()
        if stored is not None and stored.link is not None:
            fields, sha = take_copy(issue.body)[0], stored.link.sha
            if fields is None:
                is_shown = with_block(issue.body, stored.value, sha) == issue.body
            else:  # a block without a task may have had no space for it
                is_shown = fields["commit"] == sha and ("data" not in fields or _unpack(fields["data"]) == stored.value)
            differs = warning("handoff-block-differs", _DIFFERS.format(number=self.number), hint=_REF_COUNTS)
            return LoadedHandoff(stored.value, stored.link, is_shown, warnings=() if is_shown else (differs,))
        block = read_block(issue.body)
        if block is None:
            title = self.secrets(strip_hidden(issue.title)).strip() or f"#{self.number}"
            task = {"title": title, "status": "backlog", "metadata": {}}
            missing = warning(
                "handoff-missing", f"#{self.number} has no handoff.", hint=START.format(number=self.number)
            )
            return LoadedHandoff(task, is_new=True, warnings=(missing,))
        if not self.adopts:
            raise BrokenContract.of(Finding("handoff-untrusted", _UNTRUSTED.format(number=self.number), hint=_ADOPT))
        _, found = block
        if found is None:
            message = f"The block in the body of #{self.number} cannot be read."
            raise BrokenContract.of(Finding("handoff-unreadable", message, hint="Delete it to start again."))
        task = normalise(found)
        read_handoff(task)
        return LoadedHandoff(task, is_adopted=True)

    def decide(self, decide: Callable[[Task], HandoffDecision], log: OperationLog | None = None) -> HandoffDecision:
        """Write the task that ``decide`` returns for the newest task. ``decide`` is pure and may be called again."""
        decisions: list[HandoffDecision] = []
        loaded = self.load()

        def step(task: Task) -> Task | None:
            decisions.append(decide_with_id(task, decide, lambda: f"T-{self.number:05d}"))
            wanted: Task = redact_json(decisions[-1].task, self.secrets)
            is_stored = not (loaded.is_adopted and task is loaded.value)
            return None if wanted == task and is_stored else wanted

        (log or OperationLog()).change(self, loaded, step, self.number)
        return decisions[-1]

    def render(self, stored: Stored[Task]) -> None:
        """Write the block into the body."""
        if stored.link is not None:
            issue = self._issue()
            body = with_block(issue.body, stored.value, stored.link.sha)
            if body != issue.body:
                self.github.change_issue(self.number, IssueChange(body))

    def _issue(self) -> Issue:
        issue = self.github.issue(self.number)
        if issue is None or issue.is_pull:
            message = f"This repository has no work item #{self.number}."
            raise BrokenContract.of(Finding("unknown-reference", message, hint="Pass the number of an existing issue."))
        return issue
