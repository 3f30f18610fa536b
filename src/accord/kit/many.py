"""Work on many repositories: split them into shards, record each result, and summarise.

A shard is one job of a workflow's matrix. Its results are lines of a file, which the last job reads.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import TypeAdapter, ValidationError

from accord.core.errors import BrokenContract, Interrupted, Problem, Stopped, WrongUsage
from accord.core.findings import Finding, pointer, with_lines
from accord.core.frozen import Frozen
from accord.files.store import write_whole
from accord.files.yaml import read_yaml

if TYPE_CHECKING:
    from accord.github.client import Connection
    from accord.github.rest import ListedRepository

MOST_SHARDS = 256
"""Jobs of a matrix ("Running variations of jobs in a workflow")."""

STOPS_IN_A_ROW = 3
"""After so many repositories that stopped one after the other, the others would stop for the same reason."""

_NAME = re.compile(r"\A[A-Za-z0-9](?:[A-Za-z0-9-]*[A-Za-z0-9])?/[A-Za-z0-9._-]+")
_SHARD = re.compile(r"([1-9][0-9]{0,4})/([1-9][0-9]{0,4})")


class ManyOutcome(StrEnum):
    """How the work on one repository ended, the most urgent first."""

    STOPPED = "stopped"
    REFUSED = "refused"
    FINDINGS = "findings"
    APPLIED = "applied"
    PLANNED = "planned"
    DECLINED = "declined"
    UNCHANGED = "unchanged"
    PENDING = "pending"


class ManyResult(Frozen):
    """The result for one repository."""

    repository: str
    outcome: ManyOutcome
    note: str = ""  # what changed, or why not
    url: str = ""  # where to look
    reads: int = 0
    writes: int = 0

    @property
    def name(self) -> str:
        """The name in a progress bar."""
        return self.repository

    def as_json(self) -> dict[str, Any]:
        """Return the JSON object of this repository."""
        return asdict(self)


def read_repositories(raw: bytes) -> list[str]:
    """Read a YAML or JSON list of ``OWNER/NAME``, each once. Raises BrokenContract with every finding on its line."""
    document = read_yaml(raw)
    names = document.value
    if not isinstance(names, list) or not names:
        message = "The file is not a list of repositories."
        raise BrokenContract.of(Finding("schema", message, line=1, hint="Write a line `- OWNER/NAME` for each."))
    findings = []
    for i, name in enumerate(names):
        if not is_repository(name):
            shown = json.dumps(name, default=str, ensure_ascii=False, skipkeys=True)
            message = f"Entry {i + 1} is not a repository: {shown:.80}."
            findings.append(Finding("schema", message, pointer(i), hint="Write it as OWNER/NAME."))
    if findings:
        findings = with_lines(findings, document.lines)
        lines = " ".join(f"Line {finding.line}: {finding.text}" for finding in findings[:5])
        raise BrokenContract(f"The list of repositories is invalid. {lines}", findings=findings)
    return list({name.lower(): name for name in reversed(names)}.values())[::-1]


def is_repository(name: object) -> bool:
    """Return whether this is the name of a repository, as ``OWNER/NAME``."""
    return isinstance(name, str) and _NAME.fullmatch(name) is not None


def shards(count: int, size: int) -> list[dict[str, str]]:
    """Return the matrix for so many repositories, ``size`` in each of its shards, each with a name for its artifact."""
    number = min(-(-count // size), MOST_SHARDS)
    return [{"shard": f"{i}/{number}", "name": f"{i}-of-{number}"} for i in range(1, number + 1)]


def shard_of(repositories: Sequence[str], shard: str) -> list[str]:
    """Return every n-th repository for a shard such as ``3/20``. Raises WrongUsage for any other text."""
    found = _SHARD.fullmatch(shard)
    if found is None or int(found[1]) > int(found[2]):
        raise WrongUsage(f"`{shard[:40]}` is not a shard.", hint="Pass it as `3/20`: the third of twenty.")
    return list(repositories)[int(found[1]) - 1 :: int(found[2])]


def read_results(path: Path) -> dict[str, ManyResult]:
    """Return the newest result of each repository. A last line that was cut off is ignored. Raises WrongUsage."""
    try:
        lines = path.read_text(encoding="utf-8").split("\n")
    except (OSError, UnicodeDecodeError) as error:
        raise _results_error(path, str(error)) from None
    results: dict[str, ManyResult] = {}
    for number, line in enumerate(lines[:-1], 1):
        try:
            result = TypeAdapter(ManyResult).validate_json(line, strict=True)
        except ValidationError:
            raise _results_error(path, f"line {number} is not a result") from None
        results[result.repository.lower()] = result
    return results


def _results_error(path: Path, why: str) -> WrongUsage:
    return WrongUsage(f"Cannot read the results {path}: {why}.", hint="Pass the files of `accord repos run`.")


def merge_repositories(named: Iterable[str], found: Sequence[ListedRepository]) -> tuple[list[str], list[str]]:
    """Return the repositories that are named or found, in order, and those left out as archived or disabled."""
    left_out = [each.full_name for each in found if each.is_archived or each.is_disabled]
    names = [*filter(None, named), *(each.full_name for each in found if each.full_name not in left_out)]
    return sorted({name.lower(): name for name in names}.values(), key=str.lower), left_out


def run_shard(
    names: Sequence[str],
    task: Callable[[str], ManyResult],
    on_result: Callable[[ManyResult], None],
    file: Path | None = None,
) -> list[ManyResult]:
    """Work on each repository; an error in one does not end the others, but several stops in a row or a signal do.

    Each result becomes a line of the new ``file`` at once. Those that were not reached are pending.
    """
    if file is not None:
        write_whole(file, "")
    results: list[ManyResult] = []
    for name in names:
        problem: Problem | None = None
        try:
            result = task(name)
        except WrongUsage:
            raise
        except Problem as error:
            problem, result = error, failed_result(name, error)
        results.append(result)
        if file is not None:
            with file.open("a", encoding="utf-8") as lines:
                lines.write(json.dumps(result.as_json(), ensure_ascii=False) + "\n")
        on_result(result)
        last = results[-STOPS_IN_A_ROW:]
        are_stops = len(last) == STOPS_IN_A_ROW and all(each.outcome is ManyOutcome.STOPPED for each in last)
        if are_stops or isinstance(problem, Interrupted):
            break
    return with_pending(names, {result.repository.lower(): result for result in results})


def result_of(connection: Connection, outcome: ManyOutcome, note: str = "", url: str = "") -> ManyResult:
    """Return the result for the repository of a connection, with the requests that it took."""
    requests = connection.github.requests
    return ManyResult(connection.repository, outcome, note, url, requests.read, requests.write)


def outcome_of(error: Problem) -> ManyOutcome:
    """Return the outcome of an error."""
    return ManyOutcome.STOPPED if isinstance(error, (Stopped, Interrupted)) else ManyOutcome.REFUSED


def failed_result(repository: str, error: Problem) -> ManyResult:
    """Return the result for a repository that an error ended."""
    return ManyResult(repository, outcome_of(error), f"{error.message} {error.hint}".strip())


def with_pending(repositories: Iterable[str], results: Mapping[str, ManyResult]) -> list[ManyResult]:
    """Return a result for each repository; those without one are pending."""
    return [results.get(name.lower()) or ManyResult(name, ManyOutcome.PENDING) for name in repositories]


def counts(results: Iterable[ManyResult]) -> dict[str, int]:
    """Count the results by outcome, the most urgent first."""
    found = Counter(result.outcome for result in results)
    return {outcome.value: found[outcome] for outcome in ManyOutcome if found[outcome]}


def exit_code(results: Sequence[ManyResult]) -> int:
    """Return 3 where running again continues, 4 where something was refused, 1 for findings, else 0."""
    found = {result.outcome for result in results}
    if found & {ManyOutcome.STOPPED, ManyOutcome.PENDING}:
        return 3
    if ManyOutcome.REFUSED in found:
        return 4
    return 1 if ManyOutcome.FINDINGS in found else 0
