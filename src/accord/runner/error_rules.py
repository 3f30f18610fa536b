"""Why runs fail, as tables: the causes, and the evidence that each is recognized by.

Fields come before words, as words change from version to version. A field is the class that a CLI or a provider gives
its error, an HTTP status, or an exit code. ``accord.runner.classify`` has the order of the tables.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from accord.runner.transcripts.claude import UNANSWERED
from accord.runner.transcripts.gemini import INVALID_STREAM

if TYPE_CHECKING:
    from accord.runner.models import Category, InternalErrorKind, Origin, Recovery
    from accord.runner.transcripts.events import CommandFailure


@dataclass(frozen=True, slots=True)
class Cause:
    """A cause of failures: the three words of the contract, its meaning, and the fix."""

    category: Category
    type: Origin
    recovery: Recovery
    means: str
    hint: str


_Terms: TypeAlias = "tuple[Category, Origin, Recovery]"
_RETRY: _Terms = ("transient", "infrastructure", "retry")
_SPENT: _Terms = ("resource", "infrastructure", "manual")
_LOGIC: _Terms = ("logic", "agent", "manual")
_AUTH: _Terms = ("auth", "agent", "manual")
_REFUSED: _Terms = ("infrastructure", "infrastructure", "manual")
_LOST: _Terms = ("infrastructure", "infrastructure", "retry")

CAUSES: dict[str, Cause] = {
    "rate-limit": Cause(*_RETRY, "The provider's rate limit was reached", "Run it again after a while."),
    "outage": Cause(*_RETRY, "The provider could not answer", "Run it again; see the provider's status page."),
    "network": Cause(*_RETRY, "The provider could not be reached",
        "Run it again. If it persists, check the proxy and the base URL."),
    "broken-answer": Cause(*_RETRY, "The provider's answer was invalid or empty", "Run it again."),
    "interrupted": Cause(*_RETRY, "The agent was stopped from outside",
        "Run it again; check why the runner or its job stopped."),
    "install": Cause(*_RETRY, "The agent could not be installed", "Run it again. If it persists, check its version."),
    "credential": Cause(*_AUTH, "The provider refused the agent's credential",
        "Check that the secret is set, valid and allowed to use this model."),
    "credential-missing": Cause("auth", "auth", "manual", "The agent's credential is missing",
        "Set the secret that the agent needs."),
    "credential-invalid": Cause("auth", "auth", "manual", "The agent's credential is invalid",
        "Set the secret again."),
    "quota": Cause(*_SPENT, "A quota or credit is used up", "Raise the quota, add credit, or wait for its renewal."),
    "budget": Cause(*_SPENT, "The run's budget is spent", "Raise the budget, or split the task."),
    "memory": Cause(*_SPENT, "The agent ran out of memory", "Use a larger runner, or split the task."),
    "killed": Cause(*_SPENT, "The agent was killed, probably because memory ran out",
        "Use a larger runner, or split the task."),
    "disk": Cause(*_SPENT, "The disk is full", "Free space before the agent runs, or use a larger runner."),
    "stall": Cause(*_RETRY, "The agent stalled", "Run it again, or raise `stall_minutes` of its registry entry."),
    "time": Cause(*_SPENT, "The time limit was reached", "Raise the time limit, or split the task."),
    "request": Cause(*_LOGIC, "The provider refused the request", "Check the agent's version, settings and prompt."),
    "model": Cause(*_LOGIC, "The model is not available", "Name a model that exists and that the account may use."),
    "context": Cause(*_LOGIC, "The task does not fit the model's context", "Shorten the prompt, or split the task."),
    "output": Cause(*_LOGIC, "The answer was cut at the limit of output tokens", "Raise the limit, or split the task."),
    "turns": Cause(*_LOGIC, "The agent used up its turns", "Raise the limit of turns, or split the task."),
    "refusal": Cause(*_LOGIC, "The model refused the task", "Review the prompt and the text that it quotes."),
    "result": Cause(*_LOGIC, "The agent returned no valid structured result",
        "Simplify the schema, or review the prompt."),
    "settings": Cause(*_LOGIC, "The agent was called or configured wrongly", "Correct its arguments and settings."),
    "prompt": Cause(*_LOGIC, "The prompt cannot be used", "Check the prompt file."),
    "start": Cause(*_LOGIC, "The agent could not be started", "Check its command, and that it is installed."),
    "sandbox": Cause(*_REFUSED, "The agent's own sandbox cannot start on this machine",
        "Allow user namespaces there, or use a sandbox mode without it."),
    "commands": Cause(*_LOGIC, "Every command that the agent ran failed, and nothing was changed",
        "Read its transcript: it may lack a program, a permission or the network."),
    "changes": Cause(*_LOGIC, "The agent's changes cannot be read", "Check the work tree."),
    "merge": Cause(*_LOGIC, "The run ended in the middle of a merge or left its markers, so nothing was pushed",
        "Resolve the conflict, or run the agent again."),
    "size": Cause(*_REFUSED, "The run changed more than the limits allow, so nothing was pushed",
        "Split the task, or raise `--max-files` or `--max-bytes`."),
    "push": Cause(*_REFUSED, "The push of the changes was refused",
        "Grant `contents: write`, or push to an unprotected branch."),
    "steering": Cause(*_REFUSED, "The run changed files that steer agents or CI, so nothing was pushed",
        "Review its changes."),
    "refs": Cause(*_REFUSED, "Branches or tags of the repository changed while the agent ran, so nothing was pushed",
        "Check them, and run it again."),
    "push-again": Cause(*_LOST, "The changes could not be pushed", "Run it again."),
    "job-lost": Cause(*_LOST, "The agent's job ended before the run did", "Run it again."),
    "cancelled": Cause("transient", "infrastructure", "ignore", "The run was cancelled", "No action is needed."),
    "unknown": Cause("unknown", "unknown", "manual", "The agent failed for an unknown reason",
        "Read its transcript and its log."),
}  # fmt: skip

INTERNAL_ERRORS: dict[InternalErrorKind, str] = {
    "time-limit": "time", "cancelled": "cancelled", "install-failed": "install",
    "credential-missing": "credential-missing", "credential-invalid": "credential-invalid",
    "prompt-invalid": "prompt", "not-started": "start", "sandbox-unavailable": "sandbox",
    "record-missing": "job-lost", "changes-unreadable": "changes", "steering-files": "steering", "refs-moved": "refs",
    "merge-unfinished": "merge", "changes-too-large": "size", "push-refused": "push",
    "push-conflict": "push-again", "push-unreachable": "push-again", "disk-full": "disk",
    "stalled": "stall", "budget": "budget",
}  # fmt: skip
"""Causes of accord's own errors."""

