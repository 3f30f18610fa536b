"""The requests of the loops: checks and logs, label events, review threads, workflow runs; against the local GitHub."""

from pathlib import Path
from typing import Any

import pytest
from support.stage import START, Stage, staged
from support.turns import CALLER

from accord.core.clock import timestamp
from accord.core.errors import Refused
from accord.github import workflows
from accord.github.models import AnswerLost, Conflict, Forbidden, NotThere
from accord_sandbox.faults import Fault
from accord_sandbox.planting import INSTALLATION_TOKEN, STRANGER_TOKEN

BOT = "reviewer[bot]"


def comments(count: int, author: str = BOT) -> list[dict[str, str]]:
    return [{"author": author, "body": f"Word {number}"} for number in range(count)]


NEEDED = {"label": "needs-human"}
SEED: dict[str, Any] = {
    "tokens": [
        {"token": "reads", "login": "ci[bot]", "kind": "installation", "permissions": {"pull_requests": "read"}},
        {"token": "blind", "login": "ci[bot]", "kind": "installation", "permissions": {"issues": "read"}},
    ],
    "repositories": [
        {
            "name": "octo/home",
            "collaborators": {"wanda": "maintain", "rita": "triage"},
            "files": {
                "a.txt": "".join(f"{n}\n" for n in range(130)),
                ".github/workflows/loop.yml": CALLER,
                ".github/workflows/ci.yml": "on: push\njobs: {}\n",
            },
            "branches": {"feature": {"a.txt": "".join(f"{n}!\n" for n in range(130))}, "idle": {"b.txt": "b\n"}},
            "issues": [
                {
                    "title": "Work",
                    "head": "feature",
                    "body": "- [ ] a\r\n",
                    "labels": ["agent:codex"],
                    "label_events": [
                        {**NEEDED, "change": "added", "author": "github-actions[bot]"},
                        {**NEEDED, "change": "removed", "author": "wanda", "created_at": "2026-11-02T08:00:00Z"},
                    ],
                    "checks": [
                        {"name": "tests", "conclusion": "failure", "run": 7001, "log": "1\nFAILED ✗\n", "title": "T"},
                        {"name": "old", "conclusion": "failure", "run": 7001},
                        {"name": "lint", "status": "in_progress"},
                        {"name": "docs", "conclusion": "skipped", "app": "docs[bot]", "summary": "Fine"},
                    ],
                    "statuses": [
                        {"context": "ci", "state": "error", "description": "Broken"},
                        {"context": "cd", "state": "pending"},
                    ],
                    "threads": [
                        {"path": "a.txt", "line": 3, "comments": [*comments(1), *comments(1, "wanda")]},
                        {"path": "a.txt", "line": 4, "resolved": True, "comments": comments(1)},
                        {"path": "a.txt", "comments": comments(1, "github-actions[bot]")},
                    ],
                },
                {"title": "Idle", "head": "idle", "state": "closed"},
            ],
            "workflow_runs": [{"id": 7002, "name": "Loop", "status": "in_progress", "head": "feature"}],
        },
        {"name": "octo/secret", "private": True, "issues": [{"title": "Hidden", "pull_request": True}]},
    ],
}


def head(stage: Stage) -> str:
    pull = stage.adapter().pull(1)
    assert pull is not None
    return pull.head_sha


def test_check_runs_and_statuses_are_one_list_with_the_jobs_that_can_be_read(stage: Stage) -> None:
    github = stage.adapter()
    sha = head(stage)
    found = {check.name: check for check in (*github.check_runs(sha), *github.statuses(sha))}
    states = {name: check.state for name, check in found.items()}
    failing, pending = dict.fromkeys(("tests", "old", "ci"), "failing"), dict.fromkeys(("lint", "cd"), "pending")
    assert states == {**failing, **pending, "docs": "skipped"}
    tests = found["tests"]
    assert (tests.app, tests.workflow_run_id, tests.summary, tests.started_at) == ("github-actions", 7001, "T", START)
    assert (found["docs"].app, found["docs"].job_id, found["docs"].summary) == ("docs", None, "Fine")
    assert (found["ci"].app, found["ci"].job_id, found["ci"].summary) == ("", None, "Broken")
    assert github.job_log(tests.job_id or 0) == "1\nFAILED ✗\n"
    assert github.job_log(found["old"].job_id or 0) == ""
    assert github.job_log(12) == ""
    assert github.requests.write == 0


def test_runs_of_a_head_are_one_request(stage: Stage) -> None:
    def set_run(number: int, **fields: str) -> None:
        url = f"{stage.server.url}/_sandbox/runs/{stage.repository}/{number}"
        assert stage.session.put(url, json={"head_sha": sha, **fields}, timeout=600).status_code == 204

    github, sha = stage.adapter(), head(stage)
    for number in (11, 12):
        set_run(number, name=f"CI {number}", conclusion="action_required")
    set_run(13, conclusion="success")
    set_run(14, conclusion="action_required", event="pull_request_review")
    set_run(15, conclusion="action_required", head_sha="0" * 40)
    before = github.requests.read
    listed = {run.id: run for run in github.runs_of(sha)}
    assert ({11, 12, 13, 14} <= listed.keys(), 15 in listed, github.requests.read - before) == (True, False, 1)
    found = {number: run for number, run in listed.items() if run.is_held}
    assert set(found) == {11, 12}
    assert (found[11].name, found[11].attempt, found[11].created_at, found[11].is_held) == ("CI 11", 1, START, True)


