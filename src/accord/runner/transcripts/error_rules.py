"""The evidence that each cause of a failure is recognized by, as tables.

Fields come before words, as words change from version to version. A field is the class that a CLI or a provider gives
its error, an HTTP status, or an exit code. ``accord.runner.classify`` has the order of the tables.
"""

from __future__ import annotations

import re
from functools import cache

from accord.agents.registry import shipped_registry
from accord.runner.transcripts.claude import DENIED, UNANSWERED
from accord.runner.transcripts.gemini import INVALID_STREAM

_KINDS = {
    "credential": "authentication_failed authentication_error permission_error invalid_api_key FatalAuthenticationError"
    " API_KEY_INVALID API_KEY_SERVICE_BLOCKED SERVICE_DISABLED UNAUTHENTICATED PERMISSION_DENIED",
    "quota": "billing_error billing_not_active insufficient_quota usage_limit_reached billing_hard_limit_reached"
    " budget_exceeded quota_exceeded exceeded_current_quota_error usage_not_included credit_balance_exhausted"
    " organization_spend_limit_exceeded project_spend_limit_exceeded organization_usage_limit_exceeded"
    " BILLING_DISABLED",
    "rate-limit": "rate_limit rate_limit_error rate_limit_exceeded RATE_LIMIT_EXCEEDED",
    "outage": "overloaded overloaded_error server_is_overloaded slow_down internal_server_error"
    " service_unavailable_error timeout_error vector_store_timeout"
    " UNAVAILABLE INTERNAL DEADLINE_EXCEEDED CANCELLED ABORTED",
    "model": "model_not_found model_not_supported no_available_model_endpoints not_found_error NOT_FOUND",
    "context": "prompt_too_long request_too_large context_length_exceeded",
    "output": "max_output_tokens",
    "turns": "error_max_turns FatalTurnLimitedError",
    "budget": "error_max_budget_usd",
    "result": "error_max_structured_output_retries",
    "refusal": "refusal content_policy_violation image_content_policy_violation misalignment_policy_violation"
    " bio_policy cyber_policy",
    "settings": "FatalInputError FatalConfigError",
    "request": "data_residency_mismatch UNIMPLEMENTED",
}
"""Classes of Claude Code (``assistant.error``, ``result.subtype``, ``result.terminal_reason``), Gemini CLI (``Fatal…``)
and the providers (Google's in upper case)."""

KINDS: dict[str, str] = {kind: cause for cause, kinds in _KINDS.items() for kind in kinds.split()}
"""Classes that are more specific than an HTTP status."""

STATUSES: dict[int, str] = {
    401: "credential", 402: "quota", 403: "credential", 404: "model", 408: "network", 413: "context", 425: "outage",
    429: "rate-limit",
}  # fmt: skip
"""HTTP statuses. Other 5xx are outages, other 4xx refused requests."""

_REFUSED_INPUTS = (
    "invalid_prompt invalid_image invalid_image_format invalid_base64_image invalid_image_url invalid_image_mode"
    " image_too_large image_too_small image_parse_error image_file_too_large image_file_not_found empty_image_file"
    " unsupported_image_media_type failed_to_download_image"
)

BROAD_KINDS: dict[str, str] = {
    **dict.fromkeys(("server_error", "api_error", "DATA_LOSS"), "outage"),
    "RESOURCE_EXHAUSTED": "rate-limit",
    **dict.fromkeys(("invalid_request", "invalid_request_error", "invalid_value", "conflict_error"), "request"),
    **dict.fromkeys(("INVALID_ARGUMENT", "FAILED_PRECONDITION", "OUT_OF_RANGE", "ALREADY_EXISTS"), "request"),
    **dict.fromkeys(_REFUSED_INPUTS.split(), "request"),
}
"""Classes that are no more specific than an HTTP status; used without one."""

