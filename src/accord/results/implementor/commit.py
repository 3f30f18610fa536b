"""The commit of an implementor result: read its branch, choose where the commit goes, and make it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from itertools import count
from typing import TYPE_CHECKING, Literal

from accord.core.errors import BrokenContract, Refused
from accord.core.frozen import Frozen
from accord.engine.owner import items_of_result
from accord.git.branches import (
    BranchFacts,
    Remote,
    commit_of_run,
    commit_tree,
    fetch_branch,
    fetch_refs,
    find_tip,
    remote_heads,
    runs_of,
    tip_of,
    work_branches,
)
from accord.git.configuration import prefix_at, work_branch
from accord.git.conflicts import conflict_branch
from accord.git.patches import Change, PatchConflict, apply_patch, changes_between, own_base
from accord.git.program import Git, is_ancestor
from accord.git.replacing import replacement, with_tree
from accord.github.models import Identity, Pull
from accord.github.pulls import are_over, heads_on
from accord.results.bodies import has_marker
from accord.text.markers import REVISION, find_markers

if TYPE_CHECKING:
    from accord.github.client import GitHub


class CommitBranch(Frozen):
    """A branch for the commit, what is on it, its pull requests, and the branch that these are for."""

    name: str
    base: str
    found: BranchFacts
    pulls: tuple[Pull, ...]
    is_over: bool = False

    @property
    def is_open(self) -> bool:
        """Whether work goes on in a pull request."""
        return any(pull.state == "open" for pull in self.pulls)


class PatchTrial(Frozen):
    """How a patch applies. Nothing is committed."""

    tree: str = ""  # what it makes of the branch
    start: str = ""  # where it was made, for one that takes the place of earlier results
    own_base: str = ""  # where a patch with a problem applies, empty for nowhere
    problem: PatchConflict | BrokenContract | None = None


class BranchState(Frozen):
    """The work item's branch as a run finds it; what is None was not read."""

    git: Git
    remote: Remote
    identity: Identity
    token: str
    place: CommitBranch
    has_later_run: bool  # a later run committed on top
    is_resolved: bool  # this run's commit came in by a merge, so a person resolved its conflict
    beside: CommitBranch | None = None  # for a commit that conflicts with the branch
    trial: PatchTrial | None = None
    over: tuple[CommitBranch, ...] = ()  # the item's earlier branches


class CommitChoice(Frozen):
    """Where the commit goes; ``pushed`` is there already, in ``place.found.applied``."""

    kind: Literal["superseded", "pushed", "fresh", "replace", "beside"]
    place: CommitBranch
    trial: PatchTrial = PatchTrial()
    onto: str = ""  # the branch with which a commit ``beside`` conflicts
    pull: Pull | None = None  # merged or closed, which had the result


class MadeCommit(Frozen):
    """A commit that is not pushed yet, and its changes."""

    commit: str
    changes: Sequence[Change]
    parent: str = ""  # where its patch was made, if that is not on the branch
    made: str = ""  # what the patch makes of that, for a commit that replaces those of earlier results


def read_branch(
    github: GitHub, git: Git, remote: Remote, patch: bytes, item: int, identity: Identity, token: str, base: str
) -> BranchState:
    """Read the branch as far as the choice of a commit needs it."""
    heads = remote_heads(git, remote)
    names = work_branches(heads, item)
    fetch_refs(git, remote, {base: "base", **{name: f"work/{name}" for name in names if name != base}})
    prefix = prefix_at(git, tip_of(git, "base"))
    prefixes = (*_earlier_prefixes(github, names, item, identity, prefix), prefix)
    lines: list[list[CommitBranch]] = []
    for each in prefixes:
        lines.append([])
        try:
            for place in _read_places(github, git, heads, patch, item, token, base, each):
                lines[-1].append(place)
        except Refused:  # a branch is in the way of this name, which open work under an earlier one does not need
            if not any(each.is_open for line in lines for each in line):
                raise
    usable = [each for line in reversed(lines) for each in line if not each.is_over]
    place = max(usable, key=lambda each: (bool(each.found.applied), each.is_open))
    found = place.found
    first_parents = ("rev-list", "--first-parent", f"{found.base}..{found.tip}")
    state = BranchState(
        git,
        remote,
        identity,
        token,
        place,
        has_later_run=bool(found.applied and runs_of(git, f"{found.applied}..{found.tip}")),
        is_resolved=bool(found.applied) and found.applied not in git.line(*first_parents).split(),
        over=tuple(each for line in lines for each in line if each is not place and each.pulls and not each.is_open),
    )
    if choose_commit(state) is None:
        places = (*state.over, *([place] if found.tip else []))
        beside = [_read_beside(github, patch, state, each) for each in places]
        begun = (each for each in beside if each.found.applied or _own_pulls(state, each.pulls))
        state = replace(state, beside=next(begun, beside[-1] if found.tip else None))
    if choose_commit(state) is None:
        state = replace(state, trial=_try_patch(git, patch, found, item))
    return state


