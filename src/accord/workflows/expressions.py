"""GitHub's expressions: what they read, what their value can be, and where an output of a workflow comes from.

``${{ inputs.skip && 'a' || 'b' }}`` reads an input, but its value is only ever ``a`` or ``b``. Source: GitHub
documentation, "Evaluate expressions in workflows and actions".
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from accord.core.findings import pointer

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping

    from accord.workflows.models import Job, Workflow


Reference = tuple[str, ...]
"""A context and its properties, such as ``("steps", "run", "outputs", "exit-code")``. Case is ignored."""

_EMBEDDED = re.compile(r"\$\{\{((?:[^'}]++|'[^']*+'|\}(?!\}))*+)(?:\}\}|(?P<open>))")
"""A doubled quotation mark is two texts side by side. An expression without an end is skipped in one step."""

_TOKEN = re.compile(
    r"\s*(?P<text>'(?:[^']|'')*'|[-+]?(?:0x[0-9A-Fa-f]+|\d+(?:\.\d+)?(?:[eE][-+]?\d+)?)(?![\w.])"
    r"|[A-Za-z_][\w-]*|&&|\|\||[!<>=]=|[()\[\],.!<>*])"
)
_LITERALS = frozenset({"true", "false", "null", "nan", "infinity"})
_VERDICTS = frozenset({"contains", "startswith", "endswith", "hashfiles", "success", "failure", "always", "cancelled"})
"""Functions whose result is true, false or a digest."""


@dataclass(frozen=True)
class Expression:
    """The references that an expression reads, and those that can be in its value (``yields``)."""

    reads: frozenset[Reference] = frozenset()
    yields: frozenset[Reference] = frozenset()

    def and_reads(self, *others: Expression) -> Expression:
        """Return the same value with the references of other expressions added to ``reads``."""
        return Expression(self.reads.union(*(other.reads for other in others)), self.yields)


_CONSTANT = Expression()


def embedded(text: str) -> Iterator[str]:
    """Yield each expression of a text, without its ``${{`` and ``}}``."""
    return (match.group(1).strip() for match in _EMBEDDED.finditer(text) if match["open"] is None)


@lru_cache(maxsize=4096)
def parse(expression: str) -> Expression | None:
    """Parse an expression; None when it is invalid."""
    tokens = []
    end = 0
    expression = expression.rstrip()
    while end < len(expression):
        match = _TOKEN.match(expression, end)
        if match is None:
            return None
        tokens.append(match["text"])
        end = match.end()
    reader = _ExpressionParser(tokens)
    try:
        found = reader.any_of()
    except (SyntaxError, RecursionError):
        return None
    return found if reader.is_at_end else None


class _ExpressionParser:
    """Recursive descent over the tokens of one expression."""

    def __init__(self, tokens: list[str]) -> None:
        self._tokens = tokens
        self._next = 0

    @property
    def is_at_end(self) -> bool:
        return self._next == len(self._tokens)

    def any_of(self) -> Expression:
        """``a || b``: the value is that of one of them."""
        found = self._all_of()
        while self._accept("||"):
            other = self._all_of()
            found = Expression(found.reads | other.reads, found.yields | other.yields)
        return found

    def _all_of(self) -> Expression:
        """``a && b``: the value is that of b, or of an a that is false, empty or zero."""
        found = self._comparison()
        while self._accept("&&"):
            found = self._comparison().and_reads(found)
        return found

    def _comparison(self) -> Expression:
        found = self._negation()
        while self._accept("==", "!=", "<", "<=", ">", ">="):
            found = _CONSTANT.and_reads(found, self._negation())
        return found

    def _negation(self) -> Expression:
        if self._accept("!"):
            return _CONSTANT.and_reads(self._negation())
        return self._value()

    def _value(self) -> Expression:
        if self._accept("("):
            found = self.any_of()
            self._expect(")")
        else:
            word = self._take().lower()
            if word[0] in "'+-" or word[0].isdigit() or word in _LITERALS:
                return _CONSTANT
            if not (word[0].isalpha() or word[0] == "_"):
                raise SyntaxError(word)
            if not self._accept("("):
                return self._reference(word)
            found = self._call(word)
        beside, _ = self._properties()
        return found.and_reads(beside)

    def _call(self, name: str) -> Expression:
        arguments = []
        while not self._accept(")"):
            arguments.append(self.any_of())
            if not self._accept(","):
                self._expect(")")
                break
        if name in _VERDICTS:
            return _CONSTANT.and_reads(*arguments)
        yields = frozenset[Reference]().union(*(argument.yields for argument in arguments))
        return Expression(yields=yields).and_reads(*arguments)

    def _reference(self, context: str) -> Expression:
        beside, properties = self._properties()
        reference = frozenset({(context, *properties)})
        return Expression(reference | beside.reads, reference)

    def _properties(self) -> tuple[Expression, list[str]]:
        """Read ``.name``, ``['name']``, ``.*`` and ``[expression]``, the last two as ``*``."""
        beside, names = _CONSTANT, []
        while True:
            if self._accept("."):
                name = self._take()
                if name != "*" and not (name[0].isalpha() or name[0] == "_"):
                    raise SyntaxError(name)
                names.append(name.lower())
            elif self._accept("["):
                names.append(self._literal_index())
                if names[-1] == "*" and not self._accept("*"):
                    beside = beside.and_reads(self.any_of())
                self._expect("]")
            else:
                return beside, names

    def _literal_index(self) -> str:
        """Take an index that is a text; return ``*`` and take nothing for any other index."""
        ahead = self._tokens[self._next : self._next + 2]
        if len(ahead) == 2 and ahead[0][0] == "'" and ahead[1] == "]":
            self._next += 1
            return ahead[0][1:-1].replace("''", "'").lower()
        return "*"

    def _accept(self, *wanted: str) -> bool:
        if not self.is_at_end and self._tokens[self._next] in wanted:
            self._next += 1
            return True
        return False

    def _expect(self, wanted: str) -> None:
        if not self._accept(wanted):
            raise SyntaxError(wanted)

    def _take(self) -> str:
        if self.is_at_end:
            raise SyntaxError("end")
        self._next += 1
        return self._tokens[self._next - 1]


@dataclass(frozen=True)
class Break:
    """Where and why an output is not connected. The job ``job``, if any, should set the output ``name`` from a step."""

    path: str
    reason: str
    job: str = ""
    name: str = ""


@dataclass(frozen=True)
class Wiring:
    """A workflow and the available workflows that it calls, by their value of ``uses``."""

    workflow: Workflow
    called: Mapping[str, Workflow]

    def break_of(self, value: Any, path: str) -> Break | None:
        """Follow the value of an output of ``workflow_call``; None when it comes from a step."""
        if value is None:
            return Break(path, "it has no value")
        references = reads(value)
        if references is None:
            return Break(path, f"its value {value!r} is not a valid expression")
        if stray := [ref for ref in references if ref[0] in {"steps", "needs"}]:
            return Break(path, f"{written(stray[0])} is not available there, only outputs of jobs are")
        jobs = [reference for reference in references if reference[0] == "jobs"]
        if not jobs:
            return Break(path, f"its value {value!r} comes from no job")
        return next((found for ref in jobs if (found := self._of_job(ref, path, frozenset()))), None)

    def crossed(self, name: str, value: Any, path: str, others: Collection[str]) -> Break | None:
        """Find where an output is connected to another output's source instead of its own."""
        ends = list(self._ends(name, value, (path, ""), frozenset()))
        if any(ref[-1] == name for ref, _, _ in ends):
            return None
        wrong = next((end for end in ends if end[0][-1] in others), None)
        if wrong is None:
            return None
        ref, place, job = wrong
        reason = f"{written(ref)} is the source of the output `{ref[-1]}`"
        return Break(place, reason, job, name if job else "")

    def _ends(
        self, own: str, value: Any, at: tuple[str, str], above: frozenset[Reference]
    ) -> Iterator[tuple[Reference, str, str]]:
        """Yield the last outputs that a value reads, each with the last pointer and job under its own name."""
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
            return Break(path, f"{written(ref)} is not an output of a job")
        found = self.workflow.job(ref[1])
        if found is None:
            return Break(path, f"the job `{ref[1]}` does not exist")
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
            return Break(path, f"its value {value!r} is not a valid expression")
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
    """Return the references that the expressions in a value read; None when one of them is invalid."""
    found: set[Reference] = set()
    for expression in embedded(str(value)):
        parsed = parse(expression)
        if parsed is None:
            return None
        found |= parsed.reads
    return sorted(found)


def written(reference: Reference) -> str:
    """Return a reference as workflows write it."""
    return ".".join(reference)


def all_reads(node: Any) -> Iterator[Reference]:
    """Yield all references in a part of a workflow, also in conditions without ``${{``."""
    if isinstance(node, dict):
        for key, child in node.items():
            bare = parse(child) if key == "if" and isinstance(child, str) and "${{" not in child else None
            yield from bare.reads if bare else all_reads(child)
    elif isinstance(node, list):
        for child in node:
            yield from all_reads(child)
    elif isinstance(node, str):
        yield from reads(node) or ()
