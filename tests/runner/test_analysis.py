"""Models are asked in turn over HTTP; an answer that does not fit the tasks is a failed attempt."""

import json
import re
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.clocks import ManualClock
from support.model_server import CHAT_PATH, MESSAGES_PATH, ModelServer, Play, chat, error, messages, serving_models
from support.networks import DEAD, Authority, forget_network, serving_tls
from support.rotation import NIGHTLY

from accord.agents.providers import ALL
from accord.core.clock import SystemClock
from accord.core.errors import WrongUsage
from accord.runner.analysis import providers as asking
from accord.runner.analysis.analyse import Analysis, TaskEvidence, analyse, answer_in
from accord.runner.analysis.providers import ProviderFailed, reply_in
from accord.runner.outputs import analysis_outputs
from accord.text.posting import PostingPolicy
from accord.text.redaction import Redactor

KEY = "correct-horse-battery-staple"
BODY = "## API\n\n- [ ] Add tests\n- [x] Old thing\n- [ ] Fix docs\n\n## UI\n\n- [ ] Add tests\n"
QUESTION = TaskEvidence(BODY, "I wrote the tests.", ("pytest -q",), " tests/test_a.py | 3 +++")
GOOD = {"completed_tasks": [1], "confidence": 0.9}
START = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)


@pytest.fixture(scope="module")
def served() -> Iterator[ModelServer]:
    with serving_models() as server:
        yield server


@pytest.fixture
def openai(served: ModelServer) -> ModelServer:
    return served.play(chat(GOOD))


def environment(server: ModelServer, **more: str) -> dict[str, str]:
    """All three providers on one server, with a key each."""
    return {
        "ACCORD_GITHUB_MODELS_URL": f"{server.url}/inference",
        "GITHUB_TOKEN": f"github-{KEY}",
        "OPENAI_BASE_URL": f"{server.url}/v1",
        "OPENAI_API_KEY": f"openai-{KEY}",
        "ANTHROPIC_BASE_URL": server.url,
        "CLAUDE_API_STRANSKE": f"claude-{KEY}",
        **more,
    }


def ask(server: ModelServer, *providers: str, question: TaskEvidence = QUESTION, **more: Any) -> Analysis:
    given = {"environment": environment(server), "clock": ManualClock(START), "providers": providers or ALL, **more}
    return analyse(question, **given)


def outcomes(analysis: Analysis) -> list[tuple[str, str]]:
    return [(attempt.provider, attempt.outcome) for attempt in analysis.attempts]


def test_chat_completions_are_asked_with_an_enforced_schema(openai: ModelServer) -> None:
    found = ask(openai, "openai")
    assert replace(found, attempts=()) == Analysis("openai", "gpt-test-2026", 0.9, ("Add tests",), ())
    (seen,) = openai.seen
    assert (seen.path, seen.headers["authorization"]) == (CHAT_PATH, f"Bearer openai-{KEY}")
    assert seen.body["model"] == "gpt-6-luna"
    assert "1.0 if the evidence states it, 0.8 to 0.9 if you inferred it" in seen.body["messages"][0]["content"]
    enforced = seen.body["response_format"]
    assert (enforced["type"], enforced["json_schema"]["strict"]) == ("json_schema", True)
    schema = enforced["json_schema"]["schema"]
    assert schema["additionalProperties"] is False
    assert schema["required"] == ["completed_tasks", "confidence"]
    assert schema["properties"]["completed_tasks"] == {"items": {"type": "integer"}, "type": "array"}


def test_anthropic_messages_are_asked_with_an_enforced_schema(served: ModelServer) -> None:
    served.play(messages({"completed_tasks": [3, 2, 3], "confidence": 1}))
    found = ask(served, "anthropic")
    assert replace(found, attempts=()) == Analysis("anthropic", "claude-test-2026", 1, ("Fix docs", "Add tests"), ())
    (seen,) = served.seen
    assert seen.path == MESSAGES_PATH
    assert (seen.headers["x-api-key"], seen.headers["anthropic-version"]) == (f"claude-{KEY}", "2023-06-01")
    assert seen.body["model"] == "claude-haiku-4-5"
    assert seen.body["max_tokens"] >= 1024
    enforced = seen.body["output_config"]["format"]
    assert (enforced["type"], enforced["schema"]["additionalProperties"]) == ("json_schema", False)


