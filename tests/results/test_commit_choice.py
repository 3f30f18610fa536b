"""Where the commit of an implementor result goes, decided from what was read. No repository is needed."""

from dataclasses import replace
from typing import Any

import pytest
from support.reviews import CLOSING_PULL

from accord.core.errors import BrokenContract, Refused
from accord.git.branches import BranchFacts
from accord.git.patches import PatchConflict
from accord.github.models import Identity
from accord.results.implementor.commit import BranchState, CommitBranch, PatchTrial, choose_commit
from accord.text.markers import REVISION, write_marker

TOKEN = "run-1"
BROKEN = BrokenContract("The patch is broken.")
CONFLICT = PatchTrial(own_base="b", problem=PatchConflict("The patch does not fit."))
OWN = replace(CLOSING_PULL, author="accord[bot]", state="open", is_merged=False, body=write_marker(REVISION, run=TOKEN))
MERGED = replace(OWN, state="closed", is_merged=True)
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


def test_a_patch_that_fits_nowhere_or_whose_branch_is_taken_is_refused() -> None:
    with pytest.raises(BrokenContract, match="broken"):
        choice(place(), beside=beside(), trial=PatchTrial(problem=BROKEN))
    with pytest.raises(Refused, match="has other commits"):
        choice(place(), beside=beside("x"), trial=CONFLICT)


def test_a_conflict_names_the_branch_that_it_is_about() -> None:
    assert choice(place(), beside=beside(), trial=CONFLICT).onto == "accord/7"
    assert choice(place(tip=""), trial=CONFLICT).onto == "main"
