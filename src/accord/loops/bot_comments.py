"""Bot comments: let the agent answer the review threads of listed bots in one run, and reply to each thread.

Threads with a comment of a person belong to people; threads of other bots are ignored.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Literal

from pydantic import Field

from accord.core.findings import Finding
from accord.github.comments import Comment
from accord.github.graphql import ReviewThread
from accord.loops.facts import CompletedWork, EndedRun, Gathered, Loop, LoopContext, read_state
from accord.loops.models import Budgets, Closed, LoopDecision, LoopFacts, LoopState, PendingEffects, decision_for
from accord.loops.outputs import result_of
from accord.loops.questions import BEFORE_A_RUN, ON_A_PULL, Situation, run_decision
from accord.loops.texts import Poster, join_parts
from accord.text.markers import find_markers, write_marker
from accord.text.untrusted import DATA as UNTRUSTED
from accord.text.untrusted import fenced_data

BODY_CHARACTERS = 3_000
REPLY_CHARACTERS = 2_000
MOST_THREADS = 30
MARKER = "thread-reply"


class ThreadComment(Closed):
    """One comment of a review thread. ``is_ours``: our own login wrote it."""

    author: str
    is_bot: bool
    is_ours: bool = False
    body: str = ""


class Thread(Closed):
    """A review thread; ``id`` is GitHub's id of the thread or its first comment."""

    id: str
    path: str
    line: int | None = None
    is_resolved: bool = False
    is_outdated: bool = False
    comments: tuple[ThreadComment, ...] = Field(min_length=1)


class BotCommentFacts(LoopFacts):
    """The facts of the loop; ``bots`` are the logins that get answers, ``answered`` threads whose reply is planned."""

    kind: Literal["bot-comments-facts"] = "bot-comments-facts"
    threads: tuple[Thread, ...] | None = ()
    bots: tuple[str, ...] = ()
    answered: tuple[str, ...] = ()
    state: LoopState = LoopState(loop="bot-comments")
    budgets: Budgets = Budgets(iterations=3, failures=2, transient=3, wait_seconds=60, longest_wait_seconds=3600)


class ThreadAnswer(Closed):
    """The agent's answer to the thread with this number in the prompt."""

    number: int = Field(ge=1)
    done: Literal["fixed", "declined", "question"]
    what: str = Field(min_length=1)


class ThreadAnswers(Closed):
    """The agent's answer."""

    role: Literal["bot-comments"]
    threads: tuple[ThreadAnswer, ...]


def waiting_threads(facts: BotCommentFacts) -> tuple[Thread, ...]:
    """Return the open threads of listed bots without a comment of a person and without our reply at the end."""
    listed = {_login(bot) for bot in facts.bots}
    found = []
    for thread in facts.threads or ():
        first, last = thread.comments[0], thread.comments[-1]
        is_of_bot = first.is_bot and not first.is_ours and _login(first.author) in listed
        is_open = not (thread.is_resolved or thread.id in facts.answered or last.is_ours)
        if is_of_bot and is_open and all(comment.is_bot or comment.is_ours for comment in thread.comments):
            found.append(thread)
    return tuple(found[:MOST_THREADS])


def _login(name: str) -> str:
    """Return a bot's login as GraphQL spells it; REST appends ``[bot]``."""
    return name.casefold().removesuffix("[bot]")


def _check_threads(situation: Situation) -> LoopDecision | None:
    if situation.facts.threads is None or waiting_threads(situation.facts):
        return None
    return decision_for("no-threads", "No thread of a listed bot waits for an answer.")


def appendix(threads: Sequence[Thread], redact: Callable[[str], str]) -> str:
    """Return the threads by number."""
    head = (
        "## Comments of bots\n\nLook at each thread. Fix valid points, decline invalid ones with a reason, and ask "
        f"where only a person can decide. Answer every number.\n\n{UNTRUSTED}"
    )
    shown = (thread_part(number, thread, redact) for number, thread in enumerate(threads, 1))
    return join_parts([head, *shown], "{n} more threads come in the next run.")


def thread_part(number: int, thread: Thread, redact: Callable[[str], str]) -> str:
    """Return a thread as a part of a prompt."""
    from accord.text.untrusted import visible_text

    location = f"{thread.path}:{thread.line}" if thread.line else thread.path
    old = "\n(the lines have changed since)" if thread.is_outdated else ""
    comments = "\n\n".join(f"{comment.author}: {redact(visible_text(comment.body))}" for comment in thread.comments)
    text = f"{location}\n\n{comments}"[:BODY_CHARACTERS]
    return f"### Thread {number}{old}\n\n{fenced_data(text)}"


