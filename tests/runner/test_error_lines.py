"""Lines of stderr when the agent's events name no error: what they reveal, and lines that only look like it."""

from pathlib import Path

import pytest
from support.runs import Reader, as_lines, words_of

from accord.runner.transcripts import error_rules

CODECS = ("codex", "claude", "gemini")
SILENT = {
    "codex": as_lines({"type": "thread.started", "thread_id": "1"}, {"type": "turn.started"}),
    "claude": as_lines({"type": "system", "subtype": "init", "session_id": "1", "model": "m"}),
    "gemini": as_lines({"type": "init", "session_id": "1", "model": "m"}),
}
TALK = "I handle 429 Too Many Requests now. Authentication failed: the test for an invalid API key passes."
SAID = {
    "codex": as_lines({"type": "item.completed", "item": {"type": "agent_message", "text": TALK}}),
    "claude": as_lines({"type": "assistant", "message": {"model": "m", "content": [{"type": "text", "text": TALK}]}}),
    "gemini": as_lines({"type": "message", "role": "assistant", "content": TALK, "delta": True}),
}
HUNG_UP = "fatal: the remote end hung up unexpectedly"
WORDS = {
    "transient": "transient infrastructure retry", "auth": "auth agent manual", "logic": "logic agent manual",
    "resource": "resource infrastructure manual", "infrastructure": "infrastructure infrastructure manual",
    "unknown": "unknown unknown manual",
}  # fmt: skip


def test_every_text_of_the_vocabulary_and_every_class_names_its_cause() -> None:
    assert set(error_rules.PRECEDENCE) == error_rules._TEXTS.keys() >= error_rules._FORMS.keys()
    for cause, texts in error_rules._TEXTS.items():
        classes = [kind for kind, of in error_rules.KINDS.items() if of == cause and "_" in kind]
        for text in (*texts.replace("*", " some ").split("|"), *classes):
            assert error_rules.words(cause).search(f"It says: {text}"), text


@pytest.mark.parametrize("codec", CODECS)
@pytest.mark.parametrize("category", sorted(WORDS.keys() - {"unknown"}))
def test_a_line_of_stderr_is_the_cause_when_the_events_name_none(reader: Reader, codec: str, category: str) -> None:
    """With an empty stream and with one that breaks off before the agent does anything."""
    words = dict(zip(("category", "type", "recovery"), WORDS[category].split(), strict=True))
    for stdout in (b"", SILENT[codec]):
        stderr = f"Starting.\n{ALONE[category].splitlines()[0]}\n"
        assert words_of(reader.failure(codec, stdout, exit_code=1, stderr=stderr.encode())) == words