COMMAND_FAILURES: dict[CommandFailure, tuple[str, str]] = {
    "sandbox": ("no-sandboxed-command", "sandbox"),
    "all": ("no-successful-command", "commands"),
}
"""Rules and causes for runs that changed nothing because no command succeeded, though the agent reports success."""

_KINDS = {
    "credential": "authentication_failed authentication_error permission_error invalid_api_key FatalAuthenticationError"
    " API_KEY_INVALID API_KEY_SERVICE_BLOCKED SERVICE_DISABLED UNAUTHENTICATED PERMISSION_DENIED",
    "quota": "billing_error insufficient_quota usage_limit_reached billing_hard_limit_reached BILLING_DISABLED",
    "rate-limit": "rate_limit rate_limit_error rate_limit_exceeded RATE_LIMIT_EXCEEDED",
    "outage": "overloaded overloaded_error server_is_overloaded UNAVAILABLE INTERNAL DEADLINE_EXCEEDED",
    "model": "model_not_found NOT_FOUND",
    "context": "prompt_too_long request_too_large context_length_exceeded",
    "output": "max_output_tokens",
    "turns": "error_max_turns FatalTurnLimitedError",
    "budget": "error_max_budget_usd",
    "result": "error_max_structured_output_retries",
    "refusal": "refusal content_policy_violation",
    "settings": "FatalInputError FatalConfigError",
}
"""Classes of Claude Code (``assistant.error``, ``result.subtype``, ``result.terminal_reason``), Gemini CLI (``Fatal…``)
and the providers (Google's in upper case)."""

KINDS: dict[str, str] = {kind: cause for cause, kinds in _KINDS.items() for kind in kinds.split()}
"""Classes that are more specific than an HTTP status."""

STATUSES: dict[int, str] = {
    401: "credential", 402: "quota", 403: "credential", 404: "model", 408: "network", 413: "context", 429: "rate-limit",
}  # fmt: skip
"""HTTP statuses. Other 5xx are outages, other 4xx refused requests."""

