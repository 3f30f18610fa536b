"""What a patch changes: the merge, and the places at which two documents differ.

A place is a tuple of keys. A list is one value: it changes as a whole. Nothing, null and an empty list, object or text
are the same here, so that filling in a default is no change.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

Place = tuple[str, ...]


class Change(NamedTuple):
    """One place, and the values before and after; None where there is nothing."""

    place: Place
    before: Any
    after: Any


def deep_merged(task: Mapping[str, Any], patch: Mapping[str, Any]) -> dict[str, Any]:
    """Lay a patch over a document: objects are merged, key by key; any other value takes the place of the old one."""
    result = dict(task)
    for key, value in patch.items():
        old = result.get(key)
        result[key] = deep_merged(old, value) if isinstance(old, dict) and isinstance(value, dict) else value
    return result


def changes(before: Any, after: Any, place: Place = ()) -> Iterator[Change]:
    """Yield every place at which the documents differ, as deep as both are objects or one of them is nothing."""
    if before == after or (is_empty(before) and is_empty(after)):
        return
    if (isinstance(before, dict) or is_empty(before)) and (isinstance(after, dict) or is_empty(after)):
        old, new = before or {}, after or {}
        if isinstance(old, dict) and isinstance(new, dict):
            for key in dict.fromkeys([*old, *new]):
                yield from changes(old.get(key), new.get(key), (*place, key))
            return
    yield Change(place, before, after)


def is_empty(value: Any) -> bool:
    """Tell whether a value says nothing. False and 0 say something."""
    return value is None or value in ({}, [], "")


def value_at(document: Any, place: Place) -> Any:
    """Return what stands at a place; None where nothing does."""
    for key in place:
        if not isinstance(document, dict):
            return None
        document = document.get(key)
    return document


def lies_in(place: Place, other: Place) -> bool:
    """Tell whether one place is the other or a part of it."""
    return place[: len(other)] == other


def touch(place: Place, other: Place) -> bool:
    """Tell whether one of the places is a part of the other."""
    return lies_in(place, other) or lies_in(other, place)