@pytest.mark.parametrize(
    ("line", "rule"),
    [
        ("API Error: Server is temporarily limiting requests (not your usage limit)", "says-outage"),
        ("Error: socket hang up", "says-network"),
        ("error: RPC failed; HTTP 403 curl 22 The requested URL returned error: 403", "http-403"),
        ("certificate verify failed", "says-certificate"),
        ("You've hit your weekly limit.", "says-quota"),
        ("You've hit your rate limit.", "says-rate-limit"),
        ("CredentialRetrievalError: Error when retrieving credentials from custom-process", "says-credential"),
        (f"error: RPC failed; HTTP 403 curl 22 error: 403\n{HUNG_UP}", "http-403"),
        (f"error: RPC failed; HTTP 413 curl 22 error: 413\nTotal 3 (delta 0)\n{HUNG_UP}\n{HUNG_UP}", "http-413"),
        (f"npm error code E404\nOne.\nTwo.\nThree.\n{HUNG_UP}", "says-network"),
        (f"error: RPC failed; HTTP 403 curl 22 error: 403\nTrying again.\n{HUNG_UP}", "says-network"),
        (f"npm error code E404\nremote: Enumerating objects: 3, done.\n{HUNG_UP}", "says-network"),
        (HUNG_UP, "says-network"),
        ("error: the argument '--full-auto' cannot be used with '--sandbox <MODE>'", "says-settings"),
        ("error: option '--json <file>' cannot be used with option '-p, --print'", "says-settings"),
        ("Error: --json cannot be used with --print", "says-settings"),
        ("Error: This mode cannot be used with sudo", "says-settings"),
        ("Error: The token cannot be used with the Models API", "unknown-error"),
        ("Error: API key sk-1 cannot be used with this endpoint", "unknown-error"),
        ("npm error code E404", "says-settings"),
        ("npm ERR! 404 Not Found - GET https://registry.agent.example/nope - Not found", "says-settings"),
        ("HTTP 404: repository not found", "says-settings"),
        ("npm error code E503", "http-503"),
        ("disk quota reached", "says-disk"),
        *(
            (line, "says-disk")
            for line in ("Error: out of disk space", "Insufficient free disk space", "Disk space exhausted")
        ),
        *((line, "says-turns") for line in ("Error: max turns reached", "The turn limit was reached")),
        *((line, "says-credential") for line in ("Error: not authenticated", "Could not authenticate with the key")),
        ("Error: the service is down for maintenance", "says-outage"),
        *((f"Error: {text} prompt", "says-request") for text in ("invalid", "invalid JSON in", "malformed")),
        ("Error: Invalid prompt: your prompt was flagged by our usage policy", "says-refusal"),
        ("Error: It turns red when the limit is reached", "unknown-error"),
        ("The parser reached the space", "no-evidence"),
        *((line, "says-killed") for line in ("Killed", "Killed: 9", "zsh: killed     codex", "Error: exit code 137")),
        ("run.sh: line 3:  1234 Killed                  claude -p", "says-killed"),
        ("npm error signal SIGKILL", "says-killed"),
        ("run.sh: line 3: 1234 Terminated              claude -p", "says-interrupted"),
        *((line, "no-evidence") for line in ("Killed 3 processes", "killed the server", "exit code 137 is mapped")),
        *(
            (f"{said}unknown feature key in config: foo", "no-evidence")
            for said in (
                "2026-11-29T10:00:00.000000Z  WARN codex_core::features: ",
                "[2026-11-29T10:00:00Z] [WARN] ",
                "2026-11-29 10:00:00,123 - agent - WARNING - ",
                'time="2026-11-29T10:00:00Z" level=warning msg=',
            )
        ),
        ("2026-11-29T10:00:00.000000Z ERROR codex_core::config: unknown feature key in config: foo", "says-settings"),
        ("Error: ENOSPC: System limit for number of file watchers reached", "says-machine"),
        ("Error: quota reached", "hard-quota"),
        ("Error: Retry if the quota is exceeded. Quota exceeded for today.", "hard-quota"),
        ("Error: Request failed after 3 retries because the connection was refused", "says-network"),
        ("Error: When the profile is used, an API key is required", "says-credential"),
        ("HTTP 403: Retry if the quota is exceeded", "http-403"),
        *(
            (line, "says-not-installed")
            for line in (
                "Error: Cannot find module '@openai/codex'",
                "Error [ERR_MODULE_NOT_FOUND]: Cannot find package 'opencode-ai' imported from /srv/run.mjs",
                'error: Cannot find module "@google/gemini-cli/cli.js" from "/srv/run.mjs"',
                "Error: Missing optional dependency @openai/codex-linux-x64. Reinstall Codex.",
            )
        ),
        ("Error: Cannot find module '@openai/codexes'", "unknown-error"),
        ("Error: Cannot find module 'react'", "unknown-error"),
        ("error: RPC failed; HTTP 413 curl 22 The requested URL returned error: 413", "upload"),
        ("fatal: unable to access 'https://host/o/r.git/': The requested URL returned error: 413", "upload"),
        ("npm error 413 Payload Too Large - PUT https://registry.agent.example/x", "upload"),
        ("remote: error: File a.bin is 143.20 MB; this exceeds GitHub's file size limit of 100.00 MB", "upload"),
        ("Error:\n   0: the turn failed\n   1: connection refused\n\nLocation:\n   src/main.rs:7", "says-network"),
        ("\033[31mError:\033[0m\n   0: \033[91m401 Unauthorized\033[0m", "http-401"),
        ("Error: no answer\n\nCaused by:\n    connection refused", "says-network"),
        ("Error: no answer\n\nCaused by:\n    0: the turn failed\n    1: prompt is too long", "says-context"),
        ("Error: no answer\n\n    connection refused", "unknown-error"),
        ("Caused by:\n    connection refused", "no-evidence"),
    ],
)
def test_words_name_the_cause_within_its_category(reader: Reader, line: str, rule: str) -> None:
    """Name the rule that decides, or of too large a push, which fields tell, the cause."""
    found = reader.failure("plain", b"", exit_code=1, stderr=f"{line}\n".encode())
    assert rule in (found.evidence.rule, found.cause)


