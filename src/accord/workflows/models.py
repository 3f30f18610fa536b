"""Workflow files as far as we look into them; what else GitHub takes stays untouched.

Source: GitHub documentation, "Workflow syntax for GitHub Actions". Where GitHub takes several spellings (``on: push``,
``needs: build``, an empty ``workflow_call:``), the model has one.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator
from functools import cached_property
from typing import Annotated, Any, TypeVar

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, StrictBool
from pydantic.json_schema import SkipJsonSchema

from accord.core.findings import pointer
from accord.core.shapes import value_at


def _mapping(value: Any) -> Any:
    return {} if value is None else value


Mapped = TypeVar("Mapped")
OrNothing = Annotated[Mapped, BeforeValidator(_mapping)]
"""A mapping that may have no value in the file."""


def _names(value: Any) -> Any:
    return [value] if isinstance(value, str) else ([] if value is None else value)


def _triggers(value: Any) -> Any:
    names = [value] if isinstance(value, str) else value
    if isinstance(names, list) and all(isinstance(name, str) for name in names):
        return dict.fromkeys(names)
    return value


LEVELS = {"none": 0, "read": 1, "write": 2}
"""The levels of a permission that GitHub knows, in order."""


def _known_levels(value: dict[str, str] | str | None) -> dict[str, str] | str | None:
    for level in value.values() if isinstance(value, dict) else ():
        if level not in LEVELS:
            raise ValueError(f"`{level[:100]}` is not a level of a permission", "Write `read`, `write` or `none`.")
    if isinstance(value, str) and value not in ("read-all", "write-all"):
        raise ValueError(f"`{value[:100]}` is not a value of permissions", "Write `read-all`, `write-all` or `{}`.")
    return value


_Permissions = Annotated[dict[str, str] | str | None, AfterValidator(_known_levels)]


class _Open(BaseModel):
    model_config = ConfigDict(frozen=True, extra="allow", defer_build=True)


class Input(_Open):
    """An input of ``workflow_call`` or ``workflow_dispatch``."""

    description: str = ""
    type: str | None = None
    required: StrictBool = False
    default: Any = None
    deprecation_message: str = Field("", alias="deprecationMessage")


class Output(_Open):
    """An output of ``workflow_call``."""

    description: str = ""
    value: Any = None
    deprecation_message: str = Field("", alias="deprecationMessage")


class WorkflowSecret(_Open):
    """A secret of ``workflow_call``."""

    description: str = ""
    required: StrictBool = False


class Dispatch(_Open):
    """Inputs of a workflow that people start."""

    inputs: OrNothing[dict[str, OrNothing[Input]]] = {}


class WorkflowCall(Dispatch):
    """Inputs, outputs and secrets of a reusable workflow."""

    outputs: OrNothing[dict[str, OrNothing[Output]]] = {}
    secrets: OrNothing[dict[str, OrNothing[WorkflowSecret]]] = {}


class Triggers(_Open):
    """The events that start a workflow; others than these two are extra fields."""

    workflow_call: OrNothing[WorkflowCall | None] = None
    workflow_dispatch: OrNothing[Dispatch | None] = None


Values = OrNothing[dict[str, Any]]
ValuesOrText = OrNothing[dict[str, Any] | str]


class Step(_Open):
    """One step of a job: ``uses`` or ``run``."""

    place: SkipJsonSchema[str] = Field("", exclude=True)
    """Its JSON pointer below the job or action."""

    file: SkipJsonSchema[str] = Field("", exclude=True)
    """The path of the action that it is in; empty for a step of a workflow."""

    users: SkipJsonSchema[tuple[Step, ...]] = Field((), exclude=True)
    """The steps whose actions it is in, the outermost first; without their own inner steps."""

    inner: SkipJsonSchema[tuple[Step, ...]] = Field((), exclude=True)
    """The steps of the repository's composite action that it uses."""

    action: SkipJsonSchema[CompositeAction | None] = Field(None, exclude=True)
    scripts: SkipJsonSchema[dict[str, str]] = Field({}, exclude=True)
    """The shell scripts of the repository that it runs, by path."""

    own_name: SkipJsonSchema[str] = Field("", exclude=True)
    """The full name of its action, if that is the repository's own."""

    id: str = ""
    condition: str | bool | float | None = Field(None, alias="if")
    uses: str = ""
    run: str = ""
    shell: str = ""
    given: Values = Field({}, alias="with")
    env: ValuesOrText = {}

    @property
    def route(self) -> tuple[str, ...]:
        """Its place in its job: that of each step whose action it is in, and its own."""
        return (*(user.place for user in self.users), self.place)

    @property
    def inputs(self) -> dict[str, Any]:
        """The inputs of its action, with the defaults of one that is the repository's own."""
        declared = self.action.inputs if self.action else {}
        return {name: each.default for name, each in declared.items() if each.default is not None} | self.given

    @property
    def shell_texts(self) -> tuple[str, ...]:
        """The step's own script, and those of the repository that it runs."""
        return (self.run, *self.scripts.values())

    @property
    def script_texts(self) -> tuple[str, ...]:
        """The texts of all scripts of the step, that of ``actions/github-script`` among them."""
        is_script = self.uses.partition("@")[0].lower() == "actions/github-script"
        return (str(self.given.get("script", "")),) if is_script else tuple(filter(None, self.shell_texts))


