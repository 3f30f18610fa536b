"""A run is finished from its folder alone, with the same result however often it is done."""

import base64
import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from support.workshop import Agent, Killed, Workshop, git, killed_after

from accord.core.errors import BrokenContract
from accord.engine.operations import OperationLog
from accord.runner.finish import finish, read_patch
from accord.runner.models import InternalError, RunContext
from accord.runner.outputs import FinishOptions
from accord.runner.record import FINAL_MESSAGE, PATCH, RECORD, RESULT, SCHEMA, STDERR, STDOUT, RunRecord, read_record
from accord.text.posting import PostingPolicy
from accord.text.redaction import redactor_for
from accord_sandbox.faults import Fault
from accord_sandbox.planting import INSTALLATION_TOKEN

pytestmark = pytest.mark.slow
SECRET = "correct-horse-battery-staple"
DONE = "All done.\n\n- [x] Add the thing\n- [ ] Test it"
NEW = {"new.txt": "new\n"}


def transcript(message: str, *, fails: str = "") -> str:
    events: list[dict[str, Any]] = [
        {"type": "thread.started", "thread_id": "1"},
        {"type": "turn.started"},
        {"type": "item.completed", "item": {"id": "item_0", "type": "agent_message", "text": message}},
    ]
    if fails:
        events += [{"type": "error", "message": fails}, {"type": "turn.failed", "error": {"message": fails}}]
    else:
        usage = {"input_tokens": 1200, "cached_input_tokens": 0, "output_tokens": 34}
        events.append({"type": "turn.completed", "usage": usage})
    return "".join(f"{json.dumps(event)}\n" for event in events)


@dataclass
class Run:
    """The folder of a run on ``feature``, and how it is finished."""

    workshop: Workshop
    agent: Agent
    folder: Path

    def leave(
        self, stdout: str = "", *, files: Mapping[str, str] = NEW, exit_code: int | None = 0, **record: Any
    ) -> None:
        """Leave the folder of a run that changed these files."""
        self.folder.mkdir()
        for name, text in files.items():
            (self.agent.tree / name).parent.mkdir(parents=True, exist_ok=True)
            (self.agent.tree / name).write_text(text)
        fields = {
            "agent": "codex", "codec": "codex", "base_sha": self.agent.base, "exit_code": exit_code,
            "started_at": "2026-11-02T09:00:00Z", "duration_seconds": 61.5,
        }  # fmt: skip
        given = {name: record.pop(name) for name in RunContext.model_fields if name in record}
        context = {"mode": "keepalive", "pull": "1", "pr_ref": "refs/heads/feature", "iteration": "3", **given}
        (self.folder / RECORD).write_text(
            RunRecord.model_validate(fields | record | {"context": context}).model_dump_json()
        )
        (self.folder / STDOUT).write_text(stdout)
        (self.folder / STDERR).write_text("")
        (self.folder / PATCH).write_bytes(self.agent.patch())

    def options(self, token: str = "", **changed: Any) -> FinishOptions:
        stage = self.workshop.stage
        redact, remote = redactor_for({"MY_TOKEN": SECRET}), self.workshop.remote(token)
        options = FinishOptions(stage.repository, redact, PostingPolicy(), stage.clock, {}, remote, stage.adapter())
        return replace(options, **changed)

    def outputs(self, token: str = "", **changed: Any) -> dict[str, str]:
        return finish(self.folder, self.options(token, **changed)).as_outputs()


@pytest.fixture
def run(workshop: Workshop, agent: Agent, tmp_path: Path) -> Run:
    return Run(workshop, agent, tmp_path / "run")


def test_a_successful_run_is_pushed_and_its_tasks_are_reported(run: Run) -> None:
    run.leave(transcript(DONE), files={"src/a.py": "a = 2\n", **NEW})
    outputs = run.outputs()
    assert (outputs["exit-code"], outputs["error-category"], outputs["run-warnings"]) == ("0", "", "")
    assert (outputs["changes-made"], outputs["files-changed"]) == ("true", "2")
    assert outputs["commit-sha"] == run.workshop.tip()
    assert json.loads(outputs["llm-completed-tasks"]) == ["Add the thing"]
    assert (outputs["llm-analysis-run"], outputs["llm-provider"]) == ("true", "regex-fallback")
    assert (outputs["agent-name"], outputs["tokens-input"], outputs["duration-seconds"]) == ("codex", "1200", "61.5")
    assert base64.b64decode(outputs["final-message"]).decode() == DONE
    commits = run.workshop.commits()
    assert commits[0].startswith("feat: apply the changes of codex (keepalive, iteration 3)\n\nAll done.")
    assert (run.outputs(), run.workshop.commits()) == (outputs, commits), "finished twice"
    record = read_record(run.folder)
    for changed in ({"pr_ref": "feature"}, {"base_ref": "main"}):
        other = record.model_copy(update={"context": record.context.model_copy(update=changed)})
        assert finish(run.folder, run.options(), other).commit_sha == outputs["commit-sha"]