ALONE = {
    "auth": "Bad credentials\nResource not accessible by integration\nError: Could not fetch an OIDC token.",
    "logic": "malformed prompt: unexpected end\ncontext_length_exceeded",
    "transient": "429 Too Many Requests\nread ECONNRESET\nTemporary failure in name resolution\nOverloaded",
    "resource": "402 Payment Required\nYou are out of credits.\nJavaScript heap out of memory\nENOSPC: no space left"
    "\nWeekly limit reached ∙ resets Oct 9 at 5pm\nClaude AI usage limit reached|1760000000",
    "infrastructure": "self signed certificate in certificate chain\nSSL: CERTIFICATE_VERIFY_FAILED",
    "unknown": "I fixed the 401 error.\nAll tests pass.\n- Bad credentials: shown twice\n  429 Too Many Requests",
}
LAST = [(category, line) for category, text in ALONE.items() for line in text.splitlines()]


@pytest.mark.parametrize(("category", "line"), LAST)
@pytest.mark.parametrize(
    "before", ["", "I read the code and changed the parser.\n\n", "Reading the prompt\n", f"{'It works ... ' * 9}ok…\n"]
)
def test_a_last_line_that_stands_alone_is_what_the_program_said(
    reader: Reader, category: str, line: str, before: str
) -> None:
    words = dict(zip(("category", "type", "recovery"), WORDS[category].split(), strict=True))
    assert words_of(reader.failure("plain", f"{before}{line}\n".encode(), exit_code=1)) == words


JSON_429 = '{\n  "error": {\n    "code": 429,\n    "message": "Slow down."\n  }\n}'
PER_DAY = (
    '{"error": {"code": 429, "message": "Used up.", "details": [{"violations": [{"quotaId": "RequestsPerDay"}]}]}}'
)
STAMP = "2026-11-27T10:03:00.0000000Z "
STEP_END = f"{STAMP}##[error]Process completed with exit code 1.\n{STAMP}Post job cleanup."


@pytest.mark.parametrize(
    ("printed", "rule"),
    [
        ("429 daily limit reached, retry after 30 seconds", "http-429"), ("429 daily limit reached", "hard-quota"),
        (JSON_429, "http-429"), (f"[{JSON_429}\n]", "http-429"), (f"It answered:\nError: {JSON_429}", "http-429"),
        (PER_DAY, "hard-quota"), (PER_DAY.replace("Used up.", "Used up, retry in 9s."), "http-429"),
        ("╭─────────────────╮\n│ Invalid API key │\n╰─────────────────╯", "says-credential"),
        ("│ Credit balance is too low │\n\nDone.", "says-quota"), ("╭───╮\n│ Bye │\n╰───╯", "no-evidence"),
        *((f"{STAMP}{line}\n{STEP_END}", rule) for line, rule in [
            ("Bad credentials", "says-credential"), ("##[error]No space left on device : '/a'", "says-disk"),
            ("Done.", "no-evidence"),
        ]),
        (f"agent\tRun it\t{STAMP}##[error]The operation was canceled.", "says-interrupted"),
        ("::error title=Agent::The action 'Run' has timed out after 30 minutes.", "says-time"),
        ("docker: Error response from daemon: toomanyrequests: slow down.\nSee more.", "says-rate-limit"),
        ("go: module a.example/b: reading https://c:\n\tdial tcp 1.2.3.4:443: i/o timeout\nDone", "says-network"),
        ("It says:\n\tdial tcp 1.2.3.4:443: i/o timeout\nDone", "no-evidence"),
        ("git@github.com: Permission denied (publickey).\nfatal: Could not read from remote.", "says-credential"),
        ("I changed a.\nHTTP/2 429\ndate: today\nretry-after: 30", "http-429"),
        ("The test prints this:\nHTTP/2 429\ndate: today\nretry-after: 30", "no-evidence"),
        *((line, "no-evidence") for line in [
            "Test failed: expected 401 got 403", 'Error: expected 200 "OK", got 403 "Forbidden"',
            "FAIL: login: got 403", "AssertionError: 401 != 403", "Error: expect(401) was 403",
            "Got status 403 from the stub, want 200", f"E   assert 403 == 401\n{STEP_END}",
            *(f"{before}\n{line}" for before in (
                "The test prints this:", f"{'The test calls the server twice' * 2}, and the second answer of it is",
            ) for line in ("429 Too Many Requests", "Bad credentials")),
            *(f"{before}\nThe parser now refuses an invalid token with 401 Unauthorized." for before in (
                "I changed the parser.", "- Parser", "• Parser", "2. Parser", "It is done!",
            )),
        ]),
    ],
)  # fmt: skip
def test_the_log_of_a_step_names_the_cause_and_results_of_tests_do_not(reader: Reader, printed: str, rule: str) -> None:
    assert reader.failure("plain", f"{printed}\n".encode(), exit_code=1).evidence.rule == rule