WEAK_KINDS: dict[str, str] = {
    UNANSWERED: "broken-answer",
    INVALID_STREAM: "broken-answer",
    DENIED: "settings",
    "error_during_execution": "interrupted",
    "UNKNOWN": "outage",
}
"""Unspecific classes; words come before them."""

NATIVE_ERROR = re.compile(r"(?<!\w)(?:Eval|Range|Reference|Syntax|Type|URI)Error: ")
"""The exceptions of JavaScript itself: an error of the CLI, which nothing outside stopped."""

CLASSES = KINDS.keys() | BROAD_KINDS.keys() | WEAK_KINDS.keys()

LONG_PERIOD = re.compile(
    r"(?i)(?<![a-z])(?:(?:dai|week|month|year)ly|annual|[rt]pd)(?![a-z])|\b(?:(?:24|48|72)[ -]?h|\d{1,3}[ -]day)"
    r"|(?:(?:per|/)[ _-]*|\b(?:quota|limit|requests|tokens) (?:[\w-]+ ){0,2}(?:the|this|an?) )(?:day|week|month|year)"
)
"""Periods of a day or more: a limit for one is a quota that a short wait does not lift."""

SHORT_PERIOD = re.compile(r"(?i)(?:per|/)[ _-]{0,2}(?:min|sec)|(?<![a-z])[rt]pm(?![a-z])")
"""Periods of a rate limit. Money beside one is advice to buy a higher limit."""

HARD_QUOTA = re.compile(
    r"(?i)\b(?:free|hard|session|5-hour|spend(?:ing)?) (?:[\w-]+ ){0,2}(?:quota|limit)|quota exceeded\W*$"
    r"|insufficient.quota|usage limit|\b(?:credits?|billing|budget|balance|funds|payments?|recharge)\b",
)
"""Limits of a plan, and money; in a text with a delay neither they nor long periods count."""

GOOGLES_RATE_LIMIT = re.compile(r"You exceeded your current quota, please check your plan and billing details\S* ?")
"""Google's message for a per-minute limit; the one for a daily limit differs."""

