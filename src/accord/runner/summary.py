"""A run as a page for people: how it ended, what it changed and completed, what went wrong. Pure."""

from __future__ import annotations

import base64
import json
from typing import TYPE_CHECKING, Any

from accord.gha.commands import COMMAND, inert
from accord.gha.files import utf16_size
from accord.text.hidden import GUARD
from accord.text.markdown import cell, table
from accord.text.sanitise import sanitise, sanitise_line
from accord.text.terminal import as_seen

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from accord.runner.models import RunOutputs
    from accord.text.redaction import Redactor


_HELP = {
    "retry": "Running it again may help.",
    "manual": "A person must look at it first.",
    "ignore": "Nothing needs to be done.",
}
_TASKS_SHOWN = 50


def summary_page(outputs: RunOutputs) -> str:
    """Write the step summary of a run from its outputs alone, which hold no secret and no command."""
    parts = [f"### accord: {_headline(outputs)}"]
    if outputs.error_category:
        retry = f" Wait {outputs.retry_after_seconds} seconds first." if outputs.retry_after_seconds else ""
        parts.append(f"{cell(outputs.error_summary)}\n\n{_HELP[outputs.error_recovery]}{retry}")
    parts.append(table(["Fact", "Value"], [[name, cell(value)] for name, value in _facts(outputs) if value]))
    tasks = _list(outputs.llm_completed_tasks)
    if tasks:
        parts.append(f"**Completed tasks**\n\n{_tasks_list(tasks)}")
    warnings = _list(outputs.run_warnings)
    if warnings:
        parts.append("\n".join(f"- ⚠️ {cell(text)}" for text in warnings))
    attempts = [entry for entry in _list(outputs.llm_attempts) if entry["outcome"] != "answered"]
    if attempts:
        parts.append(_attempts_table(attempts))
    if outputs.final_message_summary:
        quoted = "\n".join(f"> {line}" for line in outputs.final_message_summary.splitlines())
        parts.append(f"**The agent's message**\n\n{quoted}")
    return "\n\n".join(parts)


def error_table(outputs: Mapping[str, str]) -> str:
    """Write the error outputs as a table; nothing without an error."""
    if not outputs["error-category"]:
        return ""
    values = [outputs[name] for name in ("error-type", "error-recovery", "retry-after-seconds", "error-summary")]
    return table(["Origin", "What helps", "Seconds to wait", "Summary"], [[cell(value) for value in values]])


def analysis_page(outputs: Mapping[str, str]) -> str:
    """Write what the outputs ``llm-*`` tell: who judged, what is completed, and who was asked."""
    by = cell(f"{outputs['llm-provider']} {outputs['llm-model']}".strip())
    told = f"Says {by}, with confidence {outputs['llm-confidence']}." if by else "Nobody answered."
    shown = _tasks_list(_list(outputs["llm-completed-tasks"])) or "No task was found to be completed."
    return "\n\n".join(["### accord analyze", told, shown, _attempts_table(_list(outputs["llm-attempts"]))])


def _tasks_list(tasks: Sequence[str]) -> str:
    shown = [f"- ✅ {cell(task)}" for task in tasks[:_TASKS_SHOWN]]
    more = [f"- and {len(tasks) - _TASKS_SHOWN} more"] if len(tasks) > _TASKS_SHOWN else []
    return "\n".join([*shown, *more])


def _attempts_table(attempts: Sequence[Mapping[str, Any]]) -> str:
    rows = [
        [cell(attempt["provider"]), attempt["outcome"], str(attempt["ms"]), cell(attempt["reason"])]
        for attempt in attempts
    ]
    return table(["Provider", "Outcome", "ms", "Reason"], rows)


def _headline(outputs: RunOutputs) -> str:
    agent = cell(outputs.agent_name) or "the agent"
    if outputs.error_category:
        return f"❌ {agent} failed ({outputs.error_category})"
    if outputs.changes_made == "true":
        return f"✅ {agent} changed {_files(outputs.files_changed)}"
    return f"✅ {agent} changed nothing"


def _facts(outputs: RunOutputs) -> list[tuple[str, str]]:
    tokens = f"{outputs.tokens_input or '?'} in, {outputs.tokens_output or '?'} out"
    has_tokens = outputs.tokens_input or outputs.tokens_output
    analysis = " ".join(filter(None, [outputs.llm_provider, outputs.llm_model]))
    return [
        ("Exit code", outputs.exit_code),
        ("Model", outputs.agent_model),
        ("Duration", f"{outputs.duration_seconds} s" if outputs.duration_seconds else ""),
        ("Tokens", tokens if has_tokens else ""),
        ("Cost", f"{outputs.cost_usd} US dollars" if outputs.cost_usd else ""),
        ("Commit", outputs.commit_sha),
        ("Files changed", outputs.files_changed if outputs.changes_made == "true" else ""),
        ("Error", " / ".join(filter(None, [outputs.error_category, outputs.error_type, outputs.error_recovery]))),
        ("Tasks judged by", f"{analysis}, confidence {outputs.llm_confidence}" if analysis else ""),
    ]


def _files(count: str) -> str:
    return "1 file" if count == "1" else f"{count} files"


def _list(text: str) -> list[Any]:
    """Read an output that is a JSON array; empty is none."""
    return list(json.loads(text)) if text else []


SUMMARY_CHARS = 500
LINE_CHARS = 500
CUT = "\n\n[accord cut the message here, as GitHub takes no longer output; the run's artifact has all of it]\n"

_QUOTES = str.maketrans(
    {
        **dict.fromkeys("\"'`\u2018\u201a\u201b\u201c\u201d\u201e", "\u2019"),
        "$": "\uff04",
        "\\": "/",
        "<": "\u2039",
        ">": "\u203a",
    }
)


def sendable(text: str) -> str:
    """Replace what UTF-8 cannot hold (half surrogates) and what ends a text for many programs (NUL)."""
    return text.replace("\0", "\ufffd").encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def encoded(message: str, budget: int) -> tuple[str, bool]:
    """Write a redacted message as base64 of at most ``budget`` bytes as GitHub counts; tell whether it was cut."""
    whole = base64.b64encode(message.encode()).decode()
    if utf16_size(whole) <= budget:
        return whole, False
    room = max(budget // 8 * 3 - len(CUT.encode()), 0)
    kept = message.encode()[:room].decode("utf-8", "ignore")
    return base64.b64encode(f"{kept}{CUT}".encode()).decode(), True


def summary_of(message: str, redact: Redactor) -> str:
    """Write the first 500 characters of a redacted message so that it can stand in anybody's comment.

    Making it safe can make it longer; then a little less of the message is in it, and the rest is whole.
    """
    message = redact(as_seen(message))
    length = SUMMARY_CHARS
    while True:
        text = _obeyed_by_none(sanitise(message[:length], secrets=redact).text.strip())
        if len(text) <= SUMMARY_CHARS:
            return text
        length = max(length - max(len(text) - SUMMARY_CHARS, 1), 0)


def safe_line(text: str, redact: Redactor, limit: int = LINE_CHARS) -> str:
    """Write any text as one line that nobody obeys: no mention, HTML, quote or command, nothing that a shell expands.

    The contract's own example puts ``error-summary`` between double quotes of a script.
    """
    line = sanitise_line(sendable(redact(as_seen(text)))[: 4 * limit], secrets=redact).text.translate(_QUOTES)
    line = line.replace("![", "! [")
    line = line if len(line) <= limit else line[: limit - 1].rstrip() + "\u2026"
    return redact(inert(line))


def _obeyed_by_none(text: str) -> str:
    return COMMAND.sub(lambda hit: hit.group() + GUARD, text)
