"""Sync the kit of a consumer's repository: one branch with one commit, and one pull request that follows it."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field
from typing import Any

from accord.core.errors import Problem, Refused, Stopped
from accord.core.frozen import Frozen
from accord.core.refusals import known_refusal
from accord.engine.operations import LedgerEntry, OperationLog, OperationStatus, skipped_if
from accord.git.configuration import CONFIG_PATHS, branch_in_the_way, way_refusal
from accord.git.filters import blob_id
from accord.git.replacing import TREE_TRAILER, with_tree
from accord.github.client import GitHub
from accord.github.commits import DeliveredCommit
from accord.github.git_data import Tree, TreeChange, TreeEntry
from accord.github.limits import BODY_CHARS
from accord.github.models import Conflict, Forbidden, Pull
from accord.kit.manifest import PLACE, Manifest, check_version, manifest_text, read_manifest
from accord.kit.many import ManyOutcome, outcome_of
from accord.kit.plan import Action, KitPlan, for_repository, plan_kit, unified_diff
from accord.kit.templates import FOLDER, Kit, Pin, with_pin
from accord.text.markdown import cell, code_block, table
from accord.text.markers import find_markers, write_marker

BRANCH = "accord/sync"
REF = f"refs/heads/{BRANCH}"
SUBJECT = "Update the accord kit"
_MARKER = "sync"
_PERMISSIONS = (
    "The token needs contents, pull requests and workflows to write in this repository. "
    "The token of a workflow's job cannot have them, so use one of an app."
)
_CONFLICTS = (
    "## Conflicts\n\nThese files were edited here and in the new version, in the same lines. They stay unchanged. "
    "Below are the changes of the templates; copy those that you want."
)


class Consumer(Frozen):
    """The newest commit of the default branch: its tree, the manifest, and the kit's files with git's modes."""

    branch: str
    commit: str
    tree: str
    manifest: Manifest
    files: Mapping[str, str]
    modes: Mapping[str, str] = field(default_factory=dict)


class Proposal(Frozen):
    """An existing proposal."""

    tip: str = ""  # of its branch, empty without one
    is_ours: bool = True  # the branch has one commit of ours on top, as we made it
    is_wanted: bool = False  # its files are those of the plan
    pulls: tuple[Pull, ...] = ()  # newest first

    @property
    def open_pull(self) -> Pull | None:
        """The open pull request."""
        return next((pull for pull in self.pulls if pull.state == "open"), None)


class SyncResult(Frozen):
    """The result for one repository."""

    repository: str
    outcome: ManyOutcome
    plan: KitPlan | None = None  # None where the repository could not be read
    pull: Pull | None = None
    error: Problem | None = None
    delivery: DeliveredCommit | None = None  # the commit that was made now
    operations: Sequence[LedgerEntry] = ()

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


def sync_repository(github: GitHub, repository: str, kit: Kit, pin: Pin, *, is_dry_run: bool = False) -> SyncResult:
    """Sync one repository's kit by a pull request. Raises no Problem: the result has it."""
    plan, log = None, OperationLog(is_dry_run)
    try:
        installed = github.find_file(PLACE, "HEAD")
        if installed is not None and is_installed(read_manifest(_decode(installed)), kit, pin):
            return SyncResult(repository, ManyOutcome.UNCHANGED)
        consumer = read_consumer(github, kit, pin)
        plan = plan_kit(kit, pin, consumer.manifest, consumer.files)
        if not plan.is_change:
            return SyncResult(repository, ManyOutcome.UNCHANGED, plan)
        proposal = _read_proposal(github, repository, plan)
        decided = decide(plan, proposal)
        pull, work = next(iter(proposal.pulls), None), (github, consumer, plan, proposal)
        if decided is None or all(decided):
            return SyncResult(repository, ManyOutcome.UNCHANGED if decided else ManyOutcome.DECLINED, plan, pull)
        pushed, written = decided
        delivery = log.write("push-branch", BRANCH, lambda: _push(*work), found=pushed)
        number = proposal.open_pull.number if proposal.open_pull else 0
        shown = log.write("propose-kit", BRANCH, lambda: _write_pull(*work), number=number, found=written)
        pull = shown or proposal.open_pull or pull
        outcome = ManyOutcome.PLANNED if is_dry_run else ManyOutcome.APPLIED
        return SyncResult(repository, outcome, plan, pull, delivery=delivery, operations=log.entries)
    except Problem as error:
        if isinstance(error, Forbidden) and not known_refusal(error.message):
            error.hint = _PERMISSIONS
        return SyncResult(repository, outcome_of(error), plan, error=error, operations=log.entries)


