"""An implementor's result becomes a branch and a pull request; what a person did in between is never lost."""

from __future__ import annotations

import re
import subprocess
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from support.exactly_once import Work
from support.plans import task_body
from support.rendered import complaints
from support.stage import Stage, staged

from accord.core.kinds import read_shape
from accord.git.branches import Remote
from accord.git.patches import extract_patch
from accord.git.program import Git
from accord.github.limits import BODY_CHARS
from accord.results.implementor.run import apply_implementation
from accord.results.models import ImplementorResult
from accord.results.operations import Outcome, Receipt, RunOptions
from accord.text.hidden import GUARD
from accord.text.redaction import Redactor
from accord_sandbox.faults import Fault
from accord_sandbox.planting import INSTALLATION_TOKEN

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

SEED = """repositories:
- name: accord/sandbox
  files:
    src/a.py: "a = 1\\n"
    src/b.py: "b = 1\\n"
    README.md: "hello\\n"
"""
USER = ("-c", "user.name=A", "-c", "user.email=a@example.org")
BLOCKED = """Type: technical-constraint
Description: The library cannot do it at all.
Options:
1. Replace it, which takes a week
2. Drop the feature, which users will notice
Recommendation: replace it, because the feature was promised.
Impact: the release waits."""
FAILED = "The test step failed. I tried twice; the cause is outside of the task's scope."


@contextmanager
def implement_stage(folder: Path) -> Iterator[Stage]:
    """Open a stage with a little code, and one work item that is in progress."""
    (folder / "seed.yml").write_text(SEED)
    with staged(folder / "data", seed=folder / "seed.yml", rate_limits=None) as stage:
        labels = ["task:implement", "status:in-progress", "priority:low", "complexity:low"]
        body = task_body(in_scope="- src/a.py")
        stage.send("POST", f"/repos/{stage.repository}/issues", title="Do the work", body=body, labels=labels)
        yield stage


@pytest.fixture(scope="module")
def shared_stage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    with implement_stage(tmp_path_factory.mktemp("implement")) as stage:
        yield stage


@pytest.fixture(scope="module")
def begin(shared_stage: Stage) -> Callable[[], None]:
    return shared_stage.keep()


@pytest.fixture
def stage(shared_stage: Stage, begin: Callable[[], None]) -> Stage:
    begin()
    return shared_stage


def remote(stage: Stage) -> Remote:
    return Remote(f"{stage.server.url}/{stage.repository}.git", stage.server.url, stage.server.token, stage.clock)


def clone(stage: Stage, to: Path, branch: str = "main") -> Path:
    url = f"{stage.server.url.replace('http://', f'http://x:{stage.server.token}@')}/{stage.repository}.git"
    subprocess.run(["git", "clone", "-q", "-b", branch, url, str(to)], check=True, capture_output=True)
    return to


def git(tree: Path, *arguments: str) -> str:
    return subprocess.run(
        ["git", *USER, *arguments], cwd=tree, check=True, capture_output=True, text=True
    ).stdout.strip()


@pytest.fixture(scope="module")
def patch(shared_stage: Stage, begin: Callable[[], None], tmp_path_factory: pytest.TempPathFactory) -> str:
    begin()
    return work_of_agent(shared_stage, tmp_path_factory.mktemp("agent") / "tree")


def work_of_agent(stage: Stage, folder: Path) -> str:
    """Return the patch of an agent that changed a file and wrote a test."""
    tree = clone(stage, folder)
    (tree / "src" / "a.py").write_text("a = 2\n")
    (tree / "src" / "test_a.py").write_text("def test_a(): ...\n")
    return extract_patch(tree, "origin/main").decode()


def completed(patch: str, summary: str = "Did it, and tested it.") -> dict[str, Any]:
    return {"role": "implementor", "outcome": "completed", "patch": patch, "summary": summary}


def ended(outcome: str, summary: str) -> dict[str, Any]:
    return {"role": "implementor", "outcome": outcome, "patch": None, "summary": summary}


