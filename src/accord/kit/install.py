"""Install the kit into a repository's folder, and name the next steps, which accord cannot take.

The manifest is written last. The same command finishes a run that was interrupted: what that wrote is up to date.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any

from accord.core.errors import AccordError, WrongUsage
from accord.core.findings import DoctorCheck, Finding, warning
from accord.core.frozen import Frozen
from accord.files.store import can_be_written, write_whole
from accord.git.configuration import CONFIG_PATHS
from accord.git.origin import RemoteRepository
from accord.kit.manifest import PLACE, Manifest, check_version, manifest_text, read_manifest
from accord.kit.plan import Action, KitPlan, for_repository, plan_kit
from accord.kit.templates import FOLDER, LABELS, Choices, Kit, Pin, shipped_kit

FIRST_COMMANDS = {
    "plan": 'gh workflow run accord-plan.yml -f request="Plan docs/specs/export.md"',
    "implement": "gh workflow run accord-implement.yml -f work-item=12",
    "review": "gh workflow run accord-review.yml -f pull=34",
    "keepalive": "gh pr edit 34 --add-label agents:keepalive",
    "autofix": "gh pr edit 34 --add-label autofix",
    "verifier": "gh workflow run accord-verifier.yml -f pr_number=34",
    "bot-comments": "gh workflow run accord-bot-comments.yml -f pr_number=34",
    "labels": "gh workflow run accord-labels.yml",
    "board": "gh workflow run accord-board.yml",
    "start": "gh issue edit 12 --add-label agents:plan",
}
"""The command that starts a workflow, the usual first one first. Starts come last: alone they start nothing."""
REPOSITORY = "OWNER/NAME"
"""The placeholder for a repository that is not known."""
_CHECKS = {"implement", "review", "keepalive", "autofix", "bot-comments"}


def plan_folder(root: Path, kit: Kit, pin: Pin, choices: Choices | None = None) -> KitPlan:
    """Read a repository's folder, and plan the kit for it, by default with the choices of its manifest.

    Raises BrokenContract for a broken manifest, WrongUsage for a link or a folder at a file's path, Refused for the
    kit of a later version.
    """
    manifest = read_installed(root)
    if manifest:
        check_version(manifest, kit.version)
    wanted, *_ = for_repository(kit, pin, manifest, choices)
    paths = wanted.files.keys() | (manifest.files.keys() if manifest else set())
    found = {path: text for path in sorted(paths) if (text := _read(root, path)) is not None}
    found |= {path: "" for path in CONFIG_PATHS[:1] if (root / path).is_file()}
    return plan_kit(kit, pin, manifest, found, choices)


def read_installed(root: Path) -> Manifest | None:
    """Read the manifest of a repository's folder; None without one."""
    held = _read(root, PLACE)
    return None if held is None else read_manifest(held)


def kit_check(root: Path) -> DoctorCheck:
    """Compare the kit in a directory with this version's at the same pin: a finding for each file behind."""
    try:
        manifest = read_installed(root)
        if manifest is None:
            return DoctorCheck("kit", "none; `accord init` installs it")
        kit = shipped_kit()
        plan = plan_folder(root, kit, Pin(manifest.commit, kit.version))
    except AccordError as error:
        return DoctorCheck("kit", PLACE, [(PLACE, Finding("kit-unreadable", error.message, hint=error.hint))])
    findings = []
    for file in plan.files:
        if file.is_change or file.action is Action.CONFLICT:
            behind = f"is behind the kit ({file.action.value})"
            state = "conflicts with the template's changes" if file.action is Action.CONFLICT else behind
            hint = "Run `accord init` to see the difference."
            findings.append((file.path, warning("kit-drift", f"This file {state}.", hint=hint)))
    note = f"version {manifest.version}, {len(plan.of(Action.KEEP))} files edited or left out"
    return DoctorCheck("kit", note, findings)


def install_kit(root: Path, plan: KitPlan) -> None:
    """Apply a plan. Raises WrongUsage before the first write when one of the files cannot be written."""
    if not plan.is_change:
        return
    for path in (*(file.path for file in plan.changes), PLACE):
        if not can_be_written(root / path):
            message = f"Cannot write {root / path}, so nothing was written."
            raise WrongUsage(message, hint="Give this user write access to it, and run this again.")
    for file in plan.changes:
        if file.after is None:
            (root / file.path).unlink(missing_ok=True)
        else:
            write_whole(root / file.path, file.after)
    write_whole(root / PLACE, manifest_text(plan.manifest))


def _read(root: Path, path: str) -> str | None:
    """Read a file and keep bytes that are not UTF-8. Raises WrongUsage for anything but a plain file."""
    place = root
    for part in path.split("/"):
        place = place / part
        if place.is_symlink():
            raise _in_the_way(place, "a symbolic link")
    if place.is_dir():
        raise _in_the_way(place, "a folder")
    try:
        return place.read_bytes().decode("utf-8", "surrogateescape")
    except FileNotFoundError:
        return None
    except NotADirectoryError:
        file = next(each for each in place.parents if each.is_file())
        raise _in_the_way(file, "not a folder") from None
    except OSError as error:
        raise WrongUsage(f"Cannot read {place}: {error.strerror}.", hint="Make it readable, or remove it.") from None


def _in_the_way(place: Path, what: str) -> WrongUsage:
    return WrongUsage(f"{place} is {what}, but the kit has a file there.", hint="Move it away, and run this again.")


class SetupStep(Frozen):
    """One step: its text, the commands that take it, and the page on which people take it."""

    text: str
    commands: tuple[str, ...] = ()
    url: str = ""

    def as_json(self) -> dict[str, Any]:
        """Return the JSON object of this step."""
        return {"text": self.text, "commands": list(self.commands), "url": self.url}


def next_steps(
    needs: Sequence[SetupStep],
    workflows: Collection[str],
    origin: RemoteRepository | None,
    pin: Pin,
    tops: Sequence[str] = (FOLDER,),
) -> list[SetupStep]:
    """Return the steps for the installed workflows, in order: ``needs`` are those for secrets and settings.

    ``tops`` are the folders and files to commit. Without ``origin``, commands have a placeholder for the repository.
    """
    repository = origin.repository if origin else REPOSITORY
    steps = list(needs)
    if _CHECKS.intersection(workflows):
        text = "Recommended: let accord write as another account, so that checks start and reviews count."
        server_url = origin.server_url if origin else "https://github.com"
        page = f"{server_url}/{pin.source}/blob/{pin.commit}/docs/consumer-kit.md#two-accounts"
        reviewer = "gh variable set ACCORD_REVIEW_LOGIN --body 'github-actions[bot]'"
        steps.append(SetupStep(text, ("gh secret set ACCORD_TOKEN", "gh variable set ACCORD_LOGIN", reviewer), page))
    steps.append(SetupStep(f"Check the repository, then commit and push {', '.join(tops)}.", ("accord doctor",)))
    if "labels" in workflows:
        steps.append(SetupStep(f"Labels are created when {LABELS} reaches the default branch."))
    else:
        steps.append(SetupStep("Create the labels.", (f"accord labels sync --repo {repository}",)))
    if first := next((command for name, command in FIRST_COMMANDS.items() if name in workflows), ""):
        steps.append(SetupStep("Start the first run.", (first,), f"{origin.url}/actions" if origin else ""))
    return steps
