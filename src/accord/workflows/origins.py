"""Where the value of an expression comes from: whose text it holds, and whether it names code of a pull request.

A value is followed through variables, outputs of steps and jobs, and the inputs of workflows that the repository itself
calls. A value that cannot be followed counts as the repository's own.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

from accord.workflows.agents import gives_agent_text
from accord.workflows.events import CALLED, HELPED, OUTSIDERS, PULLS, Start, reaches, runs_step, step_at
from accord.workflows.expressions import embedded, parse
from accord.workflows.models import Step
from accord.workflows.payloads import SAFE, Origin, of_event, of_github
from accord.workflows.scripts import javascript_statements, shell_statements, variables_in, words_in

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from accord.workflows.expressions import Reference
    from accord.workflows.models import Job, Workflow
    from accord.workflows.scripts import Statement


ACTION_JOB = "runs"
"""The job that the steps of a composite action are read as."""

_OWN, _WRITERS, _OUTSIDERS, _CODE = Origin.OWN, Origin.WRITERS, Origin.OUTSIDERS, Origin.CODE
_BOTH = _OUTSIDERS | _CODE

_FIXED_TYPES = frozenset({"boolean", "number", "choice", "environment"})
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

_NAMES_OF_JOBS = re.compile(r"\bname\b")
_FILE_READ = re.compile(
    r"\bcat\s|\$\(<|readFileSync|readFile\(|\bjq\b[^|]*\.\w+\s|Get-Content|\bunzip -p\b|\bread\b.*<"
)
_DOWNLOAD = re.compile(
    r"gh run download|downloadArtifact|actions/artifacts|artifacts/\S{1,200}/zip|WorkflowRunArtifacts"
    r"|archive_download_url"
)
_DOWNLOAD_ACTION = re.compile(r"download-(?:workflow-)?artifact", re.IGNORECASE)
_CLEANED = re.compile(
    r"\btr\s+-c?d?c?d\b|\bwc\b|\b(?:sha\d+|md5)sum\b|grep\s+-\w*[cq]|\blength\b|\btest\(|\.includes\(|parseInt\(|Number\("
    r"|JSON\.stringify\(Object\.keys|===|!==|grep\s+-\w*o\w*\s+['\"]?\^?\[0-9"
)
"""A statement whose result is a number, a digest or a verdict, whatever it reads."""

_SCRIPT_ACTION = "actions/github-script"
_FILES_ACTION = re.compile(r"changed-files|paths-filter|branch-names", re.IGNORECASE)
_FILES_OUTPUT = re.compile(r"files|branch|ref", re.IGNORECASE)
_AGENT_OUTPUTS = frozenset(
    {
        "final-message",
        "final-message-summary",
        "error-summary",
        "llm-completed-tasks",
        "result-json",
        "structured_output",
    }
)
"""Outputs of runners and of actions that hold an agent's words."""

_CARRIES_TEXT = frozenset({"pr_ref", "appendix"})
"""Inputs of the runner contract through which callers pass branches and comments of pull requests."""


_OWN_CONTEXTS = frozenset({"steps", "needs", "runner", "job", "strategy", "vars", "secrets"})
"""Contexts that the runner, the workflow or the repository's maintainers fill."""

_DEEPEST = 20
"""The longest way back through steps that set variables of each other."""


