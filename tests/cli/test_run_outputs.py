"""`accord outputs`, `publish` and `run` leave the same outputs, wherever a program or a person reads them."""

import base64
import json
from collections.abc import Callable
from datetime import UTC, datetime
from functools import partial
from typing import Any

import pytest
from support.commands import Accord, Ended
from support.workshop import Agent, Workshop, agent, first_agent, git, runner_stage, workshop

from accord.records.chain import read_records
from accord.runner.models import InternalError, RunOutputs
from accord.runner.record import RunRecord
from accord_sandbox.faults import Fault

Outputs = Callable[..., dict[str, str]]


__all__ = ["agent", "first_agent", "runner_stage", "workshop"]

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
def outputs(accord: Accord) -> Outputs:
    """Compute the outputs of a run of codex that succeeded."""
    log = accord.file("stdout.log", transcript())
    return partial(accord.document, "outputs", "--agent", "codex", "--exit-code", 0, "--stdout", log)


def test_outputs_are_one_object_of_strings_and_the_same_in_the_runners_file(accord: Accord, outputs: Outputs) -> None:
    step = accord.in_step(annotates=False)
    found = outputs("--pr-body", accord.file("body.md", "- [ ] Add the thing\n- [ ] Test it\n"))
    assert set(found) == NAMES
    assert all(isinstance(value, str) for value in found.values())
    assert step.outputs == found
    assert base64.b64decode(found["final-message"]).decode() == MESSAGE
    assert json.loads(found["llm-completed-tasks"]) == ["Add the thing"]
    assert "✅ codex" in step.summary
    assert "Add the thing" in step.summary
    assert "@octocat" not in step.summary


def test_a_secret_that_the_repositorys_registry_declares_reaches_no_output(accord: Accord) -> None:
    folder = accord.home / ".github" / "agents"
    folder.mkdir(parents=True)
    entry = "agents:\n  mine:\n    command: [sh]\n    required_secrets: [QWEN_PAT]\n"
    (folder / "registry.yml").write_text(entry)
    accord.monkeypatch.chdir(accord.home)
    accord.monkeypatch.setenv("QWEN_PAT", "correct-zebra-battery")
    log = accord.file("stdout.log", transcript("It is correct-zebra-battery."))
    for name, warning in (("codex", ""), ("mine", ""), ("mien", "Unknown agent")):
        found = accord.document("outputs", "--agent", name, "--exit-code", 0, "--stdout", log)
        assert found["final-message-summary"] == "It is [redacted: secret of the environment]."
        assert (warning in found["run-warnings"], bool(found["run-warnings"])) == (True, bool(warning))


def test_outputs_as_text_are_for_people_and_may_pass_the_exit_code_on(accord: Accord) -> None:
    log = accord.file("stdout.log", transcript())
    ended = accord("outputs", "--agent", "codex", "--exit-code", 7, "--stdout", log)
    assert ended.code == 0
    assert "exit-code" in ended.out
    assert "characters of base64" in ended.out
    assert "pr-ref" not in ended.out
    assert accord("outputs", "--agent", "codex", "--exit-code", 7, "--stdout", log, "--fail").code == 7


@pytest.mark.slow
def test_pushed_changes_are_read_from_the_work_tree(outputs: Outputs, agent: Agent) -> None:
    where = ("--root", agent.tree, "--base", agent.base)
    nothing = outputs(*where, "--pushed", "true")
    assert (nothing["changes-made"], nothing["commit-sha"], nothing["files-changed"]) == ("false", "", "0")
    (agent.tree / "src" / "a.py").rename(agent.tree / "moved.py")
    (agent.tree / "new.txt").write_text("new\n")
    unpushed = outputs(*where)
    assert (unpushed["changes-made"], unpushed["exit-code"]) == ("false", "0")
    assert "not pushed" in unpushed["run-warnings"]
    agent.commit("The agent's own")
    pushed = outputs(*where, "--pushed", "true")
    assert (pushed["changes-made"], pushed["files-changed"]) == ("true", "2")
    assert pushed["commit-sha"] == git(agent.tree, "rev-parse", "HEAD")
    failed = outputs(*where, "--pushed", "true", "--exit-code", 1)
    assert (failed["exit-code"], failed["changes-made"], failed["commit-sha"]) == ("1", "false", "")
    assert (failed["files-changed"], pushed["commit-sha"][:7] in failed["run-warnings"]) == ("0", True)
    (agent.tree / "README.md").unlink()
    (agent.tree / "README.md").symlink_to("new.txt")
    left = outputs(*where, "--pushed", "true")
    assert "1 changed file is in the work tree: README.md." in left["run-warnings"]


