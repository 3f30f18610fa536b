"""Keep a consumer's kit in step from outside: one branch with one commit, and one pull request that follows it."""

from __future__ import annotations

import hashlib
import json
import re
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from accord.core.errors import AccordError, BrokenContract, Refused, Stopped
from accord.core.findings import Finding, pointer, with_lines
from accord.files.yaml import read_yaml
from accord.github.git_data import create_ref_once
from accord.github.limits import BODY_CHARS
from accord.github.markers import find_markers, write_marker
from accord.github.models import Conflict, Forbidden
from accord.github.once import send_once, send_until_answered
from accord.kit.manifest import (
    FOLDER,
    PLACE,
    Manifest,
    Pin,
    check_version,
    digest_of,
    manifest_text,
    read_manifest,
    with_pin,
)
from accord.kit.plan import Action, KitPlan, merge_texts, plan_kit, unified_diff
from accord.text.markdown import cell, fenced, table

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from accord.core.clock import Clock
    from accord.github.client import GitHub
    from accord.github.git_data import TreeEntry
    from accord.github.models import Pull
    from accord.kit.manifest import Kit, Pin
    from accord.kit.plan import FilePlan, KitPlan


@dataclass(frozen=True)
class Consumer:
    """The default branch: its newest commit, that commit's tree, the manifest, and the kit's files as they are.

    ``modes`` has git's mode of each file, so that a change keeps it.
    """

    branch: str
    commit: str
    tree: str
    manifest: Manifest
    files: Mapping[str, str]
    modes: Mapping[str, str] = field(default_factory=dict)


def blob_of(text: str) -> str:
    """Return the name that git gives a file with this text."""
    data = text.encode("utf-8", "surrogateescape")
    return hashlib.sha1(b"blob %d\0%s" % (len(data), data), usedforsecurity=False).hexdigest()


def read_consumer(github: GitHub, kit: Kit, pin: Pin) -> Consumer:
    """Read a repository: five requests, and one more for each edited file.

    A file whose blob is that of a template is not fetched. Raises Refused for an archived, an empty or a kitless one.
    """
    repository = github.repository()
    if repository.is_archived:
        raise Refused("The repository is archived.", hint="Unarchive it, or leave it out of the list.")
    commit = github.ref(f"refs/heads/{repository.default_branch}")
    if commit is None:
        raise Refused("The repository is empty.", hint="Commit something first, such as what accord init writes.")
    tree, entries = kit_entries(github, commit)
    if PLACE not in entries:
        raise Refused(
            f"There is no {PLACE}, so this repository does not have the kit.",
            hint="Run accord init in a checkout of it, and commit what it writes.",
        )
    manifest = read_manifest(_text(github, PLACE, commit))
    check_version(manifest, kit.version)
    known = _known_texts(kit, pin, manifest)
    files = {}
    for path in sorted(kit.files.keys() | manifest.files.keys() | manifest.pending.keys()):
        if path in entries:
            files[path] = known.get(_blob(entries, path)) or _text(github, path, commit)
    modes = {path: entries[path].mode for path in files}
    return Consumer(repository.default_branch, commit, tree, manifest, files, modes)


def kit_entries(github: GitHub, commit: str) -> tuple[str, dict[str, TreeEntry]]:
    """List what a commit has in the kit's folder, by path, and the name of the commit's whole tree."""
    root = github.tree(commit)
    folder = next((entry for entry in root.entries if entry.path == FOLDER), None)
    if folder is None:
        return root.sha, {}
    if folder.kind != "tree":
        raise Refused(f"{FOLDER} is no folder in this repository.", hint="Make it one.")
    below = github.tree(folder.sha, recursive=True).entries
    return root.sha, {f"{FOLDER}/{entry.path}": entry for entry in below}


def _blob(entries: Mapping[str, TreeEntry], path: str) -> str:
    entry = entries[path]
    if entry.kind != "blob" or entry.mode == "120000":
        raise Refused(f"{path} is no plain file in this repository.", hint="Replace the link or folder by a file.")
    return entry.sha


def _known_texts(kit: Kit, pin: Pin, manifest: Manifest) -> dict[str, str]:
    """Return the texts that need not be fetched, by the names of their blobs."""
    texts = [with_pin(entry.text, f"{manifest.commit} # v{manifest.version}") for entry in manifest.files.values()]
    return {blob_of(text): text for text in [*texts, *_pinned(kit.files.values(), pin)]}


def _pinned(texts: Iterable[str], pin: Pin) -> list[str]:
    return [with_pin(text, pin) for text in texts]


def _text(github: GitHub, path: str, commit: str) -> str:
    return github.file(path, commit).decode("utf-8", "surrogateescape")


_NAME = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9-]*[A-Za-z0-9])?/[A-Za-z0-9._-]+")


def read_repositories(raw: bytes) -> list[str]:
    """Read a YAML or JSON list of ``OWNER/NAME``, each once. Raises BrokenContract with every finding on its line."""
    document = read_yaml(raw)
    names = document.value
    if not isinstance(names, list) or not names:
        message = "The file holds no list of repositories. Write one OWNER/NAME an entry."
        raise BrokenContract(message, findings=[Finding("schema", message, line=1)])
    findings = [
        Finding("schema", f"This is no repository: {name!r:.80}. Write it as OWNER/NAME.", pointer(i))
        for i, name in enumerate(names)
        if not isinstance(name, str) or not _NAME.fullmatch(name)
    ]
    if findings:
        findings = with_lines(findings, document.lines)
        told = " ".join(f"Line {finding.line}: {finding.message}" for finding in findings[:5])
        raise BrokenContract(f"The list of repositories does not hold. {told}", findings=findings)
    return list({name.lower(): name for name in reversed(names)}.values())[::-1]


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
