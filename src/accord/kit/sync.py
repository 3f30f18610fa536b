"""Sync the kit of consumers' repositories: one branch with one commit, and one pull request that follows it."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any, ClassVar

from accord.core.errors import AccordError, Refused, Stopped, WrongUsage
from accord.core.refusals import known_refusal
from accord.engine.operations import Operation, apply_in_order, skipped_if
from accord.github.commits import CommitWay, Delivery
from accord.github.git_data import create_ref_once
from accord.github.limits import BODY_CHARS
from accord.github.markers import find_markers, write_marker
from accord.github.models import Conflict, Forbidden
from accord.github.once import send_once, send_until_answered
from accord.kit.facts import BRANCH, REF, SUBJECT, read_consumer, read_proposal
from accord.kit.manifest import PLACE, digest_of, manifest_digest, manifest_text, read_manifest
from accord.kit.plan import Action, for_repository, plan_kit, unified_diff
from accord.text.markdown import cell, code_block, table

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from contextlib import AbstractContextManager

    from accord.core.clock import Clock
    from accord.engine.operations import LedgerEntry
    from accord.github.client import GitHub
    from accord.github.git_data import TreeChange
    from accord.github.models import Pull
    from accord.kit.facts import Consumer, Proposal
    from accord.kit.manifest import Manifest
    from accord.kit.pins import Pin
    from accord.kit.plan import KitPlan
    from accord.kit.templates import Kit

_MARKER = "sync"
_PERMISSIONS = (
    "The token needs contents, pull requests and workflows to write in this repository. "
    "The token of a workflow's job cannot have them, so use one of an app."
)
_CONFLICTS = (
    "## Conflicts\n\nThese files were edited here and in the new version, in the same lines. They stay unchanged. "
    "Below are the changes of the templates; copy those that you want."
)


class SyncOutcome(StrEnum):
    """How the sync of one repository ended."""

    APPLIED = "applied"
    UNCHANGED = "unchanged"
    PLANNED = "planned"
    DECLINED = "declined"
    STOPPED = "stopped"
    REFUSED = "refused"


@dataclass(frozen=True, slots=True)
class PushKit(Operation):
    """Bring the commit with the kit's files to the branch, which is the key."""

    op: ClassVar[str] = "push-branch"


@dataclass(frozen=True, slots=True)
class ProposeKit(Operation):
    """Write the pull request of the branch, which is the key."""

    op: ClassVar[str] = "propose-kit"


@dataclass(frozen=True)
class SyncResult:
    """The result for one repository; ``plan`` is None where the repository could not be read.

    ``delivery`` is the commit that was made now.
    """

    repository: str
    outcome: SyncOutcome
    plan: KitPlan | None = None
    pull: Pull | None = None
    error: AccordError | None = None
    delivery: Delivery | None = None
    operations: Sequence[LedgerEntry] = ()

    @property
    def name(self) -> str:
        """The name in a progress bar."""
        return self.repository

    def as_json(self) -> dict[str, Any]:
        """Return the JSON object of this repository."""
        document: dict[str, Any] = {
            "repository": self.repository,
            "outcome": self.outcome.value,
            "pull": {"number": self.pull.number, "url": self.pull.url} if self.pull else None,
            "files": [file.as_json() for file in self.plan.files] if self.plan else [],
            "operations": [entry.as_json() for entry in self.operations],
        }
        if self.delivery:
            document["commit"] = self.delivery.as_json()
        if self.error:
            document["error"] = {"message": self.error.message, "hint": self.error.hint}
        return document


def sync_repositories(
    repositories: Sequence[str],
    connect: Callable[[str], AbstractContextManager[tuple[GitHub, str]]],
    sync: Callable[[GitHub, str], SyncResult],
    on_result: Callable[[SyncResult], None],
) -> list[SyncResult]:
    """Sync many repositories; an error in one does not end the others. ``on_result`` is called after each."""
    results = []
    for repository in repositories:
        try:
            with connect(repository) as (github, name):
                result = sync(github, name)
        except WrongUsage:
            raise
        except AccordError as error:
            result = SyncResult(repository, _failure(error), error=error)
        results.append(result)
        on_result(result)
    return results


