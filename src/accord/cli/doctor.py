"""``accord doctor``: whether a repository is ready for agents, and what to fix."""

from __future__ import annotations

import os
from contextlib import ExitStack
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from accord.cli.doctor_fixes import fix_workflows, print_fixes, template_for
from accord.cli.options import (
    FindingsArguments,
    RepositoryArguments,
    RootArguments,
    WritingArguments,
    command,
    option,
)
from accord.cli.output import one_line, print_findings, print_json, redactor
from accord.cli.sarif import sarif_log
from accord.cli.sources import find_token, github_for
from accord.core.environment import install_command
from accord.core.errors import WrongUsage
from accord.core.findings import Severity, with_lines
from accord.doctor.checks import doctor_checks
from accord.results.label_sync import LABELS_ON_GITHUB
from accord.workflows.doctor import ZIZMOR
from accord.workflows.facts import read_repository
from accord.workflows.settings import NAMES
from accord.workflows.zizmor import MISSING

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from accord.core.findings import DoctorCheck, Finding
    from accord.github.client import Connection
    from accord.workflows.fixes import Fixed

NEW_FILE = click.Path(path_type=Path, dir_okay=False, writable=True)
READABLE = click.Path(path_type=Path, exists=True)
_COLORS = {"ok": "green", "warning": "yellow", "error": "red", "skipped": "bright_black"}
_SIGNS = {"ok": "✅", "warning": "⚠️", "error": "❌", "skipped": "⏭️"}
_OFFLINE, _NO_TOKEN = "--offline", "no GITHUB_TOKEN"
"""Notes of checks for which GitHub is not asked."""


class _DoctorArguments(RootArguments, WritingArguments, RepositoryArguments, FindingsArguments):
    fix: bool = option("--fix", "Correct workflow files: pins, permissions, tokens.")
    bundle: Path | None = option(
        "--bundle", "Write a file for a bug report, without secrets.", type=NEW_FILE, metavar="FILE.zip"
    )
    include: tuple[Path, ...] = option(
        "--include", "File or folder for the bundle, such as a run folder.", type=READABLE
    )
    offline: bool = option("--offline", "Check files only, without asking GitHub.")


@command(_DoctorArguments)
def doctor(given: _DoctorArguments) -> int:
    """Find what is wrong in a repository for agents.

    Checks labels, agents, secrets, names and workflows, and writes nothing. With a token and a repository, compares
    labels and settings with GitHub, as far as the token may read them. Exits 1 when there is an error.

    With --fix, workflow files are corrected first where they do the same afterwards: actions are pinned, read
    permissions declared, and tokens kept out of checkouts. For agents that may write, a template is printed.

    General risks of workflows are found by zizmor, which the extra `doctor` installs.
    """
    root = given.root
    if given.include and given.bundle is None:
        raise WrongUsage("`--include` is for a bundle.", hint="Add `--bundle FILE.zip`.")
    if not any((root / name).exists() for name in (".git", ".github")):
        hint = "Run it in a repository, or pass `--root DIR`."
        raise WrongUsage(f"`{root}` is not a repository: it has neither `.git` nor `.github`.", hint=hint)
    owner = (given.repo or os.environ.get("GITHUB_REPOSITORY", "")).partition("/")[0]
    reason = _reason_not_to_ask(given.sandbox, is_offline=given.offline)
    with ExitStack() as stack:
        connect = cache(lambda: stack.enter_context(github_for(given, root=root)))
        fixed = _fix(root, None if reason else connect, is_written=not given.dry_run) if given.fix else {}
        checks = doctor_checks(root, owner, reason or connect)
    documents = _by_file(checks)
    is_ok = all(check.status != "error" for check in checks)
    found = _as_json(checks, documents)
    bundled = None
    if given.bundle is not None and not given.dry_run:
        from accord.doctor.bundle import write_bundle

        bundled = write_bundle(given.bundle, root, given.include, found, redactor())
    if given.output_format == "json":
        more: dict[str, Any] = {"fixes": _fixes_as_json(fixed)} if given.fix else {}
        if template := template_for(fixed):
            more["template"] = template
        if bundled:
            more["bundle"] = {"path": str(given.bundle), "files": sorted(bundled.texts), "left_out": bundled.left_out}
        print_json({"ok": is_ok, **found, **more})
    elif given.output_format == "sarif":
        print_json(sarif_log("doctor", [*documents.items()]))
    else:
        print_fixes(fixed, is_written=not given.dry_run)
        _print(checks, documents)
        if bundled:
            click.echo(f"\nWrote {one_line(str(given.bundle))}:\n{bundled.manifest()}")
            click.echo(
                "Next: read it, then attach it to an issue: https://github.com/accord-ci/accord/issues/new/choose"
            )
    _report_step(is_ok, checks, documents)
    return 0 if is_ok else 1


