"""The origin of a text in a workflow: the people who choose it, and whether it names code of a pull request.

A value is followed through variables, outputs of jobs, and the inputs of actions and workflows of the repository. Text
that the script of a step computes is the repository's own, and names foreign code if the line that names the output
does. Source: GitHub documentation, "Webhook events and payloads" and "Contexts".
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from enum import Flag
from typing import Any, NamedTuple

from accord.workflows.agents import agent_steps, gives_agent_text, shipped_agents
from accord.workflows.expressions import Reference, embedded_expressions, parse
from accord.workflows.models import Input, Job, Step, Workflow
from accord.workflows.trust import CALLED, OUTSIDERS, Actor, RunPlace, has_part


class Origin(Flag):
    """Contents that a value may have: text of outsiders, writers or agents, or a name of code of a pull request.

    The name of a branch is text of outsiders, but no name of their code: git looks for it in the base repository.
    """

    OWN = 0
    WRITERS = 1
    OUTSIDERS = 2
    CODE = 4
    AGENT = 8


_OWN, _WRITERS, _OUTSIDERS, _CODE = Origin.OWN, Origin.WRITERS, Origin.OUTSIDERS, Origin.CODE
_FREE = _OUTSIDERS | _CODE
"""Text of outsiders that may name anything."""

_TEXT = re.compile(
    r"(?!issue\.pull_request$|(?:.*\.)?(?:workflow|workflow_run|repo|head_repository)\.name$)(?:.*\.)?(?:"
    r"(?:page_|tag_)?name|(?:display_|commit_)?title|(?:commit_)?message|body(?:_html|_text)?|description|email|from"
    r"|(?:default_|head_|master_)?branch|(?:base_|head_)?ref|(?<=\.)label|diff_hunk|homepage|summary|text|note|context"
    r"|added|modified|removed|target_commitish|environment|task|value|version|(?<=comment\.)path"
    r"|(?P<all>issue|pull_requests?|(?:pinned_)?comment|review|discussion|answer|issue_field_values|workflow_run|head|repo"
    r"|head_repository|forkee|(?:head_)?commit|(?<!\.)commits|author|committer|pages|changes|labels?|milestone|category"
    r"|release|assets|check_run|check_suite|output|deployment|deployment_status))"
)
"""Properties of an event that people can put free text into; ``all`` are objects and lists that hold some."""

_OF_WRITERS = frozenset({
    "label", "labels", "milestone", "assignee", "assignees", "release", "category", "type", "issue_field_values",
})  # fmt: skip
_BRANCH = frozenset({"ref", "label", "head_branch"})
_WITH_REFS = frozenset({"push", "pull_request_target", "workflow_dispatch", "release", "create", "delete", CALLED})
"""Events whose branch or tag a writer chooses."""

_FIXED_TYPES = frozenset({"boolean", "number", "choice", "environment"})
_OWN_CONTEXTS = frozenset({"steps", "needs", "runner", "job", "strategy", "vars", "secrets", "matrix", "github", "env"})
"""Contexts that the runner, the workflow or the repository's maintainers fill."""

_PULL_REF = re.compile(r"\bpull/(?:[^/\s\"'$]|\$\{\{[^}]{1,100}\}\}|\$(?!\{\{)){1,100}/(?:head|merge)\b")
_WORD = re.compile(r"[\w-]+")
_HEAD = re.compile(
    r"(?<!base\.)\bhead\??\.(?:sha|repo)|\bhead_(?:sha|repository|commit)\b|\bheadRefOid\b|\bheadRepository\w*"
    r"|\bmerge_commit_sha\b|\bpotentialMergeCommit"
)
"""A script, or a part of an event, names a commit or the repository of a pull request."""

_NAMED_HEAD = re.compile(
    r"(?:head|fork)[_-]?(?:sha|repo\w{0,20}|oid)$|(?:^|[_-])(?:head|fork)$|^(?:pr|pull(?:[_-]request)?)[_-](?:sha|ref|repo)$"
    r"|^merge[_-]?(?:commit[_-]?)?sha$",
    re.IGNORECASE,
)
"""Names that outputs of actions have for a commit or the repository of a pull request."""

