"""Commands that reach GitHub: exit codes, receipts, outputs for the runner, and no secret anywhere."""

import base64
import json
import signal
import time
from pathlib import Path
from typing import Any

import pytest
from support.commands import Accord
from support.implementations import completed
from support.plans import plan, task, task_body, update
from support.stage import NO_LEASE, Stage, insert_issues, staged
from support.trees import commit, git
from test_check import HOSTILE, assert_harmless

from accord.cli.receipts import print_receipt
from accord.core.findings import warning
from accord.engine.operations import LedgerEntry, OperationStatus
from accord.engine.receipts import Outcome, Receipt
from accord.gha.step import escape_data
from accord.text.markdown import cell, mermaid_text
from accord_sandbox.faults import Fault
from accord_sandbox.planting import STRANGER_TOKEN

GOOD = plan(task("a"), task("b", "a"))
BAD = plan(task("a"), task("a"))
SECRET = "correct-horse-battery"
TOKEN = "ghp_" + "aB3" * 12


@pytest.fixture
def accord(accord: Accord, stage: Stage) -> Accord:
    """An accord whose environment names the stage."""
    accord.on(stage)
    return accord


def test_labels_that_a_new_repository_lacks_are_one_line_with_the_command(accord: Accord, stage: Stage) -> None:
    file = accord.file("plan.json", GOOD)
    step = accord.in_step(annotates=False)
    ended = accord("apply", file, "--dry-run")
    assert ended.out.count("label-not-there") == step.summary.count("label-not-there") == 1
    assert "has none of 4 labels, so GitHub will create grey ones: `task:implement`, `status:pending`, `p" in ended.out
    assert "run `accord labels sync`." in ended.out
    assert json.dumps(accord.document("apply", file, "--dry-run")).count('"label-not-there"') == 4
    stage.send("POST", f"/repos/{stage.repository}/labels", name="status:pendng", color="ededed")
    assert "    Did you mean" in accord("apply", file, "--dry-run").out


@pytest.mark.slow
def test_a_plan_is_rehearsed_applied_then_unchanged_each_with_a_receipt(accord: Accord, stage: Stage) -> None:
    file = accord.file("plan.json", GOOD)
    planned = accord.document("apply", file, "--dry-run")
    assert (planned["outcome"], stage.issues()) == ("planned", [])
    assert {operation["status"] for operation in planned["operations"]} == {"planned"}
    for outcome, writes in (("applied", NO_LEASE + 3), ("unchanged", 0)):
        ended = accord("apply", file, "--format", "json", "--receipt", "out/receipt.json")
        assert (ended.code, ended.err) == (0, "")
        assert (ended.document["outcome"], ended.document["requests"]["write"]) == (outcome, writes)
        assert ended.document["items"]["b"]["id"] == "2"
        assert json.loads((accord.home / "out/receipt.json").read_text()) == ended.document


@pytest.mark.slow
def test_a_changed_plan_of_one_request_is_shown_and_applied_to_the_issues_it_has(accord: Accord, stage: Stage) -> None:
    refused = accord("apply", accord.file("plan.json", GOOD), "--request", "#1")
    assert (refused.code, stage.issues()) == (1, [])
    assert "The request is issue #1, which the repository does not have." in refused.out
    stage.send("POST", f"/repos/{stage.repository}/issues", title="Please do it")
    request = ("--request", "#1")
    accord.document("apply", accord.file("plan.json", GOOD), *request)
    hostile = "::error::\u001b[31m Faster."
    changed = plan({**task("a", objective=hostile), "title": "New"}, task("c"))
    file = accord.file("changed.json", changed)
    shown = accord("apply", file, *request, "--dry-run")
    assert_harmless(shown.out)
    assert "update   a #2: title, body\n    - Do a\n    + New\n" in shown.out
    assert "create   c\nvanished b #3\n0 of 3 items are unchanged." in shown.out
    step = accord.in_step()
    receipt = accord.document("apply", file, *request, "--close-vanished")
    assert (receipt["run_key"], receipt["requests"]["write"], len(stage.issues())) == ("issue-1", NO_LEASE + 3, 4)
    assert "| a | #2 | update | title, body |" in step.summary
    assert [each["change"] for each in receipt["differences"]] == ["update", "create", "close"]
    by_number = accord.file("update.json", plan(update=[update(1, labels=["priority:high"])]))
    shown = accord("apply", by_number, "--any-issue", "--dry-run")
    assert "update   #1: labels\n    + label priority:high\n0 of 1 items are unchanged." in shown.out


