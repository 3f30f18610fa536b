"""``accord analyze`` tells which tasks are done, to people, to programs and to the runner."""

import json
from collections.abc import Iterator

import pytest
from support.commands import Accord
from support.model_server import ModelServer, chat, error, serving_models

KEYS = ("OPENAI_API_KEY", "OPENAI_BASE_URL", "CLAUDE_API_STRANSKE", "ANTHROPIC_API_KEY", "ANTHROPIC_BASE_URL")
BODY = "- [ ] Add tests\n- [ ] Fix docs\n- [x] Old thing\n"
TOKEN = "ghp_" + "a1B2" * 9


@pytest.fixture(scope="module")
def served() -> Iterator[ModelServer]:
    with serving_models() as server:
        yield server


@pytest.fixture
def arguments(accord: Accord, served: ModelServer, monkeypatch: pytest.MonkeyPatch) -> list[object]:
    for name in KEYS:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("OPENAI_BASE_URL", f"{served.url}/v1")
    monkeypatch.setenv("OPENAI_API_KEY", "correct-horse-battery")
    message = accord.file("message.md", "I did it.\n\n- [x] Add tests\n")
    return ["analyze", "--pr-body", accord.file("body.md", BODY), "--message", message]


def test_the_outputs_are_one_object_of_texts(accord: Accord, arguments: list[object], served: ModelServer) -> None:
    served.play(chat({"completed_tasks": [2, 1], "confidence": 0.95}))
    document = accord.document(*arguments)
    attempts = json.loads(document.pop("llm-attempts"))
    assert document == {
        "llm-analysis-run": "true",
        "llm-provider": "openai",
        "llm-model": "gpt-test-2026",
        "llm-confidence": "0.95",
        "llm-completed-tasks": '["Add tests", "Fix docs"]',
        "llm-has-completions": "true",
    }
    assert [(attempt["provider"], attempt["outcome"]) for attempt in attempts] == [
        ("github-models", "skipped"), ("openai", "answered"),
    ]  # fmt: skip


def test_people_see_the_tasks_and_who_was_asked(accord: Accord, arguments: list[object], served: ModelServer) -> None:
    served.play(error(401, "invalid_api_key"))
    ended = accord(*arguments)
    lines = ended.out.splitlines()
    assert lines[:3] == [
        "1 of 2 open tasks completed, confidence 0.7 (regex-fallback)", "  [x] Add tests", "  [ ] Fix docs",
    ]  # fmt: skip
    assert "retired on 2026-07-30" in lines[3]
    assert "openai failed" in lines[4]
    assert "HTTP 401 (invalid_api_key)" in lines[4]


def test_a_step_gets_outputs_and_a_summary(accord: Accord, arguments: list[object], served: ModelServer) -> None:
    served.play(chat({"completed_tasks": [2], "confidence": 1}))
    step = accord.in_step(annotates=False)
    accord.file("body.md", f"- [ ] Add tests\n- [ ] <b>@octocat</b> {TOKEN}\n")
    accord(*arguments)
    assert step.outputs["llm-completed-tasks"] == '["<b>@octocat</b> [redacted: github-token]"]'
    assert "- ✅ \\<b\\>@\u200coctocat" in step.summary
    assert TOKEN not in step.output.read_text() + step.summary


def test_evidence_of_the_run_reaches_the_model(accord: Accord, arguments: list[object], served: ModelServer) -> None:
    served.play(chat({"completed_tasks": [], "confidence": 0.9}))
    ran, stat = accord.file("ran.txt", "pytest -q\n\nruff check\n"), accord.file("stat.txt", " a.py | 3")
    document = accord.document(*arguments, "--commands", ran, "--diff-stat", stat)
    assert document["llm-has-completions"] == "false"
    shown = served.seen[0].body["messages"][1]["content"]
    assert "\npytest -q\nruff check\n" in shown
    assert "\n a.py | 3\n" in shown


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (["--providers", "gemini"], "Unknown provider `gemini`."),
        (["--commands", "nowhere.txt"], "Cannot read `nowhere.txt`"),
    ],
)
def test_wrong_options_are_refused_before_a_provider_is_asked(
    accord: Accord, arguments: list[object], served: ModelServer, more: list[str], said: str
) -> None:
    served.play(chat({"completed_tasks": [], "confidence": 0.9}))
    ended = accord(*arguments, *more)
    assert (ended.code, said in ended.err, served.seen) == (2, True, [])


def test_bytes_that_are_not_text_are_replaced(accord: Accord, arguments: list[object]) -> None:
    (accord.home / "message.md").write_bytes(b"\xef\xbb\xbf- [x] Add tests\r\n\r\n\xff\x00")
    document = accord.document(*arguments, "--providers", "regex-fallback")
    assert document["llm-completed-tasks"] == '["Add tests"]'