def overall_outcome(results: Sequence[SyncResult]) -> str:
    """Return one outcome for all repositories: the one that needs attention first."""
    outcomes = {result.outcome.value for result in results}
    return next((each for each in ("stopped", "refused", "applied", "planned") if each in outcomes), "unchanged")


def sync_repository(
    github: GitHub, repository: str, kit: Kit, pin: Pin, clock: Clock, *, is_dry_run: bool = False
) -> SyncResult:
    """Sync one repository's kit by a pull request. Raises no AccordError: the result has it."""
    plan = None
    try:
        installed = github.find_file(PLACE, "HEAD")
        if installed is not None and is_installed(
            read_manifest(installed.decode("utf-8", "surrogateescape")), kit, pin
        ):
            return SyncResult(repository, SyncOutcome.UNCHANGED)
        consumer = read_consumer(github, kit, pin)
        plan = plan_kit(kit, pin, consumer.manifest, consumer.files)
        if not plan.is_change:
            return SyncResult(repository, SyncOutcome.UNCHANGED, plan)
        proposal = read_proposal(github, repository, plan)
        operations = plan_proposal(plan, proposal)
        if operations is None:
            return SyncResult(repository, SyncOutcome.DECLINED, plan, proposal.pulls[0])
        return _apply(github, repository, operations, consumer, plan, proposal, clock, is_dry_run=is_dry_run)
    except Forbidden as error:
        hint = error.hint if known_refusal(error.message) else _PERMISSIONS
        return SyncResult(repository, SyncOutcome.REFUSED, plan, error=Refused(error.message, hint=hint))
    except AccordError as error:
        return SyncResult(repository, _failure(error), plan, error=error)


def _failure(error: AccordError) -> SyncOutcome:
    return SyncOutcome.STOPPED if isinstance(error, Stopped) else SyncOutcome.REFUSED


def is_installed(manifest: Manifest, kit: Kit, pin: Pin) -> bool:
    """Return whether a manifest names this very kit; edits of its files are the repository's."""
    kit, pin = for_repository(kit, pin, manifest)
    is_same = all(kit.files.get(path) == text for path, text in manifest.files.items())
    return manifest.pin == pin and is_same and not manifest.pending


def plan_proposal(plan: KitPlan, proposal: Proposal) -> tuple[PushKit | ProposeKit, ...] | None:
    """Return the operations of a plan that changes something; None where people closed its pull request. Pure.

    Raises Refused for other people's commits on the branch, which are never overwritten.
    """
    digest = plan_digest(plan)
    newest, current = next(iter(proposal.pulls), None), proposal.open_pull
    if newest and newest.state != "open" and not newest.is_merged and digest_in(newest.body) == digest:
        return None
    if not (proposal.is_wanted or proposal.is_ours):
        message = f"The branch {BRANCH} has commits that accord did not make."
        raise Refused(message, hint=f"Merge or delete the branch {BRANCH}, and run this again.")
    is_written = current is not None and digest_in(current.body) == digest
    number = current.number if current else 0
    return PushKit(BRANCH, skipped_if(proposal.is_wanted)), ProposeKit(BRANCH, skipped_if(is_written), number=number)


def _apply(
    github: GitHub,
    repository: str,
    operations: Sequence[PushKit | ProposeKit],
    consumer: Consumer,
    plan: KitPlan,
    proposal: Proposal,
    clock: Clock,
    *,
    is_dry_run: bool,
) -> SyncResult:
    pull, delivery = proposal.open_pull or next(iter(proposal.pulls), None), None

    def apply(operation: PushKit | ProposeKit) -> None:
        nonlocal pull, delivery
        if isinstance(operation, PushKit):
            delivery = _push(github, consumer, plan, proposal, clock)
        else:
            pull = _write_pull(github, consumer, plan, proposal, clock)

    entries, error = apply_in_order(operations, apply, is_dry_run=is_dry_run)
    if error:
        raise error
    is_done = all(operation.found for operation in operations)
    outcome = SyncOutcome.UNCHANGED if is_done else SyncOutcome.PLANNED if is_dry_run else SyncOutcome.APPLIED
    return SyncResult(repository, outcome, plan, pull, delivery=delivery, operations=entries)


