"""Keep accord's own pull requests mergeable: after another merge, the base is merged into their branches.

That is a commit on top of the branch, so no commit is lost. A conflict asks a person, once for the two commits.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from accord.core.errors import Refused, Stopped
from accord.git.branches import branch_clone
from accord.git.merges import merge_into
from accord.github.commits import deliver_commit, plan_upload, read_commit
from accord.loops.models import NEEDS_HUMAN, decision_for

if TYPE_CHECKING:
    from accord.git.merges import Merge
    from accord.git.program import Git
    from accord.loops.facts import Gathered
    from accord.loops.models import LoopDecision

_SHOWN = 8


def update_branch(gathered: Gathered) -> LoopDecision:
    """Merge the base into the branch, unless the branch moved; return the outcome. Raises Unreachable."""
    context, pull = gathered.context, gathered.pull
    if context.remote is None:
        raise ValueError("an update of a branch needs a remote")
    with branch_clone(context.remote, pull.base_branch, pull.head_branch, None) as git:
        tip, base = (git.line("rev-parse", f"refs/heads/{name}") for name in ("work", "base"))
        message = f"Merge {pull.base_branch} into {pull.head_branch}\n"
        try:
            merge = merge_into(git, tip, base, message, context.clock.now())
            if not merge.conflicts:
                return _push(gathered, git, merge, tip)
        except Stopped:
            raise
        except Refused as refused:
            reason = refused.message
        else:
            reason = f"{pull.base_branch} conflicts with {pull.head_branch} in {_names_of(merge.conflicts)}."
    what = f"Merge {pull.base_branch} into it by hand, push, and remove the label {NEEDS_HUMAN}."
    return decision_for("conflict", f"{reason[:400]} {what}", about=f"{tip[:20]}.{base[:20]}")


def _push(gathered: Gathered, git: Git, merge: Merge, tip: str) -> LoopDecision:
    context, pull = gathered.context, gathered.pull
    if context.remote is None or merge.commit == tip:
        message = f"{pull.head_branch} contains {pull.base_branch} already. GitHub has yet to notice."
        return decision_for("merge-unknown", message, wait_seconds=60)
    upload = plan_upload(read_commit(git, merge.commit, is_bot=not context.identity.is_person))
    delivery = deliver_commit(context.github, git, context.remote, upload, pull.head_branch, tip)
    if delivery is None:
        return decision_for("merge-unknown", f"{pull.head_branch} moved while it was updated.", wait_seconds=60)
    message = f"{pull.base_branch} was merged into {pull.head_branch}: {delivery.commit[:12]}."
    return decision_for("unmergeable", message)


def _names_of(paths: tuple[str, ...]) -> str:
    more = f" and {len(paths) - _SHOWN} more" if len(paths) > _SHOWN else ""
    return ", ".join(path[:60] for path in paths[:_SHOWN]) + more
