"""Splitting of a job that runs an agent with a token that writes: one job runs it and only reads, one publishes. Pure.

The steps at the end of the job that only use git, gh or a known publishing action move to the second job, unchanged.
The agent's changes get there as a patch in an artifact. A job where that would lose something stays as it is.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from accord.core.errors import BrokenContract
from accord.core.findings import pointer
from accord.core.fixes import Fix
from accord.core.shapes import read_shape
from accord.files.yaml import places_in, read_mapping
from accord.workflows.agents import is_agent_action, runs_agent
from accord.workflows.edits import add_setting, column, line_start
from accord.workflows.models import Workflow

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from accord.files.yaml import Place
    from accord.workflows.models import Job, Step

HARMLESS_SCOPES = frozenset({"id-token", "models", "copilot-requests"})
"""Permissions that write nothing into the repository: a proof of identity, and the use of models."""

_UPLOAD = "actions/upload-artifact@043fb46d1a93c77aae656e7c1c64a875d1fc6a0a # v7.0.1"
_KEYS = frozenset({
    "name", "runs-on", "permissions", "if", "timeout-minutes", "steps", "cache-mode", "needs", "concurrency",
    "environment", "env",
})  # fmt: skip
"""Keys of a job that is split. Others, such as a matrix, services or outputs, would have to be divided as well."""

_PUBLISHES = re.compile(
    r"\s*(?:#.*|(?:git|gh|echo|printf|set|exit|if|then|else|elif|fi|cd|test|true|export|\[\[?|[A-Za-z_]\w*=|\}|\{|done|for|do)"
    r"(?:[\s;=].*)?|[A-Za-z_]\w*=.*|[)\]};]+.*)?"
)
_PUBLISHING_ACTION = re.compile(r"(?:peter-evans/create-pull-request|stefanzweifel/git-auto-commit-action)@.+")
_READS_BEFORE = re.compile(r"\bsteps\s*(?:\.|\[)|\bjob\.|RUNNER_TEMP|/tmp\b")
_OTHER_CODE = re.compile(r"\b(?:npm|npx|make|python3?|node|bash|sh|yarn|pnpm|uv|pip|cargo|go)\s")


@dataclass(frozen=True)
class Split:
    """A text whose jobs are split, what was done, and why other jobs were left."""

    text: str
    fixes: tuple[Fix, ...] = ()
    left: tuple[Fix, ...] = ()


def written_scopes(workflow: Workflow, job: Job) -> Sequence[str]:
    """Return the permissions by which a job's token may write into the repository, as far as the workflow tells."""
    granted = workflow.permissions if job.permissions is None else job.permissions
    if granted == "write-all":
        return ["everything"]
    if isinstance(granted, dict):
        return [scope for scope, level in granted.items() if level == "write" and scope not in HARMLESS_SCOPES]
    return []


def split_agent_jobs(text: str, programs: frozenset[str]) -> Split:
    """Split every job that runs an agent and may write, where that can be done right."""
    try:
        workflow = read_shape(Workflow, read_mapping(text.encode("utf-8")).value)
    except BrokenContract:
        return Split(text)
    places = places_in(text)
    fixes, left = [], []
    changed = text
    for job_id, job in reversed(workflow.jobs.items()):  # later ones first: places before them stay
        agents = [i for i, step in enumerate(job.steps) if runs_agent(step, programs)]
        if not agents or not written_scopes(workflow, job):
            continue
        path = pointer("jobs", job_id)
        count = _publishing_steps(job, agents[-1])
        if reason := _check_split(workflow, places, job_id, agents, count):
            left.append(Fix(f"The job `{job_id}` was not split: {reason}.", path))
            continue
        changed = _split_job(changed, places, job_id, job, agents[0], count)
        fixes.append(Fix(f"Split the job `{job_id}`: the agent only reads, and `{job_id}-publish` publishes.", path))
    return Split(changed, tuple(reversed(fixes)), tuple(reversed(left)))


def _publishing_steps(job: Job, last_agent: int) -> int:
    """Return how many steps at the end only publish."""
    count = 0
    for step in reversed(job.steps[last_agent + 1 :]):
        if not _only_publishes(step):
            break
        count += 1
    return count


def _only_publishes(step: Step) -> bool:
    if step.uses:
        return _PUBLISHING_ACTION.fullmatch(step.uses) is not None
    script = re.sub(r"\\\r?\n", " ", step.run)
    is_plain = all(_PUBLISHES.fullmatch(line) for line in script.splitlines()) and not _OTHER_CODE.search(script)
    return bool(step.run) and is_plain and re.search(r"\b(?:git|gh)\s", script) is not None


