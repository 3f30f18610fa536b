"""``accord handoff`` as it is called: what it prints, what it leaves, and how it ends."""

from __future__ import annotations

import json
import subprocess
import time
from typing import TYPE_CHECKING, Any

import pytest
from support.handoffs import DONE, EVERYTHING, PLAN, REVIEW, VERIFICATION, handoff, patch
from support.stage import Stage, staged

from accord.core.clock import SystemClock
from accord.handoffs.store import read_block
from accord_sandbox.server import Fault

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

JOB = "job"
SEED = """
tokens:
  - {token: job, login: "github-actions[bot]", kind: installation,
     permissions: {contents: write, issues: write, pull_requests: read, checks: write}}
  - {token: fork, login: "github-actions[bot]", kind: installation,
     permissions: {contents: read, issues: read, pull_requests: read, checks: read, statuses: read}}
repositories:
  - name: octo/code
    files: {a.txt: "One\\n"}
    branches: {feature: {a.txt: "Two\\n"}}
    issues:
      - {title: Export}
      - {title: The change, head: feature, body: "Closes #1"}
      - {title: Another}
"""


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    folder = tmp_path_factory.mktemp("sandbox")
    (folder / "seed.yml").write_text(SEED)
    with staged(folder / "home", seed=folder / "seed.yml", rate_limits=None) as stage:
        yield stage


@pytest.fixture
def stage(shared: Stage) -> Stage:
    shared.server.reset()
    return shared


def test_a_refused_move_prints_the_promised_document(accord: Any) -> None:
    path = accord.file("task.json", handoff("implementing", verificationArtifact=VERIFICATION))
    ended = accord("handoff", "move", path, "--to", "review", "--role", "developer", "--format", "json")
    assert ended.code == 1
    assert ended.document["ok"] is False
    assert ended.document["status"] == "implementing"
    (reason,) = ended.document["blockingReasons"]
    assert (reason["code"], reason["path"]) == ("MISSING_REVIEW_ARTIFACTS", "/metadata/reviewArtifact")
    assert ended.document["task"]["status"] == "implementing"


def test_a_handoff_goes_all_its_way_through_a_file(accord: Any) -> None:
    path = accord.file("task.json", {"title": "Export", "status": "todo"})
    stations = [
        ("planning", "planner", None),
        ("implementing", "planner", patch(planningArtifact=PLAN)),
        ("in_progress", "developer", None),
        ("review", "tester", patch(reviewArtifact=REVIEW, verificationArtifact=VERIFICATION)),
        ("verification", "reviewer", None),
        ("done", "retrospective", patch(doneArtifact=DONE)),
    ]
    for target, role, change in stations:
        more = ("--patch", accord.file("patch.json", change)) if change else ()
        ended = accord("handoff", "move", path, "--to", target, "--role", role, *more, "--format", "json")
        assert ended.code == 0, ended.out
    task = json.loads(path.read_text())
    assert (task["status"], task["metadata"]["canonicalTaskId"]) == ("done", "T-00001")
    assert len(task["metadata"]["workflowRuntime"]["actionHistory"]) == 10
    assert accord("handoff", "check", path).code == 0
    assert accord("check", path, "--format", "json").document["documents"][0]["kind"] == "handoff"


def test_a_handoff_is_checked_from_stdin_too(accord: Any) -> None:
    ended = accord.process("handoff", "check", "-", "--format", "json", given=json.dumps(handoff("review")))
    assert (ended.code, len(ended.document["blockingReasons"])) == (1, 2)


def test_a_check_says_in_which_line_of_the_file_something_is_wrong(accord: Any) -> None:
    task = handoff("review", verificationArtifact={**VERIFICATION, "result": "flaky"})
    path = accord.file("task.json", json.dumps(task, indent=1))
    line = next(i for i, text in enumerate(path.read_text().splitlines(), 1) if "flaky" in text)
    assert f"{path}:{line}: error schema" in accord("handoff", "check", path).out
    (reason,) = accord("handoff", "check", path, "--format", "json").document["blockingReasons"]
    assert (reason["path"], reason["line"]) == ("/metadata/verificationArtifact/result", line)


