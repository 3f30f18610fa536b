"""The classifier: which evidence counts, in which order, and which never does."""

import json
from typing import Any, get_args

import pytest
from support.runs import Reader, as_lines, words_of

from accord.runner.causes import CAUSES, INTERNAL_ERRORS, InternalErrorKind
from accord.runner.classify import classify, contract_exit_code
from accord.runner.models import InternalError
from accord.runner.transcripts import error_rules
from accord.runner.transcripts.read import FORMATS
from accord.runner.transcripts.wording import cut, delay_in, status_in

THREAD = {"type": "thread.started", "thread_id": "1"}
DONE = {"type": "turn.completed", "usage": {}}
TALK = "I fixed the 401 Unauthorized and rate limit handling. Error: 429 Too Many Requests is retried, ENOSPC too."


def failed(message: str) -> bytes:
    return as_lines(THREAD, {"type": "turn.failed", "error": {"message": message}})


def said(text: str) -> dict[str, Any]:
    return {"type": "item.completed", "item": {"type": "agent_message", "text": text}}


def ran(output: str) -> dict[str, Any]:
    command = {"type": "command_execution", "command": "pytest", "aggregated_output": output, "exit_code": 1}
    return {"type": "item.completed", "item": {**command, "status": "failed"}}


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        ("time-limit", "resource infrastructure manual"),
        ("cancelled", "transient infrastructure ignore"),
        ("install-failed", "transient infrastructure retry"),
        ("credential-missing", "auth auth manual"),
        ("credential-invalid", "auth auth manual"),
        *((kind, "logic agent manual") for kind in ("prompt-invalid", "not-started", "changes-unreadable")),
        ("merge-unfinished", "logic agent manual"),
        ("command-failed", "logic agent manual"),
        ("budget", "resource infrastructure manual"),
        *(
            (k, "infrastructure infrastructure manual")
            for k in ("push-refused", "steering-files", "changes-too-large", "refs-moved", "sandbox-unavailable")
        ),
        *((kind, f"{'infrastructure ' * 2}retry") for kind in ("record-missing", "push-conflict", "push-unreachable")),
        ("disk-full", "resource infrastructure manual"),
        ("stalled", "transient infrastructure retry"),
    ],
)
def test_an_internal_error_decides_first(reader: Reader, kind: InternalErrorKind, words: str) -> None:
    error = InternalError(kind=kind, detail="The push broke\nin detail.")
    for stdout, exit_code in ((failed("unexpected status 401 Unauthorized: no"), 1), (as_lines(THREAD, DONE), 0)):
        evidence = reader.evidence("codex", stdout, exit_code=exit_code, error=error)
        found = classify(evidence)
        assert found
        assert [found.category, found.type, found.recovery] == words.split()
        assert (found.evidence.rule, found.evidence.source) == (kind, "own")
        assert "The push broke in detail." in found.summary
        assert contract_exit_code(evidence) == 1


def test_every_own_kind_and_every_rule_has_a_cause() -> None:
    assert INTERNAL_ERRORS.keys() == set(get_args(InternalErrorKind))
    rules = error_rules
    tables = [INTERNAL_ERRORS, rules.KINDS, rules.STATUSES, rules.BROAD_KINDS, rules.WEAK_KINDS, rules.EXITS]
    exits = {cause for form in FORMATS.values() for cause in form.exits.values()}
    named = {cause for table in tables for cause in table.values()} | exits | set(rules.PRECEDENCE)
    assert named | {"unknown", "outage", "request"} == CAUSES.keys()


CAUSES_BY_WORDS = {
    "transient infrastructure retry": "rate-limit outage network broken-answer interrupted install stall",
    "transient infrastructure ignore": "cancelled",
    "auth agent manual": "credential",
    "auth auth manual": "credential-missing credential-invalid",
    "resource infrastructure manual": "quota budget machine memory killed disk time",
    "logic agent manual": "request model context output turns refusal result settings prompt start command changes "
    "merge",
    "infrastructure infrastructure manual": "not-installed certificate sandbox size push upload steering refs",
    "infrastructure infrastructure retry": "push-again job-lost",
    "unknown unknown manual": "unknown",
}
"""Beside the contract's table: a push that may succeed later, and a run that was superseded."""


