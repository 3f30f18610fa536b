"""A result that conflicts is not lost: a draft pull request has the agent's tree, and a person resolves it."""

import shutil
import subprocess
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from support.conflicts import KINDS, add_files, edit, prepare, relink, write
from support.implementations import (
    WRITER,
    WRITER_TOKEN,
    apply,
    clone,
    completed,
    end_pull,
    implement_stage,
    set_status,
    state,
)
from support.stage import Stage, codes
from support.trees import commit, difference_of, git

from accord.engine.receipts import Outcome, Receipt
from accord.git.leaving_out import ChangeLimits
from accord_sandbox.faults import Fault
from accord_sandbox.planting import INSTALLATION_TOKEN

pytestmark = pytest.mark.slow

STAGE = implement_stage


@pytest.fixture(scope="module")
def prepared(shared_stage: Stage, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A clone of the default branch with the files that conflicts are about; each test begins with them."""
    shared_stage.reset()
    tree = clone(shared_stage, tmp_path_factory.mktemp("prepared") / "tree")
    add_files(tree)
    git(tree, "push", "-q", "origin", "main")
    shared_stage.begin_at_present()
    return tree


@pytest.fixture
def tree(prepared: Path, tmp_path: Path) -> Path:
    return shutil.copytree(prepared, tmp_path / "tree", symlinks=True)


def conflicting(tree: Path, name: str = "edit-edit", branch: str = "main") -> tuple[dict[str, Any], str]:
    """Return the result of an agent whose patch conflicts with what a person pushed meanwhile, and the agent's tree."""
    agents = prepare(tree, KINDS[name])
    git(tree, "push", "-q", "origin", f"HEAD:{branch}")
    return completed(agents.patch.decode()), agents.tree


def beside(stage: Stage, tree: Path) -> tuple[dict[str, Any], str]:
    """Let a first result open a pull request, a person change its branch, and a second result conflict with it."""
    write(tree / "first.txt", "first\n")
    first = apply(stage, completed(difference_of(tree, "origin/main").decode(), "First."))
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
    patch = difference_of(tree, base).decode()
    git(tree, "add", "-A")
    made = git(tree, "write-tree")
    git(tree, "reset", "-q", "--hard")
    set_status(stage)
    return completed(patch, "Second."), made


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


@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=() if name == "rename-edit" else pytest.mark.matrix) for name in KINDS],
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


@pytest.mark.parametrize("way", ["merge", pytest.param("rebase", marks=pytest.mark.matrix)])
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
    following = apply(stage, completed(difference_of(tree, "origin/main").decode(), "Next."))
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


@pytest.mark.parametrize("how", ["--no-ff", pytest.param("--squash", marks=pytest.mark.matrix)])
def test_a_draft_that_was_merged_into_the_items_branch_is_not_opened_again(stage: Stage, tree: Path, how: str) -> None:
    result, _ = beside(stage, tree)
    branch = aside(apply(stage, result))
    merge(tree, "accord/1", branch, how)
    if how == "--squash":
        stage.send("PATCH", f"/repos/{stage.repository}/pulls/3", state="closed")
    stage.send("DELETE", f"/repos/{stage.repository}/git/refs/heads/{branch}")
    assert_nothing_more(stage, result)
    assert codes(apply(stage, result)) == {"revision-superseded"}


def test_a_draft_stays_the_only_one_after_the_items_branch_is_merged(stage: Stage, tree: Path) -> None:
    result, _ = beside(stage, tree)
    apply(stage, result)
    end_pull(stage, 2, "squash")
    set_status(stage, "review")
    assert_nothing_more(stage, result)


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


def test_a_conflict_with_a_branch_without_pull_request_is_for_the_base(stage: Stage, tree: Path) -> None:
    result, made = conflicting(tree, branch="accord/1")
    receipt = apply(stage, result)
    assert receipt.outcome is Outcome.APPLIED, receipt.error
    draft = stage.get(f"/repos/{stage.repository}/pulls/2")
    assert (draft["base"]["ref"], draft["draft"], "Closes #1" in draft["body"]) == ("main", True, True)
    assert state(stage)["trees"][aside(receipt)][0] == made
    assert_nothing_more(stage, result)


