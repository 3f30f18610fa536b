"""SIGTERM at each request of a command: it ends with 3, says why, and does not go on as after any other error."""

import json
import os
import signal
import threading
import time

import pytest
from support.commands import Accord, Ended
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
    """Run a command that gets the signal before the answer to its n-th request; also return all that it requests."""
    paths: list[str] = []

    def stop(exchange: Exchange) -> None:
        if exchange.phase == "applied":
            paths.append(exchange.path)
            if len(paths) == nth:
                signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGTERM)

    stage.server.observers.append(stop)
    try:
        return accord(*words, "--format", "json"), paths
    finally:
        stage.server.observers.remove(stop)


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
        document, outcome = ended.document, step.outputs.get("outcome", "stopped")
        is_reported = outcome == "applied"  # what follows is the record of the run
        told = ended.err if is_reported else document.get("error", {}).get("message", "")
        assert (ended.code, "interrupted by a signal" in told) == ((0, False) if is_whole else (3, True)), ended
        assert is_whole or document["outcome"] == outcome == ("applied" if is_reported else "stopped")
        assert "failed" not in str(document.get("labels"))
        assert all("/git/" in path for path in paths[nth:]), "only the lease and the record are written"
    assert nth > 5


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
    publish = ("publish", str(accord.home / "run"), "--pr-ref", "feature")
    for nth in (5, 10):  # while git fetches, and before the answer to the push
        ended, _ = run_until(nth, accord, stage, *publish)
        assert (ended.code, ended.document["outcome"]) == (3, "stopped")
        assert "The run was cancelled: The process was interrupted by a signal." in step.outputs["error-summary"]
    assert accord.document(*publish)["changes-made"] == "true"


def test_a_second_signal_does_not_cut_the_report_of_the_first(accord: Accord, stage: Stage) -> None:
    accord.on(stage)
    os.mkfifo(accord.home / "output")
    accord.monkeypatch.setenv("GITHUB_OUTPUT", str(accord.home / "output"))
    with accord.start("items", "list", "--format", "json") as started:
        stage.server.observers.append(stop := lambda _: started.send_signal(signal.SIGINT))
        assert started.stderr is not None
        first = started.stderr.readline()
        stage.server.observers.remove(stop)
        time.sleep(0.3)  # now it waits for a reader of its outputs
        started.send_signal(signal.SIGINT)
        time.sleep(0.3)
        reader = os.open(accord.home / "output", os.O_RDONLY | os.O_NONBLOCK)
        out, err = started.communicate(timeout=600)
        with open(reader) as file:
            outputs = file.read()
    assert "interrupted by a signal" in first
    assert (started.returncode, "Traceback" in err, json.loads(out)["outcome"]) == (3, False, "stopped")
    assert "stopped" in outputs
