"""Steps that check out the code of a pull request where its author is not trusted but the run is.

Runs of ``pull_request`` from forks have a read-only token and no secrets; those of other events have both. Source:
GitHub documentation, "Securely using pull_request_target" and "Events that trigger workflows".
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING

from accord.core.findings import Finding, Severity, pointer
from accord.workflows.origins import Origin, Scope
from accord.workflows.scripts import lines_of
from accord.workflows.starters import CALLED, OUTSIDERS, STRANGERS, Actor, reaches, runs_step, starts_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from accord.core.findings import PlacedFinding
    from accord.workflows.facts import RepositoryFacts
    from accord.workflows.models import Workflow
    from accord.workflows.starters import Start

_OTHERS = frozenset({"schedule", "repository_dispatch", "check_run", "check_suite", CALLED})
"""Events of the repository or of apps whose runs may meet pull requests of outsiders."""

_CHECKOUT_ACTION = re.compile(r"checkout|git-clone|clone-repo", re.IGNORECASE)
_PULL_REF = re.compile(r"\b(?:refs/)?pull/[^/\s]+/(?:head|merge)\b")
_ALLOW = "allow-unsafe-pr-checkout"

_GIT = re.compile(
    r"\bgit(?:['\"`]\s*,\s*(?:\[\s*)?['\"`]?|(?:\s+-[cC]\s+\S{1,200}|\s+--[\w-]{1,40}(?:=\S{1,200})?){0,6}\s+)"
    r"(?P<verb>checkout|switch|reset|merge|pull|rebase|worktree|clone|cherry-pick|read-tree|archive|restore|fetch|remote|apply|am)"
    r"\b(?!-)(?P<words>(?:\\\n|\"[^\"]*\"|'[^']*'|\$\{\{[^}]*\}\}|[^;&|\n])*)"
)
_NEW_BRANCH = re.compile(r"(?:^|\s)(?:-[bBcC]|--orphan)\s+(?:\"[^\"]*\"|\S+)")
_OTHER = re.compile(
    r"\b(?:gh\s+(?:-\S{1,40}\s+){0,6}(?P<verb>pr\s+checkout|repo\s+clone|api|pr\s+diff)|curl|wget|Invoke-WebRequest"
    r"|pip3?\s+install|npm\s+(?:i|install)|npx|uvx|uv\s+pip\s+install|go\s+(?:install|run))\b(?P<words>[^;&\n]*)"
)
_ARCHIVE = re.compile(r"tarball|zipball|/archive/|codeload|git\+|github:|\.patch\b|\.diff\b")
_PRINTS = re.compile(r"\s*(?:echo|printf|core\.\w+|console\.\w+)\b(?!.*(?:\$\(|\|))")
_APPLIES = re.compile(r"\bgit\s+(?:apply|am)\b|\bpatch\s+-p")


def check_checkouts(facts: RepositoryFacts) -> Iterator[PlacedFinding]:
    """Find steps that check out the code of a pull request in runs with secrets or a token that writes."""
    files = facts.files
    for path, workflow in files.items():
        found = [start for start in dict.fromkeys(starts_of(path, files)) if start.event in STRANGERS | _OTHERS]
        starts = [start for start in found if _may_be_foreign(files, path, start)]
        for job_id, job in workflow.jobs.items() if starts else ():
            memory: dict[object, object] = {}
            for step in job.steps:
                scopes = [Scope(files, path, start, job_id, step, memory) for start in starts]
                graded = [(severity, scope) for scope in scopes if (severity := _severity(scope))]
                for severity, scope in sorted(graded, key=lambda each: (each[0], each[1].start.event not in STRANGERS)):
                    if named := _checked_out(scope):
                        yield path, facts.in_its_file(path, _finding(scope, *named, severity))
                        break


def _severity(scope: Scope) -> Severity | None:
    """Return an error if an outsider alone gets the step to run, and a warning if a writer has to help."""
    event, step = scope.start.event, scope.step
    if event == CALLED and not _may_write(scope):
        return None  # callers cannot give the job more than it asks for
    graded = {Actor.ALONE: Severity.ERROR, Actor.HELPED: Severity.WARNING}
    for actor, severity in graded.items() if event in STRANGERS else [(Actor.WRITER, Severity.WARNING)]:
        is_reached = reaches(scope.files, scope.path, scope.job_id, scope.start, actor)
        if is_reached and runs_step(scope.job, step, scope.start, actor):
            return severity
    return None


def _may_write(scope: Scope) -> bool:
    """Return whether a job's token may write, as far as its workflow tells."""
    scope = scope.in_workflow
    granted = scope.workflow.permissions if scope.job.permissions is None else scope.job.permissions
    return "write" in granted.values() if isinstance(granted, dict) else granted not in {"read-all", ""}


def _may_be_foreign(files: Mapping[str, Workflow], path: str, start: Start) -> bool:
    """Return whether pull requests can be behind an event: ``workflow_run`` may only follow workflows without them."""
    if start.by:
        return _may_be_foreign(files, start.caller[0], start.by)
    if start.event != "workflow_run":
        return True
    named = files[path].filters("workflow_run").get("workflows")
    names = [named] if isinstance(named, str) else named or []
    before = {workflow.name: set(workflow.events) for workflow in files.values()}
    return not names or any(name not in before or before[name] & (OUTSIDERS | {CALLED}) for name in map(str, names))


