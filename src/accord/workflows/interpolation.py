"""Untrusted text in scripts, and actions that are not pinned to a commit.

GitHub inserts the value of ``${{ … }}`` into a script before the shell reads it, so a title of ``$(…)`` runs. Source:
GitHub documentation, "Script injections".
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from accord.core.findings import Finding, Severity, pointer
from accord.workflows.expressions import embedded, parse
from accord.workflows.origins import Origin, Scope
from accord.workflows.starters import Actor, reaches, runs_step, starts_of

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence

    from accord.workflows.expressions import Reference
    from accord.workflows.models import Step, Workflow

_SCRIPTS = frozenset({"script", "command", "commands", "cmd", "run"})
"""Inputs of actions that usually are scripts."""


@dataclass(frozen=True)
class _Script:
    """A script with its pointer and the way to read a variable in it."""

    text: str
    path: str
    read: str
    is_surely_code: bool = True


def interpolation_findings(
    path: str, files: Mapping[str, Workflow], flagged: Collection[str] | None = None
) -> list[Finding]:
    """Find expressions in the scripts of a workflow that insert text of outsiders, or, as warnings, of writers.

    Nothing is found for values that people cannot choose. ``flagged`` are the pointers of the scripts to look at, those
    that zizmor names; None stands for all.
    """
    starts = [*dict.fromkeys(starts_of(path, files))]
    found, memory = [], dict[object, object]()
    for job_id, job in files[path].jobs.items():
        for step in job.steps:
            scripts = [*_scripts(step, pointer("jobs", job_id) + step.place, flagged)]
            scopes = [
                Scope(files, path, start, job_id, step, memory)
                for start in starts
                if scripts and reaches(files, path, job_id, start, Actor.WRITER)
                if runs_step(job, step, start, Actor.WRITER)
            ]
            found += [finding for script in scripts for finding in _findings(script, scopes)]
    return found


def _scripts(step: Step, path: str, flagged: Collection[str] | None) -> Iterator[_Script]:
    """Yield the scripts of a step that hold expressions."""
    is_github_script = step.uses.partition("@")[0].lower() == "actions/github-script"
    named = [("run", step.run), ("shell", step.shell)]
    named += [(f"with{pointer(name)}", str(value)) for name, value in step.given.items()]
    for key, text in named:
        where, name = f"{path}/{key}", key.removeprefix("with/")
        read = "process.env.{}" if is_github_script else '"${}"'
        is_code = name == key or (is_github_script and name == "script")
        is_unseen = key == "shell" or (step.uses.startswith("docker:") and name in {"args", "entrypoint"})  # by zizmor
        is_code |= is_unseen
        is_likely = not is_code and name.lower() in _SCRIPTS and not step.uses.startswith(("./", "$/"))
        is_code = is_code if flagged is None or is_unseen else where in flagged
        if "${{" in text and (is_code or is_likely):
            yield _Script(text, where, read, is_code)


def _findings(script: _Script, scopes: Sequence[Scope]) -> Iterator[Finding]:
    """Report each untrusted expression of a script once, with the variable to use instead."""
    for expression in dict.fromkeys(embedded(script.text)):
        parsed = parse(expression)
        references = sorted(parsed.yields) if parsed else [("an unreadable expression",)]
        graded = [(severity, ref) for ref in references if (severity := _severity(ref, scopes))]
        if not graded:
            continue
        severity, ref = min(graded)
        variable = _variable(ref)
        hint = f"env:\n  {variable}: ${{{{ {expression} }}}}\n# and in the script: {script.read.format(variable)}"
        whose = "outsiders choose" if severity is Severity.ERROR else "people with write access or callers choose"
        message = f"`{'.'.join(ref)}` is inserted into the script, so text that {whose} can run. Pass it as a variable."
        chosen = Origin.OUTSIDERS if severity is Severity.ERROR else Origin.OUTSIDERS | Origin.WRITERS
        user = next((scope.user for scope in scopes if scope.user and scope.of_reference(ref) & chosen), None)
        if user:
            place = user.in_workflow
            message += f" The action is used in the job `{place.job_id}` of `{place.path}`."
        if not script.is_surely_code:
            severity = Severity.WARNING
        yield Finding("unsafe-interpolation", message, script.path, severity, hint=hint)


def _severity(ref: Reference, scopes: Sequence[Scope]) -> Severity | None:
    """Return how much it weighs that a reference is inserted: by who chooses its text."""
    origins = [scope.of_reference(ref) for scope in scopes]
    if any(origin & Origin.OUTSIDERS for origin in origins):
        return Severity.ERROR
    return Severity.WARNING if any(origin & Origin.WRITERS for origin in origins) else None


def _variable(ref: Reference) -> str:
    """Return a variable's name of two words, so that it is never PATH."""
    words = [part for part in ref if part not in {"*", "outputs"}]
    return re.sub(r"\W", "_", "_".join(words[-2:])).upper()


_COMMIT = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?", re.IGNORECASE)
_DIGEST = re.compile(r"@sha256:[0-9a-f]{64}\Z", re.IGNORECASE)
_LOCAL = ("./", "../", "$/")
"""``$/`` is the workflow's own repository at its own commit (GitHub, 2026-07)."""


def uses_of(workflow: Workflow) -> Iterator[tuple[str, str]]:
    """Yield the JSON pointer and the value of every ``uses``."""
    for job_id, job in workflow.jobs.items():
        if job.uses:
            yield pointer("jobs", job_id, "uses"), job.uses
        for step in job.steps:
            if step.uses:
                yield pointer("jobs", job_id) + step.place + "/uses", step.uses


def pin_findings(workflow: Workflow) -> Iterator[Finding]:
    """Find actions, workflows and images that are not pinned."""
    for path, uses in uses_of(workflow):
        name, _, ref = uses.partition("@")
        what, hint = "the commit by its 40 digits", f"<40 digits of the commit of {ref or 'a release'}>"
        hint = f"uses: {name}@{hint} # {ref or 'vX.Y.Z'}"
        if uses.startswith("docker://"):
            what, hint = "the image by its digest", f"uses: {name}@sha256:<digest>"
        if not is_pinned(uses):
            message = f"`{uses}` is not pinned, so its owner can change what runs here. Pin {what}."
            yield Finding("unpinned-action", message, path, hint=hint)


def is_pinned(uses: str) -> bool:
    """Return whether ``uses`` names code that cannot change: local, at a commit, or an image by digest."""
    if uses.startswith(_LOCAL) or uses == ".":
        return True
    if uses.startswith("docker://"):
        return _DIGEST.search(uses) is not None
    return _COMMIT.fullmatch(uses.rpartition("@")[2]) is not None and "@" in uses