VARIABLE = re.compile(
    r"\$\{?!?(?:env:)?(?!process\.env\b)([A-Za-z_]\w*)|(?:environ(?:\.get)?|getenv|process\.env)[(\[]['\"](\w+)"
    r"|process\.env\.(\w+)"
)
_CARRIES_TEXT = frozenset({"pr_ref", "appendix"})
"""Inputs of the runner contract through which callers pass branches and comments of pull requests."""


class _Source(NamedTuple):
    """A text that a value is taken from, at its place; only what is in ``counts`` passes on."""

    place: RunPlace
    text: str
    is_script: bool = False
    counts: Origin = _WRITERS | _FREE | Origin.AGENT


def origin_of(place: RunPlace, text: object, *, is_script: bool = False) -> Origin:
    """Return the origins of all expressions in a text, and of the variables that a part of a script names.

    An expression that cannot be read counts as the text of writers.
    """
    found = _OWN
    for _, _, origin in _final_sources(_Source(place, str(text), is_script)):
        found |= origin
    return found


def leaves_of(place: RunPlace, text: object) -> Iterator[tuple[RunPlace, Reference]]:
    """Yield what the expressions of a text read in the end: through variables, inputs, and outputs."""
    return ((at, ref) for at, ref, _ in _final_sources(_Source(place, str(text))) if ref)


def _final_sources(first: _Source) -> Iterator[tuple[RunPlace, Reference, Origin]]:
    """Yield what a text reads in the end, where, and its origin; without a reference for code that a text names."""
    waiting, seen = [first], set[object]()
    while waiting:
        source = waiting.pop()
        at = source.place
        key = (at.path, at.job_id, at.start, id(at.step), source[1:])
        if key in seen:
            continue
        seen.add(key)
        if _PULL_REF.search(source.text) or (source.is_script and _HEAD.search(source.text)):
            yield at, (), _CODE
        parsed = [parse(each) for each in embedded_expressions(source.text)]
        refs: list[Reference] = [ref for each in parsed for ref in (each.yields if each else [("unreadable",)])]
        names = VARIABLE.finditer(source.text) if source.is_script else ()
        for ref in (*refs, *(("env", name[name.lastindex or 0].lower()) for name in names)):
            taken = _taken_from(at, ref)
            if not isinstance(taken, Origin):
                waiting += [each._replace(counts=each.counts & source.counts) for each in taken]
                continue
            actors = (Actor.HELPED, *([Actor.STARTER] if "comment" in ref else []))
            if taken & _OUTSIDERS and not any(map(at.is_reached_by, actors)):
                taken = taken & ~_OUTSIDERS | _WRITERS  # where no outsider gets
            yield at, ref, taken & source.counts


def _taken_from(at: RunPlace, ref: Reference) -> Origin | list[_Source]:
    """Return the origin of a reference, or the texts that its value is taken from."""
    event = at.start.event
    match ref:
        case ("inputs", name):
            return _of_input(at, name)
        case ("github", "event", "inputs", *names):
            return _taken_from(at, ("inputs", *names)) if event in {"workflow_dispatch", CALLED} else _OWN
        case ("github", name) if name not in {"event", "*"}:
            return _of_github(name, at.workflow, event)
        case ("github", *_):
            return _of_event(ref, event)
        case ("env", "*"):
            return [_Source(place, str(value)) for place, env in at.environments for value in env.values()]
        case ("env", name):
            values = ((place, _with_lower_keys(env).get(name)) for place, env in at.environments)
            return [_Source(place, str(value)) for place, value in values if value is not None][:1]
        case ("matrix", *_):
            return [_Source(at, str(at.job.strategy))]
        case ("steps", name, "outputs", output):
            return _of_step(at, name, output)
        case ("needs", name, "outputs", output):
            return _of_job(at, name, output)
    return _OWN if ref[0] in _OWN_CONTEXTS else _WRITERS


def _of_input(at: RunPlace, name: str) -> Origin | list[_Source]:
    user = next(reversed(at.steps[:-1]), None)
    if name == "*":
        names = user.inputs if user else _declared_inputs(at) or ()
        return [_Source(at, f"${{{{ inputs['{each}'] }}}}") for each in names]
    if user:
        return [_Source(replace(at, step=user), str(_with_lower_keys(user.inputs).get(name, "")))]
    declared = _declared_inputs(at)
    if declared is None or (name in declared and declared[name].type in _FIXED_TYPES):
        return _OWN
    if at.start.calls:
        *calls, (path, job_id) = at.start.calls
        caller = RunPlace(at.files, path, replace(at.start, calls=tuple(calls)), job_id)
        default = declared[name].default if name in declared else ""
        return [_Source(caller, str(_with_lower_keys(caller.job.given).get(name, default)))]
    return _OUTSIDERS if "prompt_file" in declared and name in _CARRIES_TEXT else _WRITERS


