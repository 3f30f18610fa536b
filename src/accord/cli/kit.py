"""``accord init`` and ``sync``: the consumer kit of a repository, in a checkout or by a pull request."""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import click

from accord.agents import REGISTRY_PATH
from accord.agents.registry import Agent
from accord.agents.registry_rules import registry_from
from accord.cli.options import ReadingArguments, RootArguments, WritingArguments, command, option, top_of
from accord.cli.output import aligned_lines, colored_word, error_lines, one_line, operation_lines
from accord.cli.sources import github_for
from accord.cli.step import as_output, long_table, present, redacted_cell, report_step, warn
from accord.core.errors import AccordError, BrokenContract, WrongUsage
from accord.core.shapes import read_shape
from accord.files.yaml import read_mapping
from accord.git.origin import RemoteRepository, has_commit, read_origin
from accord.kit.install import REPOSITORY, SetupStep, install_kit, next_steps, plan_folder, read_installed
from accord.kit.plan import Action, FilePlan, KitPlan, diffs, unified_diff
from accord.kit.templates import SOURCE, Choices, Kit, given_choices, pin_for, shipped_kit
from accord.workflows.models import Workflow
from accord.workflows.requirements import Requirement, required_settings, secrets_of

_DIFF_COLORS = {"+": "green", "-": "red", "@": "cyan"}


class _InitArguments(RootArguments, WritingArguments):
    only: str = option("--only NAMES", "Install these workflows: `plan,implement`, or `all`.")
    agent: str = option("--agent NAME", "The default agent; the workflows pass only its secrets.")
    source: str = option("--source OWNER/REPO", "Use this fork or mirror of accord.")
    ref: str | None = option("--ref SHA", "The commit of accord to use. Default: that of this version.")
    skills: bool | None = option(
        "--skills/--no-skills", "Add skills for agents in an editor, or remove them.", default=None
    )
    diff: bool = option("--diff", "Show the differences, too.")
    yes: bool = option("--yes", "Write without asking.")


@command(_InitArguments)
def init(given: _InitArguments) -> None:
    """Install or update the consumer kit in a repository.

    Lists what happens to each file, and asks. Edited files are merged or stay.
    """
    root, kit, pin = top_of(given.root), shipped_kit(), pin_for(given.ref)
    place = root.resolve()
    top = next((folder for folder in (place, *place.parents) if (folder / ".git").exists()), None)
    if top is None:
        hint = "Run it in a checkout, pass `--root DIR`, or run `git init` first."
        raise WrongUsage(f"`{place}` is not in a git repository.", hint=hint)
    if top != place:
        right = f"`accord init --root {shlex.quote(str(top))}`"
        warn(f"GitHub reads `.github` at the top of a repository only, and `{place}` is below it. Run {right}.")
    origin, installed = read_origin(root), read_installed(root)
    has_terminal = bool(sys.stdin) and sys.stdin.isatty()
    asks = not (given.yes or given.dry_run or given.is_json) and has_terminal
    if asks and installed is None:
        given = _ask_choices(kit, given)
    before = installed.choices if installed else Choices()
    choices = given_choices(kit, before, only=given.only, agent=given.agent, source=given.source, skills=given.skills)
    plan = plan_folder(root, kit, pin, choices)
    is_published = _is_published(plan, origin)
    if not given.is_json:
        _show(plan, is_published, shows_diff=given.diff)
    if plan.is_change and not given.dry_run:
        if not given.yes:
            _require_consent(plan, asks=asks)
        install_kit(root, plan)
    outcome = ("planned" if given.dry_run else "applied") if plan.is_change else "unchanged"
    is_new_choice = plan.before is None or plan.before.choices != plan.manifest.choices
    steps = _steps(root, kit, plan, origin) if plan.is_change and is_new_choice else []
    lines = [outcome, *(["\nNext:"] if steps and outcome == "applied" else [])]
    for number, step in enumerate(steps if outcome == "applied" else (), 1):
        lines.append(f"  {number}. {one_line(step.text)}")
        words = filter(None, (*step.commands, step.url))
        lines += [f"     {click.style(one_line(line), fg='cyan')}" for line in words]
    present(given, _document(plan, outcome, is_published, steps), lines)
    report_step(f"init: {outcome}", {"outcome": outcome, "repositories": "[]"}, _files_table(plan.files))


