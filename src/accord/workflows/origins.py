"""The origin of an expression's value: the people who choose its text, and whether it names code of a pull request.

A value is followed through variables, outputs of steps and jobs, and the inputs of workflows that the repository itself
calls. A value that cannot be followed counts as the repository's own. Source: GitHub documentation, "Webhook events
and payloads" and "Contexts".
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from enum import Flag
from functools import cached_property
from typing import TYPE_CHECKING, Any

from accord.workflows.agents import gives_agent_text
from accord.workflows.expressions import embedded, parse
from accord.workflows.models import Step
from accord.workflows.scripts import names_in, statements_of
from accord.workflows.starters import CALLED, OUTSIDERS, PULLS, Actor, Start, has_part, reaches, runs_step, step_at

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from accord.workflows.expressions import Reference
    from accord.workflows.models import Job, Workflow


class Origin(Flag):
    """Contents that a value may have: text of outsiders or of writers, or a name of code of a pull request."""

    OWN = 0
    WRITERS = 1
    OUTSIDERS = 2
    CODE = 4


_OWN, _WRITERS, _OUTSIDERS, _CODE = Origin.OWN, Origin.WRITERS, Origin.OUTSIDERS, Origin.CODE

ACTION_JOB = "runs"
"""The job that the steps of a composite action are read as."""

_SAFE = re.compile(
    r"(?:.*_)?(?:id|number|sha|url|at|association|count)|before|after|login|state|action|type|draft|merged|fork|private"
    r"|full_name|conclusion|status|event|mergeable\w*|additions|deletions|changed_files|commits|node_id|locked|schedule"
    r"|comments|active_lock_reason|state_reason|side|line|rebaseable|archived|visibility|repository|sender|installation"
)
"""Properties of an event that people cannot put free text into."""

_OF_WRITERS = frozenset({"label", "labels", "milestone", "base", "assignee", "assignees", "release", "repository"})
_WITH_REFS = frozenset({"push", "pull_request_target", "workflow_dispatch", "release", "create", "delete", CALLED})
"""Events whose branch or tag a writer chooses."""

_FIXED_TYPES = frozenset({"boolean", "number", "choice", "environment"})
_OWN_CONTEXTS = frozenset({"steps", "needs", "runner", "job", "strategy", "vars", "secrets"})
"""Contexts that the runner, the workflow or the repository's maintainers fill."""

_HEAD = re.compile(
    r"(?<!base\.)\bhead\??\.(?:sha|ref|repo|label)|\bhead_(?:sha|ref|branch|repository|commit)\b|\bheadRef(?:Name|Oid)\b"
    r"|\bheadRepository\w*|\bmerge_commit_sha\b|\bpotentialMergeCommit|\bGITHUB_HEAD_REF\b|\b(?:refs/)?pull/[^/\s\"']+/(?:head|merge)\b"
)
"""A script names the head or the merge of a pull request."""

_NAMED_HEAD = re.compile(
    r"(?:^|_)(?:pr|pull|pull_request|source|fork)?_?(?:head|fork)(?:_?(?:sha|ref|branch|repo\w*|name|oid))?$"
    r"|^(?:pr|pull|pull_request)_(?:sha|ref|branch|repo)$|^merge_(?:commit_)?sha$|source_?head\w*",
    re.IGNORECASE,
)
"""Names that outputs of actions and inputs of called workflows have for the head of a pull request."""

_FREE_TEXT = re.compile(
    r"\??\.(?:title|body|message|head\??\.ref|head_branch|display_title|description)\b(?!\s*\()"
    r"|\bheadRefName\b|\bhead_branch\b|--json[ =]\S*\b(?:title|body|comments|files)\b|\bpr diff\b|\blistFiles\b"
    r"|\b(?:git\s+(?:-C\s+\S+\s+)?diff\b[^|;]*--name-(?:only|status))|\bGITHUB_HEAD_REF\b"
)
"""A script reads text that the author of an issue or pull request chooses."""

_READS_FILE = re.compile(
    r"\bcat\s|\$\(<|readFileSync|readFile\(|\bjq\b[^|]*\.\w+\s|Get-Content|\bunzip -p\b|\bread\b.*<"
)
_FETCHES_FILES = re.compile(
    r"gh run download|downloadArtifact|actions/artifacts|artifacts/\S{1,200}/zip|WorkflowRunArtifacts"
    r"|archive_download_url"
)
_CLEANED = re.compile(
    r"\btr\s+-c?d?c?d\b|\bwc\b|\b(?:sha\d+|md5)sum\b|grep\s+-\w*[cq]|\blength\b|\btest\(|\.includes\(|parseInt\(|Number\("
    r"|JSON\.stringify\(Object\.keys|===|!==|grep\s+-\w*o\w*\s+['\"]?\^?\[0-9"
)
"""A statement whose result is a number, a digest or a verdict, whatever it reads."""

