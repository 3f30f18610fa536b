"""A mission of six work packages, played by typing only what the output before proposed."""

import re
import shlex
import subprocess
from pathlib import Path

import pytest
from support.commands import Accord
from support.missions import Project
from support.trees import own_settings

NEEDS = {"WP01": [], "WP02": ["WP01"], "WP03": ["WP01"], "WP04": ["WP02", "WP03"], "WP05": ["WP04"], "WP06": ["WP05"]}
FORWARD = ("in_progress", "for_review", "approved", "done")
PROPOSAL = re.compile(
    r"^  (?:(?P<wp>WP\d+) )?(?P<to>\w+)(?: \(needs (?P<needs>.*)\))?\n    (?P<command>.*)$", re.MULTILINE
)
WHO = {f"GIT_{name}_{part}": "ada@example.org" for name in ("AUTHOR", "COMMITTER") for part in ("NAME", "EMAIL")}


@pytest.fixture
def project(tmp_path: Path) -> Project:
    project = Project(tmp_path / "project").begin(target_branch="main")
    for wp_id, needs in NEEDS.items():
        mode = "planning_artifact" if wp_id in ("WP01", "WP06") else "code_change"
        project.work_package(wp_id, mode, dependencies=needs)
    project.lanes(lane_a=["WP02", "WP04"], lane_b=["WP03", "WP05"])
    return project.repository()


def work(command: str, project: Project) -> None:
    """Do what an agent does before it commits: change a file."""
    events = (project.folder / "status.events.jsonl").read_bytes().count(b"\n")
    (Path(shlex.split(command)[2]) / f"work-{events}").write_text("done", encoding="utf-8")


def type_in(accord: Accord, project: Project, command: str) -> str:
    """Type a command of one line; return what accord printed."""
    out = ""
    for part in command.split(" && "):
        words = shlex.split(part)
        if words[0] == "accord":
            ended = accord(*words[1:])
            assert ended.code == 0, (part, ended)
            out = ended.out
            continue
        if "add" in words:
            work(part, project)
        subprocess.run(words, cwd=project.root, env=own_settings() | WHO, check=True, capture_output=True)
    return out


@pytest.mark.slow
def test_a_mission_of_six_work_packages_is_played_with_proposed_commands_alone(
    accord: Accord, project: Project
) -> None:
    accord.monkeypatch.chdir(project.root)
    out, typed = accord("mission", "status", project.slug).out, 0
    while proposals := [found for found in PROPOSAL.finditer(out) if found["to"] in FORWARD]:
        chosen = next(found for found in proposals if "--review-ref REF" not in found["command"])
        out = type_in(accord, project, chosen["command"])
        typed += 1
        assert typed < 40
    assert {project.status(wp_id) for wp_id in NEEDS} == {"done"}
    assert typed == 24
    assert accord("mission", "check", project.slug).code == 0
