"""Keep a consumer's kit in step from outside: one branch with one commit, and one pull request that follows it."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from accord.core.errors import AccordError, Refused, Stopped
from accord.github.git_data import create_ref_once
from accord.github.limits import BODY_CHARS
from accord.github.markers import find_markers, write_marker
from accord.github.models import Conflict, Forbidden
from accord.github.once import send_once, send_until_answered
from accord.kit.consumers import Consumer, blob_of, kit_entries, read_consumer
from accord.kit.manifest import PLACE, digest_of, manifest_text
from accord.kit.plan import Action, KitPlan, merge_texts, plan_kit, unified_diff
from accord.text.markdown import cell, fenced, table

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from accord.core.clock import Clock
    from accord.github.client import GitHub
    from accord.github.models import Pull
    from accord.kit.manifest import Kit, Pin
    from accord.kit.plan import FilePlan, KitPlan


BRANCH = "accord/sync"
SUBJECT = "Update the accord kit"
_MARKER = "sync"


def title(plan: KitPlan) -> str:
    """Return the title of the pull request, and the first line of its commit."""
    return f"{SUBJECT} to v{plan.manifest.version}"


def commit_message(plan: KitPlan) -> str:
    """Return the message of the one commit."""
    return f"{title(plan)}\n\nFrom accord {plan.manifest.commit}. What was edited here is kept.\n"


def plan_digest(plan: KitPlan) -> str:
    """Name what the pull request proposes: the same plan is the same digest."""
    after = {file.path: None if file.after is None else digest_of(file.after) for file in plan.changes}
    held = json.dumps([after, manifest_text(plan.manifest)], sort_keys=True)
    return hashlib.sha256(held.encode()).hexdigest()


def digest_in(body: str) -> str:
    """Return the digest that a body carries; empty when none."""
    return next((found.get("plan", "") for found in find_markers(body, _MARKER)), "")


def body(plan: KitPlan) -> str:
    """Describe the plan: every file, the conflicts with what the template changed, and what to do about them."""
    rows = [[cell(file.path), file.action.value, cell(file.note)] for file in plan.files]
    parts = [
        f"This brings accord's kit to `{plan.manifest.commit}`. What was edited in this repository is kept.",
        table(["File", "What happens", "Why"], rows),
    ]
    conflicts = plan.of(Action.CONFLICT)
    if conflicts:
        parts.append(_conflicts(conflicts))
    parts.append(
        "Close this pull request to stay with what is here: it comes back only with other changes. "
        "Commits that others push to its branch are not overwritten."
    )
    end = write_marker(_MARKER, plan=plan_digest(plan))
    return f"{_fitting(parts, BODY_CHARS - len(end) - 2)}\n\n{end}"


def _conflicts(conflicts: Sequence[FilePlan]) -> str:
    texts = [
        "## Conflicts",
        (
            "These files were edited here and in the new version, in the same lines. They stay as they are. Below is "
            "what the templates changed; take over what you want of it."
        ),
    ]
    for file in conflicts:
        texts += [f"### {cell(file.path)}", fenced(unified_diff(*file.template, file.path), "diff")]
    return "\n\n".join(texts)


def _fitting(parts: Sequence[str], limit: int) -> str:
    """Join the parts; where that is too long, conflicts are shown without their diffs, then the end is cut."""
    whole = "\n\n".join(parts)
    if len(whole) <= limit:
        return whole
    note = "\n\nThe rest is too long to show: run `accord init --dry-run` in a checkout."
    return "\n\n".join(part for part in parts if not part.startswith("## "))[: limit - len(note)] + note


_NEEDED = (
    "The token needs contents, pull requests and workflows to write in this repository. "
    "That of a workflow's job cannot have them: use one of an app."
)
REF = f"refs/heads/{BRANCH}"


class SyncOutcome(StrEnum):
    """How it ended for one repository."""

    APPLIED = "applied"
    UNCHANGED = "unchanged"
    PLANNED = "planned"
    DECLINED = "declined"
    STOPPED = "stopped"
    REFUSED = "refused"


@dataclass(frozen=True)
class SyncResult:
    """What became of one repository; ``plan`` is None where it could not be read."""

    repository: str
    outcome: SyncOutcome
    plan: KitPlan | None = None
    pull: Pull | None = None
    error: AccordError | None = None

    @property
    def name(self) -> str:
        """What progress calls it."""
        return self.repository

    def as_json(self) -> dict[str, Any]:
        """Return what programs are told of it."""
        document: dict[str, Any] = {
            "repository": self.repository,
            "outcome": self.outcome.value,
            "pull": {"number": self.pull.number, "url": self.pull.url} if self.pull else None,
            "files": [file.as_json() for file in self.plan.files] if self.plan else [],
        }
        if self.error:
            document["error"] = {"message": self.error.message, "hint": self.error.hint}
        return document


@dataclass(frozen=True)
class Proposed:
    """What is proposed already: the branch (``tip`` empty where it is not there) and its pull requests, newest first.

    ``is_ours``: the branch has one commit of ours on top. ``is_wanted``: its files are those that the plan wants.
    """

    tip: str = ""
    is_ours: bool = True
    is_wanted: bool = False
    pulls: tuple[Pull, ...] = ()

    @property
    def open_pull(self) -> Pull | None:
        """The pull request that is open."""
        return next((pull for pull in self.pulls if pull.state == "open"), None)


@dataclass(frozen=True)
class SyncDecision:
    """What to do: move the branch, write the pull request, or neither and say why."""

    outcome: SyncOutcome
    pushes: bool = False
    writes_pull: bool = False
    refusal: str = field(default="")


def sync_repository(
    github: GitHub, repository: str, kit: Kit, pin: Pin, clock: Clock, *, is_dry_run: bool = False
) -> SyncResult:
    """Bring one repository's kit in step by a pull request. Raises nothing of ours: the result tells."""
    plan = None
    try:
        consumer = read_consumer(github, kit, pin)
        plan = plan_kit(kit, pin, consumer.manifest, consumer.files, merge_texts)
        if not plan.is_change:
            return SyncResult(repository, SyncOutcome.UNCHANGED, plan)
        proposed = _proposed(github, repository, plan)
        step = decide(plan, proposed)
        if step.refusal:
            raise Refused(step.refusal, hint=f"Merge or delete the branch {BRANCH}, and run this again.")
        if step.outcome is not SyncOutcome.APPLIED or is_dry_run:
            outcome = SyncOutcome.PLANNED if step.outcome is SyncOutcome.APPLIED else step.outcome
            return SyncResult(repository, outcome, plan, proposed.pulls[0] if proposed.pulls else None)
        if step.pushes:
            _push(github, consumer, plan, proposed, clock)
        pull = _write_pull(github, consumer, plan, proposed, clock) if step.writes_pull else proposed.open_pull
        return SyncResult(repository, SyncOutcome.APPLIED, plan, pull)
    except Forbidden as error:
        return SyncResult(repository, SyncOutcome.REFUSED, plan, error=Refused(error.message, hint=_NEEDED))
    except AccordError as error:
        outcome = SyncOutcome.STOPPED if isinstance(error, Stopped) else SyncOutcome.REFUSED
        return SyncResult(repository, outcome, plan, error=error)