def test_the_agents_own_commit_messages_are_the_body_of_the_commit_and_neither_close_nor_credit(run: Run) -> None:
    own = ("Fix a\n\nThe handler is in b.py, not in a.py.\n\nCloses #7\nCo-authored-by: Eve <e@x.y>", f"Test {SECRET}")
    run.leave(transcript(DONE), messages=own, mode="[skip ci]")
    assert run.outputs()["changes-made"] == "true"
    (commit, *_) = run.workshop.commits()
    subject, *paragraphs = commit.split("\n\n")
    assert subject.startswith("feat: apply the changes of codex")
    assert paragraphs[:2] == ["Fix a", "The handler is in b.py, not in a.py."]
    assert "All done." not in commit
    assert SECRET not in commit
    assert "[skip ci]" not in commit
    assert not re.search(r"(?i)closes #7|^co-authored-by:", commit, re.MULTILINE)


def test_a_run_whose_sandbox_refused_every_command_says_so_in_a_warning(run: Run) -> None:
    command = {"type": "command_execution", "command": "make", "aggregated_output": "bwrap: no\n", "exit_code": 1}
    failing = json.dumps({"type": "item.completed", "item": {**command, "status": "failed"}})
    run.leave(f"{failing}\n{transcript(DONE)}", files={})
    outputs = run.outputs()
    assert (outputs["exit-code"], outputs["error-category"], outputs["changes-made"]) == ("0", "", "false")
    assert "Every command that the agent ran failed: the agent" in outputs["run-warnings"]


def test_pushed_sessions_and_texts_that_look_like_tokens_are_a_warning_each_time(run: Run) -> None:
    token, session = f"ghp_{'a1' * 18}", ".agents-work/2026-01-31_csv/status.json"
    files = {session: "{}\n", "settings.py": f"KEY = 'AKIA{'Z' * 16}'\n", f"{token}.txt": f"{token}\n", **NEW}
    run.leave(transcript(DONE), files=files)
    outputs = run.outputs()
    assert (outputs["exit-code"], outputs["changes-made"]) == ("0", "true")
    records, tokens = json.loads(outputs["run-warnings"])
    assert (session in records, "look like tokens" in tokens, "settings.py" in tokens) == (True, True, True)
    assert "new.txt" not in records + tokens
    assert "a1a1" not in tokens
    assert run.outputs() == outputs


@pytest.mark.parametrize("text", [SECRET, f"{SECRET[:9]}\n{SECRET[9:]}"])
def test_a_secret_of_the_job_that_publishes_is_not_pushed(run: Run, text: str) -> None:
    before = run.workshop.commits()
    run.leave(transcript(DONE), files={"settings.py": f"KEY = '{text}'\n", **NEW})
    outputs = run.outputs()
    assert re.search(r"settings\.py. contains a secret of the job\.", outputs["error-summary"])
    assert (outputs["changes-made"], outputs["error-recovery"]) == ("false", "manual")
    assert run.workshop.commits() == before


def test_a_secret_that_only_the_registry_declares_reaches_no_output(run: Run) -> None:
    run.leave(transcript("It is correct-zebra-battery."), files={}, secret_names=["QWEN_PAT"])
    outputs = run.outputs(environment={"QWEN_PAT": "correct-zebra-battery"})
    assert outputs["final-message-summary"] == "It is [redacted: secret of the environment]."


def test_a_run_without_changes_pushes_nothing_and_has_done_well(run: Run) -> None:
    run.leave(transcript("Nothing to do."), files={})
    outputs = run.outputs()
    assert (outputs["exit-code"], outputs["changes-made"], outputs["files-changed"]) == ("0", "false", "0")
    assert outputs["commit-sha"] == outputs["error-summary"] == outputs["run-warnings"] == ""
    assert run.workshop.tip() == run.agent.base