def _earlier_prefixes(github: GitHub, names: Sequence[str], item: int, identity: Identity, prefix: str) -> list[str]:
    """Return the other prefixes of branches from which we opened pull requests for the item."""
    others = ((name, name.rpartition("/")[0]) for name in names)
    ours = (
        earlier
        for name, earlier in others
        if earlier not in ("", prefix)
        for pull in github.pulls_from(name)
        if item in items_of_result(pull.body) and identity.counts(pull.author)
    )
    return list(dict.fromkeys(ours))


def _read_places(
    github: GitHub, git: Git, heads: Mapping[str, str], patch: bytes, item: int, token: str, base: str, prefix: str
) -> Iterator[CommitBranch]:
    """Yield the item's branches whose work is over, and the one for the next commit.

    After that one, if it is open without the result, come later branches, which have it if a person reopened an
    earlier pull request.
    """
    start = tip_of(git, "base")
    for number in count(1):
        name = work_branch(item, number, prefix)
        tip = tip_of(git, "base" if name == base else f"work/{name}") if find_tip(heads, name) else ""
        applied = commit_of_run(git, token, f"{start}..{tip}", patch) if tip else ""
        pulls = tuple(github.pulls_from(name))
        if number > 1 and tip and not pulls and not runs_of(git, f"{start}..{tip}"):
            continue  # of another author
        kept = heads_on(git, tip, pulls)
        is_over = are_over(pulls, kept)
        if is_over and not any(is_ancestor(git, applied, head) for head in kept or ()):
            applied = ""  # pushed after the end of the pull requests, so that none of them has it
        yield CommitBranch(name, base, BranchFacts(start, tip, applied), pulls, is_over)
        if not is_over and (applied or not pulls):
            return


def _read_beside(github: GitHub, patch: bytes, state: BranchState, place: CommitBranch) -> CommitBranch:
    git = state.git
    name = conflict_branch(f"{place.name}-conflict", state.token)
    base, start = (place.name, place.found.tip) if place.is_open else (place.base, place.found.base)
    tip = fetch_branch(git, state.remote, name, "beside")
    applied = commit_of_run(git, state.token, f"{start}..{tip}", patch) if tip else ""
    return CommitBranch(name, base, BranchFacts(start, tip, applied), tuple(github.pulls_from(name)))


def _try_patch(git: Git, patch: bytes, found: BranchFacts, item: int) -> PatchTrial:
    if found.tip:
        start, tree = replacement(git, patch, found.base, found.tip, f"#{item}")
        if start and tree != git.line("rev-parse", f"{found.tip}^{{tree}}"):
            return PatchTrial(tree, start)
    try:
        return PatchTrial(apply_patch(git, patch, found.tip or found.base, found.base))
    except (PatchConflict, BrokenContract) as problem:
        base, _ = own_base(git, patch, found.base, *filter(None, [found.tip]))
        return PatchTrial(own_base=base, problem=problem)


