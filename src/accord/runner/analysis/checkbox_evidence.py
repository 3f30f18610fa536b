"""Completed tasks without a model, from a narrow reading of the agent's own words.

Strong evidence is a checked box with exactly the task's text. Weaker evidence is a box in almost the same words, a done
entry of the agent's to-do list, or a sentence that names the task and calls it done. A "not" near a task overrules all
evidence, because a task wrongly ticked is never looked at again.

The last boxes of a text count, since agents print their plan first and its end state last. Several tasks with the same
text get their boxes in order.
"""

from __future__ import annotations

import re
from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING

from accord.text.checklists import ChecklistTask, shown_text
from accord.text.checklists import tasks as boxes_of
from accord.text.hidden import strip_hidden
from accord.text.markdown import blocks

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from markdown_it.token import Token

    from accord.runner.analysis.analyse import TaskEvidence

EXACT, LOOSE, NOTHING = 0.7, 0.5, 0.0
"""The confidences of the fallback (runner output contract, "Confidence scoring")."""

LONGEST_MESSAGE = 65_536
"""Characters read from the end of a message; GitHub accepts no longer body."""

_SHORTEST_NAME = 8
"""Shorter names of one word occur in any sentence, so they count only as boxes."""

_MARKUP = re.compile(r"[*`~]+|(?<!\w)_+|_+(?!\w)|(?<=\])\([^()\s]*\)|[\[\]]")
_BOX = re.compile(r"\[[ xX]\]\s+")
_SENTENCE = re.compile(r"(?<=[.!?;])\s+|\n")
_NAMED = re.compile(r"\x00(\d+)\x00")
_BOX_OF = re.compile(r"\x00(\d+)\x00(?=\s*(?:$|[-\u2013\u2014:;,.!(\u2705\u2714]))")
_DONE = re.compile(
    r"\b(?:done|completed|finished|implemented|fixed|resolved)\b|\b(?:is|are|now)\s+complete\b"
    r"|[:(\u2013\u2014-]\s*complete\b|[\u2705\u2714\u2611]"
)
_NOT = re.compile(
    r"\b(?:not|cannot|never|no|nothing|none|without|neither|nor|failed|fails|unable|skipped|blocked|pending|remaining"
    r"|remains|outstanding|incomplete|unfinished|undone|todo|to-do|to do|still|yet|left|deferred|postponed"
    r"|partial|partially|partly|hardly|barely|scarcely|almost|nearly|mostly|half|to be|will be|wip|tbd|in progress"
    r"|reverted)\b|n't\b|(?<![\d.,])(?:\d|[1-9]\d)(?:[.,]\d+)? ?%|[\u274c\u2717\u2718\u274e\u23f3\U0001f6a7\u26a0]"
)
_NOT_DONE = re.compile(
    r"(?:\bnot|n't|\bnever)\b[^.!?]{0,30}\b(?:done|completed?|finish(?:ed)?|implement(?:ed)?|fixed|started)\b"
    r"|\b(?:pending|remaining|remains|outstanding|incomplete|unfinished|undone|todo|to-do|to do|still open|left"
    r"|deferred|postponed|skipped|blocked|failed|wip|in progress)\b|\u274c"
)
"""Words of a heading or an introduction that refute the text below it; a mere "not" may be about something else."""

_HEDGED = re.compile(
    r"\b(?:will|would|should|could|can|may|might|must|if|once|when|until|before|after|next|later|soon|plan|plans"
    r"|planned|going|need|needs|want|wants|try|tried|attempted|almost|nearly|mostly|half|except|but|to be|claim|claims"
    r"|asked|mark)\b|\?"
)


@dataclass(frozen=True)
class _Block:
    """A paragraph, a heading or a list entry, with its introduction; ``box`` is the checkbox that it begins with."""

    content: str
    lead: str = ""
    box: ChecklistTask | None = None
    is_quoted: bool = False
    depth: int = 0
    begins_item: bool = False
    is_own_list: bool = False


@dataclass(frozen=True)
class _Mention:
    """A mention of a task. ``own`` is the rest of its sentence, ``near`` also has the text that belongs to it."""

    block: _Block
    own: str
    near: str

    @property
    def is_refuted(self) -> bool:
        return bool(_NOT.search(self.near) or _NOT_DONE.search(self.block.lead))

    @property
    def is_confirmed(self) -> bool:
        is_bare = not re.search(r"\w", self.own)
        text = f"{self.block.lead} {self.own}" if is_bare else self.own
        return bool(_DONE.search(text)) and not _HEDGED.search(f"{text} {self.near}") and not self.is_refuted


def completed_by_words(evidence: TaskEvidence, tasks: Sequence[ChecklistTask]) -> tuple[list[int], float]:
    """Return the positions of the newly completed tasks and the confidence."""
    names: defaultdict[str, list[int]] = defaultdict(list)
    for position, task in enumerate(tasks):
        if task.text:
            names[_name(task.text)].append(position)
    boxes, prose = _mentions(evidence, list(names))
    done: dict[int, bool] = {}
    for number, (name, positions) in enumerate(names.items()):
        of_positions = dict(zip(positions, boxes[number][-len(positions) :], strict=False))
        if any(mention.is_refuted for mention in prose[number]):
            continue
        confirmed = positions[: sum(mention.is_confirmed for mention in prose[number])]
        for position in (position for position in positions if not tasks[position].is_checked):
            box = of_positions.get(position)
            if box and box.block.box and box.block.box.is_checked and not box.is_refuted:
                done[position] = box.block.box.text == tasks[position].text and not box.block.is_own_list
            elif not boxes[number] and _is_telling(name) and position in confirmed:
                done[position] = False
    confidence = EXACT if all(done.values()) else LOOSE
    return sorted(done), confidence if done else NOTHING


