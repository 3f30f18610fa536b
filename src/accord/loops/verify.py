"""Verifier: after a merge, or when a person asks, hold the change against the acceptance criteria of its work item.

A reviewing run, which changes nothing, answers with a verdict of a fixed shape. What follows is decided here: a report,
a follow-up work item, or a question to a person. A follow-up of a follow-up is never made by a program.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from pydantic import Field

from accord.core.findings import Finding
from accord.loops import questions
from accord.loops.comments import line_to_post, text_to_post
from accord.loops.context import DATA, fenced, joined
from accord.loops.models import Closed, Decision, LoopFacts, LoopState, decided
from accord.text.markdown import list_items, sections

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from accord.text.redaction import Redactor

CRITERIA = "acceptance criteria"
DIFF_CHARACTERS = 20_000
TITLE_CHARACTERS = 200
BODY_CHARACTERS = 30_000


class WorkItem(Closed):
    """A linked work item. ``is_follow_up`` counts only where a marker of our own identity says so."""

    number: int
    title: str = ""
    body: str = ""
    is_follow_up: bool = False
    labels: tuple[str, ...] = ()


class Criterion(Closed):
    """A criterion by its number in the prompt, whether it is met, and where that can be seen."""

    number: int = Field(ge=1)
    met: Literal["yes", "no", "unclear"]
    evidence: str = Field(min_length=1)


class FollowUp(Closed):
    """A work item for what is left."""

    title: str = Field(min_length=1)
    body: str = Field(min_length=1)


class Verdict(Closed):
    """What the reviewing run answers: every criterion once, and a follow-up or null."""

    role: Literal["verifier"]
    verdict: Literal["pass", "fail", "unsure"]
    summary: str = Field(min_length=1)
    criteria: tuple[Criterion, ...]
    follow_up: FollowUp | None


class VerifyFacts(LoopFacts):
    """All that the verifier decides from. ``commit`` is the merged one, or the head where a person asked.

    ``verified`` is the commit that has a verdict already, if it is not the state's. With ``verdict`` the question is
    what follows it.
    """

    kind: Literal["verify-facts"] = "verify-facts"
    is_asked: bool = False
    commit: str
    verified: str = ""
    work_items: tuple[WorkItem, ...] = ()
    diff: str = ""
    verdict: Verdict | None = None
    state: LoopState = LoopState(loop="verify")


def criteria_of(items: Sequence[WorkItem]) -> list[str]:
    """Return the acceptance criteria of work items, as their checklists list them, in order."""
    return [
        entry.text
        for item in items
        for section in sections(item.body)
        if section.title.strip().rstrip(":").casefold() == CRITERIA
        for entry in list_items(section.tokens)
        if entry.text
    ]


def decide(facts: VerifyFacts, redact: Callable[[str], str] = str) -> Decision:
    """Decide whether to verify, or what follows a verdict. Pure."""
    about = questions.known(facts)
    if facts.verdict is not None:
        return questions.finished(after(facts.work_items, facts.verdict), about)
    return questions.finished(_before(facts, about, redact), about)


def _before(facts: VerifyFacts, about: questions.Known, redact: Callable[[str], str]) -> Decision:
    stopped = questions.is_stopped_by_a_person(about) or _has_nothing_to_judge(facts)
    asked = (_may_not_tell, questions.which_agent, *questions.BEFORE_A_RUN)
    stopped = stopped or questions.first_answer(asked, about)
    if stopped is not None:
        return stopped
    run = {"agent": questions.agent_of(facts), "iteration": about.state.iterations + 1}
    text = appendix(facts, redact)
    if facts.is_asked:
        return decided("verify-asked", "A person asked for a verdict.", **run, appendix=text)
    return decided("verify-merged", "The pull request is merged.", **run, appendix=text)


def _may_not_tell(about: questions.Known) -> Decision | None:
    """Ask whether a verdict could be told; the merged change of a fork is fine, since nothing is pushed to it."""
    if about.facts.token.may_write:
        return None
    return decided("read-only-token", "The token may only read. Grant the job issues: write and pull-requests: write.")


def _has_nothing_to_judge(facts: VerifyFacts) -> Decision | None:
    if not facts.pull.is_merged and not facts.is_asked:
        return decided("not-merged", "The pull request is not merged, and nobody asked for a verdict.")
    if facts.pull.is_fork and not facts.pull.is_merged:
        message = (
            "It comes from a fork and is not merged: in its files, a stranger decides what runs beside the agent's "
            "secret. Merge it first, or judge it from a branch of this repository."
        )
        return decided("fork-unmerged", message)
    if facts.commit and facts.commit in (facts.verified, facts.state.verified) and not facts.is_asked:
        return decided("already-verified", f"Commit {facts.commit} has its verdict.")
    if not facts.work_items:
        return decided("no-work-item", "No work item is linked. Write Closes #N into the pull request's body.")
    if not criteria_of(facts.work_items):
        numbers = ", ".join(f"#{item.number}" for item in facts.work_items)
        return decided("no-criteria", f"No acceptance criteria are listed in {numbers}.")
    return None


def appendix(facts: VerifyFacts, redact: Callable[[str], str]) -> str:
    """Write what the reviewing run must know: the criteria by number, and the diff."""
    from accord.text.untrusted import visible_text

    listed = "\n".join(
        f"{number}. {visible_text(text)}" for number, text in enumerate(criteria_of(facts.work_items), start=1)
    )
    diff = redact(facts.diff)
    cut = f"\n[{len(diff) - DIFF_CHARACTERS} more characters; read the files]" if len(diff) > DIFF_CHARACTERS else ""
    told = (
        "## Verify\n\nJudge whether this change meets each criterion. Change nothing. Say pass only if every criterion "
        "is met, with evidence (file and line, or a command and its output); unsure where you cannot tell. Name a "
        f"follow-up only for what is left to do.\n\n{DATA}"
    )
    parts = [
        told,
        f"### Criteria\n\n{fenced(redact(listed)[:8000])}",
        f"### Change {facts.commit}\n\n{fenced(diff[:DIFF_CHARACTERS] + cut)}",
    ]
    return joined(parts, "The change is left out for its length; read it with git.")


def after(items: Sequence[WorkItem], verdict: Verdict) -> Decision:
    """Decide what follows a verdict. Pure."""
    count = len(criteria_of(items))
    wrong = _contradiction(verdict, count)
    if wrong:
        return decided("verdict-inconsistent", f"{wrong} Read the verdict and decide.")
    if verdict.verdict == "unsure":
        return decided("verdict-unsure", "The verdict is unsure. Read its evidence and decide.")
    if verdict.verdict == "pass":
        return decided("verdict-pass", f"All {count} criteria are met.")
    unmet = sum(criterion.met != "yes" for criterion in verdict.criteria)
    said = f"{unmet} of {count} criteria are not met."
    if any(item.is_follow_up for item in items):
        return decided("follow-up-chain", f"{said} The work item is a follow-up itself, so no other is made.")
    if verdict.follow_up is None:
        return decided("follow-up-empty", f"{said} The verdict proposes no work. Decide what to do.")
    return decided("verdict-fail", f"{said} A follow-up work item holds what is left.")


def _contradiction(verdict: Verdict, count: int) -> str:
    numbers = sorted(criterion.number for criterion in verdict.criteria)
    if numbers != list(range(1, count + 1)):
        return f"The verdict must judge the criteria 1 to {count} once each."
    return next((finding.message for finding in verdict_findings(verdict)), "")


def verdict_findings(verdict: Verdict) -> list[Finding]:
    """Say where a verdict contradicts itself, without knowing the criteria."""
    met = {criterion.met for criterion in verdict.criteria}
    said = {
        "pass": "It says pass, though a criterion is not met." if met - {"yes"} else "",
        "fail": "" if "no" in met else "It says fail, though no criterion is called not met.",
        "unsure": "",
    }[verdict.verdict]
    return [Finding("verdict-inconsistent", said, "/verdict")] if said else []


def follow_up(verdict: Verdict, item: WorkItem, pull: int, secrets: Redactor) -> tuple[str, str]:
    """Write title and body of the follow-up work item, fit to be posted; its marker is the caller's to add.

    Raises ValueError where the verdict has none.
    """
    if verdict.follow_up is None:
        raise ValueError("the verdict has no follow-up")
    title = line_to_post(verdict.follow_up.title, secrets, TITLE_CHARACTERS) or f"What is left of #{item.number}"
    body = text_to_post(verdict.follow_up.body, secrets, BODY_CHARACTERS)
    return title, f"{body}\n\nLeft of #{item.number} after #{pull}."
