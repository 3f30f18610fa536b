"""``accord status`` on a repository that agents work on."""

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import click
import pytest
from support.commands import Accord
from support.plans import task_body
from support.stage import Stage, staged
from support.starts import DRAFT, LABELS, PENDING, PULL, READY, REQUEST, Starts, starts_stage
from support.trees import git

from accord.board.facts import KnownPulls, read_snapshot
from accord.board.models import Entry, Overview, address_of
from accord.board.pages import timeline_of
from accord.cli.board import status_lines
from accord.starts.ends import JobResult
from accord_sandbox.server import serving

NOW = datetime(2026, 11, 2, 9, tzinfo=UTC)


STAGE = starts_stage


@pytest.fixture
def starts(stage: Stage, accord: Accord) -> Starts:
    accord.on(stage)
    return Starts(stage)


def ids(document: dict[str, Any]) -> dict[str, list[str]]:
    return {name: [entry["id"] for entry in entries] for name, entries in document.items() if name != "notes"}


@pytest.mark.slow
def test_a_start_goes_from_ready_to_running_to_what_needs_you(accord: Accord, starts: Starts) -> None:
    nothing: dict[str, list[str]] = {"needs_you": [], "running": [], "waiting": [], "ready": [], "done": []}
    before = accord.document("status")
    assert ids(before) == {**nothing, "waiting": [f"#{PENDING}"], "ready": [f"#{READY}"]}
    assert before["waiting"][0]["why"] == f"Blocked by #{READY}."
    starts.deliver(starts.comment(READY, "/accord implement"))
    starts.begin("implement", READY, agent="codex", by="wanda")
    (running,) = accord.document("status")["running"]
    assert (running["id"], running["kind"]) == (f"#{READY}", "run")
    assert running["why"] == "implementation by codex, asked for by wanda"
    starts.end("implement", READY, {"implement": JobResult("failure", {})})
    (need,) = accord.document("status")["needs_you"]
    assert (need["kind"], need["id"]) == ("failure", f"#{READY}")
    host = starts.stage.server.url.removeprefix("http://")
    assert need["command"] == f"gh issue comment {READY} --body '/accord retry' --repo {host}/octo/code"


@pytest.mark.slow
def test_facts_that_the_token_may_not_read_are_noted(accord: Accord, tmp_path: Path) -> None:
    permissions = {"issues": "read", "pull_requests": "read"}
    token = {"token": "narrow", "login": "app[bot]", "kind": "installation", "permissions": permissions}
    repository = {"name": "octo/web", "private": True, "files": {"a.txt": "One\n"}}
    repository["branches"] = {"accord/1": {"b.txt": "Two\n"}}
    pull = {"title": "The change", "head": "accord/1", "body": "Closes #1", "author": "github-actions[bot]"}
    repository["issues"] = [{"title": "Do it", "labels": ["task:implement", "status:review"]}, pull]
    seed = {"tokens": [token], "repositories": [repository]}
    with staged(tmp_path / "sandbox", seed=seed, rate_limits=None) as stage:
        stage.send("PATCH", "/repos/octo/web/pulls/2", state="closed")
        accord.on(stage, GITHUB_TOKEN="narrow")
        status = accord.document("status")
        notes = status["notes"]
        assert [entry["why"].rpartition(", and ")[2] for entry in status["needs_you"]] == ["#2 was closed."]
        assert accord("board", "--static", "board").code == 0
    assert notes == ["The token cannot read workflow runs, so runs that wait for approval are not shown."]
    page = (accord.home / "board" / "index.html").read_text(encoding="utf-8")
    assert [note in page for note in (*notes, "so records of runs are not shown")] == [True, True]


def test_a_look_only_reads_and_takes_few_requests(accord: Accord, starts: Starts) -> None:
    starts.stage.server.requests.clear()
    accord.document("status")
    sent = [method for method, *_ in starts.stage.server.requests]
    assert set(sent) == {"GET"}
    assert len(sent) <= 7


