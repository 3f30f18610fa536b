"""Where a mission's run stands: the steps of its type, and what is known of a run that began. Pure."""

from __future__ import annotations

import re
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from pydantic import Field

from accord.core.documents import read_object, shown
from accord.core.errors import BrokenContract
from accord.core.findings import Finding, pointer, warning
from accord.core.kinds import read_shape
from accord.files.yaml import read_mapping
from accord.missions.models import LenientText, Listed, MissionFileModel, Name, Text

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pydantic import BaseModel

    from accord.missions.load import Mission

    Model = TypeVar("Model", bound=BaseModel)


DEFAULT_TYPE = "software-dev"
_LINE = (
    "discovery",
    "specify",
    "plan",
    "tasks_outline",
    "tasks_packages",
    "tasks_finalize",
    "implement",
    "review",
    "accept",
)


class MissionStep(MissionFileModel):
    """One step of a mission type."""

    id: Text
    depends_on: Listed = Field([])
    requires_inputs: Listed = Field([])


class Template(MissionFileModel):
    """``mission-runtime.yaml``: the steps of a mission type, in their order."""

    steps: list[MissionStep]


class RunState(MissionFileModel):
    """``state.json`` of a run."""

    run_id: LenientText = ""
    mission_key: LenientText = ""
    completed_steps: Listed = Field([])
    issued_step_id: str | None = None
    inputs: dict[str, Any] = Field({})
    pending_decisions: dict[str, Any] = Field({})
    blocked_reason: str | None = None


SOFTWARE_DEV = tuple(MissionStep(id=name, depends_on=list(_LINE[max(0, i - 1) : i])) for i, name in enumerate(_LINE))


@dataclass(frozen=True)
class MissionDecision:
    """A question that a run waits for."""

    id: str
    input_key: str | None = None
    question: str | None = None
    options: tuple[str, ...] | None = None
    step_id: str | None = None


@dataclass(frozen=True)
class RunPosition:
    """Where a run stands. ``preview_step`` is the step that would be issued next."""

    mission_state: str
    step_id: str | None = None
    preview_step: str | None = None
    reason: str | None = None
    decision: MissionDecision | None = None


def position_of(steps: Sequence[MissionStep], state: RunState, mission_type: str) -> RunPosition:
    """Tell where a run stands. Raises BrokenContract ``no-first-step`` for a fresh one that cannot begin.

    A block comes before a question, and a question before the next step.
    """
    done = set(state.completed_steps)
    issued = state.issued_step_id if state.issued_step_id and state.issued_step_id not in done else None
    following = next(
        (step for step in steps if step.id not in done and step.id != issued and done.issuperset(step.depends_on)), None
    )
    preview = following.id if following else None
    decision = _pending(state)
    if state.blocked_reason:
        return RunPosition(issued or preview or "blocked", issued, preview, state.blocked_reason)
    if decision:
        return RunPosition(issued or decision.step_id or preview or "waiting", issued, preview, None, decision)
    if issued:
        return RunPosition(issued, issued, preview)
    if following:
        missing = _missing_input(following, state)
        if not done:
            return RunPosition("not_started", None, preview, None, missing)
        return RunPosition(following.id, None, preview, None, missing)
    if not done:
        message = f'The mission type "{mission_type}" has no issuable first step. Fix the steps in its template.'
        raise BrokenContract(message, findings=[Finding("no-first-step", message)])
    if all(step.id in done for step in steps):
        return RunPosition("done")
    return RunPosition("blocked", reason="No step can be issued: each waits for one that never comes.")


def _pending(state: RunState) -> MissionDecision | None:
    """Return the pending decision with the lowest id."""
    if not state.pending_decisions:
        return None
    name = min(state.pending_decisions)
    value = state.pending_decisions[name]
    told = value if isinstance(value, dict) else {"question": value}
    options = told.get("options")
    key = told.get("input_key") or (name.removeprefix("input:") if name.startswith("input:") else None)
    return MissionDecision(
        name,
        _text(key),
        _text(told.get("question")),
        tuple(str(option) for option in options) if isinstance(options, list) else None,
        _text(told.get("step_id")),
    )


def _text(value: object) -> str | None:
    return value if isinstance(value, str) and value else None


def _missing_input(step: MissionStep, state: RunState) -> MissionDecision | None:
    missing = next((name for name in step.requires_inputs if name not in state.inputs), None)
    if missing is None:
        return None
    return MissionDecision(f"input:{missing}", missing, f'The step {step.id} needs the input "{missing}". What is it?')


_TYPE = re.compile(r"\w[\w.-]{0,99}", re.ASCII)
_TYPES = (Path(".kittify", "overrides", "missions"), Path(".kittify", "missions"))


class RunBroken(BrokenContract):
    """What is kept of a run or of a mission type cannot be used; ``file`` is the one to fix."""

    def __init__(self, message: str, file: Path, finding: Finding) -> None:
        super().__init__(message, findings=[finding])
        self.file = file


class _RunEntry(MissionFileModel):
    run_id: Name
    run_dir: LenientText = ""
    mission_type: LenientText = ""
    mission_key: LenientText = ""


@dataclass(frozen=True)
class StoredRun:
    """The run that is kept of a mission, None where there is none, and the mission's type with the place that names it.

    ``findings`` are doubts about the run's files, by file; sound ones have none.
    """

    state: RunState | None
    run_id: str | None
    mission_type: str
    named_in: Path
    named_at: str
    findings: Mapping[Path, list[Finding]]