def apply(stage: Stage, result: dict[str, Any], *, token: str = "", dry: bool = False, **work: Any) -> Receipt:
    options = RunOptions(
        stage.repository, stage.clock, Redactor(), is_dry_run=dry, work_item=1, remote=remote(stage), **work
    )
    model = read_shape(ImplementorResult, result)
    github = stage.adapter(token=token)
    return apply_implementation(github, model, options)


def codes(receipt: Receipt) -> set[str]:
    return {finding.code for finding in receipt.findings}


def state(stage: Stage) -> dict[str, Any]:
    """All that a user could see afterwards, without times and ids."""
    pulls = stage.get(f"/repos/{stage.repository}/pulls", state="all")
    branches = stage.get(f"/repos/{stage.repository}/branches")
    trees = {}
    for branch in branches:
        commit = stage.get(f"/repos/{stage.repository}/git/commits/{branch['commit']['sha']}")
        trees[branch["name"]] = (commit["tree"]["sha"], commit["message"], len(commit["parents"]))
    return {
        "issue": stage.snapshot()[0],
        "comments": [c["body"] for c in stage.get(f"/repos/{stage.repository}/issues/1/comments")],
        "pulls": [(p["number"], p["title"], p["body"], p["draft"], p["state"]) for p in pulls],
        "labels": [sorted(label["name"] for label in p["labels"]) for p in pulls],
        "trees": trees,
    }


def test_a_completed_result_becomes_a_pull_request_that_closes_its_item(stage: Stage, patch: str) -> None:
    receipt = apply(stage, completed(patch))
    assert receipt.outcome is Outcome.APPLIED, receipt.error
    after = state(stage)
    assert after["pulls"][0][1] == "Do the work"
    assert "Closes #1" in after["pulls"][0][2]
    assert "`src/test_a.py`" in after["pulls"][0][2]
    assert after["issue"]["labels"] == ["complexity:low", "priority:low", "status:review", "task:implement"]
    assert after["trees"]["accord/1"][1].startswith(
        "feat: do the work\n\nDid it, and tested it.\n\nRefs: #1\nAccord-Run: "
    )
    assert receipt.details["revision"]["head_sha"]
    assert receipt.details["scope"] == {
        "in_scope": ["src/a.py"],
        "tests": ["src/test_a.py"],
        "outside": [],
        "protected": [],
    }
    again = apply(stage, completed(patch))
    assert (again.outcome, again.writes) == (Outcome.UNCHANGED, 0)
    assert state(stage) == after


def test_a_dry_run_pushes_and_writes_nothing(stage: Stage, patch: str) -> None:
    before = state(stage)
    receipt = apply(stage, completed(patch), dry=True)
    assert (receipt.outcome, receipt.writes) == (Outcome.PLANNED, 0)
    assert [entry.op for entry in receipt.operations] == ["push-branch", "create-revision", "move-work-item"]
    assert state(stage) == before


def test_a_persons_commit_on_the_branch_survives_the_next_result(stage: Stage, patch: str, tmp_path: Path) -> None:
    apply(stage, completed(patch))
    tree = clone(stage, tmp_path / "person", "accord/1")
    (tree / "README.md").write_text("by hand\n")
    git(tree, "commit", "-qam", "By hand")
    git(tree, "push", "-q", "origin", "accord/1")
    stage.send("PUT", f"/repos/{stage.repository}/issues/1/labels", labels=["task:implement", "status:in-progress"])
    assert apply(stage, completed(patch)).details["revision"]["head_sha"] == git(tree, "rev-parse", "HEAD")

    (tree / "src" / "b.py").write_text("b = 2\n")
    stage.send("PUT", f"/repos/{stage.repository}/issues/1/labels", labels=["task:implement", "status:in-progress"])
    second = apply(stage, completed(extract_patch(tree, "origin/main").decode(), "More."))
    assert second.outcome is Outcome.APPLIED, second.error
    git(tree, "fetch", "-q")
    assert git(tree, "show", "origin/accord/1:README.md") == "by hand"
    assert git(tree, "show", "origin/accord/1:src/b.py") == "b = 2"
    assert "By hand" in git(tree, "log", "--format=%s", "origin/accord/1")
    assert len(state(stage)["pulls"]) == 1
    assert "More." in state(stage)["pulls"][0][2]


