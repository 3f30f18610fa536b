"""The outputs of a run that somebody else made and pushed, from the evidence that they hand over."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from accord.core.errors import WrongUsage
from accord.git.patches import extract_patch
from accord.git.program import Git, GitFailed
from accord.runner.finish import conclude, tasks_done
from accord.runner.outputs import RunFacts
from accord.runner.publish import Published, failure_of, is_where_others_see_it
from accord.runner.record import diff_stat, patch_stats, range_stats

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from accord.core.clock import Clock
    from accord.runner.models import RunOutputs
    from accord.runner.record import FileStat
    from accord.text.redaction import Redactor


@dataclass(frozen=True)
class ExternalRun:
    """The evidence. ``pushed`` is None where nobody tried; ``push_error`` what git said when it failed."""

    agent: str
    exit_code: int
    stdout: Path
    stderr: Path | None = None
    final_message: Path | None = None
    pr_body: str | None = None
    work_tree: Path | None = None
    base: str = ""
    pushed: bool | None = None
    push_error: str = ""


def outputs_of_external_run(
    given: ExternalRun, redact: Redactor, environment: Mapping[str, str], clock: Clock
) -> RunOutputs:
    """Conclude the outputs. Raises WrongUsage when the work tree or its base is none."""
    from accord.runner.classify import contract_exit_code
    from accord.runner.transcripts.read import read_evidence

    evidence = read_evidence(
        codec_of(given),
        given.agent,
        given.exit_code,
        given.stdout,
        stderr=given.stderr,
        final_message=given.final_message,
    )
    stats = _changes(given)
    published = _published(given, stats)
    warnings = ("What the run changed was not pushed.",) if stats and published is None else ()
    analysis = None
    is_delivered = is_where_others_see_it(published, has_changes=bool(stats))
    if contract_exit_code(evidence) == 0 and is_delivered and given.pr_body is not None:
        analysis = tasks_done(given.pr_body, evidence.account, diff_stat(stats), environment, clock)
    facts = RunFacts(given.agent, account=evidence.account, published=published, analysis=analysis, warnings=warnings)
    return conclude(facts, evidence, redact)


def codec_of(given: ExternalRun) -> str:
    """Tell how the agent's transcript is to be read: as its name says, else as the transcript looks."""
    from accord.runner.registry import shipped_registry
    from accord.runner.transcripts.read import CODECS, recognise

    agent = shipped_registry().agents.get(given.agent)
    if agent:
        return agent.codec
    return given.agent if given.agent in CODECS else recognise(given.stdout, given.stderr)


def _changes(given: ExternalRun) -> list[FileStat]:
    """List what was pushed; else everything that could have been: commits, changes and untracked files."""
    if given.work_tree is None:
        return []
    if not given.pushed:
        return patch_stats(extract_patch(given.work_tree, given.base))
    try:
        return range_stats(Git(given.work_tree), given.base, "HEAD")
    except GitFailed as failed:
        raise WrongUsage(
            f"Git cannot tell what changed in {given.work_tree} since {given.base}: {' '.join(failed.stderr.split())}",
            hint="Pass --repo with the agent's work tree, and --base with the commit that it began at.",
        ) from None


def _published(given: ExternalRun, stats: list[FileStat]) -> Published | None:
    """Tell what became of the changes. A push that failed counts, unless there was nothing to push."""
    if given.pushed and given.work_tree:
        return Published(Git(given.work_tree).line("rev-parse", "HEAD"), len(stats)) if stats else None
    if given.push_error.strip() or (given.pushed is False and (stats or given.work_tree is None)):
        return Published(failure=failure_of(given.push_error))
    return None
