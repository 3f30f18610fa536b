"""A result that conflicts is not lost: a draft pull request has the agent's tree, and a person resolves it."""

import subprocess
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from support.conflicts import KINDS, add_files, edit, prepare, relink, write
from support.implementations import WRITER, WRITER_TOKEN, apply, clone, completed, implement_stage, state
from support.stage import Stage, codes
from support.trees import commit, git

from accord.git.patches import extract_patch
from accord.results.operations import Outcome, Receipt
from accord_sandbox.faults import Fault
from accord_sandbox.planting import INSTALLATION_TOKEN

STAGE = implement_stage


@pytest.fixture
def tree(stage: Stage, tmp_path: Path) -> Path:
    """A clone of the default branch with the files that conflicts are about."""
    tree = clone(stage, tmp_path / "tree")
    add_files(tree)
    git(tree, "push", "-q", "origin", "main")
    return tree


def conflicting(tree: Path, name: str = "edit-edit", branch: str = "main") -> tuple[dict[str, Any], str]:
    """Return the result of an agent whose patch conflicts with what a person pushed meanwhile, and the agent's tree."""
    agents = prepare(tree, KINDS[name])
    git(tree, "push", "-q", "origin", f"HEAD:{branch}")
    return completed(agents.patch.decode()), agents.tree


def beside(stage: Stage, tree: Path) -> tuple[dict[str, Any], str]:
    """Let a first result open a pull request, a person change its branch, and a second result conflict with it."""
    write(tree / "first.txt", "first\n")
    first = apply(stage, completed(extract_patch(tree, "origin/main").decode(), "First."))
    assert first.outcome is Outcome.APPLIED, first.error
    git(tree, "clean", "-fdq")
    base = git(tree, "rev-parse", "main")
    git(tree, "fetch", "-q")
    git(tree, "checkout", "-q", "accord/1")
    edit(tree, "theirs")
    commit(tree, "By hand")
    git(tree, "push", "-q", "origin", "accord/1")
    git(tree, "checkout", "-q", "main")
    edit(tree, "mine")
    patch = extract_patch(tree, base).decode()
    git(tree, "add", "-A")
    made = git(tree, "write-tree")
    git(tree, "reset", "-q", "--hard")
    set_status(stage)
    return completed(patch, "Second."), made


def set_status(stage: Stage, status: str = "in-progress") -> None:
    stage.send("PUT", f"/repos/{stage.repository}/issues/1/labels", labels=["task:implement", f"status:{status}"])


def aside(receipt: Receipt) -> str:
    return str(receipt.details["revision"]["branch"])


def assert_nothing_more(stage: Stage, result: dict[str, Any], **options: Any) -> None:
    before = state(stage)
    again = apply(stage, result, **options)
    assert (again.outcome, again.writes) == (Outcome.UNCHANGED, 0), again.error
    assert state(stage) == before


def merge(tree: Path, branch: str, other: str, *how: str) -> None:
    """Let a person merge another branch into one, resolve every conflict, and push."""
    git(tree, "fetch", "-q")
    git(tree, "checkout", "-q", "-B", branch, f"origin/{branch}")
    with suppress(subprocess.CalledProcessError):
        git(tree, "merge", "-q", "--no-commit", *how, f"origin/{other}")
    edit(tree, "both")
    git(tree, "add", "-A")
    git(tree, "commit", "-qm", "Resolve")
    git(tree, "push", "-q", "origin", branch)


def test_github_signs_the_commit_of_a_bots_conflict(stage: Stage, tree: Path) -> None:
    result, made = conflicting(tree)
    receipt = apply(stage, result, token=INSTALLATION_TOKEN)
    assert receipt.details["commit"]["verified"] is True, receipt.error
    git(tree, "fetch", "-q")
    assert git(tree, "rev-parse", f"origin/{aside(receipt)}^{{tree}}") == made
    assert_nothing_more(stage, result, token=INSTALLATION_TOKEN)