def test_only_the_end_of_a_long_log_is_read(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workflows, "MOST_LOG_BYTES", 10_000)
    job = next(check.job_id for check in stage.adapter().check_runs(head(stage)) if check.name == "tests")
    text = "".join(f"line {number}\n" for number in range(20_000))
    url = f"{stage.server.url}/_sandbox/jobs/{stage.repository}/{job}?run=7001"
    assert stage.session.put(url, data=text.encode(), timeout=600).status_code == 204
    log = stage.adapter().job_log(job or 0)
    assert log == text[-10_000:]


def test_a_log_is_refused_where_the_job_may_not_read_actions(stage: Stage) -> None:
    with pytest.raises(Forbidden) as refused:
        stage.adapter(repo="octo/secret", token="blind").job_log(1)
    assert "actions: read" in refused.value.hint


def test_label_events_tell_who_took_a_label_off_and_whether_it_was_a_person(stage: Stage) -> None:
    github = stage.adapter()
    github.add_labels(1, ["agents:paused"])
    for _ in range(2):
        github.remove_label(1, "agents:paused")
    github.create_comment(1, "Between")
    events = github.label_events(1)
    assert [(event.label, event.change, event.login, event.is_bot) for event in events] == [
        ("needs-human", "removed", "wanda", False),
        ("agent:codex", "added", "maintainer", False),
        ("needs-human", "added", "github-actions[bot]", True),
        ("agents:paused", "added", "maintainer", False),
        ("agents:paused", "removed", "maintainer", False),
    ]
    assert timestamp(events[0].at) == "2026-11-02T08:00:00Z"


def test_only_those_who_may_push_may_write(stage: Stage) -> None:
    github = stage.adapter()
    may = {login: github.may_write(login) for login in ("maintainer", "wanda", "rita", "stranger", "nobody", "a/b")}
    assert may == {"maintainer": True, "wanda": True, "rita": False, "stranger": False, "nobody": False, "a/b": False}


def test_threads_say_whether_they_are_resolved_and_who_spoke(stage: Stage) -> None:
    github = stage.adapter(token=INSTALLATION_TOKEN)
    first, second, third = github.review_threads(1)
    assert (first.path, first.line, first.is_resolved, second.is_resolved) == ("a.txt", 3, False, True)
    seen = [(word.author, word.is_bot, word.body) for word in first.comments]
    assert seen == [(BOT, True, "Word 0"), ("wanda", False, "Word 0")]
    assert (third.line, third.comments[0].author, third.is_outdated) == (None, "github-actions[bot]", False)
    said = github.reply(1, first.comments[0].id, "Done.")
    assert stage.adapter().review_threads(1)[0].comments[-1].id == said.id
    assert github.requests.write == 1


@pytest.mark.slow
def test_no_thread_and_no_comment_is_missed_on_any_page(tmp_path: Path) -> None:
    threads = [{"path": "a.txt", "line": n + 1, "comments": comments(2)} for n in range(120)]
    threads[60]["comments"] = comments(205)
    home = SEED["repositories"][0]
    pull = {**home["issues"][0], "threads": threads}
    with staged(tmp_path, seed={"repositories": [{**home, "issues": [pull]}]}) as stage:
        github = stage.adapter(below="/api/v3")
        found = github.review_threads(1)
        assert [thread.line for thread in found] == [n + 1 for n in range(120)]
        assert [len(thread.comments) for thread in found] == [205 if n == 60 else 2 for n in range(120)]
        assert [word.body for word in found[60].comments] == [f"Word {n}" for n in range(205)]
        assert (github.requests.read, github.requests.write) == (4, 0)


def test_a_query_whose_answer_is_lost_is_asked_again_and_a_reply_is_not(stage: Stage) -> None:
    github = stage.adapter()
    stage.server.faults.add(Fault("lost-after", path="/graphql"))
    threads = github.review_threads(1)
    assert len(threads) == 3
    stage.server.faults.add(Fault("lost-after", path="/replies"))
    with pytest.raises(AnswerLost):
        github.reply(1, threads[1].comments[0].id, "Once")
    assert [word.body for word in github.review_threads(1)[1].comments] == ["Word 0", "Once"]


@pytest.mark.parametrize(
    ("token", "repo", "number", "kind"),
    [("", "", 99, NotThere), (STRANGER_TOKEN, "octo/secret", 1, NotThere), ("blind", "octo/secret", 1, Forbidden)],
)
def test_an_error_of_graphql_in_a_good_answer_is_a_refusal(
    stage: Stage, token: str, repo: str, number: int, kind: type[Refused]
) -> None:
    with pytest.raises(kind):
        stage.adapter(token=token, repo=repo).review_threads(number)


