"""The words of the pull request that brings a repository's kit in step."""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING

from accord.github.limits import BODY_CHARS
from accord.github.markers import find_markers, write_marker
from accord.kernel.markdown_text import cell, fenced, table
from accord.kit.diffs import unified
from accord.kit.manifest import digest_of, manifest_text
from accord.kit.plan import Action

if TYPE_CHECKING:
    from collections.abc import Sequence

    from accord.kit.plan import FilePlan, Plan

BRANCH = "accord/sync"
SUBJECT = "Update the accord kit"
_MARKER = "sync"


def title(plan: Plan) -> str:
    """Return the title of the pull request, and the first line of its commit."""
    return f"{SUBJECT} to v{plan.manifest.version}"


def commit_message(plan: Plan) -> str:
    """Return the message of the one commit."""
    return f"{title(plan)}\n\nFrom accord {plan.manifest.commit}. What was edited here is kept.\n"


def plan_digest(plan: Plan) -> str:
    """Name what the pull request proposes: the same plan is the same digest."""
    after = {file.path: None if file.after is None else digest_of(file.after) for file in plan.changes}
    held = json.dumps([after, manifest_text(plan.manifest)], sort_keys=True)
    return hashlib.sha256(held.encode()).hexdigest()


def digest_in(body: str) -> str:
    """Return the digest that a body carries; empty when none."""
    return next((found.get("plan", "") for found in find_markers(body, _MARKER)), "")


def body(plan: Plan) -> str:
    """Describe the plan: every file, the conflicts with what the template changed, and what to do about them."""
    rows = [[cell(file.path), file.action.value, cell(file.note)] for file in plan.files]
    parts = [
        f"This brings accord's kit to `{plan.manifest.commit}`. What was edited in this repository is kept.",
        table(["File", "What happens", "Why"], rows),
    ]
    conflicts = plan.of(Action.CONFLICT)
    if conflicts:
        parts.append(_conflicts(conflicts))
    parts.append(
        "Close this pull request to stay with what is here: it comes back only with other changes. "
        "Commits that others push to its branch are not overwritten."
    )
    end = write_marker(_MARKER, plan=plan_digest(plan))
    return f"{_fitting(parts, BODY_CHARS - len(end) - 2)}\n\n{end}"


def _conflicts(conflicts: Sequence[FilePlan]) -> str:
    texts = [
        "## Conflicts",
        (
            "These files were edited here and in the new version, in the same lines. They stay as they are. Below is "
            "what the templates changed; take over what you want of it."
        ),
    ]
    for file in conflicts:
        texts += [f"### {cell(file.path)}", fenced(unified(*file.template, file.path), "diff")]
    return "\n\n".join(texts)


def _fitting(parts: Sequence[str], limit: int) -> str:
    """Join the parts; where that is too long, conflicts are shown without their diffs, then the end is cut."""
    whole = "\n\n".join(parts)
    if len(whole) <= limit:
        return whole
    note = "\n\nThe rest is too long to show: run `accord init --dry-run` in a checkout."
    return "\n\n".join(part for part in parts if not part.startswith("## "))[: limit - len(note)] + note