@pytest.mark.parametrize("url", ["/v1/", "/v1/chat/completions"])
def test_the_address_of_an_endpoint_may_be_written_as_its_documentation_does(openai: ModelServer, url: str) -> None:
    ask(openai, "openai", environment=environment(openai, OPENAI_BASE_URL=openai.url + url))
    assert openai.seen[0].path == CHAT_PATH


@pytest.mark.parametrize("of_repository", ["", " ", "http://127.0.0.1:9/v1"])
def test_an_empty_variable_of_the_repository_hides_none_of_the_machine(openai: ModelServer, of_repository: str) -> None:
    model = {
        "ACCORD_OPENAI_MODEL": "of-machine",
        "ACCORD_VARS_ACCORD_OPENAI_MODEL": of_repository.strip() and "of-repository",
    }
    known = environment(openai, ACCORD_VARS_OPENAI_BASE_URL=of_repository, **model)
    ask(openai, "openai", environment=known)
    assert [seen.body["model"] for seen in openai.seen] == ([] if of_repository.strip() else ["of-machine"])


def test_no_two_requests_mark_the_evidence_by_the_same_word(openai: ModelServer) -> None:
    for _ in range(2):
        ask(openai, "openai")
    words = {re.findall(r"BEGIN (\w+)", seen.body["messages"][1]["content"])[0] for seen in openai.seen}
    assert len(words) == 2
    assert min(map(len, words)) >= 16


def test_models_are_chosen_by_the_environment(served: ModelServer) -> None:
    served.play(error(404), error(404), messages(GOOD, model=""))
    models = {"ACCORD_GITHUB_MODELS_MODEL": "a", "ACCORD_OPENAI_MODEL": "b", "ACCORD_ANTHROPIC_MODEL": "c"}
    found = ask(served, environment=environment(served, **models))
    assert ([seen.body["model"] for seen in served.seen], found.model) == (["a", "b", "c"], "c")
    authorization = served.seen[0].headers["authorization"]
    assert (served.seen[0].path, authorization) == ("/inference/chat/completions", f"Bearer github-{KEY}")


def test_the_general_anthropic_key_is_used_where_the_first_one_is_not_set(served: ModelServer) -> None:
    served.play(messages(GOOD))
    given = environment(served, CLAUDE_API_STRANSKE=" ", ANTHROPIC_API_KEY=f"general-{KEY}\n")
    assert ask(served, "anthropic", environment=given).provider == "anthropic"
    assert served.seen[0].headers["x-api-key"] == f"general-{KEY}"


def test_the_keys_of_a_netrc_file_are_not_sent(openai: ModelServer, tmp_path: Any, monkeypatch: Any) -> None:
    netrc = tmp_path / "netrc"
    netrc.write_text("machine 127.0.0.1 login someone password hunter2\n")
    monkeypatch.setenv("NETRC", str(netrc))
    ask(openai, "openai")
    assert openai.seen[0].headers["authorization"] == f"Bearer openai-{KEY}"


def test_without_an_endpoint_github_models_is_skipped_because_it_was_retired(openai: ModelServer) -> None:
    given = environment(openai, ACCORD_GITHUB_MODELS_URL="")
    found = ask(openai, environment=given)
    assert found.provider == "openai"
    assert outcomes(found) == [("github-models", "skipped"), ("openai", "answered")]
    assert "retired on 2026-07-30" in found.attempts[0].reason


def test_without_any_key_the_words_of_the_agent_are_read(served: ModelServer) -> None:
    found = analyse(TaskEvidence("- [ ] Add tests", "- [x] Add tests"), environment={}, clock=ManualClock(START))
    assert replace(found, attempts=()) == Analysis("regex-fallback", "", 0.7, ("Add tests",), ())
    assert [outcome for _, outcome in outcomes(found)] == ["skipped", "skipped", "skipped", "answered"]
    assert "OPENAI_API_KEY is not set" in found.attempts[1].reason
    assert "CLAUDE_API_STRANSKE or ANTHROPIC_API_KEY is not set" in found.attempts[2].reason


WRONG_URLS = ("ftp://example.org", "http://", "http://[::1", "http://localhost:port")
WRONG_KEYS = (f"{KEY}\r\nX-Other: 1", f"{KEY}é")