@pytest.mark.parametrize(
    ("record", "stdout", "category"),
    [
        ({"exit_code": 1}, transcript("", fails="unexpected status 401 Unauthorized: no"), "auth"),
        ({"exit_code": 1, "pushed": {"origin/feature": "a" * 40}}, "", "unknown"),
        ({"exit_code": 0}, transcript("Half", fails="stream disconnected before completion"), "transient"),
        ({"exit_code": None, "error": InternalError(kind="credential-missing", detail="No key")}, "", "auth"),
        *(
            (dict.fromkeys(("agent", "codec"), codec) | {"exit_code": 0}, f"{line}\n", category)
            for codec in ("claude", "codex", "gemini")
            for line, category in (("Invalid API key. Please run /login", "auth"), ("I did the work.", "unknown"))
        ),
    ],
)
def test_a_failed_run_only_says_where_its_changes_are(
    run: Run, record: dict[str, Any], stdout: str, category: str
) -> None:
    run.leave(stdout, **record)
    outputs = run.outputs()
    assert (outputs["exit-code"], outputs["error-category"]) == ("1", category)
    assert all(outputs[f"error-{name}"] for name in ("summary", "type", "recovery", "evidence"))
    assert (outputs["changes-made"], outputs["commit-sha"], outputs["files-changed"]) == ("false", "", "0")
    assert (outputs["llm-analysis-run"], outputs["llm-completed-tasks"]) == ("false", "[]")
    pushed = (
        "The agent pushed changes of the run itself (origin/feature at aaaaaaa), and accord pushed none. "
        "All of them, 1 file, are"
    )
    begins = (
        pushed if "pushed" in record else "The run\N{RIGHT SINGLE QUOTATION MARK}s changes were not pushed. 1 file is"
    )
    where, *more = json.loads(outputs["run-warnings"])
    assert where == f"{begins} in changes.patch of the run folder or artifact."
    assert ["codec: plain" in text for text in more] == [True] * (stdout[:1] == "I")
    assert run.workshop.tip() == run.agent.base


def test_a_pull_request_of_a_fork_gets_no_branch_here(run: Run) -> None:
    run.leave(transcript(DONE))
    outputs = run.outputs(repository="octo/other")
    assert "accord/sandbox" in outputs["error-summary"]
    assert (outputs["error-recovery"], run.workshop.tip()) == ("manual", run.agent.base)


def conflict_of(run: Run) -> tuple[dict[str, str], str]:
    """Finish a run whose line a person changed meanwhile; return its outputs and the branch of its changes."""
    run.workshop.person_commits("src/a.py", "a = 3\n")
    run.leave(transcript("Did it for @octocat."), files={"src/a.py": "a = 2\n"})
    outputs = run.outputs()
    branches = [found["name"] for found in run.workshop.stage.listed("/branches")]
    return outputs, next(name for name in branches if name.startswith("accord/conflict-"))


def drafts(run: Run) -> list[dict[str, Any]]:
    return [pull for pull in run.workshop.stage.listed("/pulls", state="all") if pull["number"] != 1]


def test_changes_that_conflict_become_a_draft_for_the_pull_requests_branch(run: Run) -> None:
    run.workshop.stage.server.faults.add(Fault("lost-after", times=1, method="POST", path=r"/pulls$"))
    outputs, branch = conflict_of(run)
    run.workshop.stage.server.faults.clear()
    words = [outputs[name] for name in ("exit-code", "error-category", "error-type", "changes-made", "commit-sha")]
    assert words == ["1", "infrastructure", "infrastructure", "false", ""]
    (draft,) = drafts(run)
    assert (draft["draft"], draft["base"]["ref"], draft["head"]["ref"]) == (True, "feature", branch)
    assert draft["title"] == "feat: apply the changes of codex (keepalive, iteration 3)"
    assert draft["body"].startswith(
        "> [!WARNING]\n> Conflicts with `feature`: `src/a.py`.\n\nDid it for @\u2060octocat."
    )
    assert f"git switch {branch}\ngit merge origin/feature\n" in draft["body"]
    assert "`feature` and its pull request #1." in draft["body"]
    assert [label["name"] for label in draft["labels"]] == ["needs-human"]
    (warning,) = json.loads(outputs["run-warnings"])
    assert branch in warning
    assert draft["html_url"] in warning
    before = drafts(run)
    assert (run.outputs(), drafts(run)) == (outputs, before), "finished twice"


