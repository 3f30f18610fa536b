"""Where the commit of an implementor result goes, and the texts about it: decided from what was read."""

import re
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest
from support.plans import task_body
from support.renderer import complaints
from support.reviews import CLOSING_PULL

from accord.core.errors import BrokenContract, Refused
from accord.git.branches import BranchFacts
from accord.git.configuration import unread_configs
from accord.git.patches import PatchConflict
from accord.github.limits import BODY_CHARS
from accord.github.models import Identity
from accord.github.pulls import are_over
from accord.results.implementor.commit import BranchState, CommitBranch, PatchTrial, choose_commit
from accord.results.implementor.facts import OUTCOME, RevisionFacts, our_pull, with_comments
from accord.results.implementor.plan import plan_revision, pull_body
from accord.results.implementor.rules import ScopeReport
from accord.results.texts import TextSanitizer
from accord.text.markers import REVISION, write_marker
from accord.text.outline import blank_code
from accord.text.posting import PostingPolicy
from accord.text.redaction import Redactor

TOKEN = "run-1"
BOT = Identity("accord[bot]", False)
ITEM: Any = SimpleNamespace(number=7, body=task_body(criteria="None"))
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
    return choose_commit(BranchState(None, None, BOT, TOKEN, at, **facts))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("at", "known", "kind"),
    [
        (place(), {}, None),
        (place(applied="c"), {}, "pushed"),
        (place(applied="c"), {"has_later_run": True}, "superseded"),
        (place(applied="c"), {"is_resolved": True}, "superseded"),
        (place("accord/7", "t", "c", LATER), {}, "superseded"),
        (place("accord/7-2", "", ""), {"over": (place("accord/7", "", "", MERGED),)}, "superseded"),
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
    ("pulls", "heads", "is_ended"),
    [
        ([MERGED], [OWN.head_sha], True),  # in any way
        ([CLOSED], [OWN.head_sha], True),
        ([CLOSED, MERGED], [OWN.head_sha], True),
        ([FOREIGN], [OWN.head_sha], True),
        ([MERGED], None, True),  # and the branch was deleted
        ([CLOSED, MERGED], None, True),
        ([MERGED], [], False),  # made again
        ([OWN, MERGED], [OWN.head_sha], False),
        ([replace(MERGED, head_branch="main", default_branch="main")], [OWN.head_sha], False),
        ([], None, False),
    ],
)
def test_a_branch_is_over_when_it_has_commits_of_ended_pull_requests_alone_or_is_gone(
    pulls: list[Any], heads: list[str] | None, is_ended: bool
) -> None:
    assert are_over(pulls, heads) is is_ended