def test_a_limit_of_a_plan_counts_above_the_advice_to_raise_it(reader: Reader) -> None:
    printed = "I read the code.\n5-hour limit reached ∙ resets 3pm\n     /upgrade to increase your usage limit.\n"
    found = reader.failure("plain", printed.encode(), exit_code=1)
    assert (found.category, found.evidence.line) == ("resource", "5-hour limit reached ∙ resets 3pm")
    assert "wait for its renewal" in found.summary


LIMITED = "Error: 429 Too Many Requests"
SECONDARY = "You have exceeded a secondary rate limit"
PUSH_REFUSED = "fatal: unable to access 'https://github.com/o/r/': The requested URL returned error: 403"
PER_MONTH = "Error: 429 Quota of 100 requests per month"


@pytest.mark.parametrize(
    ("printed", "category", "seconds"),
    [
        ("HTTP 403 Forbidden: secondary rate limit, retry after 60", "transient", 60),
        ("HTTP 403 (secondary rate limit)", "transient", None),
        (f"remote: {SECONDARY}, retry after 60s\nremote: Read the docs.\n{PUSH_REFUSED}", "transient", 60),
        (f"remote: {SECONDARY}\n{PUSH_REFUSED}\n{HUNG_UP}", "transient", None),
        (f"remote: {SECONDARY}\nTrying again.\n{PUSH_REFUSED}", "auth", None),
        (f"{LIMITED}\nRetrying in 0.2 seconds...\nRetrying in 64 seconds...", "transient", 64),
        (f"{LIMITED}\nRetrying in 1 seconds...\n{LIMITED}\nRetrying in 64 seconds...\n{LIMITED}", "transient", 64),
        ("429 Too Many Requests, retrying in 1s\n429 Too Many Requests, retrying in 2s\n" + LIMITED, "transient", 2),
        (f"{LIMITED} (attempt 1), trying again in 8s\n{LIMITED} (attempt 2)", "transient", 8),
        (f"{LIMITED}\nRetrying in 8s\n{LIMITED}. Please try again in 5s.", "transient", 5),
        (f"{PER_MONTH}\nRetrying in 2 seconds...\n{PER_MONTH}\nRetrying in 4 seconds...", "resource", None),
        (f"{PER_MONTH}, try again in 5s", "transient", 5),
    ],
)
def test_the_last_wait_of_the_cli_counts_behind_the_delay_that_the_provider_names(
    reader: Reader, printed: str, category: str, seconds: float | None
) -> None:
    found = reader.failure("plain", b"", exit_code=1, stderr=f"{printed}\n".encode())
    assert (found.category, found.retry_after_seconds) == (category, seconds)


@pytest.mark.parametrize("codec", CODECS)
def test_talk_of_the_agent_about_errors_does_not_explain_its_failure(reader: Reader, codec: str) -> None:
    for stdout, stderr in (SILENT[codec] + SAID[codec], b""), (SILENT[codec] + SAID[codec], TALK.encode()):
        found = reader.failure(codec, stdout, exit_code=1, stderr=stderr)
        assert found.evidence.rule == "no-terminal-event"
    assert reader.failure(codec, TALK.encode(), exit_code=1).category == "unknown"


