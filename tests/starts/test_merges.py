"""Items of a pull request that is merged into another branch than the default one: GitHub closes none, accord may."""

from pathlib import Path
from typing import Any

import pytest
from support.starts import LABELS, PENDING, PULL, READY, Starts, starts_stage

from accord.engine.operations import OperationStatus
from accord.engine.receipts import Outcome
from accord.starts.choose import check_event
from accord.starts.config import AccordConfig
from accord.starts.events import read_event
from accord_sandbox.faults import Fault

ON = {"merges": True, "ready": True}


def merged(starts: Starts, status: str, base: str = "other") -> tuple[str, dict[str, Any]]:
    """Merge the pull request of an item with this status, and return the event."""
    pull = f"{starts.root}/pulls/{PULL}"
    starts.stage.send("PUT", f"{starts.root}/issues/{READY}/labels", labels=[*LABELS, f"status:{status}"])
    starts.stage.send("PATCH", pull, body=f"Closes #{READY}", **({"base": base} if base != "main" else {}))
    starts.stage.send("PUT", f"{pull}/merge", merge_method="squash")
    return starts.pull_event("closed")


def item(starts: Starts) -> tuple[str, list[str]]:
    found = starts.stage.get(f"{starts.root}/issues/{READY}")
    return found["state"], [one["name"] for one in found["labels"] if one["name"].startswith("status:")]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("status", "base", "switches", "state"),
    [
        ("review", "other", ON, "closed"),
        ("approved", "other", ON, "closed"),
        ("review", "other", {"merges": True}, "closed"),
        ("in-progress", "other", ON, "open"),
        ("blocked", "other", ON, "open"),
        ("review", "other", {"ready": True}, "open"),
        ("review", "main", ON, "closed"),
    ],
)
def test_a_merge_elsewhere_closes_its_item_once_where_the_configuration_says_so(
    tmp_path: Path, status: str, base: str, switches: dict[str, bool], state: str
) -> None:
    with starts_stage(tmp_path, starts=switches) as stage:
        starts = Starts(stage)
        event = merged(starts, status, base)
        receipt = starts.deliver(event)
        is_ours = state == "closed" and base != "main"
        assert receipt.outcome is (Outcome.APPLIED if is_ours else Outcome.UNCHANGED), receipt.error
        assert item(starts) == (state, [] if is_ours else [f"status:{status}"])
        assert ("status:ready" in starts.labels(PENDING)) is (is_ours and "ready" in switches)
        assert starts.deliver(event).writes == 0
        stage.send("PATCH", f"{starts.root}/issues/{READY}", state="open")
        stage.send("PUT", f"{starts.root}/issues/{READY}/labels", labels=[*LABELS, "status:review"])
        if is_ours:
            assert starts.deliver(event).writes == 0, "a person opened it again"


@pytest.mark.slow
def test_a_closing_that_was_cut_off_goes_on_with_the_items_that_wait(tmp_path: Path) -> None:
    with starts_stage(tmp_path, starts=ON) as stage:
        starts = Starts(stage)
        event = merged(starts, "review")
        stage.server.faults.add(Fault("lost-before", method="PUT", path=rf"/issues/{PENDING}/labels$", times=99))
        assert starts.deliver(event).outcome is Outcome.STOPPED
        stage.server.faults.clear()
        assert (item(starts)[0], "status:ready" in starts.labels(PENDING)) == ("closed", False)
        receipt = starts.deliver(event)
        assert [entry.status for entry in receipt.operations] == [OperationStatus.DONE]
        assert "status:ready" in starts.labels(PENDING)


@pytest.mark.slow
@pytest.mark.parametrize("prefix", ["accord", "bots", "a/b"])
def test_an_item_whose_pull_request_was_closed_is_answered_with_what_to_do(tmp_path: Path, prefix: str) -> None:
    with starts_stage(tmp_path) as stage:
        starts = Starts(stage)
        stage.send("PUT", f"{starts.root}/issues/{READY}/labels", labels=[*LABELS, "status:review"])
        starts.deliver(starts.comment(READY, "/accord implement"))
        assert "no open pull request closes it. Run `accord items move 2 --to pending`." in starts.status(READY)
        main = stage.get(f"{starts.root}/git/ref/heads/feature")["object"]["sha"]
        stage.send("POST", f"{starts.root}/git/refs", ref=f"refs/heads/{prefix}/{READY}", sha=main)
        body = {"title": "Work", "head": f"{prefix}/{READY}", "base": "main", "body": f"Closes #{READY}"}
        number = stage.send("POST", f"{starts.root}/pulls", **body)["number"]
        starts.deliver(starts.comment(READY, "/accord implement"))
        assert f"It has the pull request #{number}." in starts.status(READY)
        stage.send("PATCH", f"{starts.root}/pulls/{number}", state="closed")
        starts.deliver(starts.comment(READY, "/accord implement"))
        if prefix == "accord":
            assert f"#{number} was closed. Run `accord items move 2 --to pending`." in starts.status(READY)


PAYLOAD: dict[str, Any] = {
    "number": 4,
    "head": {"sha": "a" * 40, "repo": {"full_name": "octo/code"}},
    "base": {"ref": "develop"},
    "merged": True,
    "merged_at": "2026-11-02T09:00:00Z",
    "updated_at": "2026-11-02T09:00:01Z",
}
AROUND = {
    "repository": {"full_name": "octo/code", "default_branch": "main"},
    "sender": {"login": "merger[bot]", "type": "Bot"},
}


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({}, ""),
        ({"merged": False}, None),
        ({"base": {"ref": "main"}}, None),
        ({"head": {"sha": "a" * 40, "repo": {"full_name": "mallory/code"}}}, "comes from a fork"),
    ],
)
def test_only_merges_into_other_branches_close_items(change: dict[str, Any], reason: str | None) -> None:
    event = read_event("pull_request", {"action": "closed", "pull_request": {**PAYLOAD, **change}, **AROUND})
    config = AccordConfig.model_validate({"starts": {"merges": True}})
    assert (event is None) == (reason is None)
    assert event is None or (reason or "") in check_event(event, config)
    assert event is None or "off" in check_event(event, AccordConfig())
