"""A branch whose pull requests are merged or closed is not used again: the next result starts from the base."""

from pathlib import Path
from typing import Any

import pytest
from support.implementations import apply, completed, end_pull, implement_stage, set_status
from support.stage import Stage, codes
from support.trees import difference_of, git

from accord.core.errors import BrokenContract
from accord.engine.receipts import Outcome
from accord.github.transport import Transport
from accord.results.status import move_work_item
from accord_sandbox.faults import Fault

pytestmark = pytest.mark.slow

STAGE = implement_stage


def changed(stage: Stage, number: int) -> list[str]:
    return sorted(file["filename"] for file in stage.get(f"/repos/{stage.repository}/pulls/{number}/files"))


def work(tree: Path, text: str, name: str = "src/a.py") -> dict[str, Any]:
    """Return a result that was made on the newest base."""
    git(tree, "fetch", "-q")
    git(tree, "checkout", "-q", "--detach", "origin/main")
    (tree / name).write_text(text)
    patch = difference_of(tree, "origin/main").decode()
    git(tree, "reset", "-q", "--hard")
    return completed(patch, f"It is {text.strip()} now.")


@pytest.mark.parametrize(
    "how",
    [
        "squash",
        "merge",
        "deleted",
        *(pytest.param(how, marks=pytest.mark.matrix) for how in ("rebase", "elsewhere", "closed")),
    ],
)
def test_the_next_pull_request_shows_its_own_change_alone(stage: Stage, tree: Path, how: str) -> None:
    git(tree, "push", "-q", "origin", "HEAD:refs/heads/develop")
    first = work(tree, "a = 2\n")
    base = "develop" if how == "elsewhere" else "main"
    assert ("base-not-default" in codes(apply(stage, first, base=base))) is (base == "develop")
    end_pull(stage, 2, how)
    again = apply(stage, first)
    assert (again.outcome, codes(again), again.writes) == (Outcome.UNCHANGED, {"revision-ended"}, 0)
    assert "#2 has this result" in again.findings[0].message
    second = work(tree, "b = 2\n", "src/b.py")
    stage.server.faults.add(Fault("lost-before", method="POST", path=r"/pulls$", times=99))
    assert apply(stage, second).outcome is Outcome.STOPPED
    stage.server.faults.clear()
    receipt = apply(stage, second)
    assert receipt.outcome is Outcome.APPLIED, receipt.error
    revision = receipt.details["revision"]
    pull = stage.get(f"/repos/{stage.repository}/pulls/{revision['id']}")
    assert (revision["branch"], pull["mergeable"], pull["draft"]) == ("accord/1-2", True, False)
    assert changed(stage, pull["number"]) == ["src/b.py"]
    assert "branch-over" in codes(receipt)
    assert apply(stage, second).writes == 0


