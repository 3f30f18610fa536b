"""Bot comments: let the agent answer the review threads of listed bots, all in one run, and tell each what was done.

Threads in which a person has spoken are the person's, and so are those of bots that nobody listed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from pydantic import Field

from accord.github.markers import write_marker
from accord.kernel.findings import Finding
from accord.kernel.kinds import Kind
from accord.loops import questions
from accord.loops.appendix import DATA, fenced, joined
from accord.loops.models import Budgets, Closed, Decision, LoopFacts, LoopState
from accord.loops.posting import text_to_post
from accord.loops.questions import Known
from accord.loops.reasons import decided

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from accord.kernel.redaction import Redactor

BODY_CHARACTERS = 3_000
REPLY_CHARACTERS = 2_000
MOST_THREADS = 30
MARKER = "thread-reply"


class ThreadComment(Closed):
    """One comment of a review thread. ``is_ours`` is what our own identity wrote."""

    author: str
    is_bot: bool
    is_ours: bool = False
    body: str = ""


class Thread(Closed):
    """A review thread; ``id`` is GitHub's, of the first comment or the thread."""

    id: str
    path: str
    line: int | None = None
    is_resolved: bool = False
    is_outdated: bool = False
    comments: tuple[ThreadComment, ...] = Field(min_length=1)


class BotCommentFacts(LoopFacts):
    """All that the loop decides from. ``bots`` are the logins whose threads are answered.

    ``answered`` are threads that are about to be.
    """

    kind: Literal["bot-comments-facts"] = "bot-comments-facts"
    threads: tuple[Thread, ...] = ()
    bots: tuple[str, ...] = ()
    answered: tuple[str, ...] = ()
    state: LoopState = LoopState(loop="bot-comments")
    budgets: Budgets = Budgets(iterations=3, failures=2, transient=3, wait_seconds=60, longest_wait_seconds=3600)


class ThreadAnswer(Closed):
    """What was done about the thread of this number in the prompt."""

    number: int = Field(ge=1)
    done: Literal["fixed", "declined", "question"]
    what: str = Field(min_length=1)


class ThreadAnswers(Closed):
    """What the run answers."""

    role: Literal["bot-comments"]
    threads: tuple[ThreadAnswer, ...]


class Reply(Closed):
    """A reply to post into a thread, with a marker by which a second run finds it."""

    thread: str
    body: str


def waiting(facts: BotCommentFacts) -> tuple[Thread, ...]:
    """Return the threads that wait for an answer: of a listed bot, open, no person in them, no last word of ours."""
    listed = {_login(bot) for bot in facts.bots}
    return tuple(
        thread
        for thread in facts.threads
        if not thread.is_resolved
        and thread.id not in facts.answered
        and thread.comments[0].is_bot
        and not thread.comments[0].is_ours
        and _login(thread.comments[0].author) in listed
        and all(comment.is_bot or comment.is_ours for comment in thread.comments)
        and not thread.comments[-1].is_ours
    )[:MOST_THREADS]


def _login(name: str) -> str:
    """Spell a bot's login as GraphQL does; REST appends ``[bot]``."""
    return name.casefold().removesuffix("[bot]")


def decide(facts: BotCommentFacts, redact: Callable[[str], str] = str) -> Decision:
    """Decide whether the agent answers bots now. Pure."""
    about = questions.known(facts)
    decision = questions.first_answer(_FIRST, about)
    threads = waiting(facts)
    if decision is None and not threads:
        decision = decided("no-threads", "No thread of a listed bot waits for an answer.")
    decision = decision or questions.first_answer(questions.BEFORE_A_RUN, about)
    if decision is None:
        decision = decided(
            "threads-open",
            f"Threads of bots that wait for an answer: {len(threads)}.",
            agent=questions.agent_of(facts),
            iteration=about.state.iterations + 1,
            appendix=appendix(threads, redact),
        )
    return questions.finished(decision, about)


def _is_asked_for(about: Known) -> Decision | None:
    return questions.is_asked_for(about, "bot-comments")


_FIRST = (
    questions.is_over,
    questions.is_stopped_by_a_person,
    _is_asked_for,
    questions.may_not_write,
    questions.which_agent,
)


def appendix(threads: Sequence[Thread], redact: Callable[[str], str]) -> str:
    """Write the threads by number."""
    head = (
        "## Comments of bots\n\nLook at each thread. Mend what is right, decline what is not and say why, ask where "
        f"only a person can tell. Answer every number.\n\n{DATA}"
    )
    return joined(
        [head, *(_told(number, thread, redact) for number, thread in enumerate(threads, 1))],
        "{n} more threads come in the next run.",
    )


def _told(number: int, thread: Thread, redact: Callable[[str], str]) -> str:
    from accord.kernel.incoming import visible_text

    place = f"{thread.path}:{thread.line}" if thread.line else thread.path
    old = "\n(on lines that have changed since)" if thread.is_outdated else ""
    said = "\n\n".join(f"{comment.author}: {redact(visible_text(comment.body))}" for comment in thread.comments)
    text = f"{place}\n\n{said}"[:BODY_CHARACTERS]
    return f"### Thread {number}{old}\n\n{fenced(text)}"


def replies(
    threads: Sequence[str], answers: ThreadAnswers, *, commit: str, run_id: str, secrets: Redactor
) -> tuple[Reply, ...]:
    """Write a reply for each thread that was answered, fit to be posted; a number that is none is left out.

    ``threads`` are the ids of those that the run was given, in that order.

    ``fixed`` counts only with the ``commit`` that was pushed; without one the reply says that nothing was kept.
    """
    found: dict[str, Reply] = {}
    for answer in answers.threads:
        if answer.number <= len(threads):
            thread = threads[answer.number - 1]
            found.setdefault(thread, Reply(thread=thread, body=_reply(answer, thread, commit, run_id, secrets)))
    return tuple(found.values())


def _reply(answer: ThreadAnswer, thread: str, commit: str, run_id: str, secrets: Redactor) -> str:
    said = text_to_post(answer.what, secrets, REPLY_CHARACTERS)
    heads = {
        "fixed": f"Fixed in {commit}." if commit else "The agent says that it mended this, but no change was pushed.",
        "declined": "Not changed.",
        "question": "This needs a person.",
    }
    return f"{heads[answer.done]}\n\n{said}\n\n{write_marker(MARKER, thread=thread, run=run_id)}"


def answer_findings(answers: ThreadAnswers) -> list[Finding]:
    """Find numbers that are answered twice."""
    seen: set[int] = set()
    findings = []
    for i, answer in enumerate(answers.threads):
        if answer.number in seen:
            message = f"Thread {answer.number} is answered twice. Leave one answer."
            findings.append(Finding("thread-repeated", message, f"/threads/{i}/number"))
        seen.add(answer.number)
    return findings


FACTS = Kind("bot-comments-facts", BotCommentFacts, lambda _: [], {"kind": "bot-comments-facts"})
ANSWERS = Kind("thread-answers", ThreadAnswers, answer_findings, {"role": "bot-comments"})
