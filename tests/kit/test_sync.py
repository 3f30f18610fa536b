import base64
import itertools
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from support.consumers import (
    CONSUMER,
    LABELS,
    NEW,
    OLD,
    PLAN,
    RETIRED,
    REVIEW,
    SHIPPED,
    consumer_stage,
    edited,
    files_at,
    installed,
    older_kit,
    seen,
    sync,
)
from support.killing import kill_at
from support.rotation import NIGHTLY, killed
from support.stage import Stage

from accord.git.configuration import KIT_CONFIG
from accord.kit.manifest import PLACE
from accord.kit.many import ManyOutcome
from accord.kit.plan import CONFIGURED
from accord.kit.sync import sync_repository
from accord.kit.templates import Kit, Pin
from accord_sandbox.faults import Fault


@contextmanager
def edited_stage(folder: Path) -> Iterator[Stage]:
    with consumer_stage(folder, edited(installed(folder / "kit", older_kit()))) as stage:
        stage.begin_at_present()
        yield stage


STAGE = edited_stage


def text_at(stage: Stage, path: str, ref: str) -> str:
    return base64.b64decode(stage.get(f"/repos/{CONSUMER}/contents/{path}", ref=ref)["content"]).decode()


def tip(stage: Stage) -> str:
    return str(stage.get(f"/repos/{CONSUMER}/git/ref/heads/accord/sync")["object"]["sha"])


def writes(stage: Stage) -> int:
    return sum(method != "GET" for method, *_ in stage.server.requests)


def commit(stage: Stage, branch: str, path: str, text: str) -> None:
    held = files_at(stage, branch).get(path)
    body: dict[str, Any] = {"message": "By a person", "content": base64.b64encode(text.encode()).decode()}
    stage.send("PUT", f"/repos/{CONSUMER}/contents/{path}", branch=branch, **body, **({"sha": held} if held else {}))


def test_a_branch_in_the_way_of_a_sync_is_named_before_the_first_write(tmp_path: Path) -> None:
    files = edited(installed(tmp_path / "kit", older_kit()))
    with consumer_stage(tmp_path, files, branches={"accord/sync/a/b": {"x.txt": "x"}}) as stage:
        for is_dry_run in (True, False):
            synced = sync(stage, is_dry_run=is_dry_run)
            assert (synced.outcome, writes(stage)) == (ManyOutcome.REFUSED, 0)
            assert "`accord/sync/a/b` is in the way" in str(synced.error)


def test_a_sync_brings_no_second_configuration(tmp_path: Path) -> None:
    older = older_kit()
    older = replace(older, files={path: text for path, text in older.files.items() if path != KIT_CONFIG})
    files = {**edited(installed(tmp_path / "kit", older)), ".github/accord.yml": "version: 1\n"}
    with consumer_stage(tmp_path, files) as stage:
        plan = sync(stage, is_dry_run=True).plan
    assert plan is not None
    assert {file.path: file.note for file in plan.files}[KIT_CONFIG] == CONFIGURED


@pytest.mark.slow
def test_a_sync_proposes_the_new_kit_in_one_commit_and_one_pull_request(stage: Stage) -> None:
    before = files_at(stage, "main")
    synced = sync(stage)

    assert synced.outcome is ManyOutcome.APPLIED, synced.error
    (pull,) = stage.get(f"/repos/{CONSUMER}/pulls")
    assert (pull["head"]["ref"], pull["base"]["ref"]) == ("accord/sync", "main")
    assert len(stage.get(f"/repos/{CONSUMER}/pulls/{pull['number']}/commits")) == 1
    assert files_at(stage, "main") == before
    after = files_at(stage, "accord/sync")
    assert "group: planning" in text_at(stage, PLAN, "accord/sync")
    assert "timeout-minutes: 60" in text_at(stage, PLAN, "accord/sync")
    assert after[REVIEW] == before[REVIEW]
    assert LABELS in after
    assert RETIRED not in after
    assert all(after[path] == before[path] for path in ("README.md", ".github/workflows/own.yml"))
    for path, action in ((PLAN, "merge"), (REVIEW, "conflict"), (LABELS, "add"), (RETIRED, "remove")):
        assert f"| {path} | {action} |" in pull["body"]
    assert "-    timeout-minutes: 20\n+    timeout-minutes: 60" in pull["body"].partition("## Conflicts")[2]


@pytest.mark.slow
def test_github_signs_the_commit_of_an_app(tmp_path: Path) -> None:
    permissions = dict.fromkeys(("contents", "pull_requests", "workflows"), "write")
    token = {"token": "app", "login": "kit[bot]", "kind": "installation", "permissions": permissions}
    with consumer_stage(tmp_path, installed(tmp_path / "kit", older_kit()), [token]) as stage:
        synced = sync_repository(stage.adapter(repo=CONSUMER, token="app"), CONSUMER, SHIPPED, NEW)
        assert synced.as_json()["commit"] == {"way": "api", "verified": True, "requests": 3, "reason": ""}
        assert stage.get(f"/repos/{CONSUMER}/git/commits/{tip(stage)}")["verification"]["verified"] is True


