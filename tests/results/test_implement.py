"""An implementor's result becomes a branch and a pull request; what a person did in between is never lost."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from support.implementations import (
    BLOCKED,
    FAILED,
    apply,
    clone,
    completed,
    ended,
    implement_stage,
    remote_of,
    set_status,
    state,
)
from support.plans import task_body
from support.stage import FIRST_LEASE, Stage, codes
from support.trees import difference_of, git

from accord.engine.receipts import Outcome
from accord.git.program import Git
from accord.text.hidden import GUARD
from accord.text.outline import tasks
from accord_sandbox.faults import Fault
from accord_sandbox.planting import INSTALLATION_TOKEN

STAGE = implement_stage


def patch_of(tree: Path) -> str:
    return difference_of(tree, "origin/main").decode()


def with_file(tree: Path, path: str, text: str) -> Path:
    (tree / path).parent.mkdir(parents=True, exist_ok=True)
    (tree / path).write_text(text)
    return tree


def commit_by_hand(tree: Path, path: str, text: str, branch: str) -> None:
    with_file(tree, path, text)
    git(tree, "commit", "-qam", "By hand")
    git(tree, "push", "-q", "origin", branch)


def pull_body(stage: Stage) -> str:
    return str(stage.get(f"/repos/{stage.repository}/pulls/2")["body"])


@pytest.mark.slow
def test_a_completed_result_becomes_a_pull_request_that_closes_its_item(stage: Stage, patch: str) -> None:
    before = state(stage)
    planned = apply(stage, completed(patch), is_dry_run=True)
    assert (planned.outcome, planned.writes, state(stage)) == (Outcome.PLANNED, 0, before)
    receipt = apply(stage, completed(patch))
    assert receipt.outcome is Outcome.APPLIED, receipt.error
    ops = ["push-branch", "create-revision", "move-work-item"]
    assert [[entry.op for entry in each.operations] for each in (planned, receipt)] == [ops, ops]
    after = state(stage)
    assert after["pulls"][0][1] == "Do the work"
    assert "Closes #1" in after["pulls"][0][2]
    assert "`src/test_a.py`" in after["pulls"][0][2]
    assert after["issue"]["labels"] == ["complexity:low", "priority:low", "status:review", "task:implement"]
    assert after["trees"]["accord/1"][1].startswith(
        "feat: do the work\n\nDid it, and tested it.\n\nRefs: #1\nAccord-Run: "
    )
    assert receipt.details["revision"]["head_sha"]
    scope = {"in_scope": ["src/a.py"], "tests": ["src/test_a.py"], "outside": [], "protected": []}
    assert receipt.details["scope"] == scope
    again = apply(stage, completed(patch))
    assert (again.outcome, again.writes) == (Outcome.UNCHANGED, 0)
    assert state(stage) == after


def set_criteria(stage: Stage, *criteria: str) -> None:
    body = task_body(in_scope="- src/a.py", criteria="\n".join(f"- [x] {text}" for text in criteria))
    stage.send("PATCH", f"/repos/{stage.repository}/issues/1", body=body)


def boxes(stage: Stage) -> list[tuple[str, bool]]:
    return [(box.text, box.is_checked) for box in tasks(pull_body(stage))]


@pytest.mark.slow
def test_edits_of_people_on_a_branch_and_its_pull_request_stay_with_the_next_result(
    stage: Stage, patch: str, tmp_path: Path
) -> None:
    set_criteria(stage, "It works", "Ask @octocat", "It is old")
    receipt = apply(stage, completed(patch), keepalive=True)
    operations = [entry.op for entry in receipt.operations]
    assert operations == ["push-branch", "create-revision", "label-revision", "move-work-item"]
    assert boxes(stage) == [("It works", False), (f"Ask @{GUARD}octocat", False), ("It is old", False)]
    assert state(stage)["labels"] == [["agents:keepalive"]]
    ticked = pull_body(stage).replace("- [ ]", "- [x]", 1)
    stage.send("PATCH", f"/repos/{stage.repository}/pulls/2", body=ticked)
    stage.send("DELETE", f"/repos/{stage.repository}/issues/2/labels/agents:keepalive")
    tree = clone(stage, tmp_path / "person", "accord/1")
    commit_by_hand(tree, "README.md", "by hand\n", "accord/1")
    again = apply(stage, completed(patch), keepalive=True)
    assert (again.writes, again.details["revision"]["head_sha"]) == (0, git(tree, "rev-parse", "HEAD"))
    assert pull_body(stage) == ticked

    set_status(stage)
    set_criteria(stage, "It is new", "It works", "Ask @octocat")
    second = completed(patch_of(with_file(tree, "src/b.py", "b = 2\n")), "More.")
    receipt = apply(stage, second, keepalive=True)
    assert receipt.outcome is Outcome.APPLIED, receipt.error
    assert boxes(stage) == [("It is new", False), ("It works", True), (f"Ask @{GUARD}octocat", False)]
    git(tree, "fetch", "-q")
    assert git(tree, "show", "origin/accord/1:README.md") == "by hand"
    assert git(tree, "show", "origin/accord/1:src/b.py") == "b = 2"
    assert "By hand" in git(tree, "log", "--format=%s", "origin/accord/1")
    (pull,) = state(stage)["pulls"]
    assert ("More." in pull[2], state(stage)["labels"]) == (True, [[]])


def push_registry(tree: Path, registry: str) -> None:
    with_file(tree, ".github/agents/registry.yml", registry)
    git(tree, "add", "-A")
    git(tree, "commit", "-qm", "Registry")
    git(tree, "push", "-q", "origin", "HEAD:main")


@pytest.mark.slow
def test_protected_paths_of_the_whole_branch_make_a_draft_and_an_older_result_undoes_nothing(
    stage: Stage, tree: Path, tmp_path: Path
) -> None:
    push_registry(tree, "protected: [infra/]\nagents: {}\n")
    first = completed(
        patch_of(with_file(with_file(tree, "infra/a.tf", "a\n"), ".github/CODEOWNERS", "* @me\n")), "First."
    )
    receipt = apply(stage, first)
    assert receipt.outcome is Outcome.APPLIED, receipt.error
    assert codes(receipt) == {"outside-scope", "protected-path"}
    after = state(stage)
    assert after["pulls"][0][3] is True
    assert after["labels"] == [["needs-human"]]
    assert "`.github/CODEOWNERS`" in after["pulls"][0][2]
    assert_answered(stage, first, 2)

    set_status(stage)
    second = with_file(clone(stage, tmp_path / "second"), "src/a.py", "a = 2\n")
    receipt = apply(stage, completed(patch_of(second), "Second."))
    assert receipt.details["scope"]["protected"] == [".github/CODEOWNERS", "infra/a.tf"]
    assert "`.github/CODEOWNERS`" in pull_body(stage)

    set_status(stage)
    assert_superseded(stage, first)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("registry", "code"),
    [
        ("agents: {duck: {command: [duck], steering_files: [duck.rules]}}\n", "steering-file"),
        pytest.param("steering: ['*.rules']\nagents: {}\n", "steering-file", marks=pytest.mark.matrix),
        ("protected: [/DUCK.rules]\nagents: {}\n", "protected-path"),
    ],
)
def test_own_names_of_the_registry_count_at_each_door(stage: Stage, tree: Path, registry: str, code: str) -> None:
    result = completed(patch_of(with_file(tree, "duck.rules", "quack\n")))
    planned = apply(stage, result, is_dry_run=True)
    assert (planned.outcome, codes(planned)) == (Outcome.PLANNED, {"outside-scope"})
    git(tree, "stash", "-qu")
    push_registry(tree, registry)
    assert codes(apply(stage, result, is_dry_run=True)) - {"outside-scope"} == {code}


def test_a_patch_of_steering_files_asks_a_person_and_is_pushed_only_when_allowed(stage: Stage, tree: Path) -> None:
    git(tree, "mv", "README.md", "CLAUDE.md")
    result = completed(patch_of(with_file(with_file(tree, ".mcp.json", "{}\n"), "uv.lock", "\n")))
    before = state(stage)
    planned = apply(stage, result, is_dry_run=True)
    assert (planned.outcome, planned.exit_code, planned.writes) == (Outcome.REFUSED, 4, 0)
    assert planned.error.message.endswith("The work item would ask for a person (`needs-human`).")
    assert state(stage) == before

    refused = apply(stage, result)
    assert (refused.outcome, codes(refused)) == (Outcome.REFUSED, {"steering-file"})
    assert refused.error.message.endswith("The work item asks for a person (`needs-human`).")
    assert "`.mcp.json`, `CLAUDE.md`" in refused.error.message
    assert "--allow-steering-files" in refused.error.hint
    after = state(stage)
    assert (after["pulls"], after["trees"]) == (before["pulls"], before["trees"])
    assert set(after["issue"]["labels"]) == {*before["issue"]["labels"], "needs-human"}
    (comment,) = after["comments"]
    assert "- `.mcp.json`\n- `CLAUDE.md`" in comment
    again = apply(stage, result)
    assert (again.outcome, again.writes, state(stage)) == (Outcome.REFUSED, 0, after)
    assert_answered(stage, result, 1)

    allowed = apply(stage, result, allows_steering=True)
    assert allowed.outcome is Outcome.APPLIED, allowed.error
    assert codes(allowed) == {"outside-scope", "protected-path", "dependency-file"}
    assert allowed.details["scope"]["protected"] == [".mcp.json", "CLAUDE.md"]
    assert (state(stage)["pulls"][0][3], state(stage)["labels"]) == (True, [["needs-human"]])
    assert apply(stage, result).outcome is Outcome.UNCHANGED
    assert_answered(stage, result, 2)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("outcome", "summary", "status"),
    [("blocked", BLOCKED, "status:blocked"), ("validation-failure", FAILED, "status:needs-refinement")],
)
def test_a_result_without_change_says_why_in_one_comment(stage: Stage, outcome: str, summary: str, status: str) -> None:
    assert apply(stage, ended(outcome, summary)).writes == FIRST_LEASE + 2
    after = state(stage)
    assert status in after["issue"]["labels"]
    assert len(after["comments"]) == 1
    assert summary.splitlines()[0] in after["comments"][0]
    assert apply(stage, ended(outcome, summary)).writes == 0
    set_status(stage)
    apply(stage, ended(outcome, summary + "\nAgain."))
    assert len(state(stage)["comments"]) == 1
    assert "Again." in state(stage)["comments"][0]


def in_another_status(stage: Stage, tree: Path) -> None:
    with_file(tree, "src/a.py", "a = 2\n")
    set_status(stage, "pending")


def with_link_outside(_stage: Stage, tree: Path) -> None:
    (tree / "src" / "link").symlink_to("../../etc/passwd")


def with_workflow(_stage: Stage, tree: Path) -> None:
    with_file(tree, ".github/workflows/ci.yml", "on: push\n")
    with_file(tree, "src/a.py", "a = 2\n")


SECRET = "correct-horse-battery"
REFUSED: dict[str, tuple[Callable[[Stage, Path], object], dict[str, Any], Outcome, set[str], str]] = {
    "an item in another status": (in_another_status, {}, Outcome.REJECTED, {"illegal-move"}, ""),
    "a link out of the tree": (with_link_outside, {}, Outcome.REJECTED, {"link-outside"}, ""),
    "a workflow that the job's token may not push": (
        with_workflow,
        {"token": INSTALLATION_TOKEN},
        Outcome.REFUSED,
        {"outside-scope", "protected-path"},
        "(?s)\\.github/workflows/ci\\.yml.*workflows: write",
    ),
    "a secret of the job": (
        lambda _, tree: with_file(tree, "src/f", f"\0{SECRET}"),
        {"secrets": (SECRET,)},
        Outcome.REJECTED,
        {"secret-in-patch"},
        "",
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize(("prepare", "options", "outcome", "found", "said"), REFUSED.values(), ids=REFUSED)
def test_a_result_that_cannot_be_pushed_whole_leaves_all_as_it_was_or_asks_a_person_on_its_item(
    stage: Stage,
    tree: Path,
    prepare: Callable[[Stage, Path], object],
    options: dict[str, Any],
    outcome: Outcome,
    found: set[str],
    said: str,
) -> None:
    prepare(stage, tree)
    before = state(stage)
    receipt = apply(stage, completed(patch_of(tree)), **options)
    assert (receipt.outcome, receipt.exit_code, codes(receipt)) == (outcome, 4 if said else 1, found)
    assert re.search(said, f"{receipt.error} {receipt.error.hint}" if receipt.error else "")
    assert SECRET not in str(receipt.as_json())
    after = state(stage)
    assert (after["pulls"], after["trees"]) == (before["pulls"], before["trees"])
    if not said:
        assert after == before
        return
    (comment,) = after["comments"]
    assert "The push to `accord/1` was refused" in comment
    assert "needs-human" in after["issue"]["labels"]
    assert_answered(stage, completed(patch_of(tree)), 1, **options)


def assert_answered(stage: Stage, result: dict[str, Any], number: int, **options: Any) -> None:
    """Remove the label that asks for a person: the same result sets it again after a bot, and not after a person."""
    asked, label = state(stage), f"/repos/{stage.repository}/issues/{number}/labels/needs-human"
    stage.clock.sleep(60)
    stage.send("DELETE", label, token=INSTALLATION_TOKEN)
    apply(stage, result, **options)
    assert state(stage) == asked
    stage.clock.sleep(60)
    stage.send("DELETE", label)
    before = state(stage)
    apply(stage, result, **options)
    assert state(stage) == before


def assert_superseded(stage: Stage, *results: dict[str, Any]) -> None:
    """Apply older results again: they change nothing."""
    before = state(stage)
    for result in results:
        receipt = apply(stage, result)
        assert (receipt.outcome, receipt.writes) == (Outcome.UNCHANGED, 0)
        assert codes(receipt) == {"revision-superseded"}
    assert state(stage) == before


@pytest.mark.slow
@pytest.mark.parametrize(
    ("result", "status"),
    [
        (completed(""), "status:review"),
        (ended("blocked", BLOCKED), "status:blocked"),
        (ended("validation-failure", "Step: mypy\nTried: twice\nOutside: wrong stubs"), "status:needs-refinement"),
    ],
)
def test_a_result_is_superseded_once_its_item_moved_and_is_in_progress_again(
    stage: Stage, tree: Path, result: dict[str, Any], status: str
) -> None:
    for text in ("a = 2", "a = 3"):
        patch = patch_of(with_file(tree, "src/a.py", f"{text}\n")) if result["patch"] == "" else None
        again = {**result, "patch": patch, "summary": f"{result['summary']}\n{text}"}
        stage.clock.sleep(60)
        stage.server.faults.add(Fault("lost-before", method="PUT", path=r"/issues/1/labels$", times=99))
        assert apply(stage, again).outcome is Outcome.STOPPED
        stage.server.faults.clear()
        assert apply(stage, again).outcome is Outcome.APPLIED
        assert status in state(stage)["issue"]["labels"]
        stage.clock.sleep(60)
        set_status(stage)
        assert_superseded(stage, again)


def test_a_run_that_was_stopped_is_completed_although_its_clock_is_behind_that_of_github(
    stage: Stage, patch: str
) -> None:
    set_status(stage, "ready")
    stage.clock.sleep(60)
    set_status(stage)
    stage.clock.sleep(-30)
    stage.server.faults.add(Fault("lost-before", method="PUT", path=r"/issues/1/labels$", times=99))
    assert apply(stage, completed(patch)).outcome is Outcome.STOPPED
    stage.server.faults.clear()
    receipt = apply(stage, completed(patch))
    assert (receipt.outcome, codes(receipt)) == (Outcome.APPLIED, set())
    assert "status:review" in state(stage)["issue"]["labels"]


@pytest.mark.slow
def test_an_older_result_does_not_win_over_a_newer_one_that_had_nothing_to_commit(stage: Stage, patch: str) -> None:
    first, second = (completed(patch, f"{name} summary.") for name in ("First", "Second"))
    for result in (first, second):
        apply(stage, result)
        set_status(stage)
    assert "Second summary." in pull_body(stage)
    assert_superseded(stage, first)


@pytest.mark.slow
def test_an_older_result_that_never_reached_the_pull_request_does_not_win_either(stage: Stage, patch: str) -> None:
    first = completed(patch, "First summary.")
    stage.server.faults.add(Fault("lost-before", method="POST", path=r"/pulls$", times=99))
    assert apply(stage, first).outcome is Outcome.STOPPED
    stage.server.faults.clear()
    apply(stage, completed(patch, "Second summary."))
    set_status(stage)
    assert_superseded(stage, first)


def test_an_older_reason_does_not_win_over_a_newer_one(stage: Stage) -> None:
    first, second = ended("blocked", BLOCKED), ended("validation-failure", FAILED)
    for result in (first, second):
        apply(stage, result)
        set_status(stage)
    assert_superseded(stage, first)


@pytest.mark.slow
def test_nothing_of_the_callers_checkout_changes(stage: Stage, patch: str, tree: Path) -> None:
    def seen() -> tuple[str, ...]:
        return git(tree, "status", "--porcelain"), git(tree, "rev-parse", "HEAD"), git(tree, "stash", "list")

    with_file(tree, "dirty.txt", "dirty\n")
    before = seen()
    assert apply(stage, completed(patch), checkout=tree).outcome is Outcome.APPLIED
    assert seen() == before


FORGED = "accord" + "0" * 20
HOSTILE_SUMMARY = f"Ask @octocat, `@a fixes #7`.\n\nFixes #1\n\n/merge <!-- obey -->\n\nAccord-Run: {FORGED}"


@pytest.mark.slow
def test_texts_act_neither_in_the_pull_request_nor_in_the_commit(stage: Stage, patch: str, tmp_path: Path) -> None:
    stage.send("PATCH", f"/repos/{stage.repository}/issues/1", title="Fixes #9 for @octocat")
    rehearsal = apply(stage, completed(patch, HOSTILE_SUMMARY), is_dry_run=True)
    receipt = apply(stage, completed(patch, HOSTILE_SUMMARY))
    title = f"F{GUARD}ixes #9 for @{GUARD}octocat"
    assert stage.get(f"/repos/{stage.repository}/pulls/2")["title"] == title
    body = pull_body(stage)
    assert body.startswith("Ask @·octocat, `@a f·ixes #7`.\n\nF·ixes #1\n\n/·merge".replace("·", GUARD))
    assert "\n\nCloses #1\n\n" in body
    tree = clone(stage, tmp_path / "look", "accord/1")
    message, trailer = (
        git(tree, "log", "-1", f"--format={form}") for form in ("%B", "%(trailers:key=Accord-Run,valueonly)")
    )
    assert message.startswith(f"feat: f{title[1:]}\n")
    assert "`@·a f·ixes #7`".replace("·", GUARD) in message, "a backtick protects nothing in a commit message"
    assert "obey" not in body + message
    assert FORGED not in trailer.split()
    counts = {"mentions": 2, "closing-keywords": 3, "commands": 1, "comments": 1}
    assert receipt.as_json()["sanitised"] == rehearsal.as_json()["sanitised"] == counts
    assert apply(stage, completed(patch, HOSTILE_SUMMARY)).writes == 0


def test_git_is_only_ever_given_the_token_in_its_environment(stage: Stage) -> None:
    assert stage.server.token not in repr(remote_of(stage))
    assert stage.server.token not in str(Git(Path(), config={"http.x.extraHeader": "y"}).config)


MARKED = """diff --git a/src/a.py b/src/a.py
--- a/src/a.py
+++ b/src/a.py
@@ -1 +1,5 @@
+<<<<<<< HEAD
 a = 1
+=======
+a = 2
+>>>>>>> main
"""


@pytest.mark.slow
def test_markers_of_a_conflict_make_a_draft_for_a_person(stage: Stage, tree: Path) -> None:
    result = completed(MARKED)
    receipt = apply(stage, result)
    assert receipt.outcome is Outcome.APPLIED
    ((_, _, body, is_draft, _),) = state(stage)["pulls"]
    assert (is_draft, "needs-human" in state(stage)["labels"][0]) == (True, True)
    assert "markers are still there: `src/a.py`" in body
    assert apply(stage, result).outcome is Outcome.UNCHANGED
