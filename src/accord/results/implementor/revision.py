"""What accord writes about an implementor's result: commit message, pull request, comment."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from accord.github.limits import BODY_CHARS, TITLE_CHARS
from accord.github.markers import find_markers, write_marker
from accord.results.texts import as_code
from accord.text.cuts import cut

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence

    from accord.github.comments import Comment
    from accord.github.models import Identity, Pull
    from accord.results.implementor.scope import ScopeReport
    from accord.results.texts import TextSanitizer


REVISION = "revision"
OUTCOME = "outcome"

_CONVENTIONAL = re.compile(r"[a-z]+(?:\([^()]+\))?!?: \S")
_SUBJECT_CHARS = 72
_PATHS_SHOWN = 100
_SMALLEST_ROOM = 1_000
_RUNS_KEPT = 50
_CUT = "\n\n*The summary is cut here; it is longer than GitHub takes.*"


def commit_message(title: str, summary: str, number: int, token: str, co_authors: Sequence[str], *, prefix: str) -> str:
    """Write a commit message with a conventional subject and trailers, of which the last paragraph consists.

    A text of an agent comes before it, so nothing in it can pass for a trailer.
    """
    subject = " ".join(title.split())
    if not _CONVENTIONAL.match(subject):
        subject = f"{prefix}: {subject[:1].lower()}{subject[1:]}"
    if len(subject) > _SUBJECT_CHARS:
        subject = subject[: _SUBJECT_CHARS - 1].rstrip() + "…"
    text = re.sub(r"[\x00-\x08\x0b-\x1f\x7f]", "", summary.replace("\r\n", "\n")).strip()
    trailers = [f"Refs: #{number}", f"Accord-Run: {token}", *(f"Co-authored-by: {name}" for name in co_authors)]
    return "\n\n".join([subject, text, "\n".join(trailers)]) + "\n"


def pull_title(title: str) -> str:
    """Give the pull request the work item's title."""
    return " ".join(title.split())[:TITLE_CHARS]


def pull_body(
    summary: str, number: int, scope: ScopeReport, token: str, desk: TextSanitizer, earlier: Iterable[str] = ()
) -> str:
    """Write summary, scope report and the reference that closes the work item; the marker says which run wrote it.

    A squash merge makes a commit message of it, and that must not keep the checks of the base branch from running.
    """
    marker = _marker(REVISION, token, number, earlier)
    rest = "\n\n".join([desk.message(scope_report(scope, desk)), f"Closes #{number}", marker])
    return f"{_fitted(desk.message(summary), BODY_CHARS - len(rest) - 2)}\n\n{rest}"


def outcome_comment(outcome: str, summary: str, number: int, token: str, earlier: Iterable[str] = ()) -> str:
    """Write the one comment that tells why a work item is not done."""
    head = "The agent is blocked." if outcome == "blocked" else "The agent's validation failed."
    marker = _marker(OUTCOME, token, number, earlier)
    room = BODY_CHARS - len(head) - len(marker) - 8
    return f"**{head}**\n\n{_fitted(summary, room)}\n\n{marker}"


def _marker(name: str, token: str, number: int, earlier: Iterable[str]) -> str:
    """Say which run wrote a text, and after which others, so that none of these writes it again when it comes late."""
    runs = [run for run in dict.fromkeys(earlier) if run and run != token][:_RUNS_KEPT]
    return write_marker(name, run=token, item=str(number), **({"after": ".".join(runs)} if runs else {}))


def runs_before(body: str, name: str) -> list[str]:
    """Name the runs that a text of ours was written after, by its marker."""
    return [run for fields in find_markers(body, name) for run in fields.get("after", "").split(".") if run]


def runs_told(body: str, name: str) -> list[str]:
    """Name the run that wrote a text of ours, and those before it."""
    return [*(fields.get("run", "") for fields in find_markers(body, name)), *runs_before(body, name)]


def scope_report(scope: ScopeReport, desk: TextSanitizer) -> str:
    """Show every touched path under what it is to the work item."""
    groups = (
        ("In scope", scope.in_scope),
        ("Tests beside it", scope.tests),
        ("Outside of the scope", scope.outside),
        ("Protected: a person must look", scope.protected),
    )
    lines = ["### Scope", ""]
    for head, paths in groups:
        if paths:
            lines += [f"**{head}**", "", *(f"- {_code(path, desk)}" for path in paths[:_PATHS_SHOWN])]
            lines += [f"- and {len(paths) - _PATHS_SHOWN} more"] if len(paths) > _PATHS_SHOWN else []
            lines.append("")
    return "\n".join(lines).rstrip()


def _code(path: str, desk: TextSanitizer) -> str:
    """Write a path as code, whatever it holds: an agent chose it."""
    shown = path.encode("utf-8", "surrogateescape").decode("utf-8", "replace").replace("\n", "\\n").replace("\r", "\\r")
    return as_code(desk.path(shown))


def _fitted(text: str, room: int) -> str:
    return text if len(text) <= room else cut(text, max(room, _SMALLEST_ROOM) - len(_CUT))[0].rstrip() + _CUT


def our_pull(
    pulls: Sequence[Pull], identity: Identity, token: str, commits: Collection[str] = ()
) -> tuple[Pull | None, bool]:
    """Choose the pull request of the branch that this run goes on with; tell whether this run wrote it already.

    An open one comes first. One that this run wrote counts when it was merged, and when a person closed it while it
    had the run's commit (``commits`` are that one and those after it): there is nothing to open again then.
    """
    written = [pull for pull in pulls if _is_of_run(pull, identity, token)]
    still = [pull for pull in pulls if pull.state == "open"]
    if still:
        return next(((pull, True) for pull in still if pull in written), (still[0], False))
    return next(((pull, True) for pull in written if pull.is_merged or pull.head_sha in commits), (None, False))


def is_over(pulls: Sequence[Pull], identity: Identity, token: str, *, has_branch: bool) -> bool:
    """Tell whether this run's pull request was merged, and the branch is gone or another one is open for it."""
    is_merged = any(pull.is_merged and _is_of_run(pull, identity, token) for pull in pulls)
    return is_merged and (not has_branch or any(pull.state == "open" for pull in pulls))


def was_followed(pulls: Sequence[Pull], identity: Identity, token: str) -> bool:
    """Tell whether a later run wrote what the open pull request says, also when it had nothing to commit."""
    ours = (pull for pull in pulls if pull.state == "open" and identity.counts(pull.author))
    return any(token in runs_before(pull.body, REVISION) for pull in ours)


def _is_of_run(pull: Pull, identity: Identity, token: str) -> bool:
    marks = find_markers(pull.body, REVISION) if identity.counts(pull.author) else []
    return any(fields.get("run") == token for fields in marks)


def our_comment(comments: Sequence[Comment], identity: Identity, number: int) -> Comment | None:
    """Find the one comment in which we tell of this work item's outcome."""
    for comment in comments:
        if identity.counts(comment.author) and any(
            fields.get("item") == str(number) for fields in find_markers(comment.body, OUTCOME)
        ):
            return comment
    return None


def is_comment_of(comment: Comment, token: str) -> bool:
    """Tell whether this run wrote the comment's present text."""
    return any(fields.get("run") == token for fields in find_markers(comment.body, OUTCOME))
