"""``accord keepalive|autofix|verify|bot-comments decide`` tells what a loop does next."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
from support.commands import Accord
from support.loops import keepalive

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
    decision = accord.document(loop, "decide", accord.file("facts.json", facts))
    assert decision["reason"] == reason
    assert {"action", "message", "warnings", "add_labels"} <= decision.keys()
    assert "ghp_a1B2" not in json.dumps(decision)


def test_the_facts_of_the_page_lead_to_a_run(accord: Accord) -> None:
    page = (Path(__file__).parents[2] / "docs/keepalive.md").read_text(encoding="utf-8")
    (facts,) = re.findall(r"```json\n(.+?)```", page, re.DOTALL)
    decision = accord.document("keepalive", "decide", accord.file("facts.json", facts))
    assert (decision["reason"], decision["agent"]) == ("tasks-open", "codex")


@pytest.mark.slow
@pytest.mark.parametrize("loop", LOOPS)
def test_facts_that_lack_a_part_are_findings(accord: Accord, loop: str) -> None:
    facts = {key: value for key, value in LOOPS[loop][0].items() if key != "pull"} | {"surprise": 1}
    file = accord.file("facts.json", facts)
    refused = accord.document(loop, "decide", file, code=1)
    assert {finding["path"] for finding in refused["findings"]} == {"/pull", "/surprise"}
    told = accord(loop, "decide", file)
    assert (told.code, "surprise" in told.out) == (1, True)


@pytest.mark.parametrize(
    ("loop", "part", "more"),
    [
        ("keepalive", "checks", {}),
        ("autofix", "checks", {}),
        ("verify", "work_items", {"is_asked": True}),
        ("bot-comments", "threads", {}),
    ],
)
def test_nothing_starts_on_a_fact_that_was_not_read(accord: Accord, loop: str, part: str, more: dict[str, Any]) -> None:
    facts = accord.file("facts.json", LOOPS[loop][0] | more | {part: None})
    refused = accord.document(loop, "decide", facts, code=1)
    assert [(one["path"], "not read" in one["message"]) for one in refused["findings"]] == [(f"/{part}", True)]


def test_people_read_what_happens_next(accord: Accord) -> None:
    facts = {**FACTS, "token": {"triggers_workflows": False}}
    lines = accord("keepalive", "decide", accord.file("facts.json", facts)).out.splitlines()
    assert lines[:2] == ["run (tasks-open): Open tasks: 2 of 3.", "  agent codex, iteration 1"]
    assert "until a person approves them" in lines[2]


@pytest.mark.parametrize("form", ["text", "json"])
def test_no_name_of_a_check_or_label_puts_a_secret_on_show(accord: Accord, form: str) -> None:
    token = "ghp_" + "a1B2" * 9
    checks = {**FACTS["checks"], "pending": [f"lint {token}"]}
    pull = {**PULL, "labels": [*PULL["labels"], f"agent:{token}"]}
    pending = accord("keepalive", "decide", accord.file("facts.json", {**FACTS, "checks": checks}))
    odd = accord("keepalive", "decide", accord.file("odd.json", {**FACTS, "pull": pull}), "--format", form)
    assert "Pending: lint [redacted" in pending.out
    assert "label agent:[redacted" in odd.out
    assert token not in pending.out + odd.out


def test_facts_and_verdicts_are_checked_as_documents(accord: Accord) -> None:
    verdict = {"role": "verifier", "verdict": "pass", "summary": "x", "follow_up": None}
    verdict |= {"criteria": [{"number": 1, "met": "no", "evidence": "a.py:1"}]}
    checked = accord.document("check", accord.file("facts.json", FACTS), accord.file("v.json", verdict), code=1)
    assert [(found["kind"], [one["code"] for one in found["findings"]]) for found in checked["documents"]] == [
        ("keepalive-facts", []), ("verdict", ["verdict-inconsistent"]),
    ]  # fmt: skip
