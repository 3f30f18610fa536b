"""`accord outputs`, `publish` and `run` leave the same outputs, wherever a program or a person reads them."""

from __future__ import annotations

import base64
import json
from typing import TYPE_CHECKING

import pytest
from support.workshop import Agent, Workshop, agent, git, runner_stage, workshop

from accord.runner.models import RunOutputs

if TYPE_CHECKING:
    from pathlib import Path

    from cli.conftest import Accord

__all__ = ["agent", "runner_stage", "workshop"]

NAMES = set(RunOutputs().as_outputs())
MESSAGE = "Done, @octocat.\n\n- [x] Add the thing"
PROTECTED = "remote: error: GH006: Protected branch update failed for refs/heads/main.\n"


def transcript(message: str = MESSAGE) -> str:
    events = [
        {"type": "thread.started", "thread_id": "1"},
        {"type": "item.completed", "item": {"id": "item_0", "type": "agent_message", "text": message}},
        {"type": "turn.completed", "usage": {"input_tokens": 12, "output_tokens": 3}},
    ]
    return "".join(f"{json.dumps(event)}\n" for event in events)


@pytest.fixture
def evidence(accord: Accord) -> tuple[object, ...]:
    log = accord.file("stdout.log", transcript())
    return ("outputs", "--agent", "codex", "--exit-code", 0, "--stdout", log, "--format", "json")


def outputs_in(file: Path) -> dict[str, str]:
    values, lines = {}, file.read_text(encoding="utf-8").split("\n")
    while lines and "<<" in lines[0]:
        name, _, delimiter = lines.pop(0).partition("<<")
        end = lines.index(delimiter)
        values[name] = "\n".join(lines[:end])
        del lines[: end + 1]
    return values


def test_outputs_are_one_object_of_strings_and_the_same_in_the_runners_file(
    accord: Accord, evidence: tuple[object, ...]
) -> None:
    accord.monkeypatch.setenv("GITHUB_OUTPUT", str(accord.home / "output"))
    accord.monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(accord.home / "summary"))
    ended = accord(*evidence, "--pr-body", accord.file("body.md", "- [ ] Add the thing\n- [ ] Test it\n"))
    assert ended.code == 0
    assert set(ended.document) == NAMES
    assert all(isinstance(value, str) for value in ended.document.values())
    assert outputs_in(accord.home / "output") == ended.document
    assert base64.b64decode(ended.document["final-message"]).decode() == MESSAGE
    assert json.loads(ended.document["llm-completed-tasks"]) == ["Add the thing"]
    summary = (accord.home / "summary").read_text()
    assert "✅ codex" in summary
    assert "Add the thing" in summary
    assert "@octocat" not in summary


def test_a_secret_that_the_repositorys_registry_declares_reaches_no_output(accord: Accord) -> None:
    folder = accord.home / ".github" / "agents"
    folder.mkdir(parents=True)
    entry = "agents:\n  mine:\n    command: [sh]\n    required_secrets: [QWEN_PAT]\n"
    (folder / "registry.yml").write_text(entry)
    accord.monkeypatch.chdir(accord.home)
    accord.monkeypatch.setenv("QWEN_PAT", "correct-zebra-battery")
    log = accord.file("stdout.log", transcript("It is correct-zebra-battery."))
    arguments = ("--exit-code", 0, "--stdout", log, "--format", "json")
    for name, warning in (("codex", ""), ("mine", ""), ("mien", "Unknown agent")):
        found = accord("outputs", "--agent", name, *arguments).document
        assert found["final-message-summary"] == "It is [redacted: secret of the environment]."
        assert (warning in found["run-warnings"], bool(found["run-warnings"])) == (True, bool(warning))


def test_outputs_as_text_are_for_people(accord: Accord, evidence: tuple[object, ...]) -> None:
    ended = accord(*evidence[:-1], "text")
    assert "exit-code" in ended.out
    assert "characters of base64" in ended.out
    assert "error-category" not in ended.out