@dataclass(frozen=True)
class Scope:
    """A place in a workflow that started in one way. ``files`` are the workflows of the repository by their paths."""

    files: Mapping[str, Workflow]
    path: str
    start: Start
    job_id: str = ""
    step: Step = field(default_factory=Step.model_construct)
    depth: int = 0
    memory: dict[Any, Origin] = field(default_factory=dict, compare=False, repr=False)

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

    @cached_property
    def is_reached(self) -> bool:
        """Whether an outsider's event reaches this place."""
        if self.start.event not in {*OUTSIDERS, CALLED}:
            return False
        if not self.job_id:
            return True
        is_reached = reaches(self.files, self.path, self.job_id, self.start, HELPED)
        return is_reached and (not self.step.place or runs_step(self.job, self.step, self.start, HELPED))

    def of_text(self, text: object) -> Origin:
        """Return the origins of all expressions in a text."""
        found = _OWN
        for expression in embedded(str(text)):
            found |= self.of_expression(expression)
        if re.search(r"\bpull/\$\{\{[^}]*\}\}/(?:head|merge)\b", str(text)):
            found |= _CODE
        return found

    def of_expression(self, expression: str) -> Origin:
        """Return the origins of an expression's value; an unreadable one counts as the text of writers."""
        parsed = parse(expression)
        return self._of_all(parsed.yields) if parsed else _WRITERS

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
        return self.memory[key]

    def _of_reference(self, ref: Reference) -> Origin:
        match ref:
            case ("inputs", name):
                return self._of_input(name)
            case ("inputs",):
                return self._of_all(("inputs", name) for name in self._input_names())
            case ("env", name) if self.job_id:
                return self._of_variable(name)
            case ("github", "event", "inputs", *names):
                has_inputs = self.start.event in {"workflow_dispatch", CALLED}
                return self._of_all([("inputs", *names)]) if has_inputs else _OWN
            case ("github", "event", *_) | ("github",):
                return of_event(ref, self.start.event)
            case ("github", name):
                return of_github(name, self.in_workflow.workflow, self.start.event)
            case ("matrix" | "steps" | "needs", *_) if self.job_id:
                return self._of_job_context(ref)
        return _OWN if ref[0] in _OWN_CONTEXTS else _WRITERS

    def _of_job_context(self, ref: Reference) -> Origin:
        match ref:
            case ("matrix", *_):
                return self.of_text(self.job.strategy)
            case ("steps", name, "outputs", output):
                return self._of_step(name, output)
            case ("needs", name, "outputs", output):
                return self._of_job(name, output)
        return _OWN

    def _input_names(self) -> set[str]:
        on = self.workflow.on
        return {
            name.lower() for trigger in (on.workflow_call, on.workflow_dispatch) if trigger for name in trigger.inputs
        }

    def _of_input(self, name: str) -> Origin:
        on, start = self.workflow.on, self.start
        is_called = start.by is not None or start.event == CALLED
        trigger = on.workflow_call if is_called else on.workflow_dispatch
        given = {key.lower(): value for key, value in (trigger.inputs if trigger else {}).items()}
        if trigger is None:
            return _OWN
        kind = given[name].type if name in given else None
        if kind in _FIXED_TYPES:
            return _OWN
        if caller := self.caller:
            passed = caller.step.given if start.step else caller.job.given
            values = {key.lower(): value for key, value in passed.items()}
            default = given[name].default if name in given else None
            return caller.of_text(values.get(name, "" if default is None else default))
        if is_called:
            is_runner = "prompt_file" in given
            named = _CODE if _NAMED_HEAD.search(name) and not is_runner else _OWN
            return named | (_OUTSIDERS if is_runner and name in _CARRIES_TEXT else _WRITERS)
        return _WRITERS

    def _of_variable(self, name: str) -> Origin:
        """Follow a variable to ``env``, and to earlier steps that set it for later ones."""
        found = _OWN
        for env in (self.step.env, self.job.env, self.workflow.env):
            for key, value in env.items() if isinstance(env, dict) else ():
                if key.lower() == name.lower():
                    return found | self.of_text(value)
        for step in self._earlier():
            found |= self._of_statements(
                step, [s for s in _statements(step) if s.is_kept and s.name.lower() == name.lower()]
            )
        return found | self.user._of_variable(name) if self.user else found

    def _earlier(self) -> Sequence[Step]:
        return self.job.steps[: self.job.steps.index(self.step)] if self.step in self.job.steps else self.job.steps

    def _of_step(self, name: str, output: str) -> Origin:
        step = next((step for step in self.job.steps if step.id.lower() == name), None)
        if step is None:
            return _OWN
        if step.action and step.action not in self.start.paths | {self.path}:
            start = Start(self.start.event, (self.path, self.job_id), self.start, step.place)
            within = replace(self, path=step.action, start=start, job_id=ACTION_JOB, step=Step.model_construct())
            return within._of_job(ACTION_JOB, output)
        agent_text = _OUTSIDERS if gives_agent_text(step, output) or output in _AGENT_OUTPUTS else _OWN
        if agent_text and not self._is_open_to_text:
            agent_text = _WRITERS
        statements = [each for each in _statements(step) if each.is_output and each.name.lower() == output]
        if statements:
            return agent_text | self._of_statements(step, statements)
        named = _CODE if _NAMED_HEAD.search(output.replace("-", "_")) and not (step.run and _statements(step)) else _OWN
        if _FILES_ACTION.search(step.uses.partition("@")[0]) and _FILES_OUTPUT.search(output):
            named |= _OUTSIDERS if self.start.event in PULLS else _WRITERS
        return agent_text | named

    @property
    def _is_open_to_text(self) -> bool:
        """Whether an agent here may read what outsiders wrote."""
        call = self.workflow.on.workflow_call
        is_runner = call is not None and "prompt_file" in call.inputs
        return is_runner or self.start.event in OUTSIDERS

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
            wanted = {key.lower(): given.value for key, given in target.on.workflow_call.outputs.items()}.get(
                output, ""
            )
            return within._of_outputs(str(wanted))
        text = (_OUTSIDERS if self._is_open_to_text else _WRITERS) if output in _AGENT_OUTPUTS else _OWN
        return text | (_CODE if _NAMED_HEAD.search(output.replace("-", "_")) else _OWN)

    def _of_outputs(self, value: str) -> Origin:
        """Follow an output of a called workflow to its jobs."""
        found = _OWN
        for expression in embedded(value):
            parsed = parse(expression)
            for ref in parsed.yields if parsed else ():
                if ref[0] == "jobs" and len(ref) == 4:
                    found |= self._of_job(ref[1], ref[3])
        return found

    # Scripts

    def _of_statements(self, step: Step, statements: Sequence[Statement]) -> Origin:
        within = replace(self, step=step, depth=self.depth + 1)
        found = _OWN
        for statement in statements if self.depth < _DEEPEST else ():
            found |= within.of_script_text(statement.value)
        return found

    @cached_property
    def variables(self) -> Mapping[str, Origin]:
        """The variables that the script of the step sets, with their origins."""
        found: dict[str, Origin] = {}
        statements = [each for each in _statements(self.step) if not each.is_output]
        for _ in range(2):  # what a later line sets may be read in an earlier one of a loop
            for each in statements:
                found[each.name] = found.get(each.name, _OWN) | self._of_script(each.value, found)
        return found

    def of_script_text(self, text: str) -> Origin:
        """Return the origins of a part of the step's script: what it reads, and the variables in it."""
        return self._of_script(text, self.variables)

    def _of_script(self, text: str, known: Mapping[str, Origin]) -> Origin:
        step = self.step
        is_javascript = not step.run
        found = self.of_text(text)
        for name, last in words_in(text) if is_javascript else variables_in(text):
            origin = known.get(name, _OWN)
            if name not in known and (not is_javascript or f"env.{name}" in text):
                origin = self._of_variable(name)
            # a property of an answer of GitHub, such as a number, is its own text, unlike one of a file
            found |= _OWN if last and SAFE.fullmatch(last) and origin != _BOTH else origin
        event = self.start.event
        if _HEAD.search(text):
            found |= _CODE
        if _FREE_TEXT.search(text) and not re.search(r"\bbase\.ref\b", text):
            found |= _OUTSIDERS if event in OUTSIDERS else _WRITERS
        for called in step.scripts:
            if called.path in text and called.text != text:  # what it prints
                found |= self._of_script(called.text, known) & _CODE
        if event == "workflow_run":
            if self._has_download and _FILE_READ.search(text):
                found |= _BOTH
            script = step.run or str(step.given.get("script", ""))
            if "listJobsForWorkflowRun" in script and _NAMES_OF_JOBS.search(text):
                found |= _OUTSIDERS
        return found & ~(_OUTSIDERS | _WRITERS) if _CLEANED.search(text) else found

    @cached_property
    def _has_download(self) -> bool:
        """Whether this or an earlier step fetches files of the run that started this one."""
        for step in (*self._earlier(), self.step):
            if any(_DOWNLOAD.search(text) for text in (*step.shell_texts, str(step.given.get("script", "")))):
                return True
            is_other = any(
                str(key).replace("_", "-") in {"run-id", "workflow", "workflow-run-id"} for key in step.given
            )
            if is_other and _DOWNLOAD_ACTION.search(step.uses.partition("@")[0]):
                return True
        return self.user is not None and self.user._has_download


def _statements(step: Step) -> Sequence[Statement]:
    if step.run:
        return [each for text in step.shell_texts for each in shell_statements(text)]
    is_script = step.uses.partition("@")[0].lower() == _SCRIPT_ACTION
    return javascript_statements(str(step.given.get("script", ""))) if is_script else ()
