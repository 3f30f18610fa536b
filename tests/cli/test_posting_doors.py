"""Every command that posts text holds it against the registry of the repository and sanitises it."""

import ast
import base64
import json
import re
import sqlite3
import subprocess
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, closing
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from support.commands import Accord, Ended
from support.handoffs import REVIEW, VERIFICATION, patch
from support.implementations import completed, ended, implement_stage, work_of_agent
from support.plans import plan, task, task_body, update
from support.reviewing_turns import MERGED, OPEN, reviewed
from support.reviews import PULL, comment, needs_changes, review_stage
from support.sessions import make_session
from support.stage import Stage, staged
from support.turns import opened
from support.workshop import git

from accord_sandbox.planting import INSTALLATION_TOKEN

SECRET = "correct-horse-battery-staple"
WORDS = f"recheck @octocat, fixes #1, as other/repo#7. {SECRET}"
HOSTILE = f"{WORDS} ![good](https://img.ok.test/a.png) ![bad](https://bad.test/a.png) <script>"
POLICY = "allowed_hosts: [www.OK.test, '*.ok.test']\nbreak_words: [recheck]\nreferences: own\n"
REGISTRY = f"version: 1\n{POLICY}agents: {{}}\n"
ACTS = re.compile(rf"\brecheck|(?<!\w)@octocat|\bfixes #1|other/repo#7|{SECRET}")
SHOWS = re.compile(r"!\[bad\]|<script>")
POSTED = re.compile("@[\u200c\u2060]*octocat")
AGENT = f"""
import json, re, sys
said, title, prompt = {HOSTILE!r}, {WORDS!r}, sys.stdin.read()
if "Judge this change" in prompt:
    left = {{"title": title, "body": said}}
    rows = [{{"number": n, "met": "no", "evidence": said}} for n in (1, 2)]
    found = {{"role": "verifier", "verdict": "fail", "follow_up": left, "summary": said, "criteria": rows}}
    message = json.dumps(found)
elif "Answer the review comments" in prompt:
    numbers = re.findall(r"^### Thread ([0-9]+)", prompt, re.M)
    answers = [{{"number": int(n), "done": "declined", "what": said}} for n in numbers]
    message = json.dumps({{"role": "bot-comments", "threads": answers}})
else:
    open("new.txt", "w").write("new")
    message = said
fails = "Fix the failing checks" in prompt
usage = {{"input_tokens": 1, "cached_input_tokens": 0, "output_tokens": 1}}
end = {{"type": "turn.failed", "error": {{"message": said}}}} if fails else {{"type": "turn.completed", "usage": usage}}
for event in ({{"type": "thread.started", "thread_id": "0"}}, {{"type": "turn.started"}},
              {{"type": "item.completed", "item": {{"id": "0", "type": "agent_message", "text": message}}}}, end):
    print(json.dumps(event))
sys.exit(fails)
"""
FAILING = [{"name": "test", "conclusion": "failure", "run": 501}]
GREEN = [{"name": "test", "conclusion": "success", "run": 501}]
KEEPALIVE = partial(opened, body="- [ ] Add docs\n", checks=GREEN)
AUTOFIX = partial(opened, labels=["autofix"], checks=FAILING)
HANDOFF = {
    "name": "octo/code",
    "files": {"a.txt": "One\n"},
    "branches": {"feature": {"a.txt": "Two\n"}},
    "issues": [{"title": "Export"}, {"title": "The change", "head": "feature", "body": "Closes #1"}],
}
READS = {"contents": "read", "issues": "read", "pull_requests": "read", "statuses": "write"}
STATUS = {"token": "status", "login": "github-actions[bot]", "kind": "installation", "permissions": READS}


@dataclass(frozen=True)
class Doorway:
    """Where a door is tried: the command line, the stage that it writes to, and a folder."""

    accord: Accord
    stage: Stage
    folder: Path

    def apply(self, result: Any, *words: object) -> Ended:
        return self.accord("apply", self.accord.file("result.json", result), *words)

    def take(self, loop: str, pull: int, *words: object) -> Ended:
        """Take a turn of a loop with an agent of the given registry, as its own cannot name a script here."""
        agent = self.accord.file("agent.py", AGENT)
        text = f"version: 1\n{POLICY}default_agent: script\nreview_bots: ['reviewer[bot]']\n"
        entry = f"agents:\n  script: {{command: [python3, {agent}], codec: codex}}\n"
        registry = self.accord.file("registry.yml", text + entry)
        return self.accord(loop, "run", "--pull", pull, "--registry", registry, "--run-dir", self.folder, *words)


def _plan(door: Doorway) -> Ended:
    body = task_body(context=HOSTILE)
    return door.apply(plan(task("a", title=WORDS, body=body), update=[update(1, body=body)]))