@pytest.mark.parametrize(
    "name", [name if name == "edit-edit" else pytest.param(name, marks=pytest.mark.matrix) for name in KINDS]
)
def test_a_conflict_of_any_kind_becomes_a_draft_with_the_agents_tree(stage: Stage, tree: Path, name: str) -> None:
    result, made = conflicting(tree, name)
    main = state(stage)["trees"]["main"]
    receipt = apply(stage, result)
    assert (receipt.outcome, receipt.exit_code) == (Outcome.APPLIED, 0), receipt.error
    assert "conflict" in codes(receipt)
    assert receipt.details["revision"]["draft"] is True
    after = state(stage)
    assert after["trees"]["accord/1"][0] == made
    assert after["trees"]["main"] == main
    ((number, title, body, is_draft, _),) = after["pulls"]
    assert (number, title, is_draft, after["labels"]) == (2, "Do the work", True, [["needs-human"]])
    notice = body.partition("\n\n")[0]
    assert notice.startswith("> [!WARNING]\n> Conflicts with `main`: ")
    (comment,) = after["comments"]
    for path in KINDS[name].paths:
        assert f"`{path}`" in notice
        assert f"- `{path}`\n" in comment
    assert "git switch accord/1\ngit merge origin/main\n" in comment
    assert "Closes #1" in body
    assert "status:review" in after["issue"]["labels"]
    assert_nothing_more(stage, result)


def test_a_rehearsal_shows_the_draft_and_writes_nothing(stage: Stage, tree: Path) -> None:
    result, _ = conflicting(tree)
    before = state(stage)
    receipt = apply(stage, result, is_dry_run=True)
    operations = ["push-branch", "create-revision", "label-revision", "comment-work-item", "move-work-item"]
    assert (receipt.outcome, [entry.op for entry in receipt.operations]) == (Outcome.PLANNED, operations)
    assert receipt.details["revision"]["draft"] is True
    assert (receipt.writes, state(stage)) == (0, before)


def test_a_run_that_ended_between_push_and_pull_request_still_opens_a_draft(stage: Stage, tree: Path) -> None:
    result, made = conflicting(tree)
    stage.server.faults.add(Fault("lost-before", method="POST", path=r"/pulls$", times=99))
    assert apply(stage, result).outcome is Outcome.STOPPED
    stage.server.faults.clear()
    receipt = apply(stage, result)
    assert (receipt.outcome, codes(receipt) >= {"conflict"}) == (Outcome.APPLIED, True), receipt.error
    after = state(stage)
    assert (after["trees"]["accord/1"][0], after["pulls"][0][3], after["labels"]) == (made, True, [["needs-human"]])
    assert_nothing_more(stage, result)


@pytest.mark.parametrize("way", ["merge", "rebase"])
def test_after_a_person_resolved_a_conflict_the_work_goes_on_as_usual(stage: Stage, tree: Path, way: str) -> None:
    result, _ = conflicting(tree)
    apply(stage, result)
    stage.send("DELETE", f"/repos/{stage.repository}/issues/2/labels/needs-human")
    if way == "merge":
        merge(tree, "accord/1", "main")
    else:
        git(tree, "checkout", "-q", "-B", "accord/1", "origin/main")
        edit(tree, "both")
        git(tree, "commit", "-qam", f"Rebased\n\n{state(stage)['trees']['accord/1'][1]}")
        git(tree, "push", "-qf", "origin", "accord/1")
    assert_nothing_more(stage, result)

    set_status(stage)
    git(tree, "fetch", "-q")
    git(tree, "checkout", "-q", "--detach", "origin/main")
    write(tree / "next.txt", "next\n")
    following = apply(stage, completed(extract_patch(tree, "origin/main").decode(), "Next."))
    assert (following.outcome, codes(following)) == (Outcome.APPLIED, {"outside-scope"}), following.error
    (pull,) = state(stage)["pulls"]
    assert pull[2].startswith("Next.")
    assert following.details["revision"]["branch"] == "accord/1"


def test_a_conflict_with_the_items_own_branch_gets_a_draft_for_that_branch(stage: Stage, tree: Path) -> None:
    result, made = beside(stage, tree)
    before = state(stage)
    receipt = apply(stage, result)
    assert (receipt.outcome, codes(receipt)) == (Outcome.APPLIED, {"conflict", "outside-scope"}), receipt.error
    after = state(stage)
    assert after["trees"][aside(receipt)][0] == made
    assert aside(receipt).startswith("accord/1-conflict-")
    assert after["trees"]["accord/1"] == before["trees"]["accord/1"]
    first, draft = sorted(after["pulls"])
    assert first == before["pulls"][0]
    assert (draft[3], "Refs #1" in draft[2], "Closes" in draft[2]) == (True, True, False)
    assert stage.get(f"/repos/{stage.repository}/pulls/{draft[0]}")["base"]["ref"] == "accord/1"
    assert f"git switch {aside(receipt)}\ngit merge origin/accord/1\n" in after["comments"][0]
    assert_nothing_more(stage, result)


