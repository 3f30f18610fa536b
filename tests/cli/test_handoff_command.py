"""``accord handoff`` as it is called: what it prints, what it leaves, and how it ends."""

import json
from typing import Any

import pytest
from support.commands import Accord
from support.handoffs import EVERYTHING, PLAN, REVIEW, VERIFICATION, handoff, patch
from support.killing import kill_at
from support.rotation import NIGHTLY
from support.stage import Stage

from accord.handoffs.gate import open_actions
from accord.handoffs.store import read_block

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


@pytest.fixture
def online(accord: Accord, stage: Stage) -> Accord:
    """An accord whose environment names the stage."""
    accord.on(stage)
    return accord


def test_a_refused_move_prints_the_promised_document(accord: Accord) -> None:
    path = accord.file("task.json", handoff("implementing", verificationArtifact=VERIFICATION))
    refused = accord.document("handoff", "move", path, "--to", "review", "--role", "developer", code=1)
    assert (refused["ok"], refused["status"], refused["task"]["status"]) == (False, "implementing", "implementing")
    (reason,) = refused["blockingReasons"]
    assert (reason["code"], reason["path"]) == ("MISSING_REVIEW_ARTIFACTS", "/metadata/reviewArtifact")


@pytest.mark.parametrize("value", [{"metadata": {}}, {"tasks": [{"metadata": {}}]}])
def test_a_handoff_with_text_around_it_is_refused_at_every_door(accord: Accord, value: Any) -> None:
    path = accord.file("task.json", f"# A task\n```json\n{json.dumps(value)}\n```\n")
    checked = accord.document("handoff", "check", path, code=1)
    (document,) = accord.document("check", path, code=1)["documents"]
    assert [one["code"] for one in checked["blockingReasons"]] == ["TEXT_AROUND"]
    assert [one["code"] for one in document["findings"]] == ["text-around"]
    assert checked["next_moves"] == []


@pytest.mark.parametrize("tasks", [[handoff("review")], {"T-00007": handoff("review")}, [], {}])
@pytest.mark.parametrize("verb", ["patch", "move"])
def test_a_store_of_tasks_is_not_a_patch(accord: Accord, tasks: Any, verb: str) -> None:
    path = accord.file("one.json", handoff("implementing"))
    store = accord.file("tasks.json", {"version": 1, "tasks": tasks})
    before = path.read_bytes()
    more = (store,) if verb == "patch" else ("--to", "backlog", "--patch", store)
    refused = accord.document("handoff", verb, path, *more, "--role", "planner", code=1)
    (reason,) = refused["blockingReasons"]
    assert (reason["code"], reason["path"]) == ("NOT_A_HANDOFF", "/tasks")
    assert "This is a store of tasks" in reason["message"]
    assert (verb == "move") or path.read_bytes() == before


@pytest.mark.parametrize("actor", ["", "  ", "bob\nalice", "bob\u2028"])
@pytest.mark.parametrize("command", [("patch", "patch.json"), ("move", "--to", "planning")])
def test_an_actor_that_is_not_one_printable_line_changes_nothing(accord: Accord, actor: str, command: Any) -> None:
    path = accord.file("task.json", handoff("backlog"))
    before = path.read_bytes()
    more = (accord.file("patch.json", patch(planningArtifact=PLAN)),) if command[0] == "patch" else command[1:]
    refused = accord.document("handoff", command[0], path, *more, "--role", "planner", "--actor", actor, code=1)
    assert ([reason["code"] for reason in refused["blockingReasons"]], path.read_bytes()) == (["ACTOR_INVALID"], before)


def test_a_handoff_is_checked_from_stdin_too(accord: Accord) -> None:
    accord.given(json.dumps(handoff("review")))
    checked = accord.document("handoff", "check", "-", code=1)
    assert len(checked["blockingReasons"]) == 2
    assert checked["next_moves"][0]["command"].startswith("accord handoff move TASK.json --to implementing")


def test_a_file_of_tasks_is_checked_whole_and_no_move_changes_it(accord: Accord) -> None:
    path = accord.file("tasks.json", {"tasks": [{"metadata": {}}, {"status": "awaiting_human", "metadata": {}}]})
    (reason,) = accord.document("handoff", "check", path, code=1)["blockingReasons"]
    assert (reason["path"], reason["line"]) == ("/tasks/1/metadata/awaitingHumanArtifact", 8)
    for kind in ([], ["--kind", "handoff"]):
        (found,) = accord.document("check", path, *kind, code=1)["documents"]
        assert [(each["path"], each["line"]) for each in found["findings"]] == [(reason["path"], reason["line"])]
    moved = accord.document("handoff", "move", path, "--to", "planning", "--role", "human", code=1)
    assert [each["code"] for each in moved["blockingReasons"]] == ["NOT_A_HANDOFF"]


