"""Values of ``status.json`` that people and agents set by hand: what may be set, and how a value is read. Pure.

Source: global agent contract, "status.json - minimal schema" and "Update responsibility". ``policy`` says which
role may set which key.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, get_args

from accord.core.clock import timestamp
from accord.core.documents import short_name
from accord.core.errors import WrongUsage
from accord.core.suggest import did_you_mean
from accord.sessions.folder import status_value
from accord.sessions.models import LOOPS, ProjectType
from accord.sessions.policy import refuse, task_unknown

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from accord.sessions.folder import Session

LISTS = ("assumptions", "known_issues")
KEYS = (*LISTS, "last_ci_result", "project_type", "runtime_flags.NAME", "retry_counts.T-XXX.LOOP")


@dataclass(frozen=True)
class Setting:
    """One KEY=VALUE; ``adds`` is KEY+=VALUE, which adds to a list."""

    key: str
    text: str
    adds: bool = False


def parse_setting(text: str) -> Setting:
    """Read KEY=VALUE or KEY+=VALUE. Raises WrongUsage."""
    key, sign, value = text.partition("=")
    adds = key.endswith("+")
    key = key.removesuffix("+").strip()
    if not sign or not key:
        raise WrongUsage(f"`{short_name(text)}` is not KEY=VALUE.", hint="Write `last_ci_result=green`.")
    parts = key.split(".")
    is_known = key in KEYS[:4] or (parts[0] == "runtime_flags" and len(parts) == 2 and parts[1])
    if not is_known and not (parts[0] == "retry_counts" and len(parts) == 3):
        hint = did_you_mean(key, KEYS[:4]) or f"Set one of {', '.join(KEYS)}."
        raise WrongUsage(f"`{short_name(key)}` cannot be set.", hint=hint)
    if adds and key not in LISTS:
        raise WrongUsage(f"`{short_name(key)}` is not a list.", hint=f"Write `{short_name(key)}={value}`.")
    return Setting(key, value.strip(), adds)


def with_settings(session: Session, settings: Sequence[Setting], *, now: datetime) -> dict[str, Any]:
    """Return ``status.json`` with these values. Several values of one list are its entries."""
    value = status_value(session)
    began: set[str] = set()
    for setting in settings:
        parts = setting.key.split(".")
        if setting.key in LISTS:
            old = value[setting.key] if setting.adds or setting.key in began else []
            began.add(setting.key)
            value[setting.key] = [*old, *(one for one in _entries(setting.text) if one not in old)]
        elif parts[0] == "runtime_flags":
            flags = value["runtime_flags"] = dict(value.get("runtime_flags") or {})
            flags[parts[1]] = _scalar(setting.text)
            if parts[1] == "copilot_instructions_exists":
                flags["copilot_checked_at"] = timestamp(now)
        elif parts[0] == "retry_counts":
            _set_count(session, value, parts[1], parts[2], setting.text)
        else:
            value[setting.key] = _choice(setting)
    return value


def _entries(text: str) -> list[str]:
    """Return the entries of a list: a JSON array of texts, else the text itself; none for an empty text."""
    try:
        value = json.loads(text)
    except ValueError:
        value = None
    if isinstance(value, list) and all(isinstance(one, str) for one in value):
        return value
    return [text] if text else []


def _scalar(text: str) -> Any:
    try:
        value = json.loads(text)
    except ValueError:
        return text
    return value if isinstance(value, (bool, int)) or value is None else text


def _choice(setting: Setting) -> str:
    choices = {"last_ci_result": ("unknown", "green", "red"), "project_type": get_args(ProjectType)}[setting.key]
    if setting.text not in choices:
        hint = did_you_mean(setting.text, choices) or f"Use one of {', '.join(choices)}."
        raise WrongUsage(f"`{setting.key}` cannot be `{short_name(setting.text)}`.", hint=hint)
    return setting.text


def _set_count(session: Session, value: dict[str, Any], task: str, loop: str, text: str) -> None:
    if task != "meta" and session.task(task) is None:
        raise refuse("The task is unknown.", task_unknown(session.tasks, task))
    if loop not in LOOPS:
        hint = did_you_mean(loop, LOOPS) or f"Use one of {', '.join(LOOPS)}."
        raise WrongUsage(f"Unknown fix loop `{short_name(loop)}`.", hint=hint)
    if not text.isdecimal() or len(text) > 4:
        raise WrongUsage(f"A count cannot be `{short_name(text)}`.", hint="Write a number, such as 0.")
    value["retry_counts"].setdefault(task, {})[loop] = int(text)