def test_pushed_changes_are_read_from_the_work_tree(accord: Accord, evidence: tuple[object, ...], agent: Agent) -> None:
    where = ("--root", agent.tree, "--base", agent.base)
    nothing = accord(*evidence, *where, "--pushed", "true").document
    assert (nothing["changes-made"], nothing["commit-sha"], nothing["files-changed"]) == ("false", "", "0")
    (agent.tree / "src" / "a.py").rename(agent.tree / "moved.py")
    (agent.tree / "new.txt").write_text("new\n")
    unpushed = accord(*evidence, *where).document
    assert (unpushed["changes-made"], unpushed["exit-code"]) == ("false", "0")
    assert "not pushed" in unpushed["run-warnings"]
    git(agent.tree, "add", "-A")
    git(agent.tree, "commit", "-qm", "The agent's own")
    pushed = accord(*evidence, *where, "--pushed", "true").document
    assert (pushed["changes-made"], pushed["files-changed"]) == ("true", "2")
    assert pushed["commit-sha"] == git(agent.tree, "rev-parse", "HEAD")


@pytest.mark.parametrize("pushed", [(), ("--pushed", "false")])
def test_no_task_counts_as_completed_while_its_work_is_not_pushed(
    accord: Accord, evidence: tuple[object, ...], agent: Agent, pushed: tuple[str, ...]
) -> None:
    body = accord.file("body.md", "- [ ] Add the thing\n")
    where = ("--root", agent.tree, "--base", agent.base, "--pr-body", body)
    (agent.tree / "new.txt").write_text("new\n")
    waiting = accord(*evidence, *where, *pushed).document
    assert (waiting["llm-completed-tasks"], waiting["llm-analysis-run"]) == ("[]", "false")
    git(agent.tree, "add", "-A")
    git(agent.tree, "commit", "-qm", "The agent's own")
    there = accord(*evidence, *where, "--pushed", "true").document
    assert json.loads(there["llm-completed-tasks"]) == ["Add the thing"]


@pytest.mark.parametrize(
    ("said", "recovery"),
    [
        (PROTECTED, "manual"),
        ("fatal: unable to access: Could not resolve host: x\n", "retry"),
        ("", "retry"),
        (None, "retry"),
    ],
)
def test_a_push_that_failed_is_the_runs_failure(
    accord: Accord, evidence: tuple[object, ...], agent: Agent, said: str | None, recovery: str
) -> None:
    (agent.tree / "new.txt").write_text("new\n")
    options = () if said is None else ("--push-error", accord.file("push.log", said))
    found = accord(*evidence, "--root", agent.tree, "--base", agent.base, "--pushed", "false", *options).document
    row = {
        "exit-code": "1",
        "error-category": "infrastructure",
        "error-type": "infrastructure",
        "error-recovery": recovery,
        "changes-made": "false",
        "commit-sha": "",
        "files-changed": "0",
    }
    assert {name: found[name] for name in row} == row
    assert found["error-summary"]


def test_nothing_to_push_is_not_a_failed_push(accord: Accord, evidence: tuple[object, ...], agent: Agent) -> None:
    found = accord(*evidence, "--root", agent.tree, "--base", agent.base, "--pushed", "false").document
    assert (found["exit-code"], found["error-category"], found["changes-made"]) == ("0", "", "false")


@pytest.mark.parametrize("options", [("--pushed", "true"), ("--root", "."), ("--base", "abc")])
def test_half_of_what_tells_the_changes_is_wrong_usage(
    accord: Accord, evidence: tuple[object, ...], options: tuple[str, ...]
) -> None:
    assert accord(*evidence, *options).code == 2


@pytest.mark.parametrize("pushed", [(), ("--pushed", "true")])
def test_a_base_that_is_not_there_is_wrong_usage(
    accord: Accord, evidence: tuple[object, ...], agent: Agent, pushed: tuple[str, ...]
) -> None:
    ended = accord(*evidence, "--root", agent.tree, "--base", "0" * 40, *pushed)
    assert ended.code == 2
    assert "Traceback" not in ended.err


def test_the_exit_code_is_passed_on_when_asked_for(accord: Accord, evidence: tuple[object, ...]) -> None:
    failing = [7 if word == 0 else word for word in evidence]
    ended = accord(*failing)
    assert (ended.code, ended.document["exit-code"]) == (0, "7")
    assert accord(*failing, "--fail").code == 7


