"""The acceptance criteria of a work item, and their checklist in the pull request that implements it.

The checklist stands between two markers, so that it is found again. A box belongs to a criterion by its text alone:
the text of the posted box, which is the same whenever the same criterion is posted again.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Collection, Iterator, Sequence
from itertools import accumulate

from accord.text.markdown import as_code, bare_title
from accord.text.markers import defuse, write_marker
from accord.text.outline import ChecklistTask, ListItem, Section, sections, tasks, with_ticks
from accord.text.posting import PostingPolicy
from accord.text.redaction import Redactor

TITLE = "acceptance criteria"
MOST_CHARACTERS = 20_000
"""The checklist's share of a body of 65,536 characters."""

_START = write_marker("criteria")
_END = write_marker("criteria-end")
_HEADING = "### Acceptance criteria"
_OPEN = "- [ ] "


def criteria_sections(body: str) -> list[Section]:
    """Return the sections of a work item's body that list its acceptance criteria, and those below them."""
    found, level = [], 0
    for section in sections(body):
        level = level if 0 < level < section.level else section.level if bare_title(section.title) == TITLE else 0
        found += [section] if level else []
    return found


def criteria_in(body: str) -> list[str]:
    """Return the acceptance criteria of a work item in its order: the text of each box, and of entries without one."""
    entries = (entry for section in criteria_sections(body) for entry in unboxed_entries(section.items))
    found = sorted([(box.line, box.text) for box in _item_boxes(body)] + [(each.line, each.text) for each in entries])
    return list(dict.fromkeys(text for _, text in found if text))


def unboxed_entries(entries: Sequence[ListItem]) -> Iterator[ListItem]:
    """Yield the entries without a box that are neither below one with a box nor the title of such entries."""
    depth = 0
    for i, entry in enumerate(entries):
        depth = depth if 0 < depth < entry.depth else entry.depth if entry.checked is not None else 0
        end = next((at for at in range(i + 1, len(entries)) if entries[at].depth <= entry.depth), len(entries))
        if not depth and all(each.checked is None for each in entries[i:end]):
            yield entry


def checklist(criteria: Sequence[str], before: str, make_safe: Callable[[str], str], item: int) -> str:
    """Return the marked section with a box for each criterion; empty without criteria.

    ``before`` is the body that holds the section now: a ticked box with the same text stays ticked. A box stands for
    criteria that do not fit.
    """
    ticked = {task.text for task in criteria_boxes(before) if task.is_checked}
    lines = list(dict.fromkeys(filter(None, (posted_line(text, make_safe) for text in criteria))))
    sizes = accumulate(len(line) + 1 for line in lines)
    shown = [line for line, size in zip(lines, sizes, strict=True) if size <= MOST_CHARACTERS]
    if len(shown) < len(lines):
        shown.append(f"{_OPEN}Meet the other acceptance criteria of #{item} ({len(lines) - len(shown)})")
    if not shown:
        return ""
    boxes = [line.replace(_OPEN, "- [x] ", 1) if line.removeprefix(_OPEN) in ticked else line for line in shown]
    return "\n".join([_START, _HEADING, "", *boxes, "", _END])


def posted_text(text: str, secrets: Redactor, policy: PostingPolicy) -> str:
    """Return Markdown made safe for a pull request's body, which a squash merge makes a commit message."""
    from accord.text.sanitise import sanitise
    from accord.text.words import as_message

    return as_message(defuse(sanitise(text, secrets=secrets, policy=policy).text)[0].rstrip())


def posted_line(text: str, make_safe: Callable[[str], str]) -> str:
    """Return a criterion as an open box whose text is read back unchanged, in code if that takes it."""
    for words in (text, as_code(text)):
        line = make_safe(_OPEN + words)
        found = tasks(line)
        if len(found) == 1 and line == _OPEN + found[0].text:
            return line
    return ""


def criteria_boxes(body: str) -> list[ChecklistTask]:
    """Return the boxes of the marked section of a pull request's body; none without a section."""
    _, start, rest = body.partition(_START)
    section, end, _ = rest.partition(_END)
    if not start or not end:
        return []
    first = len(body) - len(start + rest)
    return [task for task in tasks(body) if first < task.mark < first + len(start + section)]


def with_item_ticks(body: str, done: Collection[str], make_safe: Callable[[str], str]) -> str:
    """Tick the boxes of a work item's criteria that are ``done``, as posted; every other character stays."""
    wanted = [task for task in _item_boxes(body) if posted_line(task.text, make_safe).removeprefix(_OPEN) in done]
    return with_ticks(body, wanted)


def _item_boxes(body: str) -> list[ChecklistTask]:
    own = {section.line for section in criteria_sections(body)}
    lines = [section.line for section in sections(body)]
    return [task for task in tasks(body) if lines[max(0, bisect_left(lines, task.line) - 1)] in own] if own else []
