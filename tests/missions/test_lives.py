"""Whole lives of missions with real git: proposals, rejections, kills, lost and renamed lanes, merges in any order.

After each step, the log is judged by the contract alone, without accord's own rules.
"""

import json
import os
import random
import shlex
import shutil
import subprocess
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from support.clocks import ManualClock
from support.missions import NOW, Project

from accord.core.errors import AccordError
from accord.missions.lifecycle import MoveRequest
from accord.missions.move import move
from accord.missions.next_moves import mission_moves, next_moves
from accord.missions.query import mission_status
from accord.missions.rules import mission_findings
from accord.missions.start import start

ACTORS = ("ada", "bob", "eve")
STEPS = 27
LIVES = int(os.environ.get("ACCORD_WALKS", "4"))
SEED = os.environ.get("ACCORD_FUZZ_SEED", "0")
TEXTS = ("feedback", "review_ref", "override_reason", "reason")
TARGETS = ("claimed", "in_progress", "for_review", "approved", "done", "planned", "blocked")
JUDGED = {"for_review", "in_review", "approved", "done"}
"""Lanes from which a move to in_progress is a rejection."""

BEGUN = {"in_progress", "for_review", "in_review", "approved"}

LATER = "It names the mission"
"""The finding of moves that comes from a later rename."""

OPEN_WORK = ("an own commit", "a merge", "the branch of its lane")
"""Needs that the proposed command itself meets, as ``git merge … && accord mission move …``."""


