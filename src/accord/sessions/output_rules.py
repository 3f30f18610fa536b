"""Rules of an agent's output, beyond its shape. All pure.

Source: global agent contract, "Universal Output JSON", "Status enum - usage guide" and "Gates (hard blockers)".
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from accord.core.findings import Finding, pointer, warning
from accord.sessions.models import ROLES

if TYPE_CHECKING:
    from collections.abc import Iterator

    from accord.sessions.models import AgentOutput, Entry, OpenModel

STATUS_OF_ONE_ROLE = {"NEEDS_INFO": "Researcher", "NEEDS_DECISION": "Security"}

_LOW = frozenset({"low", "info", "informational", "note", "none"})
_GRAVE = frozenset({"high", "critical"})
_SEVERITY_KEYS = ("severity", "level", "risk")
_WORD = "(low|info|medium|moderate|high|critical)"
_SEVERITIES = (
    re.compile(rf"\A[\W_]*{_WORD}\b(?:[ -](?:severity|risk))?[\])*`_]*\s*(?:[:\]]|[-\u2013\u2014]\s)"),
    re.compile(rf"\A[\W_]*{_WORD}[ -](?:severity|risk)\b"),
    re.compile(rf"\b(?:severity|risk)\b(?: is)?[\s:=*_`\"']{{1,6}}{_WORD}\b"),
    re.compile(rf"[(\[]{_WORD}(?:[ -](?:severity|risk))?[)\]]"),
)
_SENTENCE_END = re.compile(r"[.!?](?=\s|$)")


def named_role(document: OpenModel) -> str:
    """Return the role that an open document names under an extra key, if it is a canonical name."""
    extra = document.model_extra or {}
    dispatch = extra.get("dispatch")
    named: list[Any] = [extra.get("role"), dispatch.get("agent") if isinstance(dispatch, dict) else None]
    return next((name for name in named if isinstance(name, str) and name in ROLES), "")


def severity_of(entry: Entry) -> str:
    """Return the severity that a finding or concern names, in lower case: by a key, or as `high: …`, `[high] …`."""
    if isinstance(entry, dict):
        values = {key.lower(): value for key, value in entry.items()}
        named = [values[key] for key in _SEVERITY_KEYS if isinstance(values.get(key), str)]
        return named[0].strip().lower() if named else ""
    found = (pattern.search(entry.lower()) for pattern in _SEVERITIES)
    return next((match[1] for match in found if match), "")


def is_low(concern: Entry) -> bool:
    """Return whether a security concern is marked as one that asks for nothing."""
    return severity_of(concern) in _LOW


def _grave_findings(output: AgentOutput, role: str) -> Iterator[Finding]:
    """Check that a high or critical security finding blocks ("Gates (hard blockers)")."""
    places = [("gates", "security_concerns", output.gates.security_concerns)]
    if role == "Security":
        places += [("artifacts", "findings", output.artifacts.findings)]
    for part, key, entries in places:
        for i, entry in enumerate(entries if output.status != "BLOCKED" else ()):
            if (severity := severity_of(entry)) in _GRAVE:
                message = f"The security finding is {severity}, but the status is {output.status}."
                yield Finding("security-severity", message, pointer(part, key, i), hint="Return BLOCKED.")


def output_findings(output: AgentOutput, role: str = "") -> list[Finding]:
    """Check an agent's output ("Universal Output JSON"); ``role`` is the agent that wrote it, where known."""
    role = role or output.agent or named_role(output)
    found = []
    only = STATUS_OF_ONE_ROLE.get(output.status)
    if only and not role:
        message = f"Only {only} returns {output.status}, and the output names no agent."
        found.append(warning("status-role-unknown", message, "/status", hint="Check it with `--role`."))
    elif only and role != only:
        own = "".join(f"{status}, " for status, other in STATUS_OF_ONE_ROLE.items() if other == role)
        message = f"Only {only} returns {output.status}, not {role}."
        found.append(Finding("status-of-other-role", message, "/status", hint=f"Return OK, {own}BLOCKED or FAIL."))
    found += _grave_findings(output, role)
    if len(_SENTENCE_END.findall(output.summary)) > 3:
        found.append(
            warning("summary-long", "The summary has more than three sentences.", "/summary", hint="Shorten it.")
        )
    return found
