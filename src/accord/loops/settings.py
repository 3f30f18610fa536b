"""A pull request's own settings: ``<!-- keepalive-config: {"max_iterations": 8} -->`` in its body.

People write it by hand, so it is read leniently: JSON or YAML, keys in any common spelling. An invalid value keeps its
default, with a warning. No value leaves the bounds of ``Budgets``.
"""

from __future__ import annotations

import re
from typing import Any

from accord.core.documents import short_name
from accord.core.errors import BrokenContract
from accord.core.findings import Finding, warning
from accord.core.frozen import Frozen
from accord.core.suggest import did_you_mean
from accord.files.yaml import read_yaml
from accord.loops.models import Budgets
from accord.text.outline import comments

_SETTINGS = re.compile(r"\A\s*keepalive-config(?![\w-])\s*(?P<text>.*)", re.DOTALL | re.IGNORECASE | re.ASCII)

COUNTS = {
    **{name: name for name in Budgets.model_fields},
    "max_iterations": "iterations",
    "failure_threshold": "failures",
}
"""Accepted names, and the budget that each sets."""

_LOOPS = ("keepalive", "autofix", "bot_comments")
SWITCHES = {**{name: name for name in _LOOPS}, **{f"{name}_enabled": name for name in _LOOPS}}
_WORDS = {"true": True, "yes": True, "on": True, "false": False, "no": False, "off": False}


class LoopSettings(Frozen):
    """The settings of a pull request; a switch is None where it is not set."""

    budgets: Budgets
    keepalive: bool | None = None
    autofix: bool | None = None
    bot_comments: bool | None = None
    findings: tuple[Finding, ...] = ()


def may_have_settings(body: str) -> bool:
    """Return whether a body may have settings, so that its author must be known."""
    return "keepalive-config" in body.lower()


def read_settings(body: str, defaults: Budgets, *, is_trusted: bool = True) -> LoopSettings:
    """Read the first settings comment over the defaults; in an untrusted body, it can only turn loops off."""
    found = map(_SETTINGS.fullmatch, comments(body)) if may_have_settings(body) else ()
    texts = [setting["text"] for setting in found if setting]
    texts.sort(key=lambda text: text[:1] not in (":", "{"))  # others may be prose
    if not texts:
        return LoopSettings(defaults)
    findings = []
    if len(texts) > 1:
        message = f"The body has {len(texts)} settings comments; the first counts."
        findings.append(warning("settings-repeated", message, hint="Remove the others."))
    problem, hint = "The settings are not an object and were ignored.", 'Write them as {"max_iterations": 8}.'
    try:
        value = read_yaml(texts[0].removeprefix(":").encode("utf-8", "replace")).value
    except BrokenContract as broken:
        value, problem = None, "The settings are not valid YAML and were ignored."
        hint = " ".join(finding.text for finding in broken.findings)
    if not isinstance(value, dict):
        return LoopSettings(defaults, findings=(*findings, warning("settings-unreadable", problem, hint=hint)))
    counts, switches = _read_values(value, findings)
    off = {name: False for name, is_on in switches.items() if not is_on}
    if not is_trusted and (counts or switches != off):
        message = "Settings that do not turn a loop off were ignored: the pull request's author has no write access."
        findings.append(warning("settings-untrusted", message, hint="Turn a loop on by a label."))
        counts, switches = {}, off
    return LoopSettings(defaults.model_copy(update=counts), findings=tuple(findings), **switches)


def _read_values(value: dict[Any, Any], findings: list[Finding]) -> tuple[dict[str, int], dict[str, bool]]:
    """Return the budgets and the switches that are valid; ``maxIterations`` and ``max-iterations`` count, too."""
    counts: dict[str, int] = {}
    switches: dict[str, bool] = {}
    for key, given in value.items():
        name = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", str(key)).replace("-", "_").lower()
        setting, text = short_name(str(key)), short_name(str(given))
        if name in COUNTS:
            if isinstance(given, bool) or not re.fullmatch(r"-?[0-9]{1,9}", str(given).strip()):
                findings.append(_invalid(setting, text, "a whole number"))
                continue
            bounds = Budgets.model_fields[COUNTS[name]].metadata
            least, most = (getattr(bound, side) for side in ("ge", "le") for bound in bounds if hasattr(bound, side))
            counts[COUNTS[name]] = number = min(max(int(given), least), most)
            if number != int(given):
                message = f"The setting `{setting}` is {text}; the bound {number} applies."
                findings.append(warning("setting-invalid", message, hint=f"Write {number}."))
        elif name in SWITCHES:
            flag = given if isinstance(given, bool) else _WORDS.get(str(given).lower())
            if flag is None:
                findings.append(_invalid(setting, text, "true or false"))
            else:
                switches[SWITCHES[name]] = flag
        else:
            message = f"The setting `{setting}` is unknown and was ignored."
            hint = did_you_mean(name, [*COUNTS, *SWITCHES]) or "Remove it."
            findings.append(warning("setting-unknown", message, hint=hint))
    return counts, switches


def _invalid(setting: str, text: str, wanted: str) -> Finding:
    message = f"The setting `{setting}` is `{text}`, not {wanted}; the default applies."
    return warning("setting-invalid", message, hint=f"Write {wanted}.")
