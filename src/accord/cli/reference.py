"""``accord explain``, ``schema``, ``machine`` and ``completion``: what accord knows of its own codes and contracts."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import asdict
from functools import cache
from pathlib import Path
from typing import Any

import click
from click.shell_completion import CompletionItem, get_completion_class

from accord.cli.options import Arguments, FormatArguments, Group, argument, command, option
from accord.cli.output import print_json
from accord.core.errors import WrongUsage
from accord.core.findings import page_of
from accord.core.frozen import Frozen
from accord.core.kinds import KINDS
from accord.core.machine import Machine
from accord.core.suggest import did_you_mean
from accord.files.yaml import read_yaml

_FINDINGS = Path(__file__).with_name("findings.yml")
_SHELLS = ("bash", "fish", "zsh")
MACHINES = ("handoff", "session", "session-lean", "session-task", "work-item", "work-package")


machine = Group("machine", help="Print state machines as Mermaid diagrams.")


class _MachineArguments(Arguments):
    name: str = argument(among=sorted(MACHINES))


@command(_MachineArguments, of=machine)
def show(given: _MachineArguments) -> None:
    """Print one machine as a Mermaid state diagram."""
    from accord.handoffs.stages import HANDOFF
    from accord.missions.lifecycle import WORK_PACKAGE
    from accord.results.status import WORK_ITEM
    from accord.sessions.machine import LEAN, SESSION
    from accord.sessions.reviews import TASK

    machines: tuple[Machine[Any], ...] = (HANDOFF, SESSION, LEAN, TASK, WORK_ITEM, WORK_PACKAGE)
    click.echo(dict(zip(MACHINES, machines, strict=True))[given.name].mermaid())


class _SchemaArguments(Arguments):
    kind: str | None = argument("[KIND]", among=sorted(KINDS))
    strict: bool = option("--strict", "The stricter form that agent CLIs need for enforced output.")


@command(_SchemaArguments)
def schema(given: _SchemaArguments) -> None:
    """Print the JSON Schema of a document kind.

    Without KIND, lists the kinds. The schemas are JSON Schema 2020-12. A folder, such as a session, has none, but each
    of its documents has.

    Enforced output has no objects with free keys and no values of any type: --strict leaves them out, and names them on
    stderr.
    """
    from accord.core.schemas import json_schema, strict_form

    kind = given.kind
    if kind is None:
        click.echo("\n".join(sorted(KINDS)))
        return
    model = KINDS[kind].model
    if not given.strict:
        print_json(json_schema(model, kind))
        return
    form = strict_form(model)
    print_json(form.schema)
    if form.left_out:
        click.echo(f"warning: The strict schema leaves out {', '.join(form.left_out)}.", err=True)
    if form.missing:
        names = " and ".join(f"`{name}`" for name in form.missing)
        click.echo(f"warning: {names} must be given, so no document of this form passes `accord check`.", err=True)


class Explanation(Frozen):
    """The meaning of a code and its fix."""

    code: str
    subject: str  # who reports it
    means: str
    hint: str
    url: str  # of its line in a page


@cache
def explanations() -> dict[str, list[Explanation]]:
    """Return all explanations by code; the same code may stand for a finding, a cause and a reason."""
    from accord.loops.models import REASONS
    from accord.runner.causes import CAUSES

    found: dict[str, list[Explanation]] = {}

    def add(code: str, subject: str, means: str, hint: str, page: str) -> None:
        found.setdefault(code, []).append(Explanation(code, subject, means, hint, page_of(page, code)))

    for group in read_yaml(_FINDINGS.read_bytes()).value:
        for code, text in group["codes"].items():
            add(code, f"finding: {group['title']}", text["means"], text["hint"], "findings")
    for code, cause in CAUSES.items():
        subject = f"cause of failed runs: {cause.category}, {cause.type}, {cause.recovery}"
        add(code, subject, f"{cause.means}.", cause.hint, "errors")
    for code, reason in REASONS.items():
        subject = f"reason of loops: {', '.join(reason.loops)}; action {reason.action}"
        hint = "Remove the label `needs-human` when it is settled." if reason.asks else ""
        add(code, subject, reason.meaning, hint, "loops")
    return found


def _complete(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    return [CompletionItem(code) for code in explanations() if code.startswith(incomplete)]


class _ExplainArguments(FormatArguments):
    code: str | None = argument("[CODE]", shell_complete=_complete)


@command(_ExplainArguments)
def explain(given: _ExplainArguments) -> None:
    """Explain a code that accord printed.

    CODE is that of a finding, of the cause of a failed run, or the reason of a loop. Without it, lists all codes.
    """
    known, code = explanations(), given.code
    code = code if code is None or code in known else code.lower().replace("_", "-")  # as JSON has those of handoffs
    if code is not None and code not in known:
        message = f"Unknown code `{code}`. {did_you_mean(code, known)}".rstrip()
        hint = "`accord explain` lists all codes. Of `accord classify`, pass the `cause`, not the rule."
        raise WrongUsage(message, hint=hint)
    chosen = known[code] if code is not None else [one for found in known.values() for one in found]
    if given.is_json:
        print_json({"codes": [asdict(explanation) for explanation in chosen]})
    elif code is None:
        _print_all(chosen)
    else:
        for explanation in chosen:
            click.echo(f"{click.style(explanation.code, bold=True)}  ({explanation.subject})")
            for line in (explanation.means, explanation.hint, explanation.url):
                if line:
                    click.echo(f"    {line}")


def _print_all(explanations: Sequence[Explanation]) -> None:
    subjects: dict[str, list[tuple[str, str]]] = {}
    for explanation in sorted(explanations, key=lambda found: found.subject.partition(":")[0]):
        kind, _, title = explanation.subject.partition(": ")
        heading = title if kind == "finding" else f"{kind[0].upper()}{kind[1:]}"
        subjects.setdefault(heading, []).append((explanation.code, explanation.means))
    width = max(len(explanation.code) for explanation in explanations)
    formatter = click.HelpFormatter(max_width=100)
    for subject, rows in subjects.items():
        with formatter.section(click.style(subject, bold=True)):
            formatter.write_dl([(code.ljust(width), means) for code, means in rows], col_max=width)
    click.echo_via_pager(formatter.getvalue())
    click.echo("\nNext: `accord explain CODE` adds the fix and the page.")


class _CompletionArguments(Arguments):
    shell: str | None = argument("[bash|zsh|fish]", among=_SHELLS)


@command(_CompletionArguments)
def completion(given: _CompletionArguments) -> None:
    """Print completion for your shell.

    Without a name, the shell is that of the variable SHELL. For bash, add `eval "$(accord completion bash)"` to
    ~/.bashrc.
    """
    name = given.shell or Path(os.environ.get("SHELL", "")).name
    found = get_completion_class(name) if name in _SHELLS else None
    if found is None:
        message = f"No completion for the shell `{name}`." if name else "No shell given."
        raise WrongUsage(message, hint=f"Pass one of {', '.join(_SHELLS)}.")
    click.echo(found(click.get_current_context().find_root().command, {}, "accord", "_ACCORD_COMPLETE").source())
