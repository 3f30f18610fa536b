"""The work of ``accord repos run`` on one repository."""

from __future__ import annotations

from datetime import timedelta

from accord.board.facts import read_repository
from accord.board.models import address_of
from accord.board.work import overview_of_work
from accord.core.clock import SystemClock
from accord.core.errors import Interrupted, Refused
from accord.core.findings import Severity, count_of
from accord.doctor.checks import doctor_checks
from accord.git.branches import folder_at_head
from accord.github.client import Connection
from accord.kit.many import ManyOutcome, ManyResult, failed_result, result_of
from accord.kit.sync import sync_repository
from accord.kit.templates import Pin, shipped_kit
from accord.results.label_sync import FAILED, apply_labels, plan_labels, shipped_labels


def count_work(connection: Connection, sandbox: str | None) -> ManyResult:
    """Count the work of a repository for ``accord repos run status``; what needs a person is a finding."""
    address = address_of(connection.repository, connection.server_url, sandbox)
    sections = overview_of_work(read_repository(connection.github, address, timedelta(days=7))).sections()
    found = [f"{len(entries)} {name.replace('_', ' ')}" for name, entries in sections.items() if entries]
    outcome = ManyOutcome.FINDINGS if sections["needs_you"] else ManyOutcome.UNCHANGED
    return result_of(connection, outcome, ", ".join(found), address.page)


def examine_repository(connection: Connection) -> ManyResult:
    """Run the checks of ``accord doctor`` on the files at the head of the default branch, and on GitHub."""
    with folder_at_head(connection.remote(SystemClock()), ".github") as root:
        checks = doctor_checks(root, connection.repository, lambda: connection)
    severities = [finding.severity for check in checks for _, finding in check.findings]
    errors, warnings = severities.count(Severity.ERROR), severities.count(Severity.WARNING)
    counts = [count_of(errors, "error"), count_of(warnings, "warning")]
    outcome = ManyOutcome.FINDINGS if errors else ManyOutcome.UNCHANGED
    return result_of(connection, outcome, ", ".join(counts) if severities else "")


def sync_kit(connection: Connection, pin: Pin, *, is_dry_run: bool) -> ManyResult:
    """Sync the consumer kit by a pull request."""
    repository = connection.repository
    synced = sync_repository(connection.github, repository, shipped_kit(), pin, is_dry_run=is_dry_run)
    if isinstance(synced.error, Interrupted):
        raise synced.error
    if synced.error:
        return failed_result(repository, synced.error)
    changed = len(synced.plan.changes) if synced.plan else 0
    url = synced.pull.url if synced.pull else ""
    return result_of(connection, synced.outcome, f"{changed} files" if changed else "", url)


def sync_labels(connection: Connection, *, is_dry_run: bool) -> ManyResult:
    """Create, update and rename the labels that accord ships."""
    github = connection.github
    changes = [action for action in plan_labels(shipped_labels(), github.labels(), ())[0] if action.is_change]
    if not changes:
        return result_of(connection, ManyOutcome.UNCHANGED)
    if not is_dry_run:
        ended, problem = apply_labels(github, changes, lambda _: None)
        refused = [f"{action.name}: {action.error}" for action in ended if action.action == FAILED]
        if problem:
            raise problem
        if refused:
            return failed_result(connection.repository, Refused(" ".join(refused)))
    outcome = ManyOutcome.PLANNED if is_dry_run else ManyOutcome.APPLIED
    return result_of(connection, outcome, f"{len(changes)} labels")
