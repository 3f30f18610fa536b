"""The outputs of a run that another program carried out and published, from the files that it left."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from accord.core.errors import WrongUsage
from accord.git.branches import in_short, push_refusal, push_trouble
from accord.git.extraction import extract_patch
from accord.git.program import Git, GitFailed
from accord.runner.classify import contract_exit_code
from accord.runner.finish import completed_tasks, conclude
from accord.runner.models import InternalError
from accord.runner.outputs import RunFacts
from accord.runner.publish import Published, is_delivered
from accord.runner.stats import diff_stat, patch_stats, range_stats
from accord.runner.transcripts.read import codec_of, read_evidence
from accord.runner.trusted_registry import registry_at

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from accord.core.clock import Clock
    from accord.runner.models import RunOutputs
    from accord.runner.stats import FileStat
    from accord.text.posting import PostingPolicy
    from accord.text.redaction import Redactor


@dataclass(frozen=True)
class ExternalRun:
    """A run that another program carried out. ``pushed`` is None if it did not try to push."""

    agent: str
    exit_code: int
    stdout: Path
    stderr: Path | None = None
    final_message: Path | None = None
    pr_body: str | None = None
    root: Path | None = None
    base: str = ""
    pushed: bool | None = None
    push_error: str = ""


def outputs_of_external_run(
    run: ExternalRun, redact: Redactor, policy: PostingPolicy, environment: Mapping[str, str], clock: Clock
) -> RunOutputs:
    """Conclude the outputs. Raises WrongUsage if ``root`` is not a repository or ``base`` not a commit."""
    codec, warnings = codec_of(run.agent, run.stdout, run.stderr, run.root)
    given = (codec, run.agent, run.exit_code, run.stdout)
    evidence = read_evidence(*given, stderr=run.stderr, final_message=run.final_message)
    stats = _changes_of(run)
    evidence = replace(evidence, has_changes=bool(stats) if run.root else None)
    published = _publication_of(run, stats)
    analysis = None
    is_done = contract_exit_code(evidence) == 0 and is_delivered(published, has_changes=bool(stats))
    if run.pr_body is not None and is_done:
        analysis = completed_tasks(run.pr_body, evidence.account, diff_stat(stats), environment, clock)
    if stats and published is None:
        count = "1 changed file is" if len(stats) == 1 else f"{len(stats)} changed files are"
        warnings = (f"The run's changes were not pushed. {count} in the work tree.", *warnings)
    facts = RunFacts(run.agent, account=evidence.account, published=published, analysis=analysis, warnings=warnings)
    return conclude(facts, evidence, redact, policy)


def _changes_of(run: ExternalRun) -> list[FileStat]:
    """Return the pushed files, or all that could have been pushed: commits, changes and untracked files."""
    if run.root is None:
        return []
    if not run.pushed:
        return patch_stats(extract_patch(run.root, run.base, state_files=registry_at(run.root).state_patterns))
    try:
        return range_stats(Git(run.root), run.base, "HEAD")
    except GitFailed as failed:
        raise WrongUsage(
            f"Cannot read the changes in {run.root} since {run.base}: {' '.join(failed.stderr.split())}",
            hint="Pass the agent's work tree as `--root` and the commit that it started from as `--base`.",
        ) from None


def _publication_of(run: ExternalRun, stats: list[FileStat]) -> Published | None:
    """Return the result of the push. A push that failed counts, unless there was nothing to push."""
    if run.pushed and run.root:
        return Published(Git(run.root).line("rev-parse", "HEAD"), len(stats)) if stats else None
    if run.push_error.strip() or (run.pushed is False and (stats or run.root is None)):
        return Published(failure=push_failure(run.push_error))
    return None


def push_failure(error: str) -> InternalError:
    """Return why another program's push failed, from git's message; without one the push may be tried again."""
    trouble = push_trouble(error)
    if trouble == "refused":
        return InternalError.of("push-refused", push_refusal(error))
    detail = f"The push failed: {in_short(error)}" if error.strip() else "The push failed without an error message."
    return InternalError(kind="push-conflict" if trouble == "conflict" else "push-unreachable", detail=detail)