def test_each_cause_has_words_of_the_contract_and_the_recovery_of_its_category() -> None:
    found = {name: f"{cause.category} {cause.type} {cause.recovery}" for name, cause in CAUSES.items()}
    assert found == {name: words for words, names in CAUSES_BY_WORDS.items() for name in names.split()}
    auth, resource, logic, transient = (401, 403), (402,), (404, 413), (408, 425, 429)
    of_status = {status: CAUSES[cause].category for status, cause in error_rules.STATUSES.items()}
    assert of_status == {
        **dict.fromkeys(auth, "auth"), **dict.fromkeys(resource, "resource"), **dict.fromkeys(logic, "logic"),
        **dict.fromkeys(transient, "transient"),
    }  # fmt: skip


NO_SANDBOX = "bwrap: loopback: Failed RTM_NEWADDR: Operation not permitted\n"


@pytest.mark.parametrize("output", [NO_SANDBOX, "1 failed"])
@pytest.mark.parametrize("count", [1, 300])
def test_a_run_that_ended_well_did_not_fail_though_every_command_did(reader: Reader, output: str, count: int) -> None:
    evidence = reader.evidence("codex", as_lines(THREAD, *[ran(output)] * count, DONE))
    assert (classify(evidence), contract_exit_code(evidence)) == (None, 0)
    told = next(warning for warning in evidence.account.warnings if warning.startswith("Every command"))
    assert ("cannot start" in told) == (output == NO_SANDBOX)


def test_a_run_whose_tools_were_denied_did_not_fail(reader: Reader) -> None:
    asks = {"type": "tool_use", "id": "1", "name": "Bash", "input": {"command": "git log"}}
    denied = {"type": "tool_result", "tool_use_id": "1", "is_error": True, "content": "This command requires approval"}
    result = {"type": "result", "subtype": "success", "is_error": False, "result": "Done.", "usage": {}}
    events = [
        {"type": "assistant", "message": {"model": "m", "content": [asks]}},
        {"type": "user", "message": {"content": [denied]}},
    ]
    stdout = as_lines(*events, {**result, "permission_denials": [{"tool_name": "Bash", "tool_use_id": "1"}]})
    assert reader.classify("claude", stdout, exit_code=0) is None
    assert reader.classify("claude", as_lines(*events, {**result, "permission_denials": []}), exit_code=0) is None


@pytest.mark.parametrize("codec", ["codex", "plain"])
def test_prose_and_output_about_errors_are_not_evidence(reader: Reader, codec: str) -> None:
    stdout = as_lines(THREAD, ran("E   429 Too Many Requests\nError: 401 Unauthorized"), said(TALK))
    text = f"{TALK}\n- the API key handling is invalid no more\nrate limit: done\n".encode()
    found = reader.failure(codec, stdout if codec == "codex" else text, exit_code=1)
    assert found.category in {"transient", "unknown"}
    assert found.evidence.rule in {"no-terminal-event", "no-evidence"}
    success = as_lines(THREAD, said(TALK), DONE) if codec == "codex" else text
    assert reader.classify(codec, success, stderr=b"Error: 401 Unauthorized\n") is None


@pytest.mark.parametrize(
    ("message", "cause", "delay"),
    [
        ("rate limit exceeded: Rate limit reached for m. Please try again in 1.2s.", "transient", 1.2),
        ("exceeded retry limit, last status: 429 Too Many Requests", "transient", None),
        ("You exceeded your current quota, please check your plan and billing details.", "resource", None),
        ("Quota exceeded. Try again in 20 minutes", "resource", None),
        ('{"error": {"message": "x", "code": "insufficient_quota"}}', "resource", None),
        ('{"error": {"message": "x", "type": "invalid_request_error", "code": "invalid_api_key"}}', "auth", None),
        ("Your plan allows 10 requests per day (429)", "resource", None),
        ("429 Too Many Requests: see your billing, retry after 5 seconds", "transient", 5.0),
        *(
            (f"unexpected status 429 Too Many Requests: {limit}", "resource", None)
            for limit in (
                "Rate limit exceeded: free-models-per-day", "Insufficient balance or no resource package.", "(RPD)",
                "limit of 100 requests per 24 hours exceeded", "100 requests/day exceeded", "billing_not_active",
                "daily free allocation", "per-day quota", "1000 requests a month", "limit_rpd/vendor/model",
                '{"error": {"message": "x", "code": "billing_not_active"}}',
            )
        ),
        *(
            (f"unexpected status 429 Too Many Requests: {limit}", "transient", None)
            for limit in (
                "requests per minute (RPM)", "free-models-per-min. Add 10 credits to raise it.",
                "20 / min. Add a payment method to raise the limit.", "See https://docs.example/daily/billing",
            )
        ),
        ("unexpected status 418 I'm a teapot: x", "logic", None),
        ("unexpected status 599 : x", "transient", None),
        ("Failed to refresh token: 500 Internal Server Error", "transient", None),
        ("Selected model is at capacity. Please try a different model.", "transient", None),
        ("No space left on device (os error 28)", "resource", None),
        ("a new kind of words", "unknown", None),
        ("", "unknown", None),
    ],
)  # fmt: skip
def test_a_failed_turn_is_classified_by_its_text(reader: Reader, message: str, cause: str, delay: float | None) -> None:
    found = reader.failure("codex", failed(message), exit_code=1)
    assert (found.category, found.retry_after_seconds) == (cause, delay)
    assert found.evidence.source == "event"