_TEXTS = {
    "sandbox": "bwrap: *namespace|bwrap: *RTM_NEWADDR|bwrap: *uid map|bwrap: *not permitted|sandbox_apply: *",
    "machine": "EMFILE|ENFILE|too many open files|fork: *temporarily unavailable|spawn EAGAIN"
    "|failed to create new OS thread|limit for number of file watchers reached",
    "memory": "ENOMEM|cannot allocate memory|not enough memory|out of memory|memory allocation of * bytes failed"
    "|bad_alloc|OutOfMemoryError|MemoryError|OOMKilled|OOM killer|oom-kill|Killed signal terminated"
    "|Killed process * total-vm",
    "disk": "ENOSPC|no space left on device|EDQUOT|not enough space on the disk",
    "prompt": "E2BIG|ENAMETOOLONG|argument list too long",
    "killed": "signal: killed",
    "interrupted": "signal: terminated|operation was canceled|received a shutdown signal",
    "time": "exceeded the maximum execution time|the action '*' has timed out",
    "upload": "RPC failed; HTTP 413|requested URL returned error: 413|exceeds GitHub's file size limit"
    "|pack exceeds maximum|code E413|413 * - PUT http",
    "push-again": "[rejected] *(fetch first)|[rejected] *(non-fast-forward)|[rejected] *(stale info)"
    "|cannot lock ref * but expected",
    "push": "remote rejected|protected branch hook|protected branch update|protected ref|repository rule violations"
    "|failed to push some refs|[rejected]|refusing to allow",
    "budget": "reached maximum budget",
    "turns": "reached max session turns|agent reached max*iteration",
    "certificate": "PKIX path building failed",
    "quota": "hit your limit|have no quota|quota exceeded.|exhausted your capacity|issue with billing"
    "|check your billing|no payment method",
    "not-installed": "native binary not installed",
    "rate-limit": "rate limited|secondary rate limit|abuse detection|Too Many Requests|toomanyrequests|too many tokens",
    "context": "maximum context length|ran out of * in the model's context window|context low|request too large"
    "|request exceeds the maximum size",
    "output": "reason: max_output_tokens|output token maximum",
    "refusal": "reason: content_filter|unable to respond to this request",
    "settings": "ENOENT|no such file or directory|sh: *not found|exec format error"
    "|cannot find module '/|invalid value * for|requires --|invalid auth method|error loading config"
    "|failed to reload config|yaml: line|error in *settings.json|TOML parse error|--json-schema is not valid JSON"
    "|failed to read output schema|not inside a trusted directory|not running in a trusted directory"
    "|input must be provided|no input provided|no prompt provided|cannot be used with root|dubious ownership"
    "|HttpError: Not Found|could not resolve to a Repository|ERESOLVE|EBADENGINE|EBADPLATFORM|ETARGET|EJSONPARSE"
    "|EUSAGE|npm *404",
    "model": "model does not support|issue with the selected model|from --model flag is not available",
    "credential": "Unauthorized|Forbidden|resource not accessible by|permission to * denied to|not logged in"
    "|run *login|auth login|sign in again|refresh_token_reused|invalid_grant|ENEEDAUTH|missing environment variable"
    "|set an auth method|request not allowed|permission denied (publickey|permission denied on resource"
    "|permission '* denied on|not have permission|not have access to|resolve authentication method"
    "|authentication header|authentication timed out|authentication error|no authentication|must be verified"
    "|security token included in the request|error when retrieving credentials|setting the GOOGLE_CLOUD_PROJECT",
    "outage": "Internal Server Error|Bad Gateway|Service Unavailable|Gateway Timeout|HttpError: Server Error"
    "|overloaded|experiencing high|at capacity|no capacity available|no healthy upstream|temporarily unavailable"
    "|currently unavailable|temporarily limiting requests|internal error has occurred"
    "|failed to get response from the AI model",
    "broken-answer": "hash sum mismatch|stream disconnected|stream closed|stream error|incomplete JSON segment"
    "|empty or malformed response|empty response|without a finish reason|malformed function call"
    "|unexpected end of JSON input|unexpected EOF|early EOF|EOF occurred in violation|failed to parse SSE event"
    "|closed mid-response",
    "network": "ECONNREFUSED|ECONNRESET|ECONNABORTED|ETIMEDOUT|timed out|EHOSTUNREACH|ENETUNREACH|EPIPE|ENOTFOUND"
    "|EAI_AGAIN|name resolution|Name or service not known|net::ERR_|transport is closing|unable to connect"
    "|failed to connect to|fetch failed|error sending request|timeout of * exceeded|upstream connect error"
    "|timeout error|request timeout|idle timeout|i/o timeout|UND_ERR|GOAWAY|SSL_ERROR_SYSCALL|aborted due to timeout"
    "|unexpected disconnect|premature close|server misbehaving|RPC failed; curl|unable to access 'http",
    "request": "Bad Request|Unprocessable Entity|Validation Failed",
}
"""Texts, where no field decides: those of the system (errors, their names, HTTP reasons) and those that Codex, Claude
Code, Gemini CLI, Copilot CLI and their providers print; ``*`` is any text in a line."""

_SPENT_WORDS = "exceeded|reached|hit|exhausted|depleted|used up|insufficient|too low|out of"
_REFUSED_WORDS = "invalid|incorrect|wrong|bad|expired|revoked|missing|denied|rejected|not (?:valid|supported|set|found)"
_UNKNOWN_WORDS = "unknown|unrecognized|unexpected|invalid|unsupported|not found|(?:not|isn't) (?:supported|available)"

