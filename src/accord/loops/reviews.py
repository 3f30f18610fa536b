"""The reviews of a pull request: who requests changes and who approves, and what the agent is shown of it.

Only reviews of accord itself and of people with write access count, and of each reviewer the newest. The marker of
accord's own review has its verdict, because GitHub accepts none on one's own pull request.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import islice
from typing import Literal

from pydantic import Field

from accord.github.graphql import ReviewThread
from accord.github.models import Identity, Review
from accord.loops.bot_comments import Thread, thread_facts, thread_part
from accord.loops.facts import Gathered, LoopContext
from accord.loops.models import Closed, Identifier, LoopFacts
from accord.loops.questions import KEEPALIVE, has_label
from accord.text.markers import REVIEW, REVIEW_GONE, find_markers, take_markers
from accord.text.outline import tasks
from accord.text.untrusted import DATA as UNTRUSTED
from accord.text.untrusted import fenced_data

ReviewVerdict = Literal["approve", "needs-changes"]

MOST_THREADS = 30
BODY_CHARACTERS = 10_000
_VERDICTS: dict[str, ReviewVerdict] = {"APPROVED": "approve", "CHANGES_REQUESTED": "needs-changes"}
_ASKS: dict[str, ReviewVerdict] = {"approve": "approve", "needs-changes": "needs-changes"}
_OWN = "accord"


class Opinion(Closed):
    """The newest verdict of one reviewer, of this commit; ``author`` is ``accord`` for a review of accord itself."""

    id: int = Field(ge=1)
    author: str
    verdict: ReviewVerdict
    commit: Identifier
    body: str = ""


def is_complete(facts: LoopFacts) -> bool:
    """Tell whether keepalive is on, and every task of the body is ticked."""
    listed = tasks(facts.pull.body)
    return has_label(facts, KEEPALIVE) and bool(listed) and all(task.is_checked for task in listed)


def is_approved(opinions: Sequence[Opinion], head: str) -> bool:
    """Tell whether a review approves this head, and no reviewer still requests changes."""
    approves = any(opinion.verdict == "approve" and opinion.commit == head for opinion in opinions)
    return approves and all(opinion.verdict == "approve" for opinion in opinions)


def read_reviews(gathered: Gathered) -> Gathered:
    """Read who requests changes and who approves, once every task is ticked."""
    if not is_complete(gathered.facts):
        return gathered
    context = gathered.context
    reviews = opinions_of(context.github.reviews(context.number), lambda: context.identity, context.is_trusted)
    return gathered.with_facts(reviews=reviews)


def opinions_of(
    reviews: Sequence[Review], identity: Callable[[], Identity], is_trusted: Callable[[str], bool]
) -> tuple[Opinion, ...]:
    """Return the newest verdict of each reviewer who counts; a dismissed one counts no longer.

    ``identity`` and ``is_trusted`` are asked only where a review needs them.
    """
    newest: dict[str, Opinion | None] = {}
    for review in sorted(reviews, key=lambda review: review.id):
        asks = [fields.get("asks", "") for fields in find_markers(review.body, REVIEW)]
        is_own = bool(asks) and identity().counts(review.author)
        author = _OWN if is_own else review.author
        verdict = _VERDICTS.get(review.state) or (_ASKS.get(asks[0]) if is_own else None)
        if review.state == "DISMISSED":
            newest[author] = None
        elif verdict and (is_own or is_trusted(review.author)):
            newest[author] = Opinion(
                id=review.id, author=author, verdict=verdict, commit=review.commit, body=take_markers(review.body)[0]
            )
    return tuple(opinion for opinion in newest.values() if opinion)


def read_threads(gathered: Gathered) -> Gathered:
    """Read the open threads of accord and of people with write access, where the agent works in a review."""
    context = gathered.context
    if gathered.decide().reason != "changes-requested":
        return gathered
    found = (one for one in context.github.review_threads(context.number) if one.comments and _counts(context, one))
    return gathered.with_facts(threads=tuple(thread_facts(context, one) for one in islice(found, MOST_THREADS)))


def _counts(context: LoopContext, thread: ReviewThread) -> bool:
    """Return whether a thread still asks for something: no one ended it, and no later review found it gone."""
    first, last, ours = thread.comments[0], thread.comments[-1], context.identity.counts
    is_gone = ours(last.author) and bool(find_markers(last.body, REVIEW_GONE))
    is_over = thread.is_resolved or first.is_hidden or is_gone
    return not is_over and (ours(first.author) or context.is_trusted(first.author))


def appendix(requested: Sequence[Opinion], threads: Sequence[Thread], redact: Callable[[str], str]) -> list[str]:
    """Return the parts of a prompt that show the reviews and the threads."""
    from accord.text.untrusted import visible_text

    head = (
        "## Requested changes\n\nA review of this pull request requests changes. Work on each point. Where you "
        f"disagree, change nothing and say why at the end.\n\n{UNTRUSTED}"
    )
    reviews = (
        f"### Review by {' '.join(opinion.author.split())}\n\n"
        f"{fenced_data(redact(visible_text(opinion.body)).strip()[:BODY_CHARACTERS])}"
        for opinion in requested
    )
    return [head, *reviews, *(thread_part(number, thread, redact) for number, thread in enumerate(threads, 1))]
