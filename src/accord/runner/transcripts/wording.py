"""Status, class and delay read from the words of errors, where CLIs and providers have no field for them.

Only error texts of a CLI itself are read here, never the agent's words or the output of a command.
"""

from __future__ import annotations

import ast
import contextlib
import re
from typing import Any

from accord.runner.transcripts.account import AgentError
from accord.runner.transcripts.lines import cut, evidence_line, json_prefix, object_of, objects_of, status_of, text_of

MESSAGE_CHARS = 1_000
_DEEPEST_ANSWER = 2
_LONGEST_DELAY = 30 * 24 * 3600.0

_REASONS = (
    "Bad Request|Unauthorized|Payment Required|Forbidden|Not Found|Request Timeout|Conflict|Payload Too Large|"
    "Unprocessable Entity|Too Many Requests|Internal Server Error|Bad Gateway|Service Unavailable|Gateway Timeout"
)
_STATUS = re.compile(
    rf"\b(?:status(?: code)?|error code|http(?:/[\d.]+)?|C?API ?Error|refresh token)[:= (]+([1-5]\d\d)\b"
    rf"|\b([1-5]\d\d) +(?:{_REASONS}|status code)\b|\(([45]\d\d)\)"
    r"|\b(?:(?:http)?status(?:_?code)?|code)['\"]?: ?([45]\d\d)\b",
    re.IGNORECASE,
)

_UNITS = {"ms": 0.001, "mil": 0.001, "": 1.0, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_PART = r"\d+(?:\.\d+)? ?(?:ms|milliseconds?|s|secs?|seconds?|m|mins?|minutes?|h|hrs?|hours?|d|days?)(?![a-z])"
_DURATION = rf"[ \"']*((?:{_PART}[ ,]*(?:and )?)+|\d+(?:\.\d+)?(?![\w.:/-]))"
_DELAY = re.compile(
    r"\b(?:(?:try|retry)(?: again)? (?:in|after)|retry[-_ ]?(?:after|delay)(?:[-_]?seconds|[-_]s)?[\"']?[:=]|wait)"
    rf"{_DURATION}",
    re.IGNORECASE,
)
_DELAY_MS = re.compile(r"\bretry[-_]?(?:after|delay)[-_]?ms[\"']?[:=] ?(\d+(?:\.\d+)?)", re.IGNORECASE)
_BACKOFF = re.compile(rf"\b(?:re)?trying(?: again)? (?:in|after){_DURATION}", re.IGNORECASE)
_DELAY_PART = re.compile(r"(?<!\d)(\d+(?:\.\d+)?) ?(ms|mil|[smhd]|$)", re.IGNORECASE)


def status_in(text: str) -> int | None:
    """Return the HTTP status in an error's text."""
    found = _STATUS.search(text)
    return int(next(filter(None, found.groups()))) if found else None


def delay_in(text: str) -> float | None:
    """Return the seconds that an error's text asks to wait."""
    if found := _DELAY_MS.search(text):
        return bounded_delay(float(found[1]) / 1000)
    found = _DELAY.search(text)
    return _seconds(found[1]) if found else None


def backoff_in(text: str) -> float | None:
    """Return the seconds of the last wait of its own that a CLI announces in a text."""
    found = _BACKOFF.findall(text)
    return _seconds(found[-1]) if found else None


def _seconds(duration: str) -> float | None:
    parts = _DELAY_PART.findall(duration)
    return bounded_delay(sum(float(count) * _UNITS[unit.lower()] for count, unit in parts))


def bounded_delay(seconds: float | None) -> float | None:
    """Return a plausible delay, rounded to milliseconds; None for any other."""
    return round(seconds, 3) if seconds is not None and 0 <= seconds <= _LONGEST_DELAY else None


def error_from(message: str, line: bytes | str, *, status: int | None = None, kind: str = "") -> AgentError:
    """Return the error in a CLI's text and in the provider's JSON that it may contain."""
    answer = _provider_answer(message)
    limits = (text_of(each, "quotaId") for of in objects_of(answer, "details") for each in objects_of(of, "violations"))
    inner = " ".join(filter(None, (text_of(answer, "message") or message, *limits)))
    named = (text_of(detail, "retryDelay") for detail in objects_of(answer, "details"))
    named_delay = next(filter(None, named), "") or text_of(object_of(answer, "metadata"), "retryDelay")
    delay = delay_in(f"retry after {named_delay}")
    reasons = (text_of(detail, "reason") for detail in objects_of(answer, "details"))  # Google's, the most specific
    classes = (*reasons, *(text_of(answer, key) for key in ("code", "type", "status")))
    field = status or status_of(answer, "code")
    return AgentError(
        cut(inner, MESSAGE_CHARS),
        status=field or status_in(message[:MESSAGE_CHARS]),
        kind=kind,
        classes=tuple(cut(word, 60) for word in classes if word),
        retry_after_seconds=delay if delay is not None else delay_in(message[: 4 * MESSAGE_CHARS]),
        line=evidence_line(line),
        backoff_seconds=backoff_in(message[: 4 * MESSAGE_CHARS]),
        is_status_worded=field is None,
    )


def _provider_answer(message: str, depth: int = 0) -> dict[str, Any]:
    """Return the innermost error object; providers answer ``{"error": {"message": …}}``, some as Python."""
    start = message.find("{")
    answer = json_prefix(message[start:]) if start >= 0 else None
    if answer is None and message[start : start + 2] == "{'":
        with contextlib.suppress(ValueError, SyntaxError, MemoryError, RecursionError):
            answer = ast.literal_eval(message[start : message.rfind("}", 0, 4 * MESSAGE_CHARS) + 1])
    if not isinstance(answer, dict):
        return {}
    inner = answer.get("error")
    error = inner if isinstance(inner, dict) else answer if "message" in answer else {}
    return (_provider_answer(text_of(error, "message"), depth + 1) if depth < _DEEPEST_ANSWER else {}) or error