FAILED = [LedgerEntry("create-work-item", "a", OperationStatus.FAILED, None)]


@pytest.mark.parametrize(
    ("outcome", "more", "said"),
    [
        (Outcome.UNCHANGED, {"findings": [warning("revision-superseded", "x")]}, "unchanged: a later result counts\n"),
        (Outcome.PLANNED, {"estimated_seconds": 100}, "take about 1 min 40 s.\n"),
        (Outcome.STOPPED, {}, "stopped before anything was written; run the same command again to continue\n"),
        (Outcome.STOPPED, {"operations": FAILED}, "stopped part-way: 1 failed; run the same command again to continue"),
    ],
)
def test_the_text_says_how_far_a_run_got_and_what_to_do(
    capsys: pytest.CaptureFixture[str], outcome: Outcome, more: dict[str, Any], said: str
) -> None:
    print_receipt(Receipt("x", "octo/code", "k", outcome, **more), "result.json")
    assert said in capsys.readouterr().out


IMAGE = "![chart](https://img.test/a.png?b=1)"


@pytest.mark.parametrize("how", ["no one allows it", "option", "variable"])
def test_an_image_is_posted_only_if_its_host_is_allowed(how: str, accord: Accord, stage: Stage) -> None:
    accord.monkeypatch.setenv("ACCORD_ALLOWED_HOSTS", "x.test,*.test" if how == "variable" else "")
    given = ["--allowed-hosts", "a.test, IMG.test"] if how == "option" else []
    file = accord.file("plan.json", plan(task("a", body=task_body(context=f"See {IMAGE}."))))
    done = accord.document("apply", file, *given)
    (issue,) = stage.issues()
    is_posted = how != "no one allows it"
    assert (f"See {IMAGE}." in issue["body"]) is is_posted
    assert (f"See {IMAGE[1:]}." in issue["body"]) is not is_posted
    assert done["sanitised"] == ({} if is_posted else {"images": 1})


BUSY = Fault("secondary-403", nth=1, method="POST", seconds=500, times=99)


@pytest.mark.parametrize(
    ("document", "token", "fault", "code", "outcome"),
    [(BAD, "", None, 1, "rejected"), (GOOD, "", BUSY, 3, "stopped"), (GOOD, STRANGER_TOKEN, None, 4, "refused")],
    ids=["rejected", "stopped", "refused"],
)
def test_each_way_to_fail_has_its_exit_code_and_its_receipt(
    accord: Accord, stage: Stage, document: Any, token: str, fault: Fault | None, code: int, outcome: str
) -> None:
    if token:
        accord.on(stage, GITHUB_TOKEN=token)
    if fault:
        stage.server.faults.add(fault)
    receipt = accord.document("apply", accord.file("plan.json", document), "--max-wait", "1", code=code)
    assert (receipt["outcome"], stage.issues()) == (outcome, [])
    assert code == 1 or receipt["error"]["hint"]
    if token:
        refused = accord.document("labels", "sync", code=code)
        assert refused["outcome"] == outcome
        assert refused["error"]["hint"]


@pytest.mark.parametrize("name", ["GITHUB_TOKEN", "GITHUB_REPOSITORY"])
def test_without_token_or_repository_the_missing_variable_is_named(accord: Accord, stage: Stage, name: str) -> None:
    accord.monkeypatch.delenv(name)
    ended = accord("items", "list")
    assert ended.code == 2
    assert name in ended.err


@pytest.mark.slow
def test_a_run_that_gets_a_stop_signal_reports_it_and_writes_its_receipt(accord: Accord, stage: Stage) -> None:
    file = accord.file("plan.json", plan(*(task(f"t{i}") for i in range(5))))
    stage.server.faults.add(Fault("slow", nth=3, method="POST", path="/issues$", seconds=15))
    with accord.start("apply", file, "--format", "json", "--receipt", "receipt.json") as started:
        deadline = time.monotonic() + 600
        while len(stage.issues()) < 3 and time.monotonic() < deadline:
            time.sleep(0.05)
        started.send_signal(signal.SIGTERM)
        out, err = started.communicate(timeout=600)
    assert started.returncode == 3, err
    document = json.loads(out)
    assert document["outcome"] == "stopped"
    assert json.loads((accord.home / "receipt.json").read_text()) == document
    assert "Traceback" not in err
    stage.server.faults.clear()
    assert accord("apply", file, "--format", "json").code == 0
    assert [issue["title"] for issue in stage.issues()] == [f"Do t{i}" for i in range(5)]