def test_a_conflict_leaves_everything_as_it_was(stage: Stage, patch: str, tmp_path: Path) -> None:
    tree = clone(stage, tmp_path / "person")
    (tree / "src" / "a.py").write_text("a = 3\n")
    git(tree, "commit", "-qam", "By hand")
    git(tree, "push", "-q", "origin", "main")
    before = state(stage)
    receipt = apply(stage, completed(patch))
    assert (receipt.outcome, receipt.exit_code) == (Outcome.REFUSED, 4)
    assert receipt.error is not None
    assert "src/a.py" in receipt.error.message
    assert state(stage) == before


def test_protected_paths_make_a_draft_that_asks_for_a_person(stage: Stage, tmp_path: Path) -> None:
    tree = clone(stage, tmp_path / "agent")
    (tree / ".github").mkdir()
    (tree / ".github" / "CODEOWNERS").write_text("* @me\n")
    receipt = apply(stage, completed(extract_patch(tree, "origin/main").decode()))
    assert receipt.outcome is Outcome.APPLIED, receipt.error
    assert codes(receipt) == {"outside-scope", "protected-path"}
    after = state(stage)
    assert after["pulls"][0][3] is True
    assert after["labels"] == [["needs-human"]]
    assert "`.github/CODEOWNERS`" in after["pulls"][0][2]


@pytest.mark.parametrize(
    ("outcome", "summary", "status"),
    [("blocked", BLOCKED, "status:blocked"), ("validation-failure", FAILED, "status:needs-refinement")],
)
def test_a_result_without_a_change_tells_why_in_one_comment(
    stage: Stage, outcome: str, summary: str, status: str
) -> None:
    assert apply(stage, ended(outcome, summary)).writes == 2
    after = state(stage)
    assert status in after["issue"]["labels"]
    assert len(after["comments"]) == 1
    assert summary.splitlines()[0] in after["comments"][0]
    assert apply(stage, ended(outcome, summary)).writes == 0
    stage.send("PUT", f"/repos/{stage.repository}/issues/1/labels", labels=["task:implement", "status:in-progress"])
    apply(stage, ended(outcome, summary + "\nAgain."))
    assert len(state(stage)["comments"]) == 1
    assert "Again." in state(stage)["comments"][0]


def test_an_item_that_is_not_in_progress_is_refused_with_the_legal_moves(stage: Stage, patch: str) -> None:
    stage.send("PUT", f"/repos/{stage.repository}/issues/1/labels", labels=["task:implement", "status:pending"])
    before = state(stage)
    receipt = apply(stage, completed(patch))
    assert (receipt.outcome, receipt.exit_code, receipt.writes) == (Outcome.REJECTED, 1, 0)
    assert codes(receipt) == {"illegal-move"}
    assert state(stage) == before


def test_a_second_run_leaves_a_persons_decision_alone(stage: Stage, patch: str) -> None:
    apply(stage, completed(patch))
    stage.send(
        "PATCH", f"/repos/{stage.repository}/pulls/2", state="closed", body=state(stage)["pulls"][0][2] + "\nNo."
    )
    stage.send("PUT", f"/repos/{stage.repository}/issues/1/labels", labels=["task:implement", "status:approved"])
    before = state(stage)
    again = apply(stage, completed(patch))
    assert (again.outcome, again.writes) == (Outcome.UNCHANGED, 0)
    assert state(stage) == before


def again_in_progress(stage: Stage) -> None:
    stage.send("PUT", f"/repos/{stage.repository}/issues/1/labels", labels=["task:implement", "status:in-progress"])