CLOSED_SETS = {
    "type": {
        "transient": "rate_limit_error timeout_error api_error overloaded_error server_error service_unavailable_error",
        "auth": "authentication_error permission_error",
        "resource": "billing_error insufficient_quota",
        "logic": "invalid_request_error not_found_error conflict_error request_too_large",
    },
    "code": {
        "transient": "server_error rate_limit_exceeded vector_store_timeout slow_down server_is_overloaded",
        "resource": "insufficient_quota credit_balance_exhausted organization_spend_limit_exceeded"
        " project_spend_limit_exceeded organization_usage_limit_exceeded",
        "logic": "invalid_prompt data_residency_mismatch bio_policy misalignment_policy_violation invalid_image"
        " invalid_image_format invalid_base64_image invalid_image_url image_too_large image_too_small image_parse_error"
        " image_content_policy_violation invalid_image_mode image_file_too_large unsupported_image_media_type"
        " empty_image_file failed_to_download_image image_file_not_found",
    },
    "status": {
        "transient": "CANCELLED UNKNOWN DEADLINE_EXCEEDED RESOURCE_EXHAUSTED ABORTED INTERNAL UNAVAILABLE DATA_LOSS",
        "auth": "PERMISSION_DENIED UNAUTHENTICATED",
        "logic": "INVALID_ARGUMENT NOT_FOUND ALREADY_EXISTS FAILED_PRECONDITION OUT_OF_RANGE UNIMPLEMENTED",
    },
}
"""Types of Anthropic and OpenAI, codes of OpenAI's Responses API and of its limits, and ``google.rpc.Code``."""


@pytest.mark.parametrize("field", CLOSED_SETS)
def test_every_class_that_a_provider_documents_has_its_category(reader: Reader, field: str) -> None:
    for category, kinds in CLOSED_SETS[field].items():
        for kind in kinds.split():
            found = reader.failure("codex", failed(json.dumps({"error": {field: kind, "message": "x"}})), exit_code=1)
            assert (found.category, found.evidence.rule) == (category, kind)


def gemini(message: str) -> bytes:
    return as_lines(
        {"type": "init", "session_id": "1"},
        {"type": "result", "status": "error", "error": {"type": "unknown", "message": message}},
    )


GOOGLES_LIMIT = (
    "You exceeded your current quota, please check your plan and billing details. For more information on this error, "
    "head to: https://ai.google.dev/gemini-api/docs/rate-limits."
)
WITH_DELAY = (
    '{"error":{"code":429,"message":"Daily limit","status":"RESOURCE_EXHAUSTED","details":[{"retryDelay":"7s"}]}}'
)


@pytest.mark.parametrize(
    ("message", "category"),
    [
        ("[API Error: You have exhausted your daily quota on this model.]", "resource"),
        (f"[API Error: {GOOGLES_LIMIT}]", "transient"),
        (f"[API Error: {WITH_DELAY}]", "transient"),
        ("[API Error: Resource has been exhausted (e.g. check quota).]", "transient"),
        ('[API Error: {"error":{"message":"Token quota is exceeded","details":[{"retryDelay":"7s"}]}}]', "transient"),
    ],
)
def test_googles_words_for_a_limit_per_minute_are_not_a_hard_quota(reader: Reader, message: str, category: str) -> None:
    assert reader.failure("gemini", gemini(message), exit_code=173).category == category


