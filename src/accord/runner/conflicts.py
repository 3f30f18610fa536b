"""A draft pull request for changes of a run that conflict with their branch. A person resolves the conflict there."""

from __future__ import annotations

from functools import partial
from urllib.parse import quote

from accord.core.errors import AccordError
from accord.git.conflicts import conflict_notice, resolution
from accord.github.client import GitHub
from accord.github.models import Pull
from accord.github.once import send_once
from accord.runner.outputs import FinishOptions, safe_line, summary_of
from accord.runner.publish import ConflictBranch
from accord.text.markdown import as_code

NEEDS_HUMAN = "needs-human"
_PATH_CHARS = 200


def report_conflict(conflict: ConflictBranch, title: str, message: str, pull: str, options: FinishOptions) -> str:
    """Open the draft, and return a sentence that says where the changes are. A dry run opens nothing.

    ``title`` is that of the draft, ``message`` the agent's, and ``pull`` the number of the run's own pull request.
    """
    github, log = options.github, options.log
    where = f"The changes conflict with {conflict.onto}, so they are on the branch {conflict.name}"
    page = options.remote.page if options.remote else ""
    compare = f"{page}/compare/{quote(conflict.onto, safe='/')}...{quote(conflict.name, safe='/')}"
    try:
        found = _find_draft(github, conflict.name) if github else None
    except AccordError as error:
        return f"{where}: {compare} Its pull requests could not be read: {error.message}"
    draft, problem = found, ""
    is_settled = found is not None and (found.state != "open" or NEEDS_HUMAN in found.labels)
    if github and not is_settled:
        body = _draft_body(conflict, message, pull, options)
        try:
            draft = found or log.write(
                "open-draft", conflict.name, lambda: _open(github, title, body, conflict, options)
            )
            number = draft.number if draft else 0
            add = partial(github.add_labels, number, [NEEDS_HUMAN])
            log.write("add-labels", NEEDS_HUMAN, add, number=number)
        except AccordError as error:
            failed = f"Its label {NEEDS_HUMAN} could not be added" if draft else "No pull request was opened for it"
            problem = f"{failed}: {error.message}"
    if log.is_dry_run and found is None:
        return f"Dry run: the changes would be pushed to {conflict.name}, in a draft for {conflict.onto}."
    if log.is_dry_run and found:
        labels = "" if is_settled else f" It would get the label {NEEDS_HUMAN}."
        return f"Dry run: the changes are in the {_state(found)}pull request {found.number}: {found.url}{labels}"
    if draft is None:
        return f"{where}: {compare} {problem}".rstrip()
    return f"{where} and in the {_state(draft)}pull request {draft.number}: {draft.url} {problem}".rstrip()


def _draft_body(conflict: ConflictBranch, message: str, pull: str, options: FinishOptions) -> str:
    """Return the paths, the beginning of the agent's message, and how to resolve the conflict."""
    redact, policy = options.redact, options.policy
    number = pull.strip().removeprefix("#")
    paths = [as_code(safe_line(path, redact, policy, _PATH_CHARS)) for path in conflict.paths]
    onto = as_code(conflict.onto)
    steps = f"To resolve it:\n\n```bash\n{resolution(conflict.name, conflict.onto)}\n```"
    target = f"{onto} and its pull request #{number}" if number.isascii() and number.isdecimal() else onto
    end = f"Then mark this pull request as ready for review, and merge it into {target}."
    notice = conflict_notice(onto, paths)
    return "\n\n".join(filter(None, [notice, summary_of(message, redact, policy), steps, end]))


def _open(github: GitHub, title: str, body: str, conflict: ConflictBranch, options: FinishOptions) -> Pull:
    return send_once(
        lambda: github.create_pull(title, body, conflict.name, conflict.onto, draft=True),
        lambda: _find_draft(github, conflict.name),
        options.clock,
    )


def _find_draft(github: GitHub, branch: str) -> Pull | None:
    return next(iter(github.pulls_from(branch)), None)


def _state(pull: Pull) -> str:
    return "" if pull.state == "open" else "merged " if pull.is_merged else "closed "
