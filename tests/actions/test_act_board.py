"""The dashboard in a consumer's repository: it is written, a ticked box starts work, and the box is shown as started.

Each job has a token with just the permissions that it asks for, and the local GitHub holds it to them.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import requests
from support.act import (
    CONSUMER,
    TEMPLATES,
    Bench,
    job_token,
    job_tokens,
    make_consumer,
    permissions_of,
    template,
    with_own_tokens,
)
from support.plans import task_body
from support.stage import seed_file

from accord_sandbox.server import RunningSandbox, serving
from accord_sandbox.show import document

pytestmark = pytest.mark.slow

NAMES = ("plan", "implement", "review", "start", "board")
FILES = {f".github/workflows/accord-{name}.yml": (TEMPLATES / f"accord-{name}.yml").read_text() for name in NAMES}
ITEM = {"labels": ["task:implement", "status:ready", "priority:low", "complexity:low"], "body": task_body()}
BOARD_TOKEN = job_token(permissions_of(template("board"))["board"])


@pytest.fixture
def github(tmp_path: Path) -> Iterator[RunningSandbox]:
    origin = make_consumer(tmp_path / "origin", FILES)
    issues = [{"title": "Ready | $(touch hit) ${{ github.token }}", **ITEM}, {"title": "Another", **ITEM}]
    repository = {"name": CONSUMER, "git": str(origin), "issues": issues, "collaborators": {"wanda": "write"}}
    tokens = [*job_tokens(FILES.values()), {"token": "writer", "login": "wanda"}]
    with serving(
        tmp_path / "sandbox", seed=seed_file(tmp_path, {"tokens": tokens, "repositories": [repository]})
    ) as running:
        yield running


def test_a_ticked_box_starts_its_item_once_and_is_shown_as_started(
    bench: Bench, github: RunningSandbox, tmp_path: Path
) -> None:
    def api(method: str, path: str, **body: Any) -> Any:
        url, headers = f"{github.url}/repos/{CONSUMER}/{path}", {"authorization": "Bearer writer"}
        answer = requests.request(method, url, headers=headers, json=body or None, timeout=600)
        answer.raise_for_status()
        return answer.json()

    def run(name: str, number: int, **more: Any) -> Any:
        given = {"api_url": github.url, "token": BOARD_TOKEN, **more}
        ended = bench.with_own_tokens.run(with_own_tokens(template(name)), tmp_path / f"run-{number}", **given)
        assert ended.exit_code == 0, ended.trouble
        return ended

    written = run("board", 1)
    assert "### Ready to start (2)" in written.summary
    assert f"{github.url}/{CONSUMER}/issues/1)" in written.summary
    (board,) = [issue for issue in api("GET", "issues") if issue["user"]["login"] == "github-actions[bot]"]
    assert board["body"].count("- [ ] <!--") == 2

    ticked = api("PATCH", f"issues/{board['number']}", body=board["body"].replace("- [ ]", "- [x]", 1))
    event = {"action": "edited", "issue": ticked, "changes": {"body": {"from": board["body"]}}}
    event |= {"repository": {"full_name": CONSUMER, "default_branch": "main"}}
    tick = {**event, "sender": {"login": "wanda", "type": "User"}}
    ended = run("start", 2, event="issues", payload=tick)
    assert ended.jobs == {"Accord start/Start": "success", "Accord start/Board": "success"}
    assert [entry["inputs"]["work-item"] for entry in document(tmp_path / "sandbox")["dispatches"]] == ["1"]
    body = api("GET", f"issues/{board['number']}")["body"]
    assert ("### Running (1)" in body, "- [x]" in body, body.count("- [ ] <!--")) == (True, False, 1)

    bot = {**event, "sender": {"login": "github-actions[bot]", "type": "Bot"}}
    assert run("start", 3, event="issues", payload=bot).jobs == {}
    copied = {**tick, "issue": {**ticked, "user": {"login": "wanda"}}}
    assert run("start", 4, event="issues", payload=copied).jobs == {}
    assert not list(tmp_path.rglob("hit"))
