"""Where a loop's state is kept: a chain of commits at a ref of its own, and one comment that shows its end.

GitHub changes a comment without asking what was in it before, so of two runs at once one would undo what the other
wrote. A ref moves only to a descendant of where it is, in one atomic step. So a write is: a commit that holds the new
state, with the commit of the known state as its parent; the ref, moved to it; then the comment. Whoever comes second is
refused by the ref, reads what the first one wrote, and thinks again. A run killed between two steps leaves a commit
that nobody knows, or a comment that is one revision behind until the next write: there is no lock to go stale.

Readers ask the comment alone. What they decide on an old state is judged anew before it is written. The last writer to
touch the comment looks at the ref afterwards, so at rest both say the same. Of two comments, made by two first writers,
the oldest stays.
"""

from __future__ import annotations

import secrets
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Protocol

from accord.github.comments import Comment, CommentPort
from accord.github.once import send_once
from accord.github.port import Conflict, NotThere
from accord.github.refs import Commit, RefPort
from accord.kernel.errors import Refused, Stopped
from accord.loops.models import LoopName, LoopState
from accord.loops.state_comment import read_shown, read_state, state_text, write_comment

if TYPE_CHECKING:
    from collections.abc import Callable

    from accord.kernel.clock import Clock

TRIES = 12
PAUSE_SECONDS = 1.0
README = (
    "This ref is kept by accord. Each commit's message holds the state of a loop that works on a pull request; "
    "the newest is shown in a comment there. It may be deleted when the pull request is closed.\n"
)


class Keeping(RefPort, CommentPort, Protocol):
    """What of GitHub the store needs: refs with ``contents: write``, comments with ``pull-requests: write``."""


@dataclass(frozen=True)
class Place:
    """Where the state of one loop on one pull request is kept; ``is_ours`` tells our own logins.

    ``writer`` is a word of this process alone: two writers that write the same in the same second would otherwise write
    the same commit, and both believe that it is theirs.
    """

    github: Keeping
    pull: int
    loop: LoopName
    is_ours: Callable[[str], bool]
    clock: Clock
    writer: str = field(default_factory=lambda: secrets.token_hex(8))

    @property
    def ref(self) -> str:
        """The ref whose commits hold the states."""
        return f"refs/accord/loops/{self.pull}/{self.loop}"


@dataclass(frozen=True)
class Kept:
    """A state, the commit and the tree that hold it (empty where nothing does), and our comments, oldest first.

    ``is_shown`` is False where the commits alone tell it, because no comment of ours can be read.
    """

    state: LoopState
    commit: str = ""
    tree: str = ""
    comments: tuple[Comment, ...] = ()
    is_shown: bool = True


def load(place: Place) -> Kept:
    """Read the state: one request, and one or two more where no comment of ours can be read.

    A comment that a person deleted or spoiled resets nothing: the commits are asked then.
    """
    comments = _ours(place)
    shown = [found for comment in comments if (found := read_shown(comment.body, place.loop)) and found.state]
    if not shown:
        kept = _at_ref(place)
        return replace(kept or Kept(LoopState(loop=place.loop)), comments=comments, is_shown=kept is None)
    newest = max(shown, key=lambda found: found.state.revision if found.state else 0)
    return Kept(newest.state or LoopState(loop=place.loop), newest.commit, newest.tree, comments)


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
        written = _write(place, kept, wanted)
        if written is not None:
            return _show(place, written)
        kept = replace(_at_ref(place) or replace(kept, commit="", tree=""), comments=kept.comments)
        place.clock.sleep(PAUSE_SECONDS)
    raise Stopped(
        f"The state of {place.loop} on #{place.pull} was changed by others {TRIES} times in a row.",
        mend="Run the same command again.",
    )


def forget(place: Place) -> None:
    """Delete the ref of a pull request that is closed; the comment stays, and holds the last state."""
    place.github.delete_ref(place.ref)


