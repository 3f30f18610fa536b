"""Read what an event of an issue, a pull request or a push depends on."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import field
from datetime import datetime, timedelta
from functools import cached_property
from itertools import chain, count

from accord.agents import REGISTRY_PATH
from accord.agents.registry_rules import registry_from
from accord.core.clock import Clock, attempts, doubling_pauses, parse_timestamp
from accord.core.errors import BrokenContract
from accord.core.frozen import Frozen
from accord.engine.owner import Owner, PullState, owner_of, pull_state
from accord.engine.trust import names_agent, read_refused_labels
from accord.files.yaml import read_mapping
from accord.git.configuration import find_config, item_of_branch, work_branch
from accord.github.client import GitHub
from accord.github.models import Identity, Issue, NotThere, Pull
from accord.github.pulls import closing_references
from accord.github.workflows import WorkflowRun
from accord.results.bodies import split_body
from accord.results.status import StatusFacts, is_work_item, item_state, open_blockers, status_if_clear
from accord.starts.choose import ItemFacts, head_at
from accord.starts.config import AccordConfig, read_config
from accord.starts.models import ACTIVE, WORKFLOWS, StartEvent, StatusRow, Trigger
from accord.starts.status import StatusView, is_dashboard, view_of
from accord.text.redaction import Redactor

_CLOCKS_DIFFER = timedelta(minutes=5)
_FIRST_PAUSE_SECONDS = 2.0
_SPEC = re.compile(r"docs/specs/.+\.(?i:md|markdown)")
_MOST_BYTES = 64 * 1024
"""The longest front matter of a specification that is read."""

_FRONT_MATTER = re.compile(rb"(?:\xef\xbb\xbf)?---[ \t]*\r?\n(.*?)^---[ \t]*(?:\r?\n|\Z)", re.DOTALL | re.MULTILINE)

APPEARS_WITHIN = timedelta(minutes=10)
"""A run that was started and is not in GitHub's list by then does not exist."""


class StartContext(Frozen):
    """Where starts are read and written."""

    github: GitHub
    repository: str
    page: str  # the repository's address for people
    clock: Clock
    redact: Redactor
    started: dict[str, int] = field(default_factory=dict, repr=False)  # runs by the key of their start, if known
    gone: list[str] = field(default_factory=list, repr=False)  # keys of reactions to comments that were deleted

    @cached_property
    def identity(self) -> Identity:
        """The account of the token."""
        return self.github.identity()

    @cached_property
    def branch(self) -> str:
        """The default branch, the only one whose files count."""
        return self.github.repository().default_branch

    @cached_property
    def config(self) -> AccordConfig:
        """The configuration. Raises BrokenContract for a broken one."""
        return read_config(find_config(lambda path: self.github.find_file(path, self.branch)))

    def agents(self) -> tuple[str, ...]:
        """Name the enabled agents of the registry."""
        return registry_from(self.github.find_file(REGISTRY_PATH.as_posix(), self.branch)).enabled_agents()

    def view(self, number: int) -> StatusView:
        """Read the status comment of an item."""
        return view_of(self.github.comments(number), self.identity, number)

    def now(self) -> datetime:
        """Return GitHub's time."""
        return self.github.server_time()


def item_facts(context: StartContext, event: StartEvent) -> ItemFacts | None:
    """Read the item of an event; None where it is gone."""
    issue = context.github.issue(event.number)
    if issue is None:
        return None
    view = context.view(event.number)
    row = view.status.last
    is_busy = row is not None and row.key != event.key and is_running(context, row)
    agents = None if issue.is_pull or not is_work_item(issue) else context.agents()
    pull = context.github.pull(issue.number) if issue.is_pull and not event.head else None
    head = head_at(pull, event.at, context.repository) if pull else event.head
    is_after_work = agents is not None and status_if_clear(issue) in ("review", "approved")
    newest = _newest_pull(context, issue.number) if is_after_work else None
    chooses = agents is not None and event.trigger is not Trigger.LABEL
    labels = [label for label in issue.labels if chooses and names_agent(label)]
    refused = read_refused_labels(context.github, issue.number, labels, lambda: context.identity)
    return ItemFacts(issue, view, is_busy, agents, is_dashboard(issue, context.identity), head, newest, refused)