def test_the_answers_contain_the_remaining_rate_limit(tmp_path: Path) -> None:
    with staged(tmp_path, seed=SEED) as stage:
        github = stage.adapter()
        assert github.rate_left is None
        github.pull(1)
        left = github.rate_left
        assert left is not None
        github.review_threads(1)
        assert github.rate_left == left
        github.pull(1)
    assert github.rate_left is not None
    assert (left.remaining - github.rate_left.remaining, left.resets_at) == (1, github.rate_left.resets_at)
    assert left.resets_at > START.timestamp()


def test_a_body_is_changed_only_while_it_is_what_it_was(stage: Stage) -> None:
    github = stage.adapter()
    assert github.change_body(1, was="- [ ] a\r\n", body="- [x] a\r\n")
    assert github.change_body(1, was="- [ ] a\r\n", body="- [x] a\r\n")
    assert github.requests.write == 1
    assert not github.change_body(1, was="- [ ] a\r\n", body="- [x] b\r\n")
    pull = github.pull(1)
    assert pull is not None
    assert (pull.body, pull.title) == ("- [x] a\r\n", "Work")
    assert not github.change_body(99, was="", body="x")


def test_a_run_tells_what_became_of_it_and_for_which_pull_requests(stage: Stage) -> None:
    github = stage.adapter()
    loop, made = github.workflow_run(7002), github.workflow_run(7001)
    assert loop is not None
    assert made is not None
    assert (loop.name, loop.status, loop.conclusion) == ("Loop", "in_progress", "")
    assert (loop.has_ended, loop.pulls) == (False, (1,))
    assert (made.path, made.head_sha, made.head_branch) == (".github/workflows/ci.yml", head(stage), "feature")
    url = f"{stage.server.url}/_sandbox/runs/{stage.repository}/7002"
    stage.session.put(url, json={"status": "completed", "conclusion": "cancelled"}, timeout=600)
    ended = github.workflow_run(7002)
    assert ended is not None
    assert (ended.has_ended, ended.conclusion, ended.name) == (True, "cancelled", "Loop")
    assert github.workflow_run(1) is None


def test_a_workflow_is_started_by_hand_with_its_inputs(stage: Stage) -> None:
    github = stage.adapter(token=INSTALLATION_TOKEN)
    run = github.workflow_run(github.dispatch_workflow("loop.yml", "main", {"pr_number": "1"}))
    assert run is not None
    assert (run.path, run.event) == (".github/workflows/loop.yml", "workflow_dispatch")
    assert stage.get(f"/repos/{stage.repository}/actions/runs/{run.id}")["html_url"] == github.run_page(run.id)
    started = dispatches(stage)
    seen = [(entry["workflow"], entry["ref"], entry["inputs"], entry["author"]) for entry in started]
    assert seen == [("loop.yml", "main", {"pr_number": "1"}, "github-actions[bot]")]


@pytest.mark.parametrize(
    ("token", "file", "ref", "inputs", "kind"),
    [
        ("", "absent.yml", "main", {}, NotThere),
        ("", "../loop.yml", "main", {"pr_number": "1"}, NotThere),
        ("", "ci.yml", "main", {}, Conflict),
        ("", "loop.yml", "gone", {"pr_number": "1"}, Conflict),
        ("", "loop.yml", "main", {"pr_number": "1", "other": "x"}, Conflict),
        (STRANGER_TOKEN, "loop.yml", "main", {"pr_number": "1"}, Forbidden),
    ],
)
def test_a_start_that_github_refuses_starts_nothing(
    stage: Stage, token: str, file: str, ref: str, inputs: dict[str, str], kind: type[Refused]
) -> None:
    with pytest.raises(kind):
        stage.adapter(token=token).dispatch_workflow(file, ref, inputs)
    assert dispatches(stage) == []


def test_a_server_that_does_not_name_started_runs_is_asked_for_them_once(tmp_path: Path) -> None:
    with staged(tmp_path, seed=SEED, names_started_runs=False) as stage:
        github = stage.adapter()
        ids = [github.dispatch_workflow("loop.yml", "main", {"pr_number": str(number)}) for number in (1, 2)]
        assert ids == [0, 0]
        assert [entry["inputs"]["pr_number"] for entry in dispatches(stage)] == ["1", "2"]
        assert github.requests.write == 3, "the first with and without the field, the second without"


def test_a_start_whose_answer_is_lost_is_not_repeated_blindly(stage: Stage) -> None:
    stage.server.faults.add(Fault("lost-after", path="/dispatches"))
    with pytest.raises(AnswerLost):
        stage.adapter().dispatch_workflow("loop.yml", "main", {"pr_number": "1"})
    assert len(dispatches(stage)) == 1


def dispatches(stage: Stage) -> list[dict[str, Any]]:
    from accord_sandbox.show import document

    found: list[dict[str, Any]] = document(stage.server.database.path.parent)["dispatches"]
    return found
