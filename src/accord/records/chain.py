"""Records at a ref: an append-only chain of commits, each with one version of one record.

Two writers at once append one after the other (``CommitChain``). A writer that is killed leaves a commit that no ref
names, and the next run of the same command appends its record. The chain is read newest first, so the newest version
of a record counts. Only those who may write the repository's contents may write it.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from itertools import islice

from pydantic import ValidationError

from accord.core.clock import Clock, attempts
from accord.core.errors import Stopped
from accord.github.git_data import GitDataMethods
from accord.github.limits import PAGE_SIZE
from accord.github.state import CommitChain, Link, text_of
from accord.records.models import PublicRecord, joined_runs, merge_records
from accord.text.redaction import Redactor, redact_json

REF = "refs/accord/records"
README = (
    "accord maintains this ref. Each commit's message holds the record of a run of an agent: who started it, what it "
    "cost, how it ended. `accord report` reads them. You can delete the ref; the records are gone then.\n"
)
CLOCKS_DIFFER = timedelta(hours=1)
"""By how much the clock of a machine that wrote a record may be ahead of GitHub's."""

TRIES = 30
PAUSE_SECONDS = 1.0
"""Many runs may end at once, and of all that write at the same time one succeeds."""


def parse_record(text: str) -> PublicRecord | None:
    """Parse a record; None where this version cannot read it."""
    try:
        return PublicRecord.model_validate_json(text)
    except ValidationError:
        return None


def redact_record(record: PublicRecord, redact: Redactor) -> PublicRecord:
    """Return a record without secrets."""
    return PublicRecord.model_validate(redact_json(record.model_dump(mode="json", exclude_defaults=True), redact))


def append_record(github: GitDataMethods, record: PublicRecord, redact: Redactor, clock: Clock) -> bool:
    """Append a record, unless one of the newest hundred says the same; return whether something was written.

    Four requests. Raises Stopped when other writers were faster every time, and what GitHub refuses.
    """
    record = redact_record(record, redact)
    chain = CommitChain(github, REF, README)
    for _ in attempts(clock, [PAUSE_SECONDS] * (TRIES - 1)):
        tip = github.ref(REF)
        newest = list(islice(github.history(tip), PAGE_SIZE)) if tip else []
        known = (parse_record(text_of(commit)) for commit in newest)
        old = next((found for found in known if found and found.id == record.id), None)
        version = merge_records(old, record) if old else record
        if version == old:
            return False
        link = Link(newest[0].sha, newest[0].tree) if newest else None
        if chain.append(link, f"Record of {record.kind}", version.as_json()):
            return True
    raise Stopped(f"Other writers added records {TRIES} times in a row.", hint="Run the same command again.")


def read_records(github: GitDataMethods, since: datetime) -> tuple[PublicRecord, ...]:
    """Read the records of runs that ended since then, oldest first: one request for each hundred, and one more."""
    tip = github.ref(REF)
    if tip is None:
        return ()
    found: dict[str, PublicRecord] = {}
    for commit in github.history(tip):
        if commit.at is not None and commit.at < since - CLOCKS_DIFFER:
            break
        record = parse_record(text_of(commit))
        if record is not None and record.ended_at >= since:
            found.setdefault(record.id, record)
    return tuple(sorted(joined_runs(reversed(found.values())), key=lambda record: record.ended_at))
