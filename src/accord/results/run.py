"""Results of every kind: read one from bytes, check it, apply it; and the examples that accord ships."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from accord.core.documents import Document, read_object
from accord.core.errors import BrokenContract, WrongUsage
from accord.core.findings import Finding, with_lines
from accord.core.frozen import Frozen
from accord.core.kinds import kind_for
from accord.core.log import log
from accord.core.shapes import read_shape
from accord.engine.operations import ApplyOptions
from accord.engine.receipts import Receipt
from accord.results.models import ImplementorResult, PlannerResult
from accord.results.planner.rules import read_plan
from accord.results.run_options import PlanOptions, ReviewOptions, RevisionOptions

if TYPE_CHECKING:
    from accord.github.client import GitHub


APPLICABLE = ("implementor-result", "planner-result", "reviewer-result")


class CheckedResult(Frozen):
    """A document with kind, model (a ``Plan`` for a planner result; None without the shape) and findings."""

    kind: str
    model: Any
    findings: Sequence[Finding]
    document: Document | None = None

    def with_lines(self, findings: Sequence[Finding]) -> Sequence[Finding]:
        """Give findings their lines in the document, which are looked up only for these."""
        return with_lines(findings, self.document.lines) if findings and self.document else findings


def read_result(raw: bytes, only: str | None = None) -> CheckedResult:
    """Read and check a document once. ``only`` is the one accepted kind; without it the document tells its kind."""
    kind, document = only or "unknown", None
    model: Any = None
    try:
        document = read_object(raw)
        found = kind_for(only, document.value)
        kind, model = found.name, read_shape(found.model, document.value)
        if isinstance(model, PlannerResult):
            model = read_plan(model)
            findings = model.findings
        else:
            findings = found.findings(model)
    except BrokenContract as broken:
        findings = list(broken.findings)
    checked = CheckedResult(kind, model, findings, document)
    return replace(checked, findings=checked.with_lines(findings))


def apply_result(github: GitHub, result: CheckedResult, options: ApplyOptions) -> Receipt:
    """Apply a checked result with the options of its kind. Raises WrongUsage for a kind that has none."""
    match options:
        case PlanOptions():
            from accord.results.planner.run import apply_plan

            receipt = apply_plan(github, result.model, options)
        case RevisionOptions():
            from accord.results.implementor.run import apply_implementation

            receipt = apply_implementation(github, result.model, options)
        case ReviewOptions():
            from accord.results.reviewer.run import apply_review

            receipt = apply_review(github, result.model, options)
        case _:
            message = f"A document of the kind {result.kind} can be checked, but not applied."
            raise WrongUsage(message, hint=f"Apply one of {', '.join(APPLICABLE)}.")
    receipt.findings = [*result.with_lines(receipt.findings)]
    codes = [finding.code for finding in receipt.findings]
    log("result", "%s %s: %s, findings %s", receipt.kind, receipt.run_key, receipt.outcome, codes)
    return receipt


def with_patch(raw: bytes, patch: bytes, name: str) -> dict[str, object]:
    """Return an implementor result with its patch; a completed one without a change becomes a validation failure."""
    try:
        document = read_object(raw)
        result = read_shape(ImplementorResult, {"patch": None, **document.value}).model_dump()
    except BrokenContract as broken:
        first = broken.findings[0].text if broken.findings else broken.message
        raise BrokenContract(f"{name} is not an implementor result: {first}", findings=broken.findings) from None
    if result["outcome"] != "completed":
        return {**result, "patch": None}
    if patch.strip():
        return {**result, "patch": patch.decode()}
    reason = (
        "Step: comparing the work tree with its base, which found no change.\n"
        "Tried: what the agent reports below.\n"
        "Outside: the agent reported completed work, but left no change that accord can take."
    )
    return {**result, "outcome": "validation-failure", "patch": None, "summary": f"{reason}\n\n{result['summary']}"}


def example_folder(name: str = "contacts") -> Path:
    """Return the folder of an example, in the installed package or the checkout."""
    package = Path(__file__).parents[1]
    installed = package / "examples"
    examples = installed if installed.exists() else package.parents[1] / "examples"
    return examples if name == "contacts" else examples / "repositories" / name