def _complete(door: Doorway) -> Ended:
    return door.apply(completed(work_of_agent(door.stage, door.folder), HOSTILE), "--work-item", 1)


def _block(door: Doorway) -> Ended:
    return door.apply(ended("validation-failure", f"Step: x\nTried: {HOSTILE}\nOutside: y"), "--work-item", 1)


def _review(door: Doorway) -> Ended:
    says = f"What: {HOSTILE}\nWhy: {HOSTILE}\nFix: {HOSTILE}"
    notes = (comment("added.txt", 1, says), comment("src/long.txt", None, says), comment("untouched.txt", 1, says))
    return door.apply(needs_changes(*notes, summary="\n\n".join([HOSTILE, *["x" * 1000] * 70])), "--pull", PULL)


def _run_in_clone(door: Doorway, *words: object) -> Ended:
    stage, tree = door.stage, door.folder / "tree"
    url = f"{stage.server.url.replace('http://', f'http://x:{stage.server.token}@')}/{stage.repository}.git"
    subprocess.run(["git", "clone", "-q", url, str(tree)], check=True, capture_output=True)
    git(tree, "checkout", "-q", "-B", "feature", "origin/feature")
    door.accord.monkeypatch.chdir(tree)
    agent = door.accord.file("agent.py", AGENT)
    (tree / "prompt.md").write_text("Do it.")
    given = ("--command", f"python3 {agent}", "--prompt-file", "prompt.md", "--run-dir", door.folder / "run")
    return door.accord("run", "--agent", "command", *given, "--pr-ref", "feature", *words)


def _publish(door: Doorway) -> Ended:
    assert _run_in_clone(door, "--no-publish").code == 0
    door.accord.monkeypatch.chdir(door.accord.home)
    return door.accord("publish", door.folder / "run", "--pr-ref", "feature")


def _publish_conflict(door: Doorway) -> Ended:
    assert _run_in_clone(door, "--no-publish").code == 0
    path = f"/repos/{door.stage.repository}/contents/new.txt"
    door.stage.send("PUT", path, message="By hand", content="b3RoZXI=", branch="feature")
    door.accord.monkeypatch.chdir(door.accord.home)
    return door.accord("publish", door.folder / "run", "--pr-ref", "feature")


def _publish_as_bot(door: Doorway) -> Ended:
    door.accord.monkeypatch.setenv("GITHUB_TOKEN", INSTALLATION_TOKEN)
    return _publish(door)


def _ask(door: Doorway) -> Ended:
    session = make_session(door.folder / "state", "DESIGN", mode="full", user_decisions=[])
    return door.accord("session", "ask", session, "--question", HOSTILE, "--issue", 1)


def _judge(door: Doorway) -> Ended:
    both = patch(reviewArtifact=REVIEW, verificationArtifact=VERIFICATION)
    path, issue = door.accord.file("both.json", both), ("--work-item", 1, "--role")
    door.accord("handoff", "move", *issue, "planner", "--to", "implementing")
    assert door.accord("handoff", "patch", path, *issue, "human").code == 0
    path = door.accord.file("branch.json", patch(workflow={"branchName": WORDS}))
    done = door.accord("handoff", "patch", path, *issue, "human")
    assert done.code == 0, done.out
    return door.accord("handoff", "gate", "--pull", 2)


def _judge_by_status(door: Doorway) -> Ended:
    _judge(door)
    door.accord.monkeypatch.setenv("GITHUB_TOKEN", "status")
    return door.accord("handoff", "gate", "--pull", 2)


def _start_end(door: Doorway) -> Ended:
    agent, tree = door.accord.file("agent.py", AGENT), door.folder / "tree"
    tree.mkdir(parents=True)
    door.accord.monkeypatch.chdir(tree)
    (tree / "prompt.md").write_text("Fix the failing checks.")
    entry = f"agents:\n  script: {{command: [python3, {agent}], codec: codex}}\n"
    registry = door.accord.file("registry.yml", f"version: 1\n{entry}")
    given = ("--prompt-file", "prompt.md", "--run-dir", door.folder / "run", "--no-publish")
    assert door.accord("run", "--agent", "script", "--registry", registry, *given).code == 0
    door.accord.monkeypatch.setenv("GITHUB_RUN_ID", "900")
    run = ("--work", "implement", "--item", 1, "--key", "accord-1")
    assert door.accord("start", "begin", *run).code == 0
    needs = json.dumps({"implement": {"result": "failure", "outputs": {}}})
    return door.accord("start", "end", *run, "--needs", needs, "--run-dir", door.folder / "run")


