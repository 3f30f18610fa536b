"""Which execution mode a work package has: as its file says, or inferred once for missions older than the field.

Pure. The signals are asked in a fixed order; what decided is a diagnostic, and nothing is written back to the file.
Source: mission contracts, "Compatibility Classification".
"""

from __future__ import annotations

import posixpath
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, get_args

from accord.kernel.documents import shown
from accord.kernel.errors import BrokenContract
from accord.kernel.findings import Finding
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
    """What tells the mode of one work package. ``lane_ids`` are the execution lanes that list it."""

    wp_id: str
    declared: str
    is_listed_as_planning: bool
    lane_ids: tuple[str, ...]
    owned_files: Sequence[str]
    text: str


@dataclass(frozen=True)
class Mode:
    """An execution mode, where it comes from, and what decided."""

    value: ExecutionMode
    source: ModeSource
    diagnostics: tuple[str, ...] = ()


def settle_mode(facts: ModeFacts, legacy_default: ExecutionMode | None = None) -> Mode:
    """Tell the mode. Raises BrokenContract: ``mode-invalid``, ``mode-contradiction`` or ``mode-unknown``."""
    if facts.declared and facts.declared not in MODES:
        raise _broken(
            "mode-invalid",
            f'{facts.wp_id} has the execution_mode "{shown(facts.declared)}". Write {" or ".join(MODES)}.',
        )
    _check_contradictions(facts)
    if facts.declared:
        return Mode("code_change" if facts.declared == "code_change" else "planning_artifact", "frontmatter")
    value, signal = _inferred(facts, legacy_default)
    return Mode(value, "inferred_legacy", (f"{facts.wp_id} has no execution_mode: {value}, because {signal}.",))


def _check_contradictions(facts: ModeFacts) -> None:
    said: list[tuple[ExecutionMode, str]] = []
    if facts.declared:
        said.append(("code_change" if facts.declared == "code_change" else "planning_artifact", "its file says so"))
    if facts.is_listed_as_planning:
        said.append(("planning_artifact", "lanes.json lists it under planning_artifact_wps"))
    if facts.lane_ids:
        said.append(("code_change", f"lanes.json has it in {facts.lane_ids[0]}"))
    if len({mode for mode, _ in said}) > 1:
        sides = "; ".join(f"{mode}, because {why}" for mode, why in said)
        raise _broken("mode-contradiction", f"{facts.wp_id} has two execution modes: {sides}. Correct one of them.")
    if len(facts.lane_ids) > 1:
        lanes = " and ".join(facts.lane_ids)
        raise _broken("mode-contradiction", f"lanes.json has {facts.wp_id} in {lanes}. Keep it in one lane.")


def _inferred(facts: ModeFacts, legacy_default: ExecutionMode | None) -> tuple[ExecutionMode, str]:
    if facts.is_listed_as_planning:
        return "planning_artifact", "lanes.json lists it under planning_artifact_wps"
    if facts.lane_ids:
        return "code_change", f"lanes.json has it in {facts.lane_ids[0]}"
    if facts.owned_files and all(map(is_planning_path, facts.owned_files)):
        return "planning_artifact", "all files that it owns are below kitty-specs/"
    text = "\n".join([*facts.owned_files, facts.text])
    code, planning = _CODE.search(text), _PLANNING.search(text)
    if code:
        return "code_change", f'its text speaks of code ("{code.group()}")'
    if planning:
        return "planning_artifact", f'its text speaks of planning ("{planning.group()}") and of no code'
    if legacy_default:
        return legacy_default, "nothing tells it and that is the default given for such cases"
    raise _broken(
        "mode-unknown",
        f"{facts.wp_id} has no execution_mode, and nothing in it or in lanes.json tells which it is. "
        f"Add execution_mode: {' or '.join(MODES)} to its file, or pass --legacy-default MODE.",
    )


def is_planning_path(path: str) -> bool:
    """Tell whether a path of a repository, or a pattern of paths, stays below ``kitty-specs/``."""
    return posixpath.normpath(path.replace("\\", "/") + "/").split("/")[0] == "kitty-specs"


def _broken(code: str, message: str) -> BrokenContract:
    return BrokenContract(message, findings=[Finding(code, message, "/execution_mode")])