def test_steering_files_are_not_pushed_because_of_a_conflict(stage: Stage, tree: Path) -> None:
    kind = KINDS["edit-edit"]._replace(mine=lambda t: (edit(t, "mine"), write(t / "CLAUDE.md", "Obey.\n")))
    agents = prepare(tree, kind)
    git(tree, "push", "-q", "origin", "main")
    before = state(stage)
    receipt = apply(stage, completed(agents.patch.decode()))
    assert (receipt.outcome, receipt.exit_code) == (Outcome.REFUSED, 4)
    assert state(stage)["trees"] == before["trees"]


def test_a_patch_that_applies_nowhere_is_sent_back(stage: Stage, tree: Path) -> None:
    write(tree / "k/long.txt", "unpublished\n")
    base = commit(tree, "Unpublished")
    write(tree / "k/long.txt", "changed\n")
    patch = difference_of(tree, base).decode()
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


def made_on_main(tree: Path, summary: str, files: dict[str, str]) -> dict[str, Any]:
    """Return the result of an agent that worked on the default branch as it is now."""
    git(tree, "fetch", "-q")
    git(tree, "checkout", "-q", "-f", "--detach", "origin/main")
    git(tree, "clean", "-fdq")
    for path, text in files.items():
        write(tree / path, text)
    return completed(difference_of(tree, "origin/main").decode(), summary)


def push_by_hand(tree: Path, branch: str, path: str, text: str) -> None:
    git(tree, "fetch", "-q")
    git(tree, "checkout", "-q", "-f", "-B", branch, f"origin/{branch}")
    git(tree, "clean", "-fdq")
    write(tree / path, text)
    commit(tree, "By hand")
    git(tree, "push", "-q", "origin", branch)


def files(tree: Path, branch: str = "accord/1") -> dict[str, str]:
    """Return what a branch changes on the default branch, with the new contents."""
    git(tree, "fetch", "-q")
    changed = git(tree, "diff", "--name-only", "--diff-filter=d", "--no-renames", f"origin/main...origin/{branch}")
    return {path: git(tree, "show", f"origin/{branch}:{path}") for path in changed.splitlines()}


@pytest.mark.parametrize("token", ["", pytest.param(INSTALLATION_TOKEN, marks=pytest.mark.matrix)])
def test_a_second_try_on_the_default_branch_replaces_the_first_in_its_pull_request(
    stage: Stage, tree: Path, token: str
) -> None:
    first = made_on_main(tree, "First.", {"src/new.py": "one = 1\n", "src/more.py": "more = 1\n"})
    assert apply(stage, first, token=token).outcome is Outcome.APPLIED
    head = git(tree, "ls-remote", "origin", "accord/1").split()[0]
    set_status(stage)
    second = made_on_main(tree, "Second.", {"src/new.py": "one = 1\ntwo = 2\n"})
    receipt = apply(stage, second, token=token)
    assert (receipt.outcome, codes(receipt)) == (Outcome.APPLIED, {"result-replaced", "outside-scope"}), receipt.error
    assert files(tree) == {"src/new.py": "one = 1\ntwo = 2"}
    assert git(tree, "rev-parse", "origin/accord/1^") == head
    (pull,) = state(stage)["pulls"]
    assert (pull[2].startswith("Second."), pull[3]) == (True, False)
    assert_nothing_more(stage, second, token=token)
    set_status(stage)
    assert codes(apply(stage, first, token=token)) == {"revision-superseded"}
    assert apply(stage, made_on_main(tree, "Third.", {"src/new.py": "three = 3\n"}), token=token).writes
    assert files(tree) == {"src/new.py": "three = 3"}


def test_a_second_try_is_judged_by_the_commit_that_it_was_made_on(stage: Stage, tree: Path) -> None:
    new = {f"src/{name}.py": f"{name} = 1\n" for name in "cd"}
    assert apply(stage, made_on_main(tree, "First.", new)).outcome is Outcome.APPLIED
    set_status(stage)
    second = made_on_main(tree, "Second.", {**new, "src/e.py": "e = 1\n", ".newtool/settings": "x\n"})
    assert codes(apply(stage, second, limits=ChangeLimits(files=3))) == {"change-too-large"}
    assert codes(apply(stage, second)) == {"steering-file"}
    assert {"result-replaced", "protected-path"} <= codes(apply(stage, second, allows_steering=True))