def test_an_invalid_patch_is_named_instead_of_the_task(accord: Any) -> None:
    task, bad = accord.file("task.json", handoff("backlog")), accord.file("bad.json", '{\n "a": }')
    for command in (("patch", task, bad), ("move", task, "--to", "planning", "--patch", bad)):
        ended = accord("handoff", *command, "--role", "planner")
        assert (ended.code, ended.out.splitlines()[0].split(" error ")[0]) == (1, f"{bad}:2:")


def test_a_dry_run_writes_nothing(accord: Any) -> None:
    path = accord.file("task.json", handoff("backlog"))
    before = path.read_bytes()
    ended = accord("handoff", "move", path, "--to", "planning", "--role", "planner", "--dry-run")
    assert ": planned" in ended.out
    assert path.read_bytes() == before


def test_a_refused_patch_leaves_the_file_and_a_refused_move_only_its_reasons(accord: Any) -> None:
    path = accord.file("task.json", handoff("implementing", **EVERYTHING))
    before = path.read_bytes()
    change = accord.file("patch.json", patch(planningArtifact={"goals": ["Mine"]}))
    ended = accord("handoff", "patch", path, change, "--role", "tester", "--format", "json")
    assert (ended.code, ended.document["outcome"]) == (1, "rejected")
    assert path.read_bytes() == before
    accord("handoff", "move", path, "--to", "done", "--role", "tester")
    task = json.loads(path.read_text())
    assert task["metadata"].pop("workflowRuntime")["blockingReasons"][0]["code"] == "INVALID_STATUS_TRANSITION"
    assert task == json.loads(before)


def test_a_redirect_is_done_and_says_so(accord: Any) -> None:
    path = accord.file("task.json", handoff("implementing"))
    command = ("handoff", "move", path, "--to", "review", "--role", "tester", "--on-missing", "redirect")
    first = accord(*command, "--format", "json")
    assert (first.code, first.document["status"], first.document["redirected"]) == (0, "awaiting_human", True)
    written = path.read_bytes()
    again = accord(*command, "--format", "json")
    assert (again.code, again.document["outcome"]) == (0, "unchanged")
    assert path.read_bytes() == written


@pytest.mark.parametrize("content", ["", "[1]", '{"metadata": 5}', '{"status": "lost"}'])
def test_an_invalid_handoff_is_reported_in_the_same_form(accord: Any, content: str) -> None:
    path = accord.file("task.json", content)
    for command in (("check", path), ("move", path, "--to", "done", "--role", "human")):
        ended = accord("handoff", *command, "--format", "json")
        assert ended.code == 1
        assert ended.document["ok"] is False
        assert ended.document["blockingReasons"]


@pytest.mark.parametrize(
    "arguments",
    [
        ("check",),
        ("check", "a.json", "b.json"),
        ("check", "absent.json"),
        ("check", "a.json", "--work-item", "1"),
        ("patch", "a.json", "--role", "planner"),
        ("move", "a.json", "--to", "nowhere", "--role", "planner"),
        ("move", "a.json", "--to", "done", "--role", "boss"),
        ("move", "a.json", "--to", "done"),
        ("dispatch",),
    ],
)
def test_wrong_words_are_wrong_usage(accord: Any, arguments: tuple[str, ...]) -> None:
    assert accord("handoff", *arguments).code == 2


def test_secrets_of_the_environment_reach_neither_the_file_nor_the_output(accord: Any, monkeypatch: Any) -> None:
    monkeypatch.setenv("AGENT_API_KEY", "hunter2-hunter2-hunter2")
    path = accord.file("task.json", handoff())
    change = accord.file(
        "patch.json", patch(doneArtifact={"note": "hunter2-hunter2-hunter2 \x1b[31m ::set-output name=x::y"})
    )
    for form in ("json", "text"):
        actor = ("--actor", "hunter2-hunter2-hunter2")
        ended = accord("handoff", "patch", path, change, "--role", "developer", *actor, "--format", form)
        assert ended.code == 0
        assert "hunter2" not in ended.out + path.read_text()
        assert not any(line.startswith("::") for line in ended.out.splitlines())