@pytest.mark.slow
def test_a_second_sync_writes_nothing(stage: Stage) -> None:
    first, after = sync(stage), seen(stage)
    before = writes(stage)
    second = sync(stage)
    assert (second.outcome, writes(stage), seen(stage)) == (ManyOutcome.UNCHANGED, before, after)
    assert first.pull
    assert second.pull
    assert second.pull.number == first.pull.number


@pytest.mark.slow
def test_a_token_without_the_workflows_permission_is_refused_with_its_name(tmp_path: Path) -> None:
    permissions = {"contents": "write", "pull_requests": "write"}
    token = {"token": "jobs", "login": "ci[bot]", "kind": "installation", "permissions": permissions}
    files = edited(installed(tmp_path / "kit", older_kit()))
    with consumer_stage(tmp_path, files, [token]) as stage:
        before = seen(stage)
        synced = sync_repository(stage.adapter(repo=CONSUMER, token="jobs"), CONSUMER, SHIPPED, NEW)
        assert (synced.outcome, seen(stage)) == (ManyOutcome.REFUSED, before)
        assert "workflows to write" in str(synced.error)
        assert sync(stage).outcome is ManyOutcome.APPLIED


def test_a_repository_in_step_costs_one_request_and_gets_nothing_written(tmp_path: Path) -> None:
    with consumer_stage(tmp_path, installed(tmp_path / "kit", SHIPPED, NEW)) as stage:
        synced = sync(stage)
        assert (synced.outcome, synced.pull) == (ManyOutcome.UNCHANGED, None)
        assert [method for method, *_ in stage.server.requests] == ["GET"]


@pytest.mark.slow
def test_newer_templates_update_the_same_pull_request(stage: Stage) -> None:
    sync(stage)
    newer = Kit("0.2.0", {**SHIPPED.files, LABELS: SHIPPED.files[LABELS] + "# more\n"})
    assert sync(stage, kit=newer, pin=Pin("c" * 40, "0.2.0")).outcome is ManyOutcome.APPLIED
    (pull,) = stage.get(f"/repos/{CONSUMER}/pulls", state="all")
    assert pull["title"] == "Update the accord kit to v0.2.0"
    assert len(stage.get(f"/repos/{CONSUMER}/pulls/{pull['number']}/commits")) == 1
    assert text_at(stage, LABELS, "accord/sync").endswith("# more\n")
    assert f"@{'c' * 40} # v0.2.0" in text_at(stage, PLAN, "accord/sync")


@pytest.mark.slow
def test_a_pull_request_that_people_closed_does_not_come_back_until_the_templates_change(stage: Stage) -> None:
    pull = sync(stage).pull
    assert pull
    stage.send("PATCH", f"/repos/{CONSUMER}/pulls/{pull.number}", state="closed")
    before = writes(stage)
    assert (sync(stage).outcome, writes(stage)) == (ManyOutcome.DECLINED, before)
    again = sync(stage, pin=Pin("c" * 40, "0.2.0"))
    assert again.outcome is ManyOutcome.APPLIED
    assert again.pull
    assert again.pull.number != pull.number


@pytest.mark.slow
def test_text_that_people_write_into_the_pull_request_stays(stage: Stage) -> None:
    pull = sync(stage).pull
    assert pull
    own = pull.body.replace("## Conflicts", "We take the 90 minutes.\n\n## Conflicts")
    stage.send("PATCH", f"/repos/{CONSUMER}/pulls/{pull.number}", body=own)
    assert sync(stage).outcome is ManyOutcome.UNCHANGED
    assert stage.get(f"/repos/{CONSUMER}/pulls/{pull.number}")["body"] == own


def amend(stage: Stage, path: str, text: str, message: str = "") -> None:
    """Do what ``git commit --amend`` and a forced push do to the commit of a sync."""
    old = stage.get(f"/repos/{CONSUMER}/git/commits/{tip(stage)}")
    entry = {"path": path, "mode": "100644", "type": "blob", "content": text}
    tree = stage.send("POST", f"/repos/{CONSUMER}/git/trees", base_tree=old["tree"]["sha"], tree=[entry])["sha"]
    body = {"message": message or old["message"], "tree": tree, "parents": [each["sha"] for each in old["parents"]]}
    sha = stage.send("POST", f"/repos/{CONSUMER}/git/commits", **body)["sha"]
    stage.send("PATCH", f"/repos/{CONSUMER}/git/refs/heads/accord/sync", sha=sha, force=True)