def _check_split(
    workflow: Workflow, places: Mapping[str, Place], job_id: str, agents: Sequence[int], count: int
) -> str:
    """Return why a job cannot be split without losing something; empty if it can."""
    job = workflow.jobs[job_id]
    path = pointer("jobs", job_id)
    moved = job.steps[len(job.steps) - count :]
    given = job.model_fields_set | set(job.model_extra or ())
    names = {"condition": "if", "cache_mode": "cache-mode", "given": "with"}
    others = sorted({names.get(key, key) for key in given} - _KEYS)
    checkouts = [step for step in job.steps[: agents[0]] if step.uses.startswith("actions/checkout@")]
    texts = [str(step.model_dump(by_alias=True)) for step in moved]
    variables = [name for name in (job.env if isinstance(job.env, dict) else {}) if any(name in text for text in texts)]
    itself = any(is_agent_action(job.steps[i]) and not _leaves_changes(job.steps[i]) for i in agents)
    more = set(written_scopes(workflow, job)) - {"contents", "pull-requests", "issues"}
    has_secrets = "environment" in given and any("secrets." in text for text in texts)
    is_elsewhere = len(checkouts) != 1 or {"path", "repository", "submodules", "lfs"} & set(checkouts[0].given)
    reads = any(_READS_BEFORE.search(text) for text in texts)
    is_awaited = any(job_id in other.needs for other in workflow.jobs.values())
    is_split = f"{job_id}-publish" in workflow.jobs or any(step.id == "before-agent" for step in job.steps)
    reasons = (
        (itself, "the agent's action itself writes to GitHub. Give its job only what it must write"),
        (not count, "no steps after the agent only publish, with git or gh"),
        (more, "it writes more than contents, pull requests and issues"),
        (others, f"its key `{''.join(others[:1])}` would have to be divided as well"),
        (has_secrets, "the steps that publish read secrets of its environment"),
        (variables, f"the steps that publish read `{''.join(variables[:1])}` of the job's `env`"),
        (is_elsewhere, "it needs exactly one checkout before the agent, at the root"),
        (reads, "the steps that publish read values or files of the steps before them"),
        (is_awaited, "other jobs wait for it"),
        (is_split, "it was split before"),
        (not _is_plain(job, places, path), "it is written in one line, or with anchors or groups of steps"),
    )
    return next((reason for applies, reason in reasons if applies), "")


def _is_plain(job: Job, places: Mapping[str, Place], path: str) -> bool:
    """Return whether a job is written in lines that can be moved: no flow style, no anchors, no groups of steps."""
    below = [place for key, place in places.items() if key == path or key.startswith(path + "/")]
    blocks = [path, path + "/steps", *(path + step.place for step in job.steps)]
    is_block = all(name in places and not places[name].is_flow for name in blocks)
    return (
        is_block
        and not any(place.is_shared for place in below)
        and path + "/runs-on" in places
        and (places[path + "/runs-on"].kind == "scalar" and all(step.place.count("/") == 2 for step in job.steps))
    )


def _leaves_changes(step: Step) -> bool:
    """Return whether an agent's action only changes files."""
    return step.uses.partition("@")[0].lower() in {"openai/codex-action", "google-github-actions/run-gemini-cli"}


