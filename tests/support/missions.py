"""Missions on disk for tests: builders that write what a test is about, and real git where it matters."""

import atexit
import hashlib
import json
import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cache
from pathlib import Path
from typing import Any, Self

import yaml
from support.clocks import ManualClock
from support.trees import own_settings

from accord.missions.lifecycle import MoveRequest
from accord.missions.load import Mission, load_mission
from accord.missions.models import ExecutionMode
from accord.missions.move import MoveResult, move

SLUG = "078-ships"
_WHO = ("AUTHOR_NAME", "AUTHOR_EMAIL", "COMMITTER_NAME", "COMMITTER_EMAIL")
NOW = datetime(2026, 5, 4, 12, 0, tzinfo=UTC)


@cache
def _kept() -> Path:
    """Return the directory of the repositories that tests copy."""
    folder = Path(tempfile.mkdtemp(prefix="missions-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


@dataclass(frozen=True)
class Project:
    """A project with one mission; each method writes one part of it."""

    root: Path
    slug: str = SLUG

    @property
    def folder(self) -> Path:
        return self.root / "kitty-specs" / self.slug

    def begin(self, **meta: Any) -> Self:
        (self.root / ".kittify").mkdir(parents=True, exist_ok=True)
        (self.folder / "tasks").mkdir(parents=True, exist_ok=True)
        self.write("meta.json", {"mission_slug": self.slug, "mission_type": "software-dev", **meta})
        return self

    def write(self, name: str, content: Any) -> Path:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content if isinstance(content, str) else json.dumps(content, indent=1), encoding="utf-8")
        return path

    def work_package(self, wp_id: str, mode: str | None = None, body: str = "", **head: Any) -> Path:
        """Write a work package; ``mode`` None leaves the field out."""
        values = {"work_package_id": wp_id, "title": f"Title of {wp_id}", "dependencies": [], **head}
        if mode is not None:
            values["execution_mode"] = mode
        return self.write(f"tasks/{wp_id}-part.md", f"---\n{yaml.safe_dump(values)}---\n\n{body}\n")

    def lanes(self, planning: list[str] | None = None, **lanes: list[str]) -> Path:
        """Write ``lanes.json``; a lane's name has ``_`` for ``-``."""
        listed = [{"lane_id": name.replace("_", "-"), "wp_ids": wp_ids} for name, wp_ids in lanes.items()]
        return self.write("lanes.json", {"version": 1, "lanes": listed, "planning_artifact_wps": planning or []})

    def event(self, wp_id: str, source: str, target: str, at: datetime = NOW, **more: Any) -> dict[str, Any]:
        """Add an event to the log."""
        path = self.folder / "status.events.jsonl"
        number = len(path.read_text(encoding="utf-8").splitlines()) if path.is_file() else 0
        value = event(wp_id, source, target, at, **{"event_id": f"E{number:04}", **more})
        with path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(value) + "\n")
        return value

    def approve(self, wp_id: str, at: datetime = NOW, **more: Any) -> None:
        """Add an approval that counts, whatever the status before it."""
        given = {"actor": "rev", "force": True, "reason": "It is right.", "review_ref": "PR 1", **more}
        self.event(wp_id, self.status(wp_id), "approved", at, **given)

    def run(self, **state: Any) -> None:
        """Keep a run."""
        runtime = self.root / ".kittify" / "runtime"
        folder = runtime / "runs" / "run-1"
        folder.mkdir(parents=True, exist_ok=True)
        entry = {"run_id": "run-1", "run_dir": str(folder), "mission_type": "software-dev"}
        (runtime / "feature-runs.json").write_text(json.dumps({self.slug: entry}), encoding="utf-8")
        (folder / "state.json").write_text(json.dumps({"run_id": "run-1", **state}), encoding="utf-8")

    def load(self, legacy_default: ExecutionMode | None = None) -> Mission:
        return load_mission(self.root, self.slug, legacy_default)

    def move(self, wp_id: str, target: Any, actor: str = "ada", **told: Any) -> MoveResult:
        """Move a work package; several processes at once need a ``clock`` on which waiting takes time."""
        dry, clock = told.pop("is_dry_run", False), told.pop("clock", ManualClock(NOW))
        order = MoveRequest(wp_id, target, actor, **told)
        return move(self.root, self.slug, order, clock, redact=lambda text: text, is_dry_run=dry)

    def status(self, wp_id: str) -> str:
        return self.load().status_of(wp_id)

    def git(self, *arguments: str, at: datetime = NOW, directory: Path | None = None) -> str:
        """Run git as a person would, at a given time."""
        stamp = at.isoformat()
        who = {f"GIT_{name}": "person@example.org" for name in _WHO}
        environment = own_settings() | who | dict.fromkeys(("GIT_AUTHOR_DATE", "GIT_COMMITTER_DATE"), stamp)
        command = ["git", *arguments]
        done = subprocess.run(
            command, cwd=directory or self.root, env=environment, check=True, capture_output=True, text=True
        )
        return done.stdout.strip()

    def repository(self, branch: str = "main") -> Self:
        """Make the project a repository with one commit, a day old; that of equal files is made once, and copied."""
        files = sorted((str(path), path.read_bytes()) for path in self.root.glob("kitty-specs/**/*") if path.is_file())
        kept = _kept() / hashlib.sha256(repr((branch, files)).replace(str(self.root), "").encode()).hexdigest()
        if not kept.exists():
            self.git("init", "--quiet", "--template=", f"--initial-branch={branch}")
            (self.root / ".git/info").mkdir()
            self.git("add", "kitty-specs")
            self.commit("begin", at=NOW - timedelta(days=1))
            shutil.copytree(self.root / ".git", kept)
        else:
            shutil.copytree(kept, self.root / ".git")
        return self

    def commit(self, text: str, at: datetime = NOW, directory: Path | None = None) -> None:
        self.git("commit", "--quiet", "--allow-empty", "-m", text, at=at, directory=directory)

    def worktree(self, lane: str) -> Path:
        """Make the work tree and branch of a lane, as the tool that allocates them does."""
        path = self.root / ".worktrees" / f"{self.slug}-{lane}"
        self.git("worktree", "add", "--quiet", "-b", f"kitty/mission-{self.slug}-{lane}", str(path))
        return path


def event(wp_id: str, source: str | None, target: str, at: datetime = NOW, **more: Any) -> dict[str, Any]:
    """Make an event as the log holds it."""
    when, absent = at.isoformat(), dict.fromkeys(("reason", "review_ref", "evidence", "policy_metadata"))
    head = {"event_id": f"E-{wp_id}-{target}-{when}", "mission_slug": SLUG, "wp_id": wp_id}
    lanes = {"from_lane": source, "to_lane": target, "at": when, "actor": "ada"}
    made = {**head, **lanes, "force": False, "execution_mode": "worktree", **absent, **more}
    if target == "approved" and "evidence" not in more and not made["force"]:
        made["evidence"] = {"review": {"reviewer": made["actor"], "verdict": "approved", "reference": "PR 1"}}
    return made