def choose_commit(state: BranchState) -> CommitChoice | None:
    """Choose where the commit of a run goes; None where more must be read. Pure.

    Raises PatchConflict or BrokenContract for a patch that applies nowhere, and Refused if the branch for it has other
    commits.
    """
    place, beside, trial = state.place, state.beside, state.trial
    ended = _ended_pull(state)
    if ended or state.has_later_run or state.is_resolved or _is_superseded(state):
        return CommitChoice("superseded", place, pull=ended)
    if place.found.applied:
        return CommitChoice("pushed", place)
    if beside and any(pull.is_merged or not beside.found.applied for pull in _own_pulls(state, beside.pulls)):
        return CommitChoice("superseded", place)  # a person merged the conflicting commit, or replaced or deleted it
    if beside and beside.found.applied:
        return CommitChoice("pushed", beside)
    if trial is None:
        return None
    if trial.problem is None:
        return CommitChoice("replace" if trial.start else "fresh", place, trial)
    if place.found.tip and _own_pulls(state, place.pulls):
        return CommitChoice("superseded", place)
    if not trial.own_base:
        raise trial.problem
    onto, place = place.name if place.found.tip else place.base, beside or place
    if place.found.tip:
        message = f"The patch conflicts with `{onto}`, and `{place.name}` has other commits."
        raise Refused(message, hint="Delete or rename that branch, and apply the result again.")
    return CommitChoice("beside", place, trial, onto)


def make_commit(
    git: Git, choice: CommitChoice, patch: bytes, message: Callable[[str, str], str], author: str, now: datetime
) -> MadeCommit | None:
    """Make the commit that was chosen; None for one that is pushed.

    ``message`` returns its message, from the branch with which it conflicts and the commit that it was made on.
    """
    found, trial, made = choice.place.found, choice.trial, ""
    if choice.kind == "pushed":
        return None
    parent = trial.own_base or found.tip or found.base
    tree = trial.tree or apply_patch(git, patch, parent, parent)
    is_behind = bool(trial.start) and not is_ancestor(git, trial.start, found.tip)
    parents = [parent, trial.start] if is_behind else [parent]
    text = with_tree(message(choice.onto, trial.start), tree)
    commit = commit_tree(git, tree, parents, author, text, now)
    if trial.start:
        made = apply_patch(git, patch, trial.start)
        return MadeCommit(commit, changes_between(git, trial.start, made), trial.start, made)
    return MadeCommit(commit, changes_between(git, parent, tree), trial.own_base)


def _ended_pull(state: BranchState) -> Pull | None:
    """Return the pull request with which this run's result was merged or closed, also where its branch is gone."""
    for place in (*state.over, state.place):
        is_ended = place is not state.place
        for pull in place.pulls:
            is_own = state.identity.counts(pull.author) and state.token in runs_in(pull.body, REVISION)
            if (is_ended and place.found.applied) or (is_own and (is_ended or pull.is_merged)):
                return pull
    return None


def _is_superseded(state: BranchState) -> bool:
    """Return whether a later run wrote the open pull request, or a person took this run's commit off its branch."""
    found, still_open = state.place.found, [pull for pull in state.place.pulls if pull.state == "open"]
    ours = (pull for pull in still_open if state.identity.counts(pull.author))
    is_gone = bool(found.tip) and not found.applied and bool(_own_pulls(state, still_open))
    return is_gone or any(state.token in runs_before(pull.body, REVISION) for pull in ours)


def _own_pulls(state: BranchState, pulls: Sequence[Pull]) -> list[Pull]:
    return [pull for pull in pulls if is_of_run(pull, state.identity, state.token)]


def is_of_run(pull: Pull, identity: Identity, token: str) -> bool:
    """Return whether a run wrote a pull request."""
    return identity.counts(pull.author) and has_marker(pull.body, REVISION, token)


def runs_before(body: str, name: str) -> list[str]:
    """Return the runs after which a text of ours was written, by its marker."""
    return [run for fields in find_markers(body, name) for run in fields.get("after", "").split(".") if run]


def runs_in(body: str, name: str) -> list[str]:
    """Return the run that wrote a text of ours, and those before it."""
    return [*(fields.get("run", "") for fields in find_markers(body, name)), *runs_before(body, name)]