def _as_json(checks: Sequence[DoctorCheck], documents: Mapping[str, Sequence[Finding]]) -> dict[str, Any]:
    listed = [{"path": path, "findings": [f.as_json() for f in findings]} for path, findings in documents.items()]
    shown = [{"name": check.name, "status": check.status, "note": check.note} for check in checks]
    return {"checks": shown, "documents": listed}


def _reason_not_to_ask(sandbox: str | None, *, is_offline: bool) -> str:
    """Return why GitHub is not asked, as the note of the checks that are skipped; empty where it is."""
    if is_offline:
        return _OFFLINE
    return "" if sandbox is not None or find_token() else _NO_TOKEN


def _fix(root: Path, connect: Callable[[], Connection] | None, *, is_written: bool) -> Mapping[str, tuple[str, Fixed]]:
    facts, _ = read_repository(root)
    return fix_workflows(root, facts.workflows, facts.programs, connect, is_written=is_written)


def _fixes_as_json(fixed: Mapping[str, tuple[str, Fixed]]) -> list[dict[str, Any]]:
    return [
        {"path": path, "fixed": [fix.as_json() for fix in each.fixes], "left": [fix.as_json() for fix in each.left]}
        for path, (_, each) in fixed.items()
    ]


def _by_file(checks: Sequence[DoctorCheck]) -> dict[str, list[Finding]]:
    documents: dict[str, list[Finding]] = {}
    for check in checks:
        for path, finding in check.findings:
            documents.setdefault(path, []).append(finding)
    return {path: with_lines(findings, {}) for path, findings in sorted(documents.items())}


def _print(checks: Sequence[DoctorCheck], documents: Mapping[str, Sequence[Finding]]) -> None:
    width = max(len(check.name) for check in checks)
    reason, unread = _unread(checks)
    for check in checks:
        status = click.style(f"{check.status:<8}", fg=_COLORS[check.status])
        count = counted(len(check.findings), "finding") if check.findings else ""
        note = ", ".join(filter(None, [count, "" if check in unread else check.note]))
        click.echo(f"{check.name:<{width}}  {status} {one_line(note)}".rstrip())
    for path, findings in documents.items():
        click.echo()
        print_findings(findings, path)
    if unread:
        names = ", ".join(check.name for check in unread)
        click.echo(f"\nNot compared with GitHub ({one_line(reason)}): {names}.\n  {_hint_for(reason)}")
    for note in (check.note for check in checks if check.name == ZIZMOR and check.is_skipped and ZIZMOR in check.note):
        click.echo(f"\nNot checked ({one_line(note)}): permissions, pins and other general risks of workflows.")
        if note == MISSING:
            click.echo(f"  Install it: {install_command('doctor')}")
    severities = [finding.severity for findings in documents.values() for finding in findings]
    errors = severities.count(Severity.ERROR)
    click.echo(f"\n{counted(errors, 'error')}, {counted(len(severities) - errors, 'warning')}")


def _unread(checks: Sequence[DoctorCheck]) -> tuple[str, list[DoctorCheck]]:
    """Return the reason for which GitHub was not read at all, and the checks that share it; none where it was."""
    skipped = {check.name: check for check in checks if check.is_skipped}
    live = [skipped[name] for name in (LABELS_ON_GITHUB, *NAMES) if name in skipped]
    reason = skipped[NAMES[0]].note if set(NAMES) <= skipped.keys() else ""
    return reason, [check for check in live if reason and check.note == reason]


def _hint_for(reason: str) -> str:
    """Return what to type to have the checks that GitHub's settings need."""
    if reason == _OFFLINE:
        return "Run it without `--offline` to compare them."
    if reason == _NO_TOKEN:
        return "Set `GITHUB_TOKEN` to compare them."
    return "Run it again when GitHub answers, or with `--offline` to check files only."


def counted(number: int, word: str) -> str:
    """Return a number with its noun."""
    return f"{number} {word}{'' if number == 1 else 's'}"


def _report_step(is_ok: bool, checks: Sequence[DoctorCheck], documents: Mapping[str, Sequence[Finding]]) -> None:
    """Report ``accord doctor``: output ``ok``, a table of the checks, and the findings file by file."""
    from accord.cli.step import annotate_file, findings_table, hints, leave_redacted, leave_summary, redacted_cell
    from accord.text.markdown import table

    leave_redacted({"ok": str(is_ok).lower()})
    verdicts = [f"{_SIGNS[check.status]} {check.status}" for check in checks]
    cells = [(redacted_cell(check.name), redacted_cell(check.note)) for check in checks]
    rows = [[name, verdict, note] for verdict, (name, note) in zip(verdicts, cells, strict=True)]
    parts = ["### accord doctor", table(["Check", "Verdict", "Note"], rows)]
    for path, findings in documents.items():
        parts += [f"#### {redacted_cell(path)}", findings_table(findings), *hints(findings)]
        annotate_file(findings, path)
    leave_summary("\n\n".join(parts))