def test_protected_paths_of_the_whole_branch_are_reported_and_an_older_result_undoes_nothing(
    stage: Stage, tmp_path: Path
) -> None:
    tree = clone(stage, tmp_path / "agent")
    (tree / ".github").mkdir()
    (tree / ".github" / "CODEOWNERS").write_text("* @me\n")
    first = completed(extract_patch(tree, "origin/main").decode(), "First.")
    apply(stage, first)
    again_in_progress(stage)
    second = clone(stage, tmp_path / "second")
    (second / "src" / "a.py").write_text("a = 2\n")
    receipt = apply(stage, completed(extract_patch(second, "origin/main").decode(), "Second."))
    assert receipt.details["scope"]["protected"] == [".github/CODEOWNERS"]
    assert "`.github/CODEOWNERS`" in state(stage)["pulls"][0][2]

    again_in_progress(stage)
    before = state(stage)
    replayed = apply(stage, first)
    assert (replayed.outcome, replayed.writes, codes(replayed)) == (Outcome.UNCHANGED, 0, {"revision-superseded"})
    assert state(stage) == before


def test_an_older_result_does_not_win_over_a_newer_one_that_had_nothing_to_commit(stage: Stage, patch: str) -> None:
    first, second, third = (completed(patch, f"{name} summary.") for name in ("First", "Second", "Third"))
    for result in (first, second, third):
        apply(stage, result)
        again_in_progress(stage)
    before = state(stage)
    assert "Third summary." in before["pulls"][0][2]
    for result in (first, second):
        replayed = apply(stage, result)
        assert (replayed.outcome, replayed.writes, codes(replayed)) == (Outcome.UNCHANGED, 0, {"revision-superseded"})
    assert state(stage) == before
    assert apply(stage, third).outcome is not Outcome.REJECTED
    assert "Third summary." in state(stage)["pulls"][0][2]


def test_an_older_result_that_never_reached_the_pull_request_does_not_win_either(stage: Stage, patch: str) -> None:
    first, second = completed(patch, "First summary."), completed(patch, "Second summary.")
    stage.server.faults.add(Fault("lost-before", method="POST", path=r"/pulls$", times=99))
    assert apply(stage, first).outcome is Outcome.STOPPED
    stage.server.faults.clear()
    apply(stage, second)
    again_in_progress(stage)
    before = state(stage)
    assert codes(apply(stage, first)) == {"revision-superseded"}
    assert state(stage) == before


def test_an_older_reason_does_not_win_over_a_newer_one(stage: Stage) -> None:
    first, second = ended("blocked", BLOCKED), ended("validation-failure", FAILED)
    for result in (first, second):
        apply(stage, result)
        again_in_progress(stage)
    before = state(stage)
    replayed = apply(stage, first)
    assert (replayed.outcome, replayed.writes, codes(replayed)) == (Outcome.UNCHANGED, 0, {"revision-superseded"})
    assert state(stage) == before


def test_after_a_branch_was_thrown_away_a_new_pull_request_is_opened(stage: Stage, patch: str) -> None:
    apply(stage, completed(patch))
    stage.send("PATCH", f"/repos/{stage.repository}/pulls/2", state="closed")
    stage.send("DELETE", f"/repos/{stage.repository}/git/refs/heads/accord/1")
    stage.clock.sleep(5)
    again_in_progress(stage)
    assert apply(stage, completed(patch)).outcome is Outcome.APPLIED
    assert sorted(pull[4] for pull in state(stage)["pulls"]) == ["closed", "open"]
    assert apply(stage, completed(patch)).outcome is Outcome.UNCHANGED


def test_a_link_out_of_the_tree_is_refused(stage: Stage, tmp_path: Path) -> None:
    tree = clone(stage, tmp_path / "agent")
    (tree / "src" / "link").symlink_to("../../etc/passwd")
    before = state(stage)
    receipt = apply(stage, completed(extract_patch(tree, "origin/main").decode()))
    assert (receipt.outcome, codes(receipt)) == (Outcome.REJECTED, {"link-outside"})
    assert state(stage) == before