def test_an_invalid_patch_is_named_instead_of_the_task(accord: Accord) -> None:
    task, bad = accord.file("task.json", handoff("backlog")), accord.file("bad.json", '{\n "a": }')
    for command in (("patch", task, bad), ("move", task, "--to", "planning", "--patch", bad)):
        ended = accord("handoff", *command, "--role", "planner")
        assert (ended.code, ended.out.splitlines()[0].split(" error ")[0]) == (1, f"{bad}:2:")
        refused = accord.document("handoff", *command, "--role", "planner", code=1)
        assert refused["source"] == str(bad)


def test_a_dry_run_and_a_refused_patch_write_nothing_and_a_refused_move_only_its_reasons(accord: Accord) -> None:
    path = accord.file("task.json", handoff("implementing", **EVERYTHING))
    before = path.read_bytes()
    ended = accord("handoff", "move", path, "--to", "review", "--role", "tester", "--dry-run")
    assert (": planned" in ended.out, path.read_bytes()) == (True, before)
    change = accord.file("patch.json", patch(planningArtifact={"goals": ["Mine"]}))
    for words in (("patch", path, change), ("move", path, "--to", "planning", "--patch", change)):
        ended = accord("handoff", *words, "--role", "tester")
        assert (ended.code, ended.out.split(": error")[0]) == (1, f"{change}:4")
        assert f"{path} at implementing: rejected" in ended.out
        assert json.loads(path.read_text())["metadata"]["planningArtifact"] == PLAN
        path.write_bytes(before)
    accord("handoff", "move", path, "--to", "done", "--role", "tester")
    task = json.loads(path.read_text())
    assert task["metadata"].pop("workflowRuntime")["blockingReasons"][0]["code"] == "INVALID_STATUS_TRANSITION"
    assert task == json.loads(before)


def test_a_redirect_is_done_and_says_so(accord: Accord) -> None:
    path = accord.file("task.json", handoff("implementing"))
    command = ("handoff", "move", path, "--to", "review", "--role", "tester", "--on-missing", "redirect")
    first = accord.document(*command)
    assert (first["status"], first["redirected"]) == ("awaiting_human", True)
    assert accord.document(*command)["outcome"] == "unchanged"


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
def test_wrong_words_are_wrong_usage(accord: Accord, arguments: tuple[str, ...]) -> None:
    assert accord("handoff", *arguments).code == 2


@pytest.mark.parametrize("command", ["check", "dispatch"])
@pytest.mark.parametrize("words", [(), ("a.json", "--work-item", "1")])
def test_a_handoff_is_to_be_named_once(accord: Accord, command: str, words: tuple[str, ...]) -> None:
    ended = accord("handoff", command, *words)
    assert (ended.code, "Name the handoff once" in ended.err) == (2, True)


def test_secrets_of_the_environment_reach_neither_the_file_nor_the_output(accord: Accord) -> None:
    secret = "hunter2-hunter2-hunter2"
    accord.monkeypatch.setenv("AGENT_API_KEY", secret)
    path = accord.file("task.json", handoff())
    change = accord.file("patch.json", patch(doneArtifact={"note": f"{secret} \x1b[31m ::set-output name=x::y"}))
    for form in ("json", "text"):
        ended = accord("handoff", "patch", path, change, "--role", "developer", "--actor", secret, "--format", form)
        assert ended.code == 0
        assert "hunter2" not in ended.out + path.read_text()
        assert not any(line.startswith("::") for line in ended.out.splitlines())


ISSUE = ("--work-item", 1)
GATE = ("handoff", "gate", "--pull", 2)
DISPATCH = ("handoff", "dispatch", *ISSUE)


def test_a_handoff_lives_on_an_issue_and_is_read_back(online: Accord, stage: Stage) -> None:
    change = online.file("patch.json", patch(planningArtifact=PLAN))
    written = online.document("handoff", "patch", change, *ISSUE, "--role", "planner")
    assert written["outcome"] == "applied"
    read = online.document("handoff", "check", *ISSUE)
    assert (read["ok"], read["task"]) == (True, written["task"])
    block = read_block(stage.get("/repos/octo/code/issues/1")["body"])
    assert block[1] == read["task"]
    assert online.document("handoff", "patch", change, *ISSUE, "--role", "planner")["outcome"] == "unchanged"


def prepare(accord: Accord) -> None:
    """Give #1 a handoff that may go into review."""
    both = accord.file("both.json", patch(reviewArtifact=REVIEW, verificationArtifact=VERIFICATION))
    accord("handoff", "move", *ISSUE, "--to", "implementing", "--role", "planner")
    assert accord("handoff", "patch", both, *ISSUE, "--role", "human").code == 0


@pytest.fixture
def ready(online: Accord) -> Accord:
    prepare(online)
    return online