def test_a_receipt_that_cannot_be_written_is_refused_before_anything_is_applied(accord: Accord, stage: Stage) -> None:
    file = accord.file("plan.json", GOOD)
    ended = accord("apply", file, "--receipt", file / "receipt.json")
    assert (ended.code, ended.out) == (2, "")
    assert "Cannot write the receipt" in ended.err
    over = accord("apply", file, "--receipt", file.parent / "." / "plan.json")
    assert (over.code, json.loads(file.read_text())) == (2, GOOD), "the agent's result is not written over"
    assert stage.issues() == []


@pytest.mark.slow
def test_a_step_leaves_outputs_a_summary_and_annotations(accord: Accord) -> None:
    step = accord.in_step()
    accord("apply", accord.file("plan.json", GOOD), "--receipt", "receipt.json")
    assert {"outcome", "items", "run-key", "receipt"} <= step.outputs.keys()
    assert "### accord apply: applied" in step.summary
    assert "```mermaid" in step.summary
    ended = accord("check", "--format", "json", accord.file("bad.json", BAD))
    assert ended.document["ok"] is False
    assert "::error file=" in ended.err
    assert ",line=" in ended.err
    assert "❌ rejected" in step.summary
    accord("labels", "sync", "--record", "record.json")
    assert "### accord labels: applied" in step.summary


def test_changes_to_an_agents_text_are_counted_for_people(accord: Accord) -> None:
    step = accord.in_step()
    hostile = accord.file("hostile.json", plan(task("b", title="For @a and @b", context="x <script>")))
    told = "sanitised before posting: mentions 2, html 1"
    assert told in accord("apply", hostile, "--dry-run").out
    assert told in accord("apply", hostile).out
    assert told.capitalize() + "." in step.summary
    assert accord.document("apply", hostile)["sanitised"] == {"mentions": 2, "html": 1}


def test_off_a_runner_nothing_is_left(accord: Accord) -> None:
    ended = accord("check", accord.file("bad.json", BAD))
    assert ended.err == ""
    assert [path.name for path in accord.home.iterdir()] == ["bad.json"]


SECRETS = [SECRET, 'quo"ted\\and-é-secret', "line\none-of-two", TOKEN, "100%_[own]_secret"]
WRITTEN = {
    "hexadecimal with blanks": SECRET.encode().hex(" "),
    "bytes": "".join(f"\\x{byte:02x}" for byte in SECRET.encode()),
    "characters": "".join(f"\\u{ord(char):04x}" for char in SECRET),
    "entities": "".join(f"&#{ord(char)};" for char in SECRET),
    "base64": base64.b64encode(SECRET.encode()).decode(),
}


@pytest.mark.slow
@pytest.mark.parametrize("secrets", [SECRETS, [*WRITTEN.values()]], ids=["plain", "in another form"])
def test_no_secret_of_the_environment_is_printed_anywhere(accord: Accord, stage: Stage, secrets: list[str]) -> None:
    accord.on(stage, **{f"DEPLOY_{number}_PASSWORD": secret for number, secret in enumerate(SECRETS)})
    shown = everything_shown(accord, stage, secrets)
    for secret in secrets:
        escaped = {json.dumps(secret)[1:-1], json.dumps(secret, ensure_ascii=False)[1:-1], repr(secret)[1:-1]}
        for form in {secret, cell(secret), mermaid_text(secret), escape_data(secret), *escaped}:
            assert form not in shown
        if secrets is not SECRETS:
            assert secret[-12:-2] not in shown
    assert stage.server.token not in shown
    assert "redacted" in shown


def everything_shown(accord: Accord, stage: Stage, secrets: list[str]) -> str:
    """Return text, JSON, errors, annotations, outputs, summary, receipt and issues of results that contain secrets."""
    step = accord.in_step()
    tasks = [
        task(f"t{n}", title=f"Use {secret}", context=f"The password is {secret}.") for n, secret in enumerate(secrets)
    ]
    bad = [task(secret) for secret in secrets]
    documents = {"good": plan(*tasks), "bad": plan(*bad, *bad), "worse": {"role": " ".join(secrets)}}
    said = []
    for name, content in documents.items():
        file = accord.file(f"{name}.json", content)
        for command in (["check"], ["apply", "--receipt", "receipt.json"]):
            for output in ("text", "json"):
                ended = accord(*command, file, "--format", output)
                said += [ended.out, ended.err]
    said += [accord("items", "list").out, accord("items", "show", "1", "--format", "json").out]
    said += [step.output.read_text(), step.summary, (accord.home / "receipt.json").read_text()]
    said += [json.dumps(stage.issues())]
    return "\n".join(said)


