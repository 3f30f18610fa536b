"""The execution mode of a work package: the declared one, else that of the first signal in its files.

Source: mission contracts, "Resolution Matrix".
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Sequence
from typing import Literal, get_args

from accord.core.documents import short_name
from accord.core.errors import BrokenContract
from accord.core.findings import Finding
from accord.core.frozen import Frozen
from accord.core.suggest import did_you_mean
from accord.missions.models import ExecutionMode, Frontmatter

ModeSource = Literal["frontmatter", "inferred_legacy"]
MODES: tuple[ExecutionMode, ...] = get_args(ExecutionMode)

_ARTIFACTS = r"(?:spec|plan|tasks|data-model|quickstart)\.md"
_PLANNING = re.compile(rf"(?<![\w-])kitty-specs/|(?<![\w.-]){_ARTIFACTS}(?![\w-])")
_CODE = re.compile(r"(?<![\w-])(?:src|tests?)/|\.(?:py|ts|js)(?![\w-])")


class ResolvedMode(Frozen):
    """An execution mode, its source, and the reason where it was inferred. ``conflict`` is what speaks against it."""

    value: ExecutionMode
    source: ModeSource
    diagnostics: tuple[str, ...] = ()
    conflict: str = ""


def settle_mode(
    head: Frontmatter,
    text: str,
    lanes: Sequence[str] = (),
    *,
    is_listed: bool = False,
    legacy_default: ExecutionMode | None = None,
) -> ResolvedMode:
    """Return the mode: the declared one, else that of the first signal; a later signal against it is a conflict.

    ``lanes`` are the execution lanes that list the work package, ``is_listed`` tells that lanes.json lists it as
    planning. Raises BrokenContract: ``mode-invalid``, ``mode-unknown``, or ``mode-contradiction`` for two lanes.
    """
    wp_id, declared = head.work_package_id, next((mode for mode in MODES if mode == head.execution_mode), None)
    if head.execution_mode and not declared:
        hint = did_you_mean(head.execution_mode, MODES) or f"Use {MODES[0]} or {MODES[1]}."
        message = f"{wp_id} has the unknown execution_mode `{short_name(head.execution_mode)}`."
        raise _broken_mode("mode-invalid", message, hint)
    signals: list[tuple[ExecutionMode, str]] = [(declared, "its file declares it")] if declared else []
    if is_listed:
        signals.append(("planning_artifact", "lanes.json lists it as planning"))
    if lanes:
        signals.append(("code_change", f"lanes.json lists it in {lanes[0]}"))
    value, signal = signals[0] if signals else _infer_mode(head, text, legacy_default)
    if value == "code_change" and len(lanes) > 1:
        message = f"lanes.json lists {wp_id} in {' and '.join(lanes)}."
        raise _broken_mode("mode-contradiction", message, "Keep it in one lane.")
    against = "; ".join(f"{why}, which means {mode}" for mode, why in signals[1:] if mode != value)
    conflict = f"{wp_id} is a {value}, because {signal}, but {against}. The first counts." if against else ""
    said = [] if declared else [f"{wp_id} has no execution_mode: {value}, because {signal}."]
    source: ModeSource = "frontmatter" if declared else "inferred_legacy"
    return ResolvedMode(value, source, (*said, conflict) if conflict else tuple(said), conflict)


def _infer_mode(head: Frontmatter, text: str, legacy_default: ExecutionMode | None) -> tuple[ExecutionMode, str]:
    paths = (posixpath.normpath(path.replace("\\", "/") + "/") for path in head.owned_files)
    if head.owned_files and all(path.split("/")[0] == "kitty-specs" for path in paths):
        return "planning_artifact", "all its owned_files are below kitty-specs/"
    text = "\n".join([*head.owned_files, head.title, head.work_package_title, head.authoritative_surface, text])
    code, planning = _CODE.search(text), _PLANNING.search(text)
    if code:
        return "code_change", f"its text mentions code (`{code.group()}`)"
    if planning:
        return "planning_artifact", f"its text mentions planning (`{planning.group()}`) and no code"
    if legacy_default:
        return legacy_default, "no signal was found and `--legacy-default` says so"
    message = f"{head.work_package_id} has no execution_mode, and neither its file nor lanes.json implies one."
    no_code = f"add `execution_mode: {MODES[1]}` to its file, or pass `--legacy-default {MODES[1]}`"
    hint = f"If it changes code, add it to a lane of lanes.json; if not, {no_code}."
    raise _broken_mode("mode-unknown", message, hint)


def _broken_mode(code: str, message: str, hint: str) -> BrokenContract:
    return BrokenContract.of(Finding(code, message, "/execution_mode", hint=hint))
