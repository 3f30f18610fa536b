"""Where the outputs of a workflow come from, and which of its inputs have an effect.

An output is followed to the step that sets it: into workflows of the repository, to the value that a composite action
of the repository gives it, or into a script as far as its text tells.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from itertools import pairwise
from typing import Any, NamedTuple

from accord.core.findings import pointer
from accord.core.frozen import Frozen
from accord.workflows.agents import shipped_agents
from accord.workflows.commands import commands_of, program_of
from accord.workflows.expressions import Reference, all_reads, embedded_expressions, reads
from accord.workflows.models import MOST_LEVELS, Job, Step, Workflow, run_default
from accord.workflows.origins import lines_of
from accord.workflows.trust import CALLED, Actor, ExpressionValue, Known, is_off, value_of


class OutputLink(NamedTuple):
    """A link of an output's chain."""

    path: str
    value: Any
    job: str = ""  # empty for an output of a workflow
    name: str = ""  # of the output
    uses: str = ""  # the called workflow that it is in; empty for the first one
    read: Reference = ()  # by which the caller of that workflow reads the output


_Chain = tuple[OutputLink, ...]
_End = tuple[_Chain, Reference]
"""The end of a chain: an output of a step, or of a job of another workflow. Without a reference, the chain goes on."""


class Break(NamedTuple):
    """Where and why an output is not connected. A link of a job should be set from a step, or as the hint says."""

    link: OutputLink
    reason: str
    hint: str = ""
    is_empty: bool = False  # the link is an empty text
    is_constant: bool = False  # the value of the workflow's output reads nothing


_OPERATOR = re.compile(r"'[^']*'|([=!<>]|\w\s*\()")
_EMPTY = re.compile(r"\s*(?:\$\{\{\s*''\s*\}\}\s*)?")


class Wiring(Frozen):
    """A workflow and the available workflows that it calls, directly or further down, by their value of ``uses``."""

    workflow: Workflow
    called: Mapping[str, Workflow]

    def break_of(self, value: Any, path: str) -> Break | None:
        """Follow the value of an output of ``workflow_call``; None when it comes from a step."""
        return next((end for end in self._ends(OutputLink(path, value)) if isinstance(end, Break)), None)

    def crossed_output(self, name: str, value: Any, path: str, others: Collection[str]) -> Break | None:
        """Find where an output is connected to another output's source instead of its own; a comparison is neither."""
        ends = [end for end in self._ends(OutputLink(path, value, name=name)) if not isinstance(end, Break)]
        chain, ref = next(((chain, ref) for chain, ref in ends if ref[-1] in others), ((), ()))
        values = [each for link in chain for each in embedded_expressions(str(link.value))]
        is_computed = any(hit[1] for each in values for hit in _OPERATOR.finditer(each))
        if not ref or is_computed or any(ref[-1] == name for _, ref in ends):
            return None
        last = max(i for i, link in enumerate(chain, 1) if link.name.lower() == name)
        read = next((link.read for link in chain[last:] if link.read), ref)
        reason = f"{'.'.join(read)} is the source of the output `{ref[-1]}`"
        return _for_caller(Break(chain[last - 1], reason), chain[:last])

    def fixed_value(self, value: Any, known: Known, job_id: str = "", depth: int = 0) -> tuple[ExpressionValue, str]:
        """Return an output's value with these inputs, an ellipsis if a step decides, and a condition that is off."""
        found, place = {**known}, ""
        for ref in (ref for ref in reads(value) or () if ref[2:3] == ("outputs",) and ref[3:]):
            name, job = self.workflow.job(job_id if ref[0] == "steps" else ref[1]) or ("", Job())
            at, step = "", next((step for step in job.steps if ref[0] == "steps" and step.id.lower() == ref[1]), None)
            if is_off((step or job).condition, CALLED, Actor.WRITER, known):
                found[ref], at = "", pointer("jobs", name) + (step.place if step else "") + "/if"
            elif step is None and depth < MOST_LEVELS:
                values = {key.lower(): each for key, each in job.outputs.items()}
                found[ref], at = self.fixed_value(values.get(ref[3], "${{"), known, name, depth + 1)
            place = place or at
        return value_of(value, CALLED, Actor.WRITER, found), place

    def _ends(self, start: OutputLink) -> Iterator[Break | _End]:
        """Yield the ends of all sources of a value. Each output of a job or a called workflow is followed once."""
        first: _Chain = (start,)
        walks, seen = [(first, self._sources(first))], set[tuple[str, str]]()
        while walks:
            chain, sources = walks[-1]
            found = next(sources, None)
            if found is None:
                walks.pop()
            elif isinstance(found, Break):
                yield _for_caller(found, chain)
            elif found[1]:
                yield found
            elif (key := (found[0][-1].uses, found[0][-1].path)) not in seen:
                seen.add(key)
                walks.append((found[0], self._sources(found[0])))

    def _sources(self, chain: _Chain) -> Iterator[Break | _End]:
        link, value = chain[-1], chain[-1].value
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
        workflow = self.called[link.uses] if link.uses else self.workflow
        for ref in () if stray else sources:
            if ref[0] != "steps":
                yield from self._of_job(ref, chain, workflow)
                continue
            job = workflow.jobs[link.job]
            found = _unset(job.steps, ref, link, set(), run_default("shell", job, workflow))
            if found or len(ref) == 4:
                yield found or (chain, ref)

    def _of_job(self, ref: Reference, chain: _Chain, workflow: Workflow) -> Iterator[Break | _End]:
        """Follow ``jobs.<job>.outputs.<name>`` or ``needs.<job>.outputs.<name>``."""
        link = chain[-1]
        job_id, job = (workflow.job(ref[1]) if ref[1:] else None) or ("", None)
        target = self.called.get(job.uses) if job else None
        is_deep = sum(bool(link.read) for link in chain) >= MOST_LEVELS
        call = target.on.workflow_call if target and not is_deep else None
        if link.job and (len(ref) < 3 or ref[1] not in map(str.lower, workflow.jobs[link.job].needs)):
            yield Break(link, f'that job does not need a job "{(*ref, "")[1]}"')
        elif ref[2:] == ("result",):
            return
        elif len(ref) != 4 or ref[2] != "outputs":
            yield Break(link, f"{'.'.join(ref)} is not an output of a job")
        elif job is None:
            yield Break(link, f"the job `{ref[1]}` does not exist")
        elif job.uses and call is None:
            yield chain, ref
        else:
            values = {key: each.value for key, each in call.outputs.items()} if call else job.outputs
            name = next((key for key in values if key.lower() == ref[3]), None)
            if name is None:
                owner, missing = f'the job "{job_id}"', OutputLink(link.path, "", job_id, ref[3])
                yield Break(link if call else missing, f'{job.uses if call else owner} has no output "{ref[3]}"')
                return
            following = OutputLink(pointer("jobs", job_id, "outputs", name), values[name], job_id, name, link.uses)
            if following in chain:
                yield Break(link, f"{'.'.join(ref)} comes from itself")
            elif call:
                yield (*chain, OutputLink(pointer("outputs", name), values[name], "", name, job.uses, ref)), ()
            else:
                yield (*chain, following), ()