def test_a_handoff_lives_on_an_issue_and_is_read_back(accord: Any, stage: Stage) -> None:
    accord.on(stage)
    change = accord.file("patch.json", patch(planningArtifact=PLAN))
    ended = accord("handoff", "patch", change, "--work-item", 1, "--role", "planner", "--format", "json")
    assert (ended.code, ended.document["outcome"]) == (0, "applied")
    read = accord("handoff", "check", "--work-item", 1, "--format", "json").document
    assert (read["ok"], read["task"]) == (True, ended.document["task"])
    block = read_block(stage.get("/repos/octo/code/issues/1")["body"])
    assert block is not None
    assert block.task == read["task"]
    again = accord("handoff", "patch", change, "--work-item", 1, "--role", "planner", "--format", "json")
    assert again.document["outcome"] == "unchanged"


def test_a_patch_from_stdin_is_merged_into_what_another_writer_wrote_meanwhile(accord: Any, stage: Stage) -> None:
    accord.on(stage)
    stage.server.faults.add(Fault("slow", path="/git/commits$", seconds=3))
    other = accord.file("other.json", patch(other="word"))
    command = ("handoff", "patch", "--work-item", 1, "--role", "human", "--format", "json")
    with accord.start(*command, "-", stdin=subprocess.PIPE) as first:
        first.stdin.write(json.dumps(patch(mine="word")))
        first.stdin.close()
        while not any(request[1].endswith("/git/commits") for request in stage.server.requests):
            assert first.poll() is None
            time.sleep(0.02)
        assert accord(*command, other).document["outcome"] == "applied"
        assert first.wait(30) == 0
    metadata = accord("handoff", "check", "--work-item", 1, "--format", "json").document["task"]["metadata"]
    assert (metadata["mine"], metadata["other"]) == ("word", "word")


def ready(accord: Any) -> None:
    """Give #1 a handoff that may go into review."""
    both = accord.file("both.json", patch(reviewArtifact=REVIEW, verificationArtifact=VERIFICATION))
    accord("handoff", "move", "--work-item", 1, "--to", "implementing", "--role", "planner")
    assert accord("handoff", "patch", both, "--work-item", 1, "--role", "tester").code == 0


def check_runs(stage: Stage) -> list[dict[str, Any]]:
    sha = stage.get("/repos/octo/code/pulls/2")["head"]["sha"]
    found: list[dict[str, Any]] = stage.get(f"/repos/octo/code/commits/{sha}/check-runs", filter="all")["check_runs"]
    return found


def test_the_gate_is_closed_until_the_handoff_opens_it_and_sets_each_verdict_once(accord: Any, stage: Stage) -> None:
    accord.on(stage, GITHUB_TOKEN=JOB)
    for outcome in ("applied", "unchanged"):
        ended = accord("handoff", "gate", "--pull", 2, "--format", "json")
        assert (ended.code, ended.document["outcome"]) == (1, outcome)
        assert [reason["code"] for reason in ended.document["blockingReasons"]] == ["HANDOFF_MISSING"]
    ready(accord)
    ended = accord("handoff", "gate", "--pull", 2, "--format", "json")
    assert (ended.code, ended.document["ok"], ended.document["status"]) == (0, True, "implementing")
    newest, first = check_runs(stage)
    assert (newest["name"], newest["conclusion"], first["conclusion"]) == ("accord/handoff", "success", "failure")
    assert "handoff-missing" in first["output"]["summary"]


def test_a_persons_token_sets_a_commit_status_instead(accord: Any, stage: Stage) -> None:
    accord.on(stage)
    ready(accord)
    for outcome in ("applied", "unchanged"):
        ended = accord("handoff", "gate", "--pull", 2, "--format", "json").document
        assert (ended["outcome"], ended["check"]["kind"]) == (outcome, "commit-status")
    sha = stage.get("/repos/octo/code/pulls/2")["head"]["sha"]
    (status,) = stage.get(f"/repos/octo/code/commits/{sha}/status")["statuses"]
    assert (status["context"], status["state"]) == ("accord/handoff", "success")