def _newest_pull(context: StartContext, item: int) -> PullState | None:
    found: list[Pull] = []
    for number in count(1):
        if not (pulls := context.github.pulls_from(work_branch(item, number, context.config.branch_prefix))):
            break
        found = [*pulls, *found]
    still_open = (pull for pull in found if pull.state == "open")
    if (newest := next(still_open, None)) is None:  # the prefix of the configuration may have changed
        ours = (pull for pull in context.github.open_pulls() if pull.head_repository == context.repository)
        newest = next(chain((pull for pull in ours if item_of_branch(pull.head_branch) == item), found), None)
    return pull_state(newest, closes=item in closing_references(newest)) if newest else None


def merged_items(context: StartContext, event: StartEvent) -> Iterator[tuple[Issue, Owner]]:
    """Yield the items that a merged pull request closes, and who acts next on each.

    An item that was closed since the merge and opened again is left to the person who did so.
    """
    pull = context.github.pull(event.number)
    for number in closing_references(pull) if pull else ():
        issue = context.github.issue(number)
        if pull and issue and is_work_item(issue):
            was_closed = issue.is_open and any(at >= event.at for at in context.github.closings(number))
            yield issue, owner_of(item_state(issue), None if was_closed else pull_state(pull))


def is_running(context: StartContext, row: StatusRow) -> bool:
    """Return whether the run of a start goes on. One that GitHub does not list yet counts for ten minutes."""
    if row.state not in ACTIVE:
        return False
    run = run_of(context, row)
    if run is not None:
        return not run.has_ended
    return context.now() - parse_timestamp(row.since) < APPEARS_WITHIN


def run_of(context: StartContext, row: StatusRow) -> WorkflowRun | None:
    """Return the run of a start; None before GitHub lists it."""
    if row.run:
        return context.github.workflow_run(row.run)
    return find_run(context.github, WORKFLOWS[row.work], row.key, parse_timestamp(row.since))


def find_begun(context: StartContext, file: str, key: str, since: datetime, *, is_known: bool) -> WorkflowRun | None:
    """Find a run by the key of its start. Where one ``is_known`` to have been tried, GitHub gets time to list it."""
    for _ in attempts(context.clock, doubling_pauses(_FIRST_PAUSE_SECONDS, 3) if is_known else ()):
        if run := find_run(context.github, file, key, since):
            return run
    return None


def find_run(github: GitHub, file: str, key: str, since: datetime) -> WorkflowRun | None:
    """Find the run of a workflow by the key of its start, which is in its title; None without the workflow, too."""
    return next(github.dispatched_runs(file, key, since - _CLOCKS_DIFFER), None)


def approved_specs(context: StartContext, event: StartEvent) -> list[str]:
    """Return the paths of the approved specifications that a push changed."""
    changed = context.github.files_between(event.before, event.head)
    paths = (file.path for file in changed if file.status != "removed" and _SPEC.fullmatch(file.path))
    texts = ((path, context.github.find_file(path, event.head)) for path in paths if path.isprintable())
    return [path for path, text in texts if text is not None and is_approved(text)]


def is_approved(text: bytes) -> bool:
    """Return whether the front matter of a specification says ``status: approved``."""
    head = _FRONT_MATTER.match(text[:_MOST_BYTES])
    with suppress(BrokenContract):
        return head is not None and str(read_mapping(head[1]).value.get("status", "")).strip().lower() == "approved"
    return False


def unblocked_items(github: GitHub, number: int) -> Iterator[tuple[Issue, StatusFacts]]:
    """Yield the pending items that the issue blocked, with their open blockers.

    Blockers of the text count too, on servers without dependencies.
    """
    try:
        blocked = {issue.number for issue in github.blocked_issues(number)}
    except NotThere:
        blocked = set()
    for issue in github.issues(state="open"):
        is_blocked = issue.number in blocked or number in split_body(issue.body).blocked_by
        if is_blocked and is_work_item(issue) and status_if_clear(issue) == "pending":
            yield issue, StatusFacts(open_blockers=tuple(open_blockers(github, issue)))