@pytest.mark.parametrize(
    ("stderr", "rule", "category"),
    [
        ("openai.RateLimitError: Error code: 429 - {'error': 'slow down'}", "http-429", "transient"),
        ("Traceback\nrequests.exceptions.ConnectionError: Connection refused", "says-network", "transient"),
        ("ERROR: 401 Unauthorized", "http-401", "auth"),
        ("Error: 401 unauthorized", "http-401", "auth"),
        ("Error: 500", "http-500", "transient"),
        ("Error: HTTP 425", "http-425", "transient"),
        ("Error: 429 Requests limit exceeded", "http-429", "transient"),
        ("Error: 429 Requests exceeded", "http-429", "transient"),
        ("Error: 401 Tokens expired", "http-401", "auth"),
        ("Error: 502 Gateways unreachable", "http-502", "transient"),
        *(
            (f"Error: {line}", "unknown-error", "unknown")
            for line in (
                "500 test failed",
                "429 more files to go",
                "450 line too long",
                "401 bad",
                "499: x",
            )
        ),
        ("HTTP/1.1 503 Service Unavailable", "http-503", "transient"),
        ("curl: (6) Could not resolve host: api.example.com", "says-network", "transient"),
        ("write error: No space left on device", "no-evidence", "unknown"),
        ("tool: error: No space left on device", "says-disk", "resource"),
        ("FATAL ERROR: Ineffective mark-compacts - JavaScript heap out of memory", "says-memory", "resource"),
        ("Error: 401 Unauthorized\nretrying\nError: 503 Service Unavailable", "http-503", "transient"),
        ("\x1b[31merror:\x1b[0m unknown option '--x'", "says-settings", "logic"),
        ("All 429 tests passed; 401 handled", "no-evidence", "unknown"),
    ],
)
def test_the_last_error_that_stderr_reports_decides(reader: Reader, stderr: str, rule: str, category: str) -> None:
    found = reader.failure("plain", b"some prose\n", exit_code=1, stderr=stderr.encode())
    assert (found.evidence.rule, found.category) == (rule, category)


def test_plain_text_counts_only_where_a_line_reports_an_error(reader: Reader) -> None:
    found = reader.failure("plain", b"I will look.\nAPI Error: 500 Internal server error\n", exit_code=1)
    assert (found.evidence.rule, found.evidence.source) == ("http-500", "text")
    refused = reader.failure("plain", b"HTTP 429 Too Many Requests\nRetry-After: 30\n", exit_code=1)
    assert (refused.category, refused.retry_after_seconds) == ("transient", 30)
    for line, category in (
        ("stream error: unexpected status 503 Service Unavailable", "transient"),
        ("unexpected status 401 Unauthorized: Incorrect API key provided", "auth"),
        ("No space left on device (os error 28)", "resource"),
        ("I handled the unexpected status 401 Unauthorized", "unknown"),
    ):
        assert reader.failure("plain", f"{line}\n".encode(), exit_code=1).category == category
    assert reader.classify("plain", b"API Error: 500 Internal server error\n", exit_code=0) is None


@pytest.mark.parametrize(
    ("exit_code", "category", "recovery"),
    [
        *((code, "resource", "manual") for code in (124, 134, 137)),
        *((code, "transient", "retry") for code in (130, 143)), (127, "logic", "manual"), (3, "unknown", "manual"),
    ],
)  # fmt: skip
def test_the_exit_code_decides_in_the_end(reader: Reader, exit_code: int, category: str, recovery: str) -> None:
    found = reader.failure("plain", b"", exit_code=exit_code)
    assert (found.category, found.recovery, found.evidence.source) == (category, recovery, "exit")


@pytest.mark.parametrize(
    ("stdout", "stderr", "told"),
    [
        (b"working\n1\n", b"", 'the last line of its output is "1"'),
        (b"working\n", b"\x1b[31mbye\x1b[0m\n\x1b[0m\n", 'the last line of stderr is "bye"'),
        (b"", b"", "it ended with exit code 3 and printed no error"),
        (b"word " * 200, b"", 'word word…"'),
    ],
)
def test_an_unexplained_failure_quotes_the_last_output(reader: Reader, stdout: bytes, stderr: bytes, told: str) -> None:
    found = reader.failure("plain", stdout, exit_code=3, stderr=stderr)
    assert (found.evidence.rule, found.category, found.recovery) == ("no-evidence", "unknown", "manual")
    assert reader.failure("codex", b"", exit_code=0).evidence.rule == "no-evidence"
    assert told in found.summary
    assert found.summary.endswith("Read its transcript and its log.")


