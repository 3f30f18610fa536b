"""What a loop writes beside its state: ticks, a question to a person, labels, and another start of its workflow.

Each finds out first whether it was done already, so that a command that was killed can do it all again.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

from accord.github.markers import find_markers, write_marker
from accord.github.once import send_once, send_until_answered
from accord.github.port import NotThere
from accord.kernel.errors import Stopped
from accord.kernel.markdown_text import cell
from accord.loops.reasons import NEEDS_HUMAN
from accord.loops.ticking import tick

if TYPE_CHECKING:
    from collections.abc import Sequence

    from accord.github.comments import Comment
    from accord.github.pull_port import Pull
    from accord.loops.models import LoopName, LoopState
    from accord.loops.site import Site
    from accord.runner.models import RunOutputs

ASKS = "loop-asks"
TRIES = 5


def tick_body(site: Site, pull: Pull, outputs: RunOutputs, wanted: str) -> None:
    """Tick completed tasks in the body as it is now, unless it is the one that is ``wanted`` already.

    A body that a person changes meanwhile is read again. Raises Stopped when that never ends.
    """
    for _ in range(TRIES):
        ticked = tick(pull.body, outputs)
        if identity_of(pull.body) == wanted or ticked.body == pull.body:
            return
        if site.github.change_body(pull.number, was=pull.body, body=ticked.body):
            return
        pull = site.pull()
    raise Stopped(f"The body of #{pull.number} changed {TRIES} times in a row.", mend="Run the same command again.")


def identity_of(body: str) -> str:
    """Name a body by a digest."""
    return hashlib.sha256(body.encode("utf-8", "replace")).hexdigest()[:20]


def ask_once(site: Site, loop: LoopName, state: LoopState) -> None:
    """Comment what ``state.told`` says, once for this reason after so many runs.

    It is a comment of its own, because nobody is told of one that changes.
    """
    told = state.told
    if told is None:
        return
    said = [f"**accord {loop} needs a person** and has put `{NEEDS_HUMAN}` on.", cell(told.said), cell(told.message)]
    text = "\n\n".join(filter(None, said))
    comment_once(site, text, ASKS, loop=loop, pull=str(site.number), why=told.reason, after=str(state.iterations))


def comment_once(site: Site, text: str, marker: str, **fields: str) -> None:
    """Comment on the pull request, unless a comment of ours has this marker with these fields."""

    def look() -> Comment | None:
        ours = (comment for comment in site.github.comments(site.number) if site.identity.counts(comment.author))
        return next((comment for comment in ours if fields in find_markers(comment.body, marker)), None)

    body = f"{text}\n\n{write_marker(marker, **fields)}"
    if look() is None:
        send_once(lambda: site.github.create_comment(site.number, body), look, site.clock)


def relabel(site: Site, there: Sequence[str], added: Sequence[str], removed: Sequence[str]) -> None:
    """Put labels on and take them off, where that changes anything."""
    known = {label.casefold() for label in there}
    wanted = {label.casefold() for label in added}
    if missing := [label for label in dict.fromkeys(added) if label.casefold() not in known]:
        site.github.add_labels(site.number, missing)
    for label in dict.fromkeys(removed):
        if label.casefold() in known - wanted:
            site.github.remove_label(site.number, label)


def start(site: Site, workflow: str, number: int) -> None:
    """Start a workflow of the default branch for a pull request.

    Twice is harmless: the second one finds a run under way, or the next turn due. Raises NotThere where the default
    branch has no such workflow.
    """
    branch = site.github.repository().default_branch
    inputs = {"pr_number": str(number)}
    try:
        send_until_answered(lambda: site.github.dispatch_workflow(workflow, branch, inputs), site.clock)
    except NotThere:
        raise NotThere(
            f"The workflow {workflow} cannot be started: {branch} of {site.repository} has none, or the token may not.",
            mend="Name a file of .github/workflows by --dispatch-workflow, and give the token actions: write.",
        ) from None