def _for_caller(found: Break, chain: _Chain) -> Break:
    """Return a break at the end of a chain as one of the first workflow's link."""
    for before, link in reversed([*pairwise(chain)]):
        if link.read:
            file = link.uses.partition("/")[2]
            hint = f"# in {file}:\n{found.hint}" if found.hint else f"Connect the output in `{file}`."
            found = found._replace(link=before, reason=f"in `{link.uses}`, {found.reason}", hint=hint)
    return found


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
    if name and is_shell and _never_sets(step.run, name):
        hint = f'# in the script of the step `{step.id}`:\necho "{name}=VALUE" >> "$GITHUB_OUTPUT"'
        return Break(link, f'the script of the step `{step.id}` never sets "{name}"', hint)
    return None


PLAIN_COMMANDS = frozenset({
    "", ":", "[", "[[", "awk", "base64", "basename", "break", "case", "cat", "cd", "command", "continue", "cp", "cut",
    "date", "declare", "dirname", "done", "echo", "env", "esac", "exec", "exit", "export", "false", "fi", "for",
    "function", "gh", "git", "grep", "head", "jq", "local", "ls", "mkdir", "mv", "npx", "printf", "read", "return",
    "rm", "sed", "set", "shift", "sleep", "sort", "sudo", "tail", "tee", "test", "time", "timeout", "touch", "tr",
    "true", "unset", "wait", "wc", "{", "}",
})  # fmt: skip
"""Commands that, like agents, write no outputs of their own. Any other program may: the file is in its environment."""

_COMMENT = re.compile(r"(?:^|(?<=\s))#[^\"'\n]*$", re.MULTILINE)
_WORD = re.compile(r"[\w-]+")
_FUNCTION = re.compile(r"\b([\w-]+)[ \t]*\(\)")
_ELSEWHERE = re.compile(r">[ \t]?[\"']?(?:\$\{?GITHUB_\w+\}?|[\w.][\w./-]*)[\"']?$")
"""A redirection into another file than that of the outputs, at the end of a line."""

_FILE = re.compile(r"GITHUB_OUTPUT|set-output|>[ \t]*[\"']?\$(?!\{?GITHUB_)|\btee\b")
"""A script without any of these writes to no file of outputs, by its name or another one."""

_INTO = r"[ \t]*[\"']?\$\{?GITHUB_OUTPUT\}?[\"']?"
_TEE = re.compile(rf"\|[ \t]*tee[ \t]+(?:-a|--append){_INTO}(?:[ \t]*>[ \t]*/dev/null)?")
_DOCUMENT = re.compile(
    rf"^[ \t]*cat(?=[^\n]*GITHUB_OUTPUT)(?:[ \t]*(?:>>{_INTO}|<<-?[ \t]*[\"']?\w+[\"']?)){{2}}[ \t]*$", re.MULTILINE
)
"""The beginning of a here-document that goes to the file of the outputs."""