def _show_board(door: Doorway) -> Ended:
    assert _plan(door).code == 0
    assert door.accord("board", "issue").code == 0
    door.accord("items", "move", 1, "--to", "ready")
    return door.accord("board", "issue")


def _bot_comments(door: Doorway) -> Ended:
    door.stage.send("PUT", f"/repos/{door.stage.repository}/issues/{OPEN}/labels", labels=["agent:script"])
    return door.take("bot-comments", OPEN)


@dataclass(frozen=True)
class Door:
    """A command that posts text: its stage, how it is called, its exit code, and which functions write the texts."""

    stage: Callable[[Path], AbstractContextManager[Stage]]
    call: Callable[[Doorway], Ended]
    writers: str
    code: int = 0
    has_image: bool = True


_SEED = {"repositories": [{"name": "accord/sandbox", "issues": [{"title": "Old", "labels": ["task:implement"]}]}]}
SANDBOX = partial(staged, seed=_SEED)
REVIEWED = partial(reviewed, is_short=True)
DOORS = {
    "apply a plan": Door(SANDBOX, _plan, "planner/run.create_issue planner/run.change_issue"),
    "apply a change": Door(
        implement_stage, _complete, "implementor/run.create_pull implementor/run.change_pull"
    ),
    "apply an outcome": Door(
        implement_stage, _block, "implementor/run.create_comment implementor/run.change_comment"
    ),
    "apply a review": Door(
        review_stage, _review,
        "reviewer/run.create_review reviewer/run.comment_on_file reviewer/run.create_comment "
        "reviewer/run.change_review",
    ),
    "publish as a bot": Door(KEEPALIVE, _publish_as_bot, "github/commits.create_commit", has_image=False),
    "publish a conflict": Door(
        KEEPALIVE, _publish_conflict, "branches.commit-tree runner/finish.create_pull"
    ),
    "run": Door(KEEPALIVE, _run_in_clone, "branches.commit-tree", has_image=False),
    "session ask": Door(SANDBOX, _ask, "github/comments.create_comment github/comments.change_comment"),
    "handoff gate": Door(
        partial(staged, seed={"repositories": [HANDOFF]}), _judge, "handoffs/gate.create_check_run", 1, False
    ),
    "handoff gate without checks": Door(
        partial(staged, seed={"repositories": [HANDOFF], "tokens": [STATUS]}), _judge_by_status,
        "handoffs/gate.create_commit_status", 1, False,
    ),
    "keepalive": Door(
        KEEPALIVE, lambda door: door.take("keepalive", 1), "github/comments.create_comment", has_image=False
    ),
    "autofix": Door(
        AUTOFIX, lambda door: door.take("autofix", 1), "github/comments.change_comment loops/apply.create_comment",
        has_image=False,
    ),
    "verify": Door(
        REVIEWED, lambda door: door.take("verify", MERGED),
        "loops/follow_up.create_issue loops/apply.create_comment",
    ),
    "start end": Door(
        SANDBOX, _start_end, "github/comments.create_comment github/comments.change_comment", has_image=False,
    ),
    "board issue": Door(SANDBOX, _show_board, "board/dashboard.create_issue board/dashboard.change_issue"),
    "bot-comments": Door(REVIEWED, _bot_comments, "loops/bot_comments.reply"),
}  # fmt: skip

WITHOUT_TEXT_OF_AGENTS = {
    "planner/structure.change_issue": "an issue type of people's own settings file",
    "plans/write_back.change_issue": "people's own body with issue numbers",
    "handoffs/store.change_issue": "people's own body with a packed block",
    "results/status.change_issue": "labels and states",
    "reviewer/run.dismiss_review": "accord's own words",
    "reviewer/run.reply": "accord's own words",
    "loops/keepalive.change_issue": "people's own body with ticked boxes",
    "kit/sync.create_commit": "accord's own words",
    "kit/sync.create_pull": "accord's own words",
    "kit/sync.change_pull": "accord's own words",
    "github/state.create_commit": "escaped documents at refs below refs/accord",
    "results/label_sync.create_label": "people's own label file",
    "results/label_sync.change_label": "people's own label file",
}
POSTS = {
    *("create_issue", "change_issue", "create_comment", "change_comment", "reply", "create_pull", "change_pull"),
    *("create_review", "change_review", "dismiss_review", "comment_on_file", "create_check_run"),
    *("create_commit_status", "create_commit", "create_label", "change_label"),
}