def _write(place: Place, kept: Kept, state: LoopState) -> Kept | None:
    """Make the state the next one; None when ``kept`` is not the newest any more."""
    github = place.github
    try:
        tree = kept.tree or send_once(lambda: github.create_tree({"README.md": README}), _nothing, place.clock)
        parents = [kept.commit] if kept.commit else []
        message = (
            f"{place.loop} of #{place.pull}, revision {state.revision}, by {place.writer}\n\n{state_text(state)}\n"
        )
        commit = send_once(lambda: github.create_commit(message, tree, parents), _nothing, place.clock)
    except Conflict:  # the parent or the tree is gone: the ref was deleted, and git has tidied up
        return None
    if _move(place, commit):
        return Kept(state, commit.sha, tree, kept.comments)
    return _beyond(place, commit, state.revision, kept)


def _move(place: Place, commit: Commit) -> bool:
    """Make the commit the end of the ref, if the ref still ends at its parent."""
    if commit.parents:
        return place.github.forward_ref(place.ref, commit.sha)

    def look() -> bool | None:
        tip = place.github.ref(place.ref)
        return None if tip is None else tip == commit.sha

    return send_once(lambda: place.github.create_ref(place.ref, commit.sha), look, place.clock)


def _beyond(place: Place, commit: Commit, revision: int, kept: Kept) -> Kept | None:
    """Return the newest state if it follows ours: our answer was lost, and others have gone on meanwhile."""
    newest = _at_ref(place)
    sha, reached = (newest.commit, newest.state.revision) if newest else ("", 0)
    for _ in range(reached - revision):
        earlier = place.github.commit_object(sha)
        sha = earlier.parents[0] if earlier and earlier.parents else ""
    return replace(newest, comments=kept.comments) if newest and sha == commit.sha else None


def _at_ref(place: Place) -> Kept | None:
    """Read the newest state from the ref; None where there is none."""
    sha = place.github.ref(place.ref)
    commit = place.github.commit_object(sha) if sha else None
    if commit is None:
        return None
    state = read_state(commit.message.partition("\n\n")[2], place.loop)
    if state is None:
        raise Refused(
            f"{place.ref} holds no state of {place.loop} that this version can read.",
            mend="Use the version that wrote it, or delete the ref to go on from the comment.",
        )
    return Kept(state, commit.sha, commit.tree)


def _show(place: Place, kept: Kept) -> Kept:
    """Bring the comment in step, and look whether it still is."""
    for _ in range(TRIES):
        comments = kept.comments or _made(place, kept)
        try:
            body = write_comment(kept.state, kept.commit, kept.tree)
            if comments[0].body != body:
                changed = place.github.change_comment(comments[0].id, body)
                comments = (changed, *comments[1:])
            for spare in comments[1:]:
                place.github.delete_comment(spare.id)
        except NotThere:
            kept = replace(kept, comments=())
            continue
        kept = replace(kept, comments=comments[:1])
        tip = place.github.ref(place.ref)
        if tip in (kept.commit, None):
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
    body = write_comment(kept.state, kept.commit, kept.tree)
    made = send_once(lambda: place.github.create_comment(place.pull, body), look, place.clock)
    if not place.is_ours(made.author):
        place.github.delete_comment(made.id)  # nobody would find it again, so each write would make another
        raise Refused(
            f"The token writes as {made.author}, which is not who it is said to be.",
            mend=f"Pass --identity '{made.author}', or the input identity of the action or workflow.",
        )
    return _ours(place) or (made,)


def _ours(place: Place) -> tuple[Comment, ...]:
    listed = place.github.comments(place.pull)
    ours = [comment for comment in listed if place.is_ours(comment.author) and read_shown(comment.body, place.loop)]
    return tuple(sorted(ours, key=lambda comment: comment.id))


def _nothing() -> None:
    """Look for nothing: an object that no ref knows may be made twice."""
    return
