"""Asking a person: one comment that says why and what to do, because nobody is told of a comment that changes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from accord.github.markers import find_markers, write_marker
from accord.github.once import send_once
from accord.kernel.markdown_text import cell
from accord.loops.reasons import NEEDS_HUMAN

if TYPE_CHECKING:
    from accord.github.comments import Comment
    from accord.loops.models import LoopName, LoopState
    from accord.loops.site import Site

MARKER = "loop-asks"


def ask_once(site: Site, loop: LoopName, state: LoopState) -> None:
    """Comment what ``state.told`` says, once for this reason after so many runs."""
    told = state.told
    if told is None:
        return
    fields = {"loop": loop, "why": told.reason, "after": str(state.iterations)}

    def look() -> Comment | None:
        ours = (comment for comment in site.github.comments(site.number) if site.identity.counts(comment.author))
        return next((comment for comment in ours if fields in find_markers(comment.body, MARKER)), None)

    said = [f"**accord {loop} needs a person** and has put `{NEEDS_HUMAN}` on.", cell(told.said), cell(told.message)]
    body = "\n\n".join([*filter(None, said), write_marker(MARKER, **fields)])
    if look() is None:
        send_once(lambda: site.github.create_comment(site.number, body), look, site.clock)