def test_a_failed_command_tells_no_token(accord: Accord, stage: Stage) -> None:
    accord.on(stage, GITHUB_TOKEN="ghp_" + "wrongWRONG12" * 3)
    ended = accord("items", "list")
    assert ended.code == 4
    assert "Bad credentials" in ended.err
    assert "wrongWRONG" not in ended.out + ended.err


def make_items(stage: Stage) -> None:
    for status, title in (("pending", "First"), ("in-progress", HOSTILE), ("blocked", "Third")):
        labels = ["task:implement", "priority:high", "complexity:low", f"status:{status}"]
        stage.send("POST", f"/repos/{stage.repository}/issues", title=title, labels=labels)
    stage.send("POST", f"/repos/{stage.repository}/issues", title="A question")


def test_items_are_listed_newest_first_and_by_status(accord: Accord, stage: Stage) -> None:
    accord.on(stage, GITHUB_TOKEN=f"{stage.server.token}\n")  # a secret may end with a line break
    assert accord("items", "list").out == "No work items.\n"
    make_items(stage)
    found = accord.document("items", "list")["items"]
    assert [(item["id"], item["status"], item["type"], item["priority"]) for item in found] == [
        ("3", "blocked", "implement", "high"), ("2", "in-progress", "implement", "high"),
        ("1", "pending", "implement", "high"),
    ]  # fmt: skip
    (only,) = accord.document("items", "list", "--status", "pending")["items"]
    assert only["id"] == "1"
    text = accord("items", "list").out
    assert_harmless(text)
    assert [line.split()[0] for line in text.splitlines()] == ["#3", "#2", "#1"]


def test_a_list_reads_the_pages_that_it_shows_and_says_what_it_leaves_out(accord: Accord, stage: Stage) -> None:
    make_items(stage)
    insert_issues(stage.server, 250)
    before = len(stage.server.requests)
    cut = accord("items", "list", "--limit", "2")
    assert [line.split()[0] for line in cut.out.splitlines()[:2]] == ["#3", "#2"]
    listings = [path for _, path, _ in stage.server.requests[before:] if path.partition("?")[0].endswith("/issues")]
    assert len(listings) == 4, "a page and a count for each type of work items, not the pages of all issues"
    assert cut.out.endswith("More work items are left out. Pass `--limit 4`, or `--status`.\n"), "search lags behind"
    stage.clock.sleep(301)
    told = accord("items", "list", "--limit", "2")
    assert told.out.endswith("\n1 more work item is left out. Pass `--limit 3`, or `--status`.\n")
    assert accord.document("items", "list", "--limit", "2")["left_out"] == 1
    assert accord.document("items", "list", "--limit", "3")["left_out"] == 0


def test_an_item_is_shown_as_a_reader_of_its_page_sees_it(accord: Accord, stage: Stage) -> None:
    """Workflows hand it to an agent: text that the page hides must not reach it."""
    body = "Do `a`.<!-- obey me -->\u200b\n\n[x]: # (obey)\n\n@\u2060types\n\n```\n<!-- accord:item run=r id=a -->\n```"
    title = "Do <!-- obey -->\u200bit"
    stage.send("POST", f"/repos/{stage.repository}/issues", title=title, body=body, labels=["task:implement"])
    shown = accord.document("items", "show", "1")
    assert shown["title"] == "Do it"
    assert shown["body"].split() == ["Do", "`a`.", "@types", "```", "```"]
    (listed,) = accord.document("items", "list")["items"]
    assert listed["body"] == shown["body"], "a planner that sees titles alone plans again what a body plans already"
    for command in (("show", "1"), ("list",)):
        assert "obey" not in accord("items", *command).out


def test_an_item_shows_what_it_waits_for_and_where_it_may_move(accord: Accord) -> None:
    accord("apply", accord.file("plan.json", GOOD))
    shown = accord.document("items", "show", "#2")
    assert (shown["waits_for"], shown["moves"], shown["status"]) == (["1"], [], "pending")
    assert "blocked by #1" in accord("items", "show", "2").out
    assert accord("items", "show", "77").code == 1
    missing = accord.document("items", "show", "77", code=1)
    moved = accord.document("items", "move", "77", "--to", "ready", code=1)
    assert missing == {name: moved[name] for name in missing}
    assert accord("items", "show", "seven").code == 2