def read_run(mission: Mission) -> StoredRun:
    """Read what is kept of a mission's run. Raises RunBroken: ``run-invalid`` or ``run-mismatch``."""
    index = mission.root / ".kittify" / "runtime" / "feature-runs.json"
    entries = _read(index) if index.is_file() else {}
    if mission.slug not in entries:
        own, key = _own_type(mission)
        findings: dict[Path, list[Finding]] = {index: []} if entries else {}
        return StoredRun(None, None, own or DEFAULT_TYPE, mission.folder / "meta.json", pointer(key), findings)
    entry = _shaped(_RunEntry, entries[mission.slug], index, pointer(mission.slug))
    path = _state_file(mission.root, entry, index, mission.slug)
    state = _shaped(RunState, _read(path), path)
    if state.run_id and state.run_id != entry.run_id:
        message = (
            f'{path.parent.name}/{path.name} says that it is of the run "{shown(state.run_id)}", and {index.name} '
            f'that it is of "{entry.run_id}". Correct one, or remove the entry: the answer would be of another run.'
        )
        raise RunBroken(message, path, Finding("run-mismatch", message, "/run_id"))
    return _kept(mission, index, entry, path, state)


def _kept(mission: Mission, index: Path, entry: _RunEntry, path: Path, state: RunState) -> StoredRun:
    """Settle the mission's type: as the run's entry says, else its state, else ``meta.json``."""
    own, key = _own_type(mission)
    named = [
        (entry.mission_type, index, pointer(mission.slug, "mission_type")),
        (entry.mission_key, index, pointer(mission.slug, "mission_key")),
        (state.mission_key, path, "/mission_key"),
        (own, mission.folder / "meta.json", pointer(key)),
    ]
    said = [place for place in named if place[0]] or [(DEFAULT_TYPE, *named[-1][1:])]
    kind, file, place = said[0]
    findings: dict[Path, list[Finding]] = {index: [], path: []}
    for other, where, at in said[1:]:
        if other != kind:
            message = (
                f'The type is "{shown(other)}" here and "{shown(kind)}" in {file.name}, which counts. Correct one.'
            )
            findings.setdefault(where, []).append(warning("run-type-differs", message, at))
    return StoredRun(state, entry.run_id, kind, file, place, findings)


def _own_type(mission: Mission) -> tuple[str, str]:
    """Return the type that ``meta.json`` names, and the key that names it."""
    own = mission.meta.mission_type
    return (own, "mission_type") if own else (mission.meta.mission, "mission")


def _state_file(root: Path, entry: _RunEntry, index: Path, slug: str) -> Path:
    """Find a run's state: by its id, else where the index says, if that is inside of the project."""
    own = root / ".kittify" / "runtime" / "runs" / entry.run_id / "state.json"
    for path in (own, root / entry.run_dir / "state.json"):
        with suppress(OSError, ValueError, RuntimeError):  # no path at all, or a circle of links
            if path.is_file() and path.resolve().is_relative_to(root.resolve()):
                return root / path.resolve().relative_to(root.resolve())
    message = f"The run {entry.run_id} has no state.json. Restore it, or remove the entry."
    raise RunBroken(message, index, Finding("run-invalid", message, pointer(slug, "run_id")))


def _read(path: Path) -> dict[str, Any]:
    try:
        return read_object(path.read_bytes()).value
    except BrokenContract as broken:
        raise _unreadable(path, broken) from None


def _shaped(model: type[Model], value: Any, path: Path, place: str = "") -> Model:
    try:
        return read_shape(model, value)
    except BrokenContract as broken:
        raise _unreadable(path, broken, place) from None


def _unreadable(path: Path, broken: BrokenContract, place: str = "") -> RunBroken:
    first = broken.findings[0]
    place += first.path
    message = f"{path} keeps no run that can be read{place and f' at {place}'}: {first.message}"
    return RunBroken(message, path, Finding("run-invalid", first.message, place, line=first.line))


def steps_of(mission: Mission, kept: StoredRun) -> tuple[Sequence[MissionStep], dict[str, Any]]:
    """Return the steps of a mission's type, and where they come from.

    Raises RunBroken: ``run-invalid`` for a template that cannot be read, ``mission-type-unknown`` where there is none.
    """
    for folder in _TYPES if _TYPE.fullmatch(kept.mission_type) else ():
        path = mission.root / folder / kept.mission_type / "mission-runtime.yaml"
        if path.is_file():
            try:
                template = read_shape(Template, read_mapping(path.read_bytes()).value)
            except BrokenContract as broken:
                first = broken.findings[0]
                problem = Finding("run-invalid", first.message, first.path, line=first.line)
                raise RunBroken(f"{path} cannot be read: {first.message}", path, problem) from None
            return template.steps, {"template": str(path.relative_to(mission.root))}
    if kept.mission_type == DEFAULT_TYPE:
        return SOFTWARE_DEV, {}
    name = shown(kept.mission_type)
    message = (
        f'The mission type "{name}" is not known, so it has no issuable first step. '
        f"Correct it, or put its steps into .kittify/missions/{name}/mission-runtime.yaml."
    )
    raise RunBroken(message, kept.named_in, Finding("mission-type-unknown", message, kept.named_at))