@dataclass
class Life:
    """One mission in a repository, and what happened to it."""

    project: Project
    chance: random.Random
    needs: dict[str, list[str]]  # what each work package depends on
    lanes: dict[str, list[str]]
    now: datetime = NOW
    story: list[str] = field(default_factory=list)
    log: str = ""
    work: dict[str, str] = field(default_factory=dict)  # commits, and the work packages that they are for
    lost: dict[str, list[str]] = field(default_factory=dict)  # branches, and the work packages that had begun there
    status: dict[str, str] = field(default_factory=dict)
    workers: dict[str, set[str]] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)

    @property
    def root(self) -> Path:
        return self.project.root

    def step(self) -> list[str]:
        """Take a step; return what breaks the contract."""
        self.now += timedelta(minutes=1)
        wp_id, kind = self.chance.choice(list(self.needs)), self.chance.random()
        self.try_what_is_forbidden()
        if kind < 0.6:
            self.follow_proposal(wp_id)
        else:
            self.do_as_people_do(wp_id, kind)
        self.judge()
        return self.problems

    def try_what_is_forbidden(self) -> None:
        """Approve own work, skip the review, begin a lost lane again; none of that may go through."""
        for wp_id, status in self.status.items():
            if status == "for_review" and self.chance.random() < 0.2:
                with suppress(AccordError):
                    self.move(wp_id, "approved", self.chance.choice(sorted(self.workers[wp_id])))
                with suppress(AccordError):
                    self.move(wp_id, "done", "eve", is_forced=self.chance.random() < 0.5, reason="Because.")
                    self.fail(f"{wp_id} skipped its review")
        for wp_id in sorted({name for names in self.lost.values() for name in names}):
            if self.chance.random() < 0.2:
                with suppress(AccordError):
                    self.start(wp_id, "ada")

    def do_as_people_do(self, wp_id: str, kind: float) -> None:
        with suppress(AccordError):
            if kind < 0.7:
                self.start(wp_id, self.chance.choice(ACTORS))
            elif kind < 0.82:
                given = {name: "Because." for name in TEXTS if self.chance.random() < 0.5}
                is_forced = self.chance.random() < 0.3
                self.move(wp_id, self.chance.choice(TARGETS), self.chance.choice(ACTORS), is_forced=is_forced, **given)
            elif kind < 0.88:
                self.merge()
            elif kind < 0.93:
                self.lose(keeps_branch=kind < 0.9)
            elif kind < 0.96:
                self.rename_lane()
            elif kind < 0.98:
                self.rename_mission()

    def follow_proposal(self, wp_id: str) -> None:
        """Type what accord proposes; it must not be refused."""
        mission = self.project.load()
        ahead = self.chance.random() < 0.4
        found = (
            mission_moves(mission, "accord mission", self.now)
            if ahead
            else next_moves(mission, wp_id, "accord mission", self.now)
        )
        found = [each for each in found if "COMMIT" not in each.command and "canceled" not in each.to]
        if not found:
            return
        proposed = self.chance.choice(found[:2])
        if proposed.missing and not (len(proposed.missing) == 1 and proposed.missing[0].startswith(OPEN_WORK)):
            return
        self.story.append(proposed.command)
        try:
            for part in proposed.command.split(" && "):
                self.type(shlex.split(part), proposed.command)
        except (AccordError, subprocess.CalledProcessError) as error:
            self.fail(f"accord proposed a command that is refused: {getattr(error, 'stderr', '') or error}")

    def type(self, words: list[str], command: str) -> None:
        if words[0] == "git":
            if "add" in words and "--all" in words:
                Path(words[2], f"work-{self.chance.random()}.txt").write_text("work")
            self.project.git(*words[1:], at=self.now)
            if "commit" in words:
                head = self.project.git("rev-parse", "HEAD", directory=Path(words[2]))
                self.work[head] = command.rpartition(f" {self.project.slug} ")[2].split()[0]
            return
        options = {name[2:].replace("-", "_"): value for name, value in zip(words[5::2], words[6::2], strict=True)}
        if words[2] == "start":
            self.start(words[4], options.get("actor", "ada"))
        elif words[2] == "move":
            self.move(words[4], options.pop("to"), options.pop("actor"), **options)

    def start(self, wp_id: str, actor: str) -> None:
        self.story.append(f"start {wp_id} {actor}")
        before = self.branches()
        try:
            self.perhaps_killed(lambda: start(self.root, self.project.slug, wp_id, actor, self.clock, redact=str))
        finally:
            for branch in {*self.branches()} - {*before}:
                begun = [
                    name for name in self.lost.pop(branch, ()) if self.status.get(name) not in ("done", "canceled")
                ]
                self.hold(not begun, f"{branch} was lost with the work of {begun}, and is begun again")

    def move(self, wp_id: str, target: Any, actor: str, **told: Any) -> None:
        self.story.append(f"move {wp_id} {target} {actor} {told}")
        order = MoveRequest(wp_id, target, actor, **told)
        self.perhaps_killed(lambda: move(self.root, self.project.slug, order, self.clock, redact=str))

    def perhaps_killed(self, command: Callable[[], object]) -> None:
        """Give a command; at times as if it was killed between its writes, and then again or never."""
        before = self.log_bytes()
        command()
        after = self.log_bytes()
        lines = after[len(before) :].splitlines(keepends=True)
        if not lines or self.chance.random() < 0.8:
            return
        kept, is_torn = self.chance.randrange(len(lines)), self.chance.random() < 0.5
        left = before + b"".join(lines[:kept])
        self.log_path.write_bytes(left + (lines[kept][: len(lines[kept]) // 2] if is_torn else b""))
        self.story.append(f"killed after {kept} of {len(lines)} lines")
        if not is_torn and self.chance.random() < 0.3:
            return
        self.now += timedelta(minutes=1)
        try:
            command()
        except AccordError as error:
            self.fail(f"a command that was killed cannot be given again: {error}")
        said = [(line["wp_id"], line["to_lane"]) for line in map(json.loads, lines)]
        again = self.log_bytes()[len(before) :].splitlines()
        if [(line["wp_id"], line["to_lane"]) for line in map(json.loads, again)] != said:
            self.fail("a command that was killed ends otherwise")

    @property
    def clock(self) -> ManualClock:
        """The clock of the command's machine, which is wrong at times."""
        is_wrong = self.chance.random() < 0.02
        self.story += ["in the year 2099"] if is_wrong else []
        return ManualClock(self.now.replace(year=2099) if is_wrong else self.now)

    @property
    def log_path(self) -> Path:
        return self.project.folder / "status.events.jsonl"

    def log_bytes(self) -> bytes:
        return self.log_path.read_bytes() if self.log_path.is_file() else b""

    def fail(self, what: str) -> None:
        self.problems.append("\n".join([what, *self.story[-9:]]))

    def branches(self) -> list[str]:
        return self.project.git("branch", "--list", "--format=%(refname:short)", "kitty/*").split()

    def merge(self) -> None:
        """Merge a lane into main, or main or another lane into a lane that has a work tree."""
        if branches := self.branches():
            branch, into = self.chance.choice([*branches, "main"]), self.chance.choice([*branches, "main", "main"])
            place = self.tree_of(into) if into != "main" else self.root
            if branch != into and place.is_dir():
                self.story.append(f"merge {branch} into {into}")
                self.project.git("merge", "--quiet", "--no-edit", branch, at=self.now, directory=place)

    def tree_of(self, branch: str) -> Path:
        return self.root / ".worktrees" / branch.removeprefix("kitty/mission-")

    def lose(self, *, keeps_branch: bool) -> None:
        if branches := self.branches():
            branch = self.chance.choice(branches)
            self.story.append(f"lose {branch}" + (", not the branch" if keeps_branch else ""))
            shutil.rmtree(self.tree_of(branch), ignore_errors=True)
            if not keeps_branch:
                self.project.git("worktree", "prune")
                self.project.git("branch", "-D", branch)
                lane = branch.rpartition("-lane-")[2]
                own = [wp_id for name, wps in self.lanes.items() if name == f"lane_{lane}" for wp_id in wps]
                self.lost[branch] = [wp_id for wp_id in own if self.status.get(wp_id, "planned") in BEGUN]

    def rename_lane(self) -> None:
        if not self.lanes:
            return
        name = self.chance.choice(list(self.lanes))
        new = name.removesuffix("_new") if name.endswith("_new") else f"{name}_new"
        self.lanes = {new if each == name else each: wps for each, wps in self.lanes.items()}
        self.story.append(f"rename {name} to {new}")
        self.project.lanes(**self.lanes)

    def rename_mission(self) -> None:
        new = replace(self.project, slug="078-boats" if self.project.slug == "078-ships" else "078-ships")
        self.story.append(f"rename the mission to {new.slug}")
        self.project.folder.rename(new.folder)
        self.project = new

    def judge(self) -> None:
        """Hold the log against the contract."""
        text = self.log_bytes().decode()
        self.hold(text.startswith(self.log), "a line of the log was lost or changed")
        events = [json.loads(line) for line in text.splitlines()]
        new = len(self.log.splitlines())
        last: dict[str, str] = {}
        workers: dict[str, set[str]] = {}
        approved: dict[str, bool] = {}
        for number, event in enumerate(events):
            wp_id, target, actor = event["wp_id"], event["to_lane"], str(event["actor"]).casefold()
            self.hold(event["from_lane"] in (None, last.get(wp_id, "planned")), f"the log has a gap: {event}")
            if target == "approved" and not (event["policy_metadata"] or {}).get("override_reason"):
                self.hold(actor not in workers.get(wp_id, ()), f"{actor} approved their own work")
            if target == "approved" and event["from_lane"] not in ("for_review", "in_review"):
                named = event["review_ref"] or approved.get(wp_id) or not event["force"]
                self.hold(named, f"force replaced a review: {event}")
            if target == "claimed" and not event["force"]:
                ready = [name for name in self.needs[wp_id] if last.get(name) in ("approved", "done")]
                self.hold(ready == self.needs[wp_id], f"{wp_id} started before the work that it needs was approved")
            if target == "planned":
                workers[wp_id] = set()
            is_begun = target in ("claimed", "in_progress") or (target == "for_review" and not workers.get(wp_id))
            if is_begun and last.get(wp_id) not in JUDGED:
                workers.setdefault(wp_id, set()).add(actor)
            if target == "done":
                self.hold(approved.get(wp_id), f"{wp_id} is done without an approval")
                if number >= new:
                    self.check_merged(event)
            approved |= {wp_id: target == "approved"} if target not in ("done", "blocked") else {}
            last[wp_id] = target
        self.status, self.workers = last, workers
        mission = self.project.load()
        start = self.project.git("rev-list", "--max-parents=0", "main")
        found = [one for findings in mission_findings(mission, self.now, start).values() for one in findings]
        illegal = [one.message for one in found if one.code == "event-illegal" and LATER not in one.message]
        self.hold(not illegal, f"a replay of the log finds more than moves: {illegal}")
        for shown in mission_status(mission, self.now)["work_packages"]:
            self.hold(shown["status"] == last.get(shown["wp_id"], "planned"), f"a status was lost: {shown}")
        self.log = text

    def hold(self, is_right: bool | None, what: str) -> None:
        if not is_right:
            self.fail(what)

    def check_merged(self, event: dict[str, Any]) -> None:
        """Hold that main has all work of a lane, also where it was renamed; a reason may stand for it."""
        if (event["policy_metadata"] or {}).get("merge_ancestry") == "overridden":
            return
        for commit in (commit for commit, wp_id in self.work.items() if wp_id == event["wp_id"]):
            held = self.project.git("branch", "--format=%(refname:short)", "--contains", commit).split()
            if held and "main" not in held:
                self.fail(f"{event['wp_id']} is done, and its commit on {held} is not merged")


def begun(root: Path, chance: random.Random) -> Life:
    packages = [f"WP{number:02}" for number in range(1, chance.randint(2, 6) + 1)]
    project = Project(root).begin(target_branch="main")
    needs: dict[str, list[str]] = {}
    lanes: dict[str, list[str]] = {}
    for index, wp_id in enumerate(packages):
        needs[wp_id] = sorted(chance.sample(packages[:index], min(index, chance.choice([0, 0, 1, 2]))))
        mode = chance.choice(["code_change", "code_change", "planning_artifact"])
        project.work_package(wp_id, mode, dependencies=needs[wp_id])
        if mode == "code_change":
            lanes.setdefault(f"lane_{chance.choice('abc')}", []).append(wp_id)
    project.lanes(**lanes)
    project.repository()
    return Life(project, chance, needs, lanes)


@pytest.mark.slow
@pytest.mark.parametrize("first", range(0, LIVES, 4))
def test_no_life_of_a_mission_breaks_its_contract(first: int, tmp_path: Path) -> None:
    for number in range(first, min(first + 4, LIVES)):
        life = begun(tmp_path / str(number), random.Random(f"{SEED}-{number}"))
        for _ in range(STEPS):
            assert life.step() == []