NAMES = """\
httpx.ReadTimeout httpx.PoolTimeout httpx.ConnectError httpx.RemoteProtocolError httpcore.ReadError httpcore.WriteError
TimeoutError asyncio.exceptions.TimeoutError NetworkError
ConnectionError ConnectionResetError aiohttp.client_exceptions.ServerDisconnectedError
http.client.IncompleteRead http.client.RemoteDisconnected urllib3.exceptions.ProtocolError
requests.exceptions.ChunkedEncodingError requests.exceptions.ConnectionError litellm.exceptions.Timeout"""
OTHER_NAMES = """\
ValueError tarfile.ReadError httpx.LocalProtocolError httpx.UnsupportedProtocol httpx.InvalidURL ReadTimeout
window.setTimeout aiohttp.client_exceptions.ClientConnectorCertificateError BrokenPipeError
selenium.common.exceptions.TimeoutException psycopg2.errors.LockTimeout filelock._error.Timeout network.NetworkError
app.http.Timeout LockTimeoutError asyncpg.exceptions.ProtocolError"""
TRACEBACK = f'Traceback (most recent call last):\n  File "/a.py", line 3, in get\n    raise it\n    {"^" * 70}\n'


@pytest.mark.parametrize("message", ["", ": [Errno 32] It broke"])
def test_the_name_of_an_exception_tells_of_a_lost_connection_without_a_message(reader: Reader, message: str) -> None:
    for before in ("", TRACEBACK, "Error: ", "ERROR ", "##[error]", "Uncaught Error: ", "Error: Error: "):
        printed = {name: f"{before}{name}{message}\n".encode() for name in f"{NAMES} {OTHER_NAMES}".split()}
        on_stderr = {name: reader.failure("plain", b"", exit_code=1, stderr=text) for name, text in printed.items()}
        in_text = {name: reader.failure("plain", text, exit_code=1) for name, text in printed.items()}
        for found in (on_stderr, in_text):
            assert [name for name, one in found.items() if one.evidence.rule == "says-network"] == NAMES.split()
    for line in (
        "TimeoutError is raised",
        "- TimeoutError",
        "I fixed the TimeoutError",
        "TimeoutError and OSError",
        "Error: TimeoutError is raised",
        "It printed Error: TimeoutError: x",
        "Error: `TimeoutError: x` is quoted",
        '"Error: TimeoutError: x"',
        "Error: the test raised TimeoutError: x",
    ):
        assert reader.failure("plain", f"{line}\n".encode(), exit_code=1).category == "unknown"


@pytest.mark.parametrize(
    ("line", "rule"),
    [
        ("requests.exceptions.ConnectionError: certificate verify failed", "says-certificate"),
        ("ConnectionError: Invalid API key", "says-credential"),
        ("TimeoutError: HTTP 429", "http-429"),
        ("Error: Invalid API key\nBrokenPipeError: [Errno 32] Broken pipe", "says-credential"),
    ],
)
def test_the_message_of_an_exception_counts_before_its_name(reader: Reader, line: str, rule: str) -> None:
    assert reader.failure("plain", b"", exit_code=1, stderr=f"{line}\n".encode()).evidence.rule == rule


def test_the_conversation_that_codex_prints_to_stderr_is_not_evidence(reader: Reader) -> None:
    stderr = b"OpenAI Codex v0.169.0\n--------\nworkdir: /w\n--------\nuser\nWhy?\ncodex\n429 Too Many Requests\n"
    assert reader.failure("codex", b"", exit_code=1, stderr=stderr).category == "unknown"
    crash = stderr + b"ERROR: exceeded retry limit, last status: 401 Unauthorized\n"
    assert reader.failure("codex", b"", exit_code=1, stderr=crash).category == "auth"


