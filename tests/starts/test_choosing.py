"""Which event starts what, under which line of the configuration, and for whom: tables of the pure decision."""

from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from accord.core.errors import BrokenContract
from accord.engine.owner import PullState
from accord.git.configuration import CONFIG_PATHS, ConfigFile
from accord.github.models import Issue
from accord.results.planner.scope import run_key_of_spec
from accord.results.status import StatusFacts
from accord.starts.choose import Answer, Begin, Halt, ItemFacts, StartChoice, check_event, choose
from accord.starts.config import AccordConfig, StartSwitches, config_check, read_config
from accord.starts.facts import is_approved
from accord.starts.models import (
    ItemStatus,
    StartEvent,
    StatusRow,
    Trigger,
)
from accord.starts.plan import LOST, ShowStatus, plan_choice, plan_ready
from accord.starts.status import StatusView

AT = datetime(2026, 11, 2, 9, 0, tzinfo=UTC)
ON = AccordConfig(starts=StartSwitches(**{trigger.value.replace("-", "_"): True for trigger in Trigger}))
AGENTS = ("codex", "claude")


def event(trigger: Trigger, word: str = "", **more: Any) -> StartEvent:
    return StartEvent(trigger, "key", AT, "wanda", number=7, word=word, **more)


def issue(*labels: str, is_pull: bool = False, state: str = "open") -> Issue:
    texts = {"url": "", "title": "T", "body": "", "state_reason": None, "author": "wanda", "closed_by": None}
    facts = {"is_pull": is_pull, "author_is_bot": False, "created_at": AT, "blocker_count": 0, "state": state}
    return Issue(id=1, number=7, labels=labels, **texts, **facts)  # type: ignore[arg-type]


def row(work: Any = "plan", state: Any = "failed", key: str = "old", agent: str = "") -> StatusRow:
    return StatusRow(key=key, work=work, state=state, since="2026-11-02T09:00:00Z", agent=agent)


def facts(item: Issue, *rows: StatusRow, is_busy: bool = False, answered: tuple[str, ...] = ()) -> ItemFacts:
    return ItemFacts(item, StatusView(ItemStatus(rows=rows, answered=answered)), is_busy, AGENTS, head="c0ffee")


@pytest.mark.parametrize("trigger", Trigger)
def test_each_event_is_switched_by_its_own_line(trigger: Trigger) -> None:
    word = {Trigger.LABEL: "agents:plan", Trigger.COMMENT: "plan"}.get(trigger, "")
    off = AccordConfig(starts=ON.starts.model_copy(update={trigger.value.replace("-", "_"): False}))
    assert check_event(event(trigger, word), ON) == ""
    assert check_event(event(trigger, word), off) == f"`{trigger.value}` is off under `starts` in the configuration."


def test_labels_comments_and_boxes_are_on_by_default_and_nothing_else_is() -> None:
    on = {trigger for trigger in Trigger if getattr(AccordConfig().starts, trigger.value.replace("-", "_"))}
    assert on == {Trigger.LABEL, Trigger.COMMENT, Trigger.DASHBOARD}


@pytest.mark.parametrize("trigger", Trigger)
def test_bots_start_no_agent(trigger: Trigger) -> None:
    reason = check_event(event(trigger, "agents:plan", is_bot=True), ON)
    assert bool(reason) == (trigger not in (Trigger.CLOSED, Trigger.MERGED))


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ({"trigger": Trigger.LABEL, "word": "priority:high"}, "This label starts nothing."),
        ({"trigger": Trigger.LABEL, "word": "agent:retry"}, "This label starts nothing."),
        ({"trigger": Trigger.LABEL, "word": "agents:plan", "is_pull": True}, "This label starts nothing."),
        ({"trigger": Trigger.LABEL, "word": "agent:codex", "is_pull": True}, "This label starts nothing."),
        ({"trigger": Trigger.LABEL, "word": "Agents:Review", "is_pull": True}, ""),
        ({"trigger": Trigger.LABEL, "word": "agents:review"}, "This label starts nothing."),
        ({"trigger": Trigger.PULL, "is_pull": True, "is_fork": True}, "comes from a fork"),
        ({"trigger": Trigger.REVIEW_REQUEST, "is_pull": True, "is_fork": True}, "comes from a fork"),
        ({"trigger": Trigger.LABEL, "word": "agents:review", "is_pull": True, "is_fork": True}, "comes from a fork"),
        ({"trigger": Trigger.PULL, "is_pull": True, "is_draft": True}, "is a draft"),
        ({"trigger": Trigger.REVIEW_REQUEST, "is_pull": True, "is_draft": True}, ""),
    ],
)
def test_some_events_start_nothing(more: dict[str, Any], words: str) -> None:
    reason = check_event(event(**more), ON)
    assert words in reason
    assert bool(reason) == bool(words)


