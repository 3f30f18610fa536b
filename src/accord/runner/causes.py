"""Why runs fail: the causes, with what the outputs say about each."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

ErrorCategory = Literal["transient", "auth", "resource", "logic", "infrastructure", "unknown"]
ErrorOrigin = Literal["agent", "infrastructure", "auth", "unknown"]
Recovery = Literal["retry", "manual", "ignore"]
Disposition = Literal["success", "patch", "no-change", "blocked", "cancelled", "failure"]
InternalErrorKind = Literal[
    "time-limit", "cancelled", "install-failed", "credential-missing", "credential-invalid", "prompt-invalid",
    "not-started",
    "sandbox-unavailable", "record-missing", "changes-unreadable", "changes-too-large", "steering-files",
    "refs-moved", "merge-unfinished", "push-refused", "push-conflict", "push-unreachable", "disk-full", "stalled",
    "budget", "command-failed",
]  # fmt: skip
"""Kinds of errors that accord itself detects; ``INTERNAL_ERRORS`` has their causes.

``push-refused``: a permission or a protection that a person must change. ``push-conflict``: the branch kept moving, or
the patch no longer applies. ``push-unreachable``: a network or server failure.
"""


@dataclass(frozen=True, slots=True)
class Cause:
    """A cause of failures: the three words of the contract, its meaning, and the fix."""

    category: ErrorCategory
    type: ErrorOrigin
    recovery: Recovery
    means: str
    hint: str
    label: str = ""  # begins the summary in place of the meaning, which the message tells


_Terms: TypeAlias = "tuple[ErrorCategory, ErrorOrigin, Recovery]"
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
    "certificate": Cause(*_REFUSED, "The certificate of the provider or a proxy was refused",
        "Install the authority that signed it on the runner, or name its file in SSL_CERT_FILE."),
    "broken-answer": Cause(*_RETRY, "The provider's answer was invalid or empty", "Run it again."),
    "interrupted": Cause(*_RETRY, "The agent was stopped from outside",
        "Run it again; check why the runner or its job stopped."),
    "install": Cause(*_RETRY, "The agent could not be installed", "Run it again. If it persists, check its version."),
    "not-installed": Cause(*_REFUSED, "The agent's CLI is not installed, or not wholly",
        "Install it again, or name its package in `install` of its registry entry."),
    "credential": Cause(*_AUTH, "The provider refused the agent's credential",
        "Check that the secret is set, valid and allowed to use this model."),
    "credential-missing": Cause("auth", "auth", "manual", "A credential is missing", "Set the secret that is named."),
    "credential-invalid": Cause("auth", "auth", "manual", "The agent's credential is invalid",
        "Set the secret again."),
    "quota": Cause(*_SPENT, "A quota or credit is used up", "Raise the quota, add credit, or wait for its renewal."),
    "budget": Cause(*_SPENT, "The run's budget is spent", "Raise the budget, or split the task."),
    "machine": Cause(*_SPENT, "A limit of the machine was reached",
        "Raise the limit of open files or processes (`ulimit`), or use a larger runner."),
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
    "command": Cause(*_LOGIC, "A command of accord failed", "Correct what its message names."),
    "sandbox": Cause(*_REFUSED, "The agent's own sandbox cannot start on this machine",
        "Allow user namespaces there, or use a sandbox mode without it."),
    "changes": Cause(*_LOGIC, "The agent's changes cannot be read", "Check the work tree."),
    "merge": Cause(*_LOGIC, "The run ended in the middle of a merge or left its markers, so nothing was pushed",
        "Resolve the conflict, or run the agent again."),
    "size": Cause(*_REFUSED, "The run changed more than the limits allow, so nothing was pushed",
        "Split the task, or raise `--max-files` or `--max-bytes`."),
    "push": Cause(*_REFUSED, "The push of the changes was refused",
        "Grant `contents: write`, or push to an unprotected branch."),
    "upload": Cause(*_REFUSED, "The push is too large for the server", "Push less at once, or leave large files out."),
    "steering": Cause(*_REFUSED, "The run changed files that steer agents or CI, so nothing was pushed",
        "Review its changes.", "needs-human"),
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
    "stalled": "stall", "budget": "budget", "command-failed": "command",
}  # fmt: skip
"""Causes of accord's own errors."""