_FORMS = {
    "sandbox": "landlock|(?:PR_SET_)?seccomp(?: filter)?|unshare"
    " ~ failed|error|(?:operation )?not permitted|denied|not supported|not enabled",
    "memory": "memory (?:limit|request|quota) ~ exceeded|reached",
    "disk": f"(?:disk|storage) (?:quota|space) ~ {_SPENT_WORDS} / disk|device|volume|file ?system ~ full(?! of)",
    "prompt": "prompt(?: file)? ~ empty|missing|required|not found",
    "turns": "turns|turn limit ~ maximum|max|exceeded|reached|exhausted|used up",
    "certificate": "certificate(?: chain)?|certification path|x509 ~ self[- ]signed|expired|not yet valid"
    "|verify(?: failed)?|verification failed|unknown authority|issuer|unable to find|not match|not trusted|not OK",
    "quota": "credits?|balance|funds|(?:request )?allowance|(?:token|extra) usage|(?:remaining|premium) requests"
    "|billing|payments?|(?:usage|spend(?:ing)?|key|monthly|daily|free tier|billing hard) (?:limits?|cap|quota)"
    f" ~ {_SPENT_WORDS}|requires(?: more)?|required|failed|not enabled|not enough|used all|no"
    " / (?:session|weekly|5-hour) limit ~ (?:hit|reached|exceeded) your / (?<!maximum |ormance )budget ~ exceeded",
    "rate-limit": f"rate[ -]limit|quota|resource ~ {_SPENT_WORDS}|would exceed",
    "context": "prompt|input|conversation|context (?:length|window|limit)|(?:input )?tokens?|input token count"
    " ~ too long|exceeds?(?: limit)?|exceeded",
    "refusal": "content|prompt|response|output|request"
    " ~ flagged|filtered|blocked by content filter\\w*(?: policy)?|usage policy|safety (?:settings|filters?)"
    "|blocked due to(?: [\\w/-]{1,40}){1,3} (?:filters?|settings)",
    "settings": "arguments?|inputs?|option|flag|(?:sub)?command|script|config(?:uration)?(?: file)?|settings file|URL"
    "|MCP server|model provider|remote (?:branch|ref)|repository|manifest|distribution|version|package|reference format"
    f" ~ {_UNKNOWN_WORDS}|no such|not an?|malformed|missing|not (?:provided|supplied)|no matching"
    "|(?:couldn't|could not|unable to) find|(?:failed|unable) to (?:parse|load|read)"
    " / daemon ~ (?:cannot|could not|failed to) connect|not running / executable ~ not found"
    " / arguments?|option|flag|sudo|--\\w[\\w-]* ~ cannot be used|must be|required|invalid choice|not (?:set|defined)"
    "|expected (?:one|at least one) argument",
    "model": f"model|models/\\S+|deployment ~ {_UNKNOWN_WORDS}|not exist|no access to|no longer available|deprecated",
    "credential": "(?:(?:x-)?API|subscription|access|host|secret)[ -]keys?|authorization header|password|username"
    "|(?:access|refresh|bearer|OAuth|OIDC|bedrock|\\w+-to-server) tokens?|credentials?|authentication(?! handshake)"
    f" ~ {_REFUSED_WORDS}|not (?:granted|configured)|unable to locate|insufficient|no|required"
    "|failed|could not (?:be|read|load|fetch|get|resolve)|verification failed|(?:didn't|not) provide"
    " / access|permissions|scopes|required scope ~ denied|missing|rejected|revoked|insufficient|required|not granted"
    " / location|territory ~ not supported / SAML(?: SSO)? ~ enforced|enforcement"
    " / token|JWT|session|login|API key|account|organization ~ expired|revoked|required|has been disabled",
    "outage": "server|services?|backend|upstream|provider|model|Bedrock"
    " ~ had an error|is down|unavailable|(?:aren't|isn't) available|busy|not ready|unable to process|not respond",
    "broken-answer": "reply|answer ~ empty|malformed|truncated",
    "network": "connection|socket|stream|transfer|host(?:name)?(?: address)?|network|remote end|server|proxy|handshake"
    " ~ reset|refused|closed|is closing|aborted|dropped|failed|failure|error|terminated|disconnected|timeout|lost"
    "|h[au]ng up|unreachable|no route to|(?:couldn't|could not|cannot|unable to|failed to) (?:resolve|connect|reach)"
    "|could not be established / timeout|deadline ~ exceeded|expired / host ~ no such",
    "request": f"request|prompt|(?:required )?parameter|value|schema ~ {_UNKNOWN_WORDS}|malformed|missing",
}
"""Subjects ~ predicates: a cause has sentences with one of each, few words apart, that end there or go on as ``_ENDS``
allows."""

