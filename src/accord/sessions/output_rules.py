"""Rules of an agent's output: who may return and change what, and the severity of security findings. All pure.

Source: global agent contract, "Universal Output JSON", "Role boundaries" and "Gates (hard blockers)".
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import PurePosixPath
from posixpath import normpath

from accord.core.documents import short_name
from accord.core.findings import Finding, count_of, pointer, warning
from accord.sessions.models import AgentOutput, ReviewEntry
from accord.sessions.policy import CODE_WRITERS, WORK, is_forbidden_code
from accord.sessions.rules import named_role

STATUS_OF_ONE_ROLE = {"NEEDS_INFO": "Researcher", "NEEDS_DECISION": "Security"}

_BY_GRADE = ("none", "note", "informational", "info", "low", "medium", "moderate", "high", "critical")
_LOW = frozenset({"none", "note", "informational", "info", "low"})
_COUNTED = ("low", "medium", "moderate", "high", "critical")
_GRAVE = frozenset({"high", "critical"})
_SEVERITY_KEYS = ("severity", "level", "risk")
_WORD = rf"({'|'.join(name for name in _BY_GRADE if name != 'note')})\b"
_RISK = "(?:[ -](?:severity|risk))"
_SECURITY = re.compile(r"\bsecurity\b", re.IGNORECASE)
_MORE = r"(?:[*`_]*[ -]security\b[^:.|\n]{0,60}|\s*\([^)\n]{0,60}\))?"
"""More words of a label: what is about security, and a parenthesis."""
_LABELS = (
    re.compile(
        rf"\A[\W\d_]*(?:security\b[\W_]*)?{_WORD}(?:{_RISK}\b|{_MORE}[\])*`_]*\s*(?:[:\]|]|[-\u2013\u2014]\s|\Z))"
    ),
    re.compile(rf"\A[\W\d_]*security[\s*_`]*[:\])][\s*_`]*{_WORD}"),
    re.compile(rf"\b(?:severity|risk)\b(?: is)?[\s:=*_`\"']{{1,6}}{_WORD}"),
    re.compile(rf"[(\[]{_WORD}{_RISK}?[)\]]"),
)
"""A severity that begins a text, or that ``severity`` or brackets mark as one."""
_NONE = "none|nothing|zero|nil|no|n/a"
_KINDS = rf"(?:\s+(?:{'|'.join(_BY_GRADE)}|security|or|and))*"
_FINDINGS = r"(?:\s+(?:findings?|concerns?|issues?|risks?|vulnerabilit(?:y|ies)|found|detected|identified))+"
_NOTHING = rf"(?:(?:{_NONE}|not){_KINDS}{_FINDINGS}|{_NONE})"
"""A negation alone, or one of findings: one of anything else, such as ``no authentication``, is a finding."""
_IS_NOTHING = re.compile(rf"(?:0(?: \w+)?|false|\[\]|{{}}|{_NOTHING}|)\.?", re.IGNORECASE)
_COUNTS = (
    re.compile(
        rf"\b{_WORD}{_RISK}?{_MORE}(?:[\])][*`_]*(?:\s*[:=\u2013\u2014-])?|[*`_]*\s*[:=\u2013\u2014-])"
        rf"\s*(\d+(?:\s+\w+)?|{_NOTHING})\s*(?=[,;.|()\n]|\Z)"
    ),
    re.compile(rf"\b{_WORD}{_RISK}?[*`_]*[ \t]*\|[ \t]*[*`_]*(\d+(?:\s+\w+)?|{_NOTHING})(?=[*` \t|-]*(?:\n|\Z))"),
    re.compile(
        r"(?:\A|[,;.|():\]\n]|\s[-\u2013\u2014]\s|(?<=\band)\b)[^\w,;.|():\]\n]{0,9}_{0,2}"
        rf"{_WORD}{_RISK}?[*`_]*\s*[(\[](\d+(?:{_FINDINGS})?|{_NOTHING})[)\]](?=[ \t*`_]*(?:[,;.|\n]|\Z))"
    ),
)
"""A severity with the number of its findings: ``high: 0``, ``critical: none found``, ``high (0)``, or a row of both."""
_GRAVE_LABEL = re.compile(
    rf"[\W\d_]*(high|critical){_RISK}?(?![\w-])(?:[^:.!?;\n]|[:.](?=\w)){{0,120}}?"
    r"(?::(?=[\s*_`]|\Z)|\s[-\u2013\u2014]\s)[\s*_`]*([^,;.|()\n]*)"
)
"""A label that begins with a grave severity, such as ``Critical auth bypass:``, with the beginning of its value."""
_SENTENCE_END = re.compile(r"(?<!\b[A-Za-z]\.[A-Za-z])[.!?](?=\s|$)")
"""Not the end of an abbreviation such as ``e.g.``."""


def output_findings(output: AgentOutput, role: str = "") -> list[Finding]:
    """Check an agent's output ("Universal Output JSON"); ``role`` is the agent that wrote it, where known."""
    role, found = role or output.agent or named_role(output), list[Finding]()
    only = STATUS_OF_ONE_ROLE.get(output.status)
    if only and not role:
        message = f"Only {only} returns {output.status}, and the output names no agent."
        found.append(warning("status-role-unknown", message, "/status", hint="Check it with `--role`."))
    elif only and role != only:
        own = "".join(f"{status}, " for status, other in STATUS_OF_ONE_ROLE.items() if other == role)
        message = f"Only {only} returns {output.status}, not {role}."
        found.append(Finding("status-of-other-role", message, "/status", hint=f"Return OK, {own}BLOCKED or FAIL."))
    if output.status != "BLOCKED":
        found += _severity_findings(output, role)
    found += code_findings(output, role) if role else []
    if len(_SENTENCE_END.findall(output.summary)) > 3:
        message = "The summary has more than three sentences."
        found.append(warning("summary-long", message, "/summary", hint="Shorten it."))
    return found