def decide(plan: KitPlan, proposed: Proposed) -> SyncDecision:
    """Tell what is still to be done for a plan that changes something. Pure.

    A pull request that people closed declines its very plan; what they pushed to the branch is never overwritten.
    """
    digest = plan_digest(plan)
    newest = next(iter(proposed.pulls), None)
    if newest and newest.state != "open" and not newest.is_merged and digest_in(newest.body) == digest:
        return SyncDecision(SyncOutcome.DECLINED)
    current = proposed.open_pull
    pushes = not proposed.is_wanted
    if pushes and not proposed.is_ours:
        return SyncDecision(SyncOutcome.REFUSED, refusal=f"The branch {BRANCH} has commits that are not of accord.")
    writes_pull = current is None or digest_in(current.body) != digest
    return SyncDecision(SyncOutcome.APPLIED if pushes or writes_pull else SyncOutcome.UNCHANGED, pushes, writes_pull)


def _proposed(github: GitHub, repository: str, plan: KitPlan) -> Proposed:
    found = github.pulls_from(BRANCH)
    pulls = tuple(pull for pull in found if pull.head_repository.lower() == repository.lower())
    tip = github.ref(REF)
    if tip is None:
        return Proposed(pulls=pulls)
    commit = github.commit_object(tip)
    is_ours = bool(commit and len(commit.parents) == 1 and commit.message.startswith(SUBJECT))
    return Proposed(tip, is_ours, _is_wanted(github, tip, plan), pulls)


def _is_wanted(github: GitHub, tip: str, plan: KitPlan) -> bool:
    """Tell whether a commit has every file of the kit as the plan wants it."""
    _, entries = kit_entries(github, tip)
    wanted = {file.path: file.after for file in plan.files} | {PLACE: manifest_text(plan.manifest)}
    return all(
        path not in entries if text is None else path in entries and entries[path].sha == blob_of(text)
        for path, text in wanted.items()
    )


def _push(github: GitHub, consumer: Consumer, plan: KitPlan, proposed: Proposed, clock: Clock) -> None:
    """Make the one commit on the default branch's newest, and point the branch to it."""
    changes = _changes(consumer, plan)
    tree = send_until_answered(lambda: github.create_tree_over(consumer.tree, changes), clock)
    message = commit_message(plan)
    commit = send_until_answered(lambda: github.create_commit(message, tree, [consumer.commit]), clock)
    if proposed.tip:
        github.replace_ref(REF, commit.sha)
        return
    if not create_ref_once(github, REF, commit.sha, clock):
        raise Stopped(f"Somebody else made the branch {BRANCH} meanwhile.", hint="Run the same command again.")


def _changes(consumer: Consumer, plan: KitPlan) -> Mapping[str, tuple[str, str] | None]:
    changes: dict[str, tuple[str, str] | None] = {
        file.path: None if file.after is None else (consumer.modes.get(file.path, "100644"), file.after)
        for file in plan.changes
    }
    return {**changes, PLACE: ("100644", manifest_text(plan.manifest))}


def _write_pull(github: GitHub, consumer: Consumer, plan: KitPlan, proposed: Proposed, clock: Clock) -> Pull:
    text = body(plan)
    if proposed.open_pull:
        return github.change_pull(proposed.open_pull.number, title=title(plan), body=text)

    def find() -> Pull | None:
        return next(iter(github.pulls_from(BRANCH, state="open")), None)

    try:
        return send_once(
            lambda: github.create_pull(title(plan), text, BRANCH, consumer.branch, draft=False), find, clock
        )
    except Conflict:  # another run was faster: GitHub has one open pull request a branch
        found = find()
        if found is None:
            raise
        return found
