"""Changes of single places of a workflow's text, which keep every other character. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from accord.files.yaml import Place


@dataclass(frozen=True)
class Edit:
    """A new text for a part of a text."""

    start: int
    end: int
    text: str


def with_edits(text: str, edits: Iterable[Edit]) -> str:
    """Return a text with all edits, in the line ends that it has."""
    has_returns = "\r\n" in text
    for edit in sorted(edits, key=lambda edit: edit.start, reverse=True):
        added = edit.text.replace("\r\n", "\n").replace("\n", "\r\n") if has_returns else edit.text
        text = text[: edit.start] + added + text[edit.end :]
    return text


def line_start(text: str, index: int) -> int:
    """Return the start of the line of a place."""
    return text.rfind("\n", 0, index) + 1


def column(text: str, index: int) -> int:
    """Return how far a place is from the start of its line."""
    return index - line_start(text, index)


def add_setting(text: str, path: str, places: Mapping[str, Place], setting: str) -> Edit | None:
    """Add an entry to the ``with`` of the step at a pointer; None where its form leaves no sure place."""
    step, given, uses = places.get(path), places.get(path + "/with"), places.get(path + "/uses")
    if step is None or uses is None or step.is_shared or (given and (given.is_shared or given.kind != "mapping")):
        return None
    plain = setting.partition(" #")[0]
    if given:
        first = min(
            (place.key for key, place in places.items() if key.rpartition("/")[0] == path + "/with"), default=-1
        )
        if first < 0:
            return None
        return Edit(first, first, f"{plain}, " if given.is_flow else f"{setting}\n{' ' * column(text, first)}")
    if step.is_flow:
        return Edit(uses.end, uses.end, f", with: {{{plain}}}")
    end = text.find("\n", uses.end)
    end = len(text) if end < 0 else end - (text[end - 1] == "\r")
    indent = column(text, uses.key)
    return Edit(end, end, f"\n{' ' * indent}with:\n{' ' * (indent + 2)}{setting}")
