"""``accord check``: tell whether a document is what its contract asks for; also as SARIF 2.1.0, for code scanning.

Source: OASIS, "Static Analysis Results Interchange Format (SARIF) Version 2.1.0", and GitHub documentation, "SARIF
support for code scanning".
"""

from __future__ import annotations

import hashlib
import os
import shlex
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING
from urllib.parse import quote

import click

from accord import __version__
from accord.cli.options import Choice, FindingsArguments, WritingArguments, argument, command, option
from accord.cli.output import colored_word, finding_lines, one_line, print_json
from accord.cli.sources import read_bytes
from accord.cli.step import (
    annotate_file,
    document_output,
    findings_table,
    is_step,
    leave_outputs,
    leave_summary,
    redacted_cell,
)
from accord.core.clock import SystemClock
from accord.core.errors import AccordError, WrongUsage
from accord.core.findings import Finding, Severity, count_of, has_errors, page_of
from accord.core.kinds import FOLDERS, KINDS, check_document, check_folder, contract_of
from accord.files.store import Storage, change_file
from accord.text.markdown import table

if TYPE_CHECKING:
    from accord.core.fixes import Fix


SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
_LEVELS = {Severity.ERROR: "error", Severity.WARNING: "warning"}


def sarif_log(command: str, documents: Sequence[tuple[str, Sequence[Finding]]]) -> dict[str, object]:
    """Return the findings of a command as a SARIF log with one run. Paths are those of files below this directory."""
    codes = sorted({finding.code for _, findings in documents for finding in findings})
    results = []
    for path, findings in documents:
        alike: Counter[tuple[str, str, str]] = Counter()  # numbered, so that each has a fingerprint of its own
        for finding in findings:
            key = (finding.code, finding.path, finding.message)
            results.append(_result(path, finding, codes.index(finding.code), alike[key]))
            alike[key] += 1
    driver = {
        "name": "accord",
        "semanticVersion": __version__,
        "informationUri": "https://github.com/accord-ci/accord",
        "rules": [
            {
                "id": code,
                "shortDescription": {"text": f"{code.replace('-', ' ').capitalize()}."},
                "helpUri": page_of("findings", code),
            }
            for code in codes
        ],
    }
    run = {
        "tool": {"driver": driver},
        "automationDetails": {"id": f"accord/{command}/"},
        "columnKind": "unicodeCodePoints",
        "results": results,
    }
    return {"$schema": SCHEMA, "version": "2.1.0", "runs": [run]}


def _result(path: str, finding: Finding, rule: int, number: int) -> dict[str, object]:
    identity = "\0".join([path, finding.code, finding.path, finding.message, str(number)])
    place = {"artifactLocation": {"uri": _uri(path)}, "region": {"startLine": max(finding.line or 1, 1)}}
    location: dict[str, object] = {"physicalLocation": place}
    if finding.path:
        location["logicalLocations"] = [{"fullyQualifiedName": finding.path}]
    return {
        "ruleId": finding.code,
        "ruleIndex": rule,
        "level": _LEVELS[finding.severity],
        "message": {"text": f"{finding.message}\n{finding.hint}".strip()},
        "locations": [location],
        "partialFingerprints": {"accord/v1": hashlib.sha256(identity.encode(errors="replace")).hexdigest()},
    }


def _uri(path: str) -> str:
    """Return a path as a URI, relative to this directory if it is below it; stdin has a name of its own."""
    if path == "-":
        return "stdin"
    place = Path(path)
    if place.is_absolute():
        here = Path.cwd()
        if not place.is_relative_to(here):
            return place.as_uri()
        place = place.relative_to(here)
    return quote(PurePosixPath(place).as_posix())


Checked = tuple[str, str | None, list[Finding]]
"""A document's path, its kind as far as it is known, and what was found."""


_MOST_PLACES = 3
_MOST_TRIED_BYTES = 1_000_000


def _check_role(ctx: click.Context, param: click.Parameter, value: str | None) -> str | None:
    """Check a role of a session, whose names are imported only when one is given."""
    if value is not None:
        from accord.sessions.models import ROLES

        Choice(ROLES).convert(value, param, ctx)
    return value


