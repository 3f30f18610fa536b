"""Untrusted text in scripts, and actions that are not pinned to a commit.

GitHub inserts the value of ``${{ … }}`` into a script before the shell reads it, so a title of ``$(…)`` runs. Source:
GitHub documentation, "Script injections".
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

from accord.core.findings import Finding, Severity, pointer
from accord.workflows.expressions import embedded, parse
from accord.workflows.origins import Origin, origin_of
from accord.workflows.trust import Actor, RunPlace, starts_of

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence

    from accord.core.findings import PlacedFinding
    from accord.workflows.expressions import Reference
    from accord.workflows.models import Step, Workflow

_SCRIPTS = frozenset({"script", "command", "commands", "cmd", "run"})
"""Inputs of actions that usually are scripts."""


class _Script(NamedTuple):
    """A script with its pointer below the step and the way to read a variable in it."""

    text: str
    path: str
    read: str
    is_surely_code: bool


def script_findings(
    path: str, files: Mapping[str, Workflow], flagged: Mapping[str, Collection[str]] | None = None
) -> list[PlacedFinding]:
    """Find expressions in the scripts of a workflow that insert text of outsiders, or, as warnings, of writers.

    Nothing is found for values that people cannot choose. ``flagged`` are the pointers of the scripts to look at by
    file, those that zizmor names; all scripts of other files are looked at.
    """
    starts = [*dict.fromkeys(starts_of(path, files))]
    found: list[PlacedFinding] = []
    for job_id, job in files[path].jobs.items():
        for step, users in job.nested_steps():
            places = [RunPlace(files, path, start, job_id, step, users) for start in starts]
            named = (flagged or {}).get(step.file or path)
            if scripts := [*_scripts(step, places[0].pointer, named)] if places else []:
                places = [place for place in places if place.is_reached_by(Actor.WRITER)]
                found += [(step.file or path, each) for script in scripts for each in _findings(script, places)]
    return found


def _scripts(step: Step, path: str, flagged: Collection[str] | None) -> Iterator[_Script]:
    """Yield the scripts of a step that hold expressions."""
    is_github_script = step.uses.partition("@")[0].lower() == "actions/github-script"
    read = "process.env.{}" if is_github_script else '"${}"'
    if "${{" in step.run and (flagged is None or f"{path}/run" in flagged):
        yield _Script(step.run, f"{path}/run", read, is_surely_code=True)
    if "${{" in step.shell:  # which zizmor does not see
        yield _Script(step.shell, f"{path}/shell", read, is_surely_code=True)
    for name, value in step.given.items():
        where = f"{path}/with{pointer(name)}"
        is_unseen = step.uses.startswith("docker:") and name in {"args", "entrypoint"}  # by zizmor
        is_code = is_github_script and name == "script" if flagged is None else where in flagged
        is_likely = name.lower() in _SCRIPTS and not is_github_script and not step.uses.startswith(("./", "$/"))
        if "${{" in str(value) and (is_unseen or is_code or is_likely):
            yield _Script(str(value), where, read, is_unseen or is_code)


def _findings(script: _Script, places: Sequence[RunPlace]) -> Iterator[Finding]:
    """Report each untrusted expression of a script once, with the variable to use instead."""
    for expression in dict.fromkeys(embedded(script.text)):
        parsed = parse(expression)
        references = sorted(parsed.yields) if parsed else [("an unreadable expression",)]
        graded = [(*grade, ref) for ref in references if (grade := _grade(ref, places))]
        if not graded:
            continue
        severity, place, ref = min(graded, key=lambda each: (each[0], each[2]))
        variable = _variable(ref)
        hint = f"env:\n  {variable}: ${{{{ {expression} }}}}\n# and in the script: {script.read.format(variable)}"
        whose = "outsiders choose" if severity is Severity.ERROR else "people with write access or callers choose"
        message = f"`{'.'.join(ref)}` is inserted into the script, so text that {whose} can run. Pass it as a variable."
        if place.users:
            message += f" The action is used in the job `{place.job_id}` of `{place.path}`."
        severity = severity if script.is_surely_code else Severity.WARNING
        yield Finding("unsafe-interpolation", message, script.path, severity, hint=hint)


def _grade(ref: Reference, places: Sequence[RunPlace]) -> tuple[Severity, RunPlace] | None:
    """Return how much it weighs that a reference is inserted, by who chooses its text, and where that is so."""
    origins = [(origin_of(place, f"${{{{ {'.'.join(ref)} }}}}"), place) for place in places]
    for wanted, severity in ((Origin.OUTSIDERS, Severity.ERROR), (Origin.WRITERS, Severity.WARNING)):
        for origin, place in origins:
            if origin & wanted:
                return severity, place
    return None


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