def _ask_choices(kit: Kit, given: _InitArguments) -> _InitArguments:
    def ask(name: str, answer: str, question: str, default: str) -> str:
        def check_answer(answer: str) -> str:
            try:
                given_choices(
                    kit, Choices(), only=answer if name == "only" else "", agent=answer if name == "agent" else ""
                )
            except WrongUsage as error:
                raise click.BadParameter(f"{error.message} {error.hint}") from None
            return answer

        return answer or str(click.prompt(question, default=default, value_proc=check_answer))

    agents = [name for name, secrets in kit.agents.items() if secrets]
    only = ask("only", given.only, f"Workflows ({', '.join(kit.workflows)})", "all")
    agent = ask("agent", given.agent, f"Agent ({', '.join(agents)})", agents[0])
    return replace(given, only=only, agent=agent)


def _require_consent(plan: KitPlan, *, asks: bool) -> None:
    if not asks:
        raise WrongUsage("No terminal to confirm on, so nothing was written.", hint="Pass `--yes` or `--dry-run`.")
    answers = click.Choice(["y", "n", "d"], case_sensitive=False)
    while (answer := click.prompt("Write this? (d: show the differences)", type=answers, default="n")) == "d":
        _show_diffs(plan)
    if answer == "n":
        raise click.Abort


def _is_published(plan: KitPlan, origin: RemoteRepository | None) -> bool | None:
    pin = plan.manifest.pin
    if plan.before and plan.before.pin == pin:
        return True
    own_server = origin.server_url if origin and pin.source != SOURCE else "https://github.com"
    server_url = os.environ.get("GITHUB_SERVER_URL") or own_server
    return has_commit(f"{server_url.rstrip('/')}/{pin.source}.git", pin.commit)


def _steps(root: Path, kit: Kit, plan: KitPlan, origin: RemoteRepository | None) -> list[SetupStep]:
    present = {file.path: file.after for file in plan.files if file.after is not None}
    workflows = {}
    for path in present:
        if path.startswith(".github/workflows/"):
            with suppress(BrokenContract):  # one that the user broke: `accord doctor` reports it
                workflows[path] = read_shape(Workflow, read_mapping(present[path].encode()).value)
    own, agents = root / REGISTRY_PATH, dict[str, Agent]()
    with suppress(AccordError):  # the user's own: `accord doctor` reports it
        registry = registry_from(own.read_bytes() if own.is_file() else None)
        default = plan.manifest.choices.agent or registry.default_agent
        agents = {default: registry.agents[default]} if default in registry.agents else {}
    required = required_settings(workflows, agents)
    needs = [step for need in required if (step := _step(need, origin))]
    if not any(need.kind == "secret" for need in required):  # an agent of the repository's own registry
        for name, agent in agents.items():
            if agent.required_secrets:
                secrets = " and ".join(f"`{secret}`" for secret in agent.required_secrets)
                text = f"Pass {secrets} on in the workflows of `.github/workflows` that run the agent `{name}`."
                needs += [*filter(None, [_step(secrets_of(name, agent), origin)]), SetupStep(text)]
    tops = sorted({path.partition("/")[0] for path in present})
    return next_steps(needs, Kit(kit.version, present).workflows, origin, plan.manifest.pin, tops)


def _step(need: Requirement, origin: RemoteRepository | None) -> SetupStep | None:
    """Return the step for a secret or a setting; None for a need that another step covers."""
    if need.kind == "secret":
        usual = next((name for name in need.names if name.endswith("_API_KEY")), need.names[0])
        commands = tuple(f"gh secret set {name}" for name in (need.names if need.needs_all else (usual,)))
    elif need.kind == "setting":
        place = f"repos/{origin.repository if origin else REPOSITORY}/actions/permissions/workflow"
        commands = (f"gh api -X PUT {place} -F can_approve_pull_request_reviews=true",)
    else:
        return None
    return SetupStep(need.step(), commands, f"{origin.url}/{need.page.path}" if origin else "")