_EXCEPTIONS = {
    "credential": "Authentication|ExpiredToken|AccessDenied|PermissionDenied|Credentials?|CredentialsProvider",
    "quota": "BudgetExceeded|Credits|InsufficientQuota|QuotaExceeded",
    "rate-limit": "RateLimit|Throttling|TooManyRequests",
    "context": "ContextWindowExceeded|ContextLengthExceeded",
    "refusal": "ContentPolicyViolation",
    "model": "ModelNotFound",
    "settings": "ModuleNotFound|FileNotFound",
    "outage": "InternalServer|ModelNotReady|ServiceUnavailable|Overloaded",
    "network": "APIConnection|APITimeout|ConnectTimeout|HeadersTimeout|BodyTimeout",
    "request": "BadRequest|InvalidRequest|UnprocessableEntity|Validation(?=Exc)",
}
"""Ends of the names of exceptions in clients of providers, before ``Error`` or ``Exception``."""

_LOST = (
    r"^(?:(?i:error|fatal|uncaught):? ){0,3}"
    r"(?:(?:Connect(?:ion(?:Reset|Refused|Aborted|Closed)?)?|Timeout|Network)(?:Error|Exception)"
    r"|(?:http(?:x|core)?|requests|urllib3|aiohttp|litellm|openai|anthropic|google|asyncio)\.(?:\w{1,40}\.){0,4}"
    r"(?:\w{0,40}?(?:Connect(?:ion(?:Reset|Refused|Aborted|Closed)?|or(?:DNS)?)?|Disconnected|Timeout|Network"
    r"|ChunkedEncoding|(?<!Local)Protocol|Read|Write|Close)Error|\w{0,40}?Timeout|IncompleteRead|RemoteDisconnected)"
    r")(?=:|$)"
)
"""Names of exceptions for a lost connection, as programs print them: with or without a level and a message.

A name without a module is that of a language. A longer one has a module of a client of HTTP or of providers.
"""

_TIME = r"(?:\d{1,2} ?[ap]m\b|\d{1,2}:\d\d|\d{4}-\d\d-\d\d|(?-i:[A-Z])[a-z]{2,8} \d|tomorrow|\w{3,6}day\b|\d+ ?[hd])"
_RENEWED = rf"(?:resets?|renews|try again)\b.{{0,12}}?\b{_TIME}"
_ALLOWANCE = (
    r"(?i:(?:[\w'\u2019-]{1,20} ){0,3}(?<!rate )limit (?:was |has been )?reached"
    rf"(?:\|\d{{10}}|[^\w|]{{1,4}}(?:(?:it|your limit)(?: will)? )?{_RENEWED})"
    r"|you(?:['\u2019]ve| have) (?:hit|reached|exceeded) your (?!rate)(?:[\w-]{1,20} ){0,3}limit"
    rf"[^\w].{{0,100}}?\b{_RENEWED})"
)
"""A line that says that a limit is reached, and the time at which it is renewed: the allowance of a plan."""

_WORD = r"(?!(?:if|that|when|which|not|never) )\S{0,60}[^\s.:;,!?]"