TASK = "task:implement"
BOTH = (TASK, "task:refinement")
REQUEST, PULL, CLOSED = issue(), issue(is_pull=True), issue(state="closed")
READY, PENDING = issue(TASK, "status:ready"), issue(TASK, "status:pending")
PROGRESS = issue(TASK, "status:in-progress")


STATES = [
    ("review", PullState(9), "It has the pull request #9. Comment `/accord review` there."),
    ("approved", PullState(9), "It has the approved pull request #9. Merge that."),
    ("review", PullState(9, closes=False), "#9 does not have the words `Closes #7`"),
    ("review", PullState(9, "closed"), "#9 was closed. Run `accord items move 7 --to pending`."),
    ("review", PullState(9, "merged"), "opened again after the merge of #9. Run `accord items move 7 --to pending`."),
    ("review", PullState(9, "merged", is_main=False), "--to approved`, then `accord items move 7 --to closed`."),
    ("approved", PullState(9, "closed"), "#9 was closed. See `accord status`."),
]


@pytest.mark.parametrize(("status", "pull", "words"), STATES)
def test_the_answer_about_an_item_after_its_work_is_right_for_its_pull_request(
    status: str, pull: PullState, words: str
) -> None:
    item = replace(facts(issue(TASK, f"status:{status}")), pull=pull)
    choice = choose(event(Trigger.COMMENT, "implement"), item)
    assert isinstance(choice, Answer)
    assert words in choice.text


@pytest.mark.parametrize(
    ("labels", "blockers", "moves"),
    [
        ((TASK, "status:pending"), (), 1),
        ((TASK, "status:pending"), (3,), 0),
        (("task:refinement", "status:pending"), (), 0),
        ((*BOTH, "status:pending"), (), 0),
        ((TASK, "status:ready"), (), 0),
        ((TASK, "status:pending", "status:blocked"), (), 0),
    ],
)
def test_only_work_for_an_agent_becomes_ready(labels: tuple[str, ...], blockers: tuple[int, ...], moves: int) -> None:
    assert len([*plan_ready([(issue(*labels), StatusFacts(blockers))])]) == moves


@pytest.mark.parametrize(
    ("word", "item", "expected"),
    [
        ("plan", REQUEST, Begin("plan")),
        ("plan", PULL, "A pull request cannot be planned."),
        ("plan", READY, "#7 is a work item already."),
        ("plan", CLOSED, "#7 is closed."),
        ("review", PULL, Begin("review")),
        ("review", REQUEST, "Only a pull request can be reviewed."),
        ("review", issue(is_pull=True, state="closed"), "#7 is closed."),
        ("implement", READY, Begin("implement")),
        ("implement", issue(TASK, "status:ready", "agent:claude"), Begin("implement", "claude")),
        ("implement", issue(TASK, "status:ready", "agent:retry"), Begin("implement")),
        ("implement", issue(TASK, "status:ready", "agent:claude", "agent:codex"), Begin("implement")),
        ("implement", PULL, "Only a work item can be implemented."),
        ("implement", REQUEST, "#7 is not a work item."),
        ("implement", PENDING, "Run `accord items move 7 --to ready`"),
        ("implement", PROGRESS, "If its run failed, comment `/accord retry`."),
        ("implement", issue(TASK, "status:review"), "no open pull request closes it. Run `accord items move 7 --to p"),
        ("implement", issue(TASK, "status:approved"), "See `accord status`."),
        ("implement", issue(TASK, "status:blocked"), "run `accord items move 7 --to pending`"),
        ("implement", issue(*BOTH, "status:ready"), "#7 has both type labels"),
        ("implement", issue(TASK), "does not have exactly one status label"),
        ("implement", issue(TASK, state="closed"), "#7 is closed."),
        ("implement", issue(TASK, "status:ready", "agent:unknown"), "No enabled agent has this name."),
        ("retry", REQUEST, "There is nothing to retry"),
        ("stop", REQUEST, "Nothing runs here"),
        ("stop", PULL, Halt()),
        ("paln", REQUEST, "Did you mean `plan`?"),
        ("xyz", REQUEST, "Unknown command `/accord xyz`. Use one of `/accord plan`"),
        ("", REQUEST, "No command after `/accord`."),
    ],
)
def test_commands(word: str, item: Issue, expected: StartChoice | str) -> None:
    choice = choose(event(Trigger.COMMENT, word), facts(item))
    if isinstance(expected, str):
        assert isinstance(choice, Answer)
        assert expected in choice.text
    else:
        assert choice == expected