def is_installed(manifest: Manifest, kit: Kit, pin: Pin) -> bool:
    """Return whether a manifest names this very kit; edits of its files are the repository's."""
    kit, pin, _ = for_repository(kit, pin, manifest)
    is_same = all(kit.files.get(path) == text for path, text in manifest.files.items())
    return manifest.pin == pin and is_same


def read_consumer(github: GitHub, kit: Kit, pin: Pin) -> Consumer:
    """Read a repository; a file whose blob is that of a template is not fetched.

    Raises Refused for an archived repository, an empty one, and one without the kit.
    """
    repository = github.repository()
    if repository.is_archived:
        raise Refused("The repository is archived.", hint="Unarchive it, or remove it from the list.")
    commit = github.ref(f"refs/heads/{repository.default_branch}")
    if commit is None:
        raise Refused("The repository is empty.", hint="Run `accord init` in a checkout of it, and commit the files.")
    root = github.tree(commit)
    entries = _entries(github, root, [PLACE])
    if PLACE not in entries:
        message = f"The repository has no {PLACE}, so it does not have the kit."
        raise Refused(message, hint="Run `accord init` in a checkout of it, and commit the files.")
    manifest = read_manifest(_decode(github.file(PLACE, commit)))
    check_version(manifest, kit.version)
    kit, pin, _ = for_repository(kit, pin, manifest)
    texts = [with_pin(text, manifest.pin) for text in manifest.files.values()]
    known = {blob_of(text): text for text in [*texts, *(with_pin(text, pin) for text in kit.files.values())]}
    files = {}
    paths = sorted(kit.files.keys() | manifest.files.keys())
    entries |= _entries(github, root, [path for path in paths if not path.startswith(f"{FOLDER}/")])
    for path in paths:
        for folder in (path[: end.start()] for end in re.finditer("/", path)):
            if folder in entries and entries[folder].kind != "tree":
                raise Refused(f"{folder} is not a folder in this repository.", hint="Replace it by a folder.")
        if entry := entries.get(path):
            if entry.kind != "blob" or entry.mode == "120000":
                message = f"{path} is not a plain file in this repository."
                raise Refused(message, hint="Replace the link or folder by a file.")
            files[path] = known.get(entry.sha) or _decode(github.file(path, commit))
    modes = {path: entries[path].mode for path in files}
    files |= {path: "" for path in CONFIG_PATHS[:1] if path in entries}
    return Consumer(repository.default_branch, commit, root.sha, manifest, files, modes)


def _entries(github: GitHub, root: Tree, paths: Iterable[str]) -> dict[str, TreeEntry]:
    """Return the entries of a commit's tree by path: those at the top, and all in the folders of these paths."""
    folders = {path.partition("/")[0] for path in paths if "/" in path}
    found = {}
    for entry in root.entries:
        found[entry.path] = entry
        if entry.path in folders and entry.kind == "tree":
            found |= {f"{entry.path}/{each.path}": each for each in github.tree(entry.sha, recursive=True).entries}
    return found


def blob_of(text: str) -> str:
    """Return the id that git gives a file with this text."""
    return blob_id(text.encode("utf-8", "surrogateescape"), "sha1")


def _decode(raw: bytes) -> str:
    return raw.decode("utf-8", "surrogateescape")


def _read_proposal(github: GitHub, repository: str, plan: KitPlan) -> Proposal:
    found = github.pulls_from(BRANCH)
    pulls = tuple(pull for pull in found if pull.head_repository.lower() == repository.lower())
    tip = github.ref(REF)
    if tip is None:
        if other := branch_in_the_way(BRANCH, github.branches()):
            raise way_refusal(BRANCH, other)
        return Proposal(pulls=pulls)
    commit = github.commit_object(tip)
    is_ours = commit is not None and commit.message.rstrip().endswith(f"{TREE_TRAILER}: {commit.tree}")
    entries = _entries(github, github.tree(tip), [PLACE, *(file.path for file in plan.files)])
    blobs = {path: entry.sha for path, entry in entries.items()}
    texts = {PLACE: manifest_text(plan.manifest), **{file.path: file.after for file in plan.files}}
    is_wanted = all(blobs.get(path) == (None if text is None else blob_of(text)) for path, text in texts.items())
    return Proposal(tip, is_ours, is_wanted, pulls)