_ENDS = (
    r"(?!-\w)(?! ?(?:[?=]|[:,]? \d[\d.]*(?: ?%| \w+)?$)|, set to)"
    r"(?! (?!(?:for|to|by|in|on|with|of|at|as|and|or|from|due|when|while|because|without|please|limits?|error|mid|your?"
    r"|th\w+|an?|it|has|have|is|was|are|were|provided|available|found|detected|used|configured|specified|header|metric"
    r"|property|identifier|name|left|right|unexpectedly)\b)(?-i:[a-z]{2,})(?![\w/.-]))"
)
"""A sentence goes on after its predicate or object by one of few words, and a count does not follow."""

_ENDED = (
    r"|^(?i:{0})(?:: \d+)?$|^(?:\S{{1,80}}: )?line \d+: *\d+ {0}\b|^zsh: (?i:{0}) "
    r"|(?i:\bexit(?:ed)?(?: with)?(?: code| status)?:? {1}|\bsignal {2})\W*$"
)
"""Lines by which shells and other programs say that a signal ended their command: its name, exit code and constant."""

_SIGN_IN = r"(?i:(?:log|sign)[ -]?in|authenticat(?:e|ing|ion)|authoriz(?:e|ing|ation))"

_MORE_WORDS = {
    "quota": f"|(?:^|: ){_ALLOWANCE}",
    "killed": _ENDED.format("Killed", 137, "SIGKILL"),
    "interrupted": _ENDED.format("Terminated", 143, "SIGTERM"),
    "credential": r"|(?<!\w)[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)*_(?:API_KEY|AUTH_JSON|TOKEN)(?!\w)"
    rf"|(?:\b(?i:(?:failed|unable) to|(?:could|can) ?not|error) {_SIGN_IN}"
    rf"|(?:^|: ){_SIGN_IN} (?i:failed|{_REFUSED_WORDS}))(?=\W*$|[.:,;]| (?:to|as|with|for)\b)"
    r"|\b(?i:not auth(?:enticated|orized))\b",
    "certificate": r"|(?<!\w)(?:UNABLE_TO_\w+|CERT(?:IFICATE)?_[A-Z_]+(?!\w)|ERR_TLS_CERT)|_SIGNED_CERT(?![a-z])",
    "network": rf"|{_LOST}|rror: terminated\W*$|\bconnect E(?:ACCES|PERM)\b",
    "not-installed": r"|(?i:\bcannot find (?:module|package) ['\"]|\bmissing optional dependency )(?:PACKAGES)(?!\w)",
    "settings": r"|(?<!connect )\bE(?:ACCES|PERM)\b|(?<=/)\S+ (?:connect: )?(?i:permission denied)\W*$",
}
"""Limits of plans, signals, variables of credentials, OpenSSL's names, undici's message for a broken answer, and what
Node.js and CLIs say without a package of an agent, or a part of it for one platform."""


@cache
def words(cause: str) -> re.Pattern[str]:
    """Match the texts of a cause, its forms, and its classes with an underscore.

    A level or a prefix, as in ``ERROR server`` or ``Error: server``, does not count as a predicate.
    """
    kinds = [kind for kind, of in {**KINDS, **BROAD_KINDS}.items() if of == cause and "_" in kind]
    texts = (re.escape(text).replace(r"\*", r".{0,200}?") for text in _TEXTS[cause].split("|"))
    forms = [
        rf"(?:{first})\b{colon}(?: {_WORD}){{0,{words}}}? (?:{then})\b{_ENDS}"
        for subjects, predicates in (form.split(" ~ ") for form in _FORMS.get(cause, "").split(" / ") if form)
        for first, colon, words, then in ((subjects, "[:)]?", 5, predicates), (predicates, "", 3, subjects))
    ]
    pattern = rf"(?<![\w/`-])(?!ERROR )(?i:{'|'.join([*texts, *forms])})"
    pattern += rf"|(?<![\w/.`-])(?i:{'|'.join(kinds)})(?![\w/-]|\.\w)" if kinds else ""
    pattern += rf"|(?:{_EXCEPTIONS[cause]})(?:Error|Exception)(?=[:)\s]|$)" if cause in _EXCEPTIONS else ""
    pattern = pattern.replace("'", "['\u2019]") + _MORE_WORDS.get(cause, "")
    installed = (agent.install.package for agent in shipped_registry().agents.values() if agent.install)
    pattern = pattern.replace("PACKAGES", "|".join(map(re.escape, installed)))
    return re.compile(pattern)


