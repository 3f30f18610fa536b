"""The execution mode of a work package: the declared one, else that of the first signal in its files.

Source: mission contracts, "Resolution Matrix".
"""

from __future__ import annotations

import posixpath
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, get_args

from accord.core.documents import short_name
from accord.core.errors import BrokenContract
from accord.core.findings import Finding
from accord.core.suggest import did_you_mean
from accord.missions.models import ExecutionMode

if TYPE_CHECKING:
    from collections.abc import Sequence

ModeSource = Literal["frontmatter", "inferred_legacy"]
MODES: tuple[ExecutionMode, ...] = get_args(ExecutionMode)

_ARTIFACTS = r"(?:spec|plan|tasks|data-model|quickstart)\.md"
_PLANNING = re.compile(rf"(?<![\w-])kitty-specs/|(?<![\w.-]){_ARTIFACTS}(?![\w-])")
_CODE = re.compile(r"(?<![\w-])(?:src|tests?)/|\.(?:py|ts|js)(?![\w-])")


@dataclass(frozen=True)
class ModeFacts:
    """The facts that decide the mode of one work package. ``lane_ids`` are the execution lanes that list it."""

    wp_id: str
    declared: str
    is_listed_as_planning: bool
    lane_ids: tuple[str, ...]
    owned_files: Sequence[str]
    text: str


@dataclass(frozen=True)
class ResolvedMode:
    """An execution mode, its source, and the reason where it was inferred. ``conflict`` is what speaks against it."""

    value: ExecutionMode
    source: ModeSource
    diagnostics: tuple[str, ...] = ()
    conflict: str = ""


def settle_mode(facts: ModeFacts, legacy_default: ExecutionMode | None = None) -> ResolvedMode:
    """Return the mode: the declared one, else that of the first signal; a later signal against it is a conflict.

    Raises BrokenContract: ``mode-invalid``, ``mode-unknown``, or ``mode-contradiction`` for two lanes.
    """
    declared = next((mode for mode in MODES if mode == facts.declared), None)
    if facts.declared and not declared:
        hint = did_you_mean(facts.declared, MODES) or f"Use {MODES[0]} or {MODES[1]}."
        message = f"{facts.wp_id} has the unknown execution_mode `{short_name(facts.declared)}`."
        raise _broken_mode("mode-invalid", message, hint)
    signals: list[tuple[ExecutionMode, str]] = [(declared, "its file declares it")] if declared else []
    if facts.is_listed_as_planning:
        signals.append(("planning_artifact", "lanes.json lists it under planning_artifact_wps"))
    if facts.lane_ids:
        signals.append(("code_change", f"lanes.json lists it in {facts.lane_ids[0]}"))
    value, signal = signals[0] if signals else _infer_mode(facts, legacy_default)
    if value == "code_change" and len(facts.lane_ids) > 1:
        lanes = " and ".join(facts.lane_ids)
        raise _broken_mode("mode-contradiction", f"lanes.json lists {facts.wp_id} in {lanes}.", "Keep it in one lane.")
    against = "; ".join(f"{why}, which means {mode}" for mode, why in signals[1:] if mode != value)
    conflict = f"{facts.wp_id} is a {value}, because {signal}, but {against}. The first counts." if against else ""
    if declared:
        return ResolvedMode(declared, "frontmatter", (conflict,) if conflict else (), conflict)
    said = f"{facts.wp_id} has no execution_mode: {value}, because {signal}."
    return ResolvedMode(value, "inferred_legacy", (said, conflict) if conflict else (said,), conflict)


def _infer_mode(facts: ModeFacts, legacy_default: ExecutionMode | None) -> tuple[ExecutionMode, str]:
    if facts.owned_files and all(map(_is_planning_path, facts.owned_files)):
        return "planning_artifact", "all its owned_files are below kitty-specs/"
    text = "\n".join([*facts.owned_files, facts.text])
    code, planning = _CODE.search(text), _PLANNING.search(text)
    if code:
        return "code_change", f"its text mentions code (`{code.group()}`)"
    if planning:
        return "planning_artifact", f"its text mentions planning (`{planning.group()}`) and no code"
    if legacy_default:
        return legacy_default, "no signal was found and `--legacy-default` says so"
    raise _broken_mode(
        "mode-unknown",
        f"{facts.wp_id} has no execution_mode, and neither its file nor lanes.json implies one.",
        f"Add `execution_mode: {' or '.join(MODES)}` to its file, or pass `--legacy-default MODE`.",
    )


def _is_planning_path(path: str) -> bool:
    return posixpath.normpath(path.replace("\\", "/") + "/").split("/")[0] == "kitty-specs"


def _broken_mode(code: str, message: str, hint: str) -> BrokenContract:
    return BrokenContract.of(Finding(code, message, "/execution_mode", hint=hint))
