"""Where an item or a pull request stands, and what a person types next: one entry for each, in one section."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from accord.board.models import BoardItem, BoardPull, BoardRepository, EndedPull, address_of, overview_from
from accord.board.work import overview_of_work
from accord.engine.trust import RefusedLabel
from accord.github.checks import Check
from accord.github.models import Identity, Issue, Pull
from accord.github.workflows import WorkflowRun
from accord.loops.models import ActiveRun, LoopState, Notice
from accord.starts.models import StatusRow

NOW = datetime(2026, 11, 2, 9, tzinfo=UTC)
PAGE = "https://github.example/octo/web"
ADDRESS = address_of("octo/web", "https://github.com")
BOT = Identity("github-actions[bot]", is_person=False)
TASK = ("task:implement", "priority:high")
BOTH = (*TASK, "task:refinement")
RUNNING = StatusRow(key="k", work="implement", state="running", since="2026-11-02T08:00:00Z", run=7, agent="codex")
FAILED = RUNNING.model_copy(update={"state": "failed", "result": "auth: the key expired"})
HELD = WorkflowRun(9, "CI", "ci.yml", "pull_request", "completed", "action_required", "h" * 40, "b", (), NOW)


SET_BY_TESS = RefusedLabel("agents:keepalive", "tess")


def item(*labels: str, rows: tuple[StatusRow, ...] = (), number: int = 3, **more: Any) -> BoardItem:
    blockers = more.pop("blockers", ())
    counted = more.pop("open_blockers", len(blockers))
    issue = Issue(
        id=number, number=number, url=f"{PAGE}/issues/{number}", title="Write", body="", labels=labels, state="open",
        state_reason=None, author="bot", author_is_bot=True, closed_by=None, is_pull=False, created_at=NOW,
        blocker_count=0, **more,
    )  # fmt: skip
    return BoardItem(issue, rows, counted, blockers)


def pull(*labels: str, **more: Any) -> BoardPull:
    facts = {name: more.pop(name) for name in BoardPull.__dataclass_fields__ if name in more}
    one = Pull(
        number=5, url=f"{PAGE}/pull/5", title="Change", body="Closes #3", state="open", is_merged=False,
        is_draft=more.pop("is_draft", False), is_locked=more.pop("is_locked", False), author="bot", labels=labels,
        head_branch="accord/3", head_sha="h" * 40, head_repository="octo/web", base_branch=more.pop("base", "main"),
        base_sha="b" * 40, merge_commit="", updated_at=NOW, is_mergeable=more.pop("is_mergeable", True),
        default_branch="main",
    )  # fmt: skip
    assert not more
    return BoardPull(one, (3,), **facts)


def loop(reason: str, action: Any = "stop", **more: Any) -> LoopState:
    return LoopState(notice=Notice(action=action, reason=reason, message="It says why."), **more)


def placed(
    *items: BoardItem, pulls: tuple[BoardPull, ...] = (), has_keepalive: bool = True
) -> list[tuple[str, str, str, str, str]]:
    facts = BoardRepository(ADDRESS, NOW, BOT, items, pulls, has_keepalive=has_keepalive)
    sections = overview_of_work(facts).sections()
    return [(name, one.kind, one.id, one.why, one.command) for name, entries in sections.items() for one in entries]


@pytest.mark.parametrize(
    ("facts", "section", "kind", "why", "command"),
    [
        (item(*TASK, "status:ready"), "ready", "item", "Nothing blocks it.", "--body '/accord implement'"),
        (item(*TASK, "status:pending"), "ready", "item", "not marked as ready", "accord items move 3 --to ready"),
        (item(*TASK, "status:pending", blockers=(1, 2)), "waiting", "item", "Blocked by #1, #2.", ""),
        (item(*TASK, "status:ready", open_blockers=1), "waiting", "item", "Blocked by 1 open issue.", ""),
        (item(*TASK, "status:in-progress"), "needs_you", "question", "in-progress: nothing runs on it", "--to pending"),
        (item(*TASK, "status:blocked"), "needs_you", "question", "Its status is blocked", "--to pending"),
        (item(*TASK, "status:needs-refinement"), "needs_you", "question", "needs-refinement", "--to pending"),
        (item("task:refinement", "status:pending"), "needs_you", "question", "specification", "gh issue close 3"),
        (item(*BOTH, "status:ready"), "needs_you", "broken", "Remove one of them.", "--remove-label task:refinement"),
        (item(*BOTH, "status:pending"), "needs_you", "broken", "both type labels", "--remove-label task:refinement"),
        (item(*BOTH), "needs_you", "broken", "both type labels", "--remove-label task:refinement"),
        (item(*TASK), "needs_you", "broken", "no status label", "--add-label status:pending"),
        (
            item(*TASK, "status:ready", "status:review"),
            "needs_you",
            "broken",
            "`status:ready` and `status:review`",
            "--remove-label status:review",
        ),
        (item(*TASK, "status:ready", rows=(RUNNING,)), "running", "run", "implementation by codex", ""),
        (item("bug", rows=(RUNNING,)), "running", "run", "implementation by codex", ""),
        (item(*TASK, "status:in-progress", rows=(FAILED,)), "needs_you", "failure", "the key expired", "/accord retry"),
        (item("bug", rows=(FAILED,)), "needs_you", "failure", "the key expired", "/accord retry"),
        (item(*TASK, "status:review", rows=(FAILED,)), "needs_you", "question", "Its status is review", "--to pending"),
        (item(*TASK, "status:ready", "needs-human"), "needs_you", "needs-human", "needs-human", "--remove-label"),
        (item("bug", "agents:plan"), "waiting", "item", "A plan was asked for.", ""),
    ],
)
def test_an_item_is_where_the_next_step_is_someones(
    facts: BoardItem, section: str, kind: str, why: str, command: str
) -> None:
    ((found_section, found_kind, _, found_why, found_command),) = placed(facts)
    assert (found_section, found_kind) == (section, kind)
    assert why in found_why
    assert command in found_command


@pytest.mark.parametrize(
    ("one", "since"),
    [
        (pull(is_approved=True, judged_at=NOW), [NOW]),
        (pull(wants_changes=True, judged_at=NOW), [NOW]),
        (pull("needs-human", is_approved=True, judged_at=NOW), [None]),
        (pull(is_mergeable=False, is_approved=True, judged_at=NOW), [None]),
    ],
)
def test_a_pull_request_needs_a_person_since_its_review(one: BoardPull, since: list[Any]) -> None:
    facts = BoardRepository(ADDRESS, NOW, BOT, (), (one,))
    assert [entry.since for entry in overview_of_work(facts).needs_you] == since


ENDED = replace(item(number=5).issue, is_pull=True, state="closed", merged_at=NOW)
MERGED, CLOSED = (EndedPull(one, (3,), (3,)) for one in (ENDED, replace(ENDED, merged_at=None)))
MERGED_PULL = replace(pull().pull, state="closed", is_merged=True)
ASIDE = replace(MERGED, pull=replace(MERGED_PULL, base_branch="develop"))
CLOSED_6 = replace(CLOSED, issue=replace(CLOSED.issue, number=6))
WITHOUT_WORDS = replace(pull("needs-human"), items=())


@pytest.mark.parametrize(
    ("status", "pulls", "ended", "why", "command"),
    [
        ("review", (), (CLOSED,), "#5 was closed.", "accord items move 3 --to pending"),
        ("review", (), (ASIDE,), "default branch", "--to approved --repo octo/web && accord items move 3 --to closed"),
        ("review", (), (replace(MERGED, pull=MERGED_PULL),), "opened again after the merge of #5", "--to pending"),
        ("review", (), (MERGED,), "no open pull request closes it, and #5 was merged.", "--to pending"),
        ("review", (), (replace(MERGED, closes=()),), "the merge of #5 did not.", "--to approved"),
        ("review", (), (), "no open pull request closes it.", "--to pending"),
        ("review", (WITHOUT_WORDS,), (), "`Closes #3`", "Closes #3\"' --repo octo/web | gh pr edit 5 --body-file -"),
        ("review", (), (MERGED, CLOSED_6), "#6 was closed.", "--to pending"),
        ("approved", (), (CLOSED,), "#5 was closed.", "gh pr reopen 5"),
        ("approved", (), (ASIDE,), "the merge of #5 did not.", "accord items move 3 --to closed"),
        ("approved", (), (), "no open pull request", "gh issue edit 3 --remove-label status:approved"),
        ("in-progress", (), (CLOSED,), "#5 was closed.", "--to pending"),
        ("in-progress", (), (ASIDE,), "nothing runs on it", "--to review --repo octo/web && accord items move 3"),
        ("in-progress", (WITHOUT_WORDS,), (), "`Closes #3`", "| gh pr edit 5 --body-file -"),
        ("blocked", (pull(),), (), "a person decides", "--to pending"),
        ("in-progress", (pull(),), (), "see #5", None),
    ],
)
def test_an_item_whose_pull_request_does_not_close_it_is_a_persons(
    status: str, pulls: tuple[BoardPull, ...], ended: tuple[EndedPull, ...], why: str, command: str | None
) -> None:
    facts = BoardRepository(ADDRESS, NOW, BOT, (item(*TASK, f"status:{status}"),), pulls, ended=ended)
    overview = overview_of_work(facts)
    (entry,) = (one for one in (overview.needs_you if command else overview.waiting) if one.id == "#3")
    assert why in entry.why
    assert (command or "") in entry.command


def test_a_request_without_a_start_is_not_work_of_accord() -> None:
    assert placed(item("bug")) == []


def test_an_item_with_an_open_pull_request_points_to_it_instead_of_asking_twice() -> None:
    found = placed(item(*TASK, "status:needs-refinement"), pulls=(pull(wants_changes=True),))
    assert [(section, name) for section, _, name, *_ in found] == [("needs_you", "#5"), ("waiting", "#3")]
    assert "see #5" in found[1][3]


GREEN = Check("test", "passing")
RED = Check("test", "failing")
PENDING = Check("test", "pending")
LOST = Check("lint", "inconclusive", workflow_run_id=9, conclusion="cancelled")
STOPPED = loop("tasks-complete")
ACTIVE = LoopState(iterations=2, running=ActiveRun(run_id="8", head_sha="h", started_at=NOW))


@pytest.mark.parametrize(
    ("facts", "command"),
    [
        (pull(checks=(RED,)), "gh pr checks 5 --repo octo/web"),
        (pull(is_mergeable=False), "gh pr checkout 5 --repo octo/web"),
        (pull(wants_changes=True, is_approved=False), "gh pr checkout 5 --repo octo/web"),
        (pull(checks=(GREEN,), is_approved=True), "gh pr merge 5 --repo octo/web"),
    ],
)
def test_no_label_is_proposed_that_starts_nothing(facts: BoardPull, command: str) -> None:
    ((section, *_, found),) = placed(pulls=(facts,), has_keepalive=False)
    assert (section, found) == ("needs_you", command)


@pytest.mark.parametrize(
    ("facts", "section", "kind", "why", "command"),
    [
        (pull(checks=(GREEN,)), "ready", "pull", "No review approves", "/accord review"),
        (pull(checks=(GREEN,), is_approved=True), "needs_you", "merge", "Merging it closes #3.", "gh pr merge 5"),
        (pull(is_approved=True, is_mergeable=None), "waiting", "pull", "not computed", ""),
        (pull(is_draft=True), "needs_you", "protected", "draft", "gh pr ready 5"),
        (pull("agents:keepalive", is_draft=True), "waiting", "pull", "Keepalive works on it.", ""),
        (pull("agents:keepalive", is_draft=True, loops=(STOPPED,)), "needs_you", "protected", "draft", "gh pr ready 5"),
        (pull("agents:keepalive", loops=(STOPPED,)), "ready", "pull", "No review approves", "/accord review"),
        (pull(is_locked=True), "needs_you", "question", "conversation is locked", "gh pr unlock 5"),
        (pull(is_locked=True, is_approved=True), "needs_you", "merge", "closes #3", "gh pr merge 5"),
        (pull(base="develop", is_approved=True), "needs_you", "merge", "does not close #3", "gh pr merge 5"),
        (pull(is_item_closed=True, checks=(RED,)), "needs_you", "question", "#3 is closed", "gh pr close 5"),
        (pull(checks=(PENDING,)), "waiting", "pull", "test", ""),
        (pull(checks=(RED,)), "needs_you", "failure", "Checks fail: test.", "agents:keepalive"),
        (pull("agents:keepalive", checks=(GREEN, LOST)), "needs_you", "failure", "lint (cancelled)", "gh run rerun 9"),
        (pull("agents:keepalive", checks=(RED, LOST)), "waiting", "pull", "Checks fail: test.", ""),
        (pull("agents:keepalive", checks=(RED,)), "waiting", "pull", "Keepalive works on it.", ""),
        (pull("agents:keepalive", checks=(GREEN,)), "waiting", "pull", "Keepalive works on it.", ""),
        (
            pull("agents:keepalive", checks=(RED,), refused=(SET_BY_TESS,)),
            "needs_you",
            "label",
            "`tess`",
            "--remove-label",
        ),
        (pull(is_mergeable=False), "needs_you", "conflict", "conflicts with its base", "agents:keepalive"),
        (pull(wants_changes=True, is_approved=False), "needs_you", "needs-human", "requests changes", "keepalive"),
        (pull(held=(HELD,)), "needs_you", "approval", "until you approve them: CI.", "gh run rerun 9"),
        (pull("needs-human", is_draft=True), "needs_you", "protected", "draft", " && gh pr edit 5 --remove-label"),
        (pull("needs-human", is_draft=True, is_mergeable=False), "needs_you", "conflict", "base", "gh pr checkout 5"),
        (pull("needs-human"), "needs_you", "needs-human", "needs-human", "--remove-label"),
        (pull("needs-human", loops=(loop("cost-budget"),)), "needs_you", "budget", "It says why.", "--remove-label"),
        (pull("needs-human", loops=(loop("same-error"),)), "needs_you", "failure", "It says why.", "--remove-label"),
        (pull("needs-human", loops=(loop("verdict-unsure", "ask"),)), "needs_you", "question", "why", "--remove-label"),
        (pull("needs-human", loops=(loop("checks-not-approved"),)), "needs_you", "approval", "why", "--remove-label"),
        (pull(loops=(ACTIVE,), held=(HELD,)), "running", "loop", "keepalive, run 2", ""),
        (pull(rows=(RUNNING,)), "running", "run", "implementation", ""),
        (pull(rows=(FAILED,)), "needs_you", "failure", "the key expired", "/accord retry"),
    ],
)
def test_a_pull_request_is_where_the_next_step_is_someones(
    facts: BoardPull, section: str, kind: str, why: str, command: str
) -> None:
    ((found_section, found_kind, name, found_why, found_command),) = placed(pulls=(facts,))
    assert (found_section, found_kind, name) == (section, kind, "#5")
    assert why in found_why
    assert command in found_command


def test_ready_items_come_by_priority() -> None:
    ready = ("task:implement", "status:ready")
    found = placed(item(*ready, "priority:low", number=1), item(*ready, "priority:high", number=2))
    assert [name for _, _, name, *_ in found] == ["#2", "#1"]


def test_closed_items_tell_how_they_ended_and_what_they_cost() -> None:
    row = RUNNING.model_copy(update={"state": "done", "cost": "0.12 US dollars"})
    done = item(*TASK, rows=(row,), closed_at=NOW)
    dropped = replace(done, issue=replace(done.issue, state_reason="not_planned"), rows=())
    facts = BoardRepository(ADDRESS, NOW, BOT, closed=(done, dropped))
    assert [(entry.why, entry.cost) for entry in overview_of_work(facts).done] == [
        ("Completed.", "0.12 US dollars"),
        ("Closed as not planned.", ""),
    ]


def test_needs_are_sorted_by_kind_and_the_oldest_first() -> None:
    from accord.board.models import Entry, join_overviews

    def need(kind: Any, days: int) -> tuple[str, Entry]:
        return "needs_you", Entry(kind, f"#{days}", "", "", NOW - timedelta(days=days))

    one = overview_from([need("broken", 9), need("merge", 1)])
    other = overview_from([need("merge", 2), need("question", 0)])
    assert [entry.id for entry in join_overviews(one, other).needs_you] == ["#0", "#2", "#1", "#9"]


@pytest.mark.parametrize(
    ("server", "sandbox", "gh"),
    [
        ("https://github.com", None, "gh pr view 5 --repo octo/web"),
        ("https://git.example", None, "gh pr view 5 --repo git.example/octo/web"),
        ("http://127.0.0.1:8000", ".accord/my box", ""),
    ],
)
def test_commands_name_the_host_and_none_of_gh_is_for_a_sandbox(server: str, sandbox: str | None, gh: str) -> None:
    address = address_of("octo/web", server, sandbox)
    assert address.gh_command("pr", "view", 5) == gh
    expected = "--sandbox '.accord/my box'" if sandbox else "--repo octo/web"
    assert address.accord("items", "list") == f"accord items list {expected}"
