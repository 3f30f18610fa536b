"""Lists of rules: errors of runs, reasons of loops, faults and routes of the sandbox."""

from __future__ import annotations

import re
from dataclasses import replace
from itertools import groupby
from typing import TYPE_CHECKING, Any

from accord.cli.attacks.ground import ROWS
from accord.loops.models import REASONS
from accord.runner.causes import CAUSES, INTERNAL_ERRORS
from accord.runner.transcripts import error_rules
from accord.runner.transcripts.read import FORMATS
from accord.sessions.machine import SESSION
from accord.text.markdown import table
from accord_sandbox import app as _app  # noqa: F401 (registers the routes)
from accord_sandbox import faults
from accord_sandbox.calls import ROUTES
from reference.text import Problem, plain, with_anchor, yaml_value

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping
    from pathlib import Path

    from accord.core.machine import Machine

REPOSITORY = "/repos/{owner}/{repo}"


def causes_list() -> str:
    """List the causes of failed runs by the words of the contract: the meaning and the fix of each."""
    groups: dict[str, list[str]] = {}
    for name, cause in CAUSES.items():
        words = f"Category `{cause.category}`, type `{cause.type}`, recovery `{cause.recovery}`:"
        groups.setdefault(words, []).append(f"- {with_anchor(name)}: {cause.means}. {cause.hint}")
    return "\n\n".join(f"{words}\n\n" + "\n".join(lines) for words, lines in groups.items())


def rules_list() -> str:
    """List the rules of classification by their evidence, in the order in which they are checked."""
    statuses = {f"http-{status}": cause for status, cause in error_rules.STATUSES.items()}
    exits = {
        f"exit-{code}" + (f" ({codec})" if codec else ""): cause
        for codec, codes in [("", error_rules.EXITS), *((codec, form.exits) for codec, form in FORMATS.items())]
        for code, cause in codes.items()
    }
    groups: list[tuple[str, Mapping[str, str]]] = [
        ("observed by accord", {str(kind): cause for kind, cause in INTERNAL_ERRORS.items()}),
        ("a rate limit with a hard quota and without a delay", {"hard-quota": "quota"}),
        ("a class of the CLI or the provider", error_rules.KINDS),
        ("an HTTP status", {**statuses, "http-4xx": "request", "http-5xx": "outage"}),
        ("a broad class", error_rules.BROAD_KINDS),
        ("words of an error", {f"says-{cause}": cause for cause in error_rules.PRECEDENCE}),
        ("a vague class", error_rules.WEAK_KINDS),
        ("the exit code", exits),
        ("a transcript that breaks off", {"no-terminal-event": "interrupted"}),
        ("none of these", {"unknown-error": "unknown", "no-evidence": "unknown"}),
    ]
    pieces = []
    for number, (evidence, rules) in enumerate(groups, 1):
        by_cause: dict[str, list[str]] = {}
        for rule, cause in rules.items():
            by_cause.setdefault(cause, []).append(f"`{rule}`")
        pieces.append(f"{number}. {evidence[0].upper()}{evidence[1:]}:")
        if all(names == [f"`says-{cause}`"] for cause, names in by_cause.items()):
            pieces.append(f"    - `says-CAUSE`, for {', '.join(f'`{cause}`' for cause in by_cause)}")
        else:
            pieces += [f"    - `{cause}`: {', '.join(names)}" for cause, names in by_cause.items()]
    return "\n".join(pieces)


def runs_table(root: Path) -> str:
    """List the recorded runs whose verdict is a choice, with the reason."""
    rows = []
    for row in yaml_value((root / "tools" / "runs.yml").read_bytes()):
        error = row["error"]
        verdict = ", ".join(f"`{error[key]}`" for key in ("category", "type", "recovery")) if error else "no error"
        rows.append([", ".join(f"`{run}`" for run in row["runs"]), verdict, plain(row["why"])])
    return table(["Runs", "Verdict", "Why"], rows)


def fault_table() -> str:
    """Take the table of faults from the module that plays them, and see that it has every kind."""
    lines = [line for line in (faults.__doc__ or "").splitlines() if line.startswith("|")]
    missing = [kind for kind in faults.KINDS if kind not in "\n".join(lines)]
    if missing:
        raise Problem(f"The table in accord_sandbox.faults lacks {', '.join(missing)}.")
    return "\n".join(lines)


def reasons_list() -> str:
    """List the reasons of all loops, in the order in which each loop checks them; those of the verifier alone apart."""
    lines: dict[bool, list[str]] = {True: [], False: []}
    for code, reason in REASONS.items():
        name = with_anchor(code) + (" *" if reason.asks else "")
        lines[set(reason.loops) == {"verify"}].append(f"- {name}, {reason.action}: {reason.meaning}")
    return "\n".join(lines[False]) + "\n\nThe verifier alone:\n\n" + "\n".join(lines[True])


def routes_table() -> str:
    """List the operations of the sandbox: methods and path, those of a repository below its path."""
    by_path: dict[str, list[str]] = {}
    for route in sorted(ROUTES, key=lambda route: route.path):
        path = re.sub(r"{(\w+):\w+}", r"{\1}", route.path)
        by_path.setdefault(path, []).append(route.method)
    width = max(len(",".join(methods)) for methods in by_path.values())
    lines = [f"{','.join(methods):<{width}}  {path}" for path, methods in by_path.items()]
    own = [line.replace(REPOSITORY, "", 1) for line in lines if f" {REPOSITORY}/" in line]
    others = [line for line in lines if f" {REPOSITORY}/" not in line]
    return "\n".join(["```text", *others, "```", "", f"Below `{REPOSITORY}`:", "", "```text", *own, "```"])


def attacks_table() -> str:
    """List each known attack by section with its defence, whether the command plays it, and its tests."""
    rows: list[list[str]] = []
    for title, group in groupby(ROWS, key=lambda row: row.section):
        rows.append([f"**{title}**", "", "", ""])
        for row in group:
            texts = (text.replace("](", "](../../docs/") for text in (row.attack, row.defence))
            rows.append([*texts, row.unplayed or "yes", ", ".join(f"`{name}`" for name in row.tests)])
    return table(["Attack", "Defence", "Played by the command", "Test"], rows)


def diagram(machine: Machine[Any], *, hidden: Collection[str] = ()) -> str:
    """Draw a state machine, without the moves into the states of ``hidden``, which the page tells."""
    shown = replace(machine, edges=tuple(edge for edge in machine.edges if edge.target not in hidden))
    return f"```mermaid\n{shown.mermaid()}\n```"


def session_diagram() -> str:
    """Draw the states of a full session, without ASK_USER and BLOCKED."""
    ways = tuple(
        edge
        for edge in SESSION.edges
        if not {edge.source, edge.target} & {"ASK_USER", "BLOCKED"} and edge.needs != "not answered"
    )
    return diagram(replace(SESSION, edges=ways))
