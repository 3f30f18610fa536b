"""A handoff that travels with its work item: its history at a ref, and the newest version in the issue's body.

The body of an issue may be edited by whoever opened it, and GitHub changes it without asking what was in it before. So
the ref decides (``accord.github.state``): only who may write the repository can write it, and of two writers at once
the second one is refused, reads again, and decides again. The block in the body is what people and other repositories
take along; it counts only when the ref is gone and the caller vouches for it (``adopts``).
"""

from __future__ import annotations

import base64
import json
import re
import zlib
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

from accord.core.documents import MAX_BYTES, read_object
from accord.core.errors import BrokenContract, Refused, Stopped
from accord.core.findings import Finding, warning
from accord.github.markers import take_copy, with_copy
from accord.github.models import Issue, IssueChange
from accord.github.state import Chain, Link, append, newest
from accord.handoffs.models import normalised
from accord.handoffs.plan import with_task_id
from accord.handoffs.rules import read_handoff
from accord.text.redaction import Redactor, redacted

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from accord.core.clock import Clock
    from accord.github.client import GitHub
    from accord.handoffs.plan import Decided


class Block(NamedTuple):
    """What a block says: the commit that vouches for it, and the document; None where it did not fit or is spoiled."""

    commit: str
    task: dict[str, Any] | None


def read_block(body: str) -> Block | None:
    """Read the first block of a body; None where there is none. It proves nothing by itself."""
    fields, _ = take_copy(body)
    return Block(fields["commit"], _unpacked(fields.get("data", ""))) if fields else None


def with_block(body: str, task: Mapping[str, Any], commit: str) -> str:
    """Put the block into a body, in the place of those that are there.

    Where the document does not fit, the block only names the commit that holds it; where that does not, there is none.
    """
    packed = base64.b64encode(zlib.compress(_text_block(task).encode(), 9)).decode()
    return with_copy({"commit": commit, "data": packed}, without_block(body))


def is_in_step(body: str, task: Mapping[str, Any], commit: str) -> bool:
    """Tell whether the block of a body says what it should. One without the document may have had no room for it."""
    fields, _ = take_copy(body)
    if fields is None:
        return with_block(body, task, commit) == body
    return fields["commit"] == commit and ("data" not in fields or _unpacked(fields["data"]) == task)


def without_block(body: str) -> str:
    """Return what the body holds besides blocks."""
    return take_copy(body)[1]


def _unpacked(data: str) -> dict[str, Any] | None:
    try:
        unpacking = zlib.decompressobj()
        raw = unpacking.decompress(base64.b64decode(data, validate=True), MAX_BYTES)
        return read_object(raw).value if raw and unpacking.eof else None
    except (ValueError, zlib.error, BrokenContract):
        return None


def _text_block(task: Mapping[str, Any]) -> str:
    return json.dumps(task, ensure_ascii=False, separators=(",", ":"))


NO_HANDOFF = "#{number} has no handoff. Begin one with `accord handoff patch --work-item {number}`."
TRIES = 12
PAUSE_SECONDS = 1.0
README = (
    "This ref is kept by accord. The message of each commit holds one version of the handoff of a work item; the "
    "newest one also travels in the body of the issue.\n"
)
_TOLD_APART = re.compile("[@#<>/]")
"""What GitHub would read as a mention, a reference or an address in the message of a commit."""


@dataclass(frozen=True)
class Place:
    """The work item whose handoff is meant. ``adopts``: the caller vouches for a block that no ref vouches for."""

    github: GitHub
    number: int
    clock: Clock
    secrets: Redactor = field(default_factory=Redactor)
    adopts: bool = False

    @property
    def chain(self) -> Chain:
        """The ref whose commits hold the versions."""
        return Chain(self.github, f"refs/accord/handoffs/{self.number}", README, self.clock)


@dataclass(frozen=True)
class Held:
    """A task as it was read, the commit that holds it if one does, and what is odd about it."""

    task: dict[str, Any]
    issue: Issue
    link: Link | None = None
    is_new: bool = False
    warnings: tuple[Finding, ...] = ()


def load(place: Place) -> Held:
    """Read the handoff of a work item, or begin one: three requests.

    Raises BrokenContract when there is no such work item, or nobody vouches for what its body holds.
    """
    return _held(place, _issue(place), newest(place.chain))


