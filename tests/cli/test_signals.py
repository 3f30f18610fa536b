"""SIGTERM at each request of a command: it ends with 3, says why, and does not go on as after any other error."""

import json
import os
import signal
import subprocess
import threading
from typing import Any

import pytest
from support.commands import Accord, Ended
from support.consumers import CONSUMER, NEW, consumer_stage, installed, older_kit
from support.plans import plan, task
from support.runner_workflows import RUNNER
from support.stage import Stage
from support.trees import git

from accord_sandbox.server import Exchange

SEED = {
    "repositories": [
        {"name": "octo/web", "files": {"a.txt": "One\n"}, "branches": {"feature": {}}, "issues": [{"title": "One"}]},
        {"name": "octo/api", "files": {"a.txt": "One\n"}, "issues": [{"title": "Two", "labels": ["needs-human"]}]},
    ]
}


def run_until(nth: int, accord: Accord, stage: Stage, *words: str) -> tuple[Ended, list[str]]:
    """Run a command that gets a signal before the answers to its n-th request and all later ones.

    Also return all that it requests.
    """
    paths: list[str] = []

    def stop(exchange: Exchange) -> None:
        if exchange.phase == "applied":
            paths.append(exchange.path)
            if len(paths) >= nth:
                signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGTERM)

    stage.server.observers.append(stop)
    try:
        return accord(*words, "--format", "json"), paths
    finally:
        stage.server.observers.remove(stop)


def ending_of(ended: Ended, outputs: dict[str, str]) -> tuple[str, str]:
    """Return the outcome and the error of a command; also that of the one repository that was interrupted."""
    document = ended.document
    if "results" in document:
        assert json.loads(outputs["counts"]) == document["counts"]
        (stopped,) = (each for each in document["results"] if each["outcome"] == "stopped")
        return "stopped", stopped["note"]
    assert outputs["outcome"] == document["outcome"]
    return document["outcome"], document.get("error", {}).get("message", "")


@pytest.mark.parametrize(
    "words",
    [
        "labels sync",
        "doctor",
        "status --repo octo/web --repo octo/api",
        "repos run status --file repositories.txt",
        "apply plan.json",
    ],
)
def test_a_signal_at_any_request_ends_the_command_and_is_reported_as_one(
    accord: Accord, stage: Stage, monkeypatch: pytest.MonkeyPatch, words: str
) -> None:
    monkeypatch.setattr("accord.workflows.doctor.find_zizmor", lambda: None)
    (accord.home / ".github/workflows").mkdir(parents=True)
    accord.file(".github/workflows/run.yml", RUNNER)
    accord.file("repositories.txt", "- octo/web\n- octo/api\n")
    accord.file("plan.json", plan(task("a"), task("b", "a")))
    accord.on(stage)
    is_whole, nth = False, 0
    while not is_whole:
        nth += 1
        stage.reset()
        step = accord.in_step()
        ended, paths = run_until(nth, accord, stage, *words.split())
        is_whole = len(paths) < nth
        if is_whole:
            assert ended.code == 0, ended
            continue
        outcome, told = ending_of(ended, step.outputs)
        is_reported = outcome == "applied"  # what follows is the record of the run
        assert (ended.code, outcome) == (3, "applied" if is_reported else "stopped"), ended
        assert "interrupted by a signal" in (ended.err if is_reported else told), ended
        assert not is_reported or any(path.endswith("/accord/records") for path in paths[:nth])
        assert all("/git/" in path for path in paths[nth:]), "only the lease and the record are written"
    assert nth > 5


@pytest.mark.parametrize(("number", "nth"), [(1, 5), (2, 30)])
def test_a_signal_leaves_a_report_of_the_work_before_it(accord: Accord, stage: Stage, number: int, nth: int) -> None:
    accord.on(stage)
    accord.file("repositories.txt", "- octo/web\n- octo/api\n- octo/none\n")
    step = accord.in_step()
    if number == 1:
        document = run_until(nth, accord, stage, "labels", "sync")[0].document
        actions = [each["action"] for each in document["labels"]]
        assert actions == [*["created"] * (nth - 2), "failed"]
        assert document["labels"][-1]["error"] == document["error"]["message"]
        assert [each["status"] for each in document["operations"]] == [*["done"] * (nth - 2), "failed"]
        assert [each["action"] for each in json.loads(step.outputs["labels"])] == actions
    else:
        words = ("repos", "run", "labels", "--file", "repositories.txt", "--results", "results.jsonl")
        document = run_until(nth, accord, stage, *words)[0].document
        outcomes = {each["repository"]: each["outcome"] for each in document["results"]}
        assert outcomes == {"octo/web": "applied", "octo/api": "stopped", "octo/none": "pending"}
        lines = (accord.home / "results.jsonl").read_text().splitlines()
        assert [json.loads(line)["repository"] for line in lines] == ["octo/web", "octo/api"]
    assert "interrupted by a signal" in step.summary


