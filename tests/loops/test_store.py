"""The state in its ref and its comment: two writers lose nothing, and no accident counts twice."""

from collections.abc import Callable
from contextlib import nullcontext

import pytest
from support.loops import running, state_of, well
from support.rotation import FAULTS, in_turns, some
from support.stage import Stage

from accord.core.errors import Refused, Stopped
from accord.engine.operations import OperationLog
from accord.github.client import GitHub
from accord.loops.ledger import begin_run, end_run
from accord.loops.models import LoopState
from accord.loops.state import HistoryLine, StateStore, read_view, write_history
from accord_sandbox.server import Fault

SEED = """
tokens:
  - {token: stranger, login: mallory}
  - {token: app, login: "my-app[bot]", kind: installation, permissions: {contents: write, pull_requests: write}}
  - {token: reading, login: rita, kind: fine-grained, permissions: {contents: read, issues: write}}
repositories:
  - name: octo/code
    collaborators: {rita: write}
    files: {a.txt: "One\\n"}
    branches: {feature: {a.txt: "Two\\n"}}
    issues: [{title: The change, head: feature}@MORE@]
""".replace("@MORE@", ", {title: Another}" * 51)


def store(stage: Stage, github: GitHub | None = None, pull: int = 1) -> StateStore:
    github = github or stage.adapter()
    return StateStore(github, pull, "keepalive", github.identity().counts, OperationLog())


def begin(run_id: str) -> Callable[[LoopState], LoopState | None]:
    return lambda state: begin_run(state, running(run_id))


def end(run_id: str) -> Callable[[LoopState], LoopState | None]:
    return lambda state: end_run(state, well(run_id))


def comments(stage: Stage, pull: int = 1) -> list[str]:
    found = stage.get(f"/repos/{stage.repository}/issues/{pull}/comments")
    return [comment["body"] for comment in found]


def shown(stage: Stage, pull: int = 1) -> LoopState:
    """The state in the one comment; that in the ref is the same."""
    (body,) = comments(stage, pull)
    found = read_view(body, "keepalive", pull)
    assert found is not None
    assert found.link is not None
    ref = stage.get(f"/repos/{stage.repository}/git/ref/accord/loops/{pull}/keepalive")
    assert ref["object"]["sha"] == found.link.sha
    return found.value


@pytest.mark.slow
def test_a_state_is_written_and_read_in_one_request(stage: Stage) -> None:
    where = store(stage)
    kept = where.update(where.update(where.load(), begin("1")), end("1"))
    assert store(stage).load().value == shown(stage) == kept.value
    assert (kept.value.revision, kept.value.iterations, len(kept.value.history)) == (2, 1, 1)
    reader = stage.adapter()
    kept = store(stage, reader).load()
    assert store(stage, reader).update(kept, end("1")) is kept
    assert (reader.requests.read - 2, reader.requests.write) == (1, 0)  # who we are is asked for each place


REQUESTS = 13
"""So many requests read a state, write it for the first time, and write it again."""


@pytest.mark.slow
@pytest.mark.parametrize("faults", FAULTS)
def test_a_failure_at_any_request_ends_the_same_at_once_or_when_repeated(stage: Stage, faults: str) -> None:
    def run(pull: int) -> None:
        where = store(stage, pull=pull)
        kept = where.update(where.load(), lambda state: state if state.history else begin_run(state, running("1")))
        where.update(kept, end("1"))

    accidents = [(nth, *fault) for nth in range(1, REQUESTS + 1) for fault in in_turns(nth, FAULTS[faults])]
    for pull, (nth, kind, times) in enumerate(some(accidents, 3), 1):
        stage.server.faults.add(Fault(kind, nth=nth, times=times))
        with nullcontext() if times == 1 else pytest.raises(Stopped):
            run(pull)
        stage.server.faults.clear()
        if times > 1:
            run(pull)
        state = shown(stage, pull)
        assert (state.iterations, state.revision, len(state.history)) == (1, 2, 1), f"request {nth}"


