"""Texts of the loops: parts of a prompt, texts to post, and digests."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable

from accord.github.models import PullFile
from accord.text.markers import defuse
from accord.text.posting import PostingPolicy
from accord.text.redaction import Redactor

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


def text_to_post(text: str, secrets: Redactor, policy: PostingPolicy, characters: int) -> str:
    """Return Markdown that is safe to post, at most twice ``characters`` long; redacted before it is cut."""
    from accord.text.sanitise import sanitise

    def make_safe(cut: str) -> str:
        return defuse(sanitise(cut, secrets=secrets, policy=policy).text)[0].strip()

    return _shorten(secrets(text.replace("\r\n", "\n")), make_safe, characters, 2 * characters, _CUT)


def line_to_post(text: str, secrets: Redactor, policy: PostingPolicy, characters: int) -> str:
    """Return a title that is safe to post, never longer than ``characters``."""
    from accord.text.sanitise import sanitise_line

    def make_safe(cut: str) -> str:
        return defuse(sanitise_line(cut, secrets=secrets, policy=policy).text)[0].strip()

    return _shorten(secrets(text), make_safe, characters, characters, "…")


def _shorten(text: str, make_safe: Callable[[str], str], characters: int, most: int, end: str) -> str:
    """Cut before the text is made safe, since a cut afterwards could undo that; cut more where that made it longer."""
    safe = make_safe(text if len(text) <= characters else text[: characters - len(end)] + end)
    while len(safe) > most:
        characters //= 2
        safe = make_safe(text[:characters] + end)
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