BY_PEOPLE: dict[str, Callable[[Stage], None]] = {
    "a commit": lambda stage: commit(stage, "accord/sync", REVIEW, "name: Solved by hand\n"),
    "an amended commit": lambda stage: amend(stage, REVIEW, "name: Solved by hand\n"),
    "a commit that accord may have made": lambda stage: amend(
        stage, REVIEW, "name: Perhaps by hand\n", "Update the accord kit to v0.0.9\n\nFrom accord.\n"
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("change", BY_PEOPLE.values(), ids=BY_PEOPLE)
def test_a_commit_of_a_person_on_the_branch_is_not_overwritten(stage: Stage, change: Callable[[Stage], None]) -> None:
    sync(stage)
    change(stage)
    after = seen(stage)
    refused = sync(stage)
    assert (refused.outcome, seen(stage)) == (ManyOutcome.REFUSED, after)
    assert "accord did not make" in str(refused.error)


@pytest.mark.slow
def test_an_edit_on_the_default_branch_is_taken_into_the_pull_request(stage: Stage) -> None:
    sync(stage)
    commit(stage, "main", LABELS, "name: Ours by now\n")
    commit(stage, "main", ".github/labels.yml", "[]\n")
    assert sync(stage).outcome is ManyOutcome.APPLIED
    assert text_at(stage, ".github/labels.yml", "accord/sync") == "[]\n"
    assert text_at(stage, LABELS, "accord/sync") == "name: Ours by now\n"
    assert len(stage.get(f"/repos/{CONSUMER}/pulls")) == 1


@pytest.mark.parametrize(
    ("files", "more", "said"),
    [
        ({"README.md": "x\n"}, {}, "does not have the kit"),
        ({PLACE: "{}\n"}, {}, "Cannot read"),
        ({"README.md": "x\n"}, {"archived": True}, "archived"),
    ],
)
def test_the_error_of_a_repository_that_cannot_be_synced_names_the_reason(
    tmp_path: Path, files: dict[str, str], more: dict[str, Any], said: str
) -> None:
    with consumer_stage(tmp_path, files, **more) as stage:
        synced = sync(stage)
        assert (synced.outcome, writes(stage)) == (ManyOutcome.REFUSED, 0)
        assert said in str(synced.error)


@pytest.mark.slow
def test_two_syncs_at_once_make_one_pull_request(stage: Stage) -> None:
    with ThreadPoolExecutor() as pool:
        ended = [running.result() for running in [pool.submit(sync, stage) for _ in range(3)]]
    assert {synced.outcome for synced in ended} <= {ManyOutcome.APPLIED, ManyOutcome.UNCHANGED, ManyOutcome.STOPPED}
    assert sync(stage).outcome in (ManyOutcome.APPLIED, ManyOutcome.UNCHANGED)
    (pull,) = stage.get(f"/repos/{CONSUMER}/pulls")
    assert len(stage.get(f"/repos/{CONSUMER}/pulls/{pull['number']}/commits")) == 1


FAULTS = ("lost-before", "lost-after", "error-500-after", "secondary-403", "truncated")


@pytest.mark.slow
def test_an_accident_at_any_request_ends_like_a_clean_run(stage: Stage) -> None:
    put_back = stage.keep()
    assert sync(stage).outcome is ManyOutcome.APPLIED
    requests = range(1, len(stage.server.requests) + 1)
    written = [nth for nth, (method, *_) in enumerate(stage.server.requests, 1) if method != "GET"]
    by_day, clean = [*zip([1, *written], FAULTS, strict=True)], seen(stage)
    for nth, fault in itertools.product(requests, FAULTS) if NIGHTLY else by_day:
        put_back()
        stage.server.faults.add(Fault(fault, nth=nth))
        synced = sync(stage)
        assert synced.outcome is ManyOutcome.APPLIED, (nth, synced.error)
        stage.server.faults.clear()
        assert seen(stage) == clean, nth


@pytest.mark.slow
@pytest.mark.parametrize("begin", ["first", pytest.param("second", marks=pytest.mark.matrix)])
def test_a_killed_sync_is_finished_by_the_next_one(stage: Stage, begin: str) -> None:
    if begin == "second":
        sync(stage, pin=OLD)
    put_back = stage.keep()
    put_back()
    assert sync(stage).outcome is ManyOutcome.APPLIED
    written = [nth for nth, (method, *_) in enumerate(stage.server.requests, 1) if NIGHTLY or method != "GET"]
    clean = seen(stage)
    for nth in killed(written):
        put_back()
        kill_at(nth, ["sync", "--repo", CONSUMER, "--ref", NEW.commit], stage)
        assert sync(stage).outcome in (ManyOutcome.APPLIED, ManyOutcome.UNCHANGED), nth
        assert seen(stage) == clean, nth
