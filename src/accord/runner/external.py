"""The outputs of a run that another program carried out: what it changed, and whether all of that was pushed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from accord.core.clock import Clock
from accord.core.errors import AccordError, Refused
from accord.core.frozen import Frozen
from accord.git.branches import in_short, push_refusal, push_trouble
from accord.git.extraction import extract
from accord.git.paths import some_of
from accord.git.program import Git
from accord.runner.classify import contract_exit_code
from accord.runner.finish import completed_tasks, conclude
from accord.runner.models import InternalError, RunOutputs
from accord.runner.outputs import Published, RunFacts
from accord.runner.registry import registry_at
from accord.runner.stats import FileStat, count_files, diff_stat, patch_stats, range_stats
from accord.runner.transcripts.read import codec_of, read_evidence
from accord.text.posting import PostingPolicy
from accord.text.redaction import Redactor

_READABLE = ". Pass the agent's work tree as `--root` and the commit that it started from as `--base`."


class ExternalRun(Frozen):
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
    evidence_files: tuple[Path, ...] = ()
    """Files of the caller, which are not changes of the run even if they are in the work tree."""


def outputs_of_external_run(
    run: ExternalRun, redact: Redactor, policy: PostingPolicy, environment: Mapping[str, str], clock: Clock
) -> RunOutputs:
    """Conclude the outputs. Changes that cannot be read do not count as pushed, and a warning says so."""
    codec, warnings = codec_of(run.agent, run.stdout, run.stderr, run.root)
    given = (codec, run.agent, run.exit_code, run.stdout)
    evidence = read_evidence(*given, stderr=run.stderr, final_message=run.final_message)
    pushed, left, are_unread = list[FileStat](), list[FileStat](), False
    try:
        pushed, left = _changes_of(run)
    except AccordError as error:
        what = "The run's changes cannot be read, so changes-made is false and no task was analyzed"
        warnings = (f"{what}: {error}{'' if error.hint else _READABLE}", *warnings)
        run, are_unread = replace(run, root=None), True
        if type(error) is Refused:
            evidence = replace(evidence, error=InternalError.of("merge-unfinished", error))
    evidence = replace(evidence, has_changes=bool(pushed or left))
    published = None
    if run.pushed and run.root:
        head = Git(run.root).line("rev-parse", "HEAD")
        if pushed and contract_exit_code(evidence):
            told = f"The run failed, so `changes-made` is false, although its commit {head[:7]} was pushed."
            warnings = (told, *warnings)
        elif pushed:
            published = Published(head, len(pushed))
    elif run.push_error.strip() or (run.pushed is False and (left or run.root is None)):  # there was something to push
        published = Published(failure=push_failure(run.push_error))
    analysis, has_failed = None, published is not None and published.failure is not None
    is_done = contract_exit_code(evidence) == 0 and not (are_unread or left or has_failed)
    if run.pr_body is not None and is_done:
        analysis = completed_tasks(run.pr_body, evidence.account, diff_stat(pushed), environment, clock)
    if left and not has_failed:
        names, number = some_of([*dict.fromkeys(each.path for each in left)]), count_files(left)
        count = "1 changed file is" if number == 1 else f"{number} changed files are"
        what = "Some of the run's changes" if pushed else "The run's changes"
        told = f"{what} were not pushed, so no task counts as completed. {count} in the work tree: {names}."
        warnings = (told, *warnings)
    facts = RunFacts(run.agent, account=evidence.account, published=published, analysis=analysis, warnings=warnings)
    return conclude(facts, evidence, redact, policy)


def _changes_of(run: ExternalRun) -> tuple[list[FileStat], list[FileStat]]:
    """Return what the run pushed, and the commits, changes and untracked files that it did not."""
    if run.root is None:
        return [], []
    start = "HEAD" if run.pushed else run.base
    patch = extract(run.root, start, state_files=registry_at(run.root).state_patterns).patch
    given = {path.resolve() for path in run.evidence_files}
    left = [each for each in patch_stats(patch) if (run.root / each.path).resolve() not in given]
    return range_stats(Git(run.root), run.base, "HEAD") if run.pushed else [], left


def push_failure(error: str) -> InternalError:
    """Return why another program's push failed, from git's message; without one the push may be tried again."""
    trouble = push_trouble(error)
    if trouble == "refused":
        return InternalError.of("push-refused", push_refusal(error))
    detail = f"The push failed: {in_short(error)}" if error.strip() else "The push failed without an error message."
    return InternalError(kind="push-conflict" if trouble == "conflict" else "push-unreachable", detail=detail)