def test_a_draft_that_a_person_closed_stays_closed(run: Run) -> None:
    conflict_of(run)
    (draft,) = drafts(run)
    path = f"/repos/{run.workshop.stage.repository}"
    run.workshop.stage.send("PATCH", f"{path}/pulls/{draft['number']}", state="closed")
    run.workshop.stage.send("DELETE", f"{path}/issues/{draft['number']}/labels/needs-human")
    before = drafts(run)
    (warning,) = json.loads(run.outputs()["run-warnings"])
    assert f"in the closed pull request {draft['number']}: " in warning
    assert drafts(run) == before


def test_a_draft_without_its_label_is_named_and_gets_the_label_later(run: Run) -> None:
    run.workshop.stage.server.faults.add(Fault("lost-before", times=99, method="POST", path=r"/labels$"))
    outputs, _ = conflict_of(run)
    run.workshop.stage.server.faults.clear()
    (draft,) = drafts(run)
    (warning,) = json.loads(outputs["run-warnings"])
    assert (
        f"in the pull request {draft['number']}: {draft['html_url']} Its label needs-human could not be added: "
        in warning
    )
    run.outputs()
    assert [[label["name"] for label in draft["labels"]] for draft in drafts(run)] == [["needs-human"]]


OBJECTS = ("/git/trees", "/git/commits", "/git/refs")


@pytest.mark.parametrize(
    ("token", "writes"),
    [
        ("", ("push", "/pulls", "/labels")),
        pytest.param(INSTALLATION_TOKEN, (*OBJECTS, "/pulls", "/labels"), marks=pytest.mark.matrix),
    ],
)
def test_a_publication_that_is_killed_at_any_write_of_a_conflict_leaves_one_draft(
    run: Run, token: str, writes: tuple[str, ...]
) -> None:
    run.workshop.person_commits("src/a.py", "a = 3\n")
    run.leave(transcript("Did it."), files={"src/a.py": "a = 2\n"})
    for write in writes:
        with killed_after(write), pytest.raises(Killed):
            run.outputs(token, github=run.workshop.stage.adapter(token=token))
    state = drafts(run)
    ((draft,), names) = state, [found["name"] for found in run.workshop.stage.listed("/branches")]
    assert [label["name"] for label in draft["labels"]] == ["needs-human"]
    (branch,) = (name for name in names if name.startswith("accord/conflict-"))
    assert len(run.workshop.commits(branch)) == len(run.workshop.commits("feature")), "one commit instead of theirs"
    outputs = run.outputs(token, github=run.workshop.stage.adapter(token=token))
    assert (draft["html_url"] in outputs["run-warnings"], drafts(run)) == (True, state)
    assert json.loads(run.outputs(log=OperationLog(is_dry_run=True))["run-warnings"])[0].startswith(
        f"Dry run: the changes are in the pull request {draft['number']}: "
    )


def test_without_the_right_to_open_a_draft_the_branch_and_its_comparison_are_named(run: Run) -> None:
    run.workshop.person_commits("src/a.py", "a = 3\n")
    run.leave(transcript("Did it."), files={"src/a.py": "a = 2\n"})
    outputs = run.outputs(github=run.workshop.stage.adapter(token="reader"))
    (warning,) = json.loads(outputs["run-warnings"])
    assert re.search(r"/compare/feature\.\.\.accord/conflict-\w+ No pull request was opened", warning)
    assert drafts(run) == []
    rehearsed = json.loads(run.outputs(log=OperationLog(is_dry_run=True))["run-warnings"])
    assert rehearsed[0].startswith("Dry run: the changes would be pushed to accord/conflict-")


@pytest.mark.parametrize(("pull", "warning"), [("99", "Pull request 99 not found"), ("1; id", "1; id")])
def test_a_pull_request_that_cannot_be_read_costs_only_the_tasks(run: Run, pull: str, warning: str) -> None:
    run.leave(transcript(DONE), pull=pull)
    outputs = run.outputs()
    assert (outputs["exit-code"], outputs["commit-sha"]) == ("0", run.workshop.tip())
    assert (outputs["changes-made"], outputs["llm-analysis-run"]) == ("true", "false")
    assert warning in outputs["run-warnings"]


