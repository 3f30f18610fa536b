"""Tables of rules: errors of runs, reasons of loops, faults and routes of the sandbox."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from accord.loops.models import ALL, REASONS
from accord.runner.transcripts import error_rules
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


def causes_table() -> str:
    """List the causes of failed runs: the words of the contract, the meaning and the fix."""
    rows = [
        [
            with_anchor(name),
            f"`{cause.category}`",
            f"`{cause.type}`",
            f"`{cause.recovery}`",
            plain(f"{cause.means}. {cause.hint}"),
        ]
        for name, cause in error_rules.CAUSES.items()
    ]
    return table(["Cause", "Category", "Type", "Recovery", "Meaning and fix"], rows)


def rules_table() -> str:
    """List the rules of classification by their evidence, in the order in which they are checked."""
    statuses = {f"http-{status}": cause for status, cause in error_rules.STATUSES.items()}
    exits = {
        f"exit-{code}" + (f" ({codec})" if codec else ""): cause
        for codec, codes in error_rules.EXITS.items()
        for code, cause in codes.items()
    }
    groups: list[tuple[str, Mapping[str, str]]] = [
        ("observed by accord", {str(kind): cause for kind, cause in error_rules.INTERNAL_ERRORS.items()}),
        ("success without a successful command or a change", dict(error_rules.COMMAND_FAILURES.values())),
        ("a rate limit with a hard quota and without a delay", {"hard-quota": "quota"}),
        ("a class of the CLI or the provider", error_rules.KINDS),
        ("an HTTP status", {**statuses, "http-4xx": "request", "http-5xx": "outage"}),
        ("a broad class", error_rules.BROAD_KINDS),
        ("words of an error", {f"says-{cause}": cause for cause in error_rules.WORDS}),
        ("a vague class", error_rules.WEAK_KINDS),
        ("the exit code", exits),
        ("a transcript that breaks off", {"no-terminal-event": "interrupted"}),
        ("none of these", {"unknown-error": "unknown", "no-evidence": "unknown"}),
    ]
    rows = []
    for evidence, rules in groups:
        by_cause: dict[str, list[str]] = {}
        for rule, cause in rules.items():
            by_cause.setdefault(cause, []).append(f"`{rule}`")
        firsts = [evidence, *[""] * len(by_cause)]
        rows += [[firsts[i], f"`{cause}`", ", ".join(names)] for i, (cause, names) in enumerate(by_cause.items())]
    return table(["Evidence", "Cause", "Rules"], rows)


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


def reasons_table() -> str:
    """List the reasons of all loops, in the order in which each loop checks them; those of the verifier alone apart."""
    rows, verifier = [], []
    for code, reason in REASONS.items():
        row = [with_anchor(code) + (" *" if reason.asks else ""), reason.action, plain(reason.meaning)]
        if reason.loops == ("verify",):
            verifier.append(row)
        else:
            loops = "all" if set(reason.loops) == set(ALL) else ", ".join(loop for loop in ALL if loop in reason.loops)
            rows.append([*row[:2], loops, row[2]])
    shown = table(["Reason", "Action", "Loops", "Meaning"], rows)
    return f"{shown}\n\nThe verifier alone:\n\n{table(['Reason', 'Action', 'Meaning'], verifier)}"


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
