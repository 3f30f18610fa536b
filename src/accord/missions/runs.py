"""The run of a mission: the steps of its type, its recorded state, and its position in the steps."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from pydantic import Field

from accord.core.documents import read_object, short_name
from accord.core.errors import BrokenContract
from accord.core.findings import Finding, pointer, warning
from accord.core.frozen import Frozen
from accord.core.shapes import read_shape
from accord.core.suggest import did_you_mean
from accord.files.yaml import read_mapping
from accord.missions.load import Mission
from accord.missions.models import LenientText, Listed, MissionFileModel, PathName, StrictText

DEFAULT_TYPE = "software-dev"
_STEPS = {
    DEFAULT_TYPE: "discovery specify plan tasks_outline tasks_packages tasks_finalize implement review accept",
    "research": "scoping methodology gathering synthesis output accept",
    "documentation": "discover audit design generate validate publish accept",
    "plan": "specify research plan review",
}
"""The steps of each type that is built in; each depends on the one before it."""


class MissionStep(MissionFileModel):
    """One step of a mission type."""

    id: StrictText
    depends_on: Listed = Field([])
    requires_inputs: Listed = Field([])


class Template(MissionFileModel):
    """``mission-runtime.yaml``: the steps of a mission type, in order."""

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


class RunPosition(Frozen):
    """The position of a run, and the question that it waits for; the fields are keys of the answer of ``next``.

    ``preview_step`` is the step that would be issued next.
    """

    mission_state: str
    step_id: str | None = None
    preview_step: str | None = None
    reason: str | None = None
    decision_id: str | None = None
    input_key: str | None = None
    question: str | None = None
    options: list[str] | None = None


def position_of(steps: Sequence[MissionStep], state: RunState, mission_type: str) -> RunPosition:
    """Return the position of a run: blocked, asked, or at a step. Raises BrokenContract ``no-first-step``."""
    done = set(state.completed_steps)
    issued = state.issued_step_id if state.issued_step_id and state.issued_step_id not in done else None
    open_ = (step for step in steps if step.id not in done and step.id != issued and done.issuperset(step.depends_on))
    following = next(open_, None)
    preview = following.id if following else None
    if state.blocked_reason:
        return RunPosition(issued or preview or "blocked", issued, preview, state.blocked_reason)
    if state.pending_decisions:
        return _asked_position(issued, preview, state.pending_decisions)
    if issued:
        return RunPosition(issued, issued, preview)
    if following:
        found = RunPosition(following.id if done else "not_started", None, preview)
        missing = next((name for name in following.requires_inputs if name not in state.inputs), None)
        question = f"The step {following.id} needs the input `{missing}`. What is it?"
        asks = replace(found, decision_id=f"input:{missing}", input_key=missing, question=question)
        return found if missing is None else asks
    if not done:
        message = f"The mission type `{mission_type}` has no issuable first step."
        raise BrokenContract.of(Finding("no-first-step", message, hint="Fix the steps in its template."))
    if all(step.id in done for step in steps):
        return RunPosition("done")
    return RunPosition("blocked", reason="No step can be issued: each depends on a step that cannot be completed.")


def _asked_position(issued: str | None, preview: str | None, pending: Mapping[str, Any]) -> RunPosition:
    """Return the position at the pending decision with the lowest id."""
    name = min(pending)
    fields = pending[name] if isinstance(pending[name], dict) else {"question": pending[name]}
    key = fields.get("input_key") or (name.removeprefix("input:") if name.startswith("input:") else None)
    texts = [value if isinstance(value, str) else "" for value in (key, fields.get("question"), fields.get("step_id"))]
    input_key, question, step_id = (text or None for text in texts)
    options = fields.get("options")
    listed = [*map(_option_text, options)] if isinstance(options, list) else None
    state = issued or step_id or preview or "waiting"
    return RunPosition(state, issued, preview, None, name, input_key, question, listed)


def _option_text(option: Any) -> str:
    """Return the text of an option: its label, or its JSON where it has none."""
    label = option.get("label") if isinstance(option, dict) else option
    return label if isinstance(label, str) else json.dumps(option, ensure_ascii=False)


_TYPE = re.compile(r"\w[\w.-]{0,99}", re.ASCII)


class RunBroken(BrokenContract):
    """The files of a run or of a mission type cannot be used; ``file`` is the one to fix."""

    def __init__(self, message: str, file: Path, finding: Finding) -> None:
        super().__init__(message, findings=[finding])
        self.file = file


class _RunEntry(MissionFileModel):
    run_id: PathName
    run_dir: LenientText = ""
    mission_type: LenientText = ""
    mission_key: LenientText = ""


class StoredRun(Frozen):
    """The recorded run of a mission, None without one, its type with the place that names it, and warnings by file."""

    state: RunState | None
    run_id: str | None
    mission_type: str
    named_in: Path
    named_at: str
    findings: Mapping[Path, list[Finding]]


def read_run(mission: Mission) -> StoredRun:
    """Read the recorded run of a mission. Raises RunBroken: ``run-invalid`` or ``run-mismatch``.

    The mission's type is that of the run's entry, else of its state, else of ``meta.json``.
    """
    index, slug = mission.root / ".kittify" / "runtime" / "feature-runs.json", mission.slug
    with _name_file(index):
        entries = read_object(index.read_bytes()).value if index.is_file() else {}
    findings: dict[Path, list[Finding]] = {index: []} if entries else {}
    own = "mission_type" if mission.meta.mission_type else "mission"
    named = [(mission.meta.type, mission.folder / "meta.json", pointer(own))]
    entry, state = None, None
    if slug in entries:
        entry, state, path = _read_entry(mission, entries[slug], index)
        findings[path] = []
        of_entry = [(getattr(entry, key), index, pointer(slug, key)) for key in ("mission_type", "mission_key")]
        named = [*of_entry, (state.mission_key, path, "/mission_key"), *named]
    given = [source for source in named if source[0]] or [(DEFAULT_TYPE, *named[-1][1:])]
    kind, file, place = given[0]
    for other, where, at in given[1:]:
        if other != kind:
            message = f"The type is `{short_name(other)}` here, but `{short_name(kind)}` in {file.name} counts."
            findings.setdefault(where, []).append(warning("run-type-differs", message, at, hint="Correct one of them."))
    return StoredRun(state, entry.run_id if entry else None, kind, file, place, findings)


def _read_entry(mission: Mission, value: Any, index: Path) -> tuple[_RunEntry, RunState, Path]:
    with _name_file(index, pointer(mission.slug)):
        entry = read_shape(_RunEntry, value)
    path = _state_file(mission.root, entry, index, mission.slug)
    with _name_file(path):
        state = read_shape(RunState, read_object(path.read_bytes()).value)
    if state.run_id and state.run_id != entry.run_id:
        belongs = f"{path.parent.name}/{path.name} belongs to the run `{short_name(state.run_id)}`"
        message = f"{belongs}, but {index.name} expects `{entry.run_id}`."
        hint = "Correct one of them, or remove the entry."
        raise RunBroken(message, path, Finding("run-mismatch", message, "/run_id", hint=hint))
    return entry, state, path


def _state_file(root: Path, entry: _RunEntry, index: Path, slug: str) -> Path:
    """Return the file of a run's state: by its id, else from the index, if that is inside the project."""
    own = root / ".kittify" / "runtime" / "runs" / entry.run_id / "state.json"
    for path in (own, root / entry.run_dir / "state.json"):
        with suppress(OSError, ValueError, RuntimeError):  # not a path, or a loop of links
            if path.is_file() and path.resolve().is_relative_to(root.resolve()):
                return root / path.resolve().relative_to(root.resolve())
    message = f"The run {entry.run_id} has no state.json."
    hint = "Restore it, or remove the entry."
    raise RunBroken(message, index, Finding("run-invalid", message, pointer(slug, "run_id"), hint=hint))