@pytest.mark.parametrize(
    ("word", "named", "is_dashboard", "words"),
    [
        ("plan", 0, True, "This is the dashboard. Name an item here: `/accord plan #12`."),
        ("paln", 0, True, "Did you mean `plan`?"),
        ("implement", 99, True, "#99 does not exist. Name an item here: `/accord implement #12`."),
        ("implement", 2, False, "This comment names #2. Comment `/accord implement` there"),
    ],
)
def test_a_command_names_its_own_item_or_on_the_dashboard_another(
    word: str, named: int, is_dashboard: bool, words: str
) -> None:
    choice = choose(event(Trigger.COMMENT, word, named=named), replace(facts(REQUEST), is_dashboard=is_dashboard))
    assert isinstance(choice, Answer)
    assert words in choice.text
    assert choose(event(Trigger.COMMENT, "plan", named=7), facts(REQUEST)) == Begin("plan")


def test_a_start_shows_that_a_run_without_a_report_is_over() -> None:
    known = facts(REQUEST, row(state="running"), row(key="older", state="done"))
    operations = plan_choice(event(Trigger.COMMENT, "plan"), Begin("plan"), known, None, AT)
    (shown,) = (each for each in operations if isinstance(each, ShowStatus))
    states = [(each.key, each.state, each.result) for each in shown.status.rows]
    assert sorted(states) == [("key", "queued", ""), ("old", "failed", LOST), ("older", "done", "")]


def test_more_words_do_not_start_an_implementation_with_another_agent_than_they_name() -> None:
    choice = choose(event(Trigger.COMMENT, "implement", has_more_words=True), facts(READY))
    assert isinstance(choice, Answer)
    assert "add the label of an agent" in choice.text
    assert choose(event(Trigger.COMMENT, "plan", has_more_words=True), facts(REQUEST)) == Begin("plan")


@pytest.mark.parametrize(
    ("item", "last", "expected"),
    [
        (REQUEST, row("plan"), Begin("plan")),
        (PULL, row("review"), Begin("review")),
        (READY, row("implement", agent="claude"), Begin("implement", "claude")),
        (PROGRESS, row("implement"), Begin("implement")),
    ],
)
def test_retry_starts_the_last_work_again(item: Issue, last: StatusRow, expected: StartChoice) -> None:
    assert choose(event(Trigger.COMMENT, "retry"), facts(item, last)) == expected


def test_stop_stops_what_is_active() -> None:
    assert choose(event(Trigger.COMMENT, "stop"), facts(REQUEST, row(state="running"))) == Halt()


@pytest.mark.parametrize(
    ("label", "item", "expected"),
    [
        ("agents:plan", REQUEST, Begin("plan")),
        ("Agents:Plan", REQUEST, Begin("plan")),
        ("agents:plan", READY, "#7 is a work item already."),
        ("agents:review", PULL, Begin("review")),
        ("agent:claude", READY, Begin("implement", "claude")),
        ("agent:cluade", READY, "Did you mean `claude`?"),
        ("agent:claude", PENDING, "only a ready work item can be implemented"),
    ],
)
def test_labels(label: str, item: Issue, expected: StartChoice | str) -> None:
    choice = choose(event(Trigger.LABEL, label), facts(item))
    assert expected in choice.text if isinstance(expected, str) and isinstance(choice, Answer) else choice == expected


def test_a_busy_item_starts_nothing_else() -> None:
    choice = choose(event(Trigger.COMMENT, "plan"), facts(REQUEST, row(state="running"), is_busy=True))
    assert isinstance(choice, Answer)
    assert "Something runs here already." in choice.text
    choice = choose(event(Trigger.PULL), facts(PULL, row(state="running"), is_busy=True))
    assert isinstance(choice, Answer)
    assert choice.is_silent