_GROUPS = ("parallel", "background")
"""Keys of a step whose value may be steps: GitHub starts those of ``parallel`` at once, others in the background."""


_NOT_READ: dict[str, Any] = {"file": "", "users": (), "inner": (), "action": None, "scripts": {}, "own_name": ""}
"""Fields of a step that no file sets."""

_MOST_STEPS = 5000
MOST_LEVELS = 10
"""GitHub's limit for actions within actions, and for workflows that call each other."""


def _flat_steps(value: Any, place: str = "/steps") -> Any:
    """Return all steps of a job in order, each with its place, those of groups in place of the group."""
    if not isinstance(value, list):
        return [] if value is None else value
    steps: list[Any] = []
    for i, step in enumerate(value):
        here = place + pointer(i)
        groups = [key for key in _GROUPS if isinstance(step, dict) and isinstance(step.get(key), (list, dict))]
        if isinstance(step, dict) and not groups:
            steps.append({**step, **_NOT_READ, "place": here})
        elif not groups:
            steps.append(step)
        for key in groups:
            inner, below = step[key], here + pointer(key)
            if isinstance(inner, dict) and isinstance(inner.get("steps"), list):
                inner, below = inner["steps"], below + pointer("steps")
            if isinstance(inner, list):
                steps += _flat_steps(inner, below)
            else:
                steps.append({**inner, **_NOT_READ, "place": below})
    return steps


StepList = Annotated[list[Step], BeforeValidator(_flat_steps)]


class Job(_Open):
    """One job: its steps, those of groups among them, or the reusable workflow that it calls."""

    needs: Annotated[list[str], BeforeValidator(_names)] = []
    uses: str = ""
    given: Values = Field({}, alias="with")
    secrets: ValuesOrText = {}
    permissions: _Permissions = None
    outputs: Values = {}
    env: ValuesOrText = {}
    strategy: Any = None
    condition: str | bool | float | None = Field(None, alias="if")
    cache_mode: str | None = Field(None, alias="cache-mode")
    steps: StepList = []

    def nested_steps(self) -> Iterator[Step]:
        """Yield each step, followed by those of the action that it uses."""
        return itertools.islice(_nested_steps(self.steps), _MOST_STEPS)


def _nested_steps(steps: Iterable[Step]) -> Iterator[Step]:
    for step in steps:
        yield step
        yield from _nested_steps(step.inner)


class ActionInput(_Open):
    """An input of an action."""

    default: Any = None


class ActionRuns(_Open):
    """The steps of an action; only composite ones have any."""

    steps: StepList = []


class CompositeAction(_Open):
    """An ``action.yml``. Source: GitHub documentation, "Metadata syntax for GitHub Actions"."""

    inputs: OrNothing[dict[str, OrNothing[ActionInput]]] = {}
    outputs: OrNothing[dict[str, OrNothing[Output]]] = {}
    runs: ActionRuns


class Workflow(_Open):
    """A workflow file of GitHub Actions."""

    name: str = ""
    on: Annotated[Triggers, BeforeValidator(_triggers)]
    permissions: _Permissions = None
    env: ValuesOrText = {}
    cache_mode: str | None = Field(None, alias="cache-mode")
    jobs: dict[str, Job]

    @property
    def events(self) -> tuple[str, ...]:
        """The names of the events that start the workflow, ``workflow_call`` among them."""
        own = ("workflow_call", "workflow_dispatch")
        return (*(name for name in own if getattr(self.on, name) is not None), *(self.on.model_extra or {}))

    def filters(self, event: str) -> dict[str, Any]:
        """Return the filters of an event, such as ``branches``; empty without any."""
        given = (self.on.model_extra or {}).get(event)
        return given if isinstance(given, dict) else {}

    def filter_values(self, event: str, name: str) -> list[str]:
        """Return the values of a filter of an event, of which there may be one or several."""
        given = self.filters(event).get(name)
        return [str(value) for value in (given if isinstance(given, list) else [given]) if value is not None]

    def permissions_of(self, job: Job) -> dict[str, str] | str | None:
        """Return the permissions that a job declares, or its workflow for it."""
        return self.permissions if job.permissions is None else job.permissions

    def job(self, name: str) -> tuple[str, Job] | None:
        """Find a job by its id, as expressions do, without regard to case."""
        key = self._job_ids.get(name.lower())
        return (key, self.jobs[key]) if key is not None else None

    @cached_property
    def _job_ids(self) -> dict[str, str]:
        return {key.lower(): key for key in reversed(self.jobs)}


def run_default(name: str, *parts: Job | Workflow) -> str:
    """Return a default of scripts, such as ``shell``, from the first of a job and its workflow that has it."""
    values = (value_at(part.model_extra, ("defaults", "run", name)) for part in parts)
    return next((str(value) for value in values if value), "")
