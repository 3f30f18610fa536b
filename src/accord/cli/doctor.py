"""``accord doctor`` and ``preflight``: whether a repository is ready for agents, and what to fix."""

from __future__ import annotations

import difflib
import os
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from functools import cache
from pathlib import Path

import click

from accord.cli.check import sarif_log
from accord.cli.options import (
    FindingsArguments,
    ReadingArguments,
    RepositoryArguments,
    RootArguments,
    WritingArguments,
    command,
    option,
    top_of,
)
from accord.cli.output import aligned_lines, colored_word, finding_lines, one_line, print_json, redactor
from accord.cli.sources import find_token, github_for
from accord.cli.step import annotate_file, findings_table, leave_outputs, present, redacted_cell, report_step
from accord.core.environment import install_command
from accord.core.errors import Refused, WrongUsage
from accord.core.findings import DoctorCheck, Finding, Severity, count_of, has_errors, with_lines
from accord.doctor.checks import doctor_checks, fix_workflows
from accord.doctor.settings import NAMES, ask_before_run, preflight_findings
from accord.results.label_sync import LABELS_ON_GITHUB
from accord.text.markdown import table
from accord.workflows.doctor import ZIZMOR
from accord.workflows.fixes import TWO_JOBS, Fixed
from accord.workflows.zizmor import MISSING

NEW_FILE = click.Path(path_type=Path, dir_okay=False, writable=True)
READABLE = click.Path(path_type=Path, exists=True)
_SIGNS = {"ok": "✅", "warning": "⚠️", "error": "❌", "skipped": "⏭️"}
_OFFLINE, _NO_TOKEN = "--offline", "no GITHUB_TOKEN"
"""Notes of checks for which GitHub is not asked."""
_HINTS = {
    _OFFLINE: "Run it without `--offline` to compare them.",
    _NO_TOKEN: "Set `GITHUB_TOKEN` to compare them.",
}
_NO_ANSWER = "Run it again when GitHub answers, or with `--offline` to check files only."


class _DoctorArguments(RootArguments, FindingsArguments, WritingArguments, RepositoryArguments):
    fix: bool = option("--fix", "Correct workflow files: pins, permissions, tokens.")
    bundle: Path | None = option("--bundle FILE.zip", "Write a file for a bug report, without secrets.", type=NEW_FILE)
    include: tuple[Path, ...] = option(
        "--include", "File or folder for the bundle, such as a run folder.", type=READABLE
    )
    offline: bool = option("--offline", "Check files only, without asking GitHub.")


@command(_DoctorArguments)
def doctor(given: _DoctorArguments) -> int:
    """Find what is wrong in a repository for agents.

    With a token and a repository, compares labels and settings with GitHub, as far as the token may read them. Exits 1
    when there is an error.

    With --fix, workflow files are corrected first where they do the same afterwards: actions are pinned, read
    permissions declared, and tokens kept out of checkouts. For agents that may write, a template is printed.

    General risks of workflows are found by zizmor, which the extra `doctor` installs.
    """
    root = top_of(given.root)
    if given.include and given.bundle is None:
        raise WrongUsage("`--include` is for a bundle.", hint="Add `--bundle FILE.zip`.")
    if not any((root / name).exists() for name in (".git", ".github")):
        hint = "Run it in a repository, or pass `--root DIR`."
        raise WrongUsage(f"`{root}` is not a repository: it has neither `.git` nor `.github`.", hint=hint)
    repository = given.repo or os.environ.get("GITHUB_REPOSITORY", "")
    reason = _OFFLINE if given.offline else "" if given.sandbox is not None or find_token() else _NO_TOKEN
    with ExitStack() as stack:
        connect = reason or cache(lambda: stack.enter_context(github_for(given, root=root)))
        fixed = fix_workflows(root, connect, is_written=not given.dry_run) if given.fix else {}
        checks = doctor_checks(root, repository, connect)
    documents = _by_file(checks)
    is_ok = all(check.status != "error" for check in checks)
    found: dict[str, object] = {
        "checks": [{"name": check.name, "status": check.status, "note": check.note} for check in checks],
        "documents": [{"path": path, "findings": [each.as_json() for each in documents[path]]} for path in documents],
    }
    lines = [*_fix_lines(fixed, is_written=not given.dry_run), *_lines(checks, documents)]
    fixes = [
        {"path": path, "fixed": [fix.as_json() for fix in each.fixes], "left": [fix.as_json() for fix in each.left]}
        for path, (_, each) in fixed.items()
    ]
    more: dict[str, object] = {"fixes": fixes} if given.fix else {}
    if template := _template_for(fixed):
        more["template"] = template
    if given.bundle is not None and not given.dry_run:
        from accord.doctor.bundle import write_bundle

        bundled = write_bundle(given.bundle, root, given.include, found, redactor())
        more["bundle"] = {"path": str(given.bundle), "files": sorted(bundled.texts), "left_out": bundled.left_out}
        lines += [f"\nWrote {one_line(str(given.bundle))}:", bundled.manifest()]
        lines.append("Next: read it, then attach it to an issue: https://github.com/accord-ci/accord/issues/new/choose")
    if given.output_format == "sarif":
        print_json(sarif_log("doctor", [*documents.items()]))
    else:
        present(given, {"ok": is_ok, **found, **more}, lines)
    _report_step(is_ok, checks, documents)
    return 0 if is_ok else 1


