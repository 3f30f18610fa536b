"""Cutting what was sanitised: a cut through code, a tag or a link would bring to life what was none.

``f(`@name`)`` cut after the backtick is a mention. So a text is cut where both halves are fit to be posted as they
are; where there is no such place, both are shown as code, in which nothing acts and no character is missing.
"""

from __future__ import annotations

from accord.kernel.outgoing import sanitise
from accord.kernel.outgoing_fences import fence_for, in_fence, unfenced
from accord.kernel.redaction import Redactor

_NO_SECRETS = Redactor()
_FENCE_LINES = 8
"""What two fences of three cost, with their line ends."""


def cut(text: str, room: int) -> tuple[str, str]:
    """Cut a sanitised text so that the head fits into ``room`` characters, at least 20: after a paragraph or a line.

    Head and tail make up the text again, without the fences if it is shown as code.
    """
    for end in ("\n\n", "\n", " "):
        position = text.rfind(end, room // 2, room)
        if position >= 0 and not text[: position + len(end)].isspace():
            head, tail = text[: position + len(end)], text[position + len(end) :]
            if _is_fit(head) and _is_fit(tail):
                return head, tail
    return _cut_code(unfenced(text), room)


def _is_fit(text: str) -> bool:
    return not sanitise(text, secrets=_NO_SECRETS).counts


def _cut_code(code: str, room: int) -> tuple[str, str]:
    overhead = 2 * (len(fence_for(code)) + 1)
    size = room - overhead if 2 * overhead <= room else (room - _FENCE_LINES) // 2
    position = code.rfind("\n", size // 2, size) + 1 or size
    return in_fence(code[:position]), in_fence(code[position:])
