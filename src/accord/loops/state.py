"""Where a loop's state is kept: a chain of commits at a ref of its own, and one comment that shows its end.

A write is first one of the chain (``accord.github.state``), where of two runs at once the second one is refused, reads
what the first one wrote, and thinks again; then one of the comment. A run killed between the two leaves a comment that
is one revision behind until the next write: there is no lock to go stale.

Readers ask the comment alone. What they decide on an old state is judged anew before it is written. The last writer to
touch the comment looks at the ref afterwards, so at rest both say the same. Of two comments, made by two first writers,
the oldest stays.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from accord.core.errors import Refused, Stopped
from accord.github.comments import Comment, refuse_lost
from accord.github.models import NotThere
from accord.github.once import send_once
from accord.github.state import Chain, Link, append
from accord.github.state import newest as newest_link
from accord.loops.comments import read_shown, read_state, state_text, write_comment
from accord.loops.models import Closed, Iteration, LoopName, LoopState

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from accord.core.clock import Clock
    from accord.github.client import GitHub
    from accord.loops.comments import Shown


TRIES = 12
PAUSE_SECONDS = 1.0
README = (
    "This ref is kept by accord. Each commit's message holds the state of a loop that works on a pull request; "
    "the newest is shown in a comment there. It may be deleted when the pull request is closed.\n"
)


@dataclass(frozen=True)
class Place:
    """Where the state of one loop on one pull request is kept; ``is_ours`` tells our own logins."""

    github: GitHub
    pull: int
    loop: LoopName
    is_ours: Callable[[str], bool]
    clock: Clock

    @property
    def chain(self) -> Chain:
        """The ref whose commits hold the states."""
        return Chain(self.github, f"refs/accord/loops/{self.pull}/{self.loop}", README, self.clock)


@dataclass(frozen=True)
class Kept:
    """A state, the commit that holds it (None where none does), and our comments, oldest first.

    ``is_shown`` is False where the commits alone tell it, because no comment of ours can be read.
    """

    state: LoopState
    link: Link | None = None
    comments: tuple[Comment, ...] = ()
    is_shown: bool = True


def load(place: Place) -> Kept:
    """Read the state: one request, and one or two more where it is not one comment of ours that tells it.

    A comment that a person deleted or spoiled resets nothing, and one too many changes nothing: the commits are asked
    then. A workflow that repeats what strangers say under our login may have written it.
    """
    comments = _ours(place)
    shown = [found for comment in comments if (found := _shown(place, comment)) and found.state]
    if len(comments) != 1 or not shown:
        kept = newest(place, comments)
        if kept.link or not shown:
            return kept
    last = max(shown, key=lambda found: found.state.revision if found.state else 0)
    link = Link("", last.commit, last.tree) if last.commit else None
    return Kept(last.state or LoopState(loop=place.loop), link, comments)


def newest(place: Place, comments: tuple[Comment, ...] | None = None) -> Kept:
    """Read the state from its commits, which are ahead of the comment where that could not be written."""
    kept = _at_ref(place)
    comments = _ours(place) if comments is None else comments
    return replace(kept or Kept(LoopState(loop=place.loop)), comments=comments, is_shown=kept is None)


def change(place: Place, kept: Kept, step: Callable[[LoopState], LoopState | None]) -> Kept:
    """Write ``step(state)``, of whatever state is there when it is written; ``kept`` is what was read last.

    ``step`` is pure, may be called several times, and returns None, or the state itself, where there is nothing to
    write. It must take its own result for done, so that the same command, run again after a crash, changes nothing.
    Raises Stopped when others were faster every time.
    """
    known = kept
    for _ in range(TRIES):
        wanted = step(kept.state)
        if wanted is None or wanted == kept.state:
            return kept if kept is known and kept.is_shown else _show(place, kept)
        wanted = wanted.model_copy(update={"revision": kept.state.revision + 1})
        title = f"{place.loop} of #{place.pull}, revision {wanted.revision}"
        link = append(place.chain, kept.link, state_text(wanted), title)
        if link is not None:
            return _show(place, Kept(wanted, link, kept.comments))
        kept = replace(_at_ref(place) or replace(kept, link=None), comments=kept.comments)
        place.clock.sleep(PAUSE_SECONDS)
    raise Stopped(
        f"The state of {place.loop} on #{place.pull} was changed by others {TRIES} times in a row.",
        hint="Run the same command again.",
    )


def _at_ref(place: Place) -> Kept | None:
    """Read the newest state from the ref; None where there is none."""
    link = newest_link(place.chain)
    if link is None:
        return None
    state = read_state(link.text, place.loop)
    if state is None:
        raise Refused(
            f"{place.chain.ref} holds no state of {place.loop} that this version can read.",
            hint="Use the version that wrote it, or delete the ref to go on from the comment.",
        )
    return Kept(state, link)


def _show(place: Place, kept: Kept) -> Kept:
    """Bring the comment in step, and look whether it still is."""
    for _ in range(TRIES):
        comments = kept.comments or _made(place, kept)
        try:
            body = _comment(place, kept)
            if comments[0].body != body:
                changed = place.github.change_comment(comments[0].id, body)
                comments = (changed, *comments[1:])
            for spare in comments[1:]:
                place.github.delete_comment(spare.id)
        except NotThere:
            kept = replace(kept, comments=())
            continue
        kept = replace(kept, comments=comments[:1])
        tip = place.github.ref(place.chain.ref)
        if tip in (kept.link and kept.link.sha, None):
            return kept
        kept = replace(_at_ref(place) or kept, comments=kept.comments)
    return kept


def _made(place: Place, kept: Kept) -> tuple[Comment, ...]:
    """Return our comments, after one was made if there was none.

    The first writer makes it. Who comes later gives the first one time, and makes it only if nobody did.
    """

    def look() -> Comment | None:
        return next(iter(_ours(place)), None)

    for wait in (0.0, PAUSE_SECONDS, 2 * PAUSE_SECONDS) if kept.state.revision > 1 else (0.0,):
        place.clock.sleep(wait)
        found = _ours(place)
        if found:
            return found
    body = _comment(place, kept)
    made = send_once(lambda: place.github.create_comment(place.pull, body), look, place.clock)
    refuse_lost(place.github, made, is_ours=place.is_ours(made.author))
    return _ours(place) or (made,)


def _ours(place: Place) -> tuple[Comment, ...]:
    listed = place.github.comments(place.pull)
    ours = [comment for comment in listed if place.is_ours(comment.author) and _shown(place, comment)]
    return tuple(sorted(ours, key=lambda comment: comment.id))


def _shown(place: Place, comment: Comment) -> Shown | None:
    return read_shown(comment.body, place.loop, place.pull)


def _comment(place: Place, kept: Kept) -> str:
    where = (kept.link.sha, kept.link.tree) if kept.link else ()
    return write_comment(kept.state, place.pull, *where)


class HistoryLine(Closed):
    """One run of a loop; the one schema of all lines."""

    version: int = 1
    pull: int
    loop: LoopName
    iteration: Iteration


def write_history(pull: int, loop: LoopName, iterations: Iterable[Iteration]) -> str:
    """Write one line a run, oldest first."""
    lines = (HistoryLine(pull=pull, loop=loop, iteration=iteration) for iteration in iterations)
    return "".join(line.model_dump_json() + "\n" for line in lines)
