"""The steps after an install that accord cannot take: secrets, settings, labels, and the first command."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from accord.kit.templates import FOLDER, LABELS

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from accord.git.origin import RemoteRepository
    from accord.kit.pins import Pin

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


@dataclass(frozen=True)
class SetupStep:
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
