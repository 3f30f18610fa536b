"""Bodies of work items: the agent's text, and below it what accord keeps there.

A body is content, then a visible list of blockers where the server has no native dependencies, then markers.
An update replaces the content and keeps the rest, and the copy of a handoff that stands before it all.
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from accord.github.limits import BODY_CHARS
from accord.github.markers import COPY_ROOM, find_markers, take_copy, take_markers, with_copy, write_marker
from accord.text.hidden import GUARD
from accord.text.markdown import code_free_lines

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence, Set

    from accord.github.models import Issue

ITEM = "item"
CLOSED = "closed"
UPDATED = "updated"

_SECTION_START = write_marker("blocked-by")
_SECTION_END = write_marker("blocked-by-end")
_BLOCKED_BY = re.compile(r"^Blocked by #([0-9]+)", re.MULTILINE)
_OWNER_WORD = r"[^\s)\],;]+"
_WORD = re.compile(_OWNER_WORD)
_OWNER = re.compile(rf"((?i:owned by) )#({_OWNER_WORD})")
_DIGEST_CHARS = 12
_LONGEST_NUMBER = 9_999_999_999
_LONGEST_TOKEN = "x" * 26


@dataclass(frozen=True)
class Parts:
    """A body taken apart; ``blocked_by`` holds numbers of the visible list, ``markers`` stand as written.

    ``copy`` holds the fields of a handoff's copy (``accord.github.markers``).
    """

    content: str
    blocked_by: tuple[int, ...] = ()
    markers: tuple[str, ...] = ()
    copy: dict[str, str] | None = None

    def join(self) -> str:
        """Put the body together."""
        pieces = [self.content] if self.content else []
        if self.blocked_by:
            lines = "\n".join(f"Blocked by #{number}" for number in self.blocked_by)
            pieces.append(f"{_SECTION_START}\n{lines}\n{_SECTION_END}")
        if self.markers:
            pieces.append("\n".join(self.markers))
        return with_copy(self.copy, "\n\n".join(pieces))

    def with_marker(self, name: str, **fields: str) -> Parts:
        """Add a marker, unless it is there."""
        marker = write_marker(name, **fields)
        return self if marker in self.markers else replace(self, markers=(*self.markers, marker))


def split_body(body: str) -> Parts:
    """Take a body apart. Line ends become LF, and blank lines at the end go, as they may on the way through GitHub."""
    copy, body = take_copy(body.replace("\r\n", "\n"))
    body, section = _take_section(body)
    blocked_by = [int(number) for number in _BLOCKED_BY.findall(section)]
    content, markers = take_markers(body)
    return Parts(content.rstrip(), tuple(dict.fromkeys(blocked_by)), tuple(markers), copy)


def _take_section(body: str) -> tuple[str, str]:
    """Split off the visible list of blockers, from its first marker to the end marker after it."""
    before, start, rest = body.partition(_SECTION_START)
    section, end, after = rest.partition(_SECTION_END)
    return (before + after, section) if start and end else (body, "")


def body_room(temp_id: str, blockers: int) -> int:
    """Count the characters an agent's body may have, so that all that accord may ever add still fits."""
    kept = Parts("", (_LONGEST_NUMBER,) * blockers)
    kept = kept.with_marker(ITEM, run=_LONGEST_TOKEN, id=temp_id, sum="x" * _DIGEST_CHARS)
    kept = kept.with_marker(UPDATED, run=_LONGEST_TOKEN).with_marker(CLOSED, run=_LONGEST_TOKEN)
    return BODY_CHARS - COPY_ROOM - len(kept.join()) - 2


def update_room(issue: Issue, token: str) -> int:
    """Count the characters that new content of an issue's body may have, beside what the issue keeps."""
    kept = split_body(issue.body).with_marker(UPDATED, run=token)
    return BODY_CHARS - COPY_ROOM - len(replace(kept, content="", copy=None).join()) - 2


def item_id(body: str, token: str) -> str | None:
    """Return the tempID under which this run created the item, by the marker in its body."""
    for fields in find_markers(body, ITEM):
        if fields.get("run") == token:
            return fields.get("id")
    return None


def content_digest(title: str, content: str, labels: Sequence[str]) -> str:
    """Digest what an item was planned as, to tell later that a plan changed under one run key."""
    return hashlib.sha256("\0".join([title, content, *labels]).encode()).hexdigest()[:_DIGEST_CHARS]


def digest_of(body: str, token: str) -> str:
    """Return the digest in the marker by which this run made an item; empty when there is none."""
    return next((fields.get("sum", "") for fields in find_markers(body, ITEM) if fields.get("run") == token), "")


def was_touched(body: str, name: str, token: str) -> bool:
    """Tell whether this run left a marker of this name."""
    return any(fields.get("run") == token for fields in find_markers(body, name))


def name_owners(text: str, numbers: Mapping[str, int]) -> str:
    """Rewrite ``owned by #temp-3`` to the real number where it is known, outside of code."""

    def named(hit: re.Match[str]) -> str:
        number = numbers.get(_owner(hit))
        return f"{hit[1]}#{number}" if number else hit[0]

    owner = _owner_among(numbers.keys())
    return code_free_lines(text, lambda line: owner.sub(named, line)) if owner.search(text) else text


def longest_named(text: str, names: Set[str]) -> int:
    """Count the characters of a text in which every owner's name has become the longest of numbers."""
    return len(name_owners(text, dict.fromkeys(names, _LONGEST_NUMBER)))


def owners_named(text: str, names: Set[str]) -> list[str]:
    """List which of these names the text still calls an owner, outside of code."""
    found: list[str] = []
    pattern = _owner_among(names)

    def line(text: str) -> str:
        found.extend(owner for hit in pattern.finditer(text) if (owner := _owner(hit)) in names)
        return text

    if pattern.search(text):
        code_free_lines(text, line)
    return list(dict.fromkeys(found))


def _owner_among(names: Set[str]) -> re.Pattern[str]:
    """Find an owner: one of these names where it is more than a word, the longest first, else any word."""
    odd = sorted((name for name in names if not _WORD.fullmatch(name)), key=len, reverse=True)
    if not odd:
        return _OWNER
    known = "|".join(f"{GUARD}?".join(map(re.escape, name)) for name in odd)
    return re.compile(rf"((?i:owned by) )#((?:{known})(?=[\s)\],;]|\Z)|{_OWNER_WORD})")


def _owner(hit: re.Match[str]) -> str:
    """Read a name as the plan spells it: a guard may have been set into it when the text was made fit to be posted."""
    return hit[2].replace(GUARD, "")


def closing_body(issue: Issue, token: str) -> str | None:
    """Return the issue's body with the mark that this run closed it; None where it has no room for one."""
    body = split_body(issue.body).with_marker(CLOSED, run=token).join()
    return body if len(body) <= BODY_CHARS else None


def updated_body(issue: Issue, content: str | None, token: str) -> str | None:
    """Return the issue's body with new content and the mark of this run; None where nothing new would fit or change."""
    parts = split_body(issue.body).with_marker(UPDATED, run=token)
    if content is not None:
        return replace(parts, content=content).join()
    body = parts.join()
    return body if len(body) <= BODY_CHARS else None