@pytest.mark.parametrize(
    "wrong", [*({"OPENAI_BASE_URL": url} for url in WRONG_URLS), *({"OPENAI_API_KEY": key} for key in WRONG_KEYS)]
)
def test_an_invalid_setting_is_named_and_nothing_is_sent(openai: ModelServer, wrong: dict[str, str]) -> None:
    found = ask(openai, "openai", "regex-fallback", environment=environment(openai, **wrong))
    assert outcomes(found) == [("openai", "skipped"), ("regex-fallback", "answered")]
    assert next(iter(wrong)) in found.attempts[0].reason
    assert KEY not in repr(found)
    assert not openai.seen


def test_providers_are_asked_in_the_order_given_and_only_those(served: ModelServer) -> None:
    served.play(error(401), chat(GOOD))
    found = ask(served, "anthropic", "openai")
    assert outcomes(found) == [("anthropic", "failed"), ("openai", "answered")]


def test_without_an_answer_the_analysis_was_not_run(served: ModelServer) -> None:
    served.play(error(401))
    found = ask(served, "openai")
    assert (found.provider, found.completed, found.confidence) == ("", (), 0.0)
    assert analysis_outputs(found, Redactor(), PostingPolicy(), [])["llm-analysis-run"] == "false"


def test_an_unknown_provider_is_named() -> None:
    with pytest.raises(WrongUsage, match=r"gemini.*regex-fallback"):
        analyse(QUESTION, environment={}, providers=["openai", "gemini"], clock=ManualClock(START))


@pytest.mark.parametrize(
    ("question", "reason"),
    [
        (TaskEvidence("", "All done."), "no open task"),
        (TaskEvidence("- [x] Add tests", "All done."), "no open task"),
        (TaskEvidence("```\n- [ ] Add tests\n```", "All done."), "no open task"),
        (TaskEvidence("- [ ] Add tests", " \n"), "no evidence to judge by"),
    ],
)
def test_no_provider_is_asked_without_task_or_evidence(
    openai: ModelServer, question: TaskEvidence, reason: str
) -> None:
    found = ask(openai, question=question)
    assert not openai.seen
    assert (found.provider, found.confidence, found.completed) == ("regex-fallback", 0.0, ())
    assert all(reason in attempt.reason for attempt in found.attempts[:-1])


