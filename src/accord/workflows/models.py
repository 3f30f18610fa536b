"""Workflow files as far as we look into them; what else GitHub takes stays untouched.

Source: GitHub documentation, "Workflow syntax for GitHub Actions". Where GitHub takes several spellings (``on: push``,
``needs: build``, an empty ``workflow_call:``), the model has one.
"""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, StrictBool


def _mapping(value: Any) -> Any:
    return {} if value is None else value


def _names(value: Any) -> Any:
    return [value] if isinstance(value, str) else ([] if value is None else value)


def _triggers(value: Any) -> Any:
    names = [value] if isinstance(value, str) else value
    if isinstance(names, list) and all(isinstance(name, str) for name in names):
        return dict.fromkeys(names)
    return value


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


NamedInputs = Annotated[dict[str, Annotated[Input, BeforeValidator(_mapping)]], BeforeValidator(_mapping)]


class WorkflowCall(_Open):
    """Inputs, outputs and secrets of a reusable workflow."""

    inputs: NamedInputs = {}
    outputs: Annotated[dict[str, Annotated[Output, BeforeValidator(_mapping)]], BeforeValidator(_mapping)] = {}
    secrets: Annotated[dict[str, Annotated[WorkflowSecret, BeforeValidator(_mapping)]], BeforeValidator(_mapping)] = {}


class Dispatch(_Open):
    """Inputs of a workflow that people start."""

    inputs: NamedInputs = {}


class Triggers(_Open):
    """The events that start a workflow; others than these two are extra fields."""

    workflow_call: Annotated[WorkflowCall | None, BeforeValidator(_mapping)] = None
    workflow_dispatch: Annotated[Dispatch | None, BeforeValidator(_mapping)] = None


Values = Annotated[dict[str, Any], BeforeValidator(_mapping)]
ValuesOrText = Annotated[dict[str, Any] | str, BeforeValidator(_mapping)]


class Step(_Open):
    """One step of a job: ``uses`` or ``run``."""

    id: str = ""
    uses: str = ""
    run: str = ""
    shell: str = ""
    given: Values = Field({}, alias="with")
    env: ValuesOrText = {}


class Job(_Open):
    """One job: its steps, or the reusable workflow that it calls."""

    needs: Annotated[list[str], BeforeValidator(_names)] = []
    uses: str = ""
    given: Values = Field({}, alias="with")
    secrets: ValuesOrText = {}
    permissions: dict[str, str] | str | None = None
    outputs: Values = {}
    env: ValuesOrText = {}
    strategy: Any = None
    steps: Annotated[list[Step], BeforeValidator(lambda steps: [] if steps is None else steps)] = []


class Workflow(_Open):
    """A workflow file of GitHub Actions."""

    name: str = ""
    on: Annotated[Triggers, BeforeValidator(_triggers)]
    permissions: dict[str, str] | str | None = None
    env: ValuesOrText = {}
    jobs: dict[str, Job]

    def job(self, name: str) -> tuple[str, Job] | None:
        """Find a job by its id, as expressions do, without regard to case."""
        return next(((key, job) for key, job in self.jobs.items() if key.lower() == name.lower()), None)
