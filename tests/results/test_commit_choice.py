"""Where the commit of an implementor result goes, decided from what was read. No repository is needed."""

from dataclasses import replace
from typing import Any

import pytest
from support.reviews import CLOSING_PULL

from accord.core.errors import BrokenContract, Refused
from accord.git.branches import BranchFacts
from accord.git.patches import PatchConflict
from accord.github.models import Identity
from accord.github.pulls import are_over
from accord.results.implementor.commit import BranchState, CommitBranch, PatchTrial, choose_commit
from accord.text.markers import REVISION, write_marker

TOKEN = "run-1"
BROKEN = BrokenContract("The patch is broken.")
CONFLICT = PatchTrial(own_base="b", problem=PatchConflict("The patch does not fit."))
OWN = replace(CLOSING_PULL, author="accord[bot]", state="open", is_merged=False, body=write_marker(REVISION, run=TOKEN))
MERGED = replace(OWN, state="closed", is_merged=True)
CLOSED = replace(OWN, state="closed")
FOREIGN = replace(CLOSED, author="a-person")
LATER = replace(OWN, body=write_marker(REVISION, run="run-2", after=TOKEN))


def place(name: str = "accord/7", tip: str = "t", applied: str = "", *pulls: Any) -> CommitBranch:
    return CommitBranch(name, "main", BranchFacts("b", tip, applied), pulls)


def beside(tip: str = "", applied: str = "", *pulls: Any) -> CommitBranch:
    return place("accord/7-conflict-1", tip, applied, *pulls)


def choice(at: CommitBranch, **known: Any) -> Any:
    facts = {"has_later_run": False, "is_resolved": False, **known}
    return choose_commit(BranchState(None, None, Identity("accord[bot]", False), TOKEN, at, **facts))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("at", "known", "kind"),
    [
        (place(), {}, None),
        (place(applied="c"), {}, "pushed"),
        (place(applied="c"), {"has_later_run": True}, "superseded"),
        (place(applied="c"), {"is_resolved": True}, "superseded"),
        (place("accord/7", "t", "c", LATER), {}, "superseded"),
        (place("accord/7", "", "", MERGED), {}, "superseded"),
        (place(), {"beside": beside("x", "c")}, "pushed"),
        (place(), {"beside": beside("", "", MERGED)}, "superseded"),
        (place(), {"beside": beside(), "trial": PatchTrial("tree")}, "fresh"),
        (place(), {"beside": beside(), "trial": PatchTrial("tree", "s")}, "replace"),
        (place(), {"beside": beside(), "trial": CONFLICT}, "beside"),
        (place(tip=""), {"trial": CONFLICT}, "beside"),
        (place("accord/7", "t", "", OWN), {"beside": beside(), "trial": CONFLICT}, "superseded"),
    ],
)
def test_a_commit_goes_where_its_work_fits(at: CommitBranch, known: dict[str, Any], kind: str | None) -> None:
    chosen = choice(at, **known)
    assert (chosen and chosen.kind) == kind


@pytest.mark.parametrize(
    ("pulls", "commits", "is_ended"),
    [
        ([MERGED], ["t", OWN.head_sha], True),  # by squash or rebase, or into another branch
        ([CLOSED], [OWN.head_sha], True),
        ([CLOSED, MERGED], [OWN.head_sha], True),
        ([FOREIGN], ["pushed-since", OWN.head_sha], True),
        ([MERGED], [], False),  # by a merge commit
        ([MERGED], ["next"], False),  # by a merge commit, or made again, and the next result's pull request is missing
        ([OWN, MERGED], ["next", OWN.head_sha], False),
        ([], ["t"], False),
    ],
)
def test_a_branch_is_over_when_it_has_commits_of_ended_pull_requests_alone(
    pulls: list[Any], commits: list[str], is_ended: bool
) -> None:
    assert are_over(pulls, commits) is is_ended


@pytest.mark.parametrize(
    ("over", "at", "ended"),
    [
        (place("accord/7", "t", "c", FOREIGN), place("accord/7-2", ""), FOREIGN),
        (place("accord/7", "t", "", CLOSED), place("accord/7-2", ""), CLOSED),
        (place("accord/7", "t", "", replace(LATER, state="closed")), place("accord/7-2"), LATER),
        (place("accord/7", "t", "", FOREIGN), place("accord/7-2", "", "", CLOSED), CLOSED),
        (place("accord/7", "t", "", FOREIGN), place("accord/7-2", "t", "c", OWN), None),
        (None, place("accord/7", "t", "", MERGED), MERGED),
        (None, place("accord/7", "", "", CLOSED), CLOSED),
    ],
)
def test_a_result_of_an_ended_pull_request_is_not_applied_again(over: Any, at: CommitBranch, ended: Any) -> None:
    chosen = choice(at, over=(over,) if over else (), trial=PatchTrial("tree"))
    assert (chosen.pull and chosen.pull.number) == (ended and ended.number)
    assert (chosen.kind == "superseded") is bool(ended)


def test_a_patch_that_fits_nowhere_or_whose_branch_is_taken_is_refused() -> None:
    with pytest.raises(BrokenContract, match="broken"):
        choice(place(), beside=beside(), trial=PatchTrial(problem=BROKEN))
    with pytest.raises(Refused, match="has other commits"):
        choice(place(), beside=beside("x"), trial=CONFLICT)


def test_a_conflict_names_the_branch_that_it_is_about() -> None:
    assert choice(place(), beside=beside(), trial=CONFLICT).onto == "accord/7"
    assert choice(place(tip=""), trial=CONFLICT).onto == "main"
