"""The figures of a period: runs, cost, tokens, results, failures and retries, and what could not be known."""

from __future__ import annotations

import math
import shlex
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, field, replace
from datetime import datetime
from statistics import median
from typing import Any

from accord.core.clock import timestamp
from accord.core.findings import count_of
from accord.core.frozen import Frozen
from accord.github.client import GitHub, as_reader
from accord.github.models import Pull
from accord.records.chain import read_records
from accord.records.models import PublicRecord
from accord.text.markers import REVISION, find_markers

UNKNOWN = "unknown"
"""The group of runs whose agent, model or class of failure is not recorded."""


class RunHistory(Frozen):
    """The runs of a repository that ended in a period, oldest first, and the pull requests that accord opened."""

    repository: str
    options: tuple[str, ...]  # name the repository in commands
    since: datetime
    until: datetime
    records: tuple[PublicRecord, ...] = ()
    pulls: tuple[Pull, ...] = ()  # opened, merged or closed in the period


def read_history(github: GitHub, repository: str, options: tuple[str, ...], since: datetime) -> RunHistory:
    """Read the runs since then: one request for each hundred records and pull requests, and three more."""
    identity = as_reader(github.identity())
    records = read_records(github, since)
    pulls = tuple(
        pull
        for pull in github.pulls_changed_since(since)
        if identity.counts(pull.author) and find_markers(pull.body, REVISION)
        if any(at is not None and at >= since for at in (pull.created_at, pull.merged_at or pull.closed_at))
    )
    return RunHistory(repository, options, since, github.server_time(), records, pulls)


class Figures(Frozen):
    """Sums over some runs of agents.

    Cost (US dollars), tokens and seconds are those that agents reported, None where none did; the counts ``with_…``
    say how many runs these cover. ``ended_well`` counts runs that succeeded or found nothing to do.
    """

    runs: int = 0
    ended_well: int = 0
    failed: int = 0
    cost_usd: float | None = None
    with_cost: int = 0
    tokens_input: int | None = None
    tokens_output: int | None = None
    with_tokens: int = 0
    seconds: float | None = None
    median_seconds: float | None = None


class Results(Frozen):
    """The pull requests that accord opened, by what became of them; ``hours`` from opening to merge, of the merged."""

    merged: int = 0
    closed: int = 0
    pending: int = 0
    median_hours: float | None = None
    p90_hours: float | None = None

    @property
    def accepted_share(self) -> float | None:
        """Return the share of merged pull requests among those that ended; None before one ended."""
        ended = self.merged + self.closed
        return self.merged / ended if ended else None


class Suggestion(Frozen):
    """A sentence about what to do, and a command for it; empty where there is nothing to type."""

    text: str
    command: str = ""


class Report(Frozen):
    """The runs of agents in some repositories in a period."""

    repositories: tuple[str, ...]
    since: datetime
    until: datetime
    total: Figures = Figures()
    groups: dict[str, dict[str, Figures]] = field(default_factory=dict)  # by each of GROUPINGS
    results: Results = Results()
    failures: dict[str, int] = field(default_factory=dict)  # failed runs by class
    retries: int = 0  # turns of agents beyond the first of a run
    repeated: int = 0  # runs that followed a failed one of the same kind on the same item
    applies: dict[str, int] = field(default_factory=dict)  # without an agent
    turns: int = 0  # without an agent
    notes: tuple[str, ...] = ()  # what is not known
    next_steps: tuple[Suggestion, ...] = ()

    def as_json(self) -> dict[str, Any]:
        """Return the JSON document of ``accord report``."""
        results = asdict(self.results)
        hours = {name: results.pop(f"{name}_hours") for name in ("median", "p90")}
        return {
            "repositories": list(self.repositories),
            "since": timestamp(self.since),
            "until": timestamp(self.until),
            **asdict(self.total),
            "by": {name: {key: asdict(one) for key, one in group.items()} for name, group in self.groups.items()},
            "results": {**results, "accepted_share": self.results.accepted_share, "hours_to_merge": hours},
            "failures": self.failures,
            "retries": self.retries,
            "repeated_runs": self.repeated,
            "applies": self.applies,
            "turns_without_agent": self.turns,
            "not_known": list(self.notes),
            "next": [asdict(step) for step in self.next_steps],
        }


def report_of(histories: Sequence[RunHistory]) -> Report:
    """Return the report about some repositories."""
    records = [record for history in histories for record in history.records]
    runs = [record for record in records if record.is_agent_run]
    pulls = [pull for history in histories for pull in history.pulls]
    failed = Counter(class_of(record) for record in runs if has_failed(record))
    applies = [record for record in records if record.kind == "apply"]
    since = min(history.since for history in histories)
    results = results_of(pulls, since)
    report = Report(
        tuple(history.repository for history in histories),
        since,
        max(history.until for history in histories),
        figures_of(runs),
        {name: _figures_by(runs, name_of) for name, name_of in GROUPINGS.items()},
        results,
        dict(failed.most_common()),
        sum(max(len(record.attempts) - 1, 0) for record in runs),
        repeated_runs(runs),
        dict(Counter(record.result.outcome for record in applies).most_common()),
        sum(record.kind == "turn" for record in records),
        tuple(unknowns_of(runs)),
    )
    return replace(report, next_steps=next_steps_of(report, histories))