class _CheckArguments(FindingsArguments, WritingArguments):
    paths: tuple[str, ...] = argument("PATH…", required=True, envvar="ACCORD_CHECK_PATHS")
    kind: str | None = option("--kind", "Kind of the documents. Default: recognised.", among=sorted([*KINDS, *FOLDERS]))
    role: str | None = option(
        "--role ROLE", "For sessions: the role of the agent that wrote the document.", callback=_check_role
    )
    fix: bool = option("--fix", "Correct small faults of JSON files, and write them.")
    most: int | None = option("--max", "Print at most this many findings as text.", least=1)


@command(_CheckArguments)
def check(given: _CheckArguments) -> int:
    """Check documents against their contracts.

    A PATH is a document, the folder of a session, or - for stdin. Exits 1 when a finding is an error. Among several,
    a PATH that cannot be read is an error, too.

    With --fix, faults that have one possible correction are corrected first, such as text around a document, misspelled
    keys, and numbers in place of strings. Folders and YAML stay as they are.
    """
    paths, kind = given.paths, given.kind
    if given.fix and "-" in paths and not given.dry_run:
        raise WrongUsage("`--fix` cannot write to stdin.", hint="Pass a file, or add `--dry-run`.")
    is_file = {path: kind not in FOLDERS and (path == "-" or bool(kind) or not Path(path).is_dir()) for path in paths}
    contents, unreadable = _read_files(path for path in paths if is_file[path])
    if len(unreadable) == len({*paths}):
        raise next(iter(unreadable.values()))
    fixes = _fix(contents, kind, is_written=not given.dry_run) if given.fix else {}
    documents: list[Checked] = []
    for path in paths:
        if error := unreadable.get(path):
            documents.append((path, None, [Finding("file-unreadable", error.message, hint=error.hint)]))
        elif path in contents:
            documents.append((path, *check_document(contents[path], kind, path, given.role or "")))
        elif Path(path).is_dir():  # whose documents belong together: itself first, then each document
            documents += [(str(at), name, found) for at, name, found in check_folder(Path(path), kind)]
        else:
            raise WrongUsage(f"`{path}` is not a folder.", hint=f"Name the folder, or leave out `--kind {kind}`.")
    is_ok = not any(has_errors(findings) for _, _, findings in documents)
    print_checks(documents, given.output_format, fixes, dry_run=given.dry_run, most=given.most)
    if given.output_format == "text" and not (given.fix or is_ok) and _can_fix(contents, kind):
        named = shlex.join([*(["--kind", kind] if kind else []), *(paths if len(paths) <= _MOST_PLACES else ["PATH"])])
        click.echo(f"`accord check --fix --dry-run {one_line(named)}` shows the faults that accord can correct.")
    output = ""
    if is_ok and len(paths) == len(contents) == 1 and os.environ.get("GITHUB_OUTPUT"):
        output = document_output(KINDS[documents[0][1] or ""].read(contents[paths[0]]).value)
    report_checks(documents, output)
    return 0 if is_ok else 1


def _read_files(paths: Iterable[str]) -> tuple[dict[str, bytes], dict[str, WrongUsage]]:
    contents, unreadable = dict[str, bytes](), dict[str, WrongUsage]()
    for path in paths:
        try:
            contents[path] = read_bytes(path)
        except WrongUsage as error:
            unreadable[path] = error
    return contents, unreadable


def _can_fix(contents: dict[str, bytes], kind: str | None) -> bool:
    """Return whether ``--fix`` would correct something; large documents are not tried."""
    from accord.core.fixes import fix_text

    for path, raw in contents.items():
        with suppress(AccordError):
            if len(raw) < _MOST_TRIED_BYTES and fix_text(raw, kind, path)[1]:
                return True
    return False


