"""Findings of zizmor, which audits workflows and actions: one call for all files of a repository, without a network.

Its audit of text in scripts says which scripts to look at; who chooses the text is for ``untrusted`` to say. Other
audits are shown by file, as warnings: only what outsiders can use at once is an error. Source: zizmor's documentation,
"Usage" and "Audits".
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from accord.core.findings import Finding, PlacedFinding, Severity, first_of, pointer, warning
from accord.core.frozen import Frozen
from accord.workflows.models import Workflow
from accord.workflows.trust import Actor, RunPlace, starts_of_strangers

_SECONDS = 120
_NO_INPUT = 3
"""The exit code of zizmor if it could read none of the files."""

_COMPLETED = re.compile(r"\bcompleted (?P<path>\S.*)")
_KEPT = ("PATH", "HOME", "TMPDIR", "LD_LIBRARY_PATH", "SYSTEMROOT")
"""Variables that zizmor gets: no token, and no setting that would change its output."""


MISSING = "zizmor is not installed"

INJECTION = "template-injection"
_LEFT_OUT = frozenset({INJECTION, "dangerous-triggers"})
"""Audits that doctor replaces by what is inserted into scripts, and by what runs of these triggers check out."""

_OF_STARTERS = frozenset({"bot-conditions", "github-env", "insecure-commands"})
"""Audits of what the person who starts a job can do to it."""

_FIXED = frozenset({"unpinned-uses", "artipacked", "excessive-permissions"})
"""Audits whose findings ``accord doctor --fix`` corrects."""


class Audit(NamedTuple):
    """One finding of zizmor: the name of the audit, and the file, and the finding in our form, not graded yet."""

    name: str
    path: str
    finding: Finding
    is_sure: bool


class AuditReport(Frozen):
    """Findings of zizmor in the files that it read; ``failure`` says why it did not run."""

    audits: Sequence[Audit] = ()
    read: frozenset[str] = frozenset()
    failure: str = ""


def find_zizmor() -> str | None:
    """Return the program, next to the running Python or on ``PATH``; None where it is missing."""
    return shutil.which("zizmor", path=str(Path(sys.executable).parent)) or shutil.which("zizmor")


def audit_files(program: str, root: Path, paths: Iterable[str]) -> AuditReport:
    """Let zizmor audit files, by their paths below ``root``."""
    wanted = sorted(paths)
    if not wanted:
        return AuditReport()
    options = ["--offline", "--no-exit-codes", "--no-progress", "--color=never", "--format=json-v1"]
    environment = {name: os.environ[name] for name in _KEPT if name in os.environ} | {"RUST_LOG": "info"}
    try:
        ended = subprocess.run(  # noqa: S603
            [program, *options, "--", *(f"./{path}" for path in wanted)],
            cwd=root, env=environment, capture_output=True, text=True, encoding="utf-8", timeout=_SECONDS, check=False,
        )  # fmt: skip
        if ended.returncode == _NO_INPUT:
            return AuditReport()
        if ended.returncode != 0:
            last = next((line for line in ended.stderr.splitlines() if line.startswith(("fatal", "error"))), "")
            return AuditReport(failure=f"zizmor ended with {ended.returncode}{': ' if last else ''}{last}")
        found = tuple(_audits(json.loads(ended.stdout)))
    except (OSError, subprocess.TimeoutExpired, ValueError, KeyError, TypeError, IndexError) as error:
        return AuditReport(failure=f"zizmor's output cannot be read: {type(error).__name__}")
    read = {at["path"].removeprefix("./") for at in _COMPLETED.finditer(ended.stderr)}
    return AuditReport(found, frozenset(read & set(wanted)))


def _audits(records: list[dict[str, Any]]) -> Iterator[Audit]:
    for record in records:
        if record.get("ignored"):
            continue
        locations = record["locations"]
        place = next((each for each in locations if each["symbolic"]["kind"] == "Primary"), locations[0])
        symbolic, start = place["symbolic"], place["concrete"]["location"]["start_point"]
        steps = [next(iter(step.values())) for step in symbolic["route"]["route"]]
        named = symbolic["key"]["Local"]
        path = named["verbatim_path"] if "verbatim_path" in named else named["given_path"]  # before 1.28
        determined = record["determinations"]
        name, is_sure = record["ident"], {determined["severity"], determined["confidence"]} <= {"Medium", "High"}
        message = f"zizmor, `{name}`: {record['desc']}: {symbolic['annotation']}."
        hint = f"{'`accord doctor --fix` corrects most of these; see' if name in _FIXED else 'See'} {record['url']}."
        finding = Finding("workflow-risk", message, pointer(*steps), line=start["row"] + 1, hint=hint)
        finding = replace(finding, code="unpinned-action") if name == "unpinned-uses" else finding
        yield Audit(name, path.removeprefix("./"), finding, is_sure)


def audit_findings(
    report: AuditReport, files: Mapping[str, Workflow], actions: Collection[str]
) -> Iterator[PlacedFinding]:
    """Yield one finding for each audit in each file, graded by who can start the job, and the files not read."""
    found: dict[tuple[str, str, Severity], list[Finding]] = {}
    for name, path, finding, is_sure in report.audits:
        if is_sure and name not in _LEFT_OUT:
            is_open = name in _OF_STARTERS and _is_open(path, finding.path, files)
            severity = Severity.ERROR if is_open else Severity.WARNING
            found.setdefault((path, name, severity), []).append(replace(finding, severity=severity))
    for (path, _, _), findings in found.items():
        yield from ((path, finding) for finding in first_of(findings))
    for path in sorted({*files, *actions} - report.read):
        message = "zizmor cannot read this file, so its permissions, pins and triggers were not checked."
        yield path, warning("workflow-unaudited", message, hint=f"Run `zizmor {path}` for the reason.")


def _is_open(path: str, place: str, files: Mapping[str, Workflow]) -> bool:
    """Return whether outsiders start the job of a place with secrets."""
    job_id = "".join(place.split("/")[2:3])
    starts = starts_of_strangers(path, files) if path in files and job_id in files[path].jobs else ()
    return any(RunPlace(files, path, start, job_id).is_reached_by(Actor.STARTER) for start in starts)