def test_a_second_try_on_a_newer_default_branch_brings_it_to_the_pull_request(stage: Stage, tree: Path) -> None:
    apply(stage, made_on_main(tree, "First.", {"src/new.py": "one = 1\n"}))
    push_by_hand(tree, "main", "src/a.py", "a = 10\nb = 20\n")
    set_status(stage)
    second = made_on_main(tree, "Second.", {"src/a.py": "a = 10\nb = 20\nc = 30\n"})
    receipt = apply(stage, second)
    assert "result-replaced" in codes(receipt), receipt.error
    assert files(tree) == {"src/a.py": "a = 10\nb = 20\nc = 30"}
    assert_nothing_more(stage, second)


def test_a_second_try_keeps_what_a_person_committed_and_a_run_that_ended_after_its_push_is_finished(
    stage: Stage, tree: Path
) -> None:
    apply(stage, made_on_main(tree, "First.", {"src/new.py": "one = 1\n"}))
    push_by_hand(tree, "accord/1", "README.md", "by hand\n")
    set_status(stage)
    second = made_on_main(tree, "Second.", {"src/new.py": "two = 2\n"})
    stage.server.faults.add(Fault("lost-before", method="PATCH", path=r"/pulls/2$", times=99))
    assert apply(stage, second).outcome is Outcome.STOPPED
    stage.server.faults.clear()
    assert apply(stage, second).outcome is Outcome.APPLIED
    assert state(stage)["pulls"][0][2].startswith("Second.")
    assert files(tree) == {"src/new.py": "two = 2", "README.md": "by hand"}
    assert_nothing_more(stage, second)


@pytest.mark.parametrize("how", ["on-top", pytest.param("amended", marks=pytest.mark.matrix)])
def test_a_second_try_that_conflicts_with_a_persons_edit_of_the_first_becomes_a_draft(
    stage: Stage, tree: Path, how: str
) -> None:
    apply(stage, made_on_main(tree, "First.", {"src/new.py": "one = 1\n"}))
    if how == "on-top":
        push_by_hand(tree, "accord/1", "src/new.py", "by hand = 1\n")
    else:
        git(tree, "fetch", "-q")
        git(tree, "checkout", "-q", "-f", "-B", "accord/1", "origin/accord/1")
        write(tree / "src/new.py", "by hand = 1\n")
        git(tree, "commit", "-qa", "--amend", "--no-edit", "--reset-author")
        git(tree, "push", "-qf", "origin", "accord/1")
    set_status(stage)
    receipt = apply(stage, made_on_main(tree, "Second.", {"src/new.py": "two = 2\n"}))
    assert "conflict" in codes(receipt), receipt.error
    assert files(tree) == {"src/new.py": "by hand = 1"}
    assert files(tree, aside(receipt)) == {"src/new.py": "two = 2"}


def test_a_second_try_does_not_replace_what_another_item_left_on_the_branch(stage: Stage, tree: Path) -> None:
    apply(stage, made_on_main(tree, "First.", {"src/new.py": "one = 1\n"}))
    git(tree, "fetch", "-q")
    git(tree, "checkout", "-q", "-f", "-B", "accord/1", "origin/accord/1")
    message = git(tree, "log", "-1", "--format=%B").replace("Refs: #1", "Refs: #7")
    git(tree, "commit", "-q", "--amend", "-m", message)
    git(tree, "push", "-qf", "origin", "accord/1")
    set_status(stage)
    assert "conflict" in codes(apply(stage, made_on_main(tree, "Second.", {"src/new.py": "two = 2\n"})))


def test_a_second_try_resolves_the_conflict_of_the_first(stage: Stage, tree: Path) -> None:
    result, _ = conflicting(tree)
    apply(stage, result)
    set_status(stage)
    second = made_on_main(tree, "Second.", {"k/long.txt": "theirs, then mine\n"})
    assert "result-replaced" in codes(apply(stage, second))
    assert files(tree) == {"k/long.txt": "theirs, then mine"}
    assert_nothing_more(stage, second)
