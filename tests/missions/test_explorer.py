"""Random walks over the moves of a mission: no gate is passed at another door, and what is proposed is legal."""

import os
import shlex
import shutil
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st
from support.missions import NOW, Project

from accord.core.clock import ManualClock
from accord.core.errors import BrokenContract
from accord.core.findings import has_errors
from accord.missions.lifecycle import MoveRequest
from accord.missions.log import log_path
from accord.missions.models import STATUSES
from accord.missions.move import move
from accord.missions.next_moves import next_moves
from accord.missions.rules import mission_findings
from accord.missions.start import start

WALKS = int(os.environ.get("ACCORD_WALKS", "24"))
SEED = os.environ.get("ACCORD_FUZZ_SEED", "accord")
NEEDS: dict[str, list[str]] = {"WP01": [], "WP02": ["WP01"], "WP03": ["WP02"]}
ACTORS = ["ada", "bob"]

TEXTS = {"feedback": "Fix it.", "review_ref": "PR 1", "override_reason": "No one else.", "reason": "Because."}
GIVEN = st.sets(st.sampled_from(list(TEXTS)), max_size=2)
STEPS = st.one_of(
    st.tuples(st.just("move"), st.sampled_from(list(NEEDS)), st.sampled_from(STATUSES), st.sampled_from(ACTORS), GIVEN),
    st.tuples(
        st.just("force"), st.sampled_from(list(NEEDS)), st.sampled_from(STATUSES), st.sampled_from(ACTORS), GIVEN
    ),
    st.tuples(st.just("start"), st.sampled_from(list(NEEDS)), st.just(""), st.sampled_from(ACTORS), st.just(set())),
    *[st.tuples(st.just("typed"), st.sampled_from(list(NEEDS)), st.integers(0, 1), st.just(""), st.just(set()))] * 4,
)


class Walker:
    """A mission on disk, and what an outsider knows of it from the accepted steps alone."""

    def __init__(self, root: Path) -> None:
        shutil.rmtree(root, ignore_errors=True)
        self.project = Project(root).begin()
        for wp_id, needs in NEEDS.items():
            self.project.work_package(wp_id, "planning_artifact", dependencies=needs)
        self.status = dict.fromkeys(NEEDS, "planned")
        self.workers: dict[str, set[str]] = {wp_id: set() for wp_id in NEEDS}
        self.approved: dict[str, bool] = dict.fromkeys(NEEDS, False)
        self.problems: list[str] = []

    def log(self) -> bytes:
        path = log_path(self.project.folder)
        return path.read_bytes() if path.exists() else b""

    def step(self, kind: str, wp_id: str, target: Any, actor: str, given: set[str]) -> list[str]:
        """Take a step; return what it breaks."""
        self.problems = []
        texts = {name: TEXTS[name] for name in sorted(given)}
        if kind == "typed":
            self._type(wp_id, target)
        elif kind == "start":
            self._try(MoveRequest(wp_id, "in_progress", actor), is_start=True)
        else:
            self._try(MoveRequest(wp_id, target, actor, is_forced=kind == "force", **texts))
        return self.problems

    def _hold(self, is_right: object, what: str) -> None:
        if not is_right:
            self.problems.append(what)

    def _type(self, wp_id: str, number: int) -> None:
        """Type a command that is proposed as legal now: it is accepted."""
        legal = [one for one in next_moves(self.project.load(), wp_id, "accord mission", NOW) if not one.missing]
        if not legal:
            return
        chosen = legal[number % len(legal)]
        words = shlex.split(chosen.command)
        options = dict(zip(words[5::2], words[6::2], strict=True))
        texts = {name.removeprefix("--").replace("-", "_"): text for name, text in options.items()}
        actor = texts.pop("actor", "ada")
        self._hold(texts.pop("to", chosen.to) == chosen.to, f"{chosen} has another status")
        request = MoveRequest(words[4], chosen.to, actor, **texts)  # type: ignore[arg-type]
        self._hold(self._try(request, is_start=words[2] == "start"), f"{chosen} is refused")

    def _try(self, request: MoveRequest, *, is_start: bool = False) -> bool:
        """Make a step; return whether it was accepted."""
        before, clock, root = self.log(), ManualClock(NOW), self.project.root
        try:
            if is_start:
                wp_id, actor = request.wp_id, request.actor
                found = start(root, self.project.slug, wp_id, actor, clock, redact=lambda text: text).events
            else:
                found = move(root, self.project.slug, request, clock, redact=lambda text: text).events
        except BrokenContract:
            self._hold(self.log() == before, "a refused step wrote")
            return False
        self._hold(self.log().startswith(before), "a line of the log was lost")
        for event in found:
            self._accept(request, event)
        self._check()
        return True

    def _accept(self, request: MoveRequest, event: dict[str, Any]) -> None:
        wp_id, source, target = request.wp_id, event["from_lane"], event["to_lane"]
        if not request.is_forced:
            starts = target == "claimed" or (source, target) == ("blocked", "in_progress")
            is_ready = all(self.status[name] in ("approved", "done") for name in NEEDS[wp_id])
            self._hold(not starts or is_ready, f"{wp_id} started before its dependencies were approved")
            is_own = target == "approved" and request.actor in self.workers[wp_id]
            is_right = not is_own or (request.override_reason and event["policy_metadata"]["self_review"])
            self._hold(is_right, f"{request.actor} approved their own work")
        if target == "done":
            self._hold(self.approved[wp_id], f"{wp_id} is done without an approval")
        if target in ("claimed", "in_progress", "for_review") and source not in ("for_review", "in_review", "approved"):
            self.workers[wp_id].add(request.actor)
        if target not in ("done", "blocked"):
            self.approved[wp_id] = target == "approved"
        self.status[wp_id] = target

    def _check(self) -> None:
        mission = self.project.load()
        self._hold({wp_id: mission.status_of(wp_id) for wp_id in NEEDS} == self.status, "a status was lost")
        found = [one for findings in mission_findings(mission, NOW).values() for one in findings]
        self._hold(not has_errors(found), f"errors: {found}")
        self._hold("event-illegal" not in [one.code for one in found], "a replay of the log finds more than moves")


@pytest.mark.slow
@seed(SEED)
@settings(
    max_examples=WALKS,
    deadline=None,
    database=None,
    phases=[Phase.generate, Phase.shrink],
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(steps=st.lists(STEPS, min_size=6, max_size=14))
def test_no_walk_over_a_mission_passes_a_gate_and_each_proposal_is_legal(tmp_path: Path, steps: list[Any]) -> None:
    walker = Walker(tmp_path / "project")
    for step in steps:
        assert walker.step(*step) == []