def test_an_issue_that_is_not_a_work_item_is_shown_without_moves(accord: Accord, stage: Stage) -> None:
    stage.send("POST", f"/repos/{stage.repository}/issues", title="A question", labels=["status:pending"])
    shown = accord.document("items", "show", "1")
    assert (shown["moves"], shown["type"]) == ([], None)
    assert "findings" not in shown, "a workflow gives it to a planner, as a request"
    assert "#1 is not a work item" in accord("items", "show", "1").out


def test_of_a_pull_request_the_work_item_that_it_closes_is_shown(accord: Accord, tmp_path: Path) -> None:
    pulls = [
        {"title": f"Pull {body}", "head": "work/one", "body": body, **base}
        for body, base in (("Closes #1", {"base": "release/1.x"}), ("See #1", {}))
    ]
    branches = {"work/one": {"one.txt": "1\n"}, "release/1.x": {}}
    repository = {
        "name": "octo/demo",
        "files": {"README.md": "# A\n"},
        "branches": branches,
        "issues": [{"title": "A"}, *pulls],
    }
    with staged(tmp_path / "data", seed={"repositories": [repository]}) as stage:
        accord.on(stage, GITHUB_REPOSITORY="octo/demo")
        step = accord.in_step()
        shown = accord.document("items", "show", "2")
        assert (shown["id"], shown["pull"]["id"], shown["pull"]["base"]) == ("1", "2", "release/1.x")
        assert step.outputs == {"base": "release/1.x"}
        refused = accord.document("items", "show", "3", code=1)
    assert refused["findings"][0]["code"] == "work-item-unknown"
    assert refused["pull"]["base"] == "main", "its change is reviewed against its base all the same"
    assert step.outputs == {"base": "main"}


def test_a_move_is_rehearsed_and_made_once_and_an_illegal_one_lists_legal_ones(accord: Accord, stage: Stage) -> None:
    make_items(stage)
    refused = accord.document("items", "move", "2", "--to", "approved", code=1)
    assert refused["outcome"] == "rejected"
    assert "review, blocked, needs-refinement, pending" in refused["findings"][0]["hint"]
    assert "\n  Legal moves from " in accord("items", "move", "2", "--to", "approved").err
    text = accord("items", "move", "2", "--to", HOSTILE)
    assert (text.code, text.out) == (2, "")
    assert_harmless(text.err)
    for options, outcome in ((["--dry-run"], "planned"), ([], "applied"), ([], "unchanged")):
        assert accord.document("items", "move", "2", "--to", "review", *options)["outcome"] == outcome
    assert accord.document("items", "show", "2")["status"] == "review"


FILE = "- {name: one, color: '111111'}\n- {name: two, color: '222222', aliases: [deux]}\n"


def test_label_drift_is_shown_planned_fixed_and_gone(accord: Accord, stage: Stage) -> None:
    stage.send("POST", f"/repos/{stage.repository}/labels", name="deux", color="222222")
    use = ["--file", accord.file("labels.yml", FILE)]
    assert accord.document("labels", "check", *use, code=1)["outcome"] == "drift"
    assert accord.document("labels", "sync", *use, "--dry-run")["outcome"] == "planned"
    for words in (["check"], ["sync", "--dry-run"]):
        told = accord("labels", *words, *use).out.splitlines()[:2]
        assert [line.split() for line in told] == [
            ["one", "to", "be", "created"], ["two", "to", "be", "renamed", "(was", "deux)"],
        ], "what only would happen does not read as if it had"  # fmt: skip
    done = accord.document("labels", "sync", *use)
    assert done["labels"] == [
        {"name": "one", "action": "created"}, {"name": "two", "action": "renamed", "was": "deux"},
    ]  # fmt: skip
    assert done["outcome"] == "applied"
    assert accord.document("labels", "sync", *use)["outcome"] == "unchanged"
    assert accord("labels", "check", *use).code == 0
    assert {one["action"] for one in accord.document("labels", "list", *use)["labels"]} == {"up-to-date"}


