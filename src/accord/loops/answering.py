"""Bot comments on GitHub: reading the review threads, and telling each what was done, once."""

from __future__ import annotations

from typing import TYPE_CHECKING

from accord.github.markers import find_markers
from accord.github.once import send_once
from accord.loops.bot_comments import MARKER, BotCommentFacts, Thread, ThreadAnswers, ThreadComment, replies, waiting
from accord.loops.loop import Completed
from accord.loops.outcome import result_of

if TYPE_CHECKING:
    from accord.github.comments import Comment
    from accord.github.pull_port import Pull
    from accord.github.threads import ReviewThread
    from accord.loops.bot_comments import Reply
    from accord.loops.gather import Gathered
    from accord.loops.loop import EndedRun
    from accord.loops.models import Ending
    from accord.loops.site import Site

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