@pytest.mark.slow
def test_no_task_counts_as_completed_while_its_work_is_not_pushed(
    accord: Accord, outputs: Outputs, agent: Agent
) -> None:
    body = accord.file("body.md", "- [ ] Add the thing\n")
    where = ("--root", agent.tree, "--base", agent.base, "--pr-body", body)
    (agent.tree / "new.txt").write_text("new\n")
    waiting = outputs(*where, "--pushed", "false")
    assert (waiting["llm-completed-tasks"], waiting["llm-analysis-run"]) == ("[]", "false")
    agent.commit("The agent's own")
    (agent.tree / "body.md").write_text("- [ ] Add the thing\n")
    evidence = ("--root", agent.tree, "--base", agent.base, "--pr-body", agent.tree / "body.md", "--pushed", "true")
    assert json.loads(outputs(*evidence)["llm-completed-tasks"]) == ["Add the thing"]
    for name in ("new.txt", "other.txt"):
        (agent.tree / name).write_text("changed\n")
        left = outputs(*evidence)
        assert (left["llm-completed-tasks"], left["changes-made"], left["files-changed"]) == ("[]", "true", "1")
        assert f"were not pushed, so no task counts as completed. 1 changed file is in the work tree: {name}." in str(
            left
        )
        git(agent.tree, "stash", "--include-untracked", "--quiet", "--", name)
    (agent.tree / "new.txt").write_text("changed\n")
    nothing = outputs(*evidence, "--base", "HEAD")
    assert (nothing["llm-completed-tasks"], nothing["terminal-disposition"]) == ("[]", "patch")


@pytest.mark.slow
@pytest.mark.parametrize(("said", "recovery"), [(PROTECTED, "manual"), (None, "retry")])
def test_a_push_that_failed_is_the_runs_failure(
    accord: Accord, outputs: Outputs, agent: Agent, said: str | None, recovery: str
) -> None:
    failed = ("--root", agent.tree, "--base", agent.base, "--pushed", "false")
    nothing = outputs(*failed)
    assert (nothing["exit-code"], nothing["error-category"], nothing["changes-made"]) == ("0", "", "false")
    (agent.tree / "new.txt").write_text("new\n")
    found = outputs(*failed, *(() if said is None else ("--push-error", accord.file("push.log", said))))
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


@pytest.mark.slow
def test_half_of_what_tells_the_changes_is_wrong_usage(outputs: Outputs) -> None:
    for options in (("--pushed", "true"), ("--root", "."), ("--base", "abc")):
        assert outputs(*options, code=2)["outcome"] == "usage"


@pytest.mark.slow
def test_changes_that_cannot_be_read_are_a_warning_beside_all_outputs(
    accord: Accord, outputs: Outputs, agent: Agent
) -> None:
    body = ("--pr-body", accord.file("body.md", "- [ ] Add the thing\n"))
    (agent.tree / "new.txt").write_text("new\n")
    rows = {
        ("0" * 40, "", agent.tree): "0",
        ("", "", agent.tree): "0",
        ("HEAD", "", accord.home): "0",
        ("gone", "true", agent.tree): "0",
        ("gone", "false", agent.tree): "1",
    }
    for (base, pushed, root), exit_code in rows.items():
        found = outputs("--root", root, "--base", base, *body, *(("--pushed", pushed) if pushed else ()))
        assert (set(found), base64.b64decode(found["final-message"]).decode()) == (NAMES, MESSAGE)
        assert (found["exit-code"], found["changes-made"], found["commit-sha"]) == (exit_code, "false", "")
        assert (found["llm-analysis-run"], found["files-changed"]) == ("false", "0")
        assert "changes cannot be read" in found["run-warnings"]