@pytest.mark.parametrize("how", ["merge", pytest.param("squash", marks=pytest.mark.matrix)])
def test_a_commit_that_came_after_the_merge_gets_a_pull_request_of_its_own(
    stage: Stage, tree: Path, how: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    apply(stage, work(tree, "a = 2\n"))
    second, call = work(tree, "b = 2\n", "src/b.py"), Transport.call

    def merge_after(transport: Transport, method: str, path: str, **more: Any) -> Any:
        answer = call(transport, method, path, **more)
        if path.endswith("/pulls") and stage.get(f"/repos/{stage.repository}/pulls/2")["state"] == "open":
            end_pull(stage, 2, how)
        return answer

    monkeypatch.setattr(Transport, "call", merge_after)
    stage.server.faults.add(Fault("lost-before", method="PATCH", path=r"/pulls/2$", times=99))
    assert apply(stage, second).outcome is Outcome.STOPPED
    stage.server.faults.clear()
    receipt = apply(stage, second)
    assert (receipt.outcome, receipt.details["revision"]["branch"]) == (Outcome.APPLIED, "accord/1-2"), receipt.error
    assert changed(stage, 3) == ["src/b.py"]
    assert apply(stage, second).writes == 0


def test_work_goes_on_where_it_is_open_after_the_old_branch_was_deleted(stage: Stage, tree: Path) -> None:
    apply(stage, work(tree, "a = 2\n"))
    end_pull(stage, 2, "squash")
    second = work(tree, "b = 2\n", "src/b.py")
    assert apply(stage, second).details["revision"]["branch"] == "accord/1-2"
    git(tree, "push", "-q", "origin", ":accord/1")
    again = apply(stage, second)
    assert (again.outcome, again.writes) == (Outcome.UNCHANGED, 0)
    third = apply(stage, work(tree, "c = 2\n", "src/c.py"))
    assert (third.details["revision"]["branch"], third.details["revision"]["id"]) == ("accord/1-2", "3")


def test_a_number_that_a_person_took_is_left_to_the_person(stage: Stage, tree: Path) -> None:
    apply(stage, work(tree, "a = 2\n"))
    end_pull(stage, 2, "squash")
    (tree / "own.txt").write_text("own\n")
    git(tree, "checkout", "-q", "-b", "accord/1-2")
    git(tree, "add", "own.txt")
    git(tree, "commit", "-qm", "By hand")
    git(tree, "push", "-q", "origin", "accord/1-2")
    receipt = apply(stage, work(tree, "a = 3\n"))
    assert receipt.details["revision"]["branch"] == "accord/1-3"
    assert changed(stage, 3) == ["src/a.py"]


@pytest.mark.parametrize("other", [pytest.param("accord", marks=pytest.mark.matrix), "accord/1/notes"])
def test_a_branch_in_the_way_is_named_before_the_first_write(stage: Stage, tree: Path, other: str) -> None:
    result = work(tree, "a = 2\n")
    git(tree, "push", "-q", "origin", f"HEAD:refs/heads/{other}")
    for is_dry_run in (True, False):
        receipt = apply(stage, result, is_dry_run=is_dry_run)
        assert (receipt.outcome, receipt.writes) == (Outcome.REFUSED, 0)
        assert f"`{other}` is in the way" in str(receipt.error)


def test_a_prefix_of_the_configuration_leads_past_a_branch_in_the_way(stage: Stage, tree: Path) -> None:
    git(tree, "push", "-q", "origin", "HEAD:refs/heads/accord")
    for name in ("accord.yml", "accord/config.yml"):
        configure(tree, "branch_prefix: bots/accord\n", f".github/{name}")
    receipt = apply(stage, work(tree, "a = 2\n"))
    assert (receipt.outcome, receipt.details["revision"]["branch"]) == (Outcome.APPLIED, "bots/accord/1")
    (found,) = [finding.message for finding in receipt.findings if finding.code == "config-unread"]
    assert "`.github/accord/config.yml`" in found


def configure(tree: Path, text: str, name: str = ".github/accord/config.yml") -> None:
    """Push the configuration to the base."""
    git(tree, "checkout", "-q", "-B", "main", "origin/main")
    (tree / name).parent.mkdir(parents=True, exist_ok=True)
    (tree / name).write_text(text)
    git(tree, "add", ".github")
    git(tree, "commit", "-qm", "Configure")
    git(tree, "push", "-q", "origin", "main")


@pytest.mark.parametrize(
    ("before", "after"),
    [("bots", "bots/accord"), *(pytest.param(*each, marks=pytest.mark.matrix) for each in (("", "bots"), ("a/b", "")))],
)
def test_work_in_progress_goes_on_under_the_prefix_that_it_began_with(
    stage: Stage, tree: Path, before: str, after: str
) -> None:
    configure(tree, f"branch_prefix: {before}\n" if before else "version: 1\n")
    first, second = work(tree, "a = 2\n"), work(tree, "b = 2\n", "src/b.py")
    apply(stage, first)
    configure(tree, f"branch_prefix: {after}\n" if after else "version: 1  # and no prefix\n")
    again = apply(stage, first)
    assert (again.outcome, again.writes) == (Outcome.UNCHANGED, 0), again.error
    revision = apply(stage, second).details["revision"]
    assert (revision["branch"], revision["id"]) == (f"{before or 'accord'}/1", "2")
    assert len(stage.get(f"/repos/{stage.repository}/pulls", state="all")) == 1


@pytest.mark.parametrize(("prefix", "other"), [("bots/accord", "bots"), ("accord", "accord/1-2/x")])
def test_open_work_goes_on_where_it_is_though_a_branch_is_in_the_way_of_the_next_name(
    stage: Stage, tree: Path, prefix: str, other: str
) -> None:
    first, second = work(tree, "a = 2\n"), work(tree, "b = 2\n", "src/b.py")
    apply(stage, first)
    git(tree, "push", "-q", "origin", f"HEAD:refs/heads/{other}")
    configure(tree, f"branch_prefix: {prefix}\n")
    assert apply(stage, second).details["revision"]["branch"] == "accord/1"
    end_pull(stage, 2, "closed")
    refused = apply(stage, work(tree, "c = 2\n", "src/c.py"))
    assert (refused.outcome, f"`{other}` is in the way" in str(refused.error)) == (Outcome.REFUSED, True)


@pytest.mark.parametrize(
    "how", ["open", "deleted", *(pytest.param(how, marks=pytest.mark.matrix) for how in ("closed", "squash"))]
)
def test_a_result_belongs_to_its_own_pull_request_alone_after_an_earlier_one_is_reopened(
    stage: Stage, tree: Path, how: str
) -> None:
    apply(stage, work(tree, "a = 2\n"))
    end_pull(stage, 2, "closed")
    second = work(tree, "b = 2\n", "src/b.py")
    apply(stage, second)
    if how != "open":
        end_pull(stage, 3, how)
    stage.send("PATCH", f"/repos/{stage.repository}/pulls/2", state="open")
    again = apply(stage, second)
    assert (again.outcome, again.writes) == (Outcome.UNCHANGED, 0)
    assert ("revision-ended" in codes(again)) == (how != "open")
    third = apply(stage, work(tree, "c = 2\n", "src/c.py"))
    assert (third.details["revision"]["branch"], "branch-over" in codes(third)) == ("accord/1", False)


@pytest.mark.parametrize("how", ["closed", pytest.param("squash", marks=pytest.mark.matrix)])
def test_a_result_that_ended_stays_so_after_its_branch_is_deleted(stage: Stage, tree: Path, how: str) -> None:
    first = work(tree, "a = 2\n")
    apply(stage, first)
    end_pull(stage, 2, how)
    stage.send("DELETE", f"/repos/{stage.repository}/git/refs/heads/accord/1")
    planned, again = apply(stage, first, is_dry_run=True), apply(stage, first)
    assert (again.outcome, codes(again), codes(planned)) == (Outcome.UNCHANGED, {"revision-ended"}, {"revision-ended"})
    (found,) = again.findings
    assert ("--run-key" in found.hint, "new result" in found.hint) == (how == "closed", how != "closed")
    if how == "closed":
        revision = apply(stage, first, run_key="again").details["revision"]
        assert (revision["id"], changed(stage, 3)) == ("3", ["src/a.py"])


@pytest.mark.parametrize(
    ("how", "is_deleted"),
    [
        ("merge", True),
        *(
            pytest.param(*each, marks=pytest.mark.matrix)
            for each in (("squash", False), ("merge", False), ("rebase", True))
        ),
    ],
)
def test_changes_that_the_base_has_are_not_called_a_failure_under_another_run_key(
    stage: Stage, tree: Path, how: str, *, is_deleted: bool
) -> None:
    first = work(tree, "a = 2\n")
    apply(stage, first)
    end_pull(stage, 2, how)
    if is_deleted:
        stage.send("DELETE", f"/repos/{stage.repository}/git/refs/heads/accord/1")
    again, planned = (apply(stage, first, run_key="other", is_dry_run=is_dry) for is_dry in (False, True))
    assert (again.outcome, codes(again), again.writes) == (Outcome.UNCHANGED, {"revision-ended"}, 0), again.error
    (found,) = again.findings
    assert planned.findings == again.findings
    assert "`main` has these changes, and #2 was merged" in found.message


@pytest.mark.parametrize(
    "how", ["squash", *(pytest.param(how, marks=pytest.mark.matrix) for how in ("merge", "closed"))]
)
def test_ended_work_under_an_earlier_prefix_is_known(stage: Stage, tree: Path, how: str) -> None:
    first = work(tree, "a = 2\n")
    apply(stage, first)
    end_pull(stage, 2, how)
    git(tree, "fetch", "-q")
    configure(tree, "branch_prefix: bots\n")
    again = apply(stage, first)
    assert (again.outcome, codes(again), again.writes) == (Outcome.UNCHANGED, {"revision-ended"}, 0)
    receipt = apply(stage, work(tree, "b = 2\n", "src/b.py"))
    revision = receipt.details["revision"]
    assert (revision["branch"], changed(stage, int(revision["id"]))) == ("bots/1", ["src/b.py"])
    assert "branch-over" in codes(receipt)


def test_branches_of_people_with_the_number_of_an_item_are_not_its_work(stage: Stage, tree: Path) -> None:
    for name in ("feature/1", "1", "fix/1-2"):
        git(tree, "push", "-q", "origin", f"HEAD~0:refs/heads/{name}")
    (tree / "own.txt").write_text("own\n")
    git(tree, "add", "own.txt")
    git(tree, "commit", "-qm", "By hand")
    git(tree, "push", "-q", "origin", "HEAD:refs/heads/feature/1")
    pull = {"title": "Own", "head": "feature/1", "base": "main"}
    stage.send("POST", f"/repos/{stage.repository}/pulls", **pull, body="Closes #1")
    copied = {**pull, "head": "fix/1-2", "body": "<!-- accord:revision run=x item=1 -->"}
    git(tree, "push", "-q", "origin", "HEAD:refs/heads/fix/1-2")
    stage.send("POST", f"/repos/{stage.repository}/pulls", token="writer-token", **copied)
    assert apply(stage, work(tree, "a = 2\n")).details["revision"]["branch"] == "accord/1"


def test_a_label_of_a_loop_without_a_workflow_is_a_warning(stage: Stage, tree: Path) -> None:
    result, name = work(tree, "a = 2\n"), ".github/workflows/accord-keepalive.yml"
    assert "label-unheard" not in codes(apply(stage, result, is_dry_run=True))
    assert "label-unheard" in codes(apply(stage, result, is_dry_run=True, keepalive=True))
    configure(tree, "uses: a/b/.github/workflows/reusable-keepalive.yml@v0\n", name)
    assert "label-unheard" not in codes(apply(stage, result, is_dry_run=True, keepalive=True))


def test_an_approved_item_is_not_closed_before_its_pull_request_is_merged(stage: Stage, tree: Path) -> None:
    apply(stage, work(tree, "a = 5\n"))
    set_status(stage, "approved")
    with pytest.raises(BrokenContract, match="Its pull request #2 is open"):
        move_work_item(stage.adapter(), 1, "closed")
    stage.send("PATCH", f"/repos/{stage.repository}/pulls/2", state="closed")
    assert move_work_item(stage.adapter(), 1, "closed").is_change