@pytest.mark.slow
def test_labels_of_people_who_may_only_triage_need_a_person(accord: Accord, starts: Starts) -> None:
    for number, label in ((REQUEST, "agents:plan"), (READY, "agent:claude"), (PULL, "agents:keepalive")):
        starts.labelled(number, label, by="tess")
    needs = {entry["id"]: entry for entry in accord.document("status")["needs_you"]}
    for number in (REQUEST, READY, PULL):
        entry = needs[f"#{number}"]
        assert (entry["kind"], "`tess`" in entry["why"]) == ("label", True)
    assert needs[f"#{PULL}"]["command"].startswith(f"gh pr edit {PULL} --remove-label agents:keepalive")
    shown = accord.document("items", "show", READY)
    assert shown["refused_labels"] == [{"label": "agent:claude", "by": "tess"}]
    assert "(`label-not-allowed`)" in accord("items", "show", READY).out
    starts.stage.send("DELETE", f"{starts.root}/issues/{READY}/labels/agent:claude")
    starts.labelled(READY, "agent:claude")
    assert accord.document("items", "show", READY)["refused_labels"] == []


@pytest.mark.parametrize("event", ["APPROVE", "REQUEST_CHANGES"])
def test_a_verdict_says_since_when_it_needs_a_person(accord: Accord, starts: Starts, event: str) -> None:
    starts.labelled(PULL, "agent:codex")
    path = f"{starts.root}/pulls/{PULL}/reviews"
    for each in ("COMMENT", event):
        made = starts.stage.send("POST", path, token="writer", event=each, body="Read.")
    needs = {entry["id"]: entry["since"] for entry in accord.document("status")["needs_you"]}
    assert needs[f"#{PULL}"] == made["submitted_at"]


def test_watching_without_a_terminal_says_that_it_shows_once(accord: Accord, starts: Starts) -> None:
    ended = accord("status", "--watch")
    assert (ended.code, ended.err) == (0, "`--watch` needs text on a terminal. The status is shown once.\n")
    assert f"#{READY}" in ended.out


@pytest.mark.slow
def test_several_repositories_are_one_status(accord: Accord, tmp_path: Path) -> None:
    item = {"title": "Write", "labels": [*LABELS, "status:ready"], "body": task_body()}
    question = {"title": "Which?", "labels": ["task:refinement", "status:pending"]}
    repositories = [{"name": "octo/web", "issues": [item]}, {"name": "octo/api", "issues": [question]}]
    both = ("--repo", "octo/web", "--repo", "octo/api")
    with staged(tmp_path / "sandbox", seed={"repositories": repositories}, rate_limits=None) as stage:
        accord.on(stage)
        document = accord.document("status", *both)
        text, alone = accord("status", *both, "--repo", "octo/web").out, accord("status").out
        assert accord("board", *both, "--static", "board").code == 0
    assert ids(document) == {"needs_you": ["#1"], "running": [], "waiting": [], "ready": ["#1"], "done": []}
    assert [document[name][0]["repository"] for name in ("needs_you", "ready")] == ["octo/api", "octo/web"]
    assert document["needs_you"][0]["command"].endswith("/octo/api")
    assert ("octo/api#1 Which?" in text, text.count("octo/web#1 Write")) == (True, 1)
    assert ("  item         #1 Write" in alone, "Which?" in alone) == (True, False)
    assert {path.name for path in (accord.home / "board").glob("item-*")} == {"item-1.html", "item-octo~api-1.html"}