@pytest.mark.parametrize("pull", ["", "1"])
def test_without_a_connection_only_the_tasks_of_a_pull_request_that_there_is_are_missed(run: Run, pull: str) -> None:
    run.leave(transcript(DONE), files={}, pull=pull)
    away = InternalError(kind="push-unreachable", detail="Gone.")
    warning = f"The tasks of pull request {pull} could not be read: Gone."
    found = run.outputs(github=None, remote=None, connection_error=away)["run-warnings"]
    assert json.loads(found or "[]") == ([warning] if pull else [])


def test_a_body_that_is_given_is_the_one_that_counts(run: Run) -> None:
    run.leave(transcript("- [x] Another thing"), files={}, pull="")
    outputs = run.outputs(pr_body="- [ ] Another thing\n- [ ] More")
    assert json.loads(outputs["llm-completed-tasks"]) == ["Another thing"]


def test_no_secret_leaves_by_output_commit_or_file(run: Run) -> None:
    run.leave(transcript(f"The key is {SECRET}, and in two lines {SECRET[:12]}\n{SECRET[12:]}."))
    outputs = run.outputs()
    kept = (run.folder / FINAL_MESSAGE).read_text()
    for text in (*outputs.values(), base64.b64decode(outputs["final-message"]).decode(), kept, *run.workshop.commits()):
        assert SECRET not in text.replace("\n", "")


def test_a_message_and_a_result_too_long_for_outputs_are_whole_in_the_folder(run: Run) -> None:
    message = json.dumps({"verdict": "long " * 80_000})
    run.leave(transcript(message))
    (run.folder / SCHEMA).write_text('{"type": "object"}')
    outputs = run.outputs()
    assert (outputs["result-json"], len(base64.b64decode(outputs["final-message"])) < len(message)) == ("", True)
    assert [(run.folder / name).read_text() for name in (FINAL_MESSAGE, RESULT)] == [message, f"{message}\n"]
    assert run.outputs() == outputs


def test_a_push_that_is_refused_is_the_runs_failure_with_the_hint_that_fixes_it(run: Run) -> None:
    (run.agent.tree / "link").symlink_to("/etc/passwd")
    run.leave(transcript(DONE))
    outputs = run.outputs()
    assert (outputs["exit-code"], outputs["changes-made"], outputs["commit-sha"]) == ("1", "false", "")
    words = [outputs[f"error-{name}"] for name in ("category", "type", "recovery")]
    assert (words, outputs["llm-analysis-run"]) == (["infrastructure", "infrastructure", "manual"], "false")
    assert outputs["final-message-summary"].startswith("All done.")
    assert "Review the agent" in outputs["error-summary"]
    assert run.workshop.tip() == run.agent.base


def test_changes_of_steering_files_are_not_pushed_unless_allowed(run: Run) -> None:
    git(run.agent.tree, "mv", "README.md", "AGENTS.md")
    run.leave(transcript(DONE), files={".vscode/tasks.json": "{}\n", "uv.lock": "\n", **NEW})
    refused = run.outputs()
    assert [refused[name] for name in ("exit-code", "changes-made", "error-recovery")] == ["1", "false", "manual"]
    assert refused["error-summary"].startswith("needs-human: .vscode/tasks.json, AGENTS.md. Nothing was pushed")
    assert "--allow-steering-files" in refused["error-summary"]
    assert re.search(r"not pushed. \d files are in changes.patch of the run folder", refused["run-warnings"])
    assert (run.outputs(), run.workshop.tip()) == (refused, run.agent.base)
    assert "AGENTS.md" in run.outputs(log=OperationLog(is_dry_run=True))["error-summary"]

    outputs = run.outputs(allows_steering=True)
    steering, dependencies = json.loads(outputs["run-warnings"])
    assert "AGENTS.md" in steering
    assert "uv.lock" in dependencies
    assert "new.txt" not in outputs["run-warnings"]
    assert outputs["commit-sha"] == run.workshop.tip()
    assert run.outputs() == outputs, "pushed already"


@pytest.mark.parametrize("left", ["nothing", "nonsense"])
def test_a_patch_that_is_not_the_runs_own_is_a_failure_and_not_a_run_without_changes(run: Run, left: str) -> None:
    run.leave(transcript(DONE), patch_sha256="" if left == "nonsense" else "0" * 64)
    (run.folder / PATCH).unlink()
    if left == "nonsense":
        (run.folder / PATCH).write_text("nonsense\n")
    outputs = run.outputs()
    assert (outputs["exit-code"], outputs["error-evidence"].count("changes-unreadable")) == ("1", 1)
    assert left == "nonsense" or "changes.patch" in outputs["error-summary"]
    assert run.workshop.tip() == run.agent.base


