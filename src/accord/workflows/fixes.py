"""Corrections of workflow files that keep every other character: pins, permissions, and the token in checkouts. Pure.

A correction is made only where the workflow does the same afterwards; for any other place, a sentence says why not.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

from accord.core.errors import BrokenContract
from accord.core.findings import pointer
from accord.core.fixes import Fix
from accord.core.frozen import Frozen
from accord.core.shapes import read_shape
from accord.files.yaml import Place, places_in, read_mapping
from accord.text.views import Edit, View
from accord.workflows.agents import KnownAgents, agent_steps, written_scopes
from accord.workflows.commands import commands_of
from accord.workflows.models import Job, Step, Workflow
from accord.workflows.rules import is_pinned, uses_of
from accord.workflows.wiring import PLAIN_COMMANDS

TWO_JOBS = Path(__file__).with_name("two-jobs.yml")
"""The template of a job that runs an agent and one that publishes its changes."""

PINS = {
    "actions/checkout": ("v7.0.1", "3d3c42e5aac5ba805825da76410c181273ba90b1"),
    "actions/setup-python": ("v7.0.0", "5fda3b95a4ea91299a34e894583c3862153e4b97"),
    "astral-sh/setup-uv": ("v10.0.1", "20cfd1bf945f4377ade1205e4dbc17946fc9a30d"),
    "actions/cache": ("v6.1.0", "55cc8345863c7cc4c66a329aec7e433d2d1c52a9"),
    "actions/upload-artifact": ("v7.0.1", "043fb46d1a93c77aae656e7c1c64a875d1fc6a0a"),
}
"""Commits of releases that are known without asking GitHub."""


_Found = tuple[Edit | None, Fix]
"""An edit with what it corrects, or none with the reason."""

Resolve = Callable[[str, str], str | None]
"""Returns the commit of a tag or branch of a repository, or None."""

_REMOTE = re.compile(r"(?P<repository>[\w.-]+/[\w.-]+)(?P<path>/[^@]*)?@(?P<ref>\S+)")
_USES_TOKEN = re.compile(
    r"\bgit\b[^\n]*\b(?:push|fetch|pull|submodule|lfs|ls-remote|clone|remote)\b|(?<!\.)\bexec\b|child_process"
    r"|\b(?:require|import)\b(?!\(['\"](?:node:)?\w+['\"]\))"
    r"|extraheader"
)
"""A script uses git with a token or, in JavaScript, may start another program that does."""

_WITH_TOKEN = re.compile(r"GITHUB_TOKEN|github\.token|github-script@", re.IGNORECASE)
"""The job's token is named, or an action gets it."""

_READING = {
    *PLAIN_COMMANDS, "mypy", "pytest", "ruff", "cargo build", "cargo test", "go build", "go test", "npm ci",
    "npm install", "npm test", "pip install", "python -m", "python3 -m", "uv pip", "uv run", "uv sync",
    "git --version", "git add", "git blame", "git branch", "git cat-file", "git config", "git describe", "git diff",
    "git grep", "git log", "git ls-files", "git ls-tree", "git merge-base", "git rev-list", "git rev-parse",
    "git shortlog", "git show", "git status",
} - {"gh", "git"}  # fmt: skip
"""Programs, some with their first word, that do not use git with a token: they read, install, build and test."""

_READING_ACTIONS = (
    "actions/checkout@", "actions/setup-", "actions/cache", "actions/upload-artifact@", "actions/download-artifact@",
    "actions/github-script@", "astral-sh/setup-uv@",
)  # fmt: skip
"""Actions that write nothing into the repository by themselves."""


class Fixed(Frozen):
    """A corrected text, what was corrected in it, and why other places were not."""

    text: str
    fixes: tuple[Fix, ...] = ()
    left: tuple[Fix, ...] = ()
    has_agent_job: bool = False
    """Whether a job runs an agent that may write: it should be two jobs, as in ``TWO_JOBS``."""


def fix_workflow(text: str, resolve: Resolve, known: KnownAgents) -> Fixed:
    """Return the text of a workflow with its corrections; ``resolve`` returns the commit of a repository's ref."""
    workflow = _read(text)
    if workflow is None:
        return Fixed(text)
    places = places_in(text)
    found = [
        *_pins(text, workflow, places, resolve),
        *_checkouts(text, workflow, places),
        *_permissions(workflow, places),
    ]
    line_end = "\r\n" if "\r\n" in text else "\n"
    fixed = View(text, (edit._replace(new=edit.new.replace("\n", line_end)) for edit, _ in found if edit)).text
    if _read(fixed) is None:
        return Fixed(text, left=(Fix("The corrected file could not be read, so it was left as it is."),))
    agent_jobs = [
        Fix(f"The template shows two jobs in place of `{job_id}`, whose agent may write", pointer("jobs", job_id))
        for job_id, job in workflow.jobs.items()  # only a person knows which of their steps publish
        if written_scopes(workflow.permissions_of(job)) and any(agent_steps(workflow, job, known))
    ]
    left = (*(fix for edit, fix in found if not edit), *agent_jobs)
    return Fixed(fixed, tuple(fix for edit, fix in found if edit), left, has_agent_job=bool(agent_jobs))


