"""Completed tasks without a model, from the checked boxes of the agent's message.

Strong evidence is a checked box with exactly the task's text. Weaker evidence is one with the same words in other
markup or case, or a done entry of the agent's to-do list. A box counts only if its entry says nothing else, and no
heading above it and no other text about the task says "not", because a wrongly ticked task is never looked at again.

The last boxes of a text count, since agents print their plan first and its end state last. Several tasks with the same
text get their boxes in order.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from typing import TYPE_CHECKING

from accord.text.block_syntax import Block
from accord.text.blocks import read_blocks
from accord.text.hidden import strip_hidden
from accord.text.outline import shown_text
from accord.text.outline import tasks as boxes_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from accord.runner.analysis.prompt import TaskEvidence
    from accord.text.outline import ChecklistTask

EXACT, LOOSE, NOTHING = 0.7, 0.5, 0.0
"""The confidences of the fallback (runner output contract, "Confidence scoring")."""

LONGEST_MESSAGE = 65_536
"""Characters read from the end of a message; GitHub accepts no longer body."""

_MARKUP = re.compile(r"[*`~]+|(?<!\w)_+|_+(?!\w)|(?<=\])\([^()\s]*\)|[\[\]]")
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
    counts, denied, denials = Counter[Block](), set[Block](), list[str]()
    is_denied = False
    for block in read_blocks(message).leaves:
        texts = [_plain(text) for text in block.texts]
        if block.kind == "heading":
            is_denied = any(map(_NOT.search, texts))
        is_task = bool(block.inside and block.inside.box and not counts[block.inside])
        denials += [text for text in texts if _NOT.search(text) and not is_task]
        counts.update(dict.fromkeys(block.around, max(1, len(texts))))
        denied |= set(block.around) if is_denied else set()
    plain = (each for each, count in counts.items() if each.kind == "item" and count == 1 and each not in denied)
    return {item.first + 1 for item in plain}, denials


def _plain(text: str) -> str:
    """Normalize a text for comparison: no markup, one case, one apostrophe, single blanks."""
    return " ".join(
        _MARKUP.sub("", shown_text(text).replace("\N{RIGHT SINGLE QUOTATION MARK}", "'")).casefold().split()
    )


def _name(text: str) -> str:
    return _plain(text).rstrip(".;:,!") or _plain(text)