def texts_of(stage: Stage) -> dict[str, bool]:
    """All texts that the stage holds, and whether they are Markdown: of its database, and of its branches' commits."""
    found: dict[str, bool] = {}
    with closing(sqlite3.connect(stage.server.database.path)) as database:
        tables = [name for (name,) in database.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        for name in tables:
            for row in database.execute(f'SELECT * FROM "{name}"'):
                found |= {value: True for value in row if isinstance(value, str)}
    for bare in stage.server.application.storage.root.rglob("HEAD"):
        log = ["git", "-C", str(bare.parent), "log", "--branches", "--format=%B%x00"]
        messages = subprocess.run(log, capture_output=True, check=False).stdout.decode().split("\0")
        found |= dict.fromkeys(messages, False)
    return found


def commit_registry(stage: Stage) -> None:
    content = base64.b64encode(REGISTRY.encode()).decode()
    path = f"/repos/{stage.repository}/contents/.github/agents/registry.yml"
    stage.send("PUT", path, message="Registry", content=content)


Open = Callable[[Callable[[Path], AbstractContextManager[Stage]]], Stage]


@pytest.fixture(scope="module")
def open_stage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Open]:
    """Open each stage once, with the registry; later it is as it was then."""
    opened: dict[object, Stage] = {}
    with ExitStack() as stack:

        def open_or_reset(make: Callable[[Path], AbstractContextManager[Stage]]) -> Stage:
            if make in opened:
                opened[make].reset()
            else:
                opened[make] = stack.enter_context(make(tmp_path_factory.mktemp("stage")))
                commit_registry(opened[make])
                opened[make].begin_at_present()
            return opened[make]

        yield open_or_reset


@pytest.mark.slow
@pytest.mark.parametrize("name", DOORS)
def test_each_door_applies_the_policy_of_the_registry_and_the_sanitiser(
    accord: Accord, open_stage: Open, tmp_path: Path, name: str
) -> None:
    stage = open_stage(DOORS[name].stage)
    accord.on(stage, GITHUB_SERVER_URL=stage.server.url, AGENT_API_KEY=SECRET)
    doorway = Doorway(accord, stage, tmp_path / "work")
    before = {*texts_of(doorway.stage)}
    done = DOORS[name].call(doorway)
    assert done.code == DOORS[name].code, (done.out, done.err)
    posted = {text: is_page for text, is_page in texts_of(doorway.stage).items() if POSTED.search(text)}
    assert posted.keys() - before, done.out
    for text, is_page in posted.items():
        assert not ACTS.search(text), text
        assert not (is_page and SHOWS.search(text)), text
        assert "r\u2060echeck" in text
    assert (
        any(is_page and "![good](https://img.ok.test/a.png)" in text for text, is_page in posted.items())
        is DOORS[name].has_image
    )


@pytest.mark.slow
def test_every_caller_that_posts_is_a_door() -> None:
    source = Path(__file__).parents[2] / "src/accord"
    found = set()
    for path in source.rglob("*.py"):
        module = ".".join(path.relative_to(source).with_suffix("").parts[-2:]).replace(".", "/")
        text = path.read_text(encoding="utf-8")
        for node in ast.walk(ast.parse(text)) if any(f".{name}" in text for name in POSTS) else ():
            if isinstance(node, ast.Attribute) and node.attr in POSTS and isinstance(node.ctx, ast.Load):
                found.add(f"{module}.{node.attr}")
    tried = {writer for door in DOORS.values() for writer in door.writers.split()} - {"branches.commit-tree"}
    assert found == tried | WITHOUT_TEXT_OF_AGENTS.keys()


def test_a_broken_registry_stops_a_command_before_it_posts(accord: Accord, tmp_path: Path) -> None:
    with staged(tmp_path / "stage", seed=_SEED) as stage:
        content = base64.b64encode(b"version: 1\nallowed_hosts: ['ok.test:8443']\nagents: {}\n").decode()
        path = f"/repos/{stage.repository}/contents/.github/agents/registry.yml"
        stage.send("PUT", path, message="Registry", content=content)
        accord.on(stage)
        refused = accord("apply", accord.file("plan.json", plan(task("a"))))
        assert refused.code == 1
        assert "In the agent registry: `ok.test:8443` is not a host." in refused.out
        assert "Use `ok.test`" in refused.out
        assert [issue["title"] for issue in stage.issues()] == ["Old"]


def test_a_checkout_counts_before_github(accord: Accord, tmp_path: Path) -> None:
    with staged(tmp_path / "stage", seed=_SEED) as stage:
        accord.on(stage)
        git(accord.home, "init", "-q", "-b", "main")
        (accord.home / ".github/agents").mkdir(parents=True)
        (accord.home / ".github/agents/registry.yml").write_text(REGISTRY)
        done = accord.document("apply", accord.file("plan.json", plan(task("a", body=task_body(context="recheck")))))
        assert done["sanitised"] == {"commands": 1}
        assert not any("registry.yml" in json.dumps(request) for request in map(str, stage.server.requests))