def _checked_out(scope: Scope) -> tuple[str, str] | None:
    """Return what foreign code a step checks out, and the pointer of the place that says so below the step."""
    step = scope.step
    if _CHECKOUT_ACTION.search(step.uses.partition("@")[0]):
        for name in ("ref", "repository"):
            value = str(step.given.get(name, ""))
            if _is_foreign(scope, scope.of_text(value)) or _PULL_REF.search(value):
                return value, pointer("with", name)
        is_allowed = str(step.given.get(_ALLOW)).lower() == "true"
        if is_allowed and scope.start.event in {"pull_request_target", "workflow_run"}:
            return f"{_ALLOW}: true", pointer("with", _ALLOW)
    for text in step.script_texts:
        if command := _foreign_command(scope, text):
            called = next((f"{each.path}: " for each in step.scripts if each.text == text), "")
            return called + command, "/run" if step.run else pointer("with", "script")
    return None


def _is_foreign(scope: Scope, origin: Origin) -> bool:
    """Return whether a value names foreign code: a pull request, or what an outsider of a known event chose."""
    wanted = Origin.CODE if scope.start.event == CALLED else Origin.CODE | Origin.OUTSIDERS
    return bool(origin & wanted)


def _foreign_command(scope: Scope, script: str) -> str:
    """Return the command of a script that brings foreign code into the work tree; empty without one."""
    fetched = _fetched_before(scope)
    for line in _commands(script):
        for at in _GIT.finditer(line):
            words = _NEW_BRANCH.sub(" ", at["words"]) if at["verb"] in {"checkout", "switch"} else at["words"]
            if not _names_foreign(scope, words, fetched):
                continue
            if at["verb"] not in {"fetch", "remote"}:
                return at[0].strip()
            fetched |= _names_of(at["verb"], at["words"], fetched)
        for at in _OTHER.finditer(line):
            origin = scope.of_script_text(at["words"])
            match (at["verb"] or "download").split()[-1]:
                case "checkout":
                    is_found = True
                case "diff":
                    is_found = _APPLIES.search(script) is not None
                case "download":
                    is_found = _ARCHIVE.search(at["words"]) is not None and bool(origin & Origin.CODE)
                case verb:
                    is_found = _is_foreign(scope, origin) and (verb == "clone" or _ARCHIVE.search(line) is not None)
            if is_found:
                return at[0].strip()
    return ""


def _commands(script: str) -> Iterator[str]:
    return (line for line in lines_of(script) if not _PRINTS.match(line))


def _names_foreign(scope: Scope, words: str, fetched: set[str]) -> bool:
    origin = scope.of_script_text(words)
    return _is_foreign(scope, origin) or _PULL_REF.search(words) is not None or bool(fetched & _split(words))


def _fetched_before(scope: Scope) -> set[str]:
    """Return the names under which earlier steps of the job fetched foreign commits."""
    fetched = _fetched_before(scope.user) if scope.user else set()
    for step in scope.earlier:
        within = replace(scope, step=step)
        for line in (line for text in step.shell_texts for line in _commands(text)):
            for at in _GIT.finditer(line):
                if at["verb"] in {"fetch", "remote"} and _names_foreign(within, at["words"], fetched):
                    fetched |= _names_of(at["verb"], at["words"], fetched)
    return fetched


def _names_of(verb: str, words: str, fetched: set[str]) -> set[str]:
    """Return the names that a fetch or a new remote gives to commits."""
    if verb == "remote":
        added = re.search(r"\badd\s+(?:-\S+\s+)*(\S+)", words)
        return {added[1]} if added else set()
    names = {"FETCH_HEAD"} | {name for name in fetched if name in _split(words)}
    return names | {
        local for local in re.findall(r":(?:refs/heads/|refs/remotes/)?([\w./${}-]+)", words) if local[:1] != "/"
    }


def _split(words: str) -> set[str]:
    whole = set(re.sub(r"[\"'`]", " ", words).split())
    return whole | {word.partition("/")[0] for word in whole} | {word.partition("~")[0] for word in whole}


def _finding(scope: Scope, what: str, place: str, severity: Severity) -> Finding:
    event = scope.start.event
    shown = what if len(what) <= 100 else f"{what[:100]}…"
    if event == CALLED:
        why = "callers may start it with secrets"
    elif severity is Severity.ERROR:
        why = f"outsiders start it with `{event}`, with secrets and the repository's own token"
    elif event in STRANGERS:
        why = f"a writer's approval starts it with `{event}`, and the code may have changed since"
    else:
        why = f"`{event}` starts it with secrets and the repository's own token"
    job = f"job `{scope.job_id}`"
    if scope.user:
        job = f"action, used in the job `{scope.in_workflow.job_id}` of `{scope.in_workflow.path}`,"
    message = f"The {job} checks out code of a pull request (`{shown}`), but {why}."
    hint = (
        "Run that code under `pull_request`, or check out `github.event.pull_request.base.sha` and read the change "
        "with `gh pr diff`."
    )
    path = pointer("jobs", scope.job_id) + scope.step.place + place
    return Finding("untrusted-checkout", message, path, severity, hint=hint)