BROAD_KINDS: dict[str, str] = {
    **dict.fromkeys(("server_error", "api_error"), "outage"),
    "RESOURCE_EXHAUSTED": "rate-limit",
    **dict.fromkeys(("invalid_request", "invalid_request_error", "invalid_value"), "request"),
    **dict.fromkeys(("INVALID_ARGUMENT", "FAILED_PRECONDITION"), "request"),
}
"""Classes that are no more specific than an HTTP status; used without one."""

WEAK_KINDS: dict[str, str] = {
    UNANSWERED: "broken-answer",
    INVALID_STREAM: "broken-answer",
    "error_during_execution": "interrupted",
}
"""Unspecific classes; words come before them."""


def _words(*patterns: str) -> re.Pattern[str]:
    return re.compile("|".join(patterns), re.IGNORECASE)


HARD_QUOTA = _words(
    r"daily (?:quota|limit)", r"per ?day\b", r"\bcredits?\b", r"\bbilling\b", r"insufficient.quota", r"usage limit",
    r"(?:session|weekly|monthly|5-hour|spend(?:ing)?) limit",
)  # fmt: skip
"""Limits that a short wait does not lift; a text with a delay does not count."""

GOOGLES_RATE_LIMIT = re.compile(r"You exceeded your current quota, please check your plan and billing details\S* ?")
"""Google's message for a per-minute limit; the one for a daily limit differs."""