def test_a_sync_of_the_kit_tells_what_it_did_before_a_signal(accord: Accord) -> None:
    with consumer_stage(accord.home, installed(accord.home / "kit", older_kit())) as stage:
        accord.on(stage, GITHUB_REPOSITORY=CONSUMER)
        words = ("sync", "--ref", NEW.commit)
        ended, _ = run_until(12, accord, stage, *words)
        (found,) = ended.document["repositories"]
    assert (ended.code, ended.document["outcome"]) == (3, "stopped")
    assert found["operations"][-1]["status"] == "failed"
    assert "interrupted by a signal" in found["error"]["message"]


def test_a_signal_while_changes_are_published_is_not_a_failed_push(accord: Accord, stage: Stage) -> None:
    accord.on(stage, GITHUB_SERVER_URL=stage.server.url)
    tree = accord.home / "tree"
    git(accord.home, "clone", "-q", f"{stage.server.url}/octo/web.git", "-b", "feature", str(tree))
    accord.monkeypatch.chdir(tree)
    program = accord.file("agent.py", "open('new.txt', 'w').write('new')")
    (tree / "prompt.md").write_text("Do it.")
    given = ("--command", f"python3 {program}", "--prompt-file", "prompt.md", "--run-dir", accord.home / "run")
    assert accord("run", "--agent", "command", *given, "--pr-ref", "feature", "--no-publish").code == 0
    accord.monkeypatch.chdir(accord.home)
    step = accord.in_step()
    publish = ("publish", str(accord.home / "run"), "--pr-ref", "feature", "--outputs", "outputs.json")
    for nth in (5, 10):  # while git fetches, and before the answer to the push
        ended, _ = run_until(nth, accord, stage, *publish)
        assert (ended.code, ended.document["outcome"]) == (3, "stopped")
        assert "The run was cancelled: The process was interrupted by a signal." in step.outputs["error-summary"]
        assert json.loads((accord.home / "outputs.json").read_text()) == step.outputs
        (accord.home / "outputs.json").unlink()
    assert accord.document(*publish)["changes-made"] == "true"


@pytest.mark.parametrize(
    ("words", "outcome"), [("items list", "stopped"), ("apply plan.json", "stopped"), ("schema nope", "usage")]
)
def test_a_second_signal_does_not_cut_the_report_of_the_first(
    accord: Accord, stage: Stage, words: str, outcome: str
) -> None:
    accord.on(stage)
    accord.file("plan.json", plan(task("a")))
    os.mkfifo(accord.home / "output")
    accord.monkeypatch.setenv("GITHUB_OUTPUT", str(accord.home / "output"))
    with accord.start(*words.split(), stderr=subprocess.STDOUT) as started:

        def stop(exchange: Exchange) -> None:
            if exchange.phase == "applied" and outcome == "stopped":
                started.send_signal(signal.SIGINT)

        stage.server.observers.append(stop)
        assert started.stdout is not None
        first = started.stdout.readline()
        stage.server.observers.remove(stop)
        started.send_signal(signal.SIGTERM)  # now it waits for a reader of its outputs
        reader = os.open(accord.home / "output", os.O_RDONLY | os.O_NONBLOCK)
        out = first + started.stdout.read()
        with open(reader) as file:
            outputs = file.read()
    assert (started.returncode, "Traceback" in out) == ({"stopped": 3, "usage": 2}[outcome], False), out
    assert ("interrupted by a signal" in out, outcome in outputs) == (outcome == "stopped", True), out


def test_a_signal_ends_a_report_that_hangs_for_long(accord: Accord, stage: Stage) -> None:
    accord.on(stage)
    accord.file("plan.json", plan(task("a")))
    accord.monkeypatch.setattr("accord.cli.main._REPORT_SECONDS", 0)
    ends: list[int] = []
    accord.monkeypatch.setattr("os._exit", ends.append)
    run_until(11, accord, stage, "apply", "plan.json")
    assert set(ends) == {3}


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_the_tools_of_an_agent_while_they_wait(accord: Accord, number: int) -> None:
    version: dict[str, Any] = {"protocolVersion": "2025-06-18", "capabilities": {}}
    begin = {"method": "initialize", "params": {**version, "clientInfo": {"name": "a", "version": "1"}}}
    with accord.start("mcp", stdin=subprocess.PIPE) as started:
        assert started.stdin is not None
        assert started.stdout is not None
        started.stdin.write(json.dumps({"jsonrpc": "2.0", "id": 1, **begin}) + "\n")
        started.stdin.flush()
        assert "accord" in started.stdout.readline()
        started.send_signal(number)
        assert started.wait(30) == 0
