"""Texts of the loops: parts of a prompt, texts to post, and digests."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, NamedTuple

from accord.github.models import PullFile
from accord.text.markers import defuse
from accord.text.posting import PostingPolicy
from accord.text.redaction import Redactor

if TYPE_CHECKING:
    from accord.text.sanitise import Sanitised

APPENDIX_CHARACTERS = 30_000
"""Below 128 KiB in any script: one environment value or argument holds no more (Linux, MAX_ARG_STRLEN)."""

DIFF_CHARACTERS = 60_000
_CUT = "\n\n[…]"


def join_parts(parts: list[str], rest: str) -> str:
    """Join as many parts of a prompt as fit; ``rest`` with ``{n}`` says how many did not."""
    shown: list[str] = []
    size = 0
    for part in parts:
        size += len(part) + 2
        if size > APPENDIX_CHARACTERS:
            break
        shown.append(part)
    missing = len(parts) - len(shown)
    return "\n\n".join([*shown, rest.format(n=missing)] if missing else shown)


class Poster(NamedTuple):
    """Makes texts safe to post: without these secrets, and with what the policy allows."""

    secrets: Redactor
    policy: PostingPolicy

    def text(self, text: str, characters: int) -> str:
        """Return Markdown at most twice ``characters`` long."""
        from accord.text.sanitise import sanitise

        return self._shorten(text.replace("\r\n", "\n"), sanitise, characters, 2 * characters, _CUT)

    def line(self, text: str, characters: int) -> str:
        """Return a title, never longer than ``characters``."""
        from accord.text.sanitise import sanitise_line

        return self._shorten(text, sanitise_line, characters, characters, "…")

    def cell(self, text: str) -> str:
        """Return a cell of a table."""
        from accord.text.sanitise import sanitise_cell

        return sanitise_cell(text, secrets=self.secrets, policy=self.policy)

    def _shorten(self, text: str, clean: Callable[..., Sanitised], characters: int, most: int, end: str) -> str:
        """Redact before the cut, and cut before the rest, which a cut could undo; cut more where it made it longer."""
        text = self.secrets(text)
        cut = text if len(text) <= characters else text[: characters - len(end)] + end
        while len(safe := defuse(clean(cut, secrets=self.secrets, policy=self.policy).text)[0].strip()) > most:
            characters //= 2
            cut = text[:characters] + end
        return safe


def diff_of(files: Iterable[PullFile]) -> str:
    """Return the files of a pull request as one diff of at most ``DIFF_CHARACTERS``; GitHub omits some contents."""
    diff = ""
    for file in files:
        old = file.previous_path or file.path
        diff += f"--- {old if file.status != 'added' else '/dev/null'}\n"
        diff += f"+++ {file.path if file.status != 'removed' else '/dev/null'}\n"
        diff += f"({file.status}; content not shown)\n" if file.patch is None else f"{file.patch}\n"
    return diff[:DIFF_CHARACTERS]


def digest(body: str) -> str:
    """Return a digest that identifies a body."""
    return hashlib.sha256(body.encode("utf-8", "replace")).hexdigest()[:20]
