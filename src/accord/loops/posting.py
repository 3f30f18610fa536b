"""What an agent wrote, as the loops post it: without what would act, and never longer than it may be."""

from __future__ import annotations

from typing import TYPE_CHECKING

from accord.github.markers import defuse

if TYPE_CHECKING:
    from accord.kernel.redaction import Redactor

_CUT = "\n\n[…]"


def text_to_post(text: str, secrets: Redactor, characters: int) -> str:
    """Return Markdown that may be posted; of a longer text the first ``characters``, cut before it is made fit.

    Secrets go first, as half of one is not found any more. A marker is made void in code too: to a program it is one.
    """
    from accord.kernel.outgoing import sanitise

    text = secrets(text.replace("\r\n", "\n"))
    cut = text if len(text) <= characters else text[:characters] + _CUT
    return defuse(sanitise(cut, secrets=secrets).text)[0].strip()


def line_to_post(text: str, secrets: Redactor, characters: int) -> str:
    """Return a title that may be posted."""
    from accord.kernel.outgoing import sanitise_line

    text = secrets(text)
    made = sanitise_line(text if len(text) <= characters else text[:characters] + "…", secrets=secrets).text
    return defuse(made)[0]
