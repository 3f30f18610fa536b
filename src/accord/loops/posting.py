"""What an agent wrote, as the loops post it: without what would act, and never longer than it may be."""

from __future__ import annotations

from typing import TYPE_CHECKING

from accord.github.markers import defuse

if TYPE_CHECKING:
    from collections.abc import Callable

    from accord.kernel.redaction import Redactor

_CUT = "\n\n[…]"


def text_to_post(text: str, secrets: Redactor, characters: int) -> str:
    """Return Markdown that may be posted, about ``characters`` of it and never twice as many.

    Secrets go first, as half of one is not found any more. A marker is made void in code too: to a program it is one.
    """
    from accord.kernel.outgoing.sanitise import sanitise

    def fit(cut: str) -> str:
        return defuse(sanitise(cut, secrets=secrets).text)[0].strip()

    return _short(secrets(text.replace("\r\n", "\n")), fit, characters, 2 * characters, _CUT)


def line_to_post(text: str, secrets: Redactor, characters: int) -> str:
    """Return a title that may be posted, never longer than ``characters``."""
    from accord.kernel.outgoing.sanitise import sanitise_line

    def fit(cut: str) -> str:
        return defuse(sanitise_line(cut, secrets=secrets).text)[0].strip()

    return _short(secrets(text), fit, characters, characters, "…")


def _short(text: str, fit: Callable[[str], str], characters: int, most: int, end: str) -> str:
    """Cut before the text is made fit, as what is cut afterwards may act again; made to grow, it is cut shorter."""
    made = fit(text if len(text) <= characters else text[: characters - len(end)] + end)
    while len(made) > most:
        characters //= 2
        made = fit(text[:characters] + end)
    return made
