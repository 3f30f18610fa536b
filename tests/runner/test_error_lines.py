"""Lines of stderr when the agent's events name no error: what they reveal, and lines that only look like it."""

import pytest
from support.runs import Reader, as_lines, words_of

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
WORDS = {
    "transient": "transient infrastructure retry", "auth": "auth agent manual", "logic": "logic agent manual",
    "resource": "resource infrastructure manual", "infrastructure": "infrastructure infrastructure manual",
    "unknown": "unknown unknown manual",
}  # fmt: skip

LINES = {
    "auth": """
        Authentication failed: CODEX_AUTH_JSON is invalid or expired
        Authentication failed: invalid token
        CODEX_AUTH_JSON is not set
        CODEX_AUTH_JSON is not valid JSON
        Missing required secret: CODEX_AUTH_JSON
        The secret CLAUDE_CODE_OAUTH_TOKEN is empty.
        OPENAI_API_KEY environment variable is required
        ANTHROPIC_API_KEY is missing
        no API key found for provider openai
        No credentials found. Run codex login.
        Not logged in
        Not logged in · Please run /login
        You are not logged in. Run `codex login` first.
        Invalid API key · Fix external API key
        Invalid bearer token
        API key not valid. Please pass a valid API key.
        Please set an Auth method in your ~/.gemini/settings.json or specify the GEMINI_API_KEY environment variable
        Could not load the default credentials. Browse to https://cloud.google.com/docs/authentication
        Your access token could not be refreshed because your refresh token was already used. Please sign in again.
        Failed to refresh token: invalid_grant
        refresh_token_reused
        The refresh token has been revoked
        OAuth token has expired. Please obtain a new token or refresh your existing token.
        Token expired
        401 Unauthorized
        HTTP 401
        Request failed with status code 401
        ⚠  stream error: exceeded retry limit, last status: 401 Unauthorized
        [2026-09-16T00:01:04] ERROR: exceeded retry limit, last status: 401 Unauthorized
        Failed to authenticate. API Error: 403 Request not allowed
        403 Forbidden
        403 The caller does not have permission
        Server returned 403: your request was blocked
        Request failed with status code 403
        Forbidden
        Country, region, or territory not supported
        Permission denied on resource project default.
        Your organization does not have access to Claude.
        Error: 401 {"type":"error","error":{"type":"authentication_error","message":"invalid x-api-key"}}
        401: Incorrect API key provided
        Incorrect API key provided: sk-***
        Please run `codex login` to authenticate
        Authentication required
        GEMINI_API_KEY not found
        Missing API key
        Your session has expired. Please log in again.
        Failed to refresh token: 401 Unauthorized
        Access denied
        403
        HTTP/1.1 403 Forbidden
        error: 403 status code (no body)
        Error: Secret ANTHROPIC_API_KEY not provided
        credentials expired
        You must be logged in
        login required
        invalid credentials
        The caller does not have permission
        403 This request is blocked by policy
        auth.json not found
    """,
    "transient": """
        429 Too Many Requests
        HTTP 429
        error 429: slow down
        Request failed with status code 429
        Too many requests, please slow down
        Rate limit reached for gpt-5.5 in organization org-1 on tokens per min
        rate_limit_error: This request would exceed your organization's rate limit
        RESOURCE_EXHAUSTED
        Resource has been exhausted (e.g. check quota).
        Quota exceeded for quota metric 'Generate requests' and limit 'Generate requests per minute'
        503 Service Unavailable
        HTTP 503
        Request failed with status code 503
        upstream returned 502
        The model is overloaded. Please try again later.
        overloaded_error: Overloaded
        529 Overloaded
        We're currently experiencing high demand, which may cause temporary errors.
        The server had an error while processing your request
        ECONNRESET
        read ECONNRESET
        request to https://api.openai.com/v1/responses failed, reason: read ECONNRESET
        connect ECONNREFUSED 127.0.0.1:443
        getaddrinfo ENOTFOUND api.anthropic.com
        getaddrinfo EAI_AGAIN api.anthropic.com
        socket hang up
        TypeError: fetch failed
        error sending request for url (https://api.openai.com/v1/responses)
        Connection reset by peer
        connection timed out
        Request timed out.
        dns error: failed to lookup address information: Temporary failure in name resolution
        unable to get local issuer certificate
        stream disconnected before completion: stream closed before response.completed
        stream closed unexpectedly
        malformed event stream: expected data line
        Failed to parse SSE event: expected value at line 1 column 1
        Unexpected end of JSON input
        invalid event in stream
        429
        503
        HTTP/1.1 429 Too Many Requests
        status: 503
        api error 529
        Rate limited, retry after 20s
        Throttled: please retry
        Connection error.
        network error
        Error: getaddrinfo ENOTFOUND
        Client network socket disconnected before secure TLS connection was established
        write EPIPE
        timeout of 60000ms exceeded
        deadline exceeded
        Service temporarily unavailable
        Bad gateway
        Gateway timeout (504)
        stream error: unexpected EOF
        stream ended without a terminal event
        could not parse event stream
        Malformed JSON in event stream
        invalid JSON in stream at line 3
        SSE stream error
        unexpected end of file while reading the response
    """,
    "resource": """
        out of memory
        JavaScript heap out of memory
        fatal runtime error: out of memory
        memory allocation of 1073741824 bytes failed
        Cannot allocate memory (os error 12)
        std::bad_alloc
        OOMKilled
        No space left on device
        write failed: No space left on device (os error 28)
        ENOSPC: no space left on device, write
        Disk quota exceeded
        Quota exceeded. Check your plan and billing details.
        Your quota has been exceeded
        quota exhausted
        You exceeded your current quota, please check your plan and billing details.
        You have exhausted your daily quota on this model.
        insufficient_quota
        You've hit your usage limit. Upgrade to Pro or try again later.
        You\u2019ve hit your usage limit.
        You've hit your limit · resets 3pm
        Claude AI usage limit reached|1763916000
        Credit balance is too low
        Your credit balance is too low to access the Anthropic API.
        You have run out of credits
        402 Payment Required
        billing hard limit has been reached
        Billing is not enabled for this project.
        429 You exceeded your current quota: insufficient_quota
        ENOMEM: not enough memory
        java.lang.OutOfMemoryError
        MemoryError
        Killed (out of memory)
        quota exceeded
        Quota limit reached
        monthly quota used up
        You are out of credits
        insufficient credits
        Insufficient balance
        disk full
        not enough space on the disk
        Spending limit reached
        You have exhausted your capacity on this model. Your quota will reset after 2h36m24s.
    """,
    "logic": """
        model not found: gpt-9
        Model gpt-9 not found
        The model `gpt-9` does not exist or you do not have access to it.
        models/gemini-nope is not found for API version v1beta, or is not supported for generateContent.
        unknown model: claude-nope
        Unsupported model: gpt-1
        HTTP 404
        not_found_error: model: claude-nope
        prompt is too long: 210000 tokens > 200000 maximum
        Prompt too long
        Input is too long for requested model
        This model's maximum context length is 128000 tokens
        context_length_exceeded
        input length and `max_tokens` exceed context limit: 190000 + 20000 > 200000
        The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).
        Error loading config.toml: unknown variant `x`
        Error loading configuration: TOML parse error at line 40, column 25
        TOML parse error at line 3, column 7
        failed to reload config: /home/runner/.codex/config.toml:150:77: missing escaped value
        Failed to parse settings.json
        Error in /home/runner/.gemini/settings.json: Unexpected token ']', ...,] is not valid JSON
        Invalid configuration in /home/runner/.gemini/settings.json:
        /home/runner/.claude/settings.json: Unexpected token } in JSON at position 12
        unknown option '--nope'
        unexpected argument '--nope' found
        Unknown arguments: nope
        No prompt provided
        HTTP 400
        400 Bad Request
        Reached max turns (30)
        no such model
        The requested model 'x' does not exist
        Model is not supported: x
        invalid model name: x
        model `x` not available
        context window exceeded
        maximum context length exceeded
        prompt exceeds the context window
        too many tokens: 300000 > 200000
        Conversation too long
        input exceeds maximum length
        Failed to parse config file: expected `=` at line 3
        could not parse /root/.codex/config.toml
        config.toml:3:5: invalid key
        invalid TOML in config.toml
        Error parsing configuration
        config error: missing field `model`
        SyntaxError: Unexpected token } in JSON at position 12 while parsing settings.json
        unknown argument: --x
        error: invalid value 'x' for '--sandbox <SANDBOX_MODE>'
        schema file not found
        Reached maximum number of turns
        invalid configuration: unknown field
        YAML error in config.yaml: mapping values are not allowed here
    """,
    "infrastructure": """
        bwrap: Creating new namespace failed: nesting depth or /proc/sys/user/max_*_namespaces exceeded (ENOSPC)
        bwrap: setting up uid map: Permission denied
    """,
    "unknown": """
        I fixed the 429 Too Many Requests handling and the quota check
        - Authentication failed: is shown when the API key is invalid
        The tests of 401 Unauthorized and the rate limit handling passed.
        Added a test for ECONNRESET and out of memory
        + raise Error("429 Too Many Requests")
        All 429 tests passed; 401 handled
        Read 503 lines of main.py
        limit of 429 tokens
        Reading additional input from stdin...
        Loaded access token from the keychain
        Rate limit: 4999 of 5000 remaining
        max turns: 30
        model: gpt-5.5
        context window: 128000 tokens
        YOLO mode is enabled. All tool calls will be automatically approved.
        Warning: Basic terminal detected (TERM=dumb). Visual rendering will be limited.
        warning: rate limit at 80 percent
        INFO refreshing the access token
        2026-11-21T21:06:11Z ERROR codex_api::endpoint::responses_websocket: failed to connect: 401 Unauthorized
        ERROR rmcp::transport::worker: worker quit with fatal: UnexpectedServerResponse("HTTP 404")
        Segmentation fault
        panicked at src/main.rs:12
        Done in 429 ms
        Loaded config.toml
        Reading settings.json
        Using model gpt-5.5 with context window 400000
        token usage: total=429
        Retry policy: 3 attempts on 429 and 503
        Session 503 started
        Wrote 401 lines
        error rate: 0.429
    """,
}  # fmt: skip
ROWS = [(category, line.strip()) for category, text in LINES.items() for line in text.strip().splitlines()]


@pytest.mark.parametrize(("category", "line"), ROWS)
def test_a_line_of_stderr_is_the_cause_when_the_events_name_none(reader: Reader, category: str, line: str) -> None:
    """With an empty stream and with one that breaks off before the agent does anything."""
    words = dict(zip(("category", "type", "recovery"), WORDS[category].split(), strict=True))
    for codec in CODECS:
        for stdout in (b"", SILENT[codec]) if category != "unknown" else (b"",):
            found = reader.failure(codec, stdout, exit_code=1, stderr=f"Starting.\n{line}\n".encode())
            assert words_of(found) == words, (codec, found)


@pytest.mark.parametrize("codec", CODECS)
def test_talk_of_the_agent_about_errors_does_not_explain_its_failure(reader: Reader, codec: str) -> None:
    for stdout, stderr in (SILENT[codec] + SAID[codec], b""), (SILENT[codec] + SAID[codec], TALK.encode()):
        found = reader.failure(codec, stdout, exit_code=1, stderr=stderr)
        assert found.evidence.rule == "no-terminal-event"
    assert reader.failure(codec, TALK.encode(), exit_code=1).category == "unknown"


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