@pytest.mark.slow
def test_the_history_of_a_merged_pull_request_is_read_once(accord: Accord, starts: Starts) -> None:
    stage, pull = starts.stage, f"{starts.root}/pulls/{PULL}"
    stage.send("PATCH", pull, body=f"Closes #{READY}")
    stage.send("POST", f"{pull}/reviews", token="writer", event="APPROVE", body="Good.")
    starts.deliver(starts.comment(PULL, "/accord review"))
    stage.send("PUT", f"{pull}/merge")
    github, known = stage.adapter(), KnownPulls()
    sources, week = [(github, address_of(stage.repository, stage.server.url))], timedelta(days=7)
    counts, texts = list[int](), list[list[str]]()
    for step in range(4):
        before = github.requests.read
        (facts,) = read_snapshot(sources, accord.home, week, known).repositories
        counts.append(github.requests.read - before)
        texts.append([event.text for event in timeline_of(facts, facts.closed[0])])
        if step == 0:
            stage.send("POST", f"{starts.root}/actions/runs/{starts.runs[-1]['id']}/cancel")
        if step == 2:
            stage.clock.sleep(5)
            stage.send("POST", f"{starts.root}/issues/{PULL}/comments", body="Thanks.")
    assert texts[0][1:] == [
        f"Pull request #{PULL} opened",
        f"Review of #{PULL}, asked for by wanda: queued",
        f"wanda approves (#{PULL})",
        f"Pull request #{PULL} merged",
        "Completed",
    ]
    assert texts[1:] == [[text.replace("queued", "failed") for text in texts[0]]] * 3
    assert counts[1] == counts[3] == counts[2] + 3
    assert sum(map(len, known.values())) == 1
    assert read_snapshot(sources, accord.home, week).repositories[0].ended[0].reviews == ()


@pytest.mark.slow
def test_a_board_is_not_written_over_a_site_of_yours(accord: Accord, starts: Starts) -> None:
    (accord.home / "site").mkdir()
    accord.file("site/index.html", "<h1>Mine</h1>")
    ended = accord("board", "--static", "site")
    assert (ended.code, "not of a board" in ended.err) == (2, True)
    assert (accord("board", "--dry-run").code, accord("board", "--static", "site", "--dry-run").code) == (2, 2)
    assert starts.stage.server.requests == []
    assert accord("board", "--static", "board", "--dry-run").out.endswith(" pages into board.\n")
    assert not (accord.home / "board").exists()
    assert accord("board", "--static", "board").code == 0
    assert accord("board", "--static", "board").code == 0


def test_the_remote_of_the_checkout_names_the_repository(accord: Accord, starts: Starts) -> None:
    accord.monkeypatch.delenv("GITHUB_REPOSITORY")
    git(accord.home, "init", "--quiet")
    ended = accord("status")
    assert (ended.code, "No repository given." in ended.err) == (2, True)
    git(accord.home, "remote", "add", "origin", f"{starts.stage.server.url}/octo/code.git")
    assert ids(accord.document("status"))["ready"] == [f"#{READY}"]


def test_a_token_is_not_sent_to_the_server_that_a_remote_names(accord: Accord, starts: Starts) -> None:
    accord.monkeypatch.delenv("GITHUB_REPOSITORY")
    git(accord.home, "init", "--quiet")
    git(accord.home, "remote", "add", "origin", "https://evil.example/octo/code.git")
    ended = accord("status")
    assert ended.code == 2
    assert "The remote `origin` is on evil.example" in ended.err
    assert starts.stage.server.requests == []


@pytest.mark.parametrize("name", ["GH_ENTERPRISE_TOKEN", "gh"])
def test_the_token_of_the_github_cli_is_found(accord: Accord, starts: Starts, name: str) -> None:
    token = starts.stage.server.token
    accord.monkeypatch.delenv("GITHUB_TOKEN")
    if name == "gh":
        program = accord.home / "bin" / "gh"
        program.parent.mkdir()
        host = starts.stage.server.url.removeprefix("http://")
        program.write_text(f'#!/bin/sh\n[ "$*" = "auth token --hostname {host}" ] && echo {token}\n')
        program.chmod(0o755)
        accord.monkeypatch.setenv("PATH", str(program.parent), prepend=":")
    else:
        accord.monkeypatch.setenv(name, token)
    assert ids(accord.document("status"))["ready"] == [f"#{READY}"]