@pytest.fixture
def on_github(accord: Accord, workshop: Workshop) -> Accord:
    accord.on(workshop.stage, GITHUB_SERVER_URL=workshop.stage.server.url)
    return accord


@pytest.fixture
def running(on_github: Accord, agent: Agent) -> Callable[..., Ended]:
    """Run an agent that changes two files of its work tree, which has a prompt."""
    (agent.tree / "prompt.md").write_text("Do it.")
    agent.commit("Prompt")
    git(agent.tree, "push", "-q")
    on_github.monkeypatch.chdir(agent.tree)
    script = on_github.file("agent.sh", "echo changed > README.md; echo new > new.txt; echo 'All done.'")
    run = ("run", "--agent", "command", "--command", f"sh {script}", "--prompt-file", "prompt.md")
    where = ("--run-dir", on_github.home / "run", "--pull", 1, "--pr-ref", "refs/heads/feature")
    return partial(on_github, *run, *where, "--format", "json")


@pytest.mark.slow
def test_one_job_runs_and_publishes(on_github: Accord, workshop: Workshop, running: Any) -> None:
    step = on_github.in_step(annotates=False)
    ended = running()
    assert ended.code == 0, ended.err
    found = ended.document
    assert [found[name] for name in ("exit-code", "changes-made", "files-changed")] == ["0", "true", "2"]
    assert found["commit-sha"] == workshop.tip()
    assert step.outputs == found


@pytest.mark.parametrize("tree", [(), ("init", "-q"), ("init", "-q", "--bare")])
def test_changes_that_accord_cannot_see_are_a_warning(accord: Accord, tree: tuple[str, ...]) -> None:
    (accord.home / "work").mkdir()
    accord.file("work/p.md", "Do it.")
    accord.monkeypatch.chdir(accord.home / "work")
    if tree:
        git(accord.home / "work", *tree)
    run = ("run", "--agent", "command", "--command", "touch new.txt", "--prompt-file", "p.md")
    found = accord.document(*run, "--run-dir", accord.home / "run")
    assert (found["exit-code"], found["changes-made"]) == ("0", "false")
    assert "cannot be seen" in found["run-warnings"]