@contextmanager
def _name_file(path: Path, path_in: str = "") -> Iterator[None]:
    try:
        yield
    except BrokenContract as broken:
        first = broken.findings[0]
        where = path_in + first.path
        message = f"{path} cannot be read{where and f' at {where}'}: {first.text}"
        problem = Finding("run-invalid", first.message, where, line=first.line, hint=first.hint)
        raise RunBroken(message, path, problem) from None


def steps_of(mission: Mission, run: StoredRun) -> tuple[Sequence[MissionStep], dict[str, Any]]:
    """Return the steps of a mission's type, and their origin. Raises RunBroken for an unknown type or its file."""
    for folder in ("overrides/missions", "missions") if _TYPE.fullmatch(run.mission_type) else ():
        path = mission.root / ".kittify" / folder / run.mission_type / "mission-runtime.yaml"
        if path.is_file():
            with _name_file(path):
                template = read_shape(Template, read_mapping(path.read_bytes()).value)
            return template.steps, {"template": str(path.relative_to(mission.root))}
    if line := _STEPS.get(run.mission_type, "").split():
        return [MissionStep(id=name, depends_on=line[max(0, i - 1) : i]) for i, name in enumerate(line)], {}
    name = short_name(run.mission_type)
    message = f"Unknown mission type `{name}`, so it has no issuable first step."
    hint = f"Correct it, or write its steps to .kittify/missions/{name}/mission-runtime.yaml."
    hint = f"{did_you_mean(run.mission_type, _STEPS)} {hint}".lstrip()
    raise RunBroken(message, run.named_in, Finding("mission-type-unknown", message, run.named_at, hint=hint))