@pytest.fixture
def on_github(accord: Accord, workshop: Workshop) -> Accord:
    accord.on(workshop.stage, GITHUB_SERVER_URL=workshop.stage.server.url, GITHUB_OUTPUT=str(accord.home / "output"))
    return accord


SCRIPT = "echo changed > README.md; echo new > new.txt; echo 'All done.'"


def running(accord: Accord, *more: object) -> tuple[object, ...]:
    accord.file("prompt.md", "Do it.")
    (accord.home / "agent.sh").write_text(SCRIPT)
    command = f"sh {accord.home / 'agent.sh'}"
    run_dir = accord.home / "run"
    return (
        "run", "--agent", "command", "--command", command, "--prompt-file", "prompt.md", "--run-dir", run_dir,
        "--pull", 1, "--pr-ref", "refs/heads/feature", "--format", "json", *more,
    )  # fmt: skip


def test_one_job_runs_and_publishes(on_github: Accord, workshop: Workshop, agent: Agent) -> None:
    on_github.monkeypatch.chdir(agent.tree)
    (agent.tree / "prompt.md").write_text("Do it.")
    git(agent.tree, "add", "-A")
    git(agent.tree, "commit", "-qm", "Prompt")
    git(agent.tree, "push", "-q")
    ended = on_github(*running(on_github))
    assert ended.code == 0, ended.err
    assert (ended.document["exit-code"], ended.document["changes-made"], ended.document["files-changed"]) == (
        "0",
        "true",
        "2",
    )
    assert ended.document["commit-sha"] == workshop.tip()
    assert outputs_in(on_github.home / "output") == ended.document


def test_two_jobs_run_and_publish(on_github: Accord, workshop: Workshop, agent: Agent) -> None:
    on_github.monkeypatch.chdir(agent.tree)
    (agent.tree / "prompt.md").write_text("Do it.")
    git(agent.tree, "add", "-A")
    git(agent.tree, "commit", "-qm", "Prompt")
    git(agent.tree, "push", "-q")
    before = workshop.tip()
    first = on_github(*running(on_github, "--no-publish"))
    assert (first.code, first.document["exit-code"], first.document["changes-made"]) == (0, "0", "false"), first.err
    assert workshop.tip() == before
    on_github.monkeypatch.setenv("GITHUB_ACTIONS", "true")
    untold = on_github("publish", on_github.home / "run", "--format", "json").document
    assert (untold["changes-made"], untold["llm-analysis-run"]) == ("false", "false"), "the folder was believed"
    assert workshop.tip() == before
    on_github.monkeypatch.delenv("GITHUB_ACTIONS")
    (on_github.home / "output").unlink()
    planned = on_github("publish", on_github.home / "run", "--format", "json", "--dry-run").document
    assert planned["changes-made"] == "false"
    assert "Dry run: 2 files would be pushed" in planned["run-warnings"]
    assert (workshop.tip(), (on_github.home / "output").exists()) == (before, False)
    second = on_github("publish", on_github.home / "run", "--format", "json", "--author", "Robo <robo@example.org>")
    assert second.code == 0, second.err
    assert (second.document["changes-made"], second.document["commit-sha"]) == ("true", workshop.tip())
    assert outputs_in(on_github.home / "output") == second.document
    again = on_github("publish", on_github.home / "run", "--format", "json").document
    assert again["commit-sha"] == workshop.tip()


def test_publishing_what_is_not_there_leaves_and_prints_all_outputs(on_github: Accord) -> None:
    ended = on_github("publish", on_github.home / "nowhere", "--format", "json")
    assert ended.code == 0
    left = outputs_in(on_github.home / "output")
    assert set(left) == NAMES
    assert ended.document == left
    assert on_github("publish", on_github.home / "nowhere", "--fail").code == 1
    assert (left["exit-code"], left["changes-made"]) == ("1", "false")
    assert (left["error-category"], left["error-recovery"]) == ("infrastructure", "retry")


