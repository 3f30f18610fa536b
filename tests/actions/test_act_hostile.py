"""Texts of an agent that want to become commands of the runner, of the shell, or outputs: none of them may."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from support.act import Bench, Run
from support.plans import plan, task
from test_act_apply import APPLIED

from accord_sandbox.planting import INSTALLATION_TOKEN
from accord_sandbox.server import RunningSandbox
from accord_sandbox.show import document

pytestmark = pytest.mark.slow


def texts(canary: Path) -> list[str]:
    return [
        "::error file=README.md,line=1::forged",
        "\n::warning::forged\n",
        "\r::set-output name=outcome::forged",
        "##[warning]forged",
        "done ##[set-output name=outcome]forged",
        "::add-mask::applied",
        "%0A::error::forged",
        "${{ github.token }}",
        "${{ secrets.GITHUB_TOKEN }}",
        f"`touch {canary}`",
        f"$(touch {canary})",
        f'"; touch {canary}; #',
        f"' || touch {canary} #",
        "EOF\noutcome=forged\nEOF",
        "ghadelimiter_0\noutcome<<X\nforged\nX",
        "x\n\noutcome<<accord-0\nforged\naccord-0\n",
        "a\u2028::error::forged\u2029::error::forged",
        "\x1b[2J::error::forged",
    ]


def hostile_plan(canary: Path) -> dict[str, Any]:
    items = []
    for i, text in enumerate(texts(canary)):
        title = " ".join(text.split())
        items.append(task(f"t{i} {text}"[:80], title=title, objective=text, context=text, in_scope=f"- src/t{i}.py"))
    return plan(*items)


def run_hostile(bench: Bench, github: RunningSandbox, tmp_path: Path, result: dict[str, Any]) -> Run:
    files = {"plan.json": json.dumps(result)}
    return bench.run(APPLIED, tmp_path, files=files, api_url=github.url, token=INSTALLATION_TOKEN)


def test_hostile_texts_are_applied_as_mere_texts(bench: Bench, github: RunningSandbox, tmp_path: Path) -> None:
    canary = tmp_path / "canary"
    result = hostile_plan(canary)
    leaking = {"title": f"Use {INSTALLATION_TOKEN}", "context": f"The token is {INSTALLATION_TOKEN}."}
    result["create"].append(task("leak", **leaking, in_scope="- src/leak.py"))
    run = run_hostile(bench, github, tmp_path, result)

    assert run.exit_code == 0, run.trouble
    assert run.forged == []
    outputs = run.outputs("apply")
    assert outputs["outcome"] == "applied"
    assert set(outputs) == {"outcome", "items", "run-key", "receipt", "revision", "review"}
    assert set(json.loads(outputs["items"])) == {"leak", *(f"t{i} {text}"[:80] for i, text in enumerate(texts(canary)))}
    titles = [" ".join(text.replace("\x1b[2J", "").replace("\x1b", "").split()) for text in texts(canary)]
    found = [issue["title"] for issue in document(tmp_path / "sandbox")["issues"]]
    assert sorted(title for title in found if not title.startswith("Use ")) == sorted(titles)
    assert {mark.title for mark in run.annotations} <= {"label-not-there", "objective-long", "secret-redacted"}
    assert "Sanitised before posting: " in run.summary
    assert not canary.exists()

    shown = [event for event in run.events if not str(event.get("stepID")).startswith("['result")]
    ours = json.dumps([event for event in shown if event.get("jobID") != "agent"])
    kept = "".join(path.read_text() for path in run.artifacts.iterdir())
    assert INSTALLATION_TOKEN not in "".join([run.summary, json.dumps(outputs), ours, kept])


def test_hostile_texts_in_findings_forge_no_annotations(bench: Bench, github: RunningSandbox, tmp_path: Path) -> None:
    canary = tmp_path / "canary"
    result = plan(*(task(f"t{i}", text, in_scope=f"- src/t{i}.py") for i, text in enumerate(texts(canary))))
    result["create"][0]["labels"].append("\n::error::forged")
    run = run_hostile(bench, github, tmp_path, result)

    assert (run.forged, run.outputs("apply")["outcome"]) == ([], "rejected")
    assert {mark.title for mark in run.annotations} <= {"unknown-reference", "label-unknown", "more findings"}
    assert all(mark.message != "forged" for mark in run.annotations)
    assert not canary.exists()
