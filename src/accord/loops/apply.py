"""Apply what a loop planned: comments, labels, and a workflow to start. Each function may be repeated after a crash."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

from accord.github.markers import defuse, find_markers, write_marker
from accord.github.models import Forbidden, NotThere
from accord.github.once import send_once, send_until_answered
from accord.loops.models import NEEDS_HUMAN
from accord.text.markdown import cell
from accord.text.untrusted import DATA as UNTRUSTED

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from accord.github.comments import Comment
    from accord.github.workflows import WorkflowRun
    from accord.loops.facts import EndedRun, LoopContext
    from accord.loops.models import LoopName, LoopState, PendingEffects
    from accord.text.posting import PostingPolicy
    from accord.text.redaction import Redactor


ASKS = "loop-asks"


def digest(body: str) -> str:
    """Return a digest that identifies a body."""
    return hashlib.sha256(body.encode("utf-8", "replace")).hexdigest()[:20]


def apply_effects(run: EndedRun, effects: PendingEffects, workflow: str) -> None:
    """Write everything that was planned for a run."""
    context = run.context
    run.loop.apply(run, effects)
    if effects.asks:
        ask_once(context, run.loop.name, run.state)
    relabel(context, run.pull.labels, effects.add_labels, effects.remove_labels)
    rerun_held(context, effects.reruns)
    if effects.is_due and workflow:
        start_workflow(context, workflow, context.number)


def without_effects(state: LoopState, run_id: str) -> LoopState | None:
    """Remove the effects of a run from the state, once they are applied; None where it has none."""
    is_ours = state.pending is not None and state.pending.run_id == run_id
    return state.model_copy(update={"pending": None}) if is_ours else None


def ask_once(context: LoopContext, loop: LoopName, state: LoopState, about: str = "") -> None:
    """Comment the notice, once for this reason, run count and subject; GitHub does not notify anyone of an edit."""
    notice = state.notice
    if notice is None:
        return
    head = f"**accord {loop} needs a person** and added the label `{NEEDS_HUMAN}`."
    text = "\n\n".join(filter(None, [head, cell(notice.problem), cell(notice.message)]))
    fields = {"pull": str(context.number), "why": notice.reason, "after": str(state.iterations)}
    comment_once(context, text, ASKS, loop=loop, **fields, **({"about": about} if about else {}))


def comment_once(context: LoopContext, text: str, marker: str, **fields: str) -> None:
    """Comment on the pull request, unless a comment of ours has this marker with these fields."""

    def find() -> Comment | None:
        listed = context.github.comments(context.number)
        ours = (comment for comment in listed if context.identity.counts(comment.author))
        return next((comment for comment in ours if fields in find_markers(comment.body, marker)), None)

    body = f"{text}\n\n{write_marker(marker, **fields)}"
    if find() is None:
        send_once(lambda: context.github.create_comment(context.number, body), find, context.clock)


def relabel(context: LoopContext, current: Sequence[str], added: Sequence[str], removed: Sequence[str]) -> None:
    """Add and remove labels, where that changes anything."""
    names = {label.casefold() for label in current}
    wanted = {label.casefold() for label in added}
    if missing := [label for label in dict.fromkeys(added) if label.casefold() not in names]:
        context.github.add_labels(context.number, missing)
    for label in dict.fromkeys(removed):
        if label.casefold() in names - wanted:
            context.github.remove_label(context.number, label)


def rerun_held(context: LoopContext, runs: Sequence[int]) -> bool:
    """Start held workflow runs again, each once; return False if the token may not."""
    return all(_rerun_once(context, run_id) for run_id in runs)


def _rerun_once(context: LoopContext, run_id: int) -> bool:
    def find() -> WorkflowRun | None:
        run = context.github.workflow_run(run_id)
        return run if run is not None and not run.is_held else None

    try:
        send_once(lambda: context.github.rerun(run_id), find, context.clock)
    except NotThere:  # GitHub deletes runs that are never approved
        return True
    except Forbidden:  # the answer for a run that is already in progress, too
        return find() is not None
    return True


def start_workflow(context: LoopContext, workflow: str, number: int) -> None:
    """Start the loop's workflow for a pull request."""
    dispatch(context, workflow, {"pr_number": str(number)}, "--dispatch-workflow")


def dispatch(context: LoopContext, workflow: str, inputs: dict[str, str], option: str) -> None:
    """Start a workflow of the default branch, which is harmless twice. Raises NotThere where it does not exist."""
    branch = context.github.repository().default_branch
    try:
        send_until_answered(lambda: context.github.dispatch_workflow(workflow, branch, inputs), context.clock)
    except NotThere:
        raise NotThere(
            f"The workflow {workflow} cannot be started: it is not on the branch {branch} of {context.repository}, or "
            "the token has no access.",
            hint=f"Pass a file of .github/workflows with `{option}`, and grant the token actions: write.",
        ) from None


__all__ = ["APPENDIX_CHARACTERS", "UNTRUSTED", "join_parts", "line_to_post", "text_to_post"]

APPENDIX_CHARACTERS = 30_000
"""Below 128 KiB in any script: one environment value or argument holds no more (Linux, MAX_ARG_STRLEN)."""

_CUT = "\n\n[…]"


def join_parts(parts: list[str], rest: str) -> str:
    """Join as many parts of a prompt as fit; ``rest`` with ``{n}`` says how many did not."""
    shown: list[str] = []
    size = 0
    for part in parts:
        size += len(part) + 2
        if size > APPENDIX_CHARACTERS:
            break
        shown.append(part)
    missing = len(parts) - len(shown)
    return "\n\n".join([*shown, rest.format(n=missing)] if missing else shown)


def text_to_post(text: str, secrets: Redactor, policy: PostingPolicy, characters: int) -> str:
    """Return Markdown that is safe to post, at most twice ``characters`` long; redacted before it is cut."""
    from accord.text.sanitise import sanitise

    def make_safe(cut: str) -> str:
        return defuse(sanitise(cut, secrets=secrets, policy=policy).text)[0].strip()

    return _shorten(secrets(text.replace("\r\n", "\n")), make_safe, characters, 2 * characters, _CUT)


def line_to_post(text: str, secrets: Redactor, policy: PostingPolicy, characters: int) -> str:
    """Return a title that is safe to post, never longer than ``characters``."""
    from accord.text.sanitise import sanitise_line

    def make_safe(cut: str) -> str:
        return defuse(sanitise_line(cut, secrets=secrets, policy=policy).text)[0].strip()

    return _shorten(secrets(text), make_safe, characters, characters, "…")


def _shorten(text: str, make_safe: Callable[[str], str], characters: int, most: int, end: str) -> str:
    """Cut before the text is made safe, since a cut afterwards could undo that; cut more where that made it longer."""
    safe = make_safe(text if len(text) <= characters else text[: characters - len(end)] + end)
    while len(safe) > most:
        characters //= 2
        safe = make_safe(text[:characters] + end)
    return safe
