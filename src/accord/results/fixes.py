"""Small faults of agent results that have one possible correction. Pure.

Source: workflow contracts, "Labels at creation" (a new work item has the status ``status:pending``), and git's format
of patches, where each hunk counts its lines.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from accord.core.findings import count_of, pointer
from accord.core.fixes import Fix
from accord.results.labels import STATUS_AT_CREATION, Category, in_category

_HUNK = re.compile(r"@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@(.*)", re.DOTALL)

_REVIEW = ("verdict", "summary", "comments")

_FENCED = re.compile(r"(`{3,}|~{3,})[^\n`~]*\n(.*\n)\1", re.DOTALL)


def fix_plan(value: dict[str, Any]) -> tuple[dict[str, Any], list[Fix]]:
    """Add the status label to new work items that have none."""
    create, fixes = value.get("create"), []
    items = list(create) if isinstance(create, list) else []
    for i, item in enumerate(items):
        labels: Any = item.get("labels") if isinstance(item, dict) else None
        if not isinstance(labels, list) or not all(isinstance(label, str) for label in labels):
            continue
        if not in_category(labels, Category.STATUS):
            items[i] = {**item, "labels": [*labels, STATUS_AT_CREATION]}
            fixes.append(Fix(f"Added the label `{STATUS_AT_CREATION}`.", pointer("create", i, "labels")))
    return ({**value, "create": items} if fixes else value), fixes


def fix_implementation(value: dict[str, Any]) -> tuple[dict[str, Any], list[Fix]]:
    """Remove the code fence around the patch, and count the lines of its hunks again."""
    patch = value.get("patch")
    if not isinstance(patch, str):
        return value, []
    fixes = []
    if fenced := _FENCED.fullmatch(patch.strip()):
        patch = fenced[2]
        fixes.append(Fix("Removed the code fence around the patch.", "/patch"))
    counted, wrong = recount(patch)
    if wrong:
        fixes.append(Fix(f"Counted the lines of {count_of(wrong, 'hunk')} again.", "/patch"))
    return ({**value, "patch": counted} if fixes else value), fixes


def fix_review(value: dict[str, Any]) -> tuple[dict[str, Any], list[Fix]]:
    """Move the parts of a review into ``review`` where an agent wrote them beside the role."""
    parts = {key: part for key, part in value.items() if key in _REVIEW}
    if "review" in value or "verdict" not in parts:
        return value, []
    rest = {key: part for key, part in value.items() if key not in _REVIEW}
    return {**rest, "review": parts}, [Fix(f"Moved {', '.join(f'`{key}`' for key in parts)} into `review`.", "/review")]


def recount(patch: str) -> tuple[str, int]:
    """Return a patch whose hunks count their own lines, and how many of them were wrong.

    A header that agrees with the lines below it stays as it is. An empty line is a line of context that lost its blank.
    """
    lines = [f"{line}\n" for line in patch.split("\n")]
    lines[-1] = lines[-1][:-1]
    wrong, i = 0, 0
    while i < len(lines):
        head = _HUNK.fullmatch(lines[i])
        i += 1
        if head is None:
            continue
        old, new = (1 if count is None else int(count) for count in (head[2], head[4]))
        end = _counted_end(lines, i, old, new)
        if end is None:
            start, end = i, _visible_end(lines, i)
            signs = [_sign(line) for line in lines[start:end]]
            old, new = sum(sign in " -" for sign in signs), sum(sign in " +" for sign in signs)
            lines[start - 1] = f"@@ -{head[1]},{old} +{head[3]},{new} @@{head[5]}"
            wrong += 1
        i = end
    return "".join(lines), wrong


def _counted_end(lines: Sequence[str], start: int, old: int, new: int) -> int | None:
    """Return where a hunk ends by its counts; None if its lines do not end there."""
    i = start
    while old > 0 or new > 0:
        if i == len(lines) or not _is_part(lines, i):
            return None
        old -= _sign(lines[i]) in " -"
        new -= _sign(lines[i]) in " +"
        i += 1
    if i < len(lines) and _sign(lines[i]) == "\\":
        i += 1
    rest = next((j for j in range(i, len(lines)) if lines[j].strip("\r\n")), len(lines))
    has_more = rest < len(lines) and _is_part(lines, rest) and not _begins_file(lines, rest)
    return None if old or new or has_more else i


def _visible_end(lines: Sequence[str], start: int) -> int:
    """Return where a hunk ends by its lines; empty lines behind it do not belong to it."""
    end = start
    while end < len(lines) and _is_part(lines, end) and not _begins_file(lines, end):
        end += 1
    while end > start and not lines[end - 1].strip("\r\n"):
        end -= 1
    return end


def _is_part(lines: Sequence[str], i: int) -> bool:
    """Return whether a line can be one of a hunk; the signature of a mail cannot."""
    return lines[i].rstrip("\r\n") != "-- " and _sign(lines[i]) in " +-\\"


def _begins_file(lines: Sequence[str], i: int) -> bool:
    return lines[i].startswith("--- ") and i + 1 < len(lines) and lines[i + 1].startswith("+++ ")


def _sign(line: str) -> str:
    return line[0] if line.strip("\r\n") else " "
