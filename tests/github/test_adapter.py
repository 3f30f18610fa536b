"""The adapter against the local GitHub: pages, limits, refusals, and what a lost answer costs."""

from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from support.stage import Stage, insert_issues, staged

from accord.core.errors import Refused, Stopped, WrongUsage
from accord.github.client import GitHub
from accord.github.models import Access, AnswerLost, IssueChange, Label, NotThere
from accord_sandbox.faults import Fault
from accord_sandbox.planting import INSTALLATION_TOKEN, STRANGER_TOKEN

LABEL = Label("bug: 50% / ärger", "Broken", "d73a4a")


@pytest.mark.parametrize("below", ["", "/", "/api/v3", "/api/v3/"])
def test_an_enterprise_server_is_reached_below_its_path(stage: Stage, below: str) -> None:
    github = stage.adapter(below=below)
    made = github.create_issue("Title", "Body", ["a"])
    assert github.issue(made.number) == made
    assert [issue.number for issue in github.issues()] == [made.number]


def test_labels_are_read_in_lower_case_as_far_as_github_surely_ignores_it(stage: Stage) -> None:
    github = stage.adapter()
    made = github.create_issue("Title", "Body", ["Team:X", "Ärger"])
    assert sorted(github.issue(made.number).labels) == ["team:x", "Ärger"]


@pytest.mark.slow
def test_no_issue_is_missed_on_any_page_and_no_page_is_read_without_need(stage: Stage) -> None:
    numbers = insert_issues(stage.server, 250)
    github = stage.adapter()
    assert [issue.number for issue in github.issues()] == sorted(numbers, reverse=True)
    assert github.requests.read == 3
    lazy = stage.adapter()
    assert next(iter(lazy.issues())).number == numbers[-1]
    assert lazy.requests.read == 1


def test_an_issue_is_read_as_it_is(stage: Stage) -> None:
    github = stage.adapter()
    blocker, waiting = github.create_issue("A", "a\r\nb", []), github.create_issue("B", "", ["x", "y"])
    assert github.add_blocker(waiting.number, blocker.id).number == blocker.number
    github.change_issue(blocker.number, IssueChange(state="closed", state_reason="not_planned"))
    read = github.issue(waiting.number)
    assert read is not None
    found = (read.title, read.labels, read.blocker_count, read.author, read.is_pull)
    assert found == ("B", ("x", "y"), 1, "maintainer", False)
    (closed,) = github.blockers(waiting.number)
    assert (closed.is_open, closed.state_reason) == (False, "not_planned")
    assert github.issue(99) is None


def test_a_label_with_any_name_is_found_changed_and_deleted(stage: Stage) -> None:
    github = stage.adapter()
    assert github.create_label(LABEL) == LABEL
    assert github.label(LABEL.name) == LABEL
    github.change_label(LABEL.name, Label("a/b?c#d", "", "000000"))
    assert github.label(LABEL.name) is None
    github.delete_label("a/b?c#d")
    github.delete_label("a/b?c#d")
    assert github.label("a/b?c#d") is None


def test_a_dependency_that_exists_by_now_counts_as_added(stage: Stage) -> None:
    github = stage.adapter()
    first, second = github.create_issue("A", "", []), github.create_issue("B", "", [])
    for _ in range(2):
        assert github.add_blocker(second.number, first.id).id == first.id
    with pytest.raises(Refused):
        github.add_blocker(second.number, second.id)


WAITS = ["secondary-403", "secondary-429", "primary-403"]


@pytest.mark.parametrize("kind", WAITS)
@pytest.mark.parametrize("method", ["GET", "POST", "PATCH"])
def test_a_rate_limit_is_waited_out_and_said(stage: Stage, kind: str, method: str) -> None:
    github = stage.adapter()
    made = github.create_issue("A", "", [])
    stage.server.faults.add(Fault(kind, seconds=77, method=method))
    before = stage.clock.now()
    assert CALLS[method](github, made.number)
    assert 77 <= (stage.clock.now() - before).total_seconds() <= 79
    ((seconds, reason),) = stage.waits
    assert 77 <= seconds <= 79
    assert "rate limit" in reason


CALLS: dict[str, Callable[[GitHub, int], Any]] = {
    "GET": lambda github, number: github.issue(number),
    "PATCH": lambda github, number: github.change_issue(number, IssueChange(body="new")),
    "POST": lambda github, number: github.create_issue("B", "", []),
}


@pytest.mark.parametrize("kind", [*WAITS, "secondary-403-bare", "secondary-429-bare"])
def test_a_longer_wait_than_is_allowed_stops_and_says_when_to_run_again(stage: Stage, kind: str) -> None:
    github = stage.adapter(max_wait=30)
    stage.server.faults.add(Fault(kind, seconds=1800, times=99))
    with pytest.raises(Stopped) as caught:
        github.labels()
    assert caught.value.exit_code == 3
    again = datetime.fromisoformat(caught.value.hint.partition(" after ")[2].partition(",")[0])
    asked = 60 if kind.endswith("bare") else 1800
    assert asked - 1 <= (again - stage.clock.now()).total_seconds() <= asked + 2
    assert "--max-wait" in caught.value.hint


def test_all_waits_of_a_run_count_together(stage: Stage) -> None:
    github = stage.adapter(max_wait=100)
    stage.server.faults.add(Fault("secondary-429", seconds=40, times=99))
    before = stage.clock.now()
    with pytest.raises(Stopped):
        github.labels()
    assert (stage.clock.now() - before).total_seconds() == 80