WORDS: dict[str, re.Pattern[str]] = {
    "sandbox": _words(r"\bbwrap: .{0,200}(?:namespace|RTM_NEWADDR|uid map|not permitted|permission denied)"),
    "memory": _words(
        r"heap out of memory", r"cannot allocate memory", r"\bout of memory\b", r"\bOOM(?:\b|.?killed)", "ENOMEM",
        r"memory allocation of \d+ bytes failed", r"\bbad_alloc\b",
        r"OutOfMemory", r"\bMemoryError\b", r"not enough memory",
    ),
    "disk": _words(
        r"no space left on device", r"\bENOSPC\b", r"disk quota exceeded", r"\bdisk (?:is )?full",
        r"not enough (?:disk )?space",
    ),
    "budget": _words(r"maximum budget", r"budget (?:is )?(?:exceeded|exhausted|spent)"),
    "turns": _words(r"max(?:imum)? (?:number of |session )?turns"),
    "quota": _words(
        r"exhausted your (?:daily quota|capacity)", r"insufficient.(?:quota|credits?|balance|funds)",
        r"usage limit", r"quota limit",
        r"hit your limit", r"spend(?:ing)? limit",
        r"(?<!current )quota (?:(?:has been|is|was) )?(?:exceeded|exhausted|used up)(?!.{0,200}per.?minute)",
        r"credit balance", r"credits? (?:are|is|has been) (?:exhausted|depleted)", r"(?:run )?out of credits?",
        r"(?:session|weekly|5-hour|billing hard) limit", r"issue with billing", r"billing is not enabled",
        r"payment required",
    ),
    "rate-limit": _words(
        r"rate.?limit", r"too many requests", r"exceeded your current quota", r"resource has been exhausted",
        r"resource_exhausted", r"throttl(?:ed|ing)", r"quota exceeded .{0,200}per.?minute",
    ),
    "context": _words(
        r"context.(?:window|length|limit)", r"(?:prompt|input) (?:is )?too long", r"input token count .{0,200}exceeds",
        r"request too large", r"maximum (?:context|number of tokens)", r"too many (?:input )?tokens",
        r"(?:input|prompt) exceeds", r"conversation (?:is )?too long",
    ),
    "output": _words(r"max_output_tokens", r"output token (?:maximum|limit)", r"max_tokens"),
    "refusal": _words(r"blocked due to safety", r"content (?:policy|filter)", r"safety settings"),
    "settings": _words(
        r"(?:unexpected|unknown|unrecognized|invalid) (?:argument|option|flag|auth method)", r"requires --\w",
        r"model provider .{0,200} not found",
        r"(?:load|pars|read)(?:e|ing)? (?:the )?config", r"not (?:inside|running in) a trusted directory",
        r"no input provided", r"input must be provided", r"failed to read output schema",
        r"(?<!auth_json )is not valid json", r"(?:toml|yaml) parse error", r"failed to (?:re)?load (?:the )?config",
        r"invalid (?:config|settings)",
        r"config error", r"invalid value .{0,200} for", r"schema.{0,40} not found",
        r"(?:config|settings)\.(?:toml|json|ya?ml)\b.{0,80}(?:unexpected|expected|invalid)",
        r"(?:load|parse|parsing|read|in) \S{0,200}(?:config|settings)\.(?:toml|json|ya?ml)\b(?!.{0,80} or specify)",
        r"cannot be used with root", r"command not found", r"no such file or directory", r"no prompt provided",
    ),
    "model": _words(
        r"issue with the selected model",
        r"\bmodels?\b.{0,120}(?:does not exist|not found|not supported|not available|unknown)",
        r"(?:unknown|no such|invalid|unsupported) model\b(?! provider)", r"not_found_error: model",
    ),
    "credential": _words(
        r"api.key.{0,40}(?:invalid|not valid|incorrect|expired|missing|not set|required)", r"\bunauthori[sz]ed\b",
        r"(?:invalid|incorrect|missing|no|expired).{0,20}api.?key", r"failed to authenticate", r"\bnot logged in\b",
        r"authentication (?:failed|error|required)", r"(?:access|refresh|oauth).{0,20}token", r"sign in again",
        r"Missing environment variable", r"must specify the \w*KEY", r"invalid.{0,10}credentials?", "/login",
        r"\bpermission denied\b(?=.{0,40}(?:api|key|model|project))", r"\bforbidden\b", r"request not allowed",
        r"(?:does|do) not have (?:access|permission)", r"territory not supported", r"token.{0,20}(?:expired|revoked)",
        r"bearer token", r"no credentials", r"default credentials", r"set an auth method", r"invalid_grant",
        r"_(?:AUTH_JSON|TOKEN|KEY)\b.{0,40}(?:invalid|expired|missing|required|empty|not (?:set|valid|found|provided))",
        r"credentials?.{0,20}(?:expired|invalid|missing|not (?:set|found|provided))", r"auth\.json.{0,20}not found",
        r"access denied", r"(?:log|sign) ?in (?:again|first|required)", r"must be logged in", r"run \W?\w+ login\b",
        r"missing.{0,40}\b(?:secret|AUTH_JSON|TOKEN)\b",
    ),
    "outage": _words(
        r"overloaded", r"high demand", r"at capacity", r"temporarily unavailable", r"service unavailable",
        r"internal (?:server )?error", r"bad gateway", r"gateway time-?out", r"server had an error",
        r"no capacity available",
    ),
    "broken-answer": _words(
        r"stream (?:disconnected|closed|ended)", r"incomplete json", r"invalid (?:event|chunk|stream)\b",
        r"json in (?:\w+ )?stream", r"\bstream error\b", r"unexpected (?:eof|end of file)",
        r"malformed (?:response|function call|event|stream)",
        r"(?:parse|decode) (?:\w+ )?(?:sse|event|stream|response)",
        r"empty response", r"unexpected end of (?:json|stream)", r"without a finish reason",
    ),
    "network": _words(
        r"connection (?:failed|refused|reset|dropped|error|aborted|closed|timed out)", r"fetch failed",
        r"error sending request", r"issuer certificate",
        r"unable to connect", r"failed to connect", r"could ?n[o']t connect",
        r"\bE(?:CONN\w+|TIMEDOUT|NOTFOUND|AI_AGAIN|PIPE|HOSTUNREACH|NETUNREACH)\b", r"network (?:error|is unreachable)",
        r"could not resolve host", r"name resolution", r"(?:request|operation|read|connect) timed? ?out",
        r"socket (?:hang up|disconnected)", r"tls handshake", r"timeout of \d+", r"deadline exceeded",
    ),
}  # fmt: skip
"""Words of CLIs and providers, in this order, where no field decides."""

EXITS: dict[str, dict[int, str]] = {
    "": {124: "time", 126: "start", 127: "start", 132: "memory", 134: "memory", 137: "killed",
         130: "interrupted", 143: "interrupted"},
    "codex": {2: "settings"},
    "gemini": {41: "credential", 42: "settings", 44: "settings", 52: "settings", 53: "turns", 55: "settings"},
}  # fmt: skip
"""Exit codes: of any process (128 + signal, ``timeout``, the shell's own), and of some CLIs."""

GEMINI_STATUSES = {status % 256: status for status in (400, 401, 402, 403, 404, 429, 500, 502, 503, 504)}
"""Gemini CLI exits with the HTTP status of its error, modulo 256."""


def status_cause(status: int) -> str:
    """Return the cause of an HTTP status; empty for a status below 400."""
    return STATUSES.get(status) or ("outage" if status >= 500 else "request" if status >= 400 else "")