def test_only_the_patch_that_the_run_wrote_is_read(tmp_path: Path) -> None:
    record = RunRecord(agent="codex", patch_sha256=hashlib.sha256(b"patch").hexdigest())
    path, elsewhere = tmp_path / PATCH, tmp_path / "elsewhere"
    path.write_bytes(b"patch")
    assert read_patch(tmp_path, record) == b"patch"
    path.rename(elsewhere)
    for leave in (lambda: None, lambda: path.symlink_to(elsewhere), lambda: path.unlink() or path.write_bytes(b"more")):
        leave()
        with pytest.raises(BrokenContract, match=re.escape(PATCH)):
            read_patch(tmp_path, record)
    assert read_patch(tmp_path / "gone", RunRecord(agent="codex")) == b""


@pytest.mark.parametrize(
    "name", [*(pytest.param(name, marks=pytest.mark.matrix) for name in (FINAL_MESSAGE, STDERR)), STDOUT, RECORD]
)
def test_no_link_in_the_folder_is_followed(run: Run, name: str) -> None:
    run.leave(transcript(DONE))
    stolen = run.folder.parent / "stolen"
    stolen.write_text((run.folder / name).read_text() if name == RECORD else "of-another-owner")
    (run.folder / name).unlink(missing_ok=True)
    (run.folder / name).symlink_to(stolen)
    if name == RECORD:
        with pytest.raises(BrokenContract):
            run.outputs()
        return
    message = base64.b64decode(run.outputs()["final-message"]).decode()
    assert (message, stolen.read_text()) == ("" if name == STDOUT else DONE, "of-another-owner")


@pytest.mark.parametrize("record", [None, "", "{}", '{"version": 2}', "[]", "\udcff"])
def test_a_folder_without_a_run_is_refused(tmp_path: Path, run: Run, record: str | None) -> None:
    if record is not None:
        (tmp_path / RECORD).write_bytes(record.encode("utf-8", "surrogateescape"))
    with pytest.raises(BrokenContract, match=RECORD):
        finish(tmp_path, run.options())


def test_where_to_push_is_what_the_caller_says_and_not_what_the_folder_says(run: Run) -> None:
    before = run.workshop.tip("main"), run.workshop.tip()
    run.leave(transcript(DONE), pr_ref="refs/heads/main", pull="99")

    def outputs_for(**context: str) -> dict[str, str]:
        record = read_record(run.folder).model_copy(update={"context": RunContext(**context)})
        return finish(run.folder, run.options(), record).as_outputs()

    assert outputs_for()["changes-made"] == "false"
    assert (run.workshop.tip("main"), run.workshop.tip()) == before
    outputs = outputs_for(pr_ref="refs/heads/feature", pull="1")
    assert (outputs["commit-sha"], run.workshop.tip("main")) == (run.workshop.tip(), before[0])
    assert json.loads(outputs["llm-completed-tasks"]) == ["Add the thing"]


def test_a_schema_nested_too_deep_costs_the_result_and_not_the_run(run: Run) -> None:
    run.leave(transcript("Done."))
    (run.folder / SCHEMA).write_text("[" * 100_000)
    outputs = run.outputs()
    assert (outputs["exit-code"], outputs["result-json"]) == ("0", "")
    assert "schema.json cannot be used" in outputs["run-warnings"]


def test_a_structured_result_that_breaks_its_schema_does_not_count(run: Run) -> None:
    run.leave(transcript('{"verdict": 3}'))
    (run.folder / SCHEMA).write_text('{"type": "object", "properties": {"verdict": {"type": "string"}}}')
    outputs = run.outputs()
    assert (outputs["result-json"], outputs["exit-code"], (run.folder / RESULT).exists()) == ("", "0", False)
    assert "3 is not of type" in outputs["run-warnings"]


def test_changes_that_wait_for_a_push_are_reported_like_pushed_ones_and_the_option_is_named(run: Run) -> None:
    token = f"ghp_{'a1' * 18}"
    run.leave(transcript(DONE), files={"AGENTS.md": "Obey.\n", "keys.txt": f"{token}\n", **NEW}, pr_ref="")
    waits, steering, tokens = json.loads(run.outputs()["run-warnings"])
    assert "--pr-ref" in waits
    assert ("AGENTS.md" in steering, "keys.txt" in tokens) == (True, True)
    assert "a1a1" not in tokens
