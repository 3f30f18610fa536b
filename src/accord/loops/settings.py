"""A pull request's own settings: ``<!-- keepalive-config: {"max_iterations": 8} -->`` in its body.

People write it by hand, so it is read leniently: JSON or YAML, keys in any of the spellings in use, and whatever is odd
is left at its default with a warning instead of stopping the loop. No value leaves the bounds of ``Budgets``.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from accord.core.documents import shown
from accord.core.errors import BrokenContract
from accord.core.findings import Finding, warning
from accord.files.yaml import read_yaml
from accord.loops.models import Budgets
from accord.text.markdown import blocks, spans

if TYPE_CHECKING:
    from collections.abc import Iterator

_SETTINGS = re.compile(r"\s*keepalive-config\s*:(?P<text>.*)", re.DOTALL)

COUNTS = {
    "iterations": "iterations",
    "max_iterations": "iterations",
    "failures": "failures",
    "failure_threshold": "failures",
    "transient": "transient",
    "wait_seconds": "wait_seconds",
    "longest_wait_seconds": "longest_wait_seconds",
}
"""Names in use, and the budget that each means."""

SWITCHES = {
    "keepalive": "keepalive",
    "keepalive_enabled": "keepalive",
    "autofix": "autofix",
    "autofix_enabled": "autofix",
    "bot_comments": "bot_comments",
    "bot_comments_enabled": "bot_comments",
}
_WORDS = {"true": True, "yes": True, "on": True, "false": False, "no": False, "off": False}


@dataclass(frozen=True)
class Settings:
    """What holds for a pull request; a switch is None where nothing is said of it."""

    budgets: Budgets
    keepalive: bool | None = None
    autofix: bool | None = None
    bot_comments: bool | None = None
    findings: tuple[Finding, ...] = field(default=())


NAME = "keepalive-config"


def read_settings(body: str, defaults: Budgets, *, is_trusted: bool = True) -> Settings:
    """Read the settings of a body over the defaults; the first that are there count.

    Those of a body that is not ``is_trusted`` turn loops off, and do nothing else.
    """
    texts = list(_texts(body)) if NAME in body else []
    if not texts:
        return Settings(defaults)
    findings = []
    if len(texts) > 1:
        findings.append(
            warning("settings-repeated", f"There are {len(texts)} settings; the first count. Remove the others.")
        )
    try:
        value = read_yaml(texts[0].encode("utf-8", "replace")).value
    except BrokenContract as broken:
        said = " ".join(finding.message for finding in broken.findings)
        findings.append(warning("settings-unreadable", f"The settings cannot be read and are left out. {said}"))
        return Settings(defaults, findings=tuple(findings))
    if not isinstance(value, dict):
        findings.append(
            warning("settings-unreadable", 'The settings are no object and are left out. Write {"max_iterations": 8}.')
        )
        return Settings(defaults, findings=tuple(findings))
    settings = _settings(value, defaults, findings)
    return settings if is_trusted else _turned_off(settings, defaults)


def _turned_off(settings: Settings, defaults: Budgets) -> Settings:
    """Leave of the settings what turns loops off."""
    kept = Settings(defaults, _off(settings.keepalive), _off(settings.autofix), _off(settings.bot_comments))
    if replace(settings, findings=()) == kept:
        return settings
    said = (
        "The settings are left out but for what turns a loop off: the author of the pull request may not write here. "
        "Ask for a loop by a label."
    )
    return replace(kept, findings=(*settings.findings, warning("settings-untrusted", said)))


def _off(switch: bool | None) -> bool | None:
    return False if switch is False else None


def _texts(body: str) -> Iterator[str]:
    """Yield what stands in settings' comments; comments in code are text about settings."""
    for token in blocks(body):
        if token.type in ("html_block", "inline"):
            for span in spans(token.content):
                found = _SETTINGS.fullmatch(span.comment) if span.kind == "comment" else None
                if found:
                    yield found["text"]


def _settings(value: dict[Any, Any], defaults: Budgets, findings: list[Finding]) -> Settings:
    counts: dict[str, int] = {}
    switches: dict[str, bool] = {}
    for key, given in value.items():
        name = _plain(str(key))
        if name in COUNTS:
            number = _number(COUNTS[name], given)
            if number is None:
                findings.append(_invalid(key, given, "a whole number"))
            else:
                counts[COUNTS[name]] = number[0]
                findings += [_bounded(key, given, number[0])] if number[0] != number[1] else []
        elif name in SWITCHES:
            flag = given if isinstance(given, bool) else _WORDS.get(str(given).lower())
            if flag is None:
                findings.append(_invalid(key, given, "true or false"))
            else:
                switches[SWITCHES[name]] = flag
        else:
            findings.append(warning("setting-unknown", f'The setting "{shown(str(key))}" is not known and left out.'))
    return Settings(defaults.model_copy(update=counts), findings=tuple(findings), **switches)


def _plain(key: str) -> str:
    """Spell ``maxIterations`` and ``max-iterations`` as ``max_iterations``."""
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "_", key).replace("-", "_").lower()


def _number(name: str, given: Any) -> tuple[int, int] | None:
    """Return the number inside its bounds and as it was given; None for what is none."""
    if isinstance(given, bool) or not re.fullmatch(r"-?[0-9]{1,9}", str(given).strip()):
        return None
    number = int(given)
    bounds = Budgets.model_fields[name].metadata
    least = next(bound.ge for bound in bounds if hasattr(bound, "ge"))
    most = next(bound.le for bound in bounds if hasattr(bound, "le"))
    return max(least, min(number, most)), number


def _invalid(key: Any, given: Any, wanted: str) -> Finding:
    message = f'The setting "{shown(str(key))}" is "{shown(str(given))}" and not {wanted}; the default holds.'
    return warning("setting-invalid", message)


def _bounded(key: Any, given: Any, number: int) -> Finding:
    return warning(
        "setting-invalid", f'The setting "{shown(str(key))}" is {shown(str(given))}; the bound {number} holds.'
    )