COMMIT = "git -c user.name=a -c user.email=a@b.c commit -qm"
WORK = f"set -e; echo new > new.txt; git add new.txt; {COMMIT} Work"
OWN = ("origin/feature (", "needs no token that writes")
BESIDE = (*OWN[1:], "origin/own (", "beside.bundle")
LEFT = ("branch lacks commits from before the run, so the changes undo 2 files: feature.txt, prompt.md",)
FORK = "git init -q --bare ../fork; git remote add fork ../fork"
LINE = "$(git rev-parse HEAD) $(git rev-parse origin/feature) A <a@b.c> 1 +0000\\tupdate by push"
FETCHED = 'git fetch -q "$(git remote get-url origin)" feature; git push -q origin FETCH_HEAD:feature'
PUSHED = {
    "another branch's": (f"git switch -qc own; {WORK}; git push -q origin own:feature; git switch -q feature", 1, OWN),
    "another tree's": (f"git worktree add -q ../own; cd ../own; {WORK}; git push -q origin HEAD:feature", 1, OWN),
    "one that is taken back": (f"{WORK}; git push -q origin HEAD:feature; git reset -q --hard HEAD~", 1, OWN),
    "one that stays": (f"{WORK}; git push -q origin HEAD:feature", 1, OWN),
    "one before others": (f"{WORK}; git push -q origin HEAD:feature; echo more > more.txt", 2, OWN),
    "one that it takes off": (
        f"{WORK}; git push -q origin HEAD:feature; git reset -q --hard HEAD~; git push -qf origin HEAD:feature",
        0,
        OWN,
    ),
    "an own branch": (f"git switch -qc own; {WORK}; git push -qu origin own; git switch -q feature", 0, BESIDE),
    "no branch": (
        f"git switch -q --detach; {WORK}; git push -q origin HEAD:refs/heads/own; git switch -q -",
        0,
        BESIDE,
    ),
    "an own branch's, taken back": (f"{WORK}; git push -q origin HEAD:own; git reset -q --hard HEAD~", 0, BESIDE),
    "an own branch that stays": (f"git switch -qc own; {WORK}; git push -q origin own", 1, ("origin/own (", OWN[1])),
    "nothing of the base": (f"git switch -q --no-track -c own origin/main; {WORK}", 4, LEFT),
    "nothing of an orphan": (f"git switch -q --orphan own; {WORK}", 6, ("the changes undo 5 files",)),
    "one after another": (
        f"{WORK}; git push -q origin HEAD:feature; {COMMIT} More --amend; git push -qf origin HEAD:feature",
        1,
        OWN,
    ),
    "a branch whose name is not UTF-8": (
        f"{FORK}; {WORK}; git push -q fork \"HEAD:refs/heads/$(printf 'caf\\351')\"",
        1,
        ("fork/caf\N{REPLACEMENT CHARACTER} (", OWN[1]),
    ),
    "a fork": (
        f"{FORK}; git switch -q --detach; {WORK}; git push -q fork HEAD:refs/heads/feature; git switch -q -",
        0,
        (OWN[1], "fork/feature (", "beside.bundle"),
    ),
    "a person's commit by a line of the log": (f'printf "{LINE}\\n" >> .git/logs/refs/remotes/origin/feature', 0, OWN),
    "a person's commit that was fetched": (f"git update-ref -d refs/remotes/origin/feature; {FETCHED}", 0, OWN),
}


@pytest.mark.slow
@pytest.mark.parametrize("pushed", PUSHED)
def test_own_pushes_of_an_agent_count_on_the_branch_of_the_run_and_are_named(
    on_github: Accord, workshop: Workshop, agent: Agent, running: Any, pushed: str
) -> None:
    script, files, said = PUSHED[pushed]
    on_github.file("agent.sh", f"git fetch -q; {script}")
    workshop.person_commits("README.md", "by hand\n", "main")
    if "person" in pushed:
        workshop.person_commits("person.txt", "by hand\n")
    before = workshop.tip()
    ended = running()
    assert ended.code == 0, ended.err
    found, tip = ended.document, workshop.tip()
    assert (found["changes-made"], found["files-changed"]) == ("true" if files else "false", str(files))
    assert found["commit-sha"] == (tip if files else "")
    assert (tip != before) == bool(files)
    warnings = found["run-warnings"]
    assert [text for text in said if text not in warnings] == []
    assert ("pushed from here" in warnings, "is not in the changes" in warnings) == (OWN[1] in said, BESIDE[-1] in said)
    assert warnings.count("origin/feature (") <= 1
    assert [text for text in ("merge", "origin/main", "already had") if text in warnings] == []
    assert on_github.document("publish", on_github.home / "run")["commit-sha"] == found["commit-sha"]