def check_run(stage: Stage) -> Any:
    sha = stage.get("/repos/octo/code/pulls/2")["head"]["sha"]
    (latest,) = stage.get(f"/repos/octo/code/commits/{sha}/check-runs")["check_runs"]
    return latest


@pytest.mark.slow
def test_the_gate_is_closed_until_the_handoff_opens_it_and_sets_each_verdict_once(accord: Accord, stage: Stage) -> None:
    accord.on(stage, GITHUB_TOKEN=JOB)
    for outcome in ("applied", "unchanged"):
        closed = accord.document(*GATE, code=1)
        assert closed["outcome"] == outcome
        assert [reason["code"] for reason in closed["blockingReasons"]] == ["HANDOFF_MISSING"]
    assert (check_run(stage)["name"], check_run(stage)["conclusion"]) == ("accord/handoff", "failure")
    assert "handoff-missing" in check_run(stage)["output"]["summary"]
    prepare(accord)
    opened = accord.document(*GATE)
    assert (opened["ok"], opened["status"]) == (True, "implementing")
    assert check_run(stage)["conclusion"] == "success"


def test_a_gate_of_no_pull_request_is_an_error_of_the_input(accord: Accord, stage: Stage) -> None:
    accord.on(stage, GITHUB_TOKEN=JOB)
    ended = accord("handoff", "gate", "--pull", 99)
    assert ended.code == 1
    assert "octo/code has no pull request #99." in ended.err


@pytest.mark.slow
def test_a_persons_token_sets_a_commit_status_instead(ready: Accord, stage: Stage) -> None:
    for outcome, status in (("applied", "done"), ("unchanged", "adopted")):
        judged = ready.document(*GATE)
        assert (judged["outcome"], judged["check"]["kind"]) == (outcome, "commit-status")
        assert [entry["status"] for entry in judged["operations"]] == [status]
    assert [entry["status"] for entry in ready.document(*GATE, "--dry-run")["operations"]] == ["adopted"]
    sha = stage.get("/repos/octo/code/pulls/2")["head"]["sha"]
    (status,) = stage.get(f"/repos/octo/code/commits/{sha}/status")["statuses"]
    assert (status["context"], status["state"]) == ("accord/handoff", "success")


def test_where_no_check_may_be_set_the_step_says_it_alone(accord: Accord, stage: Stage) -> None:
    accord.on(stage, GITHUB_TOKEN="fork")
    step = accord.in_step(annotates=False)
    judged = accord.document(*GATE, code=1)
    assert (judged["outcome"], judged["check"]) == ("not-allowed", None)
    assert "may set no check" in step.summary
    assert "handoff-missing" in step.summary
    assert "HANDOFF_MISSING" in step.outputs["blocking-reasons"]


def events(stage: Stage) -> list[Any]:
    return [request for request in stage.server.requests if request[1].endswith("/dispatches")]


@pytest.mark.slow
def test_the_next_role_is_called_once(ready: Accord, stage: Stage) -> None:
    planned = ready.document(*DISPATCH, "--dry-run")
    assert [planned["outcome"], *(action["type"] for action in planned["actions"])] == ["planned", "dispatch_developer"]
    assert events(stage) == []
    for outcome in ("applied", "unchanged"):
        assert (ready.document(*DISPATCH)["outcome"], len(events(stage))) == (outcome, 1)
    task = ready.document("handoff", "check", *ISSUE)["task"]
    last = task["metadata"]["workflowRuntime"]["actionHistory"][-1]
    assert (last["actionId"], last["result"]) == (planned["actions"][0]["id"], "ok")


def test_nothing_is_sent_for_a_file_in_which_it_cannot_be_recorded(online: Accord, stage: Stage) -> None:
    path = online.file("task.json", handoff("backlog"))
    assert online("handoff", "move", path, "--to", "implementing", "--role", "planner").code == 0
    path.with_name("second.json").hardlink_to(path)
    ended = online("handoff", "dispatch", path)
    assert (ended.code, "a hard link" in ended.err, events(stage)) == (1, True, [])


@pytest.mark.slow
def test_a_dispatch_that_is_killed_at_any_request_is_continued_by_the_same_command(
    online: Accord, stage: Stage
) -> None:
    def begun() -> list[str]:
        issue = ["--work-item", str(stage.adapter().create_issue("Export", "", []).number)]
        assert online("handoff", "move", *issue, "--to", "implementing", "--role", "planner").code == 0
        stage.server.requests.clear()
        return issue

    assert online("handoff", "dispatch", *begun()).code == 0
    for nth, (method, *_) in enumerate([*stage.server.requests], 1):
        if NIGHTLY or method != "GET":
            issue = begun()
            kill_at(nth, ["handoff", "dispatch", *issue], stage)
            assert online("handoff", "dispatch", *issue).code == 0
            checked = online.document("handoff", "check", *issue)
            assert (checked["warnings"], open_actions(checked["task"])) == ([], []), f"request {nth}"