@pytest.mark.slow
def test_sessions_of_the_folder_ask_their_questions_too(accord: Accord, starts: Starts) -> None:
    assert accord("session", "new", "Add login", "--lean").code == 0
    (folder,) = (accord.home / ".agents-work").iterdir()
    shown = f".agents-work/{folder.name}"
    (running,) = accord.document("status")["running"]
    assert (running["kind"], running["id"], running["title"]) == ("session", folder.name, "INTAKE_LEAN")
    moves = accord.document("session", "show", shown)["next_moves"]
    assert (
        running["why"] == "It has no tasks yet. Next: IMPLEMENT_LOOP, which needs spec.md, acceptance.json, tasks.yaml."
    )
    assert running["command"] in [move["command"] for move in moves]
    assert accord("session", "ask", shown, "--question", "Which provider?").code == 0
    (need,) = accord.document("status")["needs_you"]
    assert (need["kind"], need["why"]) == ("question", "Which provider?")
    assert accord("session", "answer", shown, "UD-1=GitHub").code == 0
    assert need["command"] == f"accord session answer {shown} UD-1=ANSWER"
    (folder / "status.json").write_text("{}")
    (broken,) = accord.document("status")["needs_you"]
    assert (broken["kind"], broken["command"]) == ("broken", f"accord session check {shown}")


@pytest.mark.slow
def test_a_strangers_pull_request_hides_no_item(accord: Accord, starts: Starts) -> None:
    starts.stage.send("PUT", f"{starts.root}/issues/{READY}/labels", labels=["task:implement", "status:blocked"])
    starts.stage.send("PATCH", f"{starts.root}/pulls/{DRAFT}", body=f"Closes #{READY}")
    with starts.stage.server.database.writing() as connection:
        of_tess = "UPDATE issues SET author_id = (SELECT id FROM users WHERE login = 'tess') WHERE number = ?"
        connection.execute(of_tess, (DRAFT,))
    (need,) = accord.document("status")["needs_you"]
    assert (need["kind"], need["id"]) == ("question", f"#{READY}")


def test_options_before_the_name_of_a_command_of_the_board_are_refused(accord: Accord, starts: Starts) -> None:
    ended = accord("board", "--repo", "octo/other", "issue")
    assert (ended.code, "Write them after the name" in ended.err) == (2, True)
    assert starts.stage.server.requests == []


@pytest.mark.slow
def test_the_dashboard_of_a_sandbox_is_the_same_at_another_port(accord: Accord) -> None:
    seed = {"repositories": [{"name": "octo/web", "issues": [{"title": "Which?", "labels": ["task:refinement"]}]}]}
    with serving(accord.home / "sb", seed=accord.file("seed.json", seed)):
        pass
    for outcome in ("applied", "unchanged"):
        assert accord.document("board", "issue", "--sandbox", "sb")["outcome"] == outcome


def entry(number: int, **more: Any) -> Entry:
    return Entry("item", f"#{number}", "A title", "Why it is here.", NOW - timedelta(minutes=5), **more)


def text(overview: Overview) -> list[str]:
    return [click.unstyle(line) for line in status_lines(overview, 10, NOW)]


def test_the_text_names_the_command_and_cuts_long_lists() -> None:
    need = Entry("merge", "#5", "Change", "It is approved.", NOW - timedelta(hours=3), command="gh pr merge 5")
    lines = text(Overview((need,), waiting=tuple(map(entry, range(12)))))
    assert lines[:4] == [
        "Needs you (1)",
        "  merge        #5 Change · for 3 h",
        f"{' ' * 15}It is approved.",
        f"{' ' * 15}gh pr merge 5",
    ]
    assert lines[-1] == "  … 2 more: pass --limit 0"
    assert len(status_lines(Overview(waiting=tuple(map(entry, range(12)))), 0, NOW)) == 15


def test_no_line_is_wider_than_the_terminal() -> None:
    long = Entry("item", "#5", "A long title " * 20, "A long reason " * 20)
    assert max(map(len, status_lines(Overview(waiting=(long,)), 10, NOW, 80))) <= 80


def test_an_empty_repository_needs_no_one() -> None:
    assert text(Overview(notes=("Something was not read.",))) == [
        "Nothing needs you.",
        "note: Something was not read.",
    ]
