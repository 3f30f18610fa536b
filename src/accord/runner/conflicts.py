"""A draft pull request for changes of a run that conflict with their branch. A person resolves the conflict there."""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import quote

from accord.core.errors import AccordError
from accord.git.conflicts import conflict_notice, resolution
from accord.github.once import send_once
from accord.runner.outputs import safe_line, summary_of
from accord.text.markdown import as_code

if TYPE_CHECKING:
    from accord.core.clock import Clock
    from accord.github.client import GitHub
    from accord.github.models import Pull
    from accord.runner.finish import FinishOptions
    from accord.runner.publish import ConflictBranch
    from accord.text.posting import PostingPolicy
    from accord.text.redaction import Redactor

NEEDS_HUMAN = "needs-human"
_PATH_CHARS = 200


def draft_body(conflict: ConflictBranch, message: str, pull: str, redact: Redactor, policy: PostingPolicy) -> str:
    """Return the body of the draft: the paths, the beginning of the agent's message, and how to resolve the conflict.

    ``pull`` is the number of the run's own pull request; empty without one.
    """
    paths = [as_code(safe_line(path, redact, policy, _PATH_CHARS)) for path in conflict.paths]
    onto = as_code(conflict.onto)
    steps = f"To resolve it:\n\n```bash\n{resolution(conflict.name, conflict.onto)}\n```"
    target = f"{onto} and its pull request #{pull}" if pull else onto
    end = f"Then mark this pull request as ready for review, and merge it into {target}."
    notice = conflict_notice(onto, paths)
    return "\n\n".join(filter(None, [notice, summary_of(message, redact, policy), steps, end]))


def open_draft(github: GitHub, conflict: ConflictBranch, title: str, body: str, clock: Clock) -> tuple[Pull, str]:
    """Open the draft with the label ``needs-human``, unless an earlier try did.

    Also return why its label could not be added, or nothing. Raises AccordError if the draft cannot be opened.
    """

    def find() -> Pull | None:
        return next(iter(github.pulls_from(conflict.name)), None)

    pull = find() or send_once(
        lambda: github.create_pull(title, body, conflict.name, conflict.onto, draft=True), find, clock
    )
    if pull.state == "open" and NEEDS_HUMAN not in pull.labels:
        try:
            github.add_labels(pull.number, [NEEDS_HUMAN])
        except AccordError as error:
            return pull, f"Its label {NEEDS_HUMAN} could not be added: {error.message}"
    return pull, ""


def report_conflict(conflict: ConflictBranch, title: str, message: str, pull: str, options: FinishOptions) -> str:
    """Open the draft, and return a sentence that says where the changes are. A dry run opens nothing."""
    if options.dry_run:
        return f"Dry run: the changes would be pushed to {conflict.name}, in a draft for {conflict.onto}."
    where = f"The changes conflict with {conflict.onto}, so they are on the branch {conflict.name}"
    page = options.remote.page if options.remote else ""
    compare = f"{page}/compare/{quote(conflict.onto, safe='/')}...{quote(conflict.name, safe='/')}"
    if options.github is None:
        return f"{where}: {compare}"
    number = pull.strip().removeprefix("#")
    number = number if number.isascii() and number.isdecimal() else ""
    body = draft_body(conflict, message, number, options.redact, options.policy)
    try:
        draft, problem = open_draft(options.github, conflict, title, body, options.clock)
    except AccordError as error:
        return f"{where}: {compare} No pull request was opened for it: {error.message}"
    state = "" if draft.state == "open" else "merged " if draft.is_merged else "closed "
    return f"{where} and in the {state}pull request {draft.number}: {draft.url} {problem}".rstrip()