def code_findings(output: AgentOutput, role: str, state: str = "") -> Iterator[Finding]:
    """Find files outside of sessions that a role reports as written, and may not ("Role boundaries")."""
    for key in ("files_changed", "tests_added_or_updated"):
        for i, path in enumerate(map(normpath, getattr(output.artifacts, key))):
            if WORK not in PurePosixPath(path).parts and is_forbidden_code(role, path, state):
                message = f"{role} reports a change of `{short_name(path)}`. {CODE_WRITERS}"
                hint = "Undo that change, leave it to the Coder, and take the output without the file."
                yield Finding("role-forbidden", message, pointer("artifacts", key, i), hint=hint)


def _severity_findings(output: AgentOutput, role: str) -> Iterator[Finding]:
    unread = []
    for part, key in (("gates", "security_concerns"), ("artifacts", "findings"), ("artifacts", "review_comments")):
        is_security = part == "gates" or role == "Security"
        for i, entry in enumerate(getattr(getattr(output, part), key)):
            severity, place = severity_of(entry, is_security=is_security), pointer(part, key, i)
            fields = entry.items() if isinstance(entry, dict) else [("", entry)]
            says_security = any(_SECURITY.search(f"{key} {text}") for key, text in fields if not _is_nothing(text))
            if severity in _GRAVE and (is_security or says_security):
                message = f"The security finding is {severity}, but the status is {output.status}."
                hint = "Return BLOCKED, or write `none` for a severity without findings."
                yield Finding("security-severity", message, place, hint=hint)
            elif is_security and not severity and key != "review_comments":
                unread.append(place)
    if unread:
        message = f"No severity in {count_of(len(unread), 'security finding')}. Without one, a finding counts as open."
        hint = (
            "Begin each with its severity: `critical: …`, `high: …`, `medium: …`, `low: …` or `info: …`. "
            "Where nothing was found, write `none`, `no findings` or `none found`, or `0` for a severity."
        )
        yield warning("severity-missing", message, unread[0], hint=hint)


def severity_of(entry: ReviewEntry, *, is_security: bool = True) -> str:
    """Return the gravest severity that a finding or concern names, by a field, or in a text by a label.

    A label of other words, such as ``High CPU usage:``, counts only where the whole text is about security.
    It is `none` where there is nothing, or none of each severity that it names; empty where no severity can be read.
    """
    if isinstance(entry, dict):
        values = {key.strip().lower(): value for key, value in entry.items()}
        fields = (re.findall("[a-z]+", str(values.get(key) or "").lower()) for key in _SEVERITY_KEYS)
        named = next(filter(None, ([word for word in words if word in _BY_GRADE] for words in fields)), [])
        parts = [(word, values.get("count", 1)) for word in named] or [
            (key, values[key]) for key in _COUNTED if key in values
        ]
    elif _is_nothing(entry):
        return "none"
    else:
        text, parts = entry.lower(), []
        for count in _COUNTS:
            parts += count.findall(text)
            text = count.sub("", text)
        parts += [(name, 1) for label in _LABELS for name in label.findall(text)]
        start, value = 0, "none"
        while is_security and _is_nothing(value) and (match := _GRAVE_LABEL.match(text, start)):
            (name, value), start = match.groups(), match.end()
            parts.append((name, value))
    names = [name for name, value in parts if not _is_nothing(value)]
    return max(names, key=_BY_GRADE.index, default="none" if parts else "")


def _is_nothing(value: object) -> bool:
    return bool(_IS_NOTHING.fullmatch(" ".join(str(value).split())))


def is_open_concern(concern: ReviewEntry, role: str) -> bool:
    """Return whether a concern asks for a review, as all but those that say nothing, or that Security marks as low."""
    return severity_of(concern) not in (_LOW if role == "Security" else ("none",))
