"""Cut a sanitised text in two, so that nothing comes to life."""

from __future__ import annotations

from typing import TYPE_CHECKING

from accord.text.markdown import fence_for, in_fence, unfenced
from accord.text.redaction import Redactor
from accord.text.regions import parse_markdown
from accord.text.sanitise import sanitise

if TYPE_CHECKING:
    from collections.abc import Sequence


_NO_SECRETS = Redactor(image_hosts=("*",))
_FENCE_LINES = 8
"""The length of two fences of three, with their line ends."""


def cut(text: str, space: int) -> tuple[str, str]:
    """Cut a sanitised text so that the head fits into ``space`` characters, at least 20: after a paragraph or a line.

    Head and tail make up the text again, without the fences if it is shown as code.
    """
    code = parse_markdown(text).code
    for end in ("\n\n", "\n", " "):
        position = _last(text, end, space, code)
        if text[:position].strip() and _is_fit(text[:position]) and _is_fit(text[position:]):
            return text[:position], text[position:]
    return _cut_code(unfenced(text), space)


def _last(text: str, end: str, space: int, code: Sequence[tuple[int, int]]) -> int:
    """Return where the last of these ends outside of code, in the second half of the space; 0 if none does."""
    limit = space
    while (position := text.rfind(end, space // 2, limit)) >= 0:
        inside = [start for start, stop in code if start < position + len(end) < stop]
        if not inside:
            return position + len(end)
        limit = inside[0]
    return 0


def _is_fit(text: str) -> bool:
    """Return whether a part is harmless. Guards in words of the repository look hidden here."""
    return sanitise(text, secrets=_NO_SECRETS).counts.keys() <= {"hidden"}


def _cut_code(code: str, space: int) -> tuple[str, str]:
    overhead = 2 * (len(fence_for(code)) + 1)
    size = space - overhead if 2 * overhead <= space else (space - _FENCE_LINES) // 2
    position = code.rfind("\n", size // 2, size) + 1 or size
    return in_fence(code[:position]), in_fence(code[position:])
