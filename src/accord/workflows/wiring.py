"""Where the outputs of a workflow come from, and which of its inputs have an effect.

An output is followed to the step that sets it: into workflows of the repository, to the value that a composite action
of the repository gives it, or into a script as far as its text tells.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import field, replace
from typing import Any, NamedTuple

from accord.core.findings import pointer
from accord.core.frozen import Frozen
from accord.workflows.agents import shipped_agents
from accord.workflows.expressions import Node, Reference, all_reads, embedded_expressions, parse_condition, reads
from accord.workflows.models import Job, Output, Step, Workflow, run_default
from accord.workflows.trust import CALLED, Actor, value_of
from accord.workflows.writes import written_names


class OutputLink(NamedTuple):
    """A link of an output's chain."""

    path: str
    job: str = ""  # empty for an output of the workflow
    name: str = ""  # of the output


_End = tuple[tuple[OutputLink, ...], Reference]
"""The end of a chain: an output of a step, or of a job of another workflow. Without a reference, the chain goes on."""


class Break(NamedTuple):
    """Where and why an output is not connected. A link of a job should be set from a step, or as the hint says."""

    link: OutputLink
    reason: str
    hint: str = ""
    is_empty: bool = False  # the link is an empty text
    is_constant: bool = False  # the value of the workflow's output reads nothing


_OPERATOR = re.compile(r"'[^']*'|([=!<>]|\w\s*\()")
_MOST_CALLS = 10
"""GitHub's limit for workflows that call each other."""

_EMPTY = re.compile(r"\s*(?:\$\{\{\s*''\s*\}\}\s*)?")