DESCRIBED = re.compile(
    r"\b(?:if|when|whether|that|which|where|unless|(?:until|once|after)(?! \d))\b[^.:,]*$", re.IGNORECASE
)
"""Beginnings of clauses that describe an error."""

PRECEDENCE = (
    *("sandbox", "machine", "memory", "disk", "prompt", "upload", "push-again", "push", "budget", "turns", "time"),
    *("certificate", "quota", "rate-limit", "context", "output", "refusal", "not-installed", "settings", "model"),
    *("credential", "outage", "broken-answer", "network", "request", "killed", "interrupted"),
)
"""The first of these causes that a line names decides: limits of the machine come before those of a plan or provider,
these before faults of the call, its model and its credential, and a lost answer or a refused request last."""

EXITS: dict[int, str] = {
    124: "time", 126: "start", 127: "start", 132: "memory", 134: "memory", 137: "killed", 130: "interrupted",
    143: "interrupted",
}  # fmt: skip
"""Exit codes of any process (128 + signal, ``timeout``, the shell's own)."""

AFTERMATH = re.compile(
    r"(?:fatal|send-pack|fetch-pack): (?:the remote end hung up|unexpected disconnect)|error: failed to push some refs"
)
"""Errors that only follow from git's own error before them."""
GIT_ERROR = re.compile(r"(?:remote: )?(?:error|fatal): | ! \[(?:remote )?rejected\]")
GIT_PROGRESS = re.compile(r"remote: |Total \d|\w+ (?:objects|deltas): ")
"""Lines that git may print between an error and its aftermath."""

SHELL_EXITS = (126, 127)
"""Those by which a shell says that it could not start a command; while nothing was printed, they come first."""

VERBATIM = re.compile(
    r"^(?:Invalid auth method selected\.|When using Gemini API, you must specify|Unknown arguments?: |"
    r"No input provided via stdin|Not inside a trusted directory|Gemini CLI is not running in a trusted directory|"
    r"Failed to read output schema|--dangerously-skip-permissions cannot be used|Reached max session turns|"
    r"Invalid API key · |Not logged in · |Credit balance is too low$|Prompt is too long(?: ·|$)|Request too large \(|"
    r"Failed to (?:authenticate|log ?in)\. |You've hit your [\w-]+ limit · |There's an issue with the selected model |"
    r"(?:stream error: )?unexpected status [45]\d\d [A-Z]|stream disconnected before completion: |"
    rf"No space left on device(?: \(os error 28\))?$|<--- Last few GCs|FATAL ERROR: |{_ALLOWANCE})"
)
"""Error lines of the known CLIs that begin otherwise."""

BACKGROUND = re.compile(
    r"ERROR (?:codex_models_manager|rmcp|codex_core::tools|codex_api::endpoint)|^Error executing tool "
)
"""Lines that successful runs have, too: background work of the CLI, tools that the agent called wrongly."""

CONVERSATION = re.compile(r"^(?:OpenAI Codex v\d.*|user|codex|exec|thinking|tokens used)$", re.MULTILINE)
"""Lines between which codex prints the whole conversation to stderr, unless it prints events."""


def worded_cause(message: str, *causes: str, described: re.Pattern[str] = DESCRIBED) -> str:
    """Return the first of the causes, or of all, that words of a message name without describing it."""
    for cause in causes or PRECEDENCE:
        found = words(cause).finditer(message)
        if any(not described.search(message[: match.start()]) for match in found):
            return cause
    return ""


def status_cause(status: int) -> str:
    """Return the cause of an HTTP status; empty for a status below 400."""
    return STATUSES.get(status) or ("outage" if status >= 500 else "request" if status >= 400 else "")
