"""``accord verify|bot-comments run``: whole turns with an agent that answers in the shape that is asked for."""

import base64
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support.commands import Accord
from support.reviewing_turns import MERGED, OPEN, reviewed
from support.stage import Stage

AGENT = """
import json, re, sys
prompt = sys.stdin.read()
open("by-the-agent.txt", "w").write("text")
if "### Criteria" in prompt:
    met = ["no" if "fast" in text else "yes" for text in re.findall(r"^[0-9]+[.] (.+)$", prompt, re.M) if "It " in text]
    left = {"title": "Make it fast", "body": "## Acceptance Criteria\\n\\n- [ ] It is fast"}
    said = {"role": "verifier", "verdict": "fail", "follow_up": left,
            "summary": "Not fast. ![a](https://a.test) ![b](https://b.test)",
            "criteria": [{"number": n, "met": m, "evidence": "a.txt:1"} for n, m in enumerate(met, 1)]}
else:
    numbers = [int(n) for n in re.findall(r"^### Thread ([0-9]+)", prompt, re.M)]
    said = {"role": "bot-comments", "threads": [{"number": n, "done": "fixed", "what": f"Done {n}."} for n in numbers]}
item = {"id": "0", "type": "agent_message", "text": "Here it is.\\n\\n```json\\n" + json.dumps(said) + "\\n```"}
usage = {"input_tokens": 1, "cached_input_tokens": 0, "output_tokens": 1}
for event in ({"type": "thread.started", "thread_id": "0"}, {"type": "turn.started"},
              {"type": "item.completed", "item": item}, {"type": "turn.completed", "usage": usage}):
    print(json.dumps(event))
"""
REGISTRY = """
version: 1
default_agent: script
review_bots: ["reviewer[bot]"]
allowed_hosts: [a.test]
break_words: [not fast]
agents:
  script: {command: [python3, AGENT], codec: codex}
"""


@pytest.fixture(scope="module")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    with reviewed(tmp_path_factory.mktemp("reviewed"), is_short=True) as opened:
        yield opened


def take(accord: Accord, stage: Stage, folder: Path, *words: object) -> Any:
    accord.on(stage)
    agent = accord.file("agent.py", AGENT)
    registry = accord.file("registry.yml", REGISTRY.replace("AGENT", str(agent)))
    return accord.document(*words, "--registry", registry, "--run-dir", folder / "run")


def branches(stage: Stage) -> dict[str, str]:
    found = stage.get(f"/repos/{stage.repository}/branches", per_page=100)
    return {branch["name"]: branch["commit"]["sha"] for branch in found}


@pytest.mark.slow
def test_one_command_judges_a_merged_change_and_keeps_nothing_that_the_agent_changed(
    accord: Accord, stage: Stage, tmp_path: Path
) -> None:
    stage.send("DELETE", f"/repos/{stage.repository}/git/refs/heads/feature")
    before = branches(stage)
    turn = take(accord, stage, tmp_path, "verify", "run", "--pull", MERGED)
    assert (turn["outcome"], turn["action"], turn["reason"]) == ("ended", "follow-up", "verdict-fail")
    assert branches(stage) == before
    issue = stage.issues()[-1]
    assert (issue["title"], "Remaining work of #1 after #2." in issue["body"]) == ("Make it fast", True)
    comments = stage.get(f"/repos/{stage.repository}/issues/{MERGED}/comments")
    assert "| ❌ | 2 | It is \\| fast | a.txt:1 |" in comments[-1]["body"]
    assert "N\u2060ot fast. ![a](https://a.test) [b](https://b.test)" in comments[-1]["body"]


@pytest.mark.parametrize(
    ("event", "actor", "reason"),
    [
        ("issue_comment", "mallory", "not-merged"),
        ("issue_comment", "other[bot]", "not-merged"),
        ("issue_comment", "maintainer", "no-work-item"),
        ("workflow_dispatch", "mallory", "no-work-item"),  # who may start workflows may write
        ("pull_request", "maintainer", "not-merged"),
        ("", "", "no-work-item"),
    ],
)
def test_the_event_and_who_caused_it_decide_whether_an_open_pull_request_is_judged(
    accord: Accord, stage: Stage, tmp_path: Path, event: str, actor: str, reason: str
) -> None:
    accord.monkeypatch.setenv("GITHUB_EVENT_NAME", event)
    accord.monkeypatch.setenv("GITHUB_ACTOR", actor)
    turn = take(accord, stage, tmp_path, "verify", "run", "--pull", OPEN, "--dry-run")
    assert (turn["reason"], turn["requests"]["write"]) == (reason, 0)


@pytest.mark.slow
def test_one_command_answers_all_threads_and_names_its_commit(accord: Accord, stage: Stage, tmp_path: Path) -> None:
    stage.send("PUT", f"/repos/{stage.repository}/issues/{OPEN}/labels", labels=["agent:script"])
    turn = take(accord, stage, tmp_path, "bot-comments", "run", "--pull", OPEN)
    assert (turn["outcome"], turn["reason"]) == ("ended", "no-threads")
    head = branches(stage)["long"]
    said = [thread.comments[-1].body for thread in stage.adapter().review_threads(OPEN)]
    assert [body.partition("\n")[0] for body in said if "accord:thread-reply" in body and "Use a set" not in body] == [
        f"Fixed in {head}.",
        f"Fixed in {head}.",
    ]
    found = stage.get(f"/repos/{stage.repository}/contents/by-the-agent.txt", ref="long")
    assert base64.b64decode(found["content"]) == b"text"
    again = take(accord, stage, tmp_path / "again", "bot-comments", "run", "--pull", OPEN)
    assert (again["outcome"], again["reason"]) == ("idle", "no-threads")