_PRINTED = re.compile(r"(?:echo|printf)\b(?!.*set-output)(?:[^<>|\"'\\]|\\.|\"(?:[^\"\\]|\\.)*\"|'[^']*')*")
"""A line that is printed: it goes to no file, unless that of a function or group around it."""

_FIRST = re.compile(r"(?<![\w-])\$(?:1\b|\{1\})(?![\w-])")
_OTHER_ARGUMENTS = re.compile(r"shift\b.*|set(?!(?: [-+][A-Za-z]+| pipefail)*$) .*")
_OF_GROUP = re.compile(
    r"(?:^|;)[ \t]*(?:[})]|done\b|fi\b|esac\b|exec\b)[^\n;]{0,99}GITHUB_OUTPUT|[})][ \t]*>"
    r"|\)[ \t]*\|[^\n]{0,99}GITHUB_OUTPUT|\bexec[ \t]{1,9}\d?>|=[\"']?\$\{?GITHUB_OUTPUT",
    re.MULTILINE,
)
"""A group of commands writes to the file, or it has a second name: any line may go there."""

_LONG_VALUE = re.compile(r"(?<=[\w-])<<([\w$-]{1,99})(?![\w$-])[\s\S]{0,2000}?(?<![\w$-])\1(?![\w$-])")
_SUBSTITUTION = re.compile(r"\$\([^()>]*\)")
_COMPUTED = re.compile(
    r"\b(?:echo|printf)[ \t](?:[ \t]*-\w+[ \t])?[\"']?[$`%]|(?<![\w=-])[\w-]*[$`%][^=\s\"']{0,99}(?:=|<<)"
    r"|(?:^|\\n)[ \t]*[$`%]|\b(?:awk|cat|cp|grep|head|jq|sed|sort|tail|tee|tr)\b",
    re.MULTILINE,
)
"""A line of outputs begins with what the script does not tell, or a program makes it."""


def _never_sets(script: str, name: str) -> bool:
    """Return whether a script of bash or sh surely sets no output of this name.

    It has no such word on a line that may go to the file, computes no names, and starts no program that may set some.
    """
    text = _DOCUMENT.sub('} >> "$GITHUB_OUTPUT"', _TEE.sub(' >> "$GITHUB_OUTPUT"', script))
    lines = list(map(str.strip, lines_of(_COMMENT.sub("", text)))) if _FILE.search(script) else []
    functions = {*_FUNCTION.findall("\n".join(lines))}
    lines = [
        line
        for line in lines
        if "GITHUB_OUTPUT" in line or not _ELSEWHERE.search(line) or not functions.isdisjoint(_WORD.findall(line))
    ]
    is_group = _OF_GROUP.search("\n".join(lines)) is not None
    if not (functions or is_group):
        lines = [line for line in lines if not _PRINTED.fullmatch(line)]
    text = "\n".join(lines)
    if name in _WORD.findall(text.lower().replace("\\n", " ")):
        return False
    commands = [[program_of(words[0]), *words[1:]] for words in commands_of(script)]
    known = {*PLAIN_COMMANDS, *shipped_agents().programs, *functions}
    if not all(words[0] in known or words[0][:1].isdigit() for words in commands):
        return False
    calls = ["".join(words[1:2]) for words in commands if words[0] in functions]
    others = any(_OTHER_ARGUMENTS.fullmatch(" ".join(words)) for words in commands)
    if not others and "$" not in "".join(calls) and "`" not in text:
        text = _FIRST.sub("1", text)  # all calls tell their first word
    printed = _SUBSTITUTION.sub("$", _LONG_VALUE.sub("", text)).splitlines()
    return not _COMPUTED.search("\n".join(line for line in printed if is_group or "GITHUB_OUTPUT" in line))


def inputs_of(workflow: Workflow) -> set[str]:
    """Return the inputs that a workflow reads, in lower case, ``*`` for all of them.

    A value counts only if the repository's action that gets it reads it.
    """
    jobs = [job.model_dump(by_alias=True, exclude={"steps"}) for job in workflow.jobs.values()]
    steps = [_parts_with_effect(step) for job in workflow.jobs.values() for step in job.steps]
    return _named_inputs([workflow.env, *jobs, *steps])


def inputs_of_action(step: Step) -> set[str]:
    """Return the inputs that the composite action of a step reads."""
    outputs = [each.value for each in step.action.outputs.values()] if step.action else []
    return _named_inputs([*outputs, *map(_parts_with_effect, step.inner)])


def _parts_with_effect(step: Step) -> list[Any]:
    used = inputs_of_action(step)
    given = [value for key, value in step.given.items() if not step.inner or used & {key.lower(), "*"}]
    return [step.model_dump(by_alias=True, exclude={"given"}), given]


def _named_inputs(node: Any) -> set[str]:
    return {(*ref, "*")[1] for ref in all_reads(node) if ref[0] == "inputs"}