@pytest.mark.slow
def test_a_comment_that_was_deleted_or_spoiled_resets_nothing(stage: Stage) -> None:
    where = store(stage)
    where.update(where.load(), lambda state: state.model_copy(update={"iterations": 4}))
    number = stage.get(f"/repos/{stage.repository}/issues/1/comments")[0]["id"]
    path = f"/repos/{stage.repository}/issues/comments/{number}"
    stage.send("PATCH", path, body="<!-- accord:loop loop=keepalive pull=1 -->")
    assert where.load().value.iterations == 4
    where.update(where.load(), begin("5"))
    assert shown(stage).iterations == 5
    stage.send("DELETE", path)
    assert where.load().value.iterations == 5
    where.update(where.load(), end("5"))
    assert shown(stage).iterations == 5


@pytest.mark.slow
def test_a_copy_of_our_own_comment_on_another_pull_request_is_neither_its_state_nor_touched(stage: Stage) -> None:
    """Else a pull request would begin with the used-up budget, or the finished work, of another one."""
    store(stage).update(store(stage).load(), lambda state: state.model_copy(update={"iterations": 4}))
    (copy,) = comments(stage)
    stage.send("POST", f"/repos/{stage.repository}/issues/2/comments", body=copy)
    other = store(stage, pull=2)
    assert other.load().value.iterations == 0
    other.update(other.load(), begin("9"))
    assert other.load().value.iterations == 1
    assert comments(stage, 2)[0] == copy


@pytest.mark.slow
def test_of_two_comments_of_ours_the_oldest_stays_and_the_newest_state_counts(stage: Stage) -> None:
    where = store(stage)
    where.update(where.load(), begin("1"))
    stage.send("POST", f"/repos/{stage.repository}/issues/1/comments", body=comments(stage)[0])
    where.update(where.load(), end("1"))
    assert shown(stage).history[0].run_id == "1"


@pytest.mark.slow
@pytest.mark.parametrize("revision", [0, 9])
def test_a_forged_state_that_a_workflow_posted_under_our_login_counts_for_nothing(stage: Stage, revision: int) -> None:
    """Many a workflow posts words of strangers as ``github-actions[bot]``: they could hold a loop up or renew it."""
    where = store(stage)
    where.update(where.load(), lambda state: state.model_copy(update={"iterations": 4}))
    forged = comments(stage)[0].replace("iterations%22%3A4", "iterations%22%3A0")
    forged = forged.replace("revision%22%3A1", f"revision%22%3A{revision}")
    stage.send("POST", f"/repos/{stage.repository}/issues/1/comments", body=forged)
    assert where.load().value.iterations == 4
    where.update(where.load(), begin("5"))
    assert shown(stage).iterations == 5


@pytest.mark.slow
def test_a_state_whose_ref_was_deleted_goes_on_from_the_comment(stage: Stage) -> None:
    where = store(stage)
    where.update(where.load(), begin("1"))
    stage.send("DELETE", f"/repos/{stage.repository}/git/refs/accord/loops/1/keepalive")
    where.update(where.load(), end("1"))
    assert (shown(stage).iterations, shown(stage).running) == (1, None)


def test_a_token_without_access_to_the_ref_gets_a_hint(stage: Stage) -> None:
    where = store(stage, stage.adapter(token="reading"))
    with pytest.raises(Refused, match="contents") as refused:
        where.update(where.load(), begin("1"))
    assert "contents" in refused.value.hint
    assert comments(stage) == []


def test_a_ref_that_holds_something_else_is_not_guessed_at(stage: Stage) -> None:
    sha = stage.get(f"/repos/{stage.repository}/git/ref/heads/main")["object"]["sha"]
    stage.send("POST", f"/repos/{stage.repository}/git/refs", ref="refs/accord/loops/1/keepalive", sha=sha)
    with pytest.raises(Refused, match="holds no state"):
        store(stage).load()


def test_history_is_one_line_a_run() -> None:
    history = state_of(well("1"), well("2", error="a\nb")).history
    lines = write_history(7, "keepalive", history).splitlines()
    assert [HistoryLine.model_validate_json(line).iteration for line in lines] == list(history)


def test_the_token_of_an_unnamed_app_leaves_no_comments_behind(stage: Stage) -> None:
    nameless = stage.adapter(token="app")
    for run_id in ("1", "2"):
        with pytest.raises(Refused, match=r"writes as `my-app\[bot\]`") as refused:
            store(stage, nameless).update(store(stage, nameless).load(), begin(run_id))
        assert "--identity 'my-app[bot]'" in refused.value.hint
    assert comments(stage) == []