def decide(plan: KitPlan, proposal: Proposal) -> tuple[OperationStatus | None, OperationStatus | None] | None:
    """Return how the push and the pull request of a plan ended before; None where people closed the pull request.

    Raises Refused for a commit on the branch that people made or amended: it is not overwritten.
    """
    digest = plan_digest(plan)
    newest, current = next(iter(proposal.pulls), None), proposal.open_pull
    if newest and newest.state != "open" and not newest.is_merged and digest_in(newest.body) == digest:
        return None
    if not (proposal.is_wanted or proposal.is_ours):
        message = f"The branch {BRANCH} has a commit that accord did not make, or that was changed since."
        raise Refused(message, hint=f"Merge or delete the branch {BRANCH}, and run this again.")
    is_written = current is not None and digest_in(current.body) == digest
    return skipped_if(proposal.is_wanted), skipped_if(is_written)


def _push(github: GitHub, consumer: Consumer, plan: KitPlan, proposal: Proposal) -> DeliveredCommit:
    changes: dict[str, TreeChange] = {
        file.path: None if file.after is None else (consumer.modes.get(file.path, "100644"), file.after)
        for file in plan.changes
    }
    changes[PLACE] = ("100644", manifest_text(plan.manifest))
    tree = github.create_tree(changes, consumer.tree)
    words = f"{_title(plan)}\n\nFrom accord {plan.manifest.commit}. Edits in this repository are kept.\n\n"
    message = with_tree(words, tree)
    commit = github.create_commit(message, tree, [consumer.commit])
    if proposal.tip:
        github.replace_ref(REF, commit.sha)
        return DeliveredCommit(commit.sha, "api", commit.is_verified, requests=3)
    try:
        github.create_ref_once(REF, commit.sha)
    except Conflict as conflict:
        message = f"Another process created the branch {BRANCH} meanwhile."
        raise Stopped(message, hint="Run the same command again.") from conflict
    return DeliveredCommit(commit.sha, "api", commit.is_verified, requests=3)


def _write_pull(github: GitHub, consumer: Consumer, plan: KitPlan, proposal: Proposal) -> Pull:
    text = body(plan)
    if proposal.open_pull:
        return github.change_pull(proposal.open_pull.number, title=_title(plan), body=text)

    def find() -> Pull | None:
        return next(iter(github.pulls_from(BRANCH, state="open")), None)

    try:
        return github.send_once(
            lambda: github.create_pull(_title(plan), text, BRANCH, consumer.branch, draft=False), find
        )
    except Conflict:  # another run was faster: GitHub has one open pull request for each branch
        found = find()
        if found is None:
            raise
        return found


def _title(plan: KitPlan) -> str:
    return f"{SUBJECT} to v{plan.manifest.version}"


def plan_digest(plan: KitPlan) -> str:
    """Return a digest of the plan, whatever version of zlib packs its manifest."""
    after = {file.path: file.after for file in plan.changes}
    content = json.dumps([after, plan.manifest.model_dump(mode="json")], sort_keys=True)
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
        shown = (
            f"### {cell(one.path)}\n\n{code_block(unified_diff(*one.template, one.path), 'diff')}" for one in conflicts
        )
        parts.append("\n\n".join([_CONFLICTS, *shown]))
    parts.append(
        "Close this pull request to keep the present files: it comes back only with other changes. "
        "Commits that people make or amend on its branch are not overwritten."
    )
    end = write_marker(_MARKER, plan=plan_digest(plan))
    whole, limit = "\n\n".join(parts), BODY_CHARS - len(end) - 2
    if len(whole) > limit:  # without the conflicts' diffs, then without the end
        note = "\n\nThe rest is too long to show. Run `accord init --dry-run` in a checkout to see it."
        whole = "\n\n".join(part for part in parts if not part.startswith("## "))[: limit - len(note)] + note
    return f"{whole}\n\n{end}"
