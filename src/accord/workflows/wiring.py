"""Whether an output of a reusable workflow comes from somewhere: followed from its value to the job and to the step.

GitHub takes an output that names a job or a step that is not there, and the caller gets an empty text without a word.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from accord.core.findings import pointer
from accord.workflows.expressions import Reference, embedded, parse

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping

    from accord.workflows.files import Job, Workflow


@dataclass(frozen=True)
class Break:
    """Where the way of an output ends, and why; ``job`` has steps, and should give the output ``name`` from one."""

    path: str
    reason: str
    job: str = ""
    name: str = ""


@dataclass(frozen=True)
class Wiring:
    """A workflow, and those that it calls, as far as they are at hand, by how ``uses`` names them."""

    workflow: Workflow
    called: Mapping[str, Workflow]

    def break_of(self, value: Any, path: str) -> Break | None:
        """Follow the value of an output of ``workflow_call``; None when it comes from a job, all the way."""
        if value is None:
            return Break(path, "it has no value")
        references = reads(value)
        if references is None:
            return Break(path, f"its value {value!r} is no expression that GitHub can read")
        if stray := [ref for ref in references if ref[0] in {"steps", "needs"}]:
            return Break(path, f"{written(stray[0])} cannot be seen from there, only outputs of jobs can")
        jobs = [reference for reference in references if reference[0] == "jobs"]
        if not jobs:
            return Break(path, f"its value {value!r} comes from no job")
        return next((found for ref in jobs if (found := self._of_job(ref, path, frozenset()))), None)

    def crossed(self, name: str, value: Any, path: str, others: Collection[str]) -> Break | None:
        """Find where an output takes the way of another one: it ends in that one's name, and nowhere in its own."""
        ends = list(self._ends(name, value, (path, ""), frozenset()))
        if any(ref[-1] == name for ref, _, _ in ends):
            return None
        wrong = next((end for end in ends if end[0][-1] in others), None)
        if wrong is None:
            return None
        ref, place, job = wrong
        reason = f'{written(ref)} is what the output "{ref[-1]}" holds'
        return Break(place, reason, job, name if job else "")

    def _ends(
        self, own: str, value: Any, at: tuple[str, str], above: frozenset[Reference]
    ) -> Iterator[tuple[Reference, str, str]]:
        """Follow a value to the last outputs that it reads, each with the last place and job under its own name."""
        for ref in reads(value) or ():
            if len(ref) != 4 or ref[2] != "outputs" or ref in above:
                continue
            found = self.workflow.job(ref[1]) if ref[0] in {"jobs", "needs"} else None
            name = next((key for key in found[1].outputs if key.lower() == ref[3]), None) if found else None
            if found is None or name is None or found[1].uses:
                yield ref, *at
            else:
                place = (pointer("jobs", found[0], "outputs", name), found[0]) if ref[3] == own else at
                yield from self._ends(own, found[1].outputs[name], place, above | {ref})

    def _of_job(self, ref: Reference, path: str, above: frozenset[Reference]) -> Break | None:
        """Follow ``jobs.<job>.outputs.<name>`` or ``needs.<job>.outputs.<name>``, named at ``path``."""
        if len(ref) == 3 and ref[2] == "result":
            return None
        if len(ref) != 4 or ref[2] != "outputs":
            return Break(path, f"{written(ref)} is no output of a job")
        found = self.workflow.job(ref[1])
        if found is None:
            return Break(path, f'there is no job "{ref[1]}"')
        job_id, job = found
        if job.uses:
            return self._of_call(job, ref, path)
        name = next((key for key in job.outputs if key.lower() == ref[3]), None)
        if name is None:
            return Break(path, f'the job "{job_id}" has no output "{ref[3]}"', job_id, ref[3])
        if ref in above:
            return Break(path, f"{written(ref)} comes from itself")
        found_break = self._of_steps(job, job.outputs[name], pointer("jobs", job_id, "outputs", name), above | {ref})
        return (
            replace(found_break, job=found_break.job or job_id, name=found_break.name or name) if found_break else None
        )

    def _of_call(self, job: Job, ref: Reference, path: str) -> Break | None:
        target = self.called.get(job.uses)
        call = target.on.workflow_call if target else None
        if call is None or ref[3] in {name.lower() for name in call.outputs}:
            return None
        return Break(path, f'{job.uses} has no output "{ref[3]}"')

    def _of_steps(self, job: Job, value: Any, path: str, above: frozenset[Reference]) -> Break | None:
        references = reads(value)
        if references is None:
            return Break(path, f"its value {value!r} is no expression that GitHub can read")
        sources = [ref for ref in references if ref[0] in {"steps", "needs"}]
        if not sources:
            return Break(path, f"its value {value!r} comes from no step")
        steps = {step.id.lower() for step in job.steps if step.id}
        for ref in sources:
            if ref[0] == "steps" and (len(ref) < 3 or ref[1] not in steps):
                return Break(path, f'no step of that job has the id "{(*ref, "")[1]}"')
            if ref[0] == "needs" and (len(ref) < 3 or ref[1] not in {name.lower() for name in job.needs}):
                return Break(path, f'that job does not need a job "{(*ref, "")[1]}"')
            if ref[0] == "needs" and (found := self._of_job(ref, path, above)):
                return found
        return None


def reads(value: Any) -> list[Reference] | None:
    """List what the expressions in a value read; None when one of them cannot be read."""
    found: set[Reference] = set()
    for expression in embedded(str(value)):
        parsed = parse(expression)
        if parsed is None:
            return None
        found |= parsed.reads
    return sorted(found)


def written(reference: Reference) -> str:
    """Write a reference as a workflow does."""
    return ".".join(reference)


def all_reads(node: Any) -> Iterator[Reference]:
    """Yield everything that any expression within a part of a workflow reads, conditions without ``${{`` included."""
    if isinstance(node, dict):
        for key, child in node.items():
            bare = parse(child) if key == "if" and isinstance(child, str) and "${{" not in child else None
            yield from bare.reads if bare else all_reads(child)
    elif isinstance(node, list):
        for child in node:
            yield from all_reads(child)
    elif isinstance(node, str):
        yield from reads(node) or ()