@pytest.mark.parametrize(
    "kind", ["lost-before", "lost-after", "truncated", "error-500", "error-502", "error-500-after"]
)
def test_a_change_is_repeated_after_a_lost_answer_and_a_creation_is_not(stage: Stage, kind: str) -> None:
    github = stage.adapter()
    made = github.create_issue("A", "", [])
    stage.server.faults.add(Fault(kind, method="PATCH"))
    assert github.change_issue(made.number, IssueChange(body="new")).body == "new"
    stage.server.faults.add(Fault(kind, method="POST"))
    posts = sum(method == "POST" for method, _, _ in stage.server.requests)
    with pytest.raises(AnswerLost):
        github.create_issue("B", "", [])
    assert sum(method == "POST" for method, _, _ in stage.server.requests) == posts + 1


def test_a_server_that_stays_away_is_given_up_in_words(stage: Stage) -> None:
    stage.server.faults.add(Fault("error-503", times=99))
    github = stage.adapter()
    with pytest.raises(Stopped, match="failed 5 times") as caught:
        github.labels()
    assert github.requests.read == 5
    assert "again" in caught.value.hint


def test_requests_are_counted_with_their_repetitions(stage: Stage) -> None:
    stage.server.faults.add(Fault("error-500", times=2))
    github = stage.adapter()
    github.labels()
    github.create_label(LABEL)
    assert (github.requests.read, github.requests.write) == (3, 1)


@pytest.mark.parametrize(
    ("given", "login", "counted"),
    [
        ("", "github-actions[bot]", []),
        ("octocat", "octocat", []),
        (",", "github-actions[bot]", []),
        ("my-app[bot]", "my-app[bot]", []),
        (",my-app[bot]", "github-actions[bot]", ["my-app[bot]"]),
        ("reviewer[bot], My-App[bot]", "reviewer[bot]", ["my-app[bot]"]),
        ("a[bot],b[bot],github-actions[bot]", "a[bot]", ["b[bot]", "github-actions[bot]"]),
    ],
)
def test_the_first_given_login_is_the_tokens_and_the_others_count_too(
    stage: Stage, given: str, login: str, counted: list[str]
) -> None:
    app = stage.adapter(token=INSTALLATION_TOKEN, identity=given).identity()
    assert app.login == login
    logins = ["", "octocat", "github-actions[bot]", "my-app[bot]", "reviewer[bot]", "a[bot]", "b[bot]"]
    assert {name for name in logins if app.counts(name.upper())} == {login, *counted}
    assert not app.counts(None)
    person = stage.adapter(identity=given).identity()
    assert (person.login, person.is_person, app.is_person) == ("maintainer", True, False)
    assert {name for name in logins if person.counts(name)} == {*counted, *([login] if given.split(",")[0] else [])}


def test_an_invalid_token_is_reported(stage: Stage) -> None:
    with pytest.raises(Refused, match="Bad credentials") as caught:
        stage.adapter(token="ghp_wrong").identity()
    assert "GITHUB_TOKEN" in caught.value.hint
    assert "ghp_wrong" not in str(caught.value)


def test_one_who_may_only_read_is_refused_once_and_not_asked_to_run_again(stage: Stage) -> None:
    github = stage.adapter(token=STRANGER_TOKEN)
    with pytest.raises(Refused) as caught:
        github.create_label(LABEL)
    assert (caught.value.exit_code, github.requests.write) == (4, 1)


UNUSUAL = """
repositories:
  - {name: octo/old, archived: true, issues: [{title: Ancient}]}
  - {name: octo/code, has_issues: false}
"""


def test_archived_closed_and_missing_repositories_are_distinguished(tmp_path: Path) -> None:
    with staged(tmp_path / "sandbox", seed=UNUSUAL) as stage:
        old, code, none = (stage.adapter(repo=name) for name in ("octo/old", "octo/code", "octo/none"))
        assert (old.repository().is_archived, code.repository().has_issues) == (True, False)
        with pytest.raises(Refused, match="archived") as archived:
            old.create_issue("A", "", [])
        with pytest.raises(NotThere, match="Issues are disabled"):
            code.create_issue("A", "", [])
        with pytest.raises(Refused, match="404") as missing:
            none.repository()
    assert "unarchive" in archived.value.hint
    assert "octo/none exists" in missing.value.hint


@pytest.mark.parametrize(
    ("message", "field", "values"),
    [
        (
            "is not a repository",
            0,
            ["", "octo", "octo/", "/tools", "octo/x/y", "octo/to ols", "-x/y", "octo/a\n", "o/.."],
        ),
        ("GITHUB_TOKEN", 1, ["", "two words", "line\n", "caf\u00e9", "\x00"]),
        ("is not a URL", 2, ["", "github.com", "ftp://github.com", "https://", "http://host:port", "http://[bad"]),
    ],
)
def test_an_invalid_name_token_or_address_is_never_sent(message: str, field: int, values: list[str]) -> None:
    for value in values:
        given = ["octo/tools", "token", "https://api.github.com"]
        given[field] = value
        with pytest.raises(WrongUsage, match=message) as caught:
            GitHub(Access(*given), None, print)  # type: ignore[arg-type]
        assert field != 1 or not value.strip() or value not in str(caught.value)


def test_a_connection_that_only_reads_refuses_to_write(stage: Stage) -> None:
    access = Access(stage.repository, stage.server.token, stage.server.url, read_only="This is a dry run.")
    github = GitHub(access, stage.clock, lambda *_: None)
    assert github.repository().default_branch == "main"
    with pytest.raises(RuntimeError, match=r"was not sent\. This is a dry run"):
        github.create_issue("A title", "", [])
    assert github.requests.write == 0


def test_the_token_is_in_no_representation() -> None:
    assert "s3cret" not in repr(Access("octo/tools", "s3cret-token"))