def test_where_no_check_may_be_set_the_step_says_it_alone(
    accord: Any, stage: Stage, monkeypatch: Any, tmp_path: Path
) -> None:
    accord.on(stage, GITHUB_TOKEN="fork")
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(tmp_path / "summary.md"))
    monkeypatch.setenv("GITHUB_OUTPUT", str(tmp_path / "outputs"))
    ended = accord("handoff", "gate", "--pull", 2, "--format", "json")
    assert (ended.code, ended.document["outcome"], ended.document["check"]) == (1, "not-allowed", None)
    assert "may set no check" in (tmp_path / "summary.md").read_text()
    assert "handoff-missing" in (tmp_path / "summary.md").read_text()
    assert "HANDOFF_MISSING" in (tmp_path / "outputs").read_text()


@pytest.mark.parametrize("kind", ["lost-before", "lost-after", "error-500-after", "truncated"])
def test_a_check_whose_answer_is_lost_is_set_once(accord: Any, stage: Stage, monkeypatch: Any, kind: str) -> None:
    monkeypatch.setattr(SystemClock, "sleep", lambda *_: None)
    accord.on(stage, GITHUB_TOKEN=JOB)
    stage.server.faults.add(Fault(kind, method="POST"))
    assert accord("handoff", "gate", "--pull", 2, "--format", "json").document["outcome"] == "applied"
    assert len(check_runs(stage)) == 1


def events(stage: Stage) -> list[Any]:
    return [request for request in stage.server.requests if request[1].endswith("/dispatches")]


def test_the_next_role_is_called_once(accord: Any, stage: Stage) -> None:
    accord.on(stage)
    ready(accord)
    planned = accord("handoff", "dispatch", "--work-item", 1, "--dry-run", "--format", "json").document
    assert (planned["outcome"], [action["type"] for action in planned["actions"]]) == (
        "planned",
        ["dispatch_developer"],
    )
    assert events(stage) == []
    for outcome, count in (("applied", 1), ("unchanged", 1)):
        ended = accord("handoff", "dispatch", "--work-item", 1, "--format", "json")
        assert (ended.code, ended.document["outcome"], len(events(stage))) == (0, outcome, count)
    task = accord("handoff", "check", "--work-item", 1, "--format", "json").document["task"]
    last = task["metadata"]["workflowRuntime"]["actionHistory"][-1]
    assert (last["actionId"], last["result"]) == (planned["actions"][0]["id"], "ok")


def test_a_passing_error_is_waited_for_three_times_and_then_the_same_command_continues(
    accord: Any, stage: Stage, monkeypatch: Any
) -> None:
    waits: list[float] = []
    monkeypatch.setattr(SystemClock, "sleep", lambda _, seconds: waits.append(seconds))
    accord.on(stage)
    ready(accord)
    stage.server.faults.add(Fault("lost-before", path="/dispatches$", times=4))
    ended = accord("handoff", "dispatch", "--work-item", 1, "--format", "json")
    assert (ended.code, ended.document["actions"][0]["status"]) == (3, "stopped")
    assert [wait for wait in waits if wait in (5, 15, 30)] == [5, 15, 30]
    again = accord("handoff", "dispatch", "--work-item", 1, "--format", "json")
    assert (again.code, again.document["actions"][0]["status"]) == (0, "sent")


def test_an_error_that_will_not_pass_is_not_tried_again_by_itself(accord: Any, stage: Stage) -> None:
    accord.on(stage)
    ready(accord)
    path = accord.file("task.json", accord("handoff", "check", "--work-item", 1, "--format", "json").document["task"])
    accord.on(stage, GITHUB_TOKEN="fork")
    ended = accord("handoff", "dispatch", path, "--format", "json")
    assert (ended.code, ended.document["actions"][0]["status"]) == (4, "refused")
    accord.on(stage)
    assert accord("handoff", "dispatch", path, "--format", "json").document["outcome"] == "unchanged"
    again = accord("handoff", "dispatch", path, "--again", "--format", "json")
    assert (again.code, again.document["actions"][0]["status"]) == (0, "sent")