def _fix(contents: dict[str, bytes], kind: str | None, *, is_written: bool) -> dict[str, list[Fix]]:
    from accord.core.fixes import fix_text

    fixes: dict[str, list[Fix]] = {}

    def fix(path: str, raw: bytes) -> bytes:
        contents[path], fixes[path] = fix_text(raw, kind, path)
        return contents[path]

    for path, raw in contents.items():
        fix(path, raw)
        if fixes[path] and is_written:
            change_file(Path(path), partial(fix, path), Storage(SystemClock()))
    return fixes


def print_checks(
    documents: Sequence[Checked],
    output_format: str,
    fixes: Mapping[str, Sequence[Fix]] | None = None,
    *,
    dry_run: bool = False,
    most: int | None = None,
) -> None:
    """Print what was corrected and found in each document, as text, as one JSON document, or as SARIF."""
    fixes = fixes or {}
    if output_format == "sarif":
        print_json(sarif_log(click.get_current_context().info_name or "check", [(path, f) for path, _, f in documents]))
        return
    if output_format == "json":
        is_ok = not any(has_errors(findings) for _, _, findings in documents)
        shown = [
            {
                "path": path,
                "kind": kind,
                **contract_of(kind),
                "findings": [finding.as_json() for finding in findings],
                **({"fixes": [fix.as_json() for fix in fixes[path]]} if fixes.get(path) else {}),
            }
            for path, kind, findings in documents
        ]
        print_json({"ok": is_ok, "documents": shown})
        return
    printed = 0
    for path, kind, findings in documents:
        for fix in fixes.get(path, ()):
            label = click.style("would fix" if dry_run else "fixed", fg="green")
            click.echo(f"{one_line(path)}: {label}: {one_line(fix.text)}")
        groups = _group_equal(findings)
        for line in finding_lines(groups[: most if most is None else max(0, most - printed)], path):
            click.echo(line)
        printed += len(groups)
        if not findings:
            verdict = f"{colored_word('ok')} ({kind})" if kind else "not an agent runner"
            click.echo(f"{one_line(path)}: {verdict}")
        elif all(finding.code == "schema" for finding in findings):
            click.echo(f"{one_line(path)}: the other rules are checked once the shape is right")
    listed = [finding for _, _, findings in documents for finding in findings]
    if listed:
        errors = sum(has_errors([finding]) for finding in listed)
        counts = [count_of(errors, "error"), count_of(len(listed) - errors, "warning")]
        left = "" if most is None or printed <= most else f"; {printed - most} of {printed} are not shown (--max)"
        click.echo(f"{', '.join(counts)} in {count_of(len(documents), 'document')}{left}")
        click.echo(f"Next: `accord explain {listed[0].code}` says more of a code.")


def report_checks(documents: Sequence[Checked], document: str = "", name: str = "check") -> None:
    """Report a check of documents: outputs ``ok`` and ``document``, a table, annotations on the documents."""
    if not is_step():
        return
    is_ok = not any(has_errors(findings) for _, _, findings in documents)
    leave_outputs({"ok": str(is_ok).lower(), "document": document})
    for path, _, findings in documents:
        annotate_file(findings, path)
    if "GITHUB_STEP_SUMMARY" not in os.environ:
        return
    rows = [
        [
            redacted_cell(path),
            redacted_cell(kind or "unknown"),
            "❌ rejected" if has_errors(found) else "⚠️ ok, with warnings" if found else "✅ ok",
        ]
        for path, kind, found in documents
    ]
    details = [findings_table(findings) for _, _, findings in documents]
    leave_summary(f"### accord {name}", table(["Document", "Kind", "Verdict"], rows), *details)


def _group_equal(findings: Sequence[Finding]) -> list[Finding]:
    """Return equal findings of several places as one, which names the first places."""
    groups: dict[tuple[str, ...], list[Finding]] = {}
    for finding in findings:
        groups.setdefault((finding.code, finding.message, finding.severity, finding.hint), []).append(finding)
    grouped = []
    for first, *others in groups.values():
        places = ", ".join(each.path or "the top" for each in others[:_MOST_PLACES])
        more = f" and {len(others) - _MOST_PLACES} more places" if len(others) > _MOST_PLACES else ""
        grouped.append(replace(first, message=f"{first.message} The same at {places}{more}.") if others else first)
    return grouped