def _template_for(found: Mapping[str, tuple[str, Fixed]]) -> str:
    is_needed = any(fixed.has_agent_job for _, fixed in found.values())
    return TWO_JOBS.read_text(encoding="utf-8") if is_needed else ""


def _fix_lines(found: Mapping[str, tuple[str, Fixed]], *, is_written: bool) -> Iterator[str]:
    for path, (text, fixed) in found.items():
        label = click.style("fixed" if is_written else "would fix", fg="green")
        yield from (f"{one_line(path)}: {label}: {one_line(fix.text)}" for fix in fixed.fixes)
        label = click.style("not fixed", fg="yellow")
        yield from (f"{one_line(path)}: {label}: {one_line(fix.text)}" for fix in fixed.left)
        if not is_written:
            old, new = text.splitlines(), fixed.text.splitlines()
            yield from map(one_line, difflib.unified_diff(old, new, path, path, lineterm=""))
    if template := _template_for(found):
        yield f"\nThe template:\n\n{textwrap.indent(template, '  ')}".rstrip()
    if found:
        yield ""


def _by_file(checks: Sequence[DoctorCheck]) -> dict[str, list[Finding]]:
    """Return the findings by file, errors first in each, and the files with errors first."""
    documents: dict[str, list[Finding]] = {}
    for check in checks:
        for path, finding in check.findings:
            documents.setdefault(path, []).append(finding)
    by_file = sorted(documents.items(), key=lambda each: (not has_errors(each[1]), each[0]))
    return {path: sorted(with_lines(each, {}), key=lambda finding: finding.severity) for path, each in by_file}


def _lines(checks: Sequence[DoctorCheck], documents: Mapping[str, Sequence[Finding]]) -> Iterator[str]:
    skipped = {check.name: check for check in checks if check.is_skipped}
    reason = skipped[NAMES[0]].note if set(NAMES) <= skipped.keys() else ""  # for which GitHub was not read at all
    live = [skipped[name] for name in (LABELS_ON_GITHUB, *NAMES) if name in skipped]
    unread = [check for check in live if reason and check.note == reason]
    rows = []
    for check in checks:
        count = count_of(len(check.findings), "finding") if check.findings else ""
        note = ", ".join(filter(None, [count, "" if check in unread else check.note]))
        rows.append((check.name, colored_word(check.status, 7), one_line(note)))
    yield from aligned_lines(rows)
    for severity in Severity:
        for path, findings in documents.items():
            shown = finding_lines((each for each in findings if each.severity is severity), path)
            yield from ("", *shown) if shown else ()
    if unread:
        names = ", ".join(check.name for check in unread)
        yield f"\nNot compared with GitHub ({one_line(reason)}): {names}.\n  {_HINTS.get(reason, _NO_ANSWER)}"
    for note in (check.note for check in checks if check.name == ZIZMOR and check.is_skipped and ZIZMOR in check.note):
        yield f"\nNot checked ({one_line(note)}): permissions, pins and other general risks of workflows."
        if note == MISSING:
            yield f"  Install it: {install_command('doctor')}"
    severities = [finding.severity for findings in documents.values() for finding in findings]
    errors = severities.count(Severity.ERROR)
    yield f"\n{count_of(errors, 'error')}, {count_of(len(severities) - errors, 'warning')}"


def _report_step(is_ok: bool, checks: Sequence[DoctorCheck], documents: Mapping[str, Sequence[Finding]]) -> None:
    rows = [
        [redacted_cell(check.name), f"{_SIGNS[check.status]} {check.status}", redacted_cell(check.note)]
        for check in checks
    ]
    parts = [table(["Check", "Verdict", "Note"], rows)]
    for path, findings in documents.items():
        parts += [f"#### {redacted_cell(path)}", findings_table(findings)]
        annotate_file(findings, path)
    report_step("doctor", {"ok": str(is_ok).lower()}, *parts)


class _PreflightArguments(WritingArguments, ReadingArguments):
    """The arguments of ``accord preflight``."""


@command(_PreflightArguments)
def preflight(given: _PreflightArguments) -> int:
    """Ask GitHub whether a pull request would be refused.

    Run it with the token that opens the pull request, before an agent runs. Creates nothing. Exits 4 where GitHub
    refuses.
    """
    with github_for(given) as connection:
        facts = ask_before_run(connection, asks=not given.dry_run)
    findings, repository = preflight_findings(facts), connection.repository
    outcome = "refused" if has_errors(findings) else "ok"
    shown = [finding.as_json() for finding in findings]
    document = {"outcome": outcome, "repository": repository, "login": facts.login, "findings": shown}
    present(given, document, [*finding_lines(findings, repository), outcome])
    if findings:
        report_step(f"preflight: {outcome}", {"outcome": outcome}, findings_table(findings), findings=findings)
    else:
        leave_outputs({"outcome": outcome})
    return Refused.exit_code if outcome == "refused" else 0