def test_an_error_event_wins_over_lines_of_stderr(reader: Reader) -> None:
    failed = {"type": "turn.failed", "error": {"message": "unexpected status 503 Service Unavailable: "}}
    stdout = SILENT["codex"] + as_lines(failed)
    stderr = b"Authentication failed: CODEX_AUTH_JSON is invalid or expired\n"
    assert reader.failure("codex", stdout, exit_code=1, stderr=stderr).evidence.rule == "http-503"


def test_a_provider_answer_over_many_lines_is_read_with_its_status(reader: Reader) -> None:
    stderr = '✕ [API Error: [{\n    "error": {\n      "code": 403,\n      "message": "No.",\n      "errors": []\n'
    assert reader.failure("gemini", b"", exit_code=1, stderr=stderr.encode()).evidence.rule == "http-403"


@pytest.mark.parametrize("codec", CODECS)
def test_a_stream_of_events_that_cannot_be_read_is_worth_another_try(reader: Reader, codec: str) -> None:
    broken = b'{"type":"thread.started","thread_id"\n{"type":"item.comp\x00\xff\n'
    assert reader.failure(codec, broken, exit_code=1).category == "transient"
    assert reader.failure(codec, broken, exit_code=1, stderr=b"Not logged in\n").category == "auth"


@pytest.mark.parametrize(
    "message",
    [
        "The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).",
        "The input token count exceeds the maximum number of tokens allowed 1048576.",
        "The request exceeds the context window of the model.",
    ],
)
def test_a_task_too_large_for_gemini_gets_the_advice_to_split_it(reader: Reader, message: str) -> None:
    answer = f'[API Error: {{"error":{{"code":400,"message":"{message}","status":"INVALID_ARGUMENT","details":[]}}}}]'
    result = {"type": "result", "status": "error", "error": {"type": "unknown", "message": answer}}
    found = reader.failure("gemini", SILENT["gemini"] + as_lines(result), exit_code=144)
    assert (found.category, found.evidence.rule) == ("logic", "says-context")
    assert "split the task" in found.summary


def test_an_answer_of_gemini_that_was_cut_is_a_warning_where_the_cli_says_so(reader: Reader) -> None:
    done = {"type": "result", "status": "success", "stats": {}}
    cut = "The message was cut at the limit of output tokens."
    warned = {"type": "error", "severity": "warning", "message": "Response truncated due to token limits."}
    for event in ({**done, "finish_reason": "MAX_TOKENS"}, {**done, "stats": {"finishReason": "MAX_TOKENS"}}):
        assert cut in reader.account("gemini", SILENT["gemini"], SAID["gemini"], event).warnings
    assert cut in reader.account("gemini", SILENT["gemini"], SAID["gemini"], warned, done).warnings
    document = {"session_id": "1", "response": "Half", "stats": {}, "finishReason": "MAX_TOKENS"}
    assert cut in reader.account("gemini", document).warnings
    assert cut not in reader.account("gemini", SILENT["gemini"], SAID["gemini"], done).warnings


DATA = Path(__file__).parents[1] / "data" / "lines"


def category_of(reader: Reader, codec: str, line: str) -> str:
    return reader.failure(codec, b"", exit_code=1, stderr=f"{line}\n".encode()).category


@pytest.mark.parametrize("codec", ["claude", "plain"])
def test_98_of_100_lines_get_the_category_that_a_person_gave_them(reader: Reader, codec: str) -> None:
    rows = []
    for block in (DATA / "errors.txt").read_text(encoding="utf-8").strip().split("\n\n"):
        given, *lines = block.splitlines()
        category, _, read = given.partition(", read as ")
        rows += [(category, read or category, line) for line in lines]
    assert [row for row in rows if category_of(reader, codec, row[2]) != row[1]] == []
    assert sum(category == read for category, read, _ in rows) >= 0.98 * len(rows)
    assert len(rows) >= 480


@pytest.mark.parametrize("codec", ["claude", "plain"])
def test_a_line_of_ordinary_output_is_never_an_error(reader: Reader, codec: str) -> None:
    lines = (DATA / "output.txt").read_text(encoding="utf-8").splitlines()
    assert len(lines) >= 300
    assert [line for line in lines if category_of(reader, codec, line) != "unknown"] == []
    assert reader.failure("plain", "\n".join(lines).encode(), exit_code=1).category == "unknown"
