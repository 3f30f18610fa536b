"""Completed tasks without a model, from the checked boxes of the agent's message.

Strong evidence is a checked box with exactly the task's text. Weaker evidence is one with the same words in other
markup or case, or a done entry of the agent's to-do list. A box counts only if its entry says nothing else, and no
heading above it and no other text about the task says "not", because a wrongly ticked task is never looked at again.

The last boxes of a text count, since agents print their plan first and its end state last. Several tasks with the same
text get their boxes in order.
"""

from __future__ import annotations

import re
from collections import defaultdict
from typing import TYPE_CHECKING

from accord.text.checklists import shown_text
from accord.text.checklists import tasks as boxes_of
from accord.text.hidden import strip_hidden
from accord.text.markdown import blocks

if TYPE_CHECKING:
    from collections.abc import Sequence

    from accord.runner.analysis.analyse import TaskEvidence
    from accord.text.checklists import ChecklistTask

EXACT, LOOSE, NOTHING = 0.7, 0.5, 0.0
"""The confidences of the fallback (runner output contract, "Confidence scoring")."""

LONGEST_MESSAGE = 65_536
"""Characters read from the end of a message; GitHub accepts no longer body."""

_MARKUP = re.compile(r"[*`~]+|(?<!\w)_+|_+(?!\w)|(?<=\])\([^()\s]*\)|[\[\]]")
_BOXES = ("[ ]", "[x]", "[X]")
_NOT = re.compile(r"\bnot\b|n't\b")


def completed_by_boxes(evidence: TaskEvidence, tasks: Sequence[ChecklistTask]) -> tuple[list[int], float]:
    """Return the positions of the newly completed tasks and the confidence."""
    message = strip_hidden(evidence.message[-LONGEST_MESSAGE:])
    positions: defaultdict[str, list[int]] = defaultdict(list)
    for position, task in enumerate(tasks):
        if task.text:
            positions[_name(task.text)].append(position)
    boxes: defaultdict[str, list[str]] = defaultdict(list)
    for todo in evidence.todos:
        boxes[_name(todo.text)].append("\n" if todo.is_done else "")
    lines, denials = _plain_entries(message)
    for box in boxes_of(message):
        boxes[_name(box.text)].append(box.text if box.is_checked and box.line in lines else "")
    done: dict[int, bool] = {}
    for name, of_name in positions.items():
        if name in boxes and any(name in text and _NOT.search(text.replace(name, "")) for text in denials):
            continue
        for position, text in zip(of_name, boxes[name][-len(of_name) :], strict=False):
            if text and not tasks[position].is_checked:
                done[position] = text == tasks[position].text
    confidence = EXACT if all(done.values()) else LOOSE
    return sorted(done), confidence if done else NOTHING


def _plain_entries(message: str) -> tuple[set[int], list[str]]:
    """Return the lines of entries with one paragraph and no "not" in the heading above, and other texts with "not"."""
    lines, denials = set[int](), list[str]()
    open_entries: list[list[int]] = []
    is_denied = is_heading = False
    for token in blocks(message):
        if token.type == "heading_open":
            is_heading = True
        elif token.type == "list_item_open":
            open_entries.append([(token.map or [0])[0] + 1, 0])
        elif token.type == "list_item_close":
            line, count = open_entries.pop()
            lines |= {line} if count == 1 and not is_denied else set()
        elif token.content:
            text = _plain(token.content) if token.type == "inline" else ""
            has_not = bool(_NOT.search(text))
            is_denied, is_heading = has_not if is_heading else is_denied, False
            denials += [text] if has_not and token.content[:3] not in _BOXES else []
            for entry in open_entries:
                entry[1] += 1
    return lines, denials


def _plain(text: str) -> str:
    """Normalize a text for comparison: no markup, one case, one apostrophe, single blanks."""
    return " ".join(
        _MARKUP.sub("", shown_text(text).replace("\N{RIGHT SINGLE QUOTATION MARK}", "'")).casefold().split()
    )


def _name(text: str) -> str:
    return _plain(text).rstrip(".;:,!") or _plain(text)