def change(place: Place, decide: Callable[[dict[str, Any]], Decided]) -> Decided:
    """Write what ``decide`` makes of the task, of whatever is there when it is written.

    ``decide`` is pure, may be called several times, and changes nothing in a task that it has changed already, so that
    the same command, run again after a crash, ends in the same state. Raises Stopped when others were faster each time.
    """
    chain = place.chain
    held = load(place)
    for _ in range(TRIES):
        decided = decide(held.task)
        wanted = redacted(decided.task, place.secrets)
        if wanted == held.task and (held.link or held.is_new):
            if held.link:
                _show(place, chain, held.link)
            return decided
        title = f"Handoff of #{place.number}: {decided.status}"
        link = append(chain, held.link, _text(wanted), title)
        if link is not None:
            _show(place, chain, link)
            return decided
        place.clock.sleep(PAUSE_SECONDS)
        held = _held(place, held.issue, newest(chain))
    raise Stopped(
        f"The handoff of #{place.number} was changed by others {TRIES} times in a row.",
        hint="Run the same command again.",
    )


def _issue(place: Place) -> Issue:
    issue = place.github.issue(place.number)
    if issue is None or issue.is_pull:
        message = f"There is no work item #{place.number} in this repository. Name one."
        raise BrokenContract(message, findings=[Finding("unknown-reference", message)])
    return issue


def _held(place: Place, issue: Issue, link: Link | None) -> Held:
    if link is not None:
        task = _read(link.text, place)
        odd = (
            ()
            if is_in_step(issue.body, task, link.sha)
            else (warning("handoff-block-differs", _DIFFERS.format(number=place.number)),)
        )
        return Held(task, issue, link, warnings=odd)
    block = read_block(issue.body)
    if block is None:
        task = {"title": place.secrets(issue.title), "status": "backlog", "metadata": {}}
        none = warning("handoff-missing", NO_HANDOFF.format(number=place.number))
        return Held(with_task_id(task, f"T-{place.number:05d}"), issue, is_new=True, warnings=(none,))
    if not place.adopts:
        message = _UNTRUSTED.format(number=place.number)
        raise BrokenContract(message, findings=[Finding("handoff-untrusted", message)])
    if block.task is None:
        message = f"The block in the body of #{place.number} cannot be read. Delete it to begin anew."
        raise BrokenContract(message, findings=[Finding("handoff-unreadable", message)])
    task = normalised(block.task)
    read_handoff(task)
    return Held(with_task_id(task, f"T-{place.number:05d}"), issue)


_DIFFERS = (
    "The block in the body of #{number} is not what the ref holds. The ref counts; the next write fixes the body."
)
_UNTRUSTED = (
    "The body of #{number} holds a handoff that no ref of this repository vouches for: the issue came from another "
    "repository, the ref was deleted, or somebody wrote the block. If you trust it, pass --adopt; "
    "else delete the block from the body."
)


def _read(text: str, place: Place) -> dict[str, Any]:
    try:
        task = normalised(read_object(text.encode()).value)
        read_handoff(task)
    except BrokenContract as broken:
        raise Refused(
            f"refs/accord/handoffs/{place.number} holds no handoff that this version can read: {broken.message}",
            hint="Use the version that wrote it, or delete the ref and go on from the body with --adopt.",
        ) from None
    return task


def _show(place: Place, chain: Chain, link: Link) -> None:
    """Bring the block in the body in step, and look whether it still is: the last one to write looks last."""
    for _ in range(TRIES):
        issue = _issue(place)
        body = with_block(issue.body, _read(link.text, place), link.sha)
        if body != issue.body:
            place.github.change_issue(place.number, IssueChange(body))
        tip = place.github.ref(chain.ref)
        if tip in (link.sha, None):
            return
        link = newest(chain) or link


def _text(task: dict[str, Any]) -> str:
    """Write the document so that GitHub finds nothing in the message of a commit that it would act on."""
    text = json.dumps(task, ensure_ascii=False, indent=1)
    return _TOLD_APART.sub(lambda hit: f"\\u{ord(hit.group()):04x}", text)
