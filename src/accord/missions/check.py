"""A check of missions: the findings of their files, and the state of each."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from accord.core.findings import Finding, has_errors
from accord.missions.branches import changed_missions
from accord.missions.load import load_mission, mission_slugs
from accord.missions.query import mission_status
from accord.missions.rules import mission_findings

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import datetime
    from pathlib import Path

    from accord.missions.models import ExecutionMode


@dataclass(frozen=True)
class MissionCheck:
    """The findings of each file of missions, and the status of each mission as ``mission status`` has it."""

    files: Mapping[str, Sequence[Finding]]
    standings: Sequence[dict[str, Any]]

    @property
    def is_ok(self) -> bool:
        """Whether no file has an error."""
        return not any(has_errors(findings) for findings in self.files.values())

    def as_json(self) -> dict[str, Any]:
        """Return the JSON document of ``accord mission check``."""
        found = self.files.items()
        documents = [{"path": path, "findings": [item.as_json() for item in findings]} for path, findings in found]
        return {"ok": self.is_ok, "documents": documents, "missions": self.standings}


def check_missions(
    root: Path, slugs: Sequence[str], base: str, legacy_default: ExecutionMode | None, now: datetime
) -> MissionCheck:
    """Check the named missions, else those changed since HEAD left ``base``, else all. Raises BrokenContract."""
    changed = changed_missions(root, base) if base else None
    chosen = slugs or [slug for slug in mission_slugs(root) if changed is None or slug in changed]
    missions = [load_mission(root, slug, legacy_default) for slug in chosen]
    files: dict[str, list[Finding]] = {}
    for path, found in ((path, found) for one in missions for path, found in mission_findings(one).items()):
        known = files.setdefault(path, [])  # missions share the files of their runs
        known += [finding for finding in found if finding not in known]
    return MissionCheck(files, [mission_status(one, now) for one in missions])
