"""A pull request's own settings: ``<!-- keepalive-config: {"max_iterations": 8} -->`` in its body.

People write it by hand, so it is read leniently: JSON or YAML, keys in any common spelling. An invalid value keeps its
default, with a warning. No value leaves the bounds of ``Budgets``.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from typing import Any

from accord.core.documents import short_name
from accord.core.errors import BrokenContract
from accord.core.findings import Finding, warning
from accord.core.suggest import did_you_mean
from accord.files.yaml import read_yaml
from accord.loops.models import Budgets
from accord.text.outline import comments

_SETTINGS = re.compile(r"\A\s*keepalive-config\s*:(?P<text>.*)", re.DOTALL)

COUNTS = {
    **{name: name for name in Budgets.model_fields},
    "max_iterations": "iterations",
    "failure_threshold": "failures",
}
"""Accepted names, and the budget that each sets."""

_LOOPS = ("keepalive", "autofix", "bot_comments")
SWITCHES = {**{name: name for name in _LOOPS}, **{f"{name}_enabled": name for name in _LOOPS}}
_WORDS = {"true": True, "yes": True, "on": True, "false": False, "no": False, "off": False}


@dataclass(frozen=True)
class LoopSettings:
    """The settings of a pull request; a switch is None where it is not set."""

    budgets: Budgets
    keepalive: bool | None = None
    autofix: bool | None = None
    bot_comments: bool | None = None
    findings: tuple[Finding, ...] = field(default=())


NAME = "keepalive-config"


def read_settings(body: str, defaults: Budgets, *, is_trusted: bool = True) -> LoopSettings:
    """Read the first settings comment over the defaults; in an untrusted body, it can only turn loops off."""
    found = map(_SETTINGS.fullmatch, comments(body)) if NAME in body else ()
    texts = [setting["text"] for setting in found if setting]
    if not texts:
        return LoopSettings(defaults)
    findings = []
    if len(texts) > 1:
        message = f"The body has {len(texts)} settings comments; the first counts."
        findings.append(warning("settings-repeated", message, hint="Remove the others."))
    problem = 'The settings are not an object and were ignored. Write them as {"max_iterations": 8}.'
    try:
        value = read_yaml(texts[0].encode("utf-8", "replace")).value
    except BrokenContract as broken:
        value = None
        problem = "The settings are not valid YAML and were ignored. "
        problem += " ".join(finding.text for finding in broken.findings)
    if not isinstance(value, dict):
        return LoopSettings(defaults, findings=(*findings, warning("settings-unreadable", problem)))
    settings = _settings(value, defaults, findings)
    return settings if is_trusted else _switches_off(settings, defaults)


def _switches_off(settings: LoopSettings, defaults: Budgets) -> LoopSettings:
    """Keep only what turns loops off."""
    off = {name: False for name in set(SWITCHES.values()) if getattr(settings, name) is False}
    kept = LoopSettings(defaults, findings=settings.findings, **off)
    if settings == kept:
        return settings
    message = "Settings that do not turn a loop off were ignored: the author of the pull request has no write access."
    hint = "Turn a loop on by a label."
    return replace(kept, findings=(*settings.findings, warning("settings-untrusted", message, hint=hint)))


def _settings(value: dict[Any, Any], defaults: Budgets, findings: list[Finding]) -> LoopSettings:
    counts: dict[str, int] = {}
    switches: dict[str, bool] = {}
    known = [*COUNTS, *SWITCHES]
    for key, given in value.items():
        name = _snake_case(str(key))
        if name in COUNTS:
            number = _number(COUNTS[name], given)
            if number is None:
                findings.append(_invalid(key, given, "a whole number"))
            else:
                counts[COUNTS[name]] = number[0]
                if number[0] != number[1]:
                    setting, text = short_name(str(key)), short_name(str(given))
                    message = f"The setting `{setting}` is {text}; the bound {number[0]} applies."
                    findings.append(warning("setting-invalid", message))
        elif name in SWITCHES:
            flag = given if isinstance(given, bool) else _WORDS.get(str(given).lower())
            if flag is None:
                findings.append(_invalid(key, given, "true or false"))
            else:
                switches[SWITCHES[name]] = flag
        else:
            message = f"The setting `{short_name(str(key))}` is unknown and was ignored. {did_you_mean(name, known)}"
            findings.append(warning("setting-unknown", message.rstrip()))
    return LoopSettings(defaults.model_copy(update=counts), findings=tuple(findings), **switches)


def _snake_case(key: str) -> str:
    """Spell ``maxIterations`` and ``max-iterations`` as ``max_iterations``."""
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "_", key).replace("-", "_").lower()


def _number(name: str, given: Any) -> tuple[int, int] | None:
    """Return the number inside its bounds, and as given; None where it is not a whole number."""
    if isinstance(given, bool) or not re.fullmatch(r"-?[0-9]{1,9}", str(given).strip()):
        return None
    number = int(given)
    bounds = Budgets.model_fields[name].metadata
    least = next(bound.ge for bound in bounds if hasattr(bound, "ge"))
    most = next(bound.le for bound in bounds if hasattr(bound, "le"))
    return max(least, min(number, most)), number


def _invalid(key: Any, given: Any, wanted: str) -> Finding:
    message = f"The setting `{short_name(str(key))}` is `{short_name(str(given))}`, not {wanted}; the default applies."
    return warning("setting-invalid", message)