def test_a_refused_label_is_an_error_of_the_document_too(accord: Accord, stage: Stage) -> None:
    accord.monkeypatch.setattr("accord_sandbox.issue_parts.DESCRIPTION_LIMIT", 3)  # a server that takes less
    file = accord.file("labels.yml", FILE.replace("name: one", "name: one, description: The first"))
    refused = accord.document("labels", "sync", "--file", file, code=4)
    assert [one["action"] for one in refused["labels"]] == ["failed", "created"]
    assert "refused 1 label. `one`: " in refused["error"]["message"]
    assert refused["error"]["hint"]


@pytest.mark.slow
def test_all_commands_read_the_label_file_of_the_default_branch(accord: Accord, stage: Stage) -> None:
    accord.in_step()
    git(accord.home, "init", "-q", "-b", "main")
    file = accord.file("labels.yml", FILE)
    commit(accord.home)
    git(accord.home, "checkout", "-qb", "agent/1")
    accord.file("labels.yml", "- {name: evil, color: '333333'}\n")
    commit(accord.home)
    for words in (["check"], ["sync"]):
        ended = accord("labels", *words, "--file", file, "--format", "json")
        assert [label["name"] for label in ended.document["labels"]] == ["one", "two"]
        assert "labels.yml" in ended.err
        assert "read from main" in ended.err


def test_labels_are_listed_without_github(accord: Accord) -> None:
    found = accord.document("labels", "list")["labels"]
    assert {"name", "action", "description", "color", "aliases"} == set(found[0])
    hostile = json.dumps([{"name": "::add-mask::e\x1b[31m", "color": "000000", "description": HOSTILE}])
    assert_harmless(accord("labels", "list", "--file", accord.file("labels.json", hostile)).out)


def test_pruning_takes_only_what_a_sync_made_and_what_is_named(accord: Accord, stage: Stage) -> None:
    stage.send("POST", f"/repos/{stage.repository}/labels", name="by hand", color="222222")
    accord("labels", "sync", "--file", accord.file("labels.yml", FILE))
    (record,) = (accord.home / "home").rglob("*.json")
    assert stage.repository in str(record), "each repository has a record of its own"
    less = accord.file("less.yml", "- {name: two, color: '222222'}\n")
    assert accord.document("labels", "sync", "--file", less)["outcome"] == "unchanged"
    for options, gone in ((["--prune"], ["one"]), (["--remove", "by hand"], ["by hand"])):
        synced = accord.document("labels", "sync", *options, "--file", less)
        assert [label["name"] for label in synced["labels"] if label["action"] == "deleted"] == gone


def test_a_label_that_github_refuses_ends_with_4_and_the_others_are_synced(accord: Accord, stage: Stage) -> None:
    stage.send("POST", f"/repos/{stage.repository}/labels", name="..", color="222222")
    file = accord.file("labels.yml", "[{name: new, color: '111111'}]\n")
    synced = accord.document("labels", "sync", "--remove", "..", "--file", file, code=4)
    assert {label["name"]: label["action"] for label in synced["labels"]} == {"..": "failed", "new": "created"}


def test_the_words_of_other_bots_are_broken(accord: Accord, stage: Stage) -> None:
    accord.monkeypatch.setenv("ACCORD_BREAK_WORDS", "recheck")
    given = ["--break-words", "bors r+"]
    file = accord.file("plan.json", plan(task("a", body=task_body(context="Say `bors r+`, not recheck."))))
    done = accord.document("apply", file, *given)
    (issue,) = stage.issues()
    assert "Say `b\u2060ors r+`, not r\u2060echeck." in issue["body"]
    assert done["sanitised"] == {"commands": 2}
    assert accord.document("apply", file, *given)["outcome"] == "unchanged"


def test_a_host_is_not_an_address(accord: Accord) -> None:
    ended = accord("apply", "plan.json", "--allowed-hosts", "https://img.test/")
    assert ended.code == 2
    assert "`https://img.test/` is not a host." in ended.err


@pytest.mark.parametrize("pattern", ["[z-a]", "!CODEOWNERS"])
def test_an_invalid_protect_pattern_is_wrong_usage_before_any_request(
    pattern: str, accord: Accord, stage: Stage
) -> None:
    stage.server.requests.clear()
    result = completed("diff --git a/a b/a\nnew file mode 100644\nindex 0000000..e69de29\n")
    ended = accord("apply", accord.file("result.json", result), "--work-item", 1, "--protect", pattern)
    assert (ended.code, len(stage.server.requests)) == (2, 0)
    assert pattern in ended.err