ALICE = """set -e; export GIT_AUTHOR_NAME=x GIT_AUTHOR_EMAIL=x@y.z GIT_COMMITTER_NAME=x GIT_COMMITTER_EMAIL=x@y.z
alice() { (cd ../alice; git pull -qr origin feature; "$@"; git add -A; git commit -qm Alice
git push -q origin HEAD:feature); }
main() { (cd ../alice; git fetch -q; git switch -qc moved origin/main; mkdir -p .github/workflows
echo on: push > .github/workflows/x.yml; git add -A; git commit -qm Main
git push -q origin moved:main; git switch -q feature); }
work() { echo new > "$1"; git add -A; git commit -qm "Agent $1"; }
theirs() { echo "$1" > theirs.txt; }
"""
PULL = "alice theirs 1; git pull -q origin feature"
TO = "git push -q origin HEAD:feature"
PUSH = f"work one.txt; {TO}"
REBASE = "main; git fetch -q; git rebase -q origin/main; work new.txt"
BY_ACCORD, BY_AGENT = "feat: apply the changes of command", ["Agent one.txt", "one.txt"]
UPSTREAM: dict[str, tuple[str, int, list[str]]] = {
    "a pull": (PULL, 0, []),
    "a pull from a URL": ("alice theirs 1; git pull -q $(git remote get-url origin) feature", 0, []),
    "a reset": ("alice theirs 1; git fetch -q; git reset -q --hard origin/feature", 0, []),
    "a mixed reset": (f"{PULL}; alice cp README.md more.txt; git fetch -q; git reset -q origin/feature", 0, []),
    "a pull of a file that goes": (f"{PULL}; echo new > new.txt; alice rm theirs.txt", 1, [BY_ACCORD, "new.txt"]),
    "a pull of a file that changes": (f"{PULL}; work new.txt; alice theirs 2", 1, [BY_ACCORD, "new.txt"]),
    "a pull of a file that it changes": (f"{PULL}; echo mine > theirs.txt", 1, [BY_ACCORD, "theirs.txt"]),
    "a push that others go on from": (f"{PUSH}; alice cp README.md one.txt", 1, BY_AGENT),
    "two pushes around a pull": (f"{PUSH}; {PULL} -r; work two.txt; {TO}", 2, ["Agent two.txt", "two.txt"]),
    "a push, and a file": (f"{PUSH}; alice theirs 1; echo new > two.txt", 2, [BY_ACCORD, "two.txt"]),
    "a push that others take back": (f"{PUSH}; alice git rm -q one.txt", 1, BY_AGENT),
    "a rebase": (REBASE, 2, []),
    "a rebase that is pushed": (f"{REBASE}; {TO} -f", 1, ["Agent new.txt", "new.txt"]),
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("done", UPSTREAM)
def test_commits_that_an_agent_pulls_are_the_base_and_not_its_changes(
    on_github: Accord, workshop: Workshop, agent: Agent, running: Any, done: str
) -> None:
    script, count, paths = UPSTREAM[done]
    alice = workshop.clone("alice")
    on_github.file("agent.sh", f"{ALICE}{script}")
    ended = running()
    found = ended.document
    assert (found["exit-code"], found["files-changed"]) == ("0", str(count)), found
    assert (found["changes-made"], bool(found["commit-sha"])) == (("true", True) if count else ("false", False))
    git(alice, "fetch", "-q")
    if paths:
        shown = git(alice, "show", "--format=%s", "--name-only", found["commit-sha"])
        assert [line for line in shown.split("\n") if line] == paths
    assert on_github.document("publish", on_github.home / "run")["commit-sha"] == found["commit-sha"]


@pytest.mark.slow
def test_two_jobs_run_and_publish(on_github: Accord, workshop: Workshop, running: Any) -> None:
    before = workshop.tip()
    first = running("--no-publish")
    assert (first.code, first.document["exit-code"], first.document["changes-made"]) == (0, "0", "false"), first.err
    publish = partial(on_github.document, "publish", on_github.home / "run")
    on_github.monkeypatch.setenv("GITHUB_ACTIONS", "true")
    untold = publish()
    assert (untold["changes-made"], untold["llm-analysis-run"]) == ("false", "false"), "the folder was believed"
    on_github.monkeypatch.delenv("GITHUB_ACTIONS")
    step = on_github.in_step(annotates=False)
    planned = publish("--dry-run")
    assert planned["changes-made"] == "false"
    assert "Dry run: 2 files would be pushed" in planned["run-warnings"]
    assert (workshop.tip(), step.outputs) == (before, {})
    second = publish("--author", "Robo <robo@example.org>")
    assert (second["changes-made"], second["commit-sha"]) == ("true", workshop.tip())
    assert step.outputs == second
    assert publish()["commit-sha"] == workshop.tip()
    (record,) = read_records(workshop.stage.adapter(), datetime(2020, 1, 1, tzinfo=UTC))
    assert (record.kind, record.agent, record.result.disposition) == ("run", "command", "success")
    assert (record.links.pull, record.links.commit) == (1, second["commit-sha"])


@pytest.mark.slow
def test_publishing_without_an_answer_of_github_is_the_runs_failure(
    on_github: Accord, workshop: Workshop, running: Any
) -> None:
    """The outputs say what the run did; a refusal is for a person, and an outage is not."""
    running("--no-publish")
    step = on_github.in_step(annotates=False)
    on_github.monkeypatch.chdir(on_github.home)
    publish = ("publish", on_github.home / "run", "--max-wait", 1)
    ended: list[tuple[dict[str, str], str]] = []
    for token in ("wrong", "", "of two words"):
        with on_github.monkeypatch.context() as patched:
            patched.setenv("GITHUB_TOKEN", token)
            ended.append((on_github.document(*publish), "manual"))
    workshop.stage.server.faults.add(Fault("secondary-403", seconds=500, times=99))
    ended.append((on_github.document(*publish), "retry"))
    for found, recovery in ended:
        assert base64.b64decode(found["final-message"]).decode().strip() == "All done."
        assert (found["exit-code"], found["agent-name"], found["changes-made"]) == ("1", "command", "false")
        assert (found["error-category"], found["error-recovery"]) == ("infrastructure", recovery)
        assert "2 files are in changes.patch" in found["run-warnings"]
    assert (step.outputs, on_github(*publish, "--fail").code) == (found, 1)
    workshop.stage.server.faults.clear()
    assert on_github.document(*publish)["commit-sha"] == workshop.tip()


def test_publishing_what_is_not_there_leaves_and_prints_all_outputs(on_github: Accord) -> None:
    step = on_github.in_step(annotates=False)
    file = on_github.home / "left" / "outputs.json"
    nowhere = ("publish", on_github.home / "nowhere")
    found = on_github.document(*nowhere, "--outputs", file)
    assert (set(found), step.outputs, json.loads(file.read_text(encoding="utf-8"))) == (NAMES, found, found)
    assert (found["exit-code"], found["changes-made"]) == ("1", "false")
    assert (found["error-category"], found["error-recovery"]) == ("infrastructure", "retry")
    assert on_github(*nowhere, "--fail").code == 1
    assert on_github(*nowhere, "--outputs", on_github.file("text", "") / "outputs.json").code == 2
    assert on_github(*nowhere, "--author", "nobody").code == 2
    on_github.monkeypatch.setenv("GITHUB_TOKEN", "wrong")
    assert "record.json is missing" in on_github.document(*nowhere, "--pr-ref", "gone")["error-summary"]


@pytest.mark.parametrize("ref", ["refs/heads/HEAD", "@"])
def test_nothing_is_published_to_head(on_github: Accord, workshop: Workshop, ref: str) -> None:
    refused = on_github("publish", on_github.home / "nowhere", "--pr-ref", ref)
    assert (refused.code, "refs/heads/my-branch" in refused.err) == (2, True), refused.err
    assert workshop.tip("HEAD") == ""


@pytest.mark.parametrize("ref", ["", "a b", "../x", "-x", "refs/pull/1/head"])
def test_a_terminal_learns_of_a_missing_run_and_an_invalid_branch(on_github: Accord, ref: str) -> None:
    refused = on_github("publish", on_github.home / "nowhere", f"--pr-ref={ref}")
    assert (refused.code, (ref or "No run folder found") in refused.err) == (2, True), refused.err


CANCELLED = InternalError(kind="cancelled", detail="The job was cancelled.")
LEFT_ALONE = {
    "nothing to push": (RunRecord(agent="codex", codec="codex", exit_code=0), "", ""),
    "an agent that failed": (RunRecord(agent="codex", codec="codex", exit_code=2), "logic", "manual"),
    "a run that was cancelled": (RunRecord(agent="codex", codec="codex", error=CANCELLED), "transient", "ignore"),
}


@pytest.mark.parametrize("token", ["", "of two words"])
@pytest.mark.parametrize("kind", LEFT_ALONE)
def test_a_run_that_pushes_nothing_has_its_own_outcome_without_a_token(accord: Accord, kind: str, token: str) -> None:
    record, category, recovery = LEFT_ALONE[kind]
    accord.monkeypatch.setenv("GITHUB_REPOSITORY", "octo-org/demo")
    accord.monkeypatch.setenv("GITHUB_TOKEN", token)
    (accord.home / "run").mkdir()
    accord.file("run/record.json", record.model_dump_json())
    accord.file("run/stdout.log", transcript())
    step = accord.in_step(annotates=False)
    words = ("publish", accord.home / "run", "--pr-ref", "feature", "--pull", 1, "--outputs", accord.home / "found")
    found = accord.document(*words)
    assert (found["error-category"], found["error-recovery"], found["agent-name"]) == (category, recovery, "codex")
    assert (found["exit-code"] == "0", base64.b64decode(found["final-message"]).decode()) == (not category, MESSAGE)
    assert (step.outputs, json.loads((accord.home / "found").read_text(encoding="utf-8"))) == (found, found)


@pytest.mark.parametrize("token", ["", "of two words"])
def test_an_agents_outcome_counts_without_a_token_to_read_its_tasks(accord: Accord, token: str) -> None:
    accord.monkeypatch.setenv("GITHUB_REPOSITORY", "octo-org/demo")
    accord.monkeypatch.setenv("GITHUB_TOKEN", token)
    run = ("run", "--agent", "command", "--command", "echo Done.", "--prompt-file", accord.file("prompt.md", "Do it."))
    accord.monkeypatch.chdir(accord.home)
    found = accord.document(*run, "--run-dir", accord.home.parent / f"{accord.home.name}-run", "--pull", 1)
    assert (found["exit-code"], found["final-message-summary"]) == ("0", "Done.")
    assert "The tasks of pull request 1 could not be read" in found["run-warnings"]


REFUSED = {
    "run --agent codex --prompt-file p.md --pr-ref refs/tags/v1": (2, "logic", "refs/tags/v1"),
    "run --agent codex --max-runtime-minutes soon": (2, "logic", "max-runtime-minutes"),
    "run --agent codex --prompt-file p.md --pr-ref feature": (2, "auth", "GITHUB_TOKEN"),
    "run --skip --run-dir run": (2, "logic", "not empty"),
    "run --skip --run-dir run/record.json": (2, "logic", "record.json: File exists"),
    "run --skip --run-dir /proc/accord": (3, "logic", "/proc/accord"),
    "run --skip": (3, "logic", "gone/accord-run-"),
    "publish nowhere --pr-ref FETCH_HEAD": (2, "logic", "FETCH_HEAD"),
    "publish nowhere --no-such-option": (2, "logic", "no-such-option"),
    "outputs --agent codex --exit-code 1 --stdout nowhere": (2, "logic", "nowhere"),
}


@pytest.mark.parametrize("words", REFUSED)
def test_a_step_whose_command_is_refused_leaves_all_outputs_with_the_reason(accord: Accord, words: str) -> None:
    code, category, named = REFUSED[words]
    accord.monkeypatch.setenv("RUNNER_TEMP", "gone")
    accord.monkeypatch.setenv("GITHUB_REPOSITORY", "octo-org/demo")
    accord.monkeypatch.setenv("GITHUB_TOKEN", "" if named == "GITHUB_TOKEN" else "a-token-of-the-job")
    (accord.home / "run").mkdir()
    accord.file("run/record.json", RunRecord(agent="codex").model_dump_json())
    accord.monkeypatch.chdir(accord.home)
    step = accord.in_step(annotates=False)
    assert accord(*words.split()).code == code
    found = step.outputs
    assert set(found) == NAMES
    assert (found["exit-code"], found["changes-made"], found["error-category"]) == ("1", "false", category)
    assert named in found["error-summary"]
    assert all(found[f"error-{name}"] for name in ("type", "recovery", "evidence"))
    assert "❌" in step.summary


@pytest.mark.parametrize("missing", ["GITHUB_REPOSITORY", "GITHUB_TOKEN", "GITHUB_OUTPUT"])
def test_no_agent_does_what_cannot_be_handed_on(accord: Accord, missing: str) -> None:
    for name in ("GITHUB_REPOSITORY", "GITHUB_TOKEN"):
        accord.monkeypatch.setenv(name, "x")
    accord.monkeypatch.setenv(missing, str(accord.home) if missing == "GITHUB_OUTPUT" else "")
    ended = accord("run", "--agent", "command", "--command", "true", "--pr-ref", "a", "--run-dir", accord.home / "run")
    assert (ended.code, missing in ended.err) == (2, True)
    assert not (accord.home / "run").exists()


@pytest.mark.slow
def test_a_ref_that_cannot_be_pushed_to_can_be_read_without_publishing(on_github: Accord, running: Any) -> None:
    refused = running("--pr-ref=refs/pull/1/merge")
    assert (refused.code, "github.head_ref" in refused.err) == (2, True)
    assert not (on_github.home / "run").exists()
    looked = running("--pr-ref=refs/pull/1/merge", "--no-publish")
    assert (looked.code, looked.document["exit-code"]) == (0, "0"), looked.err


def test_a_time_limit_that_never_comes_is_wrong_usage(accord: Accord) -> None:
    run = ("run", "--agent", "command", "--command", "true", "--no-publish", "--max-runtime-minutes")
    for minutes in ("nan", "inf", "1e400", "0", "-1"):
        assert accord(*run, minutes).code == 2


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--prompt-file", "nope.md"), "Prompt file nope.md not found"),
        (("--prompt-file", "empty.md"), "is empty"),
        (("--prompt-file", "latin-1.md"), "Line 2 of the prompt file latin-1.md is not UTF-8"),
        (("--mode", "implment"), "Did you mean `implement`"),
        ((), "No prompt given"),
        (("--mode", "implement", "--data", "nope.txt"), "Cannot read nope.txt"),
    ],
)
def test_a_dry_run_without_the_prompt_of_the_run_fails(accord: Accord, arguments: tuple[str, ...], said: str) -> None:
    accord.monkeypatch.chdir(accord.home)
    (accord.home / "empty.md").write_text(" ")
    (accord.home / "latin-1.md").write_bytes("One\nüber\n".encode("latin-1"))
    ended = accord("run", "--dry-run", "--agent", "claude", *arguments)
    assert (ended.code, said in ended.err) == (1, True)


def test_a_dry_run_names_the_agent_and_the_branch_and_starts_nothing(accord: Accord) -> None:
    accord.monkeypatch.setenv("GITHUB_REPOSITORY", "octo/tools")
    accord.monkeypatch.setenv("GITHUB_TOKEN", "t" * 20)
    accord.monkeypatch.chdir(accord.home)
    before = sorted(accord.home.rglob("*"))
    command = ("run", "--dry-run", "--agent", "claude", "--mode", "implement", "--pr-ref", "accord/7")
    planned = accord.document(*command)
    assert planned["outcome"] == "planned"
    assert [(one["op"], one["key"]) for one in planned["operations"]] == [
        ("run-agent", "claude"),
        ("push-branch", "accord/7"),
    ]
    assert sorted(accord.home.rglob("*")) == before