class Wiring(Frozen):
    """A workflow and the available workflows that it calls, directly or further down, by their value of ``uses``."""

    workflow: Workflow
    called: Mapping[str, Workflow]
    depth: int = 0
    """How many calls lead to the workflow."""

    judged: dict[tuple[str, str], Break | None] = field(default_factory=dict)
    """The outputs of called workflows that were followed, by ``uses`` and name; None for those that may be set."""

    def break_of(self, value: Any, path: str) -> Break | None:
        """Follow the value of an output of ``workflow_call``; None when it comes from a step."""
        return next((end for end in self._ends(value, OutputLink(path)) if isinstance(end, Break)), None)

    def crossed_output(self, name: str, value: Any, path: str, others: Collection[str]) -> Break | None:
        """Find where an output is connected to another output's source instead of its own; a comparison is neither."""
        ends = [end for end in self._ends(value, OutputLink(path, name=name)) if not isinstance(end, Break)]
        chain, ref = next(((chain, ref) for chain, ref in ends if ref[-1] in others), ((), ()))
        values = [value, *(self.workflow.jobs[link.job].outputs[link.name] for link in chain if link.job)]
        if not ref or any(map(_is_computed, values)):
            return None
        if any(ref[-1] == name for _, ref in ends):
            return self._crossed_in_call(ref, chain[-1], others) if len(ends) == 1 else None
        link = next(link for link in reversed(chain) if link.name.lower() == name)
        return Break(link, f"{'.'.join(ref)} is the source of the output `{ref[-1]}`")

    def idle_at(self, value: Any) -> str:
        """Return the place of a condition that keeps an output from being set in every run; empty without one."""
        found = [end for end in self._ends(value, OutputLink("")) if not isinstance(end, Break)]
        places = [next(self._idle_parts(chain, ref), "") for chain, ref in found]
        return places[0] if places and all(places) else ""

    def _idle_parts(self, chain: tuple[OutputLink, ...], ref: Reference) -> Iterator[str]:
        """Yield the conditions of the jobs and the step on a chain that are false unless the caller skips the run."""
        jobs = {link.job: self.workflow.jobs[link.job] for link in chain if link.job}
        found = self.workflow.job(ref[1]) if ref[0] != "steps" else None
        jobs |= {found[0]: found[1]} if found else {}
        yield from (pointer("jobs", name, "if") for name, job in jobs.items() if _is_idle(job))
        for step in jobs[chain[-1].job].steps if ref[0] == "steps" else ():
            if step.id.lower() == ref[1] and _is_idle(step):
                yield pointer("jobs", chain[-1].job) + step.place + "/if"

    def _ends(self, value: Any, start: OutputLink) -> Iterator[Break | _End]:
        """Yield the ends of all sources of a value. Each output of a job is followed once."""
        walks, seen = [self._sources(value, (start,))], set[OutputLink]()
        while walks:
            found = next(walks[-1], None)
            if found is None:
                walks.pop()
            elif isinstance(found, Break) or found[1]:
                yield found
            elif (link := found[0][-1]) not in seen:
                seen.add(link)
                walks.append(self._sources(self.workflow.jobs[link.job].outputs[link.name], found[0]))

    def _sources(self, value: Any, chain: tuple[OutputLink, ...]) -> Iterator[Break | _End]:
        """Yield where a value, which is that of the last link, comes from."""
        link = chain[-1]
        references = reads(value)
        stray = [ref for ref in references or () if not link.job and ref[0] in {"steps", "needs"}]
        sources = [ref for ref in references or () if ref[0] in ({"steps", "needs"} if link.job else {"jobs"})]
        if value is None and not link.job:
            yield Break(link, "it has no value")
        elif references is None:
            yield Break(link, f"its value {value!r} is not a valid expression")
        elif stray:
            yield Break(link, f"{'.'.join(stray[0])} is not available there, only outputs of jobs are")
        elif not sources:
            is_empty, is_constant = _EMPTY.fullmatch(str(value)) is not None, not (link.job or references)
            reason = f"its value {value!r} comes from no {'step' if link.job else 'job'}"
            yield Break(link, reason, is_empty=is_empty, is_constant=is_constant)
        for ref in () if stray else sources:
            if ref[0] != "steps":
                yield from self._of_job(ref, chain)
                continue
            job = self.workflow.jobs[link.job]
            found = _unset(job.steps, ref, link, set(), run_default("shell", job, self.workflow))
            if found or len(ref) == 4:
                yield found or (chain, ref)

    def _break_in_call(self, uses: str, name: str, link: OutputLink) -> Break | None:
        """Return why a called workflow does not set an output; None if it may, or is not at hand."""
        inner = self._callee(uses)
        if inner is None or (uses, name) in self.judged:
            found = self.judged.get((uses, name))
            return found and found._replace(link=link)
        self.judged[uses, name] = None  # for workflows that call each other
        output = inner.output(name)
        found = inner.break_of(output.value, link.path) if output else Break(link, f'{uses} has no output "{name}"')
        self.judged[uses, name] = found and (_break_behind(uses, link, found) if output else found)
        return self.judged[uses, name]

    def _crossed_in_call(self, ref: Reference, link: OutputLink, others: Collection[str]) -> Break | None:
        _, job = (self.workflow.job(ref[1]) if ref[0] != "steps" else None) or ("", None)
        inner = self._callee(job.uses) if job else None
        output = inner.output(ref[-1]) if inner else None
        found = inner.crossed_output(ref[-1], output.value, link.path, others) if inner and output else None
        return _break_behind(job.uses, link, found) if job and found else None

    def _callee(self, uses: str) -> Wiring | None:
        target = self.called.get(uses)
        if target is None or target.on.workflow_call is None or self.depth == _MOST_CALLS:
            return None
        return Wiring(target, self.called, self.depth + 1, self.judged)

    def output(self, name: str) -> Output | None:
        """Return an output of the workflow by its name in lower case."""
        outputs = self.workflow.on.workflow_call.outputs if self.workflow.on.workflow_call else {}
        return next((each for key, each in outputs.items() if key.lower() == name), None)

    def _of_job(self, ref: Reference, chain: tuple[OutputLink, ...]) -> Iterator[Break | _End]:
        """Follow ``jobs.<job>.outputs.<name>`` or ``needs.<job>.outputs.<name>``."""
        link = chain[-1]
        job_id, job = (self.workflow.job(ref[1]) if ref[1:] else None) or ("", None)
        if link.job and (len(ref) < 3 or ref[1] not in map(str.lower, self.workflow.jobs[link.job].needs)):
            yield Break(link, f'that job does not need a job "{(*ref, "")[1]}"')
        elif ref[2:] == ("result",):
            return
        elif len(ref) != 4 or ref[2] != "outputs":
            yield Break(link, f"{'.'.join(ref)} is not an output of a job")
        elif job is None:
            yield Break(link, f"the job `{ref[1]}` does not exist")
        elif job.uses:
            yield self._break_in_call(job.uses, ref[3], link) or (chain, ref)
        elif (output := next((key for key in job.outputs if key.lower() == ref[3]), None)) is None:
            yield Break(OutputLink(link.path, job_id, ref[3]), f'the job "{job_id}" has no output "{ref[3]}"')
        elif (following := OutputLink(pointer("jobs", job_id, "outputs", output), job_id, output)) in chain:
            yield Break(link, f"{'.'.join(ref)} comes from itself")
        else:
            yield (*chain, following), ()


