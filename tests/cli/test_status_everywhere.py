"""One world, shown as text, as JSON, on the board and in the dashboard's issue: all say the same."""

import html
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from markdown_it import MarkdownIt
from support.commands import Accord
from support.handoffs import OUTPUTS, handoff, patch
from support.plans import task_body
from support.stage import Stage, staged
from support.trees import git

from accord.board.dashboard import TITLE
from accord.board.models import HEADINGS, WITH_COMMAND
from accord.text.hidden import GUARD

TASK = ["task:implement", "priority:low", "complexity:low"]
ODD = 'Write a | b, <b>bold</b> & "quoted" \\ `code` _x_ *y*'


def task(title: str, *labels: str, **more: Any) -> dict[str, Any]:
    return {"title": title, "labels": [*TASK, *labels], "body": task_body(), **more}


SEED = {
    "repositories": [
        {
            "name": "octo/web",
            "files": {"a.txt": "One\n"},
            "branches": {"accord/1": {"b.txt": "Two\n"}, "other": {"c.txt": "Three\n"}},
            "issues": [
                task(ODD, "status:ready"),
                task("Blocked by the first", "status:pending", blocked_by=[1]),
                task("Which way?", "status:blocked"),
                {"title": "Which format?", "labels": ["task:refinement", "status:pending"]},
                task("Without a status"),
                task("Ask a person", "status:ready", "needs-human"),
                task("Done long ago", "status:review", "status:ready"),
                task("To be closed", "status:ready"),
                {"title": "Change <x>", "head": "accord/1", "body": "Closes #1", "labels": ["agent:codex"]},
                {"title": "A draft", "head": "other", "draft": True, "labels": ["needs-human"]},
            ],
        }
    ]
}


@pytest.fixture
def world(tmp_path: Path, accord: Accord) -> Iterator[Stage]:
    with staged(tmp_path / "sandbox", seed=SEED, rate_limits=None) as stage:
        accord.on(stage)
        stage.send("PATCH", "/repos/octo/web/issues/8", state="closed")
        head = stage.get("/repos/octo/web/pulls/9")["head"]["sha"]
        run = {"head_sha": head, "conclusion": "action_required", "name": "CI"}
        url = f"{stage.server.url}/_sandbox/runs/octo/web/77"
        assert stage.session.put(url, json=run, timeout=600).status_code == 204
        assert accord("session", "new", "login", "--lean").code == 0
        (folder,) = (accord.home / ".agents-work").iterdir()
        assert accord("session", "ask", folder, "--question", "Which <provider> & why?").code == 0
        git(accord.home, "init", "--quiet")
        accord.file("task.json", handoff("implementing"))
        plan = accord.file("patch.json", patch(**OUTPUTS))
        moved = accord("handoff", "move", "--work-item", "7", "--to", "planning", "--role", "planner", "--patch", plan)
        assert moved.code == 0, moved.err
        yield stage


def plain(page: str) -> str:
    """The text of a page: without tags, with the characters that its entities stand for, and single blanks."""
    in_a_line = re.sub(r"</?(?:a|code|em|span|strong)\b[^>]*>", "", page)
    return " ".join(html.unescape(re.sub(r"<[^>]*>", " ", in_a_line)).replace(GUARD, "").split())


def sections_of(text: str) -> dict[str, tuple[int, str]]:
    """The sections of a plain text by name: the count in their heading, and their text."""
    words = "|".join(HEADINGS.values())
    found = list(re.finditer(rf"({words}) \(?(\d+)\)?", text))
    names = {heading: name for name, heading in HEADINGS.items()}
    ends = [*(match.start() for match in found[1:]), len(text)]
    return {names[match[1]]: (int(match[2]), text[match.end() : end]) for match, end in zip(found, ends, strict=True)}


def assert_says(text: str, document: dict[str, Any]) -> None:
    """Check that a plain text has the entries of a document: in their sections, in their order, with every part."""
    sections = sections_of(text)
    assert {name: count for name, (count, _) in sections.items()} == {
        name: len(document[name]) for name in HEADINGS if document[name]
    }
    for name, (_, shown) in sections.items():
        position = 0
        for entry in document[name]:
            at = shown.find(" ".join(f"{entry['id']} {entry['title']}".split()), position)
            assert at >= position, (name, entry, shown)
            position = at
            assert " ".join(entry["why"].split()) in shown[at:], (name, entry, shown)
            if name in WITH_COMMAND:
                assert entry["command"] in shown[at:], (name, entry, shown)


@pytest.mark.slow
def test_the_text_the_board_and_the_dashboard_say_what_the_document_says(accord: Accord, world: Stage) -> None:
    document = accord.document("status", "--limit", "0")
    shown = [(name, entry["kind"], entry["id"]) for name in HEADINGS for entry in document[name]]
    assert {kind for _, kind, _ in shown} >= {"question", "approval", "protected", "needs-human", "broken", "handoff"}
    assert len(shown) == 13
    assert ("ready", "handoff", "#7") in shown
    assert_says(" ".join(accord("status", "--limit", "0").out.split()), document)

    assert accord("board", "--static", "board").code == 0
    page = (accord.home / "board" / "index.html").read_text(encoding="utf-8")
    assert_says(plain(page.partition("<main")[2].partition("</main>")[0]), document)

    assert accord("board", "issue").code == 0
    (board,) = [issue for issue in world.issues() if issue["title"] == TITLE]
    page = plain(MarkdownIt("gfm-like", {"linkify": False}).render(board["body"]))
    of_repository = {
        name: [entry for entry in document[name] if entry["repository"] == "octo/web"] for name in HEADINGS
    }
    assert json.dumps(of_repository) != json.dumps({name: document[name] for name in HEADINGS})
    assert_says(page, of_repository)
