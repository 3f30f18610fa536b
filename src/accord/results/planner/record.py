"""The record of a planned item: a hidden marker in its issue with digests of what accord wrote last.

A part of the issue that still has its digest was edited by no one since. Ticked boxes are progress, not an edit.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from accord.core.frozen import Frozen
from accord.github.limits import BODY_CHARS, LABELS_PER_ITEM
from accord.github.models import Identity, Issue
from accord.results.bodies import CLOSED, LONGEST_NUMBER, LONGEST_TOKEN, UPDATED, BodyParts, has_marker, split_body
from accord.results.labels import SET_ONCE, category_of
from accord.text.markers import COPY_ROOM, find_markers, write_marker

if TYPE_CHECKING:
    from accord.results.models import PlannedWorkItemUpdate

ITEM = "item"
VANISHED = "vanished"
"""The marker of an item that accord closed because the plan has it no longer."""

_TICK = re.compile(r"^([ \t>]*(?:[-*+]|[0-9]{1,9}[.)])[ \t]+)\[[xX]\](?=[ \t])", re.MULTILINE)
_DIGEST_CHARS = 12
_LABEL_CHARS = 6


class ItemRecord(Frozen):
    """The tempID, digests of title, body and labels, and the numbers of the blockers that accord added."""

    temp_id: str
    title: str = ""
    body: str = ""
    labels: frozenset[str] = frozenset()
    blockers: frozenset[int] = frozenset()


def record_for(temp_id: str, title: str, content: str, labels: Iterable[str], blockers: Iterable[int]) -> ItemRecord:
    """Return the record of an item as accord writes it."""
    return ItemRecord(temp_id, text_digest(title), body_digest(content), label_digests(labels), frozenset(blockers))


def record_of(issue: Issue, token: str) -> ItemRecord | None:
    """Read the record that this run key left in an issue; None without one."""
    found = (fields for fields in find_markers(issue.body, ITEM) if fields.get("run") == token)
    return next(map(_read_record, found), None)


def latest_record(issue: Issue, token: str, identity: Identity) -> ItemRecord | None:
    """Read the record of this run key, if any, else that of another run by the same author; None without one."""
    if token and (record := record_of(issue, token)):
        return record
    others = find_markers(issue.body, ITEM) if identity.counts(issue.author) else []
    return _read_record(others[-1]) if others else None


def planned_blockers(issue: Issue) -> frozenset[int]:
    """Return the numbers of the blockers that plans gave an issue, whichever run wrote them."""
    records = (_read_record(fields) for fields in find_markers(issue.body, ITEM))
    return frozenset(number for record in records for number in record.blockers)


def _read_record(fields: Mapping[str, str]) -> ItemRecord:
    labels = frozenset(filter(None, fields.get("labels", "").split(".")))
    blockers = frozenset(int(number) for number in fields.get("by", "").split(".") if number.isdecimal())
    return ItemRecord(fields.get("id", ""), fields.get("title", ""), fields.get("body", ""), labels, blockers)


def with_record(parts: BodyParts, token: str, record: ItemRecord) -> BodyParts:
    """Put a record into a body, in the place of the one of the same run key."""
    marker = write_marker(
        ITEM,
        run=token,
        id=record.temp_id,
        title=record.title,
        body=record.body,
        labels=".".join(sorted(record.labels)),
        by=".".join(map(str, sorted(record.blockers))),
    )
    old = next((each for each in parts.markers if has_marker(each, ITEM, token)), None)
    if old is None:
        return replace(parts, markers=(marker, *parts.markers))
    return replace(parts, markers=tuple(marker if each == old else each for each in parts.markers))


def text_digest(text: str) -> str:
    """Return the digest of a title; spaces around it do not count."""
    return hashlib.sha256(text.strip().encode()).hexdigest()[:_DIGEST_CHARS]


def body_digest(content: str) -> str:
    """Return the digest of a body's content; ticks do not count.

    Digests are stored in issues, so the pattern of a tick stays as it is, whatever reads boxes elsewhere.
    """
    return text_digest(_TICK.sub(r"\1[ ]", content))


def update_digest(update: PlannedWorkItemUpdate) -> str:
    """Return the digest of an update, which tells it from later ones of the same run key."""
    return text_digest("\0".join([update.body or "", *(update.labels or ())]))


def written_digests(content: str | None, labels: Iterable[str]) -> tuple[str, ...]:
    """Return what an update records: the digest of the body that it wrote, if any, and those of labels."""
    return (*(() if content is None else (body_digest(content),)), *sorted(labels))


def digests_of_updates(issue: Issue) -> frozenset[str]:
    """Return the digests of what updates wrote; with a forged one, a plan only replaces the text that has it."""
    return frozenset[str]().union(*_written_by_updates(issue))


def labels_of_updates(issue: Issue) -> list[frozenset[str]]:
    """Return the digests of the labels that each update wrote, of those that wrote any."""
    found = (frozenset(each for each in wrote if len(each) == _LABEL_CHARS) for wrote in _written_by_updates(issue))
    return [labels for labels in found if labels]


def _written_by_updates(issue: Issue) -> list[list[str]]:
    return [fields.get("wrote", "").split(".") for fields in find_markers(issue.body, UPDATED)]


def label_digest(label: str) -> str:
    """Return the digest of a label, ignoring case as GitHub does."""
    return hashlib.sha256(label.lower().encode()).hexdigest()[:_LABEL_CHARS]


def label_digests(labels: Iterable[str]) -> frozenset[str]:
    """Return the digests of the labels that a plan sets: all but type and status, which move on by themselves."""
    return frozenset(label_digest(label) for label in labels if category_of(label) not in SET_ONCE)


def content_limit(temp_id: str, blockers: int, labels: int) -> int:
    """Return how many characters an agent's body may have, so that all that accord may ever add still fits."""
    kept = BodyParts("", (LONGEST_NUMBER,) * blockers)
    wrote = ".".join(["x" * _DIGEST_CHARS, *["x" * _LABEL_CHARS] * LABELS_PER_ITEM])
    kept = kept.with_marker(UPDATED, run=LONGEST_TOKEN, sum="x" * _DIGEST_CHARS, wrote=wrote)
    kept = kept.with_marker(CLOSED, run=LONGEST_TOKEN).with_marker(VANISHED, run=LONGEST_TOKEN)
    digests = frozenset(f"{n:0{_LABEL_CHARS}}" for n in range(labels))
    numbers = frozenset(LONGEST_NUMBER - n for n in range(blockers))
    record = ItemRecord(temp_id, "x" * _DIGEST_CHARS, "x" * _DIGEST_CHARS, digests, numbers)
    return BODY_CHARS - COPY_ROOM - len(with_record(kept, LONGEST_TOKEN, record).join()) - 2


def without_marker(parts: BodyParts, name: str, token: str) -> BodyParts:
    """Return a body without the markers of this name and run key."""
    return replace(parts, markers=tuple(each for each in parts.markers if not has_marker(each, name, token)))


def content_of(issue: Issue) -> str:
    """Return the text of an issue's body without the parts that accord adds."""
    return split_body(issue.body).content


def is_retired(issue: Issue, token: str) -> bool:
    """Return whether an item was closed because its plan had it no longer, by any account."""
    return not issue.is_open and issue.state_reason == "not_planned" and has_marker(issue.body, VANISHED, token)