def _document(plan: KitPlan, outcome: str, is_published: bool | None, steps: list[SetupStep]) -> dict[str, object]:
    pin, choices = plan.manifest.pin, plan.manifest.choices
    return {
        "outcome": outcome,
        "version": pin.version,
        "commit": pin.commit,
        "source": pin.source,
        "published": is_published,
        "only": None if choices.only is None else list(choices.only),
        "agent": choices.agent,
        "skills": choices.skills,
        "files": [file.as_json() for file in plan.files],
        "diff": "".join(diffs(plan.files)),
        "next": [step.as_json() for step in steps],
    }


def _show(plan: KitPlan, is_published: bool | None, *, shows_diff: bool) -> None:
    """Print the action for each file, conflicts with the template's changes, and the differences if wanted."""
    click.echo("\n".join(_file_lines(plan.files)))
    for file in plan.of(Action.CONFLICT):
        click.echo(click.style(f"\n{one_line(file.path)} stays unchanged. The template changed:", fg="red"))
        _show_diff(unified_diff(*file.template, file.path))
    if shows_diff:
        _show_diffs(plan)
    pin = plan.manifest.pin
    if is_published is False:
        click.secho(f"\n{pin.source} does not have the commit {pin.commit}, so workflows cannot start.", fg="yellow")
        click.echo("Push the commit, or pass `--ref` with one that is there.")
    elif is_published is None:
        click.echo(f"\nCould not ask {pin.source} for the commit {pin.commit}. Check that it is there.")
    if plan.is_change and not shows_diff:
        click.echo("\nPass `--diff` to see the differences.")


def _show_diffs(plan: KitPlan) -> None:
    for diff in diffs(plan.files):
        click.echo()
        _show_diff(diff)


def _show_diff(diff: str) -> None:
    for line in diff.splitlines():
        click.echo(click.style(one_line(line), fg=_DIFF_COLORS.get(line[:1])))


def _file_lines(files: Sequence[FilePlan], indent: str = "") -> Iterator[str]:
    rows = ((one_line(file.path), colored_word(file.action.value), file.note) for file in files)
    yield from (f"{indent}{line}" for line in aligned_lines(rows))


def _files_table(files: Sequence[FilePlan]) -> str:
    rows = [[redacted_cell(file.path), file.action.value, redacted_cell(file.note)] for file in files]
    return long_table(["File", "Action", "Why"], rows, "in the kit")


class _SyncArguments(WritingArguments, ReadingArguments):
    ref: str | None = option("--ref SHA", "The commit of accord to use. Default: that of this version.")


@command(_SyncArguments)
def sync(given: _SyncArguments) -> int:
    """Update the kit of a repository by a pull request.

    The pull request keeps edits. A repository without the kit needs `accord init` first. The token must write contents,
    pull requests and workflows, which a job's own cannot.
    """
    from accord.kit.sync import sync_repository

    pin = pin_for(given.ref)
    with github_for(given) as connection:
        github, name = connection.github, connection.repository
        synced = sync_repository(github, name, shipped_kit(), pin, is_dry_run=given.dry_run)
    outcome, found = synced.outcome.value, [synced.as_json()]
    document = {"outcome": outcome, "version": pin.version, "commit": pin.commit, "repositories": found}
    lines = [f"{one_line(synced.repository)}  {colored_word(outcome)}{f'  {synced.pull.url}' if synced.pull else ''}"]
    if synced.error:
        lines.append(f"  {error_lines(synced.error)}")
    elif synced.plan:
        lines += _file_lines([file for file in synced.plan.files if file.action is not Action.UP_TO_DATE], "  ")
        lines += operation_lines(synced.operations, "  ") if outcome == "planned" else ()
    present(given, document, [*lines, outcome])
    report_step(
        f"sync: {outcome}",
        {"outcome": outcome, "repositories": as_output(found)},
        f"#### {redacted_cell(f'{synced.repository}: {outcome}')}",
        _files_table(synced.plan.files) if synced.plan else "",
        redacted_cell(str(synced.error)) if synced.error else "",
    )
    return {"stopped": 3, "refused": 4}.get(outcome, 0)