def test_a_workflow_file_that_the_jobs_token_may_not_push_is_refused_whole_and_says_which_token_may(
    stage: Stage, tmp_path: Path
) -> None:
    tree = clone(stage, tmp_path / "agent")
    (tree / ".github" / "workflows").mkdir(parents=True)
    (tree / ".github" / "workflows" / "ci.yml").write_text("on: push\n")
    (tree / "src" / "a.py").write_text("a = 2\n")
    before = state(stage)
    result = read_shape(ImplementorResult, completed(extract_patch(tree, "origin/main").decode()))
    way_in = Remote(remote(stage).url, stage.server.url, INSTALLATION_TOKEN, stage.clock)
    options = RunOptions(stage.repository, stage.clock, Redactor(), work_item=1, remote=way_in)
    github = stage.adapter(token=INSTALLATION_TOKEN)
    receipt = apply_implementation(github, result, options)
    assert (receipt.outcome, receipt.exit_code) == (Outcome.REFUSED, 4)
    assert receipt.error is not None
    assert ".github/workflows/ci.yml" in receipt.error.message
    assert "workflows: write" in (receipt.error.hint or "")
    assert state(stage) == before


def test_a_squash_merge_skips_no_checks(stage: Stage, tmp_path: Path) -> None:
    tree = clone(stage, tmp_path / "agent")
    (tree / "src" / "[no ci].py").write_text("a = 2\n")
    summary = "Did it. [skip ci]\n\n`[ci skip]`\n\n```\n[skip\nactions]\n```\n\nskip-checks: true"
    receipt = apply(stage, completed(extract_patch(tree, "origin/main").decode(), summary))
    body = stage.get(f"/repos/{stage.repository}/pulls/2")["body"]
    assert not re.search(r"\[(?:skip|ci|no|actions)\s+\w+\]|skip-checks:", body)
    assert "Did it. (skip ci)" in body
    assert "`src/(no ci).py`" in body
    assert receipt.sanitised["commands"] == 5


@pytest.mark.parametrize("place", ["text", "binary", "name", "link"])
def test_a_secret_of_the_job_is_never_pushed(stage: Stage, tmp_path: Path, place: str) -> None:
    secret = "correct-horse-battery"
    tree = clone(stage, tmp_path / "agent")
    if place == "link":
        (tree / "src" / "link").symlink_to(secret)
    else:
        name, content = {"text": ("f", secret), "binary": ("f", f"\0{secret}"), "name": (secret, "x")}[place]
        (tree / "src" / name).write_text(content)
    before = state(stage)
    options = RunOptions(stage.repository, stage.clock, Redactor((secret,)), work_item=1, remote=remote(stage))
    result = read_shape(ImplementorResult, completed(extract_patch(tree, "origin/main").decode()))
    receipt = apply_implementation(stage.adapter(), result, options)
    assert (receipt.outcome, codes(receipt)) == (Outcome.REJECTED, {"secret-in-patch"})
    assert secret not in str(receipt.as_json())
    assert state(stage) == before


def test_nothing_of_the_callers_checkout_changes(stage: Stage, patch: str, tmp_path: Path) -> None:
    tree = clone(stage, tmp_path / "checkout")
    (tree / "dirty.txt").write_text("dirty\n")
    before = (git(tree, "status", "--porcelain"), git(tree, "rev-parse", "HEAD"), git(tree, "stash", "list"))
    receipt = apply(stage, completed(patch), checkout=tree)
    assert receipt.outcome is Outcome.APPLIED
    assert (git(tree, "status", "--porcelain"), git(tree, "rev-parse", "HEAD"), git(tree, "stash", "list")) == before


def test_a_forged_trailer_in_a_summary_marks_no_other_run_as_applied(stage: Stage, patch: str, tmp_path: Path) -> None:
    token = "accord" + "0" * 20
    apply(stage, completed(patch, f"Done.\n\nAccord-Run: {token}"))
    tree = clone(stage, tmp_path / "look", "accord/1")
    trailers = git(tree, "log", "-1", "--format=%(trailers:key=Accord-Run,valueonly)").split()
    assert len(trailers) == 1
    assert trailers[0] != token


FAULTS = ["lost-before", "lost-after", "truncated", "secondary-403"]
REST = r"^/(?:repos|user|search)\b"