def _declared_inputs(at: RunPlace) -> dict[str, Input] | None:
    """Return the inputs of the trigger that started a workflow, with lower-case names; None without that trigger."""
    is_called = bool(at.start.calls) or at.start.event == CALLED
    trigger = at.workflow.on.workflow_call if is_called else at.workflow.on.workflow_dispatch
    return _with_lower_keys(trigger.inputs) if trigger else None


def _with_lower_keys(values: Mapping[str, Any]) -> dict[str, Any]:
    return {name.lower(): value for name, value in values.items()}


def _of_step(at: RunPlace, name: str, output: str) -> Origin | list[_Source]:
    """Return the origin of a step's output: an agent's words, or the lines of the script that name it."""
    step = step_beside(at, name)
    if step is None:
        return _OWN
    is_own = any(step.script_texts) and "accord" not in "".join(step.script_texts)
    if gives_agent_text(step, output) and not (is_own and not any(agent_steps(at.workflow, at.job, shipped_agents()))):
        return Origin.AGENT | _CODE
    if not any(step.script_texts):
        return _CODE if _NAMED_HEAD.search(output) else _OWN
    lines = [
        line for text in step.script_texts for line in lines_of(text) if output in map(str.lower, _WORD.findall(line))
    ]
    return [_Source(replace(at, step=step), line, is_script=True, counts=_CODE) for line in lines]


def step_beside(at: RunPlace, name: str) -> Step | None:
    """Return the step with an id beside a place, in its job or its action."""
    file = at.step.file if at.step else ""
    return next((each for each in at.job.nested_steps() if each.file == file and each.id.lower() == name), None)


def _of_job(at: RunPlace, name: str, output: str) -> Origin | list[_Source]:
    job_id, job = at.workflow.job(name) or ("", None)
    values = _with_lower_keys(job.outputs) if job else {}
    if output in values:
        return [_Source(replace(at, job_id=job_id, step=None), str(values[output]))]
    if gives_agent_text(job or Job(), output):
        return Origin.AGENT | _CODE
    return _CODE if _NAMED_HEAD.search(output) else _OWN


def _of_github(name: str, workflow: Workflow, event: str) -> Origin:
    if name == "head_ref":
        return _OUTSIDERS if event in {"pull_request", "pull_request_target", CALLED} else _OWN
    if name not in {"ref", "ref_name"} or event not in _WITH_REFS:
        return _OWN
    names = [each for key in ("branches", "tags") for each in workflow.filter_values(event, key)]
    return _WRITERS if not names or any(re.search(r"[*?+\[!]", each) for each in names) else _OWN


def _of_event(ref: Reference, event: str) -> Origin:
    is_whole, part = ref[-1] == "*", ref[2:]
    while part[-1:] == ("*",):
        part = part[:-1]
    if not part:
        return (_FREE if event in {*OUTSIDERS, CALLED} else _WRITERS) if is_whole or len(ref) == 1 else _OWN
    if not has_part(ref, event) or "repository" in part or "base" in part:
        return _OWN
    if {"client_payload", "payload"} & {*part}:
        return _WRITERS
    code = _CODE if _HEAD.search(".".join(part)) else _OWN
    text = _TEXT.fullmatch(".".join(part))
    if not text or (text["all"] and not is_whole):
        return code
    if event not in {*OUTSIDERS, CALLED} or ({*part} & _OF_WRITERS and "head" not in part):
        return code | _WRITERS
    return code | (_OUTSIDERS if part[-1] in _BRANCH else _FREE)


def lines_of(script: str) -> Iterator[str]:
    """Yield the lines of a script that are not comments, with continued lines as one."""
    for line in re.sub(r"\\\r?\n", " ", script).splitlines():
        if not line.lstrip().startswith(("#", "//")):
            yield line
