"""Bot comments: let the agent answer the review threads of listed bots, all in one run, and tell each what was done.

Threads in which a person has spoken are the person's, and so are those of bots that nobody listed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from pydantic import Field

from accord.core.findings import Finding
from accord.github.markers import find_markers, write_marker
from accord.github.once import send_once
from accord.loops import questions
from accord.loops.comments import text_to_post
from accord.loops.context import DATA, fenced, joined
from accord.loops.loop import Completed
from accord.loops.models import Budgets, Closed, Decision, LoopFacts, LoopState, decided
from accord.loops.outputs import result_of
from accord.loops.questions import Known

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from accord.github.comments import Comment, ReviewThread
    from accord.github.models import Pull
    from accord.loops.context import Site
    from accord.loops.facts import Gathered
    from accord.loops.loop import EndedRun
    from accord.loops.models import Ending
    from accord.text.redaction import Redactor


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
        "## Comments of bots\n\nLook at each thread. Fix what is right, decline what is not and say why, ask where "
        f"only a person can tell. Answer every number.\n\n{DATA}"
    )
    return joined(
        [head, *(_told(number, thread, redact) for number, thread in enumerate(threads, 1))],
        "{n} more threads come in the next run.",
    )


def _told(number: int, thread: Thread, redact: Callable[[str], str]) -> str:
    from accord.text.untrusted import visible_text

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
        "fixed": f"Fixed in {commit}." if commit else "The agent says that it fixed this, but no change was pushed.",
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


_UNREAD = "The run ended without answers of the shape that was asked for, so no thread gets a reply."
_BOT = "not-known-yet"
_NOT_KNOWN = Thread(id=_BOT, path="", comments=(ThreadComment(author=_BOT, is_bot=True),))


def first_facts(site: Site, pull: Pull) -> BotCommentFacts:
    """Say what the pull request alone tells; a thread is taken to wait."""
    return BotCommentFacts(
        now=site.now(),
        pull=site.pull_facts(pull),
        agents=site.agents,
        token=site.token,
        threads=(_NOT_KNOWN,),
        bots=(_BOT,),
    )


def with_threads(known: Gathered) -> Gathered:
    """Read the threads of the pull request. Nothing is asked where no bot is listed."""
    site = known.site
    found = site.github.review_threads(site.number) if site.bots else ()
    return known.knows(threads=tuple(_thread(site, thread) for thread in found if thread.comments), bots=site.bots)


def _thread(site: Site, thread: ReviewThread) -> Thread:
    return Thread(
        id=thread.id,
        path=thread.path,
        line=thread.line,
        is_resolved=thread.is_resolved,
        is_outdated=thread.is_outdated,
        comments=tuple(_comment(site, word) for word in thread.comments),
    )


def _comment(site: Site, word: Comment) -> ThreadComment:
    return ThreadComment(
        author=word.author, is_bot=word.is_bot, is_ours=site.identity.counts(word.author), body=word.body
    )


def given(known: Gathered) -> tuple[str, ...]:
    """Name the threads that wait, in the order in which the agent is shown them."""
    facts = known.facts
    assert isinstance(facts, BotCommentFacts)  # noqa: S101 (the loop's own facts)
    return tuple(thread.id for thread in waiting(facts))


def completed(told: EndedRun) -> Completed:
    """Count the threads that the run answered; they wait no more."""
    running = told.state.running
    posted = _replies(told, running.about) if running is not None else ()
    answered = tuple(reply.thread for reply in posted)
    is_unread = told.outputs.exit_code == "0" and result_of(told.outputs, ThreadAnswers) is None
    return Completed(tasks_done=len(answered), facts={"answered": answered}, said=_UNREAD if is_unread else "")


def carry_out(told: EndedRun, ending: Ending) -> None:
    """Reply to each thread that was answered, unless the reply is there or a person has spoken meanwhile."""
    posted = _replies(told, ending.about)
    if not posted:
        return
    there = {thread.id: thread for thread in told.site.github.review_threads(told.site.number)}
    for reply in posted:
        thread = there.get(reply.thread)
        if thread is not None and not _is_settled(told.site, thread):
            _reply_once(told.site, thread, reply)


def _replies(told: EndedRun, threads: tuple[str, ...]) -> tuple[Reply, ...]:
    answers = result_of(told.outputs, ThreadAnswers)
    if answers is None:
        return ()
    commit = told.outputs.commit_sha if told.outputs.changes_made == "true" else ""
    return replies(threads, answers, commit=commit, run_id=told.site.run_id, secrets=told.site.redact)


def _is_settled(site: Site, thread: ReviewThread) -> bool:
    """Tell whether a thread has our reply of this run, or a person's word."""
    is_persons = any(not word.is_bot and not site.identity.counts(word.author) for word in thread.comments)
    return is_persons or _our_reply(site, thread) is not None


def _our_reply(site: Site, thread: ReviewThread) -> Comment | None:
    fields = {"thread": thread.id, "run": site.run_id}
    ours = (word for word in thread.comments if site.identity.counts(word.author))
    return next((word for word in ours if fields in find_markers(word.body, MARKER)), None)


def _reply_once(site: Site, thread: ReviewThread, reply: Reply) -> None:
    def send() -> Comment:
        return site.github.reply(site.number, thread.comments[0].id, reply.body)

    def look() -> Comment | None:
        found = site.github.review_threads(site.number)
        return next((word for now in found if now.id == thread.id and (word := _our_reply(site, now))), None)

    send_once(send, look, site.clock)