FAULTS = {
    "key refused": (error(401, "invalid_api_key", f"Incorrect API key: {KEY}"), "HTTP 401 (invalid_api_key)"),
    "not permitted": (error(403), "HTTP 403 (error_of_type)"),
    "unknown model": (error(404, "model_not_found"), "HTTP 404 (model_not_found)"),
    "slow down": (error(429, "slow_down", retry_after="7"), "HTTP 429 (slow_down)."),
    "overloaded": (error(529, "overloaded_error"), "HTTP 529 (overloaded_error)."),
    "lost": (Play(is_lost=True), "The connection failed or was lost."),
    "cut short": (Play(body=b"{}", is_truncated=True), "The connection failed or was lost."),
    "retired": (Play(410, b"gone"), "HTTP 410."),
    "a code that is a text": (error(400, f"key {KEY} is bad"), "HTTP 400."),
    "moved": (Play(302, headers={"Location": "http://localhost:1/elsewhere"}), "redirects (HTTP 302)"),
    "moved for good": (Play(308, headers={"Location": "/v1/messages"}), "redirects (HTTP 308)"),
    "empty": (Play(), "not one JSON object"),
    "malformed": (Play(body=b'{"choices": [{"mess'), "not one JSON object"),
    "two objects": (Play(body=b'{"choices": 1} {"choices": 2}'), "not one JSON object"),
    "no text": (Play(body=b"\xff\xfe"), "not one JSON object"),
    "another form": (Play(body=b'{"output": []}'), "not of the form"),
    "no choice": (Play(body=b'{"choices": []}'), "not of the form"),
    "no content": (chat(None), "not of the form"),
    "content in parts": (Play(body=b'{"choices": [{"message": {"content": [{}]}}]}'), "not of the form"),
    "huge": (Play(body=b'{"x": "' + b"x" * asking.LARGEST_RESPONSE + b'"}'), "larger than 1024 KiB"),
    "refused": (chat("", refusal="I will not."), "refused to answer"),
    "filtered": (chat("", reason="content_filter"), "refused to answer"),
    "too long": (chat('{"completed_tasks": [1', reason="length"), "limit of length"),
    "wrong schema": (chat({"done": [1]}), "schema (completed_tasks, confidence)"),
    "anthropic: too long": (messages(GOOD, reason="max_tokens"), "limit of length"),
    "anthropic: refused": (messages("", reason="refusal"), "refused to answer"),
    "anthropic: empty": (messages(""), "not one JSON object"),
    "anthropic: another form": (chat(GOOD), "not of the form"),
    "anthropic: no text": (Play(body=b'{"content": [{"type": "text"}]}'), "not of the form"),
    "anthropic: not valid": (error(400, "invalid_request_error"), "HTTP 400 (invalid_request_error)"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_bad_answer_is_a_failed_try_and_the_next_provider_is_asked(served: ModelServer, fault: str) -> None:
    play, reason = FAULTS[fault]
    first, second = ("anthropic", "openai") if fault.startswith("anthropic") else ("openai", "anthropic")
    served.play(play, chat(GOOD) if second == "openai" else messages(GOOD))
    found = ask(served, first, second)
    assert outcomes(found) == [(first, "failed"), (second, "answered")]
    assert reason in found.attempts[0].reason
    assert found.completed == ("Add tests",)
    assert len(served.seen) == 2
    assert KEY not in repr(found)


ANSWERS = [
    ("Task 1 is done.", "not one JSON object"),
    ("[1]", "not one JSON object"),
    (json.dumps({"done": [1]}), "schema (completed_tasks, confidence)"),
    (json.dumps({"completed_tasks": [1]}), "schema (confidence)"),
    (json.dumps({"completed_tasks": [1], "confidence": None}), "schema (confidence)"),
    (json.dumps({"completed_tasks": [1], "confidence": "0.9"}), "schema (confidence)"),
    (json.dumps({"completed_tasks": [1], "confidence": True}), "schema (confidence)"),
    ('{"completed_tasks": [1], "confidence": NaN}', "not one JSON object"),
    ('{"completed_tasks": [1], "confidence": 1e999}', "not one JSON object"),
    (json.dumps({"completed_tasks": [1], "confidence": 90}), "schema (confidence)"),
    (json.dumps({"completed_tasks": [1], "confidence": -0.1}), "schema (confidence)"),
    (json.dumps({"completed_tasks": 1, "confidence": 0.9}), "schema (completed_tasks)"),
    (json.dumps({"completed_tasks": [1.5], "confidence": 0.9}), "schema (completed_tasks)"),
    (json.dumps({"completed_tasks": [True], "confidence": 0.9}), "schema (completed_tasks)"),
    (json.dumps({"completed_tasks": [1, 4], "confidence": 0.9}), "not in the list"),
    (json.dumps({"completed_tasks": [0], "confidence": 0.9}), "not in the list"),
    (json.dumps({"completed_tasks": ["Fix docs"], "confidence": 0.9}), "schema (completed_tasks)"),
    ('{"completed_tasks": [], "confidence": 0.1, "confidence": 1}', "not one JSON object"),
    ('{"completed_tasks": ["\\ud83d"], "confidence": 1}', "not one JSON object"),
]


@pytest.mark.parametrize(("answer", "reason"), ANSWERS)
def test_an_answer_that_does_not_fit_the_list_is_refused_as_a_whole(answer: str, reason: str) -> None:
    with pytest.raises(ProviderFailed, match=re.escape(reason)):
        answer_in(answer, ["Add tests", "Fix docs", "Add tests"])


def test_a_confidence_of_minus_zero_has_no_sign() -> None:
    assert str(answer_in('{"completed_tasks": [1], "confidence": -0.0}', ["Add tests"]).confidence) == "0.0"


@pytest.mark.slow
def test_a_certificate_or_a_proxy_that_stops_a_request_is_named(
    served: ModelServer, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    forget_network(monkeypatch)
    authority = Authority(tmp_path, "Example Corp Root").make()
    with serving_tls(authority.issue("127.0.0.1"), served.play(chat(GOOD)).url) as port:
        secure = environment(served, OPENAI_BASE_URL=f"https://127.0.0.1:{port}/v1")
        refused = ask(served, "openai", environment=secure)
        assert outcomes(refused) == [("openai", "failed")]
        assert "its issuer `Example Corp Root` is unknown. Set `SSL_CERT_FILE=" in refused.attempts[0].reason
        monkeypatch.setenv("SSL_CERT_FILE", str(authority.file))
        assert outcomes(ask(served, "openai", environment=secure)) == [("openai", "answered")]
    monkeypatch.setenv("https_proxy", DEAD.replace("//", "//ada:secret@"))
    for name in ("http_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, DEAD)
    assert outcomes(ask(served, "openai")) == [("openai", "answered")]
    dead = ask(served, "openai", environment=environment(served, OPENAI_BASE_URL="https://models.example/v1"))
    assert f"the proxy `{DEAD}` of `https_proxy` does not answer" in dead.attempts[0].reason
    assert "`export NO_PROXY=models.example`" in dead.attempts[0].reason


def test_after_the_deadline_only_the_fallback_answers(openai: ModelServer) -> None:
    found = ask(openai, deadline_seconds=0)
    assert [outcome for _, outcome in outcomes(found)] == ["skipped", "skipped", "skipped", "answered"]
    assert "deadline" in found.attempts[0].reason
    assert not openai.seen


@pytest.mark.parametrize("play", [Play(delay=30), Play(is_dripped=True)], ids=["silent", "one byte at a time"])
def test_a_provider_that_never_ends_cannot_hold_the_run(served: ModelServer, play: Play) -> None:
    found = ask(served.play(play), "openai", "regex-fallback", clock=SystemClock(), deadline_seconds=0.7)
    assert outcomes(found) == [("openai", "failed"), ("regex-fallback", "answered")]
    assert "No answer within" in found.attempts[0].reason
    assert found.attempts[0].milliseconds >= 500


def test_the_key_is_not_taken_to_another_host(served: ModelServer) -> None:
    with serving_models() as other:
        other.play(chat(GOOD))
        served.play(Play(307, headers={"Location": f"{other.url}{CHAT_PATH}"}))
        assert ask(served, "openai").provider == ""
        assert not other.seen


@pytest.mark.parametrize("completed", [[], [3, 1, 3]])
def test_a_task_is_named_by_its_number(completed: list[int]) -> None:
    text = json.dumps({"completed_tasks": completed, "confidence": 0.5, "why": "more keys do no harm"})
    answer = answer_in(f"Here it is:\n```json\n{text}\n```", ["Add tests", "Fix docs", "Add tests"])
    assert answer.completed_tasks == completed


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.sampled_from(["a", 1, 2, 10**400]),
    lambda children: st.lists(children, max_size=3) | st.dictionaries(st.text(max_size=3), children, max_size=3),
    max_leaves=5,
)


@settings(max_examples=100 if NIGHTLY else 30)
@given(st.fixed_dictionaries({}, optional={"completed_tasks": JSON | st.lists(JSON), "confidence": JSON}) | JSON)
@pytest.mark.slow
def test_whatever_a_model_answers_is_an_answer_about_the_list_or_a_failed_try(said: Any) -> None:
    try:
        answer = answer_in(json.dumps(said), ["a", "b"])
    except ProviderFailed:
        return
    assert set(answer.completed_tasks) <= {1, 2}
    assert 0 <= answer.confidence <= 1


@pytest.mark.slow
@settings(max_examples=100 if NIGHTLY else 30)
@given(st.binary() | st.text().map(str.encode) | JSON.map(lambda value: json.dumps(value).encode()))
def test_whatever_a_provider_sends_is_a_reply_or_a_failed_try(body: bytes) -> None:
    for wire in ("chat-completions", "anthropic-messages"):
        for wrap in (b"%s", b'{"choices": [%s]}', b'{"content": [%s]}', b'{"choices": [{"message": %s}]}'):
            with suppress(ProviderFailed):
                assert isinstance(reply_in(wire, asking._document(wrap % body, 200))[0], str)


def test_secrets_are_taken_out_of_outputs_before_json_hides_them() -> None:
    analysis = Analysis("openai", "gpt", 1, ('Rotate "horse"\\battery',), ())
    assert (
        "horse"
        not in analysis_outputs(analysis, Redactor(('"horse"\\battery',)), PostingPolicy(), [])["llm-completed-tasks"]
    )