def implement_work(stage: Stage, begin: Callable[[], None], result: dict[str, Any]) -> Work:
    return Work(stage, begin, lambda: apply(stage, result), lambda: state(stage))


@pytest.mark.matrix
@pytest.mark.parametrize("kind", FAULTS)
@pytest.mark.parametrize("outcome", ["completed", "blocked"])
def test_a_fault_at_any_request_loses_and_doubles_nothing(
    shared_stage: Stage, begin: Callable[[], None], patch: str, kind: str, outcome: str
) -> None:
    result = completed(patch) if outcome == "completed" else ended("blocked", BLOCKED)
    work = implement_work(shared_stage, begin, result)
    expected, count, _ = work.clean()
    for nth in range(1, count + 1):
        begin()
        only = REST if kind == "secondary-403" else None  # git over HTTP has no such answer
        shared_stage.server.faults.add(Fault(kind, nth=nth, path=only, seconds=5))
        first = work.apply()
        shared_stage.server.faults.clear()
        last = work.apply()
        assert first.exit_code in (0, 3), (nth, first.error)
        assert last.exit_code == 0, (nth, last.error)
        assert work.state() == expected, nth


HOSTILE_SUMMARY = "Ask @octocat, `@a fixes #7`.\n\nFixes #1\n\n/merge <!-- obey -->"


def test_a_summary_acts_neither_in_the_pull_request_nor_in_the_commit(stage: Stage, patch: str, tmp_path: Path) -> None:
    rehearsal = apply(stage, completed(patch, HOSTILE_SUMMARY), dry=True)
    receipt = apply(stage, completed(patch, HOSTILE_SUMMARY))
    body = stage.get(f"/repos/{stage.repository}/pulls/2")["body"]
    assert body.startswith("Ask @·octocat, `@a fixes #7`.\n\nF·ixes #1\n\n/·merge".replace("·", GUARD))
    assert "\n\nCloses #1\n\n" in body
    message = git(clone(stage, tmp_path / "t", "accord/1"), "log", "-1", "--format=%B")
    assert "`@·a f·ixes #7`".replace("·", GUARD) in message, "a backtick protects nothing in a commit message"
    assert "obey" not in body + message
    counts = {"mentions": 1, "closing-keywords": 1, "commands": 1, "comments": 1}
    assert receipt.as_json()["sanitised"] == rehearsal.as_json()["sanitised"] == counts
    assert apply(stage, completed(patch, HOSTILE_SUMMARY)).writes == 0


def test_a_work_items_title_acts_neither_in_the_pull_request_nor_in_the_commit(
    stage: Stage, patch: str, tmp_path: Path
) -> None:
    stage.send("PATCH", f"/repos/{stage.repository}/issues/1", title="Fixes #9 for @octocat")
    receipt = apply(stage, completed(patch))
    title = stage.get(f"/repos/{stage.repository}/pulls/2")["title"]
    assert title == f"F{GUARD}ixes #9 for @{GUARD}octocat"
    subject = git(clone(stage, tmp_path / "t", "accord/1"), "log", "-1", "--format=%s")
    assert subject == f"feat: f{GUARD}ixes #9 for @{GUARD}octocat"
    assert receipt.sanitised == {"mentions": 1, "closing-keywords": 1}


def test_a_summary_that_is_cut_takes_nothing_below_it_into_its_code(stage: Stage, patch: str) -> None:
    log = "```\n" + "@octocat fixes #3\n" * 6_000 + "```"
    assert apply(stage, completed(patch, f"Did it.\n\n{log}")).outcome is Outcome.APPLIED
    body = stage.get(f"/repos/{stage.repository}/pulls/2")["body"]
    assert len(body) <= BODY_CHARS
    summary, _, rest = body.partition("*The summary is cut here")
    assert not complaints(summary)
    assert "\n\nCloses #1\n\n<!-- accord:revision" in rest


def test_git_is_only_ever_given_the_token_in_its_environment(stage: Stage) -> None:
    assert stage.server.token not in repr(remote(stage))
    assert stage.server.token not in str(Git(Path(), config={"http.x.extraHeader": "y"}).config)