@pytest.mark.parametrize(
    ("over", "at", "ended"),
    [
        (place("accord/7", "t", "c", FOREIGN), place("accord/7-2", ""), FOREIGN),
        (place("accord/7", "t", "", CLOSED), place("accord/7-2", ""), CLOSED),
        (place("accord/7", "t", "", replace(LATER, state="closed")), place("accord/7-2"), LATER),
        (place("accord/7-2", "", "", CLOSED), place("accord/7-3", ""), CLOSED),
        (place("accord/7", "t", "", FOREIGN), place("accord/7-2", "t", "c", OWN), None),
        (None, place("accord/7", "t", "", MERGED), MERGED),
        (place("accord/7", "", "", replace(LATER, state="closed")), place("accord/7-2"), LATER),
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


@pytest.mark.parametrize(
    ("pull", "base", "message", "hint"),
    [
        (CLOSED, "", "#5 has this result and was closed", "--run-key"),
        (MERGED, "", "#5 has this result and was merged", "new result"),
        (MERGED, "main", "`main` has these changes, and #5 was merged", "new result"),
    ],
)
def test_a_result_that_ended_says_how_the_work_goes_on(pull: Any, base: str, message: str, hint: str) -> None:
    branch = SimpleNamespace(is_empty=True) if base else None
    facts = RevisionFacts(BOT, TOKEN, ITEM, "", "main", "accord/7", is_superseded=True, ended=pull, branch=branch)  # type: ignore[arg-type]
    plan = plan_revision(facts, None, None, None)  # type: ignore[arg-type]
    (found,) = plan.findings
    assert (plan.operations, found.code, plan.pull) == ((), "revision-ended", pull)
    assert message in found.message
    assert hint in found.hint


def test_a_result_on_its_branch_changes_nothing_after_a_comment_about_a_later_one() -> None:
    later = SimpleNamespace(author=BOT.login, body=write_marker(OUTCOME, run="run-2", item="7", after=TOKEN))
    branch = SimpleNamespace(is_empty=False, findings=(), is_pushed=True)
    facts = RevisionFacts(BOT, TOKEN, ITEM, "", "main", "accord/7", branch=branch)  # type: ignore[arg-type]
    facts = with_comments(SimpleNamespace(comments=lambda _: [later]), facts)  # type: ignore[arg-type]
    plan = plan_revision(facts, None, None, None)  # type: ignore[arg-type]
    assert ([found.code for found in plan.findings], plan.operations) == (["revision-superseded"], ())


def test_a_file_that_looks_like_the_configuration_is_named_with_the_name_that_is_read() -> None:
    files = {".github/accord/config.yaml": b"branch_prefix: bots\n"}
    ((path, found),) = unread_configs(files.get)
    assert (path, found.code, "git mv" in found.hint) == (*files, "config-unread", True)


@pytest.mark.parametrize(
    ("pulls", "commits", "expected"),
    [
        ([CLOSED, OWN], [], (OWN, True)),
        ([LATER, MERGED], [], (LATER, False)),
        ([MERGED], [], (MERGED, True)),
        ([CLOSED], [OWN.head_sha], (CLOSED, True)),
        ([CLOSED], ["pushed-since"], (None, False)),
        ([FOREIGN], [OWN.head_sha], (None, False)),
    ],
)
def test_a_run_goes_on_with_an_open_pull_request_and_knows_its_own_that_people_ended(
    pulls: list[Any], commits: list[str], expected: Any
) -> None:
    assert our_pull(RevisionFacts(BOT, TOKEN, ITEM, "", "main", "accord/7"), pulls, commits) == expected


def body_of(summary: str, paths: tuple[str, ...] = ("src/a.py",)) -> tuple[str, TextSanitizer]:
    """Return the pull request's body of a result, which a squash merge makes a commit message."""
    sanitizer, facts = TextSanitizer(Redactor(), PostingPolicy()), RevisionFacts(BOT, TOKEN, ITEM, "", "main", "b")
    return pull_body(sanitizer.body(summary), ScopeReport(paths, (), (), ()), facts, sanitizer), sanitizer


def test_a_squash_merge_skips_no_checks() -> None:
    summary = "Did it. [skip ci]\n\n`[ci skip]` `fixes #98`\n\n```\n[skip\nactions]\n```\n\n"
    body, sanitizer = body_of(summary + "skip-checks: true\nAcked-by: A <a@b.c>", ("src/[no ci].py",))
    assert not re.search(r"\[(?:skip|ci|no|actions)\s+\w+\]|skip-checks:|-by:", body)
    for text in ("Did it. (skip ci)", "`f\u2060ixes #98`", "`src/(no ci).py`"):
        assert text in body
    assert sanitizer.sanitised["commands"] == 6


def test_a_summary_that_is_cut_takes_nothing_below_it_into_its_code() -> None:
    body, _ = body_of("Did it.\n\n```\n" + "@octocat fixes #3\n" * 6_000 + "```")
    assert len(body) <= BODY_CHARS
    summary, _, rest = body.partition("*The summary is cut here")
    assert not complaints(summary)
    assert "\n\nCloses #7\n\n<!-- accord:revision" in rest
    assert "Closes #7" in blank_code(body)
