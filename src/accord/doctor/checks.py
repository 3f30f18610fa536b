"""All checks of a repository for agents."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cache, partial
from pathlib import Path

from accord.core.errors import AccordError, BrokenContract, Stopped
from accord.core.findings import DoctorCheck, Finding, warning
from accord.doctor.settings import LiveFacts, gather_settings, setting_checks
from accord.files.store import file_behind, read_inside, write_whole
from accord.github.client import Connection
from accord.github.models import Label
from accord.kit.install import kit_check
from accord.results.label_sync import label_checks, label_names
from accord.results.labels import has_listener, loops_in
from accord.starts.config import approves_in, config_check
from accord.workflows.doctor import examine_workflows
from accord.workflows.facts import WORKFLOWS, read_repository
from accord.workflows.fixes import Fixed, fix_workflow
from accord.workflows.models import Job, Workflow
from accord.workflows.requirements import required_settings, token_of


def doctor_checks(root: Path, repository: str, connect: Callable[[], Connection] | str) -> list[DoctorCheck]:
    """Run all checks of a repository. ``connect`` gives access to it on GitHub, or says why GitHub is not asked.

    GitHub is asked for nothing else after it did not answer once: that takes 15 seconds.
    """
    facts, files = read_repository(root, repository)
    live: LiveFacts | str
    try:
        live = connect if isinstance(connect, str) else gather_settings(connect())
    except AccordError as error:
        live = error.message.removesuffix(".")
        connect = live if isinstance(error, Stopped) else connect
    is_private, secrets = (None, None) if isinstance(live, str) else (live.is_private, live.secrets)
    needed = required_settings(facts.workflows, facts.default_agent, approves=approves_in(root))
    read_labels = connect if isinstance(connect, str) else cache(partial(_read_labels, connect))
    labels = {*label_names(root)}
    with suppress(AccordError):  # the check of the labels says so
        labels |= set() if isinstance(read_labels, str) else {label.name for label in read_labels()[1]}
    return [
        *label_checks(root, read_labels),
        *setting_checks(live, needed, facts.workflows),
        *examine_workflows(root, facts, files, is_private),
        loops_check(facts.workflows, labels, facts.review_bots, secrets),
        config_check(root, has_starts="start" in loops_in(_text_of(facts.workflows))),
        kit_check(root),
    ]


def _read_labels(connect: Callable[[], Connection]) -> tuple[str, Sequence[Label]]:
    connection = connect()
    return connection.repository, connection.github.labels()


def loops_check(
    workflows: Mapping[str, Workflow], labels: Collection[str], bots: Sequence[str], secrets: Collection[str] | None
) -> DoctorCheck:
    """Check that labels, bots and names of workflows lead the loops somewhere. ``secrets`` is None if not read."""
    jobs = [(path, job) for path, workflow in workflows.items() for job in workflow.jobs.values()]
    calls = [(path, name, job) for path, job in jobs for name in loops_in(job.uses)]
    text = _text_of(workflows)
    running = loops_in(text)
    if not running:
        return DoctorCheck("loops", "no workflow of a loop or of starts")
    found = [(path, finding) for path, name, job in calls for finding in _call_findings(name, job, workflows)]
    own = [bot for bot in bots if bot.casefold().removesuffix("[bot]") == "github-actions"]
    for path, name, job in calls if own else ():
        secret = token_of(job).upper()
        if name == "bot-comments" and (not secret or secret not in (secrets if secrets is not None else (secret,))):
            message = f"`{own[0]}` in `review_bots` is the account of this job's token, so its threads do not count."
            found.append((path, warning("own-bot", message, hint="Pass the token of an app, or remove it there.")))
    agents = sorted(label for label in labels if label.casefold().startswith("agents:"))
    unheard = [label for label in agents if not has_listener(label, text)]
    if unheard:
        message = f"No workflow listens to {', '.join(f'`{label}`' for label in unheard)}."
        hint = "Install the workflow with `accord init`, or remove the label from the label file and from GitHub."
        found.append((WORKFLOWS, warning("label-unheard", message, hint=hint)))
    return DoctorCheck("loops", ", ".join(sorted(running)), found)


def _text_of(workflows: Mapping[str, Workflow]) -> str:
    return "\n".join(line for one in workflows.values() for line in _lines_of(one.model_dump(by_alias=True)))


def _lines_of(value: object, name: str = "") -> Iterator[str]:
    parts = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, (list, tuple)) else None
    yield from (line for key, part in parts for line in _lines_of(part, f"{key}")) if parts else (f"{name}: {value}",)


def _call_findings(name: str, job: Job, workflows: Mapping[str, Workflow]) -> Iterator[Finding]:
    for key in ("dispatch_workflow", "review_workflow"):
        file = job.given.get(key)
        if isinstance(file, str) and file and "${{" not in file and f"{WORKFLOWS}/{file}" not in workflows:
            message = f"`{key}` of {name} names `{file}`, which is not in {WORKFLOWS}, so the loop cannot start it."
            yield warning("loop-workflow-missing", message, hint="Install it with `accord init`, or remove the input.")


def fix_workflows(
    root: Path, connect: Callable[[], Connection] | str, *, is_written: bool
) -> dict[str, tuple[str, Fixed]]:
    """Correct workflow files of a repository; return the old text and the result of each that has something to fix.

    GitHub is asked for no other commit after it did not answer once.
    """

    @cache
    def resolve(repository: str, ref: str) -> str | None:
        nonlocal connect
        try:
            return None if isinstance(connect, str) else connect().github.commit_named(repository, ref)
        except Stopped as stopped:
            connect = stopped.message
        except AccordError:
            pass
        return None

    found = {}
    facts, _ = read_repository(root)
    for path in facts.workflows:
        try:
            text = read_inside(root, path).decode("utf-8")
        except (BrokenContract, UnicodeDecodeError):
            continue
        fixed = fix_workflow(text, resolve, facts.known)
        if fixed.fixes and is_written:
            write_whole(file_behind(root / path), fixed.text)
        if fixed.fixes or fixed.left:
            found[path] = text, fixed
    return found