@pytest.mark.parametrize(
    ("codec", "stdout", "code"),
    [
        ("codex", as_lines(THREAD, DONE), 0), ("codex", as_lines(THREAD), 1), ("codex", failed("x"), 1),
        ("codex", b"", 1), ("codex", b"just prose\n", 0), ("plain", b"", 0),
    ],
)  # fmt: skip
def test_exit_code_0_needs_the_terminal_event(reader: Reader, codec: str, stdout: bytes, code: int) -> None:
    assert contract_exit_code(reader.evidence(codec, stdout, exit_code=0)) == code
    assert contract_exit_code(reader.evidence(codec, stdout, exit_code=42)) == 42
    assert (reader.classify(codec, stdout, exit_code=0) is None) == (code == 0)


def test_a_killed_run_is_classified_by_the_error_that_its_cli_was_retrying(reader: Reader) -> None:
    trouble = {"type": "error", "message": "Reconnecting... 1/5 (unexpected status 401 Unauthorized: no)"}
    for more, category in ([], "auth"), ([said("on with it")], "resource"):
        assert reader.failure("codex", as_lines(THREAD, trouble, *more), exit_code=137).category == category


def test_a_try_that_failed_counts_on_stderr_only_before_any_work(reader: Reader) -> None:
    stderr = b"Attempt 1 failed with status 503. Retrying with backoff...\n"
    init = {"type": "init", "session_id": "1"}
    work = {"type": "message", "role": "assistant", "content": "hello", "delta": True}
    for events, category in (([init], "transient"), ([init, work], "resource")):
        assert reader.failure("gemini", as_lines(*events), exit_code=137, stderr=stderr).category == category


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("Please try again in 1.2s", 1.2), ("try again in 20ms.", 0.02), ("Please try again in 6m0s", 360.0),
        ("try again in 2 hours 5 minutes", 7500.0), ("try again in 1 day, 2 hours and 3 minutes", 93780.0),
        ("Suggested retry after 1s.", 1.0), ("Retry-After: 30", 30.0), ("retry after 5 seconds", 5.0),
        ("retryDelayMs: 1500,", 1.5), ('"retryDelay": "7s"', 7.0), ("try again later", None),
        ('"retry_after": 30', 30.0), ("'retry_after_seconds': 5}", 5.0), ("retry-after-ms: 1500", 1.5),
        ("Retrying in 2 seconds...", None), ("try again in 999999999999 days", None), ("try again in May", None),
        ("retried after 3 tests", None),
    ],
)  # fmt: skip
def test_a_delay_is_read_in_seconds(text: str, seconds: float | None) -> None:
    assert delay_in(text) == seconds


@pytest.mark.parametrize(
    ("text", "status"),
    [
        ("unexpected status 401 Unauthorized: x", 401), ("last status: 429 Too Many Requests", 429),
        ("API Error: 500 Internal", 500), ("API Error: Request rejected (429) · x", 429), ("Error code: 404 - x", 404),
        ("HTTP 502", 502), ("limit of 429 tokens", None), ("the request is ~208310 tokens (limit 200000)", None),
        ("line 401 of main.py", None),
    ],
)  # fmt: skip
def test_a_status_is_read_only_where_it_is_called_one(text: str, status: int | None) -> None:
    assert status_in(text) == status


def test_a_cut_never_leaves_half_a_secret() -> None:
    token = "ghp_" + "a" * 36
    for limit in range(30, 80):
        line = cut(f"the token is {token} and more words follow here " * 3, limit)
        assert len(line) <= limit
        assert token in line or "ghp_" not in line


def test_a_log_without_exit_code_is_classified_by_its_content(reader: Reader) -> None:
    assert reader.classify("codex", as_lines(THREAD, DONE), exit_code=None) is None
    assert reader.classify("plain", b"all fine\n", exit_code=None) is None
    assert reader.failure("plain", b"API Error: 500 Internal server error\n", exit_code=None).category == "transient"
    assert reader.failure("codex", as_lines(THREAD), exit_code=None).evidence.rule == "no-terminal-event"


def test_an_agent_that_crashed_by_itself_was_not_stopped_from_outside(reader: Reader) -> None:
    stderr = b"Traceback (most recent call last):\nRuntimeError: the tool loop lost its state\n"
    found = reader.failure("codex", as_lines(THREAD, said("Working on it")), exit_code=1, stderr=stderr)
    assert words_of(found) == {"category": "unknown", "type": "unknown", "recovery": "manual"}
    assert found.evidence.line == "RuntimeError: the tool loop lost its state"
    codes = {code: reader.failure("codex", as_lines(THREAD), exit_code=code).evidence.rule for code in (0, 1, 101, 139)}
    assert codes == {0: "no-terminal-event", 1: "no-terminal-event", 101: "no-evidence", 139: "no-evidence"}
    assert "RuntimeError: the tool loop lost its state" in found.summary
