"""What actions and workflows say of themselves: inputs, outputs, secrets and permissions."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from accord import __version__
from accord.kit.manifest import with_pin
from accord.text.markdown import table
from accord.workflows import conform as contract
from reference.text import default, plain

if TYPE_CHECKING:
    from collections.abc import Mapping


def quoted(workflow: Path) -> str:
    """Show a template of the kit, with a pin to fill in."""
    return f"```yaml\n{with_pin(workflow.read_text(encoding='utf-8'), f'<sha> # v{__version__}')}```"


def contract_inputs() -> str:
    """List the inputs that every runner takes."""
    rows = [[f"`{i.name}`", i.type, "yes" if i.is_required else "no", plain(i.description)] for i in contract.INPUTS]
    return table(["Input", "Type", "Required", "Meaning"], rows)


def contract_outputs() -> str:
    """List the outputs that accord's runners give, and which of them every runner gives."""
    rows = [
        [f"`{name}`", "yes" if name in contract.OUTPUTS else "no", plain(meaning)]
        for name, meaning in contract.described_outputs().items()
    ]
    return table(["Output", "In the contract", "Meaning"], rows)


def inputs_table(inputs: Mapping[str, Mapping[str, Any]]) -> str:
    """List inputs: name, whether it must be given, default, description."""
    if not inputs:
        return "There are no inputs."
    rows = [
        [
            f"`{name}`",
            "yes" if is_true(given.get("required")) else "no",
            default(given.get("default")),
            plain(given["description"]),
        ]
        for name, given in inputs.items()
    ]
    return table(["Input", "Required", "Default", "Meaning"], rows)


def secrets_table(secrets: Mapping[str, Mapping[str, Any]]) -> str:
    """List secrets: name, whether it must be given, description."""
    if not secrets:
        return "There are no secrets."
    rows = [
        [f"`{name}`", "yes" if is_true(s.get("required")) else "no", plain(s["description"])]
        for name, s in secrets.items()
    ]
    return table(["Secret", "Required", "Meaning"], rows)


def outputs_table(outputs: Mapping[str, Mapping[str, Any]]) -> str:
    """List outputs: name, description."""
    if not outputs:
        return "There are no outputs."
    return table(["Output", "Meaning"], [[f"`{name}`", plain(given["description"])] for name, given in outputs.items()])


def permissions_table(jobs: Mapping[str, Mapping[str, Any]]) -> str:
    """List what each job may do; the calling job must grant as much."""
    rows = [
        [f"`{job}`", ", ".join(f"`{area}: {level}`" for area, level in given.get("permissions", {}).items()) or "none"]
        for job, given in jobs.items()
    ]
    return table(["Job", "Permissions"], rows)


def is_true(value: Any) -> bool:
    """Tell whether YAML says true, as a word or as text."""
    return str(value).lower() == "true"