def _push(github: GitHub, consumer: Consumer, plan: KitPlan, proposal: Proposal, clock: Clock) -> Delivery:
    """Make the one commit on top of the default branch, and point the branch to it."""
    changes: dict[str, TreeChange] = {
        file.path: None if file.after is None else (consumer.modes.get(file.path, "100644"), file.after)
        for file in plan.changes
    }
    changes[PLACE] = ("100644", manifest_text(plan.manifest))
    tree = send_until_answered(lambda: github.create_tree(changes, consumer.tree), clock)
    message = f"{_title(plan)}\n\nFrom accord {plan.manifest.commit}. Edits in this repository are kept.\n"
    commit = send_until_answered(lambda: github.create_commit(message, tree, [consumer.commit]), clock)
    if proposal.tip:
        github.replace_ref(REF, commit.sha)
        return Delivery(commit.sha, CommitWay.API, commit.is_verified, requests=3)
    try:
        create_ref_once(github, REF, commit.sha, clock)
    except Conflict as conflict:
        message = f"Another process created the branch {BRANCH} meanwhile."
        raise Stopped(message, hint="Run the same command again.") from conflict
    return Delivery(commit.sha, CommitWay.API, commit.is_verified, requests=3)


def _write_pull(github: GitHub, consumer: Consumer, plan: KitPlan, proposal: Proposal, clock: Clock) -> Pull:
    text = body(plan)
    if proposal.open_pull:
        return github.change_pull(proposal.open_pull.number, title=_title(plan), body=text)

    def find() -> Pull | None:
        return next(iter(github.pulls_from(BRANCH, state="open")), None)

    try:
        return send_once(
            lambda: github.create_pull(_title(plan), text, BRANCH, consumer.branch, draft=False), find, clock
        )
    except Conflict:  # another run was faster: GitHub has one open pull request for each branch
        found = find()
        if found is None:
            raise
        return found


def _title(plan: KitPlan) -> str:
    return f"{SUBJECT} to v{plan.manifest.version}"


def plan_digest(plan: KitPlan) -> str:
    """Return a digest of the plan: the same plan has the same digest."""
    after = {file.path: None if file.after is None else digest_of(file.after) for file in plan.changes}
    content = json.dumps([after, manifest_digest(plan.manifest)], sort_keys=True)
    return hashlib.sha256(content.encode()).hexdigest()


def digest_in(body: str) -> str:
    """Return the digest in a body's marker; empty without one."""
    return next((found.get("plan", "") for found in find_markers(body, _MARKER)), "")


def body(plan: KitPlan) -> str:
    """Return the pull request's body: every file, and the conflicts with what the template changed."""
    rows = [[cell(file.path), file.action.value, cell(file.note)] for file in plan.files]
    parts = [
        f"This updates accord's kit to `{plan.manifest.commit}`. Edits in this repository are kept.",
        table(["File", "What happens", "Why"], rows),
    ]
    if conflicts := plan.of(Action.CONFLICT):
        texts = [_CONFLICTS]
        for file in conflicts:
            texts += [f"### {cell(file.path)}", code_block(unified_diff(*file.template, file.path), "diff")]
        parts.append("\n\n".join(texts))
    parts.append(
        "Close this pull request to keep the present files: it comes back only with other changes. "
        "Other people's commits on its branch are not overwritten."
    )
    end = write_marker(_MARKER, plan=plan_digest(plan))
    return f"{_shortened(parts, BODY_CHARS - len(end) - 2)}\n\n{end}"


def _shortened(parts: Sequence[str], limit: int) -> str:
    """Join the parts; a text that is too long loses the conflicts' diffs, then its end."""
    whole = "\n\n".join(parts)
    if len(whole) <= limit:
        return whole
    note = "\n\nThe rest is too long to show. Run `accord init --dry-run` in a checkout to see it."
    return "\n\n".join(part for part in parts if not part.startswith("## "))[: limit - len(note)] + note