def _split_job(text: str, places: Mapping[str, Place], job_id: str, job: Job, first_agent: int, count: int) -> str:
    """Return the text with the job's publishing steps in a job of their own behind it."""
    path = pointer("jobs", job_id)
    newline = "\r\n" if "\r\n" in text else "\n"
    dash = column(text, _item_start(text, places[path + job.steps[0].place].start))
    key = column(text, places[path + "/steps"].key)
    name = column(text, places[path].key)
    moved_at = _with_comments_above(
        text, _item_start(text, places[path + job.steps[len(job.steps) - count].place].start)
    )
    end = _content_end(text, places[path + job.steps[-1].place])
    checkout = next(step for step in job.steps if step.uses.startswith("actions/checkout@"))
    start = _item_start(text, places[path + checkout.place].start)
    from_line, to_line = line_start(text, start), _content_end(text, places[path + checkout.place])
    copied = text[from_line:to_line]
    keep = add_setting(text, path + checkout.place, places, "persist-credentials: true # the steps below may push")
    if keep and "persist-credentials" not in checkout.given:
        at = keep.start - from_line
        copied = copied[:at] + keep.text + copied[at:]
    agent_at = _with_comments_above(text, _item_start(text, places[path + job.steps[first_agent].place].start))
    artifact = f"{job_id}-changes"
    before = _lines(dash, ["- id: before-agent", '  run: echo "commit=$(git rev-parse HEAD)" >> "$GITHUB_OUTPUT"'])
    saved = _lines(dash, [
        "- name: Save the changes of the agent",
        "  env:",
        "    BASE: ${{ steps.before-agent.outputs.commit }}",
        "  run: |",
        "    git add --all",
        '    git diff --cached --binary "$BASE" > "$RUNNER_TEMP/changes.patch"',
        f"- uses: {_UPLOAD}",
        "  with:",
        f"    name: {artifact}",
        "    path: ${{ runner.temp }}/changes.patch",
        "    retention-days: 1",
    ])  # fmt: skip
    step = key - name
    head = [f"{job_id}-publish:", f"{' ' * step}needs: {job_id}"]
    head += [f"{' ' * step}runs-on: {_source(text, places[path + '/runs-on'])}", f"{' ' * step}permissions:"]
    granted = _granted(text, places, path)
    head += [f"{' ' * (2 * step)}{line}" for line in ["actions: read # for the artifact", *granted]]
    applied = _lines(dash, [
        "- name: Apply the changes of the agent",
        "  env:",
        "    GH_TOKEN: ${{ github.token }}",
        "  run: |",
        f'    gh run download "$GITHUB_RUN_ID" --name {artifact} --dir "$RUNNER_TEMP"',
        '    if [ -s "$RUNNER_TEMP/changes.patch" ]; then',
        '      git apply --binary --whitespace=nowarn "$RUNNER_TEMP/changes.patch"',
        "    fi",
    ])  # fmt: skip
    publish = _lines(name, head) + f"{' ' * key}steps:\n" + copied.rstrip("\r\n") + "\n" + applied
    moved = text[moved_at:end].rstrip("\r\n") + "\n"
    added = saved + "\n" + publish + moved
    added = added.replace("\r\n", "\n").replace("\n", newline)
    kept = text[agent_at:moved_at]
    rest = text[end:]
    return _read_only(text[:agent_at], places, path, job) + before.replace("\n", newline) + kept + added + rest


def _granted(text: str, places: Mapping[str, Place], path: str) -> list[str]:
    """Return the permissions of a job as lines, from the job or from the workflow."""
    place = path + "/permissions" if path + "/permissions" in places else "/permissions"
    scopes = [key for key in places if key.rpartition("/")[0] == place]
    if not scopes:
        return ["contents: write", "issues: write", "pull-requests: write"]
    lines = [f"{key.rpartition('/')[2]}: {_source(text, places[key])}" for key in scopes]
    return [line for line in lines if line.partition(":")[0] not in {*HARMLESS_SCOPES, "actions"}]


def _read_only(head: str, places: Mapping[str, Place], path: str, job: Job) -> str:
    """Return the text before the agent with permissions of the job that only read."""
    own = places.get(path + "/permissions")
    if own is None:
        at = places[path + "/steps"].key
        indent = " " * column(head, at)
        return f"{head[:at]}permissions:\n{indent}  contents: read\n{indent}{head[at:]}"
    if own.kind == "scalar":
        return f"{head[: own.start]}{{contents: read}}{head[own.end :]}"
    scopes = [
        places[f"{path}/permissions/{scope}"]
        for scope, level in (job.permissions.items() if isinstance(job.permissions, dict) else ())
        if level == "write" and scope not in HARMLESS_SCOPES
    ]
    for place in sorted(scopes, key=lambda place: place.start, reverse=True):
        head = head[: place.start] + head[place.start : place.end].replace("write", "read") + head[place.end :]
    return head


def _source(text: str, place: Place) -> str:
    return text[place.start : place.end].strip()


def _item_start(text: str, index: int) -> int:
    """Return the place of the dash of a list's item."""
    return text.rfind("-", 0, index)


def _with_comments_above(text: str, index: int) -> int:
    """Return the start of the line of a place, or of the comments right above it."""
    start = line_start(text, index)
    while start:
        above = line_start(text, start - 1)
        if not text[above:start].lstrip().startswith("#"):
            break
        start = above
    return start


def _content_end(text: str, place: Place) -> int:
    """Return the end of the last line of a step, without blank lines and comments behind it."""
    lines = text[place.start : place.end].splitlines(keepends=True)
    least = column(text, place.start)
    while len(lines) > 1:
        last = lines[-1]
        indent = len(last) - len(last.lstrip(" "))
        if last.strip() and not (last.lstrip().startswith("#") and indent < least) and last.endswith(("\n", "\r")):
            break
        if last.strip() and not last.lstrip().startswith("#") and indent >= least:
            break
        lines.pop()
    end = place.start + sum(map(len, lines))
    line_end = text.find("\n", end - 1)
    return len(text) if line_end < 0 else line_end + 1


def _lines(indent: int, lines: Sequence[str]) -> str:
    return "".join(f"{' ' * indent}{line}\n" for line in lines)
