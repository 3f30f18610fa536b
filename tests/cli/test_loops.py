"""``accord keepalive|autofix|verify|bot-comments decide`` tells what a loop does next."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from support.loops import keepalive

from accord.core.kinds import KINDS

if TYPE_CHECKING:
    from conftest import Accord

FACTS = keepalive().model_dump(mode="json")
PULL = FACTS["pull"]
LOOPS: dict[str, tuple[dict[str, Any], str]] = {
    "keepalive": (FACTS, "tasks-open"),
    "autofix": (
        {
            **{key: FACTS[key] for key in ("now", "agents")},
            "pull": {**PULL, "body": ""},
            "checks": {**FACTS["checks"], "failing": ["lint"]},
            "logs": [{"check": "lint", "log": "error: ghp_" + "a1B2" * 9}],
        },
        "checks-failing",
    ),
    "verify": ({**{key: FACTS[key] for key in ("now", "agents", "pull")}, "commit": "c"}, "not-merged"),
    "bot-comments": ({key: FACTS[key] for key in ("now", "agents", "pull")}, "no-threads"),
}


@pytest.mark.parametrize("loop", LOOPS)
def test_the_decision_is_one_document(accord: Accord, loop: str) -> None:
    facts, reason = LOOPS[loop]
    ended = accord(loop, "decide", accord.file("facts.json", facts), "--format", "json")
    assert (ended.code, ended.document["reason"]) == (0, reason)
    assert {"action", "message", "warnings", "add_labels"} <= ended.document.keys()
    assert "ghp_a1B2" not in ended.out


def test_the_facts_of_the_page_lead_to_a_run(accord: Accord) -> None:
    page = (Path(__file__).parents[2] / "docs/keepalive.md").read_text(encoding="utf-8")
    (facts,) = re.findall(r"```json\n(.+?)```", page, re.DOTALL)
    ended = accord("keepalive", "decide", accord.file("facts.json", facts), "--format", "json")
    assert (ended.code, ended.document["reason"], ended.document["agent"]) == (0, "tasks-open", "codex")


@pytest.mark.parametrize("loop", LOOPS)
def test_facts_that_lack_a_part_are_findings_with_their_line(accord: Accord, loop: str) -> None:
    facts = {key: value for key, value in LOOPS[loop][0].items() if key != "pull"} | {"surprise": 1}
    file = accord.file("facts.json", facts)
    ended = accord(loop, "decide", file, "--format", "json")
    assert ended.code == 1
    assert {finding["path"] for finding in ended.document["findings"]} == {"/pull", "/surprise"}
    told = accord(loop, "decide", file)
    assert told.code == 1
    assert "surprise" in told.out


@pytest.mark.parametrize("moment", ["2026-11-01T12:00:00", "yesterday", "", None])
def test_a_timestamp_without_a_zone_is_refused(accord: Accord, moment: str | None) -> None:
    ended = accord("keepalive", "decide", accord.file("facts.json", {**FACTS, "now": moment}), "--format", "json")
    assert (ended.code, ended.document["findings"][0]["path"]) == (1, "/now")


def test_people_read_what_happens_next(accord: Accord) -> None:
    facts = {**FACTS, "token": {"triggers_workflows": False}}
    ended = accord("keepalive", "decide", accord.file("facts.json", facts))
    lines = ended.out.splitlines()
    assert lines[:2] == ["run (tasks-open): 2 of 3 tasks are open.", "  agent codex, iteration 1"]
    assert "starts no workflow" in lines[2]


@pytest.mark.parametrize("output_format", ["text", "json"])
def test_no_name_of_a_check_or_label_puts_a_secret_on_show(accord: Accord, output_format: str) -> None:
    token = "ghp_" + "a1B2" * 9
    checks = {**FACTS["checks"], "pending": [f"lint {token}"]}
    pending = accord("keepalive", "decide", accord.file("facts.json", {**FACTS, "checks": checks}))
    labels = [*PULL["labels"], f"agent:{token}"]
    odd = accord(
        "keepalive",
        "decide",
        accord.file("odd.json", {**FACTS, "pull": {**PULL, "labels": labels}}),
        "--format",
        output_format,
    )
    assert "Pending: lint [redacted" in pending.out
    assert "label agent:[redacted" in odd.out
    assert token not in pending.out + odd.out


def test_facts_say_of_which_kind_they_are(accord: Accord) -> None:
    ended = accord("check", accord.file("facts.json", FACTS), "--format", "json")
    assert (ended.code, ended.document["documents"][0]["kind"]) == (0, "keepalive-facts")


def test_a_verdict_is_checked_as_a_document(accord: Accord) -> None:
    verdict = {"role": "verifier", "verdict": "pass", "summary": "x", "follow_up": None}
    judged = [{"number": 1, "met": "no", "evidence": "a.py:1"}]
    ended = accord("check", accord.file("verdict.json", {**verdict, "criteria": judged}), "--format", "json")
    assert [finding["code"] for finding in ended.document["documents"][0]["findings"]] == ["verdict-inconsistent"]
    assert json.dumps(KINDS["verdict"].marks) == '{"role": "verifier"}'