def replies_to(
    threads: Sequence[str], answers: ThreadAnswers, commit: str, run_id: str, post: Poster
) -> dict[str, str]:
    """Return a reply by thread id; ``threads`` are those that the agent saw, ``commit`` is empty without a push."""
    heads = {
        "fixed": f"Fixed in {commit}." if commit else "The agent reports a fix, but no change was pushed.",
        "declined": "Not changed.",
        "question": "This needs a person.",
    }
    found: dict[str, str] = {}
    for answer in answers.threads:
        for thread in threads[answer.number - 1 : answer.number]:
            text = post.text(answer.what, REPLY_CHARACTERS)
            marker = write_marker(MARKER, thread=thread, run=run_id)
            found.setdefault(thread, f"{heads[answer.done]}\n\n{text}\n\n{marker}")
    return found


def answer_findings(answers: ThreadAnswers) -> list[Finding]:
    """Find numbers with two answers."""
    numbers = [answer.number for answer in answers.threads]
    return [
        Finding("thread-repeated", f"Thread {number} has two answers.", f"/threads/{i}/number", hint="Remove one.")
        for i, number in enumerate(numbers)
        if number in numbers[:i]
    ]


def _read_threads(gathered: Gathered) -> Gathered:
    context = gathered.context
    found = context.github.review_threads(context.number) if context.bots else ()
    threads = tuple(thread_facts(context, thread) for thread in found if thread.comments)
    return gathered.with_facts(threads=threads, bots=context.bots)


def thread_facts(context: LoopContext, thread: ReviewThread) -> Thread:
    """Return a thread with who wrote its comments."""
    found, ours = Thread.model_validate(thread, from_attributes=True), context.identity.counts
    comments = (one.model_copy(update={"is_ours": ours(one.author)}) for one in found.comments)
    return found.model_copy(update={"comments": tuple(comments)})


def _replies(run: EndedRun, threads: tuple[str, ...]) -> dict[str, str]:
    answers = result_of(run.outputs, ThreadAnswers)
    if answers is None:
        return {}
    commit = run.outputs.commit_sha if run.outputs.changes_made == "true" else ""
    return replies_to(threads, answers, commit, run.context.run_id, run.context.post)


def _our_reply(context: LoopContext, thread: ReviewThread) -> Comment | None:
    fields = {"thread": thread.id, "run": context.run_id}
    ours = (comment for comment in thread.comments if context.identity.counts(comment.author))
    return next((comment for comment in ours if fields in find_markers(comment.body, MARKER)), None)


def _reply_once(context: LoopContext, thread: ReviewThread, body: str) -> None:
    def find() -> Comment | None:
        found = context.github.review_threads(context.number)
        return next((_our_reply(context, now) for now in found if now.id == thread.id), None)

    send = partial(context.github.reply, context.number, thread.comments[0].id, body)
    context.log.write("reply", thread.path, partial(context.github.send_once, send, find), number=context.number)


class BotComments(Loop):
    """The loop that answers bots."""

    name = "bot-comments"
    model = BotCommentFacts
    questions = (*ON_A_PULL, _check_threads, *BEFORE_A_RUN)
    stages = (_read_threads, read_state)
    unread = ("threads",)
    schema = "thread-answers"

    def run(self, about: Situation, redact: Callable[[str], str]) -> LoopDecision:
        """Run the agent on all threads that wait."""
        threads = waiting_threads(about.facts)
        message = f"Bot threads that wait for an answer: {len(threads)}."
        return run_decision(about, "threads-open", message, appendix(threads, redact))

    def subjects(self, facts: Any) -> tuple[str, ...]:
        """Return the ids of the threads."""
        return tuple(thread.id for thread in waiting_threads(facts))

    def complete(self, run: EndedRun) -> CompletedWork:
        """Count the threads that the run answered; they no longer wait."""
        running = run.state.running
        answered = tuple(_replies(run, running.about)) if running is not None else ()
        is_unread = run.outputs.exit_code == "0" and result_of(run.outputs, ThreadAnswers) is None
        problem = "The agent's answers do not have the required shape, so no thread gets a reply." if is_unread else ""
        return CompletedWork(tasks_done=len(answered), facts={"answered": answered}, problem=problem)

    def apply(self, run: EndedRun, effects: PendingEffects) -> None:
        """Reply to each answered thread, unless the reply exists or a person has commented meanwhile."""
        context = run.context
        replies = _replies(run, effects.about)
        for thread in context.github.review_threads(context.number) if replies else ():
            people = [one for one in thread.comments if not one.is_bot and not context.identity.counts(one.author)]
            if thread.id in replies and not people and _our_reply(context, thread) is None:
                _reply_once(context, thread, replies[thread.id])