def has_failed(record: PublicRecord) -> bool:
    """Tell whether a run failed; one that was cancelled, or waits for a person, did not."""
    return record.result.disposition == "failure"


def class_of(record: PublicRecord) -> str:
    """Return the class of a failure: the category of the runner contract, else accord's own word."""
    return record.result.error_category or record.result.error or UNKNOWN


def figures_of(runs: Sequence[PublicRecord]) -> Figures:
    """Return the sums over some runs."""
    costs = [run.cost_usd for run in runs if run.cost_usd is not None]
    given = [run for run in runs if run.tokens_input is not None or run.tokens_output is not None]
    seconds = [run.seconds for run in runs if run.seconds]
    return Figures(
        len(runs),
        sum(run.result.disposition in ("success", "patch", "no-change") for run in runs),
        sum(map(has_failed, runs)),
        round(math.fsum(costs), 6) if costs else None,
        len(costs),
        sum(run.tokens_input or 0 for run in given) if given else None,
        sum(run.tokens_output or 0 for run in given) if given else None,
        len(given),
        round(math.fsum(seconds), 1) if seconds else None,
        round(median(seconds), 1) if seconds else None,
    )


GROUPINGS: dict[str, Callable[[PublicRecord], str]] = {
    "repository": lambda run: run.repository,
    "kind": lambda run: run.kind,
    "agent": lambda run: run.agent,
    "model": lambda run: run.model,
    "cause": lambda run: run.trigger.cause,
}


def _figures_by(runs: Iterable[PublicRecord], name_of: Callable[[PublicRecord], str]) -> dict[str, Figures]:
    groups: dict[str, list[PublicRecord]] = defaultdict(list)
    for run in runs:
        groups[name_of(run) or UNKNOWN].append(run)
    ordered = sorted(groups.items(), key=lambda group: (-len(group[1]), group[0]))
    return {name: figures_of(members) for name, members in ordered}


def repeated_runs(runs: Iterable[PublicRecord]) -> int:
    """Count the runs that followed a failed run of the same kind on the same issue or pull request."""
    has_failed_before: dict[tuple[object, ...], bool] = {}
    count = 0
    for run in sorted(runs, key=lambda run: run.ended_at):
        about = run.links.pull if run.kind == "review" or run.links.issue is None else run.links.issue
        if about is None:
            continue
        subject = (run.repository.lower(), run.kind, about)
        count += has_failed_before.get(subject, False)
        has_failed_before[subject] = has_failed(run)
    return count


def results_of(pulls: Iterable[Pull], since: datetime) -> Results:
    """Return what became of pull requests; one that ended before the period is not counted."""
    listed = list(pulls)
    merged = [(one.created_at, one.merged_at) for one in listed if one.merged_at and one.merged_at >= since]
    others = [one for one in listed if one.merged_at is None]
    closed = sum(one.state == "closed" and (one.closed_at is None or one.closed_at >= since) for one in others)
    counts = (len(merged), closed, sum(one.state != "closed" for one in others))
    hours = sorted((end - begin).total_seconds() / 3600 for begin, end in merged if begin)
    p90 = math.ceil(0.9 * len(hours)) - 1  # the nearest rank
    return Results(*counts, round(median(hours), 2), round(hours[p90], 2)) if hours else Results(*counts)


def unknowns_of(runs: Sequence[PublicRecord]) -> list[str]:
    """Say in sentences what the runs leave open."""
    counts = {
        "cost": sum(run.cost_usd is None for run in runs),
        "number of tokens": sum(run.tokens_input is None and run.tokens_output is None for run in runs),
        "agent": sum(not run.agent for run in runs),
    }
    why = "is not known: the agent did not report it."
    return [f"The {name} of {count_of(count, 'run')} {why}" for name, count in counts.items() if count]


_ADVICE = {
    "auth": ("Credentials of agents are missing or invalid. Check the secrets.", "accord doctor"),
    "resource": ("Memory, disk or quota ran out. Check the limits of the runner and the provider.", ""),
    "transient": ("Runs failed for reasons that pass. Comment `/accord retry` on the items.", ""),
    "infrastructure": ("Runs failed on the network or a push. Comment `/accord retry` on the items.", ""),
    "logic": ("Agents failed on their tasks. Read the runs, and make the work items clearer.", ""),
    "contract": ("Results broke their contract. Read the findings, and correct the prompt.", "accord check RESULT"),
    "lost": ("Runs ended without a report. Look at their pages for what stopped them.", ""),
}


def next_steps_of(report: Report, histories: Sequence[RunHistory]) -> tuple[Suggestion, ...]:
    """Return what to do next, the most pressing first; there is always a step."""
    options = " ".join(dict.fromkeys(shlex.join(history.options) for history in histories))
    steps = []
    if not report.total.runs:
        text = "No agent ran in this period. Comment `/accord implement` on a work item to start one."
        steps.append(Suggestion(text, f"accord status {options}"))
    steps += [Suggestion(*_ADVICE[name]) for name in report.failures if name in _ADVICE]
    if report.results.pending:
        count = report.results.pending
        text = f"{count_of(count, 'pull request')} of agents wait{'s' if count == 1 else ''} for a decision."
        steps.append(Suggestion(text, f"accord status {options}"))
    return tuple(steps) or (Suggestion("Nothing is left to decide. See what can start.", f"accord status {options}"),)