def _read(text: str) -> Workflow | None:
    try:
        return read_shape(Workflow, read_mapping(text.encode("utf-8")).value)
    except BrokenContract:
        return None


def _pins(text: str, workflow: Workflow, places: Mapping[str, Place], resolve: Resolve) -> Iterator[_Found]:
    for path, uses in uses_of(workflow):
        place, named = places.get(path), _REMOTE.fullmatch(uses)
        if is_pinned(uses) or place is None or place.is_shared or named is None:
            continue
        version, commit = PINS.get(named["repository"], ("", None))
        if named["ref"] not in {version, version.rpartition(".")[0], version.partition(".")[0]}:
            version, commit = named["ref"], resolve(named["repository"], named["ref"])
        if commit is None:
            message = f"`{uses}` is not pinned, because its commit is not known. Set `GITHUB_TOKEN` to ask GitHub."
            yield None, Fix(message, path)
            continue
        written = text[place.start : place.end]
        rest = text[place.end :].partition("\n")[0]
        comment = "" if rest.strip() else f" # {version}"
        new = written.replace(f"@{named['ref']}", f"@{commit}") + comment
        yield Edit(place.start, place.end, new), Fix(f"Pinned `{uses}` to its commit.", path)


def _checkouts(text: str, workflow: Workflow, places: Mapping[str, Place]) -> Iterator[_Found]:
    """Keep the job's token out of `.git/config`, where agents and scripts could read it."""
    for job_id, job in workflow.jobs.items():
        for i, step in enumerate(job.steps):
            if not step.uses.startswith("actions/checkout@") or "persist-credentials" in step.given:
                continue
            path = pointer("jobs", job_id) + step.place
            if user := _token_user(job.steps[i + 1 :]):
                yield None, Fix(f"This checkout keeps its token, because {user} may need it.", path)
                continue
            edit = _without_token(text, path, places)
            done, by_hand = "Kept the token of this checkout out of `.git/config`.", "Add `persist-credentials: false`."
            yield edit, Fix(done if edit else by_hand, path)


def _token_user(steps: Sequence[Step]) -> str:
    """Return which of these steps may use git with the token; empty if none does."""
    for step in steps:
        commands = ([word for word in words if word != "--no-pager"] for words in commands_of(step.run))
        programs = (words[:2] for words in commands if words and not words[0][:1].isdigit())
        starts_other = any(words[0] not in _READING and " ".join(words) not in _READING for words in programs)
        if starts_other or any(map(_USES_TOKEN.search, step.script_texts)):
            return "a later script"
        if step.uses and not step.uses.startswith(_READING_ACTIONS):
            return f"`{step.uses.partition('@')[0]}`"
    return ""


def _permissions(workflow: Workflow, places: Mapping[str, Place]) -> Iterator[_Found]:
    """Give a workflow that declares no permissions those that its scripts need, if they only read."""
    own = [job_id for job_id, job in workflow.jobs.items() if job.permissions is not None]
    if workflow.permissions is not None or len(own) == len(workflow.jobs) or "/jobs" not in places:
        return
    writers = own or [job_id for job_id, job in workflow.jobs.items() if _may_write(workflow, job)]
    if writers:
        named = ", ".join(f"`{job_id}`" for job_id in writers)
        why = "declares some of its own" if own else "may write, or calls a workflow that may"
        yield None, Fix(f"Permissions are not declared, because {named} {why}.", "/jobs")
        return
    at = places["/jobs"].key
    yield Edit(at, at, "permissions:\n  contents: read\n\n"), Fix("Declared `contents: read`.", "/permissions")


def _may_write(workflow: Workflow, job: Job) -> bool:
    texts = map(str, (workflow.env, job.env, job.model_extra, *(part for step in job.steps for part in step)))
    return bool(job.uses or _token_user(job.steps)) or any(map(_WITH_TOKEN.search, texts))


def _column(text: str, index: int) -> int:
    return index - text.rfind("\n", 0, index) - 1


def _without_token(text: str, path: str, places: Mapping[str, Place]) -> Edit | None:
    """Add ``persist-credentials: false`` to the checkout at a pointer; None where its form leaves no sure place."""
    setting = "persist-credentials: false"
    step, given, uses = places.get(path), places.get(path + "/with"), places.get(path + "/uses")
    if step is None or uses is None or step.is_shared or (given and (given.is_shared or given.kind != "mapping")):
        return None
    if given:
        keys = [place.key for key, place in places.items() if key.rpartition("/")[0] == path + "/with"]
        if not keys:
            return None
        first = min(keys)
        return Edit(first, first, f"{setting}, " if given.is_flow else f"{setting}\n{' ' * _column(text, first)}")
    if step.is_flow:
        return Edit(uses.end, uses.end, f", with: {{{setting}}}")
    end = uses.end + len(text[uses.end :].partition("\n")[0].removesuffix("\r"))
    indent = " " * _column(text, uses.key)
    return Edit(end, end, f"\n{indent}with:\n{indent}  {setting}")