@pytest.mark.parametrize(
    ("ref", "said"),
    [
        ("gone", "no branch \u2019gone\u2019"),
        ("refs/heads/gone", "no branch"),
        ("refs/heads//x", "is not a valid"),
        ("feature", "Run it again"),
        ("refs/heads/feature", "Run it again"),
        ("0" * 40, "Run it again"),
    ],
)
def test_a_branch_that_is_not_there_is_named_as_what_may_have_ended_the_agents_job(
    on_github: Accord, ref: str, said: str
) -> None:
    outputs = on_github("publish", on_github.home / "nowhere", "--pr-ref", ref, "--format", "json").document
    assert said in outputs["error-summary"]
    assert (outputs["error-category"], outputs["error-recovery"]) == ("infrastructure", "retry")


def test_a_lost_run_is_reported_without_access_to_the_repository(on_github: Accord) -> None:
    on_github.monkeypatch.setenv("GITHUB_TOKEN", "wrong")
    outputs = on_github("publish", on_github.home / "nowhere", "--pr-ref", "gone", "--format", "json").document
    assert "record.json is missing" in outputs["error-summary"]


def test_a_step_that_takes_all_outputs_finds_them_in_one_file(on_github: Accord) -> None:
    file = on_github.home / "left" / "outputs.json"
    ended = on_github("publish", on_github.home / "nowhere", "--outputs", file, "--format", "json")
    assert json.loads(file.read_text(encoding="utf-8")) == ended.document
    (on_github.home / "text").write_text("")
    assert on_github("publish", on_github.home / "nowhere", "--outputs", on_github.home / "text/outputs.json").code == 2


@pytest.mark.parametrize("missing", ["GITHUB_REPOSITORY", "GITHUB_TOKEN", "GITHUB_OUTPUT"])
def test_no_agent_works_for_what_cannot_be_handed_on(on_github: Accord, agent: Agent, missing: str) -> None:
    on_github.monkeypatch.chdir(agent.tree)
    on_github.monkeypatch.setenv(missing, str(on_github.home) if missing == "GITHUB_OUTPUT" else "")
    ended = on_github(*running(on_github))
    assert (ended.code, missing in ended.err) == (2, True)
    assert not (on_github.home / "run").exists()
    assert not (agent.tree / "new.txt").exists()


@pytest.mark.parametrize("ref", ["-x", "refs/heads//x", "a b", "refs/heads/", "x.lock"])
def test_no_agent_starts_for_an_invalid_branch_name(on_github: Accord, agent: Agent, ref: str) -> None:
    on_github.monkeypatch.chdir(agent.tree)
    for more in ([], ["--no-publish"]):
        ended = on_github(*running(on_github, f"--pr-ref={ref}", *more))
        assert (ended.code, "--pr-ref" in ended.err) == (2, True), ended.err
        assert not (on_github.home / "run").exists()


def test_a_ref_that_cannot_be_pushed_to_can_be_read_without_publishing(on_github: Accord, agent: Agent) -> None:
    on_github.monkeypatch.chdir(agent.tree)
    (agent.tree / "prompt.md").write_text("Look.")
    refused = on_github(*running(on_github, "--pr-ref=refs/pull/1/merge"))
    assert (refused.code, "github.head_ref" in refused.err) == (2, True)
    assert not (on_github.home / "run").exists()
    looked = on_github(*running(on_github, "--pr-ref=refs/pull/1/merge", "--no-publish"))
    assert (looked.code, looked.document["exit-code"]) == (0, "0"), looked.err


def test_an_invalid_author_is_wrong_usage(on_github: Accord) -> None:
    assert on_github("publish", "run", "--author", "nobody").code == 2


@pytest.mark.parametrize("minutes", ["nan", "inf", "1e400", "0", "-1"])
def test_a_time_limit_that_never_comes_is_wrong_usage(accord: Accord, minutes: str) -> None:
    accord.file("prompt.md", "Do it.")
    ended = accord(
        "run", "--agent", "command", "--command", "true", "--prompt-file", "prompt.md", "--no-publish",
        "--max-runtime-minutes", minutes,
    )  # fmt: skip
    assert ended.code == 2