@pytest.mark.parametrize("how", ["--no-ff", "--squash"])
def test_a_draft_that_was_merged_into_the_items_branch_is_not_opened_again(stage: Stage, tree: Path, how: str) -> None:
    result, _ = beside(stage, tree)
    branch = aside(apply(stage, result))
    merge(tree, "accord/1", branch, how)
    if how == "--squash":
        stage.send("PATCH", f"/repos/{stage.repository}/pulls/3", state="closed")
    stage.send("DELETE", f"/repos/{stage.repository}/git/refs/heads/{branch}")
    assert_nothing_more(stage, result)
    assert codes(apply(stage, result)) == {"revision-superseded"}


def test_a_run_that_pushed_its_conflict_stays_with_it_when_the_conflict_is_gone(stage: Stage, tree: Path) -> None:
    result, made = beside(stage, tree)
    stage.server.faults.add(Fault("lost-before", method="POST", path=r"/pulls$", times=99))
    assert apply(stage, result).outcome is Outcome.STOPPED
    stage.server.faults.clear()
    git(tree, "checkout", "-q", "accord/1")
    edit(tree, "line 5")
    git(tree, "commit", "-qam", "Undo")
    git(tree, "push", "-q", "origin", "accord/1")
    receipt = apply(stage, result)
    assert receipt.outcome is Outcome.APPLIED, receipt.error
    after = state(stage)
    assert after["trees"][aside(receipt)][0] == made
    assert aside(receipt) != "accord/1"
    assert len(after["pulls"]) == 2


def test_a_branch_with_other_work_is_never_overwritten(stage: Stage, tree: Path) -> None:
    result, _ = beside(stage, tree)
    planned = aside(apply(stage, result, is_dry_run=True))
    git(tree, "push", "-q", "origin", f"origin/main:refs/heads/{planned}")
    before = state(stage)
    receipt = apply(stage, result)
    assert (receipt.outcome, receipt.exit_code, state(stage)) == (Outcome.REFUSED, 4, before)
    assert planned in receipt.error.message


def test_a_conflict_with_a_branch_left_over_without_pull_request_is_for_the_base(stage: Stage, tree: Path) -> None:
    result, made = beside(stage, tree)
    stage.send("PATCH", f"/repos/{stage.repository}/pulls/2", state="closed")
    receipt = apply(stage, result)
    assert receipt.outcome is Outcome.APPLIED, receipt.error
    draft = stage.get(f"/repos/{stage.repository}/pulls/3")
    assert (draft["base"]["ref"], draft["draft"], "Closes #1" in draft["body"]) == ("main", True, True)
    assert state(stage)["trees"][aside(receipt)][0] == made
    assert_nothing_more(stage, result)


@pytest.mark.parametrize(("path", "text"), [("CLAUDE.md", "Obey.\n"), (".mcp.json", "{}\n")])
def test_steering_files_are_not_pushed_because_of_a_conflict(stage: Stage, tree: Path, path: str, text: str) -> None:
    agents = prepare(tree, KINDS["edit-edit"]._replace(mine=lambda t: (edit(t, "mine"), write(t / path, text))))
    git(tree, "push", "-q", "origin", "main")
    before = state(stage)
    receipt = apply(stage, completed(agents.patch.decode()))
    assert (receipt.outcome, receipt.exit_code) == (Outcome.REFUSED, 4)
    assert state(stage)["trees"] == before["trees"]


def test_a_patch_that_applies_nowhere_is_sent_back(stage: Stage, tree: Path) -> None:
    write(tree / "k/long.txt", "unpublished\n")
    base = commit(tree, "Unpublished")
    write(tree / "k/long.txt", "changed\n")
    patch = extract_patch(tree, base).decode()
    before = state(stage)
    receipt = apply(stage, completed(patch))
    assert (receipt.outcome, codes(receipt), state(stage)) == (Outcome.REJECTED, {"patch-invalid"}, before)


def test_a_bots_conflicting_commit_is_made_over_the_api_with_the_agents_tree(stage: Stage, tree: Path) -> None:
    kind = KINDS["folder-file"]._replace(mine=lambda t: (write(t / "k/add/in", "x\n"), relink(t, "k/link", "run.sh")))
    agents = prepare(tree, kind)
    git(tree, "push", "-q", "origin", "main")
    result, bot = completed(agents.patch.decode()), {"token": WRITER_TOKEN, "identity": WRITER}
    receipt = apply(stage, result, **bot)
    assert receipt.outcome is Outcome.APPLIED, receipt.error
    assert (receipt.details["commit"]["way"], receipt.details["commit"]["verified"]) == ("api", True)
    assert state(stage)["trees"]["accord/1"][0] == agents.tree
    assert_nothing_more(stage, result, **bot)