def _mentions(
    evidence: TaskEvidence, names: Sequence[str]
) -> tuple[defaultdict[int, list[_Mention]], defaultdict[int, list[_Mention]]]:
    """Return the boxes and the sentences that mention each task, in the order of the text."""
    boxes: defaultdict[int, list[_Mention]] = defaultdict(list)
    prose: defaultdict[int, list[_Mention]] = defaultdict(list)
    message = strip_hidden(evidence.message[-LONGEST_MESSAGE:]).replace("\x00", "")
    found = [*_todo_blocks(evidence), *_blocks(message)]
    pattern = _any_of(names)
    numbers = {name: number for number, name in enumerate(names)}
    marked = [_with_marks(_content(block, numbers), pattern, numbers) for block in found]
    for i, block in enumerate(found):
        sentences = [*_SENTENCE.split(marked[i]), *_following(found, marked, i)]
        for j, sentence in enumerate(sentences):
            own = _NAMED.sub(" ", sentence)
            hits = [_BOX_OF.match(sentence)] if block.box and j == 0 else list(_NAMED.finditer(sentence))
            for number in {int(hit[1]) for hit in hits if hit}:
                mention = _Mention(block, own, " ".join([own, *_up_to_named(sentences[j + 1 :])]))
                if block.box and j == 0:
                    boxes[number].append(mention)
                elif not block.is_quoted:
                    prose[number].append(mention)
    return boxes, prose


def _content(block: _Block, numbers: dict[str, int]) -> str:
    """Return a block's text; a wrapped box as one line if that names a task."""
    return block.box.text if block.box and _name(block.box.text) in numbers else block.content


def _todo_blocks(evidence: TaskEvidence) -> Iterator[_Block]:
    for todo in evidence.todos:
        yield _Block(todo.text, box=ChecklistTask(todo.text, todo.is_done, 0, 0), is_own_list=True)


def _blocks(message: str) -> Iterator[_Block]:
    """Yield the blocks of the message, without code and raw HTML."""
    boxes = {box.line: box for box in boxes_of(message)}
    heading, introduction, parents = "", "", [""]
    quotes = 0
    previous: Token | None = None
    begins_item = False
    for token in blocks(message):
        quotes += token.nesting if token.type.startswith("blockquote") else 0
        if token.type == "list_item_open":
            parents.append("")
            begins_item = True
        elif token.type == "list_item_close":
            parents.pop()
        elif token.type == "inline" and token.map and previous:
            text = "\n".join(shown_text(line) for line in token.content.split("\n"))
            box = boxes.get(token.map[0] + 1) if begins_item else None
            lead = _plain(" ".join([heading, introduction if len(parents) > 1 else "", *parents[:-1]]))
            content = _BOX.sub("", text, count=1) if box else text
            yield _Block(content, lead, box, quotes > 0, len(parents) - 1, begins_item)
            is_introduction = text.rstrip("*_ ").endswith(":")
            if previous.type == "heading_open":
                heading, introduction = text, ""
            elif len(parents) == 1:
                introduction = text.rpartition("\n")[2] if is_introduction else ""
            elif begins_item and is_introduction:
                parents[-1] = content
            begins_item = False
        previous = token


def _following(found: Sequence[_Block], marked: Sequence[str], i: int) -> Iterator[str]:
    """Yield the texts that belong to an entry: its further paragraphs, and entries below it that name no task."""
    for k in range(i + 1, len(found)):
        block, text = found[k], marked[k]
        is_below = block.depth > found[i].depth or (0 < block.depth == found[i].depth and not block.begins_item)
        if not is_below or block.box or _NAMED.search(text):
            return
        yield text


def _up_to_named(sentences: Sequence[str]) -> Iterator[str]:
    for sentence in sentences:
        if _NAMED.search(sentence):
            return
        yield sentence


def _any_of(names: Sequence[str]) -> re.Pattern[str]:
    longest_first = sorted(names, key=len, reverse=True)
    return re.compile(rf"(?<!\w)(?:{'|'.join(map(re.escape, longest_first)) or '(?!)'})(?!\w)")


def _with_marks(content: str, pattern: re.Pattern[str], numbers: dict[str, int]) -> str:
    """Replace each task's name by a mark, so that its words do not count as words about it."""
    return pattern.sub(lambda hit: f"\x00{numbers[hit[0]]}\x00", _plain(content))


def _plain(text: str) -> str:
    """Normalize a text for comparison: no markup, one case, one apostrophe, single blanks; line breaks stay."""
    lines = _MARKUP.sub("", text.replace("\N{RIGHT SINGLE QUOTATION MARK}", "'")).casefold().split("\n")
    return "\n".join(" ".join(line.split()) for line in lines)


def _name(text: str) -> str:
    return _plain(text).rstrip(".;:,!") or _plain(text)


def _is_telling(name: str) -> bool:
    return len(name) >= _SHORTEST_NAME or " " in name