def _break_behind(uses: str, link: OutputLink, found: Break) -> Break:
    """Return a break of a called workflow as one of its caller's link."""
    file = uses.partition("/")[2]
    hint = f"# in {file}:\n{found.hint}" if found.hint else f"Connect the output in `{file}`."
    return found._replace(link=link, reason=f"in `{uses}`, {found.reason}", hint=hint)


def _unset(
    steps: Iterable[Step], ref: Reference, link: OutputLink, seen: set[tuple[int, str]], shell: str = ""
) -> Break | None:
    """Return why no step sets ``steps.ID.outputs.NAME``; None if one does, or may."""
    step = next((step for step in steps if len(ref) > 2 and step.id and step.id.lower() == ref[1]), None)
    if step is None:
        return Break(link, f'no step there has the id "{(*ref, "")[1]}"')
    name = ref[3] if len(ref) == 4 else ""
    if name and step.action and step.inner:
        if (id(step), name) in seen:
            return None
        seen.add((id(step), name))
        values = {key.lower(): given.value for key, given in step.action.outputs.items()}
        if (value := values.get(name)) is None or _EMPTY.fullmatch(str(value)):
            hint = f"# in the outputs of {step.uses}:\n{name}:\n  value: ${{{{ steps.STEP.outputs.{name} }}}}"
            what = "has no output" if value is None else "sets nothing as the output"
            return Break(link, f'`{step.uses}` {what} "{name}"', hint, is_empty=value is not None)
        inner = [each for each in reads(value) or () if each[0] == "steps"]
        if not inner:
            return Break(link, f'the output "{name}" of `{step.uses}` comes from none of its steps')
        return next(filter(None, (_unset(step.inner, each, link, seen) for each in inner)), None)
    is_shell = bool(step.run) and (step.shell or shell) in {"", "bash", "sh"}
    names = written_names(step.shell_texts, step.scripts, shipped_agents().programs) if name and is_shell else None
    if names is not None and name not in names:
        hint = f'# in the script of the step `{step.id}`:\necho "{name}=VALUE" >> "$GITHUB_OUTPUT"'
        return Break(link, f'the script of the step `{step.id}` never sets "{name}"', hint)
    return None


def _is_computed(value: Any) -> bool:
    return any(hit[1] for each in embedded_expressions(str(value)) for hit in _OPERATOR.finditer(each))


def _is_idle(part: Step | Job) -> bool:
    condition = parse_condition(part.condition)
    return condition is not None and not value_of(_unskipped_condition(condition), CALLED, Actor.WRITER)


def _unskipped_condition(node: Node) -> Node:
    """Return a condition as it is where the caller does not skip the run."""
    if node.reference == ("inputs", "skip"):
        return Node("literal", value=False)
    return replace(node, parts=tuple(map(_unskipped_condition, node.parts)))


def inputs_of(workflow: Workflow) -> set[str]:
    """Return the inputs that a workflow reads, in lower case, ``*`` for all of them.

    A value counts only if the repository's action that gets it reads it.
    """
    jobs = [job.model_dump(by_alias=True, exclude={"steps"}) for job in workflow.jobs.values()]
    steps = (step for job in workflow.jobs.values() for step in job.steps)
    return _named_inputs([workflow.env, *jobs]) | _inputs_of_steps(steps)


def inputs_of_action(step: Step) -> set[str]:
    """Return the inputs that the composite action of a step reads."""
    outputs = step.action.outputs.values() if step.action else ()
    return _named_inputs([each.value for each in outputs]) | _inputs_of_steps(step.inner)


def _inputs_of_steps(steps: Iterable[Step]) -> set[str]:
    found = set[str]()
    for step in steps:
        used = inputs_of_action(step)
        given = [value for key, value in step.given.items() if not step.inner or used & {key.lower(), "*"}]
        found |= _named_inputs([step.model_dump(by_alias=True, exclude={"given"}), given])
    return found


def _named_inputs(node: Any) -> set[str]:
    return {(*ref, "*")[1] for ref in all_reads(node) if ref[0] == "inputs"}