def test_an_event_that_was_handled_before_is_recognised() -> None:
    known = facts(REQUEST, row("plan", "done", key="key"))
    assert choose(event(Trigger.COMMENT, "plan"), known) == Begin("plan")
    assert choose(event(Trigger.COMMENT, "xyz"), facts(REQUEST, answered=("key",))) == Answer(
        "This event was answered before.", is_silent=True
    )


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("---\nstatus: approved\n---\n# A\n", True),
        ("---\r\nstatus: Approved\r\ntitle: x\r\n---\r\n", True),
        ("\ufeff---\nstatus: approved\n---\n", True),
        ("---\nstatus: draft\n---\n", False),
        ("---\nstatus: [approved]\n---\n", False),
        ("---\nstatus: approved\n", False),
        ("# A\n\n---\nstatus: approved\n---\n", False),
        ("---\n: : :\n---\n", False),
        ("---\n---\n", False),
        ("", False),
        ("---\n" + "# x\n" * 20_000 + "status: approved\n---\n", False),
    ],
)
def test_the_front_matter_says_whether_a_spec_is_approved(text: str, expected: bool) -> None:
    assert is_approved(text.encode()) is expected


def test_a_run_key_is_one_that_apply_takes() -> None:
    assert run_key_of_spec("docs/specs/ä b.md").replace("-", "").isalnum()


def test_unknown_keys_of_the_configuration_are_findings_with_a_hint() -> None:
    with pytest.raises(BrokenContract) as caught:
        read_config(ConfigFile(raw=b"starts:\n  label: true\n"))
    (found,) = caught.value.findings
    assert (found.line, found.hint) == (2, "Did you mean `labels`?")
    assert "config.yml:2" in caught.value.message
    assert read_config(ConfigFile(raw=None)) == AccordConfig()
    assert read_config(ConfigFile(raw=b"starts:\n  pull-requests: true\n")).starts.pull_requests is True


@pytest.mark.parametrize(
    ("files", "note", "unread"),
    [
        ({"accord/config.yml"}, "comments", {}),
        ({"accord.yml"}, "comments", {}),
        ({"accord/config.yml", "accord.yml"}, "comments", {"accord/config.yml": "git rm .github/accord/config.yml"}),
        ({"accord.yml", "accord/config.yaml"}, "comments", {"accord/config.yaml": "git rm"}),
        ({"accord/config.yaml"}, "no configuration", {"accord/config.yaml": "config.yaml .github/accord/config.yml`"}),
        ({"accord.yaml"}, "no configuration", {"accord.yaml": "accord.yaml .github/accord.yml`"}),
    ],
)
def test_one_file_is_the_configuration_and_others_like_it_are_findings(
    tmp_path: Path, files: set[str], note: str, unread: dict[str, str]
) -> None:
    for name in files:
        (tmp_path / ".github" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / ".github" / name).write_text("starts: {labels: false, dashboard: false}\n")
    check = config_check(tmp_path)
    assert check.note.startswith(note)
    assert {path.removeprefix(".github/"): finding.code for path, finding in check.findings} == dict.fromkeys(
        unread, "config-unread"
    )
    assert all(unread[path.removeprefix(".github/")] in finding.hint for path, finding in check.findings)


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("starts: {merges: true}", "`merges`"),
        ("starts: {labels: true}", "`labels`"),
        ("starts: {review-requests: true, specs: false}", "`review-requests`"),
        ("starts: {labels: false, merges: false}", ""),
        ("approvals: approve", ""),
    ],
)
def test_switches_without_a_workflow_that_starts_anything_are_a_finding(tmp_path: Path, text: str, names: str) -> None:
    (tmp_path / ".github").mkdir()
    (tmp_path / CONFIG_PATHS[0]).write_text(text)
    found = [finding for _, finding in config_check(tmp_path, has_starts=False).findings]
    assert [finding.code for finding in found] == (["starts-unheard"] if names else [])
    assert all(names in finding.message for finding in found)
    assert not config_check(tmp_path, has_starts=True).findings


def test_the_doctor_reads_the_configuration_of_a_directory(tmp_path: Path) -> None:
    check = config_check(tmp_path)
    assert (check.status, check.note) == ("ok", "no configuration; by default labels, comments, dashboard")
    path = tmp_path / CONFIG_PATHS[0]
    path.parent.mkdir()
    path.write_text("starts:\n  pull-requests: true\n  labels: false\n")
    assert config_check(tmp_path).note == "comments, dashboard, pull-requests"
    path.write_text("starts:\n  label: true\n")
    assert (config_check(tmp_path).status, config_check(tmp_path).findings[0][0]) == ("error", CONFIG_PATHS[0])
