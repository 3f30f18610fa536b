"""An agent's changes reach their branch as one commit, exactly once, and nothing else is touched."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest
from support.clocks import ManualClock
from support.stage import START
from support.workshop import TOKEN, Agent, Killed, Workshop, git, killed_after, publication_of

from accord.engine.operations import OperationLog
from accord.git.branches import Remote
from accord.git.leaving_out import ChangeLimits
from accord.runner.outputs import Published
from accord.runner.publish import Publication, publish_patch
from accord.text.redaction import Redactor
from accord_sandbox.faults import Fault

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime

    from accord.github.client import GitHub

pytestmark = pytest.mark.slow
RECEIVE = r"git-receive-pack$"


class Interrupted(ManualClock):
    """A clock on which, each time a commit is made, something happens first; asked for as long as there is more."""

    def __init__(self, *events: Callable[[], object]) -> None:
        super().__init__(START)
        self.events = list(events)

    def now(self) -> datetime:
        if self.events:
            self.events.pop(0)()
        return super().now()


def publication(agent: Agent, **changed: Any) -> Publication:
    return publication_of(agent.patch(), agent.base, **changed)


def publish_new(
    workshop: Workshop,
    agent: Agent,
    path: str = "new.txt",
    text: str = "new\n",
    *,
    remote: Remote | None = None,
    github: GitHub | None = None,
    **changed: Any,
) -> Published:
    """Write one file and publish it."""
    (agent.tree / path).parent.mkdir(parents=True, exist_ok=True)
    (agent.tree / path).write_text(text)
    return publish_patch(remote or workshop.remote(), publication(agent, **changed), github)


def fetched(agent: Agent, *arguments: str) -> str:
    """Fetch the branches, and return the output of a git command."""
    git(agent.tree, "fetch", "-q")
    return git(agent.tree, *arguments)


def kind(published: Published) -> str:
    return published.failure.kind if published.failure else ""


def detail(published: Published) -> str:
    return published.failure.detail if published.failure else ""


def test_the_changes_and_the_agents_commits_become_one_commit(workshop: Workshop, agent: Agent) -> None:
    (agent.tree / "src" / "a.py").write_text("a = 2\n")
    git(agent.tree, "commit", "-qam", "The agent's own")
    (agent.tree / "new.txt").write_text("new\n")
    published = publish_patch(workshop.remote(), publication(agent))
    assert published == Published(workshop.tip(), 2)
    tree = fetched(agent, "rev-parse", "origin/feature^{tree}")
    assert workshop.commits()[0] == f"feat: do the work\n\nDid it.\n\nAccord-Run: {TOKEN}\nAccord-Tree: {tree}"
    assert fetched(agent, "rev-parse", "origin/feature^") == agent.base


def test_a_run_published_twice_makes_one_commit(workshop: Workshop, agent: Agent) -> None:
    first = publish_new(workshop, agent)
    workshop.person_commits("README.md", "by hand\n")
    tip = workshop.tip()
    assert (publish_patch(workshop.remote(), publication(agent)), workshop.tip()) == (first, tip)


def test_a_copied_trailer_hides_no_work(workshop: Workshop, agent: Agent) -> None:
    tree = workshop.clone("stranger")
    for change in ("--allow-empty", "-a"):
        (tree / "src" / "b.py").write_text("b = 'mine'\n")
        git(tree, "commit", "-q", change, "-m", f"feat: do the work\n\nAccord-Run: {TOKEN}")
    git(tree, "push", "-q", "origin", "feature")
    forged = workshop.tip()
    published = publish_new(workshop, agent, "src/a.py", "a = 2\n")
    assert published == Published(workshop.tip(), 1)
    assert workshop.tip() != forged
    assert publish_patch(workshop.remote(), publication(agent)) == published


def test_another_run_with_the_same_changes_finds_them_there(workshop: Workshop, agent: Agent) -> None:
    publish_new(workshop, agent)
    tip = workshop.tip()
    assert publish_patch(workshop.remote(), publication(agent, token="accordother")) == Published()
    assert workshop.tip() == tip


def test_a_race_that_is_lost_twice_is_won_the_third_time(workshop: Workshop, agent: Agent) -> None:
    files = {"README.md": "first\n", "mine.txt": "second\n"}
    clock = Interrupted(*(partial(workshop.person_commits, path, text) for path, text in files.items()))
    published = publish_new(workshop, agent, "src/a.py", "a = 2\n", remote=workshop.remote(clock=clock))
    assert published == Published(workshop.tip(), 1)
    assert [text.split("\n")[0] for text in workshop.commits()][:3] == ["feat: do the work", "By hand", "By hand"]
    assert fetched(agent, "show", "origin/feature:mine.txt") == "second"
    assert git(agent.tree, "show", "origin/feature:src/a.py") == "a = 2"


def test_a_branch_that_never_rests_is_given_up_as_it_is(
    workshop: Workshop, agent: Agent, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("accord.runner.publish._PAUSES_SECONDS", (1.0,))
    clock = Interrupted(*(partial(workshop.person_commits, "README.md", f"{i}\n") for i in range(2)))
    published = publish_new(workshop, agent, "src/a.py", "a = 2\n", remote=workshop.remote(clock=clock))
    assert (kind(published), set(workshop.commits()[:2])) == ("push-conflict", {"By hand"})


def test_a_branch_that_was_forced_elsewhere_still_gets_the_changes(workshop: Workshop, agent: Agent) -> None:
    tree = workshop.clone("rewriter", "main")
    (tree / "README.md").write_text("rewritten\n")
    git(tree, "commit", "-qam", "Rewritten")
    git(tree, "push", "-q", "--force", "origin", "HEAD:feature")
    published = publish_new(workshop, agent, "src/a.py", "a = 2\n")
    assert (published, workshop.commits()[1]) == (Published(workshop.tip(), 1), "Rewritten")


def test_every_kind_of_file_arrives_byte_for_byte(workshop: Workshop, agent: Agent) -> None:
    tree = agent.tree
    (tree / "bin.dat").write_bytes(bytes(range(256)) * 20)
    (tree / "naïve 日本.txt").write_text("ü\n", encoding="utf-8")
    (tree / "latin.txt").write_bytes(b"caf\xe9\n")
    (tree / "crlf.txt").write_bytes(b"a\r\nb")
    (tree / "empty").write_bytes(b"")
    (tree / "run.sh").write_text("#!/bin/sh\n")
    (tree / "run.sh").chmod(0o755)
    (tree / "src" / "b.py").rename(tree / "moved b.py")
    (tree / "src" / "a.py").chmod(0o755)
    (tree / "link").symlink_to("README.md")
    published = publish_patch(workshop.remote(), publication(agent))
    assert published.files_changed == 9  # a renamed file is one
    git(tree, "add", "-A")
    assert fetched(agent, "rev-parse", "origin/feature^{tree}") == git(tree, "write-tree")


def test_nothing_of_the_callers_checkout_changes(workshop: Workshop, agent: Agent) -> None:
    (agent.tree / "new.txt").write_text("new\n")

    def seen() -> tuple[str, ...]:
        return tuple(git(agent.tree, *arguments.split()) for arguments in ("status --porcelain", "log", "show-ref"))

    before = seen()
    assert publish_patch(workshop.remote(), publication(agent, lender=agent.tree)).commit_sha
    assert seen() == before


@pytest.mark.parametrize("base_ref", ["feature", ""])
def test_a_branch_that_is_not_there_yet_begins_where_the_agent_did(
    workshop: Workshop, agent: Agent, base_ref: str
) -> None:
    (agent.tree / "new.txt").write_text("new\n")
    work = publication(agent, pr_ref="agents/new", base_ref=base_ref, author="Robo <robo@example.org>")
    published = publish_patch(workshop.remote(), work)
    assert published == Published(workshop.tip("agents/new"), 1)
    assert fetched(agent, "log", "-1", "--format=%an <%ae>", "origin/agents/new") == work.options.author
    workshop.person_commits("mine.txt", "mine\n", branch="agents/new")
    assert publish_patch(workshop.remote(), work) == published
    assert fetched(agent, "rev-parse", f"{published.commit_sha}^") == agent.base


night = pytest.mark.matrix


@pytest.mark.parametrize(
    "base_ref", [*(pytest.param(name, marks=night) for name in ("", "refs/heads/main")), "origin/main", "gone"]
)
def test_a_new_branch_for_a_detached_commit_begins_at_the_base(workshop: Workshop, agent: Agent, base_ref: str) -> None:
    git(agent.tree, "checkout", "-q", "--detach", "origin/main")
    git(agent.tree, "commit", "-q", "--allow-empty", "-m", "Merge of a pull request, as Actions checks it out")
    base = git(agent.tree, "rev-parse", "HEAD")
    published = publish_new(workshop, Agent(agent.tree, base), pr_ref="fresh", base_ref=base_ref)
    assert published == Published(workshop.tip("fresh"), 1)
    assert fetched(agent, "rev-parse", "origin/fresh^") == git(agent.tree, "rev-parse", "origin/main")


def test_a_push_to_what_is_not_a_branch_is_refused_before_any_request(workshop: Workshop, agent: Agent) -> None:
    assert kind(publish_new(workshop, agent, pr_ref="refs/pull/2/merge")) == "push-refused"
    assert workshop.stage.server.requests == []


@pytest.mark.parametrize(
    ("end", "branch"),
    [
        ("squash", "feature-2"),
        ("merge", "feature-2"),
        ("deleted", "feature-2"),
        pytest.param("closed", "feature-2", marks=pytest.mark.matrix),
        ("reopened", "feature-2"),
        pytest.param("", "feature", marks=pytest.mark.matrix),
    ],
)
def test_a_branch_whose_pull_requests_are_over_gets_no_more_commits(
    workshop: Workshop, agent: Agent, end: str, branch: str
) -> None:
    stage, github = workshop.stage, workshop.stage.adapter()
    publish_new(workshop, agent, "first.txt")
    pulls = f"/repos/{stage.repository}/pulls"
    (number,) = (one["number"] for one in stage.get(pulls) if one["head"]["ref"] == "feature")
    if end in ("closed", "reopened"):
        stage.send("PATCH", f"{pulls}/{number}", state="closed")
    elif end:
        stage.send("PUT", f"{pulls}/{number}/merge", merge_method="squash" if end == "deleted" else end)
    git(agent.tree, "fetch", "-q")
    git(agent.tree, "reset", "-q", "--hard", "origin/feature")
    if end == "deleted":
        git(agent.tree, "push", "-q", "origin", ":feature")
    again = Agent(agent.tree, git(agent.tree, "rev-parse", "HEAD"))
    published = publish_new(workshop, again, "second.txt", github=github, token="accordtwo")
    assert (published.commit_sha, published.moved_to) == (
        workshop.tip(branch),
        branch if end else "",
    )
    if end == "reopened":
        stage.send("PATCH", f"{pulls}/{number}", state="open")
    once_more = publish_patch(workshop.remote(), publication(again, token="accordtwo"), github)
    assert (once_more.commit_sha, once_more.moved_to) == (published.commit_sha, published.moved_to)
    changed = fetched(agent, "diff", "--name-only", f"origin/main...origin/{branch}").split()
    assert changed == (["second.txt"] if end else changed)


@pytest.mark.parametrize("name", ["feature-2026", "feature-3"])
def test_a_branch_that_was_not_made_in_place_of_the_runs_does_not_count(
    workshop: Workshop, agent: Agent, name: str
) -> None:
    before, github = workshop.tip("feature"), workshop.stage.adapter()
    publish_new(workshop, agent, github=github)
    fetched(agent, "push", "-q", "origin", f"origin/feature:refs/heads/{name}")
    git(agent.tree, "push", "-q", "--force", "origin", f"{before}:refs/heads/feature")
    again = publish_patch(workshop.remote(), publication(agent), github)
    assert (again.commit_sha, again.moved_to) == (workshop.tip("feature"), "")
    assert workshop.tip("feature") != before


def test_the_default_branch_goes_on_after_it_was_merged_elsewhere(workshop: Workshop, agent: Agent) -> None:
    git(agent.tree, "push", "-q", "origin", "origin/main:refs/heads/release")
    workshop.person_commits("README.md", "by hand\n", "main")
    stage, pulls = workshop.stage, f"/repos/{workshop.stage.repository}/pulls"
    made = stage.send("POST", pulls, title="Release", head="main", base="release")
    stage.send("PUT", f"{pulls}/{made['number']}/merge", merge_method="merge")
    published = publish_new(workshop, agent, pr_ref="main", github=stage.adapter())
    assert (published.commit_sha, published.moved_to) == (workshop.tip("main"), "")


def test_a_new_branch_begins_at_no_commit_that_is_on_no_branch(workshop: Workshop, agent: Agent) -> None:
    """GitHub hands out the commits of forks too, and a forged folder of a run may name one."""
    git(agent.tree, "checkout", "-q", "--detach", "origin/main")
    (agent.tree / "forged.txt").write_text("forged\n")
    base = agent.commit("Of a fork")
    git(agent.tree, "push", "-q", "origin", "HEAD:refs/heads/forged")
    git(agent.tree, "push", "-q", "origin", ":forged")
    published = publish_new(workshop, Agent(agent.tree, base), pr_ref="fresh")
    assert published == Published(workshop.tip("fresh"), 1)
    assert fetched(agent, "rev-parse", "origin/fresh^") == git(agent.tree, "rev-parse", "origin/main")


@pytest.mark.parametrize(("ref", "other"), [("feature/more", "feature"), ("agents", "agents/new")])
def test_a_branch_in_the_way_is_named_at_once(workshop: Workshop, agent: Agent, ref: str, other: str) -> None:
    git(agent.tree, "push", "-q", "origin", "HEAD:refs/heads/agents/new")
    for log in (OperationLog(is_dry_run=True), OperationLog()):
        published = publish_new(workshop, agent, pr_ref=ref, log=log)
        assert (kind(published), f"`{other}` is in the way" in detail(published)) == ("push-refused", True)


@pytest.mark.parametrize(
    ("token", "branch", "path", "said"),
    [
        ("reader", "feature", "new.txt", "contents: write"), ("wrong", "feature", "new.txt", "contents: read"),
        ("", "strict", "new.txt", "protection rule"), ("job", "feature", ".github/workflows/ci.yml", "workflow file"),
    ],
)  # fmt: skip
def test_a_push_that_github_forbids_is_refused_with_the_reason(
    workshop: Workshop, agent: Agent, token: str, branch: str, path: str, said: str
) -> None:
    before = workshop.tip(branch)
    remote = workshop.remote(token)
    published = publish_new(workshop, agent, path, remote=remote, pr_ref=branch, allows_steering=True)
    assert kind(published) == "push-refused"
    assert said in detail(published)
    assert workshop.tip(branch) == before


@pytest.mark.parametrize(
    "patch",
    [
        pytest.param(b"nonsense\n", marks=night),
        b"diff --git a/x b/x\n--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n",
        b"diff --git a/.git/x b/.git/x\nnew file mode 100755\n--- /dev/null\n+++ b/.git/x\n@@ -0,0 +1 @@\n+x\n",
        pytest.param(b"--- /dev/null\n+++ /etc/x\n@@ -0,0 +1 @@\n+x\n", marks=night),
    ],
    ids=["no patch", "cut", "into git's own folder", "absolute"],
)
def test_a_damaged_or_forbidden_patch_is_refused(workshop: Workshop, agent: Agent, patch: bytes) -> None:
    assert kind(publish_patch(workshop.remote(), publication(agent, patch=patch))) == "changes-unreadable"
    assert workshop.tip() == agent.base


@pytest.mark.parametrize("limits", [ChangeLimits(files=1), ChangeLimits(bytes=5)])
def test_changes_beyond_the_limits_are_not_pushed(workshop: Workshop, agent: Agent, limits: ChangeLimits) -> None:
    (agent.tree / "more.txt").write_text("correct-horse\n")
    published = publish_new(workshop, agent, limits=limits, redact=Redactor(["correct-horse"]))
    assert kind(published) == "changes-too-large"
    assert "--max-" in detail(published)
    assert workshop.tip() == agent.base


def test_a_server_that_is_away_is_unreachable(workshop: Workshop, agent: Agent) -> None:
    nowhere = Remote("http://127.0.0.1:1/a/b.git", "http://127.0.0.1:1", "token", workshop.stage.clock)
    published = publish_new(workshop, agent, remote=nowhere)
    assert kind(published) == "push-unreachable"
    assert "127.0.0.1:1" in detail(published)


@pytest.mark.parametrize("fault", ["lost-before", "lost-after", pytest.param("error-500-after", marks=night)])
def test_a_push_whose_answer_is_lost_is_made_once(workshop: Workshop, agent: Agent, fault: str) -> None:
    workshop.stage.server.faults.add(Fault(fault, times=2, method="POST", path=RECEIVE))
    published = publish_new(workshop, agent)
    workshop.stage.server.faults.clear()
    assert published == Published(workshop.tip(), 1)
    assert len([text for text in workshop.commits() if TOKEN in text]) == 1


OBJECTS = ("/git/blobs", "/git/trees", "/git/commits")


@pytest.mark.parametrize(("token", "writes"), [("", ["push"]), ("job", [*OBJECTS, "/git/refs/heads/feature"])])
def test_a_run_that_is_killed_after_any_write_makes_one_commit(
    workshop: Workshop, agent: Agent, token: str, writes: list[str]
) -> None:
    (agent.tree / "new.dat").write_bytes(b"\0new")
    remote, github = workshop.remote(token), workshop.stage.adapter(token=token)
    for write in writes:
        assert workshop.tip() == agent.base
        with killed_after(write), pytest.raises(Killed):
            publish_patch(remote, publication(agent), github)
    tip = workshop.tip()
    assert publish_patch(remote, publication(agent), github) == Published(tip, 1)
    assert (workshop.tip(), [TOKEN in text for text in workshop.commits()].count(True)) == (tip, 1)


def test_the_commit_of_a_bot_is_made_by_github_and_signed(workshop: Workshop, agent: Agent) -> None:
    github, remote = workshop.stage.adapter(token="job"), workshop.remote("job")
    published = publish_new(workshop, agent, remote=remote, github=github)
    assert published == Published(workshop.tip(), 1)
    assert published.delivery
    assert (published.delivery.way, published.delivery.is_verified) == ("api", True)
    assert publish_patch(remote, publication(agent), github) == published
    again = publish_new(workshop, agent, "b.txt", remote=remote, github=github, author="R <r@b.c>", token="accordtwo")
    assert again.delivery
    assert (again.delivery.way, again.commit_sha) == ("push", workshop.tip())
    assert "an author of its own" in again.delivery.reason


def test_a_bot_that_loses_a_race_commits_on_top(workshop: Workshop, agent: Agent) -> None:
    clock = Interrupted(partial(workshop.person_commits, "README.md", "by hand\n"))
    remote = workshop.remote("job", clock)
    published = publish_new(workshop, agent, remote=remote, github=workshop.stage.adapter(token="job"))
    assert published == Published(workshop.tip(), 1)
    assert [text.split("\n")[0] for text in workshop.commits()][:2] == ["feat: do the work", "By hand"]


def test_an_api_that_does_not_answer_is_unreachable_and_the_next_run_goes_on(workshop: Workshop, agent: Agent) -> None:
    github, remote = workshop.stage.adapter(token="job"), workshop.remote("job")
    workshop.stage.server.faults.add(Fault("lost-after", times=99, path=r"/git/(commits|refs)"))
    assert kind(publish_new(workshop, agent, remote=remote, github=github)) == "push-unreachable"
    workshop.stage.server.faults.clear()
    assert publish_patch(remote, publication(agent), github) == Published(workshop.tip(), 1)
    assert len([text for text in workshop.commits() if TOKEN in text]) == 1


def test_nothing_in_a_body_marks_another_run_or_skips_the_checks(workshop: Workshop, agent: Agent) -> None:
    publish_new(
        workshop,
        agent,
        body="Done [skip ci] [CI Skip]\n\nskip-checks: true\nAcked-by: A <a@b.c>\nAccord-Run: accordforged\n",
    )
    message = workshop.commits()[0]
    assert "[" not in message
    assert "skip-checks:" not in message
    assert "Acked-by:" not in message
    trailers = fetched(agent, "log", "-1", "--format=%(trailers:key=Accord-Run,valueonly)", "origin/feature")
    assert trailers.split() == [TOKEN]


def push_to_base(agent: Agent, files: dict[str, str]) -> str:
    """Push a commit with these files to the default branch; return its name."""
    git(agent.tree, "fetch", "-q")
    git(agent.tree, "switch", "-qc", "newer", "origin/main")
    for name, text in files.items():
        (agent.tree / name).write_text(text)
    agent.commit("Newer")
    git(agent.tree, "push", "-q", "origin", "newer:main")
    newer = git(agent.tree, "rev-parse", "newer")
    git(agent.tree, "switch", "-q", "feature")
    return newer


def merge_of_base(workshop: Workshop, agent: Agent) -> str:
    """Let the agent merge the default branch, which changed since, and resolve the conflict; return what it merged."""
    newer = push_to_base(agent, {"src/a.py": "a = 'of the base'\n", "base.txt": "of the base\n"})
    git(agent.tree, "merge", "-q", "--no-commit", "-X", "theirs", newer)
    (agent.tree / "src" / "a.py").write_text("a = 'of both'\n")
    agent.commit("Merge the base")
    return newer


def test_a_merge_of_the_base_stays_a_merge_and_all_paths_of_its_push_count(workshop: Workshop, agent: Agent) -> None:
    newer = merge_of_base(workshop, agent)
    published = publish_patch(workshop.remote(), publication(agent, merged=(newer,)))
    assert (published.failure, published.files_changed, published.flattened) == (None, 2, ())
    assert fetched(agent, "log", "-1", "--format=%P", "origin/feature").split() == [agent.base, newer]
    assert git(agent.tree, "rev-parse", "origin/feature^{tree}") == git(agent.tree, "rev-parse", "HEAD^{tree}")
    assert publish_patch(workshop.remote(), publication(agent, merged=(newer,))) == replace(published, delivery=None)


def test_a_merge_of_the_base_stays_one_on_a_branch_that_is_new(workshop: Workshop, agent: Agent) -> None:
    git(agent.tree, "fetch", "-q")
    git(agent.tree, "switch", "-qc", "brand-new", "origin/main")
    begun = Agent(agent.tree, git(agent.tree, "rev-parse", "HEAD"))
    newer = workshop.person_commits("base.txt", "of the base\n", "main")
    (agent.tree / "own.txt").write_text("own\n")
    begun.commit("Own")
    git(agent.tree, "fetch", "-q")
    git(agent.tree, "merge", "-q", "origin/main")
    patch = git(agent.tree, "diff", "--binary", "--full-index", begun.base, "HEAD").encode() + b"\n"
    work = publication(begun, patch=patch, pr_ref="refs/heads/brand-new", base_ref="main", merged=(newer,))
    published = publish_patch(workshop.remote(), work)
    assert (published.failure, published.files_changed, published.flattened) == (None, 2, ())
    assert fetched(agent, "log", "-1", "--format=%P", "origin/brand-new").split() == [begun.base, newer]


def test_a_merge_of_another_commit_than_the_base_is_named(workshop: Workshop, agent: Agent) -> None:
    git(agent.tree, "switch", "-qc", "other", agent.base)
    (agent.tree / "other.txt").write_text("other\n")
    agent.commit("Other")
    git(agent.tree, "push", "-q", "origin", "other")
    other = git(agent.tree, "rev-parse", "other")
    git(agent.tree, "switch", "-q", "feature")
    git(agent.tree, "merge", "-q", "--no-ff", "-m", "Merge", other)
    published = publish_patch(workshop.remote(), publication(agent, merged=(other,)))
    assert (published.failure, published.flattened) == (None, (other,))
    assert fetched(agent, "log", "-1", "--format=%P", "origin/feature").split() == [agent.base]


def test_a_commit_that_the_agent_pushed_itself_counts_with_its_files(workshop: Workshop, agent: Agent) -> None:
    (agent.tree / "new.txt").write_text("new\n")
    agent.commit("The agent's own")
    git(agent.tree, "push", "-q", "origin", "HEAD:feature")
    pushed = workshop.tip()
    workshop.person_commits("README.md", "by hand\n")
    published = publish_patch(workshop.remote(), publication(agent))
    assert (published.commit_sha, published.files_changed, published.was_there) == (pushed, 1, True)
    assert workshop.tip() != pushed


def test_markers_of_a_conflict_are_not_pushed(workshop: Workshop, agent: Agent) -> None:
    tip = workshop.tip()
    assert kind(publish_new(workshop, agent, text="<<<<<<< one\n1\n=======\n2\n>>>>>>> two\n")) == "merge-unfinished"
    assert workshop.tip() == tip
    assert kind(publish_new(workshop, agent, text="Heading\n=======\n>>>>>>> quoted\n")) == ""


def test_bytes_in_the_place_of_a_pointer_are_not_pushed(workshop: Workshop, agent: Agent) -> None:
    workshop.person_commits(".gitattributes", "*.bin filter=lfs diff=lfs merge=lfs -text\n")
    git(agent.tree, "pull", "-q", "origin", "feature")
    base, tip = git(agent.tree, "rev-parse", "HEAD"), workshop.tip()
    patch = "diff --git a/x.bin b/x.bin\nnew file mode 100644\n--- /dev/null\n+++ b/x.bin\n@@ -0,0 +1 @@\n+bytes\n"
    published = publish_patch(workshop.remote(), publication(agent, patch=patch.encode(), base_sha=base))
    assert (kind(published), workshop.tip()) == ("push-refused", tip)
    assert "`x.bin` is stored by Git LFS" in detail(published)


def test_a_merge_that_the_agent_only_claims_hides_no_protected_file(workshop: Workshop, agent: Agent) -> None:
    old = git(agent.tree, "rev-parse", "HEAD~1") if len(git(agent.tree, "rev-list", "HEAD").split()) > 1 else agent.base
    (agent.tree / "CODEOWNERS").write_text("* @agent\n")
    published = publish_patch(workshop.remote(), publication(agent, merged=(old, agent.base)))
    assert (kind(published), published.flattened) == ("steering-files", ())


def test_a_merge_that_drops_the_bases_protected_file_is_not_pushed(workshop: Workshop, agent: Agent) -> None:
    newer = push_to_base(agent, {"CODEOWNERS": "* @maintainer\n"})
    git(agent.tree, "merge", "-q", "-s", "ours", "-m", "Merge", newer)
    (agent.tree / "new.txt").write_text("new\n")
    published = publish_patch(workshop.remote(), publication(agent, merged=(newer,)))
    assert (kind(published), "CODEOWNERS" in detail(published)) == ("steering-files", True)


@pytest.mark.parametrize(
    "registry",
    [
        pytest.param("agents: {duck: {command: [duck], steering_files: [duck.rules]}}\n", marks=night),
        pytest.param("steering: [duck.rules]\nagents: {}\n", marks=night),
        "protected: ['*.rules']\nagents: {}\n",
    ],
)
def test_files_that_the_repositorys_own_registry_names_are_not_pushed(
    workshop: Workshop, agent: Agent, registry: str
) -> None:
    log = OperationLog(is_dry_run=True)
    assert kind(publish_new(workshop, agent, "duck.rules", log=log)) == ""
    maintainers = workshop.clone("maintainers", "main")
    (maintainers / ".github/agents").mkdir(parents=True)
    (maintainers / ".github/agents/registry.yml").write_text(registry)
    git(maintainers, "add", "-A")
    git(maintainers, "commit", "-qm", "Registry")
    git(maintainers, "push", "-q", "origin", "main")
    assert kind(publish_new(workshop, agent, "duck.rules", log=log)) == "steering-files"