_FILES_ACTION = re.compile(r"changed-files|paths-filter|branch-names", re.IGNORECASE)
_CARRIES_TEXT = frozenset({"pr_ref", "appendix"})
"""Inputs of the runner contract through which callers pass branches and comments of pull requests."""


@dataclass(frozen=True)
class Scope:
    """A place in a workflow that started in one way. ``files`` are the workflows of the repository by their paths."""

    files: Mapping[str, Workflow]
    path: str
    start: Start
    job_id: str = ""
    step: Step = field(default_factory=Step.model_construct)
    memory: dict[Any, Any] = field(default_factory=dict, compare=False, repr=False)

    @property
    def workflow(self) -> Workflow:
        """The workflow."""
        return self.files[self.path]

    @property
    def job(self) -> Job:
        """The job of the scope."""
        return self.workflow.jobs[self.job_id]

    @property
    def caller(self) -> Scope | None:
        """The step that uses this action, or the job that calls this workflow; None if an event starts it."""
        if self.start.by is None:
            return None
        path, job_id = self.start.caller
        step = step_at(self.files[path].jobs[job_id], self.start.step) if self.start.step else Step.model_construct()
        return replace(self, path=path, job_id=job_id, start=self.start.by, step=step)

    @property
    def user(self) -> Scope | None:
        """The step that uses this action; None for a workflow."""
        return self.caller if self.start.step else None

    @property
    def in_workflow(self) -> Scope:
        """The place in a workflow that an action runs at; a place in a workflow is its own."""
        return self.user.in_workflow if self.user else self

    @property
    def earlier(self) -> list[Step]:
        """The steps of the job before this one."""
        steps = self.job.steps
        return steps[: steps.index(self.step)] if self.step in steps else steps

    @cached_property
    def is_reached(self) -> bool:
        """Whether an outsider's event reaches this place."""
        if self.start.event not in {*OUTSIDERS, CALLED}:
            return False
        if not self.job_id:
            return True
        is_reached = reaches(self.files, self.path, self.job_id, self.start, Actor.HELPED)
        return is_reached and (not self.step.place or runs_step(self.job, self.step, self.start, Actor.HELPED))

    def of_text(self, text: object) -> Origin:
        """Return the origins of all expressions in a text; an unreadable one counts as the text of writers."""
        found = _CODE if re.search(r"\bpull/\$\{\{[^}]*\}\}/(?:head|merge)\b", str(text)) else _OWN
        for expression in embedded(str(text)):
            parsed = parse(expression)
            found |= self._of_all(parsed.yields) if parsed else _WRITERS
        return found

    def _of_all(self, references: Iterable[Reference]) -> Origin:
        found = _OWN
        for reference in references:
            found |= self.of_reference(reference)
        return found

    def of_reference(self, ref: Reference) -> Origin:
        """Return the origin of a reference. Texts of outsiders are those of writers where no outsider gets."""
        key = (self.path, self.job_id, self.step.place, self.start, ref)
        if key not in self.memory:
            self.memory[key] = _OWN  # a circle adds nothing
            found = self._of_reference(ref)
            if found & _OUTSIDERS and not self.is_reached:
                found = found & ~_OUTSIDERS | _WRITERS
            self.memory[key] = found
        known: Origin = self.memory[key]
        return known

    def _of_reference(self, ref: Reference) -> Origin:
        match ref:
            case ("inputs", name):
                return self._of_input(name)
            case ("inputs",):
                on = self.workflow.on
                names = {
                    name.lower() for each in (on.workflow_call, on.workflow_dispatch) if each for name in each.inputs
                }
                return self._of_all(("inputs", name) for name in names)
            case ("github", "event", "inputs", *names):
                has_inputs = self.start.event in {"workflow_dispatch", CALLED}
                return self._of_all([("inputs", *names)]) if has_inputs else _OWN
            case ("github", "event", *_) | ("github",):
                return _of_event(ref, self.start.event)
            case ("github", name):
                return _of_github(name, self.in_workflow.workflow, self.start.event)
            case ("env", name) if self.job_id:
                return self._of_variable(name)
            case ("matrix", *_) if self.job_id:
                return self.of_text(self.job.strategy)
            case ("steps", name, "outputs", output) if self.job_id:
                return self._of_step(name, output)
            case ("needs", name, "outputs", output) if self.job_id:
                return self._of_job(name, output)
        return _OWN if ref[0] in {*_OWN_CONTEXTS, "matrix"} else _WRITERS

    def _of_input(self, name: str) -> Origin:
        on, start = self.workflow.on, self.start
        is_called = start.by is not None or start.event == CALLED
        trigger = on.workflow_call if is_called else on.workflow_dispatch
        given = {key.lower(): value for key, value in (trigger.inputs if trigger else {}).items()}
        declared = given.get(name)
        if trigger is None or (declared and declared.type in _FIXED_TYPES):
            return _OWN
        if caller := self.caller:
            passed = caller.step.given if start.step else caller.job.given
            values = {key.lower(): value for key, value in passed.items()}
            return caller.of_text(values.get(name, declared.default if declared else ""))
        if not is_called:
            return _WRITERS
        if "prompt_file" in given:
            return _OUTSIDERS if name in _CARRIES_TEXT else _WRITERS
        return _WRITERS | (_CODE if _NAMED_HEAD.search(name) else _OWN)

    def _of_variable(self, name: str) -> Origin:
        """Follow a variable to ``env``, and to earlier steps that set it for later ones."""
        for env in (self.step.env, self.job.env, self.workflow.env):
            for key, value in env.items() if isinstance(env, dict) else ():
                if key.lower() == name.lower():
                    return self.of_text(value)
        found = self.user._of_variable(name) if self.user else _OWN
        for step in self.earlier:
            if any(word in text for text in step.script_texts for word in ("GITHUB_ENV", "exportVariable")):
                found |= self._set_by(step, name)
        return found

    def _of_step(self, name: str, output: str) -> Origin:
        step = next((step for step in self.job.steps if step.id.lower() == name), None)
        if step is None:
            return _OWN
        if step.action and step.action not in self.start.paths | {self.path}:
            start = Start(self.start.event, (self.path, self.job_id), self.start, step.place)
            within = replace(self, path=step.action, start=start, job_id=ACTION_JOB, step=Step.model_construct())
            return within._of_job(ACTION_JOB, output)
        text = self._agent_text if gives_agent_text(step, output) else _OWN
        if any(each.name.lower() == output for each in statements_of(step)):
            return text | self._set_by(step, output)
        if _FILES_ACTION.search(step.uses.partition("@")[0]) and re.search(r"files|branch|ref", output):
            text |= _OUTSIDERS if self.start.event in PULLS else _WRITERS
        is_head = _NAMED_HEAD.search(output.replace("-", "_")) and not (step.run and statements_of(step))
        return text | (_CODE if is_head else _OWN)

    @property
    def _agent_text(self) -> Origin:
        """The origin of an agent's words: whether it may read here what outsiders wrote."""
        call = self.workflow.on.workflow_call
        is_runner = call is not None and "prompt_file" in call.inputs
        return _OUTSIDERS if is_runner or self.start.event in OUTSIDERS else _WRITERS

    def _of_job(self, name: str, output: str) -> Origin:
        found = self.workflow.job(name)
        if found is None:
            return _OWN
        job_id, job = found
        values = {key.lower(): value for key, value in job.outputs.items()}
        if output in values:
            return replace(self, job_id=job_id, step=Step.model_construct()).of_text(values[output])
        if not job.uses:
            return _OWN
        path = job.uses[2:]
        target = self.files.get(path) if job.uses.startswith(("./", "$/")) else None
        if target and target.on.workflow_call and path != self.path:
            start = Start(self.start.event, (self.path, job_id), self.start)
            within = replace(self, path=path, start=start, job_id="", step=Step.model_construct())
            outputs = {key.lower(): str(given.value) for key, given in target.on.workflow_call.outputs.items()}
            sources = (parse(expression) for expression in embedded(outputs.get(output, "")))
            text = _OWN
            for ref in (ref for parsed in sources if parsed for ref in parsed.yields):
                text |= within._of_job(ref[1], ref[3]) if ref[0] == "jobs" and len(ref) == 4 else _OWN
            return text
        text = self._agent_text if gives_agent_text(None, output) else _OWN
        return text | (_CODE if _NAMED_HEAD.search(output.replace("-", "_")) else _OWN)

    # Scripts

    def _set_by(self, step: Step, name: str) -> Origin:
        """Return the origin of an output or variable that the script of a step sets."""
        within, found = replace(self, step=step), _OWN
        for each in statements_of(step):
            if each.name.lower() == name.lower():
                found |= within.of_script_text(each.value)
        return found

    @property
    def variables(self) -> Mapping[str, Origin]:
        """The variables that the script of the step sets, with their origins."""
        key = (self.path, self.job_id, self.step.place, self.start)
        found: dict[str, Origin] = self.memory.setdefault(key, {})
        if not found:
            for _ in range(2):  # what a later line sets may be read in an earlier one of a loop
                for each in statements_of(self.step):
                    found[each.name] = found.get(each.name, _OWN) | self._of_script(each.value, found)
        return found

    def of_script_text(self, text: str) -> Origin:
        """Return the origins of a part of the step's script: what it reads, and the variables in it."""
        return self._of_script(text, self.variables)

    def _of_script(self, text: str, known: Mapping[str, Origin]) -> Origin:
        step, event = self.step, self.start.event
        found = self.of_text(text) | (_CODE if _HEAD.search(text) else _OWN)
        for name, last in names_in(text, is_shell=bool(step.run)):
            origin = known.get(name, _OWN)
            if name not in known and (step.run or f"env.{name}" in text):
                origin = self._of_variable(name)
            # a property of an answer of GitHub, such as a number, is its own text, unlike one of a file
            found |= _OWN if last and _SAFE.fullmatch(last) and origin != _OUTSIDERS | _CODE else origin
        if _FREE_TEXT.search(text) and not re.search(r"\bbase\.ref\b", text):
            found |= _OUTSIDERS if event in OUTSIDERS else _WRITERS
        for called in step.scripts:
            if called.path in text and called.text != text:  # what it prints
                found |= self._of_script(called.text, known) & _CODE
        if event == "workflow_run":
            if _READS_FILE.search(text) and self._has_files:
                found |= _OUTSIDERS | _CODE
            if re.search(r"\bname\b", text) and any("listJobsForWorkflowRun" in each for each in step.script_texts):
                found |= _OUTSIDERS
        return found & ~(_OUTSIDERS | _WRITERS) if _CLEANED.search(text) else found

    @property
    def _has_files(self) -> bool:
        """Whether this or an earlier step fetches files of the run that started this one."""
        return any(map(_fetches_files, (*self.earlier, self.step))) or (self.user is not None and self.user._has_files)


def _fetches_files(step: Step) -> bool:
    names = {str(key).replace("_", "-") for key in step.given}
    is_other = names & {"run-id", "workflow", "workflow-run-id"} and "download" in step.uses and "artifact" in step.uses
    return bool(is_other) or any(_FETCHES_FILES.search(text) for text in step.script_texts)


def _of_github(name: str, workflow: Workflow, event: str) -> Origin:
    """Return the origin of a property of the context ``github``, other than its event."""
    if name == "head_ref":
        return _OUTSIDERS | _CODE if event in {"pull_request", "pull_request_target", CALLED} else _OWN
    is_chosen = event in (PULLS if name == "base_ref" else _WITH_REFS)
    if name in {"ref", "ref_name", "base_ref"} and is_chosen and not _is_listed(workflow, event):
        return _WRITERS
    return _OWN


def _of_event(ref: Reference, event: str) -> Origin:
    """Return the origin of a part of an event, other than inputs of people."""
    part = ref[2:]
    if not part:
        return _OUTSIDERS if event in OUTSIDERS else _WRITERS
    if not has_part(ref, event):
        return _OWN
    if part[0] == "client_payload":
        return _WRITERS | (_CODE if re.search(r"head|pull_request", ".".join(part)) else _OWN)
    code = _CODE if _names_head(part) else _OWN
    is_fixed = part[:2] in {("issue", "pull_request"), ("workflow_run", "name")}
    if is_fixed or _SAFE.fullmatch(part[-1]) or part[0] in {"number", "repository"}:
        return code
    if set(part) & _OF_WRITERS and "head" not in part:
        return code | _WRITERS
    return code | (_OUTSIDERS if event in {*OUTSIDERS, CALLED} else _WRITERS)


def _names_head(part: Reference) -> bool:
    """Return whether a part of an event names the head or the merge of a pull request."""
    match part:
        case ("pull_request", "head", "user", *_):
            return False
        case ("pull_request", "head" | "merge_commit_sha", *_):
            return True
        case ("workflow_run" | "check_run" | "check_suite", *rest):
            return bool({"head_sha", "head_branch", "head_commit", "head_repository", "head"} & set(rest))
    return False


def _is_listed(workflow: Workflow, event: str) -> bool:
    """Return whether an event is limited to branches or tags that are written out."""
    filters = workflow.filters(event)
    named = [filters[key] for key in ("branches", "tags") if key in filters]
    if not named or (event == "push" and any(key.endswith("-ignore") for key in filters if key != "paths-ignore")):
        return False
    names = [name for value in named for name in ([value] if isinstance(value, str) else value or ())]
    return bool(names) and not any(re.search(r"[*?+\[!]", str(name)) for name in names)
